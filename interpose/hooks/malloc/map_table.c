/* SPDX-License-Identifier: Apache-2.0 */
/* An array sorted by address. Maps are few and long-lived, so moving its tail is cheap. */
#include "interpose/hooks/malloc/map_table.h"

#include <string.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/record/recorder.h"
#include "interpose/platform/laws.h"

enum { MAPS_MAX = 32768, SPINS_MAX = 100000 };

static struct cuf_map maps[MAPS_MAX];
static unsigned count;
static uint32_t locked;

/* A forked child's recording starts without its parent's maps. */
static void forget_maps(void)
{
	count = 0;
	locked = 0;
}
CUF_AT_FORK_CHILD(forget_maps);

/* A signal handler that maps memory while its thread holds the lock would wait forever: so the wait
 * is bounded. A failed attempt counts as a dropped event of the host ledger. */
static bool lock(void)
{
	for (unsigned i = 0; i < SPINS_MAX; i++)
		if (!__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
			return true;
	cuf_note_dropped(CUF_LOST_HOST_LEDGER);
	return false;
}

/* Release: the next owner sees the array as this one left it. */
static void unlock(void) { __atomic_store_n(&locked, 0, __ATOMIC_RELEASE); }

/* The index of the first map that ends behind addr. */
static unsigned first_behind(uint64_t addr)
{
	unsigned low = 0, high = count;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (maps[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The caller holds the lock. The array moves up by one place: at most 768 KiB. */
static bool insert(struct cuf_map map)
{
	unsigned at = first_behind(map.start);
	if (count == MAPS_MAX) {
		cuf_note_dropped(CUF_LOST_HOST_LEDGER);
		return false;
	}
	memmove(&maps[at + 1], &maps[at], (count - at) * sizeof *maps);
	maps[at] = map;
	count++;
	return true;
}

/* Returns false when the table is full or locked for too long: the map is then not recorded, and
 * the loss is counted. */
bool cuf_map_add(struct cuf_map map)
{
	bool added;
	if (!lock())
		return false;
	added = insert(map);
	unlock();
	return added;
}

/* Pieces outside the range are inserted again under the same lock, so no other thread sees a gap.
 * Returns how many maps were removed, at most max. The caller repeats the call when it is max. */
unsigned cuf_map_remove(uint64_t start, uint64_t end, uint64_t piece_bytes_min,
			struct cuf_map *removed, unsigned max)
{
	unsigned at, n = 0;
	if (!lock())
		return 0;
	at = first_behind(start);
	while (n < max && at + n < count && maps[at + n].start < end) {
		removed[n] = maps[at + n];
		n++;
	}
	memmove(&maps[at], &maps[at + n], (count - at - n) * sizeof *maps);
	count -= n;
	if (n && removed[0].start < start && start - removed[0].start >= piece_bytes_min)
		insert((struct cuf_map){ removed[0].start, start, removed[0].kind });
	if (n && removed[n - 1].end > end && removed[n - 1].end - end >= piece_bytes_min)
		insert((struct cuf_map){ end, removed[n - 1].end, removed[n - 1].kind });
	unlock();
	return n;
}

/* A pass over at most 32768 entries, once per reading. */
void cuf_map_sum(struct cuf_map_sums *sums)
{
	*sums = (struct cuf_map_sums){ 0 };
	if (!lock())
		return;
	for (unsigned i = 0; i < count; i++) {
		uint64_t bytes = maps[i].end - maps[i].start;
		sums->bytes[maps[i].kind] += bytes;
		sums->count[maps[i].kind]++;
	}
	unlock();
}
