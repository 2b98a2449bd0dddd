/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of unwind rows on x86-64. */
#include "interpose/code/cfi_parts.h"

#include "interpose/platform/laws.h"

#if defined __x86_64__

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

/* Walkers rely on it: upwards only, and what is loaded lies between sp and the CFA. */
static enum cuf_rule_kind shape_sp(const struct row *row)
{
	if (row->cfa.offset < 8)
		return CUF_RULE_UNSUPPORTED;
	if (cuf_cfi_saves_fp(row) && -row->fp.offset > row->cfa.offset)
		return CUF_RULE_SP_LOW;
	return CUF_RULE_SP;
}

/* fp_follows: fp is kept, or saved where a rule can say so. */
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
	case PLACE_SP: return shape_sp(row);
	case PLACE_FP: return CUF_RULE_FP;
	case PLACE_REGISTER: return CUF_RULE_REGISTER;
	default: return CUF_RULE_UNSUPPORTED;
	}
}

void cuf_cfi_shape(struct cuf_rule *rule, const struct row *row)
{
	bool keeps_fp = cuf_cfi_keeps_fp(row);

	rule->cfa_offset = (int32_t)row->cfa.offset;
	rule->fp_offset = keeps_fp ? 0 : (int16_t)row->fp.offset;
	rule->extra = (uint8_t)row->cfa.extra;
	rule->kind = shape_of(row, keeps_fp || cuf_cfi_saves_fp(row));
}
#endif
