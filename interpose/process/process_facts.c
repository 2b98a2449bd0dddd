/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc and the cgroup by raw system calls; redacts what may be a secret. */
#include "interpose/process/process_facts.h"

#include <string.h>
#include <sys/utsname.h>
#include "interpose/abi/format.h"
#include "interpose/store/meta.h"
#include "interpose/platform/options.h"
#include "interpose/store/recording.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

static char host[65], name[65], executable[1024];
static size_t executable_bytes;
static char cgroup_directory[512]; /* "" none; else ends without a slash */
static const char *cgroup_current, *cgroup_max;

/* The whole file, cut at bytes - 1 and NUL-terminated. Returns its length, or -errno. */
static long read_file(const char *path, char *to, size_t bytes)
{
	long fd = cuf_open(path, O_RDONLY, 0), got, used = 0;
	if (fd < 0)
		return fd;
	while ((size_t)used + 1 < bytes && (got = cuf_sys_read((int)fd, to + used, bytes - 1 - (size_t)used)) > 0)
		used += got;
	cuf_sys_close((int)fd);
	to[used] = 0;
	return used;
}

/* File names are made of these: letters, digits, dot, dash, underscore, plus. */
static void copy_safe(char *to, size_t room, const char *from)
{
	size_t used = 0;
	for (; *from && used + 1 < room; from++) {
		char c = *from;
		int safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '+' || (c == '.' && used);
		to[used++] = safe ? c : '_';
	}
	to[used] = 0;
	if (!used)
		strcpy(to, "unknown");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static uint64_t number_after(const char *text, const char *key)
{
	const char *s = key ? strstr(text, key) : text;
	uint64_t value = 0;
	int any = 0;
	if (!s)
		return CUF_UNKNOWN;
	for (s += key ? strlen(key) : 0; *s == ' ' || *s == '\t'; s++)
		;
	for (; *s >= '0' && *s <= '9'; s++, any = 1)
		value = value * 10 + (uint64_t)(*s - '0');
	return any ? value : CUF_UNKNOWN;
}

/* cgroup v2: "0::/path"; v1: "N:memory:/path". The container's own view is usually the root of the mount. */
static void find_cgroup(void)
{
	static const struct { const char *mark, *root, *current, *max; } versions[] = {
		{ "0::", "/sys/fs/cgroup", "/memory.current", "/memory.max" },
		{ ":memory:", "/sys/fs/cgroup/memory", "/memory.usage_in_bytes", "/memory.limit_in_bytes" },
	};
	char text[2048], path[600];
	cgroup_directory[0] = 0;
	if (read_file("/proc/self/cgroup", text, sizeof text) <= 0)
		return;
	for (unsigned i = 0; i < 2; i++) {
		const char *s = strstr(text, versions[i].mark);
		size_t length = 0;
		if (!s)
			continue;
		s += strlen(versions[i].mark);
		while (s[length] && s[length] != '\n')
			length++;
		for (unsigned attempt = 0; attempt < 2; attempt++) { /* the path as named, then the mount's root (namespaced view) */
			struct cuf_text built = { path, 0, sizeof path };
			char probe[64];
			cuf_text_add(&built, versions[i].root);
			if (!attempt && length > 1)
				cuf_text_bytes(&built, s, length);
			size_t directory_bytes = built.used;
			cuf_text_add(&built, versions[i].current);
			if (directory_bytes < sizeof cgroup_directory && read_file(path, probe, sizeof probe) > 0) {
				memcpy(cgroup_directory, path, directory_bytes);
				cgroup_directory[directory_bytes] = 0;
				cgroup_current = versions[i].current;
				cgroup_max = versions[i].max;
				return;
			}
		}
	}
}

void cuf_process_read(void)
{
	struct utsname names;
	struct cuf_header *h = cuf_recording.header;
	char text[1024];
	long got;
	copy_safe(host, sizeof host, cuf_sys(SYS_uname, (long)&names, 0, 0, 0, 0, 0) ? "" : names.nodename);
	got = cuf_sys(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)executable, sizeof executable - 1, 0, 0);
	executable_bytes = got > 0 ? (size_t)got : 0;
	executable[executable_bytes] = 0;
	copy_safe(name, sizeof name, base_name(executable));
	find_cgroup();
	h->process_start_ticks = CUF_UNKNOWN;
	if (read_file("/proc/self/stat", text, sizeof text) > 0) {
		const char *s = strrchr(text, ')'); /* the name may hold blanks: count fields behind it */
		for (unsigned field = 2; s && field < 22; field++)
			s = strchr(s + 1, ' ');
		if (s)
			h->process_start_ticks = number_after(s + 1, NULL);
	}
	if (read_file("/proc/sys/kernel/random/boot_id", text, sizeof text) >= 36) {
		unsigned digit = 0;
		for (const char *s = text; *s && digit < 32; s++) {
			int v = *s >= '0' && *s <= '9' ? *s - '0' : *s >= 'a' && *s <= 'f' ? *s - 'a' + 10 : -1;
			if (v < 0)
				continue;
			h->boot_id[digit / 2] = (uint8_t)(h->boot_id[digit / 2] << 4 | v);
			digit++;
		}
	}
}

const char *cuf_process_host(void) { return *host ? host : "unknown"; }
const char *cuf_process_name(void) { return *name ? name : "unknown"; }

static int lower(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }

static int contains(const char *s, size_t bytes, const char *word)
{
	size_t length = strlen(word);
	for (size_t i = 0; i + length <= bytes; i++) {
		size_t j = 0;
		while (j < length && lower(s[i + j]) == word[j])
			j++;
		if (j == length)
			return 1;
	}
	return 0;
}

/* Secrets by pattern: names that say so, and the shapes of well-known tokens. */
static int names_secret(const char *s, size_t bytes)
{
	static const char *const words[] = { "token", "secret", "passw", "api-key", "api_key", "apikey", "credential", "auth", "private-key", "private_key", "access-key", "access_key" };
	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		if (contains(s, bytes, words[i]))
			return 1;
	return 0;
}

static int looks_secret(const char *s, size_t bytes)
{
	static const char *const heads[] = { "hf_", "sk-", "ghp_", "gho_", "github_pat_", "xoxb-", "xoxp-", "akia", "ya29.", "eyj", "nvapi-", "glpat-", "bearer " };
	for (unsigned i = 0; i < sizeof heads / sizeof *heads; i++)
		if (bytes > strlen(heads[i]) + 8 && contains(s, strlen(heads[i]), heads[i]))
			return 1;
	return 0;
}

/* user:password@ in a URL */
static size_t url_password(const char *s, size_t bytes, size_t *end)
{
	for (size_t i = 0; i + 3 < bytes; i++)
		if (!memcmp(s + i, "://", 3)) {
			size_t colon = 0;
			for (size_t j = i + 3; j < bytes && s[j] != '/'; j++) {
				if (s[j] == ':' && !colon)
					colon = j + 1;
				if (s[j] == '@' && colon) {
					*end = j;
					return colon;
				}
			}
		}
	return 0;
}

static void add_argument(struct cuf_text *line, const char *s, size_t bytes, int *hide_next)
{
	const char *equals = memchr(s, '=', bytes);
	size_t key = equals ? (size_t)(equals - s) : bytes, end = 0, from;
	int hidden = *hide_next && bytes && *s != '-';
	*hide_next = 0;
	if (hidden || looks_secret(s, bytes)) {
		cuf_text_add(line, "***");
	} else if (equals && (names_secret(s, key) || looks_secret(equals + 1, bytes - key - 1))) {
		cuf_text_bytes(line, s, key + 1);
		cuf_text_add(line, "***");
	} else if ((from = url_password(s, bytes, &end))) {
		cuf_text_bytes(line, s, from);
		cuf_text_add(line, "***");
		cuf_text_bytes(line, s + end, bytes - end);
	} else {
		cuf_text_bytes(line, s, bytes);
		*hide_next = !equals && bytes > 1 && *s == '-' && names_secret(s, bytes);
	}
}

static void describe_command_line(void)
{
	char text[4096];
	CUF_TEXT(line, 4096);
	long got = read_file("/proc/self/cmdline", text, sizeof text);
	int hide_next = 0;
	for (long i = 0; i < got;) {
		size_t bytes = strlen(text + i);
		if (i)
			cuf_text_add(&line, " ");
		add_argument(&line, text + i, bytes, &hide_next);
		i += (long)bytes + 1;
	}
	if (line.used)
		cuf_meta_text(CUF_META_CMDLINE, 0, line.at, line.used);
}

static void describe_environment(char **environment)
{
	static const char *const allowed[] = { "CUDA_", "NVIDIA_VISIBLE_DEVICES=", "PYTORCH_CUDA_ALLOC_CONF=", "PYTORCH_ALLOC_CONF=", "TORCH_", "MALLOC_",
		"GLIBC_TUNABLES=", "LD_PRELOAD=", "RANK=", "LOCAL_RANK=", "WORLD_SIZE=", "OMP_NUM_THREADS=", "NCCL_", "VLLM_", "SGLANG_", "XLA_", "TF_GPU",
		"OLLAMA_", "GGML_", "PYTHONMALLOC=", "SIMCUDA_", "CUFLIGHT_", "SLURM_JOB_ID=", "SLURM_PROCID=", "KUBERNETES_SERVICE_HOST=" };
	for (; environment && *environment; environment++)
		for (unsigned i = 0; i < sizeof allowed / sizeof *allowed; i++) {
			size_t bytes = strlen(*environment);
			const char *equals = strchr(*environment, '=');
			if (strncmp(*environment, allowed[i], strlen(allowed[i])) || !equals)
				continue;
			if (!names_secret(*environment, (size_t)(equals - *environment)) && !looks_secret(equals + 1, strlen(equals + 1)))
				cuf_meta_text(CUF_META_ENV, 0, *environment, bytes < 1024 ? bytes : 1024);
			break;
		}
}

static void describe_limits(void)
{
	char text[2048], path[600];
	CUF_TEXT(line, 512);
	struct cuf_process_memory memory;
	cuf_process_memory(&memory);
	if (memory.cgroup_max_bytes != CUF_UNKNOWN) {
		cuf_text_add(&line, "memory.max=");
		cuf_text_number(&line, memory.cgroup_max_bytes);
		cuf_text_add(&line, "\n");
	}
	if (read_file("/proc/meminfo", text, sizeof text) > 0 && number_after(text, "MemTotal:") != CUF_UNKNOWN) {
		cuf_text_add(&line, "MemTotal=");
		cuf_text_number(&line, number_after(text, "MemTotal:") * 1024);
		cuf_text_add(&line, "\n");
	}
	if (*cgroup_directory) {
		struct cuf_text built = { path, 0, sizeof path };
		cuf_meta_text(CUF_META_CGROUP, 0, cgroup_directory, strlen(cgroup_directory));
		cuf_text_add(&built, cgroup_directory);
		cuf_text_add(&built, "/memory.events");
		if (read_file(path, text, sizeof text) > 0 && number_after(text, "oom_kill") != CUF_UNKNOWN) {
			cuf_text_add(&line, "oom_kill=");
			cuf_text_number(&line, number_after(text, "oom_kill"));
			cuf_text_add(&line, "\n");
		}
	}
	if (line.used)
		cuf_meta_text(CUF_META_LIMITS, 0, line.at, line.used);
}

static void describe_preload(char **environment)
{
	const char *preload = cuf_environment_find(environment, "LD_PRELOAD");
	if (preload && (strchr(preload, ':') || strchr(preload, ' ')))
		cuf_meta_text(CUF_META_NOTE, CUF_NOTE_OTHER_PRELOAD, preload, strlen(preload) < 1024 ? strlen(preload) : 1024);
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

static uint64_t read_cgroup(const char *file)
{
	const uint64_t no_limit = 1ull << 60; /* cgroup v1 writes LONG_MAX rounded to pages for "none" */
	char path[600], text[64];
	struct cuf_text built = { path, 0, sizeof path };
	uint64_t value;
	if (!*cgroup_directory)
		return CUF_UNKNOWN;
	cuf_text_add(&built, cgroup_directory);
	cuf_text_add(&built, file);
	if (read_file(path, text, sizeof text) <= 0)
		return CUF_UNKNOWN;
	value = number_after(text, NULL); /* "max" has no digits: unknown, which is "no limit" here */
	return value >= no_limit ? CUF_UNKNOWN : value;
}

/* The lists that the kernel drops pages from. The file is long and dear to read (the kernel sums up all processors for it), so
 * it is read near the limit alone; what is wanted stands in its first half. */
static uint64_t read_cgroup_files(void)
{
	char path[600], text[1024];
	struct cuf_text built = { path, 0, sizeof path };
	uint64_t inactive_bytes, active_bytes;
	cuf_text_add(&built, cgroup_directory);
	cuf_text_add(&built, "/memory.stat");
	if (read_file(path, text, sizeof text) <= 0)
		return CUF_UNKNOWN;
	inactive_bytes = number_after(text, "\ninactive_file");
	active_bytes = number_after(text, "\nactive_file");
	return inactive_bytes == CUF_UNKNOWN || active_bytes == CUF_UNKNOWN ? CUF_UNKNOWN : inactive_bytes + active_bytes;
}

void cuf_process_memory(struct cuf_process_memory *memory)
{
	char text[256];
	*memory = (struct cuf_process_memory){ CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN };
	if (read_file("/proc/self/statm", text, sizeof text) > 0) {
		const char *second = strchr(text, ' ');
		uint64_t pages = second ? number_after(second + 1, NULL) : CUF_UNKNOWN;
		const char *third = second ? strchr(second + 1, ' ') : NULL;
		uint64_t shared_pages = third ? number_after(third + 1, NULL) : CUF_UNKNOWN;
		if (pages != CUF_UNKNOWN)
			memory->rss_bytes = pages * 4096;
		if (shared_pages != CUF_UNKNOWN)
			memory->rss_shared_bytes = shared_pages * 4096;
	}
	memory->cgroup_bytes = read_cgroup(cgroup_current);
	memory->cgroup_max_bytes = read_cgroup(cgroup_max);
	if (memory->cgroup_max_bytes >= 1ull << 62) /* version 1's word for no limit: the largest number of whole pages */
		memory->cgroup_max_bytes = CUF_UNKNOWN;
	if (memory->cgroup_bytes != CUF_UNKNOWN && memory->cgroup_max_bytes != CUF_UNKNOWN &&
	    memory->cgroup_bytes >= memory->cgroup_max_bytes - memory->cgroup_max_bytes / 10)
		memory->cgroup_file_bytes = read_cgroup_files();
}
