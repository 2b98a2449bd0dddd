/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function names for frames, from the dynamic symbol tables that are mapped anyway, written into META so that a report
 * can name them when the container's files are gone. A fallback: with the files, the analysis knows more.
 * Contract: cold (failures and the end), bounded, no lock, no allocation but one mapping; one caller at a time, another
 * one's request is dropped. Names are as in the symbol table, not demangled.
 */
#ifndef CUF_NAMES_H
#define CUF_NAMES_H

#include <stdint.h>

void cuf_names_of_stacks(const uint32_t *stacks, unsigned count);
void cuf_names_of_all_stacks(void);
void cuf_names_fork(void);

#endif
