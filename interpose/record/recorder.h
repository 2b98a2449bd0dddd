/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front door of the recorder: all that hooks call of it, and the only header of the recorder
 * that they include. The malloc family's fast path is inline (host_fast.h, included below), because
 * a call would cost more than it does.
 *
 * Contract of every function here: any thread, at any time, also before cuf_recorder_start (then
 * nothing happens) and late in thread teardown. None allocates, takes a lock, changes errno, or
 * fails visibly: what a table cannot hold is counted in the header and reported. Pointers are
 * borrowed for the call. Times are taken inside. Bytes are as the program requested them. frame:
 * __builtin_frame_address(0) of the hook, which is still running.
 *
 * The types that a caller fills in are in incident/request.h; the enums are those of the recording
 * (abi/format.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/format.h"
#include "interpose/incident/request.h"
#include "interpose/process/bus_guard.h"
#include "interpose/record/host_fast.h"
#include "interpose/record/python_objects.h"
#include "interpose/record/readings.h"

/* ---- driver calls ---- */

/* One interposed driver call. It is on the hook's stack from begin to end. */
struct cuf_call {
	struct cuf_thread_state *thread; /* NULL: this call is not recorded; pass it through */
	/* frames at or below it are ours or the runtime's: not in stacks */
	uintptr_t frame;
	uint32_t stack;                  /* interned at first need; CUF_UNKNOWN32 before */
	uint16_t hook, label;
	int saved_errno;
};

/*
 * True when the call is to be recorded; not when it is nested (the driver calls its own exports,
 * the recorder queries the driver). cuf_call_end must follow in every case.
 */
bool cuf_call_begin(struct cuf_call *call, unsigned hook, void *frame);
void cuf_call_end(void);

/* The real call succeeded: there is a block at addr now. */
void cuf_block_alloc(struct cuf_call *call, const struct cuf_request *request, uint64_t addr);

/*
 * Before the real free. *block is the block that was removed from the ledger; false: unknown
 * address, recorded as such.
 */
bool cuf_block_free(struct cuf_call *call, unsigned space, uint64_t addr, struct cuf_block *block);
/*
 * The real free was refused: the block of cuf_block_free, or the one that cuf_block_add_refs ended,
 * is live again.
 */
void cuf_block_restore(struct cuf_call *call, const struct cuf_block *block);

/*
 * Looks a live block up, and sets these flags in it (CUF_EVENT_*; 0 none). block may be NULL.
 * False: unknown.
 */
bool cuf_block_find(unsigned space, uint64_t addr, unsigned set_flags, struct cuf_block *block);

/*
 * Adds to a block's reference and map counts (VMM handles, IPC mappings); at zero of both it is
 * logged as freed. Before the real call for a release, after it for a retain. Returns 1 ended, 0
 * live, -1 unknown; *block as it was before, for an undo by cuf_block_restore (ended) or by the
 * opposite counts (live).
 */
int cuf_block_add_refs(struct cuf_call *call, unsigned space, uint64_t addr, int references,
		       int maps,
		       struct cuf_block *block);

/*
 * A level that the driver keeps (graph pool, pool threshold, context): the pseudo-block of this
 * space and address is set to bytes and aux; 0 bytes removes it. Nothing is logged when nothing
 * changed.
 */
void cuf_level_set(struct cuf_call *call, const struct cuf_request *request, uint64_t addr);

/* An event that changes no block. Returns its sequence number; 0: not recorded. */
uint64_t cuf_event_note(struct cuf_call *call, unsigned op, const struct cuf_request *request,
			uint64_t addr,
			uint32_t extra);

/*
 * A reset succeeded: frees each block allocated at or before seq (of its CUF_OP_RESET event) that
 * has all of scope->flags, its device (CUF_DEVICE_NONE: any) and its context (0: any).
 */
void cuf_reset_apply(struct cuf_call *call, const struct cuf_request *scope, uint64_t seq);

/* The real call failed with result. Returns the incident's number; 0: none. */
uint64_t cuf_request_failed(struct cuf_call *call, const struct cuf_request *request,
			    uint32_t result,
			    const struct cuf_driver_view *view);

/* ---- the driver and its devices ---- */

/*
 * At first contact with the driver; the recording becomes a file here. gpa_identity: as in struct
 * cuf_header.
 */
void cuf_driver_seen(uint64_t driver_version, unsigned gpa_identity);

struct cuf_device_facts {
	const uint8_t *uuid;   /* 16 bytes */
	const char *name, *pci;
	uint64_t total_bytes, granularity_bytes;
};

/*
 * A device that was described in this recording, with its totals and what was last known of its
 * free memory; else NULL.
 */
const struct cuf_device *cuf_device_find(unsigned device);
/* Once for each device: later calls do nothing. */
void cuf_device_describe(unsigned device, const struct cuf_device_facts *facts);
/*
 * What the driver reports of a device now, with an event. call NULL: without one; then pools are
 * kept, too.
 */
void cuf_device_seen(struct cuf_call *call, unsigned device, const struct cuf_driver_view *view);

/* ---- host memory: the rest of it is in host_fast.h ---- */

/* The real call refused (a realloc that failed): the block is live again. */
void cuf_host_restore(const struct cuf_host_undo *undo);
/*
 * The real function failed: an incident where it ran out of memory (error is ENOMEM), or where a
 * thread was refused (EAGAIN) because there is no room for its stack of so many bytes (0: not set).
 * hook: which function. false: not recorded, because it is nested, or too soon after another one,
 * or malloc is not recorded.
 */
bool cuf_host_refused(size_t bytes, unsigned hook, int error, void *frame);
/*
 * Sampled mode: another mean, from each thread's next sample on. -1: another mode, beyond the
 * bounds of the option, or changed too often (16 times).
 */
int cuf_host_set_sample(uint64_t mean_bytes);

/* ---- blocks of framework allocators ---- */

enum cuf_report_type {
	CUF_REPORT_BLOCK,  /* bytes > 0: allocated, < 0: freed */
	CUF_REPORT_FAILED, /* the framework gave up on a request of `bytes` */
	CUF_REPORT_HOST,   /* host memory: its blocks are malloc's, so only the sum is kept */
	CUF_REPORT_BLIND   /* a block without its address (PyTorch before 1.10) */
};

struct cuf_report {
	uint64_t addr;                            /* on the device */
	int64_t bytes;
	/* of the framework on this device, after the event */
	uint64_t allocated_bytes, reserved_bytes;
	uint8_t device;                           /* CUF_DEVICE_NONE: not stated */
	uint16_t hook;
	enum cuf_report_type type;
};

/* The caller may hold the framework's allocator lock: nothing here waits or queries the driver. */
void cuf_framework_report(const struct cuf_report *report, const void *frame);

/*
 * What the block that starts at addr is for, whether device, pinned or malloc's memory (of `bytes`
 * then). role: CUF_ROLE_NONE means the thread's role of now.
 */
void cuf_role_assign(uint64_t addr, uint64_t bytes, unsigned role, unsigned hook,
		     const void *frame);

/* ---- phases, requests and marks of the program ---- */

/*
 * op MARK, PUSH, START or REQUEST_BEGIN (enum cuf_phase_op). id: of START and REQUEST_BEGIN; 0: one
 * is made. Returns the depth for PUSH (-1: not recorded), else the id (0: not recorded). A phase of
 * cuflight.h makes the recording a file.
 */
int64_t cuf_phase_begin(enum cuf_phase_op op, enum cuf_phase_source source,
			const struct cuf_phase_text *name, uint64_t id);
/*
 * op POP (id: which of the thread's stacks), END or REQUEST_END. Returns the depth of what POP
 * ended, -1: none; else 0.
 */
int cuf_phase_end(enum cuf_phase_op op, enum cuf_phase_source source, uint64_t id);

/* ---- coverage ---- */

/*
 * Text for META (enum cuf_meta_type), not NUL-terminated; the caller avoids duplicates.
 * CUF_META_GPU_PROCESSES: the bytes are the record behind its head.
 */
void cuf_note(unsigned type, uint64_t number, const void *text, size_t bytes);
/* Something did not fit a table of the caller. */
void cuf_note_dropped(enum cuf_loss table);

/* ---- process life ---- */

/*
 * Once, from the library's constructor: settings, the recording, and leave to skip malloc events.
 */
void cuf_recorder_start(char **environment);

/* With less room a process that ends does nothing for us that takes memory. */
#define CUF_END_ROOM_BYTES (4ull << 20)

/* What the recorder does now. Costs a few loads. */
struct cuf_recorder_status {
	bool is_on;                 /* recording, or about to again */
	bool is_on_disk;            /* the recording is a file */
	uintptr_t start;            /* the recording in memory; 0 none */
	size_t bytes;
	uint64_t framework_events;  /* reports of device blocks so far */
	uint64_t room_bytes;        /* until the control group is full, at the last sample */
};
struct cuf_recorder_status cuf_recorder_status(void);

/*
 * True when the current recording is of this very process: not in a vfork child, which runs in its
 * parent's memory. begin: a forked child's own recording is begun first if it was not yet, and a
 * hand-over is waited for.
 */
bool cuf_process_is_recorded(bool begin);

/*
 * The process is about to end (enum cuf_end_kind) or to call exec; before exit handlers. The first
 * call wins. After a fatal incident the verdict goes to stderr. CUF_END_NONE takes the mark back:
 * an exec failed.
 */
void cuf_process_end(unsigned end_kind, uint64_t status);

/*
 * Calls unload(handle), the real dlclose, while nothing of the recorder looks at objects that may
 * go.
 */
int cuf_unload(int (*unload)(void *), void *handle);

/* True when a signal handler is on this thread's stack, or when that cannot be known. */
bool cuf_signal_on_stack(void *frame);
