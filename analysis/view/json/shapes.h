/* SPDX-License-Identifier: Apache-2.0 */
/* The structs that the report is made of, each described with its like. Contract: as in
 * fields.h. */
#pragma once

#include "analysis/view/json/fields.h"

extern const struct words kind_words, end_words, phase_source_words, moment_words, owner_words;
extern const struct words outcome_words, class_words, growth_words, host_mode_words;

extern const struct shape report_shape, process_shape, device_shape, incident_shape, cause_shape;
extern const struct shape site_shape, judgement_shape, what_if_shape, host_shape, phase_shape;
extern const struct shape requests_shape, fragmentation_shape, owner_shape, layers_shape;
