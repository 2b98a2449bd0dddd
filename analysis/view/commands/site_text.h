/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call site in one line: the user's own function with its file and line, then its callers, as
 * many as the line has room for. Contract: texts are foreign and cleaned here.
 */
#pragma once

#include <stdio.h>
#include "analysis/gate/finding.h"
#include "analysis/base/terminal.h"

struct site_printer { FILE *out; const struct style *style; };

void site_print_clean(const struct site_printer *printer, const char *text);
/* used: columns of this line that are taken. Ends the line. */
void site_print_line(const struct site_printer *printer, const struct gate_site *site,
		     unsigned used);
