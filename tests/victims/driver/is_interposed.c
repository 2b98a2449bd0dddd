/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up every name of the hook table by the dynamic linker. Prints one TAP line a row: does
 * libcuflight.so answer in the default scope, as for a directly linked program? For the driver's
 * names it also looks through a handle of libcuda, as a program does that opens it. A handle of
 * libc or of the runtime is answered by that library itself; what such a program gets from the
 * runtime still comes by the driver's names. A name that this driver or runtime does not have is
 * skipped.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum library { LIBC, CUDA, CUDART, FOREIGN, CUFLIGHT };

static const struct row {
	enum library library;
	const char *name;
} rows[] = {
#define HOOK(id, lib, ret, name, params, args, role) {lib, #name},
#include "interpose/abi/hooks.def"
#undef HOOK
};

/* NULL when the address belongs to the recorder, else the file that answered in its place */
static const char *stranger(void *address)
{
	Dl_info info;
	const char *base;

	if (!dladdr(address, &info) || !info.dli_fname)
		return "no known object";
	base = strrchr(info.dli_fname, '/');
	return strcmp(base ? base + 1 : info.dli_fname, "libcuflight.so") ? info.dli_fname : NULL;
}

/* 1 failed, 0 not */
static int check_row(unsigned number, const struct row *row, void *driver, void *runtime)
{
	void *found = dlsym(RTLD_DEFAULT, row->name);
	const char *other;

	if (!found && row->library == CUDART && !dlsym(runtime, row->name))
		return printf("ok %u - %s # SKIP this runtime has no such function\n", number,
		              row->name),
		       0;
	/* a program that looks whether it has the library must not find the hook in its place */
	if (row->library == FOREIGN && found)
		return printf("not ok %u - %s # found, though this process has no such library\n",
		              number, row->name),
		       1;
	if (row->library == FOREIGN)
		return printf("ok %u - %s # not found, as without the recorder\n", number,
		              row->name),
		       0;
	if (!found)
		return printf("not ok %u - %s # not found in the default scope\n", number,
		              row->name),
		       1;
	other = stranger(found);
	if (other)
		return printf("not ok %u - %s # the default scope answers with %s\n", number,
		              row->name, other),
		       1;
	if (row->library != CUDA)
		return printf("ok %u - %s\n", number, row->name), 0;
	found = dlsym(driver, row->name);
	if (!found)
		return printf("ok %u - %s # SKIP this driver has no such function\n", number,
		              row->name),
		       0;
	other = stranger(found);
	if (other)
		return printf("not ok %u - %s # a handle of libcuda answers with %s\n", number,
		              row->name, other),
		       1;
	return printf("ok %u - %s\n", number, row->name), 0;
}

int main(void)
{
	static const char *const runtimes[] = {"libcudart.so.13", "libcudart.so.12"};
	const unsigned count = sizeof(rows) / sizeof(*rows);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *runtime = NULL;
	int failed = 0;

	/* the recorder answers for a library that the process has */
	for (unsigned i = 0; i < sizeof(runtimes) / sizeof(*runtimes) && !runtime; i++)
		runtime = dlopen(runtimes[i], RTLD_NOW | RTLD_GLOBAL);
	if (!driver || !runtime)
		return printf("Bail out! %s\n", dlerror()), 2;
	printf("1..%u\n", count);
	for (unsigned i = 0; i < count; i++)
		failed += check_row(i + 1, &rows[i], driver, runtime);
	return failed != 0;
}
