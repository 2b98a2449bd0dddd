/* SPDX-License-Identifier: Apache-2.0 */
/* What the rest of this room needs of framework.c. */
#pragma once

/* The end: what was counted goes into META. The thread is entered. */
void cuf_framework_end(void);
