/* SPDX-License-Identifier: Apache-2.0 */
/* What every part of the core keeps in private memory about the present recording, dropped in a forked child. */
#ifndef CUF_FORGET_H
#define CUF_FORGET_H

#include "interpose/platform/at_fork_child.h"
#include "interpose/store/hook_names.h"
#include "interpose/store/ledger.h"
#include "interpose/code/modules.h"
#include "interpose/code/symbolize.h"
#include "interpose/python/python.h"
#include "interpose/process/thread.h"

void cuf_host_fork(void);
void cuf_incident_fork(void);
void cuf_timeline_fork(void);
void cuf_end_fork(void);
void cuf_framework_fork(void);
void cuf_phases_fork(void);

static inline void cuf_forget_all(void)
{
	cuf_thread_fork();
	cuf_ledger_atfork_child();
	cuf_modules_atfork_child();
	cuf_python_atfork_child();
	cuf_host_fork();
	cuf_incident_fork();
	cuf_timeline_fork();
	cuf_end_fork();
	cuf_framework_fork();
	cuf_at_fork_child_run();
	cuf_phases_fork();
	cuf_symbolize_atfork_child();
	cuf_hook_names_atfork_child();
}

#endif
