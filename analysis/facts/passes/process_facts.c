/* SPDX-License-Identifier: Apache-2.0 */
/* struct fact_process: what header, META and TIMELINE say, and who is whose parent. */
#include "analysis/base/clock.h"
#include "analysis/base/numbers.h"
#include "analysis/facts/passes/passes.h"
#include "analysis/symbols/frameworks.h"
#include "analysis/measure/heap.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOST_CLOCK_NS 10000000ull /* a coarse clock, kept in milliseconds */
#define FRESH_BYTES (32ull << 20) /* glibc maps such a block by itself, and unmaps it */

static uint64_t count_held(const struct reader *reader, enum cuf_section_id ring)
{
	uint64_t held = 0;
	for (uint64_t i = 0; i < reader_segment_count(reader, ring); i++) {
		struct cuf_segment segment;
		const uint8_t *records;
		if (reader_segment(reader, ring, i, &segment, &records))
			held += segment.used;
	}
	reader_drop(reader, ring); /* a look at each header has mapped all that is around it */
	return held;
}

/* Events that no table ever held. Blocks or stacks that were dropped are no lost events. */
static void count_events(struct fact_process *process, const struct reader *reader)
{
	static const enum cuf_loss never_held[] = { CUF_LOST_THREADS, CUF_LOST_RING,
						    CUF_LOST_HOST_RING, CUF_LOST_SWITCH,
						    CUF_LOST_NESTED, CUF_LOST_TASKS };
	const struct cuf_header *header = &reader->header;
	process->events_overwritten = header->overwritten + header->framework_overwritten +
				      header->host_overwritten;
	process->events_recorded = header->next_seq + header->host_overwritten +
				   count_held(reader, CUF_SEC_HOST_RING);
	for (size_t i = 0; i < sizeof never_held / sizeof *never_held; i++)
		process->events_lost += header->lost[never_held[i]];
}

static int by_time(const void *a, const void *b)
{
	const struct fact_sample *left = a, *right = b;
	return compare_numbers(left->time_ns, right->time_ns);
}

/* A sample of an older recorder is shorter than ours: what it lacks stays unknown. */
static void read_timeline(const struct facts *facts, struct fact_process *process,
			  const struct reader *reader)
{
	uint64_t have = reader_count(reader, CUF_SEC_TIMELINE),
		 count = least_of(reader->header.sample_count, have);
	struct fact_sample *samples = arena_zeroed(facts->arena, count, sizeof *samples);
	for (uint64_t i = 0; i < count; i++) {
		struct cuf_sample sample = { .rss_shared_bytes = CUF_UNKNOWN,
					     .cgroup_shmem_bytes = CUF_UNKNOWN,
					     .thread_count = CUF_UNKNOWN };
		uint32_t stride = reader->sections[CUF_SEC_TIMELINE].stride;
		memcpy(&sample, reader_at(reader, CUF_SEC_TIMELINE, i),
		       least_of(stride, sizeof sample));
		if (!sample.time_ns)
			continue;
		struct fact_sample *to = &samples[process->timeline_count++];
		*to = (struct fact_sample){ reader_realtime(reader, sample.time_ns),
					    sample.seq,
					    sample.rss_bytes,
					    sample.cgroup_bytes,
					    sample.host_live_bytes,
					    sample.pinned_bytes,
					    sample.rss_shared_bytes,
					    sample.cgroup_shmem_bytes,
					    sample.thread_count,
					    { 0 },
					    { 0 } };
		memcpy(to->device_live_bytes, sample.device_live_bytes,
		       sizeof to->device_live_bytes);
		memcpy(to->device_free_bytes, sample.device_free_bytes,
		       sizeof to->device_free_bytes);
	}
	process->threads_most = CUF_UNKNOWN;
	for (size_t i = 0; i < process->timeline_count; i++)
		if (samples[i].thread_count != CUF_UNKNOWN)
			process->threads_most = most_of(known_or_zero(process->threads_most),
							samples[i].thread_count);
	if (process->timeline_count)
		qsort(samples, process->timeline_count, sizeof *samples, by_time);
	process->timeline = samples;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static const char *model_of(const struct facts *facts, const char *cmdline)
{
	char model[200];

	model_name(cmdline, model, sizeof model);
	return arena_format(facts->arena, "%s", model);
}

/* The first engine or framework, in the order of the table, that its modules or words show. */
static const char *framework_of(const char *cmdline, const struct meta *meta)
{
	const struct framework *framework;

	for (size_t f = 0; (framework = framework_at(f)); f++) {
		if (framework_has_words(framework, cmdline))
			return framework->name;
		for (size_t m = 0; m < meta->module_count; m++)
			if (framework_has_path(framework, meta->modules[m].path))
				return framework->name;
	}
	return NULL;
}

/* All that is known without looking at events. build_phases and later passes add the rest. */
static void fill_process(struct facts *facts, uint32_t index, const struct exit_reason *end)
{
	const struct run_process *from = &facts->run->processes[index];
	const struct reader *reader = from->reader;
	const struct cuf_header *header = &reader->header;
	struct fact_process *process = &facts->processes[index];
	*process = (struct fact_process){
		.pid = header->pid,
		.ppid = header->ppid,
		.parent = FACT_NONE,
		.exec_of = FACT_NONE,
		.path = reader->path,
		.exe = or_empty(meta_text(&from->meta, CUF_META_EXE)),
		.cmdline = or_empty(meta_text(&from->meta, CUF_META_CMDLINE)),
		.hostname = or_empty(meta_text(&from->meta, CUF_META_HOSTNAME)),
		.start_ns = header->start_realtime_ns,
		.end_ns = reader_realtime(reader, end->end_ns),
		.end = end->end,
		.end_status = end->status,
		.end_basis = end->basis,
		.end_why = end->why,
		.untouched_bytes = end->untouched_bytes,
		.complete = reader->complete && !from->meta.damage_offset,
		.switched_off = header->state == CUF_OFF || meta_noted(&from->meta, CUF_NOTE_OFF),
		.driver_version = header->driver_version,
		.first_cuda_ns = reader_realtime(reader, header->first_cuda_ns),
		.host_mode = header->options_host_mode <= CUF_HOST_FULL
				     ? (uint32_t)header->options_host_mode
				     : CUF_HOST_OFF,
		.sample_mean_bytes = header->sample_mean_bytes,
		.stack_depth = header->stack_depth,
		.modules = from->meta.modules,
		.module_count = from->meta.module_count,
		.functions = from->meta.functions,
		.function_count = from->meta.function_count,
		.texts = from->meta.texts,
		.text_count = from->meta.text_count,
		.hook_names = from->meta.hook_names,
		.hook_name_count = from->meta.hook_name_count,
	};
	process->model = model_of(facts, process->cmdline);
	process->framework = framework_of(process->cmdline, &from->meta);
	if (end_may_run(end->end) && !end->is_copied)
		process->end_ns = clock_ns(CLOCK_REALTIME);
	count_events(process, reader);
	read_timeline(facts, process, reader);
	facts->recorded_bytes += reader->bytes;
	facts->events_recorded += process->events_recorded;
	facts->events_overwritten += process->events_overwritten;
	facts->events_lost += process->events_lost;
}

/* The recording that was there before: the image that this one replaced, or the parent. pids are
 * reused, so the latest. */
static void relate(const struct facts *facts, uint32_t index)
{
	struct fact_process *process = &facts->processes[index];
	const struct cuf_header *header = &facts->run->processes[index].reader->header;
	for (uint32_t i = 0; i < index; i++) {
		const struct fact_process *recorded = &facts->processes[i];
		const struct cuf_header *other = &facts->run->processes[i].reader->header;
		if (memcmp(header->boot_id, other->boot_id, sizeof header->boot_id) ||
		    strcmp(process->hostname, recorded->hostname))
			continue;
		if (recorded->pid == process->ppid && recorded->pid != process->pid)
			process->parent = i;
		if (recorded->pid == process->pid && recorded->end == END_EXEC &&
		    other->process_start_ticks == header->process_start_ticks)
			process->exec_of = i;
	}
}

/* Only for a process that has no end record: the whole ledger is read. */
static struct late_blocks late_blocks_of(const struct run_process *recorded)
{
	const struct reader *reader = recorded->reader;
	uint64_t sample_ns = exit_reason_sample_ns(recorded);
	struct heap_since asked[3] = { 0 };
	struct host_means means;
	if (reader->header.end_kind)
		return (struct late_blocks){ 0 };
	means = host_means_of(reader, &recorded->meta);
	asked[0].time_ns = exit_reason_late_ns(recorded);
	asked[1].time_ns = sample_ns + 1;
	asked[2].time_ns = subtract_to_zero(sample_ns, HOST_CLOCK_NS);
	asked[2].bytes_least = FRESH_BYTES;
	heap_bytes_since(reader, &means, asked, 3);
	return (struct late_blocks){ host_whole(asked[0].sum), host_whole(asked[1].sum),
				     host_whole(asked[2].sum) };
}

const struct exit_reason *build_processes(struct facts *facts)
{
	size_t count = facts->run->count;
	struct exit_reason *ends = arena_zeroed(facts->arena, count, sizeof *ends);
	facts->process_count = count;
	facts->processes = arena_zeroed(facts->arena, count, sizeof *facts->processes);
	for (uint32_t i = 0; i < count; i++) {
		struct late_blocks late = late_blocks_of(&facts->run->processes[i]);
		ends[i] = exit_reason_of(&facts->run->processes[i], &late, facts->arena);
		fill_process(facts, i, &ends[i]);
		relate(facts, i);
	}
	return ends;
}
