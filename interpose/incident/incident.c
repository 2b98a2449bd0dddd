/* SPDX-License-Identifier: Apache-2.0 */
/* Opens incidents, links the attempts of one ladder, notices what resolved them. */
#include "interpose/incident/incident.h"

#include <string.h>
#include <sys/resource.h>
#include "interpose/code/symbolize.h"
#include "interpose/incident/device.h"
#include "interpose/incident/open_phases.h"
#include "interpose/incident/snapshot.h"
#include "interpose/incident/totals.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/process/cgroup.h"
#include "interpose/process/size_limit.h"
#include "interpose/process/switch_off.h"
#include "interpose/store/dropped.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum { LADDER_NS_MAX = 2000000000, SMALL_SUCCESSES = 64, ATTEMPTS_MAX = 16 };

/*
 * A thread that works on for longer than this after another one's failure shows that the process
 * went on.
 */
#define LASTING_NS 5000000000ull

enum { OUTCOME_OPEN, OUTCOME_RECOVERED, OUTCOME_WENT_ON };

static uint64_t last_number;      /* of the last published incident; 0 none */
static uint32_t small_successes;  /* since then */

/* A forked child numbers its incidents from 1. */
static void forget_incidents(void) { last_number = small_successes = 0; }
CUF_AT_FORK_CHILD(forget_incidents);

/*
 * The first quarter of the slots keeps the first incidents; later ones share the rest. Numbers
 * begin at 1.
 */
static struct cuf_incident *slot_of(uint64_t number)
{
	uint64_t keep = cuf_recording.incident_slots / 4,
		rest = cuf_recording.incident_slots - keep;
	uint64_t index = number - 1;
	if (index >= keep)
		index = keep + (index - keep) % rest;
	return &cuf_recording.incidents[index];
}

/* The last published one, unless its slot has been reused. NULL: none. */
static const struct cuf_incident *last_incident(void)
{
	const struct cuf_incident *incident;
	if (!last_number)
		return NULL;
	incident = slot_of(last_number);
	return incident->number == last_number ? incident : NULL;
}

/* ---- ladders ---- */

/*
 * The driver failures of this thread and device since the framework last got a block, latest first.
 */
static unsigned find_attempts(const struct cuf_incident *now, struct cuf_incident **attempts)
{
	uint64_t since = cuf_framework_alloc_seq(now->device);
	unsigned count = 0;
	for (uint64_t number = now->number - 1; number && count < ATTEMPTS_MAX; number--) {
		struct cuf_incident *before = slot_of(number);
		if (before->number != number || before->kind == CUF_KIND_FRAMEWORK ||
		    before->seq < since ||
		    now->time_ns - before->time_ns > LADDER_NS_MAX)
			break;
		if (before->tid == now->tid && before->device == now->device)
			attempts[count++] = before;
	}
	return count;
}

/*
 * A framework gives up on a block after the driver refused it a segment: a larger one, or a chunk
 * of one. Chunks may have been allocated and freed, and cached memory released, so that earlier
 * failures looked recovered. Whatever failed since the framework last got a block is an attempt of
 * this one. The framework reports no driver error, so it is the last attempt's.
 */
static void link_framework(struct cuf_incident *now)
{
	struct cuf_incident *attempts[ATTEMPTS_MAX];
	unsigned count = find_attempts(now, attempts);
	if (!count)
		return;
	for (unsigned i = 0; i < count; i++) {
		struct cuf_incident *attempt = attempts[count - 1 - i];
		attempt->first = attempts[count - 1]->number;
		attempt->attempt = i;
		attempt->outcome = OUTCOME_OPEN;
		attempt->resolved_seq = 0;
	}
	now->result = attempts[0]->result;
	now->first = attempts[0]->first;
	now->attempt = count;
}

/*
 * True when `before` was the previous attempt of the same need: recent, unresolved, the same
 * thread, device and size.
 */
static bool is_same_need(const struct cuf_incident *before, const struct cuf_incident *now)
{
	return !before->outcome && before->tid == now->tid && before->device == now->device &&
	       before->requested_bytes == now->requested_bytes && now->time_ns - before->time_ns <=
		LADDER_NS_MAX;
}

/* Sets first, attempt and, for a framework, the result. The incident is not published yet. */
static void link_ladder(struct cuf_incident *now)
{
	const struct cuf_incident *before = last_incident();
	now->first = now->number;
	if (now->kind == CUF_KIND_FRAMEWORK) {
		link_framework(now);
	} else if (before && is_same_need(before, now)) {
		now->first = before->first;
		now->attempt = before->attempt + 1;
	}
}

/* ---- a new incident ---- */

/* The driver refused, and its free memory was read. */
static void count_failure(const struct cuf_block *requested, const struct cuf_driver_view *view)
{
	struct cuf_device *device = &cuf_recording.devices[requested->device];
	__atomic_fetch_add(&device->fail_count, 1, __ATOMIC_RELAXED);
	if (view->free_bytes != CUF_UNKNOWN) {
		device->free_bytes = view->free_bytes;
		device->free_ns = requested->time_ns;
	}
}

/* What failed: the block that would have been. */
static void fill_request(struct cuf_incident *incident, const struct cuf_block *requested)
{
	incident->time_ns = requested->time_ns;
	incident->requested_bytes = requested->bytes;
	incident->stack = requested->stack;
	incident->tid = requested->tid;
	incident->hook = requested->hook;
	incident->label = requested->label;
	incident->kind = requested->kind;
	incident->device = requested->device;
}

/* What the driver reports of the device, read by the caller. */
static void fill_view(struct cuf_incident *incident, const struct cuf_driver_view *view)
{
	incident->free_bytes = view->free_bytes;
	incident->total_bytes = view->total_bytes;
	incident->probed_bytes = view->probed_bytes;
	incident->pool_count = view->pool_count < CUF_POOLS_MAX ? view->pool_count : CUF_POOLS_MAX;
	memcpy(incident->pools, view->pools, incident->pool_count * sizeof *incident->pools);
}

/* What the process holds, and what limits it. */
static void fill_totals(struct cuf_incident *incident)
{
	const struct cuf_device *device = cuf_device_at(incident->device);
	struct cuf_framework_level level = cuf_framework_level(incident->device);
	struct cuf_process_memory memory;
	if (device) {
		memcpy(incident->live_bytes, device->live_bytes, sizeof incident->live_bytes);
		memcpy(incident->live_count, device->live_count, sizeof incident->live_count);
	}
	cuf_process_memory(&memory);
	incident->rss_bytes = memory.rss_bytes;
	incident->cgroup_bytes = memory.cgroup_bytes;
	incident->cgroup_max_bytes = memory.cgroup_max_bytes;
	incident->address_bytes = memory.address_bytes;
	incident->address_max_bytes = cuf_limit_bytes(RLIMIT_AS);
	incident->data_bytes = memory.data_bytes;
	incident->data_max_bytes = cuf_limit_bytes(RLIMIT_DATA);
	incident->host_live_bytes = cuf_host_live_bytes();
	incident->framework_allocated_bytes = level.allocated_bytes;
	incident->framework_reserved_bytes = level.reserved_bytes;
}

struct cuf_incident *cuf_incident_open(const struct cuf_block *requested, uint32_t result,
				       bool unsized,
				       const struct cuf_driver_view *view)
{
	struct cuf_incident *incident;
	uint64_t number;
	if (!cuf_check_recording())
		return NULL;
	number = __atomic_add_fetch(&cuf_recording.header->incident_count, 1, __ATOMIC_RELAXED);
	incident = slot_of(number ? number : 1); /* 0: the count was overwritten */
	if (incident->number)
		cuf_count_dropped(CUF_LOST_INCIDENTS);
	__atomic_store_n(&incident->number, 0, __ATOMIC_RELEASE);
	memset(incident, 0, sizeof *incident);
	fill_request(incident, requested);
	incident->is_request = !unsized;
	incident->result = result;
	fill_view(incident, view);
	fill_totals(incident);
	if (requested->device < CUF_DEVICES_MAX && requested->kind != CUF_KIND_FRAMEWORK)
		count_failure(requested, view);
	cuf_snapshot_take(incident);
	cuf_phases_at_incident(incident);
	incident->first = number; /* until it is published: the commit field must stay 0 */
	return incident;
}

uint64_t cuf_incident_number(const struct cuf_incident *incident) { return incident->first; }

/*
 * Names the functions of the stacks that a report of this incident needs, in case nothing more is
 * ever written.
 */
static void name_stacks(const struct cuf_incident *incident)
{
	uint32_t stacks[CUF_INCIDENT_SITES + 1] = { incident->stack };
	unsigned count = 1;
	for (; count <= incident->site_count && count <= CUF_INCIDENT_SITES; count++)
		stacks[count] = incident->sites[count - 1].stack;
	cuf_symbolize_stacks(stacks, count);
}

/*
 * The ladder is linked on a copy with the number in place, because the number in the slot is the
 * commit field. Naming functions comes after the commit: it is slow, and the incident is complete.
 */
void cuf_incident_publish(struct cuf_incident *incident)
{
	uint64_t number = incident->first;
	struct cuf_incident copy = *incident;
	copy.number = number;
	link_ladder(&copy);
	incident->first = copy.first;
	incident->attempt = copy.attempt;
	incident->result = copy.result;
	__atomic_store_n(&incident->number, number, __ATOMIC_RELEASE);
	name_stacks(incident);
	__atomic_store_n(&small_successes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&last_number, number, __ATOMIC_RELEASE);
}

/* ---- outcomes ---- */

/* Mappings and reservations take addresses, not memory. */
static bool can_resolve(const struct cuf_request *request)
{
	return request->kind != CUF_KIND_MAPPING && request->kind != CUF_KIND_RESERVATION;
}

/*
 * As large, by the same thread: a retry succeeded. Otherwise the program handled the failure, when
 * another thread gets as much, or when many smaller requests succeed.
 */
static void resolve(struct cuf_incident *incident, uint32_t tid, const struct cuf_request *request,
		    uint64_t seq,
		    uint64_t now_ns)
{
	bool is_as_large = request->bytes >= incident->requested_bytes;
	if (is_as_large && incident->tid == tid) {
		incident->resolved_seq = seq;
		incident->outcome = OUTCOME_RECOVERED;
		return;
	}
	/* other threads do not stop at once when one of them brings the process down */
	if (incident->tid != tid && now_ns < incident->time_ns + LASTING_NS)
		return;
	if (is_as_large || __atomic_add_fetch(&small_successes, 1,
					      __ATOMIC_RELAXED) > SMALL_SUCCESSES)
		incident->outcome = OUTCOME_WENT_ON;
}

void cuf_incident_success(uint32_t tid, const struct cuf_request *request, uint64_t seq,
			  uint64_t now_ns)
{
	uint64_t number = __atomic_load_n(&last_number, __ATOMIC_ACQUIRE);
	struct cuf_incident *incident;
	if (__builtin_expect(!number, 1))
		return;
	incident = slot_of(number);
	if (incident->number == number && !incident->outcome &&
	    incident->device == request->device &&
	    can_resolve(request))
		resolve(incident, tid, request, seq, now_ns);
}

/* A refused page-lock leaves its error behind: the next launch reports it, with room on the device.
 * The report has the same rule (refused_page_lock). */
static bool has_room(const struct cuf_incident *incident)
{
	return incident->free_bytes != CUF_UNKNOWN && incident->total_bytes != CUF_UNKNOWN &&
	       incident->free_bytes >= incident->total_bytes / 20;
}

static const struct cuf_incident *page_lock_before(const struct cuf_incident *launch)
{
	for (uint64_t number = launch->number - 1; number; number--) {
		const struct cuf_incident *before = slot_of(number);
		if (before->number != number)
			break;
		if (cuf_is_page_lock(before))
			return before;
	}
	return NULL;
}

const struct cuf_incident *cuf_incident_unresolved(void)
{
	const struct cuf_incident *incident = last_incident(), *cause = NULL;
	if (!incident || incident->outcome)
		return NULL;
	if (!incident->is_request && has_room(incident))
		cause = page_lock_before(incident);
	return cause ? cause : incident;
}
