/* SPDX-License-Identifier: Apache-2.0 */
/* Links tries into ladders and finds out how each ended. */
#include "analysis/replay/incidents.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/replay/replay.h"
#include "analysis/base/xalloc.h"

#define LADDER_NS 2000000000ull  /* a retry comes within two seconds */
#define LAST_NS 5000000000ull    /* a process killed this soon after a failure was killed by it */
#define START_OVER_NS 11000000000ull /* XLA waits for ten seconds until somebody frees, and comes down once more */
#define BACKED_OFF_PAGE (2ull << 20)
#define NEED_NS 10000000000ull   /* a framework frees its cache, synchronizes and tries again before it gives up */
enum { WENT_ON = 64 };           /* so many successes later, the program goes on */
enum { SLOTS_MAX = 4096 };       /* many more than any recorder lays out */

const char *const outcome_names[OUTCOME_MAX] = { "fatal", "recovered", "handled", "unknown" };

/*
 * What came after a failure, on its device. Other threads work on while one of them brings the process down (an exception
 * unwinds, a pool is joined): their successes say nothing until the process has lived on for longer than that takes. The ladders of PyTorch, CuPy,
 * RMM, ggml and XLA ask again in the thread that asked first.
 */
struct aftermath {
	uint64_t served_seq, served_ns; /* the same thread got what it wanted within the ladder's time; 0 */
	uint64_t as_large;        /* lasting successes of at least that size */
	uint64_t lasting;         /* successes of the same thread at any time, of others after LAST_NS */
	uint64_t successes;       /* of anybody */
};

static bool is_framework(const struct cuf_incident *incident)
{
	return incident->kind == CUF_KIND_FRAMEWORK;
}

static bool is_success(const struct cuf_event *event, const struct cuf_incident *incident)
{
	return event->op == CUF_OP_ALLOC && event->device == incident->device &&
	       (is_framework(incident) ? event->kind == CUF_KIND_FRAMEWORK
				       : kind_is_block(event->kind));
}

/* A framework's blocks are reported beside the driver's. */
static const struct events *events_for(const struct run_process *process,
				       const struct cuf_incident *incident)
{
	return is_framework(incident) ? process->events->framework : process->events;
}

/* TensorFlow's, XLA's and ONNX Runtime's arenas ask for nine tenths when they are refused (bfc_allocator.cc, bfc_arena.cc); physical memory comes in pages. */
static bool is_backed_off(uint64_t bytes, uint64_t refused_bytes)
{
	uint64_t least = refused_bytes / 10 * 9;
	return bytes < refused_bytes && bytes + BACKED_OFF_PAGE >= least &&
	       bytes <= least + BACKED_OFF_PAGE;
}

/* Serves a need: as large as asked; a ladder that shrinks is content with what the last try asked for, or little less. */
static bool serves(const struct cuf_event *event, const struct cuf_incident *last, bool shrank)
{
	return event->bytes >= (shrank ? last->requested_bytes - last->requested_bytes / 4
				       : last->requested_bytes) ||
	       is_backed_off(event->bytes, last->requested_bytes);
}

static struct aftermath look_after(const struct events *events, const struct cuf_incident *last,
				   bool shrank)
{
	const struct cuf_header *header = &events->reader->header;
	uint64_t end_seq = header->end_kind && header->end_seq ? header->end_seq : CUF_UNKNOWN;
	struct aftermath after = { 0 };
	for (size_t i = events_after(events, last->seq); i < events->count; i++) {
		struct cuf_event event = events_get(events, i);
		bool late = event.time_ns > last->time_ns + LADDER_NS, lasts;
		if (event.op == CUF_OP_EXIT || event.seq > end_seq)
			break; /* exit handlers are not the program's own work */
		if (!is_success(&event, last))
			continue;
		lasts = event.tid == last->tid || event.time_ns > last->time_ns + LAST_NS;
		after.successes++;
		after.lasting += lasts;
		after.as_large += lasts && last->is_request && event.bytes >= last->requested_bytes;
		if (last->is_request && event.tid == last->tid && !late &&
		    serves(&event, last, shrank)) {
			after.served_seq = event.seq;
			after.served_ns = event.time_ns;
			break;
		}
		if (late && after.lasting > WENT_ON)
			break;
	}
	return after;
}

static void decide(struct ladder *ladder, enum fact_outcome outcome, const char *why)
{
	ladder->outcome = outcome;
	ladder->why = why;
}

/* Without the time that an interpreter takes to shut down. */
static uint64_t work_ended_ns(const struct run_process *process, const struct exit_reason *end)
{
	uint64_t work_end_ns = process->reader->header.work_end_ns;
	return work_end_ns ? least_of(work_end_ns, end->end_ns) : end->end_ns;
}

static void judge(struct ladder *ladder, const struct run_process *process,
		  const struct exit_reason *end)
{
	const struct cuf_incident *last = &ladder->tries[ladder->try_count - 1];
	bool shrank =
		!is_framework(last) && last->requested_bytes < ladder->tries[0].requested_bytes;
	const struct events *events = events_for(process, last);
	struct aftermath after = look_after(events, last, shrank);
	bool seen = events->complete_since <= last->seq;
	ladder->resolved_ns = CUF_UNKNOWN;
	if (after.served_seq) {
		ladder->resolved_ns = after.served_ns;
		decide(ladder, OUTCOME_RECOVERED, "a retry of the same thread was served");
	} else if (last->outcome == 1 && (!seen || !after.as_large)) {
		decide(ladder, OUTCOME_RECOVERED,
		       "the recorder saw a later request of that size served");
	} else if (after.as_large) {
		decide(ladder, OUTCOME_HANDLED, "a request as large succeeded later");
	} else if (after.lasting > WENT_ON || (last->outcome == 2 && !seen)) {
		decide(ladder, OUTCOME_HANDLED, "the program went on allocating");
	} else if (end->end == END_RUNNING) {
		decide(ladder, after.successes ? OUTCOME_HANDLED : OUTCOME_UNKNOWN,
		       after.successes ? "the program went on allocating"
				       : "the process is still running");
	} else if (end->end == END_EXEC) {
		decide(ladder, OUTCOME_HANDLED, "the process went on as another program");
	} else if (!end->abnormal) {
		decide(ladder, OUTCOME_HANDLED, "the process ended with status 0");
	} else if (last->kind == CUF_KIND_HOST && work_ended_ns(process, end) > last->time_ns + LAST_NS) { /* malloc's successes are not looked at */
		decide(ladder, OUTCOME_HANDLED, "the program went on for long after it");
	} else if (end->end == END_EXIT || end->end == END_SIGNAL) {
		decide(ladder, OUTCOME_FATAL,
		       end->end == END_EXIT
			       ? "the process exited with a failure and that thread got nothing as large since"
			       : "the process aborted and that thread got nothing as large since");
	} else if (end->end_ns <= last->time_ns + LAST_NS && after.successes <= WENT_ON) { /* a supervisor may have killed it, busy as it was */
		decide(ladder, OUTCOME_FATAL, "the recording ends here, without an end record");
	} else {
		decide(ladder, after.successes ? OUTCOME_HANDLED : OUTCOME_UNKNOWN,
		       after.successes ? "the program went on allocating"
				       : "the process was killed much later");
	}
}

static bool got_something(const struct events *events, const struct cuf_incident *from,
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

/* An arena that came down in vain and starts over. */
static bool starts_over(const struct ladder *ladder, const struct cuf_incident *now)
{
	const struct cuf_incident *first = &ladder->tries[0],
				  *last = &ladder->tries[ladder->try_count - 1];
	return last->requested_bytes < first->requested_bytes &&
	       now->requested_bytes == first->requested_bytes &&
	       now->time_ns <= last->time_ns + START_OVER_NS;
}

/* The recorder links tries of one size; sizes that shrink (a caching allocator trying less) are linked here. */
static bool continues(const struct ladder *ladder, const struct cuf_incident *now,
		      const struct run_process *process)
{
	const struct cuf_incident *last = &ladder->tries[ladder->try_count - 1];
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
	       !got_something(process->events, last, now);
}

static int by_number(const void *a, const void *b)
{
	const struct cuf_incident *left = a, *right = b;
	return compare_numbers(left->number, right->number);
}

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
		home = incident.number <= keep
			       ? incident.number - 1
			       : keep + (incident.number - 1 - keep) % (slots - keep);
		if (incident.number > ever || home != slot || incident.kind >= CUF_KIND_MAX)
			continue;
		xalloc_grow(&found, *count, &room, sizeof *found);
		found[(*count)++] = incident;
	}
	if (*count)
		qsort(found, *count, sizeof *found, by_number);
	return found;
}

/* Several ladders may be open at once, one a thread: look back a few. */
enum { LOOK_BACK = 8 };

static struct ladder *ladder_for(struct ladders *ladders, const struct cuf_incident *incident,
				 const struct run_process *process)
{
	for (size_t back = 1; back <= ladders->count && back <= LOOK_BACK; back++)
		if (continues(&ladders->items[ladders->count - back], incident, process))
			return &ladders->items[ladders->count - back];
	return NULL;
}

/* When the thread got its last block from the framework: what the driver refused it since then was for the block that failed. */
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

static void take_over(struct ladder *to, struct ladder *from)
{
	for (size_t i = 0; i < from->try_count; i++) {
		xalloc_grow(&to->tries, to->try_count, &to->try_room, sizeof *to->tries);
		to->tries[to->try_count++] = from->tries[i];
	}
	free(from->tries);
}

/*
 * A framework gives up: every failure of the driver in that thread since the framework's last block is one need with it,
 * whatever lay between (cached segments given back, chunks of the first try mapped anew). NULL: the driver was not asked.
 */
static struct ladder *ladder_given_up(struct ladders *ladders, const struct cuf_incident *failed,
				      const struct run_process *process)
{
	uint64_t since = last_block_seq(process, failed);
	size_t first = subtract_to_zero(ladders->count, LOOK_BACK), kept = first;
	struct ladder *need = NULL;
	for (size_t i = first; i < ladders->count; i++) {
		struct ladder *ladder = &ladders->items[i];
		const struct cuf_incident *last = &ladder->tries[ladder->try_count - 1];
		bool same = !is_framework(last) && last->is_request && last->tid == failed->tid &&
			    last->device == failed->device && ladder->tries[0].seq > since &&
			    last->time_ns + NEED_NS >= failed->time_ns;
		if (same && need) {
			take_over(need, ladder);
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
	size_t count, room = 0;
	struct cuf_incident *all = read_incidents(process->reader, &count);
	*ladders = (struct ladders){ 0 };
	for (size_t i = 0; i < count; i++) {
		struct ladder *ladder = is_framework(&all[i])
						? ladder_given_up(ladders, &all[i], process)
						: ladder_for(ladders, &all[i], process);
		if (!ladder)
			ladder = ladder_new(ladders, &room);
		xalloc_grow(&ladder->tries, ladder->try_count, &ladder->try_room,
			    sizeof *ladder->tries);
		ladder->tries[ladder->try_count++] = all[i];
	}
	for (size_t i = 0; i < ladders->count; i++) {
		judge(&ladders->items[i], process, ending);
		rollback_find(&ladders->items[i], process->events);
	}
	free(all);
}

void ladders_fini(struct ladders *ladders)
{
	for (size_t i = 0; i < ladders->count; i++)
		free(ladders->items[i].tries);
	free(ladders->items);
}
