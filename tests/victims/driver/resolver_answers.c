/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries cuGetProcAddress, in both ABIs and for both kinds of default stream, for every driver
 * function of the hook table by its name and first version. Prints in TAP whether the answer is in
 * libcuflight.so and is exactly the function that the table names. Without the recorder it checks
 * only the driver: the answer must be the exact export.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/abi/cuda_types.h"

typedef CUresult (*ask_old)(const char *, void **, int, cuuint64_t);
typedef CUresult (*ask_new)(const char *, void **, int, cuuint64_t,
                            CUdriverProcAddressQueryResult *);

struct name { const char *exact, *base; int since; };
static const struct name names[] = {
#define NAME(exact, base, since) {#exact, #base, since},
#include "tests/sim/names.def"
};
static const char *const hooked[] = {
#define HOOK(id, lib, ret, name, params, args, role) #lib "!" #name,
#include "interpose/abi/hooks.def"
};

static ask_old old_form;
static ask_new new_form;
static bool recorded;
static int number, failed;

static bool per_thread(const char *exact)
{
	size_t n = strlen(exact);
	return n > 5 && (!strcmp(exact + n - 5, "_ptsz") || !strcmp(exact + n - 5, "_ptds"));
}

/* the per-thread form of a name, which flag 2 prefers; the name itself when there is none, or none
 * yet at its version */
static const char *preferred(const struct name *name)
{
	size_t n = strlen(name->exact);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (per_thread(names[i].exact) && names[i].since <= name->since &&
		    strlen(names[i].exact) == n + 5 && !strncmp(names[i].exact, name->exact, n))
			return names[i].exact;
	return name->exact;
}

static void *ask(int abi, const struct name *name, cuuint64_t flags)
{
	void *answer = NULL;
	CUdriverProcAddressQueryResult status = -1;
	if (abi == 4)
		old_form(name->base, &answer, name->since, flags);
	else
		new_form(name->base, &answer, name->since, flags, &status);
	return answer;
}

static void check(int abi, const struct name *name, cuuint64_t flags, void *handle)
{
	Dl_info info = {0};
	const char *exact = flags == 2 ? preferred(name) : name->exact;
	void *answer = ask(abi, name, flags), *direct = dlsym(handle, exact);
	const char *library = answer && dladdr(answer, &info) && info.dli_fname ? info.dli_fname
	                                                                        : "nowhere";
	const char *wanted = recorded ? "libcuflight.so" : "libcuda.so";
	if (!direct) {
		printf("ok %d - %s # SKIP this driver has none\n", ++number, exact);
		return;
	}
	bool right = strstr(library, wanted) && answer == direct && info.dli_sname &&
	             !strcmp(info.dli_sname, exact);
	printf("%sok %d - %s asked by %d arguments as %s, version %d, flags %d",
	       right ? "" : "not ", ++number, exact, abi, name->base, name->since, (int)flags);
	printf(right ? "\n" : ": answered by %s %s\n", library,
	       info.dli_sname ? info.dli_sname : "?");
	failed += !right;
}

static void check_row(const struct name *name, void *handle)
{
	for (int abi = 4; abi <= 5; abi++)
		for (cuuint64_t flags = per_thread(name->exact) ? 2 : 0; flags <= 2; flags += 2)
			check(abi, name, flags, handle);
}

int main(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		printf("1..0 # SKIP no libcuda.so.1 here\n");
		return 0;
	}
	*(void **)&old_form = dlsym(handle, "cuGetProcAddress");
	*(void **)&new_form = dlsym(handle, "cuGetProcAddress_v2");
	const char *preload = getenv("LD_PRELOAD");
	recorded = preload && strstr(preload, "libcuflight.so");
	for (size_t h = 0; h < sizeof hooked / sizeof *hooked; h++)
		for (size_t n = 0;
		     n < sizeof names / sizeof *names && !strncmp(hooked[h], "CUDA!", 5); n++)
			if (!strcmp(hooked[h] + 5, names[n].exact))
				check_row(&names[n], handle);
	printf("1..%d\n", number);
	return failed != 0;
}
