/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight env`: the variables that run sets, for a shell, a Dockerfile, a pod or a service. */
#include "analysis/cmd/cmd.h"

#include <json-c/json.h>
#include <string.h>
#include "analysis/base/paths.h"
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cli/settings.h"
#include "analysis/cmd/target/library.h"

enum { LINE_BYTES = 8192 };

/* The values of LD_PRELOAD, CUFLIGHT_OUTPUT and CUFLIGHT_OPTIONS, as the command line has them. */
struct lines {
	const char *library;
	const char *recordings; /* NULL: not set */
	const char *options;    /* "": none */
	const char *init;       /* an image with the command, or NULL */
};

/* A service or a container needs a directory, so its formats have a default. */
static const char *recordings_or(const struct lines *lines, const char *fallback)
{
	return lines->recordings ? lines->recordings : fallback;
}

/* ---- a shell ---- */

/* "export NAME=VALUE", with the value quoted where the shell needs it. */
static void print_export(FILE *out, const char *name, const char *value)
{
	char quoted[LINE_BYTES];

	path_quote_shell(value, quoted, sizeof quoted);
	fprintf(out, "export %s=%s\n", name, quoted);
}

/* Keeps an LD_PRELOAD that the shell already has. The value is expanded by the shell that reads the
 * line, not here. */
static void print_shell(FILE *out, const struct lines *lines)
{
	char quoted[LINE_BYTES];

	path_quote_shell(lines->library, quoted, sizeof quoted);
	fprintf(out, "export LD_PRELOAD=%s\"${LD_PRELOAD:+:$LD_PRELOAD}\"\n", quoted);
	if (lines->recordings)
		print_export(out, "CUFLIGHT_OUTPUT", lines->recordings);
	if (*lines->options)
		print_export(out, "CUFLIGHT_OPTIONS", lines->options);
}

/* ---- Dockerfile, YAML and unit files ---- */

/* In double quotes. All three formats escape these two characters with a backslash. */
static void print_double_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

/* The lines that copy the library into an image: to each folder that $LIB may stand for. */
static void print_copies(FILE *out, const char *before, const char *library)
{
	const char *place = strstr(library, "$LIB");

	if (!place)
		fprintf(out, "%sCOPY libcuflight.so %s\n", before, library);
	for (size_t i = 0; place && library_folders[i]; i++)
		fprintf(out, "%sCOPY libcuflight.so %.*s%s%s\n", before, (int)(place - library),
			library, library_folders[i], place + strlen("$LIB"));
}

/* A Dockerfile puts variables of its own in for a '$'. */
static void print_escaped(FILE *out, const char *text)
{
	for (; *text; text++)
		fprintf(out, *text == '$' ? "\\%c" : "%c", *text);
}

/* COPY takes the library from the build context; VOLUME keeps recordings after the container. The
 * path of the library in the build context is the user's matter. */
static void print_docker(FILE *out, const struct lines *lines)
{
	const char *recordings = recordings_or(lines, "/recordings/");

	fputs("# the library must be in the image\n", out);
	print_copies(out, "", lines->library);
	fputs("ENV LD_PRELOAD=", out);
	print_escaped(out, lines->library);
	fputs("\nENV CUFLIGHT_OUTPUT=", out);
	print_double_quoted(out, recordings);
	if (*lines->options) {
		fputs("\nENV CUFLIGHT_OPTIONS=", out);
		print_double_quoted(out, lines->options);
	}
	fprintf(out, "\nVOLUME %s\n", recordings_or(lines, "/recordings"));
}

/* One element of the list `env` of a container. */
static void print_pod_variable(FILE *out, const char *name, const char *value)
{
	fprintf(out, "    - name: %s\n      value: ", name);
	print_double_quoted(out, value);
	fputc('\n', out);
}

/* The image of a shipped command copies itself into a volume of the pod: the folder above $LIB in
 * the library's path. */
static void print_init(FILE *out, const struct lines *lines, const char *folder)
{
	fputs("initContainers:\n- name: cuflight\n  image: ", out);
	print_double_quoted(out, lines->init);
	fputs("\n  command: [\"/bin/cuflight\", \"install\", ", out);
	print_double_quoted(out, folder);
	fputs("]\n  volumeMounts:\n    - name: cuflight\n      mountPath: ", out);
	print_double_quoted(out, folder);
	fputc('\n', out);
}

/*
 * A fragment of a pod's spec. The termination log makes kubectl describe show the summary of a
 * request that was refused. The kernel's OOM killer leaves no time to write one.
 */
static void print_k8s(FILE *out, const struct lines *lines)
{
	const char *recordings = recordings_or(lines, "/recordings/");
	char options[LINE_BYTES], folder[LINE_BYTES];

	if (strstr(lines->options, "termination_log="))
		snprintf(options, sizeof options, "%s", lines->options);
	else
		snprintf(options, sizeof options, "%s%stermination_log=/dev/termination-log",
			 lines->options, *lines->options ? ":" : "");
	snprintf(folder, sizeof folder, "%s", lines->library);
	if (lines->init)
		*strstr(folder, "/$LIB/") = 0;
	if (lines->init) {
		fputs("# Merge into the pod's spec.\n", out);
		print_init(out, lines, folder);
	} else {
		fputs("# Merge into the pod's spec. The image must have the library; nothing here "
		      "puts it there:\n", out);
		print_copies(out, "# ", lines->library);
	}
	fputs("# After a refused request, kubectl describe shows why memory ran out. After a "
	      "kill by the\n"
	      "# kernel (OOMKilled) it cannot: run 'cuflight report' on the recordings.\n"
	      "containers:\n"
	      "- name: server # yours\n"
	      "  env:\n", out);
	print_pod_variable(out, "LD_PRELOAD", lines->library);
	print_pod_variable(out, "CUFLIGHT_OUTPUT", recordings);
	print_pod_variable(out, "CUFLIGHT_OPTIONS", options);
	fputs("  volumeMounts:\n"
	      "    - name: cuflight-recordings\n"
	      "      mountPath: ", out);
	print_double_quoted(out, recordings);
	if (lines->init) {
		fputs("\n    - name: cuflight\n      mountPath: ", out);
		print_double_quoted(out, folder);
	}
	fputs("\nvolumes:\n", out);
	if (lines->init)
		fputs("- name: cuflight\n  emptyDir: {}\n", out);
	fputs("- name: cuflight-recordings\n"
	      "  hostPath: # survives the pod; an emptyDir survives only the container\n"
	      "    path: /var/lib/cuflight\n"
	      "    type: DirectoryOrCreate\n", out);
}

/* Environment="NAME=VALUE"; '%' begins a specifier in unit files and is doubled. */
static void print_unit_variable(FILE *out, const char *name, const char *value)
{
	char line[LINE_BYTES];
	size_t used = (size_t)snprintf(line, sizeof line, "%s=", name);

	for (; *value && used + 2 < sizeof line; value++) {
		if (*value == '%')
			line[used++] = '%';
		line[used++] = *value;
	}
	line[used] = 0;
	fputs("Environment=", out);
	print_double_quoted(out, line);
	fputc('\n', out);
}

/* StateDirectory= needs a path below /var/lib, which is why that is the default. */
static void print_systemd(FILE *out, const struct lines *lines)
{
	const char *recordings = recordings_or(lines, "/var/lib/cuflight/");

	fputs("[Service]\n", out);
	print_unit_variable(out, "LD_PRELOAD", lines->library);
	print_unit_variable(out, "CUFLIGHT_OUTPUT", recordings);
	if (*lines->options)
		print_unit_variable(out, "CUFLIGHT_OPTIONS", lines->options);
	fputs("# creates /var/lib/cuflight for the service's user\n"
	      "StateDirectory=cuflight\n", out);
}

/* ---- programs ---- */

/* The same values for a program. What is not set is null. */
static void print_json(FILE *out, const struct lines *lines)
{
	struct json_object *top = json_object_new_object();
	struct json_object *recordings = NULL, *options = NULL;

	if (lines->recordings)
		recordings = json_object_new_string(lines->recordings);
	if (*lines->options)
		options = json_object_new_string(lines->options);
	json_object_object_add(top, "LD_PRELOAD", json_object_new_string(lines->library));
	json_object_object_add(top, "CUFLIGHT_OUTPUT", recordings);
	json_object_object_add(top, "CUFLIGHT_OPTIONS", options);
	fprintf(out, "%s\n",
		json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY |
						    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(top);
}

/* ---- the command ---- */

typedef void print_lines(FILE *out, const struct lines *lines);

/* The first format whose option is given; without one, a shell's. */
static print_lines *chosen_form(const struct opts *opts)
{
	static const struct {
		const char *option;
		print_lines *print;
	} forms[] = {
		{ "docker", print_docker }, { "k8s", print_k8s }, { "systemd", print_systemd },
	};

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (opts_has(opts, forms[i].option))
			return forms[i].print;
	return print_shell;
}

/* Prints lines only. Nothing is created, and the library is looked for only without --library. */
static int run_env(const struct opts *opts, const struct cmd *const *commands)
{
	struct library library;
	struct output output;
	char options[4096], error[4096], any[PATH_MAX + 64];
	struct lines lines = { .recordings = opts_text(opts, "recordings"), .options = options,
			       .init = opts_text(opts, "init") };

	if (opts->operand_count) {
		say_error("env takes no argument: '%s'", opts->operands[0]);
		return CMD_USAGE;
	}
	if (settings_compose(opts, NULL, NULL, options, sizeof options, error, sizeof error)) {
		say_error("%s", error);
		return CMD_USAGE;
	}
	if (lines.init && !opts_has(opts, "k8s")) {
		say_error("--init=IMAGE goes with --k8s");
		return CMD_USAGE;
	}
	/* the library of a container or of another machine need not exist here */
	lines.library = opts_text(opts, "library");
	if (lines.init && !lines.library)
		lines.library = "/opt/cuflight/$LIB/libcuflight.so";
	if (lines.init && !strstr(lines.library, "/$LIB/")) {
		say_error("--init=IMAGE needs a library below $LIB, as "
			  "--library='/opt/cuflight/$LIB/libcuflight.so'");
		return CMD_USAGE;
	}
	if (!lines.library) {
		if (library_find(&library, NULL)) {
			say_error("%s", library.why);
			return CMD_USAGE;
		}
		library_path_for_any(&library, any, sizeof any);
		lines.library = any;
	}
	if (output_open(&output, opts))
		return CMD_USAGE;
	if (output.format == OUTPUT_JSON)
		print_json(output.file, &lines);
	else
		chosen_form(opts)(output.file, &lines);
	return output_close(&output) ? CMD_USAGE : CMD_FINE;
}

static const struct opt env_options[] = {
	{ "docker", 0, OPT_FLAG, NULL, 0, 0, NULL, "lines for a Dockerfile" },
	{ "k8s", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "part of a pod's spec, with a volume and the termination log" },
	{ "systemd", 0, OPT_FLAG, NULL, 0, 0, NULL, "lines for a unit file" },
	{ "init", 0, OPT_TEXT, "IMAGE", 0, 0, NULL,
	  "with --k8s: an init container, whose image has the command, puts the library there" },
	{ "library", 0, OPT_TEXT, "PATH", 0, 0, NULL,
	  "path of libcuflight.so in that place; it need not exist here" },
	{ "recordings", 0, OPT_TEXT, "PATH", 0, 0, NULL,
	  "where recordings will be written; may be a pattern, see run -o" },
};
static const struct opt_group option_group = {
	"Options", env_options, sizeof env_options / sizeof *env_options, { NULL },
};

const struct cmd cmd_env = {
	.name = "env",
	.summary = "print the lines that enable recording without run",
	.usage = "[OPTIONS]",
	.manual = "cuflight-env",
	.about = "Prints the environment variables that make a program record itself, for a shell, "
		 "a Dockerfile, a Kubernetes pod or a systemd service. Programs that use neither "
		 "CUDA nor much host memory leave no file.",
	.examples = "eval \"$(cuflight env)\"\trecord what this shell starts\n"
		    "cuflight env --docker --library='/opt/cuflight/$LIB/libcuflight.so'"
		    "\tfor an image\n"
		    "cuflight env --k8s --library='/opt/cuflight/$LIB/libcuflight.so'"
		    "\tfor a pod\n",
	.groups = { &option_group, &settings_printed, &opts_result, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_env,
};
