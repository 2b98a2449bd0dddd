/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From .eh_frame to a rule. Owns the way from an address to its unwind row, and from the row to
 * one of the walker's shapes. Must not touch the stack that is being walked. Must not trust a
 * single byte: tables may be damaged, or be something else altogether.
 */
#include "interpose/code/cfi.h"

#include <stddef.h>
#include "interpose/code/cfi_parts.h"
#include "interpose/code/modules.h"
#include "interpose/platform/readable.h"
#include "interpose/platform/side_stack.h"
#include "interpose/platform/laws.h"

#if !CUF_HAS_RULES
struct cuf_rule cuf_rule_compile(uintptr_t ip)
{
	return (struct cuf_rule){ .ip = ip, .kind = CUF_RULE_UNSUPPORTED };
}

bool cuf_register_place(uintptr_t ip, unsigned reg, int64_t *cfa_offset) { return false; }
#else

/* ---- entries of .eh_frame ---- */

/* Moves into the length-prefixed entry at `at`. Its contents are [reader->at, *end). */
static bool open_entry(struct reader *reader, uintptr_t at, uintptr_t *end)
{
	uint64_t bytes;

	reader->at = at;
	bytes = read_fixed(reader, 4);
	*end = reader->at + bytes;
	return !reader->bad && bytes && bytes != UINT32_MAX &&
	       bytes <= reader->span.end - reader->at;
}

/* The augmentation's letters, behind the 'z': one datum for each. false: a letter is unknown. */
static bool read_augmentation(struct reader *reader, uintptr_t letters, struct frame_info *info)
{
	unsigned letter;

	while ((letter = *(const unsigned char *)++letters) && !reader->bad) {
		switch (letter) {
		case 'R':
			info->pointer_encoding = (unsigned)read_fixed(reader, 1);
			break;
		case 'L':
			skip(reader, 1);
			break;
		case 'P':
			read_pointer(reader, (unsigned)read_fixed(reader, 1) & 0x7f, 0);
			break;
		case 'S':
			info->is_signal = true;
			break;
#if defined __aarch64__
		case 'B': /* return addresses are signed with the other key */
		case 'G': /* the stack is tagged */
			break;
#endif
		default:
			return false;
		}
	}
	return true;
}

/* The CIE at `at`: fills info in and leaves the reader at its initial instructions. */
static bool read_cie(struct reader *reader, uintptr_t at, uintptr_t *end, struct frame_info *info,
		     bool *has_augmentation)
{
	uint64_t version, return_register;
	uintptr_t letters, data_end;

	if (!open_entry(reader, at, end) || read_fixed(reader, 4) != 0)
		return false;
	version = read_fixed(reader, 1);
	letters = reader->at;
	while (read_fixed(reader, 1) && !reader->bad)
		continue;
	info->code_align = read_uleb(reader);
	info->data_align = read_sleb(reader);
	return_register = version == 1 ? read_fixed(reader, 1) : read_uleb(reader);
	if (return_register != REG_RA || reader->bad)
		return false;
	*has_augmentation = *(const char *)letters == 'z';
	if (!*has_augmentation) /* "eh" and others before 'z' are of gcc 2 */
		return !*(const char *)letters;
	data_end = read_uleb(reader);
	data_end += reader->at;
	if (!read_augmentation(reader, letters, info))
		return false;
	reader->at = data_end;
	return !reader->bad && data_end <= *end;
}

/*
 * The table's row for info->pc. false: this entry is about other code. An entry that cannot be
 * read gives a row of PLACE_OTHER, not a guess.
 */
static bool read_row(const struct cuf_span *span, uintptr_t fde, struct frame_info *info,
		     struct row *row)
{
	struct reader reader = { .span = *span }, cie = { .span = *span };
	uintptr_t end, cie_end, field, start, bytes;
	bool has_augmentation;

	if (!open_entry(&reader, fde, &end))
		return true;
	field = reader.at;
	if (!read_cie(&cie, field - read_fixed(&reader, 4), &cie_end, info, &has_augmentation))
		return true;
	start = read_pointer(&reader, info->pointer_encoding, 0);
	bytes = read_pointer(&reader, info->pointer_encoding & 15, 0);
	if (!reader.bad && info->pc - start >= bytes)
		return false;
	if (has_augmentation)
		skip(&reader, read_uleb(&reader));
	cuf_cfi_run(&cie, cie_end, row, info, 0);
	cuf_cfi_run(&reader, end, row, info, start);
	if (cie.bad || reader.bad)
		row->cfa.base = row->ra.base = PLACE_OTHER;
	return true;
}

/* One offset of the sorted table, which counts from the header. */
static uintptr_t read_table_address(struct reader *reader, uintptr_t header)
{
	return header + (uintptr_t)(intptr_t)(int32_t)read_fixed(reader, 4);
}

/*
 * The description of the function around pc, found in the sorted table of .eh_frame_hdr. 0: none.
 */
static uintptr_t find_fde(const struct cuf_span *span, uintptr_t header, uintptr_t pc)
{
	enum { TABLE_SORTED = 0x3b /* datarel, sdata4 */, ENTRY_BYTES = 8 };
	struct reader reader = { .span = *span, .at = header };
	unsigned version = (unsigned)read_fixed(&reader, 1);
	unsigned frame_encoding = (unsigned)read_fixed(&reader, 1);
	unsigned count_encoding = (unsigned)read_fixed(&reader, 1);
	unsigned table_encoding = (unsigned)read_fixed(&reader, 1);
	uint64_t low = 0, high = 0;
	uintptr_t table;

	read_pointer(&reader, frame_encoding, header);
	if (count_encoding != POINTER_OMIT)
		high = read_pointer(&reader, count_encoding, header);
	table = reader.at;
	if (reader.bad || version != 1 || table_encoding != TABLE_SORTED || !high ||
	    high > (span->end - table) / ENTRY_BYTES)
		return 0;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		reader.at = table + middle * ENTRY_BYTES;
		if (read_table_address(&reader, header) <= pc)
			low = middle;
		else
			high = middle;
	}
	reader.at = table + low * ENTRY_BYTES;
	if (read_table_address(&reader, header) > pc)
		return 0;
	return read_table_address(&reader, header);
}

/* ---- rules ---- */

/* The row for pc in the object's tables. false: they do not cover it. */
static bool find_row(const struct cuf_object *object, uintptr_t pc, struct row *row)
{
	struct frame_info info = { .pc = pc };
	struct cuf_span span;
	uintptr_t fde;

	if (!object->eh_frame_hdr || !cuf_object_span(object, object->eh_frame_hdr, &span))
		return false;
	fde = find_fde(&span, object->eh_frame_hdr, pc);
	return fde && read_row(&span, fde, &info, row);
}

#if defined __aarch64__
/*
 * The kernel returns from a handler to two instructions of the vDSO: mov x8, #139 and svc #0. Their
 * unwind information is wrong about the interrupted address. The registers are in the signal's
 * frame at sp: struct sigcontext is at 304, and in it x29 at 240, sp at 256, pc at 264.
 */
static bool is_signal_return(uintptr_t ip)
{
	static const uint32_t code[] = { 0xd2801168, 0xd4000001 };
	uint32_t here[2];

	return ip % 4 == 0 && cuf_readable_copy(here, ip, sizeof here) && here[0] == code[0] &&
	       here[1] == code[1];
}

static const struct cuf_rule signal_rule = {
	.kind = CUF_RULE_SIGNAL, .cfa_offset = 560, .fp_offset = 544 / CUF_RULE_FP_UNIT,
};
enum { RETURN_ADDRESS = PLACE_KEPT }; /* where a call leaves it */
#else
static bool is_signal_return(uintptr_t ip) { return false; }
static const struct cuf_rule signal_rule; /* from the tables */
enum { RETURN_ADDRESS = PLACE_OTHER };
#endif

static struct cuf_rule compile(uintptr_t ip)
{
	struct cuf_rule rule = { .ip = ip, .kind = CUF_RULE_FOREIGN };
	struct row row = {
		.cfa.base = PLACE_OTHER,
		.fp.base = PLACE_KEPT,
		.ra.base = (enum place_base)RETURN_ADDRESS,
		.asked_reg = REG_RA,
	};
	struct cuf_object object;

	if (is_signal_return(ip)) {
		rule = signal_rule;
		rule.ip = ip;
		return rule;
	}
	if (!cuf_object_find(ip - 1, &object))
		return rule;
	rule.kind = CUF_RULE_CHAIN;
	if (find_row(&object, ip - 1, &row))
		cuf_cfi_shape(&rule, &row);
	if (cuf_modules_is_self(ip - 1))
		rule.kind |= CUF_RULE_OWN;
	return rule;
}

static void compile_into(void *argument)
{
	struct cuf_rule *rule = argument;
	*rule = compile(rule->ip);
}

/* The instructions may remember a dozen rows, which a hook's stack has no room for. */
struct cuf_rule cuf_rule_compile(uintptr_t ip)
{
	struct cuf_rule rule = { .ip = ip, .kind = CUF_RULE_UNSUPPORTED };
	cuf_on_side_stack(compile_into, &rule);
	return rule;
}

static bool find_register(uintptr_t ip, unsigned reg, int64_t *cfa_offset)
{
	struct row row = { .asked.base = PLACE_KEPT, .asked_reg = reg };
	struct cuf_object object;

	if (!cuf_object_find(ip - 1, &object) || !find_row(&object, ip - 1, &row))
		return false;
	*cfa_offset = row.asked.base == PLACE_CFA ? row.asked.offset : 0;
	return row.asked.base == PLACE_CFA || row.asked.base == PLACE_KEPT;
}

struct register_question {
	uintptr_t ip;
	unsigned reg;
	int64_t *cfa_offset;
	bool found;
};

static void answer_register(void *argument)
{
	struct register_question *question = argument;
	question->found = find_register(question->ip, question->reg, question->cfa_offset);
}

bool cuf_register_place(uintptr_t ip, unsigned reg, int64_t *cfa_offset)
{
	struct register_question question = { ip, reg, cfa_offset, false };
	cuf_on_side_stack(answer_register, &question);
	return question.found;
}
#endif
