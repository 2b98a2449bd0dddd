/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's view of a device at one moment: free memory and pools. Read at failures and at the
 * end of the process. Contract: as cuda_query.h. Unknown figures are CUF_UNKNOWN.
 */
#ifndef CUF_CUDA_VIEW_H
#define CUF_CUDA_VIEW_H

#include <stdbool.h>
#include "interpose/record/recorder.h"

/* device: -1 for none. probe: also measure the largest block that the driver would grant. */
void cuf_view_read(int device, bool probe, struct cuf_driver_view *view);

/* Records the last view of all devices, before exit handlers run. errno untouched. */
void cuf_devices_end(unsigned hook, void *frame);

#endif
