/* SPDX-License-Identifier: Apache-2.0 */
/* Device events: assembles an event, appends it, keeps the ledger and the totals in step. */
#include "interpose/record/recorder.h"

#include <errno.h>
#include "interpose/platform/clock.h"
#include "interpose/incident/device.h"
#include "interpose/store/hook_names.h"
#include "interpose/incident/incident.h"
#include "interpose/store/ledger.h"
#include "interpose/store/recording.h"
#include "interpose/store/ring.h"
#include "interpose/stack/stacks.h"
#include "interpose/record/state.h"
#include "interpose/process/thread.h"
#include "interpose/incident/timeline.h"
#include "interpose/platform/laws.h"

/* ---- calls and labels ---- */

bool cuf_call_begin(struct cuf_call *call, unsigned hook, void *frame)
{
	struct cuf_thread_state *t;
	call->saved_errno = errno;
	call->thread = NULL;
	call->hook = (uint16_t)hook;
	call->label = cuf_tls.label;
	call->stack = CUF_UNKNOWN32;
	call->frame = cuf_tls.label ? cuf_tls.label_frame : (uintptr_t)frame;
	if (cuf_tls.driver_calls < 255)
		cuf_tls.driver_calls++;
	if (cuf_tls.driver_calls == 1) {
		/* a thread that is attached needs no more than that look at the gate; each operation enters by itself */
		if (__builtin_expect(cuf_tls.generation == __atomic_load_n(cuf_gate, __ATOMIC_ACQUIRE), 1)) {
			call->thread = cuf_tls.thread;
		} else if ((t = cuf_thread_enter())) {
			call->thread = t;
			cuf_thread_leave(t);
		}
	}
	errno = call->saved_errno;
	return call->thread != NULL;
}

void cuf_call_end(void)
{
	if (cuf_tls.driver_calls)
		cuf_tls.driver_calls--;
}

void cuf_label_begin(struct cuf_label *label, unsigned hook, void *frame)
{
	label->before = cuf_tls.label;
	label->frame_before = cuf_tls.label_frame;
	label->active = true;
	if (label->before) /* the outermost runtime call names it: that is what the program called */
		return;
	cuf_tls.label = (uint16_t)hook;
	cuf_tls.label_frame = (uintptr_t)frame;
}

void cuf_label_end(struct cuf_label *label)
{
	cuf_tls.label = label->before;
	cuf_tls.label_frame = label->frame_before;
}

/* ---- one operation inside a call ---- */

enum { COST_EVERY = 16 };

struct operation {
	struct cuf_call *call;
	struct cuf_thread_state *thread;
	uint64_t now_ns;
	int saved_errno;
};

static bool begin(struct operation *o, struct cuf_call *call)
{
	if (!call->thread)
		return false;
	o->saved_errno = errno;
	o->call = call;
	o->thread = cuf_thread_enter();
	if (!o->thread)
		return false;
	o->now_ns = cuf_now_ns();
	if (call->stack == CUF_UNKNOWN32)
		call->stack = cuf_stack_capture(&o->thread->stack, call->frame);
	return true;
}

static void finish(struct operation *o)
{
	cuf_timeline_tick(o->now_ns);
	if (++o->thread->operations % COST_EVERY == 0) /* a clock read is a tenth of an operation */
		__atomic_fetch_add(&cuf_recording.header->recorder_ns, COST_EVERY * (cuf_now_ns() - o->now_ns), __ATOMIC_RELAXED);
	cuf_thread_leave(o->thread);
	errno = o->saved_errno;
}

static uint64_t log_event(struct operation *o, unsigned op, const struct cuf_block *block, uint64_t addr, uint32_t alloc_stack, uint32_t extra)
{
	struct cuf_event event = {
		.time_ns = o->now_ns, .addr = addr, .bytes = block->bytes, .aux = block->aux,
		.stack = o->call->stack, .alloc_stack = alloc_stack, .tid = o->thread->writer.tid, .extra = extra,
		.hook = o->call->hook, .label = o->call->label,
		.op = (uint8_t)op, .kind = block->kind, .device = block->device, .flags = block->flags,
	};
	return cuf_ring_event(&o->thread->writer, CUF_RING_DEVICE, &event);
}

static uint32_t age_ms(const struct cuf_block *block, uint64_t now_ns)
{
	uint64_t ms = (now_ns - block->time_ns) / 1000000;
	return ms > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)ms;
}

static struct cuf_block block_of(const struct operation *o, const struct cuf_request *request, uint64_t addr)
{
	return (struct cuf_block){
		.key = cuf_key(cuf_kind_space(request->kind), addr), .bytes = request->bytes, .aux = request->aux,
		.time_ns = o->now_ns, .stack = o->call->stack, .tid = o->thread->writer.tid, .context = request->context,
		.references = 1, .hook = o->call->hook, .label = o->call->label,
		.kind = request->kind, .device = request->device, .flags = request->flags, .role = cuf_tls.role,
	};
}

/* The ledger knows of a block's role only while the block lives. */
static void log_role(struct operation *o, const struct cuf_block *block, uint64_t addr)
{
	struct cuf_event event = {
		.time_ns = o->now_ns, .addr = addr, .bytes = block->bytes, .stack = block->stack, .tid = block->tid, .extra = block->role,
		.hook = block->hook, .label = block->label, .op = CUF_OP_ROLE, .kind = block->kind, .device = block->device, .flags = block->flags,
	};
	cuf_ring_event(&o->thread->writer, CUF_RING_FRAMEWORK, &event);
}

static void add(struct operation *o, struct cuf_block *block, unsigned op, uint64_t addr)
{
	struct cuf_block old;
	block->seq = log_event(o, op, block, addr, block->stack, 0);
	if (cuf_ledger_add(block, &old)) {
		cuf_device_count(&old, -1, o->now_ns);
		__atomic_fetch_add(&cuf_recording.header->replaced, 1, __ATOMIC_RELAXED);
	}
	cuf_device_count(block, 1, o->now_ns);
}

static void log_free(struct operation *o, const struct cuf_block *block, unsigned flags)
{
	struct cuf_block logged = *block;
	logged.flags |= (uint8_t)flags;
	log_event(o, CUF_OP_FREE, &logged, cuf_key_addr(block->key), block->stack, age_ms(block, o->now_ns));
	cuf_device_count(block, -1, o->now_ns);
}

/* ---- what hooks call ---- */

void cuf_block_alloc(struct cuf_call *call, const struct cuf_request *request, uint64_t addr)
{
	struct operation o;
	struct cuf_block block;
	if (!begin(&o, call))
		return;
	block = block_of(&o, request, addr);
	add(&o, &block, CUF_OP_ALLOC, addr);
	if (__builtin_expect(block.role, 0))
		log_role(&o, &block, addr);
	cuf_incident_success(&o.thread->writer.tid, request, block.seq, o.now_ns);
	finish(&o);
}

bool cuf_block_free(struct cuf_call *call, unsigned space, uint64_t addr, struct cuf_block *block)
{
	struct operation o;
	bool known;
	*block = (struct cuf_block){ 0 };
	if (!begin(&o, call))
		return false;
	known = cuf_ledger_take(cuf_key(space, addr), block);
	if (known) {
		log_free(&o, block, 0);
	} else {
		struct cuf_block unknown = { .device = CUF_DEVICE_NONE };
		log_event(&o, CUF_OP_UNKNOWN_FREE, &unknown, addr, 0, 0);
		__atomic_fetch_add(&cuf_recording.header->unknown_frees, 1, __ATOMIC_RELAXED);
	}
	finish(&o);
	return known;
}

void cuf_block_restore(struct cuf_call *call, const struct cuf_block *block)
{
	struct operation o;
	struct cuf_block old, back = *block;
	if (!back.key || !begin(&o, call))
		return;
	log_event(&o, CUF_OP_RESTORE, &back, cuf_key_addr(back.key), back.stack, age_ms(&back, o.now_ns));
	cuf_ledger_add(&back, &old);
	cuf_device_count(&back, 1, o.now_ns);
	__atomic_fetch_add(&cuf_recording.header->undone_frees, 1, __ATOMIC_RELAXED);
	finish(&o);
}

bool cuf_block_find(unsigned space, uint64_t addr, struct cuf_block *block)
{
	return cuf_recording.base && cuf_ledger_find(cuf_key(space, addr), block);
}

void cuf_block_flag(unsigned space, uint64_t addr, unsigned flags)
{
	struct cuf_block after;
	if (cuf_recording.base)
		cuf_ledger_add_refs(cuf_key(space, addr), 0, 0, flags, &after);
}

int cuf_block_add_refs(struct cuf_call *call, unsigned space, uint64_t addr, int references, int maps, struct cuf_block *block)
{
	struct operation o;
	struct cuf_block after, taken;
	uint64_t key = cuf_key(space, addr);
	int died = 0;
	*block = (struct cuf_block){ 0 };
	if (!begin(&o, call))
		return -1;
	if (!cuf_ledger_add_refs(key, references, maps, 0, &after)) {
		died = -1;
	} else {
		*block = after;
		block->references = (uint16_t)(after.references - references);
		block->maps = (uint16_t)(after.maps - maps);
		log_event(&o, CUF_OP_REFERENCE, &after, addr, after.stack, (uint32_t)after.maps << 16 | after.references);
		if (!after.references && !after.maps && cuf_ledger_take(key, &taken)) {
			log_free(&o, &taken, 0);
			died = 1;
		}
	}
	finish(&o);
	return died;
}

uint64_t cuf_reset_begin(struct cuf_call *call, unsigned device, uint32_t context)
{
	struct operation o;
	struct cuf_block none = { .device = (uint8_t)device };
	uint64_t seq;
	if (!begin(&o, call))
		return 0;
	seq = log_event(&o, CUF_OP_RESET, &none, 0, 0, context);
	finish(&o);
	return seq;
}

struct reset { struct operation *operation; uint64_t seq; unsigned flags, device; uint32_t context; };

static void reset_block(const struct cuf_block *block, void *argument)
{
	const struct reset *r = argument;
	struct cuf_block taken;
	if (block->seq > r->seq || (block->flags & r->flags) != r->flags || (r->device != CUF_DEVICE_NONE && block->device != r->device) ||
	    (r->context && block->context && block->context != r->context))
		return;
	if (cuf_ledger_take(block->key, &taken))
		log_free(r->operation, &taken, CUF_EVENT_BULK);
}

void cuf_reset_apply(struct cuf_call *call, unsigned flags, unsigned device, uint32_t context, uint64_t seq)
{
	struct operation o;
	struct reset reset = { &o, seq, flags, device, context };
	/* after the end began, releases are the exit handlers' work: the ledger keeps what the program held */
	if (!seq || cuf_recording.header->end_kind || !begin(&o, call))
		return;
	cuf_ledger_each(reset_block, &reset);
	finish(&o);
}

void cuf_level_set(struct cuf_call *call, const struct cuf_request *request, uint64_t addr)
{
	struct operation o;
	struct cuf_block old, block;
	uint64_t key = cuf_key(cuf_kind_space(request->kind), addr);
	bool known = cuf_block_find(cuf_kind_space(request->kind), addr, &old);
	if ((known && old.bytes == request->bytes && old.aux == request->aux) || (!known && !request->bytes) || !begin(&o, call))
		return;
	if (known && cuf_ledger_take(key, &old))
		log_free(&o, &old, 0);
	if (request->bytes) {
		block = block_of(&o, request, addr);
		add(&o, &block, CUF_OP_ALLOC, addr);
	}
	finish(&o);
}

void cuf_event_note(struct cuf_call *call, unsigned op, const struct cuf_request *request, uint64_t addr, uint32_t extra)
{
	struct operation o;
	struct cuf_block block;
	if (!begin(&o, call))
		return;
	block = block_of(&o, request, addr);
	log_event(&o, op, &block, addr, 0, extra);
	finish(&o);
}

uint64_t cuf_request_failed(struct cuf_call *call, const struct cuf_request *request, uint32_t result, const struct cuf_driver_view *view)
{
	struct operation o;
	struct cuf_block block;
	struct cuf_incident *incident;
	uint64_t number = 0;
	if (!begin(&o, call))
		return 0;
	block = block_of(&o, request, 0);
	incident = cuf_incident_open(&block, result, request->unsized, view);
	if (incident) {
		number = cuf_incident_number(incident);
		incident->seq = log_event(&o, CUF_OP_FAIL, &block, number, 0, result);
		cuf_incident_publish(incident);
	}
	cuf_timeline_sample(o.now_ns);
	finish(&o);
	return number;
}

void cuf_driver_seen(uint64_t driver_version, unsigned gpa_identity)
{
	struct cuf_header *h = cuf_recording.header;
	if (!h || !cuf_state_is_on())
		return;
	h->driver_version = driver_version;
	h->gpa_identity = gpa_identity;
	if (!h->first_cuda_ns)
		h->first_cuda_ns = cuf_now_ns();
	cuf_hook_names_write();
	cuf_state_want_file();
}
