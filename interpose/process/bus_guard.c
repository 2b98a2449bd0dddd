/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of SIGBUS, and the action that the program believes to be in force. */
#include "interpose/process/bus_guard.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/platform/sys.h"
#include "interpose/process/gate.h"
#include "interpose/store/fault.h"
#include "interpose/store/leave_file.h"
#include "interpose/platform/laws.h"

/*
 * The program's action, as the kernel would show it. A reader copies it while another thread may
 * set the next one, so the last few stay.
 */
enum { ACTIONS = 8 };
static struct sigaction actions[ACTIONS];
static unsigned action_count;
static bool is_on;

static const struct sigaction *program_action(void)
{
	return &actions[__atomic_load_n(&action_count, __ATOMIC_ACQUIRE) % ACTIONS];
}

static void keep_action(const struct sigaction *action)
{
	unsigned next = __atomic_load_n(&action_count, __ATOMIC_RELAXED) + 1;

	actions[next % ACTIONS] = *action;
	__atomic_store_n(&action_count, next, __ATOMIC_RELEASE);
}

static void on_bus_error(int number, siginfo_t *info, void *context);

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_bus_error;
}

/*
 * What the kernel gets in place of the program's action. An alternate stack is used where the
 * program has one: the fault may come on a small one.
 */
static struct sigaction guarded(const struct sigaction *program)
{
	struct sigaction ours = *program;

	if (program->sa_handler == SIG_DFL) {
		ours.sa_flags = SA_ONSTACK | SA_RESTART;
		sigemptyset(&ours.sa_mask);
	}
	ours.sa_flags = (ours.sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
	ours.sa_sigaction = on_bus_error;
	return ours;
}

static void install(cuf_sigaction_fn *set, const struct sigaction *program)
{
	const struct sigaction ours = guarded(program);

	if (program->sa_handler != SIG_IGN)
		set(SIGBUS, &ours, NULL);
}

/* ---- a signal that is not ours ---- */

/*
 * The kernel's own kind of end. A faulting instruction is executed again when the handler returns.
 * A signal that was sent is sent again, and is blocked until then.
 */
static void end_process(siginfo_t *info)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };
	long process = cuf_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);

	__sigaction(SIGBUS, &by_default, NULL);
	if (info->si_code <= 0 || info->si_code == BUS_MCEERR_AO)
		cuf_sys(SYS_rt_tgsigqueueinfo, process, cuf_sys(SYS_gettid, 0, 0, 0, 0, 0, 0),
			SIGBUS, (long)info, 0, 0);
}

/* The kernel has the flags and the mask of the program's action already, except for this one. */
static void reset_once(const struct sigaction *program)
{
	struct sigaction reset = *program;

	reset.sa_handler = SIG_DFL;
	keep_action(&reset);
	install(__sigaction, &reset);
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	const struct sigaction program = *program_action();

	if (info->si_code > 0 && info->si_code != BUS_MCEERR_AO &&
	    cuf_recording_leave_file((uintptr_t)info->si_addr)) {
		cuf_fault(CUF_FAULT_CUT);
		return;
	}
	if (program.sa_handler == SIG_DFL || program.sa_handler == SIG_IGN) {
		if (program.sa_handler == SIG_DFL || info->si_code > 0)
			end_process(info);
		return;
	}
	if (program.sa_flags & (int)SA_RESETHAND)
		reset_once(&program);
	program.sa_sigaction(number, info, context);
}

/* ---- setting ---- */

/* Another thread may set an action at the same time: then its action is read again. */
void cuf_bus_guard_begin(void)
{
	struct sigaction program, replaced;

	if (is_on || !__sigaction || __sigaction(SIGBUS, NULL, &program))
		return;
	for (;;) {
		const struct sigaction ours = guarded(&program);

		keep_action(&program);
		__atomic_store_n(&is_on, true, __ATOMIC_SEQ_CST);
		if (program.sa_handler == SIG_IGN || __sigaction(SIGBUS, &ours, &replaced) ||
		    is_ours(&replaced) || replaced.sa_handler == program.sa_handler)
			return;
		program = replaced;
	}
}

bool cuf_bus_guard_is_on(void) { return __atomic_load_n(&is_on, __ATOMIC_RELAXED); }

/*
 * The program's action is set as it is, and read back: so what the program sees later is exactly
 * what the kernel makes of it. Then ours replaces it.
 */
int cuf_bus_guard_action(cuf_sigaction_fn *next, const struct sigaction *action,
			 struct sigaction *old)
{
	struct sigaction before, now;
	int result = next(SIGBUS, action, &before);

	if (result)
		return result;
	if (old)
		*old = is_ours(&before) ? *program_action() : before;
	/* a vfork child has a table of actions of its own */
	if (!action || cuf_gate_is_vfork_child() || next(SIGBUS, NULL, &now))
		return 0;
	keep_action(&now);
	install(next, &now);
	return 0;
}
