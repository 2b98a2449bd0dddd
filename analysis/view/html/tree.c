/* SPDX-License-Identifier: Apache-2.0 */
/* Frames and nodes are interned by the hash of what they consist of. */
#include "analysis/view/html/data.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

enum { FRAMES_MOST = 256, FRAME_UNKNOWN_LINE = 0 };

void tree_init(struct tree *tree)
{
	*tree = (struct tree){ 0 };
	hash_index_init(&tree->frame_index, 0);
	hash_index_init(&tree->node_index, 0);
}

void tree_fini(struct tree *tree)
{
	free(tree->frames);
	free(tree->nodes);
	hash_index_fini(&tree->frame_index);
	hash_index_fini(&tree->node_index);
}

/* 64 bits of all members: the secret of the table goes into every step. */
static uint64_t key_of(const struct hash_index *index, const uint64_t *members, size_t count)
{
	uint64_t key = index->secret;

	for (size_t i = 0; i < count; i++) {
		key = (key ^ members[i]) * 0x9E3779B97F4A7C15ull;
		key ^= key >> 29 ^ index->secret << 7;
	}
	return key;
}

static uint32_t add_frame(struct tree *tree, struct strings *strings, const struct frame *frame)
{
	char name[2048];
	struct tree_frame made;
	uint32_t *number;

	frame_function(frame, name, sizeof name);
	made = (struct tree_frame){
		.function = strings_add(strings, frame->function ? name : NULL),
		.module = strings_add(strings, frame->module),
		.file = strings_add(strings, frame->file),
		.line = frame->line,
		.is_python = frame_is_python(frame),
	};
	const uint64_t members[] = { made.function, made.module, made.file, made.line,
				     made.is_python, frame->function ? 0 : frame->addr };

	if (!frame->function) { /* "module+0x1f2c" tells two unknown functions apart */
		char text[512];
		frame_text(frame, text, sizeof text);
		made.function = strings_add(strings, text);
	}
	number = hash_index_place(&tree->frame_index,
				  key_of(&tree->frame_index, members, 6));
	if (!*number) {
		xalloc_grow(&tree->frames, tree->frame_count, &tree->frame_room,
			    sizeof *tree->frames);
		tree->frames[tree->frame_count] = made;
		*number = (uint32_t)++tree->frame_count;
	}
	return *number - 1;
}

static uint32_t add_node(struct tree *tree, uint32_t parent, uint32_t frame, bool is_own)
{
	uint64_t members[] = { parent, frame };
	uint32_t *number = hash_index_place(&tree->node_index,
					    key_of(&tree->node_index, members, 2));

	if (!*number) {
		xalloc_grow(&tree->nodes, tree->node_count, &tree->node_room,
			    sizeof *tree->nodes);
		tree->nodes[tree->node_count] = (struct tree_node){ parent, frame, is_own };
		*number = (uint32_t)++tree->node_count;
	}
	return *number - 1;
}

uint32_t tree_add(struct tree *tree, struct strings *strings, const struct text *text,
		  const struct fact_stack *stack)
{
	const struct frame *items;
	size_t count = frames_of(text->frames, stack, &items);
	bool *drawn = xalloc_zeroed(count + 1, sizeof *drawn);
	uint32_t node = FACT_NONE;

	places_drawn(text->places, items, count, drawn);
	for (size_t i = least_of(count, FRAMES_MOST); i--;)
		node = add_node(tree, node, add_frame(tree, strings, &items[i]), drawn[i]);
	free(drawn);
	return node;
}

static const void *known_line(const struct fields *fields, const void *object)
{
	const struct tree_frame *frame = object;

	return frame->line != FRAME_UNKNOWN_LINE ? frame : NULL;
}

#define OF struct tree_frame
static const struct field frame_fields[] = {
	{ "function", INDEX(function), .meaning = "in strings" },
	{ "module", INDEX(module), .meaning = "in strings" },
	{ "file", INDEX(file), .meaning = "in strings" },
	{ "line", .base = known_line, INDEX(line) },
	{ "language", FLAG(is_python), .meaning = "in names.language" },
};
static const struct shape frame_rows_shape = SHAPE(NULL, frame_fields);
#undef OF
DATA_TABLE(frames_shape, frame_rows_shape, "each frame once");

#define OF struct tree_node
static const struct field node_fields[] = {
	{ "parent", INDEX(parent), .meaning = "comes before its children; null: a root" },
	{ "frame", INDEX(frame) },
	{ "own", FLAG(is_own),
	  .meaning = "what the long report prints of a stack: the program's own code, or of "
	  "libraries only the one frame that names it" },
};
static const struct shape node_rows_shape = SHAPE(NULL, node_fields);
#undef OF
DATA_TABLE(nodes_shape, node_rows_shape, "the call tree, outermost first; a stack is the node of "
	"its innermost frame, null where it is unknown");

const void *data_frames(const struct fields *fields, const void *object)
{
	struct data *data = fields->state;

	return data_table_of(data, data->tree.frames, data->tree.frame_count);
}

const void *data_nodes(const struct fields *fields, const void *object)
{
	struct data *data = fields->state;

	return data_table_of(data, data->tree.nodes, data->tree.node_count);
}
