/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/cmd/what_if/what_if_host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/recording/cut_guard.h"
#include "analysis/view/what_if/host_view.h"

enum { FINE = 0, USAGE = 2 };

static uint64_t allocated_bytes(const struct run_process *process)
{
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < reader_count(process->reader, CUF_SEC_THREADS); i++) {
		struct cuf_thread thread;

		memcpy(&thread, reader_at(process->reader, CUF_SEC_THREADS, i), sizeof thread);
		bytes += thread.host_alloc_bytes;
	}
	return bytes;
}

static const struct run_process *largest(const struct run *run)
{
	const struct run_process *found = &run->processes[0];

	for (size_t i = 1; i < run->count; i++)
		if (allocated_bytes(&run->processes[i]) > allocated_bytes(found))
			found = &run->processes[i];
	return found;
}

static void show_progress(void *argument, double share)
{
	if (!isatty(STDERR_FILENO))
		return;
	if (share < 1)
		fprintf(stderr, "\rcuflight: replayed %.0f%%", share * 100);
	else
		fputs("\r\033[K", stderr);
}

static int write_rows(const struct opts *opts, const struct host_view *rows)
{
	struct host_view view = *rows;
	struct output output;

	if (output_open(&output, opts))
		return USAGE;
	view.style = &output.style;
	if (output.format == OUTPUT_JSON)
		host_view_json(output.file, &view);
	else
		host_view_text(output.file, &view);
	if (cut_guard_seen()) {
		output_abandon(&output);
		say_error("the recording was truncated while it was read; use a copy of it");
		return USAGE;
	}
	return output_close(&output) ? USAGE : FINE;
}

static int replay_process(const struct opts *opts, const char *path, const struct run *run)
{
	const struct run_process *process = largest(run);
	struct host_replay_options options = { .all = opts_has(opts, "all"),
					       .set = opts_text(opts, "set"),
					       .progress = show_progress };
	struct host_replay replay;
	const char *why = NULL;

	if (!host_replay_run(process, &options, run->arena, &replay, &why)) {
		say_error("cannot try --set='%s': %s; an example is "
			  "--set='MALLOC_ARENA_MAX=4'",
			  options.set, why ? why : "it is empty");
		return USAGE;
	}
	if (replay.why_not) {
		say_error("cannot replay malloc of '%s': %s; record it with --host=full", path,
			  replay.why_not);
		return USAGE;
	}
	return write_rows(opts, &(struct host_view){ .path = path,
						     .pid = process->reader->header.pid,
						     .replay = &replay });
}

int what_if_host(const struct opts *opts, const char *path)
{
	struct reader_error error = { 0 };
	struct run run;
	int status;

	if (run_open(&run, path, &error)) {
		const char *why = reader_error_sentence(error.code);

		if (error.system)
			why = strerror(error.system);
		say_error("cannot read '%s': %s", *error.path ? error.path : path, why);
		return USAGE;
	}
	status = replay_process(opts, path, &run);
	run_fini(&run);
	return status;
}
