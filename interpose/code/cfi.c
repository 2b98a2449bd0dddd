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
#include "interpose/platform/laws.h"

#if !defined __x86_64__
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

static bool is_saved_below_cfa(const struct place *place)
{
	return place->base == PLACE_CFA && place->offset <= -16 && place->offset >= INT16_MIN &&
	       place->offset % 8 == 0;
}

static bool fits_fp_offset(const struct place *place)
{
	return place->offset >= INT16_MIN && place->offset <= INT16_MAX;
}

/*
 * The CFA is a word of the stack, found from sp: glibc's signal return, or assembly that saves
 * the old sp.
 */
static enum cuf_rule_kind shape_sp_slot(const struct row *row, bool fp_follows)
{
	if (row->ra.base == PLACE_SP && row->ra.offset == row->cfa.offset + 8 &&
	    row->fp.base == PLACE_SP && fits_fp_offset(&row->fp) && !row->cfa.extra)
		return CUF_RULE_SIGNAL;
	if (row->ra.base == PLACE_CFA && row->ra.offset == -8 && fp_follows &&
	    row->cfa.extra <= UINT8_MAX)
		return CUF_RULE_SP_SLOT;
	return CUF_RULE_UNSUPPORTED;
}

/* The walker's shape of a row. fp_follows: fp is kept, or saved where a rule can express it. */
static enum cuf_rule_kind shape_of(const struct row *row, bool fp_follows)
{
	if (row->ra.base == PLACE_UNDEFINED)
		return CUF_RULE_END;
	if (row->cfa.offset < INT32_MIN || row->cfa.offset > INT32_MAX)
		return CUF_RULE_UNSUPPORTED;
	if (row->cfa.base == PLACE_SP_SLOT)
		return shape_sp_slot(row, fp_follows);
	if (row->ra.base != PLACE_CFA || row->ra.offset != -8)
		return CUF_RULE_UNSUPPORTED;
	if (row->cfa.base == PLACE_FP_SLOT && row->fp.base == PLACE_FP && fits_fp_offset(&row->fp))
		return CUF_RULE_FP_SLOT;
	if (!fp_follows)
		return CUF_RULE_UNSUPPORTED;
	switch (row->cfa.base) {
	case PLACE_SP: /* upwards only: walkers rely on it */
		return row->cfa.offset >= 8 ? CUF_RULE_SP : CUF_RULE_UNSUPPORTED;
	case PLACE_FP: return CUF_RULE_FP;
	case PLACE_REGISTER: return CUF_RULE_REGISTER;
	default: return CUF_RULE_UNSUPPORTED;
	}
}

static void shape_rule(struct cuf_rule *rule, const struct row *row)
{
	bool fp_kept = row->fp.base == PLACE_KEPT || row->fp.base == PLACE_UNDEFINED;

	rule->cfa_offset = (int32_t)row->cfa.offset;
	rule->fp_offset = fp_kept ? 0 : (int16_t)row->fp.offset;
	rule->extra = (uint8_t)row->cfa.extra;
	rule->kind = shape_of(row, fp_kept || is_saved_below_cfa(&row->fp));
}

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

struct cuf_rule cuf_rule_compile(uintptr_t ip)
{
	struct cuf_rule rule = { .ip = ip, .kind = CUF_RULE_FOREIGN };
	struct row row = {
		.cfa.base = PLACE_OTHER,
		.fp.base = PLACE_KEPT,
		.ra.base = PLACE_OTHER,
		.asked_reg = REG_RA,
	};
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
	struct row row = { .asked.base = PLACE_KEPT, .asked_reg = reg };
	struct cuf_object object;

	if (!cuf_object_find(ip - 1, &object) || !find_row(&object, ip - 1, &row))
		return false;
	*cfa_offset = row.asked.base == PLACE_CFA ? row.asked.offset : 0;
	return row.asked.base == PLACE_CFA || row.asked.base == PLACE_KEPT;
}
#endif
