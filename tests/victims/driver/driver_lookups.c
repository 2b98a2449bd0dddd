/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_lookups DRIVER <names: looks each name up in this libcuda in every way there is, and prints
 * what it got, one line a look-up: "driver+OFFSET", the name of the recorder's function, or the error.
 * A real driver answers without a GPU; nothing is initialised.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "interpose/abi/cuda_types.h"

typedef CUresult (*ask_old)(const char *, void **, int, cuuint64_t);
typedef CUresult (*ask_new)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

/* when functions got new forms, and one that is yet to come */
static const int versions[] = { 2000, 3020, 4000, 4010, 6000, 7000, 8000, 10000, 11010, 11020, 11030, 11040,
	                        11060, 11070, 12000, 12020, 12030, 12040, 12050, 12080, 13000, 13010, 14000 };

static const char *driver_base;

static void print_answer(const char *way, const char *name, int version, int flags, int status, void *answer)
{
	Dl_info info = { 0 };

	printf("%s %s %d %d: %d ", way, name, version, flags, status);
	if (!answer || !dladdr(answer, &info) || !info.dli_fname)
		printf("%s\n", answer ? "nowhere" : "none");
	else if (info.dli_fbase == driver_base)
		printf("driver+%#tx\n", (const char *)answer - driver_base);
	else
		printf("%s!%s\n", strrchr(info.dli_fname, '/') + 1, info.dli_sname ? info.dli_sname : "?");
}

static void ask_both(ask_old old_form, ask_new new_form, const char *name, int version, int flags)
{
	CUdriverProcAddressQueryResult found = -1;
	void *answer = NULL;
	int status = 0;

	if (old_form) {
		status = old_form(name, &answer, version, (cuuint64_t)flags);
		print_answer("old", name, version, flags, status, answer);
	}
	answer = NULL;
	if (new_form) {
		status = new_form(name, &answer, version, (cuuint64_t)flags, &found);
		print_answer("new", name, version, flags, status * 10 + (int)found, answer);
	}
}

static void look_up(void *driver, ask_old old_form, ask_new new_form, const char *name)
{
	print_answer("dlsym", name, 0, 0, 0, dlsym(driver, name));
	print_answer("dlvsym", name, 0, 0, 0, dlvsym(driver, name, "libcuda.so.1"));
	print_answer("dlvsym-none", name, 0, 0, 0, dlvsym(driver, name, "GLIBC_2.2.5"));
	for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
		for (int flags = 0; flags <= 2; flags++)
			ask_both(old_form, new_form, name, versions[v], flags);
}

int main(int count, char **arguments)
{
	void *driver = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	ask_old old_form;
	ask_new new_form;
	char name[256];

	if (!driver) {
		fprintf(stderr, "driver_lookups: %s\n", count > 1 ? dlerror() : "which driver?");
		return 1;
	}
	driver_base = (const char *)((struct link_map *)driver)->l_addr;
	*(void **)&old_form = dlsym(driver, "cuGetProcAddress");
	*(void **)&new_form = dlsym(driver, "cuGetProcAddress_v2");
	while (scanf("%255s", name) == 1)
		look_up(driver, old_form, new_form, name);
	return 0;
}
