/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host blocks of one process: what is live, by call site and in all, from the host ledger.
 * When the recorder sampled, figures are estimates with a 95 % interval.
 *
 * Contract: the ledger is of the end of the recording. The events since bring it back to a moment:
 * to some milliseconds where the moment is a time, exactly where it is a number of events.
 */
#pragma once

#include "analysis/recording/events.h"
#include "analysis/recording/host_weight.h"
#include "analysis/replay/sites.h"

/* An unbiased estimate, with estimates of its second and third central moment. */
struct host_estimate { double value, variance, third; };

/*
 * Adds a block that was recorded with probability chance and stands for weight: the central
 * moments of a Bernoulli trial. sign -1 subtracts it.
 */
void host_estimate_add(struct host_estimate *estimate, double weight, double chance, double sign);

/* The nearest whole number of bytes or blocks; 0 for what is negative or beyond any number. */
uint64_t host_whole(double value);

struct heap_totals {
	bool known;               /* false: host=off, or the ledger is cut away */
	bool estimated;
	uint64_t mean_bytes;      /* largest mean of the sampler; 0: every block is known */
	struct host_estimate bytes, count; /* of malloc, and maps */
	struct host_estimate python_bytes, python_count; /* of CPython's own allocator */
	/* the most that was live up to the moment, and when (CLOCK_MONOTONIC); the reader of the
	 * events fills them in; CUF_UNKNOWN: no events */
	uint64_t peak_bytes, peak_ns;
};

/*
 * The 95 % interval of an estimate: the exact interval of a Poisson count of samples of one
 * weight, which has the second and third moment of the estimate. It holds for few samples and is
 * not empty with none. It excludes sizes of which nothing was sampled. unseen: the largest
 * weight of a block that was not sampled; INFINITY: no bound.
 */
struct host_interval { double low, high; };
struct host_interval host_estimate_interval(const struct host_estimate *estimate, double unseen);

/* Nothing is counted yet. */
struct heap_totals heap_totals_of(const struct reader *reader, const struct host_means *means);

/* Adds every live host block of the ledger and its birth to its site. */
void heap_read_end(const struct reader *reader, const struct host_means *means,
		   struct sites *sites, struct heap_totals *out);
/* Back to an earlier moment: heap_undo for each event after it, then heap_settle. */
void heap_undo(const struct reader *reader, const struct host_event *event, struct sites *sites,
	       struct heap_totals *out);
void heap_settle(struct sites *sites, struct heap_totals *out);

/* When most was live, as far as the events go back, and how much more than after the last of them.
 * False: there are none. One pass. */
bool heap_peak(const struct reader *reader, struct heap_moment *peak, double *above_end);

/* The ledger's sum: what is live after the last event. */
double heap_live_bytes(const struct reader *reader, const struct host_means *means);

/* Of these: blocks of a size or more, allocated at or after a time, as their births tell it. All
 * sums, which begin at 0, in one pass over the ledger. */
struct heap_since { uint64_t time_ns, bytes_least; double sum; };
void heap_bytes_since(const struct reader *reader, const struct host_means *means,
		      struct heap_since *asked, size_t count);

/* The live blocks by rows, with the indices of their sites. Start with *at = 0; false: at the
 * end. */
struct heap_block {
	uint32_t stack;
	uint32_t birth;    /* as the ledger packs it; selects the mean of the sampler */
	uint64_t bytes;
	uint64_t birth_ns; /* CLOCK_MONOTONIC */
	bool is_python;    /* of CPython's own allocator */
};

struct heap_row {
	struct heap_block blocks[SITES_ROW];
	uint32_t sites[SITES_ROW];
	size_t count;
};

/* One row is looked up at a time, so that cache misses overlap. */
bool heap_row(const struct reader *reader, uint64_t *at, struct sites *sites, struct heap_row *row);

/*
 * The host blocks that were live at a moment, each with its birth. The ledger has those that are
 * still live at the end of the recording. The others were freed since; their births are found among
 * the events, as Python frees all its objects when it ends.
 *
 * Contract: heap memory, freed by heap_births_free; dies on exhaustion.
 * Blocks whose birth was overwritten are left out. More than a few million blocks freed after the
 * moment are too many: then only the ledger's are returned.
 */

struct heap_birth {
	uint32_t stack;          /* that of reader_call_site */
	uint64_t birth_ns;       /* CLOCK_MONOTONIC */
	uint64_t bytes;          /* that the block stands for */
	double variance;         /* of these; 0: exact */
};

struct heap_births;
/* until_ns: the moment; CUF_UNKNOWN: the end. Then all events after it, then those before it. */
struct heap_births *heap_births_new(const struct reader *reader, const struct host_means *means,
				    uint64_t until_ns);
void heap_births_later(struct heap_births *births, const struct host_event *event);
void heap_births_before(struct heap_births *births, const struct host_event *event);
/* The next few blocks, at most SITES_ROW; 0: at the end. */
size_t heap_births_next(struct heap_births *births, struct heap_birth *out);
void heap_births_free(struct heap_births *births); /* NULL is fine */
