/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuGetProcAddress in both ABIs, from the table of names, and SIMCUDA_LOG: a line for every
 * look-up, with the returned address. Addresses of our exports come from dlsym on our own handle,
 * as in the real driver. Taking them in C would go through the GOT and yield the interposer's
 * function.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/driver.h"

struct name { const char *exact, *base; int since; };
static const struct name names[] = {
#define NAME(exact, base, since) {#exact, #base, since},
#include "tests/sim/names.def"
};
#define NAMES (sizeof names / sizeof *names)
static _Atomic(void *) found[NAMES];

enum { FLAG_LEGACY = 1, FLAG_PER_THREAD = 2 };
enum { STATUS_FOUND = 0, STATUS_UNKNOWN = 1, STATUS_TOO_OLD = 2 };

void log_line(const char *format, ...)
{
	char text[512];
	va_list args;
	if (!settings.log)
		return;
	va_start(args, format);
	int n = vsnprintf(text, sizeof text - 1, format, args);
	va_end(args);
	int fd = open(settings.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	n = n < (int)sizeof text - 1 ? n : (int)sizeof text - 2;
	text[n++] = '\n';
	if (write(fd, text, (size_t)n) != n)
		settings.log = NULL; /* a full disk: stop */
	close(fd);
}

void *self_symbol(const char *exact_name)
{
	static _Atomic(void *) self;
	void *handle = self;
	if (!handle) {
		Dl_info info;
		if (!dladdr(&settings, &info))
			return NULL;
		handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
		self = handle;
	}
	return handle ? dlsym(handle, exact_name) : NULL;
}

static bool per_thread(const char *exact)
{
	size_t n = strlen(exact);
	return n > 5 && (!strcmp(exact + n - 5, "_ptsz") || !strcmp(exact + n - 5, "_ptds"));
}

/* The newest form not newer than the version; of equal ones the per-thread form, where it was
 * asked for. */
static const struct name *choose(const char *base, int version, bool threads, int *status)
{
	const struct name *best = NULL;
	*status = STATUS_UNKNOWN;
	for (size_t i = 0; i < NAMES; i++) {
		bool own_stream = per_thread(names[i].exact);
		if (strcmp(names[i].base, base) || (own_stream && !threads))
			continue;
		if (*status == STATUS_UNKNOWN)
			*status = STATUS_TOO_OLD;
		if (names[i].since > version || names[i].since > settings.version)
			continue;
		bool best_own = best && per_thread(best->exact);
		if (!best || (own_stream && !best_own) || (own_stream == best_own && names[i].since > best->since))
			best = &names[i];
	}
	if (best)
		*status = STATUS_FOUND;
	return best;
}

static CUresult lookup(int abi, const char *symbol, void **out, int version, cuuint64_t flags, int *status)
{
	int local;
	if (!symbol || !out || flags > (FLAG_LEGACY | FLAG_PER_THREAD) || version > settings.version)
		return CUDA_ERROR_INVALID_VALUE;
	const struct name *chosen = choose(symbol, version, flags & FLAG_PER_THREAD, &local);
	*out = NULL;
	if (chosen) {
		_Atomic(void *) *cell = &found[chosen - names];
		if (!*cell)
			*cell = self_symbol(chosen->exact);
		*out = *cell;
	}
	if (status)
		*status = local;
	log_line("lookup abi %d name %s version %d flags %llu status %s answer %s %p", abi, *symbol ? symbol : "(empty)", version,
	         (unsigned long long)flags, status ? "asked" : "NULL", chosen ? chosen->exact : "none", *out);
	return *out || abi == 5 ? 0 : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **out, int version, cuuint64_t flags)
{
	return lookup(4, symbol, out, version, flags, NULL);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **out, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	return lookup(5, symbol, out, version, flags, status);
}
