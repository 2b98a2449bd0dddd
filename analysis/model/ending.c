/* SPDX-License-Identifier: Apache-2.0 */
/* The end record, or what its absence means. */
#include "analysis/model/ending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const end_names[END_MAX] = { "running", "exit", "signal", "killed", "oom_killed", "exec" };

static const struct cuf_sample *last_sample(const struct reader *r)
{
	uint64_t count = r->header.sample_count, have = reader_count(r, CUF_SEC_TIMELINE);
	count = count < have ? count : have;
	return count ? reader_at(r, CUF_SEC_TIMELINE, count - 1) : NULL;
}

static uint64_t last_recorded_ns(const struct run_process *p)
{
	const struct cuf_header *h = &p->reader->header;
	const struct cuf_sample *sample = last_sample(p->reader);
	uint64_t last = h->start_ns;
	if (sample && sample->time_ns > last)
		last = sample->time_ns;
	if (p->events->count) {
		struct cuf_event e = events_get(p->events, p->events->count - 1);
		last = e.time_ns > last ? e.time_ns : last;
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
	if (!memcmp(recorded, unknown, sizeof unknown) || !(f = fopen("/proc/sys/kernel/random/boot_id", "re")))
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
static bool still_there(const struct cuf_header *h)
{
	char name[64], text[1024] = "", *at;
	unsigned long long ticks = 0;
	char state = 'Z';
	FILE *f;
	if (h->process_start_ticks == CUF_UNKNOWN || !h->process_start_ticks || !same_boot(h->boot_id))
		return false;
	snprintf(name, sizeof name, "/proc/%u/stat", h->pid);
	f = fopen(name, "re");
	if (!f)
		return false;
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	at = strrchr(text, ')'); /* the name may hold anything; field 3 is the state, 22 the start */
	if (!at || sscanf(at + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &state, &ticks) != 2)
		return false;
	return ticks == h->process_start_ticks && state != 'Z' && state != 'X';
}

/* The kernel's OOM killer leaves no record: memory at its limit in the last sample is what tells. */
static bool at_memory_limit(const struct run_process *p)
{
	const struct cuf_sample *sample = last_sample(p->reader);
	uint64_t limit = meta_limit(&p->meta, "memory.max");
	return sample && limit != CUF_UNKNOWN && limit && sample->cgroup_bytes != CUF_UNKNOWN && sample->cgroup_bytes >= limit - limit / 20;
}

struct ending ending_of(const struct run_process *process)
{
	const struct cuf_header *h = &process->reader->header;
	struct ending e = { .basis = BASIS_OBSERVED, .status = FACT_UNKNOWN, .end_ns = h->end_ns };
	switch (h->end_kind) {
	case CUF_END_EXIT: case CUF_END_FAST:
		e.end = END_EXIT;
		e.status = h->end_status;
		e.abnormal = e.status != 0;
		return e;
	case CUF_END_ABORT:
		e.end = END_SIGNAL;
		e.status = h->end_status;
		e.abnormal = true;
		return e;
	case CUF_END_EXEC:
		e.end = END_EXEC;
		return e;
	default: break;
	}
	e.end_ns = last_recorded_ns(process);
	if (still_there(h)) {
		e.end = END_RUNNING;
		return e;
	}
	e.basis = BASIS_INFERRED;
	e.end = at_memory_limit(process) ? END_OOM_KILLED : END_KILLED;
	e.abnormal = true;
	return e;
}
