/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A weak default for every name of the table: what is not modelled says so. The other driver_*.c
 * override it; this file sees no prototypes on purpose.
 */
#define NAME(exact, base, since) \
	__attribute__((weak, visibility("default"))) int exact(void); \
	__attribute__((weak, visibility("default"))) int exact(void) { return 801; /* CUDA_ERROR_NOT_SUPPORTED */ }
#include "tests/sim/names.def"
