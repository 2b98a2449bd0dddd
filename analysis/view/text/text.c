/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, and the sentences that several parts of the report share. */
#include "analysis/view/text/text.h"

#include <stdarg.h>
#include <string.h>
#include "analysis/view/clean.h"
#include "analysis/view/units.h"

/* The length in bytes of the longest beginning of at most `columns` columns. */
static size_t bytes_within(const char *text, size_t columns)
{
	size_t bytes = 0;
	while (text[bytes] && columns--)
		bytes += clean_character(text + bytes);
	return bytes;
}

static void print_cut(const struct text *text, const char *words, size_t columns)
{
	bool cut = clean_columns(words) > columns;
	fprintf(text->out, "%.*s%s\n", (int)bytes_within(words, cut ? columns - 2 : columns), words, cut ? ".." : "");
}

static void print_label(const struct text *text, enum style_tone tone, const char *label)
{
	bool toned = *label && tone != STYLE_PLAIN;
	fprintf(text->out, "%s%s%s%*s", toned ? style_on(text->style, tone) : "", label, toned ? style_off(text->style) : "",
		(int)(TEXT_LABEL - strlen(label)), "");
}

void text_line(const struct text *text, enum style_tone tone, const char *label, const char *format, ...)
{
	char raw[TEXT_LINE_BYTES], clean[TEXT_LINE_BYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(raw, sizeof raw, format, args);
	va_end(args);
	if (text->style->columns < STYLE_COLUMNS) {
		text_flow(text, tone, label, 1, raw);
		return;
	}
	clean_terminal(clean, sizeof clean, raw, !text->style->utf8);
	print_label(text, tone, label);
	print_cut(text, clean, text->style->columns - TEXT_LABEL);
}

/* A budget is for the width that it was made for: a narrower terminal gets as many more lines as hold the same words. */
static unsigned lines_within(unsigned lines, size_t columns)
{
	size_t full = STYLE_COLUMNS - TEXT_LABEL;
	return columns >= full || lines > STYLE_COLUMNS_MAX ? lines : (unsigned)(lines * full / columns) + 1;
}

unsigned text_flow(const struct text *text, enum style_tone tone, const char *label, unsigned budget, const char *words)
{
	char clean[TEXT_LINE_BYTES], *at = clean;
	size_t columns = text->style->columns - TEXT_LABEL;
	unsigned used = 0, lines = lines_within(budget, columns);
	clean_terminal(clean, sizeof clean, words, !text->style->utf8);
	print_label(text, tone, label);
	while (++used < lines && clean_columns(at) > columns) {
		size_t fits = bytes_within(at, columns + 1);
		while (fits && at[fits - 1] != ' ')
			fits--;
		if (!fits)
			break;
		fprintf(text->out, "%.*s\n%*s", (int)fits - 1, at, TEXT_LABEL, "");
		at += fits;
	}
	print_cut(text, at, columns);
	return used < budget ? used : budget;
}

void text_section(const struct text *text, const char *format, ...)
{
	char title[256];
	va_list args;
	va_start(args, format);
	vsnprintf(title, sizeof title, format, args);
	va_end(args);
	fprintf(text->out, "\n%s%s%s\n", style_on(text->style, STYLE_HEAD), title, style_off(text->style));
}

void text_stack(const struct text *text, const struct fact_stack *stack, unsigned indent)
{
	static const char *const stops[CUF_STOP_MAX] = {
		[CUF_STOP_DEPTH] = "more frames than stack_depth keeps", [CUF_STOP_NO_RULE] = "no unwind information beyond here",
		[CUF_STOP_UNSUPPORTED] = "unwind information of an unsupported kind", [CUF_STOP_BOUNDS] = "the next frame lies outside the stack",
		[CUF_STOP_SIGNAL] = "a signal frame",
	};
	const struct frame *frames;
	size_t count = frames_of(text->frames, stack, &frames);
	char raw[TEXT_LINE_BYTES], clean[TEXT_LINE_BYTES];
	for (size_t i = 0; i < count; i++) {
		frames_text(&frames[i], raw, sizeof raw);
		clean_terminal(clean, sizeof clean, raw, !text->style->utf8);
		fprintf(text->out, "%*s", (int)indent, "");
		print_cut(text, clean, text->style->columns - indent);
	}
	if (!count)
		fprintf(text->out, "%*sno stack was recorded\n", (int)indent, "");
	else if (stack->stop < CUF_STOP_MAX && stops[stack->stop])
		fprintf(text->out, "%*s(%s)\n", (int)indent, "", stops[stack->stop]);
}

void text_requested(const struct fact_incident *incident, char *out, size_t bytes)
{
	const char *api = incident->api && *incident->api ? incident->api : incident->driver_api && *incident->driver_api ? incident->driver_api : "?";
	if (incident->is_request)
		snprintf(out, bytes, "%s(%s)", api, units_bytes(incident->requested_bytes).s);
	else
		snprintf(out, bytes, "%s", api);
}

void text_layers(const struct fact_layer *layers, char *out, size_t bytes)
{
	static const char *const names[LAYER_MAX] = {
		[LAYER_DEVICE] = "device", [LAYER_MEASURED] = "measured", [LAYER_PAGE] = "in 2 MiB pages", [LAYER_POOL] = "in pools",
		[LAYER_VMM] = "reserved addresses", [LAYER_SEGMENT] = "in segments", [LAYER_HOST] = "host",
	};
	static const enum fact_layer_id order[LAYER_MAX] = { LAYER_DEVICE, LAYER_MEASURED, LAYER_SEGMENT, LAYER_PAGE, LAYER_POOL, LAYER_VMM, LAYER_HOST };
	size_t used = 0;
	*out = 0;
	for (size_t o = 0; o < LAYER_MAX && used < bytes; o++) {
		enum fact_layer_id i = order[o];
		int length;
		if (layers[i].bytes == CUF_UNKNOWN)
			continue;
		length = snprintf(out + used, bytes - used, "%s%s %s%s%s%s", used ? "; " : "", names[i], units_bytes(layers[i].bytes).s,
				  layers[i].words ? " (" : "", layers[i].words ? layers[i].words : "", layers[i].words ? ")" : "");
		used += length > 0 ? (size_t)length : 0;
	}
	if (!*out)
		snprintf(out, bytes, "unknown in every layer");
}

/* What was wanted in one piece: the driver was perhaps asked for a segment to put it into, or for a part of it. */
static uint64_t wanted_bytes(const struct fact_incident *incident)
{
	if (incident->framework_requested_bytes != CUF_UNKNOWN)
		return incident->framework_requested_bytes;
	return incident->least_requested_bytes != CUF_UNKNOWN ? incident->least_requested_bytes : incident->requested_bytes;
}

/* Free memory that would have served is said to have been there, and no cause is made up for it. */
void text_shortage(const struct fact_incident *incident, char *out, size_t bytes)
{
	uint64_t wanted = wanted_bytes(incident), left = incident->free_bytes;
	int used;
	if (!incident->is_request || wanted == CUF_UNKNOWN)
		used = snprintf(out, bytes, "the call names no size; device free %s", units_bytes(left).s);
	else if (incident->device == FACT_NONE)
		used = snprintf(out, bytes, "wanted %s of host memory", units_bytes(wanted).s);
	else if (left == CUF_UNKNOWN)
		used = snprintf(out, bytes, "wanted %s; what was free is not known", units_bytes(wanted).s);
	else if (left >= wanted)
		used = snprintf(out, bytes, "wanted %s, device free %s: free memory alone does not explain it", units_bytes(wanted).s, units_bytes(left).s);
	else
		used = snprintf(out, bytes, "wanted %s, device free %s: %s short", units_bytes(wanted).s, units_bytes(left).s, units_bytes(wanted - left).s);
	if (used < 0 || (size_t)used >= bytes || incident->device == FACT_NONE || !incident->is_request)
		return;
	if (incident->fits_if_packed == FACT_YES)
		snprintf(out + used, bytes - (size_t)used, "; it would fit if all holes were packed (%s)", units_bytes(incident->packed_bytes).s);
	else if (incident->fits_if_packed == FACT_NO)
		snprintf(out + used, bytes - (size_t)used, "; packing every hole would give %s: not fragmentation", units_bytes(incident->packed_bytes).s);
	else
		snprintf(out + used, bytes - (size_t)used, "; whether packing holes would make room cannot be told");
}

void text_ending(const struct fact_process *process, char *out, size_t bytes)
{
	const char *signal_name = process->end == END_SIGNAL ? sigdescr_np((int)process->end_status) : NULL;
	switch (process->end) {
	case END_EXIT:
		snprintf(out, bytes, "exited with status %s", units_count(process->end_status).s);
		break;
	case END_SIGNAL:
		snprintf(out, bytes, "ended by signal %s%s%s%s", units_count(process->end_status).s, signal_name ? " (" : "", signal_name ? signal_name : "",
			 signal_name ? ")" : "");
		break;
	case END_KILLED:
		snprintf(out, bytes, process->end_status == 9 ? "killed by SIGKILL" : "ended without a word (SIGKILL or a crash)");
		break;
	case END_OOM_KILLED:
		snprintf(out, bytes, "OOM-killed (%s)", process->end_basis == BASIS_NONE ? "inferred" : basis_names[process->end_basis]);
		break;
	case END_EXEC:
		snprintf(out, bytes, "replaced itself by exec");
		break;
	default:
		snprintf(out, bytes, "still running");
	}
}

size_t text_count_leaks(const struct facts *facts)
{
	size_t count = 0;
	while (count < facts->leak_count && facts->leaks[count].class == CLASS_LEAK)
		count++;
	return count;
}

const char *text_cycle_name(const struct fact_site *site) { return site->cycles_basis == BASIS_OBSERVED ? "request" : "cycle"; }

const char *text_result_name(uint32_t result)
{
	static const struct { uint32_t result; const char *name; } names[] = {
		{ 1, "invalid value" }, { 2, "out of memory" }, { 3, "not initialized" }, { 4, "deinitialized" }, { 201, "invalid context" },
		{ 304, "operating system" }, { 400, "invalid handle" }, { 700, "illegal address" }, { 701, "launch out of resources" },
		{ 712, "already registered" }, { 719, "launch failed" }, { 801, "not supported" }, { 900, "capture unsupported" },
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].result == result)
			return names[i].name;
	return NULL;
}
