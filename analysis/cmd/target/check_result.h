/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one check found, and how a check fills it. Contract: the caller clears a result and sets its
 * name; texts are printf's and cut to fit; no allocation.
 */
#pragma once

enum check_state { CHECK_FINE, CHECK_INFO, CHECK_PROBLEM };

struct check_result {
	const char *name;
	enum check_state state;
	char found[640];
	char todo[320];  /* "" when nothing has to be done */
};

void check_report(struct check_result *result, enum check_state state, const char *found, ...)
	__attribute__((format(printf, 3, 4)));
void check_advise(struct check_result *result, const char *todo, ...)
	__attribute__((format(printf, 2, 3)));
