/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends one META record to the recording of a process that is gone: what its parent saw.
 *
 * Contract: the caller guarantees that nobody writes to the recording any more. Returns 0; 1 when
 * the recording has an end record of its own and stays unchanged; -1 when it cannot be written or
 * is no recording (see errno).
 */
#pragma once

#include "interpose/abi/format.h"

/* How the process ended, as key=value lines; only if the recording has no end record. */
int recording_append_wait(const char *path, const char *text);
/* A whole record, whether there is an end record or not. record->bytes is its length, a multiple of
 * 8. */
int recording_append_record(const char *path, const struct cuf_meta *record);
