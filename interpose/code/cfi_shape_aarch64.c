/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shapes of unwind rows on aarch64. Functions that call others save fp and the return address
 * together, as a frame record. Some save only the return address.
 */
#include "interpose/code/cfi_parts.h"

#include "interpose/platform/laws.h"

#if defined __aarch64__

/* The return address has not been saved yet, or has been restored already. */
static enum cuf_rule_kind shape_in_register(const struct row *row)
{
	if (row->cfa.base == PLACE_SP && row->cfa.offset >= 0 && cuf_cfi_keeps_fp(row))
		return CUF_RULE_LINK;
	return CUF_RULE_UNSUPPORTED;
}

/*
 * Where the return address is saved, in words below the CFA; 0: next to fp. false: a rule cannot
 * say it.
 */
static bool find_return(const struct row *row, unsigned *words)
{
	*words = 0;
	if (row->ra.base != PLACE_CFA || row->ra.offset > -8 || row->ra.offset % 8)
		return false;
	if (cuf_cfi_saves_fp(row) && row->ra.offset == row->fp.offset + 8)
		return true;
	*words = (unsigned)(-row->ra.offset / 8);
	return row->ra.offset >= -8 * UINT8_MAX;
}

/* Walkers rely on it: upwards only, and what is loaded lies between sp and the CFA. */
static enum cuf_rule_kind shape_sp(const struct row *row)
{
	if (row->cfa.offset < 8)
		return CUF_RULE_UNSUPPORTED;
	if (-row->ra.offset > row->cfa.offset ||
	    (cuf_cfi_saves_fp(row) && -row->fp.offset > row->cfa.offset))
		return CUF_RULE_SP_LOW;
	return CUF_RULE_SP;
}

static enum cuf_rule_kind shape_of(const struct row *row, unsigned *extra)
{
	unsigned words;

	if (row->ra.base == PLACE_UNDEFINED)
		return CUF_RULE_END;
	if (row->cfa.offset < INT32_MIN || row->cfa.offset > INT32_MAX)
		return CUF_RULE_UNSUPPORTED;
	if (row->ra.base == PLACE_KEPT)
		return shape_in_register(row);
	if (!find_return(row, &words) || !(cuf_cfi_keeps_fp(row) || cuf_cfi_saves_fp(row)))
		return CUF_RULE_UNSUPPORTED;
	*extra = words;
	switch (row->cfa.base) {
	case PLACE_SP: return shape_sp(row);
	case PLACE_FP: return CUF_RULE_FP;
	case PLACE_REGISTER: /* extra is the register, so the address must be next to fp */
		*extra = (unsigned)row->cfa.extra;
		return words ? CUF_RULE_UNSUPPORTED : CUF_RULE_REGISTER;
	default: return CUF_RULE_UNSUPPORTED;
	}
}

void cuf_cfi_shape(struct cuf_rule *rule, const struct row *row)
{
	unsigned extra = 0;

	rule->cfa_offset = (int32_t)row->cfa.offset;
	rule->fp_offset = 0;
	if (cuf_cfi_saves_fp(row))
		rule->fp_offset = (int16_t)(row->fp.offset / CUF_RULE_FP_UNIT);
	rule->kind = shape_of(row, &extra);
	rule->extra = (uint8_t)extra;
}
#endif
