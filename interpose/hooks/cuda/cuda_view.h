/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's view of a device at one moment: free memory and pools. Read at failures and after
 * calls in which the program allocated or freed: never at the end of the process, where the driver
 * may not answer. Contract: as cuda_query.h. Unknown figures are CUF_UNKNOWN.
 */
#pragma once

#include <stdbool.h>
#include "interpose/record/recorder.h"

/* device: -1 for none. probe: also measure the largest block that the driver would grant. */
void cuf_view_read(int device, bool probe, struct cuf_driver_view *view);

/* After a call of the program that the driver has answered: keeps what the driver reports now, so
 * that it need not be queried at the end. Paced. errno may change. */
void cuf_free_memory_refresh(struct cuf_call *call, unsigned device);
