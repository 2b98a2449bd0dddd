/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Fragmentation" of each device: free memory inside pages, segments, pools and
 * reservations, and what keeps it there.
 */
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/facts/focus.h"
#include "analysis/view/text/holders.h"
#include "analysis/view/text/sections.h"
#include "analysis/base/terminal.h"

/*
 * Slack below this share of the device is not worth a section, unless the failed request
 * would have fitted into it.
 */
#define SLACK_SHARE 0.05

static void print_pages(const struct text *text, const struct fact_fragmentation *fragmentation)
{
	if (!fragmentation->pages)
		return;
	text_item(text, STYLE_PLAIN, "pages",
		  "%s page%s of 2 MiB hold small blocks; %s partly used, %s used by less "
		  "than a tenth; %s is unused in them, the largest gap is %s",
		  units_count(fragmentation->pages).s, text_s(fragmentation->pages),
		  units_count(fragmentation->pages_partial).s,
		  units_count(fragmentation->pages_sparse).s,
		  units_bytes(fragmentation->page_free_bytes).s,
		  units_bytes(fragmentation->page_largest_hole_bytes).s);
	text_pins(text, fragmentation->pins, fragmentation->pin_count, "pages");
}

/* Free ranges by size. Each class is named by its upper end; empty classes are left out. */
static void print_gaps(const struct text *text, const struct fact_fragmentation *fragmentation)
{
	char words[TEXT_LINE_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < FACT_HOLE_CLASSES && used + 64 < sizeof words; i++)
		if (fragmentation->hole_count[i])
			used += (size_t)snprintf(words + used, sizeof words - used, "%s%s below %s",
						 text_if(used, ", "),
						 units_count(fragmentation->hole_count[i]).s,
						 units_bytes(1024ull << i).s);
	if (used)
		text_item(text, STYLE_PLAIN, "gaps", "%s", words);
}

/*
 * A pool whose figures contradict each other (used beyond reserved) is not printed: the
 * driver was asked too early.
 */
static void print_pools(const struct text *text, const struct fact_fragmentation *fragmentation)
{
	for (size_t i = 0; i < fragmentation->pool_count && i < text_rows(text); i++) {
		const struct fact_pool *pool = &fragmentation->pools[i];
		char gap[96] = "";
		const char *label = "CUDA graphs"; /* pool 0 is that of the graphs */
		if (pool->pool)
			label = "CUDA pool";
		if (pool->reserved_bytes == CUF_UNKNOWN || pool->used_bytes == CUF_UNKNOWN ||
		    pool->reserved_bytes < pool->used_bytes)
			continue;
		if (pool->largest_gap_bytes <= pool->reserved_bytes)
			snprintf(gap, sizeof gap, ", largest gap %s",
				 units_bytes(pool->largest_gap_bytes).s);
		text_item(text, STYLE_PLAIN, label, "%s reserved, %s used, %s unused%s",
			  units_bytes(pool->reserved_bytes).s, units_bytes(pool->used_bytes).s,
			  units_bytes(pool->reserved_bytes - pool->used_bytes).s, gap);
	}
}

static bool has_physical(const struct fact_fragmentation *fragmentation)
{
	return fragmentation->vmm_held_bytes && fragmentation->vmm_held_bytes != CUF_UNKNOWN;
}

/*
 * Addresses without memory cost nothing, but memory that is mapped nowhere is held and of no
 * use.
 */
static void print_reservations(const struct text *text,
			       const struct fact_fragmentation *fragmentation)
{
	char where[TEXT_LINE_BYTES];
	if (has_physical(fragmentation))
		text_item(text, STYLE_PLAIN, "cuMemCreate",
			  "%s created, %s mapped, %s mapped nowhere",
			  units_bytes(fragmentation->vmm_held_bytes).s,
			  units_bytes(fragmentation->vmm_mapped_bytes).s,
			  units_bytes(fragmentation->vmm_unmapped_bytes).s);
	for (size_t i = 0; i < fragmentation->vmm_count && i < text_rows(text); i++) {
		const struct fact_vmm *vmm = &fragmentation->vmm[i];
		text_place(text, &vmm->stack, text->style->columns - TEXT_LABEL, where,
			   sizeof where);
		text_item(text, STYLE_PLAIN, text_label("addresses", i),
			  "%s reserved, %s mapped, largest unmapped run %s: %s",
			  units_bytes(vmm->bytes).s, units_bytes(vmm->mapped_bytes).s,
			  units_bytes(vmm->largest_unmapped_bytes).s, where);
	}
}

/* Free bytes inside what is reserved. */
static uint64_t slack_of(const struct fact_device *device)
{
	uint64_t slack = 0;
	for (size_t i = 0; i < device->owner_count; i++) {
		const struct fact_owner_row *row = &device->owners[i];
		bool is_slack = row->kind == OWNER_PAGE_ROUNDING || row->kind == OWNER_POOL_SLACK ||
				row->kind == OWNER_FRAMEWORK_SLACK;
		if (is_slack && row->bytes != CUF_UNKNOWN)
			slack += row->bytes;
	}
	return slack;
}

/*
 * Most devices have some slack. The section is printed where it could have changed the
 * outcome.
 */
static bool matters(const struct text *text, const struct fact_device *device)
{
	const struct fact_incident *incident = focus_incident(text->facts);
	const struct fact_fragmentation *fragmentation = &device->fragmentation;
	uint64_t slack = slack_of(device);
	if (text->options->verbose)
		return fragmentation->pages || fragmentation->framework_count ||
		       fragmentation->pool_count || fragmentation->vmm_count ||
		       has_physical(fragmentation);
	if (incident && incident->is_request && text_wanted_bytes(incident) <= slack)
		return true;
	return device->total_bytes != CUF_UNKNOWN &&
	       (double)slack > SLACK_SHARE * (double)device->total_bytes;
}

/* A device that the first screen did not show: its holders. */
static void print_holders(const struct text *text, const struct fact_device *device)
{
	struct holders holders;
	holders_of_device(text, device, &holders);
	fputc('\n', text->out);
	holders_print(text, &holders, (unsigned)text_rows(text));
	holders_free(&holders);
}

void section_fragmentation(const struct text *text)
{
	const struct facts *facts = text->facts;
	const struct fact_device *shown = focus_device(facts);
	for (size_t i = 0; i < facts->device_count; i++) {
		const struct fact_device *device = &facts->devices[i];
		if (device != shown)
			print_holders(text, device);
		if (!matters(text, device))
			continue;
		text_section(text, "Fragmentation of GPU %u", device->ordinal);
		section_segments(text, &device->fragmentation);
		print_pages(text, &device->fragmentation);
		print_gaps(text, &device->fragmentation);
		print_pools(text, &device->fragmentation);
		print_reservations(text, &device->fragmentation);
	}
}
