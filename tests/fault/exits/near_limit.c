/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near_limit LIMIT_FILE USAGE_FILE LEFT_KIB [leave]: fills memory until so much of the control
 * group's limit is left, then calls exit(0).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long long number_in(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		exit(2);
	close(fd);
	return atoll(text);
}

static void touch(size_t bytes)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		exit(2);
	memset(at, 1, bytes);
}

int main(int argc, char **argv)
{
	enum { LARGE = 4 << 20, PAGE = 4096, RECORDED = 70 << 20 };
	long long limit = number_in(argv[1]), left = atoll(argv[3]) << 10;
	void *volatile kept = malloc(RECORDED); /* the recording is a file from here on */
	memset(kept, 1, RECORDED);
	puts("full");
	fflush(stdout);
	for (;;) {
		long long room = limit - number_in(argv[2]) - left;
		if (room <= 0)
			break;
		touch(room > LARGE ? LARGE : PAGE);
	}
	exit(0);
}
