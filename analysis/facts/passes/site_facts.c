/* SPDX-License-Identifier: Apache-2.0 */
/* leaks[] and growth[]: the live sets by call site, followed through the events. */
#include "analysis/facts/passes/build.h"

#include <math.h>
#include <stdlib.h>
#include "analysis/device/framework_map.h"
#include "analysis/growth/growth_ahead.h"
#include "analysis/host/heap_births.h"
#include "analysis/host/peak_note.h"
#include "analysis/facts/passes/roles.h"
#include "analysis/phases/phases.h"
#include "analysis/base/numbers.h"
#include "analysis/base/parallel.h"
#include "analysis/base/xalloc.h"
#include "analysis/replay/replay.h"

enum {
	ROWS_DEFAULT = 1000,
	STALL_PARTS = 5,   /* a fifth of the time is long */
	WARM_UP_SPANS = 60 /* 5 s of 5 minutes */
};
#define DEVICE_CLOCK_NS 1000ull
#define HOST_CLOCK_NS 10000000ull /* a coarse clock, kept in milliseconds */

struct rows {
	struct fact_site *items;
	size_t count, room, most;
	int (*order)(const void *, const void *);
};

static unsigned rank_of(const struct fact_site *site)
{
	return (unsigned)least_of(site->class, CLASS_GROWING + 1);
}

/* Leaks first, then what grows, then the others, each by size. Ties are broken, so that reports are
 * the same every time. */
static int by_bytes(const void *a, const void *b)
{
	const struct fact_site *left = a, *right = b;
	if (rank_of(left) != rank_of(right))
		return compare_numbers(rank_of(left), rank_of(right));
	if (left->bytes != right->bytes)
		return compare_numbers(right->bytes, left->bytes);
	if (left->process != right->process)
		return compare_numbers(left->process, right->process);
	return compare_numbers(left->stack.id, right->stack.id);
}

/* What grew most comes first. */
static int by_growth(const void *a, const void *b)
{
	const struct fact_site *left = a, *right = b;
	if (left->grown_bytes != right->grown_bytes)
		return compare_numbers(right->grown_bytes, left->grown_bytes);
	return by_bytes(a, b);
}

/* Only the first `most` rows are kept; sorting them out now and then keeps millions of sites from
 * piling up. */
static void cut(struct rows *rows)
{
	if (rows->count)
		qsort(rows->items, rows->count, sizeof *rows->items, rows->order);
	rows->count = least_of(rows->count, rows->most);
}

/* The list is cut when it is four times too long, so a call costs constant time on average. */
static void add_row(struct rows *rows, const struct fact_site *row)
{
	if (rows->count >= 4 * rows->most)
		cut(rows);
	xalloc_grow(&rows->items, rows->count, &rows->room, sizeof *row);
	rows->items[rows->count++] = *row;
}

/* Only sampled host sites have a variance. The others are exact. */
static void fill_interval(const struct site *site, struct fact_site *row)
{
	struct host_estimate estimate = { (double)site->live_bytes, site->live_variance,
					  site->live_third };
	struct host_interval interval = host_estimate_interval(&estimate, 0);
	
	row->low_bytes = row->high_bytes = row->bytes;
	if (site->live_variance > 0) {
		row->low_bytes = host_whole(interval.low);
		row->high_bytes = host_whole(interval.high);
	}
}

/* Call sites with live memory go to `live`, those that hold more than at the first event to
 * `grown`; many are in both. */
static void add_rows(struct build *build, uint32_t process, const struct growth *growth,
		     struct rows *live, struct rows *grown)
{
	const struct reader *reader = build->run->processes[process].reader;
	for (size_t i = 0; i < growth->sites.count; i++) {
		const struct site *site = &growth->sites.items[i];
		struct fact_site row;
		uint64_t last_ns;

		if ((!site->live_count && site->net_bytes <= 0) || site->live_bytes > BYTES_SANE)
			continue;
		growth_judge(growth, site, &row);
		fill_interval(site, &row);
		row.stack.process = row.process = process;
		row.pid = reader->header.pid;
		row.device = FACT_NONE;
		if (site->device != CUF_DEVICE_NONE)
			row.device = group_of(build, process, site->device);
		row.api = hook_name(build, process, site->label ? site->label : site->hook);
		last_ns = site->last_ns;
		if (last_ns == CUF_UNKNOWN)
			last_ns = reader->header.start_ns;
		stack_fill(build, &row.stack, last_ns);
		if (row.kind == CUF_KIND_HOST)
			managed_owner(build, &row);
		if (row.device != FACT_NONE) {
			struct role role = role_of_site(build, process, site->role, site->stack,
							site->first_ns);
			row.role = role.name;
			row.role_basis = role.basis;
		}
		row.first_ns = reader_realtime(reader, site->first_ns);
		row.last_ns = reader_realtime(reader, site->last_ns);
		if (site->live_count)
			add_row(live, &row);
		if (site->net_bytes > 0)
			add_row(grown, &row);
	}
}

/* Time and hook are those of the newest block, so that a call site is named by its latest use. */
static void add_live(struct growth *growth, const struct reader *reader, const struct liveset *live,
		     bool framework)
{
	size_t at = 0;
	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		struct site *site;
		if (!growth_counts(framework, block->kind) || block->bytes > BYTES_SANE)
			continue;
		site = sites_get(&growth->sites, block->kind, block->device,
				 reader_call_site(reader, block->stack));
		site->live_bytes += block->bytes;
		site->live_count++;
		if (block->role)
			site->role = block->role;
		if (block->time_ns < site->first_ns)
			site->first_ns = block->time_ns;
		if (site->last_ns == CUF_UNKNOWN || block->time_ns > site->last_ns) {
			site->last_ns = block->time_ns;
			if (block->hook) {
				site->hook = block->hook;
				site->label = block->label;
			}
		}
	}
}

/* A bit for each device on which a framework holds blocks. */
static unsigned framework_devices(const struct liveset *live)
{
	unsigned devices = 0;
	size_t at = 0;
	for (const struct cuf_block *block; (block = liveset_next(live, &at));)
		if (block->kind == CUF_KIND_FRAMEWORK && block->device < CUF_DEVICES_MAX)
			devices |= 1u << block->device;
	return devices;
}

/* The sites whose blocks a framework's blocks lie in; of mapped memory, all that create such
 * memory. */
static void mark_segments(struct growth *growth, const struct reader *reader,
			  const struct liveset *live)
{
	struct framework_map map;
	for (unsigned devices = framework_devices(live); devices; devices &= devices - 1) {
		unsigned device = (unsigned)__builtin_ctz(devices);
		bool mapped = false;
		framework_map_make(&(struct device_blocks){ reader, live, device, FACT_NONE },
				   &map);
		for (size_t i = 0; i < map.range_count; i++)
			if (map.ranges[i].count && map.ranges[i].kind == CUF_KIND_MAPPING)
				mapped = true;
			else if (map.ranges[i].count)
				sites_get(&growth->sites, map.ranges[i].kind, device,
					  map.ranges[i].stack)
					->holds_blocks = true;
		for (size_t i = 0; mapped && i < growth->sites.count; i++)
			if (growth->sites.items[i].kind == CUF_KIND_VMM &&
			    growth->sites.items[i].device == device)
				growth->sites.items[i].holds_blocks = true;
		framework_map_fini(&map);
	}
}

static void take_quiet(struct growth *growth, const struct quiet_marks *quiet,
		       uint64_t resolution_ns)
{
	/* a clock too coarse to tell one request from the next orders nothing */
	if (!quiet->count || quiet->items[quiet->count - 1].time_ns - quiet->items[0].time_ns <
				     quiet->count * 4 * resolution_ns)
		return;
	growth->quiet = quiet->items;
	growth->quiet_count = quiet->count;
	growth->requests = quiet->requests;
}

/*
 * A server whose requests take only GPU memory has no cycles in host memory, where it may leak all
 * the same: the low points of its GPU memory are between its requests. The items are in the heap.
 */
static struct quiet_marks lend_cycles(const struct growth *from, uint64_t resolution_ns)
{
	struct quiet_marks lent = { .requests = from->work_cycles };
	if (from->work_cycles < CYCLES_MIN)
		return lent;
	lent.items = xalloc_zeroed(from->mark_count, sizeof *lent.items);
	/* the other clock is coarse: of moments that it cannot order, one is enough */
	for (size_t i = 0; i < from->mark_count; i++)
		if (!lent.count || from->marks[i].time_ns >=
					   lent.items[lent.count - 1].time_ns + 4 * resolution_ns)
			lent.items[lent.count++] = from->marks[i];
	return lent;
}

static void birth_of_block(struct growth *growth, const struct reader *reader,
			   const struct cuf_block *block)
{
	struct site *site = sites_get(&growth->sites, block->kind, block->device,
				      reader_call_site(reader, block->stack));

	growth_birth(growth, site, &(struct growth_block){ block->bytes, block->time_ns, 0 });
}

/* Whether memory ran out at the moment that is reported. */
static bool is_failure(const struct build *build, uint32_t process)
{
	return (build->facts->processes[process].end == END_OOM_KILLED &&
		build->moment.kind != MOMENT_AT) ||
	       (build->moment.kind == MOMENT_INCIDENT && build->moment.process == process);
}

/* A sample of a process that stands at its limit: the cgroup is as full as it ever was, and the
 * process holds what it holds at the end. */
static bool is_at_limit(const struct fact_sample *sample, const struct fact_sample *last,
			uint64_t most_bytes)
{
	return sample->cgroup_bytes != CUF_UNKNOWN && sample->host_live_bytes != CUF_UNKNOWN &&
	       sample->cgroup_bytes >= most_bytes - most_bytes / 20 &&
	       sample->host_live_bytes >= last->host_live_bytes - last->host_live_bytes / 200;
}

/*
 * Before the kernel kills, it looks for pages that it can take from others, and the process waits
 * for each. Nothing grows in that time, so it does not count where it is long. Returns when it
 * began; end_ns: it was short, or the process was not killed.
 */
static uint64_t stalled_since(const struct fact_process *process, uint64_t end_ns)
{
	const struct fact_sample *samples = process->timeline;
	size_t count = process->timeline_count, at = count;
	uint64_t most_bytes = 0, since_ns;

	if (process->end != END_OOM_KILLED || !count ||
	    samples[count - 1].host_live_bytes == CUF_UNKNOWN)
		return end_ns;
	for (size_t i = 0; i < count; i++)
		if (samples[i].cgroup_bytes != CUF_UNKNOWN)
			most_bytes = most_of(samples[i].cgroup_bytes, most_bytes);
	while (at && is_at_limit(&samples[at - 1], &samples[count - 1], most_bytes))
		at--;
	if (at == count)
		return end_ns;
	since_ns = samples[at].time_ns;
	if (subtract_to_zero(end_ns, since_ns) * STALL_PARTS <
	    subtract_to_zero(end_ns, process->start_ns))
		return end_ns;
	return since_ns;
}

/* From the recorder's start to the moment. */
static struct survival_time time_observed(const struct build *build, uint32_t process,
					  uint64_t time_ns)
{
	const struct cuf_header *header = &build->run->processes[process].reader->header;
	const struct fact_process *facts = &build->facts->processes[process];
	if (time_ns == CUF_UNKNOWN)
		time_ns = stalled_since(facts, facts->end_ns) - header->start_realtime_ns +
			  header->start_ns;
	/* a program that is judged sooner does in seconds what others do in minutes */
	return (struct survival_time){ .begin_ns = header->start_ns, .end_ns = time_ns,
				       .span_least_s = build->options.warm_up_s / WARM_UP_SPANS };
}

/* Each live block counts at its birth. */
static void count_births(struct growth *growth, const struct reader *reader,
			 const struct host_means *means, const struct heap_moment *moment)
{
	struct heap_births *births = heap_births_new(reader, means, moment);
	struct heap_birth row[SITES_ROW];
	struct site_key keys[SITES_ROW];
	uint32_t sites[SITES_ROW];
	for (size_t count; (count = heap_births_next(births, row));) {
		for (size_t i = 0; i < count; i++)
			keys[i] = (struct site_key){ row[i].stack, CUF_KIND_HOST,
						     CUF_DEVICE_NONE };
		sites_get_row(&growth->sites, keys, count, sites);
		for (size_t i = 0; i < count; i++)
			growth_birth(growth, &growth->sites.items[sites[i]],
				     &(struct growth_block){ row[i].bytes, row[i].birth_ns,
							     row[i].variance });
	}
	heap_births_free(births);
}

/* Before the oldest event that was kept, the recorder's own maximum is all that is known. */
static void take_recorded_peak(const struct cuf_header *header, const struct heap_moment *moment,
			       struct heap_totals *memory)
{
	uint64_t most = header->host_peak_bytes;
	if (!header->host_overwritten || !most || most > BYTES_SANE ||
	    header->host_peak_ns < header->start_ns)
		return;
	if (!moment->note && moment->time_ns != CUF_UNKNOWN &&
	    header->host_peak_ns > moment->time_ns)
		return;
	if (memory->peak_bytes != CUF_UNKNOWN && memory->peak_bytes >= most)
		return;
	memory->peak_bytes = most;
	memory->peak_ns = header->host_peak_ns;
}

/* What was live at the highest moment is what is live now, and what was freed in between. */
static void note_peak(const struct growth *growth, struct heap_totals *memory)
{
	uint64_t live = host_whole(memory->bytes.value + memory->python_bytes.value);
	if (!growth->events)
		return;
	memory->peak_bytes = live;
	memory->peak_ns = growth->highest_ns;
	if (growth->highest_bytes > growth->total_bytes)
		memory->peak_bytes = live + (uint64_t)growth->highest_bytes -
				     (uint64_t)growth->total_bytes;
}

/*
 * The three layers of a process are followed by themselves: the driver and a framework have rings
 * of their own, and so has the host.
 */
enum layer { LAYER_OF_DRIVER, LAYER_OF_FRAMEWORK, LAYER_OF_HOST, LAYERS };

/* What is followed at the same time as others of its kind. */
struct followed_process {
	struct build *build;
	uint32_t process;
	uint64_t seq;
	struct heap_moment host;
	const struct liveset *live;
	struct liveset merged; /* live, where devices have different moments */
	bool is_merged;
	struct growth growth[LAYERS];
};

/* When none of the requests that the process marked was open. */
static const struct quiet_marks *quiet_of(const struct followed_process *one)
{
	return &one->build->quiet[one->process];
}

/* Call sites of the driver's blocks, or of those of a framework. */
static void follow_device(struct followed_process *one, struct growth *growth, bool framework)
{
	struct run_process *recorded = &one->build->run->processes[one->process];
	struct growth_device state = { .events = recorded->events,
				       .seq = one->seq,
				       .framework = framework };
	struct growth_source source;
	size_t at = 0;
	if (framework)
		state.events = recorded->events->framework;
	source = growth_device_source(&state);
	growth->is_cut = state.events->complete_since != 0;
	take_quiet(growth, quiet_of(one), DEVICE_CLOCK_NS);
	add_live(growth, recorded->reader, one->live, framework);
	growth_follow(growth, &source);
	if (!framework)
		mark_segments(growth, recorded->reader, one->live);
	growth->births = growth_asks_births(growth, DEVICE_CLOCK_NS);
	for (const struct cuf_block *block;
	     growth->births && (block = liveset_next(one->live, &at));)
		if (growth_counts(framework, block->kind) && block->bytes <= BYTES_SANE)
			birth_of_block(growth, recorded->reader, block);
	reader_drop(recorded->reader, state.events->ring);
}

/* Several processes keep all processors busy; the events of a single one are read ahead. */
static void follow(const struct followed_process *one, struct growth *growth,
		   const struct growth_source *source)
{
	struct growth_ahead *ahead;
	struct growth_source faster;
	if (one->build->run->count >= parallel_threads(one->build->options.threads)) {
		growth_follow(growth, source);
		return;
	}
	ahead = growth_ahead_begin(source);
	faster = growth_ahead_source(ahead);
	growth_follow(growth, &faster);
	growth_ahead_end(ahead);
}

static void follow_host(struct followed_process *one, struct growth *growth)
{
	const struct run_process *recorded = &one->build->run->processes[one->process];
	const struct reader *reader = recorded->reader;
	struct growth_host state = { .reader = reader,
				     .time_ns = one->host.time_ns,
				     .events = one->host.events };
	struct growth_source source = growth_host_source(&state);
	struct host_means means = host_means_of(reader, &recorded->meta);
	struct heap_totals *memory = &one->build->host_memory[one->process];
	struct quiet_marks lent = { 0 };
	growth->by_age = true;
	growth->is_sampled = host_means_most(&means) != 0;
	growth->is_failure = is_failure(one->build, one->process);
	growth->threads_most =
		known_or_zero(one->build->facts->processes[one->process].threads_most);
	growth->time = time_observed(one->build, one->process, one->host.time_ns);
	take_quiet(growth, quiet_of(one), HOST_CLOCK_NS);
	if (!growth->quiet) {
		lent = lend_cycles(&one->growth[one->growth[LAYER_OF_FRAMEWORK].work_cycles
							? LAYER_OF_FRAMEWORK
							: LAYER_OF_DRIVER],
				   HOST_CLOCK_NS);
		growth->is_lent = lent.count != 0;
		take_quiet(growth, &lent, HOST_CLOCK_NS);
	}
	if (one->host.note) {
		*memory = heap_totals_of(reader, &means);
		peak_note_add(reader, one->host.note, &growth->sites, memory);
	} else {
		heap_read(reader, &means, &one->host, &growth->sites, memory);
	}
	follow(one, growth, &source);
	if (state.stream)
		growth->time.events_ns = most_of(growth->time.events_ns,
						 host_stream_complete_ns(state.stream));
	host_stream_free(state.stream);
	if (memory->known && !one->host.note)
		note_peak(growth, memory);
	if (memory->known)
		take_recorded_peak(&reader->header, &one->host, memory);
	growth->births = one->host.time_ns == CUF_UNKNOWN &&
			 growth_asks_births(growth, HOST_CLOCK_NS);
	if (growth->births || growth->floor_count)
		count_births(growth, reader, &means, &one->host);
	if (growth->floor_count)
		growth_pool(growth, reader);
	growth->quiet = NULL;
	free(lent.items);
}

/* The blocks of each device at its own moment. */
static void merge_live(struct followed_process *one, const uint64_t *seqs, size_t count)
{
	const struct fact_process *process = &one->build->facts->processes[one->process];
	bool exact;
	liveset_init(&one->merged, 0);
	one->is_merged = true;
	for (size_t i = 0; i < count; i++) {
		const struct liveset *live;
		size_t at = 0;
		if (!seqs[i])
			continue;
		live = run_live(&one->build->run->processes[one->process], seqs[i], &exact);
		for (const struct cuf_block *block; (block = liveset_next(live, &at));)
			if (fact_live_seq(process, block->device) == seqs[i])
				liveset_put(&one->merged, block);
	}
	one->live = &one->merged;
}

/* What all layers of a process need. */
static void prepare_process(void *context, size_t i)
{
	struct followed_process *one = (struct followed_process *)context + i;
	uint64_t seqs[CUF_DEVICES_MAX + 1];
	size_t count = fact_live_seqs(&one->build->facts->processes[one->process], seqs);
	bool exact;
	if (count == 1)
		one->live = run_live(&one->build->run->processes[one->process], one->seq, &exact);
	else
		merge_live(one, seqs, count);
}

/* Up to where a process is followed: its moment, or the peak of the device that it used most. */
static uint64_t last_seq_of(const struct build *build, uint32_t process)
{
	const struct fact_process *fact = &build->facts->processes[process];
	const struct reader *reader = build->run->processes[process].reader;
	uint64_t seq = fact->moment_seq, most = 0;
	if (build->options.at != FACTS_AT_PEAK)
		return seq;
	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++) {
		const struct cuf_device *device = reader_at(reader, CUF_SEC_DEVICES, d);
		if (device && device->present && device->peak_bytes > most) {
			most = device->peak_bytes;
			seq = fact->live.device_seq[d];
		}
	}
	return seq;
}

/* Piece i of the two layers of devices of all these processes. */
static void follow_layer(void *context, size_t i)
{
	struct followed_process *one = (struct followed_process *)context + i / LAYER_OF_HOST;
	enum layer layer = i % LAYER_OF_HOST;
	growth_init(&one->growth[layer]);
	follow_device(one, &one->growth[layer], layer == LAYER_OF_FRAMEWORK);
}

/* After them: it may need the cycles of their work. */
static void follow_host_layer(void *context, size_t i)
{
	struct followed_process *one = (struct followed_process *)context + i;
	growth_init(&one->growth[LAYER_OF_HOST]);
	follow_host(one, &one->growth[LAYER_OF_HOST]);
}

/* Names of roles need symbols, which belong to one thread. */
static void take_rows(struct followed_process *one, struct rows *live, struct rows *grown)
{
	for (unsigned layer = 0; layer < LAYERS; layer++) {
		add_rows(one->build, one->process, &one->growth[layer], live, grown);
		growth_fini(&one->growth[layer]);
	}
	if (one->is_merged)
		liveset_fini(&one->merged);
	run_rest(one->build->run, &one->build->run->processes[one->process]);
}

/* Processes first to first + count - 1. */
static void follow_processes(struct build *build, uint32_t first, uint32_t count,
			     struct rows *live, struct rows *grown)
{
	struct followed_process *all = xalloc_zeroed(count, sizeof *all);
	for (uint32_t i = 0; i < count; i++)
		all[i] = (struct followed_process){
			.build = build,
			.process = first + i,
			.seq = last_seq_of(build, first + i),
			.host = host_moment_of(build, first + i),
		};
	parallel_each(count, build->options.threads, prepare_process, all);
	parallel_each(count * LAYER_OF_HOST, build->options.threads, follow_layer, all);
	parallel_each(count, build->options.threads, follow_host_layer, all);
	for (uint32_t i = 0; i < count; i++)
		take_rows(&all[i], live, grown);
	free(all);
}

/* Moves the rows from the heap into the arena. */
static struct fact_site *settle(struct build *build, struct rows *rows, size_t *count)
{
	struct fact_site *kept;
	cut(rows);
	*count = rows->count;
	kept = arena_copy(build->arena, rows->items, *count, sizeof *kept);
	free(rows->items);
	return kept;
}

void build_sites(struct build *build)
{
	struct rows live = { .most = ROWS_DEFAULT, .order = by_bytes };
	struct rows grown = { .most = ROWS_DEFAULT, .order = by_growth };
	uint32_t together = 2 * parallel_threads(build->options.threads);

	if (build->options.sites_max)
		live.most = grown.most = build->options.sites_max;
	
	/* a few at a time: what is followed is in memory until its rows are taken */
	for (uint32_t p = 0; p < build->run->count; p += together)
		follow_processes(build, p, least_of(together, build->run->count - p), &live,
				 &grown);
	build->facts->leaks = settle(build, &live, &build->facts->leak_count);
	build->facts->growth = settle(build, &grown, &build->facts->growth_count);
}
