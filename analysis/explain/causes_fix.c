/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to do about a cause, in the words of the framework that is loaded. A table: cause and
 * framework
 * to setting, sentence, value. Rows of the engine itself come first, then rows of what it is built
 * on,
 * then rows for any program; within each, the order of the table. A row whose sentence has an
 * unknown
 * metric is skipped: a later one has the same advice without the number.
 */
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/explain/causes.h"
#include "analysis/explain/evidence/evidence.h"
#include "analysis/facts/cause.h"
#include "analysis/symbols/frameworks.h"

/*
 * Advice that was played: a setting stands in it only where its replay fits, with the room that it
 * leaves. Contract: changes the list in place; texts are in the arena of the run. Without a replay
 * of this incident, or where the replay is unlike the recording, the advice stays as it is.
 */

/* What an advice sets, by words in its text, and the row of the replay that tried it. */
static const struct { const char *words, *row; } settings[] = {
	{ "expandable_segments:True", "expandable-segments" },
	{ "set_per_process_memory_fraction", "whole-device" },
};

static const struct fact_what_if *row_named(const struct fact_what_ifs *played, const char *id)
{
	for (size_t i = 0; i < played->count; i++)
		if (!strcmp(played->rows[i].id, id) && !played->rows[i].why_not)
			return &played->rows[i];
	return NULL;
}

static const struct fact_what_if *row_of(const struct fact_what_ifs *played,
					 const struct fact_fix *fix)
{
	for (size_t i = 0; fix->knob && i < sizeof settings / sizeof *settings; i++)
		if (strstr(fix->text, settings[i].words))
			return row_named(played, settings[i].row);
	return NULL;
}

/* The first setting that fits: the smallest change. */
static const struct fact_what_if *best_setting(const struct fact_what_ifs *played)
{
	for (size_t i = 0; i < played->count; i++)
		if (played->rows[i].fits && played->rows[i].knob &&
		    !strcmp(played->rows[i].kind, "setting"))
			return &played->rows[i];
	return NULL;
}

static const char *with_room(struct arena *arena, const char *text, const struct fact_what_if *row)
{
	return arena_format(arena, "%s (replayed: fits, %s to spare)", text,
			    units_bytes(row->room_bytes).s);
}

static void put_first(struct fact_fix *fixes, size_t *count, size_t fixes_max, struct fact_fix fix)
{
	if (*count == fixes_max)
		--*count;
	memmove(fixes + 1, fixes, *count * sizeof *fixes);
	fixes[0] = fix;
	++*count;
}

/* What was played and fits comes before what was not. */
static void move_first(struct fact_fix *fixes, size_t at)
{
	struct fact_fix fix = fixes[at];
	memmove(fixes + 1, fixes, at * sizeof *fixes);
	fixes[0] = fix;
}

/* fixes has room for fixes_max; id: of the cause. */
static void fixes_replay(const struct evidence *evidence, const char *id,
			 struct fact_fix *fixes, size_t *count, size_t fixes_max)
{
	const struct fact_what_ifs *played = &evidence->facts->what_ifs;
	const struct fact_what_if *row, *best;
	struct arena *arena = evidence->facts->arena;
	size_t kept = 0, confirmed = SIZE_MAX;
	if (!played->count || played->unlike || !evidence->incident ||
	    evidence->incident->id != played->incident)
		return;
	for (size_t i = 0; i < *count; i++) {
		row = row_of(played, &fixes[i]);
		if (row && !row->fits)
			continue;
		if (row)
			fixes[i].text = with_room(arena, fixes[i].text, row);
		if (row && confirmed == SIZE_MAX)
			confirmed = kept;
		fixes[kept++] = fixes[i];
	}
	*count = kept;
	if (strncmp(id, "S6", 2))
		return;
	/* what everybody advises about fragmentation, PyTorch included */
	row = row_named(played, "expandable-segments");
	best = best_setting(played);
	if (confirmed != SIZE_MAX)
		move_first(fixes, confirmed);
	else if (best)
		put_first(fixes, count, fixes_max,
			  (struct fact_fix){
				  .text = with_room(arena, arena_format(arena, "set %s",
									best->change), best),
				  .knob = best->knob,
				  .value = CUF_UNKNOWN,
				  .unit = "",
				  .by_bytes = evidence->metrics[METRIC_shortfall],
			  });
	if (row && !row->fits && *count)
		fixes[0].text =
			arena_format(arena, "%s; expandable_segments:True does not help"
				     " (replayed)", fixes[0].text);
}

enum { FIXES_MAX = 4 };
#define NO_METRIC METRIC_MAX

static const struct fix_row {
	const char *cause;       /* an id, or with a star the beginning of several */
	const char *framework;   /* "": any program */
	const char *knob;        /* "@context": the option that set it; NULL: code, not a setting */
	const char *words;
	enum metric value;       /* that would fit; NO_METRIC */
	enum metric by;          /* how much it must free; NO_METRIC */
} fix_table[] = {
	{ "S1.tenant", "vLLM", "gpu_memory_utilization",
	  "lower --gpu-memory-utilization from {fraction} to at most {fraction_fits}, or "
	  "stop the process that holds {strangers}",
	  METRIC_fraction_fits, METRIC_shortfall },
	{ "S1.tenant", "SGLang", "mem_fraction_static",
	  "lower --mem-fraction-static from {fraction} to at most {fraction_fits}, or "
	  "stop the process that holds {strangers}",
	  METRIC_fraction_fits, METRIC_shortfall },
	{ "S1.tenant", "JAX", "XLA_PYTHON_CLIENT_MEM_FRACTION",
	  "set XLA_PYTHON_CLIENT_PREALLOCATE=false, or lower "
	  "XLA_PYTHON_CLIENT_MEM_FRACTION",
	  NO_METRIC, METRIC_shortfall },
	{ "S1.tenant", "", "CUDA_VISIBLE_DEVICES",
	  "give {@sibling}, which holds {sibling}, another device (CUDA_VISIBLE_DEVICES), or "
	  "both a smaller share; at least {shortfall} is missing",
	  NO_METRIC, METRIC_shortfall },
	{ "S1.tenant", "", NULL,
	  "find and stop {@neighbour}, which holds {neighbour} of the device, or move one of the "
	  "two to another device; at least {shortfall} is missing",
	  NO_METRIC, METRIC_shortfall },
	{ "S1.tenant", "", NULL,
	  "find and stop the process that holds {strangers} of the device (nvidia-smi), or move "
	  "one of the two to another device; at least {shortfall} is missing",
	  NO_METRIC, METRIC_shortfall },
	{ "S1.cap", "PyTorch", "set_per_process_memory_fraction",
	  "raise the fraction in torch.cuda.set_per_process_memory_fraction, or remove "
	  "the call",
	  NO_METRIC, NO_METRIC },
	{ "S1.cap", "ONNX Runtime", "gpu_mem_limit",
	  "raise gpu_mem_limit of the CUDA provider by {request}",
	  NO_METRIC, METRIC_request },
	{ "S1.cap", "", NULL,
	  "look for a quota of this container or a partition of the device (MIG, vGPU, "
	  "HAMi), and raise it by {request}",
	  NO_METRIC, METRIC_request },

	{ "S2a", "llama.cpp", "n_gpu_layers",
	  "offload fewer layers to the device (--n-gpu-layers), or use a smaller "
	  "quantisation; at least {shortfall} is missing",
	  NO_METRIC, METRIC_shortfall },
	{ "S2a", "vLLM", "tensor_parallel_size",
	  "use a quantised model, --tensor-parallel-size 2, or --cpu-offload-gb; at "
	  "least {shortfall} is missing",
	  NO_METRIC, METRIC_shortfall },
	{ "S2a", "Transformers", "device_map",
	  "load with device_map=\"auto\", in 8 or 4 bits, or a smaller model; at least "
	  "{shortfall} is missing",
	  NO_METRIC, METRIC_shortfall },
	{ "S2a", "", NULL,
	  "use a smaller or quantised model, or spread it over more devices: {mine} is "
	  "loaded and at least {shortfall} is missing",
	  NO_METRIC, METRIC_shortfall },
	{ "S2b", "vLLM", "max_num_batched_tokens",
	  "lower --max-num-batched-tokens, or --gpu-memory-utilization by {shortfall} of "
	  "the device; avoid prompt_logprobs",
	  NO_METRIC, METRIC_shortfall },
	{ "S2b", "SGLang", "chunked_prefill_size",
	  "lower --chunked-prefill-size, or --mem-fraction-static by {shortfall} of the "
	  "device",
	  NO_METRIC, METRIC_shortfall },
	{ "S2b", "llama.cpp", "n_ubatch",
	  "lower --ubatch-size or --ctx-size, or set --flash-attn on: the compute buffer "
	  "grows with both, and {at_once} would have fit",
	  NO_METRIC, METRIC_shortfall },
	{ "S2b", "PyTorch", NULL,
	  "process the prompt in pieces: {at_once} fits at once, {request} does not; use "
	  "fused attention, and compute logits only for the last token",
	  NO_METRIC, METRIC_over },
	{ "S2b", "", NULL,
	  "make the step smaller (batch, prompt chunk): {at_once} would have fit; the whole "
	  "device has {beyond} less than the request",
	  METRIC_at_once, METRIC_over },
	{ "S2b", "", NULL,
	  "make the step smaller (batch, prompt chunk): {at_once} would have fit; or free "
	  "{over} elsewhere",
	  METRIC_at_once, METRIC_over },

	{ "S3.V", "", NULL,
	  "make the KV cache smaller by at least {kv_excess}: what was to come after the failed "
	  "request is not known",
	  NO_METRIC, METRIC_kv_excess },
	{ "S3*", "vLLM", "max_model_len",
	  "lower {@context} from {context} to {context_fits}, or {@fraction} to "
	  "{fraction_fits}",
	  METRIC_context_fits, METRIC_kv_excess },
	{ "S3*", "vLLM", "max_model_len",
	  "lower {@context} from {context} to {context_fits}",
	  METRIC_context_fits, METRIC_kv_excess },
	{ "S3*", "vLLM", "gpu_memory_utilization",
	  "lower --gpu-memory-utilization from {fraction} to {fraction_fits}",
	  METRIC_fraction_fits, METRIC_kv_excess },
	{ "S3*", "vLLM", "gpu_memory_utilization",
	  "lower --gpu-memory-utilization (0.9 by default) or --max-model-len: the KV "
	  "cache must be {kv_excess} smaller",
	  NO_METRIC, METRIC_kv_excess },
	{ "S3*", "SGLang", "mem_fraction_static",
	  "lower --mem-fraction-static from {fraction} to {fraction_fits}",
	  METRIC_fraction_fits, METRIC_kv_excess },
	{ "S3*", "SGLang", "mem_fraction_static",
	  "lower --mem-fraction-static: the KV cache must be {kv_excess} smaller",
	  NO_METRIC, METRIC_kv_excess },
	{ "S3*", "TensorRT-LLM", "free_gpu_memory_fraction",
	  "lower free_gpu_memory_fraction (0.9 by default): the KV cache must be "
	  "{kv_excess} smaller",
	  NO_METRIC, METRIC_kv_excess },
	{ "S3*", "Ollama", "num_ctx",
	  "lower the context ({@context}) from {context} to {context_fits}, or "
	  "OLLAMA_NUM_PARALLEL",
	  METRIC_context_fits, METRIC_kv_excess },
	{ "S3*", "Ollama", "num_ctx",
	  "lower num_ctx or OLLAMA_NUM_PARALLEL to {kv_percent} of their present values, "
	  "or set OLLAMA_KV_CACHE_TYPE=q8_0",
	  METRIC_kv_percent, METRIC_kv_excess },
	{ "S3*", "llama.cpp", "n_ctx",
	  "lower {@context} from {context} to below {context_fits}, since the compute buffer "
	  "comes next and grows with it, or set --cache-type-k q8_0 and --cache-type-v q8_0",
	  METRIC_context_fits, METRIC_kv_excess },
	{ "S3*", "llama.cpp", "n_ctx",
	  "lower --ctx-size to below {kv_percent} of its present value, since the compute "
	  "buffer comes next and grows with it, or set --cache-type-k q8_0 and "
	  "--cache-type-v q8_0",
	  METRIC_kv_percent, METRIC_kv_excess },
	{ "S3*", "", "@context",
	  "lower {@context} from {context} to at most {context_fits}",
	  METRIC_context_fits, METRIC_kv_excess },
	{ "S3*", "", "@fraction",
	  "lower {@fraction} from {fraction} to at most {fraction_fits}",
	  METRIC_fraction_fits, METRIC_kv_excess },
	{ "S3*", "", NULL,
	  "make the KV cache smaller, with a shorter context or fewer sequences: at most "
	  "{kv_fits} fits, {kv_percent} of what was requested",
	  METRIC_kv_fits, METRIC_kv_excess },
	{ "S3*", "", NULL,
	  "make the KV cache smaller by at least {kv_excess}",
	  NO_METRIC, METRIC_kv_excess },

	{ "S4", "Transformers", "cache_implementation",
	  "use cache_implementation=\"static\", \"quantized\" or \"offloaded\", or lower "
	  "max_new_tokens",
	  NO_METRIC, METRIC_shortfall },
	{ "S4", "", "context length",
	  "limit requests to {steps_fit} steps (usually tokens): each adds {step}, and "
	  "the last size that fit was {last}",
	  METRIC_steps_fit, METRIC_shortfall },
	{ "S4", "", NULL,
	  "limit the length of requests (max_new_tokens, max_model_len) or serve fewer "
	  "at once: at least {shortfall} is missing",
	  NO_METRIC, METRIC_shortfall },

	{ "S5", "vLLM", "max_num_seqs",
	  "lower --max-num-seqs from {slots} to {slots_fit}",
	  METRIC_slots_fit, METRIC_shortfall },
	{ "S5", "vLLM", "max_num_seqs",
	  "lower --max-num-seqs",
	  NO_METRIC, METRIC_shortfall },
	{ "S5", "SGLang", "max_running_requests",
	  "lower --max-running-requests",
	  NO_METRIC, METRIC_shortfall },
	{ "S5", "Ollama", "OLLAMA_NUM_PARALLEL",
	  "lower OLLAMA_NUM_PARALLEL",
	  NO_METRIC, METRIC_shortfall },
	{ "S5", "llama.cpp", "n_parallel",
	  "lower --parallel",
	  NO_METRIC, METRIC_shortfall },
	{ "S5", "TensorRT-LLM", "max_batch_size",
	  "build the engine with a smaller max_batch_size",
	  NO_METRIC, METRIC_shortfall },
	{ "S5", "", "@slots",
	  "lower {@slots} from {slots} to at most {slots_fit}",
	  METRIC_slots_fit, METRIC_shortfall },
	{ "S5", "", "@requests",
	  "serve at most {together_fit} such requests at once and queue the rest: each "
	  "needs {together}",
	  METRIC_together_fit, METRIC_shortfall },
	{ "S5", "", NULL,
	  "allocate at most {fits} of them at once: each needs {unit}, and the rest of "
	  "the device holds {base}",
	  METRIC_fits, METRIC_shortfall },
	{ "S5", "", "@requests",
	  "serve fewer than {siblings} such requests at once and queue the rest",
	  NO_METRIC, NO_METRIC },

	{ "S6.F2", "llama.cpp", "GGML_CUDA_NO_VMM",
	  "build without GGML_CUDA_NO_VMM, so that the pool grows in place",
	  NO_METRIC, METRIC_kept },
	{ "S6.F2", "", NULL,
	  "request the largest size first, or free the smaller blocks: {kept} of them is "
	  "kept",
	  METRIC_kept, METRIC_kept },
	{ "S6.F3", "PyTorch", NULL,
	  "share one memory pool among graphs and streams, or synchronise and call "
	  "torch.cuda.empty_cache() before the request",
	  NO_METRIC, NO_METRIC },
	{ "S6.F3", "", NULL,
	  "free on the stream that allocated, or use one pool: {stranded} was free elsewhere",
	  METRIC_stranded, NO_METRIC },
	{ "S6.F3", "", NULL,
	  "free on the stream that allocated, or use one pool: a gap of {hole} was there",
	  METRIC_hole, NO_METRIC },
	{ "S6.F4", "PyTorch", "PYTORCH_CUDA_ALLOC_CONF",
	  "call torch.cuda.empty_cache() before the other library starts, or leave it "
	  "{shortfall} with a lower memory fraction",
	  NO_METRIC, METRIC_shortfall },
	{ "S6.F4", "", NULL,
	  "trim the pool before the request (cudaMemPoolTrimTo), or let both use one "
	  "allocator",
	  NO_METRIC, METRIC_shortfall },
	{ "S6.F5", "", NULL,
	  "trim the pool (cudaMemPoolTrimTo) or lower its release threshold, so that "
	  "{slack} can be released",
	  NO_METRIC, METRIC_slack },
	{ "S6*", "PyTorch", "PYTORCH_CUDA_ALLOC_CONF",
	  "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, which makes "
	  "{remappable} available for {request}",
	  METRIC_remappable, METRIC_shortfall },
	{ "S6*", "", NULL,
	  "allocate long-lived blocks first, or from a separate pool: {pins} blocks of "
	  "{pin} keep {open} from being released",
	  METRIC_open, METRIC_shortfall },
	{ "S6*", "", NULL,
	  "allocate long-lived blocks first, or from a separate pool: with every gap "
	  "closed, {packed} is free for {request}",
	  METRIC_packed, METRIC_shortfall },

	{ "S7", "vLLM", "gpu_memory_utilization",
	  "lower --gpu-memory-utilization by {rose} of the device",
	  NO_METRIC, METRIC_rose },
	{ "S7", "", NULL,
	  "leave {rose} for libraries, or let them use less: fewer communicators and "
	  "streams, NCCL_MAX_NCHANNELS, NCCL_BUFFSIZE, CUBLAS_WORKSPACE_CONFIG",
	  NO_METRIC, METRIC_rose },

	{ "S8", "PyTorch", NULL,
	  "run inference in torch.inference_mode() and drop references to outputs: each "
	  "request leaves {each_request}",
	  METRIC_each_request, METRIC_leaked },
	{ "S8", "PyTorch", NULL,
	  "run inference in torch.inference_mode() and drop references to outputs",
	  NO_METRIC, METRIC_leaked },
	{ "S8", "", NULL,
	  "free what each request leaves behind at the marked call sites: {each_request}",
	  METRIC_each_request, METRIC_leaked },
	{ "S8", "", NULL,
	  "free what the marked call sites keep",
	  NO_METRIC, METRIC_leaked },
	{ "S8", "", NULL,
	  "restart the process before the device is full: at this rate in {left} "
	  "({left_least} to {left_most})",
	  NO_METRIC, NO_METRIC },

#include "analysis/explain/causes_fix_host.def"
};
enum { FIX_ROWS = sizeof fix_table / sizeof *fix_table };

static const char *unit_name(enum metric metric)
{
	static const char *const names[] = {
		[UNIT_BYTES] = "bytes",     [UNIT_COUNT] = "count",
		[UNIT_PERCENT] = "percent", [UNIT_SECONDS] = "seconds",
		[UNIT_SETTING] = "count",   [UNIT_FRACTION] = "percent",
		[UNIT_BYTES_PER_SECOND] = "bytes_per_s",
	};

	return names[metric_rows[metric].unit];
}

bool cause_fits(const char *id, const char *causes)
{
	size_t bytes = strcspn(causes, "*");

	if (causes[bytes])
		return !strncmp(id, causes, bytes);
	return !strcmp(id, causes);
}

/* "@slots": the option that set it, as the command line has it; "@requests" is no option. */
static const char *knob_of(const struct evidence *evidence, const char *knob)
{
	static const struct {
		const char *name;
		enum metric metric;
	} options[] = {
		{ "@context", METRIC_context },
		{ "@fraction", METRIC_fraction },
		{ "@slots", METRIC_slots },
		{ "@process_limit", METRIC_process_limit },
	};

	if (!knob || *knob != '@')
		return knob;
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (!strcmp(knob, options[i].name))
			return evidence->options[options[i].metric];
	return "requests at once";
}

/* Of rows that differ only in what they know, the first one is enough. Advice without a setting is
 * the same when it begins with the same words, and only rows for any program repeat so. */
static bool is_same_advice(const struct evidence *evidence, const struct fact_fix *fix,
			   const struct fix_row *row)
{
	const char *knob = knob_of(evidence, row->knob);

	if (knob)
		return fix->knob && !strcmp(fix->knob, knob);
	return !*row->framework && !fix->knob && !strncmp(fix->text, row->words, 9);
}

static bool has_advice(const struct evidence *evidence, const struct fact_fix *fixes, size_t count,
		       const struct fix_row *row)
{
	for (size_t i = 0; i < count; i++)
		if (is_same_advice(evidence, &fixes[i], row))
			return true;
	return false;
}

/* Advice may have no metric; it has no value then. */
static uint64_t metric_of(const struct evidence *evidence, enum metric metric)
{
	return metric == NO_METRIC ? CUF_UNKNOWN : evidence->metrics[metric];
}

/* Advice whose metrics are unknown is left out, and so is a second one for the same setting. */
static void add_fix(const struct evidence *evidence, const struct fix_row *row,
		    struct fact_fix *fixes, size_t *count)
{
	const char *words = evidence_words(evidence, evidence->facts->arena, row->words);
	uint64_t value = metric_of(evidence, row->value);

	if (!words || *count == FIXES_MAX || has_advice(evidence, fixes, *count, row))
		return;
	fixes[(*count)++] = (struct fact_fix){
		.text = words,
		.knob = knob_of(evidence, row->knob),
		.value = value,
		.unit = value == CUF_UNKNOWN ? "" : unit_name(row->value),
		.by_bytes = metric_of(evidence, row->by),
	};
}

/* 0: of the framework itself, 1: of what it is built on, 2: of any program; 3: of another one. */
static int nearness(const struct fix_row *row, const struct evidence *evidence)
{
	if (!*row->framework)
		return 2;
	if (!strcmp(row->framework, evidence->framework) ||
	    !strcmp(row->framework, evidence->runtime))
		return 0;
	return framework_is(evidence->framework, row->framework) ? 1 : 3;
}

/* Advice for the framework itself comes first, then for what it is built on, then for any program.
 */
const struct fact_fix *cause_fixes(const struct evidence *evidence, const char *id, size_t *count)
{
	struct fact_fix *fixes = arena_zeroed(evidence->facts->arena, FIXES_MAX, sizeof *fixes);

	*count = 0;
	for (int near = 0; near < 3; near++)
		for (size_t i = 0; i < FIX_ROWS; i++)
			if (cause_fits(id, fix_table[i].cause) &&
			    nearness(&fix_table[i], evidence) == near)
				add_fix(evidence, &fix_table[i], fixes, count);
	fixes_replay(evidence, id, fixes, count, FIXES_MAX);
	return fixes;
}

bool cause_advice_row(size_t index, struct cause_advice *out)
{
	if (index >= FIX_ROWS)
		return false;
	*out = (struct cause_advice){
		.cause = fix_table[index].cause,
		.framework = fix_table[index].framework,
		.knob = fix_table[index].knob,
		.words = fix_table[index].words,
	};
	return true;
}
