/* SPDX-License-Identifier: Apache-2.0 */
/* A free opens a block, its allocation closes it. */
#include "analysis/facts/history/parts.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

/* Two bits below the leading one: four classes an octave. */
static unsigned size_class_of(uint64_t bytes)
{
	unsigned octave;

	if (bytes < 4)
		return (unsigned)bytes;
	octave = 63u - (unsigned)__builtin_clzll(bytes);
	return octave * 4 + (unsigned)(bytes >> (octave - 2) & 3);
}

static uint64_t least_of_class(unsigned class)
{
	if (class < 8)
		return class < 4 ? class : 4;
	return (uint64_t)(4 | (class & 3)) << (class / 4 - 2);
}

void sizes_add(struct sizes *sizes, uint64_t bytes)
{
	sizes->count[size_class_of(bytes)]++;
}

struct size_limit sizes_limit(const struct sizes *sizes, uint64_t most)
{
	uint64_t count = 0;

	for (unsigned class = SIZE_CLASSES; class--;) {
		count += sizes->count[class];
		if (count > most)
			return (struct size_limit){ least_of_class(class + 1),
						    least_of_class(class) };
	}
	return (struct size_limit){ 0, 0 };
}

void spans_init(struct spans *spans, struct size_limit ever, struct size_limit live, size_t most)
{
	*spans = (struct spans){ .ever = ever, .live = live, .most = most, .tail = true };
	liveset_init(&spans->open, 0);
}

void spans_fini(struct spans *spans)
{
	liveset_fini(&spans->open);
	free(spans->items);
	*spans = (struct spans){ 0 };
}

bool spans_has(unsigned kind)
{
	return 1u << kind & (1u << CUF_KIND_DEVICE | 1u << CUF_KIND_MANAGED |
			     1u << CUF_KIND_ASYNC | 1u << CUF_KIND_IMPORTED |
			     1u << CUF_KIND_FRAMEWORK | 1u << CUF_KIND_MAPPING |
			     1u << CUF_KIND_RESERVATION);
}

/* What a page cannot hold as a number is left out. */
static bool is_sane(uint64_t address, uint64_t bytes)
{
	return address < (uint64_t)1 << 52 && bytes < (uint64_t)1 << 52;
}

static bool wants(struct spans *spans, uint64_t address, uint64_t bytes)
{
	bool sane = is_sane(address, bytes);

	if (sane && bytes >= spans->ever.all_bytes)
		return true;
	if (sane && spans->tail && bytes >= spans->live.some_bytes &&
	    spans->small_count < spans->most) {
		spans->small_count++;
		return true;
	}
	spans->overflowed |= spans->tail;
	if (sane && !spans->tail && bytes >= spans->ever.some_bytes &&
	    spans->some_count < spans->most) {
		spans->some_count++;
		return true;
	}
	spans->left_out++;
	return false;
}

static void emit(struct spans *spans, const struct cuf_block *open, uint64_t born_ns)
{
	xalloc_grow(&spans->items, spans->count, &spans->room, sizeof *spans->items);
	spans->items[spans->count++] = (struct span_found){
		.address = cuf_key_addr(open->key),
		.bytes = open->bytes,
		.born_ns = born_ns,
		.died_ns = open->seq,
		.aux = open->aux,
		.row = open->tid,
		.kind = open->kind,
		.device = open->device,
	};
}

/* Of two blocks at one address the younger one's birth was lost. */
static void open_block(struct spans *spans, const struct cuf_block *block)
{
	struct cuf_block was;

	if (liveset_take(&spans->open, block->key, &was))
		emit(spans, &was, was.time_ns);
	liveset_put(&spans->open, block);
}

void spans_live(struct spans *spans, const struct cuf_block *block, uint32_t row)
{
	struct cuf_block open = *block;

	if (!wants(spans, cuf_key_addr(block->key), block->bytes))
		return;
	open.seq = CUF_UNKNOWN;
	open.tid = row;
	open.maps = 0;
	open_block(spans, &open);
}

static void undo_free(struct spans *spans, const struct cuf_event *event, uint64_t key,
		      uint32_t row)
{
	uint64_t age_ns = (uint64_t)event->extra * 1000000u;
	struct cuf_block *restored = liveset_find(&spans->open, key);

	if (restored && restored->maps) { /* this free failed: the block lived on */
		restored->maps = 0;
		return;
	}
	if (!wants(spans, event->addr, event->bytes))
		return;
	open_block(spans, &(struct cuf_block){
		.key = key,
		.bytes = event->bytes,
		.aux = event->aux,
		.seq = event->time_ns,
		.time_ns = subtract_to_zero(event->time_ns, age_ns),
		.tid = row,
		.kind = event->kind,
		.device = event->device,
	});
}

/* A small block that was born and died after the moment of the report is of no use. */
static void undo_alloc(struct spans *spans, const struct cuf_event *event, uint64_t key)
{
	struct cuf_block was;

	if (!liveset_take(&spans->open, key, &was))
		return;
	if (spans->tail && was.bytes < spans->ever.all_bytes) {
		spans->small_count -= spans->small_count != 0;
		spans->left_out++;
		return;
	}
	emit(spans, &was, event->time_ns);
}

void spans_undo(struct spans *spans, const struct cuf_event *event, uint32_t row)
{
	uint64_t key = cuf_key(cuf_kind_space(event->kind), event->addr);

	if (event->op == CUF_OP_FREE)
		undo_free(spans, event, key, row);
	else if (event->op == CUF_OP_ALLOC)
		undo_alloc(spans, event, key);
	else if (event->op == CUF_OP_RESTORE && liveset_find(&spans->open, key))
		liveset_find(&spans->open, key)->maps = 1;
}

void spans_pass_report(struct spans *spans)
{
	spans->tail = false;
}

void spans_close(struct spans *spans)
{
	size_t at = 0;

	for (const struct cuf_block *open; (open = liveset_next(&spans->open, &at));)
		emit(spans, open, open->time_ns);
	liveset_fini(&spans->open);
	liveset_init(&spans->open, 0);
}
