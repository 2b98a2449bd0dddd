/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What takes the recording's place when its file disappears. Contract: any thread, in a signal
 * handler, several at a time; no lock; errno untouched.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * An access to this address was SIGBUS. false: it is not in a mapping of the recording's file.
 * Otherwise private memory takes the place of that mapping, and the access can be repeated. Of what
 * was recorded only the header remains there. Any thread, in a signal handler, several at a time.
 */
bool cuf_recording_leave_file(uintptr_t address);
