/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of holders from the facts: call sites, and what no call site allocated. */
#include "analysis/view/text/holders.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/focus.h"

/* A site that rests on fewer samples than this is summed up with the others like it. */
enum { SAMPLES_LEAST = 4 };

#define NS_PER_S 1000000000u

void holders_free(struct holders *holders)
{
	free(holders->rows);
	*holders = (struct holders){ 0 };
}

/* The returned row is valid until the next call, which may move the array. */
static struct holder *add(struct holders *holders, enum holder_sort sort, uint64_t bytes)
{
	struct holder *row;
	xalloc_grow(&holders->rows, holders->count, &holders->room, sizeof *holders->rows);
	row = &holders->rows[holders->count++];
	*row = (struct holder){ .sort = sort, .bytes = bytes };
	return row;
}

/* Parts that are empty or unknown have no row. */
static void add_part(struct holders *holders, uint64_t bytes, const char *words)
{
	if (bytes && bytes != CUF_UNKNOWN)
		snprintf(add(holders, HOLDER_PART, bytes)->words, sizeof holders->rows->words, "%s",
			 words);
}

/* Largest first; what is free and what is outside the sum come last whatever their size. */
static int by_bytes(const void *a, const void *b)
{
	const struct holder *left = a, *right = b;
	bool is_last = left->sort >= HOLDER_FREE || right->sort >= HOLDER_FREE;
	if (is_last && left->sort != right->sort)
		return left->sort < right->sort ? -1 : 1;
	if (left->bytes != right->bytes)
		return left->bytes > right->bytes ? -1 : 1;
	return strcmp(left->place.function, right->place.function);
}

/* Of a row that is printed as 0 % nobody asks what it probably is. */
static void drop_guesses(struct holders *holders)
{
	for (size_t i = 0; i < holders->count; i++)
		if (holders->rows[i].role_is_likely &&
		    holders->rows[i].bytes < holders->total_bytes / 200)
			holders->rows[i].role = NULL;
}

static void sort_rows(struct holders *holders)
{
	drop_guesses(holders);
	if (holders->count)
		qsort(holders->rows, holders->count, sizeof *holders->rows, by_bytes);
}

/* A cause may be about memory that no call site holds. */
static bool cause_blames(const struct fact_cause *cause, enum fact_owner kind)
{
	return cause && cause->blames >> kind & 1;
}

/*
 * Only such a cause lets rows be marked as leaks: next to another cause, a leak is not the
 * answer.
 */
static bool is_leak_cause(const struct fact_cause *cause)
{
	return cause && (cause->marks == MARKS_GPU_LEAKS || cause->marks == MARKS_HOST_LEAKS);
}

/* A collected heap that is too large has no call site. */
static bool is_heap_cause(const struct fact_cause *cause)
{
	return cause && cause->marks == MARKS_HEAPS;
}

/* A runtime maps more than it has touched. */
static uint64_t resident_bytes(const struct text *text, const struct fact_site *site)
{
	double touched = text->facts->processes[site->process].host.heap.touched;
	if (!site->is_mapped)
		return site->bytes;
	return (uint64_t)((double)site->bytes * touched);
}

/* The role of the first site that has one is that of the row. */
static void merge(const struct text *text, struct holder *row, const struct fact_site *site)
{
	row->bytes += resident_bytes(text, site);
	row->count += site->count;
	row->leaks |= site->class == CLASS_LEAK;
	row->sampled |= site->basis == BASIS_ESTIMATED;
	if (!row->role) {
		row->role = site->role;
		row->role_is_likely = site->role_basis == BASIS_INFERRED;
	}
	/* growth outweighs rest: a row grows when one of its sites does */
	if ((row->shape == SHAPE_NONE || row->shape == SHAPE_PLATEAU) &&
	    site->shape != SHAPE_NONE)
		row->shape = site->shape;
}

/* Adds a site to the row that prints alike, or makes one. */
static void add_site(const struct text *text, struct holders *holders, const struct fact_site *site)
{
	const struct fact_cause *cause = text->facts->cause;
	struct place place, blamed = { .function = "" };
	const struct fact_process *process;
	bool host = site->device == FACT_NONE;
	struct holder *row;
	uint64_t elapsed_ns;
	place_of(text->places, &site->stack, &place);
	if (cause && cause->site.depth)
		place_of(text->places, &cause->site, &blamed);
	for (size_t i = 0; i < holders->count; i++)
		if (holders->rows[i].sort == HOLDER_SITE &&
		    place_shares_row(&holders->rows[i].place, holders->rows[i].role, &place,
				     site->role, host)) {
			merge(text, &holders->rows[i], site);
			return;
		}
	row = add(holders, HOLDER_SITE, 0);
	row->place = place;
	process = &text->facts->processes[site->process];
	elapsed_ns = text_elapsed(process->start_ns, process->end_ns);
	row->long_run = elapsed_ns != CUF_UNKNOWN && elapsed_ns >= NS_PER_S;
	merge(text, row, site);
	row->suspect = place_shares_row(&place, NULL, &blamed, NULL, host) ||
		       (site->is_managed && is_heap_cause(cause));
}

/* Leaking rows are suspects of a cause that is a leak, and of no other. */
static void mark_leaks(const struct text *text, struct holders *holders)
{
	bool blamed = is_leak_cause(text->facts->cause);
	for (size_t i = 0; i < holders->count; i++) {
		struct holder *row = &holders->rows[i];
		row->leaks &= blamed;
		row->suspect |= row->leaks;
	}
}

/* Page-locked memory is not on the device, and managed memory has a row of its own. */
static bool is_of_device(const struct text *text, const struct fact_site *site,
			 const struct fact_device *device)
{
	return site->device < text->facts->device_count &&
	       &text->facts->devices[site->device] == device &&
	       site->process == device->focus && !site->holds_blocks &&
	       site->bytes != CUF_UNKNOWN &&
	       site->kind != CUF_KIND_MANAGED && site->kind != CUF_KIND_PINNED &&
	       site->kind != CUF_KIND_REGISTERED;
}

/*
 * Rows that call sites can replace. The others are memory that no call of the program
 * allocated.
 */
static bool is_block_row(const struct fact_owner_row *row)
{
	switch (row->kind) {
	case OWNER_DEVICE: case OWNER_ARRAY: case OWNER_ASYNC: case OWNER_GRAPH: case OWNER_VMM:
	case OWNER_IMPORTED:
		return row->in_sum && row->bytes != CUF_UNKNOWN;
	default:
		return false;
	}
}

void holders_name_slack(const struct fact_device *device, char *out, size_t bytes)
{
	const struct fact_fragmentation *fragmentation = &device->fragmentation;
	const char *name = "the framework";
	if (fragmentation->framework_count && *fragmentation->frameworks[0].name)
		name = fragmentation->frameworks[0].name;
	snprintf(out, bytes, "reserved by %s, unallocated", name);
}

/* The name is missing when only the pid of the process was reported. */
static void name_process(const struct fact_owner_row *row, char *out, size_t bytes)
{
	if (row->pid && row->name)
		snprintf(out, bytes, "pid %u, %s", row->pid, row->name);
	else if (row->pid)
		snprintf(out, bytes, "pid %u", row->pid);
	else
		snprintf(out, bytes, "other processes");
}

static bool is_unknown(const struct fact_device *device, enum fact_owner kind)
{
	for (size_t i = 0; i < device->owner_count; i++)
		if (device->owners[i].kind == kind && device->owners[i].bytes == CUF_UNKNOWN)
			return true;
	return false;
}

/* What is unknown may be part of the unexplained rest, which is named after it. */
static void name_rest(const struct fact_device *device, char *out, size_t bytes)
{
	bool context = is_unknown(device, OWNER_CONTEXT);
	bool others = is_unknown(device, OWNER_OTHER_PROCESSES);
	if (context && others)
		snprintf(out, bytes, "CUDA context, other processes");
	else if (context)
		snprintf(out, bytes, "CUDA context");
	else if (others)
		snprintf(out, bytes, "other processes");
	else
		snprintf(out, bytes, "not visible to cuflight");
}

static void name_part(const struct fact_device *device, const struct fact_owner_row *row, char *out,
		      size_t bytes)
{
	static const char *const words[OWNER_MAX] = {
		[OWNER_DEVICE] = "cudaMalloc",
		[OWNER_ARRAY] = "CUDA arrays",
		[OWNER_ASYNC] = "cudaMallocAsync",
		[OWNER_GRAPH] = "CUDA graphs",
		[OWNER_VMM] = "cuMemCreate",
		[OWNER_IMPORTED] = "imported memory",
		[OWNER_PAGE_ROUNDING] = "lost to 2 MiB granularity",
		[OWNER_POOL_SLACK] = "reserved by CUDA memory pools, unused",
		[OWNER_CONTEXT] = "CUDA context",
		[OWNER_FREE] = "free",
		[OWNER_MANAGED] = "managed memory, not counted above",
	};
	switch (row->kind) {
	case OWNER_FRAMEWORK_SLACK: holders_name_slack(device, out, bytes); break;
	case OWNER_OTHER_PROCESSES: name_process(row, out, bytes); break;
	case OWNER_UNEXPLAINED: name_rest(device, out, bytes); break;
	default: snprintf(out, bytes, "%s", words[row->kind]);
	}
}

/* Workers of one program are one row. */
static bool add_to_program(const struct fact_owner_row *from, struct holders *holders)
{
	for (size_t i = 0; i < holders->count; i++) {
		struct holder *row = &holders->rows[i];
		if (!row->program || !from->recorded || !from->name || !from->in_sum ||
		    strcmp(row->program, from->name))
			continue;
		row->bytes += from->bytes;
		row->processes++;
		snprintf(row->words, sizeof row->words, "%u x %s", row->processes + 1,
			 row->program);
		return true;
	}
	return false;
}

/*
 * The cause may blame other processes while their share is hidden in the unexplained rest.
 * Then that rest is the suspect.
 */
static void add_owner(const struct text *text, const struct fact_device *device,
		      const struct fact_owner_row *from, struct holders *holders)
{
	struct holder *row = add(holders, HOLDER_PART, from->bytes);
	name_part(device, from, row->words, sizeof row->words);
	row->role = from->role;
	row->role_is_likely = from->role_basis == BASIS_INFERRED;
	if (from->count != CUF_UNKNOWN)
		row->count = from->count;
	row->suspect = cause_blames(text->facts->cause, from->kind);
	if (from->kind == OWNER_UNEXPLAINED && is_unknown(device, OWNER_OTHER_PROCESSES))
		row->suspect |= cause_blames(text->facts->cause, OWNER_OTHER_PROCESSES);
	row->is_process = from->kind == OWNER_OTHER_PROCESSES;
	if (row->is_process && from->recorded)
		row->program = from->name;
	if (from->kind == OWNER_FREE)
		row->sort = HOLDER_FREE;
	else if (!from->in_sum)
		row->sort = HOLDER_OUTSIDE;
}

void holders_moment(const struct text *text, const struct fact_moment *moment, char *out,
		    size_t bytes)
{
	static const char *const words[MOMENT_MAX] = {
		[MOMENT_INCIDENT] = "at the failure",
		[MOMENT_END] = "at the end",
		[MOMENT_NOW] = "now",
	};
	const struct facts *facts = text->facts;
	uint64_t elapsed = CUF_UNKNOWN;
	if (facts->process_count)
		elapsed = text_elapsed(facts->processes[0].start_ns, moment->time_ns);
	if (words[moment->kind])
		snprintf(out, bytes, "%s", words[moment->kind]);
	else
		snprintf(out, bytes, "%s after start", units_duration(elapsed).s);
}

/*
 * Call sites replace the rows of blocks when their sum does not exceed them; what is left
 * has no call site.
 */
static void add_sites_of(const struct text *text, const struct fact_device *device, uint64_t blocks,
			 struct holders *holders)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < text->facts->leak_count; i++)
		if (is_of_device(text, &text->facts->leaks[i], device))
			sum += text->facts->leaks[i].bytes;
	if (sum <= blocks && (sum || !blocks)) {
		for (size_t i = 0; i < text->facts->leak_count; i++)
			if (is_of_device(text, &text->facts->leaks[i], device))
				add_site(text, holders, &text->facts->leaks[i]);
		add_part(holders, blocks - sum, "call sites not recorded");
		return;
	}
	/* the two were not measured at the same moment: the recorder's counts by kind are exact */
	for (size_t i = 0; i < device->owner_count; i++)
		if (is_block_row(&device->owners[i]) && device->owners[i].bytes)
			add_owner(text, device, &device->owners[i], holders);
}

void holders_of_device(const struct text *text, const struct fact_device *device,
		       struct holders *out)
{
	uint64_t blocks = 0;
	char moment[64];
	*out = (struct holders){ .total_bytes = device->total_bytes };
	holders_moment(text, &device->moment, moment, sizeof moment);
	snprintf(out->title, sizeof out->title, "Who held GPU %u %s", device->ordinal, moment);
	for (size_t i = 0; i < device->owner_count; i++)
		if (is_block_row(&device->owners[i]))
			blocks += device->owners[i].bytes;
	add_sites_of(text, device, blocks, out);
	for (size_t i = 0; i < device->owner_count; i++) {
		const struct fact_owner_row *row = &device->owners[i];
		bool shown = row->kind == OWNER_FREE || (row->bytes && !is_block_row(row));
		if (shown && row->bytes != CUF_UNKNOWN && !add_to_program(row, out))
			add_owner(text, device, row, out);
	}
	mark_leaks(text, out);
	sort_rows(out);
}

void holders_of_locked(const struct text *text, const struct fact_process *process,
		       struct holders *out)
{
	uint64_t sum = 0;
	*out = (struct holders){ 0 };
	snprintf(out->title, sizeof out->title, "Who held page-locked memory");
	for (size_t i = 0; i < text->facts->leak_count; i++) {
		const struct fact_site *site = &text->facts->leaks[i];
		if (&text->facts->processes[site->process] != process || site->bytes == CUF_UNKNOWN)
			continue;
		if (site->kind != CUF_KIND_PINNED && site->kind != CUF_KIND_REGISTERED)
			continue;
		add_site(text, out, site);
		sum += site->bytes;
	}
	out->total_bytes = sum;
	mark_leaks(text, out);
	sort_rows(out);
}

/*
 * What resident memory consists of, next to what call sites allocated: blocks of malloc, objects of
 * Python, maps.
 */
static const char *const part_words[PART_MAX] = {
	[PART_FRAGMENTED] = "free, between allocated blocks",
	[PART_CACHED] = "free, kept by the allocator",
	[PART_ALLOCATOR] = "the allocator's own data",
	[PART_PYTHON] = "Python's arenas, free or from before",
	[PART_OTHER] = "other anonymous memory",
	[PART_STACK] = "the main thread's stack",
	[PART_FILES] = "files and libraries",
	[PART_FILES_PRIVATE] = "private copies of file pages",
	[PART_SHARED] = "shared memory",
	[PART_RECORDER] = "this recording",
};

/* Page-locked blocks are resident, so they are part of host memory too. */
static bool is_host_site(const struct text *text, const struct fact_site *site,
			 const struct fact_process *process)
{
	return &text->facts->processes[site->process] == process && site->bytes != CUF_UNKNOWN &&
	       (site->kind == CUF_KIND_HOST || site->kind == CUF_KIND_PINNED);
}

/* Of a row that rests on so few samples nothing is known but that it is small. */
static bool is_faint(const struct fact_site *site, const struct fact_process *process)
{
	return site->basis == BASIS_ESTIMATED && process->sample_mean_bytes != CUF_UNKNOWN &&
	       site->bytes < SAMPLES_LEAST * process->sample_mean_bytes;
}

static uint64_t sum_of_rows(const struct holders *holders)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < holders->count; i++)
		sum += holders->rows[i].bytes;
	return sum;
}

/*
 * Sites with too few samples become one row, since each of them by itself would be noise. Leaks are
 * printed whatever their size.
 */
static void add_host_sites(const struct text *text, const struct fact_process *process,
			   struct holders *holders)
{
	struct holder faint = { .sort = HOLDER_PART, .sampled = true };
	for (size_t i = 0; i < text->facts->leak_count; i++) {
		const struct fact_site *site = &text->facts->leaks[i];
		if (!is_host_site(text, site, process))
			continue;
		if (!is_faint(site, process) || site->class <= CLASS_GROWING) {
			add_site(text, holders, site);
			continue;
		}
		faint.bytes += site->bytes;
		faint.count++;
	}
	if (faint.bytes) {
		*add(holders, HOLDER_PART, 0) = faint;
		snprintf(holders->rows[holders->count - 1].words, sizeof faint.words,
			 "%s small allocation%s", units_count(faint.count).s, text_s(faint.count));
	}
}

/*
 * The last sample in which files were counted apart; CUF_UNKNOWN. The kernel counts shared memory
 * with them; what this process made of it has call sites.
 */
static uint64_t files_bytes(const struct fact_process *process)
{
	uint64_t made = known_or_zero(process->host.maps.shared_bytes);
	for (size_t i = process->timeline_count; i--;)
		if (process->timeline[i].rss_shared_bytes != CUF_UNKNOWN)
			return subtract_to_zero(process->timeline[i].rss_shared_bytes, made);
	return CUF_UNKNOWN;
}

/* Where the parts of resident memory were read: all but what malloc gave to call sites. */
static uint64_t parts_bytes(const struct fact_host *host)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < host->row_count; i++)
		if (part_words[host->rows[i].part] && host->rows[i].bytes != CUF_UNKNOWN)
			sum += host->rows[i].bytes;
	return sum;
}

/* Where no parts were read: what Python's arenas hold in addition to the recorded objects. */
static void add_arenas(const struct fact_host *host, uint64_t parts, struct holders *out)
{
	uint64_t rest;

	if (host->row_count || host->python_arena_bytes == CUF_UNKNOWN ||
	    host->python_live_bytes == CUF_UNKNOWN)
		return;
	rest = subtract_to_zero(host->python_arena_bytes, host->python_live_bytes);
	add_part(out, least_of(rest, host->rss_bytes - parts), part_words[PART_PYTHON]);
}

/* What no call shows: of a runtime whose heap is not recorded, most of it is that heap. */
static void add_rest(const struct text *text, const struct fact_host *host, uint64_t bytes,
		     struct holders *out)
{
	char words[96] = "not attributed";
	bool is_heap = host->heap.name && !host->heap.bytes;

	if (is_heap)
		snprintf(words, sizeof words, "%s or other, not attributed", host->heap.name);
	add_part(out, bytes, words);
	if (is_heap)
		out->rows[out->count - 1].suspect = is_heap_cause(text->facts->cause);
}

/*
 * Of the request that failed: the limit that refused it. Else what is resident, where more was
 * allocated than that: memory that was never written, or was written to swap.
 */
static void title_host(const struct text *text, const struct fact_process *process,
		       struct holders *out)
{
	const struct fact_host *host = &process->host;
	const struct fact_incident *incident = focus_incident(text->facts);
	enum fact_limit_kind kind = LIMIT_NONE;
	char more[64] = "";

	if (host->at_peak) { /* the line above has what is resident */
		snprintf(out->title, sizeof out->title, "Who held host memory %s the peak",
			 host->is_near_peak ? "near" : "at");
		return;
	}
	if (incident && focus_process(text->facts) == process)
		kind = incident->refused_by;
	if (kind != LIMIT_NONE)
		snprintf(more, sizeof more, "; %s is %s", fact_limit_words[kind].set,
			 units_bytes(incident->limits[kind].max_bytes).s);
	else if (strcmp(units_bytes(out->total_bytes).s, units_bytes(host->rss_bytes).s) != 0)
		snprintf(more, sizeof more, "; %s is resident", units_bytes(host->rss_bytes).s);
	snprintf(out->title, sizeof out->title, "Who held host memory%s", more);
}

/* Rows have the bytes that every other output has, so their sum may be more than is resident. */
void holders_of_host(const struct text *text, const struct fact_process *process,
		     struct holders *out)
{
	const struct fact_host *host = &process->host;
	uint64_t parts = files_bytes(process), sum;

	*out = (struct holders){ .total_bytes = host->rss_bytes };
	if (host->rss_bytes == CUF_UNKNOWN)
		return;
	if (host->row_count)
		parts = parts_bytes(host);
	if (parts == CUF_UNKNOWN || parts > host->rss_bytes)
		parts = 0;
	add_arenas(host, parts, out);
	add_host_sites(text, process, out);
	for (size_t i = 0; i < host->row_count; i++)
		if (part_words[host->rows[i].part])
			add_part(out, host->rows[i].bytes, part_words[host->rows[i].part]);
	if (!host->row_count && parts)
		add_part(out, parts, "files and libraries");
	sum = sum_of_rows(out);
	if (sum < host->rss_bytes)
		add_rest(text, host, host->rss_bytes - sum, out);
	out->total_bytes = most_of(sum, host->rss_bytes);
	title_host(text, process, out);
	mark_leaks(text, out);
	sort_rows(out);
}
