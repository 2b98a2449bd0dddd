/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of views shows where a file was mapped, the table of maps whether it still is. So
 * nothing has to be removed here, and parts of maps need no care.
 */
#include "interpose/hooks/malloc/map_blocks.h"

#include "interpose/platform/at_fork_child.h"
#include "interpose/record/recorder.h"
#include "interpose/platform/laws.h"

/* version is odd while somebody writes, and 0 where nobody has. */
static struct view {
	uint64_t version;
	struct cuf_shared_memory memory;
	uint64_t start, end;
} views[CUF_VIEWS_MAX];
static unsigned views_used; /* those behind were never written */
static uint64_t nameless_count;

static void forget_views(void)
{
	for (unsigned i = 0; i < CUF_VIEWS_MAX; i++)
		views[i] = (struct view){ 0 };
	views_used = 0;
}
CUF_AT_FORK_CHILD(forget_views);

static unsigned used(void) { return __atomic_load_n(&views_used, __ATOMIC_ACQUIRE); }

static bool get(unsigned i, struct view *view)
{
	view->version = __atomic_load_n(&views[i].version, __ATOMIC_ACQUIRE);
	if (!view->version || view->version & 1)
		return false;
	view->memory = views[i].memory;
	view->start = views[i].start;
	view->end = views[i].end;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&views[i].version, __ATOMIC_RELAXED) == view->version;
}

/* false: another thread writes. */
static bool set(unsigned i, struct cuf_shared_memory memory, uint64_t start, uint64_t end)
{
	uint64_t version = __atomic_load_n(&views[i].version, __ATOMIC_RELAXED);
	if (version & 1 || !__atomic_compare_exchange_n(&views[i].version, &version, version + 1,
							false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	views[i].memory = memory;
	views[i].start = start;
	views[i].end = end;
	__atomic_store_n(&views[i].version, version + 2, __ATOMIC_RELEASE);
	return true;
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- parts ---- */

static bool is_shared(struct cuf_map map)
{
	enum cuf_map_kind kind = cuf_map_kind(map);
	return kind == CUF_MAP_SHARED || kind == CUF_MAP_VIEW || kind == CUF_MAP_FILE;
}

/* A part of a file, and a map that shows it. */
struct part {
	uint64_t from, to;       /* offsets in the file */
	uint64_t start;          /* address of from */
	struct cuf_map map;
};

/* The first part of [from, to) that this view shows. */
static bool part_in(const struct view *view, uint64_t from, uint64_t to, struct part *part)
{
	uint64_t begin = later(from, view->memory.offset), start, end;
	uint64_t stop = earlier(to, view->memory.offset + (view->end - view->start));
	if (begin >= stop)
		return false;
	start = view->start + (begin - view->memory.offset);
	end = start + (stop - begin);
	if (!cuf_map_find(start, &part->map) || part->map.start >= end || !is_shared(part->map))
		return false;
	part->start = later(start, part->map.start);
	part->from = begin + (part->start - start);
	part->to = part->from + (earlier(end, part->map.end) - part->start);
	return true;
}

/* The first part that any view shows. views_only: any that is no block. */
static bool find_part(struct cuf_shared_memory memory, uint64_t to, bool views_only,
		      struct part *first)
{
	bool found = false;
	for (unsigned i = 0; i < used(); i++) {
		struct view view;
		struct part part;
		if (!get(i, &view) || view.memory.inode != memory.inode ||
		    view.memory.device != memory.device ||
		    !part_in(&view, memory.offset, to, &part))
			continue;
		if ((views_only && cuf_map_kind(part.map) != CUF_MAP_VIEW) ||
		    (found && part.from >= first->from))
			continue;
		*first = part;
		found = true;
	}
	return found;
}

/* ---- the interface ---- */

struct cuf_shared_memory cuf_views_nameless(void)
{
	uint64_t number = __atomic_add_fetch(&nameless_count, 1, __ATOMIC_RELAXED);
	return (struct cuf_shared_memory){ .device = UINT64_MAX, .inode = number };
}

bool cuf_views_have(struct cuf_shared_memory memory, uint64_t bytes)
{
	struct part part;
	return find_part(memory, memory.offset + bytes, false, &part);
}

/* What was mapped there when its map was made. */
static bool find_at(uint64_t addr, struct cuf_shared_memory *memory)
{
	for (unsigned i = 0; i < used(); i++) {
		struct view view;
		if (!get(i, &view) || addr < view.start || addr >= view.end)
			continue;
		*memory = view.memory;
		memory->offset += addr - view.start;
		return true;
	}
	return false;
}

bool cuf_views_at(uint64_t addr, struct cuf_shared_memory *memory)
{
	struct cuf_map map;
	return cuf_map_find(addr, &map) && map.start <= addr && is_shared(map) &&
	       find_at(addr, memory);
}

/* Nothing is known of these addresses any more. Of a view around them the part in front stays. */
static void forget_range(uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < used(); i++) {
		struct view view;
		if (!get(i, &view) || view.start >= end || view.end <= start)
			continue;
		if (view.start < start) {
			set(i, view.memory, view.start, start);
			continue;
		}
		view.memory.offset += earlier(end, view.end) - view.start;
		set(i, view.memory, earlier(end, view.end), view.end);
	}
}

static void remember(struct cuf_shared_memory memory, uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < CUF_VIEWS_MAX; i++) {
		struct view view = { 0 };
		struct part part;
		if (i < used() && get(i, &view) && part_in(&view, 0, UINT64_MAX, &part))
			continue;
		if (!set(i, memory, start, end))
			continue;
		if (i >= used())
			__atomic_store_n(&views_used, i + 1, __ATOMIC_RELEASE);
		return;
	}
	cuf_note_dropped(CUF_LOST_SMALL);
}

void cuf_views_add(struct cuf_shared_memory memory, uint64_t start, uint64_t end,
		   enum cuf_map_kind kind, const void *frame)
{
	const struct cuf_shared_memory whole = memory;
	uint64_t at = start, bytes;
	struct part part;
	forget_range(start, end);
	for (; at < end; at += bytes, memory.offset += bytes) {
		bool is_view = find_part(memory, memory.offset + (end - at), false, &part);
		bytes = is_view ? part.from - memory.offset : end - at;
		if (bytes) /* what nobody shows comes first */
			cuf_maps_add(at, at + bytes, kind, frame);
		if (!is_view)
			continue;
		at += bytes;
		memory.offset += bytes;
		bytes = part.to - part.from;
		cuf_maps_add(at, at + bytes, CUF_MAP_VIEW, frame);
	}
	remember(whole, start, end);
}

static void hand_on(struct cuf_map ended)
{
	struct cuf_shared_memory memory;
	struct part part;
	uint64_t to;
	if (!find_at(ended.start, &memory))
		return;
	to = memory.offset + cuf_map_bytes(ended);
	forget_range(ended.start, ended.end);
	for (; memory.offset < to && find_part(memory, to, true, &part); memory.offset = part.to)
		cuf_maps_take_over(part.start, part.start + (part.to - part.from), ended);
}

void cuf_views_ended(const struct cuf_maps_removed *removed)
{
	for (unsigned i = 0; i < removed->count; i++)
		if (removed->maps[i].block & CUF_MAP_HAS_BLOCK && is_shared(removed->maps[i]))
			hand_on(removed->maps[i]);
}
