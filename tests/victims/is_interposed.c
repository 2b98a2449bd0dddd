/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the dynamic linker for every name of the hook table and says, one TAP line a row, whether libcuflight.so answers:
 * in the default scope (what a directly linked program gets) and through a handle of the row's own library (what a
 * program that opens it gets). A name that this driver or runtime does not have is skipped. Owns no memory under test.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum library { LIBC, CUDA, CUDART, LIBRARIES };

static const struct row {
	enum library library;
	const char *name;
} rows[] = {
#define HOOK(id, lib, ret, name, params, args, role) {lib, #name},
#include "interpose/abi/hooks.def"
#undef HOOK
};

static void *open_any(const char *const *names)
{
	void *handle = NULL;

	for (; *names && !handle; names++)
		handle = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
	return handle;
}

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
static int check_row(unsigned number, const struct row *row, void *handle)
{
	void *global = dlsym(RTLD_DEFAULT, row->name), *local = handle ? dlsym(handle, row->name) : NULL;
	const char *other;

	if (!global)
		return printf("not ok %u - %s # not exported\n", number, row->name), 1;
	other = stranger(global);
	if (other)
		return printf("not ok %u - %s # the default scope answers with %s\n", number, row->name, other), 1;
	if (!local && row->library == LIBC) /* cfree and the sized frees: not in every libc, ours by export alone */
		return printf("ok %u - %s (default scope alone: this libc has none)\n", number, row->name), 0;
	if (!local)
		return printf("ok %u - %s # SKIP %s\n", number, row->name, handle ? "the library has no such function" : "no such library"), 0;
	other = stranger(local);
	if (other)
		return printf("not ok %u - %s # a handle of its library answers with %s\n", number, row->name, other), 1;
	return printf("ok %u - %s\n", number, row->name), 0;
}

int main(void)
{
	static const char *const names[LIBRARIES][4] = {
		[LIBC] = {"libc.so.6"},
		[CUDA] = {"libcuda.so.1"},
		[CUDART] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so"},
	};
	const unsigned count = sizeof(rows) / sizeof(*rows);
	void *handles[LIBRARIES];
	int failed = 0;

	for (unsigned i = 0; i < LIBRARIES; i++)
		handles[i] = open_any(names[i]);
	printf("1..%u\n", count);
	for (unsigned i = 0; i < count; i++)
		failed += check_row(i + 1, &rows[i], handles[rows[i].library]);
	return failed != 0;
}
