/* SPDX-License-Identifier: Apache-2.0 */
/* Frames and nodes are interned by the hash of what they consist of. */
#include "analysis/view/html/tree.h"

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

struct json_object *tree_frames_json(const struct tree *tree, struct columns *columns)
{
	struct json_object *object = json_object_new_object();
	static const char *const names[] = { "function", "module", "file", "line", "language" };

	json_object_object_add(object, "count", json_object_new_uint64(tree->frame_count));
	for (unsigned at = 0; at < 5; at++) {
		struct column column = column_begin(columns);
		for (size_t i = 0; i < tree->frame_count; i++) {
			const struct tree_frame *frame = &tree->frames[i];
			uint32_t line = frame->line != FRAME_UNKNOWN_LINE ? frame->line : FACT_NONE;
			const uint32_t members[] = { frame->function, frame->module, frame->file,
						     line, frame->is_python };
			column_add_index(&column, members[at]);
		}
		json_object_object_add(object, names[at], column_end(&column));
	}
	return object;
}

struct json_object *tree_nodes_json(const struct tree *tree, struct columns *columns)
{
	struct json_object *object = json_object_new_object();
	struct column parents = column_begin(columns), frames, own;

	json_object_object_add(object, "count", json_object_new_uint64(tree->node_count));
	for (size_t i = 0; i < tree->node_count; i++)
		column_add_index(&parents, tree->nodes[i].parent);
	json_object_object_add(object, "parent", column_end(&parents));
	frames = column_begin(columns);
	for (size_t i = 0; i < tree->node_count; i++)
		column_add_index(&frames, tree->nodes[i].frame);
	json_object_object_add(object, "frame", column_end(&frames));
	own = column_begin(columns);
	for (size_t i = 0; i < tree->node_count; i++)
		column_add(&own, tree->nodes[i].is_own);
	json_object_object_add(object, "own", column_end(&own));
	return object;
}
