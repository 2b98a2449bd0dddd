/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps memory past malloc, in every way that the recorder follows with mmap=1: anonymous and of a
 * file, unmapped in part, moved and grown, replaced in place, refused. It also reserves addresses,
 * which is no memory. No CUDA.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MiB ((size_t)1 << 20)

static char *must(void *at)
{
	if (at == MAP_FAILED) {
		perror("victim: a map failed");
		exit(3);
	}
	return at;
}

static char *map_workspace(size_t bytes)
{
	return must(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static char *map_model(const char *path, size_t bytes)
{
	int fd = open(path, O_RDONLY);
	char *at = must(mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0));
	close(fd);
	return at;
}

int main(int argc, char **argv)
{
	size_t anonymous = 0, pieces = 0, advised = 0, file_bytes = 128 << 10;
	char *a = map_workspace(8 * MiB), *b = map_workspace(4 * MiB), *c = map_workspace(2 * MiB),
	     *grown;
	map_model("/proc/self/exe", 64 << 10);
	map_model("/proc/self/exe", 64 << 10);
	/* [0,2) and [3,8) of a stay */
	munmap(a + 2 * MiB, MiB);
	anonymous += 7 * MiB;
	pieces += 2;
	/* over the end of what it is, and refused where it is no address of a page: nothing changes
	 */
	if (!munmap(b + 1, MiB) || errno != EINVAL)
		return 3;
	/* all of b, moved and grown */
	grown = must(mremap(b, 4 * MiB, 12 * MiB, MREMAP_MAYMOVE));
	anonymous += 12 * MiB;
	pieces++;
	/* the second half of c becomes another map */
	must(mmap(c + MiB, MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
	          0));
	anonymous += 2 * MiB;
	pieces += 2;
	/* only addresses */
	must(mmap(NULL, (size_t)1 << 34, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
	          0));
	/* pages released, the map stays */
	if (!madvise(grown, 3 * MiB, MADV_DONTNEED))
		advised = 3 * MiB;
	printf("host maps anonymous_bytes %zu anonymous_count %zu file_bytes %zu file_count 2 given_back_bytes %zu\n",
	       anonymous, pieces, file_bytes, advised);
	printf("end state exit 0\n");
	return 0;
}
