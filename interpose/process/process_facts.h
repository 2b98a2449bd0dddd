/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the recorder says of the process it lives in: names for the file, facts for META, numbers for the timeline.
 * Contract: raw system calls, no descriptor kept, no allocation; without /proc everything is simply unknown.
 */
#ifndef CUF_PROCESS_FACTS_H
#define CUF_PROCESS_FACTS_H

#include <stddef.h>
#include <stdint.h>

/* Reads host name and executable name; again in a forked child. */
void cuf_process_read(void);
const char *cuf_process_host(void);  /* "unknown" at worst; safe characters alone */
const char *cuf_process_name(void);  /* base name of the executable; "unknown" at worst; safe characters alone */

/* Writes executable, command line (secrets redacted), environment (allow-list), cgroup and limits into META. */
void cuf_process_describe(char **environment);

/* Resident bytes of this process and its cgroup's memory; CUF_UNKNOWN where it cannot be had. About 10 us. */
struct cuf_process_memory { uint64_t rss_bytes, cgroup_bytes, cgroup_max_bytes, rss_shared_bytes, cgroup_file_bytes; };
void cuf_process_memory(struct cuf_process_memory *memory);

#endif
