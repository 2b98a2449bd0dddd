/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that take the next piece until none is left. The caller is one of them. */
#include "analysis/base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* More threads would hold more memory at once than they save time. */
enum { THREADS_MAX = 16 };

struct pieces {
	atomic_size_t next;
	size_t count;
	void (*run)(void *context, size_t i);
	void *context;
};

unsigned parallel_threads(unsigned threads)
{
	cpu_set_t cpus;

	if (!threads && !sched_getaffinity(0, sizeof cpus, &cpus))
		threads = (unsigned)CPU_COUNT(&cpus);
	if (threads > THREADS_MAX)
		return THREADS_MAX;
	return threads ? threads : 1;
}

static void *take_pieces(void *argument)
{
	struct pieces *pieces = argument;
	size_t i;

	while ((i = atomic_fetch_add(&pieces->next, 1)) < pieces->count)
		pieces->run(pieces->context, i);
	return NULL;
}

void parallel_each(size_t count, unsigned threads, void (*run)(void *context, size_t i),
		   void *context)
{
	struct pieces pieces = { .count = count, .run = run, .context = context };
	pthread_t others[THREADS_MAX];
	unsigned started = 0;

	threads = parallel_threads(threads);
	while (started + 1 < threads && started + 1 < count &&
	       !pthread_create(&others[started], NULL, take_pieces, &pieces))
		started++;
	take_pieces(&pieces);
	while (started)
		pthread_join(others[--started], NULL);
}
