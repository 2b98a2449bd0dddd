/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the command: will the loader put a preloaded library into it? */
#include "analysis/cmd/target/checks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/paths.h"

/* True when the file cannot be examined; *result then refers to the first check. The caller then
 * returns, so that one problem is not reported several times. */
static bool is_unknown_target(const struct check_context *context, struct check_result *result)
{
	if (!context->target.error && context->target.is_elf)
		return false;
	check_report(result, CHECK_INFO, "unknown: see 'command'");
	return true;
}

/* In a shell's words rather than strerror's. */
static const char *start_error_text(int error)
{
	switch (error) {
	case ENOENT:
		return "not found";
	case EACCES:
		return "not an executable file";
	default:
		return strerror(error);
	}
}

/* The first check. When it fails, the others have nothing to examine. */
static void look_command(const struct check_context *context, struct check_result *result)
{
	const struct target *target = &context->target;

	if (target->error && target->scripts) {
		check_report(result, CHECK_PROBLEM, "%s: %s", target->executed,
			     start_error_text(target->error));
		check_advise(result, "the first line of the script names an interpreter that "
			     "does not exist here");
	} else if (target->error) {
		check_report(result, CHECK_PROBLEM, "%s: %s", context->command,
			     start_error_text(target->error));
		check_advise(result, "type the command as in a shell, or use its full path");
	} else if (!target->is_elf) {
		check_report(result, CHECK_INFO,
			     "%s is neither a program nor a script with a first line; "
			     "the shell will read it", target->path);
	} else if (target->scripts) {
		check_report(result, CHECK_FINE, "%s, a script run by %s", target->path,
			     target->executed);
	} else {
		check_report(result, CHECK_FINE, "%s", target->path);
	}
}

/* The loader reads LD_PRELOAD, and a static program has no loader. */
static void look_static(const struct check_context *context, struct check_result *result)
{
	if (is_unknown_target(context, result))
		return;
	if (!context->target.is_static) {
		check_report(result, CHECK_FINE, "dynamically linked");
		return;
	}
	check_report(result, CHECK_PROBLEM,
		     "%s is statically linked: it loads no libraries, so none can be preloaded",
		     context->target.executed);
	check_advise(result, "link it dynamically against libc "
		     "(Go: CGO_ENABLED=1, -linkmode=external; Rust: the gnu target)");
}

/* NULL: execution gives the program no more rights than its caller has. */
static const char *extra_privileges(const struct target *target)
{
	if (target->gains_user)
		return "setuid";
	if (target->gains_group)
		return "setgid";
	if (target->gains_capabilities)
		return "given file capabilities";
	return NULL;
}

/* For such programs the loader is in secure-execution mode. It ignores preloads with a slash in
 * their path. */
static void look_privileges(const struct check_context *context, struct check_result *result)
{
	const char *extra = extra_privileges(&context->target);

	if (is_unknown_target(context, result))
		return;
	if (!extra) {
		check_report(result, CHECK_FINE, "not setuid or setgid, no file capabilities");
		return;
	}
	check_report(result, CHECK_PROBLEM, "%s is %s: the loader ignores LD_PRELOAD",
		     context->target.executed, extra);
	check_advise(result, "run it as its owner, or record a copy without these bits");
}

/* A library for another machine is skipped by the loader with a line on stderr. */
static void look_machine(const struct check_context *context, struct check_result *result)
{
	const struct target *target = &context->target;
	const char *machine = target_machine_name(target->machine);
	struct target library;
	unsigned bits = 32;

	if (is_unknown_target(context, result))
		return;
	if (!context->library_found) {
		check_report(result, CHECK_INFO, "%s; there is no library to compare with",
			     machine);
		return;
	}
	target_inspect(&library, context->library.path);
	if (library.error || !library.is_elf ||
	    (library.machine == target->machine && library.is_64 == target->is_64)) {
		check_report(result, CHECK_FINE, "%s, the same as libcuflight.so", machine);
		return;
	}
	if (target->is_64)
		bits = 64;
	check_report(result, CHECK_PROBLEM,
		     "the command is for another machine (%s, %u bits) than libcuflight.so",
		     machine, bits);
	check_advise(result, "build libcuflight.so for that machine and use --library=PATH");
}

/* True for a version that the recorder cannot be loaded with. */
static bool is_too_old(const char *version)
{
	enum { OLDEST_MINOR = 17 };
	unsigned major, minor;

	return sscanf(version, "%u.%u", &major, &minor) == 2 && major == 2 && minor < OLDEST_MINOR;
}

/* The loader's name identifies the libc. The recorder works with glibc; elsewhere it is off. */
static void look_libc(const struct check_context *context, struct check_result *result)
{
	const struct target *target = &context->target;
	const char *loader = path_base_name(target->loader), *version = target->glibc_version;

	if (is_unknown_target(context, result))
		return;
	if (target->is_static) {
		check_report(result, CHECK_INFO, "static: see 'dynamic'");
	} else if (strncmp(loader, "ld-linux", 8) && strncmp(loader, "ld64.so", 7)) {
		check_report(result, CHECK_PROBLEM,
			     "the loader is %s%s, not glibc's: the program runs as without "
			     "cuflight, and is not recorded",
			     *loader ? target->loader : "unknown",
			     strstr(loader, "musl") ? " (musl)" : "");
		check_advise(result, "use an image with glibc (Debian, Ubuntu, UBI), not Alpine");
	} else if (is_too_old(version)) {
		check_report(result, CHECK_PROBLEM,
			     "glibc %s: the loader refuses libcuflight.so, which needs glibc 2.17",
			     version);
		check_advise(result, "use an image with glibc 2.17 or newer");
	} else {
		check_report(result, CHECK_FINE, "glibc%s%s (%s): recorded",
			     *version ? " " : "", version, target->loader);
	}
}

/* These programs start the real work elsewhere, or with another environment: LD_PRELOAD is lost. */
static const struct {
	const char *name, *what;
} wrappers[] = {
	{ "sudo", "clears the environment" },
	{ "su", "may clear the environment" },
	{ "doas", "clears the environment" },
	{ "docker", "starts the program in a container" },
	{ "podman", "starts the program in a container" },
	{ "nerdctl", "starts the program in a container" },
	{ "apptainer", "starts the program in a container" },
	{ "singularity", "starts the program in a container" },
	{ "kubectl", "starts the program on another machine" },
	{ "ssh", "starts the program on another machine" },
	{ "systemd-run", "starts the program with another environment" },
	{ "chroot", "changes the root: the library's path may not exist there" },
};

/* By name only: a wrapper under another name is not recognised. */
static void look_wrapper(const struct check_context *context, struct check_result *result)
{
	const char *name = path_base_name(context->command);

	for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
		if (strcmp(wrappers[i].name, name) != 0)
			continue;
		check_report(result, CHECK_PROBLEM, "%s %s: that program is not recorded", name,
			     wrappers[i].what);
		check_advise(result, "put cuflight inside: %s ... cuflight run -- PROGRAM; or set "
			     "the variables there ('cuflight env' prints them)", name);
		return;
	}
	check_report(result, CHECK_FINE, "not a known wrapper");
}

/* "python", "python3", "python3.12". */
static bool is_python(const char *path)
{
	return !strncmp(path_base_name(path), "python", 6);
}

/* Objects with RTLD_DEEPBIND search themselves before preloaded libraries. A note and no problem:
 * most extensions are loaded without this flag. */
static void look_deepbind(const struct check_context *context, struct check_result *result)
{
	if (!is_python(context->target.executed) && !is_python(context->command)) {
		check_report(result, CHECK_FINE,
			     "not a program that is known to use RTLD_DEEPBIND");
		return;
	}
	check_report(result, CHECK_INFO,
		     "Python: extensions loaded with RTLD_DEEPBIND bypass the recorder; "
		     "the report lists them");
}

/* The same test as the recorder's: unset, empty and "0" mean that it stays on. */
static void look_disabled(const struct check_context *context, struct check_result *result)
{
	const char *value = getenv("CUFLIGHT_DISABLE");

	if (!value || !*value || !strcmp(value, "0")) {
		check_report(result, CHECK_FINE, "CUFLIGHT_DISABLE is not set");
		return;
	}
	check_report(result, CHECK_PROBLEM, "CUFLIGHT_DISABLE=%s is set: the recorder stays off",
		     value);
	check_advise(result, "unset CUFLIGHT_DISABLE");
}

/* The names are keys of --json, so they stay as they are. */
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
