/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon FILE WAY [refuse]: a program that rearranges what it was started with, holds 80 MiB, and prints what became of it.
 * replace: it closes its standard descriptors, and FILE becomes its descriptor 2. redirect: FILE becomes its standard error.
 * scratch: it works in a directory of its own and removes that. keep: nothing. refuse: a request is refused, and it fails.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_data(int fd)
{
	if (write(fd, "app data\n", 9) != 9)
		exit(2);
}

static void hold_memory(void)
{
	for (int i = 0; i < 80; i++)
		memset(malloc(1 << 20), 1, 1 << 20);
}

/* FILE gets descriptor 2, as the lowest one that is free. */
static int replace(const char *path)
{
	int out = dup2(1, 9);

	close(0);
	close(1);
	close(2);
	if (open("/dev/null", O_RDONLY) != 0 || open("/dev/null", O_WRONLY) != 1 ||
	    open(path, O_RDWR | O_CREAT | O_TRUNC, 0600) != 2)
		exit(2);
	write_data(2);
	return out;
}

int main(int argc, char **argv)
{
	char scratch[] = "/tmp/scratch.XXXXXX";
	const char *way = argc > 2 ? argv[2] : "";
	int out = 1;

	if (!strcmp(way, "replace"))
		out = replace(argv[1]);
	if (!strcmp(way, "redirect")) {
		dup2(open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600), 2);
		write_data(2);
	}
	if (!strcmp(way, "scratch") && (!mkdtemp(scratch) || chdir(scratch)))
		return 2;
	hold_memory();
	if (!strcmp(way, "scratch"))
		dprintf(out, "rmdir %d\n", chdir("/") || rmdir(scratch));
	if (argc > 3) {
		volatile size_t huge = (size_t)1 << 46;
		dprintf(out, "malloc %s\n", malloc(huge) ? "served" : "refused");
		exit(1);
	}
	dprintf(out, "done\n");
	return 0;
}
