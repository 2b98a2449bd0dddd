/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several processes as one run: which failed first, which ended because of it, and which holds
 * more than its peers. Contract: as in facts.h; leader and outlier are FACT_NONE where there is
 * none.
 */
#ifndef ANALYSIS_FACTS_PROCESS_GROUP_H
#define ANALYSIS_FACTS_PROCESS_GROUP_H

#include <stdint.h>

struct fact_process_group {
	uint32_t leader; /* the process that failed first */
	uint64_t failed_count; /* processes with a fatal incident, the leader included */
	uint64_t ended_count; /* ended by the leader's failure: see fact_process.ended_by */
	uint64_t peer_count; /* processes that held device memory and run the same program */
	uint64_t median_bytes; /* of what the peers held */
	uint32_t outlier; /* the peer that held most, if it stands out */
};

#endif
