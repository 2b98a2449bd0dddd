/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call sites and 2 MiB pages are summed up as blocks come and go (live_sums.c). Free ranges of
 * reservations need the order of addresses: one pass over the ledger, where there are any, fills a
 * list of (address, bytes) pairs, which is sorted. Programs that ask until they are refused get a
 * snapshot for each refusal only as long as snapshots take a fiftieth of the time.
 */
#include "interpose/incident/snapshot.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include "interpose/incident/live_sums.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/platform/side_stack.h"
#include "interpose/platform/sort.h"
#include "interpose/platform/sys.h"
#include "interpose/store/ledger.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

/* For one thread at a time. A block is one range at most, so there is room for a full ledger. */
static struct {
	struct cuf_pair *ranges, *spare; /* spare: what sorting may overwrite */
	uint64_t used;
} scratch;
static uint32_t is_taken;

static void add_pair(uint64_t key, uint64_t value)
{
	scratch.ranges[scratch.used++] = (struct cuf_pair){ key, value };
}

/* Reservations and mappings in one address order. The lowest bit of the key marks a mapping. */
static void add_range(const struct cuf_block *block, void *unused)
{
	(void)unused;
	if (block->kind == CUF_KIND_RESERVATION)
		add_pair(cuf_key_addr(block->key) << 1, block->bytes);
	else if (block->kind == CUF_KIND_MAPPING)
		add_pair(cuf_key_addr(block->key) << 1 | 1, block->bytes);
}

/* The reservation being walked: its unmapped addresses from `at` on. */
struct reservation {
	uint64_t at, end;
};

static void note_unmapped(struct cuf_incident *incident, uint64_t from, uint64_t to)
{
	if (to > from && to - from > incident->vmm_hole_bytes)
		incident->vmm_hole_bytes = to - from;
}

/*
 * The largest unmapped run inside one reservation, its tail included. A mapping outside every
 * reservation counts as mapped only.
 */
static void measure_reservations(struct cuf_incident *incident)
{
	struct reservation open = { 0, 0 };
	const struct cuf_pair *sorted;

	scratch.used = 0;
	cuf_ledger_each(add_range, NULL);
	sorted = cuf_sort_pairs_using(scratch.ranges, scratch.spare, scratch.used);
	for (uint64_t i = 0; i < scratch.used; i++) {
		const struct cuf_pair *range = &sorted[i];
		uint64_t start = range->key >> 1, bytes = range->value;

		if (!(range->key & 1)) {
			note_unmapped(incident, open.at, open.end);
			open = (struct reservation){ start, start + bytes };
			continue;
		}
		incident->vmm_mapped_bytes += bytes;
		if (start <= open.end)
			note_unmapped(incident, open.at, start);
		if (start + bytes > open.at)
			open.at = start + bytes;
	}
	note_unmapped(incident, open.at, open.end);
}

/* ---- the snapshot ---- */

static bool have_scratch(void)
{
	const uint64_t room = cuf_recording.ledger_mask + 1;

	if (!scratch.ranges) {
		long at = cuf_sys_mmap(NULL, 2 * room * sizeof *scratch.ranges,
				       PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (cuf_sys_failed(at))
			return false;
		scratch.ranges = (struct cuf_pair *)at;
		scratch.spare = scratch.ranges + room;
	}
	return true;
}

static void measure(struct cuf_incident *incident)
{
	cuf_live_sums_read(incident);
	if (!cuf_live_sums_have_ranges())
		return;
	if (have_scratch())
		measure_reservations(incident);
	else
		incident->vmm_hole_bytes = incident->vmm_mapped_bytes = CUF_UNKNOWN;
}

/* ---- repeated refusals ---- */

/* Of this process, about the last snapshot that was measured. The next one takes about as long. */
static struct {
	/* of the ledger; equal ones mean that nothing has changed since */
	uint64_t changes;
	uint64_t ended_ns, took_ns;
	/* what snapshots may still take; CUF_UNKNOWN: none was measured yet */
	uint64_t credit_ns;
	struct cuf_incident incident;
} last = { .credit_ns = CUF_UNKNOWN };

/* A ladder of attempts fits into the credit; a program that asks all day gets a fiftieth of it. */
enum { CREDIT_NS = 200000000, PACE = 50 };

/* A thread that is not in the child may have been measuring. */
static void forget_last(void)
{
	last.credit_ns = CUF_UNKNOWN;
	last.took_ns = 0;
	is_taken = 0;
}
CUF_AT_FORK_CHILD(forget_last);

static void copy_snapshot(struct cuf_incident *to, const struct cuf_incident *from)
{
	to->page_hole_bytes = from->page_hole_bytes;
	to->page_free_bytes = from->page_free_bytes;
	to->pages = from->pages;
	to->pages_partial = from->pages_partial;
	to->vmm_hole_bytes = from->vmm_hole_bytes;
	to->vmm_mapped_bytes = from->vmm_mapped_bytes;
	memcpy(to->sites, from->sites, sizeof to->sites);
	to->site_count = from->site_count;
}

static void leave_unknown(struct cuf_incident *incident)
{
	incident->page_hole_bytes = incident->page_free_bytes = CUF_UNKNOWN;
	incident->pages = incident->pages_partial = CUF_UNKNOWN;
	incident->vmm_hole_bytes = incident->vmm_mapped_bytes = CUF_UNKNOWN;
}

static uint64_t credit_at(uint64_t now_ns)
{
	uint64_t credit_ns;

	if (last.credit_ns == CUF_UNKNOWN)
		return CREDIT_NS;
	credit_ns = last.credit_ns + (now_ns - last.ended_ns) / PACE;
	return credit_ns < CREDIT_NS ? credit_ns : CREDIT_NS;
}

/* The same blocks have the same holes. Else they are measured, when it is affordable. */
static void take(struct cuf_incident *incident)
{
	const uint64_t changes = cuf_ledger_changes();
	const uint64_t credit_ns = credit_at(cuf_now_ns());
	uint64_t began_ns;

	if (last.credit_ns != CUF_UNKNOWN && last.changes == changes &&
	    last.incident.device == incident->device) {
		copy_snapshot(incident, &last.incident);
		return;
	}
	if (credit_ns < last.took_ns) {
		leave_unknown(incident);
		return;
	}
	/* of the processor: on a busy machine a program sees as much as on a quiet one */
	began_ns = cuf_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	measure(incident);
	last.took_ns = cuf_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	copy_snapshot(&last.incident, incident);
	last.incident.device = incident->device;
	last.changes = changes;
	last.ended_ns = cuf_now_ns();
	if (last.took_ns > CREDIT_NS) /* more than that is never had */
		last.took_ns = CREDIT_NS;
	last.credit_ns = credit_ns > last.took_ns ? credit_ns - last.took_ns : 0;
}

static void take_on_stack(void *incident) { take(incident); }

void cuf_snapshot_take(struct cuf_incident *incident)
{
	if (__atomic_exchange_n(&is_taken, 1, __ATOMIC_ACQUIRE)) {
		leave_unknown(incident);
		return;
	}
	if (!cuf_on_side_stack(take_on_stack, incident))
		leave_unknown(incident);
	__atomic_store_n(&is_taken, 0, __ATOMIC_RELEASE);
}
