/* SPDX-License-Identifier: Apache-2.0 */
/* Relates recordings by parent, exec, launcher and time; see run_groups.h. */
#include "analysis/replay/run_groups.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/paths.h"

const char *variable_of_texts(const struct fact_meta_text *texts, size_t count,
			      const char *const *names, size_t name_count)
{
	for (size_t n = 0; n < name_count; n++)
		for (size_t i = 0; i < count; i++)
			if (texts[i].type == CUF_META_ENV &&
			    text_begins_with(texts[i].text, names[n]))
				return texts[i].text + strlen(names[n]);
	return NULL;
}

/* The last start= in a value of CUFLIGHT_OPTIONS, which stands behind its name; 0: none. 1 names no
 * process. */
static unsigned long start_option(const char *options)
{
	static const char key[] = "start=";
	unsigned long pid = 0;

	for (const char *at = strstr(options, key); at; at = strstr(at + 1, key))
		if (at[-1] == '=' || at[-1] == ':')
			pid = strtoul(at + sizeof key - 1, NULL, 10);
	return pid > 1 ? pid : 0;
}

unsigned long launcher_of_texts(const struct fact_meta_text *texts, size_t count)
{
	static const char *const name = "CUFLIGHT_OPTIONS=";
	const char *value = variable_of_texts(texts, count, &name, 1);

	return value ? start_option(value) : 0;
}

/* The end record's time, else the last sample's: CLOCK_MONOTONIC. UINT64_MAX: nothing shows that it
 * is over. */
static uint64_t end_of(const struct reader *reader)
{
	const struct cuf_header *header = &reader->header;
	uint64_t count = least_of(header->sample_count, reader_count(reader, CUF_SEC_TIMELINE));
	uint64_t end = 0;

	if (header->end_kind && header->end_ns)
		return header->end_ns;
	for (uint64_t i = 0; i < count; i++) {
		struct cuf_sample sample = { 0 };
		uint32_t stride = reader->sections[CUF_SEC_TIMELINE].stride;

		memcpy(&sample, reader_at(reader, CUF_SEC_TIMELINE, i),
		       least_of(stride, sizeof sample));
		end = most_of(end, sample.time_ns);
	}
	return end ? end : UINT64_MAX;
}

/* What relates a process to others, read once: a directory may have thousands. */
struct kin {
	const struct cuf_header *header;
	unsigned long launcher; /* 0: none */
	const char *rank, *command; /* NULL: unknown */
	uint64_t end_ns;
};

const char *rank_of_texts(const struct fact_meta_text *texts, size_t count)
{
	static const char *const names[] = { "RANK=", "LOCAL_RANK=", "OMPI_COMM_WORLD_RANK=",
					     "SLURM_PROCID=" };

	return variable_of_texts(texts, count, names, sizeof names / sizeof *names);
}

static struct kin kin_of(const struct run_process *process)
{
	return (struct kin){
		.header = &process->reader->header,
		.launcher = launcher_of_texts(process->meta.texts, process->meta.text_count),
		.rank = rank_of_texts(process->meta.texts, process->meta.text_count),
		.command = meta_text(&process->meta, CUF_META_CMDLINE),
		.end_ns = end_of(process->reader),
	};
}

static bool same_machine(const struct cuf_header *a, const struct cuf_header *b)
{
	return !memcmp(a->boot_id, b->boot_id, sizeof a->boot_id);
}

/* Is `other` the parent of `header`, or the image that it replaced? A process that had ended before
 * is neither. */
static bool is_ancestor(const struct kin *other, const struct cuf_header *header)
{
	const struct cuf_header *of = other->header;

	if (!same_machine(of, header))
		return false;
	if (of->pid == header->pid)
		return of->end_kind == CUF_END_EXEC &&
		       of->process_start_ticks == header->process_start_ticks;
	return of->pid == header->ppid &&
	       (!of->end_kind || other->end_ns >= header->start_ns);
}

static bool same_launcher(const struct kin *a, const struct kin *b)
{
	return a->launcher && a->launcher == b->launcher && same_machine(a->header, b->header);
}

/* Of one unrecorded parent: a shell, a job, a launcher of ranks. */
static bool is_sibling(const struct kin *a, const struct kin *b)
{
	return same_machine(a->header, b->header) && a->header->ppid > 1 &&
	       a->header->ppid == b->header->ppid;
}

/* One step after another of the same unrecorded parent: the same run, unless it is the same program
 * again, which is a restart. */
static bool is_next_step(const struct kin *before, const struct kin *process)
{
	return is_sibling(before, process) && process->command && before->command &&
	       strcmp(process->command, before->command) != 0;
}

/* ---- the run of one process ---- */

struct grouping {
	const struct run_process *processes;
	struct kin *kin;
	size_t *run_of;
	bool *taken; /* by run: it has one like this process already */
};

static bool same_rank(const struct kin *a, const struct kin *b)
{
	return a->rank && b->rank && !strcmp(a->rank, b->rank);
}

static bool same_pid(const struct kin *a, const struct kin *b)
{
	return a->header->pid == b->header->pid && same_machine(a->header, b->header);
}

static void mark_taken(const struct grouping *grouping, size_t index,
		       bool (*is_like)(const struct kin *, const struct kin *))
{
	memset(grouping->taken, 0, (index + 1) * sizeof *grouping->taken);
	for (size_t i = 0; i < index; i++)
		if (is_like(&grouping->kin[i], &grouping->kin[index]))
			grouping->taken[grouping->run_of[i]] = true;
}

/* The run of the youngest relative; 0: none before it. Ranks of one launcher are one run, until a
 * rank comes again. Time does not tell: a rank that waits for the others writes nothing, and when
 * it is killed its last sample is long before its end. */
static size_t run_of_relative(const struct grouping *grouping, size_t index)
{
	const struct kin *kin = grouping->kin, *process = &kin[index];

	for (size_t i = index; i--;)
		if (is_ancestor(&kin[i], process->header))
			return grouping->run_of[i];
	mark_taken(grouping, index, same_rank); /* then this one is of a restart */
	for (size_t i = index; i--;)
		if (same_launcher(&kin[i], process) || is_next_step(&kin[i], process) ||
		    (process->rank && kin[i].rank && is_sibling(&kin[i], process) &&
		     !grouping->taken[grouping->run_of[i]]))
			return grouping->run_of[i];
	return 0;
}

/* The run that was not over when this process started, at the clock that all machines share; 0:
 * none. One pid cannot be two processes of a run. */
static size_t run_at_that_time(const struct grouping *grouping, size_t index)
{
	uint64_t start_ns = grouping->kin[index].header->start_realtime_ns;

	mark_taken(grouping, index, same_pid);
	for (size_t i = index; i--;) {
		uint64_t end_ns = grouping->kin[i].end_ns;
		bool over = end_ns != UINT64_MAX &&
			    reader_realtime(grouping->processes[i].reader, end_ns) < start_ns;

		if (!over && !grouping->taken[grouping->run_of[i]])
			return grouping->run_of[i];
	}
	return 0;
}

size_t run_groups(const struct run_process *processes, size_t count, size_t *run_of)
{
	struct grouping grouping = {
		.processes = processes,
		.kin = xalloc_zeroed(count + 1, sizeof *grouping.kin),
		.run_of = run_of,
		.taken = xalloc_zeroed(count + 1, sizeof *grouping.taken),
	};
	size_t runs = 0;

	for (size_t i = 0; i < count; i++) {
		grouping.kin[i] = kin_of(&processes[i]);
		run_of[i] = run_of_relative(&grouping, i);
		if (!run_of[i])
			run_of[i] = run_at_that_time(&grouping, i);
		if (!run_of[i])
			run_of[i] = ++runs;
	}
	free(grouping.kin);
	free(grouping.taken);
	return runs;
}
