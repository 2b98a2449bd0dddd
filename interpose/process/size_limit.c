/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three limits count mappings, touched or not: of addresses (RLIMIT_AS; a recording counts twice
 * while it moves to its file), of private memory (RLIMIT_DATA), and of what may be locked
 * (RLIMIT_MEMLOCK), which mlockall compares with all addresses. Where a recording would be more
 * than a sixteenth of the first two, or a sixth of the last, it is made smaller. With the right
 * to lock any amount, mlockall makes the whole recording resident: then 4 MiB are enough.
 */
#include "interpose/process/size_limit.h"

#include <stdbool.h>
#include <sys/resource.h>
#include "interpose/platform/options.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

enum {
	BYTES_MIN = 3 << 19,      /* less would hold nothing worth reading */
	LOCKED_BYTES = 4 << 20,
	PAGE = 4096,
	CAPABILITIES_3 = 0x20080522, /* the version of capget's structures */
	MAY_LOCK = 14                /* CAP_IPC_LOCK */
};

/* The limits, and which part of each a recording may be. */
static const struct limit {
	int resource;
	uint64_t share;
	const char *name;
} limits[] = {
	{ RLIMIT_AS, 32, "addresses (ulimit -v)" },
	{ RLIMIT_DATA, 16, "private memory (ulimit -d)" },
	{ RLIMIT_MEMLOCK, 6, "locked memory (ulimit -l), and the program calls mlockall" },
};
enum { LIMITS = sizeof limits / sizeof *limits, LOCKED = LIMITS - 1 };

static const char *reason;      /* of the size; NULL: it is what was asked for */
static uint64_t bytes, limit_bytes; /* of the recording; of that limit, 0: none */
static bool is_reported;

uint64_t cuf_limit_bytes(int resource)
{
	struct rlimit64 limit;

	if (cuf_sys(SYS_prlimit64, 0, resource, 0, (long)&limit, 0, 0) ||
	    limit.rlim_cur == RLIM64_INFINITY)
		return CUF_UNKNOWN;
	return limit.rlim_cur;
}

/* Effective capabilities; such a process is under no limit of locked memory. */
static bool may_lock(void)
{
	struct { uint32_t version; int pid; } head = { CAPABILITIES_3, 0 };
	struct { uint32_t effective, permitted, inheritable; } sets[2] = { { 0, 0, 0 } };

	return !cuf_sys(SYS_capget, (long)&head, (long)sets, 0, 0, 0, 0) &&
	       sets[0].effective & 1u << MAY_LOCK;
}

static void reduce(uint64_t to_bytes, const char *why, uint64_t limit)
{
	if (to_bytes < BYTES_MIN)
		to_bytes = BYTES_MIN;
	if (to_bytes >= bytes)
		return;
	bytes = to_bytes / PAGE * PAGE;
	reason = why;
	limit_bytes = limit;
}

uint64_t cuf_size_limit_apply(void)
{
	const bool counts_locked = cuf_options.locks_memory && !may_lock();

	bytes = cuf_options.size;
	reason = NULL;
	if (cuf_options.locks_memory)
		reduce(LOCKED_BYTES, "the program calls mlockall, which makes all of it resident",
		       0);
	for (unsigned i = 0; i < LIMITS; i++) {
		uint64_t limit = cuf_limit_bytes(limits[i].resource);

		if (limit != CUF_UNKNOWN && (i != LOCKED || counts_locked))
			reduce(limit / limits[i].share, limits[i].name, limit);
	}
	return bytes;
}

void cuf_size_limit_report(void)
{
	CUF_TEXT(text, 256);

	if (!reason || is_reported)
		return;
	is_reported = true;
	cuf_text_add(&text, "recording has ");
	cuf_text_size(&text, bytes);
	cuf_text_add(&text, " instead of ");
	cuf_text_size(&text, cuf_options.size);
	cuf_text_add(&text, limit_bytes ? ": the limit is " : ": ");
	if (limit_bytes) {
		cuf_text_size(&text, limit_bytes);
		cuf_text_add(&text, " of ");
	}
	cuf_text_add(&text, reason);
	cuf_say(&text);
}
