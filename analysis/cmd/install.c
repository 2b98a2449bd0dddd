/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight install`: this command and its recorder into a folder, for a container or a host. */
#include "analysis/cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/base/paths.h"
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/target/embedded.h"
#include "analysis/cmd/target/library.h"

enum { PATH_ROOM = PATH_MAX + 64 };

static int fail_install(const char *path)
{
	say_error("cannot write '%s': %s", path, strerror(errno));
	return -1;
}

/* The folders of a path below directory; what is there stays. */
static int make_folders(const char *path, size_t directory_bytes)
{
	char part[PATH_ROOM];

	for (size_t i = directory_bytes; path[i]; i++) {
		if (path[i] != '/')
			continue;
		snprintf(part, sizeof part, "%.*s", (int)i, path);
		if (mkdir(part, 0755) && errno != EEXIST)
			return fail_install(part);
	}
	return 0;
}

static int copy_file(const char *source, int to)
{
	int from = open(source, O_RDONLY | O_CLOEXEC);
	ssize_t got = from < 0 ? -1 : 1;

	while (got > 0)
		got = sendfile(to, from, NULL, 1 << 20);
	if (from >= 0)
		close(from);
	return (int)got;
}

/* What runs keeps the old file: the new one takes its name when it is complete. source: NULL for
 * the recorder inside this command. */
static int put_file(const char *directory, const char *name, mode_t mode, const char *source)
{
	char path[PATH_ROOM], new[PATH_ROOM + 8];
	int fd, status;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	snprintf(new, sizeof new, "%s.new", path);
	if (make_folders(path, strlen(directory)))
		return -1;
	unlink(new);
	fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return fail_install(new);
	status = source ? copy_file(source, fd)
			: embedded_write(fd, recorder_image, recorder_image_end);
	if (!status)
		status = fchmod(fd, mode);
	if (close(fd) || status || rename(new, path)) {
		status = fail_install(path);
		unlink(new);
	}
	return status;
}

/* In each folder that loaders make of $LIB is a link to the one file. */
static int put_links(const char *directory)
{
	for (size_t i = 0; library_folders[i]; i++) {
		char path[PATH_ROOM];
		bool is_below = !strncmp(library_folders[i], "lib/", 4);

		if (!strcmp(library_folders[i], "lib"))
			continue;
		snprintf(path, sizeof path, "%s/%s/libcuflight.so", directory, library_folders[i]);
		if (make_folders(path, strlen(directory)))
			return -1;
		unlink(path);
		if (symlink(is_below ? "../libcuflight.so" : "../lib/libcuflight.so", path))
			return fail_install(path);
	}
	return 0;
}

static int put_all(const char *directory)
{
	struct library library = { .path = "" };
	const char *own;
	bool is_inside = !embedded_is_empty(recorder_image, recorder_image_end);

	if (!is_inside && library_find(&library, NULL)) {
		say_error("%s", library.why);
		return -1;
	}
	if (mkdir(directory, 0755) && errno != EEXIST)
		return fail_install(directory);
	if (put_file(directory, "lib/libcuflight.so", 0644, is_inside ? NULL : library.path) ||
	    put_links(directory))
		return -1;
	/* an empty root has no /proc */
	own = "/proc/self/exe";
	if (access(own, R_OK))
		own = (const char *)getauxval(AT_EXECFN);
	return put_file(directory, "bin/cuflight", 0755, own);
}

static int run_install(const struct opts *opts, const struct cmd *const *commands)
{
	char directory[PATH_MAX], quoted[PATH_ROOM];
	size_t length;

	if (opts->operand_count != 1) {
		say_error("install takes one directory");
		return CMD_USAGE;
	}
	length = strlen(opts->operands[0]);
	if (length >= sizeof directory - 64) {
		say_error("the name of the directory is too long");
		return CMD_USAGE;
	}
	memcpy(directory, opts->operands[0], length + 1);
	while (length > 1 && directory[length - 1] == '/')
		directory[--length] = 0;
	if (put_all(directory))
		return CMD_USAGE;
	path_quote_shell(directory, quoted, sizeof quoted);
	say_info("installed into %s; now: eval \"$(%s/bin/cuflight env)\"", directory, quoted);
	return CMD_FINE;
}

const struct cmd cmd_install = {
	.name = "install",
	.summary = "write this command and its recorder into a directory",
	.usage = "DIRECTORY",
	.manual = "cuflight-install",
	.about = "Writes bin/cuflight, lib/libcuflight.so and links to it, so that "
		 "DIRECTORY/$LIB/libcuflight.so is the recorder for each program with glibc and no "
		 "file for others. A shipped command has the recorder inside: it needs no shell, "
		 "no library and no other file, so it can be an image of its own, which copies "
		 "itself into a volume before the container starts (env --k8s). To remove it, "
		 "remove the directory.",
	.examples = "cuflight install /opt/cuflight\tfor this machine\n"
		    "cuflight install /shared\tin an init container\n",
	.groups = { &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_install,
};
