/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of foreign origin, made fit for a format's strings. */
#include "analysis/view/export/names.h"

#include <stdio.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/paths.h"
#include "analysis/facts/kinds.h"

/* Control characters of a name are no data that a viewer shows. */
void name_text(const char *text, char *out, size_t bytes)
{
	clean_utf8(out, bytes, text);
	for (char *at = out; *at; at++)
		if ((unsigned char)*at < ' ')
			*at = ' ';
	if (!*out)
		snprintf(out, bytes, "?");
}

static const char *holder_of(const struct frame *frame)
{
	if (frame->module)
		return path_base_name(frame->module);
	return "?";
}

void name_function(const struct frame *frame, char *out, size_t bytes)
{
	char text[NAME_BYTES];

	if (frame->function)
		snprintf(text, sizeof text, "%.*s", NAME_BYTES - 1, frame->function);
	else if (frame_is_python(frame))
		snprintf(text, sizeof text, "? (Python)");
	else
		snprintf(text, sizeof text, "%.512s+%#llx", holder_of(frame),
			 (unsigned long long)frame->offset);
	name_text(text, out, bytes);
}

void name_frame(const struct frame *frame, char *out, size_t bytes)
{
	char text[NAME_BYTES];

	name_function(frame, out, bytes);
	if (!frame->file || !frame->line)
		return;
	snprintf(text, sizeof text, "%.600s (%.256s:%u)", out, path_base_name(frame->file),
		 frame->line);
	name_text(text, out, bytes);
}

void name_process(const struct facts *facts, uint32_t process, char *out, size_t bytes)
{
	const struct fact_process *fact = &facts->processes[process];
	char text[NAME_BYTES];

	if (fact->rank)
		snprintf(text, sizeof text, "%.512s %u rank %.64s", path_base_name(fact->exe),
			 fact->pid, fact->rank);
	else
		snprintf(text, sizeof text, "%.512s %u", path_base_name(fact->exe), fact->pid);
	name_text(text, out, bytes);
}

void name_memory(const struct facts *facts, uint32_t kind, uint32_t device, char *out, size_t bytes)
{
	const char *name = kind_name(kind);

	if (device == FACT_NONE)
		snprintf(out, bytes, "%s", name ? name : "?");
	else
		snprintf(out, bytes, "%s gpu %u", name ? name : "?",
			 facts->devices[device].ordinal);
}

/* A clean text has no control characters, so only two are left to escape. */
void name_put_json(FILE *out, const char *text)
{
	char clean[NAME_BYTES];

	name_text(text, clean, sizeof clean);
	fputc('"', out);
	for (const char *at = clean; *at; at++) {
		if (*at == '"' || *at == '\\')
			fputc('\\', out);
		fputc(*at, out);
	}
	fputc('"', out);
}
