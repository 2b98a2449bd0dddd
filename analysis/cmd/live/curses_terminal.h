/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes the terminal. Contract: terminal_open returns false where the cursor cannot be
 * moved. However the command ends, except by a signal that it does not take, the terminal is as it
 * was. terminal_colours makes pair N colour N on the usual background, if there are colours. */
#pragma once

#include <stdbool.h>

bool terminal_open(void);
void terminal_close(void);
bool terminal_colours(void);
