/* SPDX-License-Identifier: Apache-2.0 */
/* Both rings from their ends, merged by sequence number. */
#include "analysis/facts/history/back_walk.h"

#include "analysis/base/numbers.h"

/* The newest event of a ring that was not returned yet. */
static void load(struct back_walk *walk, unsigned ring)
{
	walk->have[ring] = walk->left[ring] != 0;
	if (walk->have[ring])
		walk->next[ring] = events_get(walk->rings[ring], --walk->left[ring]);
}

void back_walk_begin(struct back_walk *walk, const struct events *events, bool is_of_driver)
{
	*walk = (struct back_walk){ .rings = { events, events->framework } };
	for (unsigned ring = 0; ring < (is_of_driver ? 1u : 2u); ring++) {
		walk->left[ring] = walk->rings[ring]->count;
		load(walk, ring);
	}
}

bool back_walk_next(struct back_walk *walk, struct cuf_event *event)
{
	while (walk->have[0] || walk->have[1]) {
		unsigned ring = !walk->have[0] ||
				(walk->have[1] && walk->next[1].seq > walk->next[0].seq);
		*event = walk->next[ring];
		load(walk, ring);
		events_passed(walk->rings[ring], walk->passed++);
		if (walk_sign(event) || event->op == CUF_OP_CAPTURE)
			return true;
	}
	return false;
}

int walk_sign(const struct cuf_event *event)
{
	if (event->op == CUF_OP_FREE)
		return -1;
	return event->op == CUF_OP_ALLOC || event->op == CUF_OP_RESTORE;
}

uint32_t walk_site(const struct reader *reader, const struct cuf_event *event)
{
	return reader_call_site(reader,
				event->op == CUF_OP_ALLOC ? event->stack : event->alloc_stack);
}

bool walk_shows(unsigned kind)
{
	return kind_is_block(kind) || kind == CUF_KIND_GRAPH || kind == CUF_KIND_FRAMEWORK;
}

enum timeline_layer walk_layer(unsigned kind)
{
	return kind == CUF_KIND_FRAMEWORK ? TIMELINE_FRAMEWORK : TIMELINE_DEVICE;
}

int64_t walk_bytes(uint64_t bytes)
{
	return signed_up_to(bytes, (int64_t)1 << 52);
}

uint64_t walk_first_ns(const struct events *ring)
{
	size_t first = events_after(ring, ring->complete_since);

	if (!ring->complete_since || first == ring->count)
		return 0;
	return events_get(ring, first).time_ns;
}
