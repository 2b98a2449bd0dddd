/* SPDX-License-Identifier: Apache-2.0 */
/* A device: who holds it, and where its free memory is. */
#include "analysis/view/json/shapes.h"

#include "analysis/base/units.h"

const struct words moment_words = WORDS(NULL, moment_names);

#define OF struct fact_moment
static const struct field moment_fields[] = {
	{ "kind", NAME(kind, moment_words) },
	{ "time_ns", NUMBER(time_ns) },
	{ "pid", PROCESS(process) },
	{ "incident", POSITIVE(incident) },
	{ "basis", BASIS(basis) },
};
static const struct shape moment_shape = SHAPE("moment", moment_fields);
#undef OF

struct hole { uint64_t from_bytes, below_bytes, count, bytes; };
#define OF struct hole
static const struct field hole_fields[] = {
	{ "from_bytes", COUNT(from_bytes) },
	{ "below_bytes", NUMBER(below_bytes) },
	{ "count", NUMBER(count) },
	{ "bytes", NUMBER(bytes) },
};
static const struct shape hole_shape = SHAPE(NULL, hole_fields);
#undef OF

/* Classes double from 1 KiB; the first begins at 0 and the last has no upper end. */
static size_t write_holes(struct fields *fields, const struct field *field, const void *object)
{
	const struct fact_fragmentation *fragmentation = object;

	for (size_t i = 0; i < FACT_HOLE_CLASSES; i++) {
		bool is_last = i + 1 == FACT_HOLE_CLASSES;
		struct hole hole = { i ? 512ull << i : 0, is_last ? CUF_UNKNOWN : 1024ull << i,
				     fragmentation->hole_count[i], fragmentation->hole_bytes[i] };
		fields_row(fields, NULL, field->shape, &hole);
	}
	return FACT_HOLE_CLASSES;
}

#define OF struct fact_pin
#define PIN_FIELDS(kept) \
	{ kept, COUNT(pages) }, \
	{ "open_bytes", COUNT(open_bytes) }, \
	{ "bytes", COUNT(bytes) }, \
	{ "count", COUNT(count) }, \
	{ "stack", STACK(stack) }
static const struct field page_pin_fields[] = { PIN_FIELDS("pages") };
static const struct field segment_pin_fields[] = { PIN_FIELDS("segments") };
static const struct shape page_pin_shape = SHAPE(NULL, page_pin_fields);
static const struct shape segment_pin_shape = SHAPE(NULL, segment_pin_fields);
#undef OF

#define OF struct fact_fragmentation
static const struct field page_fields[] = {
	{ "count", NUMBER(pages) },
	{ "partial_count", NUMBER(pages_partial) },
	{ "sparse_count", NUMBER(pages_sparse) },
	{ "free_bytes", NUMBER(page_free_bytes) },
	{ "largest_hole_bytes", NUMBER(page_largest_hole_bytes) },
	{ "holes", ROWS(hole_shape, write_holes) },
	{ "pins", LIST(pins, pin_count, page_pin_shape), COUNTED },
};
static const struct shape page_shape = SHAPE("pages", page_fields);
#undef OF

/* The driver keeps graphs in a pool of its own, which has the handle 0. */
static struct json_object *pool_is_of_graphs(const struct fields *fields, const void *object)
{
	const struct fact_pool *pool = object;

	return json_object_new_boolean(pool->pool == 0);
}

#define OF struct fact_pool
static const struct field pool_fields[] = {
	{ "pid", PROCESS(process) },
	{ "pool", HEX(pool) },
	{ "graph", VALUE(FLAG, pool_is_of_graphs) },
	{ "reserved_bytes", NUMBER(reserved_bytes) },
	{ "used_bytes", NUMBER(used_bytes) },
	{ "threshold_bytes", NUMBER(threshold_bytes) },
	{ "live_bytes", NUMBER(live_bytes) },
	{ "live_count", NUMBER(live_count) },
	{ "largest_gap_bytes", NUMBER(largest_gap_bytes) },
	{ "basis", BASIS(basis) },
};
static const struct shape pool_shape = SHAPE("pool", pool_fields);
#undef OF

#define OF struct fact_vmm
static const struct field reservation_fields[] = {
	{ "pid", PROCESS(process) },
	{ "address", HEX(addr) },
	{ "bytes", COUNT(bytes) },
	{ "mapped_bytes", NUMBER(mapped_bytes) },
	{ "map_count", NUMBER(map_count) },
	{ "largest_unmapped_bytes", NUMBER(largest_unmapped_bytes) },
	{ "stack", STACK(stack) },
};
static const struct shape reservation_shape = SHAPE("reservation", reservation_fields);
#undef OF

#define OF struct fact_framework
static const struct field framework_fields[] = {
	{ "pid", PROCESS(process) },
	{ "name", TEXT(name) },
	{ "version", WORD(version) },
	{ "backend", WORD(backend) },
	{ "allocated_bytes", NUMBER(allocated_bytes) },
	{ "reserved_bytes", NUMBER(reserved_bytes) },
	{ "placed_bytes", NUMBER(placed_bytes),
	  .meaning = "of the allocated: blocks in segments that are known" },
	{ "basis", BASIS(basis) },
	{ "segment_count", COUNT(segment_count) },
	{ "empty_bytes", NUMBER(empty_bytes), .meaning = "segments without a block" },
	{ "emptyable_bytes", NUMBER(emptyable_bytes),
	  .meaning = "segments used by less than a tenth" },
	{ "largest_hole_bytes", NUMBER(largest_hole.bytes), .meaning = "in one segment of the pool "
	  "that serves the failed request, else in any" },
	{ "largest_hole_basis", LAYER(largest_hole) },
	{ "pins", LIST(pins, pin_count, segment_pin_shape), COUNTED },
};
static const struct shape framework_shape = SHAPE("framework", framework_fields,
	.meaning = "An allocator that cuts the driver's blocks into its own. Allocated is null "
		   "where it does not tell what is inside.");
#undef OF

/* Segments come by what is free in them; a stack each would be most of the document, and few
 * stacks ask for all of them. */
static const void *segment_with_stack(const struct fields *fields, const void *object)
{
	enum { SEGMENT_STACKS_MAX = 32 };
	const struct fact_framework *framework = fields->outer;
	const struct fact_segment *segment = object;

	return segment - framework->segments < SEGMENT_STACKS_MAX ? segment : NULL;
}

static const void *outer(const struct fields *fields, const void *object)
{
	return fields->outer;
}

#define OF struct fact_segment
static const struct field segment_fields[] = {
	{ "pid", PROCESS(process) },
	{ "framework", .type = FIELD_TEXT, .base = outer, IN(struct fact_framework, name) },
	{ "address", HEX(addr) },
	{ "bytes", COUNT(bytes) },
	{ "live_bytes", NUMBER(live_bytes) },
	{ "live_count", NUMBER(live_count) },
	{ "largest_hole_bytes", NUMBER(largest_hole_bytes) },
	{ "hole_count", NUMBER(hole_count) },
	{ "serves_least_bytes", NUMBER(serves_least_bytes) },
	{ "serves_most_bytes", NUMBER(serves_most_bytes),
	  .meaning = "null: no limit, or not known" },
	{ "expandable", FLAG(expandable) },
	{ "born_ns", NUMBER(born_ns) },
	{ "stack", .base = segment_with_stack, FIELD(STACK, true, stack),
	  .meaning = "of those with the most free bytes" },
};
static const struct shape segment_shape = SHAPE("segment", segment_fields,
	.meaning = "A driver's block, or a run of mapped addresses, that a framework cuts into "
		   "blocks.");
#undef OF

/* The rows of all frameworks share one limit. */
static size_t write_segments(struct fields *fields, const struct field *field, const void *object)
{
	const struct fact_fragmentation *fragmentation = object;
	size_t count = 0;

	for (size_t i = 0; i < fragmentation->framework_count; i++) {
		const struct fact_framework *framework = &fragmentation->frameworks[i];
		fields->outer = framework;
		for (size_t at = 0; at < framework->segment_count; at++, count++)
			if (fields_wants(fields, field, count, SIZE_MAX))
				fields_row(fields, NULL, field->shape, &framework->segments[at]);
	}
	return count;
}

static const void *device_of(const struct fields *fields, const void *object)
{
	return (const char *)object - offsetof(struct fact_device, fragmentation);
}

#define OF struct fact_fragmentation
static const struct field fragmentation_fields[] = {
	{ "device", .base = device_of, .type = FIELD_NUMBER, IN(struct fact_device, ordinal) },
	{ "basis", BASIS(basis) },
	{ "pages", PART(page_shape) },
	{ "pools", LIST(pools, pool_count, pool_shape), COUNTED },
	{ "vmm", LIST(vmm, vmm_count, reservation_shape), COUNTED },
	{ "vmm_held_bytes", NUMBER(vmm_held_bytes) },
	{ "vmm_mapped_bytes", NUMBER(vmm_mapped_bytes) },
	{ "vmm_unmapped_bytes", NUMBER(vmm_unmapped_bytes) },
	{ "frameworks", LIST(frameworks, framework_count, framework_shape) },
	{ "segments", ROWS(segment_shape, write_segments), COUNTED },
};
const struct shape fragmentation_shape = SHAPE("fragmentation", fragmentation_fields);
#undef OF

/* null: the driver was not asked. */
static struct json_object *uuid_of(const struct fields *fields, const void *object)
{
	const struct fact_device *device = object;
	char text[UUID_TEXT];

	return json_text(uuid_text(device->uuid, text));
}

/* Bytes of the driver (total, free) are of the whole device and include other processes. */
#define OF struct fact_device
static const struct field device_fields[] = {
	{ "id", COUNT(ordinal) },
	{ "uuid", VALUE_OR_NULL(TEXT, uuid_of) },
	{ "name", TEXT(name) },
	{ "pci", WORD(pci) },
	{ "total_bytes", NUMBER(total_bytes) },
	{ "free_bytes", NUMBER(free_bytes) },
	{ "free_ns", NUMBER(free_ns), .meaning = "When the driver reported free memory; what was "
	  "allocated since is subtracted" },
	{ "peak_bytes", NUMBER(peak_bytes) },
	{ "peak_ns", NUMBER(peak_ns) },
	{ "peak_basis", BASIS(peak_basis) },
	{ "granularity_bytes", NUMBER(granularity_bytes) },
	{ "alloc_count", NUMBER(alloc_count) },
	{ "free_count", NUMBER(free_count) },
	{ "fail_count", NUMBER(fail_count) },
	{ "moment", OBJECT(moment, moment_shape) },
	{ "owners", LIST(owners, owner_count, owner_shape) },
	{ "largest_free", OBJECT(largest_free, layers_shape) },
	{ "fragmentation", OBJECT(fragmentation, fragmentation_shape) },
};
const struct shape device_shape = SHAPE("device", device_fields);
#undef OF
