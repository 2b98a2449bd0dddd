/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams of events as one kind of change. */
#include "analysis/gate/changes.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/recording/host_weight.h"
#include "analysis/replay/replay.h"

/* ---- driver and framework ---- */

static int sign_of(unsigned op)
{
	switch (op) {
	case CUF_OP_ALLOC:
	case CUF_OP_RESTORE: return 1;
	case CUF_OP_FREE: return -1;
	default: return 0;
	}
}

static bool next_device(struct changes *changes, struct change *change)
{
	struct cuf_event event;

	while (event_merge_next(&changes->merge, &event)) {
		enum live_group group = live_group_of(event.kind, event.flags);
		int sign = sign_of(event.op);
		if (!sign || group == LIVE_GROUPS || event.bytes > BYTES_SANE)
			continue;
		*change = (struct change){ .at = event.seq,
					   .groups = 1u << group,
					   .bytes = sign * (int64_t)event.bytes,
					   .blocks = sign,
					   .stack = event.op == CUF_OP_ALLOC ? event.stack
									     : event.alloc_stack };
		return true;
	}
	return false;
}

/* ---- host ---- */

static bool has_python(const struct reader *reader, uint32_t id)
{
	uint32_t depth;
	uint8_t stop;
	const uint64_t *addrs = reader_stack(reader, id, &depth, &stop);

	for (uint32_t i = 0; i < depth; i++)
		if (cuf_frame_is_python(addrs[i]))
			return true;
	return false;
}

bool *python_stacks(const struct reader *reader, size_t *count)
{
	bool *is_python;

	*count = reader_count(reader, CUF_SEC_STACK_INDEX) + 1;
	is_python = xalloc_zeroed(*count, sizeof *is_python);
	for (uint32_t i = 1; i < *count; i++)
		is_python[i] = has_python(reader, i);
	return is_python;
}

static bool next_host(struct changes *changes, struct change *change)
{
	struct host_event event;

	while (host_stream_next(changes->stream, &event)) {
		uint64_t mean = event.sample_mean_bytes;
		int sign = host_event_sign(event.op);
		if (!sign || !event.bytes || event.bytes > BYTES_SANE)
			continue;
		*change = (struct change){
			.at = event.time_ns,
			.groups = 1u << GROUP_HOST,
			.bytes = sign * (int64_t)host_weight_bytes(event.bytes, mean),
			.blocks = sign * (int64_t)host_weight_count(event.bytes, mean),
			.stack = event.stack,
		};
		if (event.stack < changes->stack_count && changes->is_python[event.stack])
			change->groups |= 1u << GROUP_PYTHON;
		return true;
	}
	return false;
}

void changes_begin(struct changes *changes, const struct run_process *process, enum changes_of of)
{
	*changes = (struct changes){ .process = process, .of = of };
	if (of == CHANGES_DEVICE) {
		event_merge_begin(&changes->merge, process->events, 0);
		return;
	}
	changes->stream = host_stream_new(process->reader);
	changes->is_python = python_stacks(process->reader, &changes->stack_count);
}

bool changes_next(struct changes *changes, struct change *change)
{
	if (changes->of == CHANGES_DEVICE)
		return next_device(changes, change);
	return next_host(changes, change);
}

void changes_end(struct changes *changes)
{
	host_stream_free(changes->stream);
	free(changes->is_python);
}
