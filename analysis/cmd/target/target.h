/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel will execute for a command word: looked up in PATH as execvp does, scripts followed through their
 * first lines (and through env(1)), the ELF file at the end read with libelf.
 * Contract: nothing is executed, nothing changed; texts are cut to fit. error is 0, ENOENT (not found), EACCES (not
 * executable), ELOOP (scripts without end) or another errno; the fields after it count when it is 0.
 */
#ifndef CMD_TARGET_H
#define CMD_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct target {
	char path[PATH_MAX];        /* the file that the command word names */
	int error;
	unsigned scripts;           /* first lines followed */
	char executed[PATH_MAX];    /* the file at the end; path itself unless a script */
	bool is_elf;                /* false: no ELF, no first line: the shell will read it */
	bool is_static;             /* no dynamic loader */
	uint16_t machine;           /* ELF e_machine */
	bool is_64;
	char loader[PATH_MAX];      /* PT_INTERP */
	bool gains_user, gains_group, gains_capabilities; /* by executing it: the loader then ignores LD_PRELOAD */
};

void target_inspect(struct target *target, const char *command);
/* "x86-64", "aarch64", else its number as text; static storage. */
const char *target_machine_name(uint16_t machine);

#endif
