/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The likely cause: its name, what happened in the program's own words, where, and what to
 * change.
 */
#include <ctype.h>
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/facts/totals.h"
#include "analysis/facts/focus.h"
#include "analysis/view/text/screen.h"

enum { WORDS = 1024, SMALL_BYTES = 64 << 10 /* by default a larger block is always recorded */ };

#define NS_PER_S 1e9

/* With a capital and a full stop, as sentences have them. */
static void sentence(const char *clause, char *out, size_t bytes)
{
	size_t length;
	snprintf(out, bytes, "%s", clause);
	*out = (char)toupper((unsigned char)*out);
	length = strlen(out);
	if (length && length + 1 < bytes && !strchr(".!?", out[length - 1]))
		strcpy(out + length, ".");
}

static bool names_a_leak(const struct fact_cause *cause)
{
	return cause->marks == MARKS_GPU_LEAKS || cause->marks == MARKS_HOST_LEAKS;
}

/*
 * What is printed of a leak: the row of its largest leaking site, as the table of holders has it,
 * and the sum of the leaking sites in other rows.
 */
struct leak {
	const struct fact_site *site; /* the largest; NULL: none */
	struct place place;
	struct fact_rate rate;
	uint64_t bytes, count, frees, others_bytes, others;
	bool sampled;
};

static bool is_of_cause(const struct fact_site *site, const struct fact_cause *cause)
{
	bool host = cause->marks == MARKS_HOST_LEAKS;
	return site->class <= CLASS_GROWING && (site->kind == CUF_KIND_HOST) == host;
}

static void add_to_row(struct leak *leak, const struct fact_site *site)
{
	leak->bytes += site->bytes;
	leak->count += site->count;
	if (site->free_count != CUF_UNKNOWN)
		leak->frees += site->free_count;
	leak->sampled |= site->basis == BASIS_ESTIMATED;
	fact_rate_add(&leak->rate, site);
}

/* Could the table of holders have it in the row of the leak? */
static bool can_share_row(const struct fact_site *site, const struct fact_site *leak)
{
	return site->process == leak->process && site->device == leak->device &&
	       site->bytes != CUF_UNKNOWN && !site->holds_blocks;
}

/*
 * Leaking sites come first, sorted by bytes, so that the first of this cause is the largest. What
 * does not leak may share its row.
 */
static void find_leak(const struct text *text, const struct fact_cause *cause, struct leak *leak)
{
	const struct facts *facts = text->facts;
	*leak = (struct leak){ 0 };
	for (size_t i = 0; i < facts->leak_count; i++) {
		const struct fact_site *site = &facts->leaks[i];
		bool leaks = is_of_cause(site, cause);
		struct place place;
		if (leaks && !leak->site) {
			leak->site = site;
			place_of(text->places, &site->stack, &leak->place);
		}
		if (!leak->site || !can_share_row(site, leak->site))
			continue;
		place_of(text->places, &site->stack, &place);
		if (place_shares_row(&place, site->role, &leak->place, leak->site->role,
				     site->device == FACT_NONE)) {
			add_to_row(leak, site);
		} else if (leaks) {
			leak->others_bytes += site->bytes;
			leak->others++;
		}
	}
}

/*
 * What each request leaves behind, where the program marked them; else the rate, if the run
 * was long enough for one.
 */
static void append_rate(const struct text *text, const struct leak *leak, char *words, size_t bytes)
{
	const struct fact_process *process = &text->facts->processes[leak->site->process];
	uint64_t elapsed = text_elapsed(process->start_ns, process->end_ns);
	uint64_t per_request = fact_rate_per_request(&leak->rate);
	uint64_t per_s = fact_rate_per_s(&leak->rate);

	if (per_request) {
		text_append(words, bytes, ", %s with each request",
			    text_sampled(per_request, leak->sampled).s);
		return;
	}
	if (elapsed == CUF_UNKNOWN || (double)elapsed < NS_PER_S)
		return;
	if ((double)per_s * ((double)elapsed / NS_PER_S) > 2 * (double)leak->bytes)
		return; /* a rate of a moment only */
	if (per_s >= 1 << 20)
		text_append(words, bytes, ", about %s/s", units_bytes_rough(per_s).s + 1);
	else if (per_s * 60 >= 1024)
		text_append(words, bytes, ", about %s/min", units_bytes_rough(per_s * 60).s + 1);
}

/* The size of a block is printed only if all have the same. */
static void append_blocks(const struct leak *leak, char *words, size_t bytes)
{
	text_append(words, bytes, "allocated %s block%s", units_count(leak->count).s,
	       text_s(leak->count));
	if (leak->count > 1 && leak->bytes % leak->count == 0)
		text_append(words, bytes, " of %s", units_bytes(leak->bytes / leak->count).s);
	if (leak->frees)
		text_append(words, bytes, " more than it freed");
	else
		text_append(words, bytes, " and freed none");
	text_append(words, bytes, ": %s", units_bytes(leak->bytes).s);
}

/* A sampled site has no exact counts, and its sentence does without them. */
static void leak_words(const struct text *text, const struct leak *leak, char *words, size_t bytes)
{
	place_text(&leak->place, words, bytes);
	text_append(words, bytes, " ");
	if (leak->sampled)
		text_append(words, bytes, "holds %s%s and keeps growing",
			    units_bytes_rough(leak->bytes).s,
			    leak->bytes / SMALL_BYTES < leak->count ? " in small blocks" : "");
	else
		append_blocks(leak, words, bytes);
	append_rate(text, leak, words, bytes);
	text_append(words, bytes, ".");
	if (leak->others)
		text_append(words, bytes, " %s other call site%s leak%s, too: %s.",
		       units_count(leak->others).s, text_s(leak->others),
		       text_verb_s(leak->others),
		       text_sampled(leak->others_bytes, leak->sampled).s);
}

/* One line: more callers are in the stack of the long report. */
static void print_callers(const struct text *text, const struct place *place)
{
	char words[WORDS];
	if (!*place->callers)
		return;
	snprintf(words, sizeof words, "called from %s", place->callers);
	text_words(text, STYLE_PLAIN, "", 2, 1, words);
}

/* Where in the program, unless it is where the request failed: that is a part of its own. */
static void print_site(const struct text *text, const struct fact_cause *cause)
{
	const struct fact_incident *incident = focus_incident(text->facts);
	struct place place, failed = { .function = "" };
	char words[WORDS];

	if (!cause->site.depth)
		return;
	place_of(text->places, &cause->site, &place);
	if (incident)
		place_of(text->places, &incident->stack, &failed);
	if (place_is_same(&place, &failed))
		return;
	place_line(text->places, &cause->site, text->style->columns - 6, words, sizeof words);
	text_words(text, STYLE_PLAIN, "  at", 5, 1, words);
}

/* For a process that somebody killed, a leak is news but not the reason. */
static const char *label_of(const struct facts *facts)
{
	const struct fact_process *process = focus_process(facts);
	if (facts->fatal_incident || process->end == END_OOM_KILLED)
		return "Likely cause:";
	return "Found:";
}

/* The first fix only. The others are in "Why" of the long report. */
static void print_fix(const struct text *text, const struct fact_cause *cause, unsigned lines)
{
	char words[WORDS];
	if (!cause->fix_count)
		return;
	sentence(cause->fixes[0].text, words, sizeof words);
	*words = (char)tolower((unsigned char)*words);
	text_words(text, STYLE_GOOD, "Fix:", 2, lines, words);
}

/*
 * Budget: the name 2 lines, what happened 3 to 4, the fix 2 to 3. `tight` takes away first the
 * callers, then lines of the summary, then the call site.
 */
static void print_named(const struct text *text, const struct fact_cause *cause, unsigned tight)
{
	char words[WORDS];
	struct leak leak = { 0 };
	unsigned fix_lines = 3;

	snprintf(words, sizeof words, "%s (%s confidence)", cause->name,
		 text_confidence(cause->confidence));
	text_words(text, STYLE_BAD, label_of(text->facts), 2, 2, words);
	if (names_a_leak(cause))
		find_leak(text, cause, &leak);
	if (leak.site) {
		leak_words(text, &leak, words, sizeof words);
		text_words(text, STYLE_PLAIN, "", 2, 3, words);
		if (tight < 2)
			print_callers(text, &leak.place);
	} else {
		sentence(cause->summary, words, sizeof words);
		text_words(text, STYLE_PLAIN, "", 2, tight < 2 ? 4 - tight : 2, words);
		if (tight < 3)
			print_site(text, cause);
	}
	if (tight >= 2)
		fix_lines = 2;
	print_fix(text, cause, fix_lines);
}

/* Too little is known for one name: the candidates, and what would tell them apart. */
static void print_unclear(const struct text *text, const struct fact_cause *cause, unsigned tight)
{
	bool named = *cause->id != 0;
	char words[WORDS] = "";

	if (named)
		text_append(words, sizeof words, "perhaps %s (%s)", cause->name, cause->name_id);
	if (cause->runner_up_id) {
		text_append(words, sizeof words, "%s", named ? ", or" : "perhaps");
		text_append(words, sizeof words, " %s (%s)", cause->runner_up_name,
		       cause->runner_up_name_id);
	}
	if (!*words)
		snprintf(words, sizeof words, "nothing recorded explains it");
	text_words(text, STYLE_WARN, "Cause unclear:", 2, 2, words);
	if (*cause->summary && named) {
		sentence(cause->summary, words, sizeof words);
		text_words(text, STYLE_PLAIN, "", 2, 3 - (tight > 1), words);
	}
	if (cause->discriminator && *cause->discriminator) {
		sentence(cause->discriminator, words, sizeof words);
		text_words(text, STYLE_PLAIN, "To tell them apart:", 2, 2, words);
	} else if (cause->lack_count) {
		sentence(cause->lacks[0], words, sizeof words);
		text_words(text, STYLE_PLAIN, "Missing data:", 2, 2, words);
	}
}

/* A failure without a judged cause: the figures of the request. */
static void print_shortage(const struct text *text, const struct fact_incident *incident)
{
	uint64_t wanted = text_wanted_bytes(incident);
	char words[WORDS];
	if (!incident->is_request || wanted == CUF_UNKNOWN || incident->free_bytes == CUF_UNKNOWN)
		snprintf(words, sizeof words, "too little is known of the failed call");
	else if (incident->free_bytes >= wanted)
		snprintf(words, sizeof words,
			 "%s was requested and %s was free, so that free memory does not "
			 "explain it",
			 units_bytes(wanted).s, units_bytes(incident->free_bytes).s);
	else
		snprintf(words, sizeof words, "%s was requested, and %s of it was missing",
			 units_bytes(wanted).s, units_bytes(wanted - incident->free_bytes).s);
	text_words(text, STYLE_WARN, "Cause unclear:", 2, 2, words);
}

/* Below CAUSE_MEDIUM a single name would claim more than the evidence supports. */
void screen_cause(const struct text *text, unsigned tight)
{
	const struct fact_cause *cause = text->facts->cause;
	const struct fact_incident *incident = focus_incident(text->facts);
	if (!cause && incident)
		print_shortage(text, incident);
	else if (cause && *cause->id && cause->confidence >= CAUSE_MEDIUM)
		print_named(text, cause, tight);
	else if (cause)
		print_unclear(text, cause, tight);
}

/* One line: "Also: host memory leak, 195 MiB at keep_trace (server.c:84)". All call sites of that
 * place. */
void screen_also(const struct text *text)
{
	const struct facts *facts = text->facts;
	const struct fact_site *also = facts->also;
	struct place place, other;
	char words[WORDS];
	uint64_t bytes = 0;
	bool sampled = false;

	if (!also)
		return;
	place_of(text->places, &also->stack, &place);
	for (size_t i = 0; i < facts->leak_count; i++) {
		const struct fact_site *site = &facts->leaks[i];
		if (site->class != also->class || site->kind != also->kind)
			continue;
		place_of(text->places, &site->stack, &other);
		if (!place_is_same(&place, &other))
			continue;
		bytes += site->bytes;
		sampled |= site->basis == BASIS_ESTIMATED;
	}
	snprintf(words, sizeof words, "%s memory %s, %s at ",
		 also->device == FACT_NONE ? "host" : "GPU",
		 also->class == CLASS_LEAK ? "leak" : "that grows", text_sampled(bytes, sampled).s);
	place_text(&place, words + strlen(words), sizeof words - strlen(words));
	text_words(text, STYLE_WARN, "Also:", 2, 1, words);
}

/* Without the place where the cause has no call site, such as memory of another process. */
bool report_text_cause(const struct facts *facts, struct frames *frames, char *out, size_t bytes)
{
	const struct fact_cause *cause = facts->cause;
	struct places *places;
	struct place place;
	if (!cause || !*cause->id || cause->confidence < CAUSE_MEDIUM)
		return false;
	snprintf(out, bytes, "%s", cause->name);
	if (!cause->site.depth)
		return true;
	places = places_new(facts, frames);
	place_of(places, &cause->site, &place);
	places_free(places);
	if (names_a_leak(cause))
		text_append(out, bytes, " in ");
	else
		text_append(out, bytes, ", at ");
	place_text(&place, out + strlen(out), bytes - strlen(out));
	return true;
}
