/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory under other allocators, as a table and as the document cuflight.what-if-host/1.
 * Contract: only prints. Nothing is freed or changed.
 */
#ifndef ANALYSIS_VIEW_COMMANDS_HOST_VIEW_H
#define ANALYSIS_VIEW_COMMANDS_HOST_VIEW_H

#include <stdint.h>
#include <stdio.h>
#include "analysis/view/style.h"
#include "analysis/what_if/host/host_replay.h"

struct host_view {
	const char *path;            /* of the recording, as given */
	uint32_t pid;
	const struct host_replay *replay;
	const struct style *style;   /* of text */
};

void host_view_text(FILE *out, const struct host_view *view);
void host_view_json(FILE *out, const struct host_view *view);

#endif
