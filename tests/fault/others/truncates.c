/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads allocate while somebody damages every recording in the directory of argument 1. Argument
 * 2: how. "empty" truncates, "half" leaves half of the file, "grow" truncates and makes it as long
 * as before, "fill" frees its blocks behind the header and takes all
 * space of the file system.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 3000 };

static const char *folder, *how;

static void fill_up(void)
{
	static char zeros[65536];
	char path[4096];
	int fd;

	snprintf(path, sizeof path, "%s/filler", folder);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	while (write(fd, zeros, sizeof zeros) > 0)
		;
	close(fd);
}

static void damage(const char *path)
{
	int fd = open(path, O_RDWR);
	struct stat status;

	fstat(fd, &status);
	if (!strcmp(how, "half")) {
		if (ftruncate(fd, status.st_size / 2))
			perror(path);
	} else if (!strcmp(how, "fill")) {
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, status.st_size);
		fill_up();
	} else {
		if (ftruncate(fd, 0) || (!strcmp(how, "grow") && ftruncate(fd, status.st_size)))
			perror(path);
	}
	close(fd);
}

static void damage_all(void)
{
	DIR *open_folder = opendir(folder);
	struct dirent *entry;
	char path[4096];

	while (open_folder && (entry = readdir(open_folder)) != NULL) {
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (strstr(entry->d_name, ".cuf"))
			damage(path);
	}
	if (open_folder)
		closedir(open_folder);
}

static void *allocate(void *rounds)
{
	unsigned long sum = 0;

	for (long i = 0; i < (long)rounds; i++) {
		unsigned char *volatile block = malloc(1000 + (size_t)i % 7 * 20000);

		block[0] = (unsigned char)i;
		sum += block[0];
		free(block);
	}
	return (void *)sum;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	void *sum;

	if (argc < 3)
		return 2;
	folder = argv[1];
	how = argv[2];
	allocate((void *)ROUNDS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, allocate, (void *)(ROUNDS * 10L));
	damage_all();
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &sum);
		printf("%lu\n", (unsigned long)sum);
	}
	printf("%lu\n", (unsigned long)allocate((void *)ROUNDS));
	puts("done");
	return 0;
}
