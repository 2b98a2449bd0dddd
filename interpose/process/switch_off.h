/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens at a fault of the recorder (store/fault.h): the gate closes for the rest of the
 * process, one line goes to stderr, the recording is marked CUF_OFF with a note that states the
 * reason, and the program's calls pass through.
 *
 * Contract: any thread, inside the recorder or outside; no lock, no allocation; errno untouched. A
 * recording whose header was overwritten gets it back, with META as its only section: nothing else
 * in it can be trusted.
 */
#pragma once

#include <stdbool.h>

/* Once, before the gate opens. environment: of the process, kept. */
void cuf_switch_off_prepare(char **environment);

/*
 * Compares the header with what was laid out. False: a fault, and it is reported. For slow paths:
 * some 700 bytes.
 */
bool cuf_check_recording(void);
