/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An extension module of CPython with allocators that a program may put over the interpreter's own,
 * by the documented PyMem_SetAllocator: two that serve small blocks from slabs of their own and
 * pass the rest on, and four that pass everything on and only count. Each saves what it found.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum {
	ALLOCATORS = 6, /* the first SLABS of them serve blocks themselves */
	SLABS = 2,
	DOMAINS = 3,
	SMALL_BYTES = 500,
	HEAD_BYTES = 16,
	CLASSES = SMALL_BYTES / 16 + 2,
	SLAB_BYTES = 1 << 20, /* as CPython's arenas */
	SLABS_MAX = 4096
};

struct allocator {
	PyMemAllocatorEx found[DOMAINS];
	unsigned long calls;
	bool serves;
} allocators[ALLOCATORS];

/* what a context points at: the allocator, in one domain */
static struct seat {
	struct allocator *allocator;
	int domain;
} seats[ALLOCATORS][DOMAINS];

/* ---- slabs ---- */

static char *slabs[SLABS_MAX], *at, *end;
static unsigned slab_count;
static void *freed[CLASSES];

static bool is_slab(const void *p)
{
	for (unsigned i = slab_count; i--;)
		if ((uintptr_t)p - (uintptr_t)slabs[i] < SLAB_BYTES)
			return true;
	return false;
}

static void *take(size_t bytes)
{
	size_t kind = (bytes + 15) / 16 + !bytes, room = kind * 16 + HEAD_BYTES;
	void **p = freed[kind];

	if (p) {
		freed[kind] = *p;
		return p;
	}
	if ((size_t)(end - at) < room) {
		if (slab_count == SLABS_MAX)
			return NULL;
		at = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
		end = at + SLAB_BYTES;
		slabs[slab_count++] = at;
	}
	*(size_t *)at = kind;
	at += room;
	return at - room + HEAD_BYTES;
}

static size_t kind_of(void *p) { return *(size_t *)((char *)p - HEAD_BYTES); }

/* ---- the functions of all allocators ---- */

static PyMemAllocatorEx *below(struct seat *seat)
{
	seat->allocator->calls++;
	return &seat->allocator->found[seat->domain];
}

static bool serves(const struct seat *seat, size_t bytes)
{
	return seat->allocator->serves && bytes <= SMALL_BYTES;
}

static void *allocate(void *context, size_t bytes)
{
	PyMemAllocatorEx *next = below(context);

	return serves(context, bytes) ? take(bytes) : next->malloc(next->ctx, bytes);
}

static void *zeroed(void *context, size_t count, size_t bytes)
{
	PyMemAllocatorEx *next = below(context);
	void *p;

	if (serves(context, count * bytes))
		return (p = take(count * bytes)) ? memset(p, 0, count * bytes) : NULL;
	return next->calloc(next->ctx, count, bytes);
}

static void release(void *context, void *p)
{
	PyMemAllocatorEx *next = below(context);

	if (!p || !is_slab(p)) {
		next->free(next->ctx, p);
		return;
	}
	*(void **)p = freed[kind_of(p)];
	freed[kind_of(p)] = p;
}

static void *resize(void *context, void *p, size_t bytes)
{
	struct seat *seat = context;
	PyMemAllocatorEx *next = below(seat);
	void *moved;
	size_t had;

	if (!p)
		return allocate(context, bytes);
	if (!is_slab(p))
		return next->realloc(next->ctx, p, bytes);
	had = kind_of(p) * 16;
	if (bytes <= had)
		return p;
	moved = allocate(context, bytes);
	if (moved) {
		memcpy(moved, p, had);
		release(context, p);
	}
	return moved;
}

/* ---- the module ---- */

/* put(N, DOMAIN): the allocator saves what it finds there, and lies on it. */
static PyObject *put(PyObject *self, PyObject *words)
{
	int n, domain;

	if (!PyArg_ParseTuple(words, "ii", &n, &domain))
		return NULL;
	seats[n][domain] = (struct seat){ &allocators[n], domain };
	allocators[n].serves = n < SLABS;
	PyMem_GetAllocator((PyMemAllocatorDomain)domain, &allocators[n].found[domain]);
	PyMem_SetAllocator((PyMemAllocatorDomain)domain,
			   &(PyMemAllocatorEx){ &seats[n][domain], allocate, zeroed, resize,
						release });
	Py_RETURN_NONE;
}

/* restore(N, DOMAIN): what the allocator found is put back, whatever lies over it by now. */
static PyObject *restore(PyObject *self, PyObject *words)
{
	int n, domain;

	if (!PyArg_ParseTuple(words, "ii", &n, &domain))
		return NULL;
	PyMem_SetAllocator((PyMemAllocatorDomain)domain, &allocators[n].found[domain]);
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{ "put", put, METH_VARARGS, "" }, { "restore", restore, METH_VARARGS, "" }, { 0 }
};
static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "layers", "", -1, methods };

PyMODINIT_FUNC PyInit_layers(void)
{
	return PyModule_Create(&module);
}
