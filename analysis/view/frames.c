/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to frames. Looks nothing up itself: facts.h knows modules, symbols.h names. */
#include "analysis/view/frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/recording/python_names.h"
#include "analysis/base/paths.h"
#include "analysis/base/xalloc.h"

/* A program's own allocation functions: the innermost frame of that many sites, with different callers. */
enum { WRAPPERS_MAX = 4, WRAPPER_SITES = 3, SITES_LOOKED_AT = 64 };

struct frames {
	const struct facts *facts;
	struct symbols *symbols;
	struct frame *items;
	size_t count, room;
	char *wrappers[WRAPPERS_MAX]; /* functions that say nothing in a line: every site begins with them */
	size_t wrapper_count;
	struct python_names **python; /* by process; NULL: not asked for yet */
};

static void learn_wrappers(struct frames *frames);

struct frames *frames_new(const struct facts *facts, struct symbols *symbols)
{
	struct frames *frames = xalloc_zeroed(1, sizeof *frames);
	frames->facts = facts;
	frames->symbols = symbols;
	frames->python = xalloc_zeroed(facts->process_count, sizeof(struct python_names *));
	learn_wrappers(frames);
	return frames;
}

void frames_free(struct frames *frames)
{
	if (!frames)
		return;
	for (size_t i = 0; i < frames->wrapper_count; i++)
		free(frames->wrappers[i]);
	for (size_t i = 0; i < frames->facts->process_count; i++)
		python_names_free(frames->python[i]);
	free(frames->python);
	free(frames->items);
	free(frames);
}

static void push(struct frames *frames, struct frame frame)
{
	xalloc_grow(&frames->items, frames->count, &frames->room, sizeof *frames->items);
	frames->items[frames->count++] = frame;
}

static void push_address(struct frames *frames, const struct fact_process *process, uint64_t addr, uint64_t time_ns)
{
	const struct fact_module *module = fact_module_at(process, addr, time_ns);
	const char *hint = fact_function_at(process, addr);
	const struct symbols_frame *names;
	struct symbols_module *file;
	uint64_t elf_address;
	size_t count;
	if (!module) {
		push(frames, (struct frame){ .function = hint, .language = "native", .addr = addr, .offset = addr });
		return;
	}
	elf_address = addr - module->base - 1; /* the call before the return address */
	file = symbols_module(frames->symbols, module->path, module->build_id, module->build_id_bytes);
	if (hint)
		symbols_hint(file, elf_address, hint, strlen(hint));
	count = symbols_resolve(file, elf_address, &names);
	for (size_t i = 0; i < count; i++)
		push(frames, (struct frame){ names[i].function, names[i].module, names[i].file, names[i].line, names[i].language, addr, elf_address,
			names[i].inlined, false });
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
		frame.function = *name->function ? name->function : NULL;
		frame.file = *name->file ? name->file : NULL;
		frame.library = python_file_is_library(name->file);
	}
	frame.line = cuf_frame_line(addr);
	push(frames, frame);
}

size_t frames_of(struct frames *frames, const struct fact_stack *stack, const struct frame **out)
{
	frames->count = 0;
	for (uint32_t i = 0; i < stack->depth && stack->process < frames->facts->process_count; i++) {
		if (cuf_frame_is_python(stack->addrs[i]))
			push_python(frames, stack->process, stack->addrs[i]);
		else
			push_address(frames, &frames->facts->processes[stack->process], stack->addrs[i], stack->time_ns);
	}
	*out = frames->items;
	return frames->count;
}

static bool is_python(const struct frame *frame) { return !strcmp(frame->language, "python"); }

void frames_text(const struct frame *frame, char *out, size_t bytes)
{
	if (frame->function && frame->file && frame->line)
		snprintf(out, bytes, "%s  %s:%u", frame->function, path_base_name(frame->file), frame->line);
	else if (frame->function)
		snprintf(out, bytes, "%s  %s", frame->function, frame->module ? frame->module : frame->file ? path_base_name(frame->file) : "?");
	else if (is_python(frame))
		snprintf(out, bytes, "?  (a Python function whose name was lost)");
	else
		snprintf(out, bytes, "%s+%#llx", frame->module ? frame->module : "?", (unsigned long long)frame->offset);
}

/* "std::vector<int>::push_back(int const&)" without its arguments: a line has room for names alone. */
static int name_bytes(const char *function)
{
	const char *open = strrchr(function, '(');
	return open && open != function && open[-1] != ' ' && !strchr(function, '<') ? (int)(open - function) : (int)strlen(function);
}

/* What lies below these is start-up code, of libc or of the interpreter, the same in every program. */
static bool is_outermost(const struct frame *frame)
{
	static const char *const names[] = { "main", "start_thread", "__libc_start_main", "_start" };
	if (!frame->function || is_python(frame))
		return frame->function && !strcmp(frame->function, "<module>");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(frame->function, names[i]))
			return true;
	return false;
}

/* The innermost frame of the user's own Python, else of any; 0: there is none, or it is that of the native code. */
static size_t first_python(const struct frame *items, size_t count)
{
	size_t any = 0;
	for (size_t i = 0; i < count; i++) {
		if (is_python(&items[i]) && !items[i].library)
			return i;
		if (is_python(&items[i]) && !any)
			any = i;
	}
	return any;
}

/* What allocates for others says nothing of who needed the memory: the CUDA runtime, PyTorch's allocator. */
static bool is_allocator(const char *module)
{
	static const char *const modules[] = { "libcudart", "libc10" };
	for (size_t i = 0; module && i < sizeof modules / sizeof *modules; i++)
		if (!strncmp(module, modules[i], strlen(modules[i])))
			return true;
	return false;
}

/* Where a line begins: behind the CUDA runtime and the program's own wrappers. The last frame stays in any case. */
static size_t first_telling(const struct frames *frames, const struct frame *items, size_t count)
{
	size_t first = first_python(items, count);
	for (; first + 1 < count; first++) {
		const char *function = items[first].function;
		bool tells = !is_allocator(items[first].module);
		for (size_t i = 0; tells && function && i < frames->wrapper_count; i++)
			tells = strcmp(frames->wrappers[i], function) != 0;
		if (tells || is_outermost(&items[first]) || is_outermost(&items[first + 1]))
			break;
	}
	return first;
}

/* The function that most sites begin with, when it is called from different places; NULL: none. Owned by the caller. */
static char *common_beginning(struct frames *frames)
{
	struct { const char *leaf, *caller; } seen[SITES_LOOKED_AT];
	size_t count = 0;
	for (size_t i = 0; i < frames->facts->leak_count && count < SITES_LOOKED_AT; i++) {
		const struct frame *items;
		size_t depth = frames_of(frames, &frames->facts->leaks[i].stack, &items), first = first_telling(frames, items, depth);
		if (first + 1 < depth && items[first].function && items[first + 1].function) {
			seen[count].leaf = items[first].function;
			seen[count++].caller = items[first + 1].function;
		}
	}
	for (size_t i = 0; i < count; i++) {
		size_t sites = 0, callers = 0;
		for (size_t j = 0; j < count; j++) {
			bool same = !strcmp(seen[i].leaf, seen[j].leaf);
			sites += same;
			callers += same && strcmp(seen[i].caller, seen[j].caller);
		}
		if (sites >= WRAPPER_SITES && 2 * sites > count && callers)
			return xalloc_string(seen[i].leaf);
	}
	return NULL;
}

static void learn_wrappers(struct frames *frames)
{
	char *name;
	while (frames->wrapper_count < WRAPPERS_MAX && (name = common_beginning(frames)))
		frames->wrappers[frames->wrapper_count++] = name;
}

void frames_line(struct frames *frames, const struct fact_stack *stack, char *out, size_t bytes)
{
	const struct frame *items;
	size_t count = frames_of(frames, stack, &items), first = first_telling(frames, items, count), used = 0;
	snprintf(out, bytes, "?");
	for (size_t i = first; i < count && used + 1 < bytes; i++) {
		const struct frame *f = &items[i];
		char place[128] = "";
		if (i == first && f->function && f->file && f->line)
			snprintf(place, sizeof place, " (%s:%u)", path_base_name(f->file), f->line);
		int length = f->function ? snprintf(out + used, bytes - used, "%s%.*s%s", used ? " < " : "", name_bytes(f->function), f->function, place) :
			is_python(f) ? snprintf(out + used, bytes - used, "%sa Python function", used ? " < " : "") :
			snprintf(out + used, bytes - used, "%s%s+%#llx", used ? " < " : "", f->module ? f->module : "", (unsigned long long)f->offset);
		if (length < 0)
			return;
		used += (size_t)length;
		if (is_outermost(f))
			return;
	}
}
