/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the hooks of driver functions share: how a recorded call opens, and what follows from its
 * result. One file holds one family of driver functions.
 *
 * Contract: CUF_CALL opens a call. Exactly one *_done function closes it and returns the driver's
 * result unchanged. All are harmless for a call that is not recorded. Outputs of the driver are
 * read only after success, and never through NULL. errno is left as the driver set it.
 */
#pragma once

#include <errno.h>
#include "interpose/record/recorder.h"
#include "interpose/hooks/cuda/cuda_query.h"
#include "interpose/hooks/loader/driver.h"
#include "interpose/hooks/loader/real.h"

/* Declares `call`. Returns from the hook when the process has no such driver function. */
#define CUF_CALL(name) \
	struct cuf_call call; \
	if (__builtin_expect(!cuf_real.name, 0) && !cuf_driver_has((void **)&cuf_real.name)) \
		return cuf_driver_refusal(); \
	cuf_call_begin(&call, CUF_HOOK_##name, __builtin_frame_address(0))

/* ---- outputs of the driver: 0 when the call failed or the program passed NULL ---- */

static inline uint64_t cuf_output(CUresult result, const CUdeviceptr *out)
{
	if (result != CUDA_SUCCESS || !out)
		return 0;
	return *out;
}

/* For functions that return a pointer or an opaque handle. out: the address of that pointer. */
static inline uint64_t cuf_output_pointer(CUresult result, const void *out)
{
	if (result != CUDA_SUCCESS || !out)
		return 0;
	return (uint64_t)(uintptr_t)*(void *const *)out;
}

/* For the 32-bit interface of CUDA 2 and 3. */
static inline uint64_t cuf_output_v1(CUresult result, const CUdeviceptr_v1 *out)
{
	if (result != CUDA_SUCCESS || !out)
		return 0;
	return *out;
}

/* ---- cuda_call.c: what follows from a result ---- */

/* A request in the current context, on its device. Call it after the real function: that may have
 * created the context. */
struct cuf_request cuf_request_here(struct cuf_call *call, unsigned kind, uint64_t bytes,
				    unsigned flags);

/* A request whose location the program named. location_type: CU_MEM_LOCATION_TYPE_*. */
struct cuf_request cuf_request_at(struct cuf_call *call, unsigned kind, uint64_t bytes,
				  int location_type, int location_id);

/* Closes an allocation: a block at addr, or an incident when memory ran out. addr is ignored after
 * a failure. */
CUresult cuf_alloc_done(struct cuf_call *call, const struct cuf_request *request, CUresult result,
			uint64_t addr);
/* The same without closing the call. */
void cuf_alloc_record(struct cuf_call *call, const struct cuf_request *request, CUresult result,
		      uint64_t addr);

/* Records a failure for lack of memory of a call that names no size: a launch, a load. Does not
 * close the call. */
void cuf_unsized_failure(struct cuf_call *call, unsigned kind, CUresult result);

/* Opens a free before the real call. Returns false when no block was removed from the ledger:
 * address 0, unknown, or not recorded. */
bool cuf_free_begin(struct cuf_call *call, unsigned space, uint64_t addr, struct cuf_block *block);
/* Closes it. freed: what cuf_free_begin returned; a free that the driver refused is undone. */
CUresult cuf_free_done(struct cuf_call *call, bool freed, const struct cuf_block *block,
		       CUresult result);

/* References or mappings given up before the real call. */
struct cuf_release {
	unsigned space;
	uint64_t addr;
	int references, maps;
	int outcome;             /* of cuf_block_add_refs; -1: nothing was changed */
	struct cuf_block block;  /* as it was before */
};
void cuf_release_begin(struct cuf_call *call, struct cuf_release *release, unsigned space,
		       uint64_t addr, int references, int maps);
void cuf_release_undo(struct cuf_call *call, const struct cuf_release *release);

/* How many blocks came or went in all threads. Equal at two moments: none in between. */
uint64_t cuf_changes_seen(void);

/* For calls of which only a failure for lack of memory matters. Opens and closes the call. */
CUresult cuf_watch_done(unsigned hook, CUresult result, void *frame);

/* 32 bits of a context's address, to tell contexts apart in the ledger. 0: no context. */
uint32_t cuf_context_fold(CUcontext context);

static inline CUresult cuf_done(struct cuf_call *call, CUresult result)
{
	(void)call;
	cuf_call_end();
	return result;
}

/* ---- cuda_graph.c ---- */

bool cuf_stream_captures(CUstream stream, bool per_thread);
/* An allocation that became a node of a graph: an event, but no memory yet. */
void cuf_node_added(struct cuf_call *call, const struct cuf_request *request, uint64_t addr);
/* True when this process ever made memory nodes: frees of unknown addresses may be theirs. */
bool cuf_nodes_were_added(void);
/* Records the sizes of the graph pools of all devices that have nodes. */
void cuf_graph_levels(struct cuf_call *call);

/* ---- cuda_usage_delta.c ---- */

/* A device was reset, so the driver released what it had allocated for itself. */
void cuf_usage_deltas_forget(int device);

/* ---- cuda_external.c ---- */

/* Another holder got a handle of the driver's whole allocation around ptr. */
void cuf_block_exported(CUdeviceptr ptr);

/* A mapped buffer of external memory is about to be freed: gives up its reference to the memory
 * object. Returns false when addr is no such buffer. */
bool cuf_external_buffer_free(struct cuf_call *call, uint64_t addr, struct cuf_block *buffer,
			      struct cuf_release *object);
