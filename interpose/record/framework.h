/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks inside device blocks, as a framework's own allocator reports them, and what blocks are for. They go to a ring
 * of their own and to the ledger (space FRAMEWORK), and never into a device's live memory: their bytes are in the
 * segment that the driver gave.
 *
 * Contract: as recorder.h. The reports are made under the framework's allocator lock, so nothing here waits, allocates
 * or asks the driver. frame: __builtin_frame_address(0) of the hook, which is still running.
 */
#ifndef CUF_FRAMEWORK_H
#define CUF_FRAMEWORK_H

#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"

/* Blocks below CUF_FRAMEWORK_EXACT_BYTES: a stack every so many bytes. A step of eager decoding asks for some 20 MiB in
 * blocks of some 10 KiB: a hundred stacks, and a block of 128 KiB that stays is known with 63 % chance. */

struct cuf_report {
	uint64_t addr;            /* of the block, on the device */
	int64_t bytes;            /* > 0: a block came, < 0: one went */
	uint64_t allocated_bytes, reserved_bytes; /* of the framework on this device, after the event */
	uint8_t device;           /* CUF_DEVICE_NONE: it did not say */
	uint16_t hook;
};

void cuf_framework_block(const struct cuf_report *report, const void *frame);

/* The framework gave up on a request of report->bytes: an incident, at the end of the ladder of driver failures that led
 * to it, or alone where the driver was not asked. */
void cuf_framework_failed(const struct cuf_report *report, const void *frame);

/* A report without an address (PyTorch before 1.10). */
void cuf_framework_blind(void);

/* A report of host memory: those blocks are malloc's, so the sums alone are kept. */
void cuf_framework_host(int64_t bytes);

/* True when the framework has been introduced in this recording; false once, for the caller who then introduces it. */
bool cuf_framework_is_known(void);

/* The number of device reports so far. */
uint64_t cuf_framework_events(void);

/* True when the driver gave this process device memory and no framework has reported a block. */
bool cuf_framework_is_silent(void);

/* As last reported for a device; CUF_UNKNOWN before the first report. */
struct cuf_framework_level { uint64_t allocated_bytes, reserved_bytes; };
struct cuf_framework_level cuf_framework_level(unsigned device);

/* The sequence number of the device's last block that came; 0 none. */
uint64_t cuf_framework_born_seq(unsigned device);

/* The end: what was counted goes into META. The thread is entered. */
void cuf_framework_end(void);

/* Blocks that are born until the role is given back are for this (enum cuf_role); returns what the role was. */
unsigned cuf_role_exchange(unsigned role);
unsigned cuf_role_now(void);

/* Says what the block that starts at addr is for, be it device, pinned or (bytes of) malloc's memory. */
void cuf_role_assign(uint64_t addr, uint64_t bytes, unsigned role, unsigned hook, const void *frame);

#endif
