/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of all hooks. Only this table refers to every hook, so only look-ups may use it.
 * Contract: constant data; any thread; errno untouched.
 */
#pragma once

#include "interpose/hooks/loader/real.h"

/* The hook of a row of cuf_rows. */
void *cuf_row_hook(const struct cuf_row *row);

/* The hook of this export of libcuda. NULL: not an export, not hooked, or libcuda is not
 * attached. */
void *cuf_driver_hook_of(const void *export);
