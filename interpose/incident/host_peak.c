/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the host ledger adds up call sites in a table of fixed size, of which the largest
 * go to the section. Steps of 5 % make the passes of a rising program a geometric series: each live
 * block is met some twenty times in all. The section has two notes in turn, so that one of them is
 * whole whenever the process is killed.
 */
#include "interpose/incident/host_peak.h"

#include <stdbool.h>
#include <string.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/process/cgroup.h"
#include "interpose/store/host_ledger.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum {
	FIRST_BYTES = 4 << 20, /* a program that holds less gets no note */
	STEPS = 20,            /* the next note is a twentieth above this one */
	PACE = 100,            /* notes take at most one hundredth of the time */
	CREDIT_NS = 20000000,  /* but a program that starts fast is not held back */
	SITES = 8192,
	INDEX_BITS = 14
};

static int64_t note_at_bytes = FIRST_BYTES;
static uint32_t is_taken;
static struct {
	int64_t credit_ns; /* below 0: a debt */
	uint64_t ended_ns;
} pace = { .credit_ns = CREDIT_NS };

/* For one thread at a time. index: of a site, plus 1, by the hash of its key; 0: none. */
static struct {
	uint16_t index[1 << INDEX_BITS];
	struct cuf_host_peak_site sites[SITES];
	unsigned used;
	struct cuf_host_peak_site rest[2]; /* of malloc, of CPython's own allocator */
	cuf_host_weight_fn *weight;
} scratch;

static void forget_peak(void)
{
	note_at_bytes = FIRST_BYTES;
	is_taken = 0;
	pace.credit_ns = CREDIT_NS;
	pace.ended_ns = 0;
}
CUF_AT_FORK_CHILD(forget_peak);

/* ---- call sites ---- */

static uint64_t bytes_of(const struct cuf_host_peak_site *site)
{
	return site->exact_bytes + site->weight_bytes;
}

static void add_site(struct cuf_host_peak_site *to, const struct cuf_host_peak_site *site)
{
	to->exact_bytes += site->exact_bytes;
	to->exact_count += site->exact_count;
	to->sampled_bytes += site->sampled_bytes;
	to->sampled_count += site->sampled_count;
	to->weight_bytes += site->weight_bytes;
}

/* The place of the index where this site is, or belongs. */
static uint16_t *place_of(uint32_t stack, uint32_t is_python)
{
	uint32_t at = (stack << 1 | is_python) * 0x9E3779B1u >> (32 - INDEX_BITS);

	for (;; at = (at + 1) & ((1u << INDEX_BITS) - 1)) {
		uint16_t *place = &scratch.index[at];

		if (!*place || (scratch.sites[*place - 1].stack == stack &&
				scratch.sites[*place - 1].is_python == is_python))
			return place;
	}
}

/* The table is full: sites below the average go to the rest; if all are equal, each second one. */
static void make_room(void)
{
	uint64_t sum = 0, mean;
	unsigned kept = 0;

	for (unsigned i = 0; i < scratch.used; i++)
		sum += bytes_of(&scratch.sites[i]);
	mean = sum / scratch.used;
	memset(scratch.index, 0, sizeof scratch.index);
	for (unsigned i = 0; i < scratch.used; i++) {
		struct cuf_host_peak_site site = scratch.sites[i];

		if (bytes_of(&site) < mean || (bytes_of(&site) == mean && i % 2)) {
			add_site(&scratch.rest[site.is_python], &site);
			continue;
		}
		scratch.sites[kept++] = site;
		*place_of(site.stack, site.is_python) = (uint16_t)kept;
	}
	scratch.used = kept;
}

static struct cuf_host_peak_site *site_of(uint32_t stack, uint32_t is_python)
{
	uint16_t *place = place_of(stack, is_python);

	if (!*place) {
		if (scratch.used == SITES) {
			make_room();
			place = place_of(stack, is_python);
		}
		scratch.sites[scratch.used] = (struct cuf_host_peak_site){
			.stack = stack, .is_python = is_python
		};
		*place = (uint16_t)++scratch.used;
	}
	return &scratch.sites[*place - 1];
}

static void add_block(uint64_t word0, uint64_t word1)
{
	uint64_t bytes = cuf_host_bytes(word1);
	struct cuf_host_peak_site *site = site_of(
		cuf_host_stack(word1),
		(uint32_t)cuf_address_is_python(cuf_host_addr(word0), bytes));

	if (!scratch.weight || bytes >= CUF_SAMPLE_EXACT_BYTES) {
		site->exact_bytes += bytes;
		site->exact_count++;
		return;
	}
	site->sampled_bytes += bytes;
	site->sampled_count++;
	site->weight_bytes += (uint64_t)scratch.weight(word0, word1);
}

/* ---- the note ---- */

/* Keeps the note's sites sorted, largest first; what has no room goes to the rest. */
static void keep_largest(struct cuf_host_peak *note, const struct cuf_host_peak_site *site)
{
	uint64_t bytes = bytes_of(site);
	unsigned at = (unsigned)note->site_count;

	if (at == CUF_PEAK_SITES) {
		const struct cuf_host_peak_site *least = &note->sites[at - 1];

		if (bytes_of(least) >= bytes) {
			add_site(&scratch.rest[site->is_python], site);
			return;
		}
		add_site(&scratch.rest[least->is_python], least);
		at--;
	} else {
		note->site_count++;
	}
	for (; at > 0 && bytes_of(&note->sites[at - 1]) < bytes; at--)
		note->sites[at] = note->sites[at - 1];
	note->sites[at] = *site;
}

static void fill_note(struct cuf_host_peak *note, uint64_t now_ns)
{
	struct cuf_process_memory memory;

	note->time_ns = now_ns;
	note->site_count = 0;
	for (unsigned i = 0; i < scratch.used; i++)
		keep_largest(note, &scratch.sites[i]);
	note->live_bytes = bytes_of(&scratch.rest[0]) + bytes_of(&scratch.rest[1]);
	for (unsigned i = 0; i < note->site_count; i++)
		note->live_bytes += bytes_of(&note->sites[i]);
	memcpy(note->rest, scratch.rest, sizeof note->rest);
	cuf_process_memory(&memory);
	note->rss_bytes = memory.rss_bytes;
}

/* number is the commit field: 0 while the note is written. */
static void take_note(uint64_t now_ns, cuf_host_weight_fn *weight)
{
	struct cuf_host_peak *notes = cuf_recording.host_peaks;
	uint64_t number = (notes[0].number > notes[1].number ? notes[0] : notes[1]).number + 1;
	struct cuf_host_peak *note = &notes[number % 2];

	memset(scratch.index, 0, sizeof scratch.index);
	scratch.rest[0] = (struct cuf_host_peak_site){ 0 };
	scratch.rest[1] = (struct cuf_host_peak_site){ .is_python = 1 };
	scratch.used = 0;
	scratch.weight = weight;
	cuf_host_ledger_each(add_block);
	__atomic_store_n(&note->number, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	fill_note(note, now_ns);
	__atomic_store_n(&note->number, number, __ATOMIC_RELEASE);
}

/* Whether the time since the last note has paid for what notes took. */
static bool is_affordable(uint64_t now_ns)
{
	if (pace.ended_ns && now_ns > pace.ended_ns)
		pace.credit_ns += (int64_t)((now_ns - pace.ended_ns) / PACE);
	if (pace.credit_ns > CREDIT_NS)
		pace.credit_ns = CREDIT_NS;
	pace.ended_ns = now_ns;
	return pace.credit_ns > 0;
}

/* What a note takes is the thread's own time: on a busy machine it may also have to wait. */
static void note_sites(int64_t live_bytes, uint64_t now_ns, cuf_host_weight_fn *weight)
{
	uint64_t began_ns;

	if (!is_affordable(cuf_now_ns()))
		return;
	began_ns = cuf_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	take_note(now_ns, weight);
	pace.credit_ns -= (int64_t)(cuf_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
	__atomic_store_n(&note_at_bytes, live_bytes + live_bytes / STEPS, __ATOMIC_RELAXED);
}

/* Two threads at once may leave the smaller of their totals, which are of one moment. */
static void raise_most(uint64_t live_bytes, uint64_t now_ns)
{
	struct cuf_header *header = cuf_recording.header;

	if (live_bytes <= __atomic_load_n(&header->host_peak_bytes, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&header->host_peak_bytes, live_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&header->host_peak_ns, now_ns, __ATOMIC_RELAXED);
}

void cuf_host_peak_rise(int64_t live_bytes, uint64_t now_ns, cuf_host_weight_fn *weight)
{
	if (live_bytes <= 0)
		return;
	raise_most((uint64_t)live_bytes, now_ns);
	if (live_bytes < __atomic_load_n(&note_at_bytes, __ATOMIC_RELAXED) ||
	    __atomic_exchange_n(&is_taken, 1, __ATOMIC_ACQUIRE))
		return;
	note_sites(live_bytes, now_ns, weight);
	__atomic_store_n(&is_taken, 0, __ATOMIC_RELEASE);
}
