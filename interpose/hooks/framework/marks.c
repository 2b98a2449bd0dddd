/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions behind interpose/cuflight.h. A program that marks its work wants to be recorded, so
 * the first call creates the file.
 */
#include "interpose/cuflight.h"

#include <string.h>
#include "interpose/incident/phase_names.h"
#include "interpose/incident/phases.h"
#include "interpose/record/host.h"
#include "interpose/record/recorder.h"
#include "interpose/record/state.h"
#include "interpose/hooks/loader/table.h"

/* The program's phases nest apart from those of NVTX's domains, which count from 0. */
#define PROGRAM_STACK CUF_UNKNOWN32

static struct cuf_phase_text text_of(const char *name)
{
	struct cuf_phase_text text = { .text = "", .stack = PROGRAM_STACK };
	if (__builtin_expect(cuf_state_in_memory(), 0))
		cuf_state_want_file();
	if (name) {
		text.text = name;
		text.bytes = strnlen(name, CUF_PHASE_NAME_BYTES);
	}
	return text;
}

int cuf_hook_cuflight_1_version(void) { return CUFLIGHT_API_VERSION; }

/* cuf_state_admit waits for a hand-over: a program asks once. */
int cuf_hook_cuflight_1_active(void) { return cuf_state_is_on() || cuf_state_admit(); }

void cuf_hook_cuflight_1_mark(const char *name)
{
	struct cuf_phase_text text = text_of(name);
	cuf_phase_mark(CUF_PHASE_PROGRAM, &text);
}

void cuf_hook_cuflight_1_phase_push(const char *name)
{
	struct cuf_phase_text text = text_of(name);
	cuf_phase_push(CUF_PHASE_PROGRAM, &text);
}

void cuf_hook_cuflight_1_phase_pop(void) { cuf_phase_pop(CUF_PHASE_PROGRAM, PROGRAM_STACK); }

uint64_t cuf_hook_cuflight_1_phase_start(const char *name)
{
	struct cuf_phase_text text = text_of(name);
	return cuf_phase_start(CUF_PHASE_PROGRAM, &text, 0);
}

void cuf_hook_cuflight_1_phase_end(uint64_t phase) { cuf_phase_end(CUF_PHASE_PROGRAM, phase); }

uint64_t cuf_hook_cuflight_1_request_begin(const char *name, uint64_t id)
{
	struct cuf_phase_text text = text_of(name);
	return cuf_request_begin(&text, id);
}

void cuf_hook_cuflight_1_request_end(uint64_t id) { cuf_request_end(id); }

int cuf_hook_cuflight_1_set_sample_bytes(uint64_t mean_bytes)
{
	return cuf_host_set_sample(mean_bytes);
}
