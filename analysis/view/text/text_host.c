/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory of the process in focus: malloc, the allocator's own books, what is resident, and what would give it back. */
#include "analysis/view/text/text.h"

#include <string.h>
#include "analysis/view/text/table.h"
#include "analysis/view/units.h"

static const char *const part_words[PART_MAX] = {
	[PART_LIVE] = "handed out by malloc, its rounding included", [PART_FRAGMENTED] = "free, between blocks that are in use",
	[PART_CACHED] = "free, in whole pages that the allocator keeps", [PART_ALLOCATOR] = "the allocator's own bookkeeping",
	[PART_PYTHON] = "Python's arenas (by their size and who maps them)", [PART_MAPS] = "anonymous maps of the program",
	[PART_OTHER] = "other anonymous memory: maps, threads' stacks", [PART_STACK] = "the main thread's stack",
	[PART_FILES] = "pages of mapped files", [PART_FILES_PRIVATE] = "private copies of pages of files",
	[PART_SHARED] = "shared memory", [PART_RECORDER] = "this recording",
};

static void malloc_lines(const struct text *text, const struct fact_process *p)
{
	const struct fact_host *h = &p->host;
	bool estimated = h->malloc_basis == BASIS_ESTIMATED;
	const char *allocator = h->allocator ? h->allocator : "allocator unknown";
	if (p->host_mode != CUF_HOST_OFF)
		text_line(text, STYLE_PLAIN, "malloc", "%s live in %s blocks%s%s%s%s%s", units_bytes(h->malloc_live_bytes).s, units_count(h->malloc_live_count).s,
			  estimated ? " (between " : "", estimated ? units_bytes(h->malloc_low_bytes).s : "", estimated ? " and " : "",
			  estimated ? units_bytes(h->malloc_high_bytes).s : "", estimated ? ", 95 %)" : "");
	else
		text_line(text, STYLE_PLAIN, "malloc", "not recorded (host=off)");
	if (h->alloc_count != CUF_UNKNOWN)
		text_line(text, STYLE_PLAIN, "calls", "%s allocations of %s in all, %s frees; %s", units_count(h->alloc_count).s,
			  units_bytes(h->alloc_bytes).s, units_count(h->free_count).s, allocator);
	else if (p->host_mode != CUF_HOST_OFF)
		text_line(text, STYLE_PLAIN, "calls", "about %s allocated in all; recorded: %s, and %s frees; %s", units_bytes(h->alloc_bytes).s,
			  units_count(h->recorded_alloc_count).s, units_count(h->recorded_free_count).s, allocator);
	else
		text_line(text, STYLE_PLAIN, "calls", "not recorded; %s", allocator);
}

static void books_lines(const struct text *text, const struct fact_allocator *a)
{
	char words[TEXT_LINE_BYTES], largest[160] = "";
	if (a->live_bytes == CUF_UNKNOWN) {
		text_line(text, STYLE_PLAIN, "books", "%s %s took %s, and says no more", a->name, a->version, units_bytes(a->system_bytes).s);
		return;
	}
	if (a->largest_free.bytes != CUF_UNKNOWN)
		snprintf(largest, sizeof largest, "; largest free %s (%s)", units_bytes(a->largest_free.bytes).s, a->largest_free.words);
	snprintf(words, sizeof words, "%s %s took %s: %s handed out, %s free between blocks, %s free in whole pages%s%s", a->name, a->version,
		 units_bytes(a->system_bytes).s, units_bytes(a->live_bytes).s, units_bytes(a->fragmented_bytes).s, units_bytes(a->cached_bytes).s,
		 a->split_basis == BASIS_ESTIMATED ? " (this split is an estimate)" : "", largest);
	text_flow(text, STYLE_PLAIN, "books", 3, words);
}

static void resident_table(const struct text *text, const struct fact_host *h)
{
	static const struct table_column columns[] = { { "resident", TABLE_RIGHT }, { NULL, TABLE_RIGHT }, { "basis", TABLE_LEFT }, { "what", TABLE_FLEX } };
	struct table *table = table_new(text->style, columns, 4);
	for (size_t i = 0; i < h->row_count; i++)
		table_row(table, (const char *[]){ units_bytes(h->rows[i].bytes).s, units_percent(h->rows[i].bytes, h->rss_bytes).s,
			basis_names[h->rows[i].basis], part_words[h->rows[i].part] });
	table_print(table, text->out, 2);
	table_free(table);
}

static void advice_words(const struct fact_host_advice *advice, char *out, size_t bytes)
{
	switch (advice->fix) {
	case FIX_TRIM: snprintf(out, bytes, "malloc_trim(0) gives back about %s", units_bytes(advice->bytes).s); break;
	case FIX_ARENAS: snprintf(out, bytes, "MALLOC_ARENA_MAX=2: many arenas each keep what they freed"); break;
	case FIX_SEPARATE:
		snprintf(out, bytes, "keep the long-lived blocks of the sites below apart (a pool of their own, or allocated first): up to %s",
			 units_bytes(advice->bytes).s);
		break;
	case FIX_JEMALLOC: snprintf(out, bytes, "another allocator may keep sizes apart, try: cuflight run --host-allocator=jemalloc"); break;
	case FIX_DECAY: snprintf(out, bytes, "MALLOC_CONF=dirty_decay_ms:1000,muzzy_decay_ms:0 gives back about %s", units_bytes(advice->bytes).s); break;
	default: *out = 0;
	}
}

static void verdict_lines(const struct text *text, const struct fact_host *h)
{
	const struct fact_allocator *a = h->allocators;
	char words[512], where[TEXT_LINE_BYTES];
	if (h->verdict == HOST_FRAGMENTED)
		snprintf(words, sizeof words, "fragmentation: %s of what %s holds is free between blocks in use; it is no leak, and no whole page of it can be given back",
			 units_bytes(a->fragmented_bytes).s, a->name);
	else if (h->verdict == HOST_CACHED)
		snprintf(words, sizeof words, "cached: %s is free in whole pages that %s keeps; it is no leak", units_bytes(a->cached_bytes).s, a->name);
	else
		return;
	text_flow(text, STYLE_WARN, "verdict", 3, words);
	for (size_t i = 0; i < h->advice_count; i++) {
		advice_words(&h->advice[i], words, sizeof words);
		text_flow(text, STYLE_PLAIN, i ? "" : "advice", 2, words);
	}
	for (size_t i = 0; i < h->pin_count; i++) {
		const struct fact_host_pin *pin = &h->pins[i];
		frames_line(text->frames, &pin->stack, where, sizeof where);
		text_line(text, STYLE_PLAIN, i ? "" : "held by", "%s by %s blocks of %s%s: %s", units_bytes(pin->open_bytes).s, units_count(pin->count).s,
			  units_bytes(pin->bytes).s, pin->basis == BASIS_ESTIMATED ? " (estimated)" : "", where);
	}
}

static void other_lines(const struct text *text, const struct fact_host *h)
{
	for (size_t i = 0; i < h->allocator_count; i++) {
		const struct fact_allocator *a = &h->allocators[i];
		if (a->role != ALLOCATOR_PROCESS)
			text_line(text, STYLE_WARN, "besides", "%s %s in %s: %s %s, unseen", a->name, a->version, a->object,
				  units_bytes(a->live_bytes == CUF_UNKNOWN ? a->system_bytes : a->live_bytes).s, a->live_bytes == CUF_UNKNOWN ? "taken" : "handed out");
	}
	if (h->maps.anonymous_count != CUF_UNKNOWN)
		text_line(text, STYLE_PLAIN, "maps", "%s in %s anonymous, %s in %s of files; %s given back by madvise", units_bytes(h->maps.anonymous_bytes).s,
			  units_count(h->maps.anonymous_count).s, units_bytes(h->maps.file_bytes).s, units_count(h->maps.file_count).s,
			  units_bytes(h->maps.given_back_bytes).s);
}

void text_host(const struct text *text)
{
	const struct fact_process *p = &text->facts->processes[text->facts->focus];
	const struct fact_host *h = &p->host;
	text_section(text, "HOST (pid %u)", p->pid);
	text_line(text, STYLE_PLAIN, "rss", "%s, at most %s; the machine has %s", units_bytes(h->rss_bytes).s, units_bytes(h->rss_peak_bytes).s,
		  units_bytes(h->memory_total_bytes).s);
	malloc_lines(text, p);
	if (h->allocator_count && h->allocators[0].role == ALLOCATOR_PROCESS && h->allocators[0].time_ns != CUF_UNKNOWN)
		books_lines(text, h->allocators);
	verdict_lines(text, h);
	other_lines(text, h);
	text_line(text, STYLE_PLAIN, "pinned", "%s", units_bytes(h->pinned_bytes).s);
	if (h->cgroup_bytes != CUF_UNKNOWN || h->cgroup_max_bytes != CUF_UNKNOWN)
		text_line(text, STYLE_PLAIN, "cgroup", "%s in use, limit %s", units_bytes(h->cgroup_bytes).s,
			  h->cgroup_max_bytes == CUF_UNKNOWN ? "none" : units_bytes(h->cgroup_max_bytes).s);
	resident_table(text, h);
}
