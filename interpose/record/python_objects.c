/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython's object and mem domains, wrapped by the documented PyMem_SetAllocator. The wrappers
 * delegate to what they found, so they can be put in while blocks are live; a block that is older
 * than they are is unknown when it is freed.
 *
 * They are put in where the calling thread holds the GIL: when the interpreter maps an arena, or in
 * malloc. In a free-threaded build other threads may call an allocator whose fields are being
 * exchanged. So ours keeps the context of the one that it replaces, and any mixture of the two
 * works.
 *
 * The wrappers stay for the rest of the process, because others may have saved them. For the same
 * reason a wrapper never changes what it calls. If it did, an allocator that saved it and is found
 * on top of it later would call it, and be called by it, without end. So there are several layers:
 * each has its own functions and always lies on the same allocator. Whoever calls a layer gets what
 * that allocator gives, as without us, in whatever order they come.
 */
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/platform/options.h"
#include "interpose/python/python.h"
#include "interpose/record/python_objects.h"
#include "interpose/record/recorder.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum python_objects { OBJECTS_OFF, OBJECTS_AUTO, OBJECTS_START }; /* as in options.def */

enum {
	WRAP_AT_ARENA_BYTES = 8 << 20,
	/* arenas that fill without one sample, though that many were due */
	UNSEEN_MEANS = 64,
	/* of a domain: allocators that we lie on, one after another */
	LAYERS = 4
};

#define FRAME __builtin_frame_address(0)

struct layer {
	struct cuf_python_allocator real; /* written once, before the wrappers are put in */
	/* one layer of a domain records: another one below it would record blocks again */
	bool is_recording;
};

static struct layer layers[CUF_PYTHON_DOMAINS][LAYERS];
static unsigned layers_used[CUF_PYTHON_DOMAINS];
static uintptr_t wrapped_interpreter; /* 0: none */
static int64_t arena_bytes;
static uint32_t is_wrapping;
static uint64_t samples;              /* that the wrappers made */
static uint64_t samples_before, unseen_bytes;

/* A child has its parent's wrappers and arenas, and its recording begins anew. */
static void begin_in_child(void)
{
	is_wrapping = 0;
	arena_bytes = 0;
	samples_before = samples = unseen_bytes = 0;
}
CUF_AT_FORK_CHILD(begin_in_child);

/* ---- the wrappers ---- */

/*
 * The sampler has no memory, so a layer that does not record may use up an interval: the next one
 * is as likely to end in any block.
 */
static void begin_outer(const struct layer *layer, struct cuf_host_outer *outer, size_t bytes)
{
	cuf_host_outer_begin(outer, bytes);
	if (__atomic_load_n(&layer->is_recording, __ATOMIC_RELAXED))
		__atomic_fetch_add(&samples, 1, __ATOMIC_RELAXED);
	else
		outer->is_chosen = false;
}

static __attribute__((noinline)) void *allocate_recorded(void *context, size_t bytes,
							 const struct layer *layer)
{
	struct cuf_host_outer outer;
	void *p;

	begin_outer(layer, &outer, bytes);
	p = layer->real.allocate(context, bytes);
	cuf_host_outer_end(&outer, p, CUF_HOST_ALLOC, FRAME);
	return p;
}

static __attribute__((noinline)) void *zeroed_recorded(void *context, size_t count, size_t bytes,
						       const struct layer *layer)
{
	struct cuf_host_outer outer;
	void *p;

	/* the interpreter refuses a product that overflows before it calls us */
	begin_outer(layer, &outer, count * bytes);
	p = layer->real.zeroed(context, count, bytes);
	cuf_host_outer_end(&outer, p, CUF_HOST_ZEROED, FRAME);
	return p;
}

/* skips: what cuf_host_skips_alloc returned. A refused resize leaves the old block as it was. */
static __attribute__((noinline)) void *resize_recorded(void *context, void *p, size_t bytes,
						       const struct layer *layer, bool skips)
{
	struct cuf_host_undo undo = { 0, 0 };
	struct cuf_host_outer outer = { .is_counted = false };
	void *moved;

	if (!cuf_host_skips_free(p))
		cuf_host_python_free(p, CUF_HOST_FREE_RESIZE, &undo);
	if (!skips)
		begin_outer(layer, &outer, bytes);
	moved = layer->real.resize(context, p, bytes);
	if (!skips)
		cuf_host_outer_end(&outer, moved, p ? CUF_HOST_RESIZED : CUF_HOST_ALLOC, FRAME);
	if (!moved)
		cuf_host_restore(&undo);
	return moved;
}

static __attribute__((noinline)) void release_recorded(void *context, void *p,
						       const struct layer *layer)
{
	struct cuf_host_undo undo;

	cuf_host_python_free(p, CUF_HOST_FREE, &undo);
	layer->real.release(context, p);
}

/*
 * Nearly all calls take the first branch, which is a jump. The layer comes last, so that the
 * other arguments lie where they came, whatever the compiler.
 */
#define WRAPPERS(name, layer) \
	static void *name##_allocate(void *context, size_t bytes) \
	{ \
		return cuf_host_skips_alloc(bytes) ? (layer)->real.allocate(context, bytes) \
						   : allocate_recorded(context, bytes, layer); \
	} \
	static void *name##_zeroed(void *context, size_t count, size_t bytes) \
	{ \
		return cuf_host_skips_alloc(count * bytes) \
			       ? (layer)->real.zeroed(context, count, bytes) \
			       : zeroed_recorded(context, count, bytes, layer); \
	} \
	static void *name##_resize(void *context, void *p, size_t bytes) \
	{ \
		bool skips = cuf_host_skips_alloc(bytes); \
		return __builtin_expect(skips, 1) && cuf_host_skips_free(p) \
			       ? (layer)->real.resize(context, p, bytes) \
			       : resize_recorded(context, p, bytes, layer, skips); \
	} \
	static void name##_release(void *context, void *p) \
	{ \
		if (cuf_host_skips_free(p)) \
			(layer)->real.release(context, p); \
		else \
			release_recorded(context, p, layer); \
	}

#define LAYER(n) \
	WRAPPERS(memory_##n, &layers[CUF_PYTHON_MEM][n]) \
	WRAPPERS(object_##n, &layers[CUF_PYTHON_OBJECTS][n])

LAYER(0)
LAYER(1)
LAYER(2)
LAYER(3)

#define FUNCTIONS(name) \
	{ .allocate = name##_allocate, .zeroed = name##_zeroed, .resize = name##_resize, \
	  .release = name##_release }

static const struct cuf_python_allocator wrappers[CUF_PYTHON_DOMAINS][LAYERS] = {
	[CUF_PYTHON_MEM] = { FUNCTIONS(memory_0), FUNCTIONS(memory_1), FUNCTIONS(memory_2),
			     FUNCTIONS(memory_3) },
	[CUF_PYTHON_OBJECTS] = { FUNCTIONS(object_0), FUNCTIONS(object_1), FUNCTIONS(object_2),
				 FUNCTIONS(object_3) },
};

/* ---- putting them in ---- */

static bool is_same(const struct cuf_python_allocator *a, const struct cuf_python_allocator *b)
{
	return a->context == b->context && a->allocate == b->allocate && a->zeroed == b->zeroed &&
	       a->resize == b->resize && a->release == b->release;
}

/*
 * The layer that is this allocator, or lies on it, else the first that was never used. LAYERS:
 * there is none left.
 */
static unsigned layer_for(enum cuf_python_domain domain, const struct cuf_python_allocator *found)
{
	unsigned i;

	for (i = 0; i < layers_used[domain]; i++)
		if (found->allocate == wrappers[domain][i].allocate ||
		    is_same(found, &layers[domain][i].real))
			break;
	return i;
}

static void wrap_domain(const struct cuf_python_domains *python, enum cuf_python_domain domain)
{
	struct cuf_python_allocator wrapper, found = { .context = NULL };
	unsigned chosen;

	python->get(domain, &found);
	if (!found.allocate || (chosen = layer_for(domain, &found)) == LAYERS)
		return;
	if (chosen == layers_used[domain]) {
		layers[domain][chosen].real = found;
		layers_used[domain]++;
	}
	for (unsigned i = 0; i < LAYERS; i++)
		__atomic_store_n(&layers[domain][i].is_recording, i == chosen, __ATOMIC_RELAXED);
	wrapper = wrappers[domain][chosen];
	if (found.allocate == wrapper.allocate)
		return;
	wrapper.context = found.context;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	python->set(domain, &wrapper);
}

static void wrap(void)
{
	struct cuf_python_domains python;

	if (__atomic_exchange_n(&is_wrapping, 1, __ATOMIC_ACQUIRE))
		return;
	if (cuf_python_domains_here(&python)) {
		wrap_domain(&python, CUF_PYTHON_MEM);
		wrap_domain(&python, CUF_PYTHON_OBJECTS);
		wrapped_interpreter = python.interpreter;
		samples_before = samples;
		unseen_bytes = 0;
	}
	__atomic_store_n(&is_wrapping, 0, __ATOMIC_RELEASE);
}

/*
 * In full mode each object would be an event, which makes Python several times slower and fills the
 * tables of stacks. So it must be asked for.
 */
static bool is_due(void)
{
	return cuf_options.python_objects == OBJECTS_START ||
	       (cuf_options.host != CUF_HOST_FULL &&
		__atomic_load_n(&arena_bytes, __ATOMIC_RELAXED) >= WRAP_AT_ARENA_BYTES);
}

static bool is_wanted(void)
{
	return cuf_options.python_objects != OBJECTS_OFF && cuf_options.host != CUF_HOST_OFF &&
	       cuf_recorder_status().is_on;
}

bool cuf_python_makes_arena(const void *code, uint64_t bytes)
{
	struct cuf_python_domains python;

	if (cuf_options.python_objects == OBJECTS_OFF)
		return false;
	return cuf_python_holds(code) || (bytes == cuf_python_arena_size_bytes() &&
					  cuf_python_domains_here(&python));
}

/*
 * Who ends its own wrapping (tracemalloc.stop) puts back what it found at its start, which may be
 * older than ours. Then arenas fill and no sample is made.
 */
static bool was_taken_out(int64_t bytes)
{
	uint64_t now = __atomic_load_n(&samples, __ATOMIC_RELAXED);

	if (now != samples_before) {
		samples_before = now;
		unseen_bytes = 0;
		return false;
	}
	unseen_bytes += (uint64_t)bytes;
	return unseen_bytes > UNSEEN_MEANS * cuf_options.sample;
}

static void note_state(void)
{
	struct cuf_header *header = cuf_recording.header;

	if (!header)
		return;
	header->python_arena_bytes = arena_bytes > 0 ? (uint64_t)arena_bytes : 0;
	if (wrapped_interpreter && !header->python_objects_ns)
		__atomic_store_n(&header->python_objects_ns, cuf_now_ns(), __ATOMIC_RELEASE);
}

void cuf_python_arena(int64_t bytes)
{
	__atomic_add_fetch(&arena_bytes, bytes, __ATOMIC_RELAXED);
	if (bytes > 0 && is_wanted()) {
		if (wrapped_interpreter && was_taken_out(bytes)) {
			cuf_host_python_forget();
			wrapped_interpreter = 0;
		}
		if (!wrapped_interpreter && is_due())
			wrap();
		cuf_host_has_grown((uint64_t)bytes);
	}
	note_state();
}

void cuf_python_objects_poll(void)
{
	if (wrapped_interpreter || !is_due() || !is_wanted())
		return;
	wrap();
	note_state();
}
