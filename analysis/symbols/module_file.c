/* SPDX-License-Identifier: Apache-2.0 */
/* Opens candidate paths in order until one has the recorded build-id. */
#include "analysis/symbols/module_file.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <libiberty/libiberty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "analysis/base/regular_file.h"

#define RECORDED_ID_BYTES_MAX 20 /* cuf_meta_module.build_id */
#define ID_BYTES_MAX 64

struct search {
	const struct symbols_options *options;
	const uint8_t *build_id;
	size_t build_id_bytes;
	struct module_file found;
};

/* Takes ownership of reason. Keeps the most useful failure: that a file has another build-id
 * explains more than that a file is missing. */
static void failed(struct search *search, enum symbols_state state, char *reason)
{
	static const unsigned char weight[] = {
		[SYMBOLS_MISSING] = 0, [SYMBOLS_UNREADABLE] = 1, [SYMBOLS_DIFFERENT] = 2
	};

	if (search->found.reason && weight[state] <= weight[search->found.state]) {
		free(reason);
		return;
	}
	free(search->found.reason);
	search->found.state = state;
	search->found.reason = reason;
}

/* The build-id in hexadecimal digits; "none" when it is empty. */
static void id_text(char text[2 * ID_BYTES_MAX + 1], const uint8_t *id, size_t bytes)
{
	strcpy(text, bytes ? "" : "none");
	for (size_t i = 0; i < bytes && i < ID_BYTES_MAX; i++)
		sprintf(text + 2 * i, "%02x", id[i]);
}

/* The recorder cuts build-ids at 20 bytes, so a longer one is compared by its first 20. */
static bool id_equal(const struct search *search, const uint8_t *id, size_t bytes)
{
	if (search->build_id_bytes == RECORDED_ID_BYTES_MAX && bytes > RECORDED_ID_BYTES_MAX)
		bytes = RECORDED_ID_BYTES_MAX;
	return bytes == search->build_id_bytes &&
	       (!bytes || memcmp(id, search->build_id, bytes) == 0);
}

/* Compares the build-id of the file. On success search->found has the descriptor. */
static bool judge_file(struct search *search, const char *path, int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const void *id = NULL;
	char *reason = NULL, there[2 * ID_BYTES_MAX + 1], recorded[2 * ID_BYTES_MAX + 1];
	ssize_t bytes;
	bool fits = false;

	if (elf_kind(elf) != ELF_K_ELF) {
		failed(search, SYMBOLS_UNREADABLE, concat("not an ELF file: ", path, NULL));
		elf_end(elf);
		return false;
	}
	bytes = dwelf_elf_gnu_build_id(elf, &id);
	if (bytes <= 0)
		bytes = 0;
	if (id_equal(search, id, (size_t)bytes)) {
		fits = true;
		free(search->found.reason);
		search->found = (struct module_file){ .fd = fd, .path = xstrdup(path) };
		search->found.state = SYMBOLS_VERIFIED;
		if (!bytes) {
			search->found.state = SYMBOLS_UNVERIFIED;
			search->found.reason =
				concat("neither the recording nor the file has a build-id, "
				       "names match by path only: ",
				       path, NULL);
		}
	} else {
		id_text(there, id, (size_t)bytes);
		id_text(recorded, search->build_id, search->build_id_bytes);
		reason = concat("another build of the file: ", path, " has build-id ", there,
				", recorded was ", recorded, NULL);
		failed(search, SYMBOLS_DIFFERENT, reason);
	}
	elf_end(elf);
	return fits;
}

static bool try_path(struct search *search, const char *path)
{
	const char *why;
	int fd = regular_file_open(path, 0, &why);

	if (fd < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			failed(search, SYMBOLS_MISSING, concat("no such file: ", path, NULL));
		else
			failed(search, SYMBOLS_UNREADABLE,
			       concat("cannot read ", path, ": ", why, NULL));
		return false;
	}
	if (judge_file(search, path, fd))
		return true;
	close(fd);
	return false;
}

static bool try_joined(struct search *search, const char *directory, const char *rest)
{
	char *path = concat(directory, *rest == '/' ? "" : "/", rest, NULL);
	bool fits = try_path(search, path);

	free(path);
	return fits;
}

/* DIR/.build-id/ab/cdef...: on some systems the file, on most its debug file, which has the
 * symbols. */
static bool try_build_id(struct search *search, const char *directory)
{
	char id[2 * ID_BYTES_MAX + 1], *path;
	bool fits;

	if (search->build_id_bytes < 2)
		return false;
	id_text(id, search->build_id, search->build_id_bytes);
	path = concat(directory, "/.build-id/xx/", id + 2, ".debug", NULL);
	memcpy(strstr(path, "/xx/") + 1, id, 2);
	fits = try_path(search, path);
	if (!fits) {
		path[strlen(path) - strlen(".debug")] = 0;
		fits = try_path(search, path);
	}
	free(path);
	return fits;
}

/* libdwfl queries the servers only for a module, so this reports one of length 1 that has nothing
 * but the build-id. */
static bool try_debuginfod(struct search *search, const char *name)
{
	static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_build_id_find_elf,
						  .find_debuginfo = dwfl_standard_find_debuginfo };
	Dwfl *dwfl = dwfl_begin(&callbacks);
	Dwfl_Module *module = dwfl ? dwfl_report_module(dwfl, name, 0, 1) : NULL;
	char *path = NULL;
	Elf *elf = NULL;
	bool fits = false;
	int fd = -1;

	if (module &&
	    dwfl_module_report_build_id(module, search->build_id, search->build_id_bytes, 0) == 0)
		fd = dwfl_build_id_find_elf(module, NULL, name, 0, &path, &elf);
	if (fd >= 0) {
		fits = judge_file(search, path ? path : name, fd);
		if (!fits)
			close(fd);
	}
	free(path);
	dwfl_end(dwfl);
	return fits;
}

/* The order is a guess at cost: paths first, then build-ids in directories, then the network. */
static bool try_all(struct search *search, const char *path)
{
	const struct symbols_options *options = search->options;
	const char *sysroot = options->sysroot ? options->sysroot : "";
	char *debug_directory;
	bool fits;

	/* Absolute paths only. A relative path was relative to the working directory of the
	 * recorded process, and "[vdso]" is no file. With a sysroot this machine's own file is
	 * not tried: a report must not depend on where it is read. */
	if (*path == '/' && try_joined(search, sysroot, path))
		return true;
	for (size_t i = 0; i < options->search_dir_count; i++)
		if (try_joined(search, options->search_dirs[i], path) ||
		    try_joined(search, options->search_dirs[i], lbasename(path)))
			return true;
	if (!search->build_id_bytes)
		return false;
	for (size_t i = 0; i < options->search_dir_count; i++)
		if (try_build_id(search, options->search_dirs[i]))
			return true;
	debug_directory = concat(sysroot, "/usr/lib/debug", NULL);
	fits = try_build_id(search, debug_directory);
	free(debug_directory);
	return fits || (options->debuginfod && try_debuginfod(search, lbasename(path)));
}

struct module_file module_file_find(const struct symbols_options *options, const char *path,
				    const uint8_t *build_id, size_t build_id_bytes)
{
	struct search search = {
		.options = options,
		.build_id = build_id,
		.build_id_bytes = build_id_bytes,
		.found = { .fd = -1, .state = SYMBOLS_MISSING },
	};

	if (path && *path)
		failed(&search, SYMBOLS_MISSING, concat("no such file: ", path, NULL));
	else
		failed(&search, SYMBOLS_MISSING, xstrdup("the recording has no path for it"));
	try_all(&search, path ? path : "");
	return search.found;
}

void module_file_close(struct module_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

void module_file_damaged(struct module_file *file, const char *why)
{
	free(file->reason);
	file->reason =
		concat("damaged ELF file: ", file->path, ": ", why ? why : "unknown error", NULL);
	file->state = SYMBOLS_UNREADABLE;
	free(file->path);
	file->path = NULL;
	module_file_close(file);
}

void module_file_fini(struct module_file *file)
{
	module_file_close(file);
	free(file->path);
	free(file->reason);
	*file = (struct module_file){ .fd = -1, .state = SYMBOLS_MISSING };
}
