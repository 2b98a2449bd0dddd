/* SPDX-License-Identifier: Apache-2.0 */
/* Frameworks' allocators and their segments as JSON values. */
#include "analysis/view/json/json_parts.h"

/*
 * Segments come by what is free in them; a stack each would be most of the document, and
 * few stacks ask for all of them.
 */
enum { SEGMENT_STACKS_MAX = 32 };

/* Call sites whose blocks keep segments alive that are otherwise free. */
static void stream_pins(struct json_stream *stream, struct frames *frames,
			const struct fact_framework *framework)
{
	json_stream_array(stream, "pins");
	for (size_t i = 0; json_stream_wants(stream, i, framework->pin_count); i++) {
		struct json_object *pin = json_object_new_object();
		json_add_number(pin, "segments", framework->pins[i].pages);
		json_add_number(pin, "open_bytes", framework->pins[i].open_bytes);
		json_add_number(pin, "bytes", framework->pins[i].bytes);
		json_add_number(pin, "count", framework->pins[i].count);
		json_add(pin, "stack", json_stack(frames, &framework->pins[i].stack));
		json_stream_value(stream, NULL, pin);
	}
	json_stream_close(stream);
	json_stream_left_out(stream, "pins_left_out", framework->pin_count);
}

/*
 * One row a process and framework. "reserved_bytes" is what it holds of the driver,
 * "allocated_bytes" what the program has of that.
 */
static struct json_object *json_framework(const struct facts *facts,
					  const struct fact_framework *framework)
{
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
	json_add_text(row, "largest_hole_basis", json_layer_words(&framework->largest_hole));
	return row;
}

void stream_frameworks(struct json_stream *stream, const struct facts *facts,
		       struct frames *frames, const struct fact_fragmentation *fragmentation)
{
	json_stream_array(stream, "frameworks");
	for (size_t i = 0; i < fragmentation->framework_count; i++) {
		const struct fact_framework *framework = &fragmentation->frameworks[i];
		json_stream_object(stream, NULL);
		json_stream_members(stream, json_framework(facts, framework));
		stream_pins(stream, frames, framework);
		json_stream_close(stream);
	}
	json_stream_close(stream);
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

/* The rows of all frameworks share one limit. */
void stream_segments(struct json_stream *stream, const struct facts *facts, struct frames *frames,
		     const struct fact_fragmentation *fragmentation)
{
	size_t count = 0;
	json_stream_array(stream, "segments");
	for (size_t i = 0; i < fragmentation->framework_count; i++) {
		const struct fact_framework *framework = &fragmentation->frameworks[i];
		for (size_t at = 0; at < framework->segment_count; at++)
			if (count++ < JSON_ROWS_MAX)
				json_stream_value(stream, NULL,
						  json_segment(facts, frames, framework, at));
	}
	json_stream_close(stream);
	json_stream_left_out(stream, "segments_left_out", count);
}
