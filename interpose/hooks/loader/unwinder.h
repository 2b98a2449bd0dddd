/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libunwind as the walker, when the option asks for it (platform/unwinder.h). Contract: called
 * once, by the constructor, after the options were read. Without the library one line is printed,
 * and stacks are walked as if the option were not set.
 */
#pragma once

void cuf_unwinder_open(void);
