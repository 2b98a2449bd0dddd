/* SPDX-License-Identifier: Apache-2.0 */
/* Frameworks' allocators and their segments as JSON values. */
#include "analysis/view/json/json_parts.h"

/* Segments come by what is free in them; a stack each would be most of the document, and few stacks ask for all of them. */
enum { SEGMENT_STACKS_MAX = 32 };

static struct json_object *json_pins(struct frames *frames, const struct fact_framework *f)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < f->pin_count; i++) {
		struct json_object *pin = json_object_new_object();
		json_add_number(pin, "segments", f->pins[i].pages);
		json_add_number(pin, "open_bytes", f->pins[i].open_bytes);
		json_add_number(pin, "bytes", f->pins[i].bytes);
		json_add_number(pin, "count", f->pins[i].count);
		json_add(pin, "stack", json_stack(frames, &f->pins[i].stack));
		json_object_array_add(array, pin);
	}
	return array;
}

struct json_object *json_frameworks(const struct facts *facts, struct frames *frames, const struct fact_fragmentation *fragmentation)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < fragmentation->framework_count; i++) {
		const struct fact_framework *f = &fragmentation->frameworks[i];
		struct json_object *row = json_object_new_object();
		json_add(row, "pid", json_pid(facts, f->process));
		json_add_text(row, "name", f->name);
		json_add_text(row, "version", *f->version ? f->version : NULL);
		json_add_text(row, "backend", *f->backend ? f->backend : NULL);
		json_add_number(row, "allocated_bytes", f->allocated_bytes);
		json_add_number(row, "reserved_bytes", f->reserved_bytes);
		json_add_number(row, "placed_bytes", f->placed_bytes);
		json_add_basis(row, f->basis);
		json_add_number(row, "segment_count", f->segment_count);
		json_add_number(row, "empty_bytes", f->empty_bytes);
		json_add_number(row, "emptyable_bytes", f->emptyable_bytes);
		json_add_number(row, "largest_hole_bytes", f->largest_hole.bytes);
		json_add_text(row, "largest_hole_basis", f->largest_hole.bytes == CUF_UNKNOWN ? NULL : f->largest_hole.words);
		json_add(row, "pins", json_pins(frames, f));
		json_object_array_add(array, row);
	}
	return array;
}

static struct json_object *json_segment(const struct facts *facts, struct frames *frames, const struct fact_framework *f, size_t index)
{
	const struct fact_segment *s = &f->segments[index];
	struct json_object *row = json_object_new_object();
	json_add(row, "pid", json_pid(facts, s->process));
	json_add_text(row, "framework", f->name);
	json_add_hex(row, "address", s->addr);
	json_add_number(row, "bytes", s->bytes);
	json_add_number(row, "live_bytes", s->live_bytes);
	json_add_number(row, "live_count", s->live_count);
	json_add_number(row, "largest_hole_bytes", s->largest_hole_bytes);
	json_add_number(row, "hole_count", s->hole_count);
	json_add_number(row, "serves_least_bytes", s->serves_least_bytes);
	json_add_number(row, "serves_most_bytes", s->serves_most_bytes);
	json_add_bool(row, "expandable", s->expandable);
	json_add_number(row, "born_ns", s->born_ns);
	json_add(row, "stack", index < SEGMENT_STACKS_MAX ? json_stack(frames, &s->stack) : NULL);
	return row;
}

struct json_object *json_segments(const struct facts *facts, struct frames *frames, const struct fact_fragmentation *fragmentation)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < fragmentation->framework_count; i++)
		for (size_t s = 0; s < fragmentation->frameworks[i].segment_count; s++)
			json_object_array_add(array, json_segment(facts, frames, &fragmentation->frameworks[i], s));
	return array;
}
