/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All call stacks as one tree of frames, outermost first. Contract: as in columns.h. A stack
 * without frames is FACT_NONE. Of a very deep stack the outermost frames are left out.
 */
#pragma once

#include "analysis/facts/frames.h"
#include "analysis/view/html/columns.h"
#include "analysis/view/text/text.h"

struct tree_frame {
	uint32_t function, module, file; /* texts */
	uint32_t line;
	bool is_python;
};

struct tree_node { uint32_t parent, frame; bool is_own; };

struct tree {
	struct tree_frame *frames;
	size_t frame_count, frame_room;
	struct tree_node *nodes;
	size_t node_count, node_room;
	struct hash_index frame_index, node_index;
};

void tree_init(struct tree *tree);
void tree_fini(struct tree *tree);
/* The node of the innermost frame. */
uint32_t tree_add(struct tree *tree, struct strings *strings, const struct text *text,
		  const struct fact_stack *stack);
