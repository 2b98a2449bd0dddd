/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the hooks of the driver's functions share: the frame of a call, where it happens, and what follows from its
 * result. Contract: CUF_CALL opens a recorded call and one of the *_done functions closes it and hands the driver's own
 * result back; all are harmless when the call is not recorded. The driver's outputs are read only after success and
 * never through NULL. Our own queries leave errno, the current context and the thread's capture mode as they were.
 */
#ifndef CUF_CUDA_H
#define CUF_CUDA_H

#include <errno.h>
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/driver.h"
#include "interpose/hooks/loader/real.h"

/* Declares `call`; returns from the hook when there is no such function in the process. */
#define CUF_CALL(name) \
	struct cuf_call call; \
	if (__builtin_expect(!cuf_real.name, 0) && !cuf_driver_has((void **)&cuf_real.name)) \
		return cuf_driver_refusal(); \
	cuf_call_begin(&call, CUF_HOOK_##name, __builtin_frame_address(0))

/* ---- cuda_call.c: what follows from a result ---- */

/* A request at this place: current context and its device. Call it after the real function: creating may switch. */
struct cuf_request cuf_request_here(struct cuf_call *call, unsigned kind, uint64_t bytes, unsigned flags);
/* A request whose device the program named; location_type: CU_MEM_LOCATION_TYPE_*. */
struct cuf_request cuf_request_at(struct cuf_call *call, unsigned kind, uint64_t bytes, int location_type, int location_id);

/* Closes an allocation: a block at addr, or an incident when memory ran out. addr is ignored after a failure. */
CUresult cuf_alloc_done(struct cuf_call *call, const struct cuf_request *request, CUresult result, uint64_t addr);
/* Its parts, for hooks that do more. */
void cuf_alloc_record(struct cuf_call *call, const struct cuf_request *request, CUresult result, uint64_t addr);

/* Opens a free before the real call. false: nothing was taken out of the ledger (address 0, unknown, not recorded). */
bool cuf_free_begin(struct cuf_call *call, unsigned space, uint64_t addr, struct cuf_block *block);
/* Closes it: a refused free is undone. block: what was taken, or NULL. */
CUresult cuf_free_done(struct cuf_call *call, const struct cuf_block *block, CUresult result);

/* A reference or mapping given up before the real call. */
struct cuf_release { unsigned space; uint64_t addr; int references, maps, outcome; struct cuf_block block; };
void cuf_release_begin(struct cuf_call *call, struct cuf_release *release, unsigned space, uint64_t addr, int references, int maps);
void cuf_release_undo(struct cuf_call *call, const struct cuf_release *release);

/* Changes of the ledger by all threads so far: equal twice, nobody allocated or freed in between. */
uint64_t cuf_changes_seen(void);

/* Only a failure for want of memory is of interest; opens and closes the call itself. */
CUresult cuf_watch_done(unsigned hook, CUresult result, void *frame);

/* 32 bits of a context's address: tells contexts apart in the ledger; 0 none. */
uint32_t cuf_context_fold(CUcontext context);

static inline CUresult cuf_done(struct cuf_call *call, CUresult result)
{
	cuf_call_end();
	return result;
}

/* ---- cuda_query.c: asking the driver ---- */

CUcontext cuf_context_current(void);         /* NULL none */
int cuf_device_current(void);                /* -1 none */
CUcontext cuf_context_primary(int device);   /* NULL: not active; creates none */
int cuf_device_total_count(void);            /* -1 unknown */
/* cuMemGetInfo of this device; false: it has no context that could be asked. */
bool cuf_memory_of(int device, uint64_t *free_bytes, uint64_t *total_bytes);
/* Facts about the device into the recording, once. */
void cuf_device_introduce(int device);
/* What the driver says of a device now. probe: also measure the largest block that can be had. */
void cuf_view_read(int device, bool probe, struct cuf_driver_view *view);
/* The last words of all devices, before exit handlers. */
void cuf_devices_end(unsigned hook, void *frame);
/* Base and size of the driver's own allocation around ptr; false: unknown to it. */
bool cuf_range_of(CUdeviceptr ptr, CUdeviceptr *base, size_t *bytes);
/* Stream captures open in this process, as far as hooks saw; > 0: our own queries are to be avoided. */
extern int cuf_captures_open;
static inline bool cuf_capturing_somewhere(void) { return __atomic_load_n(&cuf_captures_open, __ATOMIC_RELAXED) > 0; }

/* ---- cuda_pool.c ---- */

/* Levels of the pools known on a device, largest reserved first; returns their number, at most max. */
unsigned cuf_pools_read(int device, struct cuf_pool_level *levels, unsigned max);
/* A block was freed, by whatever function (false: its free was refused): if it came from a pool, the pool uses less. */
void cuf_pool_block_freed(const struct cuf_block *block, bool freed);
void cuf_pools_forget(void);

/* ---- cuda_graph.c ---- */

bool cuf_stream_captures(CUstream stream, bool per_thread);
/* An allocation that became a node of a graph: an event, no memory. */
void cuf_node_added(struct cuf_call *call, const struct cuf_request *request, uint64_t addr);
/* True when this process ever made memory nodes: frees of unknown addresses may be theirs. */
bool cuf_nodes_were_added(void);
/* The graph pools of all devices that have nodes, as the driver keeps them. */
void cuf_graph_levels(struct cuf_call *call);
void cuf_graphs_forget(void);

/* ---- cuda_bracket.c ---- */

/* A device was reset: what the driver had taken for itself is given back. */
void cuf_brackets_forget(int device);

/* ---- cuda_external.c ---- */

/* A mapped buffer or array of external memory is going: gives its hold on the memory object up. false: not one. */
bool cuf_external_buffer_free(struct cuf_call *call, uint64_t addr, struct cuf_block *buffer, struct cuf_release *object);

#endif
