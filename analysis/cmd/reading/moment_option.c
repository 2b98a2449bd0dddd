/* SPDX-License-Identifier: Apache-2.0 */
/* now, end, peak, the number of an incident (#3), or a time since the start (12.5s). */
#include "analysis/cmd/reading/moment_option.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/facts/totals.h"

static int parse(const char *text, struct facts_options *options)
{
	char *end;
	double seconds;

	if (!strcmp(text, "now")) {
		options->at = FACTS_AT_NOW;
		return 0;
	}
	if (!strcmp(text, "end")) {
		options->at = FACTS_AT_END;
		return 0;
	}
	if (!strcmp(text, "peak")) {
		options->at = FACTS_AT_PEAK;
		return 0;
	}
	if (*text == '#') {
		options->at = FACTS_AT_INCIDENT;
		if (!units_parse_count(text + 1, &options->at_value) || !options->at_value)
			return -1;
		return 0;
	}
	seconds = strtod(text, &end);
	if (end == text || strcmp(end, "s") != 0 || !(seconds >= 0 && seconds < 1e9))
		return -1;
	options->at = FACTS_AT_TIME;
	options->at_value = (uint64_t)(seconds * 1e9);
	return 0;
}

int moment_option_parse(const char *at, struct facts_options *options)
{
	if (!parse(at, options))
		return 0;
	say_error("invalid value '%s' for --at: expected now, end, peak, #N (a failed request) "
		  "or Ns (seconds since the start)", at);
	return -1;
}

int moment_option_check(const struct facts_options *options, const struct facts *facts,
			const char *at)
{
	if (options->at == FACTS_AT_INCIDENT && options->at_value > facts->incident_count) {
		if (facts->incident_count == 0)
			say_error("cannot show --at=%s: no request failed", at);
		else
			say_error("cannot show --at=%s: failed requests are numbered #1 to #%zu",
				  at, facts->incident_count);
		return -1;
	}
	if (options->at == FACTS_AT_TIME && options->at_value > facts_duration_ns(facts)) {
		say_error("cannot show --at=%s: the recording ends after %s", at,
			  units_duration(facts_duration_ns(facts)).s);
		return -1;
	}
	return 0;
}
