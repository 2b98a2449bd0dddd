/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function names for frames, from the dynamic symbol tables that are mapped anyway, written into META so that a report
 * can name them when the container's files are gone. A fallback: with the files, the analysis knows more.
 * Contract: cold (failures and the end), bounded, no lock, no allocation but one mapping; one caller at a time, another
 * one's request is dropped. Names are as in the symbol table, not demangled.
 */
#ifndef CUF_SYMBOLIZE_H
#define CUF_SYMBOLIZE_H

#include <stdint.h>

void cuf_symbolize_stacks(const uint32_t *stacks, unsigned count);
void cuf_symbolize_all_stacks(void);
void cuf_symbolize_atfork_child(void);

#endif
