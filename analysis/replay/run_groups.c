/* SPDX-License-Identifier: Apache-2.0 */
/* Relates recordings by parent, exec, launcher and time; see run_groups.h. */
#include "analysis/replay/run_groups.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/replay/rank.h"

/* The last start= in a value of CUFLIGHT_OPTIONS; 0: none. 1 names no process. */
static unsigned long start_option(const char *options)
{
	static const char key[] = "start=";
	unsigned long pid = 0;

	for (const char *at = strstr(options, key); at; at = strstr(at + 1, key))
		if (at[-1] == '=' || at[-1] == ':')
			pid = strtoul(at + sizeof key - 1, NULL, 10);
	return pid > 1 ? pid : 0;
}

/* `cuflight run` puts its pid into the options that all its descendants inherit. */
static unsigned long launcher_of(const struct run_process *process)
{
	static const char variable[] = "CUFLIGHT_OPTIONS=";

	for (size_t i = 0; i < process->meta.text_count; i++)
		if (process->meta.texts[i].type == CUF_META_ENV &&
		    !strncmp(process->meta.texts[i].text, variable, sizeof variable - 1))
			return start_option(process->meta.texts[i].text);
	return 0;
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

static bool same_machine(const struct cuf_header *a, const struct cuf_header *b)
{
	return !memcmp(a->boot_id, b->boot_id, sizeof a->boot_id);
}

/* Is `other` the parent of `header`, or the image that it replaced? A process that had ended before
 * is neither. */
static bool is_ancestor(const struct run_process *other, uint64_t other_end_ns,
			const struct cuf_header *header)
{
	const struct cuf_header *of = &other->reader->header;

	if (!same_machine(of, header))
		return false;
	if (of->pid == header->pid)
		return of->end_kind == CUF_END_EXEC &&
		       of->process_start_ticks == header->process_start_ticks;
	return of->pid == header->ppid &&
	       (!of->end_kind || other_end_ns >= header->start_ns);
}

static bool same_launcher(const struct run_process *a, const struct run_process *b)
{
	unsigned long launcher = launcher_of(a);

	return launcher && launcher == launcher_of(b) &&
	       same_machine(&a->reader->header, &b->reader->header);
}

/* One step after another of the same unrecorded parent, a shell or a job: the same run, unless it
 * is the same program again, which is a restart. */
static bool is_next_step(const struct run_process *before, const struct run_process *process)
{
	const struct cuf_header *header = &process->reader->header;
	const struct cuf_header *other = &before->reader->header;
	const char *command = meta_text(&process->meta, CUF_META_CMDLINE);
	const char *other_command = meta_text(&before->meta, CUF_META_CMDLINE);

	return same_machine(header, other) && header->ppid > 1 && header->ppid == other->ppid &&
	       command && other_command && strcmp(command, other_command) != 0;
}

static const char *rank_of(const struct run_process *process)
{
	return rank_of_texts(process->meta.texts, process->meta.text_count);
}

/* Has the run a process of this rank already? Then this one is of a restart. */
static bool has_rank(const struct run_process *processes, const size_t *run_of, size_t index,
		     size_t run)
{
	for (size_t i = 0; i < index; i++) {
		const char *rank = rank_of(&processes[i]);

		if (run_of[i] == run && rank && !strcmp(rank, rank_of(&processes[index])))
			return true;
	}
	return false;
}

/*
 * Ranks of one unrecorded launcher. Time does not tell: a rank that waits for the others writes
 * nothing, and when it is killed its last sample is long before its end.
 */
static bool is_peer(const struct run_process *processes, const size_t *run_of, size_t index,
		    size_t before)
{
	const struct cuf_header *header = &processes[index].reader->header;
	const struct cuf_header *other = &processes[before].reader->header;

	return same_machine(header, other) && header->ppid > 1 && header->ppid == other->ppid &&
	       rank_of(&processes[index]) && rank_of(&processes[before]) &&
	       !has_rank(processes, run_of, index, run_of[before]);
}

/* The run of the youngest relative; 0: none before it. */
static size_t run_of_relative(const struct run_process *processes, const uint64_t *ends,
			      const size_t *run_of, size_t index)
{
	const struct cuf_header *header = &processes[index].reader->header;

	for (size_t i = index; i--;)
		if (is_ancestor(&processes[i], ends[i], header))
			return run_of[i];
	for (size_t i = index; i--;)
		if (same_launcher(&processes[i], &processes[index]) ||
		    is_peer(processes, run_of, index, i) ||
		    is_next_step(&processes[i], &processes[index]))
			return run_of[i];
	return 0;
}

/* Has the run a process of this pid already? One pid cannot be two processes of a run. */
static bool has_pid(const struct run_process *processes, const size_t *run_of, size_t index,
		    size_t run)
{
	const struct cuf_header *header = &processes[index].reader->header;

	for (size_t i = 0; i < index; i++) {
		const struct cuf_header *other = &processes[i].reader->header;

		if (run_of[i] == run && other->pid == header->pid && same_machine(other, header))
			return true;
	}
	return false;
}

/* The run that was not over when this process started, at the clock that all machines share; 0:
 * none. */
static size_t run_at_that_time(const struct run_process *processes, const uint64_t *ends,
			       const size_t *run_of, size_t index)
{
	uint64_t start_ns = processes[index].reader->header.start_realtime_ns;

	for (size_t i = index; i--;) {
		bool over = ends[i] != UINT64_MAX &&
			    reader_realtime(processes[i].reader, ends[i]) < start_ns;

		if (!over && !has_pid(processes, run_of, index, run_of[i]))
			return run_of[i];
	}
	return 0;
}

size_t run_groups(const struct run_process *processes, size_t count, size_t *run_of)
{
	uint64_t *ends = xalloc_zeroed(count + 1, sizeof *ends);
	size_t runs = 0;

	for (size_t i = 0; i < count; i++) {
		ends[i] = end_of(processes[i].reader);
		run_of[i] = run_of_relative(processes, ends, run_of, i);
		if (!run_of[i])
			run_of[i] = run_at_that_time(processes, ends, run_of, i);
		if (!run_of[i])
			run_of[i] = ++runs;
	}
	free(ends);
	return runs;
}
