/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which framework a process is made of, as far as its advice goes: by the modules it loaded, by its command line, by the
 * files of its Python functions, and by what it said of itself (META FRAMEWORK). Contract: pure; names are those of
 * framework_table, the most specific first: an engine before the library it is built on.
 */
#ifndef ANALYSIS_FACTS_PASSES_FRAMEWORK_NAMES_H
#define ANALYSIS_FACTS_PASSES_FRAMEWORK_NAMES_H

#include "analysis/facts/facts.h"

/* "vLLM", "PyTorch" ...; "" none. */
const char *framework_of(const struct fact_process *process, bool host); /* host: the question is about host memory */
/* Is `name` the process's framework, or what that is built on ("PyTorch" for "vLLM")? */
bool framework_is(const char *framework, const char *name);
/* What a stack's functions are for, as their names say. */
enum name_hint { HINT_KV = 1, HINT_WEIGHTS = 2, HINT_ACTIVATIONS = 4, HINT_SLOTS = 8, HINT_CAPTURE = 16 };
unsigned name_hints(const char *function);
/* Libraries that take device memory by themselves: NCCL, cuBLAS, cuDNN ... */
size_t count_device_libraries(const struct fact_process *process);

#endif
