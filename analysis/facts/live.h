/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a process that still runs, and whether it will last: how high and how low it was
 * lately, what state each call site is in, and when a resource will be used up. explain/
 * fills it. Contract: as in facts.h.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fact_site;

/* Of a stretch of time up to the moment. Unknown is CUF_UNKNOWN. */
struct fact_extremes {
	uint64_t peak_bytes; /* the most in live blocks, however short it was */
	uint64_t low_bytes;  /* and the least */
	/* Of a device: the least that was free, as the driver reported it or as the peak left it,
	 * whichever is less. */
	uint64_t free_bytes;
	/* of a device: allocated and reserved by its framework; of the host: resident, and of its
	 * control group */
	uint64_t inner_peak_bytes, outer_peak_bytes;
};

/* A device, or the host, as one process used it lately. */
struct fact_recent {
	uint32_t device; /* index; FACT_NONE: the host */
	uint64_t live_bytes; /* at last */
	uint64_t burst_bytes; /* the largest rise that fell again; 0: none was seen */
	struct fact_extremes minute, hour;
};

/* In this order: each one states more than the one before. Only the last two forecast. */
enum live_state {
	LIVE_WARMING, /* rises, and has not done so for long enough to tell */
	LIVE_STEADY,
	LIVE_FILLING, /* rises, and its pace falls */
	LIVE_GROWING, /* rises and keeps its pace */
	LIVE_LEAK,    /* the same, by all rules of growth/ */
	LIVE_STATES
};
extern const char *const live_state_names[LIVE_STATES]; /* warming steady filling ... */

struct live_site {
	const struct fact_site *site;
	enum live_state state;
	double rising_s; /* how long it has risen, at most; NAN: it does not */
	double needed_s; /* how long it must, for a verdict */
};

enum live_resource_kind { LIVE_GPU, LIVE_CGROUP, LIVE_MACHINE, LIVE_RESOURCES };
extern const char *const live_resource_names[LIVE_RESOURCES]; /* gpu cgroup machine */
extern const char *const live_resource_words[LIVE_RESOURCES]; /* for people: GPU ... */

struct live_resource {
	enum live_resource_kind kind;
	uint32_t device;        /* index of a GPU; FACT_NONE */
	uint64_t limit_bytes, free_bytes;
	uint64_t burst_bytes;   /* the largest rise seen that fell again */
	/* free at the low level between bursts, and what the framework can release, less the
	 * largest burst; negative: the largest work so far would fail now. NAN: free is unknown */
	double headroom_bytes;
	double bytes_per_s[3];  /* of what is proven to grow, with a 95 % interval */
	/* INFINITY: nothing is proven to grow, or (latest) it may not. NAN: too early to tell, or
	 * the headroom is unknown. */
	double oom_s[3];
};
enum { LIVE_EXPECTED, LIVE_LOW, LIVE_HIGH };   /* of bytes_per_s */
enum { LIVE_SOONEST = LIVE_LOW, LIVE_LATEST }; /* of oom_s, with LIVE_EXPECTED */
/* The one that is used up first; NULL: none is proven to be. */
const struct live_resource *live_first_to_end(const struct live_resource *resources, size_t count);

struct judgement {
	uint64_t time_ns;
	double observed_s, needed_s; /* of the process of the report; shorter is too early */
	bool is_too_early;
	const struct live_site *sites; /* those that hold a MiB or more, by state, then by bytes */
	size_t site_count;
	size_t state_counts[LIVE_STATES];
	const struct live_resource *resources;
	size_t resource_count;
};

/* Seconds until headroom is used up at this pace: what every forecast of the command divides.
 * INFINITY: it does not rise. 0: there is none left. */
static inline double live_seconds_left(double headroom_bytes, double bytes_per_s)
{
	if (!(bytes_per_s > 0))
		return INFINITY;
	return fmax(headroom_bytes, 0) / bytes_per_s;
}
