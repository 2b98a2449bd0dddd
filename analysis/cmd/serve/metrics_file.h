/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The textfile of node_exporter's collector: replaced as a whole, readable for everybody, and
 * removed at the end, so that nobody reads the figures of yesterday.
 * Contract: 0, or -1 with errno; the file is unchanged then. A device or a pipe of that name
 * is never replaced or removed.
 */
#pragma once

#include "analysis/view/live/metrics.h"

int metrics_file_write(const char *path, const struct watch *watch,
		       const struct metrics_options *options);

void metrics_file_remove(const char *path);
