/* SPDX-License-Identifier: Apache-2.0 */
/* The table, and look-ups in it. */
#include "analysis/symbols/frameworks.h"

#include <string.h>
#include "analysis/base/paths.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/*
 * Sources of what keeps memory: onnxruntime bfc_arena.cc; docs.jax.dev gpu_memory_allocation;
 * cupy.cuda.MemoryPool; rapidsai/rmm pool_memory_resource, which was headers only up to 25.08
 * and so was linked into its users. Observed in tests/frameworks/clients.tap.
 */
static const struct framework frameworks[] = {
	{ .name = "vLLM", .built_on = "PyTorch", .paths = { "/vllm/" }, .words = { "vllm" } },
	{ .name = "SGLang",
	  .built_on = "PyTorch",
	  .paths = { "/sglang/", "/sgl_kernel/" },
	  .words = { "sglang" } },
	{ .name = "TensorRT-LLM",
	  .paths = { "libtensorrt_llm", "/tensorrt_llm/" },
	  .words = { "trtllm", "tensorrt_llm" } },
	{ .name = "Ollama",
	  .built_on = "llama.cpp",
	  .paths = { "/ollama/" },
	  .words = { "ollama" } },
	{ .name = "llama.cpp",
	  .paths = { "libllama.", "libggml", "llama_cpp", "node-llama-cpp" },
	  .words = { "llama-server", "llama-cli", "llama-bench" },
	  .keepers = { "libggml-cuda" },
	  .symbols = { "libllama", "libggml", "libwhisper", "libmtmd", "libstable-diffusion" } },
	{ .name = "Transformers", .built_on = "PyTorch", .paths = { "/transformers/" } },
	{ .name = "ONNX Runtime",
	  .paths = { "libonnxruntime", "onnxruntime_pybind11" },
	  .keepers = { "libonnxruntime", "onnxruntime_pybind11" },
	  .region_backend = "BFC arena" },
	{ .name = "JAX",
	  .paths = { "libjax", "/jaxlib/", "xla_extension", "xla_cuda", "pjrt_c_api_gpu" },
	  .keepers = { "libjax", "jaxlib", "xla_extension", "xla_cuda", "pjrt_c_api_gpu",
		       "libxla" },
	  .region_backend = "BFC arena" },
	{ .name = "PyTorch",
	  .paths = { "libtorch", "libc10" },
	  .keepers = { "libc10_cuda", "libc10_hip", "libtorch_cuda" },
	  .region_backend = "",
	  .fronts = { "libc10" } },
	{ .name = "TensorFlow",
	  .paths = { "libtensorflow", "pywrap_tensorflow" },
	  .keepers = { "libtensorflow", "pywrap_tensorflow" },
	  .region_backend = "BFC arena" },
	{ .name = "CuPy",
	  .paths = { "/cupy/", "/cupy_backends/" },
	  .keepers = { "/cupy/", "/cupy_backends/" },
	  .region_backend = "memory pool" },
	{ .name = "RMM",
	  .paths = { "librmm", "/rmm/" },
	  .keepers = { "librmm", "/rmm/", "libcudf", "libraft", "libcugraph", "libcuml" },
	  .region_backend = "memory pool",
	  .function_prefix = "rmm::" },
	{ .name = "LangGraph",
	  .paths = { "-packages/langgraph/" },
	  .words = { "langgraph" },
	  .agents = true },
	{ .name = "AutoGen",
	  .paths = { "-packages/autogen" },
	  .words = { "autogen" },
	  .agents = true },
	{ .name = "CrewAI",
	  .paths = { "-packages/crewai/" },
	  .words = { "crewai" },
	  .agents = true },
	{ .name = "LangChain",
	  .paths = { "-packages/langchain" },
	  .words = { "langchain" },
	  .agents = true },
};

/* Libraries of CUDA and of MPI, by the beginning of their file name; the first row that fits
 * counts. */
static const struct framework_library {
	const char *file, *role;
	bool unseen; /* it allocates device memory that no call shows */
} libraries[] = {
	{ "libnccl", "communication", true },     { "libnvshmem", "communication", true },
	{ "libucp.", "communication", false },    { "libuct_cuda", "communication", false },
	{ "libmpi", "communication", false },     { "libcublasLt", "library", true },
	{ "libcublas.", "library", true },        { "libcublas", "library", false },
	{ "libcudnn", "library", true },          { "libcusolver", "library", true },
	{ "libcusparse", "library", true },       { "libcufft", "library", true },
	{ "libcurand", "library", false },        { "libcutensor", "library", false },
	{ "libnvrtc", "library", false },         { "libnvinfer", "workspace", false },
};

/* Runtimes of other GPUs: memory that they allocate is not recorded. SYCL can be CUDA's, too. */
static const struct {
	const char *file, *vendor;
} other_gpus[] = {
	{ "libamdhip64", "AMD" },        { "libhsa-runtime64", "AMD" },
	{ "libze_loader", "Intel" },     { "libze_intel_gpu", "Intel" },
	{ "libsycl.", "Intel" },
};

/* ---- matching ---- */

/* ---- frameworks ---- */

const struct framework *framework_at(size_t index)
{
	if (index >= COUNT(frameworks))
		return NULL;
	return &frameworks[index];
}

const struct framework *framework_named(const char *name)
{
	for (size_t i = 0; i < COUNT(frameworks); i++)
		if (!strcmp(frameworks[i].name, name))
			return &frameworks[i];
	return NULL;
}

bool framework_has_path(const struct framework *framework, const char *path)
{
	return text_has_any(path, framework->paths, COUNT(framework->paths));
}

bool framework_has_words(const struct framework *framework, const char *cmdline)
{
	return text_has_any(cmdline, framework->words, COUNT(framework->words));
}

bool framework_keeps(const struct framework *framework, const char *path)
{
	return text_has_any(path, framework->keepers, COUNT(framework->keepers));
}

bool framework_is(const char *framework, const char *name)
{
	const struct framework *row = framework_named(framework);

	if (!strcmp(framework, name))
		return true;
	return row && row->built_on && !strcmp(row->built_on, name);
}

/* ---- modules ---- */

bool is_cuda_library(const char *path)
{
	return text_begins_with(path_base_name(path), "libcuda");
}

bool is_allocator_front(const char *path)
{
	if (text_begins_with(path_base_name(path), "libcudart"))
		return true;
	for (size_t i = 0; i < COUNT(frameworks); i++)
		if (text_begins_with_any(path_base_name(path), frameworks[i].fronts,
					 COUNT(frameworks[i].fronts)))
			return true;
	return false;
}

bool has_telling_symbols(const char *path, const char *exe)
{
	size_t length = strlen(path);

	for (size_t i = 0; i < COUNT(frameworks); i++)
		if (text_begins_with_any(path_base_name(path), frameworks[i].symbols,
					 COUNT(frameworks[i].symbols)))
			return true;
	if (length > 5 && !strcmp(path + length - 5, ".node"))
		return true;
	return !strcmp(path, exe);
}

bool is_python_interpreter(const char *path)
{
	static const char *const files[] = { "python", "libpython" };

	return text_begins_with_any(path_base_name(path), files, COUNT(files));
}

const char *other_gpu_vendor(const char *path)
{
	for (size_t i = 0; i < COUNT(other_gpus); i++)
		if (text_begins_with(path_base_name(path), other_gpus[i].file))
			return other_gpus[i].vendor;
	return NULL;
}

const char *library_role(const char *path)
{
	const char *file = path_base_name(path);

	for (size_t i = 0; i < COUNT(libraries); i++)
		if (text_begins_with(file, libraries[i].file))
			return libraries[i].role;
	return NULL;
}

size_t unseen_libraries(void)
{
	return COUNT(libraries);
}

bool is_unseen_library(size_t index, const char *path)
{
	return libraries[index].unseen &&
	       text_begins_with(path_base_name(path), libraries[index].file);
}
