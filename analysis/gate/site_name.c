/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces stacks to what a rebuild does not change. */
#include "analysis/gate/site_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "analysis/base/paths.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/places.h"

enum { FUNCTION_MAX = 512, NAME_MAX_BYTES = 8192, RUST_HASH_DIGITS = 16 };

#define ANONYMOUS "(anonymous namespace)"

/* The bytes of "operator<<", "operator()", "operator->" at this place; 0: no operator. */
static size_t operator_bytes(const char *at)
{
	size_t used = strlen("operator");

	if (!text_begins_with(at, "operator") || isalnum((unsigned char)at[used]) ||
	    at[used] == '_')
		return 0;
	if (text_begins_with(at + used, "()"))
		return used + 2;
	return used + strspn(at + used, "<>=-+*/%&|!~^[],");
}

/* Behind the bracket that closes the one here; the end of the text if none does. */
static const char *behind(const char *at, char open, char close)
{
	int depth = 0;

	for (; *at; at++) {
		if (*at == open)
			depth++;
		else if (*at == close && at[-1] != '-' && !--depth)
			return at + 1;
	}
	return at;
}

/* Copies without template arguments, parameters, ABI tags and numbers of lambdas. */
static void copy_bare(const char *at, char *out, size_t bytes)
{
	size_t used = 0, length;

	while (*at && used + 32 < bytes) {
		if ((length = operator_bytes(at))) {
			length = length < bytes - used - 2 ? length : bytes - used - 2;
			memcpy(out + used, at, length);
			used += length;
			at += length;
		} else if (text_begins_with(at, ANONYMOUS)) {
			used += (size_t)snprintf(out + used, bytes - used, "{anonymous}");
			at += strlen(ANONYMOUS);
		} else if (text_begins_with(at, "{lambda")) {
			used += (size_t)snprintf(out + used, bytes - used, "{lambda}");
			at = behind(at, '{', '}');
		} else if (text_begins_with(at, "[abi:")) {
			at = behind(at, '[', ']');
		} else if (*at == '<') {
			at = behind(at, '<', '>');
		} else if (*at == '(') {
			at = behind(at, '(', ')');
		} else {
			out[used++] = *at++;
		}
	}
	out[used] = 0;
}

/* " const" behind the parameters, and a return type in front of the name. */
static void drop_types(char *name)
{
	char *space, *special;
	size_t length = strlen(name);

	if (length > 6 && !strcmp(name + length - 6, " const"))
		name[length - 6] = 0;
	for (length = strlen(name); length && name[length - 1] == ' ';)
		name[--length] = 0; /* in front of template arguments */
	special = strstr(name, "operator");
	if (special && special != name && special[-1] != ':' && special[-1] != ' ')
		special = NULL; /* part of another word */
	if (special)
		*special = 0;
	space = strrchr(name, ' ');
	if (special)
		*special = 'o';
	if (space)
		memmove(name, space + 1, strlen(space + 1) + 1);
}

/* GCC's and LLVM's copies of a function, and Rust's hash. */
static void drop_suffixes(char *name)
{
	static const char *const clones[] = { ".constprop", ".isra", ".part",   ".cold",
					      ".lto_priv",  ".llvm", ".clone" };
	char *hash = strstr(name, "::h");

	for (size_t i = 0; i < sizeof clones / sizeof *clones; i++) {
		char *found = strstr(name, clones[i]);
		if (found && found != name)
			*found = 0;
	}
	if (hash && strlen(hash + 3) == RUST_HASH_DIGITS &&
	    strspn(hash + 3, "0123456789abcdef") == RUST_HASH_DIGITS)
		*hash = 0;
}

void site_function(const char *function, char *out, size_t bytes)
{
	copy_bare(function, out, bytes);
	drop_suffixes(out);
	drop_types(out);
	if (!*out)
		snprintf(out, bytes, "%s", function);
}

/* "libfoo.so.1.2" and "libfoo-4f3a.so" are distinct files of one library only in the first case. */
static void module_text(const char *path, char *out, size_t bytes)
{
	char *version;

	snprintf(out, bytes, "%s", path_base_name(path));
	version = strstr(out, ".so.");
	if (version)
		version[3] = 0;
}

static void frame_name(const struct frame *frame, char *out, size_t bytes)
{
	char function[FUNCTION_MAX], module[FUNCTION_MAX / 2];

	if (frame_is_python(frame)) {
		snprintf(out, bytes, "%s!%s", frame->file ? path_base_name(frame->file) : "?",
			 frame->function ? frame->function : "?");
		return;
	}
	module_text(frame->module ? frame->module : "?", module, sizeof module);
	snprintf(function, sizeof function, "?");
	if (frame->function)
		site_function(frame->function, function, sizeof function);
	snprintf(out, bytes, "%s!%s", module, function);
}

const char *site_name(const struct frame *frames, size_t count, struct arena *arena)
{
	char name[NAME_MAX_BYTES], one[FUNCTION_MAX + FUNCTION_MAX / 2], before[sizeof one] = "";
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		if (!places_shows(frames, count, i))
			continue;
		frame_name(&frames[i], one, sizeof one);
		if (!strcmp(one, before)) /* recursion: its depth is that of the data */
			continue;
		if (used + strlen(one) + 4 >= sizeof name)
			break;
		used += (size_t)snprintf(name + used, sizeof name - used, "%s%s",
					 used ? " < " : "", one);
		snprintf(before, sizeof before, "%s", one);
	}
	if (!used)
		return "?";
	return arena_text(arena, name, used);
}

/* The bytes of the first frame of a name. */
static size_t first_bytes(const char *name)
{
	const char *end = strstr(name, " < ");

	return end ? (size_t)(end - name) : strlen(name);
}

/* The next frame; NULL: there is none. */
static const char *next_frame(const char *name)
{
	const char *end = strstr(name, " < ");

	return end ? end + 3 : NULL;
}

static bool is_same_frame(const char *name, const char *other)
{
	size_t bytes = first_bytes(name);

	return bytes == first_bytes(other) && !strncmp(name, other, bytes);
}

/* Whether all frames of `part` are in `whole`, in order. */
static bool has_frames(const char *whole, const char *part)
{
	for (; whole && part; whole = next_frame(whole))
		if (is_same_frame(whole, part))
			part = next_frame(part);
	return !part;
}

bool site_name_is_like(const char *name, const char *other)
{
	return is_same_frame(name, other) && (has_frames(name, other) || has_frames(other, name));
}

/* Stacks to the texts of struct gate_site. */
void naming_open(struct naming *naming, const struct facts *facts, struct symbols *symbols,
		 struct arena *arena)
{
	naming->arena = arena;
	naming->frames = frames_new(facts, symbols);
	naming->places = places_new(facts, naming->frames);
}

void naming_close(struct naming *naming)
{
	places_free(naming->places);
	frames_free(naming->frames);
	*naming = (struct naming){ 0 };
}

const char *naming_identity(struct naming *naming, const struct fact_stack *stack)
{
	const struct frame *frames;
	size_t count = frames_of(naming->frames, stack, &frames);

	return site_name(frames, count, naming->arena);
}

static const char *kept(struct naming *naming, const char *text)
{
	if (!text)
		return NULL;
	return arena_text(naming->arena, text, strlen(text));
}

static const char *own_module(const struct frame *own)
{
	if (own->module)
		return own->module;
	return own->file ? path_base_name(own->file) : "";
}

void naming_fill(struct naming *naming, const struct fact_stack *stack, struct gate_site *out)
{
	const struct frame *frames, *own;
	size_t count = frames_of(naming->frames, stack, &frames);
	struct gate_frame *copy = arena_zeroed(naming->arena, count, sizeof *copy);

	out->identity = site_name(frames, count, naming->arena);
	out->function = "?";
	out->module = "";
	out->frames = copy;
	out->frame_count = count;
	for (size_t i = 0; i < count; i++)
		copy[i] = (struct gate_frame){ kept(naming, frames[i].function),
					       kept(naming, frames[i].module),
					       kept(naming, frames[i].file), frames[i].line };
	if (!count)
		return;
	own = &frames[places_own_frame(naming->places, frames, count)];
	if (own->function)
		out->function = kept(naming, own->function);
	out->module = kept(naming, own_module(own));
	out->file = kept(naming, own->file);
	out->line = own->line;
}

void naming_fill_gone(struct naming *naming, const char *identity, struct gate_site *out)
{
	const char *end = strstr(identity, " < "), *mark;
	size_t bytes = end ? (size_t)(end - identity) : strlen(identity);
	const char *first = arena_text(naming->arena, identity, bytes);

	mark = strchr(first, '!');
	out->identity = identity;
	out->function = mark ? mark + 1 : first;
	out->module = "";
	if (mark)
		out->module = arena_text(naming->arena, first, (size_t)(mark - first));
	out->file = NULL;
	out->line = 0;
	out->frames = NULL;
	out->frame_count = 0;
}
