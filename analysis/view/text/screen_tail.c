/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the first screen: where the request failed, what could change the answer, and
 * the next commands.
 */
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/facts/focus.h"
#include "analysis/view/text/screen.h"

enum { COMMAND_COLUMN = 7 /* of "More: " and what follows */, WORDS = 1024 };
#define PEAK_LEAST_BYTES (16ull << 20)

void screen_failed(const struct text *text)
{
	static const char label[] = "Failed at:";
	const struct fact_incident *incident = focus_incident(text->facts);
	char words[WORDS];
	if (!incident || !incident->stack.depth)
		return;
	place_line(text->places, &incident->stack, text->style->columns - sizeof label, words,
		   sizeof words);
	text_words(text, STYLE_PLAIN, label, 2, 1, words);
}

/* The first gap of coverage that could change who holds what and why. */
static const struct fact_text *worst_gap(const struct facts *facts)
{
	const struct fact_coverage *coverage = &facts->coverage;
	for (size_t i = 0; i < coverage->blind_count; i++)
		if (!coverage->blind[i].minor)
			return &coverage->blind[i];
	return NULL;
}

/* A failure with another GPU idle is often a matter of placement. */
static void print_other_devices(const struct text *text)
{
	const struct facts *facts = text->facts;
	const struct fact_device *focus = focus_device(facts);
	char words[WORDS] = "";
	size_t used = 0;
	if (facts->device_count < 2 || focus_is_host(facts))
		return;
	for (size_t i = 0; i < facts->device_count && used + 64 < sizeof words; i++) {
		const struct fact_device *device = &facts->devices[i];
		if (device != focus && device->free_bytes != CUF_UNKNOWN)
			used += (size_t)snprintf(words + used, sizeof words - used,
						 "%sGPU %u had %s free",
						 text_if(used, ", "), device->ordinal,
						 units_bytes(device->free_bytes).s);
	}
	if (used)
		text_words(text, STYLE_PLAIN, "Other GPUs:", 2, 1, words);
}

/*
 * Was a function of the program printed as an address? Then its file has changed or is
 * elsewhere.
 */
static bool lacks_names(const struct text *text)
{
	const struct fact_cause *cause = text->facts->cause;
	const struct fact_incident *incident = focus_incident(text->facts);
	struct place place = { .function = "" };
	if (cause && cause->site.depth)
		place_of(text->places, &cause->site, &place);
	else if (incident)
		place_of(text->places, &incident->stack, &place);
	return strstr(place.function, "+0x") != NULL;
}

/* Nothing is asked at the end, so free memory is what the driver reported at a call before. */
static bool is_reading_old(const struct fact_device *device)
{
	enum { OLD_NS = 1000000000 };
	return device->moment.kind == MOMENT_END && device->free_ns != CUF_UNKNOWN &&
	       device->moment.time_ns > device->free_ns &&
	       device->moment.time_ns - device->free_ns >= OLD_NS;
}

/*
 * At most one note on the recording, and one on names. Advice about names is dropped first,
 * because it does not change the answer.
 */
void screen_notes(const struct text *text, unsigned tight)
{
	const struct facts *facts = text->facts;
	const struct fact_device *device = focus_device(facts);
	const struct fact_text *gap = worst_gap(facts);
	char words[WORDS];

	if (tight < 2)
		print_other_devices(text);
	if (gap) {
		snprintf(words, sizeof words, "%s.", gap->text);
		text_words(text, STYLE_WARN, "Note:", 2, 2, words);
	} else if (device && !focus_is_host(facts) && device->moment.basis == BASIS_ESTIMATED) {
		snprintf(words, sizeof words,
			 "the table is an estimate: %s old events were overwritten. "
			 "A recording of --size=256MiB keeps more.",
			 units_count(facts->events_overwritten).s);
		text_words(text, STYLE_WARN, "Note:", 2, 2, words);
	} else if (device && !focus_is_host(facts) && tight < 3 && is_reading_old(device)) {
		snprintf(words, sizeof words,
			 "the driver reported its free memory %s before the end.",
			 units_duration(device->moment.time_ns - device->free_ns).s);
		text_words(text, STYLE_PLAIN, "Note:", 2, 2, words);
	}
	if (!gap && tight < 3 && lacks_names(text))
		text_words(text, STYLE_WARN, "Note:", 2, 2,
			   "some function names are missing, because the "
			   "program's file has changed or is not here (see --sysroot, report -v).");
}

/* The explanations line up when the commands are short enough. */
static void print_command(const struct text *text, const char *label, const char *command,
			  const char *what)
{
	enum { WHAT_COLUMN = 41 };
	size_t columns = COMMAND_COLUMN + strlen(command);
	bool explained = columns < WHAT_COLUMN &&
		WHAT_COLUMN + strlen(what) <= text->style->columns;
	fprintf(text->out, "%-*s", COMMAND_COLUMN - 1, label);
	if (explained)
		fprintf(text->out, "%-*s(%s)\n", WHAT_COLUMN - COMMAND_COLUMN, command, what);
	else
		text_command(text, "", command);
}

/* The operand is quoted already: the line can be pasted into a shell. */
static void report_command(const struct text *text, const char *option, char *out, size_t bytes)
{
	const char *operand = text->options->operand;
	if (operand)
		snprintf(out, bytes, "cuflight report %s %s", option, operand);
	else
		snprintf(out, bytes, "cuflight report %s", option);
}

/* Whether the report at the peak tells more: of a GPU, or of a host that held more than it does. */
static bool has_peak(const struct facts *facts)
{
	const struct fact_host *host = &focus_process(facts)->host;
	uint64_t live = host->malloc_live_bytes + known_or_zero(host->python_live_bytes);
	if (facts->device_count)
		return true;
	return !host->at_peak && host->live_peak_bytes != CUF_UNKNOWN &&
	       host->live_peak_bytes >= PEAK_LEAST_BYTES &&
	       host->live_peak_bytes / 2 > live;
}

/* Two commands at most: the evidence, then the help on the cause or the fullest moment. */
void screen_more(const struct text *text)
{
	const struct fact_cause *cause = text->facts->cause;
	const char *help = NULL;
	char command[WORDS];

	if (!text->options->full) {
		report_command(text, "--full", command, sizeof command);
		print_command(text, "More:", command, "evidence, all call sites");
	}
	if (cause && *cause->name_id)
		help = cause->name_id;
	else if (cause && cause->runner_up_name_id)
		help = cause->runner_up_name_id;
	if (help) {
		snprintf(command, sizeof command, "cuflight help %s", help);
		print_command(text, text_if(text->options->full, "More:"), command,
			      "how this was decided");
	} else if (!help && has_peak(text->facts)) {
		report_command(text, "--at=peak", command, sizeof command);
		print_command(text, text_if(text->options->full, "More:"), command,
			      "at the fullest moment");
	} else if (focus_process(text->facts)->host.at_peak) {
		report_command(text, "--at=end", command, sizeof command);
		print_command(text, text_if(text->options->full, "More:"), command, "at the end");
	}
}
