/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserves addresses and makes memory of them part by part, as the heaps of managed languages do:
 * V8 by mprotect, Java's by a map over them. It takes memory back in each way and refuses once. No
 * CUDA.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MiB ((size_t)1 << 20)
#define KiB ((size_t)1 << 10)
enum { PAGE = 4096, CHUNKS = 40 };

#define READ_WRITE (PROT_READ | PROT_WRITE)
#define PRIVATE (MAP_PRIVATE | MAP_ANONYMOUS)

static char *must(void *at)
{
	if (at == MAP_FAILED) {
		perror("victim: a map failed");
		exit(3);
	}
	return at;
}

static char *reserve(size_t bytes)
{
	return must(mmap(NULL, bytes, PROT_NONE, PRIVATE | MAP_NORESERVE, -1, 0));
}

static void must_protect(void *at, size_t bytes, int access)
{
	if (mprotect(at, bytes, access)) {
		perror("victim: mprotect failed");
		exit(3);
	}
}

/* A chunk at a multiple of 256 KiB, as V8 has its pages: what is too much is given back. */
__attribute__((noinline)) static char *allocate_chunk(void)
{
	size_t bytes = 256 * KiB;
	char *at = reserve(2 * bytes), *chunk = at + (bytes - (size_t)at % bytes) % bytes;
	if (chunk > at)
		munmap(at, (size_t)(chunk - at));
	if (chunk + bytes < at + 2 * bytes)
		munmap(chunk + bytes, (size_t)(at + 2 * bytes - chunk) - bytes);
	must_protect(chunk, bytes, READ_WRITE);
	memset(chunk, 1, bytes);
	return chunk;
}

/* Grows a heap in steps that are too small for a record of their own. */
__attribute__((noinline)) static void expand_heap(char *heap, size_t from, size_t bytes)
{
	for (size_t at = from; at < from + bytes; at += 16 * KiB)
		must(mmap(heap + at, 16 * KiB, READ_WRITE, PRIVATE | MAP_FIXED, -1, 0));
}

int main(void)
{
	char *chunks[CHUNKS], *heap = reserve(64 * MiB), *cage = reserve(1024 * MiB);
	size_t bytes;
	for (int i = 0; i < CHUNKS; i++)
		chunks[i] = allocate_chunk();
	/* a quarter goes, in two ways; one is executable for a while */
	for (int i = 0; i < CHUNKS / 4; i++) {
		if (i & 1)
			must_protect(chunks[i], 256 * KiB, PROT_NONE);
		munmap(chunks[i], 256 * KiB);
	}
	must_protect(chunks[CHUNKS - 1], 256 * KiB, PROT_READ | PROT_EXEC);
	must_protect(chunks[CHUNKS - 1], 256 * KiB, READ_WRITE);
	bytes = CHUNKS * 3 / 4 * 256 * KiB;
	/* 8 MiB grow upwards; 2 MiB inside of them are reserved again, half of it is used again */
	expand_heap(heap, 0, 8 * MiB);
	must(mmap(heap + 4 * MiB, 2 * MiB, PROT_NONE, PRIVATE | MAP_FIXED | MAP_NORESERVE, -1, 0));
	expand_heap(heap, 4 * MiB, MiB);
	bytes += 7 * MiB;
	/* 4 MiB somewhere in the cage, twice the same; a MiB of it without access; refused: no page */
	must_protect(cage + 100 * MiB, 4 * MiB, READ_WRITE);
	must_protect(cage + 100 * MiB, 4 * MiB, READ_WRITE);
	must_protect(cage + 101 * MiB, MiB, PROT_NONE);
	if (!mprotect(cage + 100 * MiB + 1, MiB, PROT_NONE) || errno != EINVAL)
		return 3;
	bytes += 3 * MiB;
	printf("host maps anonymous_bytes %zu\n", bytes);
	printf("end state exit 0\n");
	return 0;
}
