/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The likely cause of a failure, from the incident, the device's totals and the times of live
 * blocks. Only what follows by arithmetic is reported: who holds the bytes, whether packing would
 * help, whether one call site's blocks were allocated all the time. What needs the order of events
 * (requests, steps, caches that level off) is left to the report.
 */
#include "interpose/incident/verdict.h"

#include "interpose/incident/incident.h"
#include "interpose/store/ledger.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

/* a context and its libraries; at most a twentieth of the device */
#define CONTEXT_MOST (1ull << 30)
#define SLACK_PARTS 200            /* less slack than this share of what is held is rounding */
#define FRAMEWORK_SLACK_PARTS 5    /* a framework always keeps some; more than a fifth is a cause */
/* a framework empties its cache and calls again within seconds */
#define RETRY_NS 10000000000ull
enum { AGES = 8, AGES_LEAST = 6, BLOCKS_LEAST = 8 };
enum { WORK_EVENTS = 3 }; /* its own, and a block that comes and goes */

/* The device's memory at the failure. */
struct budget {
	uint64_t request_bytes, free_bytes, total_bytes;
	uint64_t mine_bytes;     /* blocks, rounding and pools' slack */
	uint64_t slack_bytes;    /* free inside that */
	uint64_t others_bytes;
	bool has_framework;      /* one reported what it uses */
};

static uint64_t or_zero(uint64_t bytes) { return bytes == CUF_UNKNOWN ? 0 : bytes; }

/* ---- the budget ---- */

/* What large blocks leave of their last page is rounding, which packing would not free. */
struct rounding {
	unsigned device;
	uint64_t bytes;
};

static void add_rounding(const struct cuf_block *block, void *context)
{
	struct rounding *rounding = context;
	uint64_t tail = (cuf_key_addr(block->key) + block->bytes) % CUF_PAGE_BYTES;
	if (block->kind == CUF_KIND_DEVICE && block->device == rounding->device &&
	    block->bytes >= CUF_PAGE_BYTES && tail)
		rounding->bytes += CUF_PAGE_BYTES - tail;
}

/* What the driver's pools reserve and nobody uses. */
static uint64_t pool_slack(const struct cuf_incident *incident)
{
	uint64_t slack = 0;
	for (uint64_t i = 0; i < incident->pool_count && i < CUF_POOLS_MAX; i++) {
		uint64_t reserved = or_zero(incident->pools[i].reserved_bytes);
		uint64_t used = or_zero(incident->pools[i].used_bytes);
		if (reserved > used)
			slack += reserved - used;
	}
	return slack;
}

/*
 * Free in the 2 MiB pages, without what is only rounding. Unknown counts as 0: another thread's
 * failure is being recorded.
 */
static uint64_t packable_page_bytes(const struct cuf_incident *incident)
{
	struct rounding rounding = { incident->device, 0 };
	uint64_t in_pages = or_zero(incident->page_free_bytes);
	cuf_ledger_each(add_rounding, &rounding);
	return in_pages > rounding.bytes ? in_pages - rounding.bytes : 0;
}

/* Of the device's own memory; managed and host memory are left out. */
static uint64_t live_bytes(const struct cuf_incident *incident)
{
	static const unsigned kinds[] = {
		CUF_KIND_DEVICE, CUF_KIND_ARRAY, CUF_KIND_ASYNC, CUF_KIND_GRAPH, CUF_KIND_VMM,
			CUF_KIND_CONTEXT
	};
	uint64_t sum = 0;
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		sum += incident->live_bytes[kinds[i]];
	return sum;
}

/* Mine + free + others = total. A framework's slack is inside blocks that are mine already. */
static struct budget budget_of(const struct cuf_incident *incident)
{
	uint64_t reserved = incident->framework_reserved_bytes, known;
	uint64_t used = or_zero(incident->framework_allocated_bytes),
		in_pools = pool_slack(incident);
	struct budget budget = {
		.request_bytes = incident->requested_bytes,
		.free_bytes = incident->free_bytes,
		.total_bytes = incident->total_bytes,
		.has_framework = reserved != CUF_UNKNOWN,
	};
	budget.mine_bytes = live_bytes(incident) + or_zero(incident->page_free_bytes) + in_pools;
	budget.slack_bytes = packable_page_bytes(incident) + in_pools;
	if (budget.has_framework && reserved > used)
		budget.slack_bytes += reserved - used;
	known = budget.free_bytes + budget.mine_bytes;
	if (budget.total_bytes > known)
		budget.others_bytes = budget.total_bytes - known;
	return budget;
}

static void add_three(struct cuf_text *text, const char *before, uint64_t bytes, const char *after)
{
	cuf_text_add(text, before);
	cuf_text_size(text, bytes);
	cuf_text_add(text, after);
}

/* ---- rules ---- */

/*
 * Others were there before this process began to work, and it worked next to them, or holds far
 * more than they do. Whether they or its own growth are the reason follows from the order of
 * events.
 */
static bool has_worked_next_to_others(const struct cuf_device *device, const struct budget *budget,
				     uint64_t allowance)
{
	uint64_t before = budget->total_bytes - or_zero(device->first_free_bytes);
	bool was_there = device->first_free_bytes != CUF_UNKNOWN &&
			 before + allowance >= budget->others_bytes;
	return was_there && (device->free_count >= device->alloc_count / 4 ||
			     budget->others_bytes < budget->mine_bytes / 2);
}

static uint64_t allowance_of(const struct budget *budget)
{
	uint64_t twentieth = budget->total_bytes / 20;
	return twentieth < CONTEXT_MOST ? twentieth : CONTEXT_MOST;
}

/*
 * Others hold more than contexts explain, the request would fit without them, and it is not nearly
 * as large as the whole device.
 */
static bool fits_without_others(const struct budget *budget)
{
	uint64_t allowance = allowance_of(budget);
	if (budget->others_bytes <= allowance)
		return false;
	if (budget->free_bytes + budget->others_bytes - allowance < budget->request_bytes)
		return false;
	return budget->mine_bytes + budget->request_bytes <
	       budget->total_bytes - budget->total_bytes / 20;
}

static bool is_other_tenant(const struct cuf_device *device, const struct budget *budget,
			    struct cuf_text *text)
{
	if (!fits_without_others(budget) ||
	    has_worked_next_to_others(device, budget, allowance_of(budget)))
		return false;
	add_three(text, "other processes hold ", budget->others_bytes,
		  " of the device; without them the request would have fitted (other-tenant)");
	return true;
}

/*
 * The live blocks of one call site: the one with most of what came in the later half of the events,
 * where it has half of that. By events, because loading takes time and waiting does, too.
 */
struct site_ages {
	const struct cuf_incident *incident;
	bool is_framework;
	uint32_t stack;
	uint64_t lead_bytes; /* by which it is ahead of all others so far */
	uint64_t bytes, count, largest_bytes;
	uint64_t late; /* those of the later half */
	uint64_t before_largest, after_least; /* sizes on both sides of that half's middle; 0 */
	uint32_t ages; /* one bit for each eighth of that half */
};

/* From 0; negative: of the earlier half. */
static int age_of(const struct site_ages *site, const struct cuf_block *block)
{
	return (int)((block->seq - 1) * 2 * AGES / site->incident->seq) - AGES;
}

static bool is_counted(const struct site_ages *site, const struct cuf_block *block)
{
	const struct cuf_incident *incident = site->incident;
	return block->device == incident->device && block->seq && block->seq <= incident->seq &&
	       (site->is_framework ? block->kind == CUF_KIND_FRAMEWORK
				   : block->kind == incident->sites[0].kind);
}

/* The one that has more than all others together is left in the end. */
static void vote(const struct cuf_block *block, void *context)
{
	struct site_ages *site = context;
	if (!is_counted(site, block) || age_of(site, block) < 0)
		return;
	if (block->stack == site->stack) {
		site->lead_bytes += block->bytes;
	} else if (block->bytes <= site->lead_bytes) {
		site->lead_bytes -= block->bytes;
	} else {
		site->lead_bytes = block->bytes - site->lead_bytes;
		site->stack = block->stack;
	}
}

static void add_size(struct site_ages *site, uint64_t bytes, int age)
{
	site->bytes += bytes;
	site->count++;
	if (bytes > site->largest_bytes)
		site->largest_bytes = bytes;
	if (age < AGES / 2 && bytes > site->before_largest)
		site->before_largest = bytes;
	if (age >= AGES / 2 && (!site->after_least || bytes < site->after_least))
		site->after_least = bytes;
}

static void add_age(const struct cuf_block *block, void *context)
{
	struct site_ages *site = context;
	int age;
	if (!is_counted(site, block) || block->stack != site->stack)
		return;
	age = age_of(site, block);
	add_size(site, block->bytes, age);
	if (age < 0)
		return;
	site->late++;
	site->ages |= 1u << age;
}

static struct site_ages ages_of(const struct cuf_incident *incident, const struct budget *budget)
{
	struct site_ages site = { .incident = incident, .is_framework = budget->has_framework };
	if (!incident->site_count || !incident->seq)
		return site;
	cuf_ledger_each(vote, &site);
	cuf_ledger_each(add_age, &site);
	return site;
}

/* While others came and went: else it is loading, which is little else than its own blocks. */
static bool is_kept_all_the_time(const struct site_ages *site)
{
	return site->late >= BLOCKS_LEAST && __builtin_popcount(site->ages) >= AGES_LEAST &&
	       site->late * WORK_EVENTS <= site->incident->seq / 2;
}

static void add_growth(const struct site_ages *site, struct cuf_text *text)
{
	add_three(text, "", site->bytes, " in ");
	cuf_text_number(text, site->count);
	cuf_text_add(text, " blocks of one call site, allocated all the time and never freed: ");
}

/*
 * The request would fit if everything free were in one piece, and the pieces are no mere rounding.
 * Where it would fit without a growing call site as well, that would last longer, and whether that
 * one will free follows from the order of events.
 */
static bool is_fragmented(const struct site_ages *site, const struct budget *budget,
			  struct cuf_text *text)
{
	uint64_t parts = budget->has_framework ? FRAMEWORK_SLACK_PARTS : SLACK_PARTS;
	uint64_t packed =
		budget->free_bytes - budget->free_bytes % CUF_PAGE_BYTES + budget->slack_bytes;
	if (budget->free_bytes >= budget->request_bytes || packed < budget->request_bytes)
		return false;
	if (budget->slack_bytes < budget->mine_bytes / parts)
		return false;
	if (is_kept_all_the_time(site) &&
	    site->bytes >= budget->request_bytes - budget->free_bytes) {
		add_growth(site, text);
		cuf_text_add(text, "a leak, a cache that grows, or free memory in pieces "
				   "(gpu-leak, kv-cache-grew, fragmentation)");
		return true;
	}
	add_three(text, "free memory is split into pieces; together they are ", packed,
		  " (fragmentation)");
	return true;
}

/* Half of what the process holds is from one site, in every part of its life. */
static bool is_growth(const struct site_ages *site, const struct budget *budget,
		      struct cuf_text *text)
{
	if (!is_kept_all_the_time(site) || site->bytes < budget->mine_bytes / 2)
		return false;
	add_growth(site, text);
	cuf_text_add(text, "a leak, or a cache that grows (gpu-leak, kv-cache-grew)");
	return true;
}

/* One site's blocks, each larger than the last, are something else than what is loaded at start. */
static bool is_doubling(const struct site_ages *site, const struct budget *budget)
{
	const bool is_ladder = site->before_largest && site->after_least > site->before_largest;
	return site->count >= BLOCKS_LEAST && budget->request_bytes > site->largest_bytes &&
	       (is_ladder || site->bytes > budget->mine_bytes / 2);
}

/* In this thread and on this device, as a framework's retries do. */
static bool driver_failed_lately(const struct cuf_incident *incident)
{
	for (unsigned i = 0; i < cuf_recording.incident_slots; i++) {
		const struct cuf_incident *before = &cuf_recording.incidents[i];
		if (!before->number || before->kind == CUF_KIND_FRAMEWORK ||
		    before->tid != incident->tid ||
		    before->device != incident->device)
			continue;
		if (before->time_ns <= incident->time_ns &&
		    incident->time_ns - before->time_ns < RETRY_NS)
			return true;
	}
	return false;
}

/* A limit below the device's size: the request failed although that much is free. */
static bool is_capped(const struct cuf_incident *incident, const struct budget *budget,
		      struct cuf_text *text)
{
	uint64_t margin = budget->request_bytes / 20 + 2 * CUF_PAGE_BYTES;
	if (incident->kind == CUF_KIND_FRAMEWORK) {
		if (budget->free_bytes < budget->request_bytes || driver_failed_lately(incident))
			return false;
		cuf_text_add(text, "the framework failed by itself, no driver call did: "
				   "a memory share that was set for it is the limit (memory-cap)");
		return true;
	}
	if (budget->free_bytes <= budget->request_bytes + margin)
		return false;
	cuf_text_add(text, "the driver failed although that much is free: "
			   "a quota or a partition is the limit (memory-cap)");
	return true;
}

/*
 * Frees of framework blocks do not reach the driver, so that these rules are for programs without a
 * framework.
 */
static bool is_startup_or_growth(const struct cuf_incident *incident, const struct budget *budget,
				 const struct site_ages *site, struct cuf_text *text)
{
	const struct cuf_device *device = &cuf_recording.devices[incident->device];
	if (device->free_count >= device->alloc_count / 4)
		return is_growth(site, budget, text);
	if (device->alloc_count < 4 || is_doubling(site, budget))
		return false;
	cuf_text_add(text, "almost nothing has been freed since startup: "
			   "model, KV cache or batch is too large ");
	if (fits_without_others(budget))
		cuf_text_add(text, "for what other processes leave (other-tenant, ");
	else
		cuf_text_add(text, "(");
	cuf_text_add(text, "model-too-large, kv-cache-too-large, too-many-requests)");
	return true;
}

bool cuf_verdict_cause(const struct cuf_incident *incident, struct cuf_text *text)
{
	struct budget budget;
	struct site_ages site;
	if (cuf_is_page_lock(incident)) {
		cuf_text_add(text,
			     "page-locked host memory ran out, not the device (page-lock-refused)");
		return true;
	}
	if (incident->kind == CUF_KIND_HOST || incident->device >= CUF_DEVICES_MAX ||
	    !incident->is_request)
		return false;
	if (incident->free_bytes == CUF_UNKNOWN || or_zero(incident->total_bytes) == 0)
		return false;
	budget = budget_of(incident);
	if (is_capped(incident, &budget, text) ||
	    is_other_tenant(&cuf_recording.devices[incident->device], &budget, text))
		return true;
	site = ages_of(incident, &budget);
	if (is_fragmented(&site, &budget, text))
		return true;
	return !budget.has_framework && is_startup_or_growth(incident, &budget, &site, text);
}
