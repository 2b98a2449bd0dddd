/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of framework allocators: into ring, ledger and totals; failures into incidents. Framework
 * blocks go to a ring of their own and to the ledger (space FRAMEWORK), and never into a device's
 * live memory: their bytes are in the segment that the driver allocated.
 */
#include "interpose/record/framework.h"

#include <errno.h>
#include <string.h>
#include "interpose/incident/device.h"
#include "interpose/incident/incident.h"
#include "interpose/incident/timeline.h"
#include "interpose/incident/recent.h"
#include "interpose/incident/totals.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/sampler.h"
#include "interpose/platform/say.h"
#include "interpose/process/gate.h"
#include "interpose/record/operation.h"
#include "interpose/record/recorder.h"
#include "interpose/stack/stacks.h"
#include "interpose/store/ledger.h"
#include "interpose/store/meta.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum { RESERVED_SHIFT = 9 /* the smallest block is 512 bytes: 41 bits of reserved bytes in 32 */ };

static struct {
	uint64_t reports, allocated_bytes, freed_bytes;
} host_memory;

enum backend { BACKEND_UNKNOWN, BACKEND_NATIVE, BACKEND_EXPANDABLE, BACKEND_PLUGGABLE };
static uint32_t backends[CUF_DEVICES_MAX]; /* as last written */

static void forget_reports(void)
{
	memset(&host_memory, 0, sizeof host_memory);
	memset(backends, 0, sizeof backends);
}
CUF_AT_FORK_CHILD(forget_reports);

/* ---- the framework's back-end, seen from where a block is that made it reserve more ---- */

static enum backend backend_of(uint64_t addr)
{
	struct cuf_block segment, reservation;
	if (cuf_ledger_find(cuf_key(CUF_SPACE_DEVICE, addr), &segment))
		return BACKEND_NATIVE;
	if (!cuf_ledger_find(cuf_key(CUF_SPACE_MAPPING, addr), &segment))
		return BACKEND_UNKNOWN;
	/*
	 * a reservation that is mapped whole does not expand: a pool with its own allocator (vLLM's
	 * sleep mode)
	 */
	if (cuf_ledger_find(cuf_key(CUF_SPACE_RESERVATION, addr), &reservation) &&
	    reservation.bytes == segment.bytes)
		return BACKEND_PLUGGABLE;
	return BACKEND_EXPANDABLE;
}

static void note_backend(const struct cuf_report *report)
{
	static const char *const texts[] = {
		"", "backend=native\n", "backend=expandable\n", "backend=pluggable\n"
	};
	enum backend backend = backend_of(report->addr);
	if (backend && __atomic_exchange_n(&backends[report->device], backend,
					   __ATOMIC_RELAXED) != backend)
		cuf_meta_text(CUF_META_FRAMEWORK, report->device, texts[backend],
			      strlen(texts[backend]));
}

static void note_level(const struct cuf_report *report, uint64_t now_ns)
{
	const struct cuf_framework_level level = { report->allocated_bytes,
						  report->reserved_bytes };
	cuf_recent_inner(report->device, level, now_ns);
	if (__builtin_expect(cuf_framework_level_set(report->device, level), 0))
		note_backend(report);
}

/* ---- blocks ---- */

static uint32_t reserved_units(const struct cuf_report *report)
{
	uint64_t units = report->reserved_bytes >> RESERVED_SHIFT;
	return units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
}

static struct cuf_request request_of(const struct cuf_report *report)
{
	return (struct cuf_request){
		.bytes = (uint64_t)report->bytes,
		.aux = report->allocated_bytes,
		.kind = CUF_KIND_FRAMEWORK,
		.device = report->device,
	};
}

static uint64_t log_event(const struct cuf_operation *operation, unsigned op,
			  const struct cuf_block *block,
			  struct cuf_event_extra extra)
{
	return cuf_operation_log(operation, CUF_RING_FRAMEWORK, op, block, extra);
}

/* Totals of a kind that is in no sum of device memory. */
static void count_block(const struct cuf_block *block, int sign)
{
	struct cuf_device *device = cuf_device_at(block->device);
	if (!device)
		return;
	cuf_count(&device->live_bytes[CUF_KIND_FRAMEWORK], sign > 0 ? block->bytes : -block->bytes);
	cuf_count(&device->live_count[CUF_KIND_FRAMEWORK], (uint64_t)(int64_t)sign);
}

/* True for every large block, and for a sample by bytes of the others. */
static bool needs_stack(struct cuf_thread_state *thread, uint64_t bytes)
{
	if (bytes >= CUF_FRAMEWORK_EXACT_BYTES)
		return true;
	thread->framework_countdown_bytes -= (int64_t)bytes;
	if (__builtin_expect(thread->framework_countdown_bytes > 0, 1))
		return false;
	thread->framework_countdown_bytes =
		(int64_t)cuf_sample_interval(&thread->random, CUF_FRAMEWORK_SAMPLE_MEAN_BYTES);
	return true;
}

static void record_alloc(struct cuf_operation *operation, const struct cuf_report *report,
			 const void *frame)
{
	struct cuf_request request = request_of(report);
	struct cuf_block block, old;
	if (needs_stack(operation->thread, request.bytes)) {
		bool is_large = request.bytes >= CUF_FRAMEWORK_EXACT_BYTES;
		operation->stack = cuf_stack_capture_caller(&operation->thread->stack, frame,
							    is_large);
		if (!is_large)
			request.flags = CUF_EVENT_SAMPLED;
	}
	block = cuf_operation_block(operation, &request, report->addr);
	const struct cuf_event_extra extra = {
		.addr = report->addr, .alloc_stack = block.stack, .extra = reserved_units(report)
	};
	block.seq = log_event(operation, CUF_OP_ALLOC, &block, extra);
	cuf_ledger_add(&block, &old);
	if (__builtin_expect(old.key != 0, 0)) {
		count_block(&old, -1);
		cuf_count(&cuf_recording.header->replaced, 1);
	}
	count_block(&block, 1);
	cuf_framework_alloc_seq_set(block.device, block.seq);
	cuf_incident_success(operation->thread->writer.tid, &request, block.seq, block.time_ns);
}

static void record_free(struct cuf_operation *operation, const struct cuf_report *report)
{
	struct cuf_event_extra extra = { .addr = report->addr };
	struct cuf_block block;
	if (__builtin_expect(cuf_ledger_take(cuf_key(CUF_SPACE_FRAMEWORK, report->addr), &block),
			     1)) {
		extra.alloc_stack = block.stack;
		extra.extra = cuf_operation_age_ms(operation, &block);
		log_event(operation, CUF_OP_FREE, &block, extra);
		count_block(&block, -1);
		return;
	}
	block = (struct cuf_block){
		.bytes = -(uint64_t)report->bytes, .kind = CUF_KIND_FRAMEWORK,
			.device = report->device
	};
	log_event(operation, CUF_OP_UNKNOWN_FREE, &block, extra);
	cuf_count(&cuf_recording.header->unknown_frees, 1);
}

static void record_block(struct cuf_operation *operation, const struct cuf_report *report,
			 const void *frame)
{
	cuf_count(&cuf_recording.header->framework_events, 1);
	note_level(report, operation->now_ns);
	if (report->bytes > 0)
		record_alloc(operation, report, frame);
	else if (report->bytes < 0)
		record_free(operation, report);
}

/* ---- failures ---- */

/* The framework queried the driver just before it gave up, so the last values are those of now. */
static struct cuf_driver_view last_view(unsigned device)
{
	struct cuf_driver_view view = {
		.free_bytes = CUF_UNKNOWN, .total_bytes = CUF_UNKNOWN, .probed_bytes = CUF_UNKNOWN
	};
	const struct cuf_device *known = cuf_device_find(device);
	if (!known)
		return view;
	view.total_bytes = known->total_bytes;
	if (known->free_ns)
		view.free_bytes = known->free_bytes;
	return view;
}

/*
 * At the end of the ladder of driver failures that led to it, or by itself when the driver was not
 * called.
 */
static void record_failure(struct cuf_operation *operation, const struct cuf_report *report,
			   const void *frame)
{
	const struct cuf_request request = request_of(report);
	const struct cuf_driver_view view = last_view(report->device);
	struct cuf_incident *incident;
	struct cuf_block block;
	note_level(report, operation->now_ns);
	operation->stack = cuf_stack_capture_caller(&operation->thread->stack, frame, true);
	block = cuf_operation_block(operation, &request, report->addr);
	incident = cuf_incident_open(&block, 0, false, &view);
	if (incident) {
		const struct cuf_event_extra extra = {
			.addr = cuf_incident_number(incident), .extra = reserved_units(report)
		};
		incident->seq = log_event(operation, CUF_OP_FAIL, &block, extra);
		cuf_incident_publish(incident);
	}
	cuf_timeline_sample(operation->now_ns);
}

/* ---- reports ---- */

/* A report without an address (PyTorch before 1.10) proves only that there are blocks. */
static void count_blind(void)
{
	if (!cuf_recording.header || !cuf_gate_is_on())
		return;
	cuf_count(&cuf_recording.header->framework_events, 1);
	cuf_count(&cuf_recording.header->framework_blind, 1);
}

/* Host blocks of the framework come from malloc and are recorded there. Only the sum is kept. */
static void count_host(int64_t bytes)
{
	cuf_count(&host_memory.reports, 1);
	if (bytes > 0)
		cuf_count(&host_memory.allocated_bytes, (uint64_t)bytes);
	else
		cuf_count(&host_memory.freed_bytes, -(uint64_t)bytes);
}

void cuf_framework_report(const struct cuf_report *report, const void *frame)
{
	struct cuf_operation operation;
	if (__builtin_expect(report->type == CUF_REPORT_HOST, 0)) {
		count_host(report->bytes);
		return;
	}
	if (__builtin_expect(report->type == CUF_REPORT_BLIND, 0)) {
		count_blind();
		return;
	}
	if (!cuf_operation_begin(&operation, report->hook, cuf_tls.label))
		return;
	if (__builtin_expect(report->type == CUF_REPORT_FAILED, 0))
		record_failure(&operation, report, frame);
	else
		record_block(&operation, report, frame);
	cuf_operation_finish(&operation);
}

/* Written once, at the end: sums that change with every report would fill META. */
void cuf_framework_end(void)
{
	CUF_TEXT(text, 128);
	if (!host_memory.reports)
		return;
	cuf_text_add(&text, "host_reports=");
	cuf_text_number(&text, host_memory.reports);
	cuf_text_add(&text, "\nhost_allocated_bytes=");
	cuf_text_number(&text, host_memory.allocated_bytes);
	cuf_text_add(&text, "\nhost_freed_bytes=");
	cuf_text_number(&text, host_memory.freed_bytes);
	cuf_text_add(&text, "\n");
	cuf_meta_text(CUF_META_FRAMEWORK, 0, text.at, text.used);
}

/* ---- roles ---- */

/* The block that starts at addr; false: it is malloc's, or unknown. */
static bool assign_in_ledger(uint64_t addr, unsigned role, struct cuf_block *block)
{
	return cuf_ledger_assign(cuf_key(CUF_SPACE_DEVICE, addr), role, block) ||
	       cuf_ledger_assign(cuf_key(CUF_SPACE_HOST, addr), role, block);
}

void cuf_role_assign(uint64_t addr, uint64_t bytes, unsigned role, unsigned hook, const void *frame)
{
	struct cuf_operation operation;
	struct cuf_block block;
	if (!addr || !cuf_operation_begin(&operation, hook, cuf_tls.label))
		return;
	if (role == CUF_ROLE_NONE)
		role = cuf_tls.role;
	if (!assign_in_ledger(addr, role, &block))
		block = (struct cuf_block){ .bytes = bytes, .kind = CUF_KIND_HOST,
					   .device = CUF_DEVICE_NONE };
	operation.stack = cuf_stack_capture_caller(&operation.thread->stack, frame, true);
	log_event(&operation, CUF_OP_ROLE, &block, (struct cuf_event_extra){ .addr = addr,
									    .extra = role });
	cuf_operation_finish(&operation);
}
