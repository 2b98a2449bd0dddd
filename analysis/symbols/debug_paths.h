/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where libdw looks for separate debug files. It opens what it finds there, and waits without limit
 * at a FIFO. A file names its debug files itself, so this looks first.
 *
 * Contract: pure, except for stat. False: one of the places has something that is no regular file.
 * A place that is empty is fine.
 */
#ifndef SYMBOLS_DEBUG_PATHS_H
#define SYMBOLS_DEBUG_PATHS_H

#include <elfutils/libdw.h>
#include <stdbool.h>

/* The places of a .gnu_debuglink. link NULL: the name that is tried without one. debug_path is as
 * Dwfl_Callbacks.debuginfo_path. */
bool debug_link_is_safe(const char *file, const char *link, const char *debug_path);
/* The places of the split unit that this skeleton unit names; true if it names none. */
bool debug_split_is_safe(Dwarf_Die *unit, const char *file);

#endif
