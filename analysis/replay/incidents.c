/* SPDX-License-Identifier: Apache-2.0 */
/* Links attempts into ladders and decides how each ladder ended. */
#include "analysis/replay/incidents.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/replay/replay.h"
#include "analysis/base/xalloc.h"

/* of the host: after so many bytes. To unwind, and to print what failed, takes less */
#define WENT_ON_BYTES (8ull << 20)
#define WENT_ON_NS 60000000000ull /* after so long it went on, though it only waited */

/* ---- the failed requests ---- */

#define BACKED_OFF_PAGE (2ull << 20)
#define APART_NS 1000000000ull   /* clocks of threads differ by less */
enum { SLOTS_MAX = 4096 };       /* more than any recorder lays out */

static bool is_framework(const struct cuf_incident *incident)
{
	return incident->kind == CUF_KIND_FRAMEWORK;
}

/* ---- which allocation serves which need ---- */

static bool is_success(const struct cuf_event *event, const struct cuf_incident *incident)
{
	if (event->op != CUF_OP_ALLOC || event->device != incident->device)
		return false;
	if (is_framework(incident))
		return event->kind == CUF_KIND_FRAMEWORK;
	return kind_is_block(event->kind);
}

/* The arenas of TensorFlow, XLA and ONNX Runtime request nine tenths after a failure
 * (bfc_allocator.cc, bfc_arena.cc). Physical memory comes in pages. */
static bool is_backed_off(uint64_t bytes, uint64_t refused_bytes)
{
	uint64_t least = refused_bytes / 10 * 9;
	return bytes < refused_bytes && bytes + BACKED_OFF_PAGE >= least &&
	       bytes <= least + BACKED_OFF_PAGE;
}

/* Whether an allocation serves the need: at least as large as requested. A ladder that shrinks is
 * served by little less than its last request. */
static bool serves(const struct cuf_event *event, const struct cuf_incident *last, bool shrank)
{
	uint64_t least = last->requested_bytes;

	if (shrank)
		least -= least / 4;
	return event->bytes >= least || is_backed_off(event->bytes, last->requested_bytes);
}

/* ---- what follows ---- */

/* An allocation of the ring in which the failure's device is followed. */
static void follow_success(struct aftermath *after, const struct cuf_incident *last, bool shrank,
			   const struct cuf_event *event)
{
	bool late = event->time_ns > last->time_ns + FAILURE_LADDER_NS, lasts;

	if (after->done)
		return;
	lasts = event->tid == last->tid || event->time_ns > last->time_ns + FAILURE_LAST_NS;
	after->successes++;
	after->lasting += lasts;
	after->as_large += lasts && last->is_request && event->bytes >= last->requested_bytes;
	after->done = late && after->lasting > FAILURE_WENT_ON;
	if (last->is_request && event->tid == last->tid && !late && serves(event, last, shrank)) {
		after->served_seq = event->seq;
		after->served_ns = event->time_ns;
		after->done = true;
	}
}

/* Exit handlers are not work of the program. False: nothing more is to be known. */
static bool follow(struct failure *failure, const struct cuf_event *event, bool ends)
{
	const struct cuf_incident *last = &failure->incident;

	if (is_success(event, last)) {
		if (!failure->served_seq && event->tid == last->tid && serves(event, last, true))
			failure->served_seq = event->seq;
		for (unsigned shrank = 0; shrank < 2 && !ends; shrank++)
			follow_success(&failure->after[shrank], last, shrank, event);
	}
	if (ends)
		failure->after[0].done = failure->after[1].done = true;
	return !failure->after[0].done || !failure->after[1].done ||
	       (!failure->served_seq &&
		event->time_ns <= last->time_ns + FAILURE_START_OVER_NS + APART_NS);
}

static void follow_all(struct failures *failures, const struct cuf_event *event, bool of_framework)
{
	bool ends = event->op == CUF_OP_EXIT || event->seq > failures->end_seq;

	if (event->op != CUF_OP_ALLOC && !ends)
		return;
	for (size_t i = 0; i < failures->active_count;) {
		struct failure *failure = &failures->items[failures->active[i]];

		if (is_framework(&failure->incident) != of_framework ||
		    follow(failure, event, ends))
			i++;
		else
			failures->active[i] = failures->active[--failures->active_count];
	}
}

/* ---- what a framework did before ---- */

static void look_at_block(struct failure *failure, const struct cuf_event *event)
{
	if (event->seq && event->op == CUF_OP_ALLOC && event->kind == CUF_KIND_FRAMEWORK &&
	    event->tid == failure->incident.tid && event->device == failure->incident.device)
		failure->block_seq = event->seq;
}

/* Of events close to a failure, and of the one before these. */
static void look_forward(struct failures *failures, const struct cuf_event *event)
{
	for (size_t i = failures->next; i < failures->count; i++) {
		struct failure *failure = &failures->items[failures->by_seq[i]];

		if (event->time_ns + FAILURE_NEED_NS < failure->incident.time_ns)
			break;
		if (!is_framework(&failure->incident))
			continue;
		if (!failure->is_looked_for)
			look_at_block(failure, &failures->before);
		failure->is_looked_for = true;
		look_at_block(failure, event);
	}
	failures->before = *event;
}

/* ---- all ---- */

static void activate(struct failures *failures)
{
	uint32_t number = failures->by_seq[failures->next++];
	struct failure *failure = &failures->items[number];

	if (is_framework(&failure->incident) && !failure->is_looked_for)
		look_at_block(failure, &failures->before);
	failures->active[failures->active_count++] = number;
}

static void hear(void *state, const struct cuf_event *event, bool of_framework)
{
	struct failures *failures = state;

	if (event->seq > failures->until_seq)
		return;
	while (failures->next < failures->count &&
	       failures->items[failures->by_seq[failures->next]].incident.seq < event->seq)
		activate(failures);
	follow_all(failures, event, of_framework);
	if (of_framework)
		look_forward(failures, event);
}

/* No event followed those that are left. */
static void hear_end(void *state)
{
	struct failures *failures = state;

	while (failures->next < failures->count)
		activate(failures);
}

/* The order was another one: what was heard is forgotten. */
static void forget(void *state)
{
	struct failures *failures = state;

	for (size_t i = 0; i < failures->count; i++)
		failures->items[i] = (struct failure){ .incident = failures->items[i].incident };
	failures->active_count = failures->next = 0;
	failures->before = (struct cuf_event){ 0 };
}

struct events_listener failures_listener(struct failures *failures)
{
	return (struct events_listener){ failures ? hear : NULL, hear_end, forget, failures };
}

static int by_number(const void *a, const void *b)
{
	const struct failure *left = a, *right = b;
	return compare_numbers(left->incident.number, right->incident.number);
}

/* Reads every slot that is where its number belongs, in order of numbers. */
static void read_incidents(struct failures *failures, const struct reader *reader)
{
	uint64_t slots = reader->sections[CUF_SEC_INCIDENTS].planned,
		 ever = reader->header.incident_count, keep = slots / 4;
	uint64_t have = reader_count(reader, CUF_SEC_INCIDENTS);
	size_t room = 0;

	for (uint64_t slot = 0; slot < have && slot < SLOTS_MAX; slot++) {
		struct cuf_incident incident;
		uint64_t home;
		if (!reader_incident_slot(reader, slot, &incident))
			continue;
		home = incident.number - 1;
		if (home >= keep)
			home = keep + (home - keep) % (slots - keep);
		if (incident.number > ever || home != slot || incident.kind >= CUF_KIND_MAX)
			continue;
		xalloc_grow(&failures->items, failures->count, &room, sizeof *failures->items);
		failures->items[failures->count++] = (struct failure){ .incident = incident };
	}
	if (failures->count)
		qsort(failures->items, failures->count, sizeof *failures->items, by_number);
}

struct placed { uint64_t seq; uint32_t number; };

static int by_seq(const void *a, const void *b)
{
	const struct placed *left = a, *right = b;
	if (left->seq != right->seq)
		return compare_numbers(left->seq, right->seq);
	return compare_numbers(left->number, right->number);
}

struct failures *failures_new(const struct reader *reader)
{
	struct failures *failures = xalloc_zeroed(1, sizeof *failures);
	struct placed *placed;

	read_incidents(failures, reader);
	if (!failures->count) {
		free(failures);
		return NULL;
	}
	failures->until_seq = reader->until_seq;
	failures->end_seq = CUF_UNKNOWN;
	if (reader->header.end_kind && reader->header.end_seq)
		failures->end_seq = reader->header.end_seq;
	failures->by_seq = xalloc_zeroed(failures->count, sizeof *failures->by_seq);
	failures->active = xalloc_zeroed(failures->count, sizeof *failures->active);
	placed = xalloc_zeroed(failures->count, sizeof *placed);
	for (uint32_t i = 0; i < failures->count; i++)
		placed[i] = (struct placed){ failures->items[i].incident.seq, i };
	qsort(placed, failures->count, sizeof *placed, by_seq);
	for (size_t i = 0; i < failures->count; i++)
		failures->by_seq[i] = placed[i].number;
	free(placed);
	return failures;
}

void failures_free(struct failures *failures)
{
	if (!failures)
		return;
	free(failures->items);
	free(failures->by_seq);
	free(failures->active);
	free(failures);
}

/* The one of that number. */
static struct failure *failures_find(const struct failures *failures,
				     const struct cuf_incident *incident)
{
	const struct failure key = { .incident.number = incident->number };

	return bsearch(&key, failures->items, failures->count, sizeof key, by_number);
}

/* Whether the need of one was served before a later event. */
static bool failures_served(const struct failures *failures,
			    const struct cuf_incident *incident, uint64_t before_seq)
{
	uint64_t served_seq = failures_find(failures, incident)->served_seq;

	return served_seq && served_seq < before_seq;
}

/* ---- ladders ---- */

/* A framework's blocks are in a ring of their own. */
static const struct events *events_for(const struct run_process *process,
				       const struct cuf_incident *incident)
{
	if (is_framework(incident))
		return process->events->framework;
	return process->events;
}

/* why is a constant of the program, never freed. */
static void set_outcome(struct ladder *ladder, enum fact_outcome outcome, const char *why)
{
	ladder->outcome = outcome;
	ladder->why = why;
}

/* When the work ended: the shutdown of an interpreter comes after it. */
static uint64_t work_ended_ns(const struct run_process *process, const struct exit_reason *end)
{
	uint64_t work_end_ns = process->reader->header.work_end_ns;

	if (!work_end_ns)
		return end->end_ns;
	return least_of(work_end_ns, end->end_ns);
}

/* What successes after the last attempt prove; false: nothing. The recorder saw a success itself
 * (outcome 1: of that size, 2: of any) where the events are gone. */
static bool judge_by_successes(struct ladder *ladder, const struct cuf_incident *last,
			       const struct aftermath *after, bool events_are_here)
{
	if (after->served_seq) {
		ladder->resolved_ns = after->served_ns;
		set_outcome(ladder, OUTCOME_RECOVERED, "a retry in the same thread succeeded");
	} else if (last->outcome == 1 && (!events_are_here || !after->as_large)) {
		set_outcome(ladder, OUTCOME_RECOVERED, "a later request of that size succeeded");
	} else if (after->as_large) {
		set_outcome(ladder, OUTCOME_HANDLED,
			    "a later request of at least that size succeeded");
	} else if (after->lasting > FAILURE_WENT_ON || (last->outcome == 2 && !events_are_here)) {
		set_outcome(ladder, OUTCOME_HANDLED, "the program kept allocating");
	} else {
		return false;
	}
	return true;
}

static void set_outcome_unless_it_went_on(struct ladder *ladder, const struct aftermath *after,
					  const char *why_unknown)
{
	if (after->successes)
		set_outcome(ladder, OUTCOME_HANDLED, "the program kept allocating");
	else
		set_outcome(ladder, OUTCOME_UNKNOWN, why_unknown);
}

/* The last moment after which the host's requests made WENT_ON_BYTES, before the work ended; 0:
 * there is none. While a program waits for its threads, or frees what it held, time passes and
 * nothing is requested. */
static uint64_t last_worked_ns(const struct run_process *process, const struct exit_reason *end)
{
	enum { STEPS = 8 };
	uint64_t steps_ns[STEPS] = { 0 }; /* when each of the last steps began */
	uint64_t ended_ns = work_ended_ns(process, end), bytes = 0, step = 0;
	struct host_stream *stream = host_stream_new(process->reader);
	struct host_event event;

	while (host_stream_next(stream, &event) && event.time_ns <= ended_ns) {
		if (host_event_sign(event.op) <= 0)
			continue;
		bytes += least_of(most_of(event.bytes, event.sample_mean_bytes), WENT_ON_BYTES);
		for (; bytes >= WENT_ON_BYTES / STEPS; bytes -= WENT_ON_BYTES / STEPS)
			steps_ns[step++ % STEPS] = event.time_ns;
	}
	host_stream_free(stream);
	return steps_ns[step % STEPS];
}

/* Successes of malloc are not recorded one by one. */
static bool host_went_on(const struct run_process *process, const struct cuf_incident *last,
			 const struct exit_reason *end, uint64_t worked_ns)
{
	uint64_t ended_ns = work_ended_ns(process, end);

	return last->kind == CUF_KIND_HOST && ended_ns > last->time_ns + FAILURE_LAST_NS &&
	       (worked_ns > last->time_ns || ended_ns > last->time_ns + WENT_ON_NS);
}

/* Without a success that proves anything, the end of the process decides. */
static void judge_by_end(struct ladder *ladder, const struct run_process *process,
			 const struct cuf_incident *last, const struct aftermath *after,
			 const struct exit_reason *end, uint64_t worked_ns)
{
	uint64_t soon_ns = last->time_ns + FAILURE_LAST_NS;

	if (end_may_run(end->end))
		set_outcome_unless_it_went_on(ladder, after,
					      end->end == END_RUNNING ?
						      "the process is still running" :
						      "the process may still run");
	else if (end->end == END_EXEC)
		set_outcome(ladder, OUTCOME_HANDLED, "the process executed another program");
	else if (!end->abnormal)
		set_outcome(ladder, OUTCOME_HANDLED, "the process ended with status 0");
	else if (end->end == END_OOM_KILLED)
		/* what the kernel refused at last was a page, not this request */
		set_outcome(ladder, OUTCOME_HANDLED,
			    "the process went on until the kernel killed it");
	else if (host_went_on(process, last, end, worked_ns))
		set_outcome(ladder, OUTCOME_HANDLED, "the program went on for seconds after it");
	else if (end->end == END_EXIT)
		set_outcome(ladder, OUTCOME_FATAL,
			    "the process exited with a failure and no request of that size "
			    "succeeded in between");
	else if (end->end == END_SIGNAL)
		set_outcome(ladder, OUTCOME_FATAL,
			    "the process aborted and no request of that size succeeded in between");
	else if (end->end_ns <= soon_ns && after->successes <= FAILURE_WENT_ON)
		/* with some successes, too: a process may be killed while it is busy */
		set_outcome(ladder, OUTCOME_FATAL, "the recording ends here without an end record");
	else
		set_outcome_unless_it_went_on(ladder, after, "the process was killed much later");
}

/* The rules are in analysis/facts/README.md, "Incidents". */
static void judge_ladder(struct ladder *ladder, const struct run_process *process,
			 const struct exit_reason *end, uint64_t worked_ns)
{
	const struct cuf_incident *last = ladder_last(ladder);
	const struct events *events = events_for(process, last);
	bool shrank = !is_framework(last) &&
		      last->requested_bytes < ladder->tries[0].requested_bytes;
	const struct aftermath *after = &failures_find(process->failures, last)->after[shrank];

	ladder->resolved_ns = CUF_UNKNOWN;
	if (!judge_by_successes(ladder, last, after, events->complete_since <= last->seq))
		judge_by_end(ladder, process, last, after, end, worked_ns);
}

/* An arena that shrank its request in vain starts over with the first size. */
static bool starts_over(const struct ladder *ladder, const struct cuf_incident *now)
{
	const struct cuf_incident *first = &ladder->tries[0],
				  *last = ladder_last(ladder);
	return last->requested_bytes < first->requested_bytes &&
	       now->requested_bytes == first->requested_bytes &&
	       now->time_ns <= last->time_ns + FAILURE_START_OVER_NS;
}

/* The recorder links attempts of one size. Attempts that shrink, as a caching allocator makes them,
 * are linked here. */
static bool continues(const struct ladder *ladder, const struct cuf_incident *now,
		      const struct run_process *process)
{
	const struct cuf_incident *last = ladder_last(ladder);
	if (now->first == last->first && now->attempt && !is_framework(last))
		return true;
	if (is_framework(last) || is_framework(now))
		return false;
	if (last->outcome || now->tid != last->tid || now->device != last->device ||
	    now->kind != last->kind || !now->is_request || !last->is_request)
		return false;
	return (starts_over(ladder, now) || (now->time_ns <= last->time_ns + FAILURE_LADDER_NS &&
					     now->requested_bytes <= last->requested_bytes &&
					     now->requested_bytes >= last->requested_bytes / 4)) &&
	       !failures_served(process->failures, last, now->seq);
}

/* Each thread can have an open ladder, so the last few are searched. */
enum { LOOK_BACK = 8 };

static struct ladder *ladder_for(struct ladders *ladders, const struct cuf_incident *incident,
				 const struct run_process *process)
{
	for (size_t back = 1; back <= ladders->count && back <= LOOK_BACK; back++)
		if (continues(&ladders->items[ladders->count - back], incident, process))
			return &ladders->items[ladders->count - back];
	return NULL;
}

static void merge_ladder(struct ladder *to, struct ladder *from)
{
	for (size_t i = 0; i < from->try_count; i++) {
		xalloc_grow(&to->tries, to->try_count, &to->try_room, sizeof *to->tries);
		to->tries[to->try_count++] = from->tries[i];
	}
	free(from->tries);
}

/*
 * A framework gives up. Every failure of the driver in that thread since the last block of the
 * framework belongs to this need. Between them it may have freed cached segments or mapped chunks
 * again. NULL: the driver had no failure.
 */
static struct ladder *ladder_given_up(struct ladders *ladders, const struct cuf_incident *failed,
				      const struct run_process *process)
{
	uint64_t since = failures_find(process->failures, failed)->block_seq;
	size_t first = subtract_to_zero(ladders->count, LOOK_BACK), kept = first;
	struct ladder *need = NULL;
	for (size_t i = first; i < ladders->count; i++) {
		struct ladder *ladder = &ladders->items[i];
		const struct cuf_incident *last = ladder_last(ladder);
		bool same = !is_framework(last) && last->is_request &&
			    last->tid == failed->tid && last->device == failed->device &&
			    ladder->tries[0].seq > since &&
			    last->time_ns + FAILURE_NEED_NS >= failed->time_ns;
		if (same && need) {
			merge_ladder(need, ladder);
			continue;
		}
		ladders->items[kept] = *ladder;
		if (same)
			need = &ladders->items[kept];
		kept++;
	}
	ladders->count = kept;
	return need;
}

static struct ladder *ladder_new(struct ladders *ladders, size_t *room)
{
	xalloc_grow(&ladders->items, ladders->count, room, sizeof *ladders->items);
	ladders->items[ladders->count] = (struct ladder){ 0 };
	return &ladders->items[ladders->count++];
}

void ladders_init(struct ladders *ladders, const struct run_process *process,
		  const struct exit_reason *ending)
{
	const struct failures *failures = process->failures;
	uint64_t worked_ns = 0; /* of the host, where one of its requests failed */
	size_t room = 0;
	bool host_failed = false;

	*ladders = (struct ladders){ 0 };
	for (size_t i = 0; failures && i < failures->count; i++) {
		struct cuf_incident read, *failed = &failures->items[i].incident;
		struct ladder *ladder;

		/* call sites that print alike are one by now */
		if (reader_incident(process->reader, failed->number, &read))
			failed = &read;

		host_failed |= failed->kind == CUF_KIND_HOST;
		if (is_framework(failed))
			ladder = ladder_given_up(ladders, failed, process);
		else
			ladder = ladder_for(ladders, failed, process);
		if (!ladder)
			ladder = ladder_new(ladders, &room);
		xalloc_grow(&ladder->tries, ladder->try_count, &ladder->try_room,
			    sizeof *ladder->tries);
		ladder->tries[ladder->try_count++] = *failed;
	}
	if (host_failed && ending->abnormal)
		worked_ns = last_worked_ns(process, ending);
	for (size_t i = 0; i < ladders->count; i++) {
		judge_ladder(&ladders->items[i], process, ending, worked_ns);
		rollback_find(&ladders->items[i], process->events);
	}
}

/* Each ladder owns the array of its attempts. */
void ladders_fini(struct ladders *ladders)
{
	for (size_t i = 0; i < ladders->count; i++)
		free(ladders->items[i].tries);
	free(ladders->items);
}
