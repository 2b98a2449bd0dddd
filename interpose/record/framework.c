/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of framework allocators: into ring, ledger and totals; failures into incidents. */
#include "interpose/record/framework.h"

#include <errno.h>
#include <string.h>
#include "interpose/platform/clock.h"
#include "interpose/incident/device.h"
#include "interpose/record/forget.h"
#include "interpose/incident/incident.h"
#include "interpose/store/ledger.h"
#include "interpose/record/recorder.h"
#include "interpose/store/recording.h"
#include "interpose/store/ring.h"
#include "interpose/platform/sampler.h"
#include "interpose/platform/say.h"
#include "interpose/stack/stacks.h"
#include "interpose/incident/timeline.h"
#include "interpose/platform/laws.h"

enum { COST_EVERY = 16, RESERVED_SHIFT = 9 /* the smallest block is 512 bytes: 41 bits of reserved in 32 */ };

static struct { uint64_t allocated_bytes, reserved_bytes, born_seq; uint32_t seen, backend; } levels[CUF_DEVICES_MAX];
static struct { uint64_t reports, came_bytes, went_bytes; } host;
static uint32_t known;

void cuf_framework_fork(void)
{
	memset(levels, 0, sizeof levels);
	memset(&host, 0, sizeof host);
	known = 0;
}

bool cuf_framework_is_known(void)
{
	return __atomic_load_n(&known, __ATOMIC_RELAXED) || __atomic_exchange_n(&known, 1, __ATOMIC_RELAXED);
}

uint64_t cuf_framework_events(void) { return cuf_recording.header ? cuf_recording.header->framework_events : 0; }

bool cuf_framework_is_silent(void)
{
	uint64_t allocations = 0;
	for (unsigned i = 0; cuf_recording.header && i < CUF_DEVICES_MAX; i++)
		allocations += __atomic_load_n(&cuf_recording.devices[i].alloc_count, __ATOMIC_RELAXED);
	return allocations && !cuf_framework_events();
}

struct cuf_framework_level cuf_framework_level(unsigned device)
{
	if (device >= CUF_DEVICES_MAX || !__atomic_load_n(&levels[device].seen, __ATOMIC_ACQUIRE))
		return (struct cuf_framework_level){ CUF_UNKNOWN, CUF_UNKNOWN };
	return (struct cuf_framework_level){ __atomic_load_n(&levels[device].allocated_bytes, __ATOMIC_RELAXED),
					     __atomic_load_n(&levels[device].reserved_bytes, __ATOMIC_RELAXED) };
}

uint64_t cuf_framework_born_seq(unsigned device)
{
	return device < CUF_DEVICES_MAX ? __atomic_load_n(&levels[device].born_seq, __ATOMIC_RELAXED) : 0;
}

static void count(uint64_t *counter, uint64_t by) { __atomic_fetch_add(counter, by, __ATOMIC_RELAXED); }

/* ---- which back-end: where a block lies that made the framework take more ---- */

enum backend { BACKEND_UNKNOWN = 0, BACKEND_NATIVE = 1, BACKEND_EXPANDABLE = 2, BACKEND_PLUGGABLE = 3 };

static enum backend backend_of(uint64_t addr)
{
	struct cuf_block segment, reservation;
	if (cuf_ledger_find(cuf_key(CUF_SPACE_DEVICE, addr), &segment))
		return BACKEND_NATIVE;
	if (!cuf_ledger_find(cuf_key(CUF_SPACE_MAPPING, addr), &segment))
		return BACKEND_UNKNOWN;
	/* a reservation that is mapped whole does not expand: a pool with an allocator of its own (vLLM's sleep mode) */
	return cuf_ledger_find(cuf_key(CUF_SPACE_RESERVATION, addr), &reservation) && reservation.bytes == segment.bytes ? BACKEND_PLUGGABLE :
														   BACKEND_EXPANDABLE;
}

static void note_backend(const struct cuf_report *r)
{
	static const char *const texts[] = { "", "backend=native\n", "backend=expandable\n", "backend=pluggable\n" };
	enum backend backend = backend_of(r->addr);
	if (backend && __atomic_exchange_n(&levels[r->device].backend, backend, __ATOMIC_RELAXED) != backend)
		cuf_meta_text(CUF_META_FRAMEWORK, r->device, texts[backend], strlen(texts[backend]));
}

/* One thread a device at a time: the framework has its allocator locked. */
static void note_level(const struct cuf_report *r)
{
	uint64_t before;
	if (r->device >= CUF_DEVICES_MAX)
		return;
	before = __atomic_load_n(&levels[r->device].reserved_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&levels[r->device].allocated_bytes, r->allocated_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&levels[r->device].reserved_bytes, r->reserved_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&levels[r->device].seen, 1, __ATOMIC_RELEASE);
	if (__builtin_expect(r->reserved_bytes > before, 0))
		note_backend(r);
}

/* ---- one report ---- */

struct operation {
	const struct cuf_report *report;
	struct cuf_thread_state *thread;
	uint64_t now_ns;
	int saved_errno;
};

static bool begin(struct operation *o, const struct cuf_report *report)
{
	o->saved_errno = errno;
	o->report = report;
	o->thread = cuf_thread_enter();
	if (!o->thread)
		return false;
	o->now_ns = cuf_now_ns();
	return true;
}

static void finish(struct operation *o)
{
	cuf_timeline_tick(o->now_ns);
	if (++o->thread->operations % COST_EVERY == 0)
		count(&cuf_recording.header->recorder_ns, COST_EVERY * (cuf_now_ns() - o->now_ns));
	cuf_thread_leave(o->thread);
	errno = o->saved_errno;
}

static uint32_t reserved_units(const struct cuf_report *r)
{
	uint64_t units = r->reserved_bytes >> RESERVED_SHIFT;
	return units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
}

static uint64_t log_event(const struct operation *o, unsigned op, const struct cuf_block *block, uint64_t addr, uint32_t alloc_stack, uint32_t extra)
{
	struct cuf_event event = {
		.time_ns = o->now_ns, .addr = addr, .bytes = block->bytes, .aux = block->aux,
		.stack = op == CUF_OP_FREE ? 0 : block->stack, .alloc_stack = alloc_stack, .tid = o->thread->writer.tid, .extra = extra,
		.hook = o->report->hook, .label = cuf_tls.label,
		.op = (uint8_t)op, .kind = block->kind, .device = block->device, .flags = block->flags,
	};
	return cuf_ring_event(&o->thread->writer, CUF_RING_FRAMEWORK, &event);
}

/* Totals of a kind that is in no sum of device memory. */
static void total(const struct cuf_block *block, int sign)
{
	struct cuf_device *d = cuf_device_at(block->device);
	if (!d)
		return;
	count(&d->live_bytes[CUF_KIND_FRAMEWORK], sign > 0 ? block->bytes : -block->bytes);
	count(&d->live_count[CUF_KIND_FRAMEWORK], (uint64_t)(int64_t)sign);
}

/* Every large block's stack; of small ones a sample by bytes. */
static void take_stack(const struct operation *o, struct cuf_block *block, const void *frame)
{
	struct cuf_thread_state *t = o->thread;
	if (block->bytes < CUF_FRAMEWORK_EXACT_BYTES) {
		t->framework_countdown_bytes -= (int64_t)block->bytes;
		if (__builtin_expect(t->framework_countdown_bytes > 0, 1))
			return;
		t->framework_countdown_bytes = (int64_t)cuf_sample_interval(&t->random, CUF_FRAMEWORK_SAMPLE_MEAN_BYTES);
		block->flags |= CUF_EVENT_SAMPLED;
	}
	block->stack = cuf_stack_capture_caller(&t->stack, frame, block->bytes >= CUF_FRAMEWORK_EXACT_BYTES);
}

static struct cuf_block block_of(const struct operation *o)
{
	const struct cuf_report *r = o->report;
	return (struct cuf_block){
		.key = cuf_key(CUF_SPACE_FRAMEWORK, r->addr), .bytes = (uint64_t)r->bytes, .aux = r->allocated_bytes,
		.time_ns = o->now_ns, .tid = o->thread->writer.tid, .references = 1, .hook = r->hook, .label = cuf_tls.label,
		.kind = CUF_KIND_FRAMEWORK, .device = r->device, .role = cuf_tls.role,
	};
}

static void born(struct operation *o, const void *frame)
{
	struct cuf_block block = block_of(o), old;
	struct cuf_request request = { .bytes = block.bytes, .kind = block.kind, .device = block.device };
	take_stack(o, &block, frame);
	block.seq = log_event(o, CUF_OP_ALLOC, &block, o->report->addr, block.stack, reserved_units(o->report));
	if (__builtin_expect(cuf_ledger_add(&block, &old), 0)) {
		total(&old, -1);
		count(&cuf_recording.header->replaced, 1);
	}
	total(&block, 1);
	if (block.device < CUF_DEVICES_MAX)
		__atomic_store_n(&levels[block.device].born_seq, block.seq, __ATOMIC_RELAXED);
	cuf_incident_success(&o->thread->writer.tid, &request, block.seq, block.time_ns);
}

static void went(struct operation *o)
{
	uint64_t addr = o->report->addr, ms;
	struct cuf_block block;
	if (__builtin_expect(cuf_ledger_take(cuf_key(CUF_SPACE_FRAMEWORK, addr), &block), 1)) {
		ms = (o->now_ns - block.time_ns) / 1000000;
		log_event(o, CUF_OP_FREE, &block, addr, block.stack, ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX - 1);
		total(&block, -1);
		return;
	}
	block = (struct cuf_block){ .bytes = -(uint64_t)o->report->bytes, .kind = CUF_KIND_FRAMEWORK, .device = o->report->device };
	log_event(o, CUF_OP_UNKNOWN_FREE, &block, addr, 0, 0);
	count(&cuf_recording.header->unknown_frees, 1);
}

void cuf_framework_block(const struct cuf_report *report, const void *frame)
{
	struct operation o;
	if (!begin(&o, report))
		return;
	count(&cuf_recording.header->framework_events, 1);
	note_level(report);
	if (report->bytes > 0)
		born(&o, frame);
	else if (report->bytes < 0)
		went(&o);
	finish(&o);
}

/* What the driver was last seen to say: the framework itself asked it just before it gave up. */
static struct cuf_driver_view last_view(unsigned device)
{
	struct cuf_driver_view view = { .free_bytes = CUF_UNKNOWN, .total_bytes = CUF_UNKNOWN, .probed_bytes = CUF_UNKNOWN };
	const struct cuf_device *d = cuf_device_at(device);
	if (d && d->present) {
		view.total_bytes = d->total_bytes;
		view.free_bytes = d->free_ns ? d->free_bytes : CUF_UNKNOWN;
	}
	return view;
}

void cuf_framework_failed(const struct cuf_report *report, const void *frame)
{
	struct operation o;
	struct cuf_driver_view view;
	struct cuf_incident *incident;
	struct cuf_block wanted;
	if (!begin(&o, report))
		return;
	note_level(report);
	wanted = block_of(&o);
	wanted.stack = cuf_stack_capture_caller(&o.thread->stack, frame, true);
	view = last_view(report->device);
	incident = cuf_incident_open(&wanted, 0, false, &view);
	if (incident) {
		incident->seq = log_event(&o, CUF_OP_FAIL, &wanted, cuf_incident_number(incident), 0, reserved_units(report));
		cuf_incident_publish(incident);
	}
	cuf_timeline_sample(o.now_ns);
	finish(&o);
}

void cuf_framework_blind(void)
{
	if (!cuf_recording.header || !cuf_state_is_on())
		return;
	count(&cuf_recording.header->framework_events, 1);
	count(&cuf_recording.header->framework_blind, 1);
}

/* ---- host memory: sums alone ---- */

void cuf_framework_host(int64_t bytes)
{
	count(&host.reports, 1);
	count(bytes > 0 ? &host.came_bytes : &host.went_bytes, bytes > 0 ? (uint64_t)bytes : -(uint64_t)bytes);
}

void cuf_framework_end(void)
{
	CUF_TEXT(text, 128);
	if (!host.reports)
		return;
	cuf_text_add(&text, "host_reports=");
	cuf_text_number(&text, host.reports);
	cuf_text_add(&text, "\nhost_allocated_bytes=");
	cuf_text_number(&text, host.came_bytes);
	cuf_text_add(&text, "\nhost_freed_bytes=");
	cuf_text_number(&text, host.went_bytes);
	cuf_text_add(&text, "\n");
	cuf_meta_text(CUF_META_FRAMEWORK, 0, text.at, strlen(text.at));
}

/* ---- roles ---- */

unsigned cuf_role_now(void) { return cuf_tls.role; }

unsigned cuf_role_exchange(unsigned role)
{
	unsigned before = cuf_tls.role;
	cuf_tls.role = (uint8_t)role;
	return before;
}

void cuf_role_assign(uint64_t addr, uint64_t bytes, unsigned role, unsigned hook, const void *frame)
{
	static const uint8_t spaces[] = { CUF_SPACE_DEVICE, CUF_SPACE_HOST };
	const struct cuf_report report = { .addr = addr, .hook = (uint16_t)hook };
	struct cuf_block block = { .bytes = bytes, .kind = CUF_KIND_HOST, .device = CUF_DEVICE_NONE }, found;
	struct operation o;
	if (!addr || !begin(&o, &report))
		return;
	for (unsigned i = 0; i < sizeof spaces; i++)
		if (cuf_ledger_assign(cuf_key(spaces[i], addr), role, &found)) {
			block = found;
			break;
		}
	block.stack = cuf_stack_capture_caller(&o.thread->stack, frame, true);
	log_event(&o, CUF_OP_ROLE, &block, addr, 0, role);
	finish(&o);
}
