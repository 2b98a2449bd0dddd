/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks to the texts of struct gate_site. */
#include "analysis/gate/take/naming.h"

#include <string.h>
#include "analysis/base/paths.h"
#include "analysis/base/xalloc.h"
#include "analysis/gate/take/site_name.h"
#include "analysis/view/places.h"

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
