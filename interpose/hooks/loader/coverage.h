/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the recorder cannot see, written to META once each.
 *
 * Contract: cold paths only; no allocation, no lock; errno untouched. A note that was written
 * before is dropped, and so is one that does not fit the table of what was written.
 */
#pragma once

#include <stdint.h>

/* A driver function was looked up that is not hooked. It is noted when its name suggests that it
 * allocates or frees. version: as requested of cuGetProcAddress, 0 for dlsym. */
void cuf_coverage_unhooked(const char *name, int version);

/* This caller looked up the driver's look-up function. Unless it is the shared runtime, it contains
 * a runtime of its own. */
void cuf_coverage_runtime(const void *caller);

/* An object is about to be loaded in a way that its calls bypass a preload. */
void cuf_coverage_deepbind(const char *path);
void cuf_coverage_namespace(const char *path);

/* Facts about the framework, as key=value lines; and why its blocks are not seen. */
void cuf_coverage_framework(const char *lines);
void cuf_coverage_framework_unseen(const char *why);
