/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A weak default for every name of the table: a function that is not modelled returns
 * CUDA_ERROR_NOT_SUPPORTED. The other driver_*.c override it. This file includes no prototypes on
 * purpose.
 */
#define NAME(exact, base, since) \
	__attribute__((weak, visibility("default"))) int exact(void); \
	__attribute__((weak, visibility("default"))) int exact(void) { return 801; /* CUDA_ERROR_NOT_SUPPORTED */ }
#include "tests/sim/names.def"
