/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of private allocators, and the agreement with dlclose about it. */
#include "interpose/hooks/malloc/allocator_private.h"

#include <time.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/platform/guarded_copy.h"
#include "interpose/platform/sys.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/loader/real.h"

static struct cuf_private_allocator table[CUF_PRIVATE_MAX];
static uint32_t seen_count;
static uint32_t reader;  /* the thread that reads; 0: none */
static uint32_t unloads; /* calls of dlclose that go on */

/* Records are the child's own. */
static void forget_readers(void)
{
	reader = unloads = 0;
	for (unsigned i = 0; i < CUF_PRIVATE_MAX; i++) {
		table[i].is_named = false;
		table[i].records[0] = table[i].records[1] = NULL;
	}
}
CUF_AT_FORK_CHILD(forget_readers);

static uint32_t this_thread(void) { return (uint32_t)cuf_sys(SYS_gettid, 0, 0, 0, 0, 0, 0); }

static bool is_known(const ElfW(Dyn) *dynamic)
{
	for (unsigned i = 0; i < CUF_PRIVATE_MAX; i++)
		if (table[i].allocator.dynamic == dynamic &&
		    __atomic_load_n(&table[i].family, __ATOMIC_ACQUIRE))
			return true;
	return false;
}

/* A place is given once: a reader may still look at what was there. */
void cuf_allocator_private_see(uintptr_t bias, const ElfW(Dyn) *dynamic)
{
	struct cuf_allocator allocator = { .prefix = "", .bias = bias, .dynamic = dynamic };
	const struct cuf_allocator_family *family;
	struct cuf_dso object;
	uint32_t at;
	if (!cuf_real_allocator() || dynamic == cuf_real_allocator()->l_ld ||
	    cuf_dso_is_self(dynamic) || is_known(dynamic))
		return;
	family = cuf_allocator_family(&allocator, true);
	if (!family || !cuf_dso_at(dynamic, &object))
		return;
	at = __atomic_fetch_add(&seen_count, 1, __ATOMIC_RELAXED);
	if (at >= CUF_PRIVATE_MAX)
		return;
	table[at].allocator = allocator;
	table[at].start = object.start;
	table[at].end = object.end;
	table[at].object = object.map->l_name;
	__atomic_store_n(&table[at].family, family, __ATOMIC_RELEASE);
}

struct cuf_private_allocator *cuf_allocator_private_begin(void)
{
	__atomic_store_n(&reader, this_thread(), __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&unloads, __ATOMIC_SEQ_CST))
		return table;
	cuf_allocator_private_end();
	return NULL;
}

void cuf_allocator_private_end(void) { __atomic_store_n(&reader, 0, __ATOMIC_SEQ_CST); }

void cuf_allocator_unload_begin(void)
{
	enum { WAIT_NS = 1000000000 };
	struct timespec pause = { 0, 100000 };
	uint64_t until_ns;
	__atomic_add_fetch(&unloads, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&reader, __ATOMIC_SEQ_CST))
		return;
	until_ns = cuf_now_ns() + WAIT_NS;
	while (__atomic_load_n(&reader, __ATOMIC_SEQ_CST) && cuf_now_ns() < until_ns)
		cuf_sys(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
}

/* Whatever was closed is no longer what the loader has at that place. */
void cuf_allocator_unload_end(void)
{
	for (unsigned i = 0; i < CUF_PRIVATE_MAX; i++) {
		struct cuf_dso object;
		struct link_map map; /* a copy: another thread may close the object now */
		if (__atomic_load_n(&table[i].family, __ATOMIC_ACQUIRE) &&
		    (!cuf_dso_at(table[i].allocator.dynamic, &object) ||
		     !cuf_guarded_copy(&map, (uintptr_t)object.map, sizeof map) ||
		     map.l_ld != table[i].allocator.dynamic))
			__atomic_store_n(&table[i].family, NULL, __ATOMIC_RELEASE);
	}
	__atomic_sub_fetch(&unloads, 1, __ATOMIC_SEQ_CST);
}
