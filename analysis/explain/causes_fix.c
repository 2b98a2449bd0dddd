/* SPDX-License-Identifier: Apache-2.0 */
/* What to do about a cause, in the words of the framework that is there. A table: cause and framework to knob, value, sentence. */
#include "analysis/explain/causes.h"

#include <string.h>
#include "analysis/facts/passes/framework_names.h"

enum { FIXES_MAX = 4 };
#define NO_METRIC METRIC_MAX

/* Rows of the engine itself come first, then of what it is built on, then those of nobody; within each, the table's order.
 * A row whose sentence has an unknown figure is passed over: the next one says the same without the number. */
static const struct fix_row {
	const char *cause;        /* an id, or with a star the beginning of several */
	const char *framework;    /* "": any program */
	const char *knob;         /* NULL: code, not a setting */
	const char *words;
	enum metric value, by;
} fix_table[] = {
	{ "S1.tenant", "vLLM", "gpu_memory_utilization", "lower --gpu-memory-utilization from {fraction} to at most {fraction_fits}, or stop whoever holds {others}", METRIC_fraction_fits, METRIC_shortfall },
	{ "S1.tenant", "SGLang", "mem_fraction_static", "lower --mem-fraction-static from {fraction} to at most {fraction_fits}, or stop whoever holds {others}", METRIC_fraction_fits, METRIC_shortfall },
	{ "S1.tenant", "JAX", "XLA_PYTHON_CLIENT_MEM_FRACTION", "set XLA_PYTHON_CLIENT_PREALLOCATE=false, or lower XLA_PYTHON_CLIENT_MEM_FRACTION", NO_METRIC, METRIC_shortfall },
	{ "S1.tenant", "", NULL, "find who started {@neighbour}, which holds {neighbour} of the device, and stop it, or move one of the two; {shortfall} less would have been enough", NO_METRIC, METRIC_shortfall },
	{ "S1.tenant", "", NULL, "find who holds {others} of the device (nvidia-smi) and stop it, or move one of the two; {shortfall} less would have been enough", NO_METRIC, METRIC_shortfall },
	{ "S1.cap", "PyTorch", "set_per_process_memory_fraction", "raise the fraction given to torch.cuda.set_per_process_memory_fraction, or remove it", NO_METRIC, NO_METRIC },
	{ "S1.cap", "ONNX Runtime", "gpu_mem_limit", "raise gpu_mem_limit of the CUDA provider by {request}", NO_METRIC, METRIC_request },
	{ "S1.cap", "", NULL, "look for a quota on this container or a partition of the device (MIG, vGPU, HAMi); it must leave {request} more", NO_METRIC, METRIC_request },

	{ "S2a", "llama.cpp", "n_gpu_layers", "offload fewer layers to the device (--n-gpu-layers), or take a smaller quantisation; {shortfall} are missing at least", NO_METRIC, METRIC_shortfall },
	{ "S2a", "vLLM", "tensor_parallel_size", "use a quantised model, --tensor-parallel-size 2, or --cpu-offload-gb; {shortfall} are missing at least", NO_METRIC, METRIC_shortfall },
	{ "S2a", "Transformers", "device_map", "load with device_map=\"auto\", in 8 or 4 bits, or a smaller model; {shortfall} are missing at least", NO_METRIC, METRIC_shortfall },
	{ "S2a", "", NULL, "take a smaller or a quantised model, or spread it over more devices: {mine} are loaded and {shortfall} are missing at least", NO_METRIC, METRIC_shortfall },

	{ "S2b", "vLLM", "max_num_batched_tokens", "lower --max-num-batched-tokens, or --gpu-memory-utilization by {shortfall} of the device; avoid prompt_logprobs", NO_METRIC, METRIC_shortfall },
	{ "S2b", "SGLang", "chunked_prefill_size", "lower --chunked-prefill-size, or --mem-fraction-static by {shortfall} of the device", NO_METRIC, METRIC_shortfall },
	{ "S2b", "llama.cpp", "n_ubatch", "lower --ubatch-size", NO_METRIC, METRIC_shortfall },
	{ "S2b", "PyTorch", NULL, "process the prompt in pieces: {free} fit at once, {request} do not; use a fused attention, compute logits of the last token alone", NO_METRIC, METRIC_shortfall },
	{ "S2b", "", NULL, "make the step smaller (batch, prompt chunk): a request of {free} would have fitted; or free {shortfall} elsewhere", METRIC_free, METRIC_shortfall },

	{ "S3*", "vLLM", "max_model_len", "lower {@context} from {context} to {context_fits}, or {@fraction} to {fraction_fits}", METRIC_context_fits, METRIC_kv_excess },
	{ "S3*", "vLLM", "max_model_len", "lower {@context} from {context} to {context_fits}", METRIC_context_fits, METRIC_kv_excess },
	{ "S3*", "vLLM", "gpu_memory_utilization", "lower --gpu-memory-utilization from {fraction} to {fraction_fits}", METRIC_fraction_fits, METRIC_kv_excess },
	{ "S3*", "vLLM", "gpu_memory_utilization", "lower --gpu-memory-utilization (0.9 by default) or --max-model-len: the cache must be {kv_excess} smaller", NO_METRIC, METRIC_kv_excess },
	{ "S3*", "SGLang", "mem_fraction_static", "lower --mem-fraction-static from {fraction} to {fraction_fits}", METRIC_fraction_fits, METRIC_kv_excess },
	{ "S3*", "SGLang", "mem_fraction_static", "lower --mem-fraction-static: the cache must be {kv_excess} smaller", NO_METRIC, METRIC_kv_excess },
	{ "S3*", "TensorRT-LLM", "free_gpu_memory_fraction", "lower free_gpu_memory_fraction (0.9 by default): the cache must be {kv_excess} smaller", NO_METRIC, METRIC_kv_excess },
	{ "S3*", "Ollama", "num_ctx", "lower the context ({@context}) from {context} to {context_fits}, or OLLAMA_NUM_PARALLEL", METRIC_context_fits, METRIC_kv_excess },
	{ "S3*", "Ollama", "num_ctx", "lower num_ctx or OLLAMA_NUM_PARALLEL to {kv_percent} of what they are, or set OLLAMA_KV_CACHE_TYPE=q8_0", METRIC_kv_percent, METRIC_kv_excess },
	{ "S3*", "llama.cpp", "n_ctx", "lower {@context} from {context} to {context_fits}, or set --cache-type-k q8_0 and --cache-type-v q8_0", METRIC_context_fits, METRIC_kv_excess },
	{ "S3*", "llama.cpp", "n_ctx", "lower --ctx-size to {kv_percent} of what it is, or set --cache-type-k q8_0 and --cache-type-v q8_0", METRIC_kv_percent, METRIC_kv_excess },
	{ "S3*", "", "@context", "lower {@context} from {context} to at most {context_fits}", METRIC_context_fits, METRIC_kv_excess },
	{ "S3*", "", "@fraction", "lower {@fraction} from {fraction} to at most {fraction_fits}", METRIC_fraction_fits, METRIC_kv_excess },
	{ "S3*", "", NULL, "make the KV cache smaller, by context length or by sequences: at most {kv_fits} fit, {kv_percent} of what was wanted", METRIC_kv_fits, METRIC_kv_excess },
	{ "S3*", "", NULL, "make the KV cache smaller by at least {kv_excess}", NO_METRIC, METRIC_kv_excess },

	{ "S4", "Transformers", "cache_implementation", "use cache_implementation=\"static\", \"quantized\" or \"offloaded\", or lower max_new_tokens", NO_METRIC, METRIC_shortfall },
	{ "S4", "", "context length", "cap the length of requests at {steps_fit} steps (tokens, mostly): each adds {step}, and the last that fitted was {last}", METRIC_steps_fit, METRIC_shortfall },
	{ "S4", "", NULL, "cap the length of requests (max_new_tokens, max_model_len) or serve fewer at once: {shortfall} are missing at least", NO_METRIC, METRIC_shortfall },

	{ "S5", "vLLM", "max_num_seqs", "lower --max-num-seqs from {slots} to {slots_fit}", METRIC_slots_fit, METRIC_shortfall },
	{ "S5", "vLLM", "max_num_seqs", "lower --max-num-seqs", NO_METRIC, METRIC_shortfall },
	{ "S5", "SGLang", "max_running_requests", "lower --max-running-requests", NO_METRIC, METRIC_shortfall },
	{ "S5", "Ollama", "OLLAMA_NUM_PARALLEL", "lower OLLAMA_NUM_PARALLEL", NO_METRIC, METRIC_shortfall },
	{ "S5", "llama.cpp", "n_parallel", "lower --parallel", NO_METRIC, METRIC_shortfall },
	{ "S5", "TensorRT-LLM", "max_batch_size", "build the engine with a smaller max_batch_size", NO_METRIC, METRIC_shortfall },
	{ "S5", "", "@slots", "lower {@slots} from {slots} to at most {slots_fit}", METRIC_slots_fit, METRIC_shortfall },
	{ "S5", "", "@requests", "serve at most {together_fit} such requests at once, or queue them: each takes {together}", METRIC_together_fit, METRIC_shortfall },
	{ "S5", "", NULL, "lower the number laid out at once to {fits}: each takes {unit}, and {base} are held by the rest", METRIC_fits, METRIC_shortfall },
	{ "S5", "", NULL, "serve at most {siblings} such requests at once, or queue them", METRIC_siblings, METRIC_shortfall },

	{ "S6.F2", "llama.cpp", "GGML_CUDA_NO_VMM", "build without GGML_CUDA_NO_VMM, so that the pool grows in place", NO_METRIC, METRIC_kept },
	{ "S6.F2", "", NULL, "ask for the largest size first, or give the smaller blocks back: {kept} of them are kept", METRIC_kept, METRIC_kept },
	{ "S6.F3", "PyTorch", NULL, "share one memory pool among graphs and streams, or synchronise and empty the cache before the request", NO_METRIC, NO_METRIC },
	{ "S6.F3", "", NULL, "free on the stream that allocated, or use one pool: a range of {hole} was there", METRIC_hole, NO_METRIC },
	{ "S6.F4", "PyTorch", "PYTORCH_CUDA_ALLOC_CONF", "call torch.cuda.empty_cache() before the other library starts, or give it {shortfall} by a lower fraction", NO_METRIC, METRIC_shortfall },
	{ "S6.F4", "", NULL, "trim the pool before the request (cudaMemPoolTrimTo), or let both use one allocator", NO_METRIC, METRIC_shortfall },
	{ "S6.F5", "", NULL, "trim the pool (cudaMemPoolTrimTo) or lower its release threshold, so that {slack} can be given back", NO_METRIC, METRIC_slack },
	{ "S6*", "PyTorch", "PYTORCH_CUDA_ALLOC_CONF", "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: {remappable} can then be given back in pieces, for {request}", METRIC_remappable, METRIC_shortfall },
	{ "S6*", "", NULL, "allocate what lives long apart from what comes and goes: {pins} blocks of {pin} keep {open} from being given back", METRIC_open, METRIC_shortfall },
	{ "S6*", "", NULL, "allocate what lives long apart from what comes and goes, the largest first; packed, there are {packed} for {request}", METRIC_packed, METRIC_shortfall },

	{ "S7", "vLLM", "gpu_memory_utilization", "lower --gpu-memory-utilization by {rose} of the device", NO_METRIC, METRIC_rose },
	{ "S7", "", "NCCL_BUFFSIZE", "leave {rose} for them, or make fewer: communicators and streams, NCCL_MAX_NCHANNELS, NCCL_BUFFSIZE, CUBLAS_WORKSPACE_CONFIG", NO_METRIC, METRIC_rose },

	{ "S8", "PyTorch", NULL, "infer under torch.inference_mode(), and drop references to outputs: {each_request} stay with each request", METRIC_each_request, METRIC_leaked },
	{ "S8", "PyTorch", NULL, "infer under torch.inference_mode(), and drop references to outputs: {per_request} stay with each cycle of work", METRIC_per_request, METRIC_leaked },
	{ "S8", "", NULL, "free what each request leaves behind at the sites under LEAKS: {each_request}", METRIC_each_request, METRIC_leaked },
	{ "S8", "", NULL, "free what each cycle of work leaves behind at the sites under LEAKS: {per_request}", METRIC_per_request, METRIC_leaked },
	{ "S8", "", NULL, "free what stays behind at the sites under LEAKS", NO_METRIC, METRIC_leaked },
	{ "S8", "", NULL, "at this rate the device is full in {left} ({left_least} to {left_most}): restart before", NO_METRIC, NO_METRIC },

	{ "S9.H6", "PyTorch", NULL, "pin less: pin_memory=False, or fewer workers' batches; lift the container's memory limit by {locked}", NO_METRIC, METRIC_locked },
	{ "S9.H6", "", NULL, "lock {locked} less host memory, or lift what limits it: ulimit -l unlimited, the container's memory", NO_METRIC, METRIC_locked },
	{ "S9.H6", "", NULL, "lock less host memory at once, or lift what limits it: ulimit -l unlimited, the container's memory", NO_METRIC, NO_METRIC },
	{ "S9.H2", "LangGraph", NULL, "prune checkpoints and keep references in the state, not tool outputs", NO_METRIC, NO_METRIC },
	{ "S9.H2", "LangChain", NULL, "trim or summarise the message history; cap retrieved chunks and tool outputs", NO_METRIC, NO_METRIC },
	{ "S9.H2", "AutoGen", NULL, "call clear_history(), bound the model context, and cap the rounds of a group chat", NO_METRIC, NO_METRIC },
	{ "S9.H2", "CrewAI", NULL, "make crews and agents once and reuse them; cap what is passed from task to task", NO_METRIC, NO_METRIC },
	{ "S9.H2", "", NULL, "bound what the sites under LEAKS keep: {host_each_request} with each request", METRIC_host_each_request, METRIC_host_leaked },
	{ "S9.H2", "", NULL, "bound what the sites under LEAKS keep, {host_per_request} with each cycle of work: {host_left} more of it and the limit is reached", METRIC_host_per_request, METRIC_host_leaked },
	{ "S9.H2", "", NULL, "bound what the sites under LEAKS keep: {host_per_request} with each cycle of work", METRIC_host_per_request, METRIC_host_leaked },
	{ "S9.H2", "", NULL, "bound what the sites under LEAKS keep", NO_METRIC, METRIC_host_leaked },
	{ "S9.H4", "", NULL, "pin less than the limit of {limit} leaves: fewer or smaller blocks; up to {pinned_wasted} are rounding to powers of two", METRIC_pinned_wasted, METRIC_pinned_wasted },
	{ "S9.H3", "llama.cpp", "cache_ram", "set --cache-ram below {limit}, or 0", NO_METRIC, METRIC_plateau },
	{ "S9.H3", "Ollama", "cache_ram", "each runner keeps up to 8 GiB of prompts: raise the container's limit above {limit}, or run fewer models", NO_METRIC, METRIC_plateau },
	{ "S9.H3", "", NULL, "bound the cache well below the {plateau} that it holds, or raise the limit of {limit} by as much as the rest needs", NO_METRIC, METRIC_plateau },
	{ "S9.H5", "", "MALLOC_ARENA_MAX", "set MALLOC_ARENA_MAX=2 or call malloc_trim(0) when idle; or cuflight run --host-allocator=jemalloc", NO_METRIC, METRIC_host_cached },
	{ "S9.H1", "Transformers", "low_cpu_mem_usage", "load from safetensors with low_cpu_mem_usage=True; the peak was {rss}", NO_METRIC, METRIC_rss },
	{ "S9.H1", "", NULL, "map the weights in place of reading them (safetensors, mmap), or give the container more than {rss}", NO_METRIC, METRIC_rss },
	{ "S9", "", NULL, "record the container's other processes too, or raise its limit above {limit}", NO_METRIC, NO_METRIC },
};
enum { FIX_ROWS = sizeof fix_table / sizeof *fix_table };

static const char *unit_name(enum metric figure)
{
	static const char *const names[] = { [UNIT_BYTES] = "bytes", [UNIT_COUNT] = "count", [UNIT_PERCENT] = "percent", [UNIT_SECONDS] = "seconds",
		[UNIT_BYTES_PER_SECOND] = "bytes_per_s", [UNIT_SETTING] = "count", [UNIT_FRACTION] = "percent" };
	return names[metric_rows[figure].unit];
}

static bool is_about(const struct fix_row *row, const char *id)
{
	size_t bytes = strcspn(row->cause, "*");
	return row->cause[bytes] ? !strncmp(id, row->cause, bytes) : !strcmp(id, row->cause);
}

static bool same_kind(const struct fact_fix *fixes, size_t count, const struct fix_row *row, bool any_program)
{
	for (size_t i = 0; i < count; i++)
		if (row->knob ? fixes[i].knob && !strcmp(fixes[i].knob, row->knob) : any_program && !fixes[i].knob && strncmp(fixes[i].text, row->words, 9) == 0)
			return true;
	return false;
}

/* "@slots": the option that set it, as the command line has it; "requests at once" is everybody's. */
static const char *knob_of(const struct evidence *evidence, const char *knob)
{
	static const struct { const char *name; enum metric figure; } set[] = { { "@context", METRIC_context }, { "@fraction", METRIC_fraction }, { "@slots", METRIC_slots } };
	if (!knob || *knob != '@')
		return knob;
	for (size_t i = 0; i < sizeof set / sizeof *set; i++)
		if (!strcmp(knob, set[i].name))
			return evidence->options[set[i].figure];
	return "requests at once";
}

static void add_fix(struct build *build, const struct evidence *evidence, const struct fix_row *row, struct fact_fix *fixes, size_t *count)
{
	const char *words = evidence_words(evidence, build->arena, row->words);
	uint64_t value = row->value == NO_METRIC ? CUF_UNKNOWN : evidence->metrics[row->value];
	if (!words || *count == FIXES_MAX || same_kind(fixes, *count, row, !*row->framework))
		return;
	fixes[(*count)++] = (struct fact_fix){ .text = words, .knob = knob_of(evidence, row->knob), .value = value,
		.unit = value == CUF_UNKNOWN ? "" : unit_name(row->value), .by_bytes = row->by == NO_METRIC ? CUF_UNKNOWN : evidence->metrics[row->by] };
}

const struct fact_fix *cause_fixes(struct build *build, const struct evidence *evidence, const char *id, size_t *count)
{
	struct fact_fix *fixes = arena_zeroed(build->arena, FIXES_MAX, sizeof *fixes);
	*count = 0;
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < FIX_ROWS; i++) {
			const struct fix_row *row = &fix_table[i];
			bool own = *row->framework && !strcmp(row->framework, evidence->framework);
			bool below = *row->framework && !own && framework_is(evidence->framework, row->framework);
			if (is_about(row, id) && (round == 0 ? own : round == 1 ? below : !*row->framework))
				add_fix(build, evidence, row, fixes, count);
		}
	return fixes;
}

bool cause_advice_row(size_t index, struct cause_advice *out)
{
	if (index >= FIX_ROWS)
		return false;
	*out = (struct cause_advice){ fix_table[index].cause, fix_table[index].framework, fix_table[index].knob, fix_table[index].words };
	return true;
}
