/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of the long report, in their order. Contract: each prints a title and what
 * belongs under it, or nothing where there is nothing to say; tables have text_rows rows.
 */
#pragma once

#include "analysis/view/text/text.h"

void section_why(const struct text *text);           /* the evidence for and against the cause */
/* what each call site holds, and how that developed */
void section_call_sites(const struct text *text);
void section_phases(const struct text *text);        /* phases, requests */
void section_failures(const struct text *text);      /* failed requests, grouped */
/* gaps in pages, segments and pools, where they matter */
void section_fragmentation(const struct text *text);
/* part of the above */
void section_segments(const struct text *text, const struct fact_fragmentation *fragmentation);
/*
 * Call sites whose blocks keep partly used units ("pages", "segments") alive, worst first. Blocks
 * without a sampled stack have no call site, but a row.
 */
void text_pins(const struct text *text, const struct fact_pin *pins, size_t count,
	       const char *unit);
void section_host(const struct text *text);
void section_processes(const struct text *text);
void section_coverage(const struct text *text);      /* what could not be seen */
