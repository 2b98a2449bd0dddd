/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the core's tests share: cmocka's includes, starting the recorder in memory, and a device event in three lines.
 * Contract: fixture_start once a process; options as in CUFLIGHT_OPTIONS.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "interpose/record/recorder.h"
#include "interpose/store/recording.h"

static inline void fixture_start(const char *options, const char *output)
{
	static char option_line[512], output_line[512];
	static char *environment[] = { option_line, output_line, NULL };
	snprintf(option_line, sizeof option_line, "CUFLIGHT_OPTIONS=%s", options);
	snprintf(output_line, sizeof output_line, "CUFLIGHT_OUTPUT=%s", output);
	cuf_state_start(environment);
	assert_true(cuf_state_is_on());
}

static inline void fixture_alloc(unsigned kind, uint64_t addr, uint64_t bytes)
{
	struct cuf_call call;
	struct cuf_request request = { .bytes = bytes, .kind = (uint8_t)kind, .device = 0, .flags = CUF_EVENT_CONTEXT_BOUND };
	cuf_call_begin(&call, 111, __builtin_frame_address(0));
	cuf_block_alloc(&call, &request, addr);
	cuf_call_end();
}

static inline bool fixture_free(unsigned kind, uint64_t addr)
{
	struct cuf_call call;
	struct cuf_block block;
	bool known;
	cuf_call_begin(&call, 115, __builtin_frame_address(0));
	known = cuf_block_free(&call, cuf_kind_space(kind), addr, &block);
	cuf_call_end();
	return known;
}

static inline void fixture_fail(uint64_t bytes)
{
	struct cuf_call call;
	struct cuf_request request = { .bytes = bytes, .kind = CUF_KIND_DEVICE, .device = 0 };
	struct cuf_driver_view view = { .free_bytes = 1 << 20, .total_bytes = 16ull << 30, .probed_bytes = CUF_UNKNOWN };
	cuf_call_begin(&call, 111, __builtin_frame_address(0));
	cuf_request_failed(&call, &request, 2, &view);
	cuf_call_end();
}

#endif
