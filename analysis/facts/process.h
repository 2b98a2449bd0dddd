/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recorded process: identity, how it ended, what its recording holds, its memory over time.
 * Contract: as in facts.h.
 */
#pragma once

#include "analysis/facts/host.h"
#include "analysis/facts/live.h"
#include "analysis/facts/phase.h"
#include "analysis/replay/exit_reason.h"
#include "interpose/abi/format.h"

/* Memory at one time, as the recorder sampled it. */
struct fact_sample {
	uint64_t time_ns, seq;
	uint64_t rss_bytes, cgroup_bytes, host_live_bytes, pinned_bytes;
	uint64_t rss_shared_bytes; /* of rss_bytes: files and shared memory */
	uint64_t cgroup_shmem_bytes; /* of cgroup_bytes: shared memory; known near the limit */
	uint64_t thread_count; /* CUF_UNKNOWN: an older recorder */
	uint64_t device_live_bytes[CUF_DEVICES_MAX]; /* by the driver's ordinal */
	uint64_t device_free_bytes[CUF_DEVICES_MAX];
};

/*
 * Where the live blocks of the moment are in its recording. device_seq: by its own ordinal, the
 * last event that counts; 0: before the first, so it held nothing. It differs from moment_seq for
 * --at=peak, since each device has a peak of its own. host_*: as in struct heap_moment.
 */
struct fact_live_moment {
	uint64_t device_seq[CUF_DEVICES_MAX];
	uint64_t host_ns, host_events;
};

struct fact_process {
	uint32_t pid, ppid;
	uint32_t parent; /* index; FACT_NONE: not recorded */
	uint32_t exec_of; /* the recording this image replaced (same pid); FACT_NONE */
	const char *rank; /* as the launcher of a distributed run numbered it; NULL */
	uint32_t ended_by; /* the process whose failure ended it (inferred); FACT_NONE */
	uint64_t held_bytes; /* device memory at the run's first failure, else its peak;
			      * CUF_UNKNOWN: used none */
	uint64_t device_peak_bytes; /* the peaks of its devices, added up; CUF_UNKNOWN: used none */
	const char *path; /* the recording */
	const char *exe, *cmdline, *hostname;
	const char *model;     /* that its command line names (model_name.c); "" none */
	const char *framework; /* the first that its modules or its command line show; NULL */
	uint64_t start_ns; /* recorder started */
	/* end record, else the last thing recorded, as of a copy; running: now */
	uint64_t end_ns;
	/* it held its device memory until then: end_ns, or where no end is recorded the moment of
	 * the report, if it was there; CUF_UNKNOWN: it may run */
	uint64_t gone_ns;
	enum fact_end end;
	uint64_t end_status; /* exit status or signal number; CUF_UNKNOWN */
	enum fact_basis end_basis;
	const char *end_why; /* a clause: how an end without a record was inferred; "" */
	/* requested in its last second and not resident at the last sample; 0 with an end record */
	uint64_t untouched_bytes;
	uint64_t threads_most; /* at one time, as sampled; CUF_UNKNOWN: an older recorder */
	bool complete; /* false: the file is cut, see coverage */
	bool switched_off; /* the recorder stopped recording before the end */
	uint64_t driver_version; /* 13000 = 13.0; 0 before CUDA was seen */
	uint64_t first_cuda_ns;
	uint32_t host_mode; /* enum cuf_host_mode */
	uint64_t sample_mean_bytes;
	uint64_t stack_depth;
	uint64_t events_recorded; /* device and host events ever counted */
	uint64_t events_overwritten; /* of those, no longer in the rings */
	uint64_t events_lost; /* dropped: no table had room */
	struct fact_host host;
	const struct fact_module *modules;
	size_t module_count;
	const struct fact_function *functions; /* sorted by addr */
	size_t function_count;
	const struct fact_meta_text *texts; /* ENV, PHASE, NOTE, LIMITS ... by time */
	size_t text_count;
	const struct fact_sample *timeline; /* by time */
	size_t timeline_count;
	const struct fact_recent *recent; /* the host, and each device that was used */
	size_t recent_count; /* 0: an older recorder */
	uint64_t fatal_incident; /* id; 0 none */
	uint64_t moment_seq; /* of its last event at the moment of the report; CUF_UNKNOWN: all */
	/* by its own ordinal: index into facts.devices; FACT_NONE: it did not use it */
	uint32_t device_of[CUF_DEVICES_MAX];
	struct fact_live_moment live;
	/* by begin; of marked and NVTX phases the first and the longest are kept */
	const struct fact_phase *phases;
	size_t phase_count;
	uint64_t phases_seen; /* before the cut */
	uint64_t phases_left_out; /* dropped by the recorder: too fast, too deep */
	const struct fact_phase_group *phase_groups; /* of all seen, by total time, descending */
	size_t phase_group_count;
	struct fact_requests requests;
	const char *work_layer; /* where phases and requests are measured: "device", "framework" */
	const char *const *hook_names; /* by hook id; NULL unknown */
	size_t hook_name_count;
};

struct facts;
/* module_at and function_at (recording/fact_types.h) over the tables of a process. */
const struct fact_module *fact_module_at(const struct fact_process *process, uint64_t addr,
					 uint64_t time_ns);
const char *fact_function_at(const struct fact_process *process, uint64_t addr,
			     const struct fact_module *module);

/* The frames of a stack that has process and id; monotonic_ns: when it was recorded. */
void stack_fill(const struct facts *facts, struct fact_stack *stack, uint64_t monotonic_ns);
/* The name of a hook; NULL. */
const char *fact_hook_name(const struct fact_process *process, unsigned id);
/* Index into facts.devices; FACT_NONE: the process does not use it. */
uint32_t fact_device_of(const struct fact_process *process, unsigned ordinal);
/* The ordinal of a device in a process; CUF_DEVICE_NONE: the process does not use it. */
unsigned fact_ordinal_of(const struct fact_process *process, uint32_t device);

/* The last one up to a moment, else the first one; NULL: none. */
const struct fact_sample *fact_sample_at(const struct fact_process *process, uint64_t time_ns);
/* The moment at which blocks of a device count, by the driver's ordinal (CUF_DEVICE_NONE: of none):
 * the sequence number of the last event; 0: before the first. */
uint64_t fact_live_seq(const struct fact_process *process, unsigned ordinal);
/* The different ones of all devices. Returns how many. */
size_t fact_live_seqs(const struct fact_process *process, uint64_t seqs[CUF_DEVICES_MAX + 1]);

/*
 * Several processes as one run: which failed first, which ended because of it, and which holds
 * more than its peers. leader and outlier are FACT_NONE where there is none.
 */
struct fact_process_group {
	uint32_t leader; /* the process that failed first */
	uint64_t failed_count; /* processes with a fatal incident, the leader included */
	uint64_t ended_count; /* ended by the leader's failure: see fact_process.ended_by */
	uint64_t peer_count; /* processes that held device memory and run the same program */
	uint64_t median_bytes; /* of what the peers held */
	uint32_t outlier; /* the peer that held most, if it stands out */
};
