/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another malloc for the recorded command: where its library is installed. Contract: 0 and an
 * absolute path that LD_PRELOAD can hold, else -1 and a sentence in why with a hint.
 */
#pragma once

#include <limits.h>

enum allocator_choice { ALLOCATOR_OWN, ALLOCATOR_JEMALLOC, ALLOCATOR_CHOICES };
#define ALLOCATOR_WORDS "own|jemalloc"

struct allocator_library {
	char path[PATH_MAX];
	char why[512];
};

int allocator_find(struct allocator_library *library, enum allocator_choice choice);
