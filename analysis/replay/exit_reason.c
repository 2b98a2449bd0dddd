/* SPDX-License-Identifier: Apache-2.0 */
/* The end record of a process or, where it is missing, what its absence means. */
#include "analysis/replay/exit_reason.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/key_values.h"
#include "analysis/replay/group_kills.h"
#include "analysis/replay/process_life.h"

#define LATE_NS 1000000000ull /* blocks of that last time may not have been touched */

/* Reads the sample that is `before` samples from the last; false: there is none. Fields that older
 * writers did not have are unknown. */
static bool sample_before_end(const struct reader *reader, uint64_t before,
			      struct cuf_sample *sample)
{
	uint64_t count = reader->header.sample_count, have = reader_count(reader, CUF_SEC_TIMELINE);
	uint32_t stride = reader->sections[CUF_SEC_TIMELINE].stride;
	count = least_of(count, have);
	*sample = (struct cuf_sample){ .cgroup_file_bytes = CUF_UNKNOWN };
	if (count > before)
		memcpy(sample, reader_at(reader, CUF_SEC_TIMELINE, count - 1 - before),
		       stride < sizeof *sample ? stride : sizeof *sample);
	return count > before;
}

/* The time of the last trace that the process left. */
static uint64_t last_recorded_ns(const struct run_process *process)
{
	const struct cuf_header *header = &process->reader->header;
	struct cuf_sample sample;
	uint64_t last = header->start_ns;
	if (sample_before_end(process->reader, 0, &sample) && sample.time_ns > last)
		last = sample.time_ns;
	if (process->events->count) {
		struct cuf_event event = events_get(process->events, process->events->count - 1);
		last = most_of(event.time_ns, last);
	}
	return last;
}

/* What the cgroup held without file pages, which can fill a cgroup up to its limit without harm.
 * CUF_UNKNOWN: not sampled. */
static uint64_t cgroup_bytes_before_end(const struct reader *reader, uint64_t before)
{
	struct cuf_sample sample;
	if (!sample_before_end(reader, before, &sample) || sample.cgroup_bytes == CUF_UNKNOWN)
		return CUF_UNKNOWN;
	if (sample.cgroup_file_bytes == CUF_UNKNOWN ||
	    sample.cgroup_file_bytes > sample.cgroup_bytes)
		return sample.cgroup_bytes;
	return sample.cgroup_bytes - sample.cgroup_file_bytes;
}

enum { RISES = 3 }; /* between samples: the trend towards the limit */

/* Of what was requested at last, the part that was not resident at the last sample. A sample that a
 * block brought about has counted it already. */
static uint64_t untouched_bytes(const struct run_process *process, const struct late_blocks *late)
{
	struct cuf_sample sample = { .rss_shared_bytes = CUF_UNKNOWN };
	uint64_t resident, most;
	if (!sample_before_end(process->reader, 0, &sample) || sample.rss_bytes == CUF_UNKNOWN ||
	    sample.host_live_bytes == CUF_UNKNOWN)
		return 0;
	resident = sample.rss_bytes;
	if (sample.rss_shared_bytes != CUF_UNKNOWN)
		resident = subtract_to_zero(resident, sample.rss_shared_bytes);
	most = subtract_to_zero(sample.host_live_bytes, resident) + late->since_sample_bytes;
	return least_of(late->bytes, most_of(most, late->fresh_bytes));
}

/*
 * The kernel's OOM killer leaves no record. It is inferred when the last sample was at the limit;
 * when it was above three quarters of the limit and would reach it after two more of the largest
 * recent rises; or when what was requested at last does not fit below the limit, for it is killed
 * where that is first touched.
 */
static const char *why_oom_killed(const struct run_process *process, const struct late_blocks *late,
				  struct arena *arena)
{
	uint64_t limit = meta_limit(&process->meta, "memory.max"),
		 last = cgroup_bytes_before_end(process->reader, 0), rise = 0, untouched;
	if (last == CUF_UNKNOWN || limit == CUF_UNKNOWN || !limit)
		return NULL;
	if (limit_is_reached(last, limit))
		return "no end record, and its cgroup was within 5% of its limit";
	for (uint64_t i = 0; i < RISES; i++) {
		uint64_t after = cgroup_bytes_before_end(process->reader, i),
			 before = cgroup_bytes_before_end(process->reader, i + 1);
		if (after != CUF_UNKNOWN && before != CUF_UNKNOWN && after > before &&
		    after - before > rise)
			rise = after - before;
	}
	if (last >= limit / 4 * 3 && last + 2 * rise >= limit)
		return "no end record, and its cgroup was two samples from its limit";
	untouched = untouched_bytes(process, late);
	if (untouched < limit / 20 || last + untouched < limit)
		return NULL;
	return arena_format(arena,
			    "no end record, and %" PRIu64 " MiB that it requested at last do not "
			    "fit below the limit of its cgroup", untouched >> 20);
}

/* Whether the process may have been the one that was killed in its group: what it had and had
 * requested is half of the limit or more. Pages that processes share are copied when written, so
 * that the rest need not be seen. */
static bool could_reach_limit(const struct run_process *process, const struct late_blocks *late)
{
	uint64_t limit = meta_limit(&process->meta, "memory.max"),
		 last = cgroup_bytes_before_end(process->reader, 0);
	struct cuf_sample sample;
	if (last == CUF_UNKNOWN || limit == CUF_UNKNOWN ||
	    !sample_before_end(process->reader, 0, &sample) || sample.rss_bytes == CUF_UNKNOWN)
		return true;
	return last + sample.rss_bytes + untouched_bytes(process, late) >= limit / 2;
}

static const char *const why_of_sender[] = {
	[KILL_BY_KERNEL_PROBABLY] = "SIGKILL reported by the parent, and the machine's oom_kill "
				    "count rose",
	[KILL_BY_ANOTHER] = "SIGKILL reported by the parent, not by the OOM killer (oom_kill "
			    "unchanged)",
	[KILL_UNKNOWN] = "SIGKILL reported by the parent",
};

/* SIGKILL, as the parent saw it. */
static struct exit_reason reason_of_kill(uint64_t in_group, uint64_t on_machine,
					 struct arena *arena)
{
	struct exit_reason reason = {
		.end = END_KILLED, .basis = BASIS_OBSERVED, .status = 9, .abnormal = true
	};
	enum kill_sender sender = kill_sender_of(in_group, on_machine);
	if (sender <= KILL_BY_KERNEL_PROBABLY) {
		reason.end = END_OOM_KILLED;
		reason.basis = BASIS_INFERRED;
	}
	if (sender == KILL_BY_KERNEL)
		reason.why = arena_format(arena, "SIGKILL reported by the parent, and oom_kill of "
					  "its cgroup rose by %" PRIu64, in_group);
	else
		reason.why = why_of_sender[sender];
	return reason;
}

/* What the parent (`cuflight run`) recorded of the end; false: nothing that decides. */
static bool reason_from_parent(const struct run_process *process, struct arena *arena,
			   struct exit_reason *reason)
{
	const char *text = meta_text(&process->meta, CUF_META_WAIT);
	uint64_t signal = key_number(text, "signal"), status = key_number(text, "exit_status"),
		 kills = key_number(text, "oom_kill");
	if (!text)
		return false;
	if (key_number(text, "running") == 1) { /* of a copy: it ran when it was copied */
		*reason = (struct exit_reason){ .end = END_RUNNING, .basis = BASIS_OBSERVED,
						.status = CUF_UNKNOWN, .is_copied = true,
						.why = "" };
		return true;
	}
	if (status != CUF_UNKNOWN) {
		*reason = (struct exit_reason){ .end = END_EXIT,
						.basis = BASIS_OBSERVED,
						.status = status,
						.abnormal = status != 0,
						.why = "exit status reported by the parent" };
		return true;
	}
	if (signal != CUF_UNKNOWN && signal != 9) {
		*reason = (struct exit_reason){ .end = END_SIGNAL,
						.basis = BASIS_OBSERVED,
						.status = signal,
						.abnormal = true,
						.why = "signal reported by the parent" };
		return true;
	}
	if (signal == 9) {
		*reason = reason_of_kill(kills, key_number(text, "system_oom_kill"), arena);
		return true;
	}
	if (!kills || kills == CUF_UNKNOWN)
		return false;
	*reason = (struct exit_reason){
		.end = END_OOM_KILLED,
		.basis = BASIS_INFERRED,
		.status = CUF_UNKNOWN,
		.abnormal = true,
		.why = arena_format(arena, "no end record, and oom_kill of its cgroup rose by "
				    "%" PRIu64, kills),
	};
	return true;
}

/*
 * Still running, out of sight, killed by the OOM killer, or ended by something unknown. The count
 * of its group, where it can still be read, decides over everything that is inferred from samples.
 */
static struct exit_reason reason_without_record(const struct run_process *process,
						const struct late_blocks *late, struct arena *arena)
{
	struct exit_reason reason = { .basis = BASIS_OBSERVED, .status = CUF_UNKNOWN, .why = "" };
	enum process_life life = process_life(process->reader);
	const char *why;
	uint64_t kills;

	if (life == LIFE_RUNS)
		return reason; /* END_RUNNING */
	if (life == LIFE_UNKNOWN) {
		reason.end = END_UNKNOWN;
		reason.why = "no end record, and whether it still runs cannot be seen from "
			     "here";
		return reason;
	}
	reason.basis = BASIS_INFERRED;
	reason.abnormal = true;
	reason.end = END_OOM_KILLED;
	kills = group_kills_since_start(process->reader, &process->meta);
	if (!kills) {
		reason.end = END_KILLED;
		reason.why = "no end record, and oom_kill of its cgroup did not rise";
	} else if ((why = why_oom_killed(process, late, arena))) {
		reason.why = why;
	} else if (kills != CUF_UNKNOWN && could_reach_limit(process, late)) {
		reason.why = arena_format(arena, "no end record, and oom_kill of its cgroup rose "
					  "by %" PRIu64, kills);
	} else {
		reason.end = END_KILLED;
		reason.why = "no end record";
	}
	return reason;
}

uint64_t exit_reason_late_ns(const struct run_process *process)
{
	return subtract_to_zero(last_recorded_ns(process), LATE_NS);
}

uint64_t exit_reason_sample_ns(const struct run_process *process)
{
	struct cuf_sample sample;
	return sample_before_end(process->reader, 0, &sample) ? sample.time_ns : 0;
}

/* In this order: the recorder's own end record, what the parent reported, and what can be
 * inferred. */
struct exit_reason exit_reason_of(const struct run_process *process, const struct late_blocks *late,
				  struct arena *arena)
{
	const struct cuf_header *header = &process->reader->header;
	struct exit_reason reason = { .basis = BASIS_OBSERVED, .status = CUF_UNKNOWN, .why = "" };
	switch (header->end_kind) {
	case CUF_END_EXIT: case CUF_END_FAST:
		reason.end = END_EXIT;
		reason.status = header->end_status;
		reason.abnormal = reason.status != 0;
		break;
	case CUF_END_ABORT:
		reason.end = END_SIGNAL;
		reason.status = header->end_status;
		reason.abnormal = true;
		break;
	case CUF_END_EXEC:
		reason.end = END_EXEC;
		break;
	default:
		if (!reason_from_parent(process, arena, &reason))
			reason = reason_without_record(process, late, arena);
		reason.end_ns = last_recorded_ns(process);
		reason.untouched_bytes = untouched_bytes(process, late);
		return reason;
	}
	reason.end_ns = header->end_ns;
	return reason;
}
