/* SPDX-License-Identifier: Apache-2.0 */
/* options.def to rows of options, and the given ones to "key=value:key=value". */
#include "analysis/cmd/cli/settings.h"

#include <stdio.h>
#include <string.h>

#define ROW_FLAG(key, def, min, max, text) { #key, 0, OPT_SWITCH, NULL, 0, 1, #def, text },
#define ROW_COUNT(key, def, min, max, text) { #key, 0, OPT_COUNT, "N", min, max, #def, text },
#define ROW_BYTES(key, def, min, max, text) { #key, 0, OPT_BYTES, "SIZE", min, max, #def, text },
#define ROW_CHOICE(key, def, words, max, text) { #key, 0, OPT_CHOICE, words, 0, 0, #def, text },
#define ROW_PATH(key, def, min, max, text) { #key, 0, OPT_TEXT, "PATH", 0, 0, NULL, text },
#define OPTION(key, type, def, min, max, unit, text) ROW_##type(key, def, min, max, text)

static const struct opt rows[] = {
#include "interpose/abi/options.def"
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

const struct opt_group settings_launched = { "Recorder", rows, ROW_COUNT, { "start", "verbose" } };
const struct opt_group settings_printed = { "Recorder", rows, ROW_COUNT, { "verbose" } };

static bool is_setting(const struct opts_row *row)
{
	return row->group == &settings_launched || row->group == &settings_printed;
}

/* Appends "text" or "key=value" after a colon. False: it does not fit. */
static bool append_pair(char *out, size_t bytes, const char *key, const char *value)
{
	size_t used = strlen(out);
	const char *colon = used ? ":" : "";
	int length;

	if (value)
		length = snprintf(out + used, bytes - used, "%s%s=%s", colon, key, value);
	else
		length = snprintf(out + used, bytes - used, "%s%s", colon, key);
	return length >= 0 && (size_t)length < bytes - used;
}

/* Later settings win in the recorder. So the order is: inherited, then ours, then the command
 * line. */
int settings_compose(const struct opts *opts, const char *inherited, const char *first,
		     char *out, size_t bytes, char *error, size_t error_bytes)
{
	bool fits = true;

	*out = 0;
	if (inherited && *inherited)
		fits = append_pair(out, bytes, inherited, NULL);
	if (first)
		fits = append_pair(out, bytes, first, NULL) && fits;
	if (opts_has(opts, "verbose"))
		fits = append_pair(out, bytes, "verbose", "1") && fits;
	for (size_t i = 0; i < opts->count; i++) {
		const struct opts_row *row = &opts->rows[i];
		if (!is_setting(row) || !row->set)
			continue;
		if (row->text && strchr(row->text, ':')) {
			snprintf(error, error_bytes,
				 "cannot pass --%s=%s: CUFLIGHT_OPTIONS separates settings "
				 "by ':'; use a path without one", row->name, row->text);
			return -1;
		}
		if (!append_pair(out, bytes, row->opt.name, row->text ? row->text : "1"))
			fits = false;
	}
	if (!fits)
		snprintf(error, error_bytes, "cannot set CUFLIGHT_OPTIONS: longer than %zu bytes",
			 bytes);
	return fits ? 0 : -1;
}
