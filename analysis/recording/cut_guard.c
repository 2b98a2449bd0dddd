/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the SIGBUS handler of the command, and the ranges in which it acts. */
#include "analysis/recording/cut_guard.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* start 0: free. A slot is published by storing start last. */
static struct { _Atomic uintptr_t start; _Atomic size_t bytes; } ranges[CUT_GUARD_RANGES];
static _Atomic unsigned used; /* slots that were ever taken */
static atomic_bool seen, installed;

/* Runs in a signal handler: atomics only, no locks. */
static bool is_guarded(uintptr_t address)
{
	for (unsigned i = 0; i < used; i++) {
		uintptr_t start = ranges[i].start;
		if (start && address - start < ranges[i].bytes)
			return true;
	}
	return false;
}

/* Maps a page of zeros where the file has ended. mmap is a plain system call, so a signal handler
 * may call it. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t page = (uintptr_t)info->si_addr & ~(page_bytes - 1);

	if (!is_guarded((uintptr_t)info->si_addr) ||
	    mmap((void *)page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED) {
		signal(SIGBUS, SIG_DFL); /* the load is repeated, and ends the process */
		return;
	}
	seen = true;
}

/* Installed once, with the first recording that is mapped. */
static void install(void)
{
	struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };

	if (!atomic_exchange(&installed, true))
		sigaction(SIGBUS, &action, NULL);
}

/* When all slots are in use the mapping has no guard, and a truncated file ends the command. */
void cut_guard_begin(const void *mapped, size_t bytes)
{
	install();
	for (unsigned i = 0; i < CUT_GUARD_RANGES; i++) {
		uintptr_t free_slot = 0;
		/* 1: being filled */
		if (!atomic_compare_exchange_strong(&ranges[i].start, &free_slot, 1))
			continue;
		ranges[i].bytes = bytes;
		ranges[i].start = (uintptr_t)mapped;
		for (unsigned before = used;
		     before < i + 1 && !atomic_compare_exchange_weak(&used, &before, i + 1);)
			;
		return;
	}
}

void cut_guard_end(const void *mapped)
{
	for (unsigned i = 0; i < used; i++)
		if (ranges[i].start == (uintptr_t)mapped)
			ranges[i].start = 0;
}

bool cut_guard_seen(void) { return seen; }
