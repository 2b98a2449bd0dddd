/* SPDX-License-Identifier: Apache-2.0 */
/* Tables about devices at their moment: figures, who holds them, where free ranges are. */
#include "analysis/view/tables/tables.h"

#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/facts/kinds.h"

#define DEVICE_COLUMN(ordinal) { "device", INDEX(ordinal), .meaning = "the driver's number" }

/* ---- devices ---- */

struct device_cells { struct fact_device device; const char *uuid; };
#define OF struct device_cells
static const struct field device_columns[] = {
	KEY_COLUMN,
	DEVICE_COLUMN(device.ordinal),
	{ "uuid", TEXT(uuid), .meaning = "as nvidia-smi prints it" },
	{ "name", TEXT(device.name), .meaning = "of the model" },
	{ "moment", NAME(device.moment.kind, moment_words),
	  .meaning = "what the figures are of: incident, end, at or now" },
	{ "moment_ns", NUMBER(device.moment.time_ns), .meaning = "when that was" },
	{ "total_bytes", NUMBER(device.total_bytes), .meaning = "of the device" },
	{ "free_bytes", NUMBER(device.free_bytes),
	  .meaning = "of the whole device, at the moment" },
	{ "peak_bytes", NUMBER(device.peak_bytes),
	  .meaning = "the most that this process had in live blocks" },
	{ "peak_ns", NUMBER(device.peak_ns), .meaning = "when that was" },
	{ "alloc_count", NUMBER(device.alloc_count), .meaning = "allocations" },
	{ "free_count", NUMBER(device.free_count), .meaning = "frees" },
	{ "fail_count", NUMBER(device.fail_count), .meaning = "requests that failed" },
	LAYER_COLUMNS(device.largest_free),
	{ "basis", BASIS(device.moment.basis),
	  .meaning = "observed, or estimated where events were overwritten" },
};
#undef OF

static void write_devices(struct sheet *sheet)
{
	for (uint32_t i = 0; i < sheet->facts->device_count; i++) {
		const struct fact_device *device = &sheet->facts->devices[i];
		char uuid[UUID_TEXT];

		if (rows_want_device(sheet->rows, i))
			sheet_row(sheet, &(struct device_cells){
				*device, uuid_text(device->uuid, uuid) });
	}
}

TABLE(table_devices, "devices", "the devices that a process used, at the moment", device_columns,
      write_devices);

/* ---- owners ---- */

struct owner_cells { struct fact_owner_row owner; uint32_t ordinal; };
#define OF struct owner_cells
static const struct field owner_columns[] = {
	KEY_COLUMN,
	DEVICE_COLUMN(ordinal),
	{ "kind", NAME(owner.kind, owner_words),
	  .meaning = "device, array, async, graph, vmm, imported, page_rounding, pool_slack, "
	  "framework_slack, other_processes, context, unexplained, free or managed" },
	{ "role", TEXT(owner.role), .meaning = "what the blocks are for: weights, kv, ..." },
	{ "role_basis", BASIS(owner.role_basis), .meaning = "how that was obtained" },
	{ "bytes", NUMBER(owner.bytes), .meaning = "held at the moment" },
	{ "count", NUMBER(owner.count), .meaning = "blocks" },
	{ "basis", BASIS(owner.basis), .meaning = "observed, inferred or estimated" },
	{ "pid", POSITIVE(owner.pid), .meaning = "of another process" },
	{ "name", TEXT(owner.name), .meaning = "of another process" },
	{ "in_sum", FLAG(owner.in_sum),
	  .meaning = "rows of a device that have it sum to its total" },
};
#undef OF

static void write_owners(struct sheet *sheet)
{
	for (uint32_t d = 0; d < sheet->facts->device_count; d++) {
		const struct fact_device *device = &sheet->facts->devices[d];

		for (size_t i = 0; i < device->owner_count && rows_want_device(sheet->rows, d); i++)
			sheet_row(sheet, &(struct owner_cells){ device->owners[i],
								device->ordinal });
	}
}

TABLE(table_owners, "owners", "who holds the bytes of a device, at the moment", owner_columns,
      write_owners);

/* ---- regions ---- */

struct region {
	uint32_t ordinal;
	const char *layer, *framework;
	uint64_t address, bytes, live_bytes, free_bytes, largest_hole_bytes, hole_count;
	const struct fact_stack *stack;
};

#define OF struct region
static const struct field region_columns[] = {
	KEY_COLUMN,
	DEVICE_COLUMN(ordinal),
	{ "layer", TEXT(layer),
	  .meaning = "pages: all 2 MiB pages that small blocks share; pool: a memory pool; "
	  "reservation: reserved addresses; segment: a block that a framework splits" },
	{ "framework", WORD(framework), .meaning = "whose segment it is" },
	{ "address", NUMBER(address), .meaning = "where it begins, or its handle; null: pages" },
	{ "bytes", NUMBER(bytes), .meaning = "its size" },
	{ "live_bytes", NUMBER(live_bytes), .meaning = "in use" },
	{ "free_bytes", NUMBER(free_bytes), .meaning = "the rest" },
	{ "largest_hole_bytes", NUMBER(largest_hole_bytes),
	  .meaning = "the largest free range inside" },
	{ "hole_count", NUMBER(hole_count), .meaning = "free ranges inside" },
	{ "stack", VIA(struct region, stack), .type = FIELD_STACK, .size = 0,
	  .meaning = "who allocated it" },
};
#undef OF

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
		.ordinal = device->ordinal,
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
	sheet_row(sheet, &pages);
}

static void write_segments(struct sheet *sheet, const struct fact_device *device)
{
	const struct fact_fragmentation *all = &device->fragmentation;

	for (size_t f = 0; f < all->framework_count; f++) {
		const struct fact_framework *framework = &all->frameworks[f];

		for (size_t i = 0; i < framework->segment_count; i++) {
			const struct fact_segment *segment = &framework->segments[i];

			sheet_row(sheet, &(struct region){
				.ordinal = device->ordinal,
				.layer = "segment",
				.framework = framework->name,
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
		sheet_row(sheet, &(struct region){
			.ordinal = device->ordinal,
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
		sheet_row(sheet, &(struct region){
			.ordinal = device->ordinal,
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
