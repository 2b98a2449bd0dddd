/* SPDX-License-Identifier: Apache-2.0 */
/* Room on the device: what was asked, what was free, who has the rest, and what packing would give.
 */
#include "analysis/explain/evidence/parts.h"

#include <math.h>
#include <string.h>
#include "analysis/explain/evidence/stacks.h"
#include "analysis/explain/evidence/thresholds.h"
#include "analysis/symbols/frameworks.h"
#include "analysis/base/numbers.h"
#include "analysis/replay/replay.h"

/* a - b, not below 0; unknown when either is. */
static uint64_t minus(uint64_t a, uint64_t b)
{
	if (a == CUF_UNKNOWN || b == CUF_UNKNOWN)
		return CUF_UNKNOWN;
	return subtract_to_zero(a, b);
}

/* a / b, unknown as NAN. */
static double ratio(uint64_t a, uint64_t b)
{
	if (!is_known(a) || !is_known(b) || !b)
		return NAN;
	return (double)a / (double)b;
}

/* Who holds the device, in four sums: this process, others of the run, KV cache, slack. What is
 * left of the used memory belongs to others. */
static void sum_owners(struct evidence *evidence, const struct fact_owner_row *rows, size_t count,
		       uint32_t pid)
{
	uint64_t mine = 0, run = 0, slack = 0, kv = 0;
	for (size_t i = 0; i < count; i++) {
		const struct fact_owner_row *row = &rows[i];
		if (!is_known(row->bytes) || !row->in_sum)
			continue;
		if (row->kind == OWNER_OTHER_PROCESSES && row->recorded)
			run += row->bytes;
		if (row->pid == pid && row->kind != OWNER_OTHER_PROCESSES &&
		    row->kind != OWNER_UNEXPLAINED && row->kind != OWNER_FREE)
			mine += row->bytes;
		if (row->role && row->role_basis == BASIS_OBSERVED && !strcmp(row->role, "kv"))
			kv += row->bytes;
		if (row->kind == OWNER_PAGE_ROUNDING || row->kind == OWNER_POOL_SLACK ||
		    row->kind == OWNER_FRAMEWORK_SLACK)
			slack += row->bytes;
	}
	evidence->metrics[METRIC_mine] = mine;
	evidence->metrics[METRIC_others_run] = run;
	evidence->metrics[METRIC_kv] = CUF_UNKNOWN;
	if (kv)
		evidence->metrics[METRIC_kv] = kv;
	evidence->metrics[METRIC_slack] = slack;
	evidence->metrics[METRIC_others] =
		minus(minus(evidence->metrics[METRIC_total], evidence->metrics[METRIC_free]), mine);
}

/* The process to look at: the largest other one, if it holds at least what was missing. One that is
 * recorded belongs to this run and is nobody to be stopped. */
static void name_neighbour(struct evidence *evidence,
			   const struct fact_owner_row *rows, size_t count)
{
	const struct fact_owner_row *largest = NULL;
	enum metric metric;
	for (size_t i = 0; i < count; i++)
		if (rows[i].kind == OWNER_OTHER_PROCESSES && is_known(rows[i].bytes) &&
		    rows[i].pid && (!largest || rows[i].bytes > largest->bytes))
			largest = &rows[i];
	if (!largest || !largest->recorded)
		evidence->metrics[METRIC_strangers] = evidence->metrics[METRIC_others];
	if (!largest || !is_known(evidence->metrics[METRIC_shortfall]) ||
	    largest->bytes < evidence->metrics[METRIC_shortfall])
		return;
	metric = largest->recorded ? METRIC_sibling : METRIC_neighbour;
	evidence->metrics[metric] = largest->bytes;
	if (largest->name)
		evidence->options[metric] = arena_format(evidence->facts->arena, "%s (pid %u)",
							 largest->name, largest->pid);
	else
		evidence->options[metric] = arena_format(evidence->facts->arena, "pid %u",
							 largest->pid);
}

/* An arena that doubles asks for more than is needed, and comes down to its need. CUF_UNKNOWN: it
 * did not come down. */
static uint64_t last_rung(const struct fact_incident *incident)
{
	uint64_t last;

	if (!incident->attempt_count)
		return CUF_UNKNOWN;
	last = incident->attempts[incident->attempt_count - 1].requested_bytes;
	if (last >= incident->requested_bytes)
		return CUF_UNKNOWN;
	return last;
}

/* The logical request: a framework's own word is best; physical chunks rolled back around the
 * failure are a lower bound. */
uint64_t evidence_request(const struct facts *facts, const struct fact_incident *incident)
{
	const struct events *events = facts->run->processes[incident->process].events;
	uint64_t rolled_back = 0;

	if (!incident->is_request)
		return CUF_UNKNOWN;
	if (is_known(incident->framework_requested_bytes) && incident->framework_requested_bytes)
		return incident->framework_requested_bytes;
	if (is_known(incident->least_requested_bytes) && incident->least_requested_bytes)
		return incident->least_requested_bytes;
	if (is_known(last_rung(incident)))
		return last_rung(incident);
	if (incident->kind != CUF_KIND_VMM || !is_known(incident->requested_bytes))
		return incident->requested_bytes;
	for (size_t at = events_after(events, incident->seq); at < events->count; at++) {
		struct cuf_event event = events_near(events, at);
		if (event.op == CUF_OP_EXIT ||
		    (event.op == CUF_OP_ALLOC && kind_is_block(event.kind)))
			break;
		rolled_back += event.op == CUF_OP_FREE && event.kind == CUF_KIND_VMM &&
			       event.tid == incident->tid &&
			       event.bytes == incident->requested_bytes;
	}
	return incident->requested_bytes * (rolled_back + 1);
}

/* Free memory of pools that the failed request may not use. */
static uint64_t in_other_pools(const struct evidence *evidence,
			       const struct fact_fragmentation *holes)
{
	const struct events *events = evidence->facts->run->processes[evidence->process].events;
	size_t at = events_after(events, evidence->incident->seq - 1);
	uint64_t bytes = 0, own = 0;
	if (evidence->incident->kind != CUF_KIND_ASYNC || at >= events->count || !holes)
		return 0;
	own = events_near(events, at).aux;
	for (size_t i = 0; i < holes->pool_count; i++)
		if (holes->pools[i].pool != own && is_known(holes->pools[i].reserved_bytes) &&
		    is_known(holes->pools[i].used_bytes))
			bytes += minus(holes->pools[i].reserved_bytes, holes->pools[i].used_bytes);
	return bytes;
}

/* Slack that the failing call cannot draw on: a pool's when the driver is asked, a framework's when
 * somebody else asks. */
static bool is_foreign(const struct evidence *evidence)
{
	const struct fact_incident *incident = evidence->incident;
	uint64_t short_of = evidence->metrics[METRIC_shortfall];

	if (!short_of)
		short_of = CUF_UNKNOWN;
	for (size_t n = 0; n < incident->owner_count; n++) {
		const struct fact_owner_row *row = &incident->owners[n];
		if (!is_known(row->bytes) || row->bytes < short_of)
			continue;
		if (row->kind == OWNER_POOL_SLACK && incident->kind == CUF_KIND_DEVICE)
			return true;
		if (row->kind == OWNER_FRAMEWORK_SLACK && incident->kind != CUF_KIND_FRAMEWORK &&
		    !is_known(incident->framework_requested_bytes) &&
		    !stack_is_framework_call(evidence->facts, evidence->process,
					     incident->stack.id))
			return true;
	}
	return false;
}

/* Over pages, pools and segments: the layers in which a block cannot span two gaps. */
static uint64_t largest_hole(const struct fact_incident *incident)
{
	static const enum fact_layer_id layers[] = { LAYER_PAGE, LAYER_POOL, LAYER_SEGMENT };
	uint64_t most = CUF_UNKNOWN;
	for (size_t l = 0; l < sizeof layers / sizeof *layers; l++)
		if (is_known(incident->largest_free[layers[l]].bytes) &&
		    (!is_known(most) || incident->largest_free[layers[l]].bytes > most))
			most = incident->largest_free[layers[l]].bytes;
	return most;
}

/* Reserved by CUDA pools but unused. */
static uint64_t pool_slack(const struct evidence *evidence)
{
	for (size_t n = 0; n < evidence->incident->owner_count; n++)
		if (evidence->incident->owners[n].kind == OWNER_POOL_SLACK &&
		    is_known(evidence->incident->owners[n].bytes))
			return evidence->incident->owners[n].bytes;
	return 0;
}

/* Holes matter when they are no negligible part of what is held - every program leaves a few - and
 * at least half of the request, or a pool's slack is what is missing. Where they do not matter,
 * packing is no advice. */
static void set_slack(struct evidence *evidence, uint64_t packed)
{
	const uint64_t *metrics = evidence->metrics;
	uint64_t slack = minus(packed, metrics[METRIC_free]);
	double fits = ratio(packed, metrics[METRIC_request]);
	bool matters = ratio(slack, metrics[METRIC_mine]) >= SLACK_SHARE &&
		       (ratio(slack, metrics[METRIC_request]) >= 0.5 ||
			pool_slack(evidence) >= metrics[METRIC_shortfall]);
	double share = 0;

	if (matters)
		share = ratio(slack, metrics[METRIC_shortfall]);
	else if (fits >= 1)
		fits = PACKED_NOT;
	evidence_set(evidence, SIGNAL_packed, fits);
	evidence_set(evidence, SIGNAL_slack, share);
}

/* The call site whose blocks pin most memory: small blocks, or blocks inside segments. Large blocks
 * only round. */
static void note_pin(struct evidence *evidence, const struct fact_pin *pins, size_t count,
		     uint64_t largest_bytes, uint64_t *open)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t each = pins[i].bytes / most_of(pins[i].count, 1);

		if (pins[i].open_bytes <= *open || each > largest_bytes)
			continue;
		*open = pins[i].open_bytes;
		evidence->metrics[METRIC_pin] = each;
		evidence->metrics[METRIC_pins] = pins[i].count;
		evidence->signals[SIGNAL_pinning].stack = pins[i].stack.id;
	}
}

/* Would the request fit if free memory were in one piece, and what keeps it apart? Rounding of
 * large blocks is subtracted first, because packing does not recover it. */
static void set_packing(struct evidence *evidence, const struct fact_device *device)
{
	const struct fact_incident *incident = evidence->incident;
	uint64_t *metrics = evidence->metrics, rounding = incident->rounded_bytes,
		 packed = incident->packed_bytes, emptyable = 0, remappable = 0, open = 0;
	const struct fact_fragmentation *holes = NULL;

	if (device && device->moment.incident == incident->id)
		holes = &device->fragmentation;
	
	if (is_known(packed) && is_known(metrics[METRIC_free])) {
		if (packed > metrics[METRIC_free] + rounding)
			packed -= rounding;
		else if (packed > metrics[METRIC_free])
			packed = metrics[METRIC_free];
	}
	metrics[METRIC_hole] = largest_hole(incident);
	metrics[METRIC_slack] = minus(metrics[METRIC_slack], rounding);
	if (is_known(metrics[METRIC_hole]) && is_known(metrics[METRIC_request]) &&
	    metrics[METRIC_hole] < metrics[METRIC_request])
		metrics[METRIC_stranded] = metrics[METRIC_slack];
	evidence_set(evidence, SIGNAL_foreign_caller, is_foreign(evidence));
	evidence_set(evidence, SIGNAL_stranded,
		     ratio(in_other_pools(evidence, holes), metrics[METRIC_shortfall]));
	for (size_t n = 0; holes && n < holes->framework_count; n++) {
		const struct fact_framework *framework = &holes->frameworks[n];
		emptyable += known_or_zero(framework->emptyable_bytes);
		note_pin(evidence, framework->pins, framework->pin_count, UINT64_MAX, &open);
		/* An allocator that reports nothing has no known gaps. */
		for (size_t s = 0; s < framework->segment_count; s++)
			remappable += known_or_zero(framework->segments[s].largest_hole_bytes) /
				      EXPANDABLE_CHUNK * EXPANDABLE_CHUNK;
	}
	if (holes) {
		note_pin(evidence, holes->pins, holes->pin_count, CUF_PAGE_BYTES / 2, &open);
		emptyable += holes->pages_sparse * CUF_PAGE_BYTES;
		metrics[METRIC_emptyable] = emptyable;
		metrics[METRIC_remappable] = metrics[METRIC_open] = CUF_UNKNOWN;
		if (remappable >= metrics[METRIC_shortfall])
			metrics[METRIC_remappable] = remappable;
		if (open)
			metrics[METRIC_open] = open;
		evidence_set(evidence, SIGNAL_sparse, ratio(emptyable, metrics[METRIC_request]));
		evidence_set(evidence, SIGNAL_pinning, ratio(open, metrics[METRIC_request]));
	}
	metrics[METRIC_packed] = packed;
	evidence_set(evidence, SIGNAL_hole, ratio(metrics[METRIC_hole], metrics[METRIC_request]));
	if (is_known(incident->largest_free[LAYER_POOL].bytes))
		evidence_set(evidence, SIGNAL_pool,
			     ratio(metrics[METRIC_slack], metrics[METRIC_request]));
	set_slack(evidence, packed);
	if (is_known(packed) && is_known(metrics[METRIC_shortfall]) && metrics[METRIC_shortfall] &&
	    packed >= metrics[METRIC_free]) {
		uint64_t share = (packed - metrics[METRIC_free]) * 100 / metrics[METRIC_shortfall];
		metrics[METRIC_contribution] = least_of(share, 100);
		evidence_set(evidence, SIGNAL_contribution, (double)share / 100);
	}
}

/* The device as it was first seen: what was taken before us, contexts included. */
static uint64_t context_bytes(const struct fact_incident *incident)
{
	for (size_t n = 0; n < incident->owner_count; n++)
		if (incident->owners[n].kind == OWNER_CONTEXT &&
		    is_known(incident->owners[n].bytes))
			return incident->owners[n].bytes;
	return 0;
}

/* Libraries that allocate memory which no call shows, each counted once. */
static uint64_t count_unseen_libraries(const struct fact_process *process)
{
	uint64_t count = 0;

	for (size_t library = 0; library < unseen_libraries(); library++)
		for (size_t i = 0; i < process->module_count; i++)
			if (is_unseen_library(library, process->modules[i].path)) {
				count++;
				break;
			}
	return count;
}

/* How much others held before the first allocation of this process, and how much they gained
 * since. A context of ordinary size is allowed for in both. */
static void set_before(struct evidence *evidence)
{
	unsigned ordinal = fact_ordinal_of(&evidence->facts->processes[evidence->process],
					   evidence->device);
	const struct reader *reader = evidence->facts->run->processes[evidence->process].reader;
	const struct cuf_device *device = NULL;
	uint64_t *metrics = evidence->metrics, allowance, own;

	if (ordinal != CUF_DEVICE_NONE)
		device = reader_at(reader, CUF_SEC_DEVICES, ordinal);
	
	if (!device || device->first_free_bytes == CUF_UNKNOWN || !is_known(metrics[METRIC_total]))
		return;
	allowance = context_allowance(metrics[METRIC_total]);
	metrics[METRIC_before] = minus(minus(metrics[METRIC_total], device->first_free_bytes),
				       device->first_live_bytes);
	metrics[METRIC_rose] = minus(metrics[METRIC_others], metrics[METRIC_before]);
	own = context_bytes(evidence->incident);
	evidence_set(evidence, SIGNAL_before,
		     ratio(minus(metrics[METRIC_before], allowance), metrics[METRIC_shortfall]));
	evidence_set(evidence, SIGNAL_late,
		     ratio(minus(metrics[METRIC_rose], allowance), metrics[METRIC_shortfall]));
	/* what the driver took for itself around calls of ours - modules, limits - is surely our
	 * own */
	evidence_set(evidence, SIGNAL_own_context, own > allowance);
	if (own > allowance) {
		metrics[METRIC_rose] = own;
		evidence_set(evidence, SIGNAL_creep,
			     ratio(own - allowance, metrics[METRIC_shortfall]));
	} else {
		evidence_set(evidence, SIGNAL_creep,
			     ratio(minus(metrics[METRIC_rose], allowance),
				   metrics[METRIC_shortfall]));
	}
	evidence_set(evidence, SIGNAL_alone_fits,
		     ratio(minus(metrics[METRIC_others], allowance), metrics[METRIC_shortfall]));
	metrics[METRIC_libraries] =
		count_unseen_libraries(&evidence->facts->processes[evidence->process]);
	evidence_set(evidence, SIGNAL_libraries, (double)metrics[METRIC_libraries]);
}

/* Use at the peak of the fullest and the emptiest device of the run, in percent. */
static void set_balance(struct evidence *evidence)
{
	uint64_t fullest = 0, emptiest = 100;
	for (size_t i = 0; i < evidence->facts->device_count; i++) {
		const struct fact_device *device = &evidence->facts->devices[i];
		uint64_t used;
		if (!is_known(device->total_bytes) || !device->total_bytes ||
		    device->peak_bytes > device->total_bytes)
			return;
		used = device->peak_bytes * 100 / device->total_bytes;
		fullest = most_of(used, fullest);
		emptiest = least_of(used, emptiest);
	}
	if (evidence->facts->device_count < 2)
		return;
	evidence->metrics[METRIC_devices] = evidence->facts->device_count;
	evidence->metrics[METRIC_fullest] = fullest;
	evidence->metrics[METRIC_emptiest] = emptiest;
	evidence_set(evidence, SIGNAL_imbalance, (double)(fullest - emptiest) / 100);
}

/* What is mapped for one request: chunks of PyTorch's expandable segments, else the driver's pages.
 */
static uint64_t mapped_unit(const struct fact_incident *incident)
{
	if (incident->kind != CUF_KIND_FRAMEWORK)
		return CUF_PAGE_BYTES;
	for (size_t n = 0; n < incident->owner_count; n++)
		if (incident->owners[n].kind == OWNER_VMM &&
		    known_or_zero(incident->owners[n].bytes))
			return EXPANDABLE_CHUNK;
	return CUF_PAGE_BYTES;
}

static void set_at_once(struct evidence *evidence)
{
	uint64_t *metrics = evidence->metrics, unit = mapped_unit(evidence->incident);

	if (!is_known(metrics[METRIC_free]))
		return;
	metrics[METRIC_at_once] = metrics[METRIC_free] / unit * unit;
	metrics[METRIC_over] = minus(metrics[METRIC_request], metrics[METRIC_at_once]);
	if (metrics[METRIC_request] > metrics[METRIC_total])
		metrics[METRIC_beyond] = minus(metrics[METRIC_request], metrics[METRIC_total]);
}

/* The driver maps whole pages: of 55 MiB that are free, a request of 54.6 MiB cannot have 56. */
static uint64_t shortfall_of(const struct evidence *evidence)
{
	const struct fact_incident *incident = evidence->incident;
	const uint64_t *metrics = evidence->metrics;
	uint64_t missing = minus(metrics[METRIC_request], metrics[METRIC_free]);
	uint64_t asked = is_known(last_rung(incident)) ? last_rung(incident)
						       : incident->requested_bytes;

	if (missing || incident->kind == CUF_KIND_FRAMEWORK || !is_known(asked) ||
	    metrics[METRIC_free] - metrics[METRIC_request] >= CAP_MARGIN)
		return missing;
	return minus(round_up_to(asked, CUF_PAGE_BYTES), metrics[METRIC_free]);
}

/* Sizes compared: request, free, total. `room` is set if the driver refused although there was
 * enough. */
static void set_room(struct evidence *evidence)
{
	uint64_t *metrics = evidence->metrics;
	double room = 0;

	metrics[METRIC_shortfall] = shortfall_of(evidence);
	set_at_once(evidence);
	if (is_known(metrics[METRIC_request]) && is_known(metrics[METRIC_mine]))
		evidence_set(evidence, SIGNAL_own,
			     ratio(metrics[METRIC_mine] + metrics[METRIC_request],
				   metrics[METRIC_total]));
	if (is_known(metrics[METRIC_request]) && is_known(metrics[METRIC_free]) &&
	    evidence->incident->kind != CUF_KIND_PINNED &&
	    evidence->incident->kind != CUF_KIND_REGISTERED) {
		evidence_set(evidence, SIGNAL_over_device,
			     ratio(metrics[METRIC_request], metrics[METRIC_total]));
		if (subtract_to_zero(metrics[METRIC_free], metrics[METRIC_request]) >= CAP_MARGIN)
			room = ratio(metrics[METRIC_free], metrics[METRIC_request]);
		evidence_set(evidence, SIGNAL_room, room);
	}
	evidence_set(evidence, SIGNAL_no_driver_call,
		     evidence->incident->kind == CUF_KIND_FRAMEWORK);
}

static bool locks_host_memory(const struct fact_incident *incident)
{
	return incident->kind == CUF_KIND_PINNED || incident->kind == CUF_KIND_REGISTERED;
}

/* A refused page-lock leaves its error behind: the next launch reports it, with the device half
 * empty. NULL: neither. */
static const struct fact_incident *refused_page_lock(const struct facts *facts,
						     const struct fact_incident *incident)
{
	uint64_t room = UINT64_MAX;

	if (is_known(incident->free_bytes) && is_known(incident->total_bytes))
		room = incident->total_bytes / CONTEXT_PART;
	
	if (locks_host_memory(incident))
		return incident;
	for (size_t n = 0; !incident->is_request && n < facts->incident_count; n++) {
		const struct fact_incident *earlier = &facts->incidents[n];
		if (earlier->process == incident->process && earlier->seq < incident->seq &&
		    locks_host_memory(earlier) && incident->free_bytes >= room)
			return earlier;
	}
	return NULL;
}

static void set_page_lock(struct evidence *evidence)
{
	const struct fact_incident *refused = refused_page_lock(evidence->facts,
								evidence->incident);
	evidence_set(evidence, SIGNAL_host_request, refused != NULL);
	if (!refused)
		return;
	evidence->metrics[METRIC_locked] = refused->requested_bytes;
	evidence->signals[SIGNAL_host_request].stack = refused->stack.id;
}

/* Without a device only page-locked memory is examined. Without an incident the state is that of
 * the device's moment. */
void evidence_device(struct evidence *evidence)
{
	const struct fact_device *device = NULL;
	const struct fact_incident *incident = evidence->incident;
	uint64_t *metrics = evidence->metrics;
	uint32_t pid;

	if (evidence->device < evidence->facts->device_count)
		device = &evidence->facts->devices[evidence->device];
	if (incident) {
		metrics[METRIC_request] = evidence_request(evidence->facts, incident);
		metrics[METRIC_free] = incident->free_bytes;
		if (is_known(incident->total_bytes))
			metrics[METRIC_total] = incident->total_bytes;
		else if (device)
			metrics[METRIC_total] = device->total_bytes;
	} else if (device) {
		metrics[METRIC_free] = device->free_bytes;
		metrics[METRIC_total] = device->total_bytes;
	}
	if (incident)
		set_page_lock(evidence);
	if (!device)
		return;
	pid = evidence->facts->processes[evidence->process].pid;
	if (incident)
		sum_owners(evidence, incident->owners, incident->owner_count, pid);
	else
		sum_owners(evidence, device->owners, device->owner_count, pid);
	if (incident && !incident->owner_count)
		metrics[METRIC_mine] = metrics[METRIC_others] = metrics[METRIC_slack] =
			metrics[METRIC_others_run] = CUF_UNKNOWN;
	set_balance(evidence);
	if (!incident)
		return;
	set_room(evidence);
	name_neighbour(evidence, incident->owners, incident->owner_count);
	set_packing(evidence, device);
	set_before(evidence);
	evidence_set(evidence, SIGNAL_others_run,
		     ratio(metrics[METRIC_others_run], metrics[METRIC_shortfall]));
	static const enum signal shown_by_failure[] = {
		SIGNAL_own,	     SIGNAL_alone_fits,	    SIGNAL_others_run,	   SIGNAL_late,
		SIGNAL_room,	     SIGNAL_no_driver_call, SIGNAL_packed,	   SIGNAL_hole,
		SIGNAL_slack,	     SIGNAL_stranded,	    SIGNAL_foreign_caller, SIGNAL_sparse,
		SIGNAL_pinning,	     SIGNAL_pool,	    SIGNAL_contribution,   SIGNAL_creep,
		SIGNAL_host_request, SIGNAL_before,	    SIGNAL_over_device
	};
	for (size_t n = 0; n < sizeof shown_by_failure / sizeof *shown_by_failure; n++)
		evidence_show(evidence, shown_by_failure[n], incident->seq);
}
