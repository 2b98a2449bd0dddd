/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line set - context, share of the device, sequences at once - and the values of it that fit. */
#include "analysis/explain/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct setting {
	const char *option;
	enum figure figure;
	double scale;
} settings[] = {
	{ "--gpu-memory-utilization", FIG_fraction, 100 },
	{ "--mem-fraction-static", FIG_fraction, 100 },
	{ "--kv_cache_free_gpu_memory_fraction", FIG_fraction, 100 },
	{ "--max-model-len", FIG_context, 1 },
	{ "--context-length", FIG_context, 1 },
	{ "--ctx-size", FIG_context, 1 },
	{ "-c", FIG_context, 1 },
	{ "--n_ctx", FIG_context, 1 },
	{ "--max_seq_len", FIG_context, 1 },
	{ "--max-num-seqs", FIG_slots, 1 },
	{ "--max-running-requests", FIG_slots, 1 },
	{ "--parallel", FIG_slots, 1 },
	{ "-np", FIG_slots, 1 },
	{ "--max_batch_size", FIG_slots, 1 },
	{ "--batch-size", FIG_slots, 1 },
};
/* The same in the environment, where the recorder keeps it. */
static const struct setting variables[] = {
	{ "OLLAMA_NUM_PARALLEL", FIG_slots, 1 },
	{ "OLLAMA_CONTEXT_LENGTH", FIG_context, 1 },
	{ "XLA_PYTHON_CLIENT_MEM_FRACTION", FIG_fraction, 100 },
	{ "XLA_CLIENT_MEM_FRACTION", FIG_fraction, 100 },
};

static void take(struct evidence *evidence, const struct setting *setting, const char *value)
{
	char *end;
	double number = strtod(value, &end) * setting->scale;
	if (end == value || !(number > 0) || number >= 1e12)
		return;
	evidence->figures[setting->figure] = (uint64_t)llround(number);
	evidence->options[setting->figure] = setting->option;
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

static void read_settings(const struct fact_process *process, struct evidence *evidence)
{
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		const char *value = value_of(process->cmdline, settings[i].option);
		if (value)
			take(evidence, &settings[i], value);
	}
	for (size_t t = 0; t < process->text_count; t++)
		for (size_t i = 0; process->texts[t].type == CUF_META_ENV &&
				   i < sizeof variables / sizeof *variables;
		     i++) {
			size_t bytes = strlen(variables[i].option);
			if (!strncmp(process->texts[t].text, variables[i].option, bytes) &&
			    process->texts[t].text[bytes] == '=')
				take(evidence, &variables[i], process->texts[t].text + bytes + 1);
		}
}

/* The cache is made of as many equal blocks as there are layers, or twice that: the layers are counted in the weights. */
static uint64_t blocks_wanted(const uint64_t *f)
{
	uint64_t layers = f[FIG_depth], wanted = f[FIG_wanted];
	if (layers == CUF_UNKNOWN)
		return wanted;
	return layers >= wanted ? layers : 2 * layers >= wanted ? 2 * layers : wanted;
}

static uint64_t pages_up(uint64_t bytes)
{
	return (bytes + CUF_PAGE_BYTES - 1) / CUF_PAGE_BYTES * CUF_PAGE_BYTES;
}

static void fit_cache(struct evidence *evidence)
{
	uint64_t *figures = evidence->figures, kv = figures[FIG_kv], needed;
	if (kv == CUF_UNKNOWN || figures[FIG_free] == CUF_UNKNOWN ||
	    figures[FIG_request] == CUF_UNKNOWN || !kv)
		return;
	if (evidence->terms[TERM_kv_done].value >
	    0) { /* complete: make room for what came after it */
		needed = kv;
		figures[FIG_kv_fits] = kv > figures[FIG_shortfall] ? kv - figures[FIG_shortfall]
								   : 0;
	} else if (evidence->terms[TERM_family_next].value > 0) {
		figures[FIG_wanted] = blocks_wanted(figures);
		needed = figures[FIG_wanted] * figures[FIG_unit];
		figures[FIG_kv_fits] =
			(pages_up(figures[FIG_unit]) * figures[FIG_family] + figures[FIG_free]) /
			figures[FIG_wanted] / CUF_PAGE_BYTES * CUF_PAGE_BYTES * figures[FIG_wanted];
	} else {
		needed = figures[FIG_request];
		figures[FIG_kv_fits] = figures[FIG_free];
	}
	if (!needed || figures[FIG_kv_fits] >= needed)
		return;
	figures[FIG_kv_percent] = figures[FIG_kv_fits] * 100 / needed;
	figures[FIG_kv_excess] = needed - figures[FIG_kv_fits];
	if (figures[FIG_context] != CUF_UNKNOWN)
		figures[FIG_context_fits] = (uint64_t)((double)figures[FIG_context] *
						       (double)figures[FIG_kv_fits] /
						       (double)needed);
}

/* One block a slot, or one block for all of them. */
static void fit_slots(struct evidence *evidence)
{
	uint64_t *figures = evidence->figures, slots = figures[FIG_slots];
	bool divides = slots != CUF_UNKNOWN && slots >= 2 && figures[FIG_request] != CUF_UNKNOWN &&
		       figures[FIG_request] % slots == 0;
	if (slots == CUF_UNKNOWN)
		return;
	evidence_set(evidence, TERM_per_slot,
		     divides && !(evidence->terms[TERM_family_next].value > 0));
	evidence_show(evidence, TERM_per_slot, evidence->incident->seq);
	if (divides && evidence->terms[TERM_per_slot].value > 0 &&
	    figures[FIG_free] != CUF_UNKNOWN) {
		figures[FIG_per_slot] = figures[FIG_request] / slots;
		figures[FIG_slots_fit] = figures[FIG_free] / figures[FIG_per_slot];
	} else if (figures[FIG_fits] != CUF_UNKNOWN && figures[FIG_fits] < slots) {
		figures[FIG_slots_fit] = figures[FIG_fits];
	}
}

void evidence_settings(struct build *build, struct evidence *evidence)
{
	uint64_t *figures = evidence->figures;
	if (evidence->device == FACT_NONE || !evidence->incident)
		return;
	read_settings(&build->facts->processes[evidence->process], evidence);
	fit_cache(evidence);
	if (figures[FIG_kv_excess] == CUF_UNKNOWN)
		figures[FIG_kv_excess] = figures[FIG_shortfall];
	if (figures[FIG_fraction] != CUF_UNKNOWN && figures[FIG_kv_excess] != CUF_UNKNOWN &&
	    figures[FIG_total] != CUF_UNKNOWN && figures[FIG_total]) {
		uint64_t less = (figures[FIG_kv_excess] * 100 + figures[FIG_total] - 1) /
				figures[FIG_total];
		figures[FIG_fraction_fits] = figures[FIG_fraction] > less
						     ? figures[FIG_fraction] - less
						     : 0;
	}
	fit_slots(evidence);
}
