/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Host memory": malloc, the allocator's statistics, what is resident, and what would
 * release memory.
 */
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/facts/focus.h"
#include "analysis/view/text/holders.h"
#include "analysis/view/text/screen.h"
#include "analysis/view/text/sections.h"

/* Below this, a process that used the GPU has one line. */
#define HOST_MATTERS_BYTES (256ull << 20)

/* What the program holds of malloc. Sampled figures have an interval, counted ones do not. */
static void print_malloc(const struct text *text, const struct fact_process *process)
{
	const struct fact_host *host = &process->host;
	char interval[128] = "";
	if (process->host_mode == CUF_HOST_OFF) {
		text_item(text, STYLE_PLAIN, "malloc", "not recorded (host=off)");
		return;
	}
	if (host->malloc_live_bytes == CUF_UNKNOWN)
		return;
	if (host->malloc_basis == BASIS_ESTIMATED)
		snprintf(interval, sizeof interval, " (95%% interval %s to %s)",
			 units_bytes(host->malloc_low_bytes).s,
			 units_bytes(host->malloc_high_bytes).s);
	text_item(text, STYLE_PLAIN, "malloc", "%s allocated%s",
		  text_bytes(host->malloc_live_bytes, host->malloc_basis).s, interval);
	if (host->alloc_count != CUF_UNKNOWN)
		text_item(text, STYLE_PLAIN, "",
			  "%s allocations of %s over the whole run, %s frees",
			  units_count(host->alloc_count).s, units_bytes(host->alloc_bytes).s,
			  units_count(host->free_count).s);
	else if (host->alloc_bytes != CUF_UNKNOWN)
		text_item(text, STYLE_PLAIN, "", "about %s over the whole run",
			  units_bytes_rough(host->alloc_bytes).s + 1);
}

/* The allocator's statistics; without them, only what it got from the kernel is known. */
static void print_statistics(const struct text *text, const struct fact_allocator *allocator)
{
	if (allocator->live_bytes == CUF_UNKNOWN) {
		if (allocator->system_bytes != CUF_UNKNOWN)
			text_item(text, STYLE_PLAIN, "allocator", "%s %s: %s from the kernel",
				  allocator->name, allocator->version,
				  units_bytes(allocator->system_bytes).s);
		return;
	}
	text_item(text, STYLE_PLAIN, "allocator",
		  "%s %s: %s from the kernel, %s allocated, %s free between blocks, %s free "
		  "in whole pages%s",
		  allocator->name, allocator->version, units_bytes(allocator->system_bytes).s,
		  units_bytes(allocator->live_bytes).s, units_bytes(allocator->fragmented_bytes).s,
		  units_bytes(allocator->cached_bytes).s,
		  text_if(allocator->split_basis == BASIS_ESTIMATED,
			  " (the split is an estimate)"));
	if (allocator->largest_free.bytes != CUF_UNKNOWN)
		text_item(text, STYLE_PLAIN, "", "largest free range %s (%s)",
			  units_bytes(allocator->largest_free.bytes).s,
			  allocator->largest_free.words);
}

/* The words of one advice. Empty: this version has none for it. */
static void advice_words(const struct fact_host_advice *advice, char *out, size_t bytes)
{
	switch (advice->fix) {
	case FIX_TRIM:
		snprintf(out, bytes, "malloc_trim(0) releases about %s",
			 units_bytes(advice->bytes).s);
		break;
	case FIX_ARENAS:
		snprintf(out, bytes,
			 "MALLOC_ARENA_MAX=2: each of many arenas keeps what was freed in it");
		break;
	case FIX_SEPARATE:
		snprintf(out, bytes,
			 "allocate the long-lived blocks of the call sites below first, or from a "
			 "pool: that releases up to %s",
			 units_bytes(advice->bytes).s);
		break;
	case FIX_JEMALLOC:
		snprintf(out, bytes,
			 "try an allocator that separates sizes: "
			 "cuflight run --host-allocator=jemalloc");
		break;
	case FIX_DECAY:
		snprintf(out, bytes,
			 "MALLOC_CONF=dirty_decay_ms:1000,muzzy_decay_ms:0 releases about %s",
			 units_bytes(advice->bytes).s);
		break;
	default:
		*out = 0;
	}
}

/*
 * Free memory that the allocator keeps looks like a leak from the outside. The verdict states
 * which of the two forms it has and what would release it.
 */
static void print_verdict(const struct text *text, const struct fact_host *host)
{
	const struct fact_allocator *allocator = host->allocators;
	char words[512], where[TEXT_LINE_BYTES];

	if (host->verdict == HOST_FRAGMENTED)
		text_item(text, STYLE_WARN, "fragmented",
			  "%s is free between allocated blocks. It is no leak, but no whole page "
			  "of it can be released",
			  units_bytes(allocator->fragmented_bytes).s);
	else if (host->verdict == HOST_CACHED)
		text_item(text, STYLE_WARN, "kept",
			  "%s is free in whole pages that %s keeps. It is no leak",
			  units_bytes(allocator->cached_bytes).s, allocator->name);
	else
		return;
	for (size_t i = 0; i < host->advice_count; i++) {
		advice_words(&host->advice[i], words, sizeof words);
		text_item(text, STYLE_PLAIN, text_label("advice", i), "%s", words);
	}
	for (size_t i = 0; i < host->pin_count; i++) {
		const struct fact_host_pin *pin = &host->pins[i];
		text_place(text, &pin->stack, text->style->columns - TEXT_LABEL, where,
			   sizeof where);
		text_item(text, STYLE_PLAIN, text_label("kept alive by", i),
			  "%s by %s block%s of %s: %s", text_bytes(pin->open_bytes, pin->basis).s,
			  units_count(pin->count).s, text_s(pin->count),
			  text_bytes(pin->bytes, pin->basis).s, where);
	}
}

/*
 * A second allocator in the process is not hooked. What it holds is known only from its
 * statistics.
 */
static void print_other_allocators(const struct text *text, const struct fact_host *host)
{
	for (size_t i = 0; i < host->allocator_count; i++) {
		const struct fact_allocator *allocator = &host->allocators[i];
		const char *what = "allocated";
		uint64_t bytes = allocator->live_bytes;
		if (bytes == CUF_UNKNOWN) {
			what = "from the kernel";
			bytes = allocator->system_bytes;
		}
		if (allocator->role != ALLOCATOR_PROCESS && bytes != CUF_UNKNOWN)
			text_item(text, STYLE_WARN, "also", "%s %s in %s: %s %s, not recorded",
				  allocator->name, allocator->version, allocator->object,
				  units_bytes(bytes).s, what);
	}
}

static void print_python(const struct text *text, const struct fact_host *host)
{
	char arenas[64] = "";

	if (host->python_live_bytes == CUF_UNKNOWN)
		return;
	if (host->python_arena_bytes != CUF_UNKNOWN)
		snprintf(arenas, sizeof arenas, ", in arenas of %s",
			 units_bytes(host->python_arena_bytes).s);
	text_item(text, STYLE_PLAIN, "Python", "%s in objects%s",
		  text_bytes(host->python_live_bytes, host->malloc_basis).s, arenas);
}

static void print_maps(const struct text *text, const struct fact_maps *maps)
{
	if (maps->anonymous_count == CUF_UNKNOWN)
		return;
	text_item(text, STYLE_PLAIN, "maps",
		  "%s in %s anonymous maps, %s in %s maps of files, %s in %s of shared memory; "
		  "%s released by madvise",
		  units_bytes(maps->anonymous_bytes).s, units_count(maps->anonymous_count).s,
		  units_bytes(maps->file_bytes).s, units_count(maps->file_count).s,
		  units_bytes(maps->shared_bytes).s, units_count(maps->shared_count).s,
		  units_bytes(maps->given_back_bytes).s);
}

/*
 * The limit is printed even if there is none: "no limit set" means that the machine is the
 * limit.
 */
static void print_totals(const struct text *text, const struct fact_host *host)
{
	char limit[96] = "no limit set";
	if (host->cgroup_max_bytes != CUF_UNKNOWN)
		snprintf(limit, sizeof limit, "limit of the cgroup %s",
			 units_bytes(host->cgroup_max_bytes).s);
	if (host->rss_bytes != CUF_UNKNOWN)
		text_item(text, STYLE_PLAIN, "resident", "%s, at the peak %s; %s",
			  units_bytes(host->rss_bytes).s, units_bytes(host->rss_peak_bytes).s,
			  limit);
	if (host->pinned_bytes && host->pinned_bytes != CUF_UNKNOWN)
		text_item(text, STYLE_PLAIN, "page-locked", "%s",
			  units_bytes(host->pinned_bytes).s);
}

/*
 * Host memory is worth more than a line when it ran out, is large, or is free without being
 * released.
 */
static bool matters(const struct text *text, const struct fact_process *process)
{
	const struct fact_host *host = &process->host;
	return text->options->verbose || focus_is_host(text->facts) ||
	       host->verdict == HOST_FRAGMENTED || host->verdict == HOST_CACHED ||
	       (host->rss_peak_bytes != CUF_UNKNOWN && host->rss_peak_bytes >= HOST_MATTERS_BYTES);
}

void section_host(const struct text *text)
{
	const struct fact_process *process = &text->facts->processes[text->facts->focus];
	const struct fact_host *host = &process->host;
	struct holders holders;

	text_section(text, "Host memory of pid %u", process->pid);
	print_totals(text, host);
	if (!matters(text, process))
		return;
	print_malloc(text, process);
	if (host->allocator_count && host->allocators[0].role == ALLOCATOR_PROCESS &&
	    host->allocators[0].time_ns != CUF_UNKNOWN)
		print_statistics(text, host->allocators);
	print_verdict(text, host);
	print_other_allocators(text, host);
	print_python(text, host);
	print_maps(text, &host->maps);
	if (focus_is_host(text->facts))
		return; /* the first screen has the table */
	holders_of_host(text, process, &holders);
	holders_print(text, &holders, (unsigned)text_rows(text));
	holders_free(&holders);
}
