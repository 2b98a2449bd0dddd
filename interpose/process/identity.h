/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process this is: names for the file, and facts for META and the header. Contract: raw
 * system calls, no descriptor kept, no allocation; without /proc everything is simply unknown.
 * Secrets are redacted (redact.h).
 */
#pragma once

/*
 * Reads host and executable name, start time and boot id; again in a forked child. The recording is
 * open.
 */
void cuf_process_read(void);

/* "unknown" at worst; only characters that are safe in a file's name. */
const char *cuf_process_host(void);
const char *cuf_process_name(void); /* base name of the executable */

/* Writes executable, command line, environment (an allow-list), cgroup and limits into META. */
void cuf_process_describe(char **environment);
