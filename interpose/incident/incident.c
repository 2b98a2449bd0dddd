/* SPDX-License-Identifier: Apache-2.0 */
/* Opens incidents, links the tries of one ladder, notices what resolved them. */
#include "interpose/incident/incident.h"

#include <string.h>
#include "interpose/platform/clock.h"
#include "interpose/incident/device.h"
#include "interpose/incident/totals.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/store/dropped.h"
#include "interpose/code/symbolize.h"
#include "interpose/incident/open_phases.h"
#include "interpose/process/cgroup.h"
#include "interpose/store/recording.h"
#include "interpose/incident/snapshot.h"
#include "interpose/platform/laws.h"

enum { LADDER_NS_MAX = 2000000000, SMALL_SUCCESSES = 64, TRIES_MAX = 16 };
#define LASTING_NS 5000000000ull /* what ends a process does so within this time: whoever works on after it went on */

static uint64_t last_number;      /* of the last published incident; 0 none */
static uint32_t small_successes;  /* since then */

static void forget_incidents(void) { last_number = small_successes = 0; }
CUF_AT_FORK_CHILD(forget_incidents);

static struct cuf_incident *slot_of(uint64_t number)
{
	uint64_t keep = cuf_recording.incident_slots / 4, rest = cuf_recording.incident_slots - keep;
	return &cuf_recording.incidents[number <= keep ? number - 1 : keep + (number - 1 - keep) % rest];
}

/*
 * A framework gives up on a block after the driver refused it a segment: a larger one, or a chunk of one. Chunks may have
 * come and been given back, and cached memory released, so that earlier refusals looked recovered. Whatever was refused
 * since the framework last got a block is a try of this one. It tells no error of the driver's: that of the last try.
 */
static void link_framework(struct cuf_incident *now)
{
	struct cuf_incident *tries[TRIES_MAX], *i;
	uint64_t since = cuf_framework_alloc_seq(now->device);
	unsigned count = 0;
	for (uint64_t n = now->number - 1; n && count < TRIES_MAX; n--) {
		i = slot_of(n);
		if (i->number != n || i->kind == CUF_KIND_FRAMEWORK || i->seq < since || now->time_ns - i->time_ns > LADDER_NS_MAX)
			break;
		if (i->tid == now->tid && i->device == now->device)
			tries[count++] = i;
	}
	if (!count)
		return;
	for (unsigned n = 0; n < count; n++) {
		i = tries[count - 1 - n];
		i->first = tries[count - 1]->number;
		i->attempt = n;
		i->outcome = 0;
		i->resolved_seq = 0;
	}
	now->result = tries[0]->result;
	now->first = tries[0]->first;
	now->attempt = count;
}

/* The previous try of the same need: same thread and device, the same size, unresolved and recent. */
static void link_ladder(struct cuf_incident *now)
{
	const struct cuf_incident *before = last_number ? slot_of(last_number) : NULL;
	now->first = now->number;
	if (now->kind == CUF_KIND_FRAMEWORK) {
		link_framework(now);
		return;
	}
	if (!before || before->number != last_number || before->outcome || before->tid != now->tid || before->device != now->device ||
	    before->requested_bytes != now->requested_bytes || now->time_ns - before->time_ns > LADDER_NS_MAX)
		return;
	now->first = before->first;
	now->attempt = before->attempt + 1;
}

/* The driver refused, and was asked what is free. */
static void count_failure(const struct cuf_block *wanted, const struct cuf_driver_view *view)
{
	struct cuf_device *device = &cuf_recording.devices[wanted->device];
	__atomic_fetch_add(&device->fail_count, 1, __ATOMIC_RELAXED);
	if (view->free_bytes != CUF_UNKNOWN) {
		device->free_bytes = view->free_bytes;
		device->free_ns = wanted->time_ns;
	}
}

struct cuf_incident *cuf_incident_open(const struct cuf_block *wanted, uint32_t result, bool unsized, const struct cuf_driver_view *view)
{
	struct cuf_header *h = cuf_recording.header;
	const struct cuf_device *device = cuf_device_at(wanted->device);
	uint64_t number = __atomic_add_fetch(&h->incident_count, 1, __ATOMIC_RELAXED);
	struct cuf_incident *i = slot_of(number);
	struct cuf_framework_level level = cuf_framework_level(wanted->device);
	struct cuf_process_memory memory;
	if (i->number)
		cuf_count_dropped(CUF_LOST_INCIDENTS);
	__atomic_store_n(&i->number, 0, __ATOMIC_RELEASE);
	memset(i, 0, sizeof *i);
	i->time_ns = wanted->time_ns;
	i->requested_bytes = wanted->bytes;
	i->stack = wanted->stack;
	i->tid = wanted->tid;
	i->hook = wanted->hook;
	i->label = wanted->label;
	i->kind = wanted->kind;
	i->device = wanted->device;
	i->is_request = !unsized;
	i->result = result;
	i->free_bytes = view->free_bytes;
	i->total_bytes = view->total_bytes;
	i->probed_bytes = view->probed_bytes;
	i->pool_count = view->pool_count < CUF_POOLS_MAX ? view->pool_count : CUF_POOLS_MAX;
	memcpy(i->pools, view->pools, i->pool_count * sizeof *i->pools);
	if (device) {
		memcpy(i->live_bytes, device->live_bytes, sizeof i->live_bytes);
		memcpy(i->live_count, device->live_count, sizeof i->live_count);
		if (wanted->kind != CUF_KIND_FRAMEWORK)
			count_failure(wanted, view);
	}
	cuf_process_memory(&memory);
	i->rss_bytes = memory.rss_bytes;
	i->cgroup_bytes = memory.cgroup_bytes;
	i->cgroup_max_bytes = memory.cgroup_max_bytes;
	i->host_live_bytes = cuf_host_live_bytes();
	i->framework_allocated_bytes = level.allocated_bytes;
	i->framework_reserved_bytes = level.reserved_bytes;
	cuf_snapshot_take(i);
	cuf_phases_at_incident(i);
	i->resolved_seq = 0;
	i->first = number; /* until published the number travels here: the commit field must stay 0 */
	return i;
}

uint64_t cuf_incident_number(const struct cuf_incident *incident) { return incident->first; }

/* The stacks a report of this incident needs, in case nothing more is ever written. */
static void name_stacks(const struct cuf_incident *i)
{
	uint32_t stacks[CUF_INCIDENT_SITES + 1] = { i->stack };
	for (uint64_t n = 0; n < i->site_count; n++)
		stacks[n + 1] = i->sites[n].stack;
	cuf_symbolize_stacks(stacks, (unsigned)i->site_count + 1);
}

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

void cuf_incident_success(uint32_t tid, const struct cuf_request *request, uint64_t seq, uint64_t now_ns)
{
	uint64_t number = __atomic_load_n(&last_number, __ATOMIC_ACQUIRE);
	struct cuf_incident *i;
	if (__builtin_expect(!number, 1))
		return;
	i = slot_of(number);
	if (i->number != number || i->outcome || i->device != request->device || request->kind == CUF_KIND_MAPPING || request->kind == CUF_KIND_RESERVATION)
		return;
	if (request->bytes >= i->requested_bytes && i->tid == tid) {
		i->resolved_seq = seq;
		i->outcome = 1;
		return;
	}
	if (i->tid != tid && now_ns < i->time_ns + LASTING_NS)
		return; /* other threads do not stop at once when one of them brings the process down */
	if (request->bytes >= i->requested_bytes || __atomic_add_fetch(&small_successes, 1, __ATOMIC_RELAXED) > SMALL_SUCCESSES)
		i->outcome = 2;
}

const struct cuf_incident *cuf_incident_unresolved(void)
{
	const struct cuf_incident *i = last_number ? slot_of(last_number) : NULL;
	return i && i->number == last_number && !i->outcome ? i : NULL;
}
