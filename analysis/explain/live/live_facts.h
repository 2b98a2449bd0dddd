/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of explain/facts_build.h that are about memory lately. Contract: as in
 * facts/passes/build.h. */
#pragma once

#include "analysis/facts/passes/build.h"

/* processes[].recent; after build_devices. */
void build_recent(struct build *build);
/* judgement; of a run that still runs, whatever is not judged yet is no leak any more. After
 * build_host. */
void build_judgement(struct build *build);
