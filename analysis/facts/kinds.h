/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for kinds of blocks, roles and trends: kind_name is of the JSON, the others are what a
 * person reads, on the first screen, in the long report and on the page. Contract: static texts;
 * kind_name: NULL for numbers that this version does not know.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/base/trend.h"
#include "analysis/growth/growth.h"
#include "analysis/measure/owners.h"
#include "analysis/recording/fact_types.h"
#include "analysis/replay/exit_reason.h"
#include "analysis/replay/incidents.h"
#include "interpose/abi/format.h"

/* As in the JSON. */
extern const char *const owner_names[OWNER_MAX]; /* device array async graph vmm imported ... */
extern const char *const class_names[CLASS_MAX];
extern const char *const end_names[END_MAX]; /* running exit ... unknown */
extern const char *const outcome_names[OUTCOME_MAX]; /* fatal recovered handled unknown */
extern const char *const basis_names[BASIS_MAX]; /* "", "observed", "inferred", "estimated" */

extern const char *const kind_names[CUF_KIND_MAX];
const char *kind_name(uint32_t kind);
/* "GPU", "tensor"; "?" */
const char *kind_word(uint32_t kind);
/* Of at most 10 columns; "" for NULL, and the role itself where there is no better word. */
const char *role_word(const char *role);
/* The roles that have another word: a pair for each index from 0; false: there is none. */
bool role_word_at(size_t index, const char **role, const char **word);
/* "growing", "steady", "" */
const char *shape_word(enum fact_shape shape);
