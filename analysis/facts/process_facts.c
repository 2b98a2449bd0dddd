/* SPDX-License-Identifier: Apache-2.0 */
/* struct fact_process: what header, META and TIMELINE say, and who is whose parent. */
#include "analysis/facts/build.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *hook_name(const struct build *build, uint32_t process, unsigned id)
{
	const struct meta *m = &build->run->processes[process].meta;
	return id && id < m->hook_name_count ? m->hook_names[id] : NULL;
}

void stack_fill(const struct build *build, struct fact_stack *stack, uint64_t monotonic_ns)
{
	const struct reader *r = build->run->processes[stack->process].reader;
	stack->addrs = reader_stack(r, stack->id, &stack->depth, &stack->stop);
	stack->time_ns = reader_realtime(r, monotonic_ns);
	if (!stack->depth)
		stack->id = 0;
}

static uint64_t count_held(const struct reader *r, enum cuf_section_id ring)
{
	uint64_t held = 0;
	for (uint64_t i = 0; i < reader_segment_count(r, ring); i++) {
		struct cuf_segment s;
		const uint8_t *records;
		if (reader_segment(r, ring, i, &s, &records))
			held += s.used;
	}
	reader_drop(r, ring); /* a look at each header has mapped all that is around it */
	return held;
}

static void count_events(struct fact_process *p, const struct reader *r)
{
	static const enum cuf_loss never_held[] = { CUF_LOST_THREADS, CUF_LOST_RING, CUF_LOST_HOST_RING, CUF_LOST_SWITCH, CUF_LOST_NESTED };
	const struct cuf_header *h = &r->header;
	p->events_overwritten = h->overwritten + h->framework_overwritten + h->host_overwritten;
	p->events_recorded = h->next_seq + h->host_overwritten + count_held(r, CUF_SEC_HOST_RING);
	for (size_t i = 0; i < sizeof never_held / sizeof *never_held; i++)
		p->events_lost += h->lost[never_held[i]];
}

static int by_time(const void *a, const void *b)
{
	const struct fact_sample *x = a, *y = b;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static void read_timeline(struct build *b, struct fact_process *p, const struct reader *r)
{
	uint64_t have = reader_count(r, CUF_SEC_TIMELINE), count = r->header.sample_count < have ? r->header.sample_count : have;
	struct fact_sample *samples = arena_zeroed(b->arena, count, sizeof *samples);
	for (uint64_t i = 0; i < count; i++) {
		struct cuf_sample s = { .rss_shared_bytes = CUF_UNKNOWN };
		uint32_t stride = r->sections[CUF_SEC_TIMELINE].stride;
		memcpy(&s, reader_at(r, CUF_SEC_TIMELINE, i), stride < sizeof s ? stride : sizeof s);
		if (!s.time_ns)
			continue;
		struct fact_sample *to = &samples[p->timeline_count++];
		*to = (struct fact_sample){ reader_realtime(r, s.time_ns), s.seq, s.rss_bytes, s.cgroup_bytes, s.host_live_bytes, s.pinned_bytes, s.rss_shared_bytes, { 0 }, { 0 } };
		memcpy(to->device_live_bytes, s.device_live_bytes, sizeof to->device_live_bytes);
		memcpy(to->device_free_bytes, s.device_free_bytes, sizeof to->device_free_bytes);
	}
	if (p->timeline_count)
		qsort(samples, p->timeline_count, sizeof *samples, by_time);
	p->timeline = samples;
}

static const char *or_empty(const char *text) { return text ? text : ""; }

static void fill_process(struct build *b, uint32_t index)
{
	const struct run_process *from = &b->run->processes[index];
	const struct reader *r = from->reader;
	const struct cuf_header *h = &r->header;
	struct fact_process *p = &b->facts->processes[index];
	const struct ending *end = &b->endings[index];
	*p = (struct fact_process){
		.pid = h->pid, .ppid = h->ppid, .parent = FACT_NONE, .exec_of = FACT_NONE, .path = r->path,
		.exe = or_empty(meta_text(&from->meta, CUF_META_EXE)), .cmdline = or_empty(meta_text(&from->meta, CUF_META_CMDLINE)),
		.hostname = or_empty(meta_text(&from->meta, CUF_META_HOSTNAME)),
		.start_ns = h->start_realtime_ns, .end_ns = reader_realtime(r, end->end_ns), .end = end->end, .end_status = end->status,
		.end_basis = end->basis, .end_why = end->why, .complete = r->complete && !from->meta.damage_offset,
		.switched_off = h->state == CUF_OFF || meta_noted(&from->meta, CUF_NOTE_OFF), .driver_version = h->driver_version,
		.first_cuda_ns = reader_realtime(r, h->first_cuda_ns), .host_mode = h->options_host_mode <= CUF_HOST_FULL ? (uint32_t)h->options_host_mode : CUF_HOST_OFF,
		.sample_mean_bytes = h->sample_mean_bytes, .stack_depth = h->stack_depth,
		.modules = from->meta.modules, .module_count = from->meta.module_count,
		.functions = from->meta.functions, .function_count = from->meta.function_count,
		.texts = from->meta.texts, .text_count = from->meta.text_count,
		.hook_names = from->meta.hook_names, .hook_name_count = from->meta.hook_name_count,
	};
	if (end->end == END_RUNNING) {
		struct timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		p->end_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	}
	count_events(p, r);
	read_timeline(b, p, r);
	b->facts->events_recorded += p->events_recorded;
	b->facts->events_overwritten += p->events_overwritten;
	b->facts->events_lost += p->events_lost;
}

/* The recording that was there before: the image that this one replaced, or the parent. pids are reused, so the latest. */
static void relate(struct build *b, uint32_t index)
{
	struct fact_process *p = &b->facts->processes[index];
	const struct cuf_header *h = &b->run->processes[index].reader->header;
	for (uint32_t i = 0; i < index; i++) {
		const struct fact_process *q = &b->facts->processes[i];
		const struct cuf_header *other = &b->run->processes[i].reader->header;
		if (memcmp(h->boot_id, other->boot_id, sizeof h->boot_id) || strcmp(p->hostname, q->hostname))
			continue;
		if (q->pid == p->ppid && q->pid != p->pid)
			p->parent = i;
		if (q->pid == p->pid && q->end == END_EXEC && other->process_start_ticks == h->process_start_ticks)
			p->exec_of = i;
	}
}

void build_processes(struct build *build)
{
	size_t count = build->run->count;
	build->facts->process_count = count;
	build->facts->processes = arena_zeroed(build->arena, count, sizeof *build->facts->processes);
	for (uint32_t i = 0; i < count; i++) {
		build->endings[i] = ending_of(&build->run->processes[i], build->arena);
		fill_process(build, i);
		relate(build, i);
	}
}

const struct fact_module *fact_module_at(const struct fact_process *process, uint64_t addr,
					 uint64_t time_ns)
{
	return module_at(process->modules, process->module_count, addr, time_ns);
}

const char *fact_function_at(const struct fact_process *process, uint64_t addr)
{
	return function_at(process->functions, process->function_count, addr);
}
