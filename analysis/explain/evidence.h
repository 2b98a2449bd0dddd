/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What speaks for or against a cause, computed once for an incident and once for the end of a process: figures (bytes,
 * counts) under names that sentences use, and terms, each a number without unit that causes_table.c compares with a
 * threshold. Nothing is judged here.
 *
 * Contract. A figure that is not known is CUF_UNKNOWN, a term that could not be seen is NAN: neither is ever 0 for want
 * of data. A term has the sequence numbers of up to four events that show it (they exist in the recording), or the time of
 * a sample. Everything lies in the arena of the run. device FACT_NONE: host memory. The incident is NULL at the end.
 */
#ifndef ANALYSIS_EXPLAIN_EVIDENCE_H
#define ANALYSIS_EXPLAIN_EVIDENCE_H

#include "analysis/facts/build.h"

/* SETTING, FRACTION: a count, a percentage, as they are typed on a command line: 16384, 0.85 */
enum figure_unit { UNIT_BYTES, UNIT_COUNT, UNIT_PERCENT, UNIT_SECONDS, UNIT_BYTES_PER_SECOND, UNIT_SETTING, UNIT_FRACTION };

/* name in sentences, unit, what it is */
#define FIGURES(F) \
	F(request, BYTES, "what was asked for; of a framework, what its caller wanted") \
	F(free, BYTES, "what the driver had free") \
	F(total, BYTES, "of the device") \
	F(shortfall, BYTES, "request less free") \
	F(mine, BYTES, "held by this process, rounding, slack and context included") \
	F(others, BYTES, "total less free less mine: other tenants, and what could not be seen") \
	F(others_run, BYTES, "of others: processes that were recorded too") \
	F(neighbour, BYTES, "of others: the largest process that has a name, if the request would have fitted without it") \
	F(before, BYTES, "taken before this process allocated anything") \
	F(rose, BYTES, "how much others rose since the first look") \
	F(slack, BYTES, "free inside pages, pools and segments that this process holds") \
	F(hole, BYTES, "largest free range inside them that could have served") \
	F(packed, BYTES, "what packing every hole would give") \
	F(contribution, PERCENT, "of the shortfall that packing would cover") \
	F(emptyable, BYTES, "held open by blocks that use less than a tenth") \
	F(remappable, BYTES, "free in chunks of 20 MiB, inside large segments: expandable segments would give them back") \
	F(open, BYTES, "free bytes that the blocks of one site keep from being given back") \
	F(pin, BYTES, "bytes of the blocks that hold most open") \
	F(pins, COUNT, "how many they are") \
	F(layers, COUNT, "live blocks whose size repeats") \
	F(depth, COUNT, "how often the sizes of the weights repeat: layers") \
	F(layer_sizes, COUNT, "different sizes among them") \
	F(unit, BYTES, "size of the blocks of the largest family of equal blocks") \
	F(family, COUNT, "blocks in it") \
	F(family_bytes, BYTES, "their sum") \
	F(base, BYTES, "what the device holds without them") \
	F(fits, COUNT, "how many of them fit") \
	F(wanted, COUNT, "how many were wanted, at least") \
	F(step, BYTES, "by which the requests of one site grow") \
	F(terms, COUNT, "how often they grew by it") \
	F(last, BYTES, "the largest that was served") \
	F(steps_fit, COUNT, "steps that would have fitted") \
	F(resets, COUNT, "how often the site gave all back") \
	F(kept, BYTES, "smaller blocks of a growing ladder that are still there") \
	F(ladder, COUNT, "how many they are") \
	F(series_request, BYTES, "the request, where it is the growing site's own") \
	F(siblings, COUNT, "live blocks of the failing site, or of the cache that fills the device") \
	F(grown, BYTES, "their sum") \
	F(siblings_before, COUNT, "the most of them that lived before at once") \
	F(threads, COUNT, "threads that hold one of them") \
	F(served, BYTES, "median of the blocks that came and went before") \
	F(served_most, BYTES, "the largest of them") \
	F(cycles, COUNT, "of the program's own work that were seen") \
	F(leaked, BYTES, "in sites whose floor rises without end") \
	F(per_request, BYTES, "added to them by each cycle") \
	F(each_request, BYTES, "the same, where the program marks its requests: a cycle is one then") \
	F(slope, BYTES_PER_SECOND, "added to them each second") \
	F(left, SECONDS, "until the device is full at that slope") \
	F(left_least, SECONDS, "at the upper end of its 95 % interval") \
	F(left_most, SECONDS, "at the lower end") \
	F(plateau, BYTES, "in caches that have stopped growing") \
	F(kv, BYTES, "of the key and value cache") \
	F(kv_fits, BYTES, "size of it that leaves room for the request") \
	F(kv_excess, BYTES, "by which it must be smaller") \
	F(kv_percent, PERCENT, "that size, of its present one") \
	F(weights, BYTES, "in sites that load weights") \
	F(libraries, COUNT, "loaded libraries that take device memory unseen") \
	F(together, BYTES, "what one unit of concurrent work takes at the failing site") \
	F(together_fit, COUNT, "how many such units fit at once") \
	F(per_slot, BYTES, "the request, divided by the sequences at once that were set") \
	F(devices, COUNT, "devices of the run") \
	F(fullest, PERCENT, "used of the fullest device") \
	F(emptiest, PERCENT, "used of the emptiest") \
	F(context, SETTING, "context length that was set") \
	F(context_fits, SETTING, "context length that fits") \
	F(fraction, FRACTION, "share of the device that was set") \
	F(fraction_fits, FRACTION, "share that fits") \
	F(slots, SETTING, "sequences at once that were set") \
	F(slots_fit, SETTING, "that fit") \
	F(rss, BYTES, "resident memory") \
	F(rss_first, BYTES, "at the first sample") \
	F(cgroup, BYTES, "memory of the cgroup") \
	F(limit, BYTES, "the cgroup's limit, else the machine's memory") \
	F(host_live, BYTES, "live blocks of malloc") \
	F(host_leaked, BYTES, "of them in sites that grow without end") \
	F(host_per_request, BYTES, "added to them by each cycle") \
	F(host_each_request, BYTES, "the same, where the program marks its requests") \
	F(host_slope, BYTES_PER_SECOND, "added to them each second") \
	F(host_left, SECONDS, "until the limit is reached at that slope") \
	F(host_cached, BYTES, "free in the allocator, kept") \
	F(host_idle, BYTES, "resident, and neither live in malloc nor files") \
	F(pinned, BYTES, "page-locked memory") \
	F(locked, BYTES, "page-locked memory that was refused") \
	F(pinned_wasted, BYTES, "of it lost to rounding to powers of two, at most")

enum figure {
#define FIGURE_ID(name, unit, what) FIG_##name,
	FIGURES(FIGURE_ID)
#undef FIGURE_ID
	FIGURE_MAX
};

/* name for help, the sentence for people; {figures} are filled in */
#define TERMS(T) \
	T(survived, "the program went on after the failure") \
	T(retried, "a later try was served") \
	T(own, "this process and the request are {mine} + {request} of the {total} device") \
	T(alone_fits, "others hold {others} of the device; without them the request would have fitted") \
	T(before, "{before} of {total} was taken before this process allocated anything") \
	T(others_run, "{others_run} are held by other processes of this run") \
	T(late, "{rose} that this process did not allocate came while it ran") \
	T(libraries, "{libraries} loaded libraries take device memory that cannot be seen call by call") \
	T(room, "the driver refused {request} although {free} was free") \
	T(no_driver_call, "the framework refused by itself: no call of the driver failed") \
	T(packed, "packing every hole would give {packed}; {request} was asked for") \
	T(hole, "the largest free range that could serve is {hole}") \
	T(slack, "{slack} lie free inside what this process holds, enough for {request} and no small part of it") \
	T(sparse, "{emptyable} is held open by blocks that use less than a tenth of it") \
	T(pinning, "{pins} blocks of {pin} hold most of it open") \
	T(pool, "{slack} of the reserved memory lies free in pools") \
	T(contribution, "fragmentation contributes {contribution} of the shortfall: {slack} lie in holes") \
	T(nothing_freed, "nothing was given back since the start") \
	T(layered, "{layers} live blocks repeat {layer_sizes} sizes, as layers of a model do") \
	T(over_layer, "{request} is larger than any block that repeats") \
	T(new_site, "the failing call had never allocated before") \
	T(family, "{family} equal blocks of {unit} are {family_bytes} of the device") \
	T(family_next, "the request that failed is one more of the {family} equal blocks of {unit}") \
	T(burst, "they were allocated one after another, with little in between") \
	T(family_fits, "{fits} of them fit beside the rest of the device") \
	T(after_query, "the program asked for free memory directly before it allocated them") \
	T(kv_prealloc, "{kv} of key and value cache is laid out in advance") \
	T(kv_done, "the key and value cache of {kv} is complete; {request} more did not fit beside it") \
	T(kv_named, "the functions that ask name a key and value cache") \
	T(weights_named, "the functions that ask load weights") \
	T(activations_named, "the functions that ask compute a forward pass") \
	T(slots_named, "the functions that ask name slots, sequences or a batch") \
	T(family_churn, "blocks of that size come and go") \
	T(kv_grown, "{siblings} blocks that come one by one and go when a request ends hold {grown}, more than ever before") \
	T(arithmetic, "requests of one site grow by {step} each time: {terms} times, the last {last}") \
	T(next_term, "the request that failed is the next one of that series") \
	T(sawtooth, "the site gave everything back {resets} times: it grows within a request") \
	T(longest, "this is the longest it ever grew") \
	T(geometric, "each request of the site is larger than the last by about the same factor") \
	T(ladder, "{ladder} smaller blocks of the same growing series, {kept}, were never given back") \
	T(concurrent, "{siblings} at once, of {threads} threads; never more than {siblings_before} before") \
	T(one_fits, "a single one would have fitted") \
	T(over_served, "{request} is far more than the {served} that requests took before") \
	T(early, "fewer than 8 cycles of work were done") \
	T(one_request, "only one such request was seen: a leak cannot be excluded") \
	T(per_slot, "{request} is {slots} times {per_slot}: one for each sequence that was set") \
	T(stranded, "{slack} of free memory belong to a pool that this request may not use") \
	T(grown_over_slack, "packing would have put the failure off, not prevented it: {grown} came with requests, {slack} lie in holes") \
	T(late_failure, "{cycles} cycles of work were done before") \
	T(leak, "sites whose floor rises without end hold {leaked}; the request was {shortfall} short") \
	T(growing, "they gain {per_request} with each cycle of work") \
	T(plateau, "caches that have stopped growing hold {plateau}") \
	T(creep, "the driver's used memory rose by {rose} more than what was allocated here") \
	T(own_context, "the driver took {rose} for itself around calls of this process: modules, contexts, limits") \
	T(imbalance, "of {devices} devices the fullest is used to {fullest}, another device to no more than {emptiest}") \
	T(graph_capture, "the failure came during or right after a graph capture") \
	T(foreign_caller, "the failing call does not come from the framework that holds the slack") \
	T(oom_killed, "the kernel killed the process for want of memory") \
	T(host_full, "its cgroup held {cgroup} of {limit}") \
	T(host_mine, "{rss} of that was resident in this process") \
	T(host_ramp, "resident memory rose from {rss_first} to {rss} before any work was done") \
	T(host_leak, "host sites whose floor rises without end hold {host_leaked}") \
	T(host_growing, "they gain {host_per_request} with each cycle of work") \
	T(host_freed, "most of what malloc gave was freed again") \
	T(host_cache, "host caches that have stopped growing hold {plateau}") \
	T(host_slack, "{host_idle} of {rss} resident is neither live in malloc nor files") \
	T(pinned_share, "{pinned} is page-locked") \
	T(pinned_rounded, "up to {pinned_wasted} of it is rounding to powers of two") \
	T(host_refused, "malloc refused {request}") \
	T(host_huge, "that one request is more than all that was live in malloc") \
	T(host_request, "the failing call locks host memory; the device had {free} free")

enum term {
#define TERM_ID(name, words) TERM_##name,
	TERMS(TERM_ID)
#undef TERM_ID
	TERM_MAX
};

extern const struct figure_row { const char *name; enum figure_unit unit; const char *what; } figure_rows[FIGURE_MAX];
extern const struct term_row { const char *name, *words; } term_rows[TERM_MAX];

struct evidence_term {
	double value;             /* NAN: could not be seen */
	uint64_t seqs[4]; size_t seq_count;
	uint64_t time_ns;         /* CUF_UNKNOWN */
	uint32_t stack;           /* the site that it is about; 0 none */
};

struct evidence {
	uint32_t process, device;
	const struct fact_incident *incident;
	uint64_t figures[FIGURE_MAX];
	struct evidence_term terms[TERM_MAX];
	const char *framework;    /* as framework_names.h names it; "" none */
	const char *options[FIGURE_MAX]; /* of figures that the command line set: the option's name; of FIG_neighbour: who it is */
	uint32_t kv_stack;        /* site of the largest family of a key and value cache; 0 none */
	const char *const *lacks; size_t lack_count; /* sentences: what could not be seen */
	double quality;           /* 0 .. 1: what the recording is worth as a witness */
};

/* Of an incident, or (incident NULL) of how a process ended; device FACT_NONE then means the host alone. */
struct evidence evidence_of(struct build *build, uint32_t process, uint32_t device, const struct fact_incident *incident);

/* A sentence with its {figures} filled in, {@figure} with the option that set it; NULL when one of them is not known. */
const char *evidence_words(const struct evidence *evidence, struct arena *arena, const char *words);

/* For those that fill it. */
void evidence_set(struct evidence *evidence, enum term term, double value);
void evidence_show(struct evidence *evidence, enum term term, uint64_t seq); /* an event that shows it; at most four are kept */
static inline uint64_t evidence_figure(const struct evidence *evidence, enum figure figure) { return evidence->figures[figure]; }

/* Parts of evidence_of, each in a file of its own. */
void evidence_device(struct build *build, struct evidence *evidence);  /* room, packing, others */
void evidence_live(struct build *build, struct evidence *evidence);    /* what is live: families, layers, names */
void evidence_trace(struct build *build, struct evidence *evidence);   /* how it came about */
void evidence_growth(struct build *build, struct evidence *evidence);  /* sites that grow */
void evidence_host(struct build *build, struct evidence *evidence);
void evidence_settings(struct build *build, struct evidence *evidence); /* what the command line says */

#endif
