/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's constructor. It finds what is behind the hooks and starts the recorder. CUDA is not
 * touched before the program itself does so. There is no destructor: nothing is flushed, and hooks
 * are called until the very end.
 */
#include <stddef.h>
#include "interpose/objects/c_library.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/options.h"
#include "interpose/platform/sandbox.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/door/startup_references.h"
#include "interpose/hooks/loader/real.h"
#include "interpose/hooks/loader/unwinder.h"
#include "interpose/hooks/malloc/allocator.h"

/* 101 is the first priority open to programs, so constructors of ours with a later one, had we any,
 * would already run with hooks. */
__attribute__((constructor(101))) static void enter(int argc, char **argv, char **environment)
{
	cuf_real_resolve();
	if (!cuf_glibc_version()) {
		/* others pass a constructor no arguments */
		environment = NULL;
		cuf_options.disabled = 1;
	}
	if (!cuf_startup_has_us())
		return; /* opened by dlopen, and perhaps closed again: leave no trace */
	cuf_startup_references_correct();
	if (!cuf_real_has_allocator())
		return; /* nothing may be skipped then, and nothing is recorded */
	cuf_options.locks_memory = cuf_startup_references_have("mlockall");
	cuf_recorder_start(environment);
	if (__register_atfork)
		__register_atfork(NULL, NULL, cuf_close_copies, NULL);
	cuf_unwinder_open();
	cuf_allocator_describe();
}
