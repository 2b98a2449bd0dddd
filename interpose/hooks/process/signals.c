/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actions of signals. Only SIGBUS is ours, and only once the recording is a file
 * (process/bus_guard.h): the program then sees and sets its own action, not the guard's. All other
 * calls are jumps.
 */
#include <signal.h>
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/real.h"

/* While the real functions are being searched, an allocator may start and set a handler. */
static cuf_sigaction_fn *next_sigaction(void)
{
	if (__builtin_expect(!cuf_slot_load((void **)&cuf_real.sigaction), 0))
		cuf_real_resolve();
	if (__builtin_expect(!cuf_slot_load((void **)&cuf_real.sigaction), 0))
		return __sigaction;
	return (cuf_sigaction_fn *)cuf_real.sigaction;
}

int cuf_hook_sigaction(int number, const void *action, void *old)
{
	if (number == SIGBUS && cuf_bus_guard_is_on())
		return cuf_bus_guard_action(next_sigaction(), action, old);
	return next_sigaction()(number, action, old);
}

/* As glibc's signal does: calls are restarted, and the signal is blocked in its handler. */
static void *set_handler(int number, void *handler)
{
	struct sigaction action = { .sa_flags = SA_RESTART }, old;

	action.sa_handler = (__sighandler_t)(uintptr_t)handler;
	sigaddset(&action.sa_mask, number);
	if (cuf_hook_sigaction(number, &action, &old))
		return (void *)(uintptr_t)SIG_ERR;
	return (void *)(uintptr_t)old.sa_handler;
}

void *cuf_hook_signal(int number, void *handler)
{
	if (number == SIGBUS && cuf_bus_guard_is_on() && handler != (void *)(uintptr_t)SIG_ERR)
		return set_handler(SIGBUS, handler);
	if (__builtin_expect(!cuf_slot_load((void **)&cuf_real.signal), 0))
		cuf_real_resolve();
	if (__builtin_expect(!cuf_slot_load((void **)&cuf_real.signal), 0))
		return set_handler(number, handler);
	return cuf_real.signal(number, handler);
}
