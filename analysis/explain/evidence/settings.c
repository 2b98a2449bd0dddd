/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the command line - context, share of the device, sequences at once - and the values
 * of them that fit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/explain/evidence/parts.h"
#include "analysis/explain/evidence/thresholds.h"

struct setting {
	const char *option;
	enum metric metric;
	double scale; /* of the value on the command line */
};

static const struct setting settings[] = {
	{ "--gpu-memory-utilization", METRIC_fraction, 100 },
	{ "--mem-fraction-static", METRIC_fraction, 100 },
	{ "--kv_cache_free_gpu_memory_fraction", METRIC_fraction, 100 },
	{ "--max-model-len", METRIC_context, 1 },
	{ "--context-length", METRIC_context, 1 },
	{ "--ctx-size", METRIC_context, 1 },
	{ "-c", METRIC_context, 1 },
	{ "--n_ctx", METRIC_context, 1 },
	{ "--max_seq_len", METRIC_context, 1 },
	{ "--max-num-seqs", METRIC_slots, 1 },
	{ "--max-running-requests", METRIC_slots, 1 },
	{ "--parallel", METRIC_slots, 1 },
	{ "-np", METRIC_slots, 1 },
	{ "--max_batch_size", METRIC_slots, 1 },
	{ "--batch-size", METRIC_slots, 1 },
};

/* Environment variables that the recorder keeps. */
static const struct setting variables[] = {
	{ "OLLAMA_NUM_PARALLEL", METRIC_slots, 1 },
	{ "OLLAMA_CONTEXT_LENGTH", METRIC_context, 1 },
	{ "XLA_PYTHON_CLIENT_MEM_FRACTION", METRIC_fraction, 100 },
	{ "XLA_CLIENT_MEM_FRACTION", METRIC_fraction, 100 },
};

/* ---- reading ---- */

static void read_value(struct evidence *evidence, const struct setting *setting, const char *value)
{
	char *end;
	double number = strtod(value, &end) * setting->scale;

	if (end == value || !(number > 0) || number >= 1e12)
		return;
	evidence->metrics[setting->metric] = (uint64_t)llround(number);
	evidence->options[setting->metric] = setting->option;
}

/* "--name=value" or "--name value", as a word of the command line. */
static const char *value_of(const char *line, const char *option)
{
	size_t bytes = strlen(option);

	for (const char *at = line; (at = strstr(at, option)); at += bytes)
		if ((at == line || at[-1] == ' ') && (at[bytes] == '=' || at[bytes] == ' '))
			return at + bytes + 1;
	return NULL;
}

static void read_variable(struct evidence *evidence, const char *text)
{
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		size_t bytes = strlen(variables[i].option);
		if (!strncmp(text, variables[i].option, bytes) && text[bytes] == '=')
			read_value(evidence, &variables[i], text + bytes + 1);
	}
}

/* An environment variable replaces what the command line set. */
static void read_settings(const struct fact_process *process, struct evidence *evidence)
{
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		const char *value = value_of(process->cmdline, settings[i].option);
		if (value)
			read_value(evidence, &settings[i], value);
	}
	for (size_t i = 0; i < process->text_count; i++)
		if (process->texts[i].type == CUF_META_ENV)
			read_variable(evidence, process->texts[i].text);
}

/* ---- a KV cache that fits ---- */

/* A cache has as many equal blocks as there are layers, or twice as many (keys and values apart, by
 * a line each). The layers are counted in the weights. */
static uint64_t blocks_wanted(const uint64_t *metrics)
{
	uint64_t layers = metrics[METRIC_depth], wanted = metrics[METRIC_wanted];

	if (!is_known(layers))
		return wanted;
	if (layers * metrics[METRIC_family_sites] >= wanted)
		return layers * metrics[METRIC_family_sites];
	return most_of(2 * layers, wanted);
}

/* The driver allocates in pages of 2 MiB. */
static uint64_t pages_down(uint64_t bytes)
{
	return bytes / CUF_PAGE_BYTES * CUF_PAGE_BYTES;
}

static uint64_t pages_up(uint64_t bytes)
{
	return round_up_to(bytes, CUF_PAGE_BYTES);
}

/* Fills kv_fits and returns the size that the program requested. */
static uint64_t fit_cache(const struct evidence *evidence, uint64_t *metrics)
{
	uint64_t kv = metrics[METRIC_kv], room;

	if (evidence_holds(evidence, SIGNAL_kv_done)) { /* make room for what came after it */
		uint64_t shortfall = metrics[METRIC_shortfall];
		uint64_t most = 0;

		if (is_known(metrics[METRIC_total]))
			most = metrics[METRIC_total] / MARGIN_PART;
		/* more of the same follows: as much again, within reason */
		metrics[METRIC_kv_fits] =
			subtract_to_zero(kv, shortfall + least_of(shortfall, most));
		return kv;
	}
	if (!evidence_holds(evidence, SIGNAL_family_next)) { /* one buffer */
		metrics[METRIC_kv_fits] = metrics[METRIC_free];
		return metrics[METRIC_request];
	}
	metrics[METRIC_wanted] = blocks_wanted(metrics);
	room = pages_up(metrics[METRIC_unit]) * metrics[METRIC_family] + metrics[METRIC_free];
	metrics[METRIC_kv_fits] = pages_down(room / metrics[METRIC_wanted]) *
				  metrics[METRIC_wanted];
	return metrics[METRIC_wanted] * metrics[METRIC_unit];
}

/* Which size of KV cache would have fitted, and by how much the present one is too large. */
static void set_cache(struct evidence *evidence)
{
	uint64_t *metrics = evidence->metrics, requested, fits;

	if (!is_known(metrics[METRIC_kv]) || !metrics[METRIC_kv] ||
	    !is_known(metrics[METRIC_free]) || !is_known(metrics[METRIC_request]))
		return;
	requested = fit_cache(evidence, metrics);
	fits = metrics[METRIC_kv_fits];
	if (!requested || fits >= requested)
		return;
	metrics[METRIC_kv_percent] = fits * 100 / requested;
	metrics[METRIC_kv_excess] = requested - fits;
	if (is_known(metrics[METRIC_context]))
		metrics[METRIC_context_fits] = (uint64_t)((double)metrics[METRIC_context] *
							  (double)fits / (double)requested);
}

/* The share of the device that fits is the present one less the excess, in whole percent. */
static void set_fraction(uint64_t *metrics)
{
	uint64_t total = metrics[METRIC_total], set = metrics[METRIC_fraction], less;

	if (!is_known(metrics[METRIC_kv_excess]))
		metrics[METRIC_kv_excess] = metrics[METRIC_shortfall];
	if (!is_known(set) || !is_known(metrics[METRIC_kv_excess]) || !is_known(total) || !total)
		return;
	/* whole percent up, and one more: engines reserve by their own estimate of the rest */
	less = (metrics[METRIC_kv_excess] * 100 + total - 1) / total + 1;
	metrics[METRIC_fraction_fits] = subtract_to_zero(set, less);
}

/* ---- sequences at once ---- */

/* One block for each slot, or one block for all of them. */
static void set_slots(struct evidence *evidence)
{
	uint64_t *metrics = evidence->metrics, slots = metrics[METRIC_slots];
	uint64_t request = metrics[METRIC_request], fits = metrics[METRIC_fits];
	bool for_all;

	if (!is_known(slots))
		return;
	for_all = slots >= 2 && is_known(request) && request && request % slots == 0 &&
		  !evidence_holds(evidence, SIGNAL_family_next);
	evidence_set(evidence, SIGNAL_per_slot, for_all);
	evidence_show(evidence, SIGNAL_per_slot, evidence->incident->seq);
	if (for_all && is_known(metrics[METRIC_free])) {
		metrics[METRIC_per_slot] = request / slots;
		metrics[METRIC_slots_fit] = metrics[METRIC_free] / metrics[METRIC_per_slot];
	} else if (is_known(fits) && fits < slots) {
		metrics[METRIC_slots_fit] = fits;
	}
}

void evidence_settings(struct evidence *evidence)
{
	if (evidence->device == FACT_NONE || !evidence->incident)
		return;
	read_settings(&evidence->facts->processes[evidence->process], evidence);
	set_cache(evidence);
	set_fraction(evidence->metrics);
	set_slots(evidence);
}
