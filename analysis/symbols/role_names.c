/* SPDX-License-Identifier: Apache-2.0 */
/* Each row with its source. */
#include "analysis/symbols/role_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include "interpose/abi/format.h"

static const char weights[] = "weights", kv[] = "kv", activations[] = "activations",
		  output[] = "output", workspace[] = "workspace", library[] = "library",
		  communication[] = "communication", graph[] = "graph";

const char *role_of_enum(unsigned role)
{
	static const char *const names[CUF_ROLE_MAX] = {
		[CUF_ROLE_WEIGHTS] = weights,
		[CUF_ROLE_KV] = kv,
		[CUF_ROLE_COMPUTE] = activations,
		[CUF_ROLE_OUTPUT] = output,
		[CUF_ROLE_SCRATCH] = workspace,
		[CUF_ROLE_LIBRARY] = library,
		[CUF_ROLE_COMMUNICATION] = communication,
		[CUF_ROLE_GRAPH] = graph,
	};
	
	if (role >= CUF_ROLE_MAX)
		return NULL;
	return names[role];
}

/* The inferred phases (phases_infer.c) in which one sort of block is made. What comes while
 * serving may be anything. */
static const struct {
	const char *name, *role;
} phase_table[] = {
	{ "load", weights },
	{ "kv-init", kv },
	{ "graph capture", graph },
};

const char *role_of_phase(const char *name)
{
	for (size_t i = 0; name && i < sizeof phase_table / sizeof *phase_table; i++)
		if (!strcmp(name, phase_table[i].name))
			return phase_table[i].role;
	return NULL;
}

/* Native functions, demangled, by how they begin; the innermost frame with a row counts. */
static const struct {
	const char *begin, *role;
} function_table[] = {
	/* llama.cpp, src/llama-model.cpp, llama-model-loader.cpp, llama-kv-cache*.cpp, llama-
	 * memory-recurrent.cpp, llama-context.cpp */
	{ "llama_model_base::load_tensors", weights }, { "llama_model::load_tensors", weights },
	{ "llama_model_loader::", weights },
	{ "llama_model_load", weights }, { "llm_load_tensors", weights },
	{ "whisper_model_load", weights },
	{ "llama_kv_cache", kv }, { "llama_memory_recurrent", kv }, { "llama_memory_hybrid", kv },
	{ "whisper_kv_cache_init", kv },
	{ "llama_context::output_reserve", output },
	{ "llama_context::sched_reserve", activations },
	{ "llama_context::graph_reserve", activations },
	/* by the names that engines give such functions; TensorRT-LLM,
	 * batch_manager/kvCacheManager.cpp */
	{ "load_weights", weights }, { "load_tensors", weights }, { "load_model", weights },
	{ "allocate_kv_cache", kv }, { "kv_cache_", kv },
	{ "tensorrt_llm::batch_manager::kv_cache_manager::", kv },
	/* ggml, ggml-alloc.c, ggml-backend.cpp, ggml-cuda.cu */
	{ "ggml_gallocr_", activations }, { "ggml_backend_sched_", activations },
	{ "ggml_cuda_pool_", workspace }, { "ggml_cuda_pool::", workspace },
	{ "ggml_backend_cuda_context::new_pool", workspace },
	{ "ggml_backend_alloc_ctx_tensors_from_buft", NULL }, /* as its caller */
	/* CUDA libraries, where their own frames are not on the stack */
	{ "ncclCommInit", communication }, { "ncclCommSplit", communication },
	{ "ncclMemAlloc", communication },
	{ "cublasCreate", library }, { "cublasLtCreate", library },
	{ "cublasSetWorkspace", library }, { "cudnnCreate", library },
	{ "cusolverDnCreate", library }, { "cusparseCreate", library },
	/* PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp, cuda/CUDAGraph.cpp, c10d
	 * ProcessGroupNCCL.cpp */
	{ "at::cuda::getCurrentCUDABlasHandle", library },
	{ "at::cuda::getCUDABlasLtWorkspace", library }, { "at::cuda::CUDAGraph::", graph },
	{ "c10d::ProcessGroupNCCL::", communication },
};

const char *role_of_function(const char *name)
{
	for (size_t i = 0; name && i < sizeof function_table / sizeof *function_table; i++)
		if (!strncmp(name, function_table[i].begin, strlen(function_table[i].begin)))
			return function_table[i].role;
	return NULL;
}

/* Python functions by the end of their qualified name. Where that is a common word, a part of their
 * file must fit, too. tests/frameworks/check_names.py compares them with the published packages. */
static const struct {
	const char *end, *file, *role;
} code_table[] = {
	/* transformers, cache_utils.py: caches that grow, static ones, sliding ones */
	{ "update", "cache_utils", kv }, { "lazy_initialization", "cache_utils", kv },
	{ "__init__", "cache_utils", kv }, { "early_initialization", "cache_utils", kv },
	{ "lazy_initialization_indexer", "cache_utils", kv },
	{ "update_indexer", "cache_utils", kv },
	/* vllm/v1/worker/gpu_model_runner.py, gpu/attn_utils.py, utils.py, worker/cache_engine.py;
	 * sglang mem_cache/memory_pool.py; TensorRT-LLM.
	 * sglang's own init_memory_pool was ModelRunner's; now only LoRA's adapters have one */
	{ "_allocate_kv_cache_tensors", NULL, kv }, { "_allocate_kv_cache", NULL, kv },
	{ "allocate_kv_cache", NULL, kv }, { "initialize_kv_cache", NULL, kv },
	{ "initialize_kv_cache_tensors", NULL, kv }, { "init_kv_cache", NULL, kv },
	{ "_create_buffers", "memory_pool", kv }, { "__init__", "memory_pool", kv },
	{ "KVCacheManager.__init__", NULL, kv }, { "init_memory_pool", "model_runner", kv },
	{ "_init_minimal_kv_cache_for_profiling", NULL, kv },
	{ "_create_buffers_normal", "memory_pool", kv },
	{ "_create_quantized_buffers", "memory_pool", kv },
	{ "_init_pools", "kv_cache_configurator", kv },
	/* graphs: torch/cuda/graphs.py; vllm capture_model, gpu/cudagraph_utils.py; sglang
	 * CudaGraphRunner, by phase since 0.5 */
	{ "capture_model", NULL, graph }, { "_capture_cudagraphs", NULL, graph },
	{ "capture_begin", NULL, graph }, { "make_graphed_callables", NULL, graph },
	{ "CudaGraphRunner.capture", NULL, graph }, { "capture_one_batch_size", NULL, graph },
	{ "_warmup_and_capture", NULL, graph }, { "profile_cudagraph_memory", NULL, graph },
	{ "capture", "cudagraph", graph }, { "capture", "cuda_graph", graph },
	{ "capture_one_shape", NULL, graph }, { "capture_cuda_graphs", NULL, graph },
	{ "capture_decode_graph", NULL, graph }, { "capture_prefill_graph", NULL, graph },
	/* weights: transformers modeling_utils.py, core_model_loading.py; safetensors;
	 * accelerate; vllm model_loader; torch Module.to */
	{ "load_weights", NULL, weights }, { "load_model", NULL, weights },
	{ "from_pretrained", NULL, weights }, { "load_state_dict", NULL, weights },
	{ "_load_state_dict_into_model", NULL, weights },
	{ "_load_pretrained_model", NULL, weights },
	{ "convert_and_load_state_dict_in_model", NULL, weights },
	{ "set_module_tensor_to_device", NULL, weights },
	{ "load_checkpoint_and_dispatch", NULL, weights }, { "create_weights", NULL, weights },
	{ "load_file", "safetensors", weights },
	{ "Module._apply", NULL, weights }, { "Module.to", NULL, weights },
	{ "Module.cuda", NULL, weights },
	/* what comes out: logits, samples */
	{ "compute_logits", NULL, output }, { "_dummy_sampler_run", NULL, output },
	{ "LogitsProcessor.forward", NULL, output }, { "Sampler.forward", NULL, output },
	/* NCCL through torch.distributed; symmetric memory */
	{ "init_process_group", NULL, communication },
	{ "all_reduce", "distributed", communication },
	{ "all_gather_into_tensor", "distributed", communication },
	/* the rest of a forward pass */
	{ "forward", NULL, activations }, { "_dummy_run", NULL, activations },
	{ "profile_run", NULL, activations }, { "_call_impl", NULL, activations },
	{ "generate", NULL, activations }, { "execute_model", NULL, activations },
};

static bool ends_with(const char *name, size_t bytes, const char *end)
{
	size_t length = strlen(end);
	
	if (bytes < length || memcmp(name + bytes - length, end, length))
		return false;
	return bytes == length || name[bytes - length - 1] == '.';
}

const char *role_of_code(const char *qualified_name, size_t name_bytes, const char *file,
			 size_t file_bytes)
{
	for (size_t i = 0; i < sizeof code_table / sizeof *code_table; i++) {
		const char *part = code_table[i].file;

		if (!ends_with(qualified_name, name_bytes, code_table[i].end))
			continue;
		if (!part || memmem(file, file_bytes, part, strlen(part)))
			return code_table[i].role;
	}
	return NULL;
}

static const struct {
	const char *part;
	unsigned hint;
} hint_table[] = {
	{ "kv", HINT_KV }, { "kvcache", HINT_KV }, { "dynamiclayer", HINT_KV },
	{ "dynamiccache", HINT_KV }, { "cache_utils", HINT_KV }, { "past_key", HINT_KV },
	{ "extend_cache", HINT_KV },
	{ "load_tensors", HINT_WEIGHTS }, { "load_weights", HINT_WEIGHTS },
	{ "load_model", HINT_WEIGHTS }, { "load_layer", HINT_WEIGHTS },
	{ "model_loader", HINT_WEIGHTS }, { "from_pretrained", HINT_WEIGHTS },
	{ "core_model_loading", HINT_WEIGHTS },
	{ "safetensors", HINT_WEIGHTS }, { "weights", HINT_WEIGHTS },
	{ "load_state_dict", HINT_WEIGHTS }, { "shard", HINT_READS },
	{ "load", HINT_READS }, { "read", HINT_READS },
	{ "asyncio/events", HINT_TASK }, { "asyncio/runners", HINT_TASK },
	{ "uvloop/__init__", HINT_TASK }, { "trio/_core/_run", HINT_TASK },
	{ "forward", HINT_ACTIVATIONS }, { "attention", HINT_ACTIVATIONS },
	{ "prefill", HINT_ACTIVATIONS }, { "logits", HINT_ACTIVATIONS },
	{ "softmax", HINT_ACTIVATIONS }, { "graph_reserve", HINT_ACTIVATIONS },
	{ "sched_reserve", HINT_ACTIVATIONS }, { "activations", HINT_ACTIVATIONS },
	{ "slot", HINT_SLOTS }, { "slots", HINT_SLOTS }, { "sequence", HINT_SLOTS },
	{ "sequences", HINT_SLOTS }, { "batch", HINT_SLOTS },
	{ "dummy_sampler_run", HINT_SLOTS }, { "max_num_seqs", HINT_SLOTS },
	{ "sampler", HINT_SLOTS },
	{ "capture_model", HINT_CAPTURE }, { "graph_capture", HINT_CAPTURE },
	{ "capture", HINT_CAPTURE }, { "warmup", HINT_CAPTURE }, { "warm_up", HINT_CAPTURE },
};

/* Letters on neither side, so that "kv" is not found in "mkvtool". */
static bool is_word(const char *at, const char *from, size_t bytes)
{
	bool before = at > from && isalpha((unsigned char)at[-1]);

	return !before && !isalpha((unsigned char)at[bytes]);
}

/* Transformers' models return their layers' outputs through this decorator, which is on every stack
 * and captures no graph. */
static bool is_decorator(const char *at)
{
	static const char name[] = "capture_outputs";

	return !strncasecmp(at, name, sizeof name - 1);
}

/* The text of a Python function has its file in a second line. Any file may be called so; and what
 * Python itself loads are modules. */
static bool is_in_name(const char *function, const char *at)
{
	const char *file = strchr(function, '\n');

	return !file || (at < file && strncmp(file + 1, "<frozen", 7) != 0);
}

unsigned name_hints(const char *function)
{
	unsigned hints = 0;

	for (size_t i = 0; function && i < sizeof hint_table / sizeof *hint_table; i++) {
		const char *part = hint_table[i].part;
		for (const char *at = function; (at = strcasestr(at, part)); at++)
			if (is_word(at, function, strlen(part)) && !is_decorator(at) &&
			    (hint_table[i].hint != HINT_READS || is_in_name(function, at)))
				hints |= hint_table[i].hint;
	}
	return hints;
}
