/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changed in the live memory of one process, event by event and by group: the driver's and a
 * framework's blocks in the order of sequence numbers, or host blocks in the order of time.
 *
 * Contract: changes_begin borrows the process; changes_end frees the rest. A block of a sampled
 * recording stands for more than itself (recording/host_weight.h). One thread.
 */
#pragma once

#include "analysis/gate/measures.h"
#include "analysis/recording/events.h"
#include "analysis/replay/run.h"

enum changes_of { CHANGES_DEVICE, CHANGES_HOST };

struct change {
	uint64_t at;     /* seq of a device event; CLOCK_MONOTONIC ns of a host event */
	unsigned groups; /* bit n: enum gate_group n */
	int64_t bytes, blocks; /* negative: freed */
	uint32_t stack;  /* that allocated the block */
};

struct changes {
	const struct run_process *process;
	enum changes_of of;
	struct event_merge merge;
	struct host_stream *stream;
	bool *is_python;    /* by stack id; host only */
	size_t stack_count;
};

void changes_begin(struct changes *changes, const struct run_process *process, enum changes_of of);
bool changes_next(struct changes *changes, struct change *change);
void changes_end(struct changes *changes);

/* Which stacks have a frame of Python, by id; heap memory. */
bool *python_stacks(const struct reader *reader, size_t *count);
