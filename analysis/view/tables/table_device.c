/* SPDX-License-Identifier: Apache-2.0 */
/* Tables about devices at their moment: figures, who holds them, where free ranges are. */
#include "analysis/view/tables/tables.h"

#include "analysis/base/numbers.h"
#include "analysis/base/units.h"

#define DEVICE_COLUMN { "device", COLUMN_INTEGER, "the driver's number" }

/* ---- devices ---- */

static const struct column device_columns[] = {
	KEY_COLUMN,
	DEVICE_COLUMN,
	{ "uuid", COLUMN_TEXT, "as nvidia-smi prints it" },
	{ "name", COLUMN_TEXT, "of the model" },
	{ "moment", COLUMN_TEXT, "what the figures are of: incident, end, at or now" },
	{ "moment_ns", COLUMN_INTEGER, "when that was" },
	{ "total_bytes", COLUMN_INTEGER, "of the device" },
	{ "free_bytes", COLUMN_INTEGER, "of the whole device, at the moment" },
	{ "peak_bytes", COLUMN_INTEGER, "the most that this process had in live blocks" },
	{ "peak_ns", COLUMN_INTEGER, "when that was" },
	{ "alloc_count", COLUMN_INTEGER, "allocations" },
	{ "free_count", COLUMN_INTEGER, "frees" },
	{ "fail_count", COLUMN_INTEGER, "requests that failed" },
	{ "device_upper_bound_bytes", COLUMN_INTEGER, "free bytes: no request can be larger" },
	{ "measured_bytes", COLUMN_INTEGER, "largest request that succeeded when it was probed" },
	{ "page_hole_bytes", COLUMN_INTEGER, "largest free range inside 2 MiB pages" },
	{ "pool_bytes", COLUMN_INTEGER, "largest gap between live blocks of one pool" },
	{ "vmm_bytes", COLUMN_INTEGER, "largest unmapped run of one reservation" },
	{ "segment_bytes", COLUMN_INTEGER, "largest hole inside a framework's segment" },
	{ "host_bytes", COLUMN_INTEGER, "largest free extent of the host's allocator" },
	{ "basis", COLUMN_TEXT, "observed, or estimated where events were overwritten" },
};

static void write_device(struct sheet *sheet, const struct fact_device *device)
{
	char uuid[UUID_TEXT];

	sheet_begin(sheet);
	cell_index(sheet, device->ordinal);
	cell_text(sheet, uuid_text(device->uuid, uuid));
	cell_text(sheet, device->name);
	cell_text(sheet, moment_names[device->moment.kind]);
	cell_number(sheet, device->moment.time_ns);
	cell_number(sheet, device->total_bytes);
	cell_number(sheet, device->free_bytes);
	cell_number(sheet, device->peak_bytes);
	cell_number(sheet, device->peak_ns);
	cell_number(sheet, device->alloc_count);
	cell_number(sheet, device->free_count);
	cell_number(sheet, device->fail_count);
	for (size_t i = 0; i < LAYER_MAX; i++)
		cell_number(sheet, device->largest_free[i].bytes);
	cell_word(sheet, basis_names[device->moment.basis]);
	sheet_end(sheet);
}

static void write_devices(struct sheet *sheet)
{
	for (uint32_t i = 0; i < sheet->facts->device_count; i++)
		if (rows_want_device(sheet->rows, i))
			write_device(sheet, &sheet->facts->devices[i]);
}

TABLE(table_devices, "devices", "the devices that a process used, at the moment", device_columns,
      write_devices);

/* ---- owners ---- */

static const struct column owner_columns[] = {
	KEY_COLUMN,
	DEVICE_COLUMN,
	{ "kind", COLUMN_TEXT, "device, array, async, graph, vmm, imported, page_rounding, "
			       "pool_slack, framework_slack, other_processes, context, "
			       "unexplained, free or managed" },
	{ "role", COLUMN_TEXT, "what the blocks are for: weights, kv, ..." },
	{ "role_basis", COLUMN_TEXT, "how that was obtained" },
	{ "bytes", COLUMN_INTEGER, "held at the moment" },
	{ "count", COLUMN_INTEGER, "blocks" },
	{ "basis", COLUMN_TEXT, "observed, inferred or estimated" },
	{ "pid", COLUMN_INTEGER, "of another process" },
	{ "name", COLUMN_TEXT, "of another process" },
	{ "in_sum", COLUMN_BOOLEAN, "rows of a device that have it sum to its total" },
};

static void write_owners(struct sheet *sheet)
{
	for (uint32_t d = 0; d < sheet->facts->device_count; d++) {
		const struct fact_device *device = &sheet->facts->devices[d];

		for (size_t i = 0; i < device->owner_count && rows_want_device(sheet->rows, d);
		     i++) {
			const struct fact_owner_row *owner = &device->owners[i];

			sheet_begin(sheet);
			cell_index(sheet, device->ordinal);
			cell_text(sheet, owner_names[owner->kind]);
			cell_text(sheet, owner->role);
			cell_word(sheet, basis_names[owner->role_basis]);
			cell_number(sheet, owner->bytes);
			cell_number(sheet, owner->count);
			cell_word(sheet, basis_names[owner->basis]);
			cell_positive(sheet, owner->pid);
			cell_text(sheet, owner->name);
			cell_flag(sheet, owner->in_sum);
			sheet_end(sheet);
		}
	}
}

TABLE(table_owners, "owners", "who holds the bytes of a device, at the moment", owner_columns,
      write_owners);

/* ---- regions ---- */

static const struct column region_columns[] = {
	KEY_COLUMN,
	DEVICE_COLUMN,
	{ "layer", COLUMN_TEXT, "pages: all 2 MiB pages that small blocks share; pool: a memory "
				"pool; reservation: reserved addresses; segment: a block that a "
				"framework splits" },
	{ "framework", COLUMN_TEXT, "whose segment it is" },
	{ "address", COLUMN_INTEGER, "where it begins, or its handle; null: pages" },
	{ "bytes", COLUMN_INTEGER, "its size" },
	{ "live_bytes", COLUMN_INTEGER, "in use" },
	{ "free_bytes", COLUMN_INTEGER, "the rest" },
	{ "largest_hole_bytes", COLUMN_INTEGER, "the largest free range inside" },
	{ "hole_count", COLUMN_INTEGER, "free ranges inside" },
	{ "stack", COLUMN_INTEGER, "who allocated it" },
};

struct region {
	const char *layer, *framework;
	uint64_t address, bytes, live_bytes, free_bytes, largest_hole_bytes, hole_count;
	const struct fact_stack *stack;
};

static void write_region(struct sheet *sheet, const struct fact_device *device,
			 const struct region *region)
{
	sheet_begin(sheet);
	cell_index(sheet, device->ordinal);
	cell_text(sheet, region->layer);
	cell_text(sheet, region->framework);
	cell_number(sheet, region->address);
	cell_number(sheet, region->bytes);
	cell_number(sheet, region->live_bytes);
	cell_number(sheet, region->free_bytes);
	cell_number(sheet, region->largest_hole_bytes);
	cell_number(sheet, region->hole_count);
	cell_positive(sheet, region->stack ? region->stack->id : 0);
	sheet_end(sheet);
}

static uint64_t rest_of(uint64_t bytes, uint64_t live_bytes)
{
	if (bytes == CUF_UNKNOWN || live_bytes == CUF_UNKNOWN)
		return CUF_UNKNOWN;
	return subtract_to_zero(bytes, live_bytes);
}

static void write_pages(struct sheet *sheet, const struct fact_device *device)
{
	const struct fact_fragmentation *all = &device->fragmentation;
	struct region pages = {
		.layer = "pages",
		.address = CUF_UNKNOWN,
		.bytes = all->pages * CUF_PAGE_BYTES,
		.live_bytes = rest_of(all->pages * CUF_PAGE_BYTES, all->page_free_bytes),
		.free_bytes = all->page_free_bytes,
		.largest_hole_bytes = all->page_largest_hole_bytes,
	};

	if (!all->pages || all->pages == CUF_UNKNOWN)
		return;
	for (size_t i = 0; i < FACT_HOLE_CLASSES; i++)
		pages.hole_count += all->hole_count[i];
	write_region(sheet, device, &pages);
}

static void write_segments(struct sheet *sheet, const struct fact_device *device)
{
	const struct fact_fragmentation *all = &device->fragmentation;

	for (size_t f = 0; f < all->framework_count; f++) {
		const struct fact_framework *framework = &all->frameworks[f];

		for (size_t i = 0; i < framework->segment_count; i++) {
			const struct fact_segment *segment = &framework->segments[i];

			write_region(sheet, device, &(struct region){
				.layer = "segment",
				.framework = *framework->name ? framework->name : NULL,
				.address = segment->addr,
				.bytes = segment->bytes,
				.live_bytes = segment->live_bytes,
				.free_bytes = rest_of(segment->bytes, segment->live_bytes),
				.largest_hole_bytes = segment->largest_hole_bytes,
				.hole_count = segment->hole_count,
				.stack = &segment->stack,
			});
		}
	}
}

static void write_device_regions(struct sheet *sheet, const struct fact_device *device)
{
	const struct fact_fragmentation *all = &device->fragmentation;

	write_pages(sheet, device);
	for (size_t i = 0; i < all->pool_count; i++)
		write_region(sheet, device, &(struct region){
			.layer = "pool",
			.address = all->pools[i].pool,
			.bytes = all->pools[i].reserved_bytes,
			.live_bytes = all->pools[i].used_bytes,
			.free_bytes = rest_of(all->pools[i].reserved_bytes,
					      all->pools[i].used_bytes),
			.largest_hole_bytes = all->pools[i].largest_gap_bytes,
			.hole_count = CUF_UNKNOWN,
		});
	for (size_t i = 0; i < all->vmm_count; i++)
		write_region(sheet, device, &(struct region){
			.layer = "reservation",
			.address = all->vmm[i].addr,
			.bytes = all->vmm[i].bytes,
			.live_bytes = all->vmm[i].mapped_bytes,
			.free_bytes = rest_of(all->vmm[i].bytes, all->vmm[i].mapped_bytes),
			.largest_hole_bytes = all->vmm[i].largest_unmapped_bytes,
			.hole_count = CUF_UNKNOWN,
			.stack = &all->vmm[i].stack,
		});
	write_segments(sheet, device);
}

static void write_regions(struct sheet *sheet)
{
	for (uint32_t i = 0; i < sheet->facts->device_count; i++)
		if (rows_want_device(sheet->rows, i))
			write_device_regions(sheet, &sheet->facts->devices[i]);
}

TABLE(table_regions, "regions", "what a process holds and uses in part: where the free ranges are",
      region_columns, write_regions);
