/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call-frame instructions: where a function has saved its registers at one of its instructions.
 * Owns the DWARF opcodes and the expression shapes. Knows nothing of how the entries of .eh_frame
 * are found.
 */
#include "interpose/code/cfi_parts.h"

#include <stddef.h>
#include "interpose/platform/laws.h"

#if CUF_HAS_RULES

/* NULL: no register of interest. */
static struct place *place_of(struct row *row, uint64_t reg)
{
	if (reg == REG_FP)
		return &row->fp;
	if (reg == REG_RA)
		return &row->ra;
	return reg == row->asked_reg ? &row->asked : NULL;
}

static enum place_base base_of(uint64_t reg)
{
	if (reg == REG_SP)
		return PLACE_SP;
	if (reg == REG_FP)
		return PLACE_FP;
	return reg < REG_RA ? PLACE_REGISTER : PLACE_OTHER;
}

/* ---- expressions ---- */

/*
 * The linker's PLT stubs: cfa = sp + 8, plus 8 once the stub has pushed, which is from byte N of
 * its 16 on. The address is known here, so this is a constant. N differs between kinds of stub.
 */
static bool is_plt_expression(struct reader *reader, uint64_t bytes, unsigned *pushed_from)
{
	enum { LITERAL_N = 6 };
	static const uint8_t shape[] = {
		0x77, 8, 0x80, 0, 0x3f, 0x1a, 0, 0x2a, 0x33, 0x24, 0x22
	};
	struct reader probe = *reader;

	if (bytes != sizeof shape)
		return false;
	for (unsigned i = 0; i < sizeof shape; i++) {
		uint8_t byte = (uint8_t)read_fixed(&probe, 1);

		if (i == LITERAL_N && byte >= 0x30 && byte < 0x50)
			*pushed_from = byte - 0x30u;
		else if (byte != shape[i] || probe.bad)
			return false;
	}
	return true;
}

/*
 * "fp + offset" or "sp + offset", with or without a load at the end. A slot of sp may have "+
 * constant" after the load. Everything else is PLACE_OTHER.
 */
static struct place read_register_expression(struct reader *reader, uintptr_t end)
{
	enum { OP_BREG = 0x70, OP_DEREF = 0x06, OP_PLUS_UCONST = 0x23 };
	struct place place = { .base = PLACE_OTHER };
	unsigned op = (unsigned)read_fixed(reader, 1);
	bool is_fp = op == OP_BREG + REG_FP;

	place.offset = read_sleb(reader);
	if (!is_fp && op != OP_BREG + REG_SP)
		return place;
	if (reader->at == end)
		place.base = is_fp ? PLACE_FP : PLACE_SP;
	else if (read_fixed(reader, 1) == OP_DEREF && reader->at == end)
		place.base = is_fp ? PLACE_FP_SLOT : PLACE_SP_SLOT;
	else if (!is_fp && read_fixed(reader, 1) == OP_PLUS_UCONST)
		place = (struct place){ PLACE_SP_SLOT, place.offset, read_uleb(reader) };
	if (reader->at != end)
		place.base = PLACE_OTHER;
	return place;
}

/* An expression of this length; the reader goes on behind it. */
static struct place read_expression(struct reader *reader, uint64_t bytes,
				    const struct frame_info *info)
{
	struct place place = { .base = PLACE_OTHER };
	uintptr_t end = reader->at + bytes;
	unsigned pushed_from = 0;

	if (is_plt_expression(reader, bytes, &pushed_from)) {
		place.base = PLACE_SP;
		place.offset = (info->pc & 15) >= pushed_from ? 16 : 8;
	} else if (bytes && bytes <= reader->span.end - reader->at) {
		place = read_register_expression(reader, end);
	} else {
		reader->bad = true;
		return place;
	}
	reader->at = end;
	return place;
}

/* ---- instructions ---- */

enum operand {
	NOTHING,
	U1,
	U2,
	U4,
	ULEB,
	SLEB,
	ULEB_FACTORED,
	SLEB_FACTORED,
	ADDRESS,
	BLOCK
};

enum effect {
	UNKNOWN,
	NOP,
	SET_LOCATION,
	ADVANCE,
	SAVED_AT,
	RESTORE,
	UNDEFINED,
	KEPT,
	ELSEWHERE, /* in another register, or a computed value */
	REMEMBER,
	RECALL,
	CFA,
	CFA_REGISTER,
	CFA_OFFSET,
	CFA_EXPRESSION,
	SAVED_BY_EXPRESSION,
	VALUE_EXPRESSION
};

static const struct instruction {
	uint8_t effect, operands[2];
} instructions[64] = {
	[0x00] = { NOP, { NOTHING, NOTHING } },
	[0x01] = { SET_LOCATION, { ADDRESS, NOTHING } },
	[0x02] = { ADVANCE, { U1, NOTHING } },
	[0x03] = { ADVANCE, { U2, NOTHING } },
	[0x04] = { ADVANCE, { U4, NOTHING } },
	[0x05] = { SAVED_AT, { ULEB, ULEB_FACTORED } },
	[0x06] = { RESTORE, { ULEB, NOTHING } },
	[0x07] = { UNDEFINED, { ULEB, NOTHING } },
	[0x08] = { KEPT, { ULEB, NOTHING } },
	[0x09] = { ELSEWHERE, { ULEB, ULEB } },
	[0x0a] = { REMEMBER, { NOTHING, NOTHING } },
	[0x0b] = { RECALL, { NOTHING, NOTHING } },
	[0x0c] = { CFA, { ULEB, ULEB } },
	[0x0d] = { CFA_REGISTER, { ULEB, NOTHING } },
	[0x0e] = { CFA_OFFSET, { NOTHING, ULEB } },
	[0x0f] = { CFA_EXPRESSION, { NOTHING, BLOCK } },
	[0x10] = { SAVED_BY_EXPRESSION, { ULEB, BLOCK } },
	[0x11] = { SAVED_AT, { ULEB, SLEB_FACTORED } },
	[0x12] = { CFA, { ULEB, SLEB_FACTORED } },
	[0x13] = { CFA_OFFSET, { NOTHING, SLEB_FACTORED } },
	[0x14] = { ELSEWHERE, { ULEB, ULEB } },
	[0x15] = { ELSEWHERE, { ULEB, SLEB } },
	[0x16] = { VALUE_EXPRESSION, { ULEB, BLOCK } },
#if defined __aarch64__
	/* AARCH64_negate_ra_state: from here on the return address is signed, or not any more */
	[0x2d] = { NOP, { NOTHING, NOTHING } },
#endif
	[0x2e] = { NOP, { ULEB, NOTHING } }, /* GNU_args_size */
};

/* The three commonest have an operand in their low six bits and are known by the high two. */
static const struct instruction packed_instructions[4] = {
	[1] = { ADVANCE, { NOTHING, NOTHING } },
	[2] = { SAVED_AT, { NOTHING, ULEB_FACTORED } },
	[3] = { RESTORE, { NOTHING, NOTHING } },
};

static int64_t read_operand(struct reader *reader, enum operand operand,
			    const struct frame_info *info)
{
	const uint64_t factor = (uint64_t)info->data_align;

	switch (operand) {
	case U1: return (int64_t)read_fixed(reader, 1);
	case U2: return (int64_t)read_fixed(reader, 2);
	case U4: return (int64_t)read_fixed(reader, 4);
	case SLEB: return read_sleb(reader);
	case ULEB:
	case BLOCK: return (int64_t)read_uleb(reader);
	case ULEB_FACTORED: return (int64_t)(read_uleb(reader) * factor);
	case SLEB_FACTORED: return (int64_t)((uint64_t)read_sleb(reader) * factor);
	case ADDRESS: return (int64_t)read_pointer(reader, info->pointer_encoding, 0);
	case NOTHING: break;
	}
	return 0;
}

/* The state while instructions run. initial is the row that RESTORE refers to. */
struct machine {
	struct reader *reader;
	struct row *row;
	struct row initial;
	const struct frame_info *info;
};

/* The instructions about one register: a is its number, b the second operand. */
static void apply_to_register(struct machine *machine, enum effect effect, uint64_t a, int64_t b)
{
	struct place ignored, *place = place_of(machine->row, a);

	if (!place)
		place = &ignored;
	switch (effect) {
	case SAVED_AT:
		*place = (struct place){ PLACE_CFA, b, 0 };
		break;
	case UNDEFINED:
		place->base = PLACE_UNDEFINED;
		break;
	case KEPT:
		place->base = PLACE_KEPT;
		break;
	case ELSEWHERE:
		place->base = PLACE_OTHER;
		break;
	case SAVED_BY_EXPRESSION:
		*place = read_expression(machine->reader, (uint64_t)b, machine->info);
		break;
	case VALUE_EXPRESSION:
		place->base = PLACE_OTHER;
		skip(machine->reader, (uint64_t)b);
		break;
	case RESTORE:
		if (place != &ignored)
			*place = *place_of(&machine->initial, a);
		break;
	default:
		machine->reader->bad = true;
	}
}

static void apply_to_cfa(struct machine *machine, enum effect effect, uint64_t a, int64_t b)
{
	struct place *cfa = &machine->row->cfa;

	switch (effect) {
	case CFA:
		*cfa = (struct place){ base_of(a), b, a };
		break;
	case CFA_REGISTER:
		*cfa = (struct place){ base_of(a), cfa->offset, a };
		break;
	case CFA_OFFSET:
		cfa->offset = b;
		break;
	case CFA_EXPRESSION:
		*cfa = read_expression(machine->reader, (uint64_t)b, machine->info);
		break;
	default:
		machine->reader->bad = true;
	}
}

void cuf_cfi_run(struct reader *reader, uintptr_t end, struct row *row,
		 const struct frame_info *info, uintptr_t location)
{
	enum { DEPTH = 16 };
	struct machine machine = { reader, row, *row, info };
	struct row remembered[DEPTH];
	unsigned depth = 0;

	while (reader->at < end && location <= info->pc && !reader->bad) {
		unsigned op = (unsigned)read_fixed(reader, 1);
		const struct instruction *instruction =
			op >> 6 ? &packed_instructions[op >> 6] : &instructions[op];
		int64_t a = read_operand(reader, instruction->operands[0], info);
		int64_t b = read_operand(reader, instruction->operands[1], info);

		if (op >> 6)
			a = op & 63;
		switch (instruction->effect) {
		case UNKNOWN:
			reader->bad = true;
			break;
		case NOP:
			break;
		case SET_LOCATION:
			location = (uintptr_t)a;
			break;
		case ADVANCE:
			location += (uint64_t)a * info->code_align;
			break;
		case REMEMBER:
			if (depth < DEPTH)
				remembered[depth] = *row;
			reader->bad |= depth++ >= DEPTH;
			break;
		case RECALL:
			reader->bad |= !depth;
			if (depth)
				*row = remembered[--depth];
			break;
		case CFA:
		case CFA_REGISTER:
		case CFA_OFFSET:
		case CFA_EXPRESSION:
			apply_to_cfa(&machine, instruction->effect, (uint64_t)a, b);
			break;
		default:
			apply_to_register(&machine, instruction->effect, (uint64_t)a, b);
		}
	}
}
#endif
