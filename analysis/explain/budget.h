/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a request for memory failed, decided by arithmetic. Of everything that could be taken away:
 * what would have let the request fit, and for how long?
 *
 * 1. A removal is enough if it frees what was missing, or if it is what grew: without that the
 *    moment would not have come.
 * 2. Its worth is how long it would have lasted at the program's own rates. What stops the growth
 *    has no limit, and neither has any removal where nothing grew. Loading ends by itself, so
 *    half as much again as was loaded has no limit, too.
 * 3. Of those that last longest (within a fifth), defects come before what is configured, and that
 *    before the purpose of the program. A defect that any program has comes with the purpose. Of
 *    equal ones the first of enum removed is the cause.
 * 4. If none is enough, the smallest pair that is. If no pair is either, the model does not fit.
 * 5. The decision is made again at the other end of each doubtful figure, and without each row of
 *    which it is only inferred what it is. It is sure if it is always the same.
 *
 * Contract: pure. Bytes CUF_UNKNOWN: the thing is not there.
 */
#pragma once

#include "analysis/explain/causes.h"
#include "analysis/explain/evidence/demand.h"

/* How much a person would mind to change it. */
enum budget_sort { BUDGET_DEFECT, BUDGET_CONFIGURATION, BUDGET_PURPOSE };

struct budget_row {
	bool present;
	bool inferred;        /* what it is: by its shape, and no name states it */
	enum removed or_else; /* what else has that shape; REMOVED_NOTHING */
	bool stops_growth;
	bool is_usual;        /* any program has so much of it */
	uint64_t least, most; /* bytes that it frees */
};

struct budget {
	uint64_t missing;     /* of the request */
	uint64_t to_come;     /* what belongs to it and comes next; CUF_UNKNOWN */
	uint64_t grown_bytes; /* since the highest moment before; 0: nothing grew */
	uint64_t loaded_bytes; /* if what grew ends by itself: all of it; else 0 */
	struct budget_row rows[REMOVAL_MAX];
};

struct budget_verdict {
	enum removed what;  /* REMOVED_NOTHING: nothing is enough, not even a pair */
	enum removed with;  /* both together are enough; REMOVED_NOTHING: the first is enough */
	enum removed other; /* the answer if what is doubtful is otherwise; REMOVED_NOTHING: none */
};

/* How a removal is called by a person who has to do it. */
enum budget_sort budget_sort_of(enum removed what);
/* Would the request have fitted without it? */
bool budget_is_enough(const struct budget *budget, enum removed what);
/* And for how long: in units of what grew; INFINITY: no limit in sight. */
double budget_lasts(const struct budget *budget, enum removed what);
struct budget_verdict budget_decide(const struct budget *budget);

/*
 * From evidence to a budget, and from the budget's answer to a rule that names it.
 *
 * Contract: of a failed request for device memory. A removal has a row if a rule that names it
 * applies; what the row is has a name on the stack, or is inferred from its shape.
 */

struct budget cause_budget(const struct evidence *evidence);
struct ranking cause_decide(const struct evidence *evidence);
