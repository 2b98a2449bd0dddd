/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the command to be recorded: will the loader take a preloaded library into it? */
#include "analysis/cmd/doctor/checks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/paths.h"

/* Fills *result when nothing can be said of the file; the other checks then have nothing to add. */
static bool unknown_target(const struct check_context *context, struct check_result *result)
{
	if (!context->target.error && context->target.is_elf)
		return false;
	check_say(result, CHECK_INFO, "not known: see 'command'");
	return true;
}

static void look_command(const struct check_context *context, struct check_result *result)
{
	const struct target *t = &context->target;
	if (t->error) {
		check_say(result, CHECK_PROBLEM, "%s: %s", t->scripts ? t->executed : context->command,
			  t->error == ENOENT ? "not found" : t->error == EACCES ? "not an executable file" : strerror(t->error));
		check_todo(result, t->scripts ? "the script's first line names an interpreter that is not here" : "give the command as you would to the shell, or its full path");
	} else if (!t->is_elf) {
		check_say(result, CHECK_INFO, "%s is neither a program nor a script with a first line; the shell will read it", t->path);
	} else if (t->scripts) {
		check_say(result, CHECK_FINE, "%s, a script run by %s", t->path, t->executed);
	} else {
		check_say(result, CHECK_FINE, "%s", t->path);
	}
}

static void look_static(const struct check_context *context, struct check_result *result)
{
	if (unknown_target(context, result))
		return;
	if (!context->target.is_static) {
		check_say(result, CHECK_FINE, "dynamically linked");
		return;
	}
	check_say(result, CHECK_PROBLEM, "%s is statically linked: it loads no library, so none can be preloaded", context->target.executed);
	check_todo(result, "link it dynamically against libc (Go: CGO_ENABLED=1, -linkmode=external; Rust: the gnu target)");
}

static void look_privileges(const struct check_context *context, struct check_result *result)
{
	const struct target *t = &context->target;
	const char *what = t->gains_user ? "setuid" : t->gains_group ? "setgid" : t->gains_capabilities ? "given file capabilities" : NULL;
	if (unknown_target(context, result))
		return;
	if (!what) {
		check_say(result, CHECK_FINE, "gains none by being executed");
		return;
	}
	check_say(result, CHECK_PROBLEM, "%s is %s: the loader ignores LD_PRELOAD then", t->executed, what);
	check_todo(result, "run it as its own user, or record a copy without these bits");
}

static void look_machine(const struct check_context *context, struct check_result *result)
{
	const struct target *t = &context->target;
	struct target library;
	if (unknown_target(context, result))
		return;
	if (!context->library_found) {
		check_say(result, CHECK_INFO, "%s; there is no library to compare with", target_machine_name(t->machine));
		return;
	}
	target_inspect(&library, context->library.path);
	if (library.error == 0 && library.is_elf && (library.machine != t->machine || library.is_64 != t->is_64)) {
		check_say(result, CHECK_PROBLEM, "the command is for another machine (%s, %s bits) than libcuflight.so",
			  target_machine_name(t->machine), t->is_64 ? "64" : "32");
		check_todo(result, "build libcuflight.so for that machine and give it with --library");
		return;
	}
	check_say(result, CHECK_FINE, "%s, as libcuflight.so is", target_machine_name(t->machine));
}

static void look_libc(const struct check_context *context, struct check_result *result)
{
	const struct target *t = &context->target;
	const char *loader = path_base_name(t->loader);
	if (unknown_target(context, result))
		return;
	if (t->is_static) {
		check_say(result, CHECK_INFO, "static: see above");
	} else if (!strncmp(loader, "ld-linux", 8) || !strncmp(loader, "ld64.so", 7)) {
		check_say(result, CHECK_FINE, "glibc (%s)", t->loader);
	} else {
		check_say(result, CHECK_PROBLEM, "its loader is %s%s: libcuflight.so needs glibc", *loader ? t->loader : "unknown",
			  strstr(loader, "musl") ? " (musl)" : "");
		check_todo(result, "use an image with glibc (Debian, Ubuntu, UBI) in place of Alpine");
	}
}

/* Programs that start the real work elsewhere, or in an environment of their own: the preload ends with them. */
static const struct { const char *name, *what; } wrappers[] = {
	{ "sudo", "clears the environment" }, { "su", "may clear the environment" }, { "doas", "clears the environment" },
	{ "docker", "starts the program in a container" }, { "podman", "starts the program in a container" },
	{ "nerdctl", "starts the program in a container" }, { "kubectl", "starts the program on another machine" },
	{ "ssh", "starts the program on another machine" }, { "systemd-run", "starts the program in an environment of its own" },
	{ "chroot", "changes the root: the library's path may not exist there" }, { "apptainer", "starts the program in a container" },
	{ "singularity", "starts the program in a container" },
};

static void look_wrapper(const struct check_context *context, struct check_result *result)
{
	const char *name = path_base_name(context->command);
	for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
		if (strcmp(wrappers[i].name, name) != 0)
			continue;
		check_say(result, CHECK_PROBLEM, "%s %s: what it starts is not recorded", name, wrappers[i].what);
		check_todo(result, "put cuflight inside: %s ... cuflight run -- PROGRAM, or set the variables there ('cuflight env')", name);
		return;
	}
	check_say(result, CHECK_FINE, "none known by name");
}

static void look_deepbind(const struct check_context *context, struct check_result *result)
{
	if (strncmp(path_base_name(context->target.executed), "python", 6) != 0 && strncmp(path_base_name(context->command), "python", 6) != 0) {
		check_say(result, CHECK_FINE, "not a host known to load objects with RTLD_DEEPBIND");
		return;
	}
	check_say(result, CHECK_INFO, "Python: extensions loaded with RTLD_DEEPBIND would call past the recorder; the report names them");
}

static void look_disabled(const struct check_context *context, struct check_result *result)
{
	const char *value = getenv("CUFLIGHT_DISABLE");
	if (!value || !*value || !strcmp(value, "0")) {
		check_say(result, CHECK_FINE, "CUFLIGHT_DISABLE is not set");
		return;
	}
	check_say(result, CHECK_PROBLEM, "CUFLIGHT_DISABLE=%s is set: the recorder stays off", value);
	check_todo(result, "unset CUFLIGHT_DISABLE");
}

const struct check checks_of_command[] = {
	{ "command", look_command },
	{ "dynamic", look_static },
	{ "privileges", look_privileges },
	{ "machine", look_machine },
	{ "libc", look_libc },
	{ "wrapper", look_wrapper },
	{ "deepbind", look_deepbind },
	{ "switched off", look_disabled },
	{ NULL, NULL },
};
