/* SPDX-License-Identifier: Apache-2.0 */
/* What was live: families of equal blocks, layers of a model, what a cache holds, and what the functions' names say. */
#include "analysis/explain/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/explain/evidence_stacks.h"
#include "analysis/explain/framework_names.h"
#include "analysis/replay/replay.h"

enum { FAMILY_LEAST = 4, LAYERS_LEAST = 4, CLASSES_NAMED = 12 };
#define SMALL_SHARE 4096u /* blocks smaller than this part of the device are in no family */

/* Live blocks of one size. */
struct class { uint64_t bytes, count, first_seq, last_seq; uint32_t stack; unsigned hints; bool kv_role; };
struct classes { struct class *items; size_t count; uint64_t all_bytes; };

static int by_size(const void *a, const void *b)
{
	const struct cuf_block *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int by_sum(const void *a, const void *b)
{
	const struct class *x = a, *y = b;
	uint64_t p = x->bytes * x->count, q = y->bytes * y->count;
	return p != q ? (p > q ? -1 : 1) : x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Blocks of a framework where it reports them, else those of the driver; chunks of physical memory say nothing. */
static struct cuf_block *collect(const struct liveset *live, unsigned ordinal, size_t *count)
{
	struct cuf_block *blocks = xalloc_zeroed(live->count + 1, sizeof *blocks);
	uint64_t framework = 0, driver = 0;
	size_t at = 0;
	for (const struct cuf_block *b; (b = liveset_next(live, &at));)
		if (b->device == ordinal && b->bytes < (uint64_t)1 << 57)
			*(b->kind == CUF_KIND_FRAMEWORK ? &framework : &driver) += b->kind == CUF_KIND_FRAMEWORK || kind_is_device_memory(b->kind) ? b->bytes : 0;
	*count = at = 0;
	for (const struct cuf_block *b; (b = liveset_next(live, &at));) {
		bool wanted = framework * 2 > driver ? b->kind == CUF_KIND_FRAMEWORK : kind_is_device_memory(b->kind) && b->kind != CUF_KIND_VMM &&
			b->kind != CUF_KIND_GRAPH && b->kind != CUF_KIND_CONTEXT && b->kind != CUF_KIND_FRAMEWORK;
		if (b->device == ordinal && wanted && b->bytes < (uint64_t)1 << 57)
			blocks[(*count)++] = *b;
	}
	if (*count)
		qsort(blocks, *count, sizeof *blocks, by_size);
	return blocks;
}

static struct classes classify(struct build *b, const struct evidence *e, const struct cuf_block *blocks, size_t count)
{
	struct classes c = { xalloc_zeroed(count + 1, sizeof *c.items), 0, 0 };
	for (size_t i = 0; i < count; i++) {
		struct class *last = c.count ? &c.items[c.count - 1] : NULL;
		c.all_bytes += blocks[i].bytes;
		if (!last || last->bytes != blocks[i].bytes) {
			last = &c.items[c.count++];
			*last = (struct class){ .bytes = blocks[i].bytes, .first_seq = blocks[i].seq, .stack = blocks[i].stack };
		}
		last->count++;
		last->last_seq = blocks[i].seq > last->last_seq ? blocks[i].seq : last->last_seq;
		last->kv_role |= blocks[i].role == CUF_ROLE_KV;
	}
	if (c.count)
		qsort(c.items, c.count, sizeof *c.items, by_sum);
	for (size_t i = 0; i < c.count && i < CLASSES_NAMED; i++)
		c.items[i].hints = stack_hints(b, e->process, c.items[i].stack) | (c.items[i].kv_role ? HINT_KV : 0);
	return c;
}

static bool is_family(const struct class *c, uint64_t total_bytes)
{
	return c->count >= FAMILY_LEAST && (total_bytes == CUF_UNKNOWN || c->bytes >= total_bytes / SMALL_SHARE);
}

/* The family that matters: that of the failed request, else a cache by name, else the largest. */
static const struct class *choose_family(const struct classes *c, const struct evidence *e)
{
	const struct class *largest = NULL, *named = NULL;
	for (size_t i = 0; i < c->count; i++) {
		const struct class *k = &c->items[i];
		if (!is_family(k, e->figures[FIG_total]))
			continue;
		if (k->bytes == e->figures[FIG_request])
			return k;
		named = named || !(k->hints & HINT_KV) ? named : k;
		largest = largest ? largest : k;
	}
	return named ? named : largest;
}

static void set_layers(const struct classes *c, struct evidence *e)
{
	uint64_t repeated = 0, blocks = 0, sizes = 0, largest = 0, depth = CUF_UNKNOWN;
	for (size_t i = 0; i < c->count; i++) {
		if (c->items[i].count < LAYERS_LEAST)
			continue;
		repeated += c->items[i].bytes * c->items[i].count;
		blocks += c->items[i].count;
		sizes++;
		largest = c->items[i].bytes > largest ? c->items[i].bytes : largest;
		if (c->items[i].bytes != e->figures[FIG_request] && c->items[i].bytes * c->items[i].count >= c->all_bytes / 20 && c->items[i].count >= 8)
			depth = c->items[i].count < depth ? c->items[i].count : depth;
	}
	e->figures[FIG_layers] = blocks;
	e->figures[FIG_depth] = depth;
	e->figures[FIG_layer_sizes] = sizes;
	evidence_set(e, TERM_layered, sizes < 2 || !c->all_bytes ? 0 : (double)repeated / (double)c->all_bytes);
	if (largest && e->figures[FIG_request] != CUF_UNKNOWN)
		evidence_set(e, TERM_over_layer, (double)e->figures[FIG_request] / (double)largest);
	for (size_t i = 0; i < c->count && i < 4; i++)
		evidence_show(e, TERM_layered, c->items[i].first_seq);
}

static uint64_t whole_pages(uint64_t bytes) { return (bytes + CUF_PAGE_BYTES - 1) / CUF_PAGE_BYTES * CUF_PAGE_BYTES; }

static void set_family(const struct class *family, struct evidence *e)
{
	uint64_t *f = e->figures, held, each;
	if (!family) {
		evidence_set(e, TERM_family, 0);
		evidence_set(e, TERM_family_next, 0);
		return;
	}
	each = family->bytes > CUF_PAGE_BYTES / 2 ? whole_pages(family->bytes) : family->bytes;
	held = each * family->count;
	f[FIG_unit] = family->bytes;
	f[FIG_family] = family->count;
	f[FIG_family_bytes] = family->bytes * family->count;
	f[FIG_wanted] = family->count + (family->bytes == f[FIG_request]);
	evidence_set(e, TERM_family_next, family->bytes == f[FIG_request]);
	if (f[FIG_total] != CUF_UNKNOWN && f[FIG_free] != CUF_UNKNOWN && f[FIG_total] >= f[FIG_free] + held) {
		f[FIG_base] = f[FIG_total] - f[FIG_free] - held;
		f[FIG_fits] = (f[FIG_free] + held) / each;
		evidence_set(e, TERM_family_fits, (double)f[FIG_fits]);
	}
	if (f[FIG_total] != CUF_UNKNOWN && f[FIG_total])
		evidence_set(e, TERM_family, (double)f[FIG_family_bytes] / (double)f[FIG_total]);
	static const enum term shown[] = { TERM_family, TERM_family_next, TERM_family_fits, TERM_burst, TERM_after_query, TERM_kv_prealloc, TERM_kv_done };
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		evidence_show(e, shown[i], family->first_seq);
		evidence_show(e, shown[i], family->last_seq);
	}
}

static void sum_named(const struct classes *c, struct evidence *e)
{
	uint64_t kv = 0, weights = 0, kv_seq = 0;
	for (size_t i = 0; i < c->count && i < CLASSES_NAMED; i++) {
		uint64_t bytes = c->items[i].bytes * c->items[i].count;
		if (c->items[i].hints & HINT_KV) {
			kv += bytes;
			kv_seq = kv_seq ? kv_seq : c->items[i].first_seq;
		}
		weights += c->items[i].hints & HINT_WEIGHTS ? bytes : 0;
	}
	if (kv > (e->figures[FIG_kv] == CUF_UNKNOWN ? 0 : e->figures[FIG_kv]))
		e->figures[FIG_kv] = kv;
	if (weights)
		e->figures[FIG_weights] = weights;
	evidence_show(e, TERM_kv_done, kv_seq);
	evidence_show(e, TERM_kv_prealloc, kv_seq);
}

/* A cache that is laid out in advance: by name, by what came before it (evidence_trace.c), or both. */
static void set_cache(const struct class *family, struct evidence *e, unsigned request_hints)
{
	bool next = family && family->bytes == e->figures[FIG_request], named = (family && family->hints & HINT_KV) || request_hints & HINT_KV;
	bool alone = !next && request_hints & HINT_KV && !(request_hints & HINT_CAPTURE) && e->terms[TERM_own].value > 0;
	evidence_set(e, TERM_kv_named, named);
	evidence_set(e, TERM_kv_prealloc, next && named ? 0.75 : alone ? 0.6 : 0);
	evidence_set(e, TERM_kv_done, !next && !(request_hints & HINT_KV) && e->figures[FIG_kv] != CUF_UNKNOWN && e->figures[FIG_shortfall] != CUF_UNKNOWN &&
		     e->figures[FIG_kv] > e->figures[FIG_shortfall]);
	if (next && named && e->figures[FIG_kv] == CUF_UNKNOWN)
		e->figures[FIG_kv] = e->figures[FIG_family_bytes];
	else if (alone) /* one buffer: the request itself is all of it */
		e->figures[FIG_kv] = e->figures[FIG_request];
}

void evidence_live(struct build *build, struct evidence *e)
{
	unsigned ordinal = e->device == FACT_NONE ? CUF_DEVICE_NONE : ordinal_in(build, e->device, e->process), request_hints = 0;
	struct run_process *p = &build->run->processes[e->process];
	const struct cuf_header *h = &p->reader->header;
	uint64_t seq = e->incident ? e->incident->settled_seq ? e->incident->settled_seq : e->incident->seq : h->end_kind && h->end_seq ? h->end_seq : CUF_UNKNOWN;
	const struct class *family;
	struct cuf_block *blocks;
	struct classes classes;
	size_t count;
	bool exact;
	if (ordinal == CUF_DEVICE_NONE)
		return;
	blocks = collect(run_live(p, seq, &exact), ordinal, &count);
	classes = classify(build, e, blocks, count);
	family = choose_family(&classes, e);
	if (e->incident) {
		request_hints = stack_hints(build, e->process, e->incident->stack.id);
		for (enum term t = TERM_kv_named; t <= TERM_slots_named; t++)
			evidence_show(e, t, e->incident->seq);
		evidence_set(e, TERM_weights_named, (request_hints & HINT_WEIGHTS) != 0);
		evidence_set(e, TERM_activations_named, (request_hints & HINT_ACTIVATIONS) != 0);
		evidence_set(e, TERM_slots_named, (request_hints & HINT_SLOTS) != 0);
		evidence_set(e, TERM_graph_capture, (request_hints & HINT_CAPTURE) != 0);
	}
	for (size_t i = 0; i < classes.count && i < CLASSES_NAMED && !e->kv_stack; i++)
		if (classes.items[i].hints & HINT_KV && classes.items[i].bytes * classes.items[i].count >= classes.all_bytes / 100)
			e->kv_stack = classes.items[i].stack;
	set_layers(&classes, e);
	set_family(family, e);
	sum_named(&classes, e);
	set_cache(family, e, request_hints);
	free(classes.items);
	free(blocks);
}
