/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cfi.c and cfi_run.c share; no other file includes it. Contract: as in cfi.h. A reader
 * checks every byte against the readable segment that holds the unwind tables.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "interpose/code/cfi.h"
#include "interpose/code/modules.h"

/* DWARF's numbers of the registers that are followed. REG_RA: of the return address. */
#if defined __aarch64__
enum { REG_FP = 29, REG_SP = 31, REG_RA = 30 };
#else
enum { REG_FP = 6, REG_SP = 7, REG_RA = 16 };
#endif

/* ---- bounded reading ---- */

/* After the first bad read everything reads as 0, and `bad` stays set. */
struct reader {
	struct cuf_span span;
	uintptr_t at;
	bool bad;
};

static inline uint64_t read_fixed(struct reader *reader, unsigned bytes)
{
	const struct cuf_span *span = &reader->span;
	uint64_t value = 0;

	if (reader->bad || reader->at < span->start || reader->at > span->end ||
	    span->end - reader->at < bytes) {
		reader->bad = true;
		return 0;
	}
	__builtin_memcpy(&value, (const void *)reader->at, bytes);
	reader->at += bytes;
	return value;
}

static inline uint64_t read_leb(struct reader *reader, bool is_signed)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = read_fixed(reader, 1);
		if (shift < 64)
			value |= (byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
	if (is_signed && byte & 64 && shift < 64)
		value |= ~(uint64_t)0 << shift;
	return value;
}

static inline uint64_t read_uleb(struct reader *reader) { return read_leb(reader, false); }
static inline int64_t read_sleb(struct reader *reader) { return (int64_t)read_leb(reader, true); }

static inline void skip(struct reader *reader, uint64_t bytes)
{
	if (reader->bad || bytes > reader->span.end - reader->at)
		reader->bad = true;
	else
		reader->at += bytes;
}

/* Of DW_EH_PE_*: the upper half of an encoding is what the value counts from. */
enum { POINTER_OMIT = 0xff, POINTER_PCREL = 0x10, POINTER_DATAREL = 0x30 };

/* A pointer as DW_EH_PE_* encodes it. origin is what DATAREL counts from. */
static inline uint64_t read_pointer(struct reader *reader, unsigned encoding, uintptr_t origin)
{
	/* the LEB formats are missing: .eh_frame never uses them for pointers */
	static const struct {
		uint8_t bytes, is_signed;
	} formats[16] = {
		[0x0] = { 8, 0 }, [0x2] = { 2, 0 }, [0x3] = { 4, 0 }, [0x4] = { 8, 0 },
		[0xa] = { 2, 1 }, [0xb] = { 4, 1 }, [0xc] = { 8, 1 },
	};
	uintptr_t here = reader->at;
	unsigned bytes = formats[encoding & 15].bytes;
	uint64_t value = bytes ? read_fixed(reader, bytes) : 0;

	if (!bytes)
		reader->bad = true;
	else if (formats[encoding & 15].is_signed && bytes < 8 && value >> (bytes * 8 - 1))
		value |= ~(uint64_t)0 << bytes * 8;
	switch (encoding & 0x70) {
	case 0: return value;
	case POINTER_PCREL: return value + here;
	case POINTER_DATAREL: return value + origin;
	}
	reader->bad = true;
	return 0;
}

/* ---- where values are ---- */

/* Where a value of the frame being left is found. */
enum place_base {
	PLACE_KEPT,
	PLACE_CFA,
	PLACE_FP,
	PLACE_SP,
	PLACE_FP_SLOT,
	PLACE_SP_SLOT,
	PLACE_REGISTER,
	PLACE_UNDEFINED,
	PLACE_OTHER
};

/*
 * A register is saved at base + offset. The CFA is base + offset, or, with _SLOT, the word there
 * plus extra.
 */
struct place {
	enum place_base base;
	int64_t offset;
	uint64_t extra; /* PLACE_REGISTER: the register */
};

/* One row of the unwind table: it holds for one instruction. */
struct row {
	struct place cfa, fp, ra;
	/* of the register that cuf_register_place asks for */
	struct place asked;
	uint64_t asked_reg;
};

/* The facts of a frame description in addition to its instructions. */
struct frame_info {
	uint64_t code_align;
	int64_t data_align;
	unsigned pointer_encoding;
	bool is_signal;
	uintptr_t pc;
};

/*
 * The walker's shape of a row: everything of the rule except its ip. In cfi_shape_MACHINE.c. The
 * kind is CUF_RULE_UNSUPPORTED where no shape fits.
 */
void cuf_cfi_shape(struct cuf_rule *rule, const struct row *row);

/* fp is kept, so the rule need not follow it. */
static inline bool cuf_cfi_keeps_fp(const struct row *row)
{
	return row->fp.base == PLACE_KEPT || row->fp.base == PLACE_UNDEFINED;
}

/* fp is saved where a rule can say so. */
static inline bool cuf_cfi_saves_fp(const struct row *row)
{
	const int64_t least = INT16_MIN * (int64_t)CUF_RULE_FP_UNIT;

	return row->fp.base == PLACE_CFA && row->fp.offset <= -16 && row->fp.offset >= least &&
	       row->fp.offset % 8 == 0;
}

/*
 * Runs call-frame instructions up to `end`, or up to the first that is about code after info->pc.
 * location: the address that they begin at. The row is read and changed.
 */
void cuf_cfi_run(struct reader *reader, uintptr_t end, struct row *row,
		 const struct frame_info *info, uintptr_t location);
