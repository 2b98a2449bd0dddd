/* SPDX-License-Identifier: Apache-2.0 */
/* The end record, or what its absence means. */
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

/* The last sample but so many; false: there is none. What older writers did not write is unknown. */
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

/* The pid of this boot with the recorded start time, and not a zombie. */
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
	at = strrchr(text, ')'); /* the name may hold anything; field 3 is the state, 22 the start */
	if (!at ||
	    sscanf(at + 1,
		   " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
		   &state, &ticks) != 2)
		return false;
	return ticks == header->process_start_ticks && state != 'Z' && state != 'X';
}

/* Of its cgroup, without pages of files: they fill a cgroup up to its limit without harm. CUF_UNKNOWN: not sampled. */
static uint64_t held_before_end(const struct reader *reader, uint64_t before)
{
	struct cuf_sample sample;
	if (!sample_before_end(reader, before, &sample) || sample.cgroup_bytes == CUF_UNKNOWN)
		return CUF_UNKNOWN;
	return sample.cgroup_file_bytes == CUF_UNKNOWN ||
			       sample.cgroup_file_bytes > sample.cgroup_bytes
		       ? sample.cgroup_bytes
		       : sample.cgroup_bytes - sample.cgroup_file_bytes;
}

enum { RISES = 3 }; /* between samples, looked at for where memory was heading */

/*
 * The kernel's OOM killer leaves no record: memory at its limit in the last sample is what tells, or on its way there: from
 * three quarters of the limit on, twice what it lately rose by from one sample to the next.
 */
static const char *why_for_memory(const struct run_process *process)
{
	uint64_t limit = meta_limit(&process->meta, "memory.max"),
		 last = held_before_end(process->reader, 0), rise = 0;
	if (last == CUF_UNKNOWN || limit == CUF_UNKNOWN || !limit)
		return NULL;
	if (last >= limit - limit / 20)
		return "no end record, and its cgroup was within 5% of its limit";
	for (uint64_t i = 0; i < RISES; i++) {
		uint64_t after = held_before_end(process->reader, i),
			 before = held_before_end(process->reader, i + 1);
		if (after != CUF_UNKNOWN && before != CUF_UNKNOWN && after > before &&
		    after - before > rise)
			rise = after - before;
	}
	return last >= limit / 4 * 3 && last + 2 * rise >= limit
		       ? "no end record, and its cgroup was two samples from its limit"
		       : NULL;
}

/* What `cuflight run` saw as the parent; false: nothing. */
static bool told_by_parent(const struct run_process *process, struct arena *arena,
			   struct exit_reason *ending)
{
	const char *text = meta_text(&process->meta, CUF_META_WAIT);
	uint64_t signal = key_number(text, "signal"), status = key_number(text, "exit_status"),
		 kills = key_number(text, "oom_kill");
	bool for_memory = kills && kills != CUF_UNKNOWN;
	if (!text)
		return false;
	if (status != CUF_UNKNOWN) {
		*ending = (struct exit_reason){ .end = END_EXIT,
						.basis = BASIS_OBSERVED,
						.status = status,
						.abnormal = status != 0,
						.why = "the parent saw its exit status" };
		return true;
	}
	if (signal != CUF_UNKNOWN && signal != 9) {
		*ending = (struct exit_reason){ .end = END_SIGNAL,
						.basis = BASIS_OBSERVED,
						.status = signal,
						.abnormal = true,
						.why = "the parent saw the signal" };
		return true;
	}
	if (signal == CUF_UNKNOWN && !for_memory)
		return false;
	*ending = (struct exit_reason){
		.end = for_memory ? END_OOM_KILLED : END_KILLED,
		.basis = for_memory ? BASIS_INFERRED : BASIS_OBSERVED,
		.status = signal,
		.abnormal = true,
		.why = "the parent saw SIGKILL; no kill for want of memory was counted in its cgroup"
	};
	if (for_memory)
		ending->why = arena_format(
			arena, "%s the cgroup's count of kills for want of memory rose by %" PRIu64,
			signal == 9 ? "killed while" : "it ended without a word, and", kills);
	return true;
}

static struct exit_reason without_record(const struct run_process *process)
{
	const char *for_memory;
	if (still_there(&process->reader->header))
		return (struct exit_reason){ .end = END_RUNNING,
					     .basis = BASIS_OBSERVED,
					     .status = CUF_UNKNOWN,
					     .why = "" };
	if ((for_memory = why_for_memory(process)))
		return (struct exit_reason){ .end = END_OOM_KILLED,
					     .basis = BASIS_INFERRED,
					     .status = CUF_UNKNOWN,
					     .abnormal = true,
					     .why = for_memory };
	return (struct exit_reason){ .end = END_KILLED,
				     .basis = BASIS_INFERRED,
				     .status = CUF_UNKNOWN,
				     .abnormal = true,
				     .why = "no end record" };
}

struct exit_reason exit_reason_of(const struct run_process *process, struct arena *arena)
{
	const struct cuf_header *header = &process->reader->header;
	struct exit_reason ending = { .basis = BASIS_OBSERVED, .status = CUF_UNKNOWN, .why = "" };
	switch (header->end_kind) {
	case CUF_END_EXIT: case CUF_END_FAST:
		ending.end = END_EXIT;
		ending.status = header->end_status;
		ending.abnormal = ending.status != 0;
		break;
	case CUF_END_ABORT:
		ending.end = END_SIGNAL;
		ending.status = header->end_status;
		ending.abnormal = true;
		break;
	case CUF_END_EXEC:
		ending.end = END_EXEC;
		break;
	default:
		if (!told_by_parent(process, arena, &ending))
			ending = without_record(process);
		ending.end_ns = last_recorded_ns(process);
		return ending;
	}
	ending.end_ns = header->end_ns;
	return ending;
}
