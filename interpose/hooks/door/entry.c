/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's constructor. Nothing but this: find what is behind the hooks, start the recorder. CUDA is left alone
 * until the program itself touches it. There is no destructor: nothing is to be flushed, and hooks are called until
 * the very end.
 */
#include "interpose/record/host.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/malloc/allocator.h"
#include "interpose/hooks/loader/real.h"

/* 101: the first priority open to programs; our own later constructors, had we any, would already see hooks. */
__attribute__((constructor(101))) static void enter(int argc, char **argv, char **environment)
{
	cuf_real_resolve();
	if (!cuf_real_has_allocator())
		return; /* then nothing may be skipped, and nothing is recorded */
	cuf_state_start(environment);
	cuf_host_begin_skipping();
	cuf_allocator_introduce();
}
