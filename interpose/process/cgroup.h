/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of this process and of its control group, and its threads. Contract: any thread after
 * cuf_cgroup_find; raw system calls, no allocation; without /proc or a cgroup every number is
 * CUF_UNKNOWN.
 */
#pragma once

#include <stdint.h>

struct cuf_process_memory {
	uint64_t address_bytes;     /* all that is mapped */
	uint64_t data_bytes;        /* of it, private memory that may be written to, and stacks */
	uint64_t rss_bytes;
	uint64_t rss_shared_bytes;
	uint64_t cgroup_bytes;
	uint64_t cgroup_max_bytes;  /* CUF_UNKNOWN also when there is no limit */
	/* page cache that the kernel may drop; read only near the limit */
	uint64_t cgroup_file_bytes;
	/* shared memory and files of tmpfs, read together with it */
	uint64_t cgroup_shmem_bytes;
};

/* Looks for the memory controller of this process; again in a forked child. */
void cuf_cgroup_find(void);
/* Where it is, without a slash at the end; "" for none. */
const char *cuf_cgroup_directory(void);
/* Processes of the cgroup that the kernel killed so far. */
uint64_t cuf_cgroup_oom_kills(void);

/* About 10 us. */
void cuf_process_memory(struct cuf_process_memory *memory);
/* How many threads there are now. */
uint64_t cuf_process_threads(void);
