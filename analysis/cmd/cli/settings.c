/* SPDX-License-Identifier: Apache-2.0 */
/* options.def -> option rows; given rows -> "key=value:key=value". */
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

const struct opt_group settings_launched = { "Recorder", rows, sizeof rows / sizeof *rows, { "start", "verbose" } };
const struct opt_group settings_printed = { "Recorder", rows, sizeof rows / sizeof *rows, { "verbose" } };

static bool is_setting(const struct opts_row *row)
{
	return row->group == &settings_launched || row->group == &settings_printed;
}

/* One more pair; false: no room. */
static bool append(char *out, size_t bytes, const char *key, const char *value)
{
	size_t used = strlen(out);
	int length = snprintf(out + used, bytes - used, "%s%s%s%s", used ? ":" : "", key, value ? "=" : "", value ? value : "");
	return length >= 0 && (size_t)length < bytes - used;
}

int settings_compose(const struct opts *opts, const char *inherited, const char *first, char *out, size_t bytes, char *error, size_t error_bytes)
{
	bool fits = true;
	*out = 0;
	if (inherited && *inherited)
		fits = append(out, bytes, inherited, NULL);
	if (first)
		fits = append(out, bytes, first, NULL) && fits;
	if (opts_has(opts, "verbose"))
		fits = append(out, bytes, "verbose", "1") && fits;
	for (size_t i = 0; i < opts->count; i++) {
		const struct opts_row *row = &opts->rows[i];
		if (!is_setting(row) || !row->set)
			continue;
		if (row->text && strchr(row->text, ':')) {
			snprintf(error, error_bytes, "--%s=%s: CUFLIGHT_OPTIONS cannot carry a ':'; use a path without one", row->name, row->text);
			return -1;
		}
		fits = append(out, bytes, row->opt.name, row->text ? row->text : "1") && fits;
	}
	if (!fits)
		snprintf(error, error_bytes, "CUFLIGHT_OPTIONS is longer than %zu bytes", bytes);
	return fits ? 0 : -1;
}
