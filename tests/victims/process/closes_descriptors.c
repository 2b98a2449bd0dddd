/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closes_descriptors FOLDER: closes every descriptor it did not open, as daemons do. Then it writes
 * its own files under the numbers that became free, and allocates. It prints of each file whether
 * it contains anything else.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES 8
#define LAST_DESCRIPTOR 1023

static const char text[] = "app data\n";

static void path_of(char *path, size_t bytes, const char *folder, int number)
{
	snprintf(path, bytes, "%s/app.%d", folder, number);
}

int main(int argc, char **argv)
{
	const char *folder = argc > 1 ? argv[1] : ".";
	char path[4096], found[64];
	int fd[FILES], damaged = 0;

	for (int i = 3; i <= LAST_DESCRIPTOR; i++)
		close(i);
	for (int i = 0; i < FILES; i++) {
		path_of(path, sizeof path, folder, i);
		fd[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (fd[i] < 0 || write(fd[i], text, strlen(text)) != (ssize_t)strlen(text))
			return 2;
	}
	/* more than 64 MiB in all, a part of it held: whoever watches has reason to act */
	for (int i = 0; i < 20000; i++)
		if (i % 16)
			free(malloc(100 + i % 50));
		else
			memset(malloc(65536), i, 65536);
	for (int i = 0; i < FILES; i++) {
		ssize_t got;
		path_of(path, sizeof path, folder, i);
		lseek(fd[i], 0, SEEK_SET);
		got = read(fd[i], found, sizeof found);
		if (got != (ssize_t)strlen(text) || memcmp(found, text, strlen(text)) != 0) {
			printf("%s is damaged\n", path);
			damaged++;
		}
	}
	printf("%d files, %d damaged, first descriptor %d\n", FILES, damaged, fd[0]);
	return damaged != 0;
}
