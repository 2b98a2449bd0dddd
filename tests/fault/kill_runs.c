/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_runs RUNS SEED FOLDER VICTIM...: starts VICTIM TRUTH RUNS times, kills it with SIGKILL at a
 * random instant of its work, and compares its recording with its truth
 * (tests/victims/process/kill_truth.h). The live set must be exact up to the calls in flight, and
 * no completed call may be missing among the events. Every eighth run is killed at a random instant
 * of its start instead. A run that dies while its recording is created leaves no file, or one that
 * the reader calls never begun. In sampled mode host blocks under 64 KiB may be missing, and host
 * events are not counted.
 *
 * Where the victim's threads succeed one another (churn), events are counted for all of them
 * together. The recordings of forked children are compared, too: they end by themselves.
 *
 * CUFLIGHT_OUTPUT is set for each run. VICTIM sets the preload and the rest of the environment (env
 * ... VICTIM). Prints one line a damaged run and one line at the end. Exits 1 when any run was
 * wrong, and 2 when the disk has no room for recordings: without a file nothing could be compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "analysis/recording/events.h"
#include "analysis/replay/replay.h"
#include "tests/victims/process/kill_truth.h"

#define WORK_NS 80000000u  /* longest time between its start and its death */
#define START_NS 12000000u
#define START_WAIT_S 20
#define ALWAYS_SAMPLED_BYTES 65536u
#define WRONG_MAX 10         /* runs, then it is clear enough; each leaves its recording */
#define ROOM_BYTES (256ull << 20) /* for the recordings of a run and of its children */

struct totals { unsigned runs, wrong, early, unborn, counted, children; uint64_t live, calls; };

struct entry { uint64_t addr, bytes; unsigned kind; bool matched; };

struct check {
	const struct kill_truth *truth;
	struct reader *reader;
	bool sampled;
	struct entry *entries;
	size_t count, room;
	unsigned complaints, run;
};

__attribute__((format(printf, 2, 3))) static void complain(struct check *check, const char *format,
                                                           ...)
{
	va_list args;

	if (check->complaints++ >= 8)
		return;
	printf("# run %u: ", check->run);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* ---- what the recording contains ---- */

static void entry_add(struct check *check, uint64_t addr, uint64_t bytes, unsigned kind)
{
	if (check->count == check->room) {
		check->room = check->room ? 2 * check->room : 256;
		check->entries = realloc(check->entries, check->room * sizeof *check->entries);
		if (!check->entries)
			abort();
	}
	check->entries[check->count++] = (struct entry){ addr, bytes, kind, false };
}

/* Blocks of libc and the driver are live, too: ours are known by their sizes. */
static void entries_collect(struct check *check)
{
	struct liveset live;
	const struct cuf_block *block;
	size_t at = 0;

	replay_now(check->reader, &live);
	while ((block = liveset_next(&live, &at)))
		if (kill_is_ours(block->bytes))
			entry_add(check, cuf_key_addr(block->key), block->bytes, block->kind);
	liveset_fini(&live);
	for (uint64_t i = 0; i < reader_count(check->reader, CUF_SEC_HOST_LEDGER); i++) {
		const struct cuf_host_block *host = reader_at(check->reader, CUF_SEC_HOST_LEDGER,
		                                              i);
		if (cuf_host_addr(host->word0) && kill_is_ours(cuf_host_bytes(host->word1)))
			entry_add(check, cuf_host_addr(host->word0), cuf_host_bytes(host->word1),
			          CUF_KIND_HOST);
	}
}

static struct entry *entry_at(struct check *check, uint64_t addr, unsigned kind)
{
	for (size_t i = 0; i < check->count; i++)
		if (check->entries[i].addr == addr && check->entries[i].kind == kind)
			return &check->entries[i];
	return NULL;
}

/* ---- compared with what the victim wrote ---- */

static bool may_be_missing(const struct check *check, const struct kill_slot *slot)
{
	return check->sampled && slot->way == KILL_HOST && slot->bytes < ALWAYS_SAMPLED_BYTES;
}

/* The slot that the call in flight is about: its block may be gone already, and its address
 * somebody else's. */
static bool in_flight(const struct kill_thread *thread, unsigned slot)
{
	const struct kill_slot *at = &thread->slots[slot];
	if (thread->slot != slot)
		return false;
	return thread->doing == KILL_FREE ||
	       (thread->doing == KILL_RESIZE && at->addr == thread->old_addr &&
	        at->bytes == thread->old_bytes);
}

/* First what is certain, of all threads; then what is in flight takes what is left, if anything is.
 */
static unsigned match_slots(struct check *check, const struct kill_thread *thread, bool certain)
{
	unsigned live = 0;

	for (unsigned i = 0; i < KILL_SLOTS; i++) {
		const struct kill_slot *slot = &thread->slots[i];
		struct entry *entry = slot->addr
		                              ? entry_at(check, slot->addr, kill_kinds[slot->way])
		                              : NULL;
		if (!slot->addr || in_flight(thread, i) == certain)
			continue;
		live++;
		if (entry && entry->bytes == slot->bytes && !entry->matched)
			entry->matched = true;
		else if (certain && !(may_be_missing(check, slot) && !entry))
			complain(check,
			         "thread %u slot %u: block %#lx of %lu bytes, kind %u, is %s",
			         thread->tid, i, (unsigned long)slot->addr,
			         (unsigned long)slot->bytes, kill_kinds[slot->way],
			         entry ? "recorded with another size" : "not recorded as live");
	}
	return live;
}

/* What the call in flight may have left: the new block, or the old one of a resize whose slot is
 * being rewritten. */
static void match_in_flight(struct check *check, const struct kill_thread *thread)
{
	for (size_t i = 0; i < check->count; i++) {
		struct entry *entry = &check->entries[i];
		if (entry->matched || entry->kind != kill_kinds[thread->way])
			continue;
		if ((thread->doing == KILL_ALLOC || thread->doing == KILL_RESIZE) &&
		    entry->bytes == thread->bytes) {
			entry->matched = true;
			return;
		}
		if (thread->doing == KILL_RESIZE && entry->addr == thread->old_addr &&
		    entry->bytes == thread->old_bytes) {
			entry->matched = true;
			return;
		}
	}
}

static void check_live(struct check *check, struct totals *totals)
{
	entries_collect(check);
	for (unsigned i = 0; i < KILL_THREADS; i++)
		totals->live += match_slots(check, &check->truth->threads[i], true);
	for (unsigned i = 0; i < KILL_THREADS; i++)
		totals->live += match_slots(check, &check->truth->threads[i], false);
	for (unsigned i = 0; i < KILL_THREADS; i++)
		match_in_flight(check, &check->truth->threads[i]);
	for (size_t i = 0; i < check->count; i++)
		if (!check->entries[i].matched)
			complain(check, "recorded as live, and is not: %#lx, %lu bytes, kind %u",
			         (unsigned long)check->entries[i].addr,
			         (unsigned long)check->entries[i].bytes, check->entries[i].kind);
}

struct tally { uint64_t allocs[KILL_THREADS][KILL_WAYS], frees[KILL_THREADS][KILL_WAYS]; };

static void tally_add(const struct check *check, struct tally *tally, uint32_t tid, unsigned kind,
                      int sign)
{
	for (unsigned t = 0; t < KILL_THREADS; t++)
		for (unsigned w = 0; w < KILL_WAYS; w++)
			if (kill_kinds[w] == kind &&
			    (check->truth->churn ? t == 0 : check->truth->threads[t].tid == tid))
				++*(sign > 0 ? &tally->allocs[t][w] : &tally->frees[t][w]);
}

static void tally_events(const struct check *check, struct tally *tally)
{
	struct events *events = events_new(check->reader, NULL);
	struct host_stream *stream = host_stream_new(check->reader);
	struct host_event host;

	for (size_t i = 0; i < events->count; i++) {
		struct cuf_event event = events_get(events, i);
		if (kill_is_ours(event.bytes) &&
		    (event.op == CUF_OP_ALLOC || event.op == CUF_OP_FREE))
			tally_add(check, tally, event.tid, event.kind,
			          event.op == CUF_OP_ALLOC ? 1 : -1);
	}
	while (host_stream_next(stream, &host))
		if (kill_is_ours(host.bytes) && host_event_sign(host.op))
			tally_add(check, tally, host.tid, CUF_KIND_HOST, host_event_sign(host.op));
	host_stream_free(stream);
	events_free(events);
}

static void check_count(struct check *check, const struct kill_thread *thread, unsigned way,
                        const char *what, uint64_t recorded, uint64_t completed, unsigned in_flight)
{
	if (recorded < completed || recorded > completed + in_flight)
		complain(check, "thread %u made %lu completed %s of kind %u, %lu are recorded",
		         thread->tid, (unsigned long)completed, what, kill_kinds[way],
		         (unsigned long)recorded);
}

/* Of all threads together, those whose heirs write on. */
static void check_sums(struct check *check, struct totals *totals, const struct tally *tally)
{
	uint64_t allocs = 0, frees = 0;
	unsigned may_alloc = 0, may_free = 0;

	for (unsigned t = 0; t < KILL_CHURNERS; t++) {
		const struct kill_thread *thread = &check->truth->threads[t];
		allocs += thread->allocs[KILL_HOST];
		frees += thread->frees[KILL_HOST];
		may_alloc += thread->doing == KILL_ALLOC || thread->doing == KILL_RESIZE;
		may_free += thread->doing == KILL_FREE || thread->doing == KILL_RESIZE;
	}
	check_count(check, &check->truth->threads[0], KILL_HOST, "allocations",
	            tally->allocs[0][KILL_HOST], allocs, may_alloc);
	check_count(check, &check->truth->threads[0], KILL_HOST, "frees",
	            tally->frees[0][KILL_HOST], frees, may_free);
	totals->calls += allocs + frees;
}

/* Nothing left the ring and nothing was lost: then every completed call must be there. */
static void check_events(struct check *check, struct totals *totals)
{
	const struct cuf_header *header = &check->reader->header;
	struct tally tally = { 0 };

	for (unsigned i = 0; i < CUF_LOST_MAX; i++)
		if (header->lost[i])
			complain(check, "lost[%u] is %lu", i, (unsigned long)header->lost[i]);
	if (header->overwritten || header->host_overwritten)
		return;
	totals->counted++;
	tally_events(check, &tally);
	if (check->truth->churn) {
		if (!check->sampled)
			check_sums(check, totals, &tally);
		return;
	}
	for (unsigned t = 0; t < KILL_THREADS; t++) {
		const struct kill_thread *thread = &check->truth->threads[t];
		for (unsigned w = 0; w < KILL_WAYS; w++) {
			if (check->sampled && w == KILL_HOST)
				continue;
			bool here = thread->doing != KILL_NOTHING && thread->way == w;
			check_count(check, thread, w, "allocations", tally.allocs[t][w],
			            thread->allocs[w], here && thread->doing != KILL_FREE);
			check_count(check, thread, w, "frees", tally.frees[t][w], thread->frees[w],
			            here && thread->doing != KILL_ALLOC);
			totals->calls += thread->allocs[w] + thread->frees[w];
		}
	}
}

/* ---- one run ---- */

static void sleep_ns(uint64_t ns)
{
	struct timespec time = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	nanosleep(&time, NULL);
}

static pid_t victim_start(char **victim, unsigned arguments, char *truth_path, const char *output)
{
	char *argv[64];
	pid_t pid;

	for (unsigned i = 0; i < arguments; i++)
		argv[i] = victim[i];
	argv[arguments] = truth_path;
	argv[arguments + 1] = NULL;
	setenv("CUFLIGHT_OUTPUT", output, 1);
	pid = fork();
	if (pid == 0) {
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

static bool wait_started(const struct kill_truth *truth, pid_t pid)
{
	for (unsigned i = 0; i < START_WAIT_S * 10000; i++) {
		if (__atomic_load_n(&truth->started, __ATOMIC_ACQUIRE))
			return true;
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return false;
		usleep(100);
	}
	return false;
}

/* Not created, or created and not yet begun. */
static bool is_unbegun(const struct reader_error *error)
{
	return error->code == READER_E_EMPTY || error->code == READER_E_UNBEGUN ||
	       (error->code == READER_E_OPEN && error->system == ENOENT);
}

static void judge(struct check *check, const char *recording, bool early, struct totals *totals)
{
	struct reader_error error = { 0 };
	int result = reader_open(recording, &check->reader, &error);

	if (result && is_unbegun(&error)) {
		totals->unborn++;
		return;
	}
	if (result) {
		complain(check, "%s cannot be read: error %d", recording, result);
		return;
	}
	check->sampled = check->reader->header.sample_mean_bytes &&
	                 check->reader->header.options_host_mode == CUF_HOST_SAMPLED;
	if (!early) {
		if (check->truth->failed)
			complain(check, "the victim's own call failed");
		check_live(check, totals);
		check_events(check, totals);
	}
	reader_close(check->reader);
	free(check->entries);
}

/* Children end by themselves, so theirs are complete. */
static void judge_child(struct check *of, const char *recording, struct totals *totals)
{
	struct check check = { .run = of->run, .truth = of->truth };
	struct reader_error error = { 0 };
	struct tally tally = { 0 };
	int result = reader_open(recording, &check.reader, &error);

	totals->children++;
	if (result) {
		complain(of, "%s of a child cannot be read: error %d", recording, result);
		return;
	}
	entries_collect(&check);
	tally_events(&check, &tally);
	if (check.count != KILL_CHILD_KEEPS || tally.allocs[0][KILL_HOST] != KILL_CHILD_ALLOCS ||
	    tally.frees[0][KILL_HOST] != KILL_CHILD_ALLOCS - KILL_CHILD_KEEPS)
		complain(of, "%s of a child: %zu blocks live, %lu allocations, %lu frees",
		         recording, check.count, (unsigned long)tally.allocs[0][KILL_HOST],
		         (unsigned long)tally.frees[0][KILL_HOST]);
	reader_close(check.reader);
	free(check.entries);
}

static void judge_children(struct check *check, const char *folder, const char *own,
                           struct totals *totals)
{
	char pattern[4096];
	glob_t found;

	while (waitpid(-1, NULL, 0) > 0)
		; /* orphans become ours */
	snprintf(pattern, sizeof pattern, "%s/run.%u.*.cuf", folder, check->run);
	if (glob(pattern, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		if (strcmp(found.gl_pathv[i], own) == 0)
			continue;
		judge_child(check, found.gl_pathv[i], totals);
		if (!check->complaints)
			unlink(found.gl_pathv[i]);
	}
	globfree(&found);
}

static void need_room(const char *folder)
{
	struct statvfs disk;

	if (!statvfs(folder, &disk) && (uint64_t)disk.f_bavail * disk.f_frsize >= ROOM_BYTES)
		return;
	printf("# stopped: %s has no room for recordings (%llu MiB are needed)\n", folder,
	       ROOM_BYTES >> 20);
	exit(2);
}

/*
 * The victim writes to a mapping of this file. Its blocks are reserved, because on a disk that is
 * full the victim's own store into a hole would be SIGBUS, with and without the recorder.
 */
static const struct kill_truth *truth_create(const char *path)
{
	const struct kill_truth *truth;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), error;

	if (fd < 0 || (error = posix_fallocate(fd, 0, sizeof *truth))) {
		printf("# stopped: cannot create %s: %s\n", path, strerror(fd < 0 ? errno : error));
		exit(2);
	}
	truth = mmap(NULL, sizeof *truth, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return truth;
}

static void run(unsigned number, const char *folder, char **victim, unsigned arguments,
                struct totals *totals)
{
	char truth_path[4096], output[4096], recording[4096];
	bool early = number % 8 == 7;
	struct check check = { .run = number };
	int status = 0;
	pid_t pid;

	need_room(folder);
	snprintf(truth_path, sizeof truth_path, "%s/truth", folder);
	snprintf(output, sizeof output, "%s/run.%u.%%p.cuf", folder, number);
	check.truth = truth_create(truth_path);
	pid = victim_start(victim, arguments, truth_path, output);
	snprintf(recording, sizeof recording, "%s/run.%u.%d.cuf", folder, number, (int)pid);
	if (!early && !wait_started(check.truth, pid)) {
		complain(&check, "the victim did not start");
	} else {
		sleep_ns((uint64_t)random() % (early ? START_NS : WORK_NS));
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			complain(&check, "the victim ended by itself, status %#x",
			         (unsigned)status);
		judge(&check, recording, early, totals);
		judge_children(&check, folder, recording, totals);
	}
	totals->runs++;
	totals->early += early;
	totals->wrong += check.complaints != 0;
	munmap((void *)check.truth, sizeof *check.truth);
	if (!check.complaints)
		unlink(recording);
}

int main(int argc, char **argv)
{
	unsigned runs = argc > 4 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	struct totals totals = { 0 };

	if (!runs || argc > 60) {
		fprintf(stderr, "usage: kill_runs RUNS SEED FOLDER VICTIM...\n");
		return 2;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	srandom((unsigned)strtoul(argv[2], NULL, 10));
	for (unsigned i = 0; i < runs && totals.wrong < WRONG_MAX; i++)
		run(i, argv[3], argv + 4, (unsigned)argc - 4, &totals);
	printf("%u runs, %u wrong; %u killed while starting; %u without a recording yet; %lu live blocks compared; "
	       "events counted in %u runs, %lu calls; %u recordings of children\n",
	       totals.runs, totals.wrong, totals.early, totals.unborn, (unsigned long)totals.live,
	       totals.counted, (unsigned long)totals.calls, totals.children);
	return totals.wrong || 3 * totals.counted < totals.runs;
}
