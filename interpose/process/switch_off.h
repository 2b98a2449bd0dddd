/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens at a fault of the recorder (store/fault.h): the gate closes for the rest of the process, one line goes to
 * stderr, the recording is marked CUF_OFF with a note that states the reason, and the program's calls pass through.
 *
 * Contract: any thread, inside the recorder or outside; no lock, no allocation; errno untouched. A recording whose header
 * was overwritten gets it back, with META as its only section: nothing else in it can be trusted.
 */
#ifndef CUF_SWITCH_OFF_H
#define CUF_SWITCH_OFF_H

/* Once, before the gate opens. environment: of the process, kept. */
void cuf_switch_off_prepare(char **environment);

/* Compares the header with what was laid out, and reports a fault. For slow paths: some 700 bytes are compared. */
void cuf_check_recording(void);

#endif
