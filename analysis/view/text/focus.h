/* SPDX-License-Identifier: Apache-2.0 */
/* What the first screen is about. Contract: pure; indices or borrowed pointers into facts. */
#ifndef VIEW_FOCUS_H
#define VIEW_FOCUS_H

#include "analysis/explain/cause.h"
#include "analysis/facts/facts.h"

const struct fact_incident *focus_incident(const struct facts *facts); /* the last fatal one; NULL: none */
/* The device of that incident, else the one whose recorded peak comes nearest to its size; NULL: no device. */
const struct fact_device *focus_device(const struct facts *facts);

#endif
