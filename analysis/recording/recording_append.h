/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One more META record for a recording whose process is gone: what its parent saw of it. Contract: the caller knows that
 * nobody writes to it any more. 0; 1 when the recording has an end record of its own and is left alone; -1 when it cannot be
 * written or is no recording (errno says why).
 */
#ifndef ANALYSIS_RECORDING_RECORDING_APPEND_H
#define ANALYSIS_RECORDING_RECORDING_APPEND_H

#include "interpose/abi/format.h"

/* How it ended: key=value lines, only where the recording does not say so itself. */
int recording_append_wait(const char *path, const char *text);
/* A whole record, ended or not; record->bytes is its length, a multiple of 8. */
int recording_append_record(const char *path, const struct cuf_meta *record);

#endif
