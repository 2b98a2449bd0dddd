/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the kinds of moments, as in the JSON. */
#include "analysis/facts/moment.h"

const char *const moment_names[MOMENT_MAX] = { "incident", "end", "at", "now" };
