/* SPDX-License-Identifier: Apache-2.0 */
/* Sets, shows and words evidence; evidence_gather.c fills it. */
#include "analysis/explain/evidence/evidence.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "analysis/base/units.h"

const struct metric_row metric_rows[METRIC_MAX] = {
#define METRIC(name, unit, what) { #name, UNIT_##unit, what },
#include "analysis/explain/evidence/evidence.def"
};

const struct signal_row signal_rows[SIGNAL_MAX] = {
#define SIGNAL(name, holds, holds_not) { #name, holds, holds_not },
#include "analysis/explain/evidence/evidence.def"
};

unsigned evidence_set_twice;

/* The first value stays; setting again is counted, and tests expect 0. */
void evidence_set(struct evidence *evidence, enum signal signal, double value)
{
	if (!isnan(evidence->signals[signal].value)) {
		evidence_set_twice++;
		return;
	}
	evidence->signals[signal].value = value;
}

void evidence_show(struct evidence *evidence, enum signal signal, uint64_t seq)
{
	struct evidence_signal *shown = &evidence->signals[signal];

	if (!seq || seq == CUF_UNKNOWN ||
	    shown->seq_count == sizeof shown->seqs / sizeof *shown->seqs)
		return;
	shown->seqs[shown->seq_count++] = seq;
}

bool evidence_holds(const struct evidence *evidence, enum signal signal)
{
	return evidence->signals[signal].value > 0;
}

double evidence_ratio(uint64_t a, uint64_t b)
{
	if (a == CUF_UNKNOWN || b == CUF_UNKNOWN || !b)
		return NAN;
	return (double)a / (double)b;
}

static int print_metric(char *out, size_t room, enum metric_unit unit, uint64_t value)
{
	switch (unit) {
	case UNIT_BYTES: return snprintf(out, room, "%s", units_bytes(value).s);
	case UNIT_PERCENT: return snprintf(out, room, "%" PRIu64 " %%", value);
	case UNIT_SECONDS: return snprintf(out, room, "%s", units_duration(value * 1000000000u).s);
	case UNIT_SETTING: return snprintf(out, room, "%" PRIu64, value);
	case UNIT_FRACTION: return snprintf(out, room, "%.2f", (double)value / 100);
	case UNIT_BYTES_PER_SECOND: return snprintf(out, room, "%s/s", units_bytes(value).s);
	default: return snprintf(out, room, "%s", units_count(value).s);
	}
}

/* By the name between braces. METRIC_MAX: none. */
static enum metric metric_named(const char *name, size_t bytes)
{
	for (enum metric m = 0; m < METRIC_MAX; m++)
		if (strlen(metric_rows[m].name) == bytes &&
		    !memcmp(metric_rows[m].name, name, bytes))
			return m;
	return METRIC_MAX;
}

const char *evidence_words(const struct evidence *evidence, struct arena *arena, const char *words)
{
	char out[1024];
	size_t used = 0;

	while (*words && used + 1 < sizeof out) {
		size_t bytes = *words == '{' ? strcspn(words, "}") : 0;
		bool option = bytes && words[1] == '@';
		enum metric metric = METRIC_MAX;
		int length;

		if (bytes)
			metric = metric_named(words + 1 + option, bytes - 1 - option);
		if (metric == METRIC_MAX) {
			out[used++] = *words++;
			continue;
		}
		if (evidence->metrics[metric] == CUF_UNKNOWN ||
		    (option && !evidence->options[metric]))
			return NULL;
		if (option)
			length = snprintf(out + used, sizeof out - used, "%s",
					  evidence->options[metric]);
		else
			length = print_metric(out + used, sizeof out - used,
					      metric_rows[metric].unit, evidence->metrics[metric]);
		used += length > 0 ? (size_t)length : 0;
		words += bytes + 1;
	}
	return arena_text(arena, out, used < sizeof out ? used : sizeof out - 1);
}
