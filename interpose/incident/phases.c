/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread's stack of phases, the tables of what is open, and the rate at which events may be written. */
#include "interpose/incident/phases.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "interpose/platform/clock.h"
#include "interpose/store/dropped.h"
#include "interpose/incident/phase_names.h"
#include "interpose/process/thread.h"
#include "interpose/store/ring.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

enum { DEPTH_MAX = 64, STACKS_MAX = 8192, OPEN_SLOTS = 1024, OPEN_WINDOW = 16 };
#define FILL_NS 60000000000ull /* a ring's worth of phases takes a minute at least */
#define LEFT_OUT (1u << 31)    /* in a level's name: its beginning was not written, so its end is not either */

/* A thread's, kept by its slot; a slot's next thread finds it empty. */
struct stack {
	uint32_t tid, generation;
	uint32_t depth, beyond;    /* levels held; levels above them, which are not */
	struct { uint32_t name, stack; } levels[DEPTH_MAX];
};

/* What is open in the whole process. A key's place is within OPEN_WINDOW of its home; without a free one there, the
 * oldest knowledge gives way: only an incident would have asked for it. */
struct open { uint64_t key, id, seq; uint32_t tid, name; };

static struct stack *stacks;              /* STACKS_MAX, untouched ones take no memory */
static struct open requests[OPEN_SLOTS], ranges[OPEN_SLOTS];
static uint64_t full_at_ns[CUF_RINGS];    /* when the ring would be full of what was admitted, had it been empty */
static uint64_t last_id;

void cuf_phases_fork(void)
{
	if (stacks)
		cuf_sys_madvise(stacks, STACKS_MAX * sizeof *stacks, MADV_DONTNEED);
	memset(requests, 0, sizeof requests);
	memset(ranges, 0, sizeof ranges);
	memset(full_at_ns, 0, sizeof full_at_ns);
	last_id = 0;
	cuf_phase_names_fork();
}

/* ---- open tables ---- */

/* Ids of several tools may be equal numbers. */
static uint64_t key_of(enum cuf_phase_source source, uint64_t id) { return source ? ~id : id; }

static struct open *open_find(struct open *table, uint64_t key)
{
	uint64_t home = key * 0x9E3779B97F4A7C15ull >> 54;
	for (unsigned i = 0; i < OPEN_WINDOW; i++) {
		struct open *o = &table[(home + i) % OPEN_SLOTS];
		if (__atomic_load_n(&o->key, __ATOMIC_ACQUIRE) == key)
			return o;
	}
	return NULL;
}

static void open_add(struct open *table, uint64_t key, uint64_t id, uint32_t tid, uint32_t name, uint64_t seq)
{
	uint64_t home = key * 0x9E3779B97F4A7C15ull >> 54;
	struct open *o = NULL;
	for (unsigned i = 0; i < OPEN_WINDOW && !o; i++) {
		uint64_t none = 0;
		if (__atomic_compare_exchange_n(&table[(home + i) % OPEN_SLOTS].key, &none, key, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			o = &table[(home + i) % OPEN_SLOTS];
	}
	if (!o)
		o = &table[home % OPEN_SLOTS];
	o->id = id;
	o->seq = seq;
	o->tid = tid;
	o->name = name;
	__atomic_store_n(&o->key, key, __ATOMIC_RELEASE);
}

/* The name it had, and true, when it was there. */
static bool open_take(struct open *table, uint64_t key, uint32_t *name)
{
	struct open *o = open_find(table, key);
	if (!o)
		return false;
	*name = o->name;
	return __atomic_compare_exchange_n(&o->key, &key, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The last begun, of this thread or of any (0). */
static const struct open *open_last(const struct open *table, uint32_t tid)
{
	const struct open *last = NULL;
	for (unsigned i = 0; i < OPEN_SLOTS; i++)
		if (table[i].key && (!tid || table[i].tid == tid) && (!last || table[i].seq > last->seq))
			last = &table[i];
	return last;
}

/* ---- events ---- */

static enum cuf_ring ring_of(enum cuf_phase_source source) { return source == CUF_PHASE_NVTX ? CUF_RING_FRAMEWORK : CUF_RING_DEVICE; }

/* The end of what was begun is always written. */
static bool admit(enum cuf_ring ring, uint64_t now_ns, bool always)
{
	const struct cuf_ring_place *place = &cuf_recording.rings[ring];
	uint64_t events = place->segment_count * (place->segment_bytes / sizeof(struct cuf_event) - 1);
	uint64_t seen = __atomic_load_n(&full_at_ns[ring], __ATOMIC_RELAXED), from;
	do {
		from = seen > now_ns ? seen : now_ns;
		if (!always && from - now_ns > FILL_NS / 2)
			return false;
	} while (!__atomic_compare_exchange_n(&full_at_ns[ring], &seen, from + FILL_NS / (events ? events : 1), 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}

/* Its sequence number; 0: left out. */
static uint64_t log_event(struct cuf_thread_state *t, enum cuf_phase_source source, enum cuf_phase_op op, uint32_t name, uint64_t id, bool always)
{
	struct cuf_event event = { .addr = name, .aux = id, .tid = t->writer.tid, .extra = cuf_phase_extra(op, source),
		.op = CUF_OP_PHASE, .device = CUF_DEVICE_NONE };
	if (!admit(ring_of(source), cuf_now_coarse_ns(), always)) {
		__atomic_fetch_add(&cuf_recording.header->phases_left_out, 1, __ATOMIC_RELAXED);
		return 0;
	}
	event.time_ns = cuf_now_ns();
	return cuf_ring_event(&t->writer, ring_of(source), &event);
}

struct entry { struct cuf_thread_state *thread; int saved_errno; };

static bool enter(struct entry *e)
{
	e->saved_errno = errno;
	e->thread = cuf_thread_enter();
	if (!e->thread)
		errno = e->saved_errno;
	return e->thread != NULL;
}

static void leave(const struct entry *e)
{
	cuf_thread_leave(e->thread);
	errno = e->saved_errno;
}

static uint32_t number_of(const struct cuf_phase_text *name) { return cuf_phase_name(name->domain, name->domain_bytes, name->text, name->bytes); }

/* ---- stacks ---- */

static void map_stacks(void)
{
	struct stack *none = NULL;
	long at = cuf_sys_mmap(NULL, STACKS_MAX * sizeof *stacks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (cuf_sys_failed(at))
		return;
	if (!__atomic_compare_exchange_n(&stacks, &none, (struct stack *)at, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		cuf_sys_munmap((void *)at, STACKS_MAX * sizeof *stacks);
}

/* This thread's; NULL: no memory. */
static struct stack *stack_of(const struct cuf_thread_state *t)
{
	struct stack *s;
	uint32_t generation = t->writer.slot->generation;
	if (__builtin_expect(!__atomic_load_n(&stacks, __ATOMIC_ACQUIRE), 0))
		map_stacks();
	if (!stacks || t->writer.slot_index >= STACKS_MAX)
		return NULL;
	s = &stacks[t->writer.slot_index];
	if (s->tid != t->writer.tid || s->generation != generation) {
		s->tid = t->writer.tid;
		s->generation = generation;
		s->depth = s->beyond = 0;
	}
	return s;
}

int cuf_phase_push(enum cuf_phase_source source, const struct cuf_phase_text *name)
{
	struct entry e;
	struct stack *s;
	int depth = -1;
	if (!enter(&e))
		return -1;
	s = stack_of(e.thread);
	if (s && s->depth < DEPTH_MAX) {
		uint32_t id = number_of(name);
		bool written = log_event(e.thread, source, CUF_PHASE_PUSH, id, 0, false) != 0;
		s->levels[s->depth].name = written ? id : id | LEFT_OUT;
		s->levels[s->depth].stack = name->stack;
		s->depth++;
		for (uint32_t i = 0; i < s->depth; i++)
			depth += s->levels[i].stack == name->stack;
	} else if (s) {
		s->beyond++;
		__atomic_fetch_add(&cuf_recording.header->phases_left_out, 1, __ATOMIC_RELAXED);
		depth = (int)(s->depth + s->beyond) - 1;
	}
	leave(&e);
	return depth;
}

int cuf_phase_pop(enum cuf_phase_source source, uint32_t stack)
{
	struct entry e;
	struct stack *s;
	int depth = -1;
	uint32_t at;
	if (!enter(&e))
		return -1;
	s = stack_of(e.thread);
	if (s && s->beyond) {
		depth = (int)(s->depth + --s->beyond);
	} else if (s) {
		for (at = s->depth; at && s->levels[at - 1].stack != stack; at--)
			;
		if (at) {
			uint32_t name = s->levels[at - 1].name;
			for (uint32_t i = 0; i < at; i++)
				depth += s->levels[i].stack == stack;
			memmove(&s->levels[at - 1], &s->levels[at], (s->depth - at) * sizeof *s->levels);
			s->depth--;
			if (!(name & LEFT_OUT))
				log_event(e.thread, source, CUF_PHASE_POP, name, 0, true);
		}
	}
	leave(&e);
	return depth;
}

/* ---- marks, free phases, requests ---- */

void cuf_phase_mark(enum cuf_phase_source source, const struct cuf_phase_text *name)
{
	struct entry e;
	if (!enter(&e))
		return;
	log_event(e.thread, source, CUF_PHASE_MARK, number_of(name), 0, false);
	leave(&e);
}

/* Begins what has an id; what was left out is not among the open ones, and so neither is its end written. */
static uint64_t begin(enum cuf_phase_source source, enum cuf_phase_op op, struct open *table, const struct cuf_phase_text *name, uint64_t id)
{
	struct entry e;
	uint32_t number;
	uint64_t seq;
	if (!enter(&e))
		return id;
	if (!id)
		id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	number = number_of(name);
	seq = log_event(e.thread, source, op, number, id, false);
	if (seq)
		open_add(table, key_of(source, id), id, e.thread->writer.tid, number, seq);
	leave(&e);
	return id;
}

static void end(enum cuf_phase_source source, enum cuf_phase_op op, struct open *table, uint64_t id)
{
	struct entry e;
	uint32_t name = 0;
	bool known;
	if (!id || !enter(&e))
		return;
	known = open_take(table, key_of(source, id), &name);
	log_event(e.thread, source, op, name, id, known);
	leave(&e);
}

uint64_t cuf_phase_start(enum cuf_phase_source source, const struct cuf_phase_text *name, uint64_t id)
{
	return begin(source, CUF_PHASE_START, ranges, name, id);
}

void cuf_phase_end(enum cuf_phase_source source, uint64_t id) { end(source, CUF_PHASE_END, ranges, id); }
uint64_t cuf_request_begin(const struct cuf_phase_text *name, uint64_t id) { return begin(CUF_PHASE_PROGRAM, CUF_PHASE_REQUEST_BEGIN, requests, name, id); }
void cuf_request_end(uint64_t id) { end(CUF_PHASE_PROGRAM, CUF_PHASE_REQUEST_END, requests, id); }

void cuf_phases_at_incident(struct cuf_incident *incident)
{
	const struct cuf_thread_state *t = cuf_tls.thread;
	const struct stack *s = t && stacks ? stack_of(t) : NULL;
	const struct open *request = open_last(requests, incident->tid), *range = open_last(ranges, 0);
	if (s && s->depth)
		incident->phase = s->levels[s->depth - 1].name & ~LEFT_OUT;
	else if (range)
		incident->phase = range->name;
	if (request) {
		incident->request_phase = request->name;
		incident->request_id = request->id;
	}
}
