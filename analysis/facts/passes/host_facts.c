/* SPDX-License-Identifier: Apache-2.0 */
/* struct fact_host beyond malloc's live blocks: statistics of allocators, what resident memory is
 * made of, whether free memory is fragmented or only cached, who pins it, what would release it. */
#include "analysis/facts/passes/passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/symbols/frameworks.h"
#include "analysis/measure/allocator_stats.h"
#include "analysis/measure/heap.h"
#include "analysis/measure/pins.h"
#include "analysis/base/numbers.h"
#include "analysis/base/parallel.h"
#include "analysis/base/key_values.h"

enum { PINS_MAX = 8, ARENAS_MANY = 8 };
#define NOTABLE_BYTES (16ull << 20) /* below this nobody looks for where memory went */
#define NOTABLE_SHARE 0.3 /* of what the allocator holds */

/* ---- maps ---- */

/* Bounds of an estimate may be lower than what is subtracted; they end at 0. */
static void take_off(uint64_t *figure, uint64_t bytes)
{
	if (*figure != CUF_UNKNOWN)
		*figure = subtract_to_zero(*figure, bytes);
}

/* Maps are host blocks in the recording; in the report malloc is malloc. */
static void fill_maps(const struct facts *facts, uint32_t process, const struct fact_maps *after,
		      const char *memory, struct fact_host *host)
{
	struct fact_maps maps = host_maps_at(facts, process, after);
	uint64_t bytes, count;

	host->maps = (struct fact_maps){ CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN,
					 CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN,
					 CUF_UNKNOWN, CUF_UNKNOWN };
	bytes = maps.anonymous_bytes + maps.file_bytes + maps.shared_bytes;
	count = maps.anonymous_count + maps.file_count + maps.shared_count;
	if (!count && key_number(memory, "mapped_anonymous_bytes") == CUF_UNKNOWN)
		return;
	host->maps = maps;
	host->maps.given_back_bytes = key_number(memory, "given_back_bytes");
	take_off(&host->malloc_live_bytes, bytes);
	take_off(&host->malloc_low_bytes, bytes);
	take_off(&host->malloc_high_bytes, bytes);
	take_off(&host->malloc_live_count, count);
	take_off(&host->malloc_low_count, count);
	take_off(&host->malloc_high_count, count);
}

/* ---- what is resident ---- */

struct host_rows {
	struct fact_host_row *items;
	size_t count;
};

/* Rows of 0 bytes, or of unknown size, are left out. */
static void add_row(struct host_rows *rows, enum fact_host_part part, uint64_t bytes,
		    enum fact_basis basis)
{
	if (bytes && bytes != CUF_UNKNOWN)
		rows->items[rows->count++] = (struct fact_host_row){ part, bytes, basis };
}

/* At most what is left. */
static uint64_t take(uint64_t *left, uint64_t bytes)
{
	bytes = least_of(bytes, *left);
	*left -= bytes;
	return bytes;
}

/*
 * Anonymous memory: the allocator's figures are of addresses, of which some were never touched. So
 * where they are more than is resident, blocks with a map of their own give way first, then what is
 * free, then the rest.
 */
static void add_anonymous(struct host_rows *rows, uint64_t resident, bool is_old,
			  struct fact_allocator *allocator, const struct fact_host *host)
{
	uint64_t live = known_or_zero(host->malloc_live_bytes), left = resident;
	uint64_t cached = 0, own = 0, fragmented = 0, mapped = 0, excess, cut;
	enum fact_basis basis = host->malloc_basis, split;
	uint64_t arenas = known_or_zero(host->python_arena_bytes), objects;

	if (allocator) {
		cached = known_or_zero(allocator->cached_bytes);
		own = known_or_zero(allocator->own_bytes);
		fragmented = known_or_zero(allocator->fragmented_bytes);
		mapped = known_or_zero(allocator->mapped_bytes);
	}
	/* The allocator's count of live bytes is exact; without it, recorded blocks are used. */
	if (allocator && allocator->live_bytes != CUF_UNKNOWN &&
	    (!is_old || allocator->live_bytes > live)) {
		live = allocator->live_bytes;
		basis = BASIS_OBSERVED;
	}

	excess = subtract_to_zero(live + cached + own + fragmented, resident);
	if (excess) {
		cut = least_of(mapped, excess);
		live -= least_of(cut, live);
		cut = least_of(excess - cut, cached);
		cached -= cut;
		basis = BASIS_ESTIMATED;
		if (cut) { /* glibc counts what malloc_trim returned as free */
			allocator->cached_bytes = cached;
			allocator->retained_bytes = known_or_zero(allocator->retained_bytes) + cut;
		}
	}
	split = basis;
	if (allocator && allocator->split_basis == BASIS_ESTIMATED)
		split = BASIS_ESTIMATED;
	add_row(rows, PART_LIVE, take(&left, live), basis);
	add_row(rows, PART_FRAGMENTED, take(&left, fragmented), split);
	add_row(rows, PART_CACHED, take(&left, cached), split);
	add_row(rows, PART_ALLOCATOR, take(&left, own), basis);
	objects = take(&left, known_or_zero(host->python_live_bytes));
	add_row(rows, PART_OBJECTS, objects, host->malloc_basis);
	add_row(rows, PART_PYTHON, take(&left, subtract_to_zero(arenas, objects)), BASIS_INFERRED);
	if (host->maps.anonymous_bytes != CUF_UNKNOWN)
		add_row(rows, PART_MAPS, take(&left, host->maps.anonymous_bytes -
						     host->maps.python_bytes), BASIS_ESTIMATED);
	add_row(rows, PART_OTHER, left, BASIS_OBSERVED);
}

/* What this process made of the shared memory in its address space has call sites, as maps have. */
static void add_shared(struct host_rows *rows, uint64_t shared, const struct fact_host *host)
{
	uint64_t made;

	if (shared == CUF_UNKNOWN)
		return;
	made = take(&shared, known_or_zero(host->maps.shared_bytes));
	for (size_t i = 0; made && i < rows->count; i++)
		if (rows->items[i].part == PART_MAPS) {
			rows->items[i].bytes += made;
			made = 0;
		}
	add_row(rows, PART_MAPS, made, BASIS_ESTIMATED);
	add_row(rows, PART_SHARED, shared, BASIS_OBSERVED);
}

/*
 * A process that was killed, or whose allocator cannot be asked at the end, has a reading of some
 * time before, and a later sample of the sum: what came and went in between is anonymous.
 */
static uint64_t with_later(uint64_t anonymous, const char *memory, uint64_t sampled_bytes)
{
	uint64_t then = key_number(memory, "rss_bytes");

	if (then == CUF_UNKNOWN || sampled_bytes == CUF_UNKNOWN)
		return anonymous;
	return subtract_to_zero(anonymous + sampled_bytes, then);
}

/*
 * All rows are of one reading of the address space, so they sum to what was resident then, or to
 * the later sampled_bytes, if that is known.
 */
static void fill_rows(const struct facts *facts, const char *memory, uint64_t sampled_bytes,
		      struct fact_allocator *allocator, struct fact_host *host)
{
	struct host_rows rows = { arena_zeroed(facts->arena, PART_MAX, sizeof *rows.items), 0 };
	uint64_t anonymous, resident;
	host->swap_bytes = key_number(memory, "swap_bytes");
	if (key_number(memory, "whole") != 1)
		return;
	host->mapped_file_bytes = key_number(memory, "file_bytes");
	anonymous = known_or_zero(key_number(memory, "heap_bytes")) +
		    known_or_zero(key_number(memory, "anonymous_bytes"));
	resident = with_later(anonymous, memory, sampled_bytes);
	/* by a sixteenth: the recorded blocks are of the moment */
	add_anonymous(&rows, resident, resident > anonymous + anonymous / 16, allocator, host);
	add_row(&rows, PART_STACK, key_number(memory, "stack_bytes"), BASIS_OBSERVED);
	add_row(&rows, PART_FILES, host->mapped_file_bytes, BASIS_OBSERVED);
	add_row(&rows, PART_FILES_PRIVATE, key_number(memory, "file_private_bytes"),
		BASIS_OBSERVED);
	add_shared(&rows, key_number(memory, "shared_bytes"), host);
	add_row(&rows, PART_RECORDER, key_number(memory, "recorder_bytes"), BASIS_OBSERVED);
	host->rows = rows.items;
	host->row_count = rows.count;
	host->rss_bytes = 0; /* of that moment, to the byte, so that the rows sum to it */
	for (size_t i = 0; i < rows.count; i++)
		host->rss_bytes += rows.items[i].bytes;
	if (host->rss_peak_bytes == CUF_UNKNOWN || host->rss_peak_bytes < host->rss_bytes)
		host->rss_peak_bytes = host->rss_bytes;
}

/* Statistics and memory are read one after the other. */
static uint64_t apart_ns(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

/* ---- the verdict ---- */

/* Fragmented: free memory between live blocks that cannot be returned. Cached: free memory that
 * the allocator could return. */
static enum fact_host_verdict judge(const struct fact_allocator *allocator)
{
	uint64_t held, cached, fragmented;
	if (!allocator || allocator->live_bytes == CUF_UNKNOWN ||
	    allocator->fragmented_bytes == CUF_UNKNOWN)
		return HOST_UNKNOWN;
	cached = known_or_zero(allocator->cached_bytes);
	fragmented = allocator->fragmented_bytes;
	held = allocator->live_bytes + cached + fragmented;
	if (fragmented >= cached && fragmented >= NOTABLE_BYTES &&
	    (double)fragmented >= NOTABLE_SHARE * (double)held)
		return HOST_FRAGMENTED;
	if (cached >= NOTABLE_BYTES && (double)cached >= NOTABLE_SHARE * (double)held)
		return HOST_CACHED;
	return HOST_FINE;
}

/* Changes of the program come first, then settings. */
static void fill_advice(const struct facts *facts, const struct fact_allocator *allocator,
			struct fact_host *host)
{
	struct fact_host_advice *advice = arena_zeroed(facts->arena, FIX_MAX, sizeof *advice);
	bool glibc = allocator && !strcmp(allocator->name, "glibc");
	host->advice = advice;
	if (host->verdict != HOST_FRAGMENTED && host->verdict != HOST_CACHED)
		return;
	if (host->verdict == HOST_FRAGMENTED)
		advice[host->advice_count++] =
			(struct fact_host_advice){ FIX_SEPARATE, allocator->fragmented_bytes };
	if (glibc && allocator->cached_bytes >= NOTABLE_BYTES)
		advice[host->advice_count++] = (struct fact_host_advice){ FIX_TRIM,
									  allocator->cached_bytes };
	if (glibc && allocator->arena_count != CUF_UNKNOWN && allocator->arena_count >= ARENAS_MANY)
		advice[host->advice_count++] = (struct fact_host_advice){ FIX_ARENAS, CUF_UNKNOWN };
	if (glibc && host->verdict == HOST_FRAGMENTED)
		advice[host->advice_count++] = (struct fact_host_advice){ FIX_JEMALLOC,
									  CUF_UNKNOWN };
	if (!strcmp(allocator->name, "jemalloc") && host->verdict == HOST_CACHED)
		advice[host->advice_count++] = (struct fact_host_advice){ FIX_DECAY,
									  allocator->cached_bytes };
}

/* Call sites whose blocks keep pages alive that are otherwise free. */
static void fill_pins(const struct facts *facts, uint32_t process, uint64_t fragmented_bytes,
		      struct fact_host *host)
{
	const struct reader *reader = facts->run->processes[process].reader;
	struct host_means means = host_means_of(reader, &facts->run->processes[process].meta);
	struct fact_host_pin *kept;
	struct host_pin *pins;
	bool sampled = reader->header.options_host_mode == CUF_HOST_SAMPLED;
	size_t count = host_pins_find(reader, &means, fragmented_bytes, PINS_MAX, &pins);
	host->pins = kept = arena_zeroed(facts->arena, count, sizeof *kept);
	host->pin_count = count;
	for (size_t i = 0; i < count; i++) {
		kept[i] = (struct fact_host_pin){
			.stack = { .process = process, .id = pins[i].stack },
			.open_bytes = pins[i].open_bytes,
			.bytes = pins[i].bytes,
			.count = pins[i].count,
			.basis = basis_if_exact(!sampled),
		};
		stack_fill(facts, &kept[i].stack, reader->header.start_ns);
	}
	free(pins);
}

/* ---- malloc, page-locked memory, samples ---- */

/* A sampler saw the bytes of every allocation, but counted only the calls that it recorded. */
static void count_calls(const struct reader *reader, uint64_t threads_most, struct fact_host *host)
{
	for (uint64_t i = 0; i < reader_count(reader, CUF_SEC_THREADS); i++) {
		const struct cuf_thread *thread = reader_at(reader, CUF_SEC_THREADS, i);
		host->recorded_alloc_count += thread->host_allocs;
		host->recorded_free_count += thread->host_frees;
		host->thread_count += thread->host_allocs > 0;
		host->alloc_bytes += thread->host_alloc_bytes;
	}
	/* the slots of threads that ended are used again when there is no other */
	host->thread_count = least_of(host->thread_count, threads_most);
	host->alloc_count = host->free_count = CUF_UNKNOWN;
	if (reader->header.options_host_mode == CUF_HOST_FULL) {
		host->alloc_count = host->recorded_alloc_count;
		host->free_count = host->recorded_free_count;
	}
	if (reader->header.options_host_mode == CUF_HOST_OFF)
		host->alloc_bytes = CUF_UNKNOWN;
}

/* What malloc has live, as build_sites measured it on its way. */
static void fill_malloc(const struct reader *reader, const struct heap_totals *memory,
			struct fact_host *host)
{
	struct host_interval bytes, count;

	host->malloc_live_bytes = host->malloc_low_bytes = host->malloc_high_bytes = CUF_UNKNOWN;
	host->malloc_live_count = host->malloc_low_count = host->malloc_high_count = CUF_UNKNOWN;
	host->live_peak_bytes = host->live_peak_ns = CUF_UNKNOWN;
	if (!memory->known)
		return;
	host->live_peak_bytes = memory->peak_bytes;
	if (is_known(memory->peak_ns))
		host->live_peak_ns = reader_realtime(reader, memory->peak_ns);
	bytes = host_estimate_interval(&memory->bytes, (double)memory->mean_bytes);
	count = host_estimate_interval(&memory->count, memory->mean_bytes ? INFINITY : 0);
	host->malloc_live_bytes = host_whole(memory->bytes.value);
	host->malloc_live_count = host_whole(memory->count.value);
	host->malloc_basis = basis_if_exact(!memory->estimated);
	host->malloc_low_bytes = host_whole(bytes.low);
	host->malloc_high_bytes = host_whole(bytes.high);
	host->malloc_low_count = host_whole(count.low);
	host->malloc_high_count = isinf(count.high) ? CUF_UNKNOWN : host_whole(count.high);
}

/* Objects of CPython's allocator. Their arenas are not blocks, unless objects are not recorded. */
static void fill_python(const struct reader *reader, const struct heap_totals *memory,
			struct fact_host *host)
{
	host->python_live_bytes = host->python_live_count = CUF_UNKNOWN;
	host->python_arena_bytes = host->maps.python_bytes;
	if (reader->header.python_arena_bytes)
		host->python_arena_bytes = reader->header.python_arena_bytes;
	if (!memory->known || !reader->header.python_objects_ns)
		return;
	host->python_live_bytes = host_whole(memory->python_bytes.value);
	host->python_live_count = host_whole(memory->python_count.value);
}

/* The last sample up to the moment; before the first sample, the first. */
static void fill_samples(const struct fact_process *process, uint64_t moment_ns,
			 struct fact_host *host)
{
	const struct fact_sample *last = fact_sample_at(process, moment_ns);
	host->rss_bytes = host->rss_peak_bytes = host->cgroup_bytes = CUF_UNKNOWN;
	host->cgroup_shmem_bytes = CUF_UNKNOWN;
	for (size_t i = 0; i < process->timeline_count; i++) {
		uint64_t bytes = process->timeline[i].rss_bytes;
		if (is_known(bytes))
			host->rss_peak_bytes = most_of(known_or_zero(host->rss_peak_bytes), bytes);
	}
	if (last) {
		host->rss_bytes = last->rss_bytes;
		host->cgroup_bytes = last->cgroup_bytes;
		host->cgroup_shmem_bytes = last->cgroup_shmem_bytes;
	}
}

/* What was resident at the last sample up to the moment, if that is later than this reading. */
static uint64_t later_sample(const struct fact_process *process, uint64_t moment_ns,
			     const struct fact_meta_text *reading)
{
	const struct fact_sample *last = fact_sample_at(process, moment_ns);
	if (reading->number == CUF_MOMENT_END || /* it is of the end itself */
	    !last || last->time_ns > moment_ns || last->time_ns <= reading->time_ns)
		return CUF_UNKNOWN;
	return last->rss_bytes;
}

/*
 * Samples are some milliseconds to minutes apart, and the peak is between two of them. What is
 * allocated more at the peak than at the sample before it is resident, too.
 */
static void move_to_peak(const struct fact_process *process, const struct cuf_host_peak *note,
			 struct fact_host *host)
{
	const struct fact_sample *before = NULL;
	host->is_near_peak = note != NULL;
	for (size_t i = 0; i < process->timeline_count; i++) {
		const struct fact_sample *sample = &process->timeline[i];
		if (is_known(sample->rss_bytes) && is_known(sample->host_live_bytes) &&
		    sample->time_ns <= host->at_ns)
			before = sample;
	}
	if (note && is_known(note->rss_bytes))
		host->rss_bytes = note->rss_bytes;
	else if (before && is_known(host->live_peak_bytes))
		host->rss_bytes = before->rss_bytes + subtract_to_zero(host->live_peak_bytes,
								       before->host_live_bytes);
	else
		return;
	if (before)
		host->cgroup_bytes = before->cgroup_bytes;
	host->rss_peak_bytes = most_of(host->rss_peak_bytes, host->rss_bytes);
}

/* Pinned and registered memory at the moment of the run, in all of the process. */
static uint64_t page_locked_bytes(const struct facts *facts, uint32_t process)
{
	const struct live_sums *sums = run_sums(&facts->run->processes[process],
						facts->processes[process].moment_seq);
	uint64_t bytes = 0;
	for (unsigned device = 0; device <= CUF_DEVICES_MAX; device++)
		bytes += sums->bytes[device][CUF_KIND_PINNED] +
			 sums->bytes[device][CUF_KIND_REGISTERED];
	return bytes;
}

/* ---- all ---- */

#define OVERTAKEN_NS 100000000ull /* a sample is that much later than the reading */

/*
 * A process that ended without a word left the readings of its failed requests. It may have lived
 * on for long after them, and then they are not of its end. Other readings follow its memory.
 */
static bool is_overtaken(const struct fact_process *process, uint64_t time_ns, uint64_t read_ns)
{
	bool is_silent = process->end == END_KILLED || process->end == END_OOM_KILLED ||
			 end_may_run(process->end);

	return is_silent && time_ns == CUF_UNKNOWN && process->timeline_count &&
	       read_ns != CUF_UNKNOWN &&
	       process->timeline[process->timeline_count - 1].time_ns > read_ns + OVERTAKEN_NS;
}

/* The allocator that serves malloc is the first row; returned if it is known. */
static struct fact_allocator *fill_allocators(const struct facts *facts, uint32_t process,
					      uint64_t time_ns, uint64_t failed_ns,
					      struct fact_host *host)
{
	const struct meta *meta = &facts->run->processes[process].meta;
	const struct fact_process *whose = &facts->processes[process];
	struct fact_allocator *first = allocator_stats_of(meta, time_ns, failed_ns,
							  facts->arena, &host->allocator_count);

	for (size_t i = 0; i < host->allocator_count; i++)
		if (first[i].at_incident && is_overtaken(whose, time_ns, first[i].time_ns))
			allocator_stats_forget(&first[i]);
	host->allocators = first;
	if (host->allocator_count && first->role == ALLOCATOR_PROCESS)
		host->allocator = arena_format(facts->arena, "%s%s%s", first->name,
					       *first->version ? " " : "", first->version);
	return host->allocator ? first : NULL;
}

#define FREED_AT_END 1.25 /* so much was held where 1 is left */
static bool is_freed_at_end(uint64_t at_work, uint64_t at_end)
{
	return is_known(at_work) && is_known(at_end) &&
	       (double)at_work >= FREED_AT_END * (double)at_end;
}

/* The last reading is of the exit, when an interpreter has freed its objects. Where that was much,
 * readings and samples count only up to the end of the work, which is returned. What was freed may
 * still be resident. */
static uint64_t read_until(const struct facts *facts, uint32_t process, uint64_t work_end_ns)
{
	const struct fact_process *whose = &facts->processes[process];
	const struct fact_sample *at_work = fact_sample_at(whose, work_end_ns),
				 *at_end = fact_sample_at(whose, facts->moment.time_ns);

	if (facts->moment.kind != MOMENT_END || !is_known(work_end_ns) || !at_end ||
	    !facts->run->processes[process].reader->header.work_end_ns)
		return CUF_UNKNOWN;
	return is_freed_at_end(at_work->rss_bytes, at_end->rss_bytes) ||
	       is_freed_at_end(at_work->host_live_bytes, at_end->host_live_bytes) ?
	       work_end_ns : CUF_UNKNOWN;
}

/* Order matters: rows and advice need malloc's live bytes, and maps are subtracted from those. */
static struct fact_host host_of(const struct facts *facts, uint32_t process,
				const struct host_moment *moment, const struct swept *swept)
{
	const struct fact_process *whose = &facts->processes[process];
	const struct meta *meta = &facts->run->processes[process].meta;
	const struct reader *reader = facts->run->processes[process].reader;
	uint64_t time_ns = reader_realtime(reader, moment->at.time_ns);
	uint64_t until_ns = read_until(facts, process, time_ns);
	uint64_t sampled_ns = least_of(until_ns, facts->moment.time_ns);
	/* readings may be a little late, but not those of the exit */
	uint64_t read_ns = is_known(until_ns) ? until_ns - STATS_LATE_NS : time_ns;
	const struct fact_meta_text *reading =
		allocator_stats_memory(meta, read_ns, moment->failed_ns);
	const char *memory = NULL;
	/* dated: its statistics are of that moment, as the reading of the memory is. */
	struct fact_allocator *ours, *dated = NULL;
	struct fact_host host = {
		.mapped_file_bytes = CUF_UNKNOWN,
		.swap_bytes = CUF_UNKNOWN,
		.cgroup_max_bytes = meta_limit(meta, "memory.max"),
		.memory_total_bytes = meta_limit(meta, "MemTotal"),
		.pinned_bytes = page_locked_bytes(facts, process),
	};

	if (reading && (reading->number != CUF_MOMENT_INCIDENT ||
			!is_overtaken(whose, time_ns, reading->time_ns)))
		memory = reading->text;
	fill_samples(whose, sampled_ns, &host);
	count_calls(reader, whose->threads_most, &host);
	fill_malloc(reader, &swept->memory, &host);
	host.at_ns = time_ns;
	host.at_peak = moment->is_peak && time_ns != CUF_UNKNOWN;
	if (host.at_peak) {
		memory = NULL; /* it was read at another moment */
		move_to_peak(whose, moment->at.note, &host);
	}
	ours = fill_allocators(facts, process, read_ns, moment->failed_ns, &host);
	fill_maps(facts, process, &swept->maps, memory, &host);
	fill_python(reader, &swept->memory, &host);
	if (ours && reading && apart_ns(ours->time_ns, reading->time_ns) <= STATS_LATE_NS)
		dated = ours;
	if (memory)
		fill_rows(facts, memory, later_sample(whose, sampled_ns, reading), dated, &host);
	host.verdict = judge(ours);
	fill_advice(facts, ours, &host);
	if (host.verdict == HOST_FRAGMENTED)
		fill_pins(facts, process, ours->fragmented_bytes, &host);
	host.heap = managed_heap(facts, process, &host);
	return host;
}

struct fact_layer host_layer_at(const struct facts *facts, uint32_t process, uint64_t time_ns)
{
	struct fact_layer layer = { CUF_UNKNOWN, "" };
	/* Called for every incident: what it reads is not kept. */
	struct arena *arena = arena_new();
	size_t count;
	const struct fact_allocator *allocator =
		allocator_stats_of(&facts->run->processes[process].meta, time_ns, CUF_UNKNOWN,
				   arena, &count);

	if (count && allocator->role == ALLOCATOR_PROCESS)
		layer = allocator->largest_free;
	arena_free(arena);
	return layer;
}

struct host_filling {
	struct facts *facts;
	const struct host_moment *moments;
	const struct swept *swept;
};

static void fill_process(void *context, size_t i)
{
	const struct host_filling *filling = context;
	const struct host_moment *moment = &filling->moments[i];
	struct facts *facts = filling->facts;

	facts->processes[i].host = host_of(facts, (uint32_t)i, moment, &filling->swept[i]);
	shared_memory(facts, (uint32_t)i, moment->at.time_ns);
	run_rest(facts->run, &facts->run->processes[i]);
}

void build_host(struct facts *facts, const struct moments *moments, const struct swept *swept)
{
	struct host_filling filling = { facts, moments->of_host, swept };

	parallel_each(facts->process_count, facts->run->threads, fill_process, &filling);
}
