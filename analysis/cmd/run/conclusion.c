/* SPDX-License-Identifier: Apache-2.0 */
/* WAIT records, and the last lines of `cuflight run`. */
#include "analysis/cmd/run/conclusion.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/run/recording_append.h"
#include "analysis/cmd/run/recording_trim.h"
#include "analysis/facts/cause.h"
#include "analysis/explain/facts_build.h"
#include "analysis/recording/meta.h"
#include "analysis/replay/group_kills.h"
#include "analysis/symbols/symbols.h"
#include "analysis/view/text/report_text.h"

static uint64_t rise_of(uint64_t before, uint64_t now)
{
	if (before == CUF_UNKNOWN || now == CUF_UNKNOWN)
		return CUF_UNKNOWN;
	return now > before ? now - before : 0;
}

struct oom_kills oom_kills_since(const struct cgroup_memory *before)
{
	struct cgroup_memory now;

	cgroup_read(&now);
	return (struct oom_kills){
		.in_cgroup = rise_of(before->oom_kills, now.oom_kills),
		.on_machine = rise_of(before->system_oom_kills, now.system_oom_kills),
		.limit_bytes = now.limit_bytes,
		.directory = before->directory,
	};
}

struct oom_kills oom_kills_of(const char *recording, const struct oom_kills *own)
{
	struct oom_kills kills = *own;
	struct arena *arena;
	struct reader *reader;
	struct meta meta;
	const char *directory;

	if (reader_open(recording, &reader, NULL))
		return kills;
	arena = arena_new();
	meta_read(&meta, reader, arena);
	directory = meta_text(&meta, CUF_META_CGROUP);
	if (directory && strcmp(directory, own->directory) != 0) {
		kills.in_cgroup = group_kills_since_start(reader, &meta);
		kills.limit_bytes = meta_limit(&meta, "memory.max");
	}
	arena_free(arena);
	reader_close(reader);
	return kills;
}

bool oom_kills_any(uint64_t rise)
{
	return rise && rise != CUF_UNKNOWN;
}

/* The recording of the command's last program; NULL: it has none. */
static const struct recording_file *file_of_command(const struct recordings *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->files[i].of_run && list->files[i].pid == (uint32_t)pid &&
		    !list->files[i].replaced)
			return &list->files[i];
	return NULL;
}

/* Only for SIGKILL: the OOM killer uses no other signal. By the same counts as the report. */
void conclusion_print_kill(const struct recordings *list, const struct supervised *supervised,
			   const struct oom_kills *own)
{
	const struct recording_file *file = file_of_command(list, supervised->pid);
	struct oom_kills kills = file ? oom_kills_of(file->path, own) : *own;
	int status = supervised->wait_status;

	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		return;
	switch (kill_sender_of(kills.in_cgroup, kills.on_machine)) {
	case KILL_BY_KERNEL:
		say_info("killed by the kernel's OOM killer: the cgroup's oom_kill count rose "
			 "by %s (limit %s)", units_count(kills.in_cgroup).s,
			 units_bytes(kills.limit_bytes).s);
		break;
	case KILL_BY_KERNEL_PROBABLY:
		say_info("killed by SIGKILL, probably by the kernel's OOM killer: the machine's "
			 "oom_kill count rose by %s", units_count(kills.on_machine).s);
		break;
	case KILL_BY_ANOTHER:
		say_info("killed by SIGKILL, but not by the OOM killer (oom_kill unchanged)");
		break;
	default:
		say_info("killed by SIGKILL");
	}
}

/* ---- what is appended to the recordings ---- */

struct note {
	char text[256];
	size_t used;
};

/* One line "key=value"; an unknown value is left out. */
static void add_number(struct note *note, const char *key, uint64_t value)
{
	if (value != CUF_UNKNOWN)
		note->used += (size_t)snprintf(note->text + note->used,
					       sizeof note->text - note->used,
					       "%s=%" PRIu64 "\n", key, value);
}

/* One of signal and exit_status, as wait(2) distinguishes them. */
static void add_wait_status(struct note *note, int status)
{
	if (WIFSIGNALED(status))
		add_number(note, "signal", (uint64_t)WTERMSIG(status));
	else
		add_number(note, "exit_status", (uint64_t)WEXITSTATUS(status));
}

/* EPERM means that the process exists and belongs to another user. */
/* Appends a WAIT record to each recording whose end is known here and nowhere else. A file that
 * cannot be written stays as it is, and the report then reads "unknown". */
void conclusion_note_end(const struct recordings *list, const struct supervised *supervised,
			 const struct oom_kills *own)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct recording_file *file = &list->files[i];
		bool is_command = file->pid == (uint32_t)supervised->pid;
		struct oom_kills kills;
		struct note note = { 0 };
		if (!file->of_run)
			continue;
		kills = oom_kills_of(file->path, own);
		/* a descendant's status is unknown; the OOM killer may have ended it */
		if (!is_command &&
		    (!oom_kills_any(kills.in_cgroup) || !process_has_ended(file->pid)))
			continue;
		if (is_command)
			add_wait_status(&note, supervised->wait_status);
		add_number(&note, "oom_kill", kills.in_cgroup);
		add_number(&note, "system_oom_kill", kills.on_machine);
		add_number(&note, "limit_bytes", kills.limit_bytes);
		if (recording_append_wait(file->path, note.text) < 0)
			say_error("cannot write how it ended to '%s': %s", file->path,
				  strerror(errno));
	}
}

/* A file that cannot be trimmed is still a good recording, so no line tells of it. */
void conclusion_trim(struct recordings *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct recording_file *file = &list->files[i];
		uint64_t saved;

		if (file->of_run && recording_trim(file->path, false, &saved) == RECORDING_TRIMMED)
			file->bytes = subtract_to_zero(file->bytes, saved);
	}
}

void conclusion_trim_directory(const char *directory)
{
	struct recordings list = { 0 };
	struct stat file;
	int error = errno; /* why a result was not written, which is reported at the end */

	recordings_scan(&list, directory, 0, 0);
	for (size_t i = 0; i < list.count; i++)
		if (!lstat(list.files[i].path, &file) && file.st_uid == geteuid())
			recording_trim(list.files[i].path, false, NULL);
	recordings_free(&list);
	errno = error;
}

/* ---- the last lines ---- */

struct totals {
	uint64_t bytes, incidents;
};

/* Bytes are those of the files, not of the memory that was recorded. */
static struct totals sum_run(const struct recordings *list)
{
	struct totals totals = { 0 };

	for (size_t i = 0; i < list->count; i++) {
		if (!list->files[i].of_run)
			continue;
		totals.bytes += list->files[i].bytes;
		totals.incidents += list->files[i].incident_count;
	}
	return totals;
}

/* What the report will have, built once: the verdict and how many requests failed. */
struct verdict {
	char cause[256];   /* "" none */
	uint64_t requests; /* CUF_UNKNOWN: the report is of fewer recordings, or cannot be made */
};

/* Only where something went wrong: a run that went well has no verdict. */
static struct verdict verdict_of(const char *path)
{
	struct symbols *symbols = symbols_new(NULL);
	struct facts_options options = { .symbols = symbols };
	struct verdict verdict = { .requests = CUF_UNKNOWN };
	struct facts *facts;
	struct frames *frames;

	if (!facts_build(path, &options, &facts, NULL)) {
		frames = frames_new(facts, symbols);
		if (!report_text_cause(facts, frames, verdict.cause, sizeof verdict.cause))
			*verdict.cause = 0;
		verdict.requests = facts->incident_count;
		frames_free(frames);
		facts_free(facts);
	}
	symbols_free(symbols);
	return verdict;
}

/* One line on stderr: how many processes or which file, its size, and what failed. Attempts of
 * one request are several calls. */
static void print_recorded(const struct recordings *list, size_t processes, const char *path,
			   uint64_t requests)
{
	struct totals totals = sum_run(list);
	char what[PATH_MAX], failed[96] = "";

	if (processes > 1)
		snprintf(what, sizeof what, "%zu processes", processes);
	else
		recordings_show_path(path, what, sizeof what);
	if (totals.incidents && requests == CUF_UNKNOWN)
		snprintf(failed, sizeof failed, ", %s failed call%s",
			 units_count(totals.incidents).s, totals.incidents == 1 ? "" : "s");
	else if (totals.incidents)
		snprintf(failed, sizeof failed, ", %s failed request%s", units_count(requests).s,
			 requests == 1 ? "" : "s");
	if (requests != CUF_UNKNOWN && totals.incidents > requests)
		snprintf(failed + strlen(failed), sizeof failed - strlen(failed), " in %s calls",
			 units_count(totals.incidents).s);
	say_info("recorded %s (%s)%s", what, units_bytes(totals.bytes).s, failed);
}

/* Order: what was recorded, the likely cause, and last the command to type. */
void conclusion_print(const struct recordings *list, size_t processes,
		      const struct destination *destination, bool named_output, int status)
{
	const struct recording_file *best = recordings_best(list);
	const char *path = best->path;
	struct verdict verdict = { .requests = CUF_UNKNOWN };
	char shown[PATH_MAX];

	/* a directory is read as one run, so it must contain nothing else */
	if (processes > 1 && destination->is_directory && processes == list->count + list->older)
		path = destination->directory;
	if (status || best->incident_count)
		verdict = verdict_of(path);
	if (processes > 1 && path == best->path)
		verdict.requests = CUF_UNKNOWN;
	print_recorded(list, processes, best->path, verdict.requests);
	if (*verdict.cause)
		say_info("likely cause: %s", verdict.cause);
	recordings_show_path(path, shown, sizeof shown);
	if (named_output)
		say_info("explain it: cuflight report %s", shown);
	else
		say_info("explain it: cuflight report");
}
