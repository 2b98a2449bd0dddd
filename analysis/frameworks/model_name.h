/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model that a server's command line names: "--model NAME", "vllm serve NAME", "llama-server
 * -m FILE" and their like. Contract: cmdline as recorded, words separated by blanks; pure; out is
 * always terminated, "" where no model is named.
 */
#ifndef ANALYSIS_FRAMEWORKS_MODEL_NAME_H
#define ANALYSIS_FRAMEWORKS_MODEL_NAME_H

#include <stddef.h>

void model_name(const char *cmdline, char *out, size_t bytes);

#endif
