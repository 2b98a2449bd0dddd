/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc, and writes what a report needs to name the process. */
#include "interpose/process/identity.h"

#include <stdbool.h>
#include <string.h>
#include <sys/utsname.h>
#include "interpose/abi/format.h"
#include "interpose/platform/options.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/process/cgroup.h"
#include "interpose/process/proc_file.h"
#include "interpose/process/redact.h"
#include "interpose/store/meta.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum { META_TEXT_MAX = 1024, COMMAND_LINE_MAX = 4096, START_TIME_FIELD = 22 };

static char host[65], name[65], executable[1024];
static size_t executable_bytes;

/* ---- names ---- */

static bool is_safe(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '+';
}

/* A dot is safe, except as the first character: the file would be hidden. */
static void copy_safe(char *to, size_t room, const char *from)
{
	size_t used = 0;
	for (; *from && used + 1 < room; from++) {
		bool keep = is_safe(*from) || (*from == '.' && used);
		to[used++] = keep ? *from : '_';
	}
	to[used] = 0;
	if (!used)
		strcpy(to, "unknown");
}

/* For the pattern %h of a recording's name. The system call, because gethostname may be
 * interposed. */
static void read_host(void)
{
	struct utsname names;
	if (cuf_sys(SYS_uname, (long)&names, 0, 0, 0, 0, 0))
		names.nodename[0] = 0;
	copy_safe(host, sizeof host, names.nodename);
}

/* The name is for %e and the whole path for META. /proc may be missing: both are empty then. */
static void read_executable(void)
{
	long got = cuf_sys(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)executable,
			   sizeof executable - 1, 0, 0);
	const char *slash;
	executable_bytes = got > 0 ? (size_t)got : 0;
	executable[executable_bytes] = 0;
	slash = strrchr(executable, '/');
	copy_safe(name, sizeof name, slash ? slash + 1 : executable);
}

/*
 * Field 22 of /proc/self/stat. Fields are counted behind the program's name, which may hold blanks.
 */
static void read_start_time(struct cuf_header *header)
{
	char text[1024];
	const char *at;
	header->process_start_ticks = CUF_UNKNOWN;
	if (cuf_proc_read("/proc/self/stat", text, sizeof text) <= 0)
		return;
	at = strrchr(text, ')');
	for (unsigned field = 2; at && field < START_TIME_FIELD; field++)
		at = strchr(at + 1, ' ');
	if (at)
		header->process_start_ticks = cuf_proc_number(at + 1, NULL);
}

/* "pid:[4026531836]" */
static void read_pid_namespace(struct cuf_header *header)
{
	char text[64] = "";
	const char *at;
	cuf_sys(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)text, sizeof text - 1, 0,
		0);
	at = strchr(text, '[');
	header->pid_namespace = at ? cuf_proc_number(at + 1, NULL) : 0;
}

/* -1: not a hexadecimal digit. */
static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* 36 characters: 32 hexadecimal digits and dashes. */
static void read_boot_id(struct cuf_header *header)
{
	char text[64];
	unsigned digits = 0;
	if (cuf_proc_read("/proc/sys/kernel/random/boot_id", text, sizeof text) < 36)
		return;
	for (const char *at = text; *at && digits < 2 * sizeof header->boot_id; at++) {
		int value = hex_digit(*at);
		uint8_t *byte = &header->boot_id[digits / 2];
		if (value < 0)
			continue;
		*byte = (uint8_t)(*byte << 4 | value);
		digits++;
	}
}

void cuf_process_read(void)
{
	read_host();
	read_executable();
	cuf_cgroup_find();
	read_start_time(cuf_recording.header);
	read_pid_namespace(cuf_recording.header);
	read_boot_id(cuf_recording.header);
}

const char *cuf_process_host(void) { return *host ? host : "unknown"; }
const char *cuf_process_name(void) { return *name ? name : "unknown"; }

/* ---- META ---- */

static void describe_command_line(void)
{
	char text[COMMAND_LINE_MAX];
	CUF_TEXT(line, COMMAND_LINE_MAX);
	long got = cuf_proc_read("/proc/self/cmdline", text, sizeof text);
	enum secrets_next next = SECRETS_NOTHING;
	for (long i = 0; i < got;) {
		size_t bytes = strlen(text + i);
		if (i)
			cuf_text_add(&line, " ");
		cuf_redact_argument(&line, text + i, bytes, &next);
		i += (long)bytes + 1;
	}
	if (line.used)
		cuf_meta_text(CUF_META_CMDLINE, 0, line.at, line.used);
}

/* Variables that decide how memory is used, and no others: the environment may hold secrets. */
static bool is_allowed(const char *variable)
{
	static const char *const heads[] = {
		"CUDA_", "NVIDIA_VISIBLE_DEVICES=", "PYTORCH_CUDA_ALLOC_CONF=",
			"PYTORCH_ALLOC_CONF=",
		"TORCH_", "MALLOC_", "GLIBC_TUNABLES=", "LD_PRELOAD=", "RANK=", "LOCAL_RANK=",
		"WORLD_SIZE=", "OMP_NUM_THREADS=", "NCCL_", "VLLM_", "SGLANG_", "XLA_", "TF_GPU",
		"OLLAMA_", "GGML_", "PYTHONMALLOC=", "SIMCUDA_", "CUFLIGHT_", "SLURM_JOB_ID=",
		"SLURM_PROCID=", "KUBERNETES_SERVICE_HOST=", "NODE_OPTIONS=", "GOMEMLIMIT=",
		"JAVA_TOOL_OPTIONS=", "JDK_JAVA_OPTIONS=", "DOTNET_GCHeapHardLimit=",
	};
	for (unsigned i = 0; i < sizeof heads / sizeof *heads; i++)
		if (!strncmp(variable, heads[i], strlen(heads[i])))
			return true;
	return false;
}

/* A variable that is allowed is still left out when its name is a secret's. */
static void describe_environment(char **environment)
{
	for (; environment && *environment; environment++) {
		const char *variable = *environment, *equals = strchr(variable, '=');
		CUF_TEXT(text, META_TEXT_MAX);

		if (!equals || !is_allowed(variable) ||
		    secrets_is_name(variable, (size_t)(equals - variable), equals + 1,
				    strlen(equals + 1)))
			continue;
		cuf_text_bytes(&text, variable, (size_t)(equals + 1 - variable));
		cuf_redact_text(&text, SECRETS_ARGUMENT, equals + 1, strlen(equals + 1));
		cuf_meta_text(CUF_META_ENV, 0, text.at, text.used);
	}
}

/* "KEY=NUMBER\n"; nothing when it is unknown. */
static void add_limit(struct cuf_text *text, const char *key, uint64_t value)
{
	if (value == CUF_UNKNOWN)
		return;
	cuf_text_add(text, key);
	cuf_text_add(text, "=");
	cuf_text_number(text, value);
	cuf_text_add(text, "\n");
}

/* Memory of the machine; CUF_UNKNOWN without /proc. */
static uint64_t machine_bytes(void)
{
	char text[2048];
	uint64_t kib;
	if (cuf_proc_read("/proc/meminfo", text, sizeof text) <= 0)
		return CUF_UNKNOWN;
	kib = cuf_proc_number(text, "MemTotal:");
	return kib == CUF_UNKNOWN ? kib : kib * 1024;
}

/* The limits at the start. A report compares them with what was used at a failure. */
static void describe_limits(void)
{
	struct cuf_process_memory memory;
	const char *directory = cuf_cgroup_directory();
	CUF_TEXT(text, 512);
	cuf_process_memory(&memory);
	if (*directory)
		cuf_meta_text(CUF_META_CGROUP, 0, directory, strlen(directory));
	add_limit(&text, "memory.max", memory.cgroup_max_bytes);
	add_limit(&text, "MemTotal", machine_bytes());
	add_limit(&text, "oom_kill", cuf_cgroup_oom_kills());
	if (text.used)
		cuf_meta_text(CUF_META_LIMITS, 0, text.at, text.used);
}

static bool is_ours(const char *path, size_t bytes)
{
	static const char own[] = "libcuflight.so";
	size_t base = bytes;
	while (base && path[base - 1] != '/')
		base--;
	return bytes - base >= sizeof own - 1 && !memcmp(path + base, own, sizeof own - 1);
}

/* Another preload in front of us or behind us may hide calls, so that a report names it. A copy of
 * this library hides none. */
static void describe_preload(char **environment)
{
	const char *at = cuf_environment_find(environment, "LD_PRELOAD");
	CUF_TEXT(others, 1024);
	for (size_t bytes; at && *(at += strspn(at, ": ")); at += bytes) {
		bytes = strcspn(at, ": ");
		if (is_ours(at, bytes))
			continue;
		if (others.used)
			cuf_text_add(&others, ":");
		cuf_text_bytes(&others, at, bytes);
	}
	if (others.used)
		cuf_meta_text(CUF_META_NOTE, CUF_NOTE_OTHER_PRELOAD, others.at, others.used);
}

void cuf_process_describe(char **environment)
{
	if (executable_bytes)
		cuf_meta_text(CUF_META_EXE, 0, executable, executable_bytes);
	cuf_meta_text(CUF_META_HOSTNAME, 0, cuf_process_host(), strlen(cuf_process_host()));
	describe_command_line();
	describe_environment(environment);
	describe_limits();
	describe_preload(environment);
}
