/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recordings that operands name: files, packs, and directories with all that is below them.
 *
 * Contract: sources_find returns -1 after an error on stderr; what it found is freed by
 * sources_free. Paths are in the order of their names, without duplicates of one operand. Links in
 * directories are not followed. Nothing is opened yet.
 */
#pragma once

#include <stddef.h>

struct sources { char **paths; size_t count, room; };

int sources_find(struct sources *sources, char *const *operands, size_t count);
void sources_free(struct sources *sources);
