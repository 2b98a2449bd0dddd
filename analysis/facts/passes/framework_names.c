/* SPDX-License-Identifier: Apache-2.0 */
/* Names of frameworks, and what names of functions tell. Tables alone. */
#include "analysis/facts/passes/framework_names.h"

#include <ctype.h>
#include <string.h>

/* First hit wins: engines before libraries. Agents have no device memory of their own; of the host's, theirs is the word. */
static const struct framework_row {
	const char *name, *built_on;
	const char *modules[4];   /* parts of paths of loaded modules and of Python files */
	const char *words[4];     /* parts of the command line */
	bool agents;
} framework_table[] = {
	{ "vLLM", "PyTorch", { "/vllm/" }, { "vllm" }, false },
	{ "SGLang", "PyTorch", { "/sglang/", "/sgl_kernel/" }, { "sglang" }, false },
	{ "TensorRT-LLM", "", { "libtensorrt_llm", "/tensorrt_llm/" }, { "trtllm", "tensorrt_llm" }, false },
	{ "Ollama", "llama.cpp", { "/ollama/" }, { "ollama" }, false },
	{ "llama.cpp", "", { "libllama.", "libggml", "llama_cpp", "node-llama-cpp" }, { "llama-server", "llama-cli", "llama-bench" }, false },
	{ "Transformers", "PyTorch", { "/transformers/" }, { NULL }, false },
	{ "ONNX Runtime", "", { "libonnxruntime", "onnxruntime_pybind11" }, { NULL }, false },
	{ "JAX", "", { "libjax", "/jaxlib/", "xla_extension" }, { NULL }, false },
	{ "PyTorch", "", { "libtorch", "libc10" }, { NULL }, false },
	{ "LangGraph", "", { "-packages/langgraph/" }, { "langgraph" }, true },
	{ "AutoGen", "", { "-packages/autogen" }, { "autogen" }, true },
	{ "CrewAI", "", { "-packages/crewai/" }, { "crewai" }, true },
	{ "LangChain", "", { "-packages/langchain" }, { "langchain" }, true },
};
enum { FRAMEWORKS = sizeof framework_table / sizeof *framework_table };

static bool has_any(const char *text, const char *const *parts, size_t count)
{
	for (size_t i = 0; text && i < count && parts[i]; i++)
		if (strstr(text, parts[i]))
			return true;
	return false;
}

static bool is_loaded(const struct fact_process *process, const struct framework_row *row)
{
	if (has_any(process->cmdline, row->words, 4))
		return true;
	for (size_t i = 0; i < process->module_count; i++)
		if (has_any(process->modules[i].path, row->modules, 4))
			return true;
	for (size_t i = 0; i < process->text_count; i++) {
		const struct fact_meta_text *text = &process->texts[i];
		if (text->type == CUF_META_CODE && has_any(text->text, row->modules, 4))
			return true;
		if (text->type == CUF_META_FRAMEWORK && strstr(text->text, "framework=") &&
		    !strncmp(strstr(text->text, "framework=") + 10, row->name, strlen(row->name)))
			return true;
	}
	return false;
}

const char *framework_of(const struct fact_process *process, bool host)
{
	const char *found = "";
	for (size_t i = 0; i < FRAMEWORKS; i++) {
		const struct framework_row *row = &framework_table[i];
		if ((*found && !(host && row->agents)) || !is_loaded(process, row))
			continue;
		found = row->name;
		if (!host || row->agents)
			break;
	}
	return found;
}

bool framework_is(const char *framework, const char *name)
{
	if (!strcmp(framework, name))
		return true;
	for (size_t i = 0; i < FRAMEWORKS; i++)
		if (!strcmp(framework, framework_table[i].name))
			return !strcmp(framework_table[i].built_on, name);
	return false;
}

static const struct hint_row { const char *part; unsigned hint; } hint_table[] = {
	{ "kv", HINT_KV }, { "kvcache", HINT_KV }, { "dynamiclayer", HINT_KV }, { "dynamiccache", HINT_KV }, { "cache_utils", HINT_KV }, { "past_key", HINT_KV }, { "extend_cache", HINT_KV },
	{ "load_tensors", HINT_WEIGHTS }, { "load_weights", HINT_WEIGHTS }, { "load_model", HINT_WEIGHTS }, { "load_layer", HINT_WEIGHTS },
	{ "model_loader", HINT_WEIGHTS }, { "from_pretrained", HINT_WEIGHTS }, { "safetensors", HINT_WEIGHTS }, { "weights", HINT_WEIGHTS },
	{ "load_state_dict", HINT_WEIGHTS },
	{ "forward", HINT_ACTIVATIONS }, { "attention", HINT_ACTIVATIONS }, { "prefill", HINT_ACTIVATIONS }, { "logits", HINT_ACTIVATIONS },
	{ "softmax", HINT_ACTIVATIONS }, { "graph_reserve", HINT_ACTIVATIONS }, { "sched_reserve", HINT_ACTIVATIONS }, { "activations", HINT_ACTIVATIONS },
	{ "slot", HINT_SLOTS }, { "slots", HINT_SLOTS }, { "sequence", HINT_SLOTS }, { "sequences", HINT_SLOTS }, { "batch", HINT_SLOTS },
	{ "dummy_sampler_run", HINT_SLOTS }, { "max_num_seqs", HINT_SLOTS }, { "sampler", HINT_SLOTS },
	{ "capture_model", HINT_CAPTURE }, { "graph_capture", HINT_CAPTURE }, { "capture", HINT_CAPTURE }, { "warmup", HINT_CAPTURE }, { "warm_up", HINT_CAPTURE },
};

static bool is_part(const char *at, const char *from, size_t bytes)
{
	return (at == from || !isalpha((unsigned char)at[-1])) && !isalpha((unsigned char)at[bytes]);
}

/* Whole words: letters on neither side, so that "kv" is not found in "mkvtool". */
unsigned name_hints(const char *function)
{
	unsigned hints = 0;
	for (size_t i = 0; function && i < sizeof hint_table / sizeof *hint_table; i++)
		for (const char *at = function; (at = strcasestr(at, hint_table[i].part)); at++)
			if (is_part(at, function, strlen(hint_table[i].part)))
				hints |= hint_table[i].hint;
	return hints;
}

size_t count_device_libraries(const struct fact_process *process)
{
	static const char *const names[] = { "libnccl", "libcublas.", "libcublasLt", "libcudnn", "libcusolver", "libcusparse", "libcufft", "libnvshmem" };
	size_t count = 0;
	for (size_t n = 0; n < sizeof names / sizeof *names; n++)
		for (size_t i = 0; i < process->module_count; i++)
			if (strstr(process->modules[i].path, names[n])) {
				count++;
				break;
			}
	return count;
}
