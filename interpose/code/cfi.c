/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From .eh_frame to a rule. Owns the reading of DWARF call-frame information and the few expression shapes that
 * compilers, the linker's PLT and glibc's signal return emit. Must not touch the stack that is being walked, and must
 * not trust a single byte: tables may be damaged, or be something else altogether.
 */
#include "interpose/code/cfi.h"

#include <stddef.h>
#include "interpose/code/modules.h"
#include "interpose/platform/laws.h"

#if !defined __x86_64__
struct cuf_rule cuf_rule_compile(uintptr_t ip) { return (struct cuf_rule){.ip = ip, .kind = CUF_RULE_UNSUPPORTED}; }
bool cuf_register_place(uintptr_t ip, unsigned reg, int64_t *cfa_offset) { return false; }
#else

/* DWARF's numbers of the registers followed. */
enum { REG_FP = 6, REG_SP = 7, REG_RA = 16 };
enum { POINTER_OMIT = 0xff, POINTER_PCREL = 0x10, POINTER_DATAREL = 0x30, TABLE_SORTED = 0x3b /* datarel, sdata4 */ };

/* Reading with bounds: after the first bad read everything reads as 0 and `bad` stays set. */
struct reader {
	struct cuf_span span;
	uintptr_t at;
	bool bad;
};

static uint64_t read_fixed(struct reader *r, unsigned bytes)
{
	uint64_t value = 0;
	if (r->bad || r->at < r->span.start || r->at > r->span.end || r->span.end - r->at < bytes) {
		r->bad = true;
		return 0;
	}
	__builtin_memcpy(&value, (const void *)r->at, bytes);
	r->at += bytes;
	return value;
}

static uint64_t read_leb(struct reader *r, bool is_signed)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;
	do {
		byte = read_fixed(r, 1);
		if (shift < 64)
			value |= (byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
	if (is_signed && byte & 64 && shift < 64)
		value |= ~(uint64_t)0 << shift;
	return value;
}

static uint64_t read_uleb(struct reader *r) { return read_leb(r, false); }
static int64_t read_sleb(struct reader *r) { return (int64_t)read_leb(r, true); }

static void skip(struct reader *r, uint64_t bytes)
{
	if (r->bad || bytes > r->span.end - r->at)
		r->bad = true;
	else
		r->at += bytes;
}

/* A pointer as DW_EH_PE_* encodes it; origin is what DATAREL counts from. */
static uint64_t read_pointer(struct reader *r, unsigned encoding, uintptr_t origin)
{
	static const struct {
		uint8_t bytes, is_signed;
	} formats[16] = {
		[0x0] = {8, 0},
		[0x2] = {2, 0},
		[0x3] = {4, 0},
		[0x4] = {8, 0},
		[0xa] = {2, 1},
		[0xb] = {4, 1},
		[0xc] = {8, 1},
	};
	uintptr_t here = r->at;
	unsigned bytes = formats[encoding & 15].bytes;
	uint64_t value = bytes ? read_fixed(r, bytes) : 0;
	if (!bytes) /* LEB formats are never used for pointers in .eh_frame */
		r->bad = true;
	else if (formats[encoding & 15].is_signed && bytes < 8 && value >> (bytes * 8 - 1))
		value |= ~(uint64_t)0 << bytes * 8;
	switch (encoding & 0x70) {
	case 0: return value;
	case POINTER_PCREL: return value + here;
	case POINTER_DATAREL: return value + origin;
	}
	r->bad = true;
	return 0;
}

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
struct place {
	enum place_base
		base; /* registers: saved at base + offset; the CFA: is base + offset, or with _SLOT what lies there + extra */
	int64_t offset;
	uint64_t extra; /* PLACE_REGISTER: which */
};

struct row {
	struct place cfa, fp, ra;
	struct place asked; /* of the register that somebody asks for */
	uint64_t asked_reg;
};

/* What a frame description says beside its instructions. */
struct frame_info {
	uint64_t code_align;
	int64_t data_align;
	unsigned pointer_encoding;
	bool is_signal;
	uintptr_t pc;
};

/*
 * The linker's PLT stubs: cfa = sp + 8 + (8 once the stub has pushed, that is at byte N of its 16). The address is
 * known here, so this is a constant. N differs by kind of stub.
 */
static bool is_plt_expression(struct reader *r, uint64_t bytes, unsigned *pushed_from)
{
	static const uint8_t shape[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0 /* lit N */, 0x2a, 0x33, 0x24, 0x22};
	struct reader probe = *r;
	if (bytes != sizeof shape)
		return false;
	for (unsigned i = 0; i < sizeof shape; i++) {
		uint8_t byte = (uint8_t)read_fixed(&probe, 1);
		if (i == 6 && byte >= 0x30 && byte < 0x50)
			*pushed_from = byte - 0x30u;
		else if (byte != shape[i] || probe.bad)
			return false;
	}
	return true;
}

/*
 * An expression, past its length: "register + offset", with or without a load at the end; of the stack pointer's slots
 * also "+ constant" after it; else PLACE_OTHER.
 */
static struct place read_expression(struct reader *r, uint64_t bytes, const struct frame_info *info)
{
	enum { OP_BREG = 0x70, OP_DEREF = 0x06, OP_PLUS_UCONST = 0x23 };
	struct place place = {.base = PLACE_OTHER};
	uintptr_t end = r->at + bytes;
	unsigned pushed_from = 0, op;
	if (is_plt_expression(r, bytes, &pushed_from)) {
		place = (struct place){PLACE_SP, (info->pc & 15) >= pushed_from ? 16 : 8, 0};
		r->at = end;
	} else if (bytes && bytes <= r->span.end - r->at) {
		op = (unsigned)read_fixed(r, 1);
		place.offset = read_sleb(r);
		if (op == OP_BREG + REG_FP || op == OP_BREG + REG_SP) {
			if (r->at == end)
				place.base = op == OP_BREG + REG_FP ? PLACE_FP : PLACE_SP;
			else if (read_fixed(r, 1) == OP_DEREF && r->at == end)
				place.base = op == OP_BREG + REG_FP ? PLACE_FP_SLOT : PLACE_SP_SLOT;
			else if (op == OP_BREG + REG_SP && read_fixed(r, 1) == OP_PLUS_UCONST)
				place = (struct place){PLACE_SP_SLOT, place.offset, read_uleb(r)};
			place.base = r->at == end ? place.base : PLACE_OTHER;
		}
		r->at = end;
	} else {
		r->bad = true;
	}
	return place;
}

/* Operands of the instructions, and what they do. */
enum operand { NOTHING, U1, U2, U4, ULEB, SLEB, ULEB_FACTORED, SLEB_FACTORED, ADDRESS, BLOCK };
enum effect {
	UNKNOWN,
	NOP,
	SET_LOCATION,
	ADVANCE,
	SAVED_AT,
	RESTORE,
	UNDEFINED,
	KEPT,
	ELSEWHERE,
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
	[0x00] = {NOP, {NOTHING, NOTHING}},
	[0x01] = {SET_LOCATION, {ADDRESS, NOTHING}},
	[0x02] = {ADVANCE, {U1, NOTHING}},
	[0x03] = {ADVANCE, {U2, NOTHING}},
	[0x04] = {ADVANCE, {U4, NOTHING}},
	[0x05] = {SAVED_AT, {ULEB, ULEB_FACTORED}},
	[0x06] = {RESTORE, {ULEB, NOTHING}},
	[0x07] = {UNDEFINED, {ULEB, NOTHING}},
	[0x08] = {KEPT, {ULEB, NOTHING}},
	[0x09] = {ELSEWHERE, {ULEB, ULEB}}, /* in another register */
	[0x0a] = {REMEMBER, {NOTHING, NOTHING}},
	[0x0b] = {RECALL, {NOTHING, NOTHING}},
	[0x0c] = {CFA, {ULEB, ULEB}},
	[0x0d] = {CFA_REGISTER, {ULEB, NOTHING}},
	[0x0e] = {CFA_OFFSET, {NOTHING, ULEB}},
	[0x0f] = {CFA_EXPRESSION, {NOTHING, BLOCK}},
	[0x10] = {SAVED_BY_EXPRESSION, {ULEB, BLOCK}},
	[0x11] = {SAVED_AT, {ULEB, SLEB_FACTORED}},
	[0x12] = {CFA, {ULEB, SLEB_FACTORED}},
	[0x13] = {CFA_OFFSET, {NOTHING, SLEB_FACTORED}},
	[0x14] = {ELSEWHERE, {ULEB, ULEB}}, /* cfa + offset itself */
	[0x15] = {ELSEWHERE, {ULEB, SLEB}},
	[0x16] = {VALUE_EXPRESSION, {ULEB, BLOCK}},
	[0x2e] = {NOP, {ULEB, NOTHING}}, /* GNU_args_size */
};

static int64_t read_operand(struct reader *r, enum operand operand, const struct frame_info *info)
{
	switch (operand) {
	case U1: return (int64_t)read_fixed(r, 1);
	case U2: return (int64_t)read_fixed(r, 2);
	case U4: return (int64_t)read_fixed(r, 4);
	case SLEB: return read_sleb(r);
	case ULEB:
	case BLOCK: return (int64_t)read_uleb(r);
	case ULEB_FACTORED: return (int64_t)(read_uleb(r) * (uint64_t)info->data_align);
	case SLEB_FACTORED: return (int64_t)((uint64_t)read_sleb(r) * (uint64_t)info->data_align);
	case ADDRESS: return (int64_t)read_pointer(r, info->pointer_encoding, 0);
	case NOTHING: break;
	}
	return 0;
}

static struct place *place_of(struct row *row, uint64_t reg)
{
	return reg == REG_FP ? &row->fp : reg == REG_RA ? &row->ra : reg == row->asked_reg ? &row->asked : NULL;
}

static enum place_base base_of(uint64_t reg)
{
	return reg == REG_SP ? PLACE_SP : reg == REG_FP ? PLACE_FP : reg < REG_RA ? PLACE_REGISTER : PLACE_OTHER;
}

/* The instructions that speak of one register: a is its number, b the second operand. */
static void apply_to_register(struct reader *r, enum effect effect, struct row *row, struct row *initial,
	const struct frame_info *info, uint64_t a, int64_t b)
{
	struct place ignored, *place = place_of(row, a);
	if (!place)
		place = &ignored;
	switch (effect) {
	case SAVED_AT: *place = (struct place){PLACE_CFA, b, 0}; break;
	case UNDEFINED: place->base = PLACE_UNDEFINED; break;
	case KEPT: place->base = PLACE_KEPT; break;
	case ELSEWHERE: place->base = PLACE_OTHER; break;
	case SAVED_BY_EXPRESSION: *place = read_expression(r, (uint64_t)b, info); break;
	case VALUE_EXPRESSION:
		place->base = PLACE_OTHER;
		skip(r, (uint64_t)b);
		break;
	case RESTORE:
		if (place != &ignored)
			*place = *place_of(initial, a);
		break;
	default: r->bad = true;
	}
}

static void apply_to_cfa(
	struct reader *r, enum effect effect, struct row *row, const struct frame_info *info, uint64_t a, int64_t b)
{
	switch (effect) {
	case CFA: row->cfa = (struct place){base_of(a), b, a}; break;
	case CFA_REGISTER: row->cfa = (struct place){base_of(a), row->cfa.offset, a}; break;
	case CFA_OFFSET: row->cfa.offset = b; break;
	case CFA_EXPRESSION: row->cfa = read_expression(r, (uint64_t)b, info); break;
	default: r->bad = true;
	}
}

/* Runs the instructions up to `end`, or to the first that speaks of code after pc. */
static void run_instructions(
	struct reader *r, uintptr_t end, struct row *row, const struct frame_info *info, uintptr_t location)
{
	enum { DEPTH = 16 };
	struct row initial = *row;
	struct row remembered[DEPTH];
	unsigned depth = 0;
	while (r->at < end && location <= info->pc && !r->bad) {
		unsigned op = (unsigned)read_fixed(r, 1);
		/* the three commonest carry an operand in their low six bits: 01 advance, 10 saved at, 11 restore */
		static const struct instruction packed[4] = {
			{0}, {ADVANCE, {0}}, {SAVED_AT, {NOTHING, ULEB_FACTORED}}, {RESTORE, {0}}};
		const struct instruction *instruction = op >> 6 ? &packed[op >> 6] : &instructions[op];
		int64_t a = read_operand(r, instruction->operands[0], info),
			b = read_operand(r, instruction->operands[1], info);
		if (op >> 6)
			a = op & 63;
		switch (instruction->effect) {
		case UNKNOWN: r->bad = true; break;
		case NOP: break;
		case SET_LOCATION: location = (uintptr_t)a; break;
		case ADVANCE: location += (uint64_t)a * info->code_align; break;
		case REMEMBER:
			if (depth < DEPTH)
				remembered[depth] = *row;
			r->bad |= depth++ >= DEPTH;
			break;
		case RECALL:
			r->bad |= !depth;
			if (depth)
				*row = remembered[--depth];
			break;
		case CFA:
		case CFA_REGISTER:
		case CFA_OFFSET:
		case CFA_EXPRESSION: apply_to_cfa(r, instruction->effect, row, info, (uint64_t)a, b); break;
		default: apply_to_register(r, instruction->effect, row, &initial, info, (uint64_t)a, b);
		}
	}
}

/* Moves into the length-prefixed entry at `at`: its contents are [r->at, *end). */
static bool open_entry(struct reader *r, uintptr_t at, uintptr_t *end)
{
	uint64_t bytes;
	r->at = at;
	bytes = read_fixed(r, 4);
	*end = r->at + bytes;
	return !r->bad && bytes && bytes != UINT32_MAX && bytes <= r->span.end - r->at;
}

/* The CIE at `at`: fills info, leaves r at its initial instructions. */
static bool read_cie(struct reader *r, uintptr_t at, uintptr_t *end, struct frame_info *info, bool *has_augmentation)
{
	unsigned version, letter;
	uintptr_t letters, data_end;
	if (!open_entry(r, at, end) || read_fixed(r, 4) != 0)
		return false;
	version = (unsigned)read_fixed(r, 1);
	letters = r->at;
	while (read_fixed(r, 1) && !r->bad)
		continue;
	info->code_align = read_uleb(r);
	info->data_align = read_sleb(r);
	if ((version == 1 ? read_fixed(r, 1) : read_uleb(r)) != REG_RA || r->bad)
		return false;
	*has_augmentation = *(const char *)letters == 'z';
	if (!*has_augmentation)
		return !*(const char *)letters; /* "eh" and others before 'z' are of gcc 2 */
	data_end = read_uleb(r);
	data_end += r->at;
	while ((letter = *(const unsigned char *)++letters) && !r->bad) {
		switch (letter) {
		case 'R': info->pointer_encoding = (unsigned)read_fixed(r, 1); break;
		case 'L': skip(r, 1); break;
		case 'P': read_pointer(r, (unsigned)read_fixed(r, 1) & 0x7f, 0); break;
		case 'S': info->is_signal = true; break;
		default: return false;
		}
	}
	r->at = data_end;
	return !r->bad && data_end <= *end;
}

/* The row of the table that holds for info->pc; false: this entry is about other code. What cannot be read is a row
 * of the unknown, not a guess. */
static bool read_row(const struct cuf_span *span, uintptr_t fde, struct frame_info *info, struct row *row)
{
	struct reader r = {.span = *span}, cie = {.span = *span};
	uintptr_t end, cie_end, field, start, bytes;
	bool has_augmentation;
	if (!open_entry(&r, fde, &end))
		return true;
	field = r.at;
	if (!read_cie(&cie, field - read_fixed(&r, 4), &cie_end, info, &has_augmentation))
		return true;
	start = read_pointer(&r, info->pointer_encoding, 0);
	bytes = read_pointer(&r, info->pointer_encoding & 15, 0);
	if (!r.bad && info->pc - start >= bytes)
		return false;
	if (has_augmentation)
		skip(&r, read_uleb(&r));
	run_instructions(&cie, cie_end, row, info, 0);
	run_instructions(&r, end, row, info, start);
	if (cie.bad || r.bad)
		row->cfa.base = row->ra.base = PLACE_OTHER;
	return true;
}

/* The description of the function around pc, by the sorted table of .eh_frame_hdr. 0: none. */
static uintptr_t find_fde(const struct cuf_span *span, uintptr_t header, uintptr_t pc)
{
	struct reader r = {.span = *span, .at = header};
	unsigned version = (unsigned)read_fixed(&r, 1), frame_encoding = (unsigned)read_fixed(&r, 1);
	unsigned count_encoding = (unsigned)read_fixed(&r, 1), table_encoding = (unsigned)read_fixed(&r, 1);
	uint64_t low = 0, high;
	uintptr_t table;
	read_pointer(&r, frame_encoding, header);
	high = count_encoding == POINTER_OMIT ? 0 : read_pointer(&r, count_encoding, header);
	table = r.at;
	if (r.bad || version != 1 || table_encoding != TABLE_SORTED || !high || high > (span->end - table) / 8)
		return 0;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;
		r.at = table + middle * 8;
		if (header + (uintptr_t)(intptr_t)(int32_t)read_fixed(&r, 4) <= pc)
			low = middle;
		else
			high = middle;
	}
	r.at = table + low * 8;
	if (header + (uintptr_t)(intptr_t)(int32_t)read_fixed(&r, 4) > pc)
		return 0;
	return header + (uintptr_t)(intptr_t)(int32_t)read_fixed(&r, 4);
}

static bool saved_below_cfa(const struct place *place)
{
	return place->base == PLACE_CFA && place->offset <= -16 && place->offset >= INT16_MIN && place->offset % 8 == 0;
}

/* Fits a row into a rule, if it has one of the walker's shapes. */
static void shape_rule(struct cuf_rule *rule, const struct row *row)
{
	bool fp_kept = row->fp.base == PLACE_KEPT || row->fp.base == PLACE_UNDEFINED;
	bool fp_slot_fits = row->fp.offset >= INT16_MIN && row->fp.offset <= INT16_MAX;
	rule->kind = CUF_RULE_UNSUPPORTED;
	rule->cfa_offset = (int32_t)row->cfa.offset;
	rule->fp_offset = fp_kept ? 0 : (int16_t)row->fp.offset;
	rule->extra = (uint8_t)row->cfa.extra;
	if (row->ra.base == PLACE_UNDEFINED) {
		rule->kind = CUF_RULE_END;
	} else if (row->cfa.offset < INT32_MIN || row->cfa.offset > INT32_MAX) {
		return;
	} else if (row->cfa.base == PLACE_SP_SLOT) {
		if (row->ra.base == PLACE_SP && row->ra.offset == row->cfa.offset + 8 && row->fp.base == PLACE_SP &&
			fp_slot_fits && !row->cfa.extra)
			rule->kind = CUF_RULE_SIGNAL;
		else if (row->ra.base == PLACE_CFA && row->ra.offset == -8 && (fp_kept || saved_below_cfa(&row->fp)) &&
			 row->cfa.extra <= UINT8_MAX)
			rule->kind = CUF_RULE_SP_SLOT;
	} else if (row->ra.base != PLACE_CFA || row->ra.offset != -8) {
		return;
	} else if (row->cfa.base == PLACE_FP_SLOT) {
		if (row->fp.base == PLACE_FP && fp_slot_fits)
			rule->kind = CUF_RULE_FP_SLOT;
	} else if (fp_kept || saved_below_cfa(&row->fp)) {
		rule->kind = row->cfa.base == PLACE_SP && row->cfa.offset >= 8 ? CUF_RULE_SP /* upwards: walkers rely on it */
			     : row->cfa.base == PLACE_FP       ? CUF_RULE_FP
			     : row->cfa.base == PLACE_REGISTER ? CUF_RULE_REGISTER
							       : CUF_RULE_UNSUPPORTED;
	}
}

/* The row for pc in what the object's tables say. false: they say nothing of it. */
static bool find_row(const struct cuf_object *object, uintptr_t pc, struct row *row)
{
	struct frame_info info = {.pc = pc};
	struct cuf_span span;
	uintptr_t fde;
	return object->eh_frame_hdr && cuf_object_span(object, object->eh_frame_hdr, &span) &&
	       (fde = find_fde(&span, object->eh_frame_hdr, pc)) && read_row(&span, fde, &info, row);
}

struct cuf_rule cuf_rule_compile(uintptr_t ip)
{
	struct cuf_rule rule = {.ip = ip, .kind = CUF_RULE_FOREIGN};
	struct row row = {.cfa.base = PLACE_OTHER, .fp.base = PLACE_KEPT, .ra.base = PLACE_OTHER, .asked_reg = REG_RA};
	struct cuf_object object;
	if (!cuf_object_find(ip - 1, &object))
		return rule;
	rule.kind = CUF_RULE_CHAIN;
	if (find_row(&object, ip - 1, &row))
		shape_rule(&rule, &row);
	if (cuf_modules_is_self(ip - 1))
		rule.kind |= CUF_RULE_OWN;
	return rule;
}

bool cuf_register_place(uintptr_t ip, unsigned reg, int64_t *cfa_offset)
{
	struct row row = {.asked.base = PLACE_KEPT, .asked_reg = reg};
	struct cuf_object object;
	if (!cuf_object_find(ip - 1, &object) || !find_row(&object, ip - 1, &row))
		return false;
	*cfa_offset = row.asked.base == PLACE_CFA ? row.asked.offset : 0;
	return row.asked.base == PLACE_CFA || row.asked.base == PLACE_KEPT;
}
#endif
