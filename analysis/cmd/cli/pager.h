/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pager for long results, as in git: $PAGER, else `less -FRX`. Contract: pager_open returns a
 * stream to write to, or NULL when stdout is no terminal, PAGER is empty or "cat", or the pager
 * cannot be started. pager_close waits until the reader has left. Leaving early is no error.
 */
#pragma once

#include <stdio.h>

FILE *pager_open(void);
void pager_close(FILE *pager);
