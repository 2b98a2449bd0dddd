/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of frames, from the thread's state outward. Owns what is believed: a frame counts when it leads to an object
 * whose type is code. Must never fault on a layout other than expected: the first walks are checked load by load.
 * One walk, written once, and compiled for each layout in the table, for any other, and with every load checked.
 */
#include <string.h>
#include "interpose/core/python_parts.h"
#include "interpose/core/readable.h"
#include "interpose/core/laws.h"

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

/* A text whose hash nobody needed yet: some of it. */
static __attribute__((noinline)) READS_PYTHON bool know_bytes(bool checked, const struct cuf_python_layout *l, uintptr_t text, uint64_t *known)
{
	uint64_t length, first, last = 0;
	if (!get(checked, text + l->text_length, &length))
		return false;
	if (length < 8) { /* no object is so small that these bytes are not in it */
		if (!get(checked, text + l->text_ascii_bytes, &first))
			return false;
		first &= ~(~(uint64_t)0 << 8 * length);
	} else if (!get(checked, text + l->text_ascii_bytes + (length / 2 & ~(uint64_t)7), &first) ||
		   !get(checked, text + l->text_ascii_bytes + length - 8, &last)) {
		return false;
	}
	*known = cuf_python_mix(cuf_python_mix(length, first), last);
	return true;
}

/* Something that tells a text from others at the same address. */
INLINE bool know_text(bool checked, const struct cuf_python_layout *l, uintptr_t text, uint64_t *known)
{
	uint64_t hash;
	if (!get(checked, text + l->text_length + 8, &hash) ||
	    (__builtin_expect(hash == UINT64_MAX, 0) && !know_bytes(checked, l, text, &hash)))
		return false;
	*known = hash; /* not handed on: what the walk keeps shall live in registers */
	return true;
}

/* ---- the walk ---- */

struct walk {
	struct cuf_python_thread *p;
	struct cuf_python_frame *next, *end;
	uint64_t hash;
	unsigned runs;
	uint64_t cframe;     /* the struct on the stack that goes with the present run; 0 none */
	uint64_t file, file_known; /* of the last frame, where that was asked */
};

/*
 * Code is freed and its address used again, so an address alone is no identity. From 3.12 on code has a number of its own;
 * before, what it is called and where it came from must do.
 */
INLINE bool know_code(bool checked, const struct cuf_python_layout *l, struct walk *w, uintptr_t code, uint64_t *identity)
{
	uint64_t number, name, file, name_known;
	if (l->code_version) {
		if (!get32(checked, code + l->code_version, &number))
			return false;
		*identity = number;
		if (__builtin_expect(number, 1))
			return true;
	}
	if (!get32(checked, code + l->code_first_line, &number) || !get(checked, code + l->code_name, &name) ||
	    !get(checked, code + l->code_file, &file) || !know_text(checked, l, name, &name_known))
		return false;
	if (file != w->file) { /* neighbours often come from one file */
		if (!know_text(checked, l, file, &w->file_known))
			return false;
		w->file = file;
	}
	*identity = name_known + (w->file_known << 21 | w->file_known >> 43) + (number << 32);
	return true;
}

/* The position goes in too: the same frames in another order are another stack. */
INLINE void hash_frame(struct walk *w, uint64_t key)
{
	uint64_t t = (key + (uintptr_t)w->next) * SPREAD_1;
	w->hash += (t ^ t >> 29) * SPREAD_2;
}

INLINE void end_run(struct walk *w, uintptr_t marker)
{
	unsigned end = (unsigned)(w->next - w->p->frames);
	if (end == (w->runs ? w->p->run[w->runs - 1].end : 0))
		return;
	w->p->run[w->runs++] = (struct cuf_python_run){ marker, end };
	w->hash += (end + 1) * SPREAD_3;
}

/* Where the chain begins, and the struct on the stack that goes with it. */
INLINE bool find_first(bool checked, const struct cuf_python_layout *l, struct walk *w, uintptr_t state, uint64_t *frame)
{
	w->cframe = 0;
	if (!get(checked, state + l->thread_frame, frame))
		return false;
	if (l->chain == CUF_PYTHON_FRAME_CALLS)
		return get(checked, state + l->thread_cframe, &w->cframe);
	if (!l->cframe_previous) /* no struct between */
		return true;
	w->cframe = *frame;
	return !w->cframe || get(checked, w->cframe + l->cframe_frame, frame);
}

/* One frame. false: no frame. */
INLINE bool take_frame(bool checked, const struct cuf_python_layout *l, uintptr_t code_type, struct walk *w, uintptr_t frame)
{
	struct cuf_python_frame *to = w->next;
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
	if (!know_code(checked, l, w, code, &identity))
		return false;
	to->code = code;
	to->instruction = instruction;
	to->identity = identity;
	to->key = code + instruction * SPREAD_3 + identity * SPREAD_2;
	hash_frame(w, to->key);
	w->next = to + 1;
	return true;
}

/* Goes on to the next run where this frame ends one. false: cannot be read. */
INLINE bool step_run(bool checked, const struct cuf_python_layout *l, struct walk *w, uintptr_t frame)
{
	uint8_t entry = 1;
	if (l->chain == CUF_PYTHON_ENTRY_FRAME)
		return true;
	if (l->chain == CUF_PYTHON_ENTRY_FLAG && !get8(checked, frame + l->frame_entry, &entry))
		return false;
	if (!entry)
		return true;
	end_run(w, w->cframe);
	return !w->cframe || get(checked, w->cframe + l->cframe_previous, &w->cframe);
}

INLINE bool follow(bool checked, const struct cuf_python_layout *l, uintptr_t code_type, struct walk *w, uintptr_t state)
{
	uint64_t frame;
	uint8_t owner = 0;
	unsigned between = 0; /* frames that are none: behind each there is one that is, but in a circle */
	if (!find_first(checked, l, w, state, &frame))
		return false;
	while (frame) {
		if (frame & POINTER_TAGS || (l->outer_owner && !get8(checked, frame + l->frame_owner, &owner)))
			return false;
		if (l->outer_owner && owner >= l->outer_owner) {
			if (between++ > CUF_PYTHON_FRAMES_MAX)
				return false;
			end_run(w, frame);
		} else {
			if (w->next == w->end) {
				w->p->more = true;
				w->hash++;
				break;
			}
			if (!take_frame(checked, l, code_type, w, frame) || !step_run(checked, l, w, frame))
				return false;
		}
		if (!get(checked, frame + l->frame_previous, &frame))
			return false;
	}
	/* of the frames that are left the call is known where the stack has a struct for it */
	end_run(w, l->chain == CUF_PYTHON_ENTRY_FRAME ? 0 : w->cframe);
	return true;
}

INLINE bool walk(bool checked, const struct cuf_python_layout *l, const struct cuf_python *python, struct cuf_python_thread *p, uintptr_t state, unsigned max)
{
	struct walk w = { .p = p, .next = p->frames, .end = p->frames + max };
	bool whole;
	p->more = false;
	whole = follow(checked, l, python->code_type, &w, state);
	if (!whole)
		end_run(&w, 0);
	p->count = (unsigned)(w.next - p->frames);
	p->runs = w.runs;
	p->hash = w.hash ^ w.hash >> 32;
	return whole;
}

bool cuf_python_walk_checked(const struct cuf_python *python, struct cuf_python_thread *p, uintptr_t state, unsigned max)
{
	return walk(true, &python->layout, python, p, state, max);
}

static READS_PYTHON bool walk_any(const struct cuf_python *python, struct cuf_python_thread *p, uintptr_t state, unsigned max)
{
	const struct cuf_python_layout layout = python->layout;
	return walk(false, &layout, python, p, state, max);
}

#define LAYOUT(of, ...)                                                                                                                                \
	static const struct cuf_python_layout layout_##of = { __VA_ARGS__ };                                                                                 \
	static READS_PYTHON bool walk_##of(const struct cuf_python *python, struct cuf_python_thread *p, uintptr_t state, unsigned max)                       \
	{                                                                                                                                                   \
		return walk(false, &layout_##of, python, p, state, max);                                                                                       \
	}
#include "interpose/core/python_layouts.def"

static const struct { const struct cuf_python_layout *layout; cuf_python_walk *walk; } compiled[] = {
#define LAYOUT(of, ...) { &layout_##of, walk_##of },
#include "interpose/core/python_layouts.def"
};

cuf_python_walk *cuf_python_walk_for(const struct cuf_python_layout *layout)
{
	for (unsigned i = 0; i < sizeof compiled / sizeof *compiled; i++)
		if (!memcmp(compiled[i].layout, layout, sizeof *layout))
			return compiled[i].walk;
	return walk_any;
}
