/* SPDX-License-Identifier: Apache-2.0 */
/* The steps in order, the outcome, and how far the recording can be trusted. */
#include "analysis/explain/evidence/gather.h"

#include <math.h>
#include <string.h>
#include "analysis/explain/evidence/adjust.h"
#include "analysis/explain/evidence/parts.h"
#include "analysis/explain/evidence/trace.h"
#include "analysis/symbols/frameworks.h"

/* ---- which framework ---- */

/* The recorder noted the framework that reported its blocks: "framework=PyTorch". */
static bool reports_as(const char *text, const struct framework *framework)
{
	const char *value = strstr(text, "framework=");

	return value && !strncmp(value + 10, framework->name, strlen(framework->name));
}

static bool is_loaded(const struct fact_process *process, const struct framework *framework)
{
	if (framework_has_words(framework, process->cmdline))
		return true;
	for (size_t i = 0; i < process->module_count; i++)
		if (framework_has_path(framework, process->modules[i].path))
			return true;
	for (size_t i = 0; i < process->text_count; i++) {
		const struct fact_meta_text *text = &process->texts[i];
		if (text->type == CUF_META_CODE && framework_has_path(framework, text->text))
			return true;
		if (text->type == CUF_META_FRAMEWORK && reports_as(text->text, framework))
			return true;
	}
	return false;
}

/* The most specific one; "" none. A framework for agents explains host memory before any other. */
static const char *framework_of(const struct fact_process *process, bool host)
{
	const struct framework *framework;
	const char *found = "";

	for (size_t i = 0; (framework = framework_at(i)); i++) {
		bool better = !*found || (host && framework->agents);
		if (!better || !is_loaded(process, framework))
			continue;
		if (!host || framework->agents)
			return framework->name;
		found = framework->name;
	}
	return found;
}

/* ---- how far the recording can be trusted ---- */

/* One fault of the recording; factor 1: it does not have it. */
struct fault {
	double factor;
	const char *words;
};

static double factor_if(bool fault, double factor)
{
	return fault ? factor : 1;
}

/* Each fault multiplies: two are worse than one. */
static void judge_quality(struct evidence *evidence)
{
	const struct fact_process *process = &evidence->facts->processes[evidence->process];
	const struct reader *reader = evidence->facts->run->processes[evidence->process].reader;
	const struct fact_incident *incident = evidence->incident;
	const uint64_t *metrics = evidence->metrics;
	bool device = evidence->device != FACT_NONE;
	bool estimated = incident && incident->basis == BASIS_ESTIMATED;
	const struct fault faults[] = {
		{ factor_if(process->switched_off, 0.6), "recording was switched off" },
		{ factor_if(!process->complete, 0.6), "the recording is cut or damaged" },
		{ factor_if(process->events_lost, 0.8), "events were dropped: no table had room" },
		{ factor_if(reader->header.lost[CUF_LOST_LEDGER], 0.8),
		  "live blocks were dropped: the recording had no room for them" },
		{ factor_if(process->events_overwritten && !estimated, 0.95),
		  "old events were overwritten (raise --size)" },
		{ factor_if(estimated, 0.85),
		  "the state at the failure is an estimate: its events were overwritten "
		  "(raise --size)" },
		{ factor_if(device && metrics[METRIC_free] == CUF_UNKNOWN, 0.7),
		  "free memory of the device is unknown" },
		{ factor_if(device && metrics[METRIC_total] == CUF_UNKNOWN, 0.8),
		  "the size of the device is unknown" },
		{ factor_if(!device && process->host_mode == CUF_HOST_OFF, 0.7),
		  "host memory was not recorded (host=off)" },
	};
	const char **lacks = arena_zeroed(evidence->facts->arena, sizeof faults / sizeof *faults,
					  sizeof *lacks);

	evidence->quality = 1;
	evidence->lacks = lacks;
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		if (faults[i].factor < 1) {
			evidence->quality *= faults[i].factor;
			lacks[evidence->lack_count++] = faults[i].words;
		}
}

static void set_outcome(struct evidence *evidence)
{
	const struct fact_incident *incident = evidence->incident;
	bool recovered;

	if (!incident)
		return;
	recovered = incident->outcome == OUTCOME_RECOVERED;
	evidence_set(evidence, SIGNAL_survived, recovered || incident->outcome == OUTCOME_HANDLED);
	evidence_set(evidence, SIGNAL_retried, recovered);
	evidence_show(evidence, SIGNAL_survived, incident->seq);
	evidence_show(evidence, SIGNAL_retried, incident->seq);
	for (size_t i = 0; i + 1 < incident->attempt_count; i++)
		evidence_show(evidence, SIGNAL_retried, incident->attempts[i].seq);
}

static struct evidence empty_evidence(const struct facts *facts, uint32_t process, uint32_t device,
				      const struct fact_incident *incident)
{
	struct evidence evidence = { .facts = facts,
				     .process = process,
				     .device = device,
				     .incident = incident,
				     .runtime = "" };

	for (enum metric m = 0; m < METRIC_MAX; m++)
		evidence.metrics[m] = CUF_UNKNOWN;
	for (enum signal s = 0; s < SIGNAL_MAX; s++)
		evidence.signals[s] = (struct evidence_signal){ .value = NAN,
								.time_ns = CUF_UNKNOWN };
	for (enum removed what = 0; what < REMOVAL_MAX; what++)
		evidence.removals[what] = (struct removal){ CUF_UNKNOWN, false };
	return evidence;
}

struct evidence evidence_of(const struct facts *facts, uint32_t process, uint32_t device,
			    const struct fact_incident *incident, struct event_pass **heard)
{
	struct evidence evidence = empty_evidence(facts, process, device, incident);

	evidence.framework = framework_of(&facts->processes[process], device == FACT_NONE);
	set_outcome(&evidence);
	evidence_device(&evidence);
	/* What was survived needs no further explanation, so its history is not read. */
	if (!evidence_holds(&evidence, SIGNAL_survived)) {
		struct history history;
		bool kv_grows;

		evidence_live(&evidence);
		history = evidence_trace(&evidence, heard);
		kv_grows = evidence_growth(&evidence);
		evidence_host(&evidence);
		evidence = evidence_adjust(&evidence, &history, kv_grows);
		evidence_settings(&evidence);
		evidence_removals(&evidence);
	}
	judge_quality(&evidence);
	return evidence;
}
