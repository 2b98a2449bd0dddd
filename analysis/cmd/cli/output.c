/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file without a name, which gets one when it is complete. Where the file system has no such
 * files, or another program must open it, it has a temporary name meanwhile.
 */
#include "analysis/cmd/cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/base/paths.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cli/unfinished.h"

enum { OWNER_ONLY = 0600, OPEN_NAME_BYTES = 32 };

static int fail_writing(struct output *output)
{
	say_error("cannot write '%s': %s", output->path, strerror(errno));
	return -1;
}

static FILE *stream_of(int fd)
{
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

/* A new file of ours. A name that exists, as a file or as a link, is refused. */
static FILE *create_private(const char *path)
{
	return stream_of(open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			      OWNER_ONLY));
}

/* "/proc/self/fd/3": the only name of a file without one. */
static void name_of_file(FILE *file, char out[OPEN_NAME_BYTES])
{
	snprintf(out, OPEN_NAME_BYTES, "/proc/self/fd/%d", fileno(file));
}

/* A file in the path's directory that nobody sees. Even after SIGKILL nothing is left of it. */
static FILE *create_nameless(const char *path)
{
	char directory[PATH_MAX], name[OPEN_NAME_BYTES];
	int length = (int)(path_base_name(path) - path);
	FILE *file;

	snprintf(directory, sizeof directory, "%.*s", length, path);
	file = stream_of(open(length ? directory : ".", O_WRONLY | O_TMPFILE | O_CLOEXEC,
			      OWNER_ONLY));
	if (!file)
		return NULL;
	name_of_file(file, name);
	if (!access(name, F_OK))
		return file;
	fclose(file); /* /proc is missing, so it could never get a name */
	return NULL;
}

static int name_temporary(struct output *output)
{
	int length = snprintf(output->temporary, sizeof output->temporary, "%s.tmp.%d",
			      output->path, (int)getpid());

	if (length < (int)sizeof output->temporary)
		return 0;
	errno = ENAMETOOLONG;
	output->temporary[0] = 0;
	return -1;
}

static int open_temporary(struct output *output)
{
	if (name_temporary(output))
		return fail_writing(output);
	if (!output->named)
		output->file = create_nameless(output->path);
	if (output->file) {
		output->temporary[0] = 0;
		output->nameless = true;
		return 0;
	}
	unfinished_add(output->temporary, UNFINISHED_FILE);
	output->file = create_private(output->temporary);
	if (output->file)
		return 0;
	unfinished_forget(output->temporary);
	return fail_writing(output);
}

/* A device or a pipe is written directly. A regular file is replaced in one step, at the end. */
static int open_file(struct output *output)
{
	struct stat st;

	output->file = NULL;
	if (!stat(output->path, &st)) {
		if (!S_ISREG(st.st_mode)) {
			output->file = fopen(output->path, "we");
			return output->file ? 0 : fail_writing(output);
		}
		if (!output->force) {
			say_error("'%s' exists; -f overwrites it", output->path);
			return -1;
		}
	}
	return open_temporary(output);
}

static int open_path(struct output *output, const char *path)
{
	output->file = stdout;
	output->path = path;
	if (path && !strcmp(path, "-"))
		output->path = NULL;
	return output->path && open_file(output) ? -1 : 0;
}

int output_open_path(struct output *output, const char *path, bool force)
{
	*output = (struct output){ .force = force };
	return open_path(output, path);
}

int output_open_named(struct output *output, const char *path, bool force)
{
	*output = (struct output){ .force = force, .named = true };
	return open_path(output, path);
}

int output_open(struct output *output, const struct opts *opts)
{
	if (output_open_path(output, opts_text(opts, "output"), opts_has(opts, "force")))
		return -1;
	output->format = (enum output_format)opts_number(opts, "format", OUTPUT_TEXT);
	if (opts_has(opts, "json"))
		output->format = OUTPUT_JSON;
	style_init(&output->style, output->file,
		   (enum style_colour)opts_number(opts, "color", STYLE_AUTO));
	return 0;
}

int output_open_file(struct output *output, const char *path)
{
	if (output_open_path(output, path, true))
		return -1;
	style_init(&output->style, output->file, STYLE_NEVER);
	return 0;
}

/* The complete file gets its name, without -f only if nobody has taken it; else a temporary one. */
static int name_file(struct output *output)
{
	char name[OPEN_NAME_BYTES];

	name_of_file(output->file, name);
	if (!output->force)
		return linkat(AT_FDCWD, name, AT_FDCWD, output->path, AT_SYMLINK_FOLLOW);
	if (name_temporary(output))
		return -1;
	unfinished_add(output->temporary, UNFINISHED_FILE);
	return linkat(AT_FDCWD, name, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW);
}

/* Without -f, link() fails if another process has created the name while we wrote. */
static int move_into_place(struct output *output)
{
	if (output->force)
		return rename(output->temporary, output->path);
	if (!link(output->temporary, output->path))
		return unlink(output->temporary);
	if (errno == EPERM || errno == EOPNOTSUPP) /* this file system has no links */
		return rename(output->temporary, output->path);
	return -1;
}

/* For a result that must not appear. FILE is left as it was. */
void output_abandon(struct output *output)
{
	if (output->path)
		fclose(output->file);
	if (*output->temporary)
		unfinished_remove(output->temporary, UNFINISHED_FILE);
}

/* Returns -1 and prints why. The temporary file is removed then, and an existing file is as it
 * was. */
int output_close(struct output *output)
{
	int bad;

	if (!output->path)
		return 0; /* main checks stdout */
	bad = ferror(output->file) | fflush(output->file);
	if (!bad && output->nameless)
		bad = name_file(output);
	bad |= fclose(output->file);
	if (!bad && *output->temporary)
		bad = move_into_place(output);
	if (bad)
		fail_writing(output);
	if (*output->temporary)
		unfinished_remove(output->temporary, UNFINISHED_FILE);
	return bad ? -1 : 0;
}
