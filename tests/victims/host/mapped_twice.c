/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory that is mapped more than once: it is there once, whoever maps it and however often.
 * Each function below leaves some MiB of it, all of them different. No CUDA.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#define MiB ((size_t)1 << 20)

static size_t held, maps;

static char *must(void *at)
{
	if (at == MAP_FAILED) {
		perror("victim: a map failed");
		exit(3);
	}
	return at;
}

static int make_file(size_t bytes)
{
	int fd = memfd_create("shared", 0);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		exit(3);
	return fd;
}

static char *map_part(int fd, size_t bytes, size_t offset)
{
	return must(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset));
}

static void holds(size_t bytes, size_t pieces)
{
	held += bytes;
	maps += pieces;
}

/* A view to write to and one to run from, as compilers at run time have. */
static __attribute__((noinline)) void two_views(void)
{
	int fd = make_file(16 * MiB);
	char *a = map_part(fd, 16 * MiB, 0), *b = map_part(fd, 16 * MiB, 0);
	memset(a, 1, 2 * MiB);
	if (b[MiB] != 1)
		exit(3);
	close(fd);
	holds(16 * MiB, 1);
}

/* The first view is ended, and the memory stays; another view is made of what is filled by now. */
static __attribute__((noinline)) void first_view_ends(void)
{
	int fd = make_file(8 * MiB);
	char *a = map_part(fd, 8 * MiB, 0), *b = map_part(fd, 8 * MiB, 0);
	memset(a, 1, 8 * MiB);
	munmap(a, 8 * MiB);
	map_part(fd, 8 * MiB, 0);
	munmap(b, 8 * MiB);
	close(fd);
	holds(8 * MiB, 1);
}

/* A ring buffer: the same pages twice, one after the other. */
static __attribute__((noinline)) void ring(void)
{
	int fd = make_file(4 * MiB);
	char *at = must(mmap(NULL, 8 * MiB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	for (size_t i = 0; i < 2; i++)
		must(mmap(at + i * 4 * MiB, 4 * MiB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			  fd, 0));
	close(fd);
	holds(4 * MiB, 1);
}

/* One map of the second half, then one of the whole. */
static __attribute__((noinline)) void part_and_whole(void)
{
	int fd = make_file(2 * MiB);
	map_part(fd, MiB, MiB);
	map_part(fd, 2 * MiB, 0);
	close(fd);
	holds(2 * MiB, 2);
}

/* mremap of nothing maps shared memory once more; then one of both moves. */
static __attribute__((noinline)) void copied_by_mremap(void)
{
	char *a = must(mmap(NULL, MiB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	char *place = must(mmap(NULL, MiB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	must(mremap(a, 0, MiB, MREMAP_MAYMOVE));
	must(mremap(a, MiB, MiB, MREMAP_MAYMOVE | MREMAP_FIXED, place));
	holds(MiB, 1);
}

/* A segment of System V that was made here, attached twice: one of both is detached. */
static __attribute__((noinline)) void attached_twice(void)
{
	int id = shmget(IPC_PRIVATE, 3 * MiB, 0600);
	char *a = must(shmat(id, NULL, 0)), *b = must(shmat(id, NULL, 0));
	memset(a, 1, 3 * MiB);
	if (b[MiB] != 1 || shmdt(a) || !shmdt(a) || shmctl(id, IPC_RMID, NULL))
		exit(3);
	holds(3 * MiB, 1);
}

/* What a child made and has attached is the child's; a detached segment is nobody's. */
static __attribute__((noinline)) void attached_elsewhere(void)
{
	int id, mine = shmget(IPC_PRIVATE, 64 * MiB, 0600), made[2], done[2];
	char *at = must(shmat(mine, NULL, 0)), byte = 0;
	if (shmdt(at) || shmctl(mine, IPC_RMID, NULL) || pipe(made) || pipe(done))
		exit(3);
	if (!fork()) {
		id = shmget(IPC_PRIVATE, 64 * MiB, 0600);
		must(shmat(id, NULL, 0));
		_exit(write(made[1], &id, sizeof id) < 0 || read(done[0], &byte, 1) < 0);
	}
	if (read(made[0], &id, sizeof id) != sizeof id)
		exit(3);
	must(shmat(id, NULL, 0));
	if (shmctl(id, IPC_RMID, NULL) || write(done[1], &byte, 1) != 1)
		exit(3);
}

static __attribute__((noinline)) void all_views_end(void)
{
	int fd = make_file(32 * MiB);
	char *a = map_part(fd, 32 * MiB, 0), *b = map_part(fd, 32 * MiB, 0);
	munmap(a, 32 * MiB);
	munmap(b, 32 * MiB);
	close(fd);
}

int main(void)
{
	two_views();
	first_view_ends();
	ring();
	part_and_whole();
	copied_by_mremap();
	attached_twice();
	attached_elsewhere();
	all_views_end();
	printf("host maps shared_bytes %zu shared_count %zu\n", held, maps);
	printf("end state exit 0\n");
	return 0;
}
