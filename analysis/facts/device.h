/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One device of the run at its moment. Contract: as in facts.h.
 */
#pragma once

#include "analysis/measure/owners.h"
#include "analysis/facts/moment.h"

/* One process's use of a device. */
struct device_member {
	uint32_t process, ordinal;
};

struct fact_device {
	struct device_member *members; /* by process, then by ordinal; at least one */
	size_t member_count;
	uint32_t ordinal; /* the driver's index in the focus process */
	uint8_t uuid[16];
	const char *name, *pci;
	uint64_t total_bytes;
	uint64_t free_bytes; /* at the moment: as the driver reported at free_ns, less what was */
			     /* allocated since */
	uint64_t free_ns; /* CUF_UNKNOWN */
	/* the most in live blocks, of all processes together; whose event brought it there. Where
	 * events are overwritten, the recorder's samples tell it: an estimate */
	uint64_t peak_bytes, peak_ns;
	uint32_t peak_process;
	enum fact_basis peak_basis;
	uint64_t granularity_bytes;
	uint64_t alloc_count, free_count, fail_count;
	struct fact_moment moment;
	uint32_t focus; /* its rows are itemised; others are OWNER_OTHER_PROCESSES */
	struct fact_owner_row *owners; /* rows with in_sum add up to total_bytes, if known */
	size_t owner_count;
	struct fact_layer largest_free[LAYER_MAX];
	struct fact_fragmentation fragmentation;
};
