/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens libunwind for the option unwind=libunwind. It is loaded privately (RTLD_LOCAL): programs
 * that throw keep libgcc's unwinder.
 */
#include "interpose/hooks/loader/unwinder.h"

#include <dlfcn.h>
#include <stddef.h>
#include "interpose/hooks/loader/real.h"
#include "interpose/platform/options.h"
#include "interpose/platform/say.h"
#include "interpose/platform/unwinder.h"
#include "interpose/platform/laws.h"

#ifdef CUF_UNWINDER_CONTEXT
static const struct {
	const char *name;
	size_t slot;
} functions[] = {
	{ CUF_UNWINDER_CONTEXT, offsetof(struct cuf_unwinder, context) },
	{ CUF_UNWINDER_NAME("init_local"), offsetof(struct cuf_unwinder, init) },
	{ CUF_UNWINDER_NAME("get_reg"), offsetof(struct cuf_unwinder, get) },
	{ CUF_UNWINDER_NAME("is_signal_frame"), offsetof(struct cuf_unwinder, is_signal) },
	{ CUF_UNWINDER_NAME("step"), offsetof(struct cuf_unwinder, step) },
};

static bool open_library(void)
{
	void *library = cuf_real.dlopen(CUF_UNWINDER_SONAME, RTLD_NOW | RTLD_LOCAL);
	struct cuf_unwinder found = { 0 };

	if (!library)
		return false;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		void *function = cuf_real.dlsym(library, functions[i].name);

		if (!function)
			return false;
		*(void **)((char *)&found + functions[i].slot) = function;
	}
	cuf_unwinder.context = found.context;
	cuf_unwinder.init = found.init;
	cuf_unwinder.get = found.get;
	cuf_unwinder.is_signal = found.is_signal;
	__atomic_store_n(&cuf_unwinder.step, found.step, __ATOMIC_RELEASE);
	return true;
}
#else
static bool open_library(void) { return false; }
#endif

void cuf_unwinder_open(void)
{
	if (cuf_options.disabled || cuf_options.unwind != CUF_UNWIND_LIBUNWIND)
		return;
	if (!open_library())
		cuf_say_line("unwind=libunwind: cannot load " CUF_UNWINDER_SONAME
			     ", so call stacks are walked by call-frame information (install "
			     "Debian's package libunwind8)");
}
