/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for enum cuf_kind. Contract: static texts; NULL for numbers that this version does
 * not know.
 */
#ifndef VIEW_KINDS_H
#define VIEW_KINDS_H

#include <stdint.h>

const char *kind_name(uint32_t kind);

#endif
