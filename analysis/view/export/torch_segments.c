/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segments of a snapshot: ranges of memory that a framework splits, with its blocks and the
 * gaps between them, and every other block of the driver as a segment of one block. Memory of the
 * virtual memory calls is shown where it is mapped.
 */
#include "analysis/view/export/torch_snapshot.h"

#include "analysis/base/numbers.h"

/* PyTorch's blocks of up to this size come from its pool of small ones. */
#define SMALL_SEGMENT_BYTES (2ull << 20)

/* site 0 of a gap: it has no frames */
static void put_block(struct torch *torch, uint64_t addr, uint64_t bytes, bool active,
		      uint32_t site)
{
	struct pickle *pickle = &torch->pickle;

	pickle_begin_dict(pickle);
	torch_put(torch, "address", addr);
	torch_put(torch, "size", bytes);
	torch_put(torch, "requested_size", active ? bytes : 0);
	pickle_word(pickle, "state");
	pickle_word(pickle, active ? "active_allocated" : "inactive");
	pickle_word(pickle, "frames");
	torch_frames(torch, site);
	pickle_end_dict(pickle);
}

struct segment {
	uint64_t addr, bytes, active_bytes;
	uint32_t site;
	bool expandable;
};

static void begin_segment(struct torch *torch, const struct segment *segment)
{
	struct pickle *pickle = &torch->pickle;

	pickle_begin_dict(pickle);
	torch_put(torch, "device", torch->ordinal);
	torch_put(torch, "address", segment->addr);
	torch_put(torch, "total_size", segment->bytes);
	torch_put(torch, "allocated_size", segment->active_bytes);
	torch_put(torch, "active_size", segment->active_bytes);
	torch_put(torch, "requested_size", segment->active_bytes);
	torch_put(torch, "stream", 0); /* not recorded */
	pickle_word(pickle, "segment_type");
	pickle_word(pickle, segment->bytes <= SMALL_SEGMENT_BYTES ? "small" : "large");
	pickle_word(pickle, "segment_pool_id");
	pickle_pair(pickle, 0, 0);
	pickle_word(pickle, "is_expandable");
	pickle_bool(pickle, segment->expandable);
	pickle_word(pickle, "frames");
	torch_frames(torch, segment->site);
	pickle_word(pickle, "blocks");
	pickle_begin_list(pickle);
}

static void end_segment(struct torch *torch)
{
	pickle_end_list(&torch->pickle);
	pickle_end_dict(&torch->pickle);
}

static uint32_t site_in(const struct torch *torch, uint32_t stack)
{
	return rows_site_of_stack(torch->rows, torch->process, stack);
}

/* Blocks and gaps fill a segment. Overlapping blocks are damage: the later one is cut. */
static void put_split(struct torch *torch, const struct segment_row *row)
{
	struct segment segment = { row->addr, row->bytes, 0, site_in(torch, row->stack),
				   row->is_mapped };
	uint64_t at = row->addr, end = row->addr + row->bytes;

	for (size_t i = 0; i < row->block_count; i++)
		segment.active_bytes += row->blocks[i].bytes;
	begin_segment(torch, &segment);
	for (size_t i = 0; i < row->block_count; i++) {
		const struct segment_block *block = &row->blocks[i];

		if (block->addr < at)
			continue;
		if (block->addr > at)
			put_block(torch, at, block->addr - at, false, 0);
		put_block(torch, block->addr, block->bytes, true, site_in(torch, block->stack));
		at = block->addr + block->bytes;
	}
	if (at < end)
		put_block(torch, at, end - at, false, 0);
	end_segment(torch);
}

static void put_segment(void *context, const struct segment_row *row)
{
	struct torch *torch = context;
	uint32_t site;

	if (row->is_split) {
		put_split(torch, row);
		return;
	}
	site = site_in(torch, row->stack);
	begin_segment(torch, &(struct segment){ row->addr, row->bytes, row->bytes, site, false });
	put_block(torch, row->addr, row->bytes, true, site);
	end_segment(torch);
}

void torch_put_segments(struct torch *torch)
{
	const struct facts *facts = rows_facts(torch->rows);
	const struct fact_process *process = &facts->processes[torch->process];

	pickle_begin_list(&torch->pickle);
	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++) {
		if (process->device_of[d] == FACT_NONE || !process->live.device_seq[d] ||
		    !rows_want_device(torch->rows, process->device_of[d]))
			continue;
		torch->ordinal = d;
		rows_segments(torch->rows, torch->process, d, put_segment, torch);
	}
	pickle_end_list(&torch->pickle);
}
