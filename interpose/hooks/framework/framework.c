/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the description of the framework: which one, which version, why its blocks are not seen. */
#include "interpose/hooks/framework/framework.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include "interpose/platform/side_stack.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/coverage.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/loader/table.h"

/* The shape of the reports, by hook: the letters of the arguments in the mangled name. */
static const struct { unsigned hook; const char *abi; } abis[] = {
	{ CUF_HOOK__ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE, "Pvl" },
	{ CUF_HOOK__ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE, "Pvlll" },
	{ CUF_HOOK__ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE, "Pvlmm" },
	{ CUF_HOOK__ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE, "lll" },
	{ CUF_HOOK__ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE, "lmm" },
	{ CUF_HOOK__ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE, "mmm" },
};

/* ---- the version ---- */

/*
 * Reports are made with PyTorch's allocator locked. No file may be read there, so the version is
 * read elsewhere: at a later look-up or dlopen, when the library is loaded. When PyTorch is
 * described before that, the version follows in a line of its own.
 */
static char version[64] = "version=";
static enum { UNREAD, READING, READ } version_state;
static bool version_follows;

/* Adds the text between the quotes of the line `__version__ = '2.15.0+cu132'`. */
static void add_quoted(struct cuf_text *text, const char *file)
{
	static const char head[] = "__version__ = '";
	const char *from = strstr(file, head), *end;
	if (!from)
		return;
	from += sizeof head - 1;
	end = strchr(from, '\'');
	if (end)
		cuf_text_bytes(text, from, (size_t)(end - from));
}

/* torch/version.py is two folders above torch/lib/libc10.so. The path of the file is built in the
 * buffer that the file is then read to. */
static void read_version_file(struct cuf_text *text, const char *path)
{
	static const char here[] = "/lib/libc10.so", there[] = "/version.py";
	char file[4096];
	const char *at = strstr(path, here);
	size_t stem;
	long fd, bytes;
	if (!at)
		return;
	stem = (size_t)(at - path);
	if (stem + sizeof there > sizeof file)
		return;
	memcpy(file, path, stem);
	memcpy(file + stem, there, sizeof there);
	fd = cuf_open(file, O_RDONLY, 0);
	if (fd < 0)
		return;
	bytes = cuf_sys_read((int)fd, file, sizeof file - 1);
	cuf_close((int)fd);
	file[bytes > 0 ? bytes : 0] = 0;
	add_quoted(text, file);
}

/* The path of PyTorch's base library leads there. Several threads may look at once; one reads. */
static void read_version_once(void *unused)
{
	static struct link_map *searched;
	struct cuf_text text = { version, strlen("version="), sizeof version };
	char path[4096];
	if (!cuf_dso_find_new(&searched, "libc10.so", path, sizeof path) ||
	    __atomic_exchange_n(&version_state, READING, __ATOMIC_ACQUIRE) != UNREAD)
		return;
	read_version_file(&text, path);
	cuf_text_add(&text, "\n");
	__atomic_store_n(&version_state, READ, __ATOMIC_RELEASE);
}

/* Called at every dlopen and when the driver is attached, so it must be cheap when there is nothing
 * to do: two loads, and until PyTorch is there a look at the objects that are new. */
void cuf_framework_read_version(void)
{
	int saved = errno;
	if (!cuf_recorder_status().is_on)
		return;
	if (__atomic_load_n(&version_state, __ATOMIC_RELAXED) == UNREAD)
		cuf_on_side_stack(read_version_once, NULL);
	if (__atomic_load_n(&version_state, __ATOMIC_ACQUIRE) == READ &&
	    __atomic_exchange_n(&version_follows, false, __ATOMIC_RELAXED))
		cuf_coverage_framework(version);
	errno = saved;
}

/* The library of a Linux distribution has its version in its file name. */
static void add_version(struct cuf_text *text, const char *path)
{
	const char *numbers = strstr(path, "libc10.so.");
	if (numbers) {
		cuf_text_add(text, "version=");
		cuf_text_add(text, numbers + strlen("libc10.so."));
		cuf_text_add(text, "\n");
	} else if (__atomic_load_n(&version_state, __ATOMIC_ACQUIRE) == READ) {
		cuf_text_add(text, version);
	} else {
		__atomic_store_n(&version_follows, true, __ATOMIC_RELAXED);
	}
}

/* ---- streams ---- */

/* Streams may come before the framework, so the description contains what is known then. A forked
 * child keeps its parent's streams. */
static bool streams;

void cuf_framework_note_streams(void)
{
	int saved = errno;
	__atomic_store_n(&streams, true, __ATOMIC_RELAXED);
	if (cuf_recorder_status().framework_events)
		cuf_coverage_framework("streams=1\n");
	errno = saved;
}

/* ---- the description ---- */

/* Which shape of reports this release uses. The report needs it to explain what is missing. */
static void add_abi(struct cuf_text *text, unsigned hook)
{
	for (unsigned i = 0; i < sizeof abis / sizeof *abis; i++) {
		if (abis[i].hook != hook)
			continue;
		cuf_text_add(text, "abi=");
		cuf_text_add(text, abis[i].abi);
		cuf_text_add(text, "\n");
	}
}

/* Called once a recording, from the first report, with the allocator locked: no file is opened. */
static void describe(unsigned hook, const void *real)
{
	struct cuf_dso dso;
	CUF_TEXT(text, 512);
	cuf_text_add(&text, "framework=PyTorch\n");
	add_abi(&text, hook);
	if (real && cuf_dso_at(real, &dso)) {
		cuf_text_add(&text, "object=");
		cuf_text_add(&text, dso.map->l_name);
		cuf_text_add(&text, "\n");
		add_version(&text, dso.map->l_name);
	}
	if (__atomic_load_n(&streams, __ATOMIC_RELAXED))
		cuf_text_add(&text, "streams=1\n");
	else
		cuf_text_add(&text, "streams=0\n");
	cuf_coverage_framework(text.at);
	if (hook == CUF_HOOK__ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE)
		cuf_coverage_framework_unseen(
			"PyTorch before 1.10 reports its blocks without their addresses");
}

static uint32_t is_described; /* in the current recording */

/* A forked child has its own recording, and describes the framework there again. */
static void forget_description(void) { is_described = 0; }
CUF_AT_FORK_CHILD(forget_description);

/* One load when the framework is described already, because it runs at every report. */
void cuf_framework_describe(unsigned hook, const void *real)
{
	int saved;
	if (__builtin_expect(__atomic_load_n(&is_described, __ATOMIC_RELAXED), 1) ||
	    __atomic_exchange_n(&is_described, 1, __ATOMIC_RELAXED))
		return;
	saved = errno;
	describe(hook, real);
	errno = saved;
}

/* ---- blocks that are not reported ---- */

/* PyTorch reads these settings at its first allocation. The second name is the older one, still
 * accepted. */
static bool is_asynchronous(void)
{
	static const char *const names[] = { "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF" };
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		const char *value = getenv(names[i]);
		if (value && strstr(value, "backend:cudaMallocAsync"))
			return true;
	}
	return false;
}

/* The driver allocated device memory for this process, and no framework has reported a block. */
static bool is_silent(void)
{
	uint64_t allocations = 0;
	for (unsigned i = 0; i < CUF_DEVICES_MAX; i++) {
		const struct cuf_device *device = cuf_device_find(i);
		if (device)
			allocations += __atomic_load_n(&device->alloc_count, __ATOMIC_RELAXED);
	}
	return allocations && !cuf_recorder_status().framework_events;
}

/* Silent means: the driver gave this process device memory, and no framework reported a block.
 * Called at a failure and at the end, so that a report without framework blocks can state why. */
void cuf_framework_check_unseen(void)
{
	int saved = errno;
	/* a program that uses only the CPU half has no device blocks */
	bool loaded = is_silent() && cuf_dso_find_loaded("libc10_cuda.so");
	if (loaded && is_asynchronous()) {
		cuf_coverage_framework("framework=PyTorch\nbackend=cudaMallocAsync\n");
		cuf_coverage_framework_unseen(
			"PyTorch's blocks are not seen: its back-end cudaMallocAsync reports none; "
			"they are in the driver's pool");
	} else if (loaded) {
		cuf_coverage_framework_unseen(
			"PyTorch is loaded and has reported no block: it uses the back-end "
			"cudaMallocAsync or a pluggable allocator, or others allocated the device "
			"memory");
	}
	errno = saved;
}
