/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary file, write, rename. */
#include "analysis/cmd/cli/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/cmd/cli/say.h"

static int fail(struct output *output, const char *what)
{
	say_error("cannot %s '%s': %s", what, output->path, strerror(errno));
	return -1;
}

static int open_file(struct output *output)
{
	struct stat st;
	if (!stat(output->path, &st)) {
		if (!S_ISREG(st.st_mode)) {
			output->file = fopen(output->path, "we");
			return output->file ? 0 : fail(output, "write");
		}
		if (!output->force) {
			say_error("'%s' exists; -f overwrites it", output->path);
			return -1;
		}
	}
	if (snprintf(output->temporary, sizeof output->temporary, "%s.tmp.%d", output->path, (int)getpid()) >= (int)sizeof output->temporary) {
		errno = ENAMETOOLONG;
		output->temporary[0] = 0;
		return fail(output, "write");
	}
	output->file = fopen(output->temporary, "wxe");
	return output->file ? 0 : fail(output, "write");
}

int output_open(struct output *output, const struct opts *opts)
{
	memset(output, 0, sizeof *output);
	output->file = stdout;
	output->path = opts_text(opts, "output");
	output->force = opts_has(opts, "force");
	output->format = opts_has(opts, "json") ? OUTPUT_JSON : (enum output_format)opts_number(opts, "format", OUTPUT_TEXT);
	if (output->path && !strcmp(output->path, "-"))
		output->path = NULL;
	if (output->path && open_file(output))
		return -1;
	style_init(&output->style, output->file, (enum style_colour)opts_number(opts, "color", STYLE_AUTO));
	return 0;
}

/* Without -f the name must still be free: somebody may have taken it while we wrote. */
static int move_into_place(struct output *output)
{
	if (output->force)
		return rename(output->temporary, output->path);
	if (link(output->temporary, output->path))
		return errno == EPERM || errno == EOPNOTSUPP ? rename(output->temporary, output->path) : -1; /* no links there */
	return unlink(output->temporary);
}

int output_close(struct output *output)
{
	int bad;
	if (!output->path)
		return 0; /* main looks at stdout */
	bad = ferror(output->file) | fflush(output->file);
	bad |= fclose(output->file);
	if (!bad && *output->temporary)
		bad = move_into_place(output);
	if (!bad)
		return 0;
	fail(output, "write");
	if (*output->temporary)
		unlink(output->temporary);
	return -1;
}
