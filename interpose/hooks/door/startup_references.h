/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References of the objects loaded at start that the loader bound to our names, although they mean
 * something else.
 *
 * Contract: called by the constructor. Takes the loader's lock, allocates nothing; errno
 * untouched.
 */
#pragma once

#include <stdbool.h>

/*
 * Weak references that would be null without us are made null. References to variables that have
 * the name of a function of ours are bound to the variable.
 */
void cuf_startup_references_correct(void);

/*
 * Whether this library was there when the program started. One that is opened later is behind the C
 * library in the loader's list, and no call of the program comes to it.
 */
bool cuf_startup_has_us(void);

/* Whether one of these objects calls a function of this name, or takes its address. */
bool cuf_startup_references_have(const char *name);
