/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of frames, from the thread's state outward. Owns what is believed: a frame counts when it leads to an object
 * whose type is code. Must never fault on a layout other than expected: the first walks are checked load by load.
 */
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

INLINE bool get32(bool checked, uintptr_t at, uint32_t *value)
{
	if (checked)
		return cuf_readable_copy(value, at, sizeof *value);
	*value = cuf_python_load32(at);
	return true;
}

INLINE bool get8(bool checked, uintptr_t at, uint8_t *value)
{
	if (checked)
		return cuf_readable_copy(value, at, 1);
	*value = *(const volatile uint8_t *)at;
	return true;
}

/* Something that tells a text from others at the same address: its hash where it was needed before, else parts of it. */
INLINE bool know_text(bool checked, const struct cuf_python_layout *l, uintptr_t text, uint64_t *known)
{
	uint64_t length, hash, first, last;
	if (!get(checked, text + l->text_length, &length) || !get(checked, text + l->text_length + 8, &hash))
		return false;
	*known = cuf_python_mix(*known, hash ^ length << 48);
	if (hash != UINT64_MAX)
		return true;
	if (length < 8) { /* no object is so small that these bytes are not in it */
		if (!get(checked, text + l->text_ascii_bytes, &first))
			return false;
		*known = cuf_python_mix(*known, first & ~(~(uint64_t)0 << 8 * length));
		return true;
	}
	if (!get(checked, text + l->text_ascii_bytes + (length / 2 & ~(uint64_t)7), &first) ||
	    !get(checked, text + l->text_ascii_bytes + length - 8, &last))
		return false;
	*known = cuf_python_mix(*known ^ first, last);
	return true;
}

/*
 * Code is freed and its address used again, so an address alone is no identity. From 3.12 on code has a number of its own;
 * before, what it is called and where it came from must do.
 */
INLINE bool know_code(bool checked, const struct cuf_python_layout *l, uintptr_t code, uint64_t *identity)
{
	uint32_t number;
	uint64_t name, file;
	if (l->code_version) {
		if (!get32(checked, code + l->code_version, &number))
			return false;
		*identity = number;
		if (number)
			return true;
	}
	if (!get32(checked, code + l->code_first_line, &number) || !get(checked, code + l->code_name, &name) ||
	    !get(checked, code + l->code_file, &file))
		return false;
	*identity = number;
	return know_text(checked, l, name, identity) && know_text(checked, l, file, identity);
}

INLINE void end_run(struct cuf_python_thread *p, uintptr_t marker)
{
	if (p->count > (p->runs ? p->run[p->runs - 1].end : 0))
		p->run[p->runs++] = (struct cuf_python_run){ marker, p->count };
}

/* Where the chain begins, and the structs on the stack that go with it. */
INLINE bool find_first(bool checked, const struct cuf_python_layout *l, uintptr_t state, uint64_t *frame, uint64_t *cframe)
{
	*cframe = 0;
	if (!get(checked, state + l->thread_frame, frame))
		return false;
	if (l->chain == CUF_PYTHON_FRAME_CALLS)
		return get(checked, state + l->thread_cframe, cframe);
	if (!l->cframe_previous) /* no struct between */
		return true;
	*cframe = *frame;
	return !*cframe || get(checked, *cframe + l->cframe_frame, frame);
}

/* One frame. false: no frame. */
INLINE bool take_frame(bool checked, const struct cuf_python *python, struct cuf_python_thread *p, uintptr_t frame)
{
	const struct cuf_python_layout *l = &python->layout;
	uint64_t code, type, instruction, identity;
	uint32_t number;
	unsigned i = p->count;
	if (!get(checked, frame + l->frame_code, &code))
		return false;
	code &= ~(uint64_t)POINTER_TAGS;
	if (!code || !get(checked, code + l->type, &type) || type != python->code_type)
		return false;
	if (l->code_bytes) {
		if (!get(checked, frame + l->frame_instruction, &instruction))
			return false;
	} else {
		if (!get32(checked, frame + l->frame_instruction, &number))
			return false;
		instruction = (uint64_t)(int64_t)(int32_t)number;
	}
	if (!know_code(checked, l, code, &identity))
		return false;
	p->codes[i] = code;
	p->instructions[i] = instruction;
	p->identities[i] = identity;
	p->keys[i] = cuf_python_mix(code ^ identity << 20, instruction);
	p->count = i + 1;
	return true;
}

/* Goes on to the next run where this frame ends one. false: cannot be read. */
INLINE bool step_run(bool checked, const struct cuf_python_layout *l, struct cuf_python_thread *p, uintptr_t frame, uint64_t *cframe)
{
	uint8_t entry = 1;
	if (l->chain == CUF_PYTHON_ENTRY_FRAME)
		return true;
	if (l->chain == CUF_PYTHON_ENTRY_FLAG && !get8(checked, frame + l->frame_entry, &entry))
		return false;
	if (!entry)
		return true;
	end_run(p, *cframe);
	return !*cframe || get(checked, *cframe + l->cframe_previous, cframe);
}

INLINE bool walk(bool checked, const struct cuf_python *python, struct cuf_python_thread *p, uintptr_t state, const unsigned max)
{
	const struct cuf_python_layout *l = &python->layout;
	uint64_t frame, cframe;
	uint8_t owner;
	if (!find_first(checked, l, state, &frame, &cframe))
		return false;
	while (frame) {
		if (frame & POINTER_TAGS)
			return false;
		if (l->outer_owner && !get8(checked, frame + l->frame_owner, &owner))
			return false;
		if (l->outer_owner && owner >= l->outer_owner) {
			end_run(p, frame);
		} else {
			if (p->count == max) {
				p->more = true;
				break;
			}
			if (!take_frame(checked, python, p, frame) || !step_run(checked, l, p, frame, &cframe))
				return false;
		}
		if (!get(checked, frame + l->frame_previous, &frame))
			return false;
	}
	/* of the frames that are left the call is known where the stack has a struct for it */
	end_run(p, l->chain == CUF_PYTHON_ENTRY_FRAME ? 0 : cframe);
	return true;
}

bool cuf_python_walk(const struct cuf_python *python, struct cuf_python_thread *p, uintptr_t state, unsigned max, bool checked)
{
	bool whole;
	p->count = p->runs = 0;
	p->more = false;
	whole = checked ? walk(true, python, p, state, max) : walk(false, python, p, state, max);
	if (!whole)
		end_run(p, 0);
	return whole;
}
