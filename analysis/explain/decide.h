/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From evidence to a budget, and from the budget's answer to a rule that names it.
 *
 * Contract: of a failed request for device memory. A removal has a row if a rule that names it
 * applies; what the row is has a name on the stack, or is inferred from its shape.
 */
#pragma once

#include "analysis/explain/budget.h"
#include "analysis/explain/causes.h"

struct budget cause_budget(const struct evidence *evidence);
struct ranking cause_decide(const struct evidence *evidence);
