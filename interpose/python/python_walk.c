/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of frames, from the thread's state outward. Owns what is believed: a frame counts when it leads to an object
 * whose type is code. Must never fault on a layout other than expected: the first walks are checked load by load.
 * One walk, written once, and compiled for each layout in the table, for any other, and with every load checked; each
 * twice: to know a stack again its hash is enough, and noting every frame would take twice as long.
 */
#include <string.h>
#include "interpose/python/python_parts.h"
#include "interpose/platform/readable.h"
#include "interpose/platform/laws.h"

/* Every load is asked of the kernel first; any layout; a layout known beforehand, with code known by a number. */
enum mode { CHECKED, ANY, COMPILED };

#define INLINE static inline __attribute__((always_inline)) READS_PYTHON

enum { POINTER_TAGS = 7 }; /* 3.14: bits of a reference that are not address; objects are aligned */

INLINE bool get(bool checked, uintptr_t at, uint64_t *value)
{
	if (checked)
		return cuf_readable_copy(value, at, sizeof *value);
	*value = cuf_python_load(at);
	return true;
}

/* (into a whole word: half of one, stored and loaded whole, would be waited for) */
INLINE bool get32(bool checked, uintptr_t at, uint64_t *value)
{
	uint32_t half;
	if (checked && !cuf_readable_copy(&half, at, sizeof half))
		return false;
	*value = checked ? half : cuf_python_load32(at);
	__asm__("" : "+r"(*value));
	return true;
}

INLINE bool get8(bool checked, uintptr_t at, uint8_t *value)
{
	if (checked)
		return cuf_readable_copy(value, at, 1);
	*value = *(const volatile uint8_t *)at;
	return true;
}

#define SPREAD_1 0x9E3779B97F4A7C15ull
#define SPREAD_2 0xD6E8FEB86659FD93ull
#define SPREAD_3 0xC2B2AE3D27D4EB4Full

/* Where a text's characters are, and how many bytes of them are shown somewhere. None of a kind that names do not have. */
static READS_PYTHON bool find_bytes(bool checked, const struct cuf_python_layout *l, uintptr_t text, uintptr_t *at, uint64_t *bytes)
{
	uint64_t length, state;
	unsigned size;
	if (!get(checked, text + l->text_length, &length) || !get32(checked, text + l->text_state, &state))
		return false;
	state = cuf_python_text_state(l, (uint32_t)state);
	size = state & 7;
	*at = text + (state >> 4 & 1 ? l->text_ascii_bytes : l->text_compact_bytes);
	*bytes = length > CUF_PYTHON_FILE_BYTES ? CUF_PYTHON_FILE_BYTES : length;
	*bytes = (size == 1 || size == 2 || size == 4) && state >> 3 & 1 ? *bytes * size : 0;
	return true;
}

/* A text whose hash nobody needed yet: all that is shown of it. 0: cannot be read. */
static __attribute__((noinline)) READS_PYTHON uint64_t know_bytes(bool checked, const struct cuf_python_layout *l, uintptr_t text)
{
	uintptr_t at;
	uint64_t bytes, first = 0, last = 0, hash;
	if (!find_bytes(checked, l, text, &at, &bytes))
		return 0;
	hash = bytes;
	for (uint64_t i = 0; i + 16 < bytes; i += 16) {
		if (!get(checked, at + i, &first) || !get(checked, at + i + 8, &last))
			return 0;
		hash = (hash + first * SPREAD_2 + last) * SPREAD_1;
	}
	if (bytes && (!get(checked, bytes < 16 ? at : at + bytes - 16, &first) || !get(checked, bytes < 8 ? at : at + bytes - 8, &last)))
		return 0;
	if (bytes && bytes < 8) /* no object is so small that these bytes are not in it */
		first = last &= ~(~(uint64_t)0 << 8 * bytes);
	return cuf_python_mix(hash + first * SPREAD_2, last) | 1;
}

/* Something that tells a text from others at the same address. */
INLINE bool know_text(bool checked, const struct cuf_python_layout *l, uintptr_t text, uint64_t *known)
{
	if (!get(checked, text + l->text_length + 8, known))
		return false;
	return __builtin_expect(*known != UINT64_MAX, 1) || (*known = know_bytes(checked, l, text));
}

/* ---- the walk ---- */

enum { FILES = 8 };

struct walk {
	struct cuf_python_thread *p;
	uint64_t hash;
	unsigned count, max, runs;
	uint64_t cframe;     /* the struct on the stack that goes with the present run; 0 none. Followed where runs are noted */
	uint64_t file, file_known; /* of the last frame, where that was asked */
	struct { uint64_t text, known; } files[FILES]; /* of the frames before; while these are on the stack, no other text takes the place. Once file is set */
};

/* Neighbours often come from one file, and a stack from few. */
INLINE bool know_file(bool checked, const struct cuf_python_layout *l, struct walk *w, uint64_t file)
{
	unsigned at = (file >> 4 ^ file >> 7) % FILES;
	if (!w->file)
		for (unsigned i = 0; i < FILES; i++)
			w->files[i].text = 0;
	if (w->files[at].text != file) {
		uint64_t known;
		if (!know_text(checked, l, file, &known))
			return false;
		w->files[at].text = file;
		w->files[at].known = known << 21 | known >> 43; /* else two equal texts would be none */
	}
	w->file = file;
	w->file_known = w->files[at].known;
	return true;
}

/*
 * Code is freed and its address used again, so an address alone is no identity. From 3.12 on code has a number of its own;
 * before, how often something was freed there. Where neither is known, what it is called and where it came from must do:
 * all that is shown of it but the line, which its instruction says.
 */
INLINE bool know_code(enum mode mode, const struct cuf_python_layout *l, struct walk *w, uintptr_t code, uint64_t *identity)
{
	const bool checked = mode == CHECKED;
	uint64_t number, name, file, name_known;
	if (mode == COMPILED && !l->code_version) {
		*identity = (uint64_t)__atomic_load_n(cuf_python_frees_of(code), __ATOMIC_RELAXED) << 32;
		return true;
	}
	if (l->code_version) {
		if (!get32(checked, code + l->code_version, &number))
			return false;
		*identity = number << 32;
		if (__builtin_expect(number, 1))
			return true;
	}
	if (!get32(checked, code + l->code_first_line, &number) || !get(checked, code + (l->code_qualified ? l->code_qualified : l->code_name), &name) ||
	    !get(checked, code + l->code_file, &file) || !know_text(checked, l, name, &name_known))
		return false;
	if (file != w->file && !know_file(checked, l, w, file))
		return false;
	*identity = name_known + w->file_known + (number << 32);
	return true;
}

INLINE void end_run(bool noting, const struct cuf_python_layout *l, struct walk *w, uintptr_t marker)
{
	if (l->chain >= CUF_PYTHON_ENTRY_FLAG) /* else each frame is a run of its own: that tells nothing */
		w->hash++;
	if (!noting || w->count == (w->runs ? w->p->run[w->runs - 1].end : 0))
		return;
	w->p->run[w->runs++] = (struct cuf_python_run){ marker, w->count };
}

/* Where the chain begins, and the struct on the stack that goes with it. */
INLINE bool find_first(bool checked, bool noting, const struct cuf_python_layout *l, struct walk *w, uintptr_t state, uint64_t *frame)
{
	if (!get(checked, state + l->thread_frame, frame))
		return false;
	if (l->chain == CUF_PYTHON_FRAME_CALLS)
		return !noting || get(checked, state + l->thread_cframe, &w->cframe);
	if (!l->cframe_previous) /* no struct between */
		return true;
	w->cframe = *frame;
	return !w->cframe || get(checked, w->cframe + l->cframe_frame, frame);
}

/* One frame. false: no frame. */
INLINE bool take_frame(enum mode mode, bool noting, const struct cuf_python_layout *l, uintptr_t code_type, struct walk *w, uintptr_t frame)
{
	const bool checked = mode == CHECKED;
	uint64_t code, type, instruction, identity;
	if (!get(checked, frame + l->frame_code, &code))
		return false;
	if (l->minor >= 14)
		code &= ~(uint64_t)POINTER_TAGS;
	if (!code || !get(checked, code + l->type, &type) || type != code_type)
		return false;
	if (l->code_bytes) {
		if (!get(checked, frame + l->frame_instruction, &instruction))
			return false;
	} else {
		if (!get32(checked, frame + l->frame_instruction, &instruction))
			return false;
		instruction = (uint64_t)(int64_t)(int32_t)instruction;
	}
	if (!know_code(mode, l, w, code, &identity))
		return false;
	if (noting)
		w->p->frames[w->count] = (struct cuf_python_frame){ code, instruction, identity, code + instruction * SPREAD_3 + identity * SPREAD_2 };
	w->hash = (w->hash + identity + instruction) * SPREAD_1 + code; /* in another order another one */
	w->count++;
	return true;
}

/* Goes on to the next run where this frame ends one. false: cannot be read. */
INLINE bool step_run(bool checked, bool noting, const struct cuf_python_layout *l, struct walk *w, uintptr_t frame)
{
	uint8_t entry = 1;
	if (l->chain == CUF_PYTHON_ENTRY_FRAME || (!noting && l->chain < CUF_PYTHON_ENTRY_FLAG))
		return true;
	if (l->chain == CUF_PYTHON_ENTRY_FLAG && !get8(checked, frame + l->frame_entry, &entry))
		return false;
	if (!noting) { /* end_run, without a branch that could not be guessed */
		w->hash += entry;
		return true;
	}
	if (!entry)
		return true;
	end_run(noting, l, w, w->cframe);
	return !w->cframe || get(checked, w->cframe + l->cframe_previous, &w->cframe);
}

INLINE bool follow(enum mode mode, bool noting, const struct cuf_python_layout *l, uintptr_t code_type, struct walk *w, uintptr_t state)
{
	const bool checked = mode == CHECKED;
	uint64_t frame;
	uint8_t owner = 0;
	unsigned between = 0; /* frames that are none: behind each there is one that is, but in a circle */
	if (!find_first(checked, noting, l, w, state, &frame))
		return false;
	while (frame) {
		if (frame & POINTER_TAGS || (l->outer_owner && !get8(checked, frame + l->frame_owner, &owner)))
			return false;
		if (l->outer_owner && owner >= l->outer_owner) {
			if (between++ > CUF_PYTHON_FRAMES_MAX)
				return false;
			end_run(noting, l, w, frame);
		} else {
			if (w->count == w->max) {
				w->p->more = true;
				w->hash += 2;
				break;
			}
			if (!take_frame(mode, noting, l, code_type, w, frame) || !step_run(checked, noting, l, w, frame))
				return false;
		}
		if (!get(checked, frame + l->frame_previous, &frame))
			return false;
	}
	/* of the frames that are left the call is known where the stack has a struct for it */
	end_run(noting, l, w, l->chain == CUF_PYTHON_ENTRY_FRAME ? 0 : w->cframe);
	return true;
}

INLINE bool walk(enum mode mode, bool noting, const struct cuf_python_layout *l, const struct cuf_python *python, struct cuf_python_thread *p,
		 uintptr_t state, unsigned max)
{
	struct walk w;
	bool whole;
	w.p = p;
	w.max = max;
	w.hash = w.cframe = w.file = w.file_known = 0;
	w.count = w.runs = 0;
	p->more = false;
	whole = follow(mode, noting, l, python->code_type, &w, state);
	if (!whole)
		end_run(noting, l, &w, 0);
	p->count = w.count;
	p->runs = w.runs;
	p->hash = cuf_python_mix(w.hash, w.count);
	return whole;
}

#define WALKS(of, mode, layout)                                                                                                                        \
	static READS_PYTHON bool hash_##of(const struct cuf_python *python, struct cuf_python_thread *p, uintptr_t state, unsigned max)                       \
	{                                                                                                                                                   \
		return walk(mode, false, layout, python, p, state, max);                                                                                    \
	}                                                                                                                                                   \
	static READS_PYTHON bool note_##of(const struct cuf_python *python, struct cuf_python_thread *p, uintptr_t state, unsigned max)                       \
	{                                                                                                                                                   \
		return walk(mode, true, layout, python, p, state, max);                                                                                     \
	}                                                                                                                                                   \
	static const struct cuf_python_walks walks_##of = { hash_##of, note_##of };

WALKS(checked, CHECKED, &python->layout)
WALKS(any, ANY, &python->layout)

#define LAYOUT(of, ...)                                                                                                                                \
	static const struct cuf_python_layout layout_##of = { __VA_ARGS__ };                                                                                 \
	WALKS(of, COMPILED, &layout_##of)
#include "interpose/python/python_layouts.def"

const struct cuf_python_walks *cuf_python_walks_checked(void) { return &walks_checked; }

const struct cuf_python_walks *cuf_python_walks_for(const struct cuf_python_layout *layout, bool frees_counted)
{
	static const struct { const struct cuf_python_layout *layout; const struct cuf_python_walks *walks; } compiled[] = {
#define LAYOUT(of, ...) { &layout_##of, &walks_##of },
#include "interpose/python/python_layouts.def"
	};
	for (unsigned i = 0; i < sizeof compiled / sizeof *compiled; i++)
		if (!memcmp(compiled[i].layout, layout, sizeof *layout) && (layout->code_version || frees_counted))
			return compiled[i].walks;
	return &walks_any;
}
