/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel will execute for a command word. The word is looked up in PATH as execvp does.
 * Scripts are followed through their first lines, and through env(1). The ELF file at the end is
 * read with libelf.
 *
 * Contract: nothing is executed and nothing is changed. Texts are cut to fit. error is 0, ENOENT
 * (not found), EACCES (not executable), ELOOP (a script that leads to itself) or another errno.
 * The fields after it are valid when it is 0.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct target {
	char path[PATH_MAX];        /* the file that the command word names */
	int error;
	unsigned scripts;           /* how many first lines were followed */
	char executed[PATH_MAX];    /* the file at the end; the same as path unless a script */
	bool is_elf;                /* false: no ELF and no first line, so the shell reads it */
	bool is_static;             /* it has no dynamic loader */
	uint16_t machine;           /* ELF e_machine */
	bool is_64;
	char loader[PATH_MAX];      /* PT_INTERP */
	/* of the libc.so.6 that is in the loader's folder, "2.36"; "": not known */
	char glibc_version[16];
	/* execution gives it more rights: the loader then ignores LD_PRELOAD */
	bool gains_user, gains_group, gains_capabilities;
};

void target_inspect(struct target *target, const char *command);

/* "x86-64", "aarch64", else the number as text. Static storage. */
const char *target_machine_name(uint16_t machine);
