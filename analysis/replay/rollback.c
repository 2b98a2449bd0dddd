/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A large request can be made of chunks: with expandable segments PyTorch calls cuMemCreate for 20
 * MiB as often as needed. When one fails, those before it are freed at once. They never were the
 * program's, so its usage is measured after that, and the request was for at least their sum.
 */
#include <stdlib.h>
#include "analysis/replay/incidents.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

#define ROLLBACK_NS 1000000000ull
enum { CHUNKS_MAX = 1 << 16 };

static bool is_chunk(const struct cuf_event *event, const struct cuf_incident *failed)
{
	return event->kind == CUF_KIND_VMM && event->device == failed->device &&
	       event->bytes == failed->requested_bytes;
}

/* The handles that the thread created directly before the failure, one after another. */
static size_t chunks_before(const struct events *events, const struct cuf_incident *failed,
			    uint64_t **handles)
{
	size_t count = 0, room = 0;
	*handles = NULL;
	for (size_t i = events_after(events, failed->seq); i-- && count < CHUNKS_MAX;) {
		struct cuf_event event = events_get(events, i);
		if (event.tid != failed->tid || event.seq == failed->seq ||
		    event.kind == CUF_KIND_MAPPING || event.op == CUF_OP_REFERENCE ||
		    event.op == CUF_OP_FREE_MEMORY)
			continue;
		if (event.op != CUF_OP_ALLOC || !is_chunk(&event, failed))
			break;
		xalloc_grow(handles, count, &room, sizeof **handles);
		(*handles)[count++] = event.addr;
	}
	if (count)
		qsort(*handles, count, sizeof **handles, compare_uint64);
	return count;
}

void rollback_find(struct ladder *ladder, const struct events *events)
{
	const struct cuf_incident *last = &ladder->tries[ladder->try_count - 1];
	uint64_t *handles;
	size_t count;
	ladder->settled_seq = last->seq;
	if (last->kind != CUF_KIND_VMM || !last->is_request)
		return;
	count = chunks_before(events, last, &handles);
	for (size_t i = events_after(events, last->seq); count && i < events->count; i++) {
		struct cuf_event event = events_get(events, i);
		if (event.time_ns > last->time_ns + ROLLBACK_NS ||
		    (event.tid == last->tid && event.op == CUF_OP_ALLOC))
			break;
		if (event.tid != last->tid || event.op != CUF_OP_FREE ||
		    !is_chunk(&event, last) ||
		    !bsearch(&event.addr, handles, count, sizeof event.addr, compare_uint64))
			continue;
		ladder->settled_seq = event.seq;
		ladder->rolled_back_bytes += event.bytes;
	}
	free(handles);
}
