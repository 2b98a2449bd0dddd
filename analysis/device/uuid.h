/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GPU's UUID as nvidia-smi and DCGM write it: "GPU-" and five groups of digits. Contract: pure;
 * NULL: all bytes are zero, so the driver was not asked.
 */
#ifndef ANALYSIS_DEVICE_UUID_H
#define ANALYSIS_DEVICE_UUID_H

#include <stdint.h>

enum { UUID_TEXT = 48 };
const char *uuid_text(const uint8_t uuid[16], char out[UUID_TEXT]);

#endif
