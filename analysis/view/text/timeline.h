/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory over time as characters. Contract: prints nothing where fewer than two samples are
 * known.
 */
#ifndef VIEW_TIMELINE_H
#define VIEW_TIMELINE_H

#include "analysis/view/text/text.h"

/* One line: host memory of a process, up to its limit. */
void timeline_bar(const struct text *text, const struct fact_process *process);
/* The section "Over time": a graph of the device or of host memory, the limit and the failures. */
void timeline_section(const struct text *text);

#endif
