/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report as one HTML file: the page (page/, made at build time), and the data that DATA.md
 * describes. Opened from a disk it needs nothing else, and it asks for nothing.
 *
 * Contract: html_report writes everything or returns why not; nothing was written then. Names,
 * paths and command lines of a recording are data: they are in the compressed part, or escaped. The
 * file has at most HTML_BYTES_MOST bytes: where the data would be larger, lists have fewer rows and
 * count the others. Write errors stay in the stream.
 */
#pragma once

#include <stdio.h>
#include "analysis/facts/frames.h"
#include "analysis/facts/history/timeline.h"

enum { HTML_BYTES_MOST = 8 << 20 };

extern const struct shape page_shape; /* the data, as DATA.md has it */

enum html_result {
	HTML_WRITTEN,
	HTML_NO_PAGE,   /* this build has no page: it was made without node */
	HTML_TOO_LARGE  /* names that repeat without end: do not trust the recording */
};

/* operand: as in report_text_options. */
enum html_result html_report(FILE *out, const struct facts *facts, struct frames *frames,
			     const struct timeline *timeline, const char *operand);
/* Whether this build has the page. */
bool html_has_page(void);
