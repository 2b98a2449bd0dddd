/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each address gets the number of what it prints as (a text interned once), and each stack the hash
 * of its numbers. A hash is only a hint: two stacks are compared frame by frame before they merge.
 */
#include "analysis/recording/stack_identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "analysis/base/hash_index.h"
#include "analysis/recording/python_names.h"
#include "analysis/symbols/library_names.h"
#include "analysis/symbols/symbols.h"

#define AMBIGUOUS UINT32_MAX

/* What some addresses print as; bytes may be anything, so the key is counted. */
struct print {
	uint32_t number;
	UT_hash_handle hh;
	char bytes[];
};

/* Where the frames of the creator begin in a stack that is joined to it; 0: it is not. */
struct joint {
	uint32_t at;
	bool has_python; /* from there on */
};

struct naming {
	const struct reader *reader;
	const struct meta *meta;
	struct symbols *symbols;        /* NULL: the recording's names only */
	struct python_names *python;
	struct print *prints;
	struct hash_index of_address;   /* address to number of its print */
	uint32_t print_count;
	bool is_library;                /* the address that is being named */
	uint8_t *libraries;             /* by number of a print */
	size_t library_room;
	uint64_t **joined;              /* by stack id; see struct stack_identities */
	size_t joined_room;             /* frames that may still be added to stacks */
	struct joint *joints;           /* by stack id */
	bool was_any_unloaded;          /* a module; only then an address may be ambiguous */
	char *text;                     /* of the address that is being named */
	size_t text_bytes, text_room;
};

static void append_text(struct naming *naming, const char *text)
{
	for (; *text; text++) {
		xalloc_grow(&naming->text, naming->text_bytes, &naming->text_room, 1);
		naming->text[naming->text_bytes++] = *text;
	}
	/* a separator, so that neighbouring texts cannot run into each other */
	xalloc_grow(&naming->text, naming->text_bytes, &naming->text_room, 1);
	naming->text[naming->text_bytes++] = 0;
}

static void append_number(struct naming *naming, const char *sort, uint64_t number)
{
	char text[40];

	snprintf(text, sizeof text, "%s%" PRIx64, sort, number);
	append_text(naming, text);
}

static void append_native_frame(struct naming *naming, const struct symbols_frame *frame,
				uint64_t offset)
{
	append_text(naming, frame->module);
	if (!frame->function) {
		append_number(naming, "+", offset);
		return;
	}
	append_text(naming, frame->function);
	if (!frame->file || !frame->line)
		return;
	append_text(naming, frame->file);
	append_number(naming, ":", frame->line);
}

/* A name that the recorder wrote is "symbol" or "symbol+0x1f"; the offset is not displayed. */
static void append_recorded_name(struct naming *naming, const char *module, const char *name)
{
	const char *offset = strstr(name, "+0x");
	char *symbol = xalloc_string(name);

	if (offset)
		symbol[offset - name] = 0;
	append_text(naming, module);
	append_text(naming, symbol);
	naming->is_library = is_library_code(symbol, module, NULL);
	free(symbol);
}

static void append_native(struct naming *naming, uint64_t addr)
{
	const struct meta *meta = naming->meta;
	const struct fact_module *module =
		module_at(meta->modules, meta->module_count, addr, CUF_UNKNOWN);
	const struct fact_functions functions = { meta->functions, meta->function_count,
						  meta->modules };
	const char *hint = function_at(&functions, addr, module);
	const struct symbols_frame *frames;
	struct symbols_module *file;
	uint64_t offset;
	size_t count;

	if (!module || !naming->symbols) {
		if (hint)
			append_recorded_name(naming, module ? module->path : "", hint);
		else if (module)
			append_number(naming, module->path, addr - module->base);
		else
			append_number(naming, "", addr);
		return;
	}
	offset = addr - module->base - 1; /* the call, not the instruction after it */
	file = symbols_module(naming->symbols, module->path, module->build_id,
			      module->build_id_bytes);
	if (hint)
		symbols_hint(file, offset, hint, strlen(hint));
	count = symbols_resolve(file, offset, &frames);
	naming->is_library = true;
	for (size_t i = 0; i < count; i++) {
		append_native_frame(naming, &frames[i], offset);
		naming->is_library &= is_library_code(frames[i].function, frames[i].module,
						      frames[i].file);
	}
}

static void append_python(struct naming *naming, uint64_t addr)
{
	const struct python_name *name =
		python_names_find(naming->python, cuf_frame_code(addr));

	append_text(naming, "python");
	if (name && *name->function) {
		naming->is_library = python_file_is_library(name->file);
		append_text(naming, name->function);
		append_text(naming, name->file);
	} else {
		append_number(naming, "code ", cuf_frame_code(addr));
	}
	append_number(naming, ":", cuf_frame_line(addr));
}

/*
 * The number of what an address prints as, from 1; equal numbers mean equal text. AMBIGUOUS: that
 * depends on the time, because another module had the address before.
 */
static uint32_t print_of(struct naming *naming, uint64_t addr)
{
	uint32_t *number = hash_index_place(&naming->of_address, addr);
	struct print *print;

	if (*number)
		return *number;
	if (!cuf_frame_is_python(addr) && naming->was_any_unloaded &&
	    module_is_ambiguous(naming->meta->modules, naming->meta->module_count, addr))
		return *number = AMBIGUOUS;
	naming->text_bytes = 0;
	naming->is_library = false;
	if (cuf_frame_is_python(addr))
		append_python(naming, addr);
	else
		append_native(naming, addr);
	HASH_FIND(hh, naming->prints, naming->text, naming->text_bytes, print);
	if (!print) {
		print = xalloc_bytes(sizeof *print + naming->text_bytes);
		print->number = ++naming->print_count;
		memcpy(print->bytes, naming->text, naming->text_bytes);
		HASH_ADD_KEYPTR(hh, naming->prints, print->bytes, naming->text_bytes, print);
		xalloc_grow(&naming->libraries, print->number, &naming->library_room, 1);
		naming->libraries[print->number] = naming->is_library;
	}
	return *number = print->number;
}

/* ---- what two stacks are compared by ---- */

static const char *module_of(const struct naming *naming, uint64_t addr)
{
	const struct fact_module *module = module_at(naming->meta->modules,
						     naming->meta->module_count, addr, CUF_UNKNOWN);

	return module ? module->path : "";
}

/* Code that is not the program's. A Python package's native code has a library's path. */
static bool is_of_library(struct naming *naming, uint64_t addr)
{
	uint32_t print = print_of(naming, addr);

	if (print == AMBIGUOUS || naming->libraries[print])
		return true;
	return !cuf_frame_is_python(addr) && python_file_is_library(module_of(naming, addr));
}

static bool has_python(const uint64_t *addrs, uint32_t depth)
{
	for (uint32_t i = 0; i < depth; i++)
		if (cuf_frame_is_python(addrs[i]))
			return true;
	return false;
}

/* The index of the next frame of the program, from `at` on; depth: there is none. Where there is
 * Python, the program is written in it. */
static uint32_t next_own(struct naming *naming, const uint64_t *addrs, uint32_t depth, uint32_t at,
			 bool has_python)
{
	while (at < depth && ((has_python && !cuf_frame_is_python(addrs[at])) ||
			      is_of_library(naming, addrs[at])))
		at++;
	return at;
}

/* The index of the next frame that tells call sites apart. Of a thread's creator only the program's
 * lines do: at which of its calls a library needed one thread more is chance, as is the thread that
 * it takes for its work. */
static uint32_t next_told(struct naming *naming, uint32_t id, const uint64_t *addrs, uint32_t depth,
			  uint32_t at)
{
	const struct joint *joint = &naming->joints[id];

	if (!joint->at || at < joint->at)
		return at;
	return next_own(naming, addrs, depth, at, joint->has_python);
}

/* false: what it prints as depends on the time. */
static bool hash_stack(struct naming *naming, uint32_t id, const uint64_t *addrs, uint32_t depth,
		       uint64_t *hash)
{
	*hash = naming->joints[id].at;
	for (uint32_t i = 0; (i = next_told(naming, id, addrs, depth, i)) < depth; i++) {
		uint32_t print = print_of(naming, addrs[i]);

		if (print == AMBIGUOUS)
			return false;
		*hash = (*hash ^ print) * 0x9E3779B97F4A7C15ull;
		*hash ^= *hash >> 29;
	}
	return true;
}

/* reader_stack, with what this file adds to it. */
static const uint64_t *frames_of(const struct naming *naming, uint32_t id, uint32_t *depth)
{
	uint8_t stop;
	const uint64_t *frames = reader_stack(naming->reader, id, depth, &stop);

	if (!frames || !naming->joined[id])
		return frames;
	*depth = (uint32_t)naming->joined[id][0];
	return naming->joined[id] + 1;
}

static bool prints_alike(struct naming *naming, uint32_t other, uint32_t id, const uint64_t *addrs,
			 uint32_t depth)
{
	uint32_t other_depth, i = 0, j = 0;
	const uint64_t *other_addrs = frames_of(naming, other, &other_depth);

	if (!other_addrs || naming->joints[other].at != naming->joints[id].at)
		return false;
	for (;; i++, j++) {
		i = next_told(naming, id, addrs, depth, i);
		j = next_told(naming, other, other_addrs, other_depth, j);
		if (i == depth || j == other_depth)
			return i == depth && j == other_depth;
		if (addrs[i] != other_addrs[j] &&
		    print_of(naming, addrs[i]) != print_of(naming, other_addrs[j]))
			return false;
	}
}

static bool was_any_unloaded(const struct meta *meta)
{
	for (size_t i = 0; i < meta->module_count; i++)
		if (meta->modules[i].unloaded_ns != CUF_UNKNOWN)
			return true;
	return false;
}

static void naming_fini(struct naming *naming)
{
	struct print *print, *next;

	HASH_ITER(hh, naming->prints, print, next) {
		HASH_DEL(naming->prints, print);
		free(print);
	}
	hash_index_fini(&naming->of_address);
	python_names_free(naming->python);
	free(naming->joints);
	free(naming->libraries);
	free(naming->text);
}

/* What the place of a stack prints as; 0: it has none, or that depends on the time. */
static uint32_t naming_place(struct naming *naming, const uint64_t *addrs, uint32_t depth)
{
	uint32_t innermost = 0;

	for (uint32_t i = 0; i < depth; i++) {
		uint32_t print = cuf_frame_is_python(addrs[i]) ? print_of(naming, addrs[i]) : 0;

		if (print && !naming->libraries[print])
			return print;
		innermost = innermost ? innermost : print;
	}
	if (innermost)
		return innermost;
	for (uint32_t i = 0; i < depth; i++) {
		uint32_t print = print_of(naming, addrs[i]);

		if (print == AMBIGUOUS)
			return 0;
		if (!naming->libraries[print])
			return print;
	}
	return 0;
}

/* ---- stacks of threads ---- */

static bool has_own_frame(struct naming *naming, const uint64_t *addrs, uint32_t depth)
{
	return next_own(naming, addrs, depth, 0, has_python(addrs, depth)) < depth;
}

/* The frames before the C library's, which runs the thread. */
static uint32_t without_start(struct naming *naming, const uint64_t *addrs, uint32_t depth)
{
	while (depth > 1 && !cuf_frame_is_python(addrs[depth - 1]) &&
	       is_c_library(module_of(naming, addrs[depth - 1])))
		depth--;
	return depth;
}

/* A thread's creator is in a thread, too. Its stack may be joined, and so is looked at before. */
enum { CREATORS_MAX = 4 };

static void join_frames(struct naming *naming, uint32_t id, uint32_t end, unsigned level)
{
	uint32_t creator = reader_stack_creator(naming->reader, id), depth, more;
	const uint64_t *addrs = frames_of(naming, id, &depth), *creators;
	uint64_t *joined;

	if (!creator || creator >= end || !addrs || naming->joined[id] || level == CREATORS_MAX ||
	    has_own_frame(naming, addrs, depth))
		return;
	join_frames(naming, creator, end, level + 1);
	creators = frames_of(naming, creator, &more);
	depth = without_start(naming, addrs, depth);
	if (!creators || naming->joined[id] || depth + more > naming->joined_room)
		return;
	/* a runtime's own thread: which one works is chance, and no other call site */
	if (!has_own_frame(naming, creators, more))
		return;
	naming->joined_room -= depth + more;
	joined = xalloc_bytes((1 + (size_t)depth + more) * sizeof *joined);
	joined[0] = depth + more;
	naming->joints[id] = (struct joint){ depth, has_python(creators, more) };
	memcpy(joined + 1, addrs, depth * sizeof *addrs);
	memcpy(joined + 1 + depth, creators, more * sizeof *creators);
	naming->joined[id] = joined;
}

/* A hostile recording has many stacks in few frames: what they are joined to has a limit. */
enum { JOINED_SHARE = 16 };

static void join_creators(struct naming *naming, struct stack_identities *out)
{
	naming->joined = out->joined = xalloc_zeroed(out->count, sizeof *out->joined);
	naming->joints = xalloc_zeroed(out->count, sizeof *naming->joints);
	naming->joined_room = JOINED_SHARE * reader_count(naming->reader, CUF_SEC_STACK_FRAMES);
	for (uint32_t id = 1; id < out->count; id++)
		join_frames(naming, id, (uint32_t)out->count, 0);
}

/* ---- identities ---- */

/* The first stack that has this key becomes the one that stands for all. */
static uint32_t first_of(struct hash_index *index, uint64_t key, uint32_t id)
{
	uint32_t *first = hash_index_place(index, key);

	if (!*first)
		*first = id;
	return *first;
}

static void identify(struct naming *naming, struct stack_identities *out)
{
	struct hash_index of_hash; /* hash to the first stack that has it */
	struct hash_index of_place;

	hash_index_init(&of_hash, 0);
	hash_index_init(&of_place, 0);
	for (uint32_t id = 1; id < out->count; id++) {
		uint32_t depth, first, place;
		uint64_t hash;
		const uint64_t *addrs = frames_of(naming, id, &depth);

		out->call_sites[id] = out->places[id] = id;
		if (!addrs || !hash_stack(naming, id, addrs, depth, &hash))
			continue;
		first = first_of(&of_hash, hash, id);
		if (prints_alike(naming, first, id, addrs, depth))
			out->call_sites[id] = first;
		place = naming_place(naming, addrs, depth);
		if (place)
			out->places[id] = first_of(&of_place, place, id);
	}
	hash_index_fini(&of_hash);
	hash_index_fini(&of_place);
}

struct stack_identities stack_identities(const struct reader *reader, const struct meta *meta,
					 struct symbols *symbols)
{
	struct naming naming = { .reader = reader, .meta = meta, .symbols = symbols };
	uint64_t stacks = reader_count(reader, CUF_SEC_STACK_INDEX);
	struct stack_identities out = {
		.count = stacks < UINT32_MAX ? (size_t)stacks + 1 : UINT32_MAX /* from 1 */
	};

	out.call_sites = xalloc_zeroed(out.count, sizeof *out.call_sites);
	out.places = xalloc_zeroed(out.count, sizeof *out.places);
	naming.was_any_unloaded = was_any_unloaded(meta);
	naming.python = python_names_of(meta->texts, meta->text_count);
	hash_index_init(&naming.of_address, 0);
	join_creators(&naming, &out);
	identify(&naming, &out);
	naming_fini(&naming);
	reader_drop(reader, CUF_SEC_STACK_INDEX);
	reader_drop(reader, CUF_SEC_STACK_FRAMES);
	return out;
}
