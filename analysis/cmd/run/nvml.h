/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads NVML through ask.h: a driver that hangs or crashes cannot affect the caller, and a query
 * takes at most two seconds.
 */
#pragma once

#include <stdbool.h>
#include "interpose/abi/nvml.h"

/*
 * False: there is no NVML here. Refused calls, and no answer in time, are noted in the reading.
 * Times are CLOCK_MONOTONIC.
 */
bool nvml_query(const struct cuf_device *device, struct cuf_gpu_reading *reading);
