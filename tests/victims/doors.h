/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a victim reaches CUDA, and how it prints the truth. Included by one-file programs; all code
 * is in this header.
 *
 * Contract. Call door_open() first. It reads --door=NAME (runtime, link, dlsym, gpa4, gpa5,
 * entrypoint; by default the shared runtime if there is one, else gpa5), fills `cu` only through
 * that door, and makes device 0 current for this thread. Where the door does not exist it ends the
 * program with status 77 and a reason. All fields of `cu` return 0 or a CUresult; runtime and
 * driver use the same numbers for what matters here. must() ends the program with status 3. say()
 * prints one line of truth and flushes it, because the next event may be SIGKILL. Its vocabulary is
 * in README.md.
 */
#pragma once

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/abi/cuda_types.h"

#define MiB ((size_t)1 << 20)
#define KiB ((size_t)1 << 10)
#define GPU_PAGE (2 * MiB)

enum { SKIPPED = 77, BROKEN = 3 };
enum door_kind {
	DOOR_RUNTIME,
	DOOR_LINK,
	DOOR_DLSYM,
	DOOR_GPA4,
	DOOR_GPA5,
	DOOR_ENTRYPOINT,
	DOOR_KINDS
};
static const char *const door_names[DOOR_KINDS] = { "runtime", "link", "dlsym",
	                                            "gpa4",    "gpa5", "entrypoint" };

static struct {
#define DOOR(field, runtime, base, version, exact, params) CUresult (*field) params;
#include "tests/victims/doors.def"
	enum door_kind kind;
	void *runtime, *driver; /* dlopen handles; NULL when not used */
} cu;

#ifdef DOOR_LINKED
#define DOOR(field, runtime, base, version, exact, params) CUresult exact params;
#include "tests/victims/doors.def"
#endif

static inline void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void say(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static inline void must(CUresult result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "victim: %s failed with %d\n", what, result);
	exit(BROKEN);
}
#define MUST(call) must(call, #call)

static inline void skip(const char *why)
{
	fprintf(stderr, "skipped: %s\n", why);
	exit(SKIPPED);
}

static inline void *open_first(const char *const *names)
{
	void *handle = NULL;
	for (; *names && !handle; names++)
		handle = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
	return handle;
}

static inline void *open_runtime(void)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", NULL};
	const char *wish = getenv("VICTIM_CUDART");
	return wish ? dlopen(wish, RTLD_NOW | RTLD_LOCAL) : open_first(names);
}

static inline void *open_driver(void)
{
	static const char *const names[] = {"libcuda.so.1", NULL};
	return open_first(names);
}

static inline void *by_runtime_entry(const char *base, unsigned version)
{
	CUresult (*by_version)(const char *, void **, unsigned, unsigned long long, int *);
	CUresult (*plain)(const char *, void **, unsigned long long, int *);
	void *found = NULL;
	*(void **)&by_version = dlsym(cu.runtime, "cudaGetDriverEntryPointByVersion");
	*(void **)&plain = dlsym(cu.runtime, "cudaGetDriverEntryPoint");
	if (by_version)
		by_version(base, &found, version, 0, NULL);
	else if (plain)
		plain(base, &found, 0, NULL);
	return found;
}

static inline void *by_resolver(const char *base, unsigned version)
{
	CUresult (*old_form)(const char *, void **, int, cuuint64_t);
	CUresult (*new_form)(const char *, void **, int, cuuint64_t,
	                     CUdriverProcAddressQueryResult *);
	CUdriverProcAddressQueryResult status;
	void *found = NULL;
	*(void **)&old_form = dlsym(cu.driver, "cuGetProcAddress");
	*(void **)&new_form = dlsym(cu.driver, "cuGetProcAddress_v2");
	if (cu.kind == DOOR_GPA4 && old_form)
		old_form(base, &found, (int)version, 0);
	else if (cu.kind == DOOR_GPA5 && new_form)
		new_form(base, &found, (int)version, 0, &status);
	return found;
}

static inline void *door_find(const char *runtime, const char *base, unsigned version,
                              const char *exact)
{
	switch (cu.kind) {
	case DOOR_RUNTIME:
		return *runtime != '-' ? dlsym(cu.runtime, runtime)
		                       : by_runtime_entry(base, version);
	case DOOR_ENTRYPOINT:
		return by_runtime_entry(base, version);
	case DOOR_DLSYM:
		return dlsym(cu.driver, exact);
	default:
		return by_resolver(base, version);
	}
}

static inline void door_choose(int argc, char **argv)
{
	const char *name = NULL;
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "--door=", 7))
			name = argv[i] + 7;
#ifdef DOOR_LINKED
	cu.kind = DOOR_LINK;
	if (name && strcmp(name, "link"))
		skip("this binary is linked to the driver and knows no other door");
#else
	cu.kind = DOOR_KINDS;
	for (int i = 0; name && i < DOOR_KINDS; i++)
		if (!strcmp(name, door_names[i]))
			cu.kind = (enum door_kind)i;
	if (name && (cu.kind == DOOR_KINDS || cu.kind == DOOR_LINK))
		skip(cu.kind == DOOR_LINK ? "the driver is linked only in build/victims/linked/"
		                          : "no such door");
	if (!name)
		cu.kind = (cu.runtime = open_runtime()) ? DOOR_RUNTIME : DOOR_GPA5;
#endif
}

static inline bool door_uses_runtime(void)
{
	return cu.kind == DOOR_RUNTIME || cu.kind == DOOR_ENTRYPOINT;
}

/* Makes a device current: by the runtime where it is the door, else by the driver. Also after a
 * reset, and in new threads. */
static inline void door_use(int device)
{
	static CUcontext contexts[16];
	CUresult (*set_device)(int) = NULL;
	if (door_uses_runtime())
		*(void **)&set_device = dlsym(cu.runtime, "cudaSetDevice");
	if (set_device) {
		MUST(set_device(device));
		return;
	}
	if (!contexts[device])
		MUST(cu.context_retain(&contexts[device], device));
	MUST(cu.context_set(contexts[device]));
}

static inline void door_enter(void) { door_use(0); }

static inline void door_fill(void)
{
#ifdef DOOR_LINKED
#define DOOR(field, runtime, base, version, exact, params) cu.field = exact;
#include "tests/victims/doors.def"
#else
	const char *missing = NULL;
#define DOOR(field, runtime, base, version, exact, params) \
	*(void **)&cu.field = door_find(#runtime, #base, version, #exact); \
	missing = cu.field || missing ? missing : #base;
#include "tests/victims/doors.def"
	if (missing) {
		fprintf(stderr, "skipped: the door \"%s\" does not lead to %s\n",
		        door_names[cu.kind], missing);
		exit(SKIPPED);
	}
#endif
}

static inline void door_open(int argc, char **argv)
{
	door_choose(argc, argv);
	if (door_uses_runtime() && !cu.runtime && !(cu.runtime = open_runtime()))
		skip("no libcudart.so.13 or .12 here");
	if (!door_uses_runtime() && cu.kind != DOOR_LINK && !(cu.driver = open_driver()))
		skip("no libcuda.so.1 here");
	door_fill();
	if (!door_uses_runtime() && cu.init(0))
		skip("cuInit failed: no device");
	door_enter();
	say("door %s", door_names[cu.kind]);
}

/* cudaDeviceReset, or the driver's reset of the primary context; device 0 is current again
 * afterwards. */
static inline void door_reset(void)
{
	CUresult (*reset)(void) = NULL;
	if (door_uses_runtime())
		*(void **)&reset = dlsym(cu.runtime, "cudaDeviceReset");
	MUST(reset ? reset() : cu.context_reset(0));
	door_enter();
}

static inline CUdeviceptr take(size_t bytes)
{
	CUdeviceptr ptr = 0;
	MUST(cu.alloc(&ptr, bytes));
	return ptr;
}

static inline size_t free_now(void)
{
	size_t free_bytes = 0, total_bytes = 0;
	MUST(cu.memory(&free_bytes, &total_bytes));
	return free_bytes;
}

/* the driver's exact name of an allocation and the name the victim called; what a report may call
 * it */
static inline const char *api_of(const char *runtime_name, const char *driver_name)
{
	return cu.kind == DOOR_RUNTIME ? runtime_name : driver_name;
}

static inline void say_device(void)
{
	size_t free_bytes = 0, total_bytes = 0;
	MUST(cu.memory(&free_bytes, &total_bytes));
	say("device index 0 free %zu total %zu", free_bytes, total_bytes);
}
