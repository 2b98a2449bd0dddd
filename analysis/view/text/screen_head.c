/* SPDX-License-Identifier: Apache-2.0 */
/* What happened: what ran out, for whom, how it ended, and the figures that go with it. */
#include <signal.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/facts/totals.h"
#include "analysis/facts/focus.h"
#include "analysis/view/text/live.h"
#include "analysis/view/text/screen.h"

enum { WORDS = 512, GROWING_MAX = 32, RISE_COLUMNS = 40 };
#define NS_PER_S 1000000000ull
#define GROWING_LEAST_BYTES (16ull << 20) /* less is no news of a program that has finished */

/*
 * Which memory ran out. A CUDA call may also fail for other reasons than memory: those have a
 * title that does not claim it.
 */
static const char *failure_title(const struct facts *facts, const struct fact_incident *incident)
{
	if (focus_is_locked(facts))
		return "OUT OF PAGE-LOCKED HOST MEMORY";
	if (incident->kind == CUF_KIND_HOST)
		return "OUT OF HOST MEMORY";
	if (incident->kind == CUF_KIND_FRAMEWORK || incident->result == 2)
		return "OUT OF GPU MEMORY";
	return "A CUDA CALL FAILED";
}

/* A raw exit_group leaves no more trace than SIGKILL. */
static bool has_unknown_end(const struct fact_process *process)
{
	return process->end == END_UNKNOWN ||
	       (process->end == END_KILLED && process->end_status == CUF_UNKNOWN);
}

/* SIGINT and SIGTERM are sent by a person or a supervisor, so that they are no crash. */
static const char *ending_title(const struct fact_process *process)
{
	switch (process->end) {
	case END_OOM_KILLED:
		return "KILLED BY THE KERNEL (out of memory)";
	case END_KILLED:
		return has_unknown_end(process) ? "NO END RECORDED" : "KILLED";
	case END_SIGNAL:
		if (process->end_status == SIGTERM || process->end_status == SIGINT)
			return "KILLED";
		return "CRASHED";
	case END_RUNNING:
		return "RUNNING";
	case END_UNKNOWN:
		return "NO END RECORDED";
	default:
		return "FINISHED";
	}
}

/* "OUT OF GPU MEMORY: server (pid 788), rank 3, GPU 0, exit status 1" */
static void print_headline(const struct text *text, const struct fact_process *process,
			   const struct fact_incident *incident)
{
	const struct facts *facts = text->facts;
	bool good = !incident && process->end != END_KILLED && process->end != END_SIGNAL &&
		    process->end != END_OOM_KILLED;
	uint64_t elapsed = text_elapsed(process->start_ns, process->end_ns);
	char words[WORDS], title[64], program[96], ending[96];
	const char *what = ending_title(process), *since = "after ";
	enum style_tone tone = STYLE_BAD;
	int used;

	if (incident)
		what = failure_title(facts, incident);
	if (end_may_run(process->end))
		since = "for ";
	if (good)
		tone = STYLE_GOOD;
	else if (!incident && has_unknown_end(process))
		tone = STYLE_WARN;
	text_program(process, program, sizeof program);
	text_ending(process, ending, sizeof ending);
	snprintf(title, sizeof title, "%s:", what);
	used = snprintf(words, sizeof words, "%s (pid %u)", program, process->pid);
	if (process->rank)
		used += snprintf(words + used, sizeof words - (size_t)used, ", rank %.16s",
			process->rank);
	if (incident && incident->device < facts->device_count && !focus_is_locked(facts))
		used += snprintf(words + used, sizeof words - (size_t)used, ", GPU %u",
				 facts->devices[incident->device].ordinal);
	if (process->end != END_RUNNING && process->end != END_OOM_KILLED &&
	    (incident || !has_unknown_end(process)))
		used += snprintf(words + used, sizeof words - (size_t)used, ", %s", ending);
	if (!incident && process->end != END_OOM_KILLED && elapsed != CUF_UNKNOWN)
		snprintf(words + used, sizeof words - (size_t)used, ", %s%s", since,
			 units_duration(elapsed).s);
	text_words(text, tone, title, 2, 2, words);
}

/* Who asked, and for how much: the framework's request where it is known, else the call. */
static void request_words(const struct text *text, const struct fact_incident *incident, char *out,
			  size_t bytes)
{
	const struct facts *facts = text->facts;
	const struct fact_fragmentation *fragmentation = NULL;
	char call[160];
	if (incident->device < facts->device_count)
		fragmentation = &facts->devices[incident->device].fragmentation;
	if (incident->framework_requested_bytes != CUF_UNKNOWN && fragmentation &&
	    fragmentation->framework_count) {
		snprintf(out, bytes, "%s could not allocate %s", fragmentation->frameworks[0].name,
			 units_bytes(incident->framework_requested_bytes).s);
		return;
	}
	text_requested(incident, call, sizeof call);
	snprintf(out, bytes, "%s failed", call);
}

/* ", 2.00 MiB too little" where both figures print alike. */
static struct lacking { char s[64]; } lacking(const struct fact_incident *incident)
{
	uint64_t wanted = incident->framework_requested_bytes;
	struct lacking out = { "" };

	if (!is_known(wanted))
		wanted = incident->requested_bytes;
	if (is_known(wanted) && wanted > incident->free_bytes &&
	    !strcmp(units_bytes(wanted).s, units_bytes(incident->free_bytes).s))
		snprintf(out.s, sizeof out.s, ", %s too little",
			 units_bytes(wanted - incident->free_bytes).s);
	return out;
}

/*
 * What the call returned. An error other than out-of-memory has its name and number, so that
 * it can be looked up.
 */
static void free_words(const struct fact_incident *incident, char *out, size_t bytes)
{
	const char *result = text_result_name(incident->result);
	if (!result)
		result = "see cuda.h";
	*out = 0;
	if (incident->refused_by != LIMIT_NONE)
		text_room(incident, out, bytes);
	else if (incident->kind == CUF_KIND_HOST)
		snprintf(out, bytes, ": %s", strerror((int)incident->result));
	else if (incident->kind != CUF_KIND_FRAMEWORK && incident->result != 2)
		snprintf(out, bytes, ": %s (CUDA error %u)", result, incident->result);
	else if (incident->free_bytes != CUF_UNKNOWN && incident->total_bytes != CUF_UNKNOWN)
		snprintf(out, bytes, " with %s of %s free%s", units_bytes(incident->free_bytes).s,
			 units_bytes(incident->total_bytes).s, lacking(incident).s);
}

/* What is refused again and again may become smaller: the last was the need. */
static void print_attempts(const struct fact_incident *incident, char *out, size_t bytes)
{
	uint64_t last = incident->attempts[incident->attempt_count - 1].requested_bytes;

	text_append(out, bytes, ", %s attempts", units_count(incident->attempt_count).s);
	if (is_known(last) && last < incident->requested_bytes)
		text_append(out, bytes, " down to %s", units_bytes(last).s);
}

/* One sentence. The tighter screen cuts it to a line, where the end is what is missed least. */
static void print_failure(const struct text *text, const struct fact_process *process,
			  const struct fact_incident *incident, unsigned tight)
{
	uint64_t elapsed = text_elapsed(process->start_ns, incident->time_ns);
	char words[WORDS], free_text[192];

	request_words(text, incident, words, sizeof words);
	free_words(incident, free_text, sizeof free_text);
	text_append(words, sizeof words, "%s", free_text);
	if (elapsed != CUF_UNKNOWN)
		text_append(words, sizeof words, ", after %s", units_duration(elapsed).s);
	if (incident->attempt_count > 1)
		print_attempts(incident, words, sizeof words);
	if (incident->phase)
		text_append(words, sizeof words, ", %sduring %.32s",
		       text_if(incident->phase_basis == BASIS_INFERRED, "probably "),
		       incident->phase);
	if (incident->request_phase && incident->request_id != CUF_UNKNOWN)
		text_append(words, sizeof words, ", request %s",
			    units_count(incident->request_id).s);
	text_words(text, STYLE_PLAIN, "", 0, tight ? 1 : 2, words);
}

static size_t count_leaks(const struct facts *facts)
{
	size_t count = 0;
	while (count < facts->leak_count && facts->leaks[count].class == CLASS_LEAK)
		count++;
	return count;
}

/* A line of the program that grew to the end, without being proven a leak: all its call sites. */
struct growing { struct place place; struct fact_rate rate; bool sampled; };

/* As the table marks its rows: by the shape, and not in a run of milliseconds. */
static bool is_growing(const struct text *text, const struct fact_site *site)
{
	const struct fact_process *process = &text->facts->processes[site->process];
	uint64_t elapsed = text_elapsed(process->start_ns, process->end_ns);

	if (site->class == CLASS_GROWING)
		return true;
	return site->class == CLASS_RETAINED && site->shape != SHAPE_NONE &&
	       site->shape != SHAPE_PLATEAU && elapsed != CUF_UNKNOWN && elapsed >= NS_PER_S;
}

/*
 * The lines of host memory that grow; of a GPU, what is loaded grows to the end of many programs.
 * any: anything grows. Call sites are sorted, so the largest are first.
 */
static size_t growing_lines(const struct text *text, struct growing lines[GROWING_MAX], bool *any)
{
	const struct facts *facts = text->facts;
	size_t count = 0;

	*any = false;
	for (size_t i = 0; i < facts->leak_count; i++) {
		struct place place;
		size_t at = 0;
		if (!is_growing(text, &facts->leaks[i]))
			continue;
		*any = true;
		if (facts->leaks[i].kind != CUF_KIND_HOST)
			continue;
		place_of(text->places, &facts->leaks[i].stack, &place);
		while (at < count && !place_is_same(&lines[at].place, &place))
			at++;
		if (at == count && count < GROWING_MAX)
			lines[count++] = (struct growing){ .place = place };
	}
	return count;
}

/* Returns whether anything grows. All call sites of a line count, as in its row of the table. */
static bool find_growing(const struct text *text, struct growing *out)
{
	struct growing lines[GROWING_MAX];
	const struct facts *facts = text->facts;
	bool any;
	size_t count = growing_lines(text, lines, &any);

	*out = (struct growing){ 0 };
	for (size_t i = 0; count && i < facts->leak_count; i++) {
		const struct fact_site *site = &facts->leaks[i];
		struct place place;
		if (site->kind != CUF_KIND_HOST || site->bytes == CUF_UNKNOWN)
			continue;
		place_of(text->places, &site->stack, &place);
		for (size_t at = 0; at < count; at++) {
			if (!place_is_same(&lines[at].place, &place))
				continue;
			fact_rate_add(&lines[at].rate, site);
			lines[at].sampled |= site->basis == BASIS_ESTIMATED;
		}
	}
	for (size_t i = 0; i < count; i++)
		if (lines[i].rate.bytes > out->rate.bytes)
			*out = lines[i];
	return any;
}

/* "Still growing at the end: load (job.py:12), about 20 MiB/s, 150 MiB." */
static void print_growing(const struct text *text, const struct growing *growing)
{
	uint64_t per_s = fact_rate_per_s(&growing->rate);
	char words[WORDS] = "";

	if (growing->rate.bytes < GROWING_LEAST_BYTES)
		return;
	text_append(words, sizeof words, "Still growing at the end: ");
	place_text(&growing->place, words + strlen(words), sizeof words - strlen(words));
	text_append(words, sizeof words, ", %s",
		    text_sampled(growing->rate.bytes, growing->sampled).s);
	if (per_s)
		text_append(words, sizeof words, ", %s/s", text_sampled(per_s, true).s);
	text_append(words, sizeof words, ".");
	text_words(text, STYLE_WARN, "", 0, 2, words);
}

/* Requests that failed and did not end the process. */
static void print_survived(const struct text *text)
{
	static const struct { enum fact_outcome outcome; const char *only, *one, *many; } rows[] = {
		{ OUTCOME_RECOVERED, "and succeeded on retry", "succeeded on retry",
		  "succeeded on retry" },
		{ OUTCOME_HANDLED, "and the program handled it", "was handled by the program",
		  "were handled by the program" },
		{ OUTCOME_UNKNOWN, "with an unknown outcome", "has an unknown outcome",
		  "have an unknown outcome" },
		{ OUTCOME_FATAL, "and was fatal", "was fatal", "were fatal" },
	};
	const struct facts *facts = text->facts;
	char words[WORDS] = "", call[160], room[128];
	bool single = facts->incident_count == 1, any = false;
	uint64_t calls = 0;

	text_append(words, sizeof words, "%s request%s failed",
		    units_count(facts->incident_count).s, text_s(facts->incident_count));
	for (size_t i = 0; i < facts->incident_count; i++)
		calls += facts->incidents[i].attempt_count;
	if (calls > facts->incident_count)
		text_append(words, sizeof words, " in %s calls", units_count(calls).s);
	text_append(words, sizeof words, "%s ", single ? "," : ":");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint64_t count = 0;
		for (size_t n = 0; n < facts->incident_count; n++)
			count += facts->incidents[n].outcome == rows[i].outcome;
		if (!count)
			continue;
		if (any)
			text_append(words, sizeof words, ", ");
		any = true;
		if (single)
			text_append(words, sizeof words, "%s", rows[i].only);
		else if (count == 1)
			text_append(words, sizeof words, "1 %s", rows[i].one);
		else
			text_append(words, sizeof words, "%s %s", units_count(count).s,
				    rows[i].many);
	}
	text_requested(&facts->incidents[facts->incident_count - 1], call, sizeof call);
	text_room(&facts->incidents[facts->incident_count - 1], room, sizeof room);
	text_append(words, sizeof words, "%s: %s%s.", text_if(!single, ". The last"), call, room);
	text_words(text, STYLE_WARN, "", 0, 2, words);
}

/* What is resident and what was allocated, of one moment. */
static void print_host_peak(const struct text *text, const struct fact_process *process)
{
	const struct fact_host *host = &process->host;
	bool is_sampled = host->malloc_basis == BASIS_ESTIMATED;
	bool is_near = host->is_near_peak && host->live_peak_bytes != CUF_UNKNOWN;
	uint64_t live = host->malloc_live_bytes + known_or_zero(host->python_live_bytes);
	const struct fact_sample *last = NULL;
	char words[WORDS];

	if (process->timeline_count)
		last = &process->timeline[process->timeline_count - 1];
	snprintf(words, sizeof words, "Host memory %s its peak (%s): %s resident",
		 host->is_near_peak ? "near" : "at",
		 units_duration(text_elapsed(process->start_ns, host->at_ns)).s,
		 units_bytes(host->rss_bytes).s);
	if (host->malloc_live_bytes != CUF_UNKNOWN)
		text_append(words, sizeof words, ", %s%s%s allocated",
			    text_sampled(live, is_sampled).s, text_if(is_near, " of "),
			    text_if(is_near, text_sampled(host->live_peak_bytes, is_sampled).s));
	if (process->end == END_EXIT && last)
		text_append(words, sizeof words, "; %s at the end",
			    units_bytes(last->rss_bytes).s);
	text_words(text, STYLE_PLAIN, "", 0, 2, words);
}

/*
 * Resident memory until the kill: eight levels, one character a column, each the highest sample of
 * its stretch of time. The limit is the top, so that the distance to it can be seen. With a limit
 * of the cgroup, its own count is what reaches that limit. Any locale can print the characters.
 */
static void print_rise(const struct text *text, const struct fact_process *process)
{
	static const char levels[] = " .,-=+*#";
	const struct fact_sample *samples = process->timeline;
	size_t count = process->timeline_count, columns = RISE_COLUMNS;
	uint64_t limit = process->host.cgroup_max_bytes, highest[RISE_COLUMNS] = { 0 }, top = 0;
	bool has_limit = limit != CUF_UNKNOWN;
	char bar[RISE_COLUMNS + 1] = "";
	double span;

	if (text->style->columns < STYLE_COLUMNS)
		columns /= 2;
	if (count < 2 || samples[count - 1].time_ns <= samples[0].time_ns)
		return;
	span = (double)(samples[count - 1].time_ns - samples[0].time_ns);
	for (size_t i = 0; i < count; i++) {
		bool of_group = has_limit && samples[i].cgroup_bytes != CUF_UNKNOWN;
		uint64_t bytes = of_group ? samples[i].cgroup_bytes : samples[i].rss_bytes;
		double share = (double)(samples[i].time_ns - samples[0].time_ns) / span;
		size_t at = (size_t)(share * (double)(columns - 1));
		if (bytes == CUF_UNKNOWN || at >= columns)
			continue;
		highest[at] = most_of(highest[at], bytes);
		top = most_of(top, bytes);
	}
	if (!top)
		return;
	if (has_limit)
		top = most_of(top, limit);
	for (size_t i = 0; i < columns; i++) {
		if (i && !highest[i])
			highest[i] = highest[i - 1]; /* between two samples the last one holds */
		bar[i] = levels[least_of(7, (uint64_t)((double)highest[i] / (double)top * 8))];
	}
	fprintf(text->out, "Memory  0 s |%s| %s\n", bar, units_duration((uint64_t)span).s);
}

/*
 * The kernel kills without a failed request. Instead, the limit and the course of memory up to
 * it are printed.
 */
static void print_kill(const struct text *text, const struct fact_process *process)
{
	const struct fact_host *host = &process->host;
	uint64_t elapsed = text_elapsed(process->start_ns, process->end_ns);
	char words[WORDS] = "";

	if (host->cgroup_max_bytes != CUF_UNKNOWN)
		text_append(words, sizeof words, "limit of the cgroup %s",
		       units_bytes(host->cgroup_max_bytes).s);
	else
		text_append(words, sizeof words, "memory of the machine %s",
		       units_bytes(host->memory_total_bytes).s);
	if (host->rss_peak_bytes != CUF_UNKNOWN)
		text_append(words, sizeof words, ", %s resident",
			    units_bytes(host->rss_peak_bytes).s);
	if (elapsed != CUF_UNKNOWN)
		text_append(words, sizeof words, ", after %s", units_duration(elapsed).s);
	text_words(text, STYLE_PLAIN, "", 0, 2, words);
	if (text->facts->incident_count)
		print_survived(text);
	print_rise(text, process);
}

/* At most two GPUs: the screen has few lines. */
static void print_peaks(const struct text *text, const struct fact_process *process)
{
	const struct fact_host *host = &process->host;
	const struct facts *facts = text->facts;
	char words[WORDS];

	for (size_t i = 0; i < facts->device_count && i < 2; i++) {
		const struct fact_device *device = &facts->devices[i];
		if (device->peak_bytes == CUF_UNKNOWN)
			continue;
		snprintf(words, sizeof words, "GPU %u: %s at the peak, of %s", device->ordinal,
			 units_bytes(device->peak_bytes).s, units_bytes(device->total_bytes).s);
		text_words(text, STYLE_PLAIN, "", 0, 1, words);
	}
	if (host->rss_peak_bytes == CUF_UNKNOWN)
		return;
	if (host->at_peak) {
		print_host_peak(text, process);
		return;
	}
	snprintf(words, sizeof words, "Host memory: %s at the peak",
		 units_bytes(host->rss_peak_bytes).s);
	if (!end_may_run(process->end) && host->rss_bytes != CUF_UNKNOWN)
		text_append(words, sizeof words, ", %s at the end", units_bytes(host->rss_bytes).s);
	if (host->cgroup_max_bytes != CUF_UNKNOWN)
		text_append(words, sizeof words, ", limit %s",
			    units_bytes(host->cgroup_max_bytes).s);
	text_words(text, STYLE_PLAIN, "", 0, 1, words);
}

/* What an end without a record can have been. */
static const char *before_why(const struct fact_process *process)
{
	const char *runtime = process->host.heap.runtime;

	if (process->end == END_UNKNOWN)
		return "It may still run: ";
	if (!has_unknown_end(process))
		return "";
	if (runtime && !strcmp(runtime, "Go"))
		return "It was killed, or crashed, or ended: Go makes that system call itself, so "
		       "only 'cuflight run' sees the status. Known is: ";
	return "It was killed, or crashed, or ended by a raw system call: ";
}

/* How the process ended when memory is not known to have ended it. */
static void print_ending(const struct text *text, const struct fact_process *process)
{
	const struct facts *facts = text->facts;
	struct growing growing;
	char words[WORDS] = "", early[WORDS];
	bool grows = find_growing(text, &growing);

	live_early(facts->judgement, early, sizeof early);
	/* it grew up to there, not to the end; or what grows is judged */
	if (process->host.at_peak || facts->judgement)
		growing = (struct growing){ 0 };
	grows &= !process->host.at_peak;
	if (*early && !count_leaks(facts))
		text_append(words, sizeof words, "%sIt is %s.",
			    text_if(!facts->incident_count, "No allocation failed. "), early);
	else if (grows && !facts->incident_count && !count_leaks(facts))
		text_append(words, sizeof words, "No allocation failed, no leak is proven.");
	else if (!facts->incident_count && !count_leaks(facts))
		text_append(words, sizeof words, "No allocation failed, no leak found.");
	else if (!facts->incident_count)
		text_append(words, sizeof words, "No allocation failed.");
	if (!facts->device_count && !facts->coverage.other_gpus)
		text_append(words, sizeof words, "%sNo GPU was used.", text_if(*words, " "));
	if (*words)
		text_words(text, STYLE_PLAIN, "", 0, 1, words);
	if ((process->end == END_KILLED || process->end == END_UNKNOWN) && process->end_why &&
	    *process->end_why) {
		snprintf(words, sizeof words, "%s%s.", before_why(process), process->end_why);
		text_words(text, STYLE_PLAIN, "", 0, 2, words);
	}
	if (facts->incident_count)
		print_survived(text);
	print_growing(text, &growing);
	live_print_rising(text);
	live_print_forecast(text);
	print_peaks(text, process);
}

void screen_head(const struct text *text, unsigned tight)
{
	const struct fact_incident *incident = focus_incident(text->facts);
	const struct fact_process *process = focus_process(text->facts);

	print_headline(text, process, incident);
	if (incident)
		print_failure(text, process, incident, tight);
	else if (process->end == END_OOM_KILLED)
		print_kill(text, process);
	else
		print_ending(text, process);
}
