/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the interpreter and this thread's state in it. Owns whether Python frames are read at all. Must never call into
 * the interpreter beyond the three questions of struct cuf_python, each of which is one or two loads there.
 */
#include "interpose/python/python.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include "interpose/platform/elf_symbol.h"
#include "interpose/store/meta.h"
#include "interpose/code/modules.h"
#include "interpose/platform/options.h"
#include "interpose/python/python_parts.h"
#include "interpose/platform/readable.h"
#include "interpose/store/recording.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

/* Walks that are checked load by load, and how many later ones may go wrong before none is trusted. */
enum { SLOTS_MAX = 8192, CHECKED_WALKS = 64, DAMAGES_MAX = 256 };

struct cuf_python cuf_python;
static struct cuf_python_thread *threads[SLOTS_MAX]; /* by slot */
static enum cuf_python_state state_known; /* of this process; written into each recording */
static char note[160];
static uint32_t looking, walks, damages, unloads;
static bool may_go; /* it was loaded later, so it can be unloaded */

extern struct r_debug _r_debug __attribute__((weak));

/* ---- what the recording says of it ---- */

static void publish(void)
{
	if (!cuf_recording.header)
		return;
	cuf_recording.header->python_state = state_known;
	if (*note)
		cuf_meta_text(CUF_META_NOTE, CUF_NOTE_PYTHON, note, strlen(note));
}

void cuf_python_off(enum cuf_python_state state, const char *why)
{
	__atomic_store_n(&cuf_python.on, 0, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&state_known, state, __ATOMIC_RELAXED) == state)
		return;
	CUF_TEXT(text, sizeof note);
	cuf_text_add(&text, why);
	memcpy(note, text.at, text.used + 1);
	publish();
}

/* ---- finding it ---- */

static uint32_t version_of(uintptr_t bias, const ElfW(Dyn) *dynamic)
{
	const unsigned long *number = cuf_elf_symbol(bias, dynamic, "Py_Version"); /* 3.11 and later */
	const char *(*text)(void), *at;
	uint32_t part[2] = { 0, 0 };
	if (number)
		return (uint32_t)*number;
	text = (const char *(*)(void))cuf_elf_symbol(bias, dynamic, "Py_GetVersion"); /* composes it of constants */
	at = text ? text() : "";
	for (unsigned i = 0; i < 2; i++, at += *at == '.')
		for (; *at >= '0' && *at <= '9' && part[i] < 100; at++)
			part[i] = part[i] * 10 + (uint32_t)(*at - '0');
	return part[0] << 24 | part[1] << 16;
}

static void say_version(uint32_t version)
{
	CUF_TEXT(text, sizeof note);
	cuf_text_add(&text, "Python ");
	cuf_text_number(&text, version >> 24);
	cuf_text_add(&text, ".");
	cuf_text_number(&text, version >> 16 & 0xff);
	cuf_text_add(&text, ": how it keeps its frames is not known to this recorder");
	*(text.at + text.used) = 0;
	cuf_python_off(CUF_PYTHON_UNKNOWN, text.at);
}

/* The symbols, into *p. false: not all are there. */
static bool read_symbols(uintptr_t bias, const ElfW(Dyn) *dynamic, struct cuf_python *p)
{
	struct cuf_object object;
	size_t eval_bytes = 0;
	void *current = cuf_elf_symbol(bias, dynamic, "PyThreadState_GetUnchecked"), *finalizing = cuf_elf_symbol(bias, dynamic, "Py_IsFinalizing");
	if (!current)
		current = cuf_elf_symbol(bias, dynamic, "_PyThreadState_UncheckedGet");
	if (!finalizing)
		finalizing = cuf_elf_symbol(bias, dynamic, "_Py_IsFinalizing");
	p->own_state = (void *(*)(void))cuf_elf_symbol(bias, dynamic, "PyGILState_GetThisThreadState");
	p->current_state = (void *(*)(void))current;
	p->is_finalizing = (int (*)(void))finalizing;
	p->code_type = (uintptr_t)cuf_elf_symbol(bias, dynamic, "PyCode_Type");
	p->text_type = (uintptr_t)cuf_elf_symbol(bias, dynamic, "PyUnicode_Type");
	p->bytes_type = (uintptr_t)cuf_elf_symbol(bias, dynamic, "PyBytes_Type");
	p->eval_start = (uintptr_t)cuf_elf_symbol_bytes(bias, dynamic, "_PyEval_EvalFrameDefault", &eval_bytes);
	p->eval_end = p->eval_start + eval_bytes;
	if (!cuf_object_find(p->code_type, &object))
		return false;
	p->object_start = object.start;
	p->object_end = object.end;
	return p->own_state && p->current_state && p->code_type && p->text_type && p->bytes_type && p->eval_start;
}

/* The first interpreter, into cuf_python. false: of a version that is not known, or not all of it is there. */
static bool take(uintptr_t bias, const ElfW(Dyn) *dynamic, uint32_t version)
{
	uint64_t runtime[CUF_PYTHON_OFFSETS_BYTES / 8] = { 0 };
	struct cuf_python found = { .generation = cuf_python.generation };
	uintptr_t at = (uintptr_t)cuf_elf_symbol(bias, dynamic, "_PyRuntime");
	if (!at || !cuf_readable_copy(runtime, at, sizeof runtime) || !cuf_python_layout_of(version, runtime, &found.layout) ||
	    !read_symbols(bias, dynamic, &found))
		return false;
	/* sampled mode reads few stacks, and leaves the interpreter as it is */
	found.frees_counted = cuf_options.host == CUF_HOST_FULL && !found.layout.code_version && found.layout.minor < 12 &&
	                      cuf_python_count_frees(found.code_type);
	found.walks = cuf_python_walks_for(&found.layout, found.frees_counted);
	cuf_python = found;
	return true;
}

static void meet(uintptr_t bias, const ElfW(Dyn) *dynamic, bool later)
{
	static const char second[] = "a second interpreter was loaded, and the first one's alone are read";
	uintptr_t code_type = (uintptr_t)cuf_elf_symbol(bias, dynamic, "PyCode_Type");
	uint32_t version;
	if (!code_type || cuf_python.code_type == code_type || __atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE))
		return;
	version = version_of(bias, dynamic);
	if (cuf_python.code_type) {
		memcpy(note, second, sizeof second);
		publish();
	} else if (!cuf_options.python) {
		cuf_python_off(CUF_PYTHON_OPTION, "option python=0");
	} else if (!take(bias, dynamic, version)) {
		say_version(version);
	} else {
		may_go = later;
		state_known = CUF_PYTHON_ON;
		publish();
		__atomic_store_n(&cuf_python.on, 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
}

void cuf_python_object_seen(uintptr_t bias, const ElfW(Dyn) *dynamic) { meet(bias, dynamic, true); }

void cuf_python_start(void)
{
	static bool looked;
	publish();
	if (looked || !&_r_debug)
		return;
	looked = true; /* in the constructor nobody else changes the list; later somebody might */
	for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next)
		if (map->l_ld)
			meet(map->l_addr, map->l_ld, false);
}

void cuf_python_atfork_child(void)
{
	looking = 0;
	cuf_python.generation++;
	cuf_python_names_atfork_child();
}

bool cuf_python_unload_begin(void)
{
	if (!may_go)
		return false;
	__atomic_fetch_add(&unloads, 1, __ATOMIC_ACQ_REL);
	__atomic_store_n(&cuf_python.on, 0, __ATOMIC_SEQ_CST);
	return true;
}

void cuf_python_unload_end(void)
{
	struct cuf_object object;
	if (!may_go || __atomic_sub_fetch(&unloads, 1, __ATOMIC_ACQ_REL))
		return;
	if (!cuf_object_find(cuf_python.code_type, &object) || object.start != cuf_python.object_start || object.end != cuf_python.object_end) {
		may_go = false;
		cuf_python.code_type = 0; /* the next one may be met */
		note[0] = 0;
	} else if (state_known == CUF_PYTHON_ON) {
		__atomic_store_n(&cuf_python.on, 1, __ATOMIC_RELEASE);
	}
}

/* ---- this thread's state ---- */

static struct cuf_python_thread *thread_of(unsigned slot)
{
	long at;
	if (slot >= SLOTS_MAX)
		return NULL;
	if (!threads[slot]) {
		at = cuf_sys_mmap(NULL, sizeof **threads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (!cuf_sys_failed(at))
			threads[slot] = (struct cuf_python_thread *)at; /* the slot is ours */
	}
	return threads[slot];
}

/* The interpreter notes in each state whose it is: what pthread_self says. */
static bool is_own(uintptr_t state)
{
	uint64_t id;
	return cuf_readable_copy(&id, state + cuf_python.layout.thread_id, sizeof id) && id == (uintptr_t)__builtin_thread_pointer();
}

/*
 * The state whose frames are on this thread's stack. own_state knows the first that this thread had; running a
 * sub-interpreter it has another, current one. Before 3.12 the current one can be somebody else's, who may let it go
 * while we look, so those are looked at through the kernel, and once.
 */
static uintptr_t find_state(struct cuf_python_thread *p)
{
	uintptr_t own, current = 0, *stranger;
	/* (asked of a thread that never had one, the newer question could make the loader allocate) */
	if (cuf_python.layout.minor >= 12 && p->state && (current = (uintptr_t)cuf_python.current_state()))
		return current;
	if (!(own = (uintptr_t)cuf_python.own_state()))
		return 0;
	if (own != p->state) {
		if (!is_own(own)) {
			cuf_python_stopped(CUF_PYTHON_STOP_DAMAGED);
			return 0;
		}
		p->state = own;
		memset(p->strangers, 0, sizeof p->strangers);
	}
	current = (uintptr_t)cuf_python.current_state();
	if (current == own || !current)
		return own;
	if (cuf_python.layout.minor >= 12)
		return current;
	stranger = &p->strangers[(current >> 6 ^ current >> 12) % (sizeof p->strangers / sizeof *p->strangers)];
	if (*stranger == current)
		return own;
	if (is_own(current))
		return current;
	*stranger = current;
	return own;
}

/* ---- frames ---- */

/* A walk that met what cannot be. */
static __attribute__((noinline, cold)) void damaged(void)
{
	cuf_python_stopped(CUF_PYTHON_STOP_DAMAGED);
	if (walks < CHECKED_WALKS || __atomic_add_fetch(&damages, 1, __ATOMIC_RELAXED) > DAMAGES_MAX)
		cuf_python_off(CUF_PYTHON_DAMAGED, "its frames are not as this version keeps them");
}

bool cuf_python_is_finalizing(void)
{
	return __atomic_load_n(&cuf_python.on, __ATOMIC_ACQUIRE) && cuf_python.is_finalizing && cuf_python.is_finalizing();
}

/* Of the recording before. */
static __attribute__((noinline, cold)) void forget(struct cuf_python_thread *p)
{
	memset(p->tokens, 0, sizeof p->tokens);
	memset(p->merged_ids, 0, sizeof p->merged_ids);
	p->generation = cuf_python.generation;
}

uint64_t cuf_python_gather(unsigned slot, unsigned max)
{
	struct cuf_python_thread *p;
	uintptr_t state;
	bool checked;
	if (!__atomic_load_n(&cuf_python.on, __ATOMIC_ACQUIRE))
		return 0;
	/* while it shuts down, states of other threads are taken away under them */
	if (cuf_python_is_finalizing() || !(p = thread_of(slot)) || !(state = find_state(p)))
		return 0;
	if (__builtin_expect(p->generation != cuf_python.generation, 0))
		forget(p);
	checked = __atomic_load_n(&walks, __ATOMIC_RELAXED) < CHECKED_WALKS;
	p->gathered = state;
	if (__builtin_expect(cuf_python.frees_counted && !cuf_python_frees_are_counted(cuf_python.code_type), 0))
		cuf_python.walks = cuf_python_walks_for(&cuf_python.layout, cuf_python.frees_counted = false); /* somebody else took the place */
	p->walks = checked ? cuf_python_walks_checked() : cuf_python.walks;
	if (!p->walks->hash(&cuf_python, p, state, max))
		damaged();
	if (checked && p->count)
		__atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED);
	if (p->count && __builtin_expect(cuf_recording.header->work_end_ns != 0, 0)) /* embedded, and started once more */
		__atomic_store_n(&cuf_recording.header->work_end_ns, 0, __ATOMIC_RELAXED);
	return p->count ? p->hash | 1 : 0;
}

/* ---- merging ---- */

struct merge {
	struct cuf_python_thread *p;
	uint64_t *out;
	unsigned count, max;
	unsigned run;        /* the next one to be placed */
	unsigned after;      /* native frames from here on follow the last Python frame placed; UINT32_MAX: none was placed */
};

/* Between Python frames, what the interpreter does to get from one to the next says nothing. */
static void drop_helpers(struct merge *m)
{
	unsigned kept = m->after;
	for (unsigned i = m->after; i < m->count; i++)
		if (m->out[i] - 1 - cuf_python.object_start >= cuf_python.object_end - cuf_python.object_start)
			m->out[kept++] = m->out[i];
	m->count = kept;
}

/* A set keeps its newest first, so that one looked for again and again is found at once. */
static inline uint64_t token_of(struct cuf_python_thread *p, const struct cuf_python_frame *frame)
{
	struct cuf_python_token *set = p->tokens[frame->key * 0x9E3779B97F4A7C15ull >> 55], found;
	unsigned way = 0;
	if (__builtin_expect(set->key == frame->key && set->frame, 1))
		return set->frame;
	while (++way < CUF_PYTHON_WAYS && (set[way].key != frame->key || !set[way].frame))
		;
	found = way < CUF_PYTHON_WAYS ? set[way] : (struct cuf_python_token){ frame->key, cuf_python_name(&cuf_python, p, frame) };
	for (way = way < CUF_PYTHON_WAYS ? way : CUF_PYTHON_WAYS - 1; way; way--)
		set[way] = set[way - 1];
	*set = found;
	return found.frame;
}

static void place_run(struct merge *m)
{
	const struct cuf_python_run *run = &m->p->run[m->run];
	if (m->after != UINT32_MAX)
		drop_helpers(m);
	for (unsigned i = m->run++ ? run[-1].end : 0; i < run->end && m->count < m->max; i++) {
		uint64_t frame = token_of(m->p, &m->p->frames[i]);
		if (frame != CUF_PYTHON_HIDDEN)
			m->out[m->count++] = frame;
	}
	m->after = m->count;
}

/* Whether native frame i, which has the stack from low to high, is the call that runs the next run. */
static inline bool is_call(const struct merge *m, uint64_t ip, uintptr_t low, uintptr_t high)
{
	uintptr_t marker = m->p->run[m->run].marker;
	return marker ? marker >= low && marker < high : ip - 1 - cuf_python.eval_start < cuf_python.eval_end - cuf_python.eval_start;
}

unsigned cuf_python_merge(unsigned slot, const struct cuf_native_stack *stack, unsigned max, uint8_t *stop)
{
	struct cuf_python_thread *p = threads[slot];
	const uintptr_t *frame_sp = stack->frame_sp;
	const unsigned depth = stack->depth;
	struct merge m = { .p = p, .out = p->merged_frames, .max = max, .after = UINT32_MAX };
	unsigned i;
	p->walks->note(&cuf_python, p, p->gathered, max);
	for (i = 0; i < depth && m.count < max; i++) {
		uintptr_t high = i + 1 < depth && frame_sp[i + 1] > frame_sp[i] ? frame_sp[i + 1] : UINTPTR_MAX;
		if (m.run < p->runs && is_call(&m, stack->frames[i], frame_sp[i], high))
			place_run(&m);
		else
			m.out[m.count++] = stack->frames[i];
	}
	while (m.run < p->runs && m.count < max) /* the native walk did not get there */
		place_run(&m);
	if (m.run < p->runs || p->more)
		cuf_python_stopped(CUF_PYTHON_STOP_DEPTH);
	if (i < depth || m.run < p->runs || p->more)
		*stop = CUF_STOP_DEPTH;
	memcpy(stack->frames, m.out, m.count * sizeof *m.out);
	return m.count;
}

struct cuf_python_merged *cuf_python_merged(unsigned slot, uint64_t key)
{
	return &threads[slot]->merged_ids[(key ^ key >> 32) % CUF_PYTHON_MERGED];
}
