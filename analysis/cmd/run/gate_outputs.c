/* SPDX-License-Identifier: Apache-2.0 */
/* Options, files of rules, and documents of a gate. */
#include "analysis/cmd/run/gate_outputs.h"

#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/gate/suppress.h"
#include "analysis/view/commands/gate_writers.h"

enum { SENTENCE_BYTES = 1024, DATE_BYTES = 16 };

/* ---- documents ---- */

static void say_formats(const char *typed)
{
	char names[200] = "";

	for (const struct gate_writer *writer = gate_writers; writer->name; writer++) {
		size_t used = strlen(names);
		snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", writer->name);
	}
	say_error("invalid value '%s' for --write: expected FORMAT:FILE with a format of %s", typed,
		  names);
}

/* "junit:report.xml": the writer, and the file in *path. NULL after an error. */
static const struct gate_writer *writer_of(const char *typed, const char **path)
{
	const char *colon = strchr(typed, ':');
	const struct gate_writer *writer = NULL;

	if (colon && colon[1])
		writer = gate_writer_find(typed, (size_t)(colon - typed));
	if (!writer)
		say_formats(typed);
	else
		*path = colon + 1;
	return writer;
}

static int check_writers(const struct opts *opts)
{
	size_t count;
	const char *const *list = opts_list(opts, "write", &count), *path;

	for (size_t i = 0; i < count; i++)
		if (!writer_of(list[i], &path))
			return -1;
	return 0;
}

static int write_documents(const struct gate_outputs *outputs, const struct gate_result *result)
{
	size_t count;
	const char *const *list = opts_list(outputs->opts, "write", &count);
	char root[PATH_MAX];
	struct gate_document document = { result, root };

	if (!getcwd(root, sizeof root))
		*root = 0;
	for (size_t i = 0; i < count; i++) {
		struct output output;
		const char *path;
		const struct gate_writer *writer = writer_of(list[i], &path);
		if (!writer || output_open_file(&output, path))
			return -1;
		writer->write(&document, output.file);
		if (output_close(&output))
			return -1;
	}
	return 0;
}

/* ---- rules ---- */

static void today(char *out, size_t bytes)
{
	time_t now = time(NULL);
	struct tm date;

	*out = 0;
	if (localtime_r(&now, &date))
		strftime(out, bytes, "%Y-%m-%d", &date);
}

struct suppressions *gate_rules_open(const struct opts *opts)
{
	char date[DATE_BYTES], error[SENTENCE_BYTES];
	size_t count;
	const char *const *files = opts_list(opts, "suppressions", &count);
	struct suppressions *rules;

	today(date, sizeof date);
	rules = suppressions_new(date, !opts_has(opts, "no-default-suppressions"));
	for (size_t i = 0; i < count; i++) {
		if (!suppressions_read(rules, files[i], error, sizeof error))
			continue;
		say_error("%s", error);
		suppressions_free(rules);
		return NULL;
	}
	return rules;
}

int gate_outputs_open(struct gate_outputs *outputs, const struct opts *opts)
{
	*outputs = (struct gate_outputs){ .opts = opts };
	if (check_writers(opts))
		return -1;
	outputs->suppressions = gate_rules_open(opts);
	return outputs->suppressions ? 0 : -1;
}

static int write_rules(const struct gate_outputs *outputs, const struct gate_result *result)
{
	const char *path = opts_text(outputs->opts, "gen-suppressions");
	struct output output;

	if (!path)
		return 0;
	if (output_open_file(&output, path))
		return -1;
	suppressions_generate(result, output.file);
	return output_close(&output);
}

int gate_outputs_write(const struct gate_outputs *outputs, const struct gate_result *result)
{
	if (write_documents(outputs, result) || write_rules(outputs, result))
		return -1;
	if (!opts_has(outputs->opts, "quiet"))
		suppressions_print_stale(outputs->suppressions, "cuflight: ", stderr);
	return 0;
}

void gate_outputs_close(struct gate_outputs *outputs)
{
	suppressions_free(outputs->suppressions);
	*outputs = (struct gate_outputs){ 0 };
}

static const struct opt options[] = {
	{ "write", 'w', OPT_LIST, "FORMAT:FILE", 0, 0, NULL,
	  "also write the result as junit, sarif, md (Markdown) or github (annotations); "
	  "- is stdout; may be given several times" },
	{ "suppressions", 0, OPT_LIST, "FILE", 0, 0, NULL,
	  "do not count call sites that the rules of this file match, which LeakSanitizer and "
	  "heaptrack read, too; may be given several times" },
	{ "no-default-suppressions", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "also count what drivers, NCCL, cuBLAS and interpreters keep once" },
	{ "gen-suppressions", 0, OPT_TEXT, "FILE", 0, 0, NULL,
	  "write rules for all call sites of exceeded limits; - is stdout" },
};
const struct opt_group opts_gate = {
	"Suppressions and documents", options, sizeof options / sizeof *options, { NULL },
};
