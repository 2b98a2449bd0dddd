/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranges are segments of a framework. Those with blocks of it are. An empty range is cached
 * by the framework when it was requested at the call site of one that has blocks, or by the
 * library of the framework, or when it once had a block: a segment is requested for a block, which
 * is reported right after it.
 */
#include <stdlib.h>
#include <string.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/measure/framework_segments.h"
#include "analysis/symbols/frameworks.h"

/* Segments that ever held a block, by the sequence number of their birth. */
struct framework_marks { struct liveset held; };

/* Who called CUDA: the first frame outside the libraries of CUDA. */
static bool is_called_by_allocator(const struct run_process *process,
				   const struct framework_range *range)
{
	uint32_t depth;
	uint8_t stop;
	const uint64_t *addrs = reader_stack(process->reader, range->stack, &depth, &stop);
	uint64_t time_ns = reader_realtime(process->reader, range->time_ns);
	const struct framework *pytorch = framework_named("PyTorch");
	for (uint32_t i = 0; i < depth; i++) {
		const struct fact_module *module = NULL;
		if (!cuf_frame_is_python(addrs[i]))
			module = module_at(process->meta.modules, process->meta.module_count,
					   addrs[i], time_ns);
		if (!module)
			return false;
		if (pytorch && framework_keeps(pytorch, module->path))
			return true;
		if (!is_cuda_library(module->path))
			return false;
	}
	return false;
}

static bool is_among(const uint64_t *sorted, size_t count, uint64_t number)
{
	return count && bsearch(&number, sorted, count, sizeof number, compare_uint64);
}

/*
 * Marks the ranges with the call site or the reservation of one that is a segment already. A
 * framework requests memory at few call sites, so those of used segments identify the empty ones.
 */
static void mark_siblings(struct framework_map *map)
{
	uint64_t *stacks = xalloc_zeroed(map->range_count, sizeof *stacks),
		 *homes = xalloc_zeroed(map->range_count, sizeof *homes);
	size_t count = 0;
	for (size_t i = 0; i < map->range_count; i++)
		if (map->ranges[i].is_segment) {
			stacks[count] = map->ranges[i].stack;
			homes[count++] = map->ranges[i].reservation;
		}
	if (count) {
		qsort(stacks, count, sizeof *stacks, compare_uint64);
		qsort(homes, count, sizeof *homes, compare_uint64);
	}
	for (size_t i = 0; i < map->range_count; i++) {
		struct framework_range *range = &map->ranges[i];
		range->is_segment |= range->stack && is_among(stacks, count, range->stack);
		range->is_segment |=
			range->reservation && is_among(homes, count, range->reservation);
	}
	free(stacks);
	free(homes);
}

/* Kinds of block that may be a segment, so their pages are followed. */
static bool has_range(unsigned kind)
{
	return 1u << kind & (1u << CUF_KIND_DEVICE | 1u << CUF_KIND_MANAGED | 1u << CUF_KIND_ASYNC |
			     1u << CUF_KIND_IMPORTED | 1u << CUF_KIND_MAPPING);
}

/* Sequence numbers as keys of a liveset, which refuses 0 and 1. */
static uint64_t mark_key_of(uint64_t number) { return number + 2; }

/*
 * Who holds each 2 MiB page, in chunks of 64. A block that covers a whole chunk is noted once:
 * a block of a terabyte is half a million pages. budget: how many more steps may be taken, so that
 * a recording in which every event covers terabytes ends in time. An honest one needs far fewer.
 */
enum { CHUNK_PAGES = 64, CHUNKS_MAX = 1 << 18 }; /* 32 TiB: a damaged recording may have more */
struct mark_chunk {
	uint64_t seq;    /* of the block that covers all of it last; 0: none */
	uint64_t *pages; /* by page, since then; 0: as seq; NULL: all are */
};
struct page_owners {
	struct hash_index index; /* number of a chunk to a place in chunks, plus one */
	struct mark_chunk *chunks;
	size_t count, room;
	uint64_t budget;
};

/* Makes the block the last owner of pages [from, to) of a chunk. */
static void own_chunk(struct page_owners *owners, uint64_t number, size_t from, size_t to,
		      uint64_t seq)
{
	uint32_t *place = hash_index_place(&owners->index, number);
	struct mark_chunk *chunk;

	if (!*place) {
		xalloc_grow(&owners->chunks, owners->count, &owners->room, sizeof *owners->chunks);
		owners->chunks[owners->count++] = (struct mark_chunk){ 0 };
		*place = (uint32_t)owners->count;
	}
	chunk = &owners->chunks[*place - 1];
	if (from == 0 && to == CHUNK_PAGES) {
		free(chunk->pages);
		*chunk = (struct mark_chunk){ .seq = seq };
		return;
	}
	if (!chunk->pages)
		chunk->pages = xalloc_zeroed(CHUNK_PAGES, sizeof *chunk->pages);
	for (size_t page = from; page < to; page++)
		chunk->pages[page] = seq;
}

/* Makes the block with this seq the last owner of its pages. */
static void own_pages(struct page_owners *owners, uint64_t addr, uint64_t bytes, uint64_t seq)
{
	uint64_t last = (addr + bytes - 1) / CUF_PAGE_BYTES,
		 steps = bytes / CUF_PAGE_BYTES / CHUNK_PAGES + 2;

	if (!bytes || addr + bytes < addr || steps + owners->count > CHUNKS_MAX ||
	    steps > owners->budget)
		return;
	owners->budget -= steps;
	for (uint64_t page = addr / CUF_PAGE_BYTES, end; page <= last; page = end) {
		uint64_t number = page / CHUNK_PAGES, first = number * CHUNK_PAGES;

		end = least_of(last + 1, first + CHUNK_PAGES);
		own_chunk(owners, number, page - first, end - first, seq);
	}
}

/* The seq of the block that holds the page of an address; 0: none. */
static uint64_t owner_at(const struct page_owners *owners, uint64_t addr)
{
	uint64_t page = addr / CUF_PAGE_BYTES;
	uint32_t place = hash_index_find(&owners->index, page / CHUNK_PAGES);
	const struct mark_chunk *chunk = place ? &owners->chunks[place - 1] : NULL;

	if (chunk && chunk->pages && chunk->pages[page % CHUNK_PAGES])
		return chunk->pages[page % CHUNK_PAGES];
	return chunk ? chunk->seq : 0;
}

static void owners_fini(struct page_owners *owners)
{
	for (size_t i = 0; i < owners->count; i++)
		free(owners->chunks[i].pages);
	free(owners->chunks);
	hash_index_fini(&owners->index);
}

/* What was there before the first event that is still in the ring. */
static void own_old_pages(const struct run_process *process, struct page_owners *owners)
{
	uint64_t count = reader_count(process->reader, CUF_SEC_LEDGER);
	for (uint64_t i = 0; i < count; i++) {
		struct cuf_block block =
			*(const struct cuf_block *)reader_at(process->reader, CUF_SEC_LEDGER, i);
		if (block.key && block.key != CUF_KEY_BUSY && block.kind < CUF_KIND_MAX &&
		    has_range(block.kind) && block.seq < process->events->first_seq)
			own_pages(owners, cuf_key_addr(block.key), block.bytes, block.seq);
	}
	reader_drop(process->reader, CUF_SEC_LEDGER);
}

/*
 * Replays the events once and notes every range that ever had a block of the framework in it. This
 * costs a pass over the whole ring, so it is done only if a range is undecided without it.
 */
static struct framework_marks *marks_new(const struct run_process *process)
{
	struct framework_marks *marks = xalloc_zeroed(1, sizeof *marks);
	/* a step for each byte of the file, and 32 TiB in any case */
	struct page_owners owners = { .budget = CHUNKS_MAX + process->reader->bytes };
	struct event_merge merge;
	struct cuf_event event;
	liveset_init(&marks->held, 0);
	hash_index_init(&owners.index, 0);
	own_old_pages(process, &owners);
	event_merge_begin(&merge, process->events, 0);
	while (event_merge_next(&merge, &event)) {
		uint64_t owner;
		if (event.op != CUF_OP_ALLOC)
			continue;
		if (has_range(event.kind)) {
			own_pages(&owners, event.addr, event.bytes, event.seq);
		} else if (event.kind == CUF_KIND_FRAMEWORK &&
			   (owner = owner_at(&owners, event.addr))) {
			struct cuf_block held = { .key = mark_key_of(owner) };
			liveset_put(&marks->held, &held);
		}
	}
	owners_fini(&owners);
	return marks;
}

void framework_marks_set(struct framework_marks **marks, const struct run_process *process,
			 struct framework_map *map)
{
	bool any_left = false;
	if (!map->block_count && !process->events->framework->count)
		return;
	for (size_t i = 0; i < map->range_count; i++) {
		struct framework_range *range = &map->ranges[i];
		range->is_segment = range->count || is_called_by_allocator(process, range);
	}
	mark_siblings(map);
	for (size_t i = 0; i < map->range_count; i++)
		any_left |= !map->ranges[i].is_segment;
	if (!any_left)
		return;
	if (!*marks)
		*marks = marks_new(process);
	for (size_t i = 0; i < map->range_count; i++)
		map->ranges[i].is_segment |=
			liveset_find(&(*marks)->held, mark_key_of(map->ranges[i].seq)) != NULL;
	mark_siblings(map);
}

void framework_marks_free(struct framework_marks *marks)
{
	if (marks)
		liveset_fini(&marks->held);
	free(marks);
}

struct framework_report framework_reported(const struct events *events, unsigned device,
					   uint64_t seq)
{
	const struct events *own = events->framework;
	struct framework_report report = { CUF_UNKNOWN, CUF_UNKNOWN };
	uint64_t freed_bytes = 0;
	size_t i = own->count;
	if (seq < own->last_seq)
		i = events_after(own, seq);
	/* backwards to the last report, minus what was freed after it */
	while (i--) {
		struct cuf_event event = events_get(own, i);
		if (event.kind != CUF_KIND_FRAMEWORK || event.device != device)
			continue;
		if (event.op == CUF_OP_FREE)
			freed_bytes += event.bytes;
		if (event.op != CUF_OP_ALLOC && event.op != CUF_OP_FAIL)
			continue;
		report.allocated_bytes = subtract_to_zero(event.aux, freed_bytes);
		report.reserved_bytes = (uint64_t)event.extra << 9;
		break;
	}
	return report;
}
