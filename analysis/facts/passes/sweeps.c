/* SPDX-License-Identifier: Apache-2.0 */
/* The events of each process, swept: for phases and requests, and for the growth of call sites. */
#include "analysis/facts/passes/passes.h"

#include <stdlib.h>
#include "analysis/measure/framework_map.h"
#include "analysis/growth/growth_ahead.h"
#include "analysis/measure/heap.h"
#include "analysis/measure/peak_note.h"
#include "analysis/base/numbers.h"
#include "analysis/base/parallel.h"
#include "analysis/base/xalloc.h"
#include "analysis/replay/driver_state.h"
#include "analysis/replay/replay.h"

enum {
	STALL_PARTS = 5,   /* a fifth of the time is long */
	WARM_UP_SPANS = 60 /* 5 s of 5 minutes */
};
#define DEVICE_CLOCK_NS 1000ull
#define HOST_CLOCK_NS 10000000ull /* a coarse clock, kept in milliseconds */

/* After the first sweep. Time and hook are those of the newest block, so that a call site is named
 * by its latest use; where it has events, they know that. */
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
			if (block->hook && !site->alloc_count) {
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
	growth->quiet = NULL;
	/* a clock too coarse to tell one request from the next orders nothing */
	if (!quiet->count || quiet->items[quiet->count - 1].time_ns - quiet->items[0].time_ns <
				     quiet->count * 4 * resolution_ns)
		return;
	growth->quiet = quiet;
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
static bool is_failure(const struct facts *facts, uint32_t process)
{
	return (facts->processes[process].end == END_OOM_KILLED &&
		facts->moment.kind != MOMENT_AT) ||
	       (facts->moment.kind == MOMENT_INCIDENT && facts->moment.process == process);
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

/* Each live block counts at its birth. */
static void count_births(struct growth *growth, struct heap_births *births)
{
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
enum layer { LAYER_OF_HOST = GROWTH_DEVICES, LAYERS };

/* What is the same for all processes. */
struct sweeping {
	struct facts *facts;
	const struct facts_options *options;
	const struct moments *moments;
	struct block_memory *memory;
	const struct listener *listener;
	struct swept *swept; /* by process */
	struct site_rows *rows;
};

/* What is followed at the same time as others of its kind. */
struct followed_process {
	const struct sweeping *all;
	uint32_t process;
	struct run_process *from;
	const struct fact_process *fact;
	uint64_t seq;
	struct heap_moment host;
	struct swept *swept;
	struct quiet_marks quiet; /* when none of the requests that the process marked was open */
	const struct liveset *live;
	struct seqs expected;
	struct liveset merged; /* live, where devices have different moments */
	bool is_merged;
	struct growth growth[LAYERS];
};

/* From the recorder's start to the moment. */
static struct survival_time time_observed(const struct followed_process *one)
{
	const struct cuf_header *header = &one->from->reader->header;
	uint64_t time_ns = one->host.time_ns;
	if (time_ns == CUF_UNKNOWN)
		time_ns = stalled_since(one->fact, one->fact->end_ns) - header->start_realtime_ns +
			  header->start_ns;
	/* a program that is judged sooner does in seconds what others do in minutes */
	return (struct survival_time){
		.begin_ns = header->start_ns,
		.end_ns = time_ns,
		.span_least_s = one->all->options->warm_up_s / WARM_UP_SPANS,
	};
}

/* The blocks of each device at its own moment. */
static void merge_live(struct followed_process *one, const uint64_t *seqs, size_t count)
{
	bool exact;
	liveset_init(&one->merged, 0);
	one->is_merged = true;
	for (size_t i = 0; i < count; i++) {
		const struct liveset *live;
		size_t at = 0;
		if (!seqs[i])
			continue;
		live = run_live(one->from, seqs[i], &exact);
		for (const struct cuf_block *block; (block = liveset_next(live, &at));)
			if (fact_live_seq(one->fact, block->device) == seqs[i])
				liveset_put(&one->merged, block);
	}
	one->live = &one->merged;
}

/* What is live at the moment. */
static void take_live(struct followed_process *one)
{
	uint64_t seqs[CUF_DEVICES_MAX + 1];
	size_t count = fact_live_seqs(one->fact, seqs);
	bool exact;

	if (count == 1)
		one->live = run_live(one->from, one->seq, &exact);
	else
		merge_live(one, seqs, count);
}

/* Between the two sweeps: what is live at the moment. */
static void turn_devices(struct followed_process *one)
{
	const struct reader *reader = one->from->reader;

	take_live(one);
	for (unsigned layer = 0; layer < GROWTH_DEVICES; layer++) {
		struct growth *growth = &one->growth[layer];

		take_quiet(growth, &one->quiet, DEVICE_CLOCK_NS);
		add_live(growth, reader, one->live, layer == GROWTH_FRAMEWORK);
		growth_turn(growth);
	}
}

static void end_devices(struct followed_process *one)
{
	const struct reader *reader = one->from->reader;

	for (unsigned layer = 0; layer < GROWTH_DEVICES; layer++) {
		struct growth *growth = &one->growth[layer];
		size_t at = 0;

		growth_end(growth);
		if (layer == GROWTH_DRIVER)
			mark_segments(growth, reader, one->live);
		growth->births = growth_asks_births(growth, DEVICE_CLOCK_NS);
		for (const struct cuf_block *block;
		     growth->births && (block = liveset_next(one->live, &at));)
			if (growth_counts(layer == GROWTH_FRAMEWORK, block->kind) &&
			    block->bytes <= BYTES_SANE)
				birth_of_block(growth, reader, block);
	}
}

/* A wrong answer costs time only. */
static uint32_t leaking_device(const struct followed_process *one)
{
	unsigned ordinal = CUF_DEVICE_NONE;

	for (unsigned layer = 0; layer < GROWTH_DEVICES && ordinal >= CUF_DEVICES_MAX; layer++)
		ordinal = growth_may_leak(&one->growth[layer]);
	return ordinal < CUF_DEVICES_MAX ? one->fact->device_of[ordinal] : FACT_NONE;
}

/*
 * The two sweeps over the events of devices and frameworks. The first finds what others start from:
 * how much the events changed, what the start-up did, the rises and falls of memory, and totals by
 * call site. The second measures phases, requests, and what each site held at the low points.
 */
static void sweep_process(void *context, size_t i)
{
	enum { DRIVER = PHASES_FIRST, HOOKS, MOMENTS, PEAKS, GROWTH, FIRST };
	enum { GROWTH_AGAIN = PHASES_AGAIN, LISTENER, AGAIN = LISTENER + LISTENERS };
	struct followed_process *one = (struct followed_process *)context + i;
	const struct sweeping *all = one->all;
	struct run_process *from = one->from;
	struct growth_devices devices = { from->reader, one->growth, one->seq };
	struct sweep_consumer first[FIRST] = { 0 }, again[AGAIN] = { 0 };
	struct phase_making *phases = phases_begin(all->facts, one->process, &one->quiet, first);

	for (unsigned layer = 0; layer < GROWTH_DEVICES; layer++) {
		growth_init(&one->growth[layer]);
		one->growth[layer].quiet = &one->quiet;
	}
	one->growth[GROWTH_DRIVER].lost_events = from->events->complete_since;
	one->growth[GROWTH_FRAMEWORK].lost_events = from->events->framework->complete_since;
	from->driver = driver_history_new(from->events, one->expected.items, one->expected.count);
	first[DRIVER] = driver_history_consumer(from->driver);
	first[HOOKS] = hooks_consumer(one->swept->hooks);
	first[MOMENTS] = run_expect(from, one->expected.items, one->expected.count);
	if (all->options->all_peaks)
		first[PEAKS] = live_peaks_begin(&from->peaks, from->events);
	first[GROWTH] = growth_first_consumer(&devices);
	sweep_events(from->events, first, FIRST);
	crossings_end(from->crossings);

	phases_turn(phases, again);
	turn_devices(one);
	again[GROWTH_AGAIN] = growth_again_consumer(&devices);
	all->listener->begin(all->listener->state, all->facts, one->process, leaking_device(one),
			     &again[LISTENER]);
	sweep_events(from->events, again, AGAIN);
	phases_end(phases);
	end_devices(one);
}

/* Several processes keep all processors busy; the events of a single one are read ahead. */
static void follow_growth(const struct followed_process *one, struct growth *growth,
			  const struct growth_source *source)
{
	struct growth_ahead *ahead;
	struct growth_source faster;
	const struct run *run = one->all->facts->run;
	if (run->count >= parallel_threads(run->threads)) {
		growth_follow(growth, source);
		return;
	}
	ahead = growth_ahead_begin(source);
	faster = growth_ahead_source(ahead);
	growth_follow(growth, &faster);
	growth_ahead_end(ahead);
}

/* Who else listens while the host's events are read for growth. */
struct host_listener {
	struct followed_process *one;
	const struct reader *reader;
	struct growth *growth;
	struct heap_births *births;
};

/* An event after the moment is undone, unless what was live then is known from a note. */
static void hear_after(void *context, const struct host_event *event)
{
	const struct host_listener *listener = context;
	const struct followed_process *one = listener->one;
	struct sites *sites = &listener->growth->sites;
	struct heap_totals *memory = &one->swept->memory;

	if (!event) {
		if (!one->host.note && one->host.time_ns != CUF_UNKNOWN)
			heap_settle(sites, memory);
		return;
	}
	heap_births_later(listener->births, event);
	if (!one->host.note)
		heap_undo(listener->reader, event, sites, memory);
	if (event->time_ns > one->host.time_ns)
		host_map_after(one->all->facts, one->process, event, &one->swept->maps);
}

static void hear_before(void *context, const struct host_event *event)
{
	const struct host_listener *listener = context;

	heap_births_before(listener->births, event);
}

/* Before the events are read: what is live at their end, or was at the recorder's note. */
static void take_host_live(const struct followed_process *one, struct growth *growth,
			   const struct host_means *means)
{
	const struct reader *reader = one->from->reader;
	struct heap_totals *memory = &one->swept->memory;

	if (!one->host.note) {
		heap_read_end(reader, means, &growth->sites, memory);
		return;
	}
	*memory = heap_totals_of(reader, means);
	peak_note_add(reader, one->host.note, &growth->sites, memory);
}

static void follow_host(struct followed_process *one, struct growth *growth)
{
	const struct reader *reader = one->from->reader;
	struct host_means means = host_means_of(reader, &one->from->meta);
	struct host_listener listener = { one, reader, growth,
					  heap_births_new(reader, &means, one->host.time_ns) };
	struct growth_host state = { .reader = reader,
				     .moment = one->host,
				     .after = hear_after,
				     .before = hear_before,
				     .listener = &listener };
	struct growth_source source = growth_host_source(&state);
	struct heap_totals *memory = &one->swept->memory;
	struct quiet_marks lent = { 0 };
	growth->by_age = true;
	growth->is_sampled = host_means_most(&means) != 0;
	growth->is_failure = is_failure(one->all->facts, one->process);
	growth->threads_most = known_or_zero(one->fact->threads_most);
	growth->time = time_observed(one);
	take_quiet(growth, &one->quiet, HOST_CLOCK_NS);
	if (!growth->quiet) {
		lent = lend_cycles(&one->growth[one->growth[GROWTH_FRAMEWORK].work_cycles
							? GROWTH_FRAMEWORK
							: GROWTH_DRIVER],
				   HOST_CLOCK_NS);
		growth->is_lent = lent.count != 0;
		take_quiet(growth, &lent, HOST_CLOCK_NS);
	}
	take_host_live(one, growth, &means);
	follow_growth(one, growth, &source);
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
		count_births(growth, listener.births);
	if (growth->floor_count)
		growth_pool(growth, reader);
	growth->quiet = NULL;
	heap_births_free(listener.births);
	free(lent.items);
}

/* Up to where a process is followed: its moment, or the peak of the device that it used most. */
static uint64_t last_seq_of(const struct facts *facts, uint32_t process, bool is_peak)
{
	const struct fact_process *fact = &facts->processes[process];
	const struct reader *reader = facts->run->processes[process].reader;
	uint64_t seq = fact->moment_seq, most = 0;
	if (!is_peak)
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

/* After them: it may need the cycles of their work. */
static void follow_host_layer(void *context, size_t i)
{
	struct followed_process *one = (struct followed_process *)context + i;
	growth_init(&one->growth[LAYER_OF_HOST]);
	follow_host(one, &one->growth[LAYER_OF_HOST]);
}

/* Names of roles need symbols, which belong to one thread. */
static void take_rows(struct followed_process *one)
{
	const struct sweeping *all = one->all;

	for (unsigned layer = 0; layer < LAYERS; layer++) {
		site_rows_add(all->rows, all->facts, all->memory, one->process,
			      &one->growth[layer]);
		growth_fini(&one->growth[layer]);
	}
	free(one->quiet.items);
	free(one->expected.items);
	if (one->is_merged)
		liveset_fini(&one->merged);
	run_rest(all->facts->run, one->from);
}

static struct followed_process follow_one(const struct sweeping *all, uint32_t process)
{
	const struct host_moment *host = &all->moments->of_host[process];

	return (struct followed_process){
		.all = all,
		.process = process,
		.from = &all->facts->run->processes[process],
		.fact = &all->facts->processes[process],
		.seq = last_seq_of(all->facts, process, host->is_peak),
		.host = host->at,
		.swept = &all->swept[process],
	};
}

/* Processes first to first + count - 1. */
static void follow_processes(const struct sweeping *all, uint32_t first, uint32_t count)
{
	struct followed_process *some = xalloc_zeroed(count, sizeof *some);
	for (uint32_t i = 0; i < count; i++) {
		some[i] = follow_one(all, first + i);
		seqs_add(&some[i].expected, all->listener->since(all->listener->state, all->facts,
							       first + i));
		moments_expected(all->facts, all->options, all->moments, first + i,
				 &some[i].expected);
	}
	parallel_each(count, all->facts->run->threads, sweep_process, some);
	parallel_each(count, all->facts->run->threads, follow_host_layer, some);
	for (uint32_t i = 0; i < count; i++)
		take_rows(&some[i]);
	free(some);
}

struct swept *build_sites(struct facts *facts, const struct facts_options *options,
			  const struct moments *moments, struct block_memory *memory,
			  const struct listener *listener)
{
	struct swept *swept = xalloc_zeroed(facts->process_count, sizeof *swept);
	struct sweeping all = { facts, options, moments, memory, listener, swept,
				site_rows_new(options->sites_max) };
	uint32_t together = 2 * parallel_threads(facts->run->threads);

	/* a few at a time: what is followed is in memory until its rows are taken */
	for (uint32_t p = 0; p < facts->process_count; p += together)
		follow_processes(&all, p, (uint32_t)least_of(together, facts->process_count - p));
	site_rows_end(all.rows, facts);
	phases_of_incidents(facts);
	return swept;
}
