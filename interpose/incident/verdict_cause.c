/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The likely cause of a failure, from the incident, the device's totals and the births of live blocks. Only what holds by
 * arithmetic is told: who holds the bytes, whether packing would help, whether one site's blocks came all along. What needs
 * the order of events (requests, steps, caches that level off) is the report's.
 */
#include "interpose/incident/verdict.h"

#include "interpose/store/ledger.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

#define CONTEXT_MOST (1ull << 30)    /* a context and its libraries, at most a twentieth of the device: not another tenant's */
#define SLACK_PARTS 200              /* of what is held: less slack is rounding */
#define NEED_NS 10000000000ull
enum { AGES = 8, AGES_LEAST = 6, BLOCKS_LEAST = 8 };

struct room {
	uint64_t request, room_left, total;
	uint64_t mine;    /* blocks, rounding and pools' slack */
	uint64_t slack;   /* free inside that */
	uint64_t others;
	bool framework;   /* one reported what it uses */
};

static uint64_t known(uint64_t bytes) { return bytes == CUF_UNKNOWN ? 0 : bytes; }

/* What large blocks leave of their last page is rounding, which packing would not give back. */
struct rounding { unsigned device; uint64_t bytes; };

static void see_tail(const struct cuf_block *block, void *context)
{
	struct rounding *r = context;
	uint64_t end = cuf_key_addr(block->key) + block->bytes;
	if (block->kind == CUF_KIND_DEVICE && block->device == r->device && block->bytes >= CUF_PAGE_BYTES && end % CUF_PAGE_BYTES)
		r->bytes += CUF_PAGE_BYTES - end % CUF_PAGE_BYTES;
}

static struct room room_of(const struct cuf_incident *i)
{
	static const unsigned kinds[] = { CUF_KIND_DEVICE, CUF_KIND_ARRAY, CUF_KIND_ASYNC, CUF_KIND_GRAPH, CUF_KIND_VMM, CUF_KIND_CONTEXT };
	struct room r = { .framework = i->framework_reserved_bytes != CUF_UNKNOWN, .request = i->requested_bytes, .room_left = i->free_bytes, .total = i->total_bytes };
	struct rounding rounding = { i->device, 0 };
	uint64_t in_pools = 0, in_pages = known(i->page_free_bytes); /* not known while another thread's failure is written down */
	cuf_ledger_each(see_tail, &rounding);
	for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++)
		r.mine += i->live_bytes[kinds[k]];
	for (uint64_t p = 0; p < i->pool_count && p < CUF_POOLS_MAX; p++)
		if (known(i->pools[p].reserved_bytes) > known(i->pools[p].used_bytes))
			in_pools += i->pools[p].reserved_bytes - i->pools[p].used_bytes;
	r.slack = in_pages + in_pools;
	r.mine += r.slack;
	r.slack -= rounding.bytes < in_pages ? rounding.bytes : in_pages;
	if (i->framework_reserved_bytes != CUF_UNKNOWN && i->framework_reserved_bytes > known(i->framework_allocated_bytes))
		r.slack += i->framework_reserved_bytes - known(i->framework_allocated_bytes);
	r.others = r.total > r.room_left + r.mine ? r.total - r.room_left - r.mine : 0;
	return r;
}

static void add_three(struct cuf_text *text, const char *before, uint64_t bytes, const char *after)
{
	cuf_text_add(text, before);
	cuf_text_size(text, bytes);
	cuf_text_add(text, after);
}

static bool other_tenant(const struct room *r, struct cuf_text *text)
{
	uint64_t allowance = r->total / 20 < CONTEXT_MOST ? r->total / 20 : CONTEXT_MOST;
	if (r->others <= allowance || r->room_left + r->others - allowance < r->request || r->mine + r->request >= r->total - r->total / 20)
		return false;
	add_three(text, "others hold ", r->others, " of the device; without them the request would have fitted (S1.tenant)");
	return true;
}

static bool fits_packed(const struct room *r, struct cuf_text *text)
{
	uint64_t pages = r->room_left - r->room_left % CUF_PAGE_BYTES;
	/* a framework keeps some slack whatever becomes of it; more than a fifth is what it died of */
	if (r->room_left >= r->request || pages + r->slack < r->request || r->slack < r->mine / (r->framework ? 5 : SLACK_PARTS))
		return false;
	add_three(text, "free memory lies in pieces: packed it would be ", pages + r->slack, " (S6)");
	return true;
}

/* How the live blocks of one site came about over the life of the process. */
struct births { const struct cuf_incident *incident; uint64_t start_ns, bytes, count, largest; uint32_t ages; };

static void see_birth(const struct cuf_block *block, void *context)
{
	struct births *b = context;
	uint64_t life = b->incident->time_ns - b->start_ns + 1;
	if (block->stack != b->incident->sites[0].stack || block->kind != b->incident->sites[0].kind || block->device != b->incident->device ||
	    block->time_ns < b->start_ns || block->time_ns > b->incident->time_ns)
		return;
	b->bytes += block->bytes;
	b->count++;
	b->largest = block->bytes > b->largest ? block->bytes : b->largest;
	b->ages |= 1u << (block->time_ns - b->start_ns) * AGES / life;
}

static struct births births_of(const struct cuf_incident *i)
{
	struct births b = { .incident = i, .start_ns = cuf_recording.header->first_cuda_ns };
	if (i->site_count && b.start_ns && b.start_ns < i->time_ns)
		cuf_ledger_each(see_birth, &b);
	return b;
}

static bool grew_all_along(const struct births *b, const struct room *r, struct cuf_text *text)
{
	if (b->count < BLOCKS_LEAST || b->bytes < r->mine / 2 || __builtin_popcount(b->ages) < AGES_LEAST)
		return false;
	cuf_text_number(text, b->count);
	add_three(text, " blocks of one site, ", b->bytes, ", came all along and were never given back: a leak or a cache that grows (S8, S4)");
	return true;
}

/* One site's blocks, each larger than the last, are something else than what is loaded at start. */
static bool is_ladder(const struct births *b, const struct room *r)
{
	return b->count >= BLOCKS_LEAST && b->bytes > r->mine / 2 && r->request > b->largest;
}

/* A framework frees its cache, synchronizes and tries again before it gives up: within seconds. */
static bool driver_refused_lately(const struct cuf_incident *i)
{
	for (unsigned n = 0; n < cuf_recording.incident_slots; n++) {
		const struct cuf_incident *before = &cuf_recording.incidents[n];
		if (before->number && before->kind != CUF_KIND_FRAMEWORK && before->tid == i->tid && before->device == i->device &&
		    before->time_ns <= i->time_ns && i->time_ns - before->time_ns < NEED_NS)
			return true;
	}
	return false;
}

bool cuf_verdict_cause(const struct cuf_incident *i, struct cuf_text *text)
{
	const struct cuf_device *d = i->device < CUF_DEVICES_MAX ? &cuf_recording.devices[i->device] : NULL;
	struct room r = room_of(i);
	struct births births;
	if (i->kind == CUF_KIND_PINNED || i->kind == CUF_KIND_REGISTERED) {
		cuf_text_add(text, "page-locked host memory ran out, not the device (S9.H6)");
		return true;
	}
	if (i->kind == CUF_KIND_HOST || !d || !i->is_request || r.room_left == CUF_UNKNOWN || r.total == CUF_UNKNOWN || !r.total)
		return false;
	if (i->kind == CUF_KIND_FRAMEWORK && r.room_left >= r.request && !driver_refused_lately(i)) {
		cuf_text_add(text, "the framework refused by itself, no call of the driver failed: a share that was set for it is the limit (S1.cap)");
		return true;
	}
	if (i->kind != CUF_KIND_FRAMEWORK && r.room_left > r.request + r.request / 20 + 2 * CUF_PAGE_BYTES) {
		cuf_text_add(text, "the driver refused although that much was free: a quota or a partition is the limit, not the device (S1.cap)");
		return true;
	}
	if (other_tenant(&r, text) || fits_packed(&r, text))
		return true;
	if (r.framework) /* what its caller gives back the driver does not see */
		return false;
	births = births_of(i);
	if (d->free_count >= d->alloc_count / 4)
		return grew_all_along(&births, &r, text);
	if (d->alloc_count < 4 || is_ladder(&births, &r))
		return false;
	cuf_text_add(text, "hardly anything was given back since the start: what is loaded or reserved at start does not fit (S2, S3, S5)");
	return true;
}
