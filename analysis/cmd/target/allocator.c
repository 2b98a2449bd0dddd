/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of the C library comes first: distributions install other libraries next to it. */
#include "analysis/cmd/target/allocator.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *file, *package;
} libraries[ALLOCATOR_CHOICES] = {
	[ALLOCATOR_JEMALLOC] = { "libjemalloc.so.2", "libjemalloc2" },
};

/* Fills library->path; true when the file is there and LD_PRELOAD can name it. */
static bool is_usable(struct allocator_library *library, const char *before,
		      const char *directory, const char *file)
{
	int length = snprintf(library->path, sizeof library->path, "%s%s/%s", before, directory,
			      file);

	if (length < 0 || (size_t)length >= sizeof library->path)
		return false;
	return !access(library->path, R_OK) && !strpbrk(library->path, " :\t\n");
}

/* The directory of this process's C library; "" when it is unknown. */
static void find_libc_directory(char *out, size_t bytes)
{
	Dl_info info;
	const char *slash;

	*out = 0;
	if (!dladdr((void *)(uintptr_t)getenv, &info) || !info.dli_fname)
		return;
	slash = strrchr(info.dli_fname, '/');
	if (slash)
		snprintf(out, bytes, "%.*s", (int)(slash - info.dli_fname), info.dli_fname);
}

/* Looks next to the C library first, where distributions install it for this architecture. */
int allocator_find(struct allocator_library *library, enum allocator_choice choice)
{
	static const char *const places[] = {
		"/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib64", "/lib",
	};
	const char *file = libraries[choice].file;
	char libc[PATH_MAX];

	find_libc_directory(libc, sizeof libc);
	/* /lib may be a link to /usr/lib: the longer path is the one that packages list */
	if (*libc && (is_usable(library, "/usr", libc, file) || is_usable(library, "", libc, file)))
		return 0;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (is_usable(library, "", places[i], file))
			return 0;
	snprintf(library->why, sizeof library->why,
		 "cannot use --host-allocator=jemalloc: %s is not installed; "
		 "install the package %s",
		 file, libraries[choice].package);
	return -1;
}
