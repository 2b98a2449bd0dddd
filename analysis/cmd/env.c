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
#include "analysis/view/live/manifests.h"

enum { LINE_BYTES = 8192 };

/* The values of LD_PRELOAD, CUFLIGHT_OUTPUT and CUFLIGHT_OPTIONS, as the command line has them. */
struct env_lines {
	const char *library;
	const char *recordings; /* NULL: not set */
	const char *options;    /* "": none */
	const char *image;      /* of Kubernetes: it has the command */
	uint64_t form;          /* of Kubernetes: a row of print_k8s */
};

/* A service or a container needs a directory, so its formats have a default. */
static const char *recordings_or(const struct env_lines *lines, const char *fallback)
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
static void print_shell(FILE *out, const struct env_lines *lines)
{
	char quoted[LINE_BYTES];

	path_quote_shell(lines->library, quoted, sizeof quoted);
	fprintf(out, "export LD_PRELOAD=%s\"${LD_PRELOAD:+:$LD_PRELOAD}\"\n", quoted);
	if (lines->recordings)
		print_export(out, "CUFLIGHT_OUTPUT", lines->recordings);
	if (*lines->options)
		print_export(out, "CUFLIGHT_OPTIONS", lines->options);
}

/* ---- Dockerfile and unit files ---- */

/* In double quotes. Both formats escape these two characters with a backslash. */
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
static void print_docker(FILE *out, const struct env_lines *lines)
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

/* ---- Kubernetes ---- */

static bool has_setting(const char *options, const char *name)
{
	size_t bytes = strlen(name);

	for (const char *at = options; *at; at += strcspn(at, ":"), at += *at == ':')
		if (!strncmp(at, name, bytes) && at[bytes] == '=')
			return true;
	return false;
}

/* A setting that the command line does not have. */
static void add_setting(char *options, size_t bytes, const char *name, const char *value)
{
	size_t used = strlen(options);

	if (!has_setting(options, name))
		snprintf(options + used, bytes - used, "%s%s=%s", used ? ":" : "", name, value);
}

/*
 * The termination log makes kubectl describe show the summary of a request that was refused. The
 * kernel's OOM killer leaves no time to write one: the manifests have who reports afterwards.
 */
static void print_k8s(FILE *out, const struct env_lines *lines)
{
	static void (*const forms[])(FILE *out, const struct manifest *manifest) = {
		manifest_sidecar, manifest_daemonset, manifest_init,
	};
	char options[LINE_BYTES], folder[LINE_BYTES];
	struct manifest manifest = { .image = lines->image, .library = lines->library,
				     .recordings = recordings_or(lines, "/recordings/"),
				     .folder = folder, .options = options };

	snprintf(folder, sizeof folder, "%s", lines->library);
	*strstr(folder, "/$LIB/") = 0;
	snprintf(options, sizeof options, "%s", lines->options);
	add_setting(options, sizeof options, "mode", "0640");
	add_setting(options, sizeof options, "termination_log", "/dev/termination-log");
	forms[lines->form](out, &manifest);
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
static void print_systemd(FILE *out, const struct env_lines *lines)
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
static void print_json(FILE *out, const struct env_lines *lines)
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

typedef void print_lines(FILE *out, const struct env_lines *lines);

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

/* The library of a container or of another machine need not exist here. 0, or a status. */
static int find_library(const struct opts *opts, struct env_lines *lines, char *any, size_t bytes)
{
	struct library library;

	lines->library = opts_text(opts, "library");
	if (!lines->library && opts_has(opts, "k8s"))
		lines->library = "/opt/cuflight/$LIB/libcuflight.so";
	if (lines->library)
		return CMD_FINE;
	if (library_find(&library, NULL)) {
		say_error("%s", library.why);
		return CMD_USAGE;
	}
	library_path_for_any(&library, any, bytes);
	lines->library = any;
	return CMD_FINE;
}

/* What the manifests need: the image installs itself in the folder above $LIB, and a volume is
 * mounted where recordings go. */
static int check_k8s(const struct opts *opts, const struct env_lines *lines)
{
	if (!opts_has(opts, "k8s") && opts_has(opts, "image")) {
		say_error("--image=IMAGE goes with --k8s");
		return CMD_USAGE;
	}
	if (!opts_has(opts, "k8s"))
		return CMD_FINE;
	if (*lines->library != '/' || !strstr(lines->library + 1, "/$LIB/")) {
		say_error("--k8s needs a library below $LIB, as "
			  "--library='/opt/cuflight/$LIB/libcuflight.so'");
		return CMD_USAGE;
	}
	if (lines->recordings && (*lines->recordings != '/' || strchr(lines->recordings, '%') ||
				  lines->recordings[strlen(lines->recordings) - 1] != '/')) {
		say_error("--k8s needs a directory for recordings, as --recordings=/recordings/");
		return CMD_USAGE;
	}
	return CMD_FINE;
}

/* Prints lines only. Nothing is created, and the library is looked for only without --library. */
static int run_env(const struct opts *opts, const struct cmd *const *commands)
{
	struct output output;
	char options[4096], error[4096], any[PATH_MAX + 64];
	struct env_lines lines = { .recordings = opts_text(opts, "recordings"), .options = options,
				   .image = opts_text(opts, "image"),
				   .form = opts_number(opts, "k8s", 0) };

	if (opts->operand_count) {
		say_error("env takes no argument: '%s'", opts->operands[0]);
		return CMD_USAGE;
	}
	if (settings_compose(opts, NULL, NULL, options, sizeof options, error, sizeof error)) {
		say_error("%s", error);
		return CMD_USAGE;
	}
	if (!lines.image)
		lines.image = "cuflight:" CUFLIGHT_VERSION;
	if (find_library(opts, &lines, any, sizeof any) || check_k8s(opts, &lines))
		return CMD_USAGE;
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
	{ "k8s", 0, OPT_CHOICE, "sidecar|daemonset|init", 0, 0, NULL,
	  "manifests of Kubernetes: who serves what is recorded is a sidecar of each pod, or one "
	  "for each node; init: nobody, but the next pod reports why the last one ended" },
	{ "systemd", 0, OPT_FLAG, NULL, 0, 0, NULL, "lines for a unit file" },
	{ "image", 0, OPT_TEXT, "IMAGE", 0, 0, NULL,
	  "with --k8s: the image that has the command and brings the library; without it, "
	  "cuflight with this version as its tag" },
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
		 "a Dockerfile or a systemd service; or manifests of Kubernetes, with the library, "
		 "volumes, who serves the recordings, and alert rules. Programs that use neither "
		 "CUDA nor much host memory leave no file.",
	.examples = "eval \"$(cuflight env)\"\trecord what this shell starts\n"
		    "cuflight env --docker --library='/opt/cuflight/$LIB/libcuflight.so'"
		    "\tfor an image\n"
		    "cuflight env --k8s=sidecar --image=IMAGE >pod.yaml\tfor a pod\n",
	.groups = { &option_group, &settings_printed, &opts_result, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_env,
};
