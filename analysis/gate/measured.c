/* SPDX-License-Identifier: Apache-2.0 */
/* The values of all measures, and the call sites by identity. */
#include "analysis/gate/measured.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/paths.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/passes/assemble.h"
#include "analysis/facts/facts.h"
#include "analysis/gate/account.h"
#include "analysis/gate/finding.h"
#include "analysis/gate/phase_use.h"

enum { SITES_MAX = 1000 }; /* of each group; smaller ones are not compared */

static struct gate_value exactly(uint64_t value)
{
	return (struct gate_value){ value, value, value, "" };
}

/* ---- call sites ---- */

static int by_group_and_size(const void *a, const void *b)
{
	const struct account_site *left = a, *right = b;

	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	return compare_numbers(most_of(right->peak_bytes, right->end_bytes),
			       most_of(left->peak_bytes, left->end_bytes));
}

static int by_site_identity(const void *a, const void *b)
{
	const struct measured_site *left = a, *right = b;

	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	return strcmp(left->identity, right->identity);
}

static int by_size(const void *a, const void *b)
{
	const struct measured_site *left = a, *right = b;

	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	if (left->peak_bytes != right->peak_bytes)
		return compare_numbers(right->peak_bytes, left->peak_bytes);
	if (left->end_bytes != right->end_bytes)
		return compare_numbers(right->end_bytes, left->end_bytes);
	return strcmp(left->identity, right->identity);
}

/* Rows of one identity become one; the largest stands for all. */
static void merge_sites(struct measured *out)
{
	size_t kept = 0;

	if (out->site_count)
		qsort(out->sites, out->site_count, sizeof *out->sites, by_site_identity);
	for (size_t i = 0; i < out->site_count; i++) {
		struct measured_site *site = &out->sites[i], *last = &out->sites[kept - !!kept];
		if (!kept || by_site_identity(last, site)) {
			out->sites[kept++] = *site;
			continue;
		}
		if (site->peak_bytes > last->peak_bytes)
			last->stack = site->stack;
		last->peak_bytes += site->peak_bytes;
		last->peak_count += site->peak_count;
		last->end_bytes += site->end_bytes;
		last->end_count += site->end_count;
	}
	out->site_count = kept;
	if (kept)
		qsort(out->sites, kept, sizeof *out->sites, by_size);
}

/* Only the largest are named: a program can have a hundred thousand. */
static void name_sites(struct measured *out, struct account *account)
{
	size_t of_group[GROUP_MAX] = { 0 };

	if (account->site_count)
		qsort(account->sites, account->site_count, sizeof *account->sites,
		      by_group_and_size);
	out->sites = arena_zeroed(out->arena, account->site_count, sizeof *out->sites);
	for (size_t i = 0; i < account->site_count; i++) {
		const struct account_site *from = &account->sites[i];
		if (of_group[from->group]++ >= SITES_MAX || (!from->peak_bytes && !from->end_bytes))
			continue;
		out->sites[out->site_count++] = (struct measured_site){
			.identity = naming_identity(&out->naming, &from->stack),
			.group = from->group,
			.peak_bytes = from->peak_bytes,
			.peak_count = from->peak_count,
			.end_bytes = from->end_bytes,
			.end_count = from->end_count,
			.stack = from->stack,
		};
	}
	merge_sites(out);
}

/* ---- values ---- */

bool measure_is_of_device(const struct fact_site *site)
{
	return site->device != FACT_NONE && site->kind != CUF_KIND_PINNED &&
	       site->kind != CUF_KIND_REGISTERED;
}

/* Leaks that are proven: all of their blocks were recorded. */
static void take_leaks(struct measured *out)
{
	uint64_t device = 0, host = 0;
	bool sampled = false, overwritten = out->facts->events_overwritten;

	for (size_t i = 0; i < out->facts->leak_count; i++) {
		const struct fact_site *site = &out->facts->leaks[i];
		if (site->class != CLASS_LEAK || site->holds_blocks ||
		    site->low_bytes != site->high_bytes)
			continue;
		if (measure_is_of_device(site))
			device += site->bytes;
		else
			host += site->bytes;
	}
	for (size_t i = 0; i < out->facts->process_count; i++)
		sampled |= out->facts->processes[i].host_mode != CUF_HOST_FULL;
	out->values[MEASURE_DEVICE_LEAK] = exactly(device);
	out->values[MEASURE_HOST_LEAK] = exactly(host);
	if (overwritten) {
		out->values[MEASURE_DEVICE_LEAK].high = CUF_UNKNOWN;
		out->values[MEASURE_HOST_LEAK].high = CUF_UNKNOWN;
		out->values[MEASURE_DEVICE_LEAK].why = out->values[MEASURE_HOST_LEAK].why =
			"events were overwritten; record with a larger --size";
	} else if (sampled) {
		out->values[MEASURE_HOST_LEAK].high = CUF_UNKNOWN;
		out->values[MEASURE_HOST_LEAK].why =
			"small blocks were not all recorded; record with --host=full";
	}
}

/* What stays after each marked request, of the process where most stays. */
static void take_request_growth(struct measured *out)
{
	struct gate_value *value = &out->values[MEASURE_REQUEST_GROWTH];

	*value = (struct gate_value){ CUF_UNKNOWN, 0, CUF_UNKNOWN, "no requests are marked" };
	for (size_t i = 0; i < out->facts->process_count; i++) {
		const struct fact_requests *requests = &out->facts->processes[i].requests;
		uint64_t slope;
		bool marked = requests->basis == BASIS_OBSERVED ||
			      requests->basis == BASIS_ESTIMATED; /* several open at a time */
		if (!marked || isnan(requests->floor_slope_bytes))
			continue;
		slope = (uint64_t)fmax(0, round(requests->floor_slope_bytes));
		if (value->value != CUF_UNKNOWN && value->value >= slope)
			continue;
		*value = (struct gate_value){
			slope, (uint64_t)fmax(0, floor(requests->floor_low_bytes)),
			(uint64_t)fmax(0, ceil(requests->floor_high_bytes)), ""
		};
		if (value->low != value->high)
			value->why = "it differs from request to request";
	}
}

/* Reserved and unused on one device; CUF_UNKNOWN: a pool has no report. Without a framework that
 * reports its blocks, that row is unknown in every report. */
static uint64_t unused_bytes(const struct fact_device *device)
{
	uint64_t sum = known_or_zero(device->fragmentation.vmm_unmapped_bytes);

	for (size_t i = 0; i < device->owner_count; i++) {
		const struct fact_owner_row *row = &device->owners[i];
		if (row->kind != OWNER_PAGE_ROUNDING && row->kind != OWNER_POOL_SLACK &&
		    row->kind != OWNER_FRAMEWORK_SLACK)
			continue;
		if (row->bytes == CUF_UNKNOWN && row->kind == OWNER_POOL_SLACK)
			return CUF_UNKNOWN;
		sum += known_or_zero(row->bytes);
	}
	return sum;
}

/* Layers that are absent have no hole. */
static uint64_t hole_bytes(const struct fact_device *device)
{
	uint64_t most = known_or_zero(device->largest_free[LAYER_PAGE].bytes);

	most = most_of(most, known_or_zero(device->largest_free[LAYER_POOL].bytes));
	return most_of(most, known_or_zero(device->largest_free[LAYER_SEGMENT].bytes));
}

/* At the end and at the peak; the larger one counts. */
static void take_unused(struct measured *out)
{
	const struct facts *moments[] = { out->facts, out->peak };
	struct gate_value unused = exactly(0), hole = exactly(0);

	for (size_t m = 0; m < 2 && moments[m]; m++) {
		uint64_t sum = 0;
		for (size_t i = 0; i < moments[m]->device_count; i++) {
			const struct fact_device *device = &moments[m]->devices[i];
			uint64_t bytes = unused_bytes(device);
			hole.value = most_of(hole.value, hole_bytes(device));
			if (bytes == CUF_UNKNOWN)
				unused.why = "a memory pool reported no level";
			sum += known_or_zero(bytes);
			if (device->moment.basis == BASIS_ESTIMATED)
				unused.why = hole.why = "events were overwritten; record with a "
							"larger --size";
		}
		unused.value = most_of(unused.value, sum);
	}
	unused.low = unused.high = unused.value;
	hole.low = hole.high = hole.value;
	if (*unused.why)
		unused.high = CUF_UNKNOWN;
	if (*hole.why)
		hole.high = CUF_UNKNOWN;
	out->values[MEASURE_DEVICE_UNUSED] = unused;
	out->values[MEASURE_DEVICE_HOLE] = hole;
}

/* The kernel refuses a page by a kill: that is a fatal failure without a request. */
static void add_kills(struct measured *out)
{
	struct gate_value *value = &out->values[MEASURE_INCIDENTS_FATAL];

	for (size_t i = 0; i < out->facts->process_count; i++) {
		const struct fact_process *process = &out->facts->processes[i];
		if (process->end != END_OOM_KILLED)
			continue;
		*value = exactly(value->value + 1);
		value->why = arena_format(out->arena, "process %u was killed by the kernel: %s",
					  process->pid, process->end_why);
	}
}

static void take_counts(struct measured *out)
{
	const struct facts *facts = out->facts;
	uint64_t refused = 0, device = 0, host = 0;

	for (size_t i = 0; i < facts->incident_count; i++)
		refused += facts->incidents[i].outcome == OUTCOME_FATAL;
	for (size_t i = 0; i < facts->device_count; i++)
		device += facts->devices[i].alloc_count;
	for (size_t i = 0; i < facts->process_count; i++) {
		uint64_t calls = facts->processes[i].host.alloc_count;
		if (calls == CUF_UNKNOWN || host == CUF_UNKNOWN)
			host = CUF_UNKNOWN;
		else
			host += calls;
	}
	out->values[MEASURE_INCIDENTS_FATAL] = exactly(refused);
	add_kills(out);
	out->values[MEASURE_INCIDENTS_RECOVERED] = exactly(facts->incident_count - refused);
	out->values[MEASURE_DEVICE_ALLOCATIONS] = exactly(device);
	out->values[MEASURE_HOST_ALLOCATIONS] = exactly(host);
	if (host == CUF_UNKNOWN)
		out->values[MEASURE_HOST_ALLOCATIONS] =
			(struct gate_value){ CUF_UNKNOWN, 0, CUF_UNKNOWN,
					     "not every call was recorded; record with "
					     "--host=full" };
}

void measure_run(struct measured *out, const struct facts *facts, struct symbols *symbols)
{
	struct account account;

	*out = (struct measured){ .facts = facts, .arena = arena_new() };
	naming_open(&out->naming, facts, symbols, out->arena);
	account_begin(&account, facts, facts->run, out->arena);
	out->peak = facts_at_peak(facts);
	account_end(&account, facts, facts->run);
	for (int i = 0; i < GROUP_MAX; i++) {
		out->values[MEASURE_DEVICE_PEAK + i] = account.peak[i];
		out->values[MEASURE_DEVICE_END + i] = account.end[i];
	}
	name_sites(out, &account);
	account_free(&account);
	take_leaks(out);
	take_request_growth(out);
	take_unused(out);
	take_counts(out);
	environment_take(facts, out->arena, &out->environment);
	out->program = "";
	if (facts->process_count)
		out->program = path_base_name(facts->processes[facts->focus].exe);
}

void measured_free(struct measured *measured)
{
	naming_close(&measured->naming);
	arena_free(measured->arena);
	*measured = (struct measured){ 0 };
}

/* ---- what nobody can judge ---- */

static bool has_allocation(const struct facts *facts)
{
	for (size_t i = 0; i < facts->device_count; i++)
		if (facts->devices[i].alloc_count || facts->devices[i].fail_count)
			return true;
	for (size_t i = 0; i < facts->process_count; i++)
		if (facts->processes[i].host.recorded_alloc_count)
			return true;
	return facts->incident_count > 0;
}

/* What ended the process that the run is about is not known to be memory, and not known to be
 * anything else; NULL: it is known. */
static const char *unknown_end(const struct facts *facts, struct arena *arena)
{
	const struct fact_process *process = &facts->processes[facts->focus];

	if (process->end == END_UNKNOWN ||
	    (process->end == END_KILLED && process->end_status == CUF_UNKNOWN))
		return arena_format(arena, "how process %u ended is not known: %s", process->pid,
				    process->end_why);
	if (process->end == END_KILLED)
		return arena_format(arena, "process %u was killed, before all of its work was "
				    "seen: %s", process->pid, process->end_why);
	if (process->end == END_SIGNAL && process->end_status != SIGTERM &&
	    process->end_status != SIGINT)
		return arena_format(arena, "process %u was ended by signal %" PRIu64
				    ", before all of its work was seen", process->pid,
				    process->end_status);
	return NULL;
}

size_t measure_gaps(const struct measured *measured, const char *sentences[], size_t most)
{
	const struct facts *facts = measured->facts;
	const char *end = unknown_end(facts, measured->arena);
	size_t count = 0;

	if (!has_allocation(facts) && count < most)
		sentences[count++] = "nothing was recorded: no allocation was seen; see "
				     "'cuflight doctor', or record with --host=full";
	if (facts->events_lost && count < most)
		sentences[count++] = arena_format(
			measured->arena, "%s events were lost: no table of the recording had room; "
			"record with a larger --size", units_count(facts->events_lost).s);
	if (end && count < most)
		sentences[count++] = end;
	for (size_t i = 0; i < facts->process_count && count < most; i++) {
		const struct fact_process *process = &facts->processes[i];
		if (process->switched_off)
			sentences[count++] = arena_format(
				measured->arena,
				"the recorder of process %u switched itself off before the end",
				process->pid);
		else if (!process->complete)
			sentences[count++] = arena_format(measured->arena,
							  "the recording of process %u is cut",
							  process->pid);
	}
	return count;
}

/* One moment of a run, as facts for it have it: what each call site held then. */
enum gate_group measure_group_of(const struct fact_site *site)
{
	if (site->kind == CUF_KIND_FRAMEWORK)
		return GROUP_FRAMEWORK;
	if (site->kind == CUF_KIND_PINNED || site->kind == CUF_KIND_REGISTERED)
		return GROUP_PINNED;
	if (site->kind == CUF_KIND_MANAGED)
		return GROUP_MANAGED;
	return site->device == FACT_NONE ? GROUP_HOST : GROUP_DEVICE;
}

void measure_moment(struct measured *out, const struct facts *facts, struct symbols *symbols)
{
	uint64_t sums[GROUP_MAX] = { 0 };

	*out = (struct measured){ .facts = facts, .arena = arena_new(), .program = "" };
	naming_open(&out->naming, facts, symbols, out->arena);
	environment_take(facts, out->arena, &out->environment);
	out->sites = arena_zeroed(out->arena, facts->leak_count, sizeof *out->sites);
	for (size_t i = 0; i < facts->leak_count; i++) {
		const struct fact_site *site = &facts->leaks[i];
		enum gate_group group = measure_group_of(site);
		sums[group] += site->bytes;
		out->sites[out->site_count++] = (struct measured_site){
			.identity = naming_identity(&out->naming, &site->stack),
			.group = group,
			.peak_bytes = site->bytes,
			.peak_count = site->count,
			.end_bytes = site->bytes,
			.end_count = site->count,
			.stack = site->stack,
		};
	}
	merge_sites(out);
	for (size_t i = 0; i < MEASURE_MAX; i++)
		out->values[i] = (struct gate_value){ CUF_UNKNOWN, 0, CUF_UNKNOWN, "" };
	for (size_t i = 0; i < GROUP_PYTHON; i++)
		out->values[MEASURE_DEVICE_END + i] =
			(struct gate_value){ sums[i], sums[i], sums[i], "" };
}

/* What phases and requests of one name needed, or left behind: the most of any of them. */
static const struct gate_value unknown = { CUF_UNKNOWN, 0, CUF_UNKNOWN, "no phase has this name" };

/* An estimate has no upper bound here, and proves nothing. */
static struct gate_value amount_value_of(const struct phase_amount *amount, bool at_end)
{
	uint64_t bytes = amount->need_bytes;

	if (amount->basis == BASIS_NONE)
		return (struct gate_value){ CUF_UNKNOWN, 0, CUF_UNKNOWN, amount->why };
	if (at_end)
		bytes = amount->stay_bytes > 0 ? (uint64_t)amount->stay_bytes : 0;
	if (amount->basis != BASIS_OBSERVED)
		return (struct gate_value){ bytes, 0, CUF_UNKNOWN,
					    "host memory was sampled; record with --host=full" };
	return (struct gate_value){ bytes, bytes, bytes, "" };
}

/* The larger of both; what is unknown leaves no upper bound. */
static void take_more(struct gate_value *most, const struct gate_value *value)
{
	bool bounded = most->high != CUF_UNKNOWN && value->high != CUF_UNKNOWN;

	if (value->value != CUF_UNKNOWN && value->value > most->value)
		most->value = value->value;
	if (value->low > most->low)
		most->low = value->low;
	if (!bounded)
		most->high = CUF_UNKNOWN;
	else if (value->high > most->high)
		most->high = value->high;
	if (*value->why)
		most->why = value->why;
}

struct gate_value measure_phase(const struct measured *measured, enum gate_group group,
				bool at_end, const char *phase)
{
	struct gate_value most = unknown;
	struct phase_uses uses;
	bool any = false;

	phase_uses_read(&uses, measured->facts->run, 0, false);
	for (size_t i = 0; i < uses.count; i++) {
		struct gate_value value;
		if (strcmp(uses.items[i].name, phase) != 0)
			continue;
		value = amount_value_of(&uses.items[i].amounts[group], at_end);
		if (!any)
			most = (struct gate_value){ .why = "" };
		any = true;
		take_more(&most, &value);
	}
	phase_uses_free(&uses);
	return most;
}
