/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes small, valid recordings in memory, so that the reader's side is tested without the recorder's. It follows
 * format.h alone: rings of segments by thread that wrap, a ledger kept in step, incidents, a timeline.
 *
 * Contract: single-threaded; a maker that runs out of a table's room fails the test (abort) unless said. Times advance
 * by m->step_ns with every event; CLOCK_MONOTONIC starts at MAKER_START_NS. Freed by maker_free_all.
 */
#ifndef RECORDING_MAKER_H
#define RECORDING_MAKER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "interpose/abi/format.h"

#define MAKER_START_NS 5000000000ull
#define MAKER_REALTIME_NS 1700000000000000000ull
#define MAKER_THREADS 8u
#define MiB (1ull << 20)
#define GiB (1ull << 30)

struct maker_plan { uint32_t segments, segment_bytes, host_segments, host_segment_bytes, ledger, host_ledger, stacks, samples, incidents, framework_segments, framework_segment_bytes; };

static const struct maker_plan maker_small = { 64, 4096, 64, 4096, 4096, 4096, 256, 64, 32, 64, 4096 };

struct maker {
	uint8_t *data;
	uint64_t bytes;
	struct cuf_header *h;
	struct maker_plan plan;
	uint64_t at[CUF_SEC_MAX], size[CUF_SEC_MAX];
	uint64_t now_ns, step_ns;
	uint32_t thread;          /* slot that the next event is written by; its tid is 1000 + slot */
	uint32_t open[3][MAKER_THREADS]; /* by enum maker_ring: segment index + 1 */
	uint64_t allocated[CUF_DEVICES_MAX], reserved[CUF_DEVICES_MAX]; /* a framework's own counters; reserved is the test's to set */
};

enum maker_ring { MAKER_DEVICE, MAKER_HOST, MAKER_FRAMEWORK };

static inline void *maker_section(struct maker *m, unsigned id) { return m->data + m->at[id]; }

static inline void maker_place(struct maker *m, unsigned id, uint32_t record_bytes, uint64_t bytes, uint64_t *offset)
{
	bytes = (bytes + 4095) & ~4095ull;
	m->h->sections[m->h->section_count++] = (struct cuf_section){ id, record_bytes, *offset, bytes };
	m->at[id] = *offset;
	m->size[id] = bytes;
	*offset += bytes;
}

static inline struct maker *maker_new(const struct maker_plan *plan)
{
	struct maker *m = calloc(1, sizeof *m);
	static struct cuf_header h;
	uint64_t offset = 4096;
	memset(&h, 0, sizeof h);
	m->plan = *plan;
	m->h = &h;
	maker_place(m, CUF_SEC_META, 1, 16384, &offset);
	maker_place(m, CUF_SEC_DEVICES, sizeof(struct cuf_device), CUF_DEVICES_MAX * sizeof(struct cuf_device), &offset);
	maker_place(m, CUF_SEC_THREADS, sizeof(struct cuf_thread), MAKER_THREADS * sizeof(struct cuf_thread), &offset);
	maker_place(m, CUF_SEC_STACK_INDEX, sizeof(struct cuf_stack), plan->stacks * sizeof(struct cuf_stack), &offset);
	maker_place(m, CUF_SEC_STACK_FRAMES, 8, plan->stacks * 8 * 4ull, &offset);
	maker_place(m, CUF_SEC_LEDGER, sizeof(struct cuf_block), plan->ledger * sizeof(struct cuf_block), &offset);
	maker_place(m, CUF_SEC_HOST_LEDGER, sizeof(struct cuf_host_block), plan->host_ledger * sizeof(struct cuf_host_block), &offset);
	maker_place(m, CUF_SEC_RING, sizeof(struct cuf_event), (uint64_t)plan->segments * plan->segment_bytes, &offset);
	maker_place(m, CUF_SEC_HOST_RING, sizeof(struct cuf_host_event), (uint64_t)plan->host_segments * plan->host_segment_bytes, &offset);
	if (plan->framework_segments)
		maker_place(m, CUF_SEC_FRAMEWORK_RING, sizeof(struct cuf_event), (uint64_t)plan->framework_segments * plan->framework_segment_bytes, &offset);
	maker_place(m, CUF_SEC_INCIDENTS, sizeof(struct cuf_incident), plan->incidents * sizeof(struct cuf_incident), &offset);
	maker_place(m, CUF_SEC_TIMELINE, sizeof(struct cuf_sample), plan->samples * sizeof(struct cuf_sample), &offset);
	if (posix_memalign((void **)&m->data, 4096, offset))
		abort();
	memset(m->data, 0, offset);
	m->bytes = offset;
	memcpy(h.magic, CUF_MAGIC, 8);
	h.version = CUF_VERSION;
	h.endian = CUF_ENDIAN;
	h.header_bytes = sizeof h;
	h.file_bytes = offset;
	h.machine = 62;
	h.page_bytes = 4096;
	h.created_ns = h.start_ns = MAKER_START_NS;
	h.start_realtime_ns = MAKER_REALTIME_NS;
	h.pid = 4242;
	h.ppid = 1;
	h.process_start_ticks = CUF_UNKNOWN;
	h.options_host_mode = CUF_HOST_FULL;
	h.sample_mean_bytes = 524288;
	h.stack_depth = 64;
	h.device_segment_bytes = plan->segment_bytes;
	h.host_segment_bytes = plan->host_segment_bytes;
	h.framework_segment_bytes = plan->framework_segment_bytes;
	h.state = CUF_RUNNING;
	h.driver_version = 13000;
	h.first_cuda_ns = MAKER_START_NS + 1;
	m->h = (struct cuf_header *)m->data;
	memcpy(m->h, &h, sizeof h);
	m->now_ns = MAKER_START_NS;
	m->step_ns = 1000000;
	return m;
}

static inline void maker_free_all(struct maker *m)
{
	free(m->data);
	free(m);
}

static inline uint32_t maker_tid(const struct maker *m) { return 1000 + m->thread; }

struct maker_ring_of { unsigned section; uint32_t record, bytes, count; uint64_t *ticket, *gone; };

static inline struct maker_ring_of maker_ring_of(struct maker *m, enum maker_ring ring)
{
	switch (ring) {
	case MAKER_HOST: return (struct maker_ring_of){ CUF_SEC_HOST_RING, sizeof(struct cuf_host_event), m->plan.host_segment_bytes,
		m->plan.host_segments, &m->h->next_host_ticket, &m->h->host_overwritten };
	case MAKER_FRAMEWORK: return (struct maker_ring_of){ CUF_SEC_FRAMEWORK_RING, sizeof(struct cuf_event), m->plan.framework_segment_bytes,
		m->plan.framework_segments, &m->h->next_framework_ticket, &m->h->framework_overwritten };
	default: return (struct maker_ring_of){ CUF_SEC_RING, sizeof(struct cuf_event), m->plan.segment_bytes,
		m->plan.segments, &m->h->next_ticket, &m->h->overwritten };
	}
}

/* Room for one record in the thread's segment; takes the oldest segment when it is full, like the recorder. */
static inline void *maker_record(struct maker *m, enum maker_ring ring)
{
	struct maker_ring_of r = maker_ring_of(m, ring);
	uint32_t *open = &m->open[ring][m->thread];
	struct cuf_segment *s = *open ? (void *)((uint8_t *)maker_section(m, r.section) + (uint64_t)(*open - 1) * r.bytes) : NULL;
	while (!s || sizeof *s + (s->used + 1) * r.record > r.bytes) {
		uint32_t index = (uint32_t)((*r.ticket)++ % r.count);
		for (unsigned t = 0; t < MAKER_THREADS; t++)
			if (t != m->thread && m->open[ring][t] == index + 1)
				index = UINT32_MAX;
		if (index == UINT32_MAX)
			continue;
		s = (void *)((uint8_t *)maker_section(m, r.section) + (uint64_t)index * r.bytes);
		*r.gone += s->used;
		*s = (struct cuf_segment){ .ticket = *r.ticket, .start_ns = m->now_ns, .thread = m->thread, .tid = maker_tid(m), .owned = 1,
			.sample_mean_bytes = ring == MAKER_HOST && m->h->options_host_mode == CUF_HOST_SAMPLED ? m->h->sample_mean_bytes : 0 };
		*open = index + 1;
		if (ring == MAKER_HOST) {
			struct cuf_host_event *time = (void *)(s + 1);
			*time = (struct cuf_host_event){ cuf_host_word0(CUF_HOST_TIME, 0, 0), m->now_ns };
			s->used = 1;
		}
	}
	return (uint8_t *)(s + 1) + s->used++ * r.record;
}

static inline uint64_t maker_event_in(struct maker *m, enum maker_ring ring, struct cuf_event e)
{
	struct cuf_event *at = maker_record(m, ring);
	m->now_ns += m->step_ns;
	e.seq = ++m->h->next_seq;
	e.time_ns = m->now_ns;
	e.tid = e.tid ? e.tid : maker_tid(m);
	*at = e;
	return e.seq;
}

static inline uint64_t maker_event(struct maker *m, struct cuf_event e) { return maker_event_in(m, MAKER_DEVICE, e); }

static inline struct cuf_block *maker_find(struct maker *m, uint64_t key)
{
	struct cuf_block *blocks = maker_section(m, CUF_SEC_LEDGER);
	for (uint32_t i = 0; i < m->plan.ledger; i++)
		if (blocks[i].key == key)
			return &blocks[i];
	if (!key)
		abort();
	return NULL;
}

static inline bool maker_counts(unsigned kind) { return kind == CUF_KIND_DEVICE || kind == CUF_KIND_ASYNC || kind == CUF_KIND_GRAPH || kind == CUF_KIND_VMM || kind == CUF_KIND_ARRAY; }

static inline void maker_count(struct maker *m, const struct cuf_block *b, int sign)
{
	struct cuf_device *d = (struct cuf_device *)maker_section(m, CUF_SEC_DEVICES) + b->device;
	uint64_t live = 0;
	if (b->device >= CUF_DEVICES_MAX)
		return;
	d->live_bytes[b->kind] += sign > 0 ? b->bytes : -b->bytes;
	d->live_count[b->kind] += (uint64_t)(int64_t)sign;
	if (b->kind == CUF_KIND_FRAMEWORK)
		return;
	*(sign > 0 ? &d->alloc_count : &d->free_count) += 1;
	for (unsigned k = 0; k < 16; k++)
		live += maker_counts(k) ? d->live_bytes[k] : 0;
	if (live > d->peak_bytes) {
		d->peak_bytes = live;
		d->peak_ns = m->now_ns;
	}
}

/* An allocation, with all its fields. */
static inline uint64_t maker_born(struct maker *m, unsigned kind, unsigned device, uint64_t addr, uint64_t bytes, uint32_t stack, uint64_t aux, unsigned flags)
{
	uint64_t seq = maker_event(m, (struct cuf_event){ .addr = addr, .bytes = bytes, .aux = aux, .stack = stack, .hook = 100, .label = 200,
		.op = CUF_OP_ALLOC, .kind = (uint8_t)kind, .device = (uint8_t)device, .flags = (uint8_t)flags });
	struct cuf_block *b = maker_find(m, 0);
	*b = (struct cuf_block){ .key = cuf_key(cuf_kind_space(kind), addr), .bytes = bytes, .aux = aux, .seq = seq, .time_ns = m->now_ns,
		.stack = stack, .tid = maker_tid(m), .references = 1, .hook = 100, .label = 200, .kind = (uint8_t)kind, .device = (uint8_t)device,
		.flags = (uint8_t)flags };
	maker_count(m, b, 1);
	return seq;
}

static inline uint64_t maker_alloc(struct maker *m, uint64_t addr, uint64_t bytes, uint32_t stack)
{
	return maker_born(m, CUF_KIND_DEVICE, 0, addr, bytes, stack, 0, 0);
}

static inline uint64_t maker_freed(struct maker *m, unsigned kind, uint64_t addr)
{
	struct cuf_block *b = maker_find(m, cuf_key(cuf_kind_space(kind), addr)), was;
	if (!b)
		abort();
	was = *b;
	memset(b, 0, sizeof *b);
	maker_count(m, &was, -1);
	return maker_event(m, (struct cuf_event){ .addr = addr, .bytes = was.bytes, .aux = was.aux, .stack = 2, .alloc_stack = was.stack,
		.extra = (uint32_t)((m->now_ns - was.time_ns) / 1000000), .hook = 101, .op = CUF_OP_FREE, .kind = was.kind, .device = was.device, .flags = was.flags });
}

static inline uint64_t maker_free(struct maker *m, uint64_t addr) { return maker_freed(m, CUF_KIND_DEVICE, addr); }

/* A block inside a segment, as a framework's allocator reports it. */
static inline uint64_t maker_block(struct maker *m, unsigned device, uint64_t addr, uint64_t bytes, uint32_t stack)
{
	struct cuf_block *b = maker_find(m, 0);
	uint64_t seq;
	m->allocated[device] += bytes;
	seq = maker_event_in(m, MAKER_FRAMEWORK, (struct cuf_event){ .addr = addr, .bytes = bytes, .aux = m->allocated[device], .stack = stack,
		.extra = (uint32_t)(m->reserved[device] >> 9), .hook = 300, .op = CUF_OP_ALLOC, .kind = CUF_KIND_FRAMEWORK, .device = (uint8_t)device });
	*b = (struct cuf_block){ .key = cuf_key(CUF_SPACE_FRAMEWORK, addr), .bytes = bytes, .aux = m->allocated[device], .seq = seq, .time_ns = m->now_ns, .stack = stack,
		.tid = maker_tid(m), .references = 1, .hook = 300, .kind = CUF_KIND_FRAMEWORK, .device = (uint8_t)device };
	maker_count(m, b, 1);
	m->h->framework_events++;
	return seq;
}

static inline uint64_t maker_block_freed(struct maker *m, uint64_t addr)
{
	struct cuf_block *b = maker_find(m, cuf_key(CUF_SPACE_FRAMEWORK, addr)), was;
	if (!b)
		abort();
	was = *b;
	memset(b, 0, sizeof *b);
	maker_count(m, &was, -1);
	m->allocated[was.device] -= was.bytes;
	m->h->framework_events++;
	return maker_event_in(m, MAKER_FRAMEWORK, (struct cuf_event){ .addr = addr, .bytes = was.bytes, .aux = was.aux, .alloc_stack = was.stack,
		.extra = (uint32_t)((m->now_ns - was.time_ns) / 1000000), .hook = 300, .op = CUF_OP_FREE, .kind = CUF_KIND_FRAMEWORK, .device = was.device });
}

/* A free that the driver refused: it was logged and is undone. */
static inline void maker_refused_free(struct maker *m, unsigned kind, uint64_t addr)
{
	struct cuf_block was = *maker_find(m, cuf_key(cuf_kind_space(kind), addr));
	maker_freed(m, kind, addr);
	maker_event(m, (struct cuf_event){ .addr = addr, .bytes = was.bytes, .aux = was.aux, .stack = 2, .alloc_stack = was.stack,
		.op = CUF_OP_RESTORE, .kind = was.kind, .device = was.device, .flags = was.flags });
	*maker_find(m, 0) = was;
	maker_count(m, &was, 1);
	m->h->undone_frees++;
}

static inline struct cuf_device *maker_device(struct maker *m, unsigned ordinal, uint64_t total_bytes)
{
	struct cuf_device *d = (struct cuf_device *)maker_section(m, CUF_SEC_DEVICES) + ordinal;
	d->present = 1;
	d->ordinal = ordinal;
	memset(d->uuid, 0x40 + (int)ordinal, sizeof d->uuid);
	strcpy(d->name, "Simulated GPU");
	strcpy(d->pci, "0000:01:00.0");
	d->total_bytes = total_bytes;
	d->free_bytes = d->first_free_bytes = d->end_free_bytes = CUF_UNKNOWN;
	d->granularity_bytes = 2 * MiB;
	return d;
}

static inline void maker_free_memory(struct maker *m, unsigned device, uint64_t free_bytes, uint64_t total_bytes)
{
	maker_event(m, (struct cuf_event){ .op = CUF_OP_FREE_MEMORY, .bytes = free_bytes, .aux = total_bytes, .device = (uint8_t)device });
}

/* A failed request of any kind; a framework's own goes to its ring. Returned for more to be filled in; counts are those of the device now. */
static inline struct cuf_incident *maker_fail_of(struct maker *m, unsigned kind, unsigned device, uint64_t bytes, uint64_t free_bytes, uint64_t total_bytes, uint32_t stack)
{
	const struct cuf_device *d = (struct cuf_device *)maker_section(m, CUF_SEC_DEVICES) + device;
	uint64_t slots = m->size[CUF_SEC_INCIDENTS] / sizeof(struct cuf_incident); /* as laid out: sections are whole pages */
	uint64_t number = ++m->h->incident_count, keep = slots / 4, slot = number - 1;
	struct cuf_incident *i = (struct cuf_incident *)maker_section(m, CUF_SEC_INCIDENTS) +
		(slot < keep ? slot : keep + (slot - keep) % (slots - keep));
	bool framework = kind == CUF_KIND_FRAMEWORK;
	memset(i, 0, sizeof *i);
	i->seq = maker_event_in(m, framework ? MAKER_FRAMEWORK : MAKER_DEVICE, (struct cuf_event){ .addr = number, .bytes = bytes, .stack = stack,
		.extra = framework ? (uint32_t)(m->reserved[device] >> 9) : 2, .aux = framework ? m->allocated[device] : 0,
		.hook = framework ? 300 : 100, .label = framework ? 0 : 200, .op = CUF_OP_FAIL, .kind = (uint8_t)kind, .device = (uint8_t)device });
	i->number = i->first = number;
	i->time_ns = m->now_ns;
	i->requested_bytes = bytes;
	i->stack = stack;
	i->tid = maker_tid(m);
	i->hook = framework ? 300 : 100;
	i->label = framework ? 0 : 200;
	i->kind = (uint8_t)kind;
	i->device = (uint8_t)device;
	i->is_request = 1;
	i->result = 2;
	i->free_bytes = free_bytes;
	i->total_bytes = total_bytes;
	i->probed_bytes = i->page_hole_bytes = i->vmm_hole_bytes = CUF_UNKNOWN;
	i->rss_bytes = i->cgroup_bytes = i->cgroup_max_bytes = i->host_live_bytes = CUF_UNKNOWN;
	i->framework_allocated_bytes = m->h->framework_events ? m->allocated[device] : CUF_UNKNOWN;
	i->framework_reserved_bytes = m->h->framework_events ? m->reserved[device] : CUF_UNKNOWN;
	memcpy(i->live_bytes, d->live_bytes, sizeof i->live_bytes);
	memcpy(i->live_count, d->live_count, sizeof i->live_count);
	return i;
}

static inline struct cuf_incident *maker_fail(struct maker *m, unsigned device, uint64_t bytes, uint64_t free_bytes, uint64_t total_bytes, uint32_t stack)
{
	return maker_fail_of(m, CUF_KIND_DEVICE, device, bytes, free_bytes, total_bytes, stack);
}

static inline void maker_end(struct maker *m, unsigned end_kind, uint64_t status)
{
	m->h->end_seq = maker_event(m, (struct cuf_event){ .op = CUF_OP_EXIT, .device = CUF_DEVICE_NONE });
	m->h->end_ns = m->now_ns;
	m->h->end_status = status;
	m->h->end_kind = end_kind;
}

static inline void maker_meta(struct maker *m, unsigned type, uint64_t number, const char *text)
{
	uint64_t bytes = sizeof(struct cuf_meta) + ((strlen(text) + 7) & ~7ull);
	struct cuf_meta *meta = (void *)((uint8_t *)maker_section(m, CUF_SEC_META) + m->h->meta_used);
	if (m->h->meta_used + bytes > m->size[CUF_SEC_META])
		abort();
	*meta = (struct cuf_meta){ (uint16_t)type, 0, (uint32_t)bytes, m->now_ns, number, (uint32_t)strlen(text), 0 };
	memcpy(meta + 1, text, strlen(text));
	m->h->meta_used += bytes;
}

static inline void maker_module(struct maker *m, uint64_t id, uint64_t start, uint64_t end, const char *path)
{
	struct cuf_meta_module *module = (void *)((uint8_t *)maker_section(m, CUF_SEC_META) + m->h->meta_used);
	uint64_t bytes = sizeof *module + ((strlen(path) + 7) & ~7ull);
	*module = (struct cuf_meta_module){ .meta = { CUF_META_MODULE, 0, (uint32_t)bytes, m->now_ns, id, 0, 0 }, .base = start, .start = start,
		.end = end, .build_id_bytes = 20, .path_bytes = (uint32_t)strlen(path) };
	memset(module->build_id, (int)id, 20);
	memcpy(module + 1, path, strlen(path));
	m->h->meta_used += bytes;
}

/* A stack of depth frames, addresses base, base + 16 ... Its id is `id`. */
static inline void maker_stack(struct maker *m, uint32_t id, uint64_t base, unsigned depth)
{
	struct cuf_stack *s = (struct cuf_stack *)maker_section(m, CUF_SEC_STACK_INDEX) + (id - 1);
	uint64_t *frames = maker_section(m, CUF_SEC_STACK_FRAMES);
	if (id > m->plan.stacks || (m->h->frames_used + depth) * 8 > m->size[CUF_SEC_STACK_FRAMES])
		abort();
	*s = (struct cuf_stack){ base | 1, (uint32_t)m->h->frames_used, (uint16_t)depth, CUF_STOP_END, 0 };
	for (unsigned i = 0; i < depth; i++)
		frames[m->h->frames_used++] = base + 16 * i;
	m->h->stack_count++;
}

static inline struct cuf_sample *maker_sample(struct maker *m)
{
	struct cuf_sample *s = (struct cuf_sample *)maker_section(m, CUF_SEC_TIMELINE) + m->h->sample_count++;
	const struct cuf_device *d = maker_section(m, CUF_SEC_DEVICES);
	*s = (struct cuf_sample){ .time_ns = m->now_ns, .seq = m->h->next_seq, .rss_bytes = 100 * MiB, .cgroup_bytes = CUF_UNKNOWN };
	for (unsigned i = 0; i < CUF_DEVICES_MAX; i++) {
		s->device_live_bytes[i] = d[i].live_bytes[CUF_KIND_DEVICE] + d[i].live_bytes[CUF_KIND_ASYNC];
		s->device_free_bytes[i] = CUF_UNKNOWN;
	}
	return s;
}

static inline void maker_host(struct maker *m, unsigned op, uint64_t addr, uint64_t word1)
{
	struct cuf_host_event *e = maker_record(m, MAKER_HOST);
	struct cuf_segment *s = (void *)((uint8_t *)maker_section(m, CUF_SEC_HOST_RING) + (uint64_t)(m->open[1][m->thread] - 1) * m->plan.host_segment_bytes);
	m->now_ns += m->step_ns;
	if (m->now_ns - s->start_ns > 30000000000ull)
		abort(); /* the ticks of a segment would saturate: take larger steps and smaller segments */
	*e = (struct cuf_host_event){ cuf_host_word0(op, (unsigned)((m->now_ns - s->start_ns) / 1000000), addr), word1 };
}

static inline void maker_host_alloc(struct maker *m, uint64_t addr, uint64_t bytes, uint32_t stack)
{
	struct cuf_host_block *b = maker_section(m, CUF_SEC_HOST_LEDGER);
	maker_host(m, CUF_HOST_ALLOC, addr, cuf_host_word1(stack, bytes));
	for (uint32_t i = 0; i < m->plan.host_ledger; i++)
		if (!b[i].word0) {
			b[i] = (struct cuf_host_block){ addr >> 3 << 19 | cuf_birth_encode((m->now_ns - MAKER_START_NS) / 1000000), cuf_host_word1(stack, bytes) };
			return;
		}
	abort();
}

static inline void maker_host_free(struct maker *m, uint64_t addr)
{
	struct cuf_host_block *b = maker_section(m, CUF_SEC_HOST_LEDGER);
	for (uint32_t i = 0; i < m->plan.host_ledger; i++)
		if (b[i].word0 && cuf_host_addr(b[i].word0) == addr) {
			maker_host(m, CUF_HOST_FREE, addr, b[i].word1);
			b[i] = (struct cuf_host_block){ 0, 0 };
			return;
		}
	abort();
}

static inline void maker_write(const struct maker *m, const char *path)
{
	FILE *f = fopen(path, "w");
	if (!f || fwrite(m->data, 1, m->bytes, f) != m->bytes || fclose(f))
		abort();
}

#endif
