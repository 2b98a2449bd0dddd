/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions behind interpose/cuflight.h. A program that marks its work wants to be recorded, so
 * the first call creates the file.
 */
#include "interpose/cuflight.h"

#include <string.h>
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/table.h"

/* The program's phases nest apart from those of NVTX's domains, which count from 0. */
#define PROGRAM_STACK CUF_UNKNOWN32

/* Cut here, so that nothing below reads further than a name may be long. */
static struct cuf_phase_text text_of(const char *name)
{
	struct cuf_phase_text text = { .text = "", .stack = PROGRAM_STACK };
	if (name) {
		text.text = name;
		text.bytes = strnlen(name, CUF_PHASE_NAME_BYTES);
	}
	return text;
}

int cuf_hook_cuflight_1_version(void) { return CUFLIGHT_API_VERSION; }

/* The first waits for a hand-over: a program asks once. */
int cuf_hook_cuflight_1_active(void)
{
	return cuf_process_is_recorded(true) && cuf_recorder_status().is_on;
}

/* The functions below accept NULL for a name. They never fail: without a recording they do nothing
 * and return 0. */
void cuf_hook_cuflight_1_mark(const char *name)
{
	struct cuf_phase_text text = text_of(name);
	cuf_phase_begin(CUF_PHASE_MARK, CUF_PHASE_PROGRAM, &text, 0);
}

void cuf_hook_cuflight_1_phase_push(const char *name)
{
	struct cuf_phase_text text = text_of(name);
	cuf_phase_begin(CUF_PHASE_PUSH, CUF_PHASE_PROGRAM, &text, 0);
}

void cuf_hook_cuflight_1_phase_pop(void)
{
	cuf_phase_end(CUF_PHASE_POP, CUF_PHASE_PROGRAM, PROGRAM_STACK);
}

/* A phase may end in another thread, unlike push and pop, which nest within one. */
uint64_t cuf_hook_cuflight_1_phase_start(const char *name)
{
	struct cuf_phase_text text = text_of(name);
	return (uint64_t)cuf_phase_begin(CUF_PHASE_START, CUF_PHASE_PROGRAM, &text, 0);
}

void cuf_hook_cuflight_1_phase_end(uint64_t phase)
{
	cuf_phase_end(CUF_PHASE_END, CUF_PHASE_PROGRAM, phase);
}

/* Requests are numbered by the program. The id connects the begin with its end. */
uint64_t cuf_hook_cuflight_1_request_begin(const char *name, uint64_t id)
{
	struct cuf_phase_text text = text_of(name);
	return (uint64_t)cuf_phase_begin(CUF_PHASE_REQUEST_BEGIN, CUF_PHASE_PROGRAM, &text, id);
}

void cuf_hook_cuflight_1_request_end(uint64_t id)
{
	cuf_phase_end(CUF_PHASE_REQUEST_END, CUF_PHASE_PROGRAM, id);
}

/* Bytes between two samples of host allocations, on average. */
int cuf_hook_cuflight_1_set_sample_bytes(uint64_t mean_bytes)
{
	return cuf_host_set_sample(mean_bytes);
}
