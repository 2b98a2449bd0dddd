/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording's name, made of CUFLIGHT_OUTPUT, and its creation. Contract: a new file or none: nothing is overwritten,
 * no link is followed, mode 0600; directories on the way are made. Raw system calls, no allocation.
 */
#ifndef CUF_RECORDING_FILE_H
#define CUF_RECORDING_FILE_H

/* Returns a descriptor, or -errno. *path is the name that was tried last, "" when none could be made. */
int cuf_recording_file_create(char **environment, char *path, unsigned path_bytes);

#endif
