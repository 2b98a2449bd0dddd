/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays a recording to the judge of analysis/explain/ from its first second: a pass at each twentieth
 * of the run, with what was known then. Two rules that watch totals see the same moments.
 *
 * Usage: timelapse RECORDING [RUN_S]. RUN_S: how long the run is taken to last (1800). The judge's
 * warm-up is shorter in the same proportion as the run, and so all times of its rules.
 *
 * Prints "judge AT what NAMES", "threshold AT", "linear AT": the share of the run at which each
 * raised its first alarm; "-": it never did. what: right, if the report of the whole run calls one
 * of the accused call sites a leak or growing; else wrong.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/explain/facts_build.h"
#include "analysis/explain/judge.h"
#include "analysis/recording/reader.h"

enum { PASSES = 20, WINDOW_PART = 8, HORIZON_PART = 2 };
#define RUN_S 1800.0
#define FULL 0.9

struct alarm { double at; bool raised; };

struct lapse {
	const char *path;
	double run_s, span_s;
	uint64_t begin_ns;
	struct facts *whole;
	struct live_judge *judge;
	struct alarm judged, threshold, linear;
	bool right;
	char names[512];
};

static void raise_alarm(struct alarm *alarm, double at)
{
	if (!alarm->raised)
		*alarm = (struct alarm){ at, true };
}

/* ---- the judge ---- */

static bool is_accused_at_last(const struct facts *whole, const struct fact_site *site)
{
	for (size_t i = 0; i < whole->leak_count; i++)
		if (whole->leaks[i].stack.id == site->stack.id &&
		    whole->leaks[i].kind == site->kind && whole->leaks[i].pid == site->pid)
			return whole->leaks[i].class <= CLASS_GROWING;
	return false;
}

static void judge_moment(struct lapse *lapse, struct facts *facts, double at)
{
	const struct judgement *judgement;
	struct judge_seen seen = { .facts = facts,
				   .now_ns = lapse->begin_ns + (uint64_t)(at * lapse->span_s * 1e9),
				   .cgroup_working_bytes = CUF_UNKNOWN,
				   .machine_available_bytes = CUF_UNKNOWN };

	/* as it was then */
	for (size_t i = 0; i < facts->process_count; i++)
		facts->processes[i].end = END_RUNNING;
	judgement = live_judge_pass(lapse->judge, &seen);
	for (size_t i = 0; i < judgement->site_count; i++) {
		const struct live_site *live = &judgement->sites[i];

		if (live->state < LIVE_GROWING)
			continue;
		lapse->right |= is_accused_at_last(lapse->whole, live->site);
		if (!lapse->judged.raised)
			snprintf(lapse->names + strlen(lapse->names),
				 sizeof lapse->names - strlen(lapse->names), " %s:%u",
				 live_state_names[live->state], live->site->stack.id);
	}
	if (judgement->state_counts[LIVE_GROWING] + judgement->state_counts[LIVE_LEAK])
		raise_alarm(&lapse->judged, at);
}

/* ---- totals ---- */

/* Whether a line through what was held lately reaches the whole device soon enough. */
static bool line_reaches(const struct lapse *lapse, const struct facts *facts, double now_s)
{
	const struct fact_process *process = &facts->processes[facts->focus];
	double from_s = now_s - lapse->span_s / WINDOW_PART, n = 0, x = 0, y = 0, xx = 0, xy = 0;
	double slope, total = (double)facts->devices[0].total_bytes;

	for (size_t i = 0; i < process->timeline_count; i++) {
		const struct fact_sample *sample = &process->timeline[i];
		double t = ((double)sample->time_ns - (double)lapse->begin_ns) / 1e9;

		if (t < from_s || t > now_s || sample->device_live_bytes[0] == CUF_UNKNOWN)
			continue;
		n++;
		x += t - now_s;
		y += (double)sample->device_live_bytes[0];
		xx += (t - now_s) * (t - now_s);
		xy += (t - now_s) * (double)sample->device_live_bytes[0];
	}
	if (n < 3 || !(n * xx - x * x > 0))
		return false;
	slope = (n * xy - x * y) / (n * xx - x * x);
	return (y - slope * x) / n + slope * lapse->span_s / HORIZON_PART >= total;
}

static void watch_totals(struct lapse *lapse, const struct facts *facts, double at)
{
	const struct fact_device *device = facts->devices;

	if (!facts->device_count)
		return;
	if (device->free_bytes != CUF_UNKNOWN &&
	    (double)device->free_bytes <= (1 - FULL) * (double)device->total_bytes)
		raise_alarm(&lapse->threshold, at);
	if (line_reaches(lapse, facts, at * lapse->span_s))
		raise_alarm(&lapse->linear, at);
}

/* ---- the run ---- */

static struct facts *facts_at(const char *path, enum facts_at at, double seconds, double warm_up_s)
{
	struct facts_options options = { .at = at, .at_value = (uint64_t)(seconds * 1e9),
					 .without_replay = true, .threads = 1,
					 .warm_up_s = warm_up_s };
	struct reader_error error = { 0 };
	struct facts *facts = NULL;

	if (!facts_build(path, &options, &facts, &error))
		return facts;
	fprintf(stderr, "timelapse: %s: %s\n", path, reader_error_sentence(error.code));
	exit(2);
}

static void print_alarm(const char *who, const struct alarm *alarm)
{
	printf("%s ", who);
	if (alarm->raised)
		printf("%.2f", alarm->at);
	else
		printf("-");
}

int main(int argc, char **argv)
{
	struct lapse lapse = { .path = argv[1], .run_s = argc > 2 ? atof(argv[2]) : RUN_S };
	const struct fact_process *process;
	double warm_up_s;

	if (argc < 2 || argc > 3 || !(lapse.run_s > 0))
		return 2;
	lapse.whole = facts_at(lapse.path, FACTS_AT_AUTO, 0, 0);
	process = &lapse.whole->processes[lapse.whole->focus];
	lapse.begin_ns = lapse.whole->processes[0].start_ns;
	lapse.span_s = ((double)process->end_ns - (double)lapse.begin_ns) / 1e9;
	warm_up_s = JUDGE_WARM_UP_S * lapse.span_s / lapse.run_s;
	lapse.judge = live_judge_new(&(struct judge_rules){ .warm_up_s = warm_up_s });
	for (unsigned pass = 1; pass <= PASSES; pass++) {
		double at = (double)pass / PASSES;
		struct facts *facts = facts_at(lapse.path, FACTS_AT_TIME, at * lapse.span_s,
					       warm_up_s);

		judge_moment(&lapse, facts, at);
		watch_totals(&lapse, facts, at);
		facts_free(facts);
	}
	print_alarm("judge", &lapse.judged);
	printf(" %s%s\n", lapse.right ? "right" : "wrong", lapse.names);
	print_alarm("threshold", &lapse.threshold);
	puts("");
	print_alarm("linear", &lapse.linear);
	puts("");
	live_judge_free(lapse.judge);
	facts_free(lapse.whole);
	return 0;
}
