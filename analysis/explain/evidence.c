/* SPDX-License-Identifier: Apache-2.0 */
/* The vector as a whole: names, sentences, what the recording is worth; the parts are in evidence_*.c. */
#include "analysis/explain/evidence.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "analysis/explain/framework_names.h"
#include "analysis/base/units.h"

const struct figure_row figure_rows[FIGURE_MAX] = {
#define FIGURE_ROW(name, unit, what) { #name, UNIT_##unit, what },
	FIGURES(FIGURE_ROW)
};
const struct term_row term_rows[TERM_MAX] = {
#define TERM_ROW(name, words) { #name, words },
	TERMS(TERM_ROW)
};

void evidence_set(struct evidence *evidence, enum term term, double value)
{
	evidence->terms[term].value = value;
}

void evidence_show(struct evidence *evidence, enum term term, uint64_t seq)
{
	struct evidence_term *shown = &evidence->terms[term];
	if (seq && seq != CUF_UNKNOWN &&
	    shown->seq_count < sizeof shown->seqs / sizeof *shown->seqs)
		shown->seqs[shown->seq_count++] = seq;
}

static int print_figure(char *out, size_t room, enum figure_unit unit, uint64_t value)
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

static enum figure figure_named(const char *name, size_t bytes)
{
	for (enum figure f = 0; f < FIGURE_MAX; f++)
		if (strlen(figure_rows[f].name) == bytes &&
		    !memcmp(figure_rows[f].name, name, bytes))
			return f;
	return FIGURE_MAX;
}

const char *evidence_words(const struct evidence *evidence, struct arena *arena, const char *words)
{
	char out[1024];
	size_t used = 0;
	while (*words && used + 1 < sizeof out) {
		size_t bytes = *words == '{' ? strcspn(words, "}") : 0,
		       name = bytes && words[1] == '@' ? 2 : 1;
		enum figure figure = bytes ? figure_named(words + name, bytes - name) : FIGURE_MAX;
		int length;
		if (figure == FIGURE_MAX) {
			out[used++] = *words++;
			continue;
		}
		if (evidence->figures[figure] == CUF_UNKNOWN ||
		    (name == 2 && !evidence->options[figure]))
			return NULL;
		length = name == 2 ? snprintf(out + used, sizeof out - used, "%s",
					      evidence->options[figure])
				   : print_figure(out + used, sizeof out - used,
						  figure_rows[figure].unit,
						  evidence->figures[figure]);
		used += length > 0 ? (size_t)length : 0;
		words += bytes + 1;
	}
	return arena_text(arena, out, used < sizeof out ? used : sizeof out - 1);
}

struct worth {
	double factor;
	const char *words;
};

/* What the recording is worth for this question; each fault multiplies. */
static void judge_quality(struct build *build, struct evidence *evidence)
{
	const struct fact_process *process = &build->facts->processes[evidence->process];
	const struct reader *reader = build->run->processes[evidence->process].reader;
	bool estimated = evidence->incident && evidence->incident->basis == BASIS_ESTIMATED;
	const struct worth faults[] = {
		{ process->switched_off ? 0.6 : 1, "the recorder had switched itself off" },
		{ process->complete ? 1 : 0.6, "the recording is cut or damaged" },
		{ process->events_lost ? 0.8 : 1, "events were lost: no table had room for them" },
		{ reader->header.lost[CUF_LOST_LEDGER] ? 0.8 : 1,
		  "live blocks found no room in the recording" },
		{ process->events_overwritten && !estimated ? 0.95 : 1,
		  "older events were overwritten: a larger --size keeps them" },
		{ estimated ? 0.85 : 1,
		  "the state at the failure is an estimate: a larger --size keeps the events that it needs" },
		{ evidence->device != FACT_NONE && evidence->figures[FIG_free] == CUF_UNKNOWN ? 0.7
											      : 1,
		  "the driver was not asked how much was free" },
		{ evidence->device != FACT_NONE && evidence->figures[FIG_total] == CUF_UNKNOWN ? 0.8
											       : 1,
		  "the size of the device is not known" },
		{ process->host_mode != CUF_HOST_OFF || evidence->device != FACT_NONE ? 1 : 0.7,
		  "host memory was not recorded: without host=off its sites are" },
	};
	const char **lacks = arena_zeroed(build->arena, sizeof faults / sizeof *faults,
					  sizeof *lacks);
	evidence->quality = 1;
	evidence->lacks = lacks;
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		if (faults[i].factor < 1) {
			evidence->quality *= faults[i].factor;
			lacks[evidence->lack_count++] = faults[i].words;
		}
}

static void outcome(struct evidence *evidence)
{
	const struct fact_incident *incident = evidence->incident;
	if (!incident)
		return;
	evidence_set(evidence, TERM_survived,
		     incident->outcome == OUTCOME_RECOVERED ||
			     incident->outcome == OUTCOME_HANDLED);
	evidence_set(evidence, TERM_retried, incident->outcome == OUTCOME_RECOVERED);
	evidence_show(evidence, TERM_survived, incident->seq);
	evidence_show(evidence, TERM_retried, incident->seq);
	for (size_t a = 0; a + 1 < incident->attempt_count; a++)
		evidence_show(evidence, TERM_retried, incident->attempts[a].seq);
}

struct evidence evidence_of(struct build *build, uint32_t process, uint32_t device,
			    const struct fact_incident *incident)
{
	struct evidence evidence = { .process = process, .device = device, .incident = incident };
	for (enum figure f = 0; f < FIGURE_MAX; f++)
		evidence.figures[f] = CUF_UNKNOWN;
	for (enum term t = 0; t < TERM_MAX; t++)
		evidence.terms[t] = (struct evidence_term){ .value = NAN, .time_ns = CUF_UNKNOWN };
	evidence.framework = framework_of(&build->facts->processes[process], device == FACT_NONE);
	outcome(&evidence);
	evidence_device(build, &evidence);
	/* what was survived needs no explanation beyond that: its history is not looked through */
	if (!(evidence.terms[TERM_survived].value > 0)) {
		evidence_live(build, &evidence);
		evidence_trace(build, &evidence);
		evidence_growth(build, &evidence);
		evidence_host(build, &evidence);
		evidence_settings(build, &evidence);
	}
	judge_quality(build, &evidence);
	return evidence;
}
