/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the recording of a process that is gone as small as what it holds. A recorder reserves the
 * whole file at the start; a short run uses little of it.
 *
 * Contract: *bytes, which may be NULL, is the space on disk that was saved. only_try: the file
 * stays as it is, and the result is what would have happened. Returns
 * RECORDING_TRIMMED;
 * RECORDING_KEPT when nothing worth a copy would be saved;
 * RECORDING_IN_USE when somebody may still write to the file, or the file system cannot tell;
 * -1 when it is no recording, is cut or damaged (EINVAL), or cannot be written (see errno).
 * Unless the result is RECORDING_TRIMMED the file is as it was. A trimmed recording is a new file
 * under the old name, with the old owner, mode and times, and reads the same.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum recording_trim { RECORDING_TRIMMED, RECORDING_KEPT, RECORDING_IN_USE };

int recording_trim(const char *path, bool only_try, uint64_t *bytes);
