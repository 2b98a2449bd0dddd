/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over one recording: what a full report knows, as plain data of a fixed size. A pass is
 * made in a process of its own (worker.h), so its result has no pointers.
 *
 * Contract: texts are printable (base/clean.h), terminated and cut to fit. Unknown is CUF_UNKNOWN,
 * of doubles NAN. Times are CLOCK_REALTIME. A pass that could not be made has `error` and nothing
 * else.
 */
#pragma once

#include <stdbool.h>
#include "analysis/facts/incident.h"
#include "analysis/facts/live.h"
#include "interpose/abi/format.h"

/* Whose bytes of a device: the values of the label `owner`. Those from OTHER_PROCESSES on are no
 * process's own. */
enum watch_owner {
	WATCH_WEIGHTS, WATCH_KV, WATCH_COMPUTE, WATCH_OUTPUT, WATCH_LIBRARY, WATCH_COMMUNICATION,
	WATCH_GRAPH, WATCH_OTHER, WATCH_PAGE_ROUNDING, WATCH_POOL_SLACK, WATCH_FRAMEWORK_SLACK,
	WATCH_CONTEXT, WATCH_OTHER_PROCESSES, WATCH_UNEXPLAINED, WATCH_FREE, WATCH_OWNER_MAX
};
extern const char *const watch_owner_names[WATCH_OWNER_MAX];

/* What a call site's bytes are in: the values of the label `memory`. */
enum watch_memory { WATCH_DEVICE, WATCH_FRAMEWORK, WATCH_HOST, WATCH_PINNED, WATCH_MEMORY_MAX };
extern const char *const watch_memory_names[WATCH_MEMORY_MAX];

enum { PASS_TEXT = 160, PASS_SENTENCE = 400, PASS_SITES = 64, PASS_FRAMEWORKS = 4 };

struct pass_framework {
	char name[32];
	uint64_t allocated_bytes, reserved_bytes;
};

struct pass_device {
	uint8_t uuid[16];
	unsigned ordinal; /* the driver's index in this process */
	uint64_t total_bytes;
	uint64_t owners[WATCH_OWNER_MAX]; /* sum to total_bytes */
	uint64_t largest_free[LAYER_MAX];
	struct pass_framework frameworks[PASS_FRAMEWORKS];
	size_t framework_count;
	bool has_recent;                 /* the two below; false: an older recorder */
	struct fact_extremes minute, hour;
};

/* All call sites that read alike, in one memory of one device. */
struct pass_site {
	char name[PASS_TEXT];    /* "append_kv (server.c:64)" */
	char path[PASS_SENTENCE]; /* its callers too */
	char role[32];           /* "" unknown */
	enum watch_memory memory;
	unsigned device;         /* the driver's index; CUF_DEVICE_NONE: the host */
	uint64_t bytes, count;
	uint64_t leak_bytes;     /* of it: in call sites that leak, as the judge remembers */
	enum live_state state;   /* of a call site that the judge calls worst */
	bool is_judged;          /* false: state is not known: small, or the process has ended */
	double slope_bytes_per_s;
	uint64_t first_ns;       /* birth of the oldest live block */
	bool is_leak;
};

struct pass {
	char error[PASS_SENTENCE];      /* "" */
	uint64_t begun_ns, cost_ns;     /* when it began; processor time */
	char model[PASS_TEXT], framework[32], version[32];
	struct pass_device devices[CUF_DEVICES_MAX];
	size_t device_count;
	/* device: index of the pass's device; FACT_NONE */
	struct live_resource resources[CUF_DEVICES_MAX + LIVE_RESOURCES];
	size_t resource_count;          /* 0: it does not run */
	double observed_s, needed_s;    /* shorter is too early for a verdict */
	bool is_too_early;
	/* ladders of failed requests whose outcome is known; what the host refused is in the
	 * last row */
	uint64_t failures[CUF_DEVICES_MAX + 1][OUTCOME_MAX];
	uint64_t counted_to;            /* number of the last incident in them */
	char cause[48], cause_site[PASS_TEXT], cause_summary[PASS_SENTENCE]; /* "" none */
	double confidence;
	char end[24];                   /* running, exit, killed ... */
	double per_request_bytes;       /* what stays of each request, of the largest leak; NAN */
	size_t site_count;
	struct pass_site sites[PASS_SITES]; /* leaks first, then by bytes */
};

/* It has room for no more sites than there are: those of hundreds of processes are kept. */
struct pass *pass_copy(const struct pass *pass);

/* What is kept from pass to pass: names of functions, and what the judge remembers of recordings.
 * warm_up_s: of explain/judge.h; 0: the usual. */
struct pass_maker;
struct pass_maker *pass_maker_new(double warm_up_s);
void pass_maker_trim(struct pass_maker *maker); /* forgets the names */

/* Ladders up to incident number counted_to are not counted again. */
void pass_make(struct pass_maker *maker, struct pass *out, const char *path, uint64_t counted_to);
