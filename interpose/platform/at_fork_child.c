/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the functions of the section; the linker defines where it starts and stops. */
#include "interpose/platform/at_fork_child.h"

#include "interpose/platform/laws.h"

/* Weak: a unit test may link no file that has anything to forget. */
#define BOUND __attribute__((weak, visibility("hidden")))
extern cuf_at_fork_child_fn *const __start_cuf_at_fork_child[] BOUND;
extern cuf_at_fork_child_fn *const __stop_cuf_at_fork_child[] BOUND;

void cuf_at_fork_child_run(void)
{
	cuf_at_fork_child_fn *const *function = __start_cuf_at_fork_child;
	for (; function != __stop_cuf_at_fork_child; function++)
		(*function)();
}
