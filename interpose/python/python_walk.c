/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of frames, from the thread's state outward. Owns what is trusted: a frame counts when
 * it leads to an object whose type is code. Must never fault on an unexpected layout: the first
 * walks are checked load by load.
 *
 * There is one walk, written once. It is compiled for each layout in the table, for any other
 * layout, and with every load checked. Each comes in two forms: to recognize a stack its hash is
 * enough, and noting every frame would take twice as long.
 */
#include <string.h>
#include "interpose/platform/readable.h"
#include "interpose/python/python_parts.h"
#include "interpose/platform/laws.h"

/*
 * CHECKED: the kernel checks every load first; any layout. ANY: plain loads; any layout.
 * COMPILED: a known layout, and code is identified by a number.
 */
enum mode { CHECKED, ANY, COMPILED };

#define INLINE static inline __attribute__((always_inline)) READS_PYTHON

/* 3.14: bits of a reference that are not part of the address; objects are aligned. */
enum { POINTER_TAGS = 7 };

#define SPREAD_1 0x9E3779B97F4A7C15ull
#define SPREAD_2 0xD6E8FEB86659FD93ull
#define SPREAD_3 0xC2B2AE3D27D4EB4Full

/* ---- loads ---- */

INLINE bool get(bool checked, uintptr_t at, uint64_t *value)
{
	if (checked)
		return cuf_readable_copy(value, at, sizeof *value);
	*value = cuf_python_load(at);
	return true;
}

/* Into a whole word: half of one, stored and then loaded whole, would stall. */
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

/* ---- the identity of texts ---- */

/*
 * Where a text's characters are, and how many bytes of them are shown. 0 bytes: of a kind that
 * names do not have.
 */
static READS_PYTHON bool find_bytes(bool checked, const struct cuf_python_layout *layout,
				    uintptr_t text, uintptr_t *at, uint64_t *bytes)
{
	uint64_t length, state;
	unsigned size;
	bool is_compact, is_ascii;

	if (!get(checked, text + layout->text_length, &length) ||
	    !get32(checked, text + layout->text_state, &state))
		return false;
	state = cuf_python_text_state(layout, (uint32_t)state);
	size = state & 7;
	is_compact = state >> 3 & 1;
	is_ascii = state >> 4 & 1;
	*at = text + (is_ascii ? layout->text_ascii_bytes : layout->text_compact_bytes);
	*bytes = 0;
	if (length > CUF_PYTHON_FILE_BYTES)
		length = CUF_PYTHON_FILE_BYTES;
	if (is_compact && (size == 1 || size == 2 || size == 4))
		*bytes = length * size;
	return true;
}

/* Of a text whose hash was not needed yet: everything that is shown of it. 0: cannot be read. */
static __attribute__((noinline)) READS_PYTHON uint64_t
hash_bytes(bool checked, const struct cuf_python_layout *layout, uintptr_t text)
{
	uintptr_t at, first_at, last_at;
	uint64_t bytes, first = 0, last = 0, hash;

	if (!find_bytes(checked, layout, text, &at, &bytes))
		return 0;
	first_at = last_at = at;
	if (bytes >= 16)
		first_at += bytes - 16;
	if (bytes >= 8)
		last_at += bytes - 8;
	hash = bytes;
	for (uint64_t i = 0; i + 16 < bytes; i += 16) {
		if (!get(checked, at + i, &first) || !get(checked, at + i + 8, &last))
			return 0;
		hash = (hash + first * SPREAD_2 + last) * SPREAD_1;
	}
	if (bytes && (!get(checked, first_at, &first) || !get(checked, last_at, &last)))
		return 0;
	/*
	 * the word may reach beyond the text, but no object is so small that it reaches beyond
	 * that
	 */
	if (bytes && bytes < 8)
		first = last &= ~(~(uint64_t)0 << 8 * bytes);
	return cuf_python_mix(hash + first * SPREAD_2, last) | 1;
}

/*
 * A value that differs between texts at the same address: the hash that Python has stored, or
 * ours.
 */
INLINE bool identify_text(bool checked, const struct cuf_python_layout *layout, uintptr_t text,
			  uint64_t *identity)
{
	if (!get(checked, text + layout->text_length + 8, identity))
		return false;
	return __builtin_expect(*identity != UINT64_MAX, 1) ||
	       (*identity = hash_bytes(checked, layout, text));
}

/* ---- the walk ---- */

enum { FILES = 8 };

struct walk {
	struct cuf_python_thread *thread;
	uint64_t hash;
	unsigned count, max, runs;
	/* the struct on the stack that belongs to the present run; 0: none. Followed when noting */
	uint64_t cframe;
	/* of the last frame, where that was needed */
	uint64_t file, file_identity;
	/* of frames before it, valid once file is set; their texts live as long as the frames */
	struct {
		uint64_t text, identity;
	} files[FILES];
};

/* Neighbours often come from one file, and a stack from few. */
INLINE bool identify_file(bool checked, const struct cuf_python_layout *layout, struct walk *walk,
			  uint64_t file)
{
	unsigned at = (file >> 4 ^ file >> 7) % FILES;

	if (!walk->file)
		for (unsigned i = 0; i < FILES; i++)
			walk->files[i].text = 0;
	if (walk->files[at].text != file) {
		uint64_t identity;

		if (!identify_text(checked, layout, file, &identity))
			return false;
		walk->files[at].text = file;
		/* rotated, as name and file are added: two equal texts would cancel out */
		walk->files[at].identity = identity << 21 | identity >> 43;
	}
	walk->file = file;
	walk->file_identity = walk->files[at].identity;
	return true;
}

/*
 * By name, file and first line: all that is shown of code, except for the line, which its
 * instruction gives.
 */
INLINE bool identify_by_name(bool checked, const struct cuf_python_layout *layout,
			     struct walk *walk, uintptr_t code, uint64_t *identity)
{
	uint16_t name_at = layout->code_qualified;
	uint64_t line, name, file, name_identity;

	if (!name_at)
		name_at = layout->code_name;
	if (!get32(checked, code + layout->code_first_line, &line) ||
	    !get(checked, code + name_at, &name) ||
	    !get(checked, code + layout->code_file, &file) ||
	    !identify_text(checked, layout, name, &name_identity))
		return false;
	if (file != walk->file && !identify_file(checked, layout, walk, file))
		return false;
	*identity = name_identity + walk->file_identity + (line << 32);
	return true;
}

/*
 * Code is freed and its address used again, so an address is no identity. From 3.12 on code has a
 * version number. Before, it is how often something was freed at the address. Where neither is
 * known, its name must do.
 */
INLINE bool identify_code(enum mode mode, const struct cuf_python_layout *layout,
			  struct walk *walk, uintptr_t code, uint64_t *identity)
{
	const bool checked = mode == CHECKED;
	uint64_t number;

	if (mode == COMPILED && !layout->code_version) {
		number = __atomic_load_n(cuf_python_frees_of(code), __ATOMIC_RELAXED);
		*identity = number << 32;
		return true;
	}
	if (layout->code_version) {
		if (!get32(checked, code + layout->code_version, &number))
			return false;
		*identity = number << 32;
		if (__builtin_expect(number, 1))
			return true;
	}
	return identify_by_name(checked, layout, walk, code, identity);
}

/* ---- runs ---- */

INLINE void end_run(bool noting, const struct cuf_python_layout *layout, struct walk *walk,
		    uintptr_t marker)
{
	struct cuf_python_thread *thread = walk->thread;

	/* before 3.11 each frame is a run of its own, which adds nothing to the hash */
	if (layout->chain >= CUF_PYTHON_ENTRY_FLAG)
		walk->hash++;
	if (!noting || walk->count == (walk->runs ? thread->run[walk->runs - 1].end : 0))
		return;
	thread->run[walk->runs++] = (struct cuf_python_run){ marker, walk->count };
}

/* Where the chain begins, and the struct on the stack that belongs to it. */
INLINE bool find_first(bool checked, bool noting, const struct cuf_python_layout *layout,
		       struct walk *walk, uintptr_t state, uint64_t *frame)
{
	if (!get(checked, state + layout->thread_frame, frame))
		return false;
	if (layout->chain == CUF_PYTHON_FRAME_CALLS)
		return !noting || get(checked, state + layout->thread_cframe, &walk->cframe);
	if (!layout->cframe_previous) /* no struct in between */
		return true;
	walk->cframe = *frame;
	return !walk->cframe || get(checked, walk->cframe + layout->cframe_frame, frame);
}

/* Goes on to the next run when this frame ends one. false: cannot be read. */
INLINE bool step_run(bool checked, bool noting, const struct cuf_python_layout *layout,
		     struct walk *walk, uintptr_t frame)
{
	uint8_t entry = 1;

	if (layout->chain == CUF_PYTHON_ENTRY_FRAME ||
	    (!noting && layout->chain < CUF_PYTHON_ENTRY_FLAG))
		return true;
	if (layout->chain == CUF_PYTHON_ENTRY_FLAG &&
	    !get8(checked, frame + layout->frame_entry, &entry))
		return false;
	if (!noting) { /* end_run, without a branch that could not be predicted */
		walk->hash += entry;
		return true;
	}
	if (!entry)
		return true;
	end_run(noting, layout, walk, walk->cframe);
	return !walk->cframe || get(checked, walk->cframe + layout->cframe_previous, &walk->cframe);
}

/* ---- frames ---- */

INLINE bool get_instruction(bool checked, const struct cuf_python_layout *layout, uintptr_t frame,
			    uint64_t *instruction)
{
	if (layout->code_bytes)
		return get(checked, frame + layout->frame_instruction, instruction);
	if (!get32(checked, frame + layout->frame_instruction, instruction))
		return false;
	*instruction = (uint64_t)(int64_t)(int32_t)*instruction;
	return true;
}

/* Adds one frame to the walk. false: it is no frame. */
INLINE bool add_frame(enum mode mode, bool noting, const struct cuf_python_layout *layout,
		      uintptr_t code_type, struct walk *walk, uintptr_t frame)
{
	const bool checked = mode == CHECKED;
	uint64_t code, type, instruction, identity;

	if (!get(checked, frame + layout->frame_code, &code))
		return false;
	if (layout->minor >= 14)
		code &= ~(uint64_t)POINTER_TAGS;
	if (!code || !get(checked, code + layout->type, &type) || type != code_type)
		return false;
	if (!get_instruction(checked, layout, frame, &instruction) ||
	    !identify_code(mode, layout, walk, code, &identity))
		return false;
	if (noting)
		walk->thread->frames[walk->count] = (struct cuf_python_frame){
			code, instruction, identity,
			code + instruction * SPREAD_3 + identity * SPREAD_2
		};
	/* frames in another order give another hash */
	walk->hash = (walk->hash + identity + instruction) * SPREAD_1 + code;
	walk->count++;
	return true;
}

INLINE bool follow_chain(enum mode mode, bool noting, const struct cuf_python_layout *layout,
			 uintptr_t code_type, struct walk *walk, uintptr_t state)
{
	const bool checked = mode == CHECKED;
	uint64_t frame;
	uint8_t owner = 0;
	/* links without a frame; behind each comes a frame, except in a circle */
	unsigned between = 0;

	if (!find_first(checked, noting, layout, walk, state, &frame))
		return false;
	while (frame) {
		if (frame & POINTER_TAGS ||
		    (layout->outer_owner && !get8(checked, frame + layout->frame_owner, &owner)))
			return false;
		if (layout->outer_owner && owner >= layout->outer_owner) {
			if (between++ > CUF_PYTHON_FRAMES_MAX)
				return false;
			end_run(noting, layout, walk, frame);
		} else {
			if (walk->count == walk->max) {
				walk->thread->more = true;
				walk->hash += 2;
				break;
			}
			if (!add_frame(mode, noting, layout, code_type, walk, frame) ||
			    !step_run(checked, noting, layout, walk, frame))
				return false;
		}
		if (!get(checked, frame + layout->frame_previous, &frame))
			return false;
	}
	/* the call of the frames that are left is known where the stack has a struct for it */
	end_run(noting, layout, walk, layout->chain == CUF_PYTHON_ENTRY_FRAME ? 0 : walk->cframe);
	return true;
}

/* Initialised member by member: `files` is used rarely. */
INLINE bool walk_frames(enum mode mode, bool noting, const struct cuf_python_layout *layout,
			const struct cuf_python *python, struct cuf_python_thread *thread,
			uintptr_t state, unsigned max)
{
	struct walk walk;
	bool whole;

	walk.thread = thread;
	walk.max = max;
	walk.hash = walk.cframe = walk.file = walk.file_identity = 0;
	walk.count = walk.runs = 0;
	thread->more = false;
	whole = follow_chain(mode, noting, layout, python->code_type, &walk, state);
	if (!whole)
		end_run(noting, layout, &walk, 0);
	thread->count = walk.count;
	thread->runs = walk.runs;
	thread->hash = cuf_python_mix(walk.hash, walk.count);
	return whole;
}

/* ---- the compiled forms ---- */

#define WALKS(of, mode, layout)                                                                    \
	static READS_PYTHON bool hash_##of(const struct cuf_python *python,                        \
					   struct cuf_python_thread *thread, uintptr_t state,      \
					   unsigned max)                                           \
	{                                                                                          \
		return walk_frames(mode, false, layout, python, thread, state, max);               \
	}                                                                                          \
	static READS_PYTHON bool note_##of(const struct cuf_python *python,                        \
					   struct cuf_python_thread *thread, uintptr_t state,      \
					   unsigned max)                                           \
	{                                                                                          \
		return walk_frames(mode, true, layout, python, thread, state, max);                \
	}                                                                                          \
	static const struct cuf_python_walks walks_##of = { hash_##of, note_##of };

WALKS(checked, CHECKED, &python->layout)
WALKS(any, ANY, &python->layout)

#define LAYOUT(of, ...)                                                                            \
	static const struct cuf_python_layout layout_##of = { __VA_ARGS__ };                       \
	WALKS(of, COMPILED, &layout_##of)
#include "interpose/python/python_layouts.def"

const struct cuf_python_walks *cuf_python_walks_checked(void) { return &walks_checked; }

/* A compiled walk identifies code by a number, so without one the general walk serves. */
const struct cuf_python_walks *cuf_python_walks_for(const struct cuf_python_layout *layout,
						    bool frees_counted)
{
	static const struct {
		const struct cuf_python_layout *layout;
		const struct cuf_python_walks *walks;
	} compiled[] = {
#define LAYOUT(of, ...) { &layout_##of, &walks_##of },
#include "interpose/python/python_layouts.def"
	};

	if (!layout->code_version && !frees_counted)
		return &walks_any;
	for (unsigned i = 0; i < sizeof compiled / sizeof *compiled; i++)
		if (!memcmp(compiled[i].layout, layout, sizeof *layout))
			return compiled[i].walks;
	return &walks_any;
}
