/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What grew, and what leaks. The live bytes of each call site are followed through the events. Its
 * minimum at the low points of the program's cycles (cycles.h) is judged. A site is a leak when
 * all of this holds:
 *
 * - its minimum rose in at least 8 cycles and in every quarter of the time observed;
 * - it fell by no more than a tenth of what it rose;
 * - the second half of the time has at least half the rise of the first: no plateau;
 * - its blocks stay: they are not freed late, and old ones are still live;
 * - they are not one block for each of a few threads, and not segments of a framework.
 *
 * Of host memory a sample's rises and falls are chance, and nothing tells a list that is filled
 * from one that leaks but time. There the cycles prove a leak only when the program marks its
 * requests, or when every event is known; else sites are judged by the ages of their blocks
 * (survival.h).
 *
 * Being live at the end is never enough. analysis/growth/README.md has the rules with their
 * numbers.
 *
 * Three streams are judged separately: device blocks, blocks of frameworks, and host blocks (the
 * malloc family). A site is that of reader_call_site: stacks that print alike are one, and growth
 * is judged over their sum.
 *
 * Contract: the two passes fill `sites` and `growth`; growth_judge turns one site into facts,
 * without stack frames. Times are CLOCK_MONOTONIC. Heap memory, freed by growth_fini.
 */
#pragma once

#include "analysis/growth/cycles.h"
#include "analysis/growth/survival.h"
#include "analysis/recording/fact_types.h"
#include "analysis/recording/events.h"
#include "analysis/replay/liveset.h"
#include "analysis/replay/sites.h"
#include "analysis/replay/sweep.h"

/* LEAK: proven. GROWING: blocks of every age and still rising, but nothing proves that it would
 * not end; only host memory. */
enum fact_class {
	CLASS_LEAK,
	CLASS_GROWING,
	CLASS_LIVE,
	CLASS_BOUNDED_CACHE,
	CLASS_RETAINED,
	CLASS_MAX
};
/* leak growing live bounded_cache retained */

/* What one call site holds, and how that changed over time. */
struct fact_site {
	struct fact_stack stack;
	uint32_t process, pid;
	uint32_t device;              /* index; FACT_NONE: host */
	uint32_t kind;                /* enum cuf_kind */
	const char *api;              /* that allocated its blocks; NULL unknown */
	const char *role;             /* weights, kv ...; NULL unknown */
	enum fact_basis role_basis;   /* NONE without a role */
	const char *owner;            /* a runtime's own memory: "Java heap"; NULL: not */
	const char *runtime;          /* of the owner: "Java"; NULL */
	bool is_managed;              /* the owner is a heap with a collector; never a leak */
	bool is_mapped;               /* by that runtime, which may not have touched all of it */
	enum fact_class class;
	enum fact_shape shape;
	bool holds_blocks;            /* its blocks are split into a framework's blocks, which have
				       * rows of their own (kind FRAMEWORK) for the same bytes */
	uint64_t bytes, count;        /* live at the moment */
	uint64_t shared_bytes;        /* of them: memory that other processes may see */
	enum fact_basis basis;        /* of bytes and count */
	uint64_t low_bytes;           /* 95 % interval of bytes; empty where they are observed */
	uint64_t high_bytes;
	double interval[2];           /* 95 % interval of slope_bytes_per_s */
	/* what a second of the last third of the time added, by one of the middle third; NAN
	 * unknown */
	double pace;
	/* of the minimum; of what survives where the class is GROWING; NAN unknown */
	double slope_bytes_per_s;
	/* median of what each cycle adds; CUF_UNKNOWN: not known to 10 %, or of host memory whose
	 * requests are not marked */
	uint64_t per_request_bytes;
	uint64_t cycles;              /* of the program's work that were seen; 0 none */
	uint64_t own_cycles;          /* of these, since its oldest live block was made */
	enum fact_basis cycles_basis; /* observed: marked requests; inferred: rises and falls */
	uint64_t peak_bytes;
	uint64_t alloc_count, alloc_bytes, free_count; /* over the events that were kept */
	uint32_t threads;             /* that allocated there, an estimate; 266 at most */
	bool is_alike;                /* its blocks are of about one size */
	bool is_doubling;             /* its large blocks: each is much larger than the last */
	uint64_t largest_bytes;       /* of one block; 0: no event of it was kept */
	/* Host: how often it freed nearly all that it held, and the most that it held before it did
	 * so for the last time. */
	uint32_t rounds;
	uint64_t before_bytes;
	uint64_t churn_bytes;         /* host: that all call sites freed since this one began */
	uint64_t first_ns, last_ns;   /* birth of the oldest and the youngest live block */
	double grown_bytes;           /* over the time observed */
};

struct growth {
	struct sites sites;
	struct site_floor *floors; /* of the sites that grew most */
	size_t floor_count;
	struct cycles *cycles;
	struct cycle_mark *marks;
	size_t mark_count;
	uint32_t windows;         /* of marks, at most TREND_MAX */
	uint8_t *window_of_mark;
	uint32_t first_mark[TREND_MAX]; /* of each window */
	/* rounded to a whole number, or to one over a whole number, if it is near */
	double cycles_per_mark;
	uint64_t work_cycles;     /* cycles of work; 0: none found, the marks are evenly spaced */
	uint64_t events;          /* followed */
	/* of all call sites, relative to the first event: after the last one, and at most */
	int64_t total_bytes, highest_bytes;
	uint64_t highest_ns;
	bool births;              /* site.old_bytes were filled in */
	/* Set at first, and again before growth_turn: those of the program. Borrowed, and may
	 * become more at the same time; NULL: it marked none. */
	const struct quiet_marks *quiet;
	uint64_t *positions;      /* of each quiet moment: the steps before it */
	size_t placed, position_room;
	uint64_t again;           /* steps of the second pass so far, and marks before them */
	uint32_t mark;
	/* set before growth_follow: those moments are the low points of another layer's work, and
	 * count where this one has no cycles of its own */
	bool is_lent;
	bool is_marked;           /* the marks are moments that the program marked */
	/* Older events that were overwritten; set before growth_follow. From growth_turn on,
	 * without those that made blocks which were live at the first event that was kept. */
	uint64_t lost_events;
	/* Set before growth_follow where sites are judged by age, too (host memory). */
	bool by_age;
	bool is_sampled, is_failure; /* memory ran out at time.end_ns */
	uint64_t threads_most;       /* at one time; 0: not known */
	struct survival_time time;   /* events_ns is found by growth_follow */
	struct survival *survivals;  /* of the sites that have floors */
	struct survival *pools;      /* of the places in the program that several sites share */
	uint32_t *pool_of_floor;     /* NULL before growth_pool */
	struct survival all;         /* net_bytes and freed_bytes of all sites */
	unsigned part;               /* of the step that is followed, until part_end_ns */
	uint64_t part_end_ns;
};

/* A live block: what it stands for, and how uncertain that is. */
struct growth_block { uint64_t bytes, birth_ns; double variance; };

/* Between the two passes: the device of the largest call site that may turn out to leak;
 * CUF_DEVICE_NONE. */
unsigned growth_may_leak(const struct growth *growth);

struct growth_step {
	int64_t delta_bytes;      /* of all the blocks that it stands for */
	uint64_t time_ns, count;  /* number of those blocks; 1 unless sampled */
	uint32_t stack, age_ms;   /* of what was freed, where known */
	uint32_t tid;
	uint16_t hook, label;
	uint8_t kind, device;
	bool is_resize;           /* a half of a realloc: no rise or fall of the work */
};
/* A stream of events that can be read twice. */
struct growth_source {
	void *state;
	void (*rewind)(void *state);
	size_t (*read)(void *state, struct growth_step *steps, size_t most); /* 0: at the end */
	void (*drain)(void *state); /* what comes after the end; after the first reading */
};

void growth_init(struct growth *growth);
/* All steps twice, at most SITES_ROW at a time: first for totals and cycles, then for minima at
 * the marks. Before growth_turn, the live set at the end is in `sites`. */
void growth_first(struct growth *growth, struct growth_step *steps, size_t count);
void growth_turn(struct growth *growth);
void growth_again(struct growth *growth, struct growth_step *steps, size_t count);
void growth_end(struct growth *growth);
/* The same with a source that can be read twice. */
void growth_follow(struct growth *growth, const struct growth_source *source);
/* Counts the birth of a live block, after growth_end. */
void growth_birth(const struct growth *growth, struct site *site,
		  const struct growth_block *block);
/* Whether a verdict depends on births, after growth_end. A clock too coarse to order births
 * against the marks makes them useless. */
bool growth_asks_births(const struct growth *growth, uint64_t resolution_ns);
/* After growth_birth, where sites are judged by age: call sites of one place (stack_identity.h) are
 * judged together, too. A container that grows has several, and what allocates below a line of
 * Python changes while the program runs. */
void growth_pool(struct growth *growth, const struct reader *reader);
void growth_judge(const struct growth *growth, const struct site *site, struct fact_site *out);
void growth_fini(struct growth *growth);

/* Whether blocks of this kind are followed. */
bool growth_counts(bool framework, unsigned kind);
/* The blocks of the driver and those that a framework split off, each by themselves, up to seq:
 * followed in two sweeps. */
enum { GROWTH_DRIVER, GROWTH_FRAMEWORK, GROWTH_DEVICES };
struct growth_devices {
	const struct reader *reader;
	struct growth *layers;    /* GROWTH_DEVICES of them */
	uint64_t seq;
};
struct sweep_consumer growth_first_consumer(struct growth_devices *devices);
struct sweep_consumer growth_again_consumer(struct growth_devices *devices);

/* Host events up to a moment. Others may listen: in the first reading to those after the moment,
 * in the second to those before it, which another thread may read. */
struct growth_host {
	const struct reader *reader;
	struct host_stream *stream; /* NULL at first; the caller frees it at the end */
	struct heap_moment moment;
	void (*after)(void *listener, const struct host_event *event); /* NULL: it was the last */
	void (*before)(void *listener, const struct host_event *event);
	void *listener;
	unsigned reading;           /* from 1 */
	/* decoded events that are next; until rewind there are none */
	const struct host_event *row, *row_end;
	uint64_t at;
};
struct growth_source growth_host_source(struct growth_host *host);
