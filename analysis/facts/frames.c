/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses to frames: the facts have the modules, symbols.h their functions,
 * python_names.h the names of Python code.
 */
#include "analysis/facts/frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/paths.h"
#include "analysis/base/xalloc.h"
#include "analysis/recording/python_names.h"
#include "analysis/symbols/function_name.h"

struct frames {
	const struct facts *facts;
	struct symbols *symbols;
	struct frame *items;
	size_t count, room;
	struct python_names **python; /* by process; NULL: not read yet */
};

struct frames *frames_new(const struct facts *facts, struct symbols *symbols)
{
	struct frames *frames = xalloc_zeroed(1, sizeof *frames);
	frames->facts = facts;
	frames->symbols = symbols;
	frames->python = xalloc_zeroed(facts->process_count, sizeof(struct python_names *));
	return frames;
}

void frames_free(struct frames *frames)
{
	if (!frames)
		return;
	for (size_t i = 0; i < frames->facts->process_count; i++)
		python_names_free(frames->python[i]);
	free(frames->python);
	free(frames->items);
	free(frames);
}

static void push(struct frames *frames, const struct frame *frame)
{
	xalloc_grow(&frames->items, frames->count, &frames->room, sizeof *frames->items);
	frames->items[frames->count++] = *frame;
}

/* An address that no module held: the recorder's note of its function is all there is. */
static void push_bare_address(struct frames *frames, const char *hint, uint64_t addr)
{
	const struct frame frame = {
		.function = hint, .language = "native", .addr = addr, .offset = addr,
	};
	push(frames, &frame);
}

/* Inlined calls make several frames of one address. */
static void push_address(struct frames *frames, const struct fact_process *process, uint64_t addr,
			 uint64_t time_ns)
{
	const struct fact_module *module = fact_module_at(process, addr, time_ns);
	const char *hint = fact_function_at(process, addr, module);
	const struct symbols_frame *names;
	struct symbols_module *file;
	uint64_t elf_address;
	size_t count;

	if (!module) {
		push_bare_address(frames, hint, addr);
		return;
	}
	elf_address = addr - module->base - 1; /* the call before the return address */
	file = symbols_module(frames->symbols, module->path, module->build_id,
		module->build_id_bytes);
	if (hint)
		symbols_hint(file, elf_address, hint, strlen(hint));
	count = symbols_resolve(file, elf_address, &names);
	for (size_t i = 0; i < count; i++) {
		const struct frame frame = {
			.function = names[i].function, .module = names[i].module,
			.file = names[i].file, .line = names[i].line, .language = names[i].language,
			.addr = addr, .offset = elf_address, .inlined = names[i].inlined,
		};
		push(frames, &frame);
	}
}

static void push_python(struct frames *frames, uint32_t process, uint64_t addr)
{
	struct python_names **names = &frames->python[process];
	const struct python_name *name;
	struct frame frame = { .language = "python", .addr = addr };

	if (!*names)
		*names = python_names_of(frames->facts->processes[process].texts,
					 frames->facts->processes[process].text_count);
	name = python_names_find(*names, cuf_frame_code(addr));
	if (name) {
		if (*name->function)
			frame.function = name->function;
		if (*name->file)
			frame.file = name->file;
		frame.library = python_file_is_library(name->file);
	}
	frame.line = cuf_frame_line(addr);
	push(frames, &frame);
}

size_t frames_of(struct frames *frames, const struct fact_stack *stack, const struct frame **out)
{
	frames->count = 0;
	for (uint32_t i = 0;
	     i < stack->depth && stack->process < frames->facts->process_count; i++) {
		const struct fact_process *process = &frames->facts->processes[stack->process];
		if (cuf_frame_is_python(stack->addrs[i]))
			push_python(frames, stack->process, stack->addrs[i]);
		else
			push_address(frames, process, stack->addrs[i], stack->time_ns);
	}
	*out = frames->items;
	return frames->count;
}

bool frame_is_python(const struct frame *frame)
{
	return !strcmp(frame->language, "python");
}

/* What holds the function, when its line is unknown. */
static const char *holder_of(const struct frame *frame)
{
	if (frame->module)
		return frame->module;
	if (frame->file)
		return path_base_name(frame->file);
	return "?";
}

void frame_function(const struct frame *frame, char *out, size_t bytes)
{
	*out = 0;
	if (frame->function && frame_is_python(frame))
		snprintf(out, bytes, "%.*s", (int)bytes, frame->function);
	else if (frame->function)
		function_name_short(frame->function, out, bytes);
}

void frame_text(const struct frame *frame, char *out, size_t bytes)
{
	char name[2048];
	/* a hostile name may be a megabyte long; printf would go through all of it */
	int most = (int)least_of(bytes, sizeof name);

	frame_function(frame, name, sizeof name);
	if (frame->function && frame->file && frame->line)
		snprintf(out, bytes, "%s  %.*s:%u", name, most, path_base_name(frame->file),
			 frame->line);
	else if (frame->function)
		snprintf(out, bytes, "%s  %.*s", name, most, holder_of(frame));
	else if (frame_is_python(frame))
		snprintf(out, bytes, "?  (a Python function whose name was not recorded)");
	else
		snprintf(out, bytes, "%.*s+%#llx", most, holder_of(frame),
			 (unsigned long long)frame->offset);
}
