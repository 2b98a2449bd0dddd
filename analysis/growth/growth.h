/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What grew, and what leaks. Each site's live bytes are followed through the events, and its floor - the least it held
 * at the low points of the program's own cycles (cycles.h) - is judged. The rules, with their numbers, are in
 * analysis/facts/README.md; in short, a leak is a floor that rose in at least 8 cycles, all through the time observed, made
 * of blocks that stayed. Being live at the end is never enough.
 *
 * Contract: three streams, judged apart: device events (all kinds of blocks of CUDA), blocks of frameworks, host events (the
 * malloc family).
 * growth_follow fills `sites` and `growth`; growth_judge turns one site into facts, without stack frames. Times are
 * CLOCK_MONOTONIC in here. Heap memory, freed by growth_fini.
 */
#ifndef ANALYSIS_GROWTH_GROWTH_H
#define ANALYSIS_GROWTH_GROWTH_H

#include "analysis/growth/cycles.h"
#include "analysis/recording/fact_types.h"
#include "analysis/recording/events.h"
#include "analysis/replay/liveset.h"
#include "analysis/replay/sites.h"

enum fact_class { CLASS_LEAK, CLASS_LIVE, CLASS_BOUNDED_CACHE, CLASS_RETAINED, CLASS_MAX };
extern const char *const class_names[CLASS_MAX]; /* leak live bounded_cache retained */

/* What one call site holds, and how that changed over time. */
struct fact_site {
	struct fact_stack stack;
	uint32_t process, pid;
	uint32_t device;              /* index; FACT_NONE: host */
	uint32_t kind;                /* enum cuf_kind */
	const char *api;              /* that allocated its blocks; NULL unknown */
	const char *role;             /* weights, kv ...; NULL unknown */
	enum fact_basis role_basis;   /* NONE without a role */
	enum fact_class class;
	enum fact_shape shape;
	bool holds_blocks;            /* its blocks are split into a framework's blocks, which have
				       * rows of their own (kind FRAMEWORK) for the same bytes */
	uint64_t bytes, count;        /* live at the moment */
	enum fact_basis basis;        /* of bytes and count */
	uint64_t low_bytes;           /* 95 % interval of bytes; empty where they are observed */
	uint64_t high_bytes;
	double interval[2];           /* 95 % interval of slope_bytes_per_s */
	double slope_bytes_per_s;     /* of the minimum; NAN unknown */
	uint64_t per_request_bytes;   /* median of what each cycle adds; CUF_UNKNOWN */
	uint64_t cycles;              /* of the program's work that were seen; 0 none */
	enum fact_basis cycles_basis; /* observed: marked requests; inferred: rises and falls */
	uint64_t peak_bytes;
	uint64_t alloc_count, alloc_bytes, free_count; /* over the events that were kept */
	uint64_t first_ns, last_ns;   /* birth of the oldest and the youngest live block */
	double grown_bytes;           /* over the time observed */
};

struct growth {
	struct sites sites;
	struct site_floor *floors; size_t floor_count;
	struct cycles *cycles;
	struct cycle_mark *marks; size_t mark_count;
	uint32_t windows;         /* of marks, at most TREND_MAX */
	uint8_t *window_of_mark;
	uint32_t first_mark[TREND_MAX]; /* of each window */
	double cycles_per_mark;   /* whole, or one over a whole number, where that is what it nearly is */
	uint64_t work_cycles;     /* of the program's own work; 0: none found, the marks are evenly spaced */
	uint64_t events;          /* followed */
	bool births;              /* site.old_bytes were filled in */
	/* the program's own word, before growth_follow: when none of its requests was open (phases.h), and how many ended */
	const struct cycle_mark *quiet; size_t quiet_count; uint64_t requests; /* borrowed; quiet NULL: it said nothing */
	bool said;                /* the marks are those */
};

/* A stream of events that can be read twice, and the live set that it ends in (put into the table by the caller). */
struct growth_step {
	int64_t delta_bytes;      /* of all the blocks that this one stands for */
	uint64_t time_ns, count;  /* of those blocks; 1 unless it was sampled */
	uint32_t stack, age_ms;   /* of what was freed, where it is known */
	uint32_t tid;
	uint16_t hook, label;
	uint8_t kind, device;
};
struct growth_source {
	void *state;
	void (*rewind)(void *state);
	size_t (*read)(void *state, struct growth_step *steps, size_t most); /* 0: at the end */
};

void growth_init(struct growth *growth);
void growth_follow(struct growth *growth, const struct growth_source *source);
/* A live block's birth, after growth_follow: did it stay from before the last quarter on? */
void growth_birth(const struct growth *growth, struct site *site, uint64_t bytes,
		  uint64_t birth_ns);
/* After growth_follow: is there a site whose verdict hangs on births? They are no evidence by a clock too coarse to order them
 * against the marks. */
bool growth_asks_births(const struct growth *growth, uint64_t resolution_ns);
void growth_judge(const struct growth *growth, const struct site *site, struct fact_site *out);
void growth_fini(struct growth *growth);

/* The sources. Device: events of one ring up to seq: the driver's blocks, or (framework) those that a framework cut out of them.
 * Host: events up to time_ns (CUF_UNKNOWN: all). */
struct growth_device { const struct events *events; size_t at; uint64_t seq; bool framework; };
bool growth_counts(bool framework, unsigned kind); /* is such a block followed there? */
struct growth_source growth_device_source(struct growth_device *device);
struct growth_host { const struct reader *reader; struct host_stream *stream; uint64_t time_ns; };
struct growth_source growth_host_source(struct growth_host *host);

#endif
