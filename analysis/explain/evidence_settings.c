/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line set - context, share of the device, sequences at once - and the values of it that fit. */
#include "analysis/explain/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct setting { const char *option; enum figure figure; double scale; } settings[] = {
	{ "--gpu-memory-utilization", FIG_fraction, 100 }, { "--mem-fraction-static", FIG_fraction, 100 }, { "--kv_cache_free_gpu_memory_fraction", FIG_fraction, 100 },
	{ "--max-model-len", FIG_context, 1 }, { "--context-length", FIG_context, 1 }, { "--ctx-size", FIG_context, 1 }, { "-c", FIG_context, 1 },
	{ "--n_ctx", FIG_context, 1 }, { "--max_seq_len", FIG_context, 1 },
	{ "--max-num-seqs", FIG_slots, 1 }, { "--max-running-requests", FIG_slots, 1 }, { "--parallel", FIG_slots, 1 }, { "-np", FIG_slots, 1 },
	{ "--max_batch_size", FIG_slots, 1 }, { "--batch-size", FIG_slots, 1 },
};
/* The same in the environment, where the recorder keeps it. */
static const struct setting variables[] = {
	{ "OLLAMA_NUM_PARALLEL", FIG_slots, 1 }, { "OLLAMA_CONTEXT_LENGTH", FIG_context, 1 }, { "XLA_PYTHON_CLIENT_MEM_FRACTION", FIG_fraction, 100 },
	{ "XLA_CLIENT_MEM_FRACTION", FIG_fraction, 100 },
};

static void take(struct evidence *e, const struct setting *s, const char *value)
{
	char *end;
	double number = strtod(value, &end) * s->scale;
	if (end == value || !(number > 0) || number >= 1e12)
		return;
	e->figures[s->figure] = (uint64_t)llround(number);
	e->options[s->figure] = s->option;
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

static void read_settings(const struct fact_process *p, struct evidence *e)
{
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		const char *value = value_of(p->cmdline, settings[i].option);
		if (value)
			take(e, &settings[i], value);
	}
	for (size_t t = 0; t < p->text_count; t++)
		for (size_t i = 0; p->texts[t].type == CUF_META_ENV && i < sizeof variables / sizeof *variables; i++) {
			size_t bytes = strlen(variables[i].option);
			if (!strncmp(p->texts[t].text, variables[i].option, bytes) && p->texts[t].text[bytes] == '=')
				take(e, &variables[i], p->texts[t].text + bytes + 1);
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

static uint64_t pages_up(uint64_t bytes) { return (bytes + CUF_PAGE_BYTES - 1) / CUF_PAGE_BYTES * CUF_PAGE_BYTES; }

static void fit_cache(struct evidence *e)
{
	uint64_t *f = e->figures, kv = f[FIG_kv], needed;
	if (kv == CUF_UNKNOWN || f[FIG_free] == CUF_UNKNOWN || f[FIG_request] == CUF_UNKNOWN || !kv)
		return;
	if (e->terms[TERM_kv_done].value > 0) { /* complete: make room for what came after it */
		needed = kv;
		f[FIG_kv_fits] = kv > f[FIG_shortfall] ? kv - f[FIG_shortfall] : 0;
	} else if (e->terms[TERM_family_next].value > 0) {
		f[FIG_wanted] = blocks_wanted(f);
		needed = f[FIG_wanted] * f[FIG_unit];
		f[FIG_kv_fits] = (pages_up(f[FIG_unit]) * f[FIG_family] + f[FIG_free]) / f[FIG_wanted] / CUF_PAGE_BYTES * CUF_PAGE_BYTES * f[FIG_wanted];
	} else {
		needed = f[FIG_request];
		f[FIG_kv_fits] = f[FIG_free];
	}
	if (!needed || f[FIG_kv_fits] >= needed)
		return;
	f[FIG_kv_percent] = f[FIG_kv_fits] * 100 / needed;
	f[FIG_kv_excess] = needed - f[FIG_kv_fits];
	if (f[FIG_context] != CUF_UNKNOWN)
		f[FIG_context_fits] = (uint64_t)((double)f[FIG_context] * (double)f[FIG_kv_fits] / (double)needed);
}

/* One block a slot, or one block for all of them. */
static void fit_slots(struct evidence *e)
{
	uint64_t *f = e->figures, slots = f[FIG_slots];
	bool divides = slots != CUF_UNKNOWN && slots >= 2 && f[FIG_request] != CUF_UNKNOWN && f[FIG_request] % slots == 0;
	if (slots == CUF_UNKNOWN)
		return;
	evidence_set(e, TERM_per_slot, divides && !(e->terms[TERM_family_next].value > 0));
	evidence_show(e, TERM_per_slot, e->incident->seq);
	if (divides && e->terms[TERM_per_slot].value > 0 && f[FIG_free] != CUF_UNKNOWN) {
		f[FIG_per_slot] = f[FIG_request] / slots;
		f[FIG_slots_fit] = f[FIG_free] / f[FIG_per_slot];
	} else if (f[FIG_fits] != CUF_UNKNOWN && f[FIG_fits] < slots) {
		f[FIG_slots_fit] = f[FIG_fits];
	}
}

void evidence_settings(struct build *build, struct evidence *e)
{
	uint64_t *f = e->figures;
	if (e->device == FACT_NONE || !e->incident)
		return;
	read_settings(&build->facts->processes[e->process], e);
	fit_cache(e);
	if (f[FIG_kv_excess] == CUF_UNKNOWN)
		f[FIG_kv_excess] = f[FIG_shortfall];
	if (f[FIG_fraction] != CUF_UNKNOWN && f[FIG_kv_excess] != CUF_UNKNOWN && f[FIG_total] != CUF_UNKNOWN && f[FIG_total]) {
		uint64_t less = (f[FIG_kv_excess] * 100 + f[FIG_total] - 1) / f[FIG_total];
		f[FIG_fraction_fits] = f[FIG_fraction] > less ? f[FIG_fraction] - less : 0;
	}
	fit_slots(e);
}
