/* SPDX-License-Identifier: Apache-2.0 */
/* Each device: its owners when the first screen did not show them, its holes, pages held open, pools and reservations. */
#include "analysis/view/text/text.h"

#include <string.h>
#include "analysis/view/text/focus.h"
#include "analysis/view/text/table.h"
#include "analysis/view/units.h"

static void pages(const struct text *text, const struct fact_fragmentation *f)
{
	static const struct table_column columns[] = { { "open", TABLE_RIGHT }, { "pages", TABLE_RIGHT }, { "blocks", TABLE_RIGHT }, { "bytes", TABLE_RIGHT }, { "held open by", TABLE_FLEX } };
	struct table *table;
	char where[TEXT_LINE_BYTES];
	if (!f->pages)
		return;
	text_line(text, STYLE_PLAIN, "pages", "%s of 2 MiB hold small blocks; %s partly empty, %s used by less than a tenth", units_count(f->pages).s,
		  units_count(f->pages_partial).s, units_count(f->pages_sparse).s);
	text_line(text, STYLE_PLAIN, "", "%s free in them, largest hole %s", units_bytes(f->page_free_bytes).s, units_bytes(f->page_largest_hole_bytes).s);
	if (!f->pin_count)
		return;
	table = table_new(text->style, columns, 5);
	for (size_t i = 0; i < f->pin_count && i < TEXT_ROWS_MAX; i++) {
		const struct fact_pin *pin = &f->pins[i];
		frames_line(text->frames, &pin->stack, where, sizeof where);
		table_row(table, (const char *[]){ units_bytes(pin->open_bytes).s, units_count(pin->pages).s, units_count(pin->count).s, units_bytes(pin->bytes).s, where });
	}
	table_print(table, text->out, TEXT_LABEL);
	table_free(table);
}

static void holes(const struct text *text, const struct fact_fragmentation *f)
{
	char words[TEXT_LINE_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < FACT_HOLE_CLASSES && used < sizeof words; i++) {
		int length;
		if (!f->hole_count[i])
			continue;
		length = snprintf(words + used, sizeof words - used, "%s%s below %s", used ? ", " : "", units_count(f->hole_count[i]).s, units_bytes(1024ull << i).s);
		used += length > 0 ? (size_t)length : 0;
	}
	if (used)
		text_flow(text, STYLE_PLAIN, "holes", 3, words);
}

static void pools(const struct text *text, const struct fact_fragmentation *f)
{
	for (size_t i = 0; i < f->pool_count && i < TEXT_ROWS_MAX; i++) {
		const struct fact_pool *p = &f->pools[i];
		uint64_t unused = p->reserved_bytes == CUF_UNKNOWN || p->used_bytes == CUF_UNKNOWN || p->reserved_bytes < p->used_bytes ? CUF_UNKNOWN : p->reserved_bytes - p->used_bytes;
		text_line(text, STYLE_PLAIN, p->pool ? "pool" : "graphs", "reserved %s, used %s, unused %s, largest gap %s", units_bytes(p->reserved_bytes).s,
			  units_bytes(p->used_bytes).s, units_bytes(unused).s, units_bytes(p->largest_gap_bytes).s);
	}
}

static void reservations(const struct text *text, const struct fact_fragmentation *f)
{
	char where[TEXT_LINE_BYTES];
	if (f->vmm_held_bytes && f->vmm_held_bytes != CUF_UNKNOWN)
		text_line(text, STYLE_PLAIN, "vmm", "held %s, mapped %s, held and nowhere mapped %s", units_bytes(f->vmm_held_bytes).s,
			  units_bytes(f->vmm_mapped_bytes).s, units_bytes(f->vmm_unmapped_bytes).s);
	for (size_t i = 0; i < f->vmm_count && i < TEXT_ROWS_MAX; i++) {
		const struct fact_vmm *vmm = &f->vmm[i];
		frames_line(text->frames, &vmm->stack, where, sizeof where);
		text_line(text, STYLE_PLAIN, i ? "" : "reserved", "%s of addresses, %s mapped, largest unmapped run %s: %s", units_bytes(vmm->bytes).s,
			  units_bytes(vmm->mapped_bytes).s, units_bytes(vmm->largest_unmapped_bytes).s, where);
	}
}

static bool has_any(const struct fact_fragmentation *f)
{
	return f->pages || f->framework_count || f->pool_count || f->vmm_count || (f->vmm_held_bytes && f->vmm_held_bytes != CUF_UNKNOWN);
}

void text_fragmentation(const struct text *text)
{
	const struct facts *facts = text->facts;
	const struct fact_device *shown = focus_device(facts);
	for (size_t i = 0; i < facts->device_count; i++) {
		const struct fact_device *device = &facts->devices[i];
		const struct fact_fragmentation *f = &device->fragmentation;
		char words[TEXT_LINE_BYTES];
		if (device == shown && !has_any(f))
			continue;
		text_section(text, "GPU %u: %sPAGES, POOLS, RESERVATIONS", device->ordinal, f->framework_count ? "SEGMENTS, " : "");
		if (device != shown)
			text_owners(text, device, OWNER_MAX);
		text_layers(device->largest_free, words, sizeof words);
		text_flow(text, STYLE_PLAIN, "largest", 3, words);
		text_segments(text, f);
		pages(text, f);
		holes(text, f);
		pools(text, f);
		reservations(text, f);
	}
}
