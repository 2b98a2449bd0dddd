/* SPDX-License-Identifier: Apache-2.0 */
/* Looks where the C library itself lies first: that is this machine's directory for libraries, whatever it is called. */
#include "analysis/cmd/target/allocator.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct { const char *file, *package; } libraries[ALLOCATOR_CHOICES] = {
	[ALLOCATOR_JEMALLOC] = { "libjemalloc.so.2", "libjemalloc2" },
};

static int found_in(struct allocator_library *library, const char *before, const char *directory, const char *file)
{
	int length = snprintf(library->path, sizeof library->path, "%s%s/%s", before, directory, file);
	return length > 0 && (size_t)length < sizeof library->path && !access(library->path, R_OK) && !strpbrk(library->path, " :\t\n");
}

int allocator_find(struct allocator_library *library, enum allocator_choice choice)
{
	static const char *const places[] = { "/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib64", "/lib" };
	const char *file = libraries[choice].file;
	char libc[PATH_MAX] = "";
	Dl_info info;
	if (dladdr((void *)(uintptr_t)getenv, &info) && info.dli_fname && strrchr(info.dli_fname, '/'))
		snprintf(libc, sizeof libc, "%.*s", (int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname);
	if (*libc && (found_in(library, "/usr", libc, file) || found_in(library, "", libc, file)))
		return 0;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (found_in(library, "", places[i], file))
			return 0;
	snprintf(library->why, sizeof library->why, "--host-allocator=jemalloc: there is no %s here; install the package %s", file,
		 libraries[choice].package);
	return -1;
}
