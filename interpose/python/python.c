/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the interpreter and this thread's state in it, and merges its frames into native stacks.
 * Owns whether Python frames are read at all. Must never call into the interpreter except for the
 * three questions of struct cuf_python, each of which is one or two loads there.
 */
#include "interpose/python/python.h"

#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include "interpose/code/modules.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/objects/elf_symbol.h"
#include "interpose/platform/options.h"
#include "interpose/platform/readable.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/python/python_parts.h"
#include "interpose/store/meta.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum {
	SLOTS_MAX = 8192,
	/* walks that are checked load by load */
	CHECKED_WALKS = 64,
	/* how many later ones may go wrong before none is trusted */
	DAMAGES_MAX = 256
};

struct cuf_python cuf_python;
/* by slot */
static struct cuf_python_thread *threads[SLOTS_MAX];
/* of this process; written into each recording */
static enum cuf_python_state process_state;
static char note[160];
static uint32_t looking, walks, damages, unloads;
/* it was loaded after the start, so it can be unloaded */
static bool may_be_unloaded;

/* ---- what the recording states about it ---- */

static void publish(void)
{
	if (!cuf_recording.header)
		return;
	cuf_recording.header->python_state = process_state;
	if (*note)
		cuf_meta_text(CUF_META_NOTE, CUF_NOTE_PYTHON, note, strlen(note));
}

/* No Python frames from now on, and why. */
static void turn_off(enum cuf_python_state state, const char *why)
{
	CUF_TEXT(text, sizeof note);

	__atomic_store_n(&cuf_python.on, 0, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&process_state, state, __ATOMIC_RELAXED) == state)
		return;
	cuf_text_add(&text, why);
	memcpy(note, text.at, text.used + 1);
	publish();
}

/* ---- finding it ---- */

/* "3.11.4 (main, ...)" as PY_VERSION_HEX, without its lower half. */
static uint32_t parse_version(const char *text)
{
	uint32_t part[2] = { 0, 0 };

	for (unsigned i = 0; i < 2; i++, text += *text == '.')
		for (; *text >= '0' && *text <= '9' && part[i] < 100; text++)
			part[i] = part[i] * 10 + (uint32_t)(*text - '0');
	return part[0] << 24 | part[1] << 16;
}

/* Py_Version exists from 3.11 on. Py_GetVersion composes its text of constants. */
static uint32_t version_of(uintptr_t bias, const ElfW(Dyn) *dynamic)
{
	const unsigned long *number = cuf_elf_symbol(bias, dynamic, "Py_Version");
	const char *(*text)(void);

	if (number)
		return (uint32_t)*number;
	text = (const char *(*)(void))cuf_elf_symbol(bias, dynamic, "Py_GetVersion");
	return parse_version(text ? text() : "");
}

static void turn_off_for_version(uint32_t version)
{
	CUF_TEXT(text, sizeof note);

	cuf_text_add(&text, "Python ");
	cuf_text_number(&text, version >> 24);
	cuf_text_add(&text, ".");
	cuf_text_number(&text, version >> 16 & 0xff);
	cuf_text_add(&text, ": frame layout not supported");
	turn_off(CUF_PYTHON_UNKNOWN, text.at);
}

/* The first of two names that the object defines. */
static void *find_either(uintptr_t bias, const ElfW(Dyn) *dynamic, const char *first,
			 const char *second)
{
	void *found = cuf_elf_symbol(bias, dynamic, first);

	return found ? found : cuf_elf_symbol(bias, dynamic, second);
}

/* Reads the symbols into *python. false: some are missing. */
static bool read_symbols(uintptr_t bias, const ElfW(Dyn) *dynamic, struct cuf_python *python)
{
	struct cuf_object object;
	size_t eval_bytes = 0;
	void *own = cuf_elf_symbol(bias, dynamic, "PyGILState_GetThisThreadState");
	void *current = find_either(bias, dynamic, "PyThreadState_GetUnchecked",
				    "_PyThreadState_UncheckedGet");
	void *finalizing = find_either(bias, dynamic, "Py_IsFinalizing", "_Py_IsFinalizing");
	void *eval = cuf_elf_symbol_bytes(bias, dynamic, "_PyEval_EvalFrameDefault", &eval_bytes);

	python->own_state = (void *(*)(void))own;
	python->current_state = (void *(*)(void))current;
	python->is_finalizing = (int (*)(void))finalizing;
	python->get_allocator = cuf_elf_symbol(bias, dynamic, "PyMem_GetAllocator");
	python->set_allocator = cuf_elf_symbol(bias, dynamic, "PyMem_SetAllocator");
	python->code_type = (uintptr_t)cuf_elf_symbol(bias, dynamic, "PyCode_Type");
	python->text_type = (uintptr_t)cuf_elf_symbol(bias, dynamic, "PyUnicode_Type");
	python->bytes_type = (uintptr_t)cuf_elf_symbol(bias, dynamic, "PyBytes_Type");
	python->eval_start = (uintptr_t)eval;
	python->eval_end = python->eval_start + eval_bytes;
	if (!cuf_object_find(python->code_type, &object))
		return false;
	python->object_start = object.start;
	python->object_end = object.end;
	return own && current && eval && python->code_type && python->text_type &&
	       python->bytes_type;
}

/* Reads the interpreter into cuf_python. false: an unknown version, or a part of it is missing. */
static bool read_interpreter(uintptr_t bias, const ElfW(Dyn) *dynamic, uint32_t version)
{
	uint64_t runtime[CUF_PYTHON_OFFSETS_BYTES / 8] = { 0 };
	struct cuf_python found = { .generation = cuf_python.generation };
	uintptr_t at = (uintptr_t)cuf_elf_symbol(bias, dynamic, "_PyRuntime");

	if (!at || !cuf_readable_copy(runtime, at, sizeof runtime) ||
	    !cuf_python_layout_of(version, runtime, &found.layout) ||
	    !read_symbols(bias, dynamic, &found))
		return false;
	/* sampled mode reads few stacks, and leaves the interpreter unchanged */
	found.frees_counted = cuf_options.host == CUF_HOST_FULL && !found.layout.code_version &&
			      found.layout.minor < 12 && cuf_python_count_frees(found.code_type);
	found.walks = cuf_python_walks_for(&found.layout, found.frees_counted);
	cuf_python = found;
	return true;
}

static void turn_on(bool loaded_later)
{
	may_be_unloaded = loaded_later;
	process_state = CUF_PYTHON_ON;
	publish();
	__atomic_store_n(&cuf_python.on, 1, __ATOMIC_RELEASE);
}

/*
 * Reads the object when it is an interpreter. One thread at a time; another one's object is found
 * by its next stack.
 */
static void examine_object(uintptr_t bias, const ElfW(Dyn) *dynamic, bool loaded_later)
{
	static const char second[] = "a second interpreter was loaded; only the first one is read";
	uintptr_t code_type = (uintptr_t)cuf_elf_symbol(bias, dynamic, "PyCode_Type");
	uint32_t version;

	if (!code_type || cuf_python.code_type == code_type ||
	    __atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE))
		return;
	version = version_of(bias, dynamic);
	if (cuf_python.code_type) {
		memcpy(note, second, sizeof second);
		publish();
	} else if (!cuf_options.python) {
		turn_off(CUF_PYTHON_OPTION, "option python=0");
	} else if (!read_interpreter(bias, dynamic, version)) {
		turn_off_for_version(version);
	} else {
		turn_on(loaded_later);
	}
	__atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
}

void cuf_python_object_seen(uintptr_t bias, const ElfW(Dyn) *dynamic)
{
	examine_object(bias, dynamic, true);
}

/* An interpreter that is opened later is found by the first stack in it. */
void cuf_python_start(void)
{
	static bool started;

	publish();
	if (started)
		return;
	started = true;
	for (const struct link_map *map = cuf_elf_first_at_start(); map;
	     map = cuf_elf_next_at_start(map))
		if (map->l_ld)
			examine_object(map->l_addr, map->l_ld, false);
}

/* Names that threads remember are not in the child's recording. */
static void forget_names(void)
{
	looking = 0;
	cuf_python.generation++;
}
CUF_AT_FORK_CHILD(forget_names);

/* ---- unloading ---- */

bool cuf_python_unload_begin(void)
{
	if (!may_be_unloaded)
		return false;
	__atomic_fetch_add(&unloads, 1, __ATOMIC_ACQ_REL);
	__atomic_store_n(&cuf_python.on, 0, __ATOMIC_SEQ_CST);
	return true;
}

static bool is_still_loaded(void)
{
	struct cuf_object object;

	return cuf_object_find_going(cuf_python.code_type, &object) &&
	       object.start == cuf_python.object_start && object.end == cuf_python.object_end;
}

void cuf_python_unload_end(void)
{
	if (!may_be_unloaded || __atomic_sub_fetch(&unloads, 1, __ATOMIC_ACQ_REL))
		return;
	if (!is_still_loaded()) {
		may_be_unloaded = false;
		cuf_python.code_type = 0; /* the next interpreter may be read */
		note[0] = 0;
	} else if (process_state == CUF_PYTHON_ON) {
		__atomic_store_n(&cuf_python.on, 1, __ATOMIC_RELEASE);
	}
}

bool cuf_python_is_finalizing(void)
{
	return __atomic_load_n(&cuf_python.on, __ATOMIC_ACQUIRE) && cuf_python.is_finalizing &&
	       cuf_python.is_finalizing();
}

/* ---- this thread's state ---- */

/* NULL: no memory. The slot belongs to this thread, so nothing here needs to be atomic. */
static struct cuf_python_thread *thread_of(unsigned slot)
{
	long at;

	if (slot >= SLOTS_MAX)
		return NULL;
	if (!threads[slot]) {
		at = cuf_sys_mmap(NULL, sizeof **threads, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (!cuf_sys_failed(at))
			threads[slot] = (struct cuf_python_thread *)at;
	}
	return threads[slot];
}

/*
 * The interpreter stores pthread_self() of the thread in each state. That is the thread pointer on
 * x86-64 only: on aarch64 it lies below, by the size of the control block. The call reads one
 * register, and the program's thread runs Python, so the C library is ready.
 */
static bool is_own(uintptr_t state)
{
	uint64_t id;

	return cuf_readable_copy(&id, state + cuf_python.layout.thread_id, sizeof id) &&
	       id == (uint64_t)pthread_self();
}

/*
 * The state whose frames are on this thread's stack. own_state returns the first that this thread
 * had. While it runs a sub-interpreter it has another, the current one. Before 3.12 the current
 * one can be another thread's, which may release it while we look. So an unknown one is read
 * through the kernel, and once.
 */
static uintptr_t find_state(struct cuf_python_thread *thread)
{
	uintptr_t own, current = 0, *stranger;

	/* on a thread that never had a state, the newer question could make the loader allocate */
	if (cuf_python.layout.minor >= 12 && thread->state) {
		current = (uintptr_t)cuf_python.current_state();
		if (current)
			return current;
	}
	own = (uintptr_t)cuf_python.own_state();
	if (!own)
		return 0;
	if (own != thread->state) {
		if (!is_own(own)) {
			cuf_python_stopped(CUF_PYTHON_STOP_DAMAGED);
			return 0;
		}
		thread->state = own;
		memset(thread->strangers, 0, sizeof thread->strangers);
	}
	current = (uintptr_t)cuf_python.current_state();
	if (current == own || !current)
		return own;
	if (cuf_python.layout.minor >= 12)
		return current;
	stranger = &thread->strangers[(current >> 6 ^ current >> 12) %
				      (sizeof thread->strangers / sizeof *thread->strangers)];
	if (*stranger == current)
		return own;
	if (is_own(current))
		return current;
	*stranger = current;
	return own;
}

/* ---- its allocators ---- */

bool cuf_python_holds(const void *code)
{
	return __atomic_load_n(&cuf_python.on, __ATOMIC_ACQUIRE) &&
	       (uintptr_t)code - cuf_python.object_start <
		       cuf_python.object_end - cuf_python.object_start;
}

uint64_t cuf_python_arena_size_bytes(void)
{
	return cuf_python.layout.minor < 10 ? 256 << 10 : 1 << 20;
}

/* The current state is that of the GIL's holder up to 3.11, and the thread's own from then on. */
bool cuf_python_domains_here(struct cuf_python_domains *domains)
{
	uintptr_t current;

	if (!__atomic_load_n(&cuf_python.on, __ATOMIC_ACQUIRE) || cuf_python_is_finalizing() ||
	    !cuf_python.get_allocator || !cuf_python.set_allocator || !cuf_python.own_state())
		return false;
	current = (uintptr_t)cuf_python.current_state();
	if (!current || !is_own(current))
		return false;
	*domains = (struct cuf_python_domains){ cuf_python.object_start, cuf_python.get_allocator,
						cuf_python.set_allocator };
	return true;
}

/* ---- gathering ---- */

/* A walk met something impossible. */
static __attribute__((noinline, cold)) void count_damage(void)
{
	cuf_python_stopped(CUF_PYTHON_STOP_DAMAGED);
	if (walks < CHECKED_WALKS ||
	    __atomic_add_fetch(&damages, 1, __ATOMIC_RELAXED) > DAMAGES_MAX)
		turn_off(CUF_PYTHON_DAMAGED, "frames do not match this version's layout");
}

/* Drops the names and ids of the recording before. */
static __attribute__((noinline, cold)) void reset_thread(struct cuf_python_thread *thread)
{
	memset(thread->tokens, 0, sizeof thread->tokens);
	memset(thread->merged_ids, 0, sizeof thread->merged_ids);
	thread->generation = cuf_python.generation;
}

/* The way to walk now. Someone else may have replaced the destructor that counts freed code. */
static inline const struct cuf_python_walks *choose_walks(bool checked)
{
	if (__builtin_expect(cuf_python.frees_counted &&
			     !cuf_python_frees_are_counted(cuf_python.code_type), 0)) {
		cuf_python.frees_counted = false;
		cuf_python.walks = cuf_python_walks_for(&cuf_python.layout, false);
	}
	return checked ? cuf_python_walks_checked() : cuf_python.walks;
}

uint64_t cuf_python_gather(unsigned slot, unsigned max)
{
	struct cuf_python_thread *thread;
	uintptr_t state;
	bool checked;

	if (!__atomic_load_n(&cuf_python.on, __ATOMIC_ACQUIRE))
		return 0;
	/* while it shuts down, it takes away other threads' states */
	if (cuf_python_is_finalizing() || !(thread = thread_of(slot)) ||
	    !(state = find_state(thread)))
		return 0;
	if (__builtin_expect(thread->generation != cuf_python.generation, 0))
		reset_thread(thread);
	checked = __atomic_load_n(&walks, __ATOMIC_RELAXED) < CHECKED_WALKS;
	thread->gathered = state;
	thread->walks = choose_walks(checked);
	if (!thread->walks->hash(&cuf_python, thread, state, max))
		count_damage();
	if (!thread->count)
		return 0;
	if (checked)
		__atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED);
	/* an embedded interpreter was started once more */
	if (__builtin_expect(cuf_recording.header->work_end_ns != 0, 0))
		__atomic_store_n(&cuf_recording.header->work_end_ns, 0, __ATOMIC_RELAXED);
	return thread->hash | 1;
}

/* ---- merging ---- */

struct merge {
	struct cuf_python_thread *thread;
	uint64_t *out;
	unsigned count, max;
	/* the next run to be placed */
	unsigned run;
	/* native frames from here on follow the last Python frame; UINT32_MAX: none was placed */
	unsigned after;
};

/* Between Python frames, the interpreter's native frames carry no information. */
static void drop_interpreter_frames(struct merge *merge)
{
	const uintptr_t object_bytes = cuf_python.object_end - cuf_python.object_start;
	unsigned kept = merge->after;

	for (unsigned i = merge->after; i < merge->count; i++)
		if (merge->out[i] - 1 - cuf_python.object_start >= object_bytes)
			merge->out[kept++] = merge->out[i];
	merge->count = kept;
}

/*
 * Looks a frame's token up, or names the frame. The newest of a set is first, so a repeated
 * look-up costs one compare.
 */
static inline uint64_t token_of(struct cuf_python_thread *thread,
				const struct cuf_python_frame *frame)
{
	struct cuf_python_token *set, found;
	unsigned way = 0;

	set = thread->tokens[frame->key * 0x9E3779B97F4A7C15ull >> 55];
	if (__builtin_expect(set->key == frame->key && set->frame, 1))
		return set->frame;
	while (++way < CUF_PYTHON_WAYS && (set[way].key != frame->key || !set[way].frame))
		;
	if (way < CUF_PYTHON_WAYS) {
		found = set[way];
	} else {
		found.key = frame->key;
		found.frame = cuf_python_name(&cuf_python, thread, frame);
		way = CUF_PYTHON_WAYS - 1;
	}
	for (; way; way--)
		set[way] = set[way - 1];
	*set = found;
	return found.frame;
}

static void place_run(struct merge *merge)
{
	const struct cuf_python_run *run = &merge->thread->run[merge->run];
	unsigned i = merge->run ? run[-1].end : 0;

	merge->run++;
	if (merge->after != UINT32_MAX)
		drop_interpreter_frames(merge);
	for (; i < run->end && merge->count < merge->max; i++) {
		uint64_t frame = token_of(merge->thread, &merge->thread->frames[i]);

		if (frame != CUF_PYTHON_HIDDEN)
			merge->out[merge->count++] = frame;
	}
	merge->after = merge->count;
}

/*
 * Whether the native frame at ip, on the stack from low to high, is the call that runs the next
 * run.
 */
static inline bool is_call(const struct merge *merge, uint64_t ip, uintptr_t low, uintptr_t high)
{
	uintptr_t marker = merge->thread->run[merge->run].marker;

	if (marker)
		return marker >= low && marker < high;
	return ip - 1 - cuf_python.eval_start < cuf_python.eval_end - cuf_python.eval_start;
}

unsigned cuf_python_merge(unsigned slot, const struct cuf_native_stack *stack, unsigned max,
			  uint8_t *stop)
{
	struct cuf_python_thread *thread = threads[slot];
	const uintptr_t *frame_sp = stack->frame_sp;
	const unsigned depth = stack->depth;
	struct merge merge = {
		.thread = thread, .out = thread->merged_frames, .max = max, .after = UINT32_MAX
	};
	unsigned i;

	thread->walks->note(&cuf_python, thread, thread->gathered, max);
	for (i = 0; i < depth && merge.count < max; i++) {
		uint64_t frame = stack->frames[i];
		uintptr_t high = UINTPTR_MAX;

		if (i + 1 < depth && frame_sp[i + 1] > frame_sp[i])
			high = frame_sp[i + 1];
		if (merge.run < thread->runs && is_call(&merge, frame, frame_sp[i], high))
			place_run(&merge);
		else
			merge.out[merge.count++] = frame;
	}
	/* the native walk did not reach these */
	while (merge.run < thread->runs && merge.count < max)
		place_run(&merge);
	if (merge.run < thread->runs || thread->more)
		cuf_python_stopped(CUF_PYTHON_STOP_DEPTH);
	if (i < depth || merge.run < thread->runs || thread->more)
		*stop = CUF_STOP_DEPTH;
	memcpy(stack->frames, merge.out, merge.count * sizeof *merge.out);
	return merge.count;
}

struct cuf_python_merged *cuf_python_merged(unsigned slot, uint64_t key)
{
	return &threads[slot]->merged_ids[(key ^ key >> 32) % CUF_PYTHON_MERGED];
}
