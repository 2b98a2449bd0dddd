/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When statistics of allocators are read, and by whom. An allocator is in one of three places.
 * Behind us: its malloc is what our hook calls. Private: an object has its own under other names,
 * so its blocks are not visible, but its statistics are. In front of us: the program itself defines
 * malloc, so our hooks are never called, and nobody asks an allocator with locks.
 */
#include "interpose/hooks/malloc/allocator.h"

#include <errno.h>
#include <signal.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/objects/elf_symbol.h"
#include "interpose/platform/options.h"
#include "interpose/platform/side_stack.h"
#include "interpose/platform/sys.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/loader/real.h"
#include "interpose/hooks/malloc/allocator_private.h"
#include "interpose/hooks/malloc/map_blocks.h"
#include "interpose/hooks/malloc/process_maps.h"

enum { ALLOCATOR_BYTES = 4096, MEMORY_BYTES = 1024 };

/* ---- who ---- */

/* The allocator behind us, and the object that the loader searches before us and that defines
 * malloc itself. map NULL: none. Both stay. */
static struct known {
	const struct link_map *map;
	const struct cuf_allocator_family *family;
	struct cuf_allocator allocator;
	struct cuf_code_range code;
	struct cuf_meta *records[2];
	unsigned next;
} behind, front;

static struct cuf_meta *memory_records[2];
static unsigned memory_next;
static bool was_read; /* while running */

/* Whether the allocators of this process know of its fork: a child that was made by a raw clone may
 * have a lock that nobody holds any more. */
static bool is_child;
static uint32_t forked_pid;

static void note_fork(void)
{
	forked_pid = (uint32_t)cuf_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* An allocator is addressed by its object, not by dlsym: with several copies of jemalloc in a
 * process, dlsym would find the first one only. */
static struct known known_of(const struct link_map *map)
{
	struct known known = { .map = map };
	struct cuf_dso object;
	if (!map)
		return known;
	known.allocator = (struct cuf_allocator){ .prefix = "", .bias = map->l_addr,
						  .dynamic = map->l_ld };
	known.family = cuf_allocator_family(&known.allocator, false);
	if (cuf_dso_at(map->l_ld, &object))
		known.code = (struct cuf_code_range){ object.start, object.end };
	return known;
}

/* At start the list of objects is the search order, so what precedes us is searched first. */
static const struct link_map *find_object_in_front(void)
{
	struct cuf_dso self;
	if (!cuf_dso_at((const void *)find_object_in_front, &self))
		return NULL;
	for (const struct link_map *map = self.map->l_prev; map; map = map->l_prev)
		if (cuf_elf_symbol(map->l_addr, map->l_ld, "malloc"))
			return map;
	return NULL;
}

static bool has_locks(const struct cuf_allocator_family *family)
{
	return family && !family->lock_free;
}

/* ---- records ---- */

/* While the process runs, two records of each kind take turns. */
static void put(enum cuf_moment moment, unsigned type, const struct cuf_text *text,
		struct cuf_meta **records, unsigned *next, size_t room)
{
	if (moment != CUF_MOMENT_RUNNING)
		cuf_note(type, moment, text->at, text->used);
	else
		cuf_note_again(&records[(*next)++ % 2], type, moment, text->at, text->used, room);
}

/* The buffer is static because readings exclude each other, and the constructor runs on one
 * thread. */
static struct cuf_text allocator_text(void)
{
	static char buffer[ALLOCATOR_BYTES];
	buffer[0] = 0;
	return (struct cuf_text){ buffer, 0, sizeof buffer };
}

static void write_known(enum cuf_moment moment, struct known *known, const char *role)
{
	struct cuf_text text = allocator_text();
	cuf_allocator_add(&text, known->family, &known->allocator, role, known->map->l_name,
			  moment != CUF_MOMENT_START);
	put(moment, CUF_META_ALLOCATOR, &text, known->records, &known->next, ALLOCATOR_BYTES);
}

/* One that cannot be asked now is named, once. */
static void write_private(enum cuf_moment moment, struct cuf_private_allocator *own, bool may_ask)
{
	struct cuf_text text = allocator_text();
	if (!may_ask && own->is_named)
		return;
	cuf_allocator_add(&text, own->family, &own->allocator, "private", own->object, may_ask);
	put(may_ask ? moment : CUF_MOMENT_START, CUF_META_ALLOCATOR, &text, own->records,
	    &own->next, ALLOCATOR_BYTES);
	own->is_named = true;
}

/* Called once, at the start. It writes names and versions only, since statistics would be those of
 * an empty heap. */
void cuf_allocator_describe(void)
{
	if (!cuf_real_find_allocator() || !cuf_recorder_status().is_on)
		return;
	behind = known_of(cuf_real_allocator());
	front = known_of(find_object_in_front());
	write_known(CUF_MOMENT_START, &behind, "process");
	if (front.map)
		write_known(CUF_MOMENT_START, &front, "in_front");
	if (has_locks(behind.family) && __register_atfork)
		__register_atfork(NULL, NULL, note_fork, NULL);
	cuf_on_object_seen(cuf_allocator_private_see);
}

/* ---- resident memory ---- */

/*
 * The kernel walks all page tables for smaps, in the program's own time, and writes a kilobyte for
 * each mapping: a thread has two.
 */
#define SMAPS_RESIDENT_MAX (128ull << 20)
#define SMAPS_RESIDENT_MAX_AT_END (16ull << 20)
enum { SMAPS_THREADS_MAX_AT_END = 16 };

static bool read_maps(enum cuf_moment moment, struct cuf_process_maps *maps)
{
	static uint64_t read_at_bytes;
	const struct cuf_recorder_status status = cuf_recorder_status();
	const struct cuf_process_size size = cuf_process_size();
	bool is_end = moment == CUF_MOMENT_END, is_known = cuf_process_maps_are_known();
	bool has_many_threads = is_end && size.threads > SMAPS_THREADS_MAX_AT_END;
	uint64_t most = is_end ? SMAPS_RESIDENT_MAX_AT_END : SMAPS_RESIDENT_MAX;

	/* a process that has doubled may have other kinds of memory than before */
	if ((moment == CUF_MOMENT_INCIDENT &&
	     (!is_known || size.resident_bytes <= SMAPS_RESIDENT_MAX_AT_END)) ||
	    (moment != CUF_MOMENT_INCIDENT && size.resident_bytes <= most && !has_many_threads &&
	     (!is_known || size.resident_bytes >= 2 * read_at_bytes))) {
		read_at_bytes = size.resident_bytes;
		return cuf_process_maps_read(maps, status.start, status.bytes);
	}
	/* a refused request waits: once smaps was read, the kernel's counters tell the rest */
	return (is_known || has_many_threads) && cuf_process_maps_update(maps);
}

/* By kind of map, and the sums of mmap=1. Keys are those of abi/FORMAT.md. */
static void write_memory(enum cuf_moment moment)
{
	struct cuf_process_maps maps = { 0 };
	CUF_TEXT(text, MEMORY_BYTES);
	if (read_maps(moment, &maps)) {
		cuf_stats_add(&text, "rss_bytes", maps.rss_bytes);
		cuf_stats_add(&text, "pss_bytes", maps.pss_bytes);
		cuf_stats_add(&text, "swap_bytes", maps.swap_bytes);
		cuf_stats_add(&text, "private_dirty_bytes", maps.private_dirty_bytes);
		cuf_stats_add(&text, "heap_bytes", maps.heap_bytes);
		cuf_stats_add(&text, "anonymous_bytes", maps.anonymous_bytes);
		cuf_stats_add(&text, "stack_bytes", maps.stack_bytes);
		cuf_stats_add(&text, "file_bytes", maps.file_bytes);
		cuf_stats_add(&text, "file_private_bytes", maps.file_private_bytes);
		cuf_stats_add(&text, "shared_bytes", maps.shared_bytes);
		cuf_stats_add(&text, "recorder_bytes", maps.recorder_bytes);
		cuf_stats_add(&text, "map_count", maps.map_count);
		cuf_stats_add(&text, "whole", maps.whole);
	}
	cuf_maps_stats(&text);
	if (text.used)
		put(moment, CUF_META_MEMORY, &text, memory_records, &memory_next, MEMORY_BYTES);
}

/* ---- a reading ---- */

struct reading {
	enum cuf_moment moment;
	struct cuf_private_allocator *privates;   /* NULL: they may go */
	bool may_lock;
};

static void write_privates(const struct reading *reading)
{
	for (unsigned i = 0; reading->privates && i < CUF_PRIVATE_MAX; i++) {
		struct cuf_private_allocator *own = &reading->privates[i];
		if (__atomic_load_n(&own->family, __ATOMIC_ACQUIRE) &&
		    (!front.map || own->allocator.dynamic != front.allocator.dynamic))
			write_private(reading->moment, own,
				      own->family->lock_free || reading->may_lock);
	}
}

/* Three parts: the process, the allocator behind us, and objects with one of their own. */
static void read_all(void *argument)
{
	const struct reading *reading = argument;
	write_memory(reading->moment);
	if (reading->may_lock || !has_locks(behind.family))
		write_known(reading->moment, &behind, "process");
	if (front.map && !has_locks(front.family))
		write_known(reading->moment, &front, "in_front");
	write_privates(reading);
}

static uint32_t is_reading; /* one thread at a time */

static void forget_reading(void)
{
	is_reading = 0;
	is_child = true;
	was_read = false;
	behind.records[0] = behind.records[1] = front.records[0] = front.records[1] = NULL;
	memory_records[0] = memory_records[1] = NULL;
}
CUF_AT_FORK_CHILD(forget_reading);

/* One that comes while another goes on is dropped, not delayed. */
static bool begin_reading(void)
{
	const struct cuf_recorder_status status = cuf_recorder_status();
	return status.is_on_disk /* still in memory: nobody will read it */ && status.is_on &&
	       behind.map && !__atomic_exchange_n(&is_reading, 1, __ATOMIC_ACQUIRE);
}

static void end_reading(void) { __atomic_store_n(&is_reading, 0, __ATOMIC_RELEASE); }

/* most_ns: for the walk over glibc's heap. */
static void run_reading(enum cuf_moment moment, bool may_lock, uint64_t most_ns)
{
	struct reading reading = { moment, cuf_allocator_private_begin(), may_lock };
	behind.allocator.most_ns = front.allocator.most_ns = most_ns;
	cuf_on_side_stack(read_all, &reading);
	if (reading.privates)
		cuf_allocator_private_end();
	cuf_live_change_settle();
}

/* ---- at incidents ---- */

#define INCIDENT_NS 1000000ull
#define SPACING_NS 1000000000ull
#define COST_SHARE 50 /* at most a fiftieth of the time goes into readings */

static uint64_t next_ns, spacing_ns;

/* Spacing doubles with each reading. An incident that repeats in a loop is read at 0, 1, 3, 7
 * s and so on. A slow reading is spaced further apart. */
static void schedule_next(uint64_t began_ns)
{
	uint64_t ended_ns = cuf_now_ns(), spacing_min_ns = (ended_ns - began_ns) * COST_SHARE;
	spacing_ns = spacing_ns ? spacing_ns * 2 : SPACING_NS;
	if (spacing_ns < spacing_min_ns)
		spacing_ns = spacing_min_ns;
	__atomic_store_n(&next_ns, ended_ns + spacing_ns, __ATOMIC_RELAXED);
}

/* The program may be anywhere: no allocator's lock is taken. */
void cuf_allocator_read_at_incident(void)
{
	uint64_t began_ns = cuf_now_ns();
	int saved = errno;
	if (began_ns < __atomic_load_n(&next_ns, __ATOMIC_RELAXED) || !begin_reading())
		return;
	run_reading(CUF_MOMENT_INCIDENT, false, INCIDENT_NS);
	schedule_next(began_ns);
	end_reading();
	errno = saved;
}

/* ---- while the program runs ---- */

#define CREDIT_NS 10000000 /* a program that starts fast is not held back */
#define CREDIT_PARTS 8     /* the less is left of it, the shorter are readings */
static int64_t credit_ns = CREDIT_NS; /* below 0: a debt */
static uint64_t paid_ns;

static bool is_affordable(uint64_t now_ns)
{
	if (paid_ns && now_ns > paid_ns)
		credit_ns += (int64_t)((now_ns - paid_ns) / COST_SHARE);
	if (credit_ns > CREDIT_NS)
		credit_ns = CREDIT_NS;
	paid_ns = now_ns;
	return credit_ns > 0;
}

/* The thread holds none of their locks: no signal came while it was in one of them, and none of
 * them called malloc of libc. */
static bool is_outside(void *frame)
{
	struct cuf_code_range ranges[1 + CUF_PRIVATE_MAX] = { behind.code };
	unsigned count = has_locks(behind.family); /* every stack passes libc */
	const struct cuf_private_allocator *privates = cuf_allocator_private_begin();
	for (unsigned i = 0; privates && i < CUF_PRIVATE_MAX; i++)
		if (__atomic_load_n(&privates[i].family, __ATOMIC_ACQUIRE))
			ranges[count++] = (struct cuf_code_range){ privates[i].start,
								   privates[i].end };
	if (privates)
		cuf_allocator_private_end();
	return cuf_stack_avoids(frame, ranges, count);
}

static bool may_lock(void *frame)
{
	if (is_child && forked_pid != cuf_gate_pid())
		return false;
	return is_outside(frame);
}

/*
 * A handler that allocates must not find a lock that this thread holds for us. A fault of the
 * recording is not held back: its handler is ours, and takes no lock.
 */
static uint64_t block_signals(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };
	uint64_t set = ~0ull, before = 0;
	for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++)
		set &= ~(1ull << (faults[i] - 1));
	cuf_sys(SYS_rt_sigprocmask, SIG_BLOCK, (long)&set, (long)&before, sizeof set, 0, 0);
	return before;
}

static void read_running(void *frame)
{
	uint64_t before, began_ns;
	bool locks = has_locks(behind.family);
	if (!is_affordable(cuf_now_ns()))
		return;
	began_ns = cuf_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	locks = may_lock(frame);
	if (locks || !has_locks(behind.family)) {
		before = block_signals();
		run_reading(CUF_MOMENT_RUNNING, locks, (uint64_t)credit_ns / CREDIT_PARTS);
		cuf_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0, 0);
		was_read = true;
	}
	credit_ns -= (int64_t)(cuf_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
}

/* A call of its own: what is allocated inside is not recorded. */
void cuf_allocator_read_running(void *frame)
{
	struct cuf_call call;
	int saved = errno;
	cuf_live_change_postpone();
	if (cuf_call_begin(&call, CUF_HOOK_malloc, frame) && begin_reading()) {
		read_running(frame);
		end_reading();
	}
	cuf_call_end();
	errno = saved;
}

/* ---- at the end ---- */

#define END_NS 300000ull

void cuf_allocator_read_at_end(void)
{
	int saved = errno;
	/* figures of an allocator with locks go with the memory of their own time */
	if (was_read && has_locks(behind.family))
		return;
	if (begin_reading()) {
		run_reading(CUF_MOMENT_END, false, END_NS);
		end_reading();
	}
	errno = saved;
}

/* ---- a refusal ---- */

/*
 * What the allocator keeps may be what is missing. Read within a call of its own, so that a handler
 * that interrupts it allocates unrecorded.
 */
static void read_books(unsigned hook, void *frame)
{
	struct cuf_call call;
	int saved = errno;

	if (cuf_call_begin(&call, hook, frame))
		cuf_allocator_read_at_incident();
	cuf_call_end();
	errno = saved;
}

/* Cold: refusals must not lengthen the hooks of every allocation. */
__attribute__((noinline, cold)) void cuf_allocator_refused(size_t bytes, unsigned hook, int error,
							   void *frame)
{
	if (cuf_host_refused(bytes, hook, error, frame))
		read_books(hook, frame);
}
