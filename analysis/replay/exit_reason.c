/* SPDX-License-Identifier: Apache-2.0 */
/* The end record of a process or, where it is missing, what its absence means. */
#include "analysis/replay/exit_reason.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/key_values.h"

const char *const end_names[END_MAX] = {
	"running", "exit", "signal", "killed", "oom_killed", "exec"
};

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

/* Process ids and start times are unique only within one boot of a machine. */
static bool same_boot(const uint8_t recorded[16])
{
	static const uint8_t unknown[16];
	char text[40] = "";
	uint8_t now[16];
	unsigned n = 0;
	FILE *f;
	if (!memcmp(recorded, unknown, sizeof unknown) ||
	    !(f = fopen("/proc/sys/kernel/random/boot_id", "re")))
		return false;
	if (!fgets(text, sizeof text, f))
		*text = 0;
	fclose(f);
	for (const char *at = text; *at && n < 16; at += *at == '-' ? 1 : 2) {
		char pair[3] = { at[0], at[1], 0 };
		if (*at != '-')
			now[n++] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return n == 16 && !memcmp(now, recorded, sizeof now);
}

/* Whether the recorded process still runs: same boot, same pid, same start time, no zombie. */
static bool still_there(const struct cuf_header *header)
{
	char name[64], text[1024] = "", *at;
	unsigned long long ticks = 0;
	char state = 'Z';
	FILE *f;
	if (header->process_start_ticks == CUF_UNKNOWN || !header->process_start_ticks ||
	    !same_boot(header->boot_id))
		return false;
	snprintf(name, sizeof name, "/proc/%u/stat", header->pid);
	f = fopen(name, "re");
	if (!f)
		return false;
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	/* the name can have any characters; field 3 is the state, 22 the start time */
	at = strrchr(text, ')');
	if (!at ||
	    sscanf(at + 1,
		   " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s"
		   " %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
		   &state, &ticks) != 2)
		return false;
	return ticks == header->process_start_ticks && state != 'Z' && state != 'X';
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

/*
 * The kernel's OOM killer leaves no record. It is inferred when the last sample was at the limit,
 * or when it was above three quarters of the limit and would reach it after two more of the
 * largest recent rises.
 */
static const char *why_oom_killed(const struct run_process *process)
{
	uint64_t limit = meta_limit(&process->meta, "memory.max"),
		 last = cgroup_bytes_before_end(process->reader, 0), rise = 0;
	if (last == CUF_UNKNOWN || limit == CUF_UNKNOWN || !limit)
		return NULL;
	if (last >= limit - limit / 20)
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
	return NULL;
}

/* What the parent (`cuflight run`) recorded of the end; false: nothing. */
static bool reason_from_parent(const struct run_process *process, struct arena *arena,
			   struct exit_reason *reason)
{
	const char *text = meta_text(&process->meta, CUF_META_WAIT);
	uint64_t signal = key_number(text, "signal"), status = key_number(text, "exit_status"),
		 kills = key_number(text, "oom_kill");
	bool for_memory = kills && kills != CUF_UNKNOWN;
	if (!text)
		return false;
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
	if (signal == CUF_UNKNOWN && !for_memory)
		return false;
	*reason = (struct exit_reason){
		.end = END_KILLED,
		.basis = BASIS_OBSERVED,
		.status = signal,
		.abnormal = true,
		.why = "SIGKILL reported by the parent, not by the OOM killer (oom_kill unchanged)",
	};
	if (for_memory) {
		reason->end = END_OOM_KILLED;
		reason->basis = BASIS_INFERRED;
		reason->why = arena_format(
			arena, "%s, and oom_kill of its cgroup rose by %" PRIu64,
			signal == 9 ? "SIGKILL reported by the parent" : "no end record", kills);
	}
	return true;
}

/* Still running, killed by the OOM killer, or killed by something unknown. */
static struct exit_reason reason_without_record(const struct run_process *process)
{
	const char *oom_killed;

	if (still_there(&process->reader->header))
		return (struct exit_reason){ .end = END_RUNNING,
					     .basis = BASIS_OBSERVED,
					     .status = CUF_UNKNOWN,
					     .why = "" };
	oom_killed = why_oom_killed(process);
	return (struct exit_reason){ .end = oom_killed ? END_OOM_KILLED : END_KILLED,
				     .basis = BASIS_INFERRED,
				     .status = CUF_UNKNOWN,
				     .abnormal = true,
				     .why = oom_killed ? oom_killed : "no end record" };
}

/* In this order: the recorder's own end record, what the parent reported, and what can be
 * inferred. */
struct exit_reason exit_reason_of(const struct run_process *process, struct arena *arena)
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
			reason = reason_without_record(process);
		reason.end_ns = last_recorded_ns(process);
		return reason;
	}
	reason.end_ns = header->end_ns;
	return reason;
}
