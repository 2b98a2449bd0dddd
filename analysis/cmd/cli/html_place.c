/* SPDX-License-Identifier: Apache-2.0 */
/* Next to the recording, else in the current directory. */
#include "analysis/cmd/cli/html_place.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "analysis/base/paths.h"
#include "analysis/cmd/cli/say.h"

/* "run/cuflight.server.cuf" without its suffix; of a directory, a name in it. */
static void stem_of(const char *recording, char *out, size_t bytes)
{
	size_t length = strlen(recording);
	struct stat st;

	if (!stat(recording, &st) && S_ISDIR(st.st_mode)) {
		snprintf(out, bytes, "%s%sreport", recording,
			 length && recording[length - 1] == '/' ? "" : "/");
		return;
	}
	if (length > 4 && !strcmp(recording + length - 4, ".cuf"))
		length -= 4;
	snprintf(out, bytes, "%.*s", (int)length, recording);
}

static bool can_write_beside(const char *stem)
{
	char directory[PATH_MAX];
	const char *name = path_base_name(stem);

	if (name == stem)
		return !access(".", W_OK);
	snprintf(directory, sizeof directory, "%.*s", (int)(name - stem), stem);
	return !access(directory, W_OK);
}

bool html_place_choose(struct html_place *place, const char *recording)
{
	char stem[PATH_MAX - 8];
	const char *from = stem;

	*place->path = 0;
	if (!isatty(STDOUT_FILENO))
		return false;
	stem_of(recording, stem, sizeof stem);
	if (!can_write_beside(stem))
		from = path_base_name(stem);
	snprintf(place->path, sizeof place->path, "%s.html", from);
	return true;
}

static bool has_desktop(void)
{
	static const char *const names[] = { "DISPLAY", "WAYLAND_DISPLAY" };

	for (size_t i = 0; i < 2; i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return true;
	}
	return false;
}

/* A grandchild, so that nobody waits for the browser; what it prints is not ours. */
static void open_browser(const char *path)
{
	pid_t child = fork();
	int null;

	if (child > 0)
		waitpid(child, NULL, 0);
	if (child)
		return;
	if (fork())
		_exit(0);
	setsid();
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
	execlp("xdg-open", "xdg-open", path, (char *)NULL);
	_exit(127);
}

void html_place_show(const struct html_place *place)
{
	char whole[PATH_MAX];

	if (!*place->path)
		return;
	say_info("wrote %s", place->path);
	if (has_desktop() && realpath(place->path, whole))
		open_browser(whole);
}
