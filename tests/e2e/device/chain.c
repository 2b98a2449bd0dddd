/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two libraries with one function each of the same name. The first (-DFIRST) calls the next.
 * RTLD_NEXT depends on the caller's address: if a dlsym in between calls where it must jump,
 * chain() finds itself and never returns.
 */
#include <dlfcn.h>
#include <stdio.h>

const char *chain(void);

#ifdef FIRST
const char *chain(void)
{
	static char text[64];
	const char *(*next)(void) = (const char *(*)(void))dlsym(RTLD_NEXT, "chain");
	const char *found = "nobody";
	if (next == chain)
		found = "itself";
	else if (next)
		found = next();
	snprintf(text, sizeof text, "first, then %s", found);
	return text;
}
#else
const char *chain(void) { return "second"; }
#endif
