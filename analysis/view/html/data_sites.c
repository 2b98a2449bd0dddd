/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites, what they hold at the moments, blocks, lifetimes. */
#include "analysis/view/html/data.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/view/json/json_parts.h"

/* A column of `count` numbers; `number` is an expression of i. */
#define ADD_COLUMN(object, name, count, number) do { \
	struct column column_ = column_begin(&data->columns); \
	for (size_t i = 0; i < (count); i++) \
		column_add(&column_, (number)); \
	json_add(object, name, column_end(&column_)); \
} while (0)
#define ADD_UNSIGNED(object, name, count, number) do { \
	struct column column_ = column_begin(&data->columns); \
	for (size_t i = 0; i < (count); i++) \
		column_add_unsigned(&column_, (number)); \
	json_add(object, name, column_end(&column_)); \
} while (0)

static int64_t index_of(uint32_t index) { return index == FACT_NONE ? -1 : (int64_t)index; }

/* What names a site: node, place and callers. */
static void add_names(struct data *data, struct json_object *object)
{
	const struct timeline *timeline = data->timeline;
	size_t count = timeline->site_count;
	uint32_t(*names)[3] = xalloc_zeroed(count, sizeof *names);
	static const char *const keys[] = { "node", "place", "callers" };

	for (size_t i = 0; i < count; i++) {
		const struct timeline_site *site = &timeline->sites[i];
		struct place place;
		char words[320];
		names[i][0] = tree_add(&data->tree, &data->strings, data->text,
				       &site->stack);
		place_of(data->text->places, &site->stack, &place);
		place_text(&place, words, sizeof words);
		if (site->is_rest)
			snprintf(words, sizeof words, "smaller call sites");
		else if (!site->stack.depth)
			snprintf(words, sizeof words, "call site not recorded");
		names[i][1] = strings_add(&data->strings, words);
		names[i][2] = strings_add(&data->strings, place.callers);
	}
	for (unsigned at = 0; at < 3; at++)
		ADD_COLUMN(object, keys[at], count, index_of(names[i][at]));
	free(names);
}

/* -1 where the site is not judged. */
static void add_judgements(struct data *data, struct json_object *object)
{
	const struct timeline_site *sites = data->timeline->sites;
	size_t count = data->timeline->site_count;

	ADD_COLUMN(object, "role", count,
		   index_of(sites[i].known ? strings_add(&data->strings, sites[i].known->role)
					   : FACT_NONE));
	ADD_COLUMN(object, "class", count, sites[i].known ? (int64_t)sites[i].known->class : -1);
	ADD_COLUMN(object, "shape", count, sites[i].known ? (int64_t)sites[i].known->shape : -1);
}

struct json_object *data_sites(struct data *data)
{
	struct json_object *object = json_object_new_object();
	const struct timeline_site *sites = data->timeline->sites;
	size_t count = data->timeline->site_count;

	json_add_number(object, "count", count);
	ADD_COLUMN(object, "process", count, index_of(sites[i].process));
	ADD_COLUMN(object, "layer", count, sites[i].layer);
	ADD_COLUMN(object, "kind", count, sites[i].kind);
	ADD_COLUMN(object, "device", count, index_of(sites[i].device));
	ADD_COLUMN(object, "row", count, data->row_of_site[i]);
	ADD_COLUMN(object, "segment", count, sites[i].is_segment);
	add_names(data, object);
	add_judgements(data, object);
	ADD_COLUMN(object, "sampled", count, sites[i].is_sampled);
	ADD_COLUMN(object, "rest", count, sites[i].is_rest);
	ADD_UNSIGNED(object, "peak_bytes", count, sites[i].peak_bytes);
	ADD_UNSIGNED(object, "alloc_count", count, sites[i].alloc_count);
	ADD_UNSIGNED(object, "alloc_bytes", count, sites[i].alloc_bytes);
	ADD_UNSIGNED(object, "free_count", count, sites[i].free_count);
	ADD_UNSIGNED(object, "short_count", count, sites[i].short_count);
	ADD_UNSIGNED(object, "short_bytes", count, sites[i].short_bytes);
	ADD_UNSIGNED(object, "live_count", count, sites[i].live_count);
	ADD_UNSIGNED(object, "live_bytes", count, sites[i].live_bytes);
	ADD_UNSIGNED(object, "least_bytes", count, sites[i].least_bytes);
	ADD_UNSIGNED(object, "most_bytes", count, sites[i].most_bytes);
	return object;
}

struct json_object *data_values(struct data *data)
{
	struct json_object *object = json_object_new_object();
	const struct timeline_value *values = data->timeline->values;
	size_t count = data->timeline->value_count;

	json_add_number(object, "count", count);
	ADD_COLUMN(object, "site", count, values[i].site);
	ADD_COLUMN(object, "moment", count, values[i].moment);
	ADD_UNSIGNED(object, "bytes", count, values[i].bytes);
	ADD_UNSIGNED(object, "blocks", count, values[i].count);
	return object;
}

/* ---- blocks ---- */

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

static void add_block_columns(struct data *data, struct json_object *object,
			      const struct timeline_block *blocks, size_t count)
{
	struct hash_index pools;

	hash_index_init(&pools, 0);
	json_add_number(object, "count", count);
	ADD_UNSIGNED(object, "address", count, blocks[i].address);
	ADD_UNSIGNED(object, "bytes", count, blocks[i].bytes);
	ADD_COLUMN(object, "born", count, data_time(data, blocks[i].born_ns));
	ADD_COLUMN(object, "died", count, data_time(data, blocks[i].died_ns));
	ADD_COLUMN(object, "kind", count, blocks[i].kind);
	ADD_COLUMN(object, "device", count, index_of(blocks[i].device));
	ADD_COLUMN(object, "process", count, blocks[i].process);
	ADD_COLUMN(object, "site", count, index_of(blocks[i].site));
	ADD_COLUMN(object, "layer", count,
		   blocks[i].kind == CUF_KIND_FRAMEWORK ? TIMELINE_FRAMEWORK : TIMELINE_DEVICE);
	ADD_COLUMN(object, "segment", count, pool_number(&pools, blocks[i].pool));
	hash_index_fini(&pools);
}

static struct json_object *blocks_left_out(const struct data *data, uint64_t least, size_t count)
{
	const struct timeline *timeline = data->timeline;
	struct json_object *object = json_object_new_object(),
			   *complete = json_object_new_array();

	json_add_number(object, "count",
			timeline->blocks_left_out + (timeline->block_count - count));
	json_add_number(object, "least_bytes", most_of(timeline->blocks_least_bytes, least));
	json_add_number(object, "live_least_bytes",
			most_of(timeline->blocks_live_least_bytes, least));
	if (timeline->blocks_complete && !least)
		json_object_array_add(complete, json_object_new_uint64(timeline->report));
	json_add(object, "complete_at", complete);
	return object;
}

struct json_object *data_blocks(struct data *data)
{
	const struct timeline *timeline = data->timeline;
	struct json_object *object = json_object_new_object();
	struct timeline_block *kept = xalloc_zeroed(timeline->block_count, sizeof *kept);
	uint64_t least = least_bytes(data);
	size_t count = 0;

	for (size_t i = 0; i < timeline->block_count; i++)
		if (timeline->blocks[i].bytes >= least)
			kept[count++] = timeline->blocks[i];
	add_block_columns(data, object, kept, count);
	json_add(object, "left_out", blocks_left_out(data, least, count));
	free(kept);
	return object;
}

struct json_object *data_ages(struct data *data)
{
	struct json_object *array = json_object_new_array();
	const enum { CELLS = TIMELINE_AGES * TIMELINE_SIZES } cells = CELLS;

	for (size_t p = 0; p < data->facts->process_count * TIMELINE_LAYERS; p++) {
		const struct timeline_ages *ages = &data->timeline->ages[p];
		struct json_object *object;
		if (!ages->any)
			continue;
		object = json_object_new_object();
		json_add_number(object, "layer", ages->layer);
		json_add_number(object, "process", ages->process);
		json_add_bool(object, "sampled", ages->is_sampled);
		json_add_number(object, "ages", TIMELINE_AGES);
		json_add_number(object, "sizes", TIMELINE_SIZES);
		ADD_UNSIGNED(object, "count", cells,
			     ages->count[i / TIMELINE_SIZES][i % TIMELINE_SIZES]);
		ADD_UNSIGNED(object, "bytes", cells,
			     ages->bytes[i / TIMELINE_SIZES][i % TIMELINE_SIZES]);
		json_object_array_add(array, object);
	}
	return array;
}
