/* SPDX-License-Identifier: Apache-2.0 */
/* Arranges the steps of a recording for a player, and writes them to a memory file. */
#include "analysis/what_if/host/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "analysis/base/sort.h"
#include "analysis/base/xalloc.h"
#include "analysis/what_if/host/history_sampled.h"
#include "analysis/what_if/host/lifetimes.h"

/* Changes of thread that a player needs a second or two for. */
#define TURNS_MOST 200000u
#define SLICE_NS_FIRST 1000000ull

/* ---- threads ---- */

/* A step of each thread that was gone at the end, or whose slot a later one has: it ended after its
 * last operation. */
static void end_threads(struct history *history, const struct lifetimes *lifetimes,
			const struct reader *reader)
{
	size_t threads = lifetimes->thread_count;
	size_t *last = xalloc_zeroed(threads + 1, sizeof *last);
	bool *lives = xalloc_zeroed(threads + 1, sizeof *lives);
	size_t ends = 0, to;

	for (size_t i = 0; i < history->count; i++)
		if (history->steps[i].thread < threads)
			last[history->steps[i].thread] = i + 1;
	for (uint64_t i = 0; i < reader_count(reader, CUF_SEC_THREADS); i++) {
		struct cuf_thread slot;

		memcpy(&slot, reader_at(reader, CUF_SEC_THREADS, i), sizeof slot);
		for (size_t thread = 0; slot.tid && thread < threads; thread++)
			lives[thread] |= lifetimes->tids[thread] == slot.tid && !slot.ended;
	}
	for (size_t thread = 1; thread < threads; thread++)
		ends += last[thread] && !lives[thread];
	history->steps = xalloc_resize(history->steps, history->count + ends + 1,
				       sizeof *history->steps);
	to = history->count + ends;
	for (size_t i = history->count; i-- > 0 && ends;) {
		uint16_t thread = history->steps[i].thread;

		if (thread && thread < threads && last[thread] == i + 1 && !lives[thread]) {
			history->steps[--to] = (struct play_step){ .thread = thread,
								   .op = PLAY_THREAD_END };
			ends--;
			history->count++;
		}
		history->steps[--to] = history->steps[i];
	}
	free(last);
	free(lives);
}

/* ---- the order of threads within a time slice ---- */

struct keyed_step {
	uint64_t slice, thread;
	struct play_step step;
};

static size_t turns_with(const struct timed_step *steps, size_t count, uint64_t slice_ns)
{
	uint64_t slice = UINT64_MAX;
	uint8_t seen[PLAY_THREADS_MAX] = { 0 };
	size_t turns = 0, in_slice = 0;

	for (size_t i = 0; i < count; i++) {
		if (steps[i].time_ns / slice_ns != slice) {
			slice = steps[i].time_ns / slice_ns;
			turns += in_slice > 1 ? in_slice : 0;
			memset(seen, 0, sizeof seen);
			in_slice = 0;
		}
		in_slice += !seen[steps[i].step.thread];
		seen[steps[i].step.thread] = 1;
	}
	return turns + in_slice;
}

static size_t turns_as_recorded(const struct timed_step *steps, size_t count)
{
	size_t turns = 0;

	for (size_t i = 1; i < count; i++)
		turns += steps[i].step.thread != steps[i - 1].step.thread;
	return turns;
}

/* Threads alternate as they did, or as rarely as needed for a bounded number of turns. 0: as they
 * did. */
static uint64_t slice_for(const struct timed_step *steps, size_t count)
{
	uint64_t slice_ns = SLICE_NS_FIRST;

	if (turns_as_recorded(steps, count) <= TURNS_MOST)
		return 0;
	while (slice_ns < 1ull << 40 && turns_with(steps, count, slice_ns) > TURNS_MOST)
		slice_ns *= 4;
	return slice_ns;
}

/* Order of time; within a slice, that of threads. */
static void group_by_thread(struct keyed_step *keyed, size_t count)
{
	sort_by_number(keyed, count, sizeof *keyed, offsetof(struct keyed_step, thread));
	sort_by_number(keyed, count, sizeof *keyed, offsetof(struct keyed_step, slice));
}

static void arrange_full(struct history *history, const struct lifetimes *lifetimes)
{
	const struct timed_step *steps = lifetimes->steps;
	size_t begun = lifetimes->begun_count, count = lifetimes->count - begun;
	uint64_t slice_ns = slice_for(steps + begun, count);
	struct keyed_step *keyed = xalloc_zeroed(count + 1, sizeof *keyed);

	for (size_t i = 0; i < count; i++)
		keyed[i] = (struct keyed_step){ slice_ns ? steps[begun + i].time_ns / slice_ns : 0,
						steps[begun + i].step.thread,
						steps[begun + i].step };
	if (slice_ns)
		group_by_thread(keyed, count);
	history->steps = xalloc_zeroed(lifetimes->count + 1, sizeof *history->steps);
	for (size_t i = 0; i < begun; i++)
		history->steps[i] = steps[i].step;
	for (size_t i = 0; i < count; i++)
		history->steps[begun + i] = keyed[i].step;
	history->count = lifetimes->count;
	history->block_count = lifetimes->block_count;
	free(keyed);
}

/* ---- figures ---- */

static void sum_up(struct history *history)
{
	uint64_t *bytes = xalloc_zeroed(history->block_count + 1, sizeof *bytes), live = 0;

	for (size_t i = 0; i < history->count; i++) {
		const struct play_step *step = &history->steps[i];

		if (step->op == PLAY_THREAD_END)
			continue;
		live -= bytes[step->block];
		bytes[step->block] = step->op == PLAY_FREE ? 0 : step->bytes;
		live += bytes[step->block];
		if (live > history->peak_live_bytes)
			history->peak_live_bytes = live;
	}
	history->live_bytes = live;
	for (uint32_t i = 0; i < history->block_count; i++)
		history->large_bytes += bytes[i] >= PLAY_LARGE_BYTES ? bytes[i] : 0;
	free(bytes);
}

static void describe(struct history *history, const struct lifetimes *lifetimes,
		     const struct reader *reader)
{
	history->estimated = lifetimes->sampled;
	history->begun_blocks = lifetimes->begun_count;
	for (size_t i = 0; i < lifetimes->begun_count; i++)
		history->begun_bytes += lifetimes->steps[i].step.bytes;
	history->complete = reader->complete && !reader->header.host_overwritten &&
			    !reader->header.lost[CUF_LOST_HOST_RING];
	history->thread_count = (uint32_t)lifetimes->thread_count;
	if (history->thread_count > PLAY_THREADS_MAX)
		history->thread_count = PLAY_THREADS_MAX;
	if (lifetimes->count > lifetimes->begun_count)
		history->duration_ns = lifetimes->steps[lifetimes->count - 1].time_ns -
				       lifetimes->steps[lifetimes->begun_count].time_ns;
}

void history_read(struct history *history, const struct reader *reader, const struct meta *meta)
{
	struct lifetimes lifetimes;

	*history = (struct history){ 0 };
	lifetimes_read(&lifetimes, reader, meta, HISTORY_STEPS_MAX);
	describe(history, &lifetimes, reader);
	if (lifetimes.sampled)
		history_spread(history, &lifetimes, HISTORY_SAMPLED_STEPS_MAX);
	else
		arrange_full(history, &lifetimes);
	end_threads(history, &lifetimes, reader);
	sum_up(history);
	lifetimes_fini(&lifetimes);
}

void history_fini(struct history *history)
{
	free(history->steps);
	*history = (struct history){ 0 };
}

static int write_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes) {
		ssize_t put = write(fd, at, bytes > 1 << 30 ? 1 << 30 : bytes);

		if (put < 0 && errno != EINTR)
			return -1;
		if (put > 0) {
			at += put;
			bytes -= (size_t)put;
		}
	}
	return 0;
}

int history_file(const struct history *history)
{
	struct play_head head = { history->count, history->block_count, history->thread_count };
	int fd = memfd_create("cuflight-history", MFD_ALLOW_SEALING | MFD_CLOEXEC), error;

	if (fd < 0)
		return -1;
	if (write_all(fd, &head, sizeof head) ||
	    write_all(fd, history->steps, history->count * sizeof *history->steps) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)) {
		error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}
