/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first screen: 25 lines of 80 columns for somebody who was woken up. In this order: what died, where and when; the
 * cause, why, and what to do; the plain facts of the failure, where there is no cause; the failed request and its site; the largest free block by layer; who holds the device;
 * what grew and leaked; the host; what was not seen; the next command. Every part has its most lines; they sum to 25.
 */
#include "analysis/view/text/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/view/text/focus.h"
#include "analysis/view/kinds.h"
#include "analysis/view/text/table.h"
#include "analysis/view/units.h"

enum { SCREEN_LINES = 25, SCREEN_TAIL = 8 /* grew 2, leaks 2, host 1, seen 1, blind 1, next 1 */ };

static uint64_t since(uint64_t start_ns, uint64_t end_ns)
{
	return start_ns == CUF_UNKNOWN || end_ns == CUF_UNKNOWN || end_ns < start_ns ? CUF_UNKNOWN : end_ns - start_ns;
}

static const char *device_name(const struct fact_device *device)
{
	return strncmp(device->name, "NVIDIA ", 7) ? device->name : device->name + 7;
}

static void headline_failure(const struct text *text, const struct fact_incident *incident, const struct fact_process *process)
{
	const char *label = incident->result == 2 || incident->kind == CUF_KIND_FRAMEWORK || incident->kind == CUF_KIND_HOST ? "OOM" : "FAILED";
	const struct fact_device *device = incident->device < text->facts->device_count ? &text->facts->devices[incident->device] : NULL;
	char where[128];
	if (device)
		snprintf(where, sizeof where, "GPU %u (%s)", device->ordinal, device_name(device));
	else
		snprintf(where, sizeof where, "%shost memory", incident->kind == CUF_KIND_HOST ? "" : incident->kind == CUF_KIND_REGISTERED ? "registering " : "pinned ");
	text_line(text, STYLE_BAD, label, "%s, %s after start: %s", units_date(incident->time_ns).s,
		  units_duration(since(process->start_ns, incident->time_ns)).s, where);
}

/* What leaks most, and how full the device became: one line. */
static void leak_words(const struct facts *facts, size_t leaks, const char *peak, char *out, size_t bytes)
{
	uint64_t sum = 0;
	bool host = facts->leaks[0].kind == CUF_KIND_HOST;
	size_t sites = 0;
	for (size_t i = 0; i < leaks; i++)
		if ((facts->leaks[i].kind == CUF_KIND_HOST) == host) {
			sum += facts->leaks[i].bytes;
			sites++;
		}
	snprintf(out, bytes, "%s of %s memory in %zu site%s that only grow%s; %s", units_bytes(sum).s, host ? "host" : "GPU", sites, sites == 1 ? "" : "s",
		 sites == 1 ? "s" : "", peak);
}

/* Nothing fatal was recorded: how it ended, and how full the device was. */
static void headline_ending(const struct text *text, const struct fact_process *process)
{
	static const struct { const char *label; enum style_tone tone; } labels[END_MAX] = {
		[END_RUNNING] = { "RUNNING", STYLE_GOOD }, [END_EXIT] = { "OK", STYLE_GOOD }, [END_SIGNAL] = { "SIGNAL", STYLE_BAD },
		[END_KILLED] = { "KILLED", STYLE_BAD }, [END_OOM_KILLED] = { "HOST OOM", STYLE_BAD }, [END_EXEC] = { "EXEC", STYLE_GOOD },
	};
	const struct fact_device *device = focus_device(text->facts);
	const char *label = labels[process->end].label;
	enum style_tone tone = labels[process->end].tone;
	size_t leaks = text_count_leaks(text->facts);
	char peak[160] = "no GPU memory was used", words[320];
	if (process->end == END_EXIT && process->end_status != 0 && process->end_status != CUF_UNKNOWN) {
		label = "EXIT";
		tone = STYLE_WARN;
	}
	if (tone == STYLE_GOOD && leaks) {
		label = "LEAK";
		tone = STYLE_BAD;
	}
	if (process->end == END_OOM_KILLED)
		snprintf(peak, sizeof peak, "host memory: %s resident at most, of a limit of %s", units_bytes(process->host.rss_peak_bytes).s,
			 units_bytes(process->host.cgroup_max_bytes != CUF_UNKNOWN ? process->host.cgroup_max_bytes : process->host.memory_total_bytes).s);
	else if (device)
		snprintf(peak, sizeof peak, "peak %s of %s on GPU %u (%s)", units_bytes(device->peak_bytes).s, units_bytes(device->total_bytes).s,
			 device->ordinal, device_name(device));
	else if (process->host.rss_peak_bytes != CUF_UNKNOWN)
		snprintf(peak, sizeof peak, "no GPU memory was used; host peak rss %s", units_bytes(process->host.rss_peak_bytes).s);
	if (!strcmp(label, "LEAK")) {
		leak_words(text->facts, leaks, peak, words, sizeof words);
		text_flow(text, tone, label, 1, words);
	} else {
		text_line(text, tone, label, "%s", peak);
	}
}

static unsigned process_lines(const struct text *text, const struct fact_process *process, const struct fact_incident *incident)
{
	const char *slash = strrchr(process->exe, '/'), *rank = process->rank;
	char ending[128], why[256] = "", words[1024];
	text_ending(process, ending, sizeof ending);
	if (incident && !text->facts->cause && incident->outcome_why && *incident->outcome_why)
		snprintf(why, sizeof why, "; fatal: %s", incident->outcome_why);
	snprintf(words, sizeof words, "%s, pid %u%s%s, %s after %s%s", slash ? slash + 1 : *process->exe ? process->exe : "?", process->pid, rank ? ", rank " : "",
		 rank ? rank : "", ending, units_duration(since(process->start_ns, process->end_ns)).s, why);
	return text_flow(text, STYLE_PLAIN, "PROCESS", text->facts->cause ? 1 : 2, words);
}

/* From the first sample to the last: what is unknown at either end is left out. */
static size_t add_way(char *out, size_t bytes, const char *before, const char *what, uint64_t from, uint64_t to)
{
	int length;
	if (from == CUF_UNKNOWN || to == CUF_UNKNOWN)
		return 0;
	length = snprintf(out, bytes, "%s%s %s to %s", before, what, units_bytes(from).s, units_bytes(to).s);
	return length > 0 && (size_t)length < bytes ? (size_t)length : 0;
}

/* Killed for want of host memory: how that is known, and the growth that led there. */
static unsigned killed_lines(const struct text *text, const struct fact_process *process)
{
	char words[TEXT_LINE_BYTES];
	size_t used;
	unsigned lines;
	if (process->end != END_OOM_KILLED)
		return 0;
	lines = text_flow(text, STYLE_HEAD, "FACTS", 2, process->end_why ? process->end_why : "");
	if (!process->timeline_count)
		return lines;
	const struct fact_sample *first = process->timeline, *last = &process->timeline[process->timeline_count - 1];
	snprintf(words, sizeof words, "to a limit of %s in %s: ", units_bytes(process->host.cgroup_max_bytes).s,
		 units_duration(since(first->time_ns, last->time_ns)).s);
	used = strlen(words);
	used += add_way(words + used, sizeof words - used, "", "cgroup", first->cgroup_bytes, last->cgroup_bytes);
	used += add_way(words + used, sizeof words - used, ", ", "rss", first->rss_bytes, last->rss_bytes);
	used += add_way(words + used, sizeof words - used, ", ", "of it files and shared", first->rss_shared_bytes, last->rss_shared_bytes);
	add_way(words + used, sizeof words - used, ", ", "malloc live", first->host_live_bytes, last->host_live_bytes);
	return lines + text_flow(text, STYLE_PLAIN, "GROWTH", 3, words);
}

/* What was going on, and where: "in prefill, request 17: malloc_weights <- main". */
static void where_words(const struct text *text, const struct fact_incident *incident, char *out, size_t bytes)
{
	char phase[64] = "", request[64] = "", where[TEXT_LINE_BYTES];
	if (incident->phase)
		snprintf(phase, sizeof phase, "in %.24s%s", incident->phase, incident->phase_basis == BASIS_INFERRED ? " (inferred)" : "");
	if (incident->request_phase)
		snprintf(request, sizeof request, "%srequest %s", *phase ? ", " : "", units_count(incident->request_id).s);
	frames_line(text->frames, &incident->stack, where, sizeof where);
	snprintf(out, bytes, "%s%s%s%s", phase, request, *phase || *request ? ": " : "", where);
}

static unsigned failure_lines(const struct text *text, const struct fact_incident *incident)
{
	char words[TEXT_LINE_BYTES + 160], call[160];
	const char *name = text_result_name(incident->result);
	unsigned lines = 0, most = text->facts->cause ? 1 : 2;
	text_shortage(incident, words, sizeof words);
	if (!text->facts->cause)
		lines += text_flow(text, STYLE_HEAD, "FACTS", 2, words);
	text_requested(incident, call, sizeof call);
	if (incident->kind == CUF_KIND_FRAMEWORK)
		text_line(text, STYLE_PLAIN, "FAILED", "%s gave up on %s, thread %u; the driver was not asked", incident->api,
			  units_bytes(incident->requested_bytes).s, incident->tid);
	else if (incident->kind == CUF_KIND_HOST)
		text_line(text, STYLE_PLAIN, "FAILED", "%s, errno %u (%s), thread %u, %s %s", call, incident->result, strerror((int)incident->result), incident->tid,
			  units_count(incident->attempt_count).s, incident->attempt_count == 1 ? "try" : "tries");
	else
		text_line(text, STYLE_PLAIN, "FAILED", "%s = %u (%s), thread %u, %s %s", call, incident->result, name ? name : "see cuda.h", incident->tid,
		  units_count(incident->attempt_count).s, incident->attempt_count == 1 ? "try" : "tries");
	where_words(text, incident, words, sizeof words);
	lines += text_flow(text, STYLE_PLAIN, "AT", most, words);
	text_layers(incident->largest_free, words, sizeof words);
	return lines + 1 + text_flow(text, STYLE_PLAIN, "LARGEST", most, words);
}

/* Requests that failed and did not end the process. */
static unsigned survived_lines(const struct text *text)
{
	static const char *const survived_words[OUTCOME_MAX] = {
		[OUTCOME_FATAL] = "fatal", [OUTCOME_RECOVERED] = "served at a later try", [OUTCOME_HANDLED] = "that the program did without",
		[OUTCOME_UNKNOWN] = "of unknown outcome",
	};
	const struct facts *facts = text->facts;
	size_t counts[OUTCOME_MAX] = { 0 };
	char call[160], where[TEXT_LINE_BYTES], outcomes[256] = "";
	size_t used = 0;
	if (!facts->incident_count)
		return 0;
	for (size_t i = 0; i < facts->incident_count; i++)
		counts[facts->incidents[i].outcome]++;
	const struct fact_incident *last = &facts->incidents[facts->incident_count - 1];
	text_requested(last, call, sizeof call);
	frames_line(text->frames, &last->stack, where, sizeof where);
	for (enum fact_outcome o = 0; o < OUTCOME_MAX; o++)
		if (counts[o] && used < sizeof outcomes) {
			int length = snprintf(outcomes + used, sizeof outcomes - used, "%s%s %s", used ? ", " : "", units_count(counts[o]).s, survived_words[o]);
			used += length > 0 ? (size_t)length : 0;
		}
	text_line(text, STYLE_WARN, "FAILED", "%s request%s failed: %s", units_count(facts->incident_count).s, facts->incident_count == 1 ? "" : "s", outcomes);
	text_line(text, STYLE_PLAIN, "", "the last: %s at %s", call, where);
	return 2;
}

static unsigned other_devices_line(const struct text *text, const struct fact_device *focus)
{
	char words[TEXT_LINE_BYTES] = "";
	size_t used = 0;
	if (text->facts->device_count < 2)
		return 0;
	for (size_t i = 0; i < text->facts->device_count && used < sizeof words; i++) {
		const struct fact_device *d = &text->facts->devices[i];
		int length = snprintf(words + used, sizeof words - used, "%s%u%s: %s free", used ? " | " : "", d->ordinal, d == focus ? "*" : "", units_bytes(d->free_bytes).s);
		used += length > 0 ? (size_t)length : 0;
	}
	text_line(text, STYLE_PLAIN, "GPUS", "%s", words);
	return 1;
}

static const char *moment_words(const struct fact_moment *moment)
{
	static const char *const words[MOMENT_MAX] = {
		[MOMENT_INCIDENT] = "at the failure", [MOMENT_END] = "at the end", [MOMENT_AT] = "at the moment asked for", [MOMENT_NOW] = "now",
	};
	return words[moment->kind];
}

static unsigned owner_lines(const struct text *text, const struct fact_device *device, unsigned lines)
{
	fprintf(text->out, "%sWHO HOLDS GPU %u%s %s%s\n", style_on(text->style, STYLE_HEAD), device->ordinal, style_off(text->style),
		moment_words(&device->moment), device->moment.basis == BASIS_ESTIMATED ? " (estimated: older events were overwritten)" : "");
	return 1 + text_owners(text, device, lines - 2); /* the title and the sum */
}

static unsigned host_site_lines(const struct text *text, unsigned lines)
{
	static const struct table_column columns[] = { { NULL, TABLE_RIGHT }, { NULL, TABLE_RIGHT }, { NULL, TABLE_LEFT }, { NULL, TABLE_FLEX } };
	const struct facts *facts = text->facts;
	struct table *table = table_new(text->style, columns, 4);
	char where[TEXT_LINE_BYTES];
	unsigned rows = 0;
	for (size_t i = 0; i < facts->leak_count && rows + 1 < lines; i++) {
		frames_line(text->frames, &facts->leaks[i].stack, where, sizeof where);
		table_row(table, (const char *[]){ units_bytes(facts->leaks[i].bytes).s, units_count(facts->leaks[i].count).s,
			basis_names[facts->leaks[i].basis], where });
		rows++;
	}
	if (rows)
		fprintf(text->out, "%sWHO HOLDS HOST MEMORY%s, by site: bytes, blocks\n", style_on(text->style, STYLE_HEAD), style_off(text->style));
	table_print(table, text->out, 2);
	table_free(table);
	return rows ? rows + 1 : 0;
}

/* What was not read is not nothing. */
static const char cut_words[] = "not known: the recording is cut or damaged";
static bool is_cut(const struct facts *facts)
{
	bool cut = false;
	for (size_t i = 0; i < facts->process_count; i++)
		cut |= !facts->processes[i].complete;
	return cut;
}

/* What is worth a line beside the largest: a hundredth of it; what a framework cut into blocks is told by those. */
static bool grew_much(const struct facts *facts, const struct fact_site *site)
{
	return !site->holds_blocks && site->grown_bytes * 100 >= facts->growth[0].grown_bytes;
}

/* Those that still grew come first; a plateau has stopped. */
static unsigned grown_lines(const struct text *text)
{
	const struct facts *facts = text->facts;
	char where[TEXT_LINE_BYTES], words[TEXT_LINE_BYTES + 256];
	unsigned lines = 0;
	for (unsigned stopped = 0; stopped < 2; stopped++)
		for (size_t i = 0; i < facts->growth_count && lines < 2; i++) {
			const struct fact_site *site = &facts->growth[i];
			if ((site->shape == SHAPE_PLATEAU) != (stopped == 1) || !grew_much(facts, site))
				continue;
			frames_line(text->frames, &site->stack, where, sizeof where);
			snprintf(words, sizeof words, "%s %s%s%s: %s", units_bytes_signed(site->grown_bytes).s, kind_name(site->kind) ? kind_name(site->kind) : "?",
				 site->shape == SHAPE_NONE ? "" : ", ", shape_names[site->shape], where);
			lines += text_flow(text, stopped ? STYLE_PLAIN : STYLE_WARN, lines ? "" : "GREW", facts->growth_count == 1 ? 2 : 1, words);
		}
	if (!lines) {
		text_line(text, STYLE_PLAIN, "GREW", "%s", is_cut(facts) ? cut_words : "nothing that could be told apart from churn");
		lines++;
	}
	return lines;
}

static unsigned leak_lines(const struct text *text)
{
	const struct facts *facts = text->facts;
	size_t leaks = text_count_leaks(facts);
	size_t sites = 0;
	uint64_t live = 0;
	char where[TEXT_LINE_BYTES], words[TEXT_LINE_BYTES + 256], each[64];
	unsigned lines = 0;
	for (size_t i = 0; i < leaks && i < 2; i++) {
		const struct fact_site *site = &facts->leaks[i];
		frames_line(text->frames, &site->stack, where, sizeof where);
		snprintf(each, sizeof each, ", %s a %s", units_bytes(site->per_request_bytes).s, text_cycle_name(site));
		snprintf(words, sizeof words, "%s %s in %s blocks%s: %s", units_bytes(site->bytes).s, kind_name(site->kind) ? kind_name(site->kind) : "?",
			 units_count(site->count).s, site->per_request_bytes == CUF_UNKNOWN ? "" : each, where);
		lines += text_flow(text, STYLE_BAD, i ? "" : "LEAKS", leaks == 1 ? 2 : 1, words);
	}
	for (size_t i = 0; i < facts->leak_count; i++) {
		live += facts->leaks[i].bytes == CUF_UNKNOWN || facts->leaks[i].holds_blocks ? 0 : facts->leaks[i].bytes;
		sites += !facts->leaks[i].holds_blocks;
	}
	if (!leaks && facts->leak_count)
		text_line(text, STYLE_PLAIN, "LEAKS", "none proven; %s live in %zu site%s, which alone is no leak", units_bytes(live).s, sites, sites == 1 ? "" : "s");
	else if (!leaks)
		text_line(text, STYLE_PLAIN, "LEAKS", "%s", is_cut(facts) ? cut_words : "none; nothing was live");
	return leaks ? lines : 1;
}

static unsigned host_lines(const struct text *text, const struct fact_process *process, unsigned lines)
{
	const struct fact_host *host = &process->host;
	char words[512], cgroup[96] = "", malloc_words[128] = "", free_words[96] = "";
	if (host->cgroup_max_bytes != CUF_UNKNOWN)
		snprintf(cgroup, sizeof cgroup, ", cgroup %s of %s", units_bytes(host->cgroup_bytes).s, units_bytes(host->cgroup_max_bytes).s);
	if (process->host_mode != CUF_HOST_OFF)
		snprintf(malloc_words, sizeof malloc_words, ", malloc live %s%s", units_bytes(host->malloc_live_bytes).s,
			 host->malloc_basis == BASIS_ESTIMATED ? " (estimated)" : "");
	if (host->verdict == HOST_FRAGMENTED)
		snprintf(free_words, sizeof free_words, ", %s fragmented", units_bytes(host->allocators[0].fragmented_bytes).s);
	else if (host->verdict == HOST_CACHED)
		snprintf(free_words, sizeof free_words, ", %s cached free", units_bytes(host->allocators[0].cached_bytes).s);
	snprintf(words, sizeof words, "rss %s%s%s, pinned %s%s", units_bytes(host->rss_bytes).s, malloc_words, free_words,
		 units_bytes(host->pinned_bytes).s, cgroup);
	return text_flow(text, *free_words ? STYLE_WARN : STYLE_PLAIN, "HOST", lines, words);
}

/* What is partial about it: of the figures those that are not 0. */
static void partial_line(const struct text *text, const char *plural)
{
	const struct facts *facts = text->facts;
	const struct fact_coverage *c = &facts->coverage;
	char words[TEXT_LINE_BYTES], gone[160] = "";
	if (facts->events_overwritten || facts->events_lost)
		snprintf(gone, sizeof gone, ": %s overwritten, %s lost", units_count(facts->events_overwritten).s, units_count(facts->events_lost).s);
	else if (!is_cut(facts) && c->lost_count)
		snprintf(gone, sizeof gone, "; %s: %s", c->lost[0].what, units_count(c->lost[0].count).s);
	snprintf(words, sizeof words, "%s%s events of %zu process%s%s", is_cut(facts) ? "the recording is cut or damaged; " : "", units_count(facts->events_recorded).s,
		 facts->process_count, plural, gone);
	text_flow(text, STYLE_WARN, "PARTIAL", 1, words);
}

static void seen_line(const struct text *text)
{
	const struct facts *facts = text->facts;
	const char *plural = facts->process_count == 1 ? "" : "es";
	if (facts->coverage.complete)
		text_line(text, STYLE_PLAIN, "SEEN", "%s event%s of %zu process%s, none overwritten, none lost", units_count(facts->events_recorded).s,
			  facts->events_recorded == 1 ? "" : "s", facts->process_count, plural);
	else
		partial_line(text, plural);
}

static void blind_lines(const struct text *text, unsigned lines)
{
	const struct fact_coverage *coverage = &text->facts->coverage;
	char words[TEXT_LINE_BYTES];
	if (!coverage->blind_count) {
		text_line(text, STYLE_PLAIN, "NOT SEEN", "kernels' own use of memory; no other gap is known");
		return;
	}
	if (coverage->blind_count > 1)
		snprintf(words, sizeof words, "%s (and %zu more below)", coverage->blind[0].text, coverage->blind_count - 1);
	else
		snprintf(words, sizeof words, "%s", coverage->blind[0].text);
	text_flow(text, STYLE_WARN, "NOT SEEN", lines, words);
}

static void next_line(const struct text *text, const struct fact_incident *incident)
{
	const struct fact_cause *cause = text->facts->cause;
	char help[64] = "";
	if (cause && *cause->id)
		snprintf(help, sizeof help, "cuflight help %s | ", cause->id);
	if (text->facts->events_overwritten && incident)
		text_line(text, STYLE_PLAIN, "NEXT", "%smore history: cuflight run --size=256MiB -- ...", help);
	else
		text_line(text, STYLE_PLAIN, "NEXT", "%scuflight report %s %s", *help ? help : "details below | ", incident ? "--json" : "--at=peak",
			  text->facts->path);
}

void text_screen(const struct text *text)
{
	const struct facts *facts = text->facts;
	const struct fact_incident *incident = focus_incident(facts);
	const struct fact_process *process = &facts->processes[incident ? incident->process : facts->focus];
	const struct fact_device *device = focus_device(facts);
	unsigned used = 1; /* the headline */
	if (incident)
		headline_failure(text, incident, process);
	else
		headline_ending(text, process);
	used += process_lines(text, process, incident);
	used += text_crowd(text, 2);
	used += text_cause_lines(text, facts->cause);
	used += incident ? failure_lines(text, incident) : killed_lines(text, process) + survived_lines(text);
	used += other_devices_line(text, device);
	used += (device ? owner_lines(text, device, SCREEN_LINES - SCREEN_TAIL - used) : host_site_lines(text, SCREEN_LINES - SCREEN_TAIL - used));
	used += grown_lines(text);
	used += leak_lines(text);
	used += host_lines(text, process, SCREEN_LINES - used > 4 ? 2 : 1);
	seen_line(text);
	blind_lines(text, SCREEN_LINES - used - 2); /* what is left but for the lines before and after */
	next_line(text, incident);
}
