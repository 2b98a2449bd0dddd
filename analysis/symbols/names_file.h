/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that a struct symbols has found, as a file: a pack takes it to a machine that has none
 * of the program files.
 *
 * Contract: lines of JSON. A module comes first: {"path","build_id","state","reason","constant"};
 * its addresses follow: {"at","frames":[[function,file,line,inlined,hinted],...]}. The same names
 * give the same bytes. Reading takes hostile text: a line that is damaged costs its names. Modules
 * without a usable file are left to this machine's files. One thread.
 */
#pragma once

#include <stdio.h>
#include "analysis/symbols/symbols.h"

/* All that was resolved so far. */
void names_file_write(struct symbols *symbols, FILE *out);
/* text: NUL-terminated, and changed by the reading. */
void names_file_read(struct symbols *symbols, char *text);
