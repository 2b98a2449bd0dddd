/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight env`: the variables that run would set, as lines for a shell, a Dockerfile, a pod or a service. */
#include "analysis/cmd/cmd.h"

#include <json-c/json.h>
#include <string.h>
#include "analysis/base/paths.h"
#include "analysis/cmd/target/library.h"
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cli/settings.h"

struct lines {
	const char *library;
	const char *recordings; /* NULL: not set */
	const char *options;    /* "" none */
};

/* "export NAME=VALUE", with the value quoted where the shell needs it. */
static void print_export(FILE *out, const char *name, const char *value)
{
	char quoted[8192];

	path_quote_shell(value, quoted, sizeof quoted);
	fprintf(out, "export %s=%s\n", name, quoted);
}

/* For Dockerfile, YAML and unit files: double quotes, with the two characters escaped that all three escape alike. */
static void print_double_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++)
		fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	fputc('"', out);
}

static void print_shell(FILE *out, const struct lines *lines)
{
	fprintf(out, "export LD_PRELOAD=%s\"${LD_PRELOAD:+:$LD_PRELOAD}\"\n", lines->library);
	if (lines->recordings)
		print_export(out, "CUFLIGHT_OUTPUT", lines->recordings);
	if (*lines->options)
		print_export(out, "CUFLIGHT_OPTIONS", lines->options);
}

static void print_docker(FILE *out, const struct lines *lines)
{
	fprintf(out, "# the library must be in the image; a container of the same libc can build it\n"
		"COPY libcuflight.so %s\n"
		"ENV LD_PRELOAD=%s\n", lines->library, lines->library);
	fputs("ENV CUFLIGHT_OUTPUT=", out);
	print_double_quoted(out, lines->recordings ? lines->recordings : "/recordings/");
	if (*lines->options) {
		fputs("\nENV CUFLIGHT_OPTIONS=", out);
		print_double_quoted(out, lines->options);
	}
	fprintf(out, "\nVOLUME %s\n", lines->recordings ? lines->recordings : "/recordings");
}

static void print_pod_variable(FILE *out, const char *name, const char *value)
{
	fprintf(out, "    - name: %s\n      value: ", name);
	print_double_quoted(out, value);
	fputc('\n', out);
}

static void print_k8s(FILE *out, const struct lines *lines)
{
	const char *recordings = lines->recordings ? lines->recordings : "/recordings/";
	char options[4096];
	snprintf(options, sizeof options, "%s%stermination_log=/dev/termination-log", lines->options, *lines->options ? ":" : "");
	fputs("# merge into the pod's spec; the verdict of a fatal failure shows in kubectl describe\n"
	      "containers:\n"
	      "- name: server # yours\n"
	      "  env:\n", out);
	print_pod_variable(out, "LD_PRELOAD", lines->library);
	print_pod_variable(out, "CUFLIGHT_OUTPUT", recordings);
	print_pod_variable(out, "CUFLIGHT_OPTIONS", strstr(lines->options, "termination_log=") ? lines->options : options);
	fputs("  volumeMounts:\n"
	      "    - name: cuflight-recordings\n"
	      "      mountPath: ", out);
	print_double_quoted(out, recordings);
	fputs("\nvolumes:\n"
	      "- name: cuflight-recordings\n"
	      "  hostPath: # outlives the pod; an emptyDir outlives the container alone\n"
	      "    path: /var/lib/cuflight\n"
	      "    type: DirectoryOrCreate\n", out);
}

static void print_systemd(FILE *out, const struct lines *lines)
{
	char line[8192];
	fputs("[Service]\nEnvironment=", out);
	snprintf(line, sizeof line, "LD_PRELOAD=%s", lines->library);
	print_double_quoted(out, line);
	fputs("\nEnvironment=", out);
	snprintf(line, sizeof line, "CUFLIGHT_OUTPUT=%s", lines->recordings ? lines->recordings : "/var/lib/cuflight/");
	for (char *p = line; *p; p++)
		fprintf(out, p == line ? "\"%c" : *p == '%' ? "%%%%" : "%c", *p); /* '%' begins a specifier in unit files */
	fputs("\"\n", out);
	if (*lines->options) {
		fputs("Environment=", out);
		snprintf(line, sizeof line, "CUFLIGHT_OPTIONS=%s", lines->options);
		print_double_quoted(out, line);
		fputc('\n', out);
	}
	fputs("# the service may write there\n"
	      "StateDirectory=cuflight\n", out);
}

static void print_json(FILE *out, const struct lines *lines)
{
	struct json_object *top = json_object_new_object();
	json_object_object_add(top, "LD_PRELOAD", json_object_new_string(lines->library));
	json_object_object_add(top, "CUFLIGHT_OUTPUT", lines->recordings ? json_object_new_string(lines->recordings) : NULL);
	json_object_object_add(top, "CUFLIGHT_OPTIONS", *lines->options ? json_object_new_string(lines->options) : NULL);
	fprintf(out, "%s\n", json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(top);
}

static const struct { const char *option; void (*print)(FILE *, const struct lines *); } forms[] = {
	{ "docker", print_docker }, { "k8s", print_k8s }, { "systemd", print_systemd },
};

static int run_env(const struct opts *opts)
{
	struct library library;
	struct output output;
	char options[4096], error[4096];
	struct lines lines = { .recordings = opts_text(opts, "recordings"), .options = options };
	void (*print)(FILE *, const struct lines *) = print_shell;
	if (opts->operand_count) {
		say_error("env takes no argument: '%s'", opts->operands[0]);
		return CMD_USAGE;
	}
	if (settings_compose(opts, NULL, NULL, options, sizeof options, error, sizeof error)) {
		say_error("%s", error);
		return CMD_USAGE;
	}
	/* the library of a container or another machine need not exist here */
	lines.library = opts_text(opts, "library");
	if (!lines.library && library_find(&library, NULL)) {
		say_error("%s", library.why);
		return CMD_USAGE;
	}
	lines.library = lines.library ? lines.library : library.path;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (opts_has(opts, forms[i].option))
			print = forms[i].print;
	if (output_open(&output, opts))
		return CMD_USAGE;
	(output.format == OUTPUT_JSON ? print_json : print)(output.file, &lines);
	return output_close(&output) ? CMD_USAGE : CMD_FINE;
}

static const struct opt own[] = {
	{ "docker", 0, OPT_FLAG, NULL, 0, 0, NULL, "lines for a Dockerfile" },
	{ "k8s", 0, OPT_FLAG, NULL, 0, 0, NULL, "fragment of a pod's spec, with a volume and the termination log" },
	{ "systemd", 0, OPT_FLAG, NULL, 0, 0, NULL, "lines for a service" },
	{ "library", 0, OPT_TEXT, "PATH", 0, 0, NULL, "where libcuflight.so is in that place; need not exist here" },
	{ "recordings", 0, OPT_TEXT, "PATH", 0, 0, NULL, "where recordings are to go; the file may be a pattern, see run -o" },
};
static const struct opt_group own_group = { "Options", own, sizeof own / sizeof *own, { NULL } };

const struct cmd cmd_env = {
	.name = "env",
	.summary = "the lines that switch recording on without run",
	.usage = "[OPTIONS]",
	.about = "Prints the environment variables that make a program record itself, for a shell, a Dockerfile, a Kubernetes pod or a systemd "
		 "service. Nothing is left on disk by programs that use neither CUDA nor much host memory.",
	.examples = "eval \"$(cuflight env)\"\trecord what this shell starts\n"
		    "cuflight env --docker --library=/usr/lib/libcuflight.so\tfor an image\n"
		    "cuflight env --k8s --library=/usr/lib/libcuflight.so\tfor a pod\n",
	.groups = { &own_group, &settings_printed, &opts_result, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_env,
};
