/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the malloc family. Sampled mode: a countdown of bytes decides, blocks of 64 KiB and more are all
 * recorded, and a small filter answers "surely not sampled" for frees. Full mode: every event and every block.
 */
#include "interpose/core/host.h"

#include <errno.h>
#include "interpose/core/clock.h"
#include "interpose/core/forget.h"
#include "interpose/core/host_ledger.h"
#include "interpose/core/recorder.h"
#include "interpose/core/recording.h"
#include "interpose/core/ring.h"
#include "interpose/core/sampler.h"
#include "interpose/core/stacks.h"
#include "interpose/core/state.h"
#include "interpose/core/thread.h"
#include "interpose/core/timeline.h"
#include "interpose/core/laws.h"

enum {
	FILE_AT_LIVE_BYTES = 64 << 20,  /* a process this big is worth a recording */
	CLOCK_EVERY = 8,                /* full mode: events between two looks at the clock */
	TIME_RECORD_EVERY_NS = 30000000 /* well within the 15 bits of ms ticks */
};

uint8_t cuf_host_filter[1u << CUF_HOST_FILTER_BITS];
static int64_t live_estimate; /* sampled mode: bytes */

void cuf_host_fork(void)
{
	live_estimate = 0;
	for (uint32_t i = 0; i < 1u << CUF_HOST_FILTER_BITS; i++)
		if (cuf_host_filter[i]) /* untouched pages stay so */
			cuf_host_filter[i] = 0;
}

static void filter_add(uint64_t addr)
{
	uint8_t *count = cuf_host_filter_at(addr), seen = __atomic_load_n(count, __ATOMIC_RELAXED);
	while (seen != UINT8_MAX && !__atomic_compare_exchange_n(count, &seen, (uint8_t)(seen + 1), 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void filter_remove(uint64_t addr)
{
	uint8_t *count = cuf_host_filter_at(addr), seen = __atomic_load_n(count, __ATOMIC_RELAXED);
	while (seen && seen != UINT8_MAX && !__atomic_compare_exchange_n(count, &seen, (uint8_t)(seen - 1), 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

uint64_t cuf_host_live_bytes(void)
{
	uint64_t allocated = 0, freed = 0;
	int64_t live;
	if (cuf_options.host == CUF_HOST_OFF)
		return CUF_UNKNOWN;
	if (cuf_options.host == CUF_HOST_SAMPLED) {
		live = __atomic_load_n(&live_estimate, __ATOMIC_RELAXED);
		return live > 0 ? (uint64_t)live : 0;
	}
	for (unsigned i = 0; i < cuf_recording.thread_count; i++) {
		const struct cuf_thread *slot = &cuf_recording.threads[i];
		if (!__atomic_load_n(&slot->generation, __ATOMIC_RELAXED))
			break;
		allocated += slot->host_alloc_bytes;
		freed += slot->host_free_bytes;
	}
	return allocated > freed ? allocated - freed : 0;
}

static void look_at_clock(struct cuf_thread_state *t)
{
	t->host_now_ns = cuf_now_coarse_ns();
	t->host_clock_countdown = CLOCK_EVERY;
	cuf_timeline_tick(t->host_now_ns);
}

static void append(struct cuf_thread_state *t, unsigned op, uint64_t addr, uint64_t word1)
{
	struct cuf_host_event *e = cuf_ring_host_reserve(t);
	if (!e)
		return;
	if (!t->host_time_base_ns || t->host_now_ns - t->host_time_base_ns > TIME_RECORD_EVERY_NS) {
		t->host_time_base_ns = t->host_now_ns;
		*e = (struct cuf_host_event){ cuf_host_word0(CUF_HOST_TIME, 0, 0), t->host_now_ns };
		cuf_ring_host_commit(t);
		e = cuf_ring_host_reserve(t);
		if (!e)
			return;
		if (!t->host_time_base_ns) { /* a fresh segment: it begins with a time of its own */
			t->host_time_base_ns = t->host_now_ns;
			*e = (struct cuf_host_event){ cuf_host_word0(CUF_HOST_TIME, 0, 0), t->host_now_ns };
			cuf_ring_host_commit(t);
			e = cuf_ring_host_reserve(t);
			if (!e)
				return;
		}
	}
	*e = (struct cuf_host_event){ cuf_host_word0(op, (unsigned)((t->host_now_ns - t->host_time_base_ns) / 1000000), addr), word1 };
	cuf_ring_host_commit(t);
}

static void record_block(struct cuf_thread_state *t, uint64_t addr, size_t bytes, unsigned op, void *frame)
{
	uint32_t stack = cuf_stack_capture(t, (uintptr_t)frame);
	uint64_t word1 = cuf_host_word1(stack, bytes);
	uint64_t birth_ms = t->host_now_ns > cuf_recording.header->start_ns ? (t->host_now_ns - cuf_recording.header->start_ns) / 1000000 : 0;
	cuf_host_ledger_add(addr, cuf_birth_encode(birth_ms), word1);
	append(t, op, addr, word1);
}

/* Sampled mode, a block that is to be recorded. Returns whether the process grew big enough for a file. */
static bool record_sample(struct cuf_thread_state *t, uint64_t addr, size_t bytes, unsigned op, void *frame)
{
	int64_t weight = (int64_t)cuf_sample_weight_bytes(bytes, cuf_options.sample), live;
	look_at_clock(t);
	record_block(t, addr, bytes, op, frame);
	filter_add(addr);
	live = __atomic_add_fetch(&live_estimate, weight, __ATOMIC_RELAXED);
	t->slot->host_allocs++;
	t->slot->host_alloc_bytes += (uint64_t)weight;
	return live >= FILE_AT_LIVE_BYTES && cuf_state_in_memory();
}

static void record_full(struct cuf_thread_state *t, uint64_t addr, size_t bytes, unsigned op, void *frame)
{
	if (!t->host_clock_countdown)
		look_at_clock(t);
	t->host_clock_countdown--;
	record_block(t, addr, bytes, op, frame);
	t->slot->host_allocs++;
	t->slot->host_alloc_bytes += bytes;
}

/* The countdown ran out, or the thread is new: then it has a countdown only now. */
static bool is_sample(size_t bytes, bool fresh)
{
	return bytes >= CUF_SAMPLE_EXACT_BYTES || !fresh || (cuf_tls.countdown_bytes -= (int64_t)bytes) <= 0;
}

void cuf_host_record_born(void *p, size_t bytes, unsigned op, void *frame)
{
	bool fresh = cuf_tls.generation != __atomic_load_n(cuf_gate, __ATOMIC_RELAXED), grown = false;
	struct cuf_thread_state *t;
	int saved = errno;
	if (cuf_options.host == CUF_HOST_OFF || cuf_options.disabled)
		return;
	t = cuf_thread_enter();
	if (t) {
		if (cuf_options.host == CUF_HOST_FULL) {
			record_full(t, (uintptr_t)p, bytes, op, frame);
		} else if (is_sample(bytes, fresh)) {
			grown = record_sample(t, (uintptr_t)p, bytes, op, frame);
			if (bytes < CUF_SAMPLE_EXACT_BYTES)
				cuf_tls.countdown_bytes = (int64_t)(t->sampled_from = cuf_sample_interval(t));
		}
		cuf_thread_leave(t);
		if (grown)
			cuf_state_want_file();
	}
	errno = saved;
}

void cuf_host_record_freed(void *p, unsigned op, struct cuf_host_undo *undo)
{
	uint64_t addr = (uintptr_t)p;
	struct cuf_host_block entry = { 0, 0 };
	struct cuf_thread_state *t;
	bool known;
	int saved = errno;
	if (!p || cuf_options.host == CUF_HOST_OFF || cuf_options.disabled)
		return;
	t = cuf_thread_enter();
	if (t) {
		known = cuf_host_ledger_take(addr, &entry);
		if (known && cuf_options.host == CUF_HOST_SAMPLED) {
			look_at_clock(t);
			filter_remove(addr);
			__atomic_sub_fetch(&live_estimate, (int64_t)cuf_sample_weight_bytes(cuf_host_bytes(entry.word1), cuf_options.sample), __ATOMIC_RELAXED);
		}
		if (known || cuf_options.host == CUF_HOST_FULL) {
			append(t, op, addr, entry.word1);
			t->slot->host_frees++;
			t->slot->host_free_bytes += cuf_host_bytes(entry.word1);
			*undo = (struct cuf_host_undo){ entry.word0, entry.word1 };
		}
		cuf_thread_leave(t);
	}
	errno = saved;
}

void cuf_host_restored(const struct cuf_host_undo *undo)
{
	uint64_t addr = cuf_host_addr(undo->word0);
	struct cuf_thread_state *t;
	int saved = errno;
	if (!undo->word0)
		return;
	t = cuf_thread_enter();
	if (t) {
		cuf_host_ledger_add(addr, (uint32_t)(undo->word0 & 0x7ffff), undo->word1);
		if (cuf_options.host == CUF_HOST_SAMPLED) {
			filter_add(addr);
			__atomic_add_fetch(&live_estimate, (int64_t)cuf_sample_weight_bytes(cuf_host_bytes(undo->word1), cuf_options.sample), __ATOMIC_RELAXED);
		}
		append(t, CUF_HOST_RESTORE, addr, undo->word1);
		t->slot->host_free_bytes -= cuf_host_bytes(undo->word1);
		cuf_thread_leave(t);
	}
	errno = saved;
}
