/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for what libraries.mk leaves out of elfutils: machines without a recorder, instructions
 * as text, and the kernel's modules. A machine that returns NULL is an unknown one. */
#include <libeblP.h>
#include <stdlib.h>

#define NO_MACHINE(name) \
	Ebl *name##_init(Elf *elf, GElf_Half machine, Ebl *eh) \
	{ \
		(void)elf, (void)machine, (void)eh; \
		return NULL; \
	}
NO_MACHINE(i386)
NO_MACHINE(sh)
NO_MACHINE(ia64)
NO_MACHINE(alpha)
NO_MACHINE(arm)
NO_MACHINE(sparc)
NO_MACHINE(ppc)
NO_MACHINE(ppc64)
NO_MACHINE(s390)
NO_MACHINE(m68k)
NO_MACHINE(bpf)
NO_MACHINE(riscv)
NO_MACHINE(csky)

/* of an impossible state: musl has no error() */
void error(int status, int number, const char *format, ...)
{
	(void)status, (void)number, (void)format;
	abort();
}

int x86_64_disasm(void) { return -1; }
int x86_64_auxv_info(void) { return 0; }
