/* SPDX-License-Identifier: Apache-2.0 */
/* What was live: families of equal blocks, layers of a model, what a cache holds, and what the
 * functions' names say. */
#include "analysis/explain/evidence/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/explain/evidence/stacks.h"
#include "analysis/explain/evidence/thresholds.h"
#include "analysis/symbols/role_names.h"
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/replay/replay.h"

enum { CLASSES_NAMED = 12 };

/* Live blocks of one size. */
struct class
{
	uint64_t bytes, count, first_seq, last_seq;
	uint32_t stack, twin; /* of the first block, and another one: keys and values; 0 none */
	uint64_t twin_seq;
	unsigned hints;
	bool kv_role;
};
struct classes {
	struct class *items;
	size_t count;
	uint64_t all_bytes;
};

/* What counts of a live block here. */
struct piece { uint64_t bytes, seq; uint32_t stack; bool kv_role; };

/* What holds most comes first. */
static int by_sum(const void *a, const void *b)
{
	const struct class *left = a, *right = b;
	uint64_t p = left->bytes * left->count, q = right->bytes * right->count;
	if (p != q)
		return compare_numbers(q, p);
	if (left->bytes != right->bytes)
		return compare_numbers(left->bytes, right->bytes);
	return 0;
}

/* A block that a program allocates as one: no chunk of physical memory, pool or context. */
static bool is_driver_block(const struct cuf_block *block)
{
	return kind_is_device_memory(block->kind) && block->kind != CUF_KIND_VMM &&
	       block->kind != CUF_KIND_GRAPH && block->kind != CUF_KIND_CONTEXT &&
	       block->kind != CUF_KIND_FRAMEWORK;
}

/* Blocks of a framework where it reports them, else those of the driver; chunks of physical memory
 * say nothing. */
static struct piece *collect(const struct liveset *live, unsigned ordinal, size_t *count)
{
	struct piece *pieces = xalloc_zeroed(live->count + 1, sizeof *pieces);
	uint64_t framework = 0, driver = 0;
	size_t at = 0;
	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		if (block->device != ordinal || block->bytes >= BYTES_SANE)
			continue;
		if (block->kind == CUF_KIND_FRAMEWORK)
			framework += block->bytes;
		else if (kind_is_device_memory(block->kind))
			driver += block->bytes;
	}
	*count = at = 0;
	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		bool wanted = is_driver_block(block);

		if (framework * 2 > driver)
			wanted = block->kind == CUF_KIND_FRAMEWORK;
		if (block->device == ordinal && wanted && block->bytes < BYTES_SANE)
			pieces[(*count)++] = (struct piece){ block->bytes, block->seq, block->stack,
							     block->role == CUF_ROLE_KV };
	}
	return pieces;
}

static void add_to_class(struct class *size, const struct piece *block)
{
	if (!size->count++ || block->seq < size->first_seq) {
		size->first_seq = block->seq;
		size->stack = block->stack;
	}
	size->last_seq = most_of(block->seq, size->last_seq);
	size->kv_role |= block->kv_role;
}

/* The first block of another call site than the first of all. */
static void look_for_twin(struct class *size, const struct piece *block)
{
	if (!block->stack || block->stack == size->stack ||
	    (size->twin && block->seq >= size->twin_seq))
		return;
	size->twin = block->stack;
	size->twin_seq = block->seq;
}

/* One class for each size. */
static struct classes classes_of(const struct piece *blocks, size_t count)
{
	struct classes classes = { xalloc_zeroed(count + 1, sizeof *classes.items), 0, 0 };
	struct hash_index sizes;
	hash_index_init(&sizes, 1);
	for (size_t i = 0; i < count; i++) {
		uint32_t *number = hash_index_place(&sizes, blocks[i].bytes);
		if (!*number) {
			*number = (uint32_t)++classes.count;
			classes.items[*number - 1].bytes = blocks[i].bytes;
		}
		add_to_class(&classes.items[*number - 1], &blocks[i]);
		classes.all_bytes += blocks[i].bytes;
	}
	for (size_t i = 0; i < count; i++)
		look_for_twin(&classes.items[hash_index_find(&sizes, blocks[i].bytes) - 1],
			      &blocks[i]);
	hash_index_fini(&sizes);
	return classes;
}

/* Only the largest classes are named by their stack, because symbols are slow. */
static struct classes classify(const struct evidence *evidence,
			       const struct piece *blocks, size_t count)
{
	struct classes classes = classes_of(blocks, count);
	if (classes.count)
		qsort(classes.items, classes.count, sizeof *classes.items, by_sum);
	for (size_t i = 0; i < classes.count && i < CLASSES_NAMED; i++) {
		struct class *size = &classes.items[i];
		size->hints = stack_hints(evidence->facts, evidence->process, size->stack);
		if (size->kv_role)
			size->hints |= HINT_KV;
	}
	return classes;
}

/* Enough equal blocks, each large enough to matter on this device. Of a cache by name that requests
 * one more, two are enough where the weights tell that it has more layers: its first ones may fill
 * the device. */
static bool is_family(const struct class *size, const struct evidence *evidence)
{
	uint64_t total_bytes = evidence->metrics[METRIC_total];
	bool is_cache_next = size->hints & HINT_KV &&
			     size->bytes == evidence->metrics[METRIC_request] &&
			     evidence->metrics[METRIC_depth] != CUF_UNKNOWN;

	return size->bytes && size->count >= (is_cache_next ? 2 : REPEATS_LEAST) &&
	       (total_bytes == CUF_UNKNOWN || size->bytes >= total_bytes / FAMILY_PART);
}

/* The family that matters: that of the failed request, else a cache by name, else the largest. */
static const struct class *choose_family(const struct classes *classes,
					 const struct evidence *evidence)
{
	const struct class *largest = NULL, *named = NULL;
	for (size_t i = 0; i < classes->count; i++) {
		const struct class *size = &classes->items[i];
		if (!is_family(size, evidence))
			continue;
		if (size->bytes == evidence->metrics[METRIC_request])
			return size;
		if (!named && size->hints & HINT_KV)
			named = size;
		if (!largest)
			largest = size;
	}
	if (named)
		return named;
	return largest;
}

/*
 * Weights have the same shape in all layers, and one layer may have several of a shape: the largest
 * number that divides all counts. The smallest count, where the counts have less in common.
 */
static uint64_t depth_of(const struct classes *classes, uint64_t request)
{
	uint64_t divisor = 0, least = CUF_UNKNOWN;

	for (size_t i = 0; i < classes->count; i++) {
		const struct class *size = &classes->items[i];

		if (size->bytes == request || size->count < SERIES_LEAST ||
		    size->bytes * size->count < classes->all_bytes / DEPTH_PART)
			continue;
		divisor = common_divisor(size->count, divisor);
		least = least_of(size->count, least);
	}
	return divisor >= REPEATS_LEAST ? divisor : least;
}

/* Equal blocks with little in between: layers alternate. */
static bool is_run(const struct class *size)
{
	return (double)size->count >= MOSTLY * (double)(size->last_seq - size->first_seq + 1);
}

/* A model with layers has several sizes that repeat. */
static void set_layers(const struct classes *classes, struct evidence *evidence)
{
	uint64_t repeated = 0, blocks = 0, sizes = 0, largest = 0;
	double layered = 0;

	for (size_t i = 0; i < classes->count; i++) {
		if (classes->items[i].count < REPEATS_LEAST || is_run(&classes->items[i]))
			continue;
		repeated += classes->items[i].bytes * classes->items[i].count;
		blocks += classes->items[i].count;
		sizes++;
		largest = most_of(classes->items[i].bytes, largest);
	}
	evidence->metrics[METRIC_layers] = blocks;
	evidence->metrics[METRIC_depth] = depth_of(classes, evidence->metrics[METRIC_request]);
	evidence->metrics[METRIC_layer_sizes] = sizes;
	if (sizes >= 2 && classes->all_bytes)
		layered = (double)repeated / (double)classes->all_bytes;
	evidence_set(evidence, SIGNAL_layered, layered);
	if (largest && evidence->metrics[METRIC_request] != CUF_UNKNOWN)
		evidence_set(evidence, SIGNAL_over_layer,
			     (double)evidence->metrics[METRIC_request] / (double)largest);
	for (size_t i = 0; i < classes->count && i < 4; i++)
		evidence_show(evidence, SIGNAL_layered, classes->items[i].first_seq);
}

/* How many blocks of the family the device could hold, given everything else that is live. */
static void set_family(const struct class *family, struct evidence *evidence)
{
	uint64_t *metrics = evidence->metrics, held, each;
	if (!family) {
		evidence_set(evidence, SIGNAL_family, 0);
		evidence_set(evidence, SIGNAL_family_next, 0);
		return;
	}
	each = family->bytes; /* large blocks occupy whole pages of the driver */
	if (each > CUF_PAGE_BYTES / 2)
		each = round_up_to(each, CUF_PAGE_BYTES);
	held = each * family->count;
	metrics[METRIC_unit] = family->bytes;
	metrics[METRIC_family] = family->count;
	metrics[METRIC_family_sites] = family->twin ? 2 : 1;
	metrics[METRIC_family_bytes] = family->bytes * family->count;
	metrics[METRIC_wanted] = family->count + (family->bytes == metrics[METRIC_request]);
	evidence_set(evidence, SIGNAL_family_next, family->bytes == metrics[METRIC_request]);
	if (metrics[METRIC_total] != CUF_UNKNOWN && metrics[METRIC_free] != CUF_UNKNOWN &&
	    metrics[METRIC_total] >= metrics[METRIC_free] + held) {
		uint64_t fits = (metrics[METRIC_free] + held) / each;

		evidence_set(evidence, SIGNAL_family_fits, (double)fits);
		/* how many to have at once is no question where another size was refused */
		if (family->bytes == metrics[METRIC_request]) {
			metrics[METRIC_base] = metrics[METRIC_total] - metrics[METRIC_free] - held;
			metrics[METRIC_fits] = fits;
		}
	}
	if (metrics[METRIC_total] != CUF_UNKNOWN && metrics[METRIC_total])
		evidence_set(evidence, SIGNAL_family,
			     (double)metrics[METRIC_family_bytes] / (double)metrics[METRIC_total]);
	static const enum signal shown[] = { SIGNAL_family, SIGNAL_family_next, SIGNAL_family_fits,
					     SIGNAL_burst,  SIGNAL_kv_prealloc, SIGNAL_kv_done };
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		evidence_show(evidence, shown[i], family->first_seq);
		evidence_show(evidence, shown[i], family->last_seq);
	}
}

/* Bytes that names attribute to a cache and to weights. */
static void sum_named(const struct classes *classes, struct evidence *evidence)
{
	uint64_t kv = 0, weights = 0, kv_seq = 0;
	for (size_t i = 0; i < classes->count && i < CLASSES_NAMED; i++) {
		uint64_t bytes = classes->items[i].bytes * classes->items[i].count;
		/* graphs are captured by functions of a cache's engine, and are no part of it */
		if (classes->items[i].hints & HINT_KV &&
		    !(classes->items[i].hints & HINT_CAPTURE)) {
			kv += bytes;
			if (!kv_seq)
				kv_seq = classes->items[i].first_seq;
		}
		if (classes->items[i].hints & HINT_WEIGHTS)
			weights += bytes;
	}
	if (kv > known_or_zero(evidence->metrics[METRIC_kv]))
		evidence->metrics[METRIC_kv] = kv;
	if (weights)
		evidence->metrics[METRIC_weights] = weights;
	evidence_show(evidence, SIGNAL_kv_done, kv_seq);
	evidence_show(evidence, SIGNAL_kv_prealloc, kv_seq);
}

/* A cache that is laid out in advance: by name, by what came before it (evidence_trace.c), or both.
 */
static void set_cache(const struct class *family, struct evidence *evidence, unsigned request_hints)
{
	bool next = family && family->bytes == evidence->metrics[METRIC_request],
	     named = (family && family->hints & HINT_KV) || request_hints & HINT_KV;
	bool alone = !next && request_hints & HINT_KV && !(request_hints & HINT_CAPTURE) &&
		     evidence->signals[SIGNAL_own].value > 0;
	evidence_set(evidence, SIGNAL_kv_named, named);
	if (next && named)
		evidence_set(evidence, SIGNAL_kv_prealloc, 0.75);
	else
		evidence_set(evidence, SIGNAL_kv_prealloc, alone ? 0.6 : 0);
	evidence_set(evidence, SIGNAL_kv_done,
		     !(next && family->hints & HINT_KV) && !(request_hints & HINT_KV) &&
			     evidence->metrics[METRIC_kv] != CUF_UNKNOWN &&
			     evidence->metrics[METRIC_shortfall] != CUF_UNKNOWN &&
			     evidence->metrics[METRIC_kv] > evidence->metrics[METRIC_shortfall]);
	if (next && named && evidence->metrics[METRIC_kv] == CUF_UNKNOWN)
		evidence->metrics[METRIC_kv] = evidence->metrics[METRIC_family_bytes];
	else if (alone) /* one buffer: the request itself is all of it */
		evidence->metrics[METRIC_kv] = evidence->metrics[METRIC_request];
}

/* The moment that is judged: after the frees of the failed request, else the end record. */
static uint64_t seq_of_moment(const struct evidence *evidence, const struct cuf_header *header)
{
	const struct fact_incident *incident = evidence->incident;

	if (incident && incident->settled_seq)
		return incident->settled_seq;
	if (incident)
		return incident->seq;
	if (!header->end_kind || !header->end_seq)
		return CUF_UNKNOWN;
	return header->end_seq;
}

void evidence_live(struct evidence *evidence)
{
	unsigned ordinal = CUF_DEVICE_NONE, request_hints = 0;
	struct run_process *process = &evidence->facts->run->processes[evidence->process];
	const struct cuf_header *header = &process->reader->header;
	uint64_t seq = seq_of_moment(evidence, header);
	const struct class *family;
	struct piece *blocks;
	struct classes classes;
	size_t count;
	bool exact;

	if (evidence->device != FACT_NONE)
		ordinal = fact_ordinal_of(&evidence->facts->processes[evidence->process],
					  evidence->device);
	if (ordinal == CUF_DEVICE_NONE)
		return;
	blocks = collect(run_live(process, seq, &exact), ordinal, &count);
	classes = classify(evidence, blocks, count);
	set_layers(&classes, evidence);
	family = choose_family(&classes, evidence);
	if (evidence->incident) {
		request_hints = stack_hints(evidence->facts, evidence->process,
					    evidence->incident->stack.id);
		for (enum signal t = SIGNAL_kv_named; t <= SIGNAL_slots_named; t++)
			evidence_show(evidence, t, evidence->incident->seq);
		evidence_set(evidence, SIGNAL_weights_named, (request_hints & HINT_WEIGHTS) != 0);
		evidence_set(evidence, SIGNAL_activations_named,
			     (request_hints & HINT_ACTIVATIONS) != 0);
		evidence_set(evidence, SIGNAL_slots_named, (request_hints & HINT_SLOTS) != 0);
		evidence_set(evidence, SIGNAL_graph_capture, (request_hints & HINT_CAPTURE) != 0);
	}
	for (size_t i = 0; i < classes.count && i < CLASSES_NAMED && !evidence->kv_stack; i++)
		if (classes.items[i].hints & HINT_KV &&
		    classes.items[i].bytes * classes.items[i].count >= classes.all_bytes / 100)
			evidence->kv_stack = classes.items[i].stack;
	set_family(family, evidence);
	sum_named(&classes, evidence);
	set_cache(family, evidence, request_hints);
	free(classes.items);
	free(blocks);
}
