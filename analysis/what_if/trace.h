/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of one process for the memory of one device, in the order in which they were made,
 * without what an allocator made of them. They can be played again under another allocator.
 *
 * A framework's segments are no requests: they follow from its blocks. All other memory that the
 * process took from the driver is. Blocks that were live before the first known event come first,
 * as if they were requested then, oldest first.
 *
 * Contract: heap memory, freed by trace_free; texts are in the arena of the run. Sizes are bytes,
 * times CLOCK_MONOTONIC ns. A step's `block` numbers its block, from 0; a FREE has that of its
 * ALLOC, which comes before it, and each block is freed at most once. Whoever makes a trace of
 * another one (trace_copy) keeps this so.
 */
#pragma once

#include "analysis/base/xalloc.h"
#include "analysis/replay/run.h"

enum trace_op {
	TRACE_ALLOC = 1,
	TRACE_FREE,
	TRACE_EMPTY, /* the program emptied the framework's cache itself */
	TRACE_REFUSED /* the request that failed; the last step */
};

#define TRACE_OLD 1u     /* live before the first known event */
#define TRACE_PRIVATE 2u /* requested while a stream captured: in a private pool of graphs */
#define TRACE_GGML_VMM 4u    /* requested by ggml's pool of virtual memory */
#define TRACE_GGML_LEGACY 8u /* requested by ggml's pool of cudaMalloc() */

struct trace_step {
	uint64_t bytes;   /* of the request, as far as it is known; FREE: of its block */
	uint64_t time_ns;
	uint64_t seq;
	uint32_t block;
	uint32_t stack;   /* of the request; 0: unknown */
	uint32_t tid;
	uint16_t group;   /* FRAMEWORK: blocks of different groups were never put in each other's */
			  /* memory: other streams, private pools. From 0 */
	uint8_t op;       /* enum trace_op */
	uint8_t kind;     /* enum cuf_kind: FRAMEWORK, DEVICE, ASYNC, VMM, ARRAY, GRAPH, CONTEXT */
	uint8_t role;     /* enum cuf_role */
	uint8_t flags;    /* TRACE_OLD ... */
};

struct trace {
	struct trace_step *steps;
	size_t count, room;
	uint32_t block_count;
	size_t old_count;        /* of the first steps: blocks whose request was not seen */
	unsigned device;         /* the driver's ordinal in that process */
	unsigned group_count;    /* of framework blocks */
	uint64_t kind_count[16]; /* ALLOC steps by enum cuf_kind */
	/* What the process could have had of the device at the refusal (or at the end): what was
	 * free, and what it had. The context and other processes are not in it. CUF_UNKNOWN. */
	uint64_t capacity_bytes;
	uint64_t total_bytes;       /* of the device; CUF_UNKNOWN */
	/* Of it, what other processes had at the least; CUF_UNKNOWN. */
	uint64_t others_bytes;
	uint64_t granularity_bytes; /* of the driver's pages */
	/* What the framework allowed itself; CUF_UNKNOWN: the device. A lower bound: the most that
	 * it had. */
	uint64_t limit_bytes;
	const char *framework; /* "PyTorch"; "" */
	const char *version;   /* "2.8.0"; "" */
	const char *backend;   /* native, expandable, pluggable, cudaMallocAsync; "" */
	const char *settings;  /* of PYTORCH_CUDA_ALLOC_CONF as recorded; "" */
	uint64_t refused_seq;  /* CUF_UNKNOWN: no request failed */
};

/* What to read: the requests up to one failed request. */
struct trace_options {
	unsigned device;       /* the driver's ordinal */
	uint64_t refused_seq;  /* of the FAIL event's incident (fact_incident.seq); CUF_UNKNOWN */
	uint64_t settled_seq;  /* the moment of free_bytes (its settled_seq); CUF_UNKNOWN */
	uint64_t free_bytes;   /* of the device at that moment; CUF_UNKNOWN */
	uint64_t total_bytes;
	size_t steps_max;      /* older ones are left out, as if overwritten; 0: all */
};

/* The seq after which a trace begins; 0: with the first event. */
uint64_t trace_since(const struct events *events, size_t steps_max);
/* A sweep makes it: trace_begin, a sweep with the consumer, trace_end, which is never NULL; without
 * requests its count is 0. free_bytes and total_bytes may become known before trace_end. */
struct trace_walk;
struct trace_walk *trace_begin(struct run_process *process, const struct trace_options *options,
			       struct sweep_consumer *consumer);
struct trace *trace_end(struct trace_walk *walk, const struct trace_options *options,
			struct arena *arena);
/* A copy whose steps may be changed. */
struct trace *trace_copy(const struct trace *trace);
void trace_free(struct trace *trace); /* NULL is fine */

/* The request that failed; NULL: none did. */
static inline const struct trace_step *trace_refused(const struct trace *trace)
{
	if (trace->count && trace->steps[trace->count - 1].op == TRACE_REFUSED)
		return &trace->steps[trace->count - 1];
	return NULL;
}
