/* SPDX-License-Identifier: Apache-2.0 */
/* Room on the device: what was asked, what was free, who has the rest, and what packing would give. */
#include "analysis/explain/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/explain/evidence_stacks.h"
#include "analysis/explain/framework_names.h"
#include "analysis/replay/replay.h"

/* What a context and its libraries take that nobody allocated: such a share of the device, and no more than this. */
#define CONTEXT_SHARE 20u
#define SLACK_SHARE 0.003
#define EXPANDABLE_CHUNK ((uint64_t)20 << 20) /* what PyTorch maps at a time for large blocks */
#define PACKED_NOT 0.99 /* it would fit by a hair, and not because of the holes */
#define CONTEXT_MOST ((uint64_t)1 << 30)

static uint64_t minus(uint64_t a, uint64_t b) { return a == CUF_UNKNOWN || b == CUF_UNKNOWN ? CUF_UNKNOWN : a > b ? a - b : 0; }
static bool known(uint64_t figure) { return figure != CUF_UNKNOWN; }

/* a / b, unknown as NAN. */
static double ratio(uint64_t a, uint64_t b) { return known(a) && known(b) && b ? (double)a / (double)b : NAN; }

static void sum_owners(struct evidence *e, const struct fact_owner_row *rows, size_t count, uint32_t pid)
{
	uint64_t mine = 0, run = 0, slack = 0, kv = 0;
	for (size_t i = 0; i < count; i++) {
		const struct fact_owner_row *r = &rows[i];
		if (!known(r->bytes) || !r->in_sum)
			continue;
		if (r->kind == OWNER_OTHER_PROCESSES)
			run += r->recorded ? r->bytes : 0;
		else if (r->pid == pid && r->kind != OWNER_UNEXPLAINED && r->kind != OWNER_FREE)
			mine += r->bytes;
		if (r->role && r->role_basis == BASIS_OBSERVED && !strcmp(r->role, "kv"))
			kv += r->bytes;
		if (r->kind == OWNER_PAGE_ROUNDING || r->kind == OWNER_POOL_SLACK || r->kind == OWNER_FRAMEWORK_SLACK)
			slack += r->bytes;
	}
	e->figures[FIG_mine] = mine;
	e->figures[FIG_others_run] = run;
	e->figures[FIG_kv] = kv ? kv : CUF_UNKNOWN;
	e->figures[FIG_slack] = slack;
	e->figures[FIG_others] = minus(minus(e->figures[FIG_total], e->figures[FIG_free]), mine);
}

/* Somebody to talk to: the largest other process, where that one alone took what was missing. */
static void name_neighbour(struct build *b, struct evidence *e, const struct fact_owner_row *rows, size_t count)
{
	const struct fact_owner_row *largest = NULL;
	for (size_t i = 0; i < count; i++)
		if (rows[i].kind == OWNER_OTHER_PROCESSES && known(rows[i].bytes) && rows[i].pid && (!largest || rows[i].bytes > largest->bytes))
			largest = &rows[i];
	if (!largest || !known(e->figures[FIG_shortfall]) || largest->bytes < e->figures[FIG_shortfall])
		return;
	e->figures[FIG_neighbour] = largest->bytes;
	e->options[FIG_neighbour] = largest->name ? arena_format(b->arena, "%s (pid %u)", largest->name, largest->pid) : arena_format(b->arena, "pid %u", largest->pid);
}

/* An arena that doubles asks for more than is needed, and comes down to its need. CUF_UNKNOWN: it did not come down. */
static uint64_t last_rung(const struct fact_incident *i)
{
	uint64_t last = i->attempt_count ? i->attempts[i->attempt_count - 1].requested_bytes : CUF_UNKNOWN;
	return known(last) && last < i->requested_bytes ? last : CUF_UNKNOWN;
}

/* The logical request: a framework's own word is best; physical chunks rolled back around the failure are a lower bound. */
static uint64_t request_of(struct build *b, const struct fact_incident *i)
{
	const struct events *events = b->run->processes[i->process].events;
	uint64_t rolled_back = 0;
	if (known(i->framework_requested_bytes) && i->framework_requested_bytes)
		return i->framework_requested_bytes;
	if (known(i->least_requested_bytes) && i->least_requested_bytes)
		return i->least_requested_bytes;
	if (known(last_rung(i)))
		return last_rung(i);
	if (i->kind != CUF_KIND_VMM || !known(i->requested_bytes))
		return i->requested_bytes;
	for (size_t at = events_after(events, i->seq); at < events->count; at++) {
		struct cuf_event event = events_get(events, at);
		if (event.op == CUF_OP_EXIT || (event.op == CUF_OP_ALLOC && kind_is_block(event.kind)))
			break;
		rolled_back += event.op == CUF_OP_FREE && event.kind == CUF_KIND_VMM && event.tid == i->tid && event.bytes == i->requested_bytes;
	}
	return i->requested_bytes * (rolled_back + 1);
}

static uint64_t settled(const struct fact_incident *i) { return i->settled_seq ? i->settled_seq : i->seq; }

static int by_page(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Pages that hold a small block. Heap memory. */
static uint64_t *pages_shared(const struct liveset *live, unsigned ordinal, size_t *count)
{
	uint64_t *pages = xalloc_zeroed(live->count + 1, sizeof *pages);
	size_t at = 0;
	*count = 0;
	for (const struct cuf_block *block; (block = liveset_next(live, &at));)
		if (block->kind == CUF_KIND_DEVICE && block->device == ordinal && block->bytes <= CUF_PAGE_BYTES / 2)
			pages[(*count)++] = cuf_key_addr(block->key) / CUF_PAGE_BYTES;
	if (*count)
		qsort(pages, *count, sizeof *pages, by_page);
	return pages;
}

/* What large blocks alone in their last page waste by being rounded up: no order of allocations would give it back. */
static uint64_t rounded_away(struct build *b, const struct evidence *e)
{
	unsigned ordinal = ordinal_in(b, e->device, e->process);
	uint64_t bytes = 0, *shared, page;
	size_t at = 0, count;
	bool exact;
	const struct liveset *live = run_live(&b->run->processes[e->process], settled(e->incident), &exact);
	shared = pages_shared(live, ordinal, &count);
	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		if (block->kind != CUF_KIND_DEVICE || block->device != ordinal || block->bytes <= CUF_PAGE_BYTES / 2)
			continue;
		page = (cuf_key_addr(block->key) + block->bytes - 1) / CUF_PAGE_BYTES;
		if (!count || !bsearch(&page, shared, count, sizeof page, by_page))
			bytes += (CUF_PAGE_BYTES - block->bytes % CUF_PAGE_BYTES) % CUF_PAGE_BYTES;
	}
	free(shared);
	return bytes;
}

/* Free memory of pools that the failed request may not use. */
static uint64_t in_other_pools(struct build *b, const struct evidence *e, const struct fact_fragmentation *holes)
{
	const struct events *events = b->run->processes[e->process].events;
	size_t at = events_after(events, e->incident->seq - 1);
	uint64_t bytes = 0, own = 0;
	if (e->incident->kind != CUF_KIND_ASYNC || at >= events->count || !holes)
		return 0;
	own = events_get(events, at).aux;
	for (size_t i = 0; i < holes->pool_count; i++)
		if (holes->pools[i].pool != own && known(holes->pools[i].reserved_bytes) && known(holes->pools[i].used_bytes))
			bytes += minus(holes->pools[i].reserved_bytes, holes->pools[i].used_bytes);
	return bytes;
}

/* Slack that the failing call cannot draw on: a pool's when the driver is asked, a framework's when somebody else asks. */
static bool is_foreign(struct build *b, const struct evidence *e)
{
	const struct fact_incident *i = e->incident;
	uint64_t short_of = known(e->figures[FIG_shortfall]) && e->figures[FIG_shortfall] ? e->figures[FIG_shortfall] : CUF_UNKNOWN;
	for (size_t n = 0; n < i->owner_count; n++) {
		const struct fact_owner_row *r = &i->owners[n];
		if (!known(r->bytes) || r->bytes < short_of)
			continue;
		if (r->kind == OWNER_POOL_SLACK && i->kind == CUF_KIND_DEVICE)
			return true;
		if (r->kind == OWNER_FRAMEWORK_SLACK && i->kind != CUF_KIND_FRAMEWORK && !known(i->framework_requested_bytes) &&
		    !stack_is_called_from(b, e->process, i->stack.id, "libc10"))
			return true;
	}
	return false;
}

static uint64_t largest_hole(const struct fact_incident *i)
{
	static const enum fact_layer_id layers[] = { LAYER_PAGE, LAYER_POOL, LAYER_SEGMENT };
	uint64_t most = CUF_UNKNOWN;
	for (size_t l = 0; l < sizeof layers / sizeof *layers; l++)
		if (known(i->largest_free[layers[l]].bytes) && (!known(most) || i->largest_free[layers[l]].bytes > most))
			most = i->largest_free[layers[l]].bytes;
	return most;
}

static uint64_t pool_slack(const struct evidence *e)
{
	for (size_t n = 0; n < e->incident->owner_count; n++)
		if (e->incident->owners[n].kind == OWNER_POOL_SLACK && known(e->incident->owners[n].bytes))
			return e->incident->owners[n].bytes;
	return 0;
}

/* Holes matter when they are no negligible part of what is held - every program leaves a few - and at least half of the request, or
 * a pool's slack is what is missing. Where they do not matter, packing is not said to help. */
static void set_slack(struct evidence *e, uint64_t packed)
{
	const uint64_t *f = e->figures;
	uint64_t slack = minus(packed, f[FIG_free]);
	double fits = ratio(packed, f[FIG_request]);
	bool matters = ratio(slack, f[FIG_mine]) >= SLACK_SHARE && (ratio(slack, f[FIG_request]) >= 0.5 || pool_slack(e) >= f[FIG_shortfall]);
	evidence_set(e, TERM_packed, matters || !(fits >= 1) ? fits : PACKED_NOT);
	evidence_set(e, TERM_slack, matters ? ratio(slack, f[FIG_shortfall]) : 0);
}

/* The site whose blocks hold most open: small blocks, or blocks inside segments; large ones merely round. */
static void note_pin(struct evidence *e, const struct fact_pin *pins, size_t count, uint64_t largest_bytes, uint64_t *open)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t each = pins[i].bytes / (pins[i].count ? pins[i].count : 1);
		if (pins[i].open_bytes <= *open || each > largest_bytes)
			continue;
		*open = pins[i].open_bytes;
		e->figures[FIG_pin] = each;
		e->figures[FIG_pins] = pins[i].count;
		e->terms[TERM_pinning].stack = pins[i].stack.id;
	}
}

static void set_packing(struct build *b, struct evidence *e, const struct fact_device *d)
{
	const struct fact_incident *i = e->incident;
	uint64_t *f = e->figures, rounding = rounded_away(b, e), packed = i->packed_bytes, emptyable = 0, remappable = 0, open = 0;
	const struct fact_fragmentation *holes = d && d->moment.incident == i->id ? &d->fragmentation : NULL;
	if (known(packed) && known(f[FIG_free]))
		packed = packed > f[FIG_free] + rounding ? packed - rounding : packed < f[FIG_free] ? packed : f[FIG_free];
	f[FIG_hole] = largest_hole(i);
	f[FIG_slack] = known(f[FIG_slack]) ? minus(f[FIG_slack], rounding) : CUF_UNKNOWN;
	evidence_set(e, TERM_foreign_caller, is_foreign(b, e));
	evidence_set(e, TERM_stranded, ratio(in_other_pools(b, e, holes), f[FIG_shortfall]));
	for (size_t n = 0; holes && n < holes->framework_count; n++) {
		const struct fact_framework *w = &holes->frameworks[n];
		emptyable += known(w->emptyable_bytes) ? w->emptyable_bytes : 0;
		note_pin(e, w->pins, w->pin_count, UINT64_MAX, &open);
		for (size_t s = 0; s < w->segment_count; s++)
			if (known(w->segments[s].largest_hole_bytes)) /* not of allocators whose inside is not seen */
				remappable += w->segments[s].largest_hole_bytes / EXPANDABLE_CHUNK * EXPANDABLE_CHUNK;
	}
	if (holes) {
		note_pin(e, holes->pins, holes->pin_count, CUF_PAGE_BYTES / 2, &open);
		emptyable += holes->pages_sparse * CUF_PAGE_BYTES;
		f[FIG_emptyable] = emptyable;
		f[FIG_remappable] = remappable >= f[FIG_shortfall] ? remappable : CUF_UNKNOWN;
		f[FIG_open] = open ? open : CUF_UNKNOWN;
		evidence_set(e, TERM_sparse, ratio(emptyable, f[FIG_request]));
		evidence_set(e, TERM_pinning, ratio(open, f[FIG_request]));
	}
	f[FIG_packed] = packed;
	evidence_set(e, TERM_hole, ratio(f[FIG_hole], f[FIG_request]));
	evidence_set(e, TERM_pool, known(i->largest_free[LAYER_POOL].bytes) ? ratio(f[FIG_slack], f[FIG_request]) : NAN);
	set_slack(e, packed);
	if (known(packed) && known(f[FIG_shortfall]) && f[FIG_shortfall] && packed >= f[FIG_free]) {
		uint64_t share = (packed - f[FIG_free]) * 100 / f[FIG_shortfall];
		f[FIG_contribution] = share < 100 ? share : 100;
		evidence_set(e, TERM_contribution, (double)share / 100);
	}
}

/* The device as it was first seen: what was taken before us, contexts included. */
static uint64_t context_bytes(const struct fact_incident *i)
{
	for (size_t n = 0; n < i->owner_count; n++)
		if (i->owners[n].kind == OWNER_CONTEXT && known(i->owners[n].bytes))
			return i->owners[n].bytes;
	return 0;
}

static void set_before(struct build *b, struct evidence *e)
{
	unsigned ordinal = ordinal_in(b, e->device, e->process);
	const struct cuf_device *d = ordinal == CUF_DEVICE_NONE ? NULL : reader_at(b->run->processes[e->process].reader, CUF_SEC_DEVICES, ordinal);
	uint64_t *f = e->figures, allowance, own;
	if (!d || d->first_free_bytes == CUF_UNKNOWN || !known(f[FIG_total]))
		return;
	allowance = f[FIG_total] / CONTEXT_SHARE < CONTEXT_MOST ? f[FIG_total] / CONTEXT_SHARE : CONTEXT_MOST;
	f[FIG_before] = minus(minus(f[FIG_total], d->first_free_bytes), d->first_live_bytes);
	f[FIG_rose] = minus(f[FIG_others], f[FIG_before]);
	own = context_bytes(e->incident);
	evidence_set(e, TERM_before, ratio(minus(f[FIG_before], allowance), f[FIG_shortfall]));
	evidence_set(e, TERM_late, ratio(minus(f[FIG_rose], allowance), f[FIG_shortfall]));
	/* what the driver took for itself around calls of ours - modules, limits - is surely our own */
	evidence_set(e, TERM_own_context, own > allowance);
	if (own > allowance) {
		f[FIG_rose] = own;
		evidence_set(e, TERM_creep, ratio(own - allowance, f[FIG_shortfall]));
	} else {
		evidence_set(e, TERM_creep, ratio(minus(f[FIG_rose], allowance), f[FIG_shortfall]));
	}
	evidence_set(e, TERM_alone_fits, ratio(minus(f[FIG_others], allowance), f[FIG_shortfall]));
	f[FIG_libraries] = count_device_libraries(&b->facts->processes[e->process]);
	evidence_set(e, TERM_libraries, (double)f[FIG_libraries]);
}

static void set_balance(struct build *b, struct evidence *e)
{
	uint64_t fullest = 0, emptiest = 100;
	for (size_t i = 0; i < b->facts->device_count; i++) {
		const struct fact_device *d = &b->facts->devices[i];
		uint64_t used;
		if (!known(d->total_bytes) || !d->total_bytes || d->peak_bytes > d->total_bytes)
			return;
		used = d->peak_bytes * 100 / d->total_bytes;
		fullest = used > fullest ? used : fullest;
		emptiest = used < emptiest ? used : emptiest;
	}
	if (b->facts->device_count < 2)
		return;
	e->figures[FIG_devices] = b->facts->device_count;
	e->figures[FIG_fullest] = fullest;
	e->figures[FIG_emptiest] = emptiest;
	evidence_set(e, TERM_imbalance, (double)(fullest - emptiest) / 100);
}

static void set_room(struct evidence *e)
{
	uint64_t *f = e->figures;
	uint64_t margin = (uint64_t)64 << 20;
	f[FIG_shortfall] = minus(f[FIG_request], f[FIG_free]);
	evidence_set(e, TERM_own, known(f[FIG_request]) && known(f[FIG_mine]) ? ratio(f[FIG_mine] + f[FIG_request], f[FIG_total]) : NAN);
	if (known(f[FIG_request]) && known(f[FIG_free]) && e->incident->kind != CUF_KIND_PINNED && e->incident->kind != CUF_KIND_REGISTERED)
		evidence_set(e, TERM_room, f[FIG_free] > f[FIG_request] && f[FIG_free] - f[FIG_request] >= margin ? ratio(f[FIG_free], f[FIG_request]) : 0);
	evidence_set(e, TERM_no_driver_call, e->incident->kind == CUF_KIND_FRAMEWORK);
}

static bool locks_host_memory(const struct fact_incident *i) { return i->kind == CUF_KIND_PINNED || i->kind == CUF_KIND_REGISTERED; }

/* A refused page-lock leaves its error behind: the next launch reports it, with the device half empty. NULL: neither. */
static const struct fact_incident *refused_page_lock(struct build *b, const struct fact_incident *i)
{
	uint64_t room = known(i->free_bytes) && known(i->total_bytes) ? i->total_bytes / CONTEXT_SHARE : UINT64_MAX;
	if (locks_host_memory(i))
		return i;
	for (size_t n = 0; !i->is_request && n < b->facts->incident_count; n++) {
		const struct fact_incident *earlier = &b->facts->incidents[n];
		if (earlier->process == i->process && earlier->seq < i->seq && locks_host_memory(earlier) && i->free_bytes >= room)
			return earlier;
	}
	return NULL;
}

static void set_page_lock(struct build *b, struct evidence *e)
{
	const struct fact_incident *refused = refused_page_lock(b, e->incident);
	evidence_set(e, TERM_host_request, refused != NULL);
	if (!refused)
		return;
	e->figures[FIG_locked] = refused->requested_bytes;
	e->terms[TERM_host_request].stack = refused->stack.id;
}

void evidence_device(struct build *build, struct evidence *e)
{
	const struct fact_device *d = e->device < build->facts->device_count ? &build->facts->devices[e->device] : NULL;
	const struct fact_incident *i = e->incident;
	uint64_t *f = e->figures;
	if (i) {
		f[FIG_request] = i->is_request ? request_of(build, i) : CUF_UNKNOWN;
		f[FIG_free] = i->free_bytes;
		f[FIG_total] = known(i->total_bytes) ? i->total_bytes : d ? d->total_bytes : CUF_UNKNOWN;
	} else if (d) {
		f[FIG_free] = d->free_bytes;
		f[FIG_total] = d->total_bytes;
	}
	if (i)
		set_page_lock(build, e);
	if (!d)
		return;
	sum_owners(e, i ? i->owners : d->owners, i ? i->owner_count : d->owner_count, build->facts->processes[e->process].pid);
	if (i && !i->owner_count)
		f[FIG_mine] = f[FIG_others] = f[FIG_slack] = f[FIG_others_run] = CUF_UNKNOWN;
	set_balance(build, e);
	if (!i)
		return;
	set_room(e);
	name_neighbour(build, e, i->owners, i->owner_count);
	set_packing(build, e, d);
	set_before(build, e);
	evidence_set(e, TERM_others_run, ratio(f[FIG_others_run], f[FIG_shortfall]));
	static const enum term shown_by_failure[] = { TERM_own, TERM_alone_fits, TERM_others_run, TERM_late, TERM_room, TERM_no_driver_call, TERM_packed, TERM_hole, TERM_slack, TERM_stranded, TERM_foreign_caller,
		TERM_sparse, TERM_pinning, TERM_pool, TERM_contribution, TERM_creep, TERM_host_request, TERM_before };
	for (size_t n = 0; n < sizeof shown_by_failure / sizeof *shown_by_failure; n++)
		evidence_show(e, shown_by_failure[n], i->seq);
}
