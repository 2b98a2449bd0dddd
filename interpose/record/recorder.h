/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's inner API: all that the hooks call (the malloc family's part is host.h). Contract: no function here allocates, blocks, takes a lock or
 * changes errno; none fails visibly (what cannot be held is counted in the header and reported). A call is safe from
 * any thread at any time after cuf_state_start(), also late in thread teardown; before, it does nothing.
 * Pointers are borrowed for the call. Times are taken inside. "bytes" are as requested by the program.
 */
#ifndef CUF_RECORDER_H
#define CUF_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/format.h"

struct cuf_thread_state;

/* One interposed driver call in flight; lives on the caller's stack between begin and end. */
struct cuf_call {
	struct cuf_thread_state *thread; /* NULL: not recorded (off, or nested in another recorded call): pass through */
	uintptr_t frame;                 /* frames at or below this address are ours or the runtime's: not in stacks */
	uint64_t began_ns;
	uint32_t stack;                  /* interned on first need; CUF_UNKNOWN32 before */
	uint16_t hook, label;
	int saved_errno;
};

/* True when the call is to be recorded. Nested driver calls (the driver calling its own exports, our own queries)
 * get false. End must follow in every case. frame: __builtin_frame_address(0) of the hook. */
bool cuf_call_begin(struct cuf_call *call, unsigned hook, void *frame);
void cuf_call_end(void);

/* Around a runtime-API function: driver calls inside carry its id, and stacks start at its caller. */
struct cuf_label { uint16_t before; uintptr_t frame_before; bool active; };
void cuf_label_begin(struct cuf_label *label, unsigned hook, void *frame);
void cuf_label_end(struct cuf_label *label);

/* A request for memory, as the program made it. */
struct cuf_request {
	uint64_t bytes;
	uint64_t aux;        /* of the block: pool, handle, offset; see enum cuf_kind */
	uint32_t context;    /* folded CUcontext, 0 unknown */
	uint8_t kind, device, flags;
	bool unsized;        /* a launch or a load: fails for want of memory without naming a size */
};

/* It succeeded: called after the real call. */
void cuf_block_alloc(struct cuf_call *call, const struct cuf_request *request, uint64_t addr);

/* A free, called before the real call. *block is the block taken out of the ledger; false: unknown address, recorded as
 * such. If the real call fails, hand the same block to cuf_block_restore. */
bool cuf_block_free(struct cuf_call *call, unsigned space, uint64_t addr, struct cuf_block *block);
void cuf_block_restore(struct cuf_call *call, const struct cuf_block *block);

/* Looks a live block up; false: unknown. */
bool cuf_block_find(unsigned space, uint64_t addr, struct cuf_block *block);

/* Adds to a block's reference and map counts (VMM handles, IPC mappings). When both reach zero the block dies: it is
 * logged as freed. Returns 1 died, 0 lives, -1 unknown. For a release or an unmap call it before the real call, for a
 * retain or a map after. *block is the block as it was before: when the real call is refused, hand a dead one to
 * cuf_block_restore, and undo a living one by the opposite counts. */
int cuf_block_add_refs(struct cuf_call *call, unsigned space, uint64_t addr, int references, int maps, struct cuf_block *block);
void cuf_block_flag(unsigned space, uint64_t addr, unsigned flags);

/* Frees every block born at or before seq that has all of flags, this device (CUF_DEVICE_NONE: any) and this context
 * (0: any). Called after a successful reset, with the seq of cuf_reset_begin. */
uint64_t cuf_reset_begin(struct cuf_call *call, unsigned device, uint32_t context);
void cuf_reset_apply(struct cuf_call *call, unsigned flags, unsigned device, uint32_t context, uint64_t seq);

/* A level that the driver keeps (graph pool, pool threshold, context): the pseudo-block of this space and address is
 * set to bytes and aux; 0 bytes removes it. Nothing is logged when nothing changed. */
void cuf_level_set(struct cuf_call *call, const struct cuf_request *request, uint64_t addr);

/* An event that changes no block. */
void cuf_event_note(struct cuf_call *call, unsigned op, const struct cuf_request *request, uint64_t addr, uint32_t extra);

/* What the driver said at a failure; unknown fields are CUF_UNKNOWN. */
struct cuf_driver_view {
	uint64_t free_bytes, total_bytes, probed_bytes;
	unsigned pool_count;
	struct cuf_pool_level pools[CUF_POOLS_MAX];
};

/* The request failed with result. Called after the real call. Returns the incident's number; 0: none. */
uint64_t cuf_request_failed(struct cuf_call *call, const struct cuf_request *request, uint32_t result, const struct cuf_driver_view *view);

/* Facts about a device, asked once by the hooks when it first allocates; later free memory whenever it was seen. */
bool cuf_device_known(unsigned device);
void cuf_device_describe(unsigned device, const uint8_t uuid[16], const char *name, const char *pci, uint64_t total_bytes, uint64_t granularity_bytes);
void cuf_device_free_seen(struct cuf_call *call, unsigned device, uint64_t free_bytes, uint64_t total_bytes);
/* True when this thread's recorded call may ask the driver for free memory again: at most once a second a device. */
bool cuf_device_free_due(unsigned device);
/* The last word before exit handlers: what the driver says now. */
void cuf_device_end(unsigned device, const struct cuf_driver_view *view);

/* The driver, at first contact. The recording is created on disk here when it was not yet. */
void cuf_driver_seen(uint64_t driver_version, unsigned gpa_identity);

/* Texts for coverage. type: enum cuf_meta_type; text need not be NUL-terminated. Duplicates are the caller's care. */
void cuf_meta_text(unsigned type, uint64_t number, const char *text, size_t bytes);
/* A whole record of another shape, of `bytes` bytes (4096 at most), its head filled in but for its length. */
void cuf_meta_record(const struct cuf_meta *record, size_t bytes);

/* The end. begin: before exit handlers run; once a process, the first call wins. status as in enum cuf_end_kind. */
void cuf_end_begin(unsigned end_kind, uint64_t status);
void cuf_end_undo(void); /* an exec failed: the process goes on */
void cuf_end_verdict(void); /* the short verdict of a fatal incident on stderr, and in the termination log when asked */

/* ---- process life: state.c ---- */

/* Called once from the library's constructor with the environment; again, by itself, in a forked child. */
void cuf_state_start(char **environ_at_start);
/* 0 off, 1 on. */
int cuf_state_is_on(void);
/* Our fault: off for the rest of this process, one line on stderr. reason is a constant sentence. */
void cuf_state_off(const char *reason);
/* The process that is recorded. A vfork child runs in its parent's memory with another process id. */
uint32_t cuf_state_pid(void);
/* After a successful dlclose: addresses may be reused by other code. */
void cuf_modules_changed(void);

#endif
