/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would have fitted, as a table and as the document cuflight.what-if/1.
 * Contract: only prints. Nothing is freed or changed.
 */
#pragma once

#include <stdio.h>
#include "analysis/view/json/fields.h"
#include "analysis/base/terminal.h"
#include "analysis/what_if/what_if.h"

struct what_if_view {
	const char *path;            /* of the recording, as given */
	uint32_t pid;
	const struct what_if *what_if;
	const struct style *style;   /* of text */
	uint64_t start_ns;           /* of the recorder, CLOCK_MONOTONIC */
	bool would_pack;             /* the request failed by gaps that no row closes */
	bool all;                    /* rows that are seldom of use are there, too */
};

void what_if_text(FILE *out, const struct what_if_view *view);
void what_if_json(FILE *out, const struct what_if_view *view);
extern const struct shape what_if_document;
