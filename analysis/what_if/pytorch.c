/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's caching allocator: how a request is rounded, where it is looked for, and what is given
 * back before it is refused. Names of settings are PyTorch's own. */
#include "analysis/what_if/pytorch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/what_if/pytorch_pool.h"
#include "analysis/what_if/trials.h"

enum { INTERVALS = 16 }; /* of sizes from 1 MiB, doubling, that may be rounded each in its way */

enum setting {
	EXPANDABLE,
	MAX_SPLIT,
	GC_THRESHOLD,
	DIVISIONS,
	LARGE_SEGMENT,
	FRACTION,
	MAX_NON_SPLIT,
	BACKEND,
	IGNORED_FIRST
};

static const struct model_setting settings[] = {
	[EXPANDABLE] = { "expandable_segments", SETTING_FLAG, 0, 0, NULL },
	[MAX_SPLIT] = { "max_split_size_mb", SETTING_MIB, 20.0001, 1e9, NULL },
	[GC_THRESHOLD] = { "garbage_collection_threshold", SETTING_RATIO, 0, 1, NULL },
	[DIVISIONS] = { "roundup_power2_divisions", SETTING_TEXT, 0, 0, NULL },
	[LARGE_SEGMENT] = { "large_segment_size_mb", SETTING_MIB, 2, 512, NULL },
	[FRACTION] = { "per_process_memory_fraction", SETTING_RATIO, 0, 1, NULL },
	[MAX_NON_SPLIT] = { "max_non_split_rounding_mb", SETTING_MIB, 0, 1e9, NULL },
	[BACKEND] = { "backend", SETTING_WORD, 0, 0, "native cudaMallocAsync" },
	/* of pinned memory, threads and locks: nothing changes on the device */
	[IGNORED_FIRST] = { "release_lock_on_cudamalloc", SETTING_TEXT, 0, 0, NULL },
	{ "pinned_use_cuda_host_register", SETTING_TEXT, 0, 0, NULL },
	{ "pinned_num_register_threads", SETTING_TEXT, 0, 0, NULL },
	{ "pinned_use_background_threads", SETTING_TEXT, 0, 0, NULL },
	{ "pinned_reserve_segment_size_mb", SETTING_TEXT, 0, 0, NULL },
	{ "graph_capture_record_stream_reuse", SETTING_TEXT, 0, 0, NULL },
	{ "use_cuda_host_register", SETTING_TEXT, 0, 0, NULL },
};

struct pytorch {
	struct caching caching;
	struct caching_block **blocks; /* by number of the trace's block */
	uint64_t max_split_bytes, max_non_split_bytes, large_segment_bytes, large_least_bytes;
	uint64_t allowed_bytes; /* CUF_UNKNOWN: no fraction is set */
	double gc_threshold;
	uint32_t divisions[INTERVALS];
	bool expandable;
	bool releases_in_capture; /* what other pools cache, while a stream captures */
};

/* A request on its way. */
struct search {
	struct caching_pool *pool;
	unsigned group;
	uint64_t bytes;         /* rounded */
	uint64_t segment_bytes; /* what the driver would be asked for */
};

/* ---- sizes ---- */

static unsigned log2_of(uint64_t number) { return 63u - (unsigned)__builtin_clzll(number); }

static uint64_t round_up_to_division(uint64_t bytes, uint32_t divisions)
{
	uint64_t floor = 1ull << log2_of(bytes), step = floor >> log2_of(divisions), rounded;
	if (floor == bytes)
		return bytes;
	if (!step)
		return floor << 1;
	rounded = bytes & ~(step - 1);
	return rounded == bytes ? bytes : rounded + step;
}

static uint64_t round_request(const struct pytorch *pytorch, uint64_t bytes)
{
	unsigned at, first = log2_of(1 << 20);
	uint32_t divisions;
	if (bytes < CACHING_MIN_BYTES)
		return CACHING_MIN_BYTES;
	at = log2_of(bytes) < first ? 0 : log2_of(bytes) - first;
	divisions = pytorch->divisions[at < INTERVALS ? at : INTERVALS - 1];
	if (divisions > 1 && bytes > (uint64_t)CACHING_MIN_BYTES * divisions)
		return round_up_to_division(bytes, divisions);
	return (bytes + CACHING_MIN_BYTES - 1) / CACHING_MIN_BYTES * CACHING_MIN_BYTES;
}

static uint64_t segment_for(const struct pytorch *pytorch, uint64_t bytes)
{
	if (bytes <= CACHING_SMALL_BYTES)
		return CACHING_SMALL_SEGMENT_BYTES;
	if (bytes < pytorch->large_least_bytes)
		return pytorch->large_segment_bytes;
	return (bytes + CACHING_ROUND_BYTES - 1) / CACHING_ROUND_BYTES * CACHING_ROUND_BYTES;
}

/* ---- free blocks ---- */

/* A block at the growing end of its segment is as large as it could become. */
static uint64_t size_to_grow(const struct caching_block *block)
{
	uint64_t more = block->after && !block->after->mapped ? block->after->bytes : 0;
	return block->bytes + more;
}

static struct caching_block *take_free(struct pytorch *pytorch, const struct search *search)
{
	struct caching_block *block, *next;
	search->pool->searches +=
		is_known(pytorch->allowed_bytes) && pytorch->gc_threshold > 0;
	block = pool_best(search->pool, search->group, search->bytes);
	if (!block)
		return NULL;
	if (block->chunk_bytes)
		while ((next = pool_next(block)) && size_to_grow(next) < size_to_grow(block))
			block = next;
	/* no oversize block for a small request, and none much too large for a large one */
	if (search->bytes < pytorch->max_split_bytes && block->bytes >= pytorch->max_split_bytes)
		return NULL;
	if (search->bytes >= pytorch->max_split_bytes &&
	    block->bytes >= search->bytes + pytorch->max_non_split_bytes)
		return NULL;
	pool_remove(&pytorch->caching, block);
	return block;
}

static struct caching_block *take_new(struct pytorch *pytorch, const struct search *search)
{
	uint64_t reserved = pytorch->caching.figures.reserved_bytes;
	if (is_known(pytorch->allowed_bytes) &&
	    reserved + search->segment_bytes > pytorch->allowed_bytes)
		return NULL;
	if (pytorch->expandable)
		return expandable_take(&pytorch->caching, search->pool, search->group,
				       search->bytes,
				       search->pool->is_small ? CACHING_SMALL_SEGMENT_BYTES :
								pytorch->large_segment_bytes);
	return segment_take(&pytorch->caching, search->pool, search->group, search->segment_bytes);
}

/* ---- releasing ---- */

/* Whole segments, and whole chunks of expandable ones. */
static void release_pool(struct caching *caching, struct caching_pool *pool)
{
	struct caching_block *block = pool_first(pool), *next, **chunks = NULL;
	size_t count = 0, room = 0;
	for (; block; block = next) {
		next = pool_following(block);
		if (block->chunk_bytes) { /* unmapping changes the pool: later */
			xalloc_grow(&chunks, count, &room, sizeof *chunks);
			chunks[count++] = block;
		} else if (!caching_is_split(block)) {
			segment_release(caching, block);
		}
	}
	for (size_t i = 0; i < count; i++)
		expandable_unmap(caching, chunks[i]);
	free(chunks);
}

static void release_all(struct pytorch *pytorch)
{
	release_pool(&pytorch->caching, &pytorch->caching.pools[0]);
	release_pool(&pytorch->caching, &pytorch->caching.pools[1]);
}

/* With max_split_size_mb: one oversize block that is large enough, or several. False: none. */
static bool release_oversize(struct pytorch *pytorch, const struct search *search)
{
	uint64_t wanted = most_of(search->bytes, pytorch->max_split_bytes), released = 0;
	struct caching_block *block, *next;
	if (pytorch->max_split_bytes == UINT64_MAX)
		return false;
	block = pool_best(search->pool, search->group, wanted);
	if (block && !block->chunk_bytes) {
		segment_release(&pytorch->caching, block);
		return true;
	}
	block = pool_last_below(search->pool, search->group, wanted);
	while (block && released < wanted && block->bytes >= pytorch->max_split_bytes) {
		next = pool_before(block);
		if (!block->chunk_bytes) {
			released += block->bytes;
			segment_release(&pytorch->caching, block);
		}
		block = next;
	}
	return released >= wanted;
}

/* Frees blocks older than the average while the allowed share is exceeded. */
static void collect_garbage(struct pytorch *pytorch)
{
	struct caching *caching = &pytorch->caching;
	struct caching_pool *pool = &caching->pools[0];
	uint64_t most = (uint64_t)(pytorch->gc_threshold * (double)pytorch->allowed_bytes), target,
		 reclaimed = 0;
	double age = 0;
	size_t count = 0;
	bool freed = true;
	if (caching->figures.reserved_bytes <= most)
		return;
	target = caching->figures.reserved_bytes - most;
	for (struct caching_block *b = pool_first(pool); b; b = pool_following(b))
		if (!caching_is_split(b)) {
			age += (double)(pool->searches - b->born);
			count++;
		}
	while (reclaimed < target && freed && count) {
		double threshold = age / (double)count;
		struct caching_block *block = pool_first(pool), *next;
		freed = false;
		for (; block; block = next) {
			double own = (double)(pool->searches - block->born);
			next = pool_following(block);
			if (caching_is_split(block) || block->chunk_bytes || own < threshold)
				continue;
			freed = true;
			reclaimed += block->bytes;
			age -= own;
			count--;
			segment_release(caching, block);
		}
	}
}

/* ---- the functions of a model ---- */

static bool should_split(const struct pytorch *pytorch, const struct caching_block *block,
			 uint64_t bytes)
{
	uint64_t rest = block->bytes - bytes;
	if (block->pool->is_small || pytorch->expandable)
		return rest >= CACHING_MIN_BYTES;
	return bytes < pytorch->max_split_bytes && rest > CACHING_SMALL_BYTES;
}

static struct caching_block *find_block(struct pytorch *pytorch, const struct search *search)
{
	struct caching_block *block = take_free(pytorch, search);
	if (block)
		return block;
	if (is_known(pytorch->allowed_bytes) && pytorch->gc_threshold > 0)
		collect_garbage(pytorch);
	block = take_new(pytorch, search);
	if (!block && release_oversize(pytorch, search))
		block = take_new(pytorch, search);
	if (!block && (!search->pool->is_private || pytorch->releases_in_capture)) {
		release_all(pytorch);
		block = take_new(pytorch, search);
	}
	return block;
}

static bool pytorch_alloc(void *state, const struct model_request *request)
{
	struct pytorch *pytorch = state;
	struct search search = { .group = request->group };
	struct caching_block *block;
	if (request->bytes > 1ull << 60)
		return false;
	search.bytes = round_request(pytorch, request->bytes);
	search.pool = caching_pool_of(&pytorch->caching, request->group, request->is_private,
				      search.bytes <= CACHING_SMALL_BYTES);
	search.segment_bytes = segment_for(pytorch, search.bytes);
	block = find_block(pytorch, &search);
	if (!block)
		return false;
	if (should_split(pytorch, block, search.bytes))
		block_split(&pytorch->caching, block, search.bytes);
	block->allocated = true;
	pytorch->caching.figures.allocated_bytes += block->bytes;
	pytorch->blocks[request->block] = block;
	return true;
}

static void pytorch_free(void *state, uint32_t number)
{
	struct pytorch *pytorch = state;
	struct caching_block *block = pytorch->blocks[number];
	if (!block)
		return;
	pytorch->blocks[number] = NULL;
	pytorch->caching.figures.allocated_bytes -= block->bytes;
	block_free(&pytorch->caching, block);
}

static void pytorch_empty(void *state) { release_all(state); }

static struct model_figures pytorch_look(const void *state)
{
	return ((const struct pytorch *)state)->caching.figures;
}

const struct caching *pytorch_caching(const void *state)
{
	return &((const struct pytorch *)state)->caching;
}

static void pytorch_close(void *state)
{
	struct pytorch *pytorch = state;
	caching_fini(&pytorch->caching);
	free(pytorch->blocks);
	free(pytorch);
}

/* What changed, by the second number of the first version that has it. 2.8.0 and 2.15.0 were
 * compared with the model; for those between, their libraries' symbols and their sources were read.
 * 2.11 has not IN_CAPTURE; whether 2.12 to 2.14 have it was not found. */
enum { IN_CAPTURE = 12, REST_AFTER = 10, OLDEST_FIRST = 13 };

bool pytorch_is_before(const char *version, unsigned minor)
{
	char *end;
	unsigned long major = strtoul(version, &end, 10), second = 0;
	if (*end == '.')
		second = strtoul(end + 1, NULL, 10);
	return *version && (major < 2 || (major == 2 && second < minor));
}

/* "4", or "[256:1,512:2,>:4]" with sizes in MiB. False: neither. */
static bool read_divisions(const char *text, const char *version, uint32_t divisions[INTERVALS])
{
	/* of the old ones, "the rest" begins with the last interval that is named */
	size_t last = 0, rest_after = !pytorch_is_before(version, REST_AFTER);
	bool is_first = true;
	char *end;
	if (*text != '[') {
		unsigned long all = strtoul(text, &end, 10);
		for (size_t i = 0; i < INTERVALS; i++)
			divisions[i] = (uint32_t)all;
		return end != text && !*end && all <= 1 << 16 && !(all & (all - 1));
	}
	for (text++; *text && *text != ']'; text = end + (*end == ',')) {
		bool is_rest = *text == '>';
		unsigned long size = is_rest ? 1 : strtoul(text, &end, 10), value;
		size_t at = size ? log2_of(size) : 0;
		end = is_rest ? (char *)(uintptr_t)text + 1 : end;
		if (*end != ':')
			return false;
		value = strtoul(end + 1, &end, 10);
		if ((*end != ',' && *end != ']') || value > 1 << 16 || (value & (value - 1)))
			return false;
		at = at < INTERVALS ? at : INTERVALS - 1;
		for (size_t i = is_rest ? last + rest_after : at; is_rest && i < INTERVALS; i++)
			divisions[i] = (uint32_t)value;
		for (size_t i = 0; is_first && !is_rest && i < at; i++)
			divisions[i] = (uint32_t)value;
		if (!is_rest)
			divisions[last = at] = (uint32_t)value;
		is_first = false;
	}
	return true;
}

static uint64_t bytes_or(const struct model_value *value, uint64_t otherwise)
{
	return value->text ? (uint64_t)value->number : otherwise;
}

static void *pytorch_open(const struct model_values *values, const struct model_ground *ground,
			  const char **why)
{
	const struct model_value *value = values->value;
	uint64_t total = is_known(ground->total_bytes) ? ground->total_bytes :
							 driver_look(ground->driver).capacity_bytes;
	uint32_t divisions[INTERVALS] = { 0 };
	struct pytorch *pytorch;
	if (value[BACKEND].text && value[BACKEND].number > 0) {
		*why = "the backend cudaMallocAsync is the driver's own pool, not this allocator";
		return NULL;
	}
	if (value[DIVISIONS].text &&
	    !read_divisions(value[DIVISIONS].text, ground->version, divisions)) {
		*why = "roundup_power2_divisions is a power of two, or [MB:POWER,...,>:POWER]";
		return NULL;
	}
	pytorch = xalloc_zeroed(1, sizeof *pytorch);
	caching_init(&pytorch->caching, ground->driver, total + total / 8);
	pytorch->blocks = xalloc_zeroed(ground->block_count + 1, sizeof *pytorch->blocks);
	memcpy(pytorch->divisions, divisions, sizeof divisions);
	pytorch->expandable = value[EXPANDABLE].text && value[EXPANDABLE].number > 0;
	pytorch->max_split_bytes = bytes_or(&value[MAX_SPLIT], UINT64_MAX);
	pytorch->large_segment_bytes = bytes_or(&value[LARGE_SEGMENT], 20u << 20);
	pytorch->large_least_bytes = pytorch->large_segment_bytes / 2;
	pytorch->max_non_split_bytes = bytes_or(&value[MAX_NON_SPLIT], 20u << 20);
	pytorch->gc_threshold = value[GC_THRESHOLD].text ? value[GC_THRESHOLD].number : 0;
	pytorch->allowed_bytes = ground->limit_bytes;
	pytorch->releases_in_capture = !pytorch_is_before(ground->version, IN_CAPTURE);
	pytorch->caching.prefers_old = !pytorch_is_before(ground->version, OLDEST_FIRST);
	if (value[FRACTION].text)
		pytorch->allowed_bytes = (uint64_t)(value[FRACTION].number * (double)total);
	return pytorch;
}

const struct allocator_model pytorch_model = {
	.name = "PyTorch's caching allocator",
	.variable = "PYTORCH_CUDA_ALLOC_CONF",
	.settings = settings,
	.setting_count = sizeof settings / sizeof *settings,
	.kinds = 1u << CUF_KIND_FRAMEWORK,
	.open = pytorch_open,
	.alloc = pytorch_alloc,
	.free = pytorch_free,
	.empty_cache = pytorch_empty,
	.look = pytorch_look,
	.close = pytorch_close,
};

/* ---- which settings are worth trying ---- */

enum { FRACTION_IS_SETTING = 10 }; /* from 2.10 on */

#define VARIABLE "PYTORCH_CUDA_ALLOC_CONF"

static const struct { const char *id, *values; unsigned effort; bool is_extra; } rows[] = {
	{ "expandable-segments", "expandable_segments:True", 10, false },
	{ "max-split-64", "max_split_size_mb:64", 20, true },
	{ "max-split-128", "max_split_size_mb:128", 20, false },
	{ "max-split-512", "max_split_size_mb:512", 20, false },
	{ "roundup-4", "roundup_power2_divisions:4", 20, false },
	{ "roundup-8", "roundup_power2_divisions:8", 20, true },
	{ "roundup-16", "roundup_power2_divisions:16", 20, true },
	{ "expandable-roundup-4", "expandable_segments:True,roundup_power2_divisions:4", 20, true },
};

/* What the program had already is no change. */
static bool is_recorded(const struct trace *trace, const char *values)
{
	return strstr(trace->settings, values) ||
	       (!strcmp(trace->backend, "expandable") &&
		!strcmp(values, "expandable_segments:True"));
}

/* The share of the device is a setting of newer versions, and a call in all of them. */
static void add_fraction(struct trials *trials, const struct trace *trace)
{
	struct trial trial = { .kind = TRIAL_SETTING, .knob = VARIABLE, .effort = 20,
			       .model = &pytorch_model, .id = "garbage-collection",
			       .values = "garbage_collection_threshold:0.8,"
					 "per_process_memory_fraction:1.0" };
	trial.typed = arena_format(trials->arena, "%s=%s", VARIABLE, trial.values);
	if (pytorch_is_before(trace->version, FRACTION_IS_SETTING))
		trial.typed = VARIABLE "=garbage_collection_threshold:0.8 and "
			      "torch.cuda.set_per_process_memory_fraction(1.0)";
	trials_add(trials, trial);
	if (trace->limit_bytes == CUF_UNKNOWN)
		return;
	trial.id = "whole-device";
	trial.effort = 10;
	trial.knob = "set_per_process_memory_fraction";
	trial.values = "per_process_memory_fraction:1.0";
	trial.typed = "torch.cuda.set_per_process_memory_fraction(1.0)";
	trials_add(trials, trial);
}

void pytorch_trials(struct trials *trials, const struct trace *trace)
{
	if (!trace->kind_count[CUF_KIND_FRAMEWORK])
		return;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!is_recorded(trace, rows[i].values))
			trials_add(trials, (struct trial){
						   .kind = TRIAL_SETTING,
						   .id = rows[i].id,
						   .typed = arena_format(trials->arena, "%s=%s",
									 VARIABLE, rows[i].values),
						   .knob = VARIABLE,
						   .effort = rows[i].effort,
						   .is_extra = rows[i].is_extra,
						   .model = &pytorch_model,
						   .values = rows[i].values });
	add_fraction(trials, trace);
	trials_add(trials, (struct trial){ .kind = TRIAL_SETTING,
					   .id = "no-caching",
					   .typed = "PYTORCH_NO_CUDA_MEMORY_CACHING=1",
					   .knob = "PYTORCH_NO_CUDA_MEMORY_CACHING",
					   .effort = 40, /* each request waits for the device */
					   .is_extra = true,
					   .model = &driver_model,
					   .values = "" });
}
