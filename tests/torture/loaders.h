/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that open and close libraries until the process ends.
 *
 * Contract. They print nothing, and what they allocate has none of the counted sizes. A paused one
 * is in no call: it holds no descriptor and no lock of the loader. A process that was forked while
 * they ran may not use the loader, as without the recorder: they may have been in the middle of a
 * change.
 */
#pragma once

#include <stdbool.h>

/* Starts them, unless they run. They open copies of the plugin (PATH.0, PATH.1 ...), and libraries
 * of the system. */
void loaders_start(const char *path);

/* Returns when none is in a call. Nested calls are not allowed. */
void loaders_pause(void);
void loaders_go_on(void);

/* True while they run: forks and ends of the process meet them in the middle of a call. */
bool loaders_run(void);

/* In a forked child: they are gone. */
void loaders_forget(void);
