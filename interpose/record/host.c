/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the malloc family: the halves that host_fast.h does not skip. */
#include "interpose/record/host.h"

#include <errno.h>
#include "interpose/incident/host_peak.h"
#include "interpose/incident/timeline.h"
#include "interpose/incident/totals.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/platform/options.h"
#include "interpose/platform/sampler.h"
#include "interpose/platform/say.h"
#include "interpose/process/handover.h"
#include "interpose/process/thread.h"
#include "interpose/python/python.h"
#include "interpose/record/host_filter.h"
#include "interpose/record/live_change.h"
#include "interpose/record/recorder.h"
#include "interpose/stack/stacks.h"
#include "interpose/store/host_ledger.h"
#include "interpose/store/meta.h"
#include "interpose/store/recording.h"
#include "interpose/store/ring.h"
#include "interpose/platform/laws.h"

enum {
	SAMPLE_BYTES_MIN = 4096,        /* as options.def */
	SAMPLE_BYTES_MAX = 1 << 30,
	PEAK_STEP_BYTES = 1 << 20,      /* full mode: so much of a thread may make the peak */
	CLOCK_EVERY = 16,               /* full mode: events between two looks at the clock */
	/* records to prefetch: their pages were last met a round of the ring ago */
	AHEAD = 32,
	TIME_RECORD_EVERY_NS = 30000000 /* well within the 15 bits of ms ticks */
};

/*
 * Means after the first one, with the birth time (cuf_birth_encode) from which on blocks were
 * sampled by them.
 */
static struct {
	uint32_t birth;
	uint64_t mean_bytes;
} means[16];
static uint32_t mean_count;

static void forget_blocks(void)
{
	mean_count = 0;
	cuf_host_filter_clear();
}
CUF_AT_FORK_CHILD(forget_blocks);

void cuf_host_begin_skipping(void)
{
	if (cuf_options.host != CUF_HOST_FULL || cuf_options.disabled)
		cuf_host_filter_begin_skipping();
}

/* ---- the mean of the samples ---- */

static uint32_t birth_at(uint64_t now_ns)
{
	uint64_t start_ns = cuf_recording.header->start_ns;
	return cuf_birth_encode(now_ns > start_ns ? (now_ns - start_ns) / 1000000 : 0);
}

/*
 * What a live block stands for, by the mean of its time. A thread's first sample after a change has
 * the old mean and is taken for one of the new.
 */
static int64_t weight_of(uint32_t birth, uint64_t bytes)
{
	uint64_t mean_bytes = cuf_recording.header->sample_mean_bytes;
	uint32_t count = __atomic_load_n(&mean_count, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < count && means[i].birth <= birth; i++)
		mean_bytes = means[i].mean_bytes;
	return (int64_t)cuf_sample_weight_bytes(bytes, mean_bytes);
}

static int64_t weight_of_entry(uint64_t word0, uint64_t word1)
{
	return weight_of(cuf_host_birth(word0), cuf_host_bytes(word1));
}

int cuf_host_set_sample(uint64_t mean_bytes)
{
	uint32_t count = __atomic_load_n(&mean_count, __ATOMIC_RELAXED);
	struct cuf_thread_state *thread;
	CUF_TEXT(birth, 16);
	int saved_errno = errno;
	if (cuf_options.host != CUF_HOST_SAMPLED || count == sizeof means / sizeof *means)
		return -1;
	if (mean_bytes < SAMPLE_BYTES_MIN || mean_bytes > SAMPLE_BYTES_MAX ||
	    !(thread = cuf_thread_enter()))
		return -1;
	/* of two calls at once one is lost, as if it had been made before the other */
	means[count].birth = birth_at(cuf_now_coarse_ns());
	means[count].mean_bytes = mean_bytes;
	__atomic_store_n(&mean_count, count + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&cuf_options.sample, mean_bytes, __ATOMIC_RELAXED);
	cuf_text_number(&birth, means[count].birth);
	cuf_meta_text(CUF_META_SAMPLE, mean_bytes, birth.at, birth.used);
	cuf_thread_leave(thread);
	errno = saved_errno;
	return 0;
}

/* ---- the thread's clock ---- */

/* Ticks count from the time in the thread's last TIME record. */
static void set_ticks(struct cuf_thread_state *thread)
{
	uint64_t passed_ns = thread->host_now_ns - thread->writer.host_time_base_ns;
	thread->host_tick_ms = (uint32_t)(passed_ns / 1000000);
}

/* Full mode: the total is a sum over all threads, so it is looked at now and then. Not by the clock
 * only: a peak may come and go between two of its ticks. */
static __attribute__((noinline)) void look_at_total(struct cuf_thread_state *thread)
{
	int64_t live_bytes = (int64_t)cuf_host_live_bytes();

	thread->looked_at_bytes = thread->writer.slot->host_alloc_bytes;
	cuf_host_peak_rise(live_bytes, thread->host_now_ns, NULL);
	cuf_timeline_rise(live_bytes);
	cuf_live_change_notice(live_bytes);
}

static void look_at_clock(struct cuf_thread_state *thread)
{
	uint64_t now_ns = cuf_now_coarse_ns();
	thread->host_clock_countdown = CLOCK_EVERY;
	/* the coarse clock moves every few ms, and may be behind a mark */
	if (now_ns <= thread->host_now_ns)
		return;
	thread->host_now_ns = now_ns;
	thread->host_birth = birth_at(now_ns);
	if (now_ns - thread->writer.host_time_base_ns > TIME_RECORD_EVERY_NS)
		thread->writer.host_time_base_ns = 0;
	set_ticks(thread);
	cuf_timeline_tick(now_ns);
	if (cuf_options.host == CUF_HOST_FULL)
		look_at_total(thread);
}

void cuf_host_mark_time(struct cuf_thread_state *thread)
{
	thread->host_now_ns = cuf_now_ns() + 1;
	thread->writer.host_time_base_ns = 0;
}

/*
 * Python frees its objects when it shuts down, and exit comes after that. The first block freed
 * then marks where the program's own work ended, which is what a report is about.
 */
static void notice_work_end(struct cuf_thread_state *thread)
{
	struct cuf_header *header = cuf_recording.header;
	uint64_t now_ns;
	if (__builtin_expect(header->work_end_ns != 0, 0) || !cuf_python_is_finalizing())
		return;
	now_ns = cuf_now_ns();
	header->work_end_seq = __atomic_load_n(&header->next_seq, __ATOMIC_RELAXED);
	__atomic_store_n(&header->work_end_ns, now_ns, __ATOMIC_RELEASE);
	cuf_host_mark_time(thread);
	__atomic_store_n(&cuf_live_change_due, 1, __ATOMIC_RELAXED); /* what was held till then */
}

/* Full mode: once in a few events, the thread's first among them. */
static inline void keep_time(struct cuf_thread_state *thread)
{
	if (!thread->host_clock_countdown) {
		look_at_clock(thread);
		notice_work_end(thread);
	}
	thread->host_clock_countdown--;
}

/* ---- events ---- */

/* Commits a record of this op, and reserves the next one. */
static struct cuf_host_event *write_and_reserve(struct cuf_writer *writer,
						struct cuf_host_event *event,
						unsigned op, uint64_t word1)
{
	*event = (struct cuf_host_event){ cuf_host_word0(op, 0, 0), word1 };
	cuf_ring_host_commit(writer);
	return cuf_ring_host_reserve(writer);
}

/*
 * A segment's first records, and some later ones: the time, and which thread writes when the
 * segment had another's. A reserve may exchange the segment, which then needs both again.
 */
static __attribute__((noinline)) struct cuf_host_event *begin_time(struct cuf_thread_state *thread,
								   struct cuf_host_event *event)
{
	struct cuf_writer *writer = &thread->writer;
	while (event && !writer->host_time_base_ns) {
		writer->host_time_base_ns = thread->host_now_ns;
		set_ticks(thread);
		event = write_and_reserve(writer, event, CUF_HOST_TIME, thread->host_now_ns);
		if (event && writer->host_time_base_ns &&
		    writer->segments[CUF_RING_HOST]->tid != writer->tid)
			event = write_and_reserve(writer, event, CUF_HOST_THREAD, writer->tid);
	}
	return event;
}

static inline void append(struct cuf_thread_state *thread, unsigned op, uint64_t addr,
			  uint64_t word1)
{
	struct cuf_host_event *event = cuf_ring_host_reserve(&thread->writer);
	if (__builtin_expect(!thread->writer.host_time_base_ns, 0))
		event = begin_time(thread, event);
	if (!event)
		return;
	__builtin_prefetch(event + AHEAD, 1);
	*event = (struct cuf_host_event){ cuf_host_word0(op, thread->host_tick_ms, addr), word1 };
	cuf_ring_host_commit(&thread->writer);
}

/*
 * malloc's path in full mode is one function. The same steps, called one by one, cost an eighth
 * more.
 */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* ---- allocations ---- */

static inline uint64_t record_block(struct cuf_thread_state *thread, uint64_t addr, size_t bytes,
				    unsigned op, const void *frame)
{
	uint32_t stack;
	uint64_t word1;
	cuf_host_ledger_expect(addr);
	stack = cuf_stack_capture_caller(&thread->stack, frame, bytes >= CUF_SAMPLE_EXACT_BYTES);
	word1 = cuf_host_word1(stack, bytes);
	cuf_host_ledger_add(addr, thread->host_birth, word1);
	append(thread, op, addr, word1);
	return word1;
}

static __attribute__((noinline)) uint64_t record_sample(struct cuf_thread_state *thread,
							uint64_t addr, size_t bytes, unsigned op,
							const void *frame)
{
	const struct cuf_segment *segment = thread->writer.segments[CUF_RING_HOST];
	int64_t weight, live_bytes;
	uint64_t word1;
	if (segment && segment->sample_mean_bytes != thread->writer.sample_mean_bytes)
		/* the events of one segment have one mean */
		cuf_ring_host_exchange(&thread->writer);
	look_at_clock(thread);
	weight = weight_of(thread->host_birth, bytes);
	word1 = record_block(thread, addr, bytes, op, frame);
	cuf_host_filter_add(addr);
	live_bytes = cuf_host_live_add(weight);
	cuf_host_peak_rise(live_bytes, thread->host_now_ns, weight_of_entry);
	cuf_timeline_rise(live_bytes);
	cuf_live_change_notice(live_bytes);
	thread->writer.slot->host_allocs++;
	thread->writer.slot->host_alloc_bytes += (uint64_t)weight;
	return word1;
}

static ALWAYS_INLINE uint64_t record_full(struct cuf_thread_state *thread, uint64_t addr,
					  size_t bytes, unsigned op, const void *frame)
{
	uint64_t word1;
	keep_time(thread);
	word1 = record_block(thread, addr, bytes, op, frame);
	thread->writer.slot->host_allocs++;
	thread->writer.slot->host_alloc_bytes += bytes;
	if (__builtin_expect(thread->writer.slot->host_alloc_bytes - thread->looked_at_bytes >=
			     PEAK_STEP_BYTES, 0))
		look_at_total(thread);
	return word1;
}

static bool is_off(void) { return cuf_options.host == CUF_HOST_OFF || cuf_options.disabled; }

/* Returns the block's second word. */
static ALWAYS_INLINE uint64_t add_block(struct cuf_thread_state *thread, uint64_t addr,
					size_t bytes, unsigned op, const void *frame)
{
	return cuf_options.host == CUF_HOST_FULL ? record_full(thread, addr, bytes, op, frame)
						 : record_sample(thread, addr, bytes, op, frame);
}

/* The countdown ran out; but a fresh thread got its countdown only by entering. */
static bool is_sample(size_t bytes, bool is_fresh)
{
	if (bytes >= CUF_SAMPLE_EXACT_BYTES || !is_fresh)
		return true;
	cuf_tls.countdown_bytes -= (int64_t)bytes;
	return cuf_tls.countdown_bytes <= 0;
}

static void begin_interval(struct cuf_thread_state *thread)
{
	thread->writer.sample_mean_bytes = cuf_options.sample;
	thread->sampled_from = cuf_sample_interval(&thread->random,
						   thread->writer.sample_mean_bytes);
	cuf_tls.countdown_bytes = (int64_t)thread->sampled_from;
}

static ALWAYS_INLINE struct cuf_thread_state *choose(size_t bytes, bool *is_chosen)
{
	bool is_fresh = cuf_tls.generation != __atomic_load_n(cuf_gate, __ATOMIC_RELAXED);
	struct cuf_thread_state *thread;

	if (__builtin_expect(is_off(), 0)) {
		cuf_tls.countdown_bytes = INT64_MAX;
		return NULL;
	}
	thread = cuf_thread_enter();
	*is_chosen = thread && (cuf_options.host == CUF_HOST_FULL || is_sample(bytes, is_fresh));
	return thread;
}

void cuf_host_sampled(struct cuf_thread_state *thread, size_t bytes)
{
	if (cuf_options.host == CUF_HOST_SAMPLED && bytes < CUF_SAMPLE_EXACT_BYTES)
		begin_interval(thread);
}

/* The same for allocations that are not malloc's. */

struct cuf_thread_state *cuf_host_choose(size_t bytes, bool *is_chosen)
{
	return choose(bytes, is_chosen);
}

void cuf_host_add_block(struct cuf_thread_state *thread, uint64_t addr, size_t bytes, unsigned op,
			const void *frame)
{
	add_block(thread, addr, bytes, op, frame);
}

/* A block or a map is made while CPython's allocator serves a request. */
static void come_out_with(struct cuf_host_outer *outer, uint64_t addr, size_t bytes)
{
	cuf_host_come_out(outer);
	if (bytes >= outer->bytes) {
		outer->malloc_start = addr;
		outer->malloc_end = addr + bytes;
	}
}

static __attribute__((noinline)) void alloc_inside(void *p, size_t bytes, unsigned op,
						   const void *frame)
{
	struct cuf_host_outer *outer = cuf_tls.outer;

	come_out_with(outer, (uintptr_t)p, bytes);
	cuf_host_alloc(p, bytes, op, frame);
	cuf_host_go_inside(outer);
}

void cuf_host_record_alloc(void *p, size_t bytes, unsigned op, const void *frame)
{
	struct cuf_thread_state *thread;
	bool is_chosen = false;

	if (__builtin_expect(cuf_host_is_inside(frame), 0)) {
		alloc_inside(p, bytes, op, frame);
		return;
	}
	thread = choose(bytes, &is_chosen);
	if (!thread)
		return;
	if (is_chosen) {
		add_block(thread, (uintptr_t)p, bytes, op, frame);
		cuf_host_sampled(thread, bytes);
	}
	cuf_thread_leave(thread);
	if (is_chosen && __builtin_expect(cuf_handover_is_pending(), 0))
		cuf_host_has_grown(bytes);
}

/* Maps are rare, and large enough for a record of their own in sampled mode. */
void cuf_host_record_map(uint64_t addr, size_t bytes, const void *frame,
			 struct cuf_host_undo *block)
{
	bool is_chosen = false, is_inside = cuf_host_is_inside(frame);
	struct cuf_host_outer *outer = cuf_tls.outer;
	struct cuf_thread_state *thread;

	*block = (struct cuf_host_undo){ 0, 0 };
	if (is_inside)
		come_out_with(outer, addr, bytes);
	thread = choose(bytes, &is_chosen);
	if (thread) {
		block->word1 = add_block(thread, addr, bytes, CUF_HOST_MMAP, frame);
		block->word0 = cuf_host_block_word0(addr, thread->host_birth);
		cuf_thread_leave(thread);
		if (__builtin_expect(cuf_handover_is_pending(), 0))
			cuf_host_has_grown(bytes);
	}
	if (is_inside)
		cuf_host_go_inside(outer);
}

/* ---- frees ---- */

/* Sampled mode: a recorded block goes. */
static void forget_sample(struct cuf_thread_state *thread, uint64_t addr,
			  const struct cuf_host_block *entry)
{
	look_at_clock(thread);
	notice_work_end(thread);
	cuf_host_filter_remove(addr);
	cuf_live_change_notice(
		cuf_host_live_add(-weight_of_entry(entry->word0, entry->word1)));
}

/* A block goes that perhaps was not recorded. In full mode a free of malloc's is, all the same. */
static ALWAYS_INLINE void record_free(uint64_t addr, unsigned op, bool is_python,
			       struct cuf_host_undo *undo)
{
	bool is_full = cuf_options.host == CUF_HOST_FULL, is_known;
	struct cuf_host_block entry = { 0, 0 };
	struct cuf_thread_state *thread;

	cuf_host_ledger_expect(addr);
	thread = cuf_thread_enter();
	if (!thread)
		return;
	if (is_full)
		keep_time(thread);
	is_known = cuf_host_ledger_take(addr, &entry);
	if (is_known && !is_full)
		forget_sample(thread, addr, &entry);
	if (is_known || (is_full && !is_python)) {
		append(thread, op, addr, entry.word1);
		thread->writer.slot->host_frees++;
		thread->writer.slot->host_free_bytes += cuf_host_bytes(entry.word1);
		*undo = (struct cuf_host_undo){ entry.word0, entry.word1 };
	}
	cuf_thread_leave(thread);
}

/* True when no record of a block at this address can exist. */
static inline bool is_unrecorded(uint64_t addr)
{
	return is_off() || (cuf_options.host == CUF_HOST_SAMPLED && !cuf_host_filter_has(addr));
}

void cuf_host_record_free(void *p, unsigned op, struct cuf_host_undo *undo)
{
	/*
	 * loads from far away, one of them the allocator's in the real free: all start before any
	 * is waited for
	 */
	__builtin_prefetch((const char *)p - 2 * sizeof(size_t), 1);
	if (p && !is_unrecorded((uintptr_t)p))
		record_free((uintptr_t)p, op, false, undo);
}

void cuf_host_python_free(void *p, unsigned op, struct cuf_host_undo *undo)
{
	if (p && !is_unrecorded((uintptr_t)p))
		record_free(cuf_python_address((uintptr_t)p), op, true, undo);
}

void cuf_host_restore(const struct cuf_host_undo *undo)
{
	uint64_t addr = cuf_host_addr(undo->word0);
	struct cuf_thread_state *thread;
	if (!undo->word0)
		return;
	thread = cuf_thread_enter();
	if (!thread)
		return;
	look_at_clock(thread);
	cuf_host_ledger_add(addr, cuf_host_birth(undo->word0), undo->word1);
	if (cuf_options.host == CUF_HOST_SAMPLED) {
		cuf_host_filter_add(addr);
		cuf_host_live_add(weight_of_entry(undo->word0, undo->word1));
	}
	append(thread, CUF_HOST_RESTORE, addr, undo->word1);
	thread->writer.slot->host_free_bytes -= cuf_host_bytes(undo->word1);
	cuf_thread_leave(thread);
}
