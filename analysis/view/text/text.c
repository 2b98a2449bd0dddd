/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, and the sentences that several parts of the report share. */
#include "analysis/view/text/text.h"

#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/numbers.h"
#include "analysis/base/paths.h"
#include "analysis/base/units.h"

enum { ROWS_DEFAULT = 10 };

/* The length in bytes of the longest beginning of at most `columns` columns. */
static size_t bytes_within(const char *text, size_t columns)
{
	size_t bytes = 0;
	while (text[bytes] && columns--)
		bytes += clean_character(text + bytes);
	return bytes;
}

/* Is the blank at `at` one between a figure and its unit? "16.5 MiB" stays on one line. */
static bool is_within_figure(const char *text, size_t at)
{
	return at && text[at - 1] >= '0' && text[at - 1] <= '9' &&
	       (!strncmp(text + at + 1, "B", 1) ||
		(text[at + 1] && !strncmp(text + at + 2, "iB", 2)));
}

/*
 * Where the line ends that begins at `at`: between words, or within one that is wider than
 * the line.
 */
static size_t line_bytes(const char *at, size_t columns)
{
	size_t fits;
	if (clean_columns(at) <= columns)
		return strlen(at);
	fits = bytes_within(at, columns + 1);
	while (fits && (at[fits - 1] != ' ' || is_within_figure(at, fits - 1)))
		fits--;
	if (!fits)
		return bytes_within(at, columns); /* one word wider than the line */
	return fits;
}

/*
 * The end of the last whole clause in the line, if that leaves at least a third of it; 0:
 * there is none.
 */
static size_t clause_bytes(const char *at, size_t bytes)
{
	for (size_t i = bytes; i > bytes / 3 && i > 1; i--)
		if (at[i - 1] == ' ' && strchr(".;,", at[i - 2]))
			return i - 2;
	return 0;
}

/*
 * The last line that the budget allows, of words that go on. What was a sentence still ends
 * like one.
 */
static void print_shortened(const struct text *text, const char *at, size_t columns)
{
	size_t bytes = line_bytes(at, columns), clause = clause_bytes(at, bytes);
	if (clause) {
		fprintf(text->out, "%.*s%s\n", (int)clause, at,
			text_if(at[strlen(at) - 1] == '.', "."));
		return;
	}
	bytes = line_bytes(at, columns - 2);
	while (bytes && at[bytes - 1] == ' ')
		bytes--;
	fprintf(text->out, "%.*s..\n", (int)bytes, at);
}

/*
 * A budget of lines is made for 80 columns: a narrower terminal gets as many more as hold
 * the same words.
 */
static unsigned lines_allowed(const struct text *text, unsigned lines)
{
	unsigned columns = text->style->columns;
	if (columns >= STYLE_COLUMNS || lines >= TEXT_NO_LIMIT)
		return lines;
	return lines * STYLE_COLUMNS / columns + 1;
}

/* Blanks at the break are dropped. A head takes columns of the first line only. */
unsigned text_words(const struct text *text, enum style_tone tone, const char *head,
		    unsigned indent, unsigned lines, const char *words)
{
	char clean[TEXT_LINE_BYTES], *at = clean;
	size_t from = indent, columns = text->style->columns;
	unsigned used = 0, most = lines_allowed(text, lines);

	clean_terminal(clean, sizeof clean, words, !text->style->utf8);
	if (*head) {
		from = clean_columns(head) + 1;
		fprintf(text->out, "%s%s%s ", style_on(text->style, tone), head,
			style_off(text->style));
	} else {
		fprintf(text->out, "%*s", (int)indent, "");
	}
	for (;;) {
		size_t bytes = line_bytes(at, columns - from), end = bytes;
		if (++used >= most && at[bytes]) {
			print_shortened(text, at, columns - from);
			break;
		}
		while (end && at[end - 1] == ' ')
			end--;
		fprintf(text->out, "%.*s\n", (int)end, at);
		at += bytes;
		if (!*at)
			break;
		fprintf(text->out, "%*s", (int)indent, "");
		from = indent;
	}
	return used;
}

void text_item(const struct text *text, enum style_tone tone, const char *label, const char *format,
	       ...)
{
	char words[TEXT_LINE_BYTES], head[TEXT_LABEL + 1];
	va_list args;
	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	snprintf(head, sizeof head, "  %-*s", TEXT_LABEL - 3, label);
	text_words(text, tone, head, TEXT_LABEL, TEXT_NO_LIMIT, words);
}

void text_command(const struct text *text, const char *head, const char *command)
{
	char clean[TEXT_LINE_BYTES];
	clean_terminal(clean, sizeof clean, command, !text->style->utf8);
	fprintf(text->out, "%s%s\n", head, clean);
}

void text_section(const struct text *text, const char *format, ...)
{
	char title[256], clean[256];
	va_list args;
	va_start(args, format);
	vsnprintf(title, sizeof title, format, args);
	va_end(args);
	clean_terminal(clean, sizeof clean, title, !text->style->utf8);
	fprintf(text->out, "\n%s%.*s%s\n", style_on(text->style, STYLE_HEAD),
		(int)bytes_within(clean, text->style->columns), clean, style_off(text->style));
}

/* A frame is one line whatever its length: a C++ name may have hundreds of characters. */
static void print_frame(const struct text *text, const struct frame *frame, unsigned indent)
{
	char raw[TEXT_LINE_BYTES], clean[TEXT_LINE_BYTES];
	size_t columns = text->style->columns - indent;
	frame_text(frame, raw, sizeof raw);
	clean_terminal(clean, sizeof clean, raw, !text->style->utf8);
	if (clean_columns(clean) > columns)
		strcpy(clean + bytes_within(clean, columns - 2), "..");
	fprintf(text->out, "%*s%s\n", (int)indent, "", clean);
}

/* A stack that ended early states why, so that its last frame is not taken for main. */
void text_stack(const struct text *text, const struct fact_stack *stack, unsigned indent)
{
	static const char *const stops[CUF_STOP_MAX] = {
		[CUF_STOP_DEPTH] = "stack-depth= frames were recorded; there are more",
		[CUF_STOP_NO_RULE] = "no unwind information from here on",
		[CUF_STOP_UNSUPPORTED] = "unwind information of an unsupported kind",
		[CUF_STOP_BOUNDS] = "the next frame is outside the stack",
		[CUF_STOP_SIGNAL] = "a signal frame",
	};
	const struct frame *frames;
	size_t count = frames_of(text->frames, stack, &frames), printed = 0;
	for (size_t i = 0; i < count; i++) {
		if (!places_shows(frames, count, i))
			continue;
		print_frame(text, &frames[i], indent);
		printed++;
	}
	if (!printed)
		fprintf(text->out, "%*sno stack was recorded\n", (int)indent, "");
	else if (stack->stop < CUF_STOP_MAX && stops[stack->stop])
		fprintf(text->out, "%*s(%s)\n", (int)indent, "", stops[stack->stop]);
}

void text_place(const struct text *text, const struct fact_stack *stack, size_t columns, char *out,
		size_t bytes)
{
	place_line(text->places, stack, columns, out, bytes);
}

size_t text_rows(const struct text *text)
{
	if (text->options->rows)
		return text->options->rows;
	return ROWS_DEFAULT;
}

const char *text_s(uint64_t count)
{
	if (count == 1)
		return "";
	return "s";
}

const char *text_verb_s(uint64_t count)
{
	if (count == 1)
		return "s";
	return "";
}

const char *text_if(bool condition, const char *words)
{
	if (condition)
		return words;
	return "";
}

const char *text_label(const char *label, size_t index)
{
	return text_if(index == 0, label);
}

struct unit_text text_bytes(uint64_t bytes, enum fact_basis basis)
{
	return text_sampled(bytes, basis == BASIS_ESTIMATED);
}

struct unit_text text_sampled(uint64_t bytes, bool sampled)
{
	if (sampled)
		return units_bytes_rough(bytes);
	return units_bytes(bytes);
}

void text_requested(const struct fact_incident *incident, char *out, size_t bytes)
{
	const char *api = incident->api;
	if (!api || !*api)
		api = incident->driver_api;
	if (!api || !*api)
		api = "an unknown call";
	if (incident->is_request && incident->requested_bytes != CUF_UNKNOWN)
		snprintf(out, bytes, "%s(%s)", api, units_bytes(incident->requested_bytes).s);
	else
		snprintf(out, bytes, "%s", api);
}

void text_room(const struct fact_incident *incident, char *out, size_t bytes)
{
	const struct fact_limit_words *words = &fact_limit_words[incident->refused_by];
	const struct fact_limit *limit = &incident->limits[incident->refused_by];

	*out = 0;
	if (incident->refused_by != LIMIT_NONE)
		snprintf(out, bytes, " with %s of %s left (%s)",
			 units_bytes(subtract_to_zero(limit->max_bytes, limit->used_bytes)).s,
			 units_bytes(limit->max_bytes).s, words->set);
}

/* The framework's figure comes first: the driver is asked for whole segments. */
uint64_t text_wanted_bytes(const struct fact_incident *incident)
{
	if (incident->framework_requested_bytes != CUF_UNKNOWN)
		return incident->framework_requested_bytes;
	if (incident->least_requested_bytes != CUF_UNKNOWN)
		return incident->least_requested_bytes;
	return incident->requested_bytes;
}

/* strsignal knows the signals of this machine. */
static void signal_text(uint64_t number, char *out, size_t bytes)
{
	const char *name = NULL;
	if (number && number < (uint64_t)SIGRTMIN)
		name = strsignal((int)number);
	if (name)
		snprintf(out, bytes, "killed by signal %llu (%s)", (unsigned long long)number,
			 name);
	else
		snprintf(out, bytes, "killed by signal %llu", (unsigned long long)number);
}

void text_ending(const struct fact_process *process, char *out, size_t bytes)
{
	switch (process->end) {
	case END_EXIT:
		snprintf(out, bytes, "exit status %s", units_count(process->end_status).s);
		break;
	case END_SIGNAL:
		signal_text(process->end_status, out, bytes);
		break;
	case END_KILLED:
		if (process->end_status == 9)
			signal_text(9, out, bytes);
		else
			snprintf(out, bytes, "no end was recorded");
		break;
	case END_OOM_KILLED:
		snprintf(out, bytes, "killed by the kernel");
		break;
	case END_EXEC:
		snprintf(out, bytes, "replaced by another program (exec)");
		break;
	case END_UNKNOWN:
		snprintf(out, bytes, "may still run");
		break;
	default:
		snprintf(out, bytes, "still running");
	}
}

void text_append(char *words, size_t bytes, const char *format, ...)
{
	size_t used = strlen(words);
	va_list args;
	va_start(args, format);
	vsnprintf(words + used, bytes - used, format, args);
	va_end(args);
}

void text_program(const struct fact_process *process, char *out, size_t bytes)
{
	program_name(process->exe, process->cmdline, out, bytes);
}

const char *text_result_name(uint32_t result)
{
	static const struct { uint32_t result; const char *name; } names[] = {
		{ 1, "invalid value" }, { 2, "out of memory" }, { 3, "not initialized" },
		{ 4, "deinitialized" }, { 201, "invalid context" }, { 304, "operating system" },
		{ 400, "invalid handle" }, { 700, "illegal address" },
		{ 701, "launch out of resources" }, { 712, "already registered" },
		{ 719, "launch failed" }, { 801, "not supported" }, { 900, "capture unsupported" },
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].result == result)
			return names[i].name;
	return NULL;
}

const char *text_confidence(double confidence)
{
	if (confidence >= CAUSE_HIGH)
		return "high";
	if (confidence >= CAUSE_MEDIUM)
		return "medium";
	return "low";
}

uint64_t text_elapsed(uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns == CUF_UNKNOWN || end_ns == CUF_UNKNOWN || end_ns < start_ns)
		return CUF_UNKNOWN;
	return end_ns - start_ns;
}
