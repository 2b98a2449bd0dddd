/* SPDX-License-Identifier: Apache-2.0 */
/* Frameworks' allocators and their segments as JSON values. */
#include "analysis/view/json/json_parts.h"

/*
 * Segments come by what is free in them; a stack each would be most of the document, and
 * few stacks ask for all of them.
 */
enum { SEGMENT_STACKS_MAX = 32 };

/* Call sites whose blocks keep segments alive that are otherwise free. */
static struct json_object *json_pins(struct frames *frames, const struct fact_framework *framework)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < framework->pin_count; i++) {
		struct json_object *pin = json_object_new_object();
		json_add_number(pin, "segments", framework->pins[i].pages);
		json_add_number(pin, "open_bytes", framework->pins[i].open_bytes);
		json_add_number(pin, "bytes", framework->pins[i].bytes);
		json_add_number(pin, "count", framework->pins[i].count);
		json_add(pin, "stack", json_stack(frames, &framework->pins[i].stack));
		json_object_array_add(array, pin);
	}
	return array;
}

/*
 * One row a process and framework. "reserved_bytes" is what it holds of the driver,
 * "allocated_bytes" what the program has of that.
 */
struct json_object *json_frameworks(const struct facts *facts, struct frames *frames,
				    const struct fact_fragmentation *fragmentation)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < fragmentation->framework_count; i++) {
		const struct fact_framework *framework = &fragmentation->frameworks[i];
		struct json_object *row = json_object_new_object();
		json_add(row, "pid", json_pid(facts, framework->process));
		json_add_text(row, "name", framework->name);
		json_add_word(row, "version", framework->version);
		json_add_word(row, "backend", framework->backend);
		json_add_number(row, "allocated_bytes", framework->allocated_bytes);
		json_add_number(row, "reserved_bytes", framework->reserved_bytes);
		json_add_number(row, "placed_bytes", framework->placed_bytes);
		json_add_basis(row, framework->basis);
		json_add_number(row, "segment_count", framework->segment_count);
		json_add_number(row, "empty_bytes", framework->empty_bytes);
		json_add_number(row, "emptyable_bytes", framework->emptyable_bytes);
		json_add_number(row, "largest_hole_bytes", framework->largest_hole.bytes);
		json_add_text(row, "largest_hole_basis",
			      json_layer_words(&framework->largest_hole));
		json_add(row, "pins", json_pins(frames, framework));
		json_object_array_add(array, row);
	}
	return array;
}

/*
 * The request sizes that a segment serves are a range: PyTorch, for example, keeps small and
 * large requests in different segments.
 */
static struct json_object *json_segment(const struct facts *facts, struct frames *frames,
					const struct fact_framework *framework, size_t index)
{
	const struct fact_segment *segment = &framework->segments[index];
	struct json_object *row = json_object_new_object(), *stack = NULL;
	json_add(row, "pid", json_pid(facts, segment->process));
	json_add_text(row, "framework", framework->name);
	json_add_hex(row, "address", segment->addr);
	json_add_number(row, "bytes", segment->bytes);
	json_add_number(row, "live_bytes", segment->live_bytes);
	json_add_number(row, "live_count", segment->live_count);
	json_add_number(row, "largest_hole_bytes", segment->largest_hole_bytes);
	json_add_number(row, "hole_count", segment->hole_count);
	json_add_number(row, "serves_least_bytes", segment->serves_least_bytes);
	json_add_number(row, "serves_most_bytes", segment->serves_most_bytes);
	json_add_bool(row, "expandable", segment->expandable);
	json_add_number(row, "born_ns", segment->born_ns);
	if (index < SEGMENT_STACKS_MAX)
		stack = json_stack(frames, &segment->stack);
	json_add(row, "stack", stack);
	return row;
}

struct json_object *json_segments(const struct facts *facts, struct frames *frames,
				  const struct fact_fragmentation *fragmentation)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < fragmentation->framework_count; i++) {
		const struct fact_framework *framework = &fragmentation->frameworks[i];
		for (size_t index = 0; index < framework->segment_count; index++)
			json_object_array_add(array, json_segment(facts, frames, framework, index));
	}
	return array;
}
