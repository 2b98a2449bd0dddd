/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary file, write, rename. */
#include "analysis/cmd/cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/cmd/cli/say.h"

enum { OWNER_ONLY = 0600 };

static int fail_writing(struct output *output)
{
	say_error("cannot write '%s': %s", output->path, strerror(errno));
	return -1;
}

static int check_opened(struct output *output)
{
	if (!output->file)
		return fail_writing(output);
	return 0;
}

/* A new file of ours. A name that exists, as a file or as a link, is refused. */
static FILE *create_private(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, OWNER_ONLY);
	FILE *file;

	if (fd < 0)
		return NULL;
	file = fdopen(fd, "w");
	if (!file)
		close(fd);
	return file;
}

/* A device or a pipe is written directly. A regular file is replaced in one step, at the end. */
static int open_file(struct output *output)
{
	struct stat st;
	int length;

	if (!stat(output->path, &st)) {
		if (!S_ISREG(st.st_mode)) {
			output->file = fopen(output->path, "we");
			return check_opened(output);
		}
		if (!output->force) {
			say_error("'%s' exists; -f overwrites it", output->path);
			return -1;
		}
	}
	length = snprintf(output->temporary, sizeof output->temporary, "%s.tmp.%d", output->path,
			  (int)getpid());
	if (length >= (int)sizeof output->temporary) {
		errno = ENAMETOOLONG;
		output->temporary[0] = 0;
		return fail_writing(output);
	}
	output->file = create_private(output->temporary);
	return check_opened(output);
}

int output_open_path(struct output *output, const char *path, bool force)
{
	memset(output, 0, sizeof *output);
	output->file = stdout;
	output->path = path;
	output->force = force;
	if (path && !strcmp(path, "-"))
		output->path = NULL;
	if (output->path && open_file(output))
		return -1;
	return 0;
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
	*output = (struct output){ .file = stdout, .path = path, .force = true };
	if (!strcmp(path, "-"))
		output->path = NULL;
	if (output->path && open_file(output))
		return -1;
	style_init(&output->style, output->file, STYLE_NEVER);
	return 0;
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
		unlink(output->temporary);
}

/* Returns -1 and prints why. The temporary file is removed then, and an existing file is as it
 * was. */
int output_close(struct output *output)
{
	int bad;

	if (!output->path)
		return 0; /* main checks stdout */
	bad = ferror(output->file) | fflush(output->file);
	bad |= fclose(output->file);
	if (!bad && *output->temporary)
		bad = move_into_place(output);
	if (!bad)
		return 0;
	fail_writing(output);
	if (*output->temporary)
		unlink(output->temporary);
	return -1;
}
