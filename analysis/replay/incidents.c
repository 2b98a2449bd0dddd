/* SPDX-License-Identifier: Apache-2.0 */
/* Links attempts into ladders and decides how each ladder ended. */
#include "analysis/replay/incidents.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/replay/replay.h"
#include "analysis/base/xalloc.h"

#define LADDER_NS 2000000000ull  /* a retry comes within two seconds */
/* a process that is killed this soon after a failure was killed by it */
#define LAST_NS 5000000000ull
#define START_OVER_NS 11000000000ull /* XLA waits ten seconds for a free, then starts over */
#define BACKED_OFF_PAGE (2ull << 20)
/* a framework frees its cache, synchronizes and retries before it gives up */
#define NEED_NS 10000000000ull
enum { WENT_ON = 64 };           /* after this many successes the program went on */
/* of the host: after so many bytes. To unwind, and to print what failed, takes less */
#define WENT_ON_BYTES (8ull << 20)
#define WENT_ON_NS 60000000000ull /* after so long it went on, though it only waited */
enum { SLOTS_MAX = 4096 };       /* more than any recorder lays out */

const char *const outcome_names[OUTCOME_MAX] = { "fatal", "recovered", "handled", "unknown" };

/*
 * What followed a failure, on its device. While one thread brings the process down (an exception
 * unwinds, a pool is joined), other threads keep working. So their successes count only when the
 * process has lived on for longer than that takes. The retry ladders of PyTorch, CuPy, RMM, ggml
 * and XLA run in the thread that asked first.
 */
struct aftermath {
	/* the same thread was served within the time of the ladder; 0: not */
	uint64_t served_seq, served_ns;
	uint64_t as_large;        /* lasting successes of at least the requested size */
	uint64_t lasting;         /* successes of the same thread, and of others after LAST_NS */
	uint64_t successes;       /* of any thread */
};

static bool is_framework(const struct cuf_incident *incident)
{
	return incident->kind == CUF_KIND_FRAMEWORK;
}

static bool is_success(const struct cuf_event *event, const struct cuf_incident *incident)
{
	if (event->op != CUF_OP_ALLOC || event->device != incident->device)
		return false;
	if (is_framework(incident))
		return event->kind == CUF_KIND_FRAMEWORK;
	return kind_is_block(event->kind);
}

static const struct cuf_incident *last_try(const struct ladder *ladder)
{
	return &ladder->tries[ladder->try_count - 1];
}

/* A framework's blocks are in a ring of their own. */
static const struct events *events_for(const struct run_process *process,
				       const struct cuf_incident *incident)
{
	if (is_framework(incident))
		return process->events->framework;
	return process->events;
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

/* A ladder on the walk over the events after its last attempt. */
struct followed {
	struct ladder *ladder;
	const struct cuf_incident *last;
	bool shrank, done;
	struct aftermath after;
};

/* An allocation of the ring in which the ladder's device is followed. */
static void follow_success(struct followed *followed, const struct cuf_event *event)
{
	const struct cuf_incident *last = followed->last;
	struct aftermath *after = &followed->after;
	bool late = event->time_ns > last->time_ns + LADDER_NS, lasts;

	if (!is_success(event, last))
		return;
	lasts = event->tid == last->tid || event->time_ns > last->time_ns + LAST_NS;
	after->successes++;
	after->lasting += lasts;
	after->as_large += lasts && last->is_request && event->bytes >= last->requested_bytes;
	followed->done = late && after->lasting > WENT_ON;
	if (last->is_request && event->tid == last->tid && !late &&
	    serves(event, last, followed->shrank)) {
		after->served_seq = event->seq;
		after->served_ns = event->time_ns;
		followed->done = true;
	}
}

/* What the event means for all that failed before it. Exit handlers are not work of the program. */
static void follow_event(struct followed *all, size_t count, const struct cuf_event *event,
			 uint64_t end_seq)
{
	bool ends = event->op == CUF_OP_EXIT || event->seq > end_seq;

	if (event->op != CUF_OP_ALLOC && !ends)
		return;
	for (size_t n = 0; n < count; n++) {
		if (all[n].done || event->seq <= all[n].last->seq)
			continue;
		if (ends)
			all[n].done = true;
		else
			follow_success(&all[n], event);
	}
}

/* The seq after which the walk goes on; CUF_UNKNOWN: all is known. */
static uint64_t wanted_after(const struct followed *all, size_t count, uint64_t seq)
{
	uint64_t next = CUF_UNKNOWN;

	for (size_t n = 0; n < count; n++)
		if (!all[n].done)
			next = least_of(next, most_of(all[n].last->seq, seq));
	return next;
}

/* One walk for all ladders of a ring, without what no ladder waits for. */
static void follow_ring(const struct events *events, struct followed *all, size_t count)
{
	enum { ROW = 8 };
	const struct cuf_header *header = &events->reader->header;
	uint64_t end_seq = CUF_UNKNOWN, seq = 0, wanted;

	if (header->end_kind && header->end_seq)
		end_seq = header->end_seq;
	for (size_t i = 0, end; (wanted = wanted_after(all, count, seq)) != CUF_UNKNOWN;) {
		if (wanted > seq)
			i = events_after(events, wanted);
		if (i >= events->count)
			return;
		for (end = least_of(i + ROW, events->count); i < end; i++) {
			struct cuf_event event = events_get(events, i);

			follow_event(all, count, &event, end_seq);
			seq = event.seq;
		}
	}
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
	} else if (after->lasting > WENT_ON || (last->outcome == 2 && !events_are_here)) {
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

	return last->kind == CUF_KIND_HOST && ended_ns > last->time_ns + LAST_NS &&
	       (worked_ns > last->time_ns || ended_ns > last->time_ns + WENT_ON_NS);
}

/* Without a success that proves anything, the end of the process decides. */
static void judge_by_end(struct ladder *ladder, const struct run_process *process,
			 const struct cuf_incident *last, const struct aftermath *after,
			 const struct exit_reason *end, uint64_t worked_ns)
{
	uint64_t soon_ns = last->time_ns + LAST_NS;

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
	else if (end->end_ns <= soon_ns && after->successes <= WENT_ON)
		/* with some successes, too: a process may be killed while it is busy */
		set_outcome(ladder, OUTCOME_FATAL, "the recording ends here without an end record");
	else
		set_outcome_unless_it_went_on(ladder, after, "the process was killed much later");
}

/* The rules are in analysis/facts/README.md, "Incidents". */
static void judge_ladder(const struct followed *followed, const struct run_process *process,
			 const struct exit_reason *end, uint64_t worked_ns)
{
	struct ladder *ladder = followed->ladder;
	const struct cuf_incident *last = followed->last;
	const struct events *events = events_for(process, last);

	ladder->resolved_ns = CUF_UNKNOWN;
	if (!judge_by_successes(ladder, last, &followed->after,
				events->complete_since <= last->seq))
		judge_by_end(ladder, process, last, &followed->after, end, worked_ns);
}

/* Whether the same need was served between two failures, which then are two needs. */
static bool was_served_between(const struct events *events, const struct cuf_incident *from,
			  const struct cuf_incident *to)
{
	for (size_t i = events_after(events, from->seq); i < events->count; i++) {
		struct cuf_event event = events_get(events, i);
		if (event.seq >= to->seq)
			break;
		if (is_success(&event, from) && event.tid == from->tid &&
		    serves(&event, from, true))
			return true;
	}
	return false;
}

/* An arena that shrank its request in vain starts over with the first size. */
static bool starts_over(const struct ladder *ladder, const struct cuf_incident *now)
{
	const struct cuf_incident *first = &ladder->tries[0],
				  *last = last_try(ladder);
	return last->requested_bytes < first->requested_bytes &&
	       now->requested_bytes == first->requested_bytes &&
	       now->time_ns <= last->time_ns + START_OVER_NS;
}

/* The recorder links attempts of one size. Attempts that shrink, as a caching allocator makes them,
 * are linked here. */
static bool continues(const struct ladder *ladder, const struct cuf_incident *now,
		      const struct run_process *process)
{
	const struct cuf_incident *last = last_try(ladder);
	if (now->first == last->first && now->attempt && !is_framework(last))
		return true;
	if (is_framework(last) || is_framework(now))
		return false;
	if (last->outcome || now->tid != last->tid || now->device != last->device ||
	    now->kind != last->kind || !now->is_request || !last->is_request)
		return false;
	return (starts_over(ladder, now) || (now->time_ns <= last->time_ns + LADDER_NS &&
					     now->requested_bytes <= last->requested_bytes &&
					     now->requested_bytes >= last->requested_bytes / 4)) &&
	       !was_served_between(process->events, last, now);
}

static int by_number(const void *a, const void *b)
{
	const struct cuf_incident *left = a, *right = b;
	return compare_numbers(left->number, right->number);
}

/* Reads every slot that is where its number belongs, in order of numbers. */
static struct cuf_incident *read_incidents(const struct reader *reader, size_t *count)
{
	uint64_t slots = reader->sections[CUF_SEC_INCIDENTS].planned,
		 ever = reader->header.incident_count, keep = slots / 4;
	uint64_t have = reader_count(reader, CUF_SEC_INCIDENTS);
	struct cuf_incident *found = NULL;
	size_t room = 0;
	*count = 0;
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
		xalloc_grow(&found, *count, &room, sizeof *found);
		found[(*count)++] = incident;
	}
	if (*count)
		qsort(found, *count, sizeof *found, by_number);
	return found;
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

/* The number of the last block that the thread got from the framework. What the driver refused
 * since then was for the block that failed. */
static uint64_t last_block_seq(const struct run_process *process, const struct cuf_incident *failed)
{
	const struct events *own = process->events->framework;
	for (size_t i = events_after(own, failed->seq); i--;) {
		struct cuf_event event = events_get(own, i);
		if (event.op == CUF_OP_ALLOC && event.kind == CUF_KIND_FRAMEWORK &&
		    event.tid == failed->tid && event.device == failed->device)
			return event.seq;
		if (event.time_ns + NEED_NS < failed->time_ns)
			break;
	}
	return 0;
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
	uint64_t since = last_block_seq(process, failed);
	size_t first = subtract_to_zero(ladders->count, LOOK_BACK), kept = first;
	struct ladder *need = NULL;
	for (size_t i = first; i < ladders->count; i++) {
		struct ladder *ladder = &ladders->items[i];
		const struct cuf_incident *last = last_try(ladder);
		bool same = !is_framework(last) && last->is_request && last->tid == failed->tid &&
			    last->device == failed->device && ladder->tries[0].seq > since &&
			    last->time_ns + NEED_NS >= failed->time_ns;
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

/* What followed each ladder; those of a framework, whose ring is another, come last. */
static struct followed *follow_ladders(const struct ladders *ladders,
				       const struct run_process *process)
{
	struct followed *all = xalloc_zeroed(ladders->count, sizeof *all);
	size_t of_device = 0, of_framework = 0;

	for (size_t i = 0; i < ladders->count; i++) {
		struct ladder *ladder = &ladders->items[i];
		const struct cuf_incident *last = last_try(ladder);
		bool shrank = last->requested_bytes < ladder->tries[0].requested_bytes;

		if (is_framework(last))
			all[ladders->count - ++of_framework] =
				(struct followed){ .ladder = ladder, .last = last };
		else
			all[of_device++] = (struct followed){ .ladder = ladder,
							      .last = last,
							      .shrank = shrank };
	}
	follow_ring(process->events, all, of_device);
	follow_ring(process->events->framework, all + of_device, of_framework);
	return all;
}

void ladders_init(struct ladders *ladders, const struct run_process *process,
		  const struct exit_reason *ending)
{
	struct followed *followed;
	uint64_t worked_ns = 0; /* of the host, where one of its requests failed */
	size_t count, room = 0;
	struct cuf_incident *all = read_incidents(process->reader, &count);
	bool host_failed = false;

	*ladders = (struct ladders){ 0 };
	for (size_t i = 0; i < count; i++) {
		struct ladder *ladder;

		host_failed |= all[i].kind == CUF_KIND_HOST;
		if (is_framework(&all[i]))
			ladder = ladder_given_up(ladders, &all[i], process);
		else
			ladder = ladder_for(ladders, &all[i], process);
		if (!ladder)
			ladder = ladder_new(ladders, &room);
		xalloc_grow(&ladder->tries, ladder->try_count, &ladder->try_room,
			    sizeof *ladder->tries);
		ladder->tries[ladder->try_count++] = all[i];
	}
	if (host_failed && ending->abnormal)
		worked_ns = last_worked_ns(process, ending);
	followed = follow_ladders(ladders, process);
	for (size_t i = 0; i < ladders->count; i++) {
		judge_ladder(&followed[i], process, ending, worked_ns);
		rollback_find(&ladders->items[i], process->events);
	}
	free(followed);
	free(all);
}

/* Each ladder owns the array of its attempts. */
void ladders_fini(struct ladders *ladders)
{
	for (size_t i = 0; i < ladders->count; i++)
		free(ladders->items[i].tries);
	free(ladders->items);
}
