/* SPDX-License-Identifier: Apache-2.0 */
/* An object with a jemalloc of its own, whose lock is held for ever by a thread that is gone. */
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int mallctl(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes)
{
	return pthread_mutex_lock(&lock);
}

__attribute__((constructor)) static void hold(void) { pthread_mutex_lock(&lock); }
