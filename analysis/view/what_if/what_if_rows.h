/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row of a replay as JSON, as cuflight.what-if/1 has it. Contract: json-c owns the memory; the
 * caller releases the object, or gives it away.
 */
#ifndef VIEW_WHAT_IF_ROWS_H
#define VIEW_WHAT_IF_ROWS_H

#include <json-c/json.h>
#include "analysis/what_if/what_if.h"

struct json_object *what_if_row_json(const struct what_if_row *row);

#endif
