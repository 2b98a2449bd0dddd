/* SPDX-License-Identifier: Apache-2.0 */
/* Merges, filters and sorts. */
#include "analysis/view/live/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

const char *const rows_order_names[ROWS_ORDERS] = { "bytes", "rate", "age", "name" };

/* ---- call sites ---- */

static bool has_text(const struct top_process *process, const struct pass_site *site,
		     const char *text)
{
	const char *state = site->is_judged ? live_state_names[site->state] : "";
	const char *const texts[] = { site->name, site->path, process->name, site->role, state,
				      watch_memory_names[site->memory] };

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (strcasestr(texts[i], text))
			return true;
	return false;
}

static struct site_row live_row_of(const struct top_frame *frame, const struct top_process *process,
				   const struct pass_site *site)
{
	struct site_row row = { .process = process, .site = site, .bytes = site->bytes,
				.count = site->count, .bytes_per_s = site->slope_bytes_per_s,
				.age_s = NAN, .is_judged = site->is_judged, .state = site->state };
	size_t gpu = top_gpu_of(frame, process, site->device);

	if (gpu < frame->gpu_count)
		row.gpus = 1ull << gpu;
	if (site->first_ns && site->first_ns < frame->time_ns)
		row.age_s = (double)(frame->time_ns - site->first_ns) / 1e9;
	return row;
}

static double sum_of_known(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	return a + b;
}

static void add_to_row(struct site_row *to, const struct site_row *row)
{
	if (row->site->bytes > to->site->bytes) {
		to->site = row->site;
		to->process = row->process;
	}
	to->bytes += row->bytes;
	to->count += row->count;
	to->gpus |= row->gpus;
	to->bytes_per_s = sum_of_known(to->bytes_per_s, row->bytes_per_s);
	to->age_s = fmax(to->age_s, row->age_s);
	if (row->is_judged && (!to->is_judged || row->state > to->state))
		to->state = row->state;
	to->is_judged |= row->is_judged;
}

static bool goes_together(const struct site_row *a, const struct site_row *b, bool is_split)
{
	if (is_split && (a->process != b->process || a->site->device != b->site->device))
		return false;
	return a->site->memory == b->site->memory && !strcmp(a->site->name, b->site->name);
}

/* Of host memory: what its processes have resident. Of a GPU's: those GPUs. */
static uint64_t whole_of(const struct top_frame *frame, const struct site_row *row)
{
	uint64_t sum = 0;

	if (row->site->memory == WATCH_HOST || row->site->memory == WATCH_PINNED)
		return row->resident_bytes;
	for (size_t gpu = 0; gpu < frame->gpu_count; gpu++)
		if (row->gpus >> gpu & 1)
			sum += frame->gpus[gpu].total_bytes;
	return sum;
}

static int by_number_down(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	return (a < b) - (a > b);
}

static int sites_by_bytes(const void *a, const void *b)
{
	const struct site_row *left = a, *right = b;
	int order = compare_numbers(right->bytes, left->bytes);

	if (!order)
		order = strcmp(left->site->name, right->site->name);
	return order ? order : strcmp(left->process->name, right->process->name);
}

static int sites_by_rate(const void *a, const void *b)
{
	const struct site_row *left = a, *right = b;
	int order = by_number_down(left->bytes_per_s, right->bytes_per_s);

	return order ? order : sites_by_bytes(a, b);
}

static int sites_by_age(const void *a, const void *b)
{
	const struct site_row *left = a, *right = b;
	int order = by_number_down(left->age_s, right->age_s);

	return order ? order : sites_by_bytes(a, b);
}

static int sites_by_name(const void *a, const void *b)
{
	const struct site_row *left = a, *right = b;
	int order = strcmp(left->site->name, right->site->name);

	return order ? order : sites_by_bytes(a, b);
}

static int (*const orders[])(const void *, const void *) = {
	[ROWS_BY_BYTES] = sites_by_bytes, [ROWS_BY_RATE] = sites_by_rate,
	[ROWS_BY_AGE] = sites_by_age, [ROWS_BY_NAME] = sites_by_name,
};

struct live_table { struct site_row *rows; size_t count, room; };

/* Sites of one process come one after another, so that it counts once in a row. */
static void add_live_site(struct live_table *table, const struct site_row *site, bool is_split)
{
	size_t at = 0;
	struct site_row *row;

	while (at < table->count && !goes_together(&table->rows[at], site, is_split))
		at++;
	if (at == table->count) {
		xalloc_grow(&table->rows, table->count, &table->room, sizeof *table->rows);
		table->rows[table->count++] = *site;
	} else {
		add_to_row(&table->rows[at], site);
	}
	row = &table->rows[at];
	if (row->last == site->process)
		return;
	row->last = site->process;
	row->process_count++;
	row->resident_bytes += known_or_zero(site->process->resident_bytes);
}

static void add_sites(struct live_table *table, const struct top_frame *frame,
		      const struct top_process *process, const struct rows_options *options)
{
	for (size_t i = 0; i < process->pass->site_count; i++) {
		const struct site_row row = live_row_of(frame, process, &process->pass->sites[i]);

		if (options->gpu < frame->gpu_count && !(row.gpus >> options->gpu & 1))
			continue;
		if (has_text(process, row.site, options->filter))
			add_live_site(table, &row, options->is_split);
	}
}

struct site_row *rows_of_sites(const struct top_frame *frame, const struct rows_options *options,
			       size_t *count)
{
	struct live_table table = { 0 };

	for (size_t i = 0; i < frame->process_count; i++)
		if (frame->processes[i].is_running && frame->processes[i].pass)
			add_sites(&table, frame, &frame->processes[i], options);
	for (size_t i = 0; i < table.count; i++)
		table.rows[i].whole_bytes = whole_of(frame, &table.rows[i]);
	if (table.count)
		qsort(table.rows, table.count, sizeof *table.rows, orders[options->order]);
	*count = table.count;
	return table.rows;
}

/* ---- processes ---- */

static double seconds_left(const struct top_process *process)
{
	const struct pass *pass = process->pass;
	const struct live_resource *first =
		pass ? live_first_to_end(pass->resources, pass->resource_count) : NULL;

	return first ? first->oom_s[LIVE_EXPECTED] : INFINITY;
}

static int by_worry(const void *a, const void *b)
{
	const struct process_row *left = a, *right = b;
	double l = seconds_left(left->process), r = seconds_left(right->process);

	if (left->process->verdict != right->process->verdict)
		return left->process->verdict > right->process->verdict ? -1 : 1;
	if (left->process->verdict == VERDICT_GROWING && l != r)
		return l < r ? -1 : 1;
	if (left->gpu_bytes != right->gpu_bytes)
		return compare_numbers(right->gpu_bytes, left->gpu_bytes);
	return strcmp(left->process->name, right->process->name);
}

/* Ranks of one job that fare alike. */
static bool are_alike(const struct top_process *a, const struct top_process *b)
{
	return *a->rank && *b->rank && !strcmp(a->program, b->program) &&
	       a->verdict == b->verdict;
}

struct process_row *rows_of_processes(const struct top_frame *frame, bool is_split, size_t *count)
{
	struct process_row *rows = xalloc_zeroed(frame->process_count, sizeof *rows);

	*count = 0;
	for (size_t i = 0; i < frame->process_count; i++) {
		const struct top_process *process = &frame->processes[i];
		size_t at = is_split ? *count : 0;

		while (at < *count && !are_alike(rows[at].process, process))
			at++;
		if (at == *count)
			rows[(*count)++].process = process;
		rows[at].process_count++;
		rows[at].gpu_bytes += process->gpu_bytes;
		rows[at].gpu_peak_bytes += process->gpu_peak_bytes;
		rows[at].resident_bytes += known_or_zero(process->resident_bytes);
		rows[at].failures += process->failures;
	}
	qsort(rows, *count, sizeof *rows, by_worry);
	return rows;
}
