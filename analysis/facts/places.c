/* SPDX-License-Identifier: Apache-2.0 */
/* Which frame of a stack a person means by "where", and its callers in a few words. */
#include "analysis/facts/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/paths.h"
#include "analysis/base/xalloc.h"
#include "analysis/symbols/frameworks.h"
#include "analysis/symbols/runtimes.h"
#include "analysis/symbols/function_name.h"
#include "analysis/symbols/library_names.h"

/* A wrapper is the innermost frame of at least this many paths, with different callers. */
enum { WRAPPERS_MAX = 4, WRAPPER_SITES = 3, SITES_LOOKED_AT = 64 };

struct places {
	const struct facts *facts;
	struct frames *frames;
	/* the program's allocation functions: most sites begin there */
	char *wrappers[WRAPPERS_MAX];
	size_t wrapper_count;
};

/*
 * Everything below these is start-up code of libc or of the interpreter, the same in every
 * program.
 */
static bool is_outermost(const struct frame *frame)
{
	static const char *const names[] = {
		"main", "start_thread", "__libc_start_main", "__libc_start_call_main", "_start",
	};
	if (!frame->function)
		return false;
	if (frame_is_python(frame))
		return !strcmp(frame->function, "<module>");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(frame->function, names[i]))
			return true;
	return false;
}

bool places_is_interpreter(const struct frame *frame)
{
	return frame->module && is_python_interpreter(frame->module);
}

/* Code that allocates for others: who needed the memory is one of its callers. */
static bool is_library(const struct frame *frame)
{
	if (frame_is_python(frame))
		return frame->library;
	if (frame->module &&
	    (is_allocator_front(frame->module) || runtime_of_module(frame->module)))
		return true;
	return is_library_code(frame->function, frame->module, frame->file);
}

/* The interpreter's own Python: what runs an import. */
static bool is_frozen(const struct frame *frame)
{
	return frame->file && !strncmp(frame->file, "<frozen ", 8);
}

/* The innermost frame of the user's Python, else of a library, else of any; 0: there is none. */
static size_t first_python(const struct frame *items, size_t count)
{
	size_t library = count, any = count;

	for (size_t i = 0; i < count; i++) {
		if (!frame_is_python(&items[i]))
			continue;
		if (!items[i].library)
			return i;
		if (any == count)
			any = i;
		if (library == count && !is_frozen(&items[i]))
			library = i;
	}
	if (library < count)
		return library;
	return any < count ? any : 0;
}

static bool is_wrapper(const struct places *places, const struct frame *frame)
{
	for (size_t i = 0; frame->function && i < places->wrapper_count; i++)
		if (!strcmp(places->wrappers[i], frame->function))
			return true;
	return false;
}

/*
 * The frame that a line begins with: behind libraries and the program's wrappers. The last
 * frame always counts.
 */
size_t places_own_frame(const struct places *places, const struct frame *items, size_t count)
{
	size_t first = first_python(items, count);
	for (; first + 1 < count; first++) {
		bool library = is_library(&items[first]);

		if (is_outermost(&items[first]) || frame_is_python(&items[first]))
			break;
		if (!library && !is_wrapper(places, &items[first]))
			break;
		/* main may have called the library */
		if (is_outermost(&items[first + 1]) &&
		    (!library || is_library(&items[first + 1])))
			break;
	}
	return first;
}

/* path: a hash of the frames from the leaf on */
struct pair { const char *leaf, *caller; uint64_t path; };

static uint64_t path_of(const struct frame *frames, size_t count)
{
	uint64_t path = 0;
	for (size_t i = 0; i < count; i++)
		path = (path ^ frames[i].addr) * 0x9e3779b97f4a7c15u;
	return path;
}

static bool has_path(const struct pair *pairs, size_t count, uint64_t path)
{
	for (size_t i = 0; i < count; i++)
		if (pairs[i].path == path)
			return true;
	return false;
}

/*
 * The innermost frames of the sites, and who called them, each path once: what a library allocates
 * below one call are many sites. Frames' texts live as long as the frames.
 */
static size_t collect_pairs(struct places *places, struct pair *pairs)
{
	size_t count = 0;
	for (size_t i = 0; i < places->facts->leak_count && count < SITES_LOOKED_AT; i++) {
		const struct frame *items;
		size_t depth = frames_of(places->frames, &places->facts->leaks[i].stack, &items);
		size_t first = places_own_frame(places, items, depth);
		uint64_t path;
		if (first + 1 >= depth || !items[first].function || !items[first + 1].function)
			continue;
		path = path_of(items + first, depth - first);
		if (!has_path(pairs, count, path))
			pairs[count++] = (struct pair){
				items[first].function, items[first + 1].function, path,
			};
	}
	return count;
}

/*
 * The function that most paths begin with, when several functions call it; NULL: none.
 * Owned by the caller.
 */
static char *find_wrapper(struct places *places)
{
	struct pair pairs[SITES_LOOKED_AT];
	size_t count = collect_pairs(places, pairs);
	for (size_t i = 0; i < count; i++) {
		size_t sites = 0, callers = 0;
		for (size_t j = 0; j < count; j++) {
			bool same = !strcmp(pairs[i].leaf, pairs[j].leaf);
			sites += same;
			callers += same && strcmp(pairs[i].caller, pairs[j].caller);
		}
		if (sites >= WRAPPER_SITES && 2 * sites > count && callers)
			return xalloc_string(pairs[i].leaf);
	}
	return NULL;
}

struct places *places_new(const struct facts *facts, struct frames *frames)
{
	struct places *places = xalloc_zeroed(1, sizeof *places);
	char *name;
	places->facts = facts;
	places->frames = frames;
	while (places->wrapper_count < WRAPPERS_MAX && (name = find_wrapper(places)))
		places->wrappers[places->wrapper_count++] = name;
	return places;
}

void places_free(struct places *places)
{
	if (!places)
		return;
	for (size_t i = 0; i < places->wrapper_count; i++)
		free(places->wrappers[i]);
	free(places);
}

static void function_text(const struct frame *frame, char *out, size_t bytes)
{
	if (frame->function)
		frame_function(frame, out, bytes);
	else if (frame_is_python(frame))
		snprintf(out, bytes, "a Python function");
	else
		snprintf(out, bytes, "%s+%#llx", frame->module ? frame->module : "",
			 (unsigned long long)frame->offset);
}

static const char *file_of(const struct frame *frame)
{
	if (frame->file && frame->line)
		return path_base_name(frame->file);
	return "";
}

/*
 * One more caller. The line number follows where it is known, the file where it differs
 * from `file`. False: there is no room for it.
 */
static bool add_caller(struct place *place, const struct frame *frame)
{
	size_t used = strlen(place->callers);
	const char *file = file_of(frame);
	char name[160], where[128] = "";
	function_text(frame, name, sizeof name);
	if (*file && !strcmp(file, place->file))
		snprintf(where, sizeof where, " (:%u)", frame->line);
	if (used + strlen(name) + strlen(where) + 4 >= sizeof place->callers)
		return false;
	snprintf(place->callers + used, sizeof place->callers - used, "%s%s%s",
		 used ? " < " : "", name, where);
	return true;
}

/* "Java heap" of a stack that is a runtime's; NULL: it is the program's. */
static const char *owner_of(const struct frame *items, size_t count)
{
	struct runtime_look look = { 0 };
	bool is_heap;

	for (size_t i = 0; i < count && !look.is_own; i++)
		if (frame_is_python(&items[i]))
			look.is_own = true;
		else if (items[i].module)
			runtime_look_at(&look, items[i].function, items[i].module,
					is_library(&items[i]));
	return runtime_owner(&look, &is_heap);
}

void place_of(struct places *places, const struct fact_stack *stack, struct place *out)
{
	const struct frame *items;
	size_t count = frames_of(places->frames, stack, &items);
	size_t first = places_own_frame(places, items, count);
	const char *owner = owner_of(items, count);

	*out = (struct place){ .function = "?" };
	if (!count)
		return;
	if (owner) {
		snprintf(out->function, sizeof out->function, "%s", owner);
		return;
	}
	if (places_is_interpreter(&items[first])) {
		snprintf(out->function, sizeof out->function, "Python interpreter");
		return;
	}
	function_text(&items[first], out->function, sizeof out->function);
	snprintf(out->file, sizeof out->file, "%s", file_of(&items[first]));
	if (*out->file)
		out->line = items[first].line;
	out->in_thread = stack->is_joined;
	for (size_t i = first + 1; i < count && !is_outermost(&items[i - 1]); i++)
		if (!is_library(&items[i]) && !places_is_interpreter(&items[i]) &&
		    !add_caller(out, &items[i]))
			break;
}

bool place_is_same(const struct place *place, const struct place *other)
{
	return place->line == other->line && !strcmp(place->function, other->function) &&
	       !strcmp(place->file, other->file);
}

static bool has_own(const struct frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!is_library(&frames[i]) && !places_is_interpreter(&frames[i]) &&
		    !is_outermost(&frames[i]))
			return true;
	return false;
}

bool places_shows(const struct frame *frames, size_t count, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (is_outermost(&frames[i]))
			return false;
	if (index + 1 == count ||
	    (!is_library(&frames[index]) && !places_is_interpreter(&frames[index])))
		return true;
	/* a stack of libraries only is shown whole */
	return !has_own(frames, count);
}

void places_drawn(const struct places *places, const struct frame *frames, size_t count,
		  bool *drawn)
{
	size_t named = places_own_frame(places, frames, count);
	bool own = has_own(frames, count);

	for (size_t i = 0; i < count; i++) {
		bool skipped = is_library(&frames[i]) || places_is_interpreter(&frames[i]);
		drawn[i] = !skipped || (!own && i == named) || i + 1 == count;
		if (!is_outermost(&frames[i]))
			continue;
		memset(drawn + i + 1, 0, (count - i - 1) * sizeof *drawn);
		return;
	}
}

bool place_has_same_path(const struct place *place, const struct place *other)
{
	return place_is_same(place, other) && !strcmp(place->callers, other->callers);
}

void place_function(const struct place *place, size_t columns, char *out, size_t bytes)
{
	function_name_fit(place->function, columns, out, bytes);
}

bool place_shares_row(const struct place *place, const char *role, const struct place *other,
		      const char *other_role, bool is_host)
{
	if (role && other_role && strcmp(role, other_role) != 0)
		return false;
	return is_host ? place_is_same(place, other) : place_has_same_path(place, other);
}

const char *place_thread(const struct place *place)
{
	return place->in_thread ? ", in a thread" : "";
}

void place_text(const struct place *place, char *out, size_t bytes)
{
	if (*place->file)
		snprintf(out, bytes, "%s (%s:%u)%s", place->function, place->file, place->line,
			 place_thread(place));
	else
		snprintf(out, bytes, "%s%s", place->function, place_thread(place));
}

void place_line(struct places *places, const struct fact_stack *stack, size_t columns, char *out,
		size_t bytes)
{
	struct place place;
	size_t used, length;
	place_of(places, stack, &place);
	place_text(&place, out, bytes);
	used = strlen(out);
	for (const char *caller = place.callers; *caller; caller += length) {
		const char *end = strstr(caller, " < ");
		length = strlen(caller);
		if (end)
			length = (size_t)(end - caller);
		if (used + 3 + length > columns || used + 3 + length >= bytes)
			return;
		used += (size_t)snprintf(out + used, bytes - used, " < %.*s", (int)length, caller);
		if (end)
			length += 3; /* " < " */
	}
}
