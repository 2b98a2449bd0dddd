/* SPDX-License-Identifier: Apache-2.0 */
/* The overview, --help of each command, --version, and the command `help`. */
#include "analysis/cmd/help.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include "analysis/cmd/docs.h"
#include "analysis/cmd/help_causes.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/view/text/flow.h"
#include "interpose/abi/format.h"

enum { HELP_COLUMNS = 80, HELP_INDENT = 30 };

void help_overview(FILE *out)
{
	fputs("cuflight: a flight recorder for GPU and host memory\n\n"
	      "usage: cuflight COMMAND [OPTIONS] [ARGUMENTS]\n\n", out);
	for (size_t i = 0; cmd_table[i]; i++)
		fprintf(out, "  %-8s %s\n", cmd_table[i]->name, cmd_table[i]->summary);
	fputs("\nexample:\n"
	      "  cuflight run -- python3 server.py      record it\n"
	      "  cuflight report                        explain the newest recording here\n\n"
	      "'cuflight help COMMAND' says more.\n", out);
}

static void print_option(FILE *out, const struct opts_row *row)
{
	char spelled[160], text[512], fallback[64];
	int used;
	opts_spell(row, spelled, sizeof spelled);
	used = fprintf(out, "  %s", spelled);
	if (used >= HELP_INDENT - 1)
		used = (fputc('\n', out), 0);
	fprintf(out, "%*s", HELP_INDENT - used, "");
	opts_default(&row->opt, fallback, sizeof fallback);
	snprintf(text, sizeof text, "%s%s%s%s", row->opt.help, *fallback ? " [" : "", fallback, *fallback ? "]" : "");
	flow_text(out, text, HELP_INDENT, HELP_INDENT, HELP_COLUMNS);
}

static void print_examples(FILE *out, const char *examples)
{
	fputs("\nExamples:\n", out);
	while (*examples) {
		int command = (int)strcspn(examples, "\t"), what = (int)strcspn(examples + command + 1, "\n");
		fprintf(out, "  %.*s\n      %.*s\n", command, examples, what, examples + command + 1);
		examples += command + what + 2;
	}
}

void help_command(FILE *out, const struct cmd *cmd)
{
	struct opts opts;
	const struct opt_group *group = NULL;
	opts_init(&opts, cmd->groups);
	fprintf(out, "usage: cuflight %s %s\n\n", cmd->name, cmd->usage);
	flow_text(out, cmd->about, 0, 0, HELP_COLUMNS);
	for (size_t i = 0; i < opts.count; i++) {
		if (opts.rows[i].group != group)
			fprintf(out, "\n%s:\n", opts.rows[i].group->title);
		group = opts.rows[i].group;
		print_option(out, &opts.rows[i]);
	}
	print_examples(out, cmd->examples);
	fprintf(out, "\nMore: man cuflight%s%s\n", cmd == &cmd_help ? "" : "-", cmd == &cmd_help ? "" : cmd->name);
}

/* Writes our own build-id; 1 stops dl_iterate_phdr at the first object, the executable. */
static int print_build_id(struct dl_phdr_info *info, size_t size, void *out)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const char *note = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
		const char *end = note + info->dlpi_phdr[i].p_memsz;
		if (info->dlpi_phdr[i].p_type != PT_NOTE)
			continue;
		while (end - note >= (long)sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *head = (const ElfW(Nhdr) *)note;
			const unsigned char *id = (const unsigned char *)(head + 1) + ((head->n_namesz + 3) & ~3u);
			if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4) {
				fputs(", build ", out);
				for (unsigned b = 0; b < head->n_descsz; b++)
					fprintf(out, "%02x", id[b]);
				return 1;
			}
			note = (const char *)id + ((head->n_descsz + 3) & ~3u);
		}
	}
	return 1;
}

void help_version(FILE *out)
{
	fprintf(out, "cuflight %s (recording format %u", CUFLIGHT_VERSION, CUF_VERSION);
	dl_iterate_phdr(print_build_id, out);
	fputs(")\n", out);
}

static const struct opt own[] = {
	{ "as", 0, OPT_CHOICE, "text|mdoc|bash|markdown", 0, 0, "text",
	  "form: text; OPTIONS of a man page; the bash completion; the table of commands in README" },
};
static const struct opt_group own_group = { "Options", own, sizeof own / sizeof *own, { NULL } };

static int run_help(const struct opts *opts)
{
	static void (*const forms[])(FILE *, const struct cmd *) = { help_command, docs_mdoc, docs_bash, docs_markdown };
	const char *name = opts->operand_count ? opts->operands[0] : NULL;
	const struct cmd *cmd = name ? cmd_find(name) : NULL;
	uint64_t form = opts_number(opts, "as", 0);
	if (opts->operand_count > 1) {
		say_error("help takes one command or one cause; '%s' is too many", opts->operands[1]);
		return CMD_USAGE;
	}
	if (name && !cmd && !form && help_causes(stdout, name))
		return CMD_FINE;
	if (name && !cmd && form == 1 && !strcmp(name, "causes")) {
		help_causes_mdoc(stdout);
		return CMD_FINE;
	}
	if (name && !cmd) {
		const char *near = cmd_nearest(name);
		say_error("no command or cause '%s'%s%s%s; 'cuflight help' lists them, 'cuflight help causes' the causes", name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
		return CMD_USAGE;
	}
	if (!cmd && form == 1) {
		say_error("--as=mdoc needs a command");
		return CMD_USAGE;
	}
	if (!cmd && !form)
		help_overview(stdout);
	else
		forms[form](stdout, cmd);
	return CMD_FINE;
}

const struct cmd cmd_help = {
	.name = "help",
	.summary = "say more about a command, or about a cause",
	.usage = "[OPTIONS] [COMMAND | CAUSE]",
	.about = "Prints the help of a command, as COMMAND --help does; without one, the list of commands. Of a cause that a report names "
		 "(S6, S6.F1), it prints the rule, its thresholds and where they come from; 'causes' lists them. With --as the same tables come "
		 "out in the forms that the man pages, the shell and README take.",
	.examples = "cuflight help report\tthe options of report\n"
		    "cuflight help S6\twhat a report calls fragmentation, and when\n",
	.groups = { &own_group, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_help,
};
