/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aligned text tables. Contract: cells are copied and cleaned for a terminal on the way in;
 * column widths are those of the widest cell; when a row is wider than the screen the one
 * flexible column is cut, with ".." at the cut. NULL cells are empty. table_free frees all;
 * one thread.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include "analysis/view/style.h"

enum table_align {
	TABLE_LEFT,
	TABLE_RIGHT,
	TABLE_RIGHT_IF_ANY, /* left out when no row has a cell in it */
	TABLE_FLEX          /* left, and cut when there is no room */
};
struct table_column { const char *title; enum table_align align; };

struct table;

struct table *table_new(const struct style *style, const struct table_column *columns,
			size_t count);
void table_row(struct table *table, const char *const *cells);
/* Tone of the row added last. */
void table_tone(struct table *table, enum style_tone tone);
/* Titles first, unless all are NULL. indent: blanks before every line. */
void table_print(const struct table *table, FILE *out, unsigned indent);
void table_free(struct table *table);
