/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the machine and of the environment. */
#include "analysis/cmd/target/checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "analysis/cmd/target/ask.h"
#include "analysis/cmd/target/cgroup.h"
#include "analysis/base/units.h"

/* Minimal containers and chroots may lack /proc. */
static void look_proc(const struct check_context *context, struct check_result *result)
{
	(void)context;
	if (!access("/proc/self/maps", R_OK)) {
		check_report(result, CHECK_FINE, "mounted");
		return;
	}
	check_report(result, CHECK_INFO,
		     "not mounted: recordings will lack RSS, cgroup figures and the command line");
	check_advise(result, "mount /proc");
}

/* The beginning of a file as text; false when there is none. */
static bool read_text(const char *path, char *text, size_t bytes)
{
	FILE *file = fopen(path, "re");
	size_t length;

	*text = 0;
	if (!file)
		return false;
	length = fread(text, 1, bytes - 1, file);
	text[length] = 0;
	fclose(file);
	return length > 0;
}

/* Only a note: programs without a GPU are recorded, too. The version file of the kernel module is
 * missing in some containers, and then only the path is printed. */
static void look_cuda(const struct check_context *context, struct check_result *result)
{
	char path[512], version[256];

	(void)context;
	if (!ask_library("libcuda.so.1", path, sizeof path)) {
		check_report(result, CHECK_INFO, "the loader finds no libcuda.so.1: "
			     "no GPU memory will be recorded");
		check_advise(result,
			     "in a container, start it with the NVIDIA runtime (--gpus all)");
		return;
	}
	if (read_text("/proc/driver/nvidia/version", version, sizeof version))
		version[strcspn(version, "\n")] = 0;
	check_report(result, CHECK_FINE, "%s%s%s", path, *version ? "; " : "", version);
}

/*
 * The loader binds a plugin's weak references before dlopen returns, so the recorder cannot make
 * them null again as it does for the program and its libraries.
 */
static void look_weak_references(const struct check_context *context, struct check_result *result)
{
	char path[512];

	(void)context;
	if (ask_library("libcuda.so.1", path, sizeof path)) {
		check_report(result, CHECK_FINE, "the loader finds libcuda.so.1");
		return;
	}
	check_report(result, CHECK_INFO,
		     "a plugin that asks for cudaMalloc by a weak reference finds the "
		     "recorder's, which returns an error");
	check_advise(result, "ask by dlsym, which answers as without the recorder, or let "
		     "cuflight not record this program");
}

/* Our own rules need nothing; libunwind is a choice (options.def). */
static void look_unwinders(const struct check_context *context, struct check_result *result)
{
	char path[512];

	(void)context;
	if (ask_library("libunwind.so.8", path, sizeof path))
		check_report(result, CHECK_FINE, "unwind=cfi (default), fp; libunwind by %s", path);
	else
		check_report(result, CHECK_FINE,
			     "unwind=cfi (default), fp; libunwind is not installed");
}

/* Other preloaded libraries are no problem, but a sanitizer must be the first one.
 * /etc/ld.so.preload is read after LD_PRELOAD. */
static void look_preload(const struct check_context *context, struct check_result *result)
{
	const char *value = getenv("LD_PRELOAD");
	char system[512], all[1024];

	(void)context;
	if (!value)
		value = "";
	if (!read_text("/etc/ld.so.preload", system, sizeof system))
		*system = 0;
	system[strcspn(system, "\n")] = 0;
	snprintf(all, sizeof all, "%s%s%s", value, *value && *system ? " " : "", system);
	if (!*all) {
		check_report(result, CHECK_FINE, "none");
	} else if (strstr(all, "libasan") || strstr(all, "libtsan")) {
		check_report(result, CHECK_PROBLEM,
			     "a sanitizer is preloaded, and it must be the first library: %s", all);
		check_advise(result, "record a build without sanitizers");
	} else if (strstr(all, "libcuflight.so")) {
		check_report(result, CHECK_INFO,
			     "%s: of two copies of the recorder the first one records, and the "
			     "other stands aside",
			     all);
	} else {
		check_report(result, CHECK_INFO, "%s: cuflight is loaded first and calls it", all);
	}
}

/* The filter cannot be read, so this points to the trial. */
static void look_seccomp(const struct check_context *context, struct check_result *result)
{
	char status[8192], *line = NULL;

	(void)context;
	if (read_text("/proc/self/status", status, sizeof status))
		line = strstr(status, "\nSeccomp:");
	if (!line)
		check_report(result, CHECK_INFO, "unknown");
	else if (atoi(line + strlen("\nSeccomp:")) == 0)
		check_report(result, CHECK_FINE, "no filter");
	else
		check_report(result, CHECK_INFO, "a filter is active; the trial shows whether it "
			     "allows the recorder's system calls");
}

/* The pages of a recording are shared memory, which the cgroup counts. Twice the size of a
 * recording is a margin for one process with one child. */
static void look_cgroup(const struct check_context *context, struct check_result *result)
{
	struct cgroup_memory memory;
	enum check_state state = CHECK_INFO;
	uint64_t left = 0;
	bool tight;

	cgroup_read(&memory);
	if (memory.limit_bytes == CUF_UNKNOWN) {
		check_report(result, CHECK_FINE, "no memory limit");
		return;
	}
	if (memory.current_bytes < memory.limit_bytes)
		left = memory.limit_bytes - memory.current_bytes;
	tight = memory.current_bytes != CUF_UNKNOWN && left < 2 * context->recording_bytes;
	if (tight)
		state = CHECK_PROBLEM;
	check_report(result, state,
		     "limit %s, in use %s; the pages of a recording (at most %s) count too",
		     units_bytes(memory.limit_bytes).s, units_bytes(memory.current_bytes).s,
		     units_bytes(context->recording_bytes).s);
	if (tight)
		check_advise(result,
			     "raise the limit, or make the recording smaller: --size=16MiB");
}

/* Each runtime leaves a mark; NULL: none was found. */
static const char *container_kind(void)
{
	if (getenv("KUBERNETES_SERVICE_HOST"))
		return "Kubernetes";
	if (!access("/.dockerenv", F_OK))
		return "Docker";
	if (!access("/run/.containerenv", F_OK))
		return "Podman";
	return NULL;
}

/* Recordings outlive a container only on a volume. */
static void look_container(const struct check_context *context, struct check_result *result)
{
	const char *kind = container_kind(), *form = "docker";

	(void)context;
	if (!kind) {
		check_report(result, CHECK_FINE, "none detected");
		return;
	}
	if (*kind == 'K')
		form = "k8s=sidecar";
	check_report(result, CHECK_INFO, "%s: files outside a volume are lost with the container",
		     kind);
	check_advise(result,
		     "let CUFLIGHT_OUTPUT name a volume; 'cuflight env --%s' prints the lines",
		     form);
}

/* The names are keys of --json, so they stay as they are. */
const struct check checks_of_machine[] = {
	{ "/proc", look_proc },
	{ "CUDA driver", look_cuda },
	{ "weak references", look_weak_references },
	{ "call stacks", look_unwinders },
	{ "other preloads", look_preload },
	{ "seccomp", look_seccomp },
	{ "cgroup", look_cgroup },
	{ "container", look_container },
	{ NULL, NULL },
};
