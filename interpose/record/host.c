/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the malloc family. Sampled mode: a countdown of bytes decides, blocks of 64 KiB and more are all
 * recorded, and a small filter answers "surely not sampled" for frees. Full mode: every event and every block.
 */
#include "interpose/record/host.h"

#include <errno.h>
#include "interpose/platform/clock.h"
#include "interpose/record/forget.h"
#include "interpose/store/host_ledger.h"
#include "interpose/store/meta.h"
#include "interpose/record/recorder.h"
#include "interpose/store/recording.h"
#include "interpose/python/python.h"
#include "interpose/store/ring.h"
#include "interpose/platform/sampler.h"
#include "interpose/platform/say.h"
#include "interpose/stack/stacks.h"
#include "interpose/record/state.h"
#include "interpose/process/thread.h"
#include "interpose/incident/timeline.h"
#include "interpose/platform/laws.h"

enum {
	SAMPLE_BYTES_MIN = 4096, SAMPLE_BYTES_MAX = 1 << 30, /* as options.def */
	FILE_AT_LIVE_BYTES = 64 << 20,  /* a process this big is worth a recording */
	CLOCK_EVERY = 16,               /* full mode: events between two looks at the clock */
	AHEAD = 32,                     /* records: the ring is written once around before a page of it is met again */
	TIME_RECORD_EVERY_NS = 30000000 /* well within the 15 bits of ms ticks */
};

_Alignas(64) uint8_t cuf_host_filter_small[1u << CUF_HOST_FILTER_SMALL_BITS] = { [0 ... (1u << CUF_HOST_FILTER_SMALL_BITS) - 1] = 1 };
static bool skipping;
static uint8_t filter_large[1u << CUF_HOST_FILTER_LARGE_BITS];
static int64_t live_estimate; /* sampled mode: bytes */

/* Means other than the first, with the birth time (cuf_birth_encode) from which blocks were sampled by them. */
static struct { uint32_t birth; uint64_t mean_bytes; } means[16];
static uint32_t mean_count;

static uint32_t birth_at(uint64_t now_ns)
{
	uint64_t start_ns = cuf_recording.header->start_ns;
	return cuf_birth_encode(now_ns > start_ns ? (now_ns - start_ns) / 1000000 : 0);
}

/* What a live block stands for, by the mean of its time: a thread's first sample after a change is taken for one of the new mean. */
static int64_t weight_of(uint32_t birth, uint64_t bytes)
{
	uint64_t mean_bytes = cuf_recording.header->sample_mean_bytes;
	uint32_t count = __atomic_load_n(&mean_count, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < count && means[i].birth <= birth; i++)
		mean_bytes = means[i].mean_bytes;
	return (int64_t)cuf_sample_weight_bytes(bytes, mean_bytes);
}

static void filters_clear(void)
{
	for (uint32_t i = 0; i < sizeof cuf_host_filter_small; i++)
		if (cuf_host_filter_small[i] != UINT8_MAX) /* kept: see cuf_host_keep */
			cuf_host_filter_small[i] = !skipping;
	for (uint32_t i = 0; i < sizeof filter_large; i++)
		if (filter_large[i]) /* untouched pages stay so */
			filter_large[i] = 0;
}

void cuf_host_fork(void)
{
	live_estimate = 0;
	mean_count = 0;
	cuf_host_ledger_atfork_child();
	filters_clear();
}

static uint8_t *large_at(uint64_t addr) { return &filter_large[cuf_host_filter_place(addr, CUF_HOST_FILTER_LARGE_BITS)]; }
static uint8_t *small_at(uint64_t addr) { return &cuf_host_filter_small[cuf_host_filter_place(addr, CUF_HOST_FILTER_SMALL_BITS)]; }

/* A saturated count stays: nobody knows any more how many blocks it stands for. */
static void count(uint8_t *at, int by)
{
	uint8_t seen = __atomic_load_n(at, __ATOMIC_RELAXED);
	while (seen != UINT8_MAX && (by > 0 || seen) && !__atomic_compare_exchange_n(at, &seen, (uint8_t)(seen + by), 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void filter_add(uint64_t addr)
{
	count(large_at(addr), 1);
	count(small_at(addr), 1);
}

static void filter_remove(uint64_t addr)
{
	count(small_at(addr), -1);
	count(large_at(addr), -1);
}

void cuf_host_keep(const void *p) { __atomic_store_n(small_at((uintptr_t)p), UINT8_MAX, __ATOMIC_RELAXED); }

void cuf_host_begin_skipping(void)
{
	if (skipping || (cuf_options.host == CUF_HOST_FULL && !cuf_options.disabled))
		return;
	skipping = true;
	for (uint32_t i = 0; i < sizeof cuf_host_filter_small; i++)
		count(&cuf_host_filter_small[i], -1);
}

int cuf_host_set_sample(uint64_t mean_bytes)
{
	uint32_t count = __atomic_load_n(&mean_count, __ATOMIC_RELAXED);
	struct cuf_thread_state *t;
	CUF_TEXT(birth, 16);
	int saved = errno;
	if (cuf_options.host != CUF_HOST_SAMPLED || mean_bytes < SAMPLE_BYTES_MIN || mean_bytes > SAMPLE_BYTES_MAX ||
	    count == sizeof means / sizeof *means || !(t = cuf_thread_enter()))
		return -1;
	/* two at once: one of them is lost, as if it had been called before the other */
	means[count].birth = birth_at(cuf_now_coarse_ns());
	means[count].mean_bytes = mean_bytes;
	__atomic_store_n(&mean_count, count + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&cuf_options.sample, mean_bytes, __ATOMIC_RELAXED);
	cuf_text_number(&birth, means[count].birth);
	cuf_meta_text(CUF_META_SAMPLE, mean_bytes, birth.at, birth.used);
	cuf_thread_leave(t);
	errno = saved;
	return 0;
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

/* Ticks count from the base that the thread's last TIME record gave. */
static void set_ticks(struct cuf_thread_state *t)
{
	t->host_tick_ms = (uint32_t)((t->host_now_ns - t->writer.host_time_base_ns) / 1000000);
}

static void look_at_clock(struct cuf_thread_state *t)
{
	uint64_t now = cuf_now_coarse_ns();
	t->host_clock_countdown = CLOCK_EVERY;
	if (now <= t->host_now_ns) /* it moves every few ms, and may lie behind a mark */
		return;
	t->host_now_ns = now;
	t->host_birth = birth_at(now);
	if (now - t->writer.host_time_base_ns > TIME_RECORD_EVERY_NS)
		t->writer.host_time_base_ns = 0;
	set_ticks(t);
	cuf_timeline_tick(now);
}

void cuf_host_mark_time(struct cuf_thread_state *t)
{
	t->host_now_ns = cuf_now_ns() + 1;
	t->writer.host_time_base_ns = 0;
}

/*
 * Python gives everything back when it shuts down, and exit comes after that. The first block freed then marks where the
 * program's own work ended, which is what a report is about.
 */
static void notice_work_end(struct cuf_thread_state *t)
{
	struct cuf_header *h = cuf_recording.header;
	uint64_t now;
	if (__builtin_expect(h->work_end_ns != 0, 0) || !cuf_python_is_finalizing())
		return;
	now = cuf_now_ns();
	h->work_end_seq = __atomic_load_n(&h->next_seq, __ATOMIC_RELAXED);
	__atomic_store_n(&h->work_end_ns, now, __ATOMIC_RELEASE);
	cuf_host_mark_time(t);
}

/* Full mode: once in a few events, the thread's first among them. */
static inline void keep_time(struct cuf_thread_state *t)
{
	if (!t->host_clock_countdown) {
		look_at_clock(t);
		notice_work_end(t);
	}
	t->host_clock_countdown--;
}

/* A segment's first records, and now and then: the time, and whose events these are when the segment had another's. */
static __attribute__((noinline)) struct cuf_host_event *begin_time(struct cuf_thread_state *t, struct cuf_host_event *e)
{
	while (e && !t->writer.host_time_base_ns) {
		t->writer.host_time_base_ns = t->host_now_ns;
		set_ticks(t);
		*e = (struct cuf_host_event){ cuf_host_word0(CUF_HOST_TIME, 0, 0), t->host_now_ns };
		cuf_ring_host_commit(&t->writer);
		e = cuf_ring_host_reserve(&t->writer);
		if (!e || !t->writer.host_time_base_ns || t->writer.segments[CUF_RING_HOST]->tid == t->writer.tid)
			continue;
		*e = (struct cuf_host_event){ cuf_host_word0(CUF_HOST_THREAD, 0, 0), t->writer.tid };
		cuf_ring_host_commit(&t->writer);
		e = cuf_ring_host_reserve(&t->writer);
	}
	return e;
}

static inline void append(struct cuf_thread_state *t, unsigned op, uint64_t addr, uint64_t word1)
{
	struct cuf_host_event *e = cuf_ring_host_reserve(&t->writer);
	if (__builtin_expect(!t->writer.host_time_base_ns, 0))
		e = begin_time(t, e);
	if (!e)
		return;
	__builtin_prefetch(e + AHEAD, 1);
	*e = (struct cuf_host_event){ cuf_host_word0(op, t->host_tick_ms, addr), word1 };
	cuf_ring_host_commit(&t->writer);
}

static inline void record_block(struct cuf_thread_state *t, uint64_t addr, size_t bytes, unsigned op, const void *frame)
{
	uint64_t word1;
	cuf_host_ledger_expect(addr);
	word1 = cuf_host_word1(cuf_stack_capture_caller(&t->stack, frame, bytes >= CUF_SAMPLE_EXACT_BYTES), bytes);
	cuf_host_ledger_add(addr, t->host_birth, word1);
	append(t, op, addr, word1);
}

/* Sampled mode, a block that is to be recorded. Returns whether the process grew big enough for a file. */
static bool record_sample(struct cuf_thread_state *t, uint64_t addr, size_t bytes, unsigned op, const void *frame)
{
	int64_t weight, live;
	const struct cuf_segment *s = t->writer.segments[CUF_RING_HOST];
	if (s && s->sample_mean_bytes != t->writer.sample_mean_bytes) /* a segment's events have one mean */
		cuf_ring_host_exchange(&t->writer);
	look_at_clock(t);
	weight = weight_of(t->host_birth, bytes);
	record_block(t, addr, bytes, op, frame);
	filter_add(addr);
	live = __atomic_add_fetch(&live_estimate, weight, __ATOMIC_RELAXED);
	t->writer.slot->host_allocs++;
	t->writer.slot->host_alloc_bytes += (uint64_t)weight;
	return live >= FILE_AT_LIVE_BYTES && cuf_state_in_memory();
}

static void record_full(struct cuf_thread_state *t, uint64_t addr, size_t bytes, unsigned op, const void *frame)
{
	keep_time(t);
	record_block(t, addr, bytes, op, frame);
	t->writer.slot->host_allocs++;
	t->writer.slot->host_alloc_bytes += bytes;
}

/* The countdown ran out, or the thread is new: then it has a countdown only now. */
static bool is_sample(size_t bytes, bool fresh)
{
	return bytes >= CUF_SAMPLE_EXACT_BYTES || !fresh || (cuf_tls.countdown_bytes -= (int64_t)bytes) <= 0;
}

static bool is_off(void) { return cuf_options.host == CUF_HOST_OFF || cuf_options.disabled; }

void cuf_host_record_alloc(void *p, size_t bytes, unsigned op, const void *frame)
{
	bool fresh = cuf_tls.generation != __atomic_load_n(cuf_gate, __ATOMIC_RELAXED), grown = false;
	struct cuf_thread_state *t;
	if (__builtin_expect(is_off(), 0)) {
		cuf_tls.countdown_bytes = INT64_MAX;
		return;
	}
	t = cuf_thread_enter();
	if (!t)
		return;
	if (cuf_options.host == CUF_HOST_FULL) {
		record_full(t, (uintptr_t)p, bytes, op, frame);
	} else if (is_sample(bytes, fresh)) {
		grown = record_sample(t, (uintptr_t)p, bytes, op, frame);
		if (bytes < CUF_SAMPLE_EXACT_BYTES)
			cuf_tls.countdown_bytes = (int64_t)(t->sampled_from = cuf_sample_interval(&t->random, t->writer.sample_mean_bytes = cuf_options.sample));
	}
	cuf_thread_leave(t);
	if (__builtin_expect(grown, 0))
		cuf_state_want_file();
}

void cuf_host_record_free(void *p, unsigned op, struct cuf_host_undo *undo)
{
	uint64_t addr = (uintptr_t)p;
	struct cuf_host_block entry = { 0, 0 };
	struct cuf_thread_state *t;
	bool known;
	/* loads from far away, one of them the allocator's in the real free: all are under way before any is waited for */
	__builtin_prefetch((const char *)p - 2 * sizeof(size_t), 1);
	if (!p || is_off() || (cuf_options.host == CUF_HOST_SAMPLED && !__atomic_load_n(large_at(addr), __ATOMIC_RELAXED)))
		return;
	cuf_host_ledger_expect(addr);
	if (!(t = cuf_thread_enter()))
		return;
	if (cuf_options.host == CUF_HOST_FULL)
		keep_time(t);
	known = cuf_host_ledger_take(addr, &entry);
	if (known && cuf_options.host == CUF_HOST_SAMPLED) {
		look_at_clock(t);
		notice_work_end(t);
		filter_remove(addr);
		__atomic_sub_fetch(&live_estimate, weight_of((uint32_t)(entry.word0 & 0x7ffff), cuf_host_bytes(entry.word1)), __ATOMIC_RELAXED);
	}
	if (known || cuf_options.host == CUF_HOST_FULL) {
		append(t, op, addr, entry.word1);
		t->writer.slot->host_frees++;
		t->writer.slot->host_free_bytes += cuf_host_bytes(entry.word1);
		*undo = (struct cuf_host_undo){ entry.word0, entry.word1 };
	}
	cuf_thread_leave(t);
}

void cuf_host_restore(const struct cuf_host_undo *undo)
{
	uint64_t addr = cuf_host_addr(undo->word0);
	struct cuf_thread_state *t;
	if (!undo->word0)
		return;
	t = cuf_thread_enter();
	if (t) {
		look_at_clock(t);
		cuf_host_ledger_add(addr, (uint32_t)(undo->word0 & 0x7ffff), undo->word1);
		if (cuf_options.host == CUF_HOST_SAMPLED) {
			filter_add(addr);
			__atomic_add_fetch(&live_estimate, weight_of((uint32_t)(undo->word0 & 0x7ffff), cuf_host_bytes(undo->word1)), __ATOMIC_RELAXED);
		}
		append(t, CUF_HOST_RESTORE, addr, undo->word1);
		t->writer.slot->host_free_bytes -= cuf_host_bytes(undo->word1);
		cuf_thread_leave(t);
	}
}
