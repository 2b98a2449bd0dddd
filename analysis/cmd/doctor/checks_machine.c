/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the machine and of the environment around the command. */
#include "analysis/cmd/doctor/checks.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "analysis/cmd/target/cgroup.h"
#include "analysis/view/units.h"

static void look_proc(const struct check_context *context, struct check_result *result)
{
	(void)context;
	if (!access("/proc/self/maps", R_OK)) {
		check_say(result, CHECK_FINE, "mounted");
		return;
	}
	check_say(result, CHECK_INFO, "not mounted: recordings will lack RSS, cgroup figures and the command line");
	check_todo(result, "mount /proc");
}

/* Opens a library as the program would, says where it is, and closes it. */
static bool locate(const char *soname, char *path, size_t bytes)
{
	struct link_map *map;
	void *handle = dlopen(soname, RTLD_LAZY | RTLD_LOCAL);
	if (!handle)
		return false;
	snprintf(path, bytes, "%s", dlinfo(handle, RTLD_DI_LINKMAP, &map) ? soname : map->l_name);
	dlclose(handle);
	return true;
}

static bool read_text(const char *path, char *text, size_t bytes)
{
	FILE *file = fopen(path, "re");
	size_t length = file ? fread(text, 1, bytes - 1, file) : 0;
	text[length] = 0;
	if (file)
		fclose(file);
	return length > 0;
}

static void look_cuda(const struct check_context *context, struct check_result *result)
{
	char path[512], version[256];
	(void)context;
	if (!locate("libcuda.so.1", path, sizeof path)) {
		check_say(result, CHECK_INFO, "no libcuda.so.1 in LD_LIBRARY_PATH and the loader's directories: no GPU memory will be seen");
		check_todo(result, "in a container: start it with the NVIDIA runtime (--gpus all)");
		return;
	}
	if (read_text("/proc/driver/nvidia/version", version, sizeof version))
		version[strcspn(version, "\n")] = 0;
	check_say(result, CHECK_FINE, "%s%s%s", path, *version ? "; " : "", version);
}

static void look_preload(const struct check_context *context, struct check_result *result)
{
	const char *value = getenv("LD_PRELOAD");
	char system[512], all[1024];
	(void)context;
	if (!read_text("/etc/ld.so.preload", system, sizeof system))
		*system = 0;
	system[strcspn(system, "\n")] = 0;
	snprintf(all, sizeof all, "%s%s%s", value ? value : "", value && *value && *system ? " " : "", system);
	if (!*all) {
		check_say(result, CHECK_FINE, "none");
	} else if (strstr(all, "libasan") || strstr(all, "libtsan")) {
		check_say(result, CHECK_PROBLEM, "a sanitizer is preloaded and insists on being first: %s", all);
		check_todo(result, "record a build without sanitizers");
	} else {
		check_say(result, CHECK_INFO, "%s: cuflight goes in front and calls on to it", all);
	}
}

static void look_seccomp(const struct check_context *context, struct check_result *result)
{
	char status[8192], *line;
	(void)context;
	if (!read_text("/proc/self/status", status, sizeof status) || !(line = strstr(status, "\nSeccomp:"))) {
		check_say(result, CHECK_INFO, "not known");
		return;
	}
	if (atoi(line + 9) == 0)
		check_say(result, CHECK_FINE, "no filter");
	else
		check_say(result, CHECK_INFO, "a filter is on; the trial shows whether the recorder's system calls pass");
}

static void look_cgroup(const struct check_context *context, struct check_result *result)
{
	struct cgroup_memory memory;
	cgroup_read(&memory);
	if (memory.limit_bytes == CUF_UNKNOWN) {
		check_say(result, CHECK_FINE, "no memory limit");
		return;
	}
	uint64_t room = memory.current_bytes < memory.limit_bytes ? memory.limit_bytes - memory.current_bytes : 0;
	bool tight = memory.current_bytes != CUF_UNKNOWN && room < 2 * context->recording_bytes;
	check_say(result, tight ? CHECK_PROBLEM : CHECK_INFO, "limit %s, in use %s; a recording's pages (%s at most) count too",
		  units_bytes(memory.limit_bytes).s, units_bytes(memory.current_bytes).s, units_bytes(context->recording_bytes).s);
	if (tight)
		check_todo(result, "raise the limit, or make the recording smaller: --size=16MiB");
}

static void look_container(const struct check_context *context, struct check_result *result)
{
	const char *kind = getenv("KUBERNETES_SERVICE_HOST") ? "Kubernetes" : !access("/.dockerenv", F_OK) ? "Docker" :
		!access("/run/.containerenv", F_OK) ? "Podman" : NULL;
	(void)context;
	if (!kind) {
		check_say(result, CHECK_FINE, "none known");
		return;
	}
	check_say(result, CHECK_INFO, "%s: what lies outside a volume goes with the container", kind);
	check_todo(result, "let CUFLIGHT_OUTPUT be on a volume; 'cuflight env --%s' prints the lines", *kind == 'K' ? "k8s" : "docker");
}

const struct check checks_of_machine[] = {
	{ "/proc", look_proc },
	{ "CUDA driver", look_cuda },
	{ "other preloads", look_preload },
	{ "seccomp", look_seccomp },
	{ "cgroup", look_cgroup },
	{ "container", look_container },
	{ NULL, NULL },
};
