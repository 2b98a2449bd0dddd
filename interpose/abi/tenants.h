/* SPDX-License-Identifier: Apache-2.0 */
/*
 * META TENANTS: who holds a device, as NVML said once. Contract: as format.h, of which this is a part; what it means, and
 * whose process ids these are: FORMAT.md.
 */
#ifndef CUF_TENANTS_RECORD_H
#define CUF_TENANTS_RECORD_H

#include "interpose/abi/format.h"

/* One process on a device, as NVML has it. */
struct cuf_tenant {
	uint32_t pid;            /* in the pid namespace of NVML's choice: mostly the asker's, of some drivers the machine's */
	uint32_t flags;          /* CUF_TENANT_* */
	uint64_t used_bytes;     /* its context included; CUF_UNKNOWN: NVML cannot tell */
	char name[16];           /* /proc/PID/comm; "" not readable */
};
#define CUF_TENANT_COMPUTE 0x1u
#define CUF_TENANT_GRAPHICS 0x2u
#define CUF_TENANT_SEEN 0x4u  /* the asker's pid namespace has such a process */
#define CUF_TENANTS_MAX 120u

struct cuf_meta_tenants {
	struct cuf_meta meta;    /* number = incident that was the occasion; time_ns = of the reading */
	uint32_t device;         /* driver's index, in the process of this recording */
	uint32_t flags;          /* CUF_TENANTS_* */
	uint32_t failed, result; /* the function that refused (nvml.h's number) and its answer; 0: the list is whole */
	uint64_t total_bytes, used_bytes, free_bytes, reserved_bytes; /* the device as NVML has it; CUF_UNKNOWN */
	uint32_t process_count;  /* as NVML says; those beyond tenant_count found no room */
	uint32_t tenant_count;   /* struct cuf_tenant that follow */
};
#define CUF_TENANTS_BY_RUN 0x1u  /* read by `cuflight run`, not by the process itself */
#define CUF_TENANTS_AFTER 0x2u   /* read when the process had ended already */
#define CUF_TENANTS_LAYOUT 0x4u  /* records of an unknown length: not used */

_Static_assert(sizeof(struct cuf_tenant) == 32 && sizeof(struct cuf_meta_tenants) == 88, "packed by hand");

#endif
