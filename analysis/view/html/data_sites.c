/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites, what they hold at the moments, blocks, lifetimes. */
#include "analysis/view/html/data.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

/* ---- call sites ---- */

struct site_cells {
	struct timeline_site site;
	uint32_t row, node, place, callers;
	const char *role;
	int64_t class, shape; /* -1: neither leak nor growth was judged */
};

#define OF struct site_cells
static const struct field site_fields[] = {
	{ "process", INDEX(site.process) },
	{ "layer", NUMBER(site.layer), .meaning = "in names.layer" },
	{ "kind", NUMBER(site.kind), .meaning = "in names.kind" },
	{ "device", INDEX(site.device) },
	{ "row", INDEX(row),
	  .meaning = "the site that stands for all that print as one row, by the rule of the first "
	  "screen; of any process" },
	{ "segment", FLAG(site.is_segment), .meaning = "its blocks are split into a framework's" },
	{ "node", INDEX(node), .meaning = "call stack" },
	{ "place", INDEX(place), .meaning = "in strings: append_kv (server.c:64)" },
	{ "callers", INDEX(callers), .meaning = "in strings" },
	{ "role", TEXT(role) },
	{ "class", SIGNED(class),
	  .meaning = "in names.class; null: neither leak nor growth was judged" },
	{ "shape", SIGNED(shape), .meaning = "in names.shape; null: as class" },
	{ "sampled", FLAG(site.is_sampled),
	  .meaning = "its figures of allocations are estimates" },
	{ "rest", FLAG(site.is_rest), .meaning = "the sum of the smaller call sites of this "
	  "process, layer, kind and device; node is null" },
	{ "peak_bytes", NUMBER(site.peak_bytes) },
	{ "alloc_count", NUMBER(site.alloc_count), .meaning = "of the events that are left" },
	{ "alloc_bytes", NUMBER(site.alloc_bytes) },
	{ "free_count", NUMBER(site.free_count) },
	{ "short_count", NUMBER(site.short_count), .meaning = "blocks freed within 10 ms" },
	{ "short_bytes", NUMBER(site.short_bytes) },
	{ "live_count", NUMBER(site.live_count),
	  .meaning = "at the moment of the report, in its process" },
	{ "live_bytes", NUMBER(site.live_bytes) },
	{ "least_bytes", NUMBER(site.least_bytes), .meaning = "of one block" },
	{ "most_bytes", NUMBER(site.most_bytes), .meaning = "of one block" },
};
static const struct shape site_rows_shape = SHAPE(NULL, site_fields);
#undef OF
DATA_TABLE(sites_shape, site_rows_shape, "a row for each call site and what it allocates");

/* What names a site. */
static struct site_cells site_cells(struct data *data, uint32_t number)
{
	const struct timeline_site *site = &data->timeline->sites[number];
	struct site_cells cells = { .site = *site, .row = data->row_of_site[number],
				    .class = -1, .shape = -1 };
	struct place place;
	char words[320];

	cells.node = tree_add(&data->tree, &data->strings, data->text, &site->stack);
	place_of(data->text->places, &site->stack, &place);
	place_text(&place, words, sizeof words);
	if (site->is_rest)
		snprintf(words, sizeof words, "smaller call sites");
	else if (!site->stack.depth)
		snprintf(words, sizeof words, "call site not recorded");
	cells.place = strings_add(&data->strings, words);
	cells.callers = strings_add(&data->strings, place.callers);
	if (site->known) {
		cells.role = site->known->role;
		cells.class = site->known->class;
		cells.shape = site->known->shape;
	}
	return cells;
}

const void *data_sites(const struct fields *fields, const void *object)
{
	struct data *data = fields->state;
	size_t count = data->timeline->site_count;
	struct site_cells *rows = xalloc_zeroed(count, sizeof *rows);

	for (uint32_t i = 0; i < count; i++)
		rows[i] = site_cells(data, i);
	return data_table(data, rows, count, 0);
}

#define OF struct timeline_value
static const struct field value_fields[] = {
	{ "site", INDEX(site) },
	{ "moment", INDEX(moment) },
	{ "bytes", NUMBER(bytes) },
	{ "blocks", NUMBER(count) },
};
static const struct shape value_rows_shape = SHAPE(NULL, value_fields);
#undef OF
DATA_TABLE(values_shape, value_rows_shape, "what sites hold, by site, then moment");

const void *data_values(const struct fields *fields, const void *object)
{
	struct data *data = fields->state;

	return data_table_of(data, data->timeline->values, data->timeline->value_count);
}

/* ---- blocks ---- */

struct block_cells {
	struct timeline_block block;
	enum timeline_layer layer;
	int64_t pool;
};

#define OF struct block_cells
static const struct field block_fields[] = {
	{ "address", NUMBER(block.address) },
	{ "bytes", NUMBER(block.bytes) },
	{ "born", TIME(block.born_ns) },
	{ "died", TIME(block.died_ns), .meaning = "null: still live at the end" },
	{ "kind", NUMBER(block.kind),
	  .meaning = "in names.kind; only those with addresses: device, managed, async, imported, "
	  "framework, mapping, reservation" },
	{ "device", INDEX(block.device) },
	{ "process", INDEX(block.process) },
	{ "site", INDEX(block.site) },
	{ "layer", NUMBER(layer), .meaning = "in names.layer" },
	{ "segment", SIGNED(pool), .meaning = "of kind async: equal numbers, one pool" },
};
static const struct shape block_rows_shape = SHAPE(NULL, block_fields);
#undef OF

/* What is missing in the table. */
struct left_out { uint64_t count, least_bytes, live_least_bytes; bool is_complete; };

static struct json_object *complete_at(const struct fields *fields, const void *object)
{
	const struct data *data = fields->state;
	const struct left_out *left_out = object;
	struct json_object *moments = json_object_new_array();

	if (left_out->is_complete)
		json_object_array_add(moments, json_object_new_uint64(data->timeline->report));
	return moments;
}

#define OF struct left_out
static const struct field left_out_fields[] = {
	{ "count", COUNT(count), .meaning = "blocks that are not in the table" },
	{ "least_bytes", COUNT(least_bytes),
	  .meaning = "every block of at least this size is in it" },
	{ "live_least_bytes", COUNT(live_least_bytes), .meaning = "and every one of at least this "
	  "size that was live at the moment of the report" },
	{ "complete_at", VALUE(ANY, complete_at), .meaning = "moments for which every block is in "
	  "it, however small",
	  LIMITS("type": "array", "items": {"type": "integer", "minimum": 0}) },
};
static const struct shape left_out_shape = SHAPE(NULL, left_out_fields);
#undef OF

struct block_table { struct data_table table; struct left_out left_out; };
#define OF struct block_table
static const struct field blocks_fields[] = {
	{ "count", COUNT(table.count) },
	DATA_COLUMNS(block_rows_shape),
	{ "left_out", OBJECT(left_out, left_out_shape) },
};
const struct shape blocks_shape = SHAPE(NULL, blocks_fields, .meaning = "for the address map and "
	"the list of blocks, by born");
#undef OF

/* The size below which blocks are left out of the file, so that it keeps its limit. */
static uint64_t least_bytes(const struct data *data)
{
	const struct timeline *timeline = data->timeline;
	uint64_t *sizes, least;

	if (timeline->block_count <= data->blocks_most)
		return 0;
	sizes = xalloc_zeroed(timeline->block_count, sizeof *sizes);
	for (size_t i = 0; i < timeline->block_count; i++)
		sizes[i] = timeline->blocks[i].bytes;
	qsort(sizes, timeline->block_count, sizeof *sizes, largest_number_first);
	least = sizes[data->blocks_most] + 1;
	free(sizes);
	return least;
}

/* Pools are handles: their numbers in the page count from 0. */
static int64_t pool_number(struct hash_index *pools, uint64_t handle)
{
	uint32_t *number;

	if (!handle)
		return -1;
	number = hash_index_place(pools, handle);
	if (!*number)
		*number = (uint32_t)pools->count;
	return (int64_t)*number - 1;
}

static struct block_cells block_cells(struct hash_index *pools, const struct timeline_block *block)
{
	bool is_inside = block->kind == CUF_KIND_FRAMEWORK;

	return (struct block_cells){ *block, is_inside ? TIMELINE_FRAMEWORK : TIMELINE_DEVICE,
				     pool_number(pools, block->pool) };
}

const void *data_blocks(const struct fields *fields, const void *object)
{
	struct data *data = fields->state;
	const struct timeline *timeline = data->timeline;
	size_t all = timeline->block_count, count = 0;
	struct block_table *made =
		xalloc_zeroed(1, sizeof *made + all * sizeof(struct block_cells));
	struct block_cells *rows = (struct block_cells *)(made + 1);
	uint64_t least = least_bytes(data);
	struct hash_index pools;

	hash_index_init(&pools, 0);
	for (size_t i = 0; i < all; i++)
		if (timeline->blocks[i].bytes >= least)
			rows[count++] = block_cells(&pools, &timeline->blocks[i]);
	hash_index_fini(&pools);
	*made = (struct block_table){ { rows, count, 0 }, {
		.count = timeline->blocks_left_out + (all - count),
		.least_bytes = most_of(timeline->blocks_least_bytes, least),
		.live_least_bytes = most_of(timeline->blocks_live_least_bytes, least),
		.is_complete = timeline->blocks_complete && !least,
	} };
	data_table(data, made, count, 0);
	return made;
}

/* ---- lifetimes ---- */

struct age_cells { struct timeline_ages ages; size_t rows, columns, cells; };
#define OF struct age_cells
static const struct field age_fields[] = {
	{ "layer", COUNT(ages.layer), .meaning = "in names.layer" },
	{ "process", INDEX(ages.process) },
	{ "sampled", FLAG(ages.is_sampled) },
	{ "ages", COUNT(rows), .meaning = "rows. Row a: freed after 2^(a-1) to 2^a ms; 0: "
	  "under 1 ms; the last: still live at the end" },
	{ "sizes", COUNT(columns),
	  .meaning = "cells of a row. Cell s: blocks of 2^s to 2^(s+1) bytes" },
	{ "count", SERIES_HERE(ages.count, cells), .meaning = "cell (a, s) is at a * sizes + s" },
	{ "bytes", SERIES_HERE(ages.bytes, cells) },
};
const struct shape ages_shape = SHAPE(NULL, age_fields);
#undef OF

size_t data_ages(struct fields *fields, const struct field *field, const void *object)
{
	const struct data *data = object;
	size_t count = data->facts->process_count * TIMELINE_LAYERS;

	for (size_t p = 0; p < count; p++)
		if (data->timeline->ages[p].any)
			fields_row(fields, NULL, field->shape, &(struct age_cells){
				data->timeline->ages[p], TIMELINE_AGES, TIMELINE_SIZES,
				TIMELINE_AGES * TIMELINE_SIZES });
	return count;
}
