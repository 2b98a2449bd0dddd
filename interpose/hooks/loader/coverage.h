/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes by the recorder, written into the recording's META once each. Contract: cold paths only; no allocation, no
 * lock; errno untouched; what was already said, or does not fit the memory of what was said, is not said again.
 */
#ifndef CUF_COVERAGE_H
#define CUF_COVERAGE_H

#include <stdint.h>

/* A driver function was looked up and is not hooked; noted when its name looks like it moves memory. version: as asked
 * of cuGetProcAddress, 0 for dlsym. */
void cuf_coverage_resolved(const char *name, int version);

/* This caller asked the driver for its look-up function itself: if it is not the shared runtime, it carries its own. */
void cuf_coverage_runtime(const void *caller);

/* An object is about to be loaded so that its calls go past a preload. */
void cuf_coverage_deepbind(const char *path);
void cuf_coverage_namespace(const char *path);

/* What was learnt of a framework, as key=value lines; and why its blocks are not seen. */
void cuf_coverage_framework(const char *lines);
void cuf_coverage_blind(const char *why);

#endif
