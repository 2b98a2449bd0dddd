/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command, parses its options, runs it, and checks that its output was written. */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <locale.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/help.h"
#include "interpose/abi/format.h"

/* What --version prints. Contract: writes one line to out. */

/* Names and contents of ELF notes are padded to 4 bytes. */
static unsigned padded(unsigned bytes)
{
	return (bytes + 3) & ~3u;
}

/* Prints the build-id if it is among the notes of one segment. */
static int print_build_id_note(FILE *out, const char *note, const char *end)
{
	while (end - note >= (long)sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *head = (const ElfW(Nhdr) *)note;
		const unsigned char *id =
			(const unsigned char *)(head + 1) + padded(head->n_namesz);
		if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == sizeof "GNU") {
			fputs(", build ", out);
			for (unsigned byte = 0; byte < head->n_descsz; byte++)
				fprintf(out, "%02x", id[byte]);
			return 1;
		}
		note = (const char *)id + padded(head->n_descsz);
	}
	return 0;
}

/* Returns 1, which ends dl_iterate_phdr at its first object: the executable. */
static int print_build_id(struct dl_phdr_info *info, size_t size, void *out)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const char *note = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
		if (info->dlpi_phdr[i].p_type == PT_NOTE &&
		    print_build_id_note(out, note, note + info->dlpi_phdr[i].p_memsz))
			break;
	}
	return 1;
}

/* The build-id identifies the exact executable in a bug report. */
static void version_print(FILE *out)
{
	fprintf(out, "cuflight %s (recording format %u", CUFLIGHT_VERSION, CUF_VERSION);
	dl_iterate_phdr(print_build_id, out);
	fputs(")\n", out);
}

/* A report that filled the disk must not look like a success. */
static int finish_stdout(int status, int failed)
{
	int bad = ferror(stdout) || fflush(stdout), error = errno;

	/* EBADF: stdout was closed from the start, and nothing was written to it */
	if (fclose(stdout) && !bad && errno != EBADF) {
		bad = 1;
		error = errno;
	}
	if (!bad)
		return status;
	say_error("cannot write the result: %s", error ? strerror(error) : "write error");
	return failed;
}

static int reject_command(const char *typed)
{
	const char *near = cmd_nearest(cmd_table, typed);

	if (*typed == '-')
		say_error("unknown option '%s'; options follow the command: "
			  "cuflight COMMAND [OPTIONS]", typed);
	else if (near)
		say_error("no command '%s'; did you mean '%s'?", typed, near);
	else
		say_error("no command '%s'; 'cuflight help' lists them", typed);
	return CMD_USAGE;
}

static int run_command(const struct cmd *cmd, int argc, char **argv)
{
	static struct opts opts;

	opts_init(&opts, cmd->groups);
	if (opts_parse(&opts, argc, argv, cmd->takes_command)) {
		say_error("%s; see 'cuflight %s --help'", opts.error, cmd->name);
		return cmd->usage_exit;
	}
	if (opts_has(&opts, "help")) {
		help_command(stdout, cmd);
		return CMD_FINE;
	}
	if (opts_has(&opts, "version")) {
		version_print(stdout);
		return CMD_FINE;
	}
	say_quiet(opts_has(&opts, "quiet"));
	return cmd->run(&opts, cmd_table);
}

static int is_either(const char *word, const char *letter, const char *name)
{
	return !strcmp(word, letter) || !strcmp(word, name);
}

/*
 * Recordings of a run are read one after another, and each needs arrays as large as those before.
 * glibc would return them to the kernel each time, and the kernel would clear them each time: a
 * ninth of the time of a report of 64 processes. Larger arrays are rare and are returned.
 */
enum { KEPT_BYTES = 16 << 20 };

static void keep_memory(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	mallopt(M_TRIM_THRESHOLD, 2 * KEPT_BYTES);
#endif
}

int main(int argc, char **argv)
{
	const struct cmd *cmd;

	keep_memory();
	setlocale(LC_CTYPE, "");
	if (argc < 2) {
		help_overview(stderr, cmd_table);
		return CMD_USAGE;
	}
	if (is_either(argv[1], "-h", "--help")) {
		help_overview(stdout, cmd_table);
		return finish_stdout(CMD_FINE, CMD_USAGE);
	}
	if (is_either(argv[1], "-V", "--version")) {
		version_print(stdout);
		return finish_stdout(CMD_FINE, CMD_USAGE);
	}
	cmd = cmd_find(cmd_table, argv[1]);
	if (!cmd)
		return reject_command(argv[1]);
	return finish_stdout(run_command(cmd, argc - 1, argv + 1), cmd->usage_exit);
}
