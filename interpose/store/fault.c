/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One word: who handles faults. Without a handler (some unit tests) a fault only drops its event.
 */
#include "interpose/store/fault.h"

#include <stddef.h>
#include "interpose/platform/laws.h"

static cuf_fault_handler *handler;

void cuf_fault_handle_with(cuf_fault_handler *function) { handler = function; }

void cuf_fault(enum cuf_fault fault)
{
	if (handler)
		handler(fault);
}
