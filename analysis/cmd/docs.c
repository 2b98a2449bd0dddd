/* SPDX-License-Identifier: Apache-2.0 */
/* mdoc, bash and Markdown out of the command tables. */
#include "analysis/cmd/docs.h"

#include <ctype.h>
#include <string.h>
#include "analysis/view/text/flow.h"

enum { MDOC_COLUMNS = 80 };

/* "A sentence." for a text that our tables keep without capital and full stop; short lines, as mdoc wants. */
static void mdoc_sentence(FILE *out, const char *before, const char *text)
{
	char sentence[512];
	size_t used = (size_t)snprintf(sentence, sizeof sentence, "%s", before);
	for (const char *c = text; *c && used + 4 < sizeof sentence; c++) {
		if (*c == '-' || *c == '\\')
			sentence[used++] = '\\';
		sentence[used++] = *c == '\\' ? 'e' : *c;
	}
	memcpy(sentence + used, ".", 2);
	sentence[0] = (char)toupper((unsigned char)sentence[0]);
	flow_text(out, sentence, 0, 0, MDOC_COLUMNS);
}

static void mdoc_choices(FILE *out, const char *words)
{
	fputs(" Cm ", out);
	for (; *words; words++)
		fprintf(out, *words == '|' ? " | " : "%c", *words);
}

static void mdoc_spelled(FILE *out, const struct opts_row *row)
{
	fputs(".It", out);
	if (row->opt.letter)
		fprintf(out, " Fl %c ,", row->opt.letter);
	fprintf(out, " Fl \\-%s", row->name);
	if (row->opt.type == OPT_SWITCH)
		fputs(" Ns Op Ns = Ns Cm 0 | 1", out);
	else if (row->opt.type == OPT_CHOICE) {
		fputs(" Ns = Ns", out);
		mdoc_choices(out, row->opt.value);
	} else if (row->opt.value)
		fprintf(out, " Ns = Ns Ar %s", row->opt.value);
	fputc('\n', out);
}

void docs_mdoc(FILE *out, const struct cmd *cmd)
{
	struct opts opts;
	char text[64];
	opts_init(&opts, cmd->groups);
	fputs(".Bl -tag -width Ds\n", out);
	for (size_t i = 0; i < opts.count; i++) {
		mdoc_spelled(out, &opts.rows[i]);
		mdoc_sentence(out, "", opts.rows[i].opt.help);
		opts_default(&opts.rows[i].opt, text, sizeof text);
		if (*text)
			mdoc_sentence(out, "Default: ", text);
	}
	fputs(".El\n", out);
}

static void bash_options(FILE *out, const struct cmd *cmd)
{
	struct opts opts;
	opts_init(&opts, cmd->groups);
	fprintf(out, "\t\t%s) options='", cmd->name);
	for (size_t i = 0; i < opts.count; i++)
		fprintf(out, "%s--%s%s", i ? " " : "", opts.rows[i].name,
			opts.rows[i].opt.type == OPT_FLAG || opts.rows[i].opt.type == OPT_SWITCH ? "" : "=");
	fputs("' ;;\n", out);
}

/* The choices of every option that has some; options of one name have the same ones in all commands. */
static void bash_choices(FILE *out)
{
	char seen[512] = " ", key[40];
	for (size_t c = 0; cmd_table[c]; c++) {
		struct opts opts;
		opts_init(&opts, cmd_table[c]->groups);
		for (size_t i = 0; i < opts.count; i++) {
			const struct opt *opt = &opts.rows[i].opt;
			snprintf(key, sizeof key, " %s ", opts.rows[i].name);
			if (opt->type != OPT_CHOICE || strstr(seen, key))
				continue;
			strncat(seen, key + 1, sizeof seen - strlen(seen) - 1);
			fprintf(out, "\t\t--%s) choices='", opts.rows[i].name);
			for (const char *p = opt->value; *p; p++)
				fputc(*p == '|' ? ' ' : *p, out);
			fputs("' ;;\n", out);
		}
	}
}

void docs_bash(FILE *out, const struct cmd *cmd)
{
	fputs("# SPDX-License-Identifier: Apache-2.0\n"
	      "# bash completion of cuflight. Made by scripts/gen-docs out of the command tables; change those.\n"
	      "_cuflight() {\n"
	      "\tlocal commands options choices='' word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\tcommands='", out);
	for (size_t i = 0; cmd_table[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", cmd_table[i]->name);
	fputs("'\n\tif ((COMP_CWORD == 1)); then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$commands --help --version\" -- \"$word\")\n"
	      "\t\treturn\n\tfi\n"
	      "\tcase ${COMP_WORDS[1]} in\n", out);
	for (size_t i = 0; cmd_table[i]; i++)
		bash_options(out, cmd_table[i]);
	fputs("\t\t*) return ;;\n\tesac\n"
	      "\t# readline splits --name=value at the '='\n"
	      "\tif [[ $word == '=' ]]; then word=''; elif [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
	      "\tcase $before in\n", out);
	bash_choices(out);
	fputs("\tesac\n"
	      "\tif [[ -n $choices ]]; then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$word\")\n"
	      "\telif [[ $word == -* ]]; then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
	      "\t\t[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace\n"
	      "\telif [[ ${COMP_WORDS[1]} == help ]]; then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$word\")\n"
	      "\tfi\n"
	      "}\n"
	      "complete -o default -F _cuflight cuflight\n", out);
}

static void markdown_cell(FILE *out, const char *text)
{
	for (; *text; text++)
		fprintf(out, *text == '|' ? "\\|" : "%c", *text);
}

static void markdown_options(FILE *out, const struct cmd *cmd)
{
	struct opts opts;
	char spelled[160], text[64];
	opts_init(&opts, cmd->groups);
	fputs("| option | default | |\n|---|---|---|\n", out);
	for (size_t i = 0; i < opts.count; i++) {
		opts_spell(&opts.rows[i], spelled, sizeof spelled);
		fputs("| `", out);
		markdown_cell(out, spelled + strspn(spelled, " "));
		opts_default(&opts.rows[i].opt, text, sizeof text);
		fprintf(out, "` | %s | ", text);
		markdown_cell(out, opts.rows[i].opt.help);
		fputs(" |\n", out);
	}
}

void docs_markdown(FILE *out, const struct cmd *cmd)
{
	if (cmd) {
		markdown_options(out, cmd);
		return;
	}
	fputs("| command | |\n|---|---|\n", out);
	for (size_t i = 0; cmd_table[i]; i++) {
		fprintf(out, "| `cuflight %s ", cmd_table[i]->name);
		markdown_cell(out, cmd_table[i]->usage);
		fprintf(out, "` | %s |\n", cmd_table[i]->summary);
	}
}
