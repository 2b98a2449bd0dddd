/* SPDX-License-Identifier: Apache-2.0 */
/* How to recognise each cause, and an example of it. The order is that of cause_rules. */
#include "analysis/explain/cause_guide.h"

#include <stddef.h>
#include <string.h>

const struct cause_guide cause_guides[] = {
	{ "recovered",
	  "The program logged nothing, or a warning, and continued. PyTorch counts such requests "
	  "as num_alloc_retries in torch.cuda.memory_stats().",
	  "PyTorch requests 2 GiB and the driver refuses. PyTorch releases its cached segments, "
	  "requests 2 GiB again, and gets them." },
	{ "memory-cap",
	  "nvidia-smi shows free memory when the program fails, and the failures begin at the same "
	  "amount each time.",
	  "A program calls torch.cuda.set_per_process_memory_fraction(0.5) on a device of 24 "
	  "GiB. It fails at 12 GiB, while the driver reports 12 GiB free." },
	{ "other-tenant",
	  "nvidia-smi lists a second process on the device. The program fails during start-up, "
	  "and it works when it is the only one.",
	  "Yesterday's server still runs and holds 20 of 24 GiB. The new one fails when it loads "
	  "its weights." },
	{ "model-too-large",
	  "The failure comes during loading, at the same layer each time. Every block so far is "
	  "still in use.",
	  "A model of 70 billion parameters in 16 bits needs 140 GB. Loading fails on a device of "
	  "80 GB after about half of the layers." },
	{ "activations-too-large",
	  "Short prompts work and a long one fails, or the first full batch fails. The failed "
	  "request is much larger than all others.",
	  "The logits of 32,768 tokens with a vocabulary of 128,000 words need 16 GB in 32 bits. "
	  "prompt_logprobs requests exactly that." },
	{ "kv-cache-too-large",
	  "The server fails during start-up, after the weights are loaded and before the first "
	  "request is served.",
	  "llama.cpp is started with --ctx-size 131072. The weights fit, and the buffer for the "
	  "cache does not." },
	{ "kv-cache-leaves-no-room",
	  "The server reserves its cache, and fails soon after: while it captures CUDA graphs, "
	  "warms up, or serves its first long prompt.",
	  "vLLM runs with --gpu-memory-utilization 0.98. Weights and cache take 37.7 of 40 GiB, "
	  "and capturing CUDA graphs needs 0.7 GiB more than is left." },
	{ "kv-cache-grew",
	  "Memory rises while a request generates and falls when it ends. Long requests fail, and "
	  "short ones succeed.",
	  "Transformers' DynamicCache appends keys and values with torch.cat. Each token needs a "
	  "block slightly larger than the last, while the old one still exists." },
	{ "too-many-requests",
	  "One request works, and a load test fails. The memory is free again when the requests "
	  "end.",
	  "One request needs 1.5 GiB. Ten fit into the free memory, and the eleventh that runs "
	  "at the same time fails." },
	{ "fragmentation-pinned",
	  "PyTorch's message states that much memory is reserved but unallocated. The failure "
	  "comes after hours of changing sizes, and a restart cures it.",
	  "837 MiB are free, in gaps of at most 1.5 MiB. Small tensors between the gaps keep whole "
	  "segments alive, so a request of 654 MiB fails." },
	{ "fragmentation-growing-sizes",
	  "The program's memory rises with the size of its largest request. It stops rising when "
	  "sizes repeat.",
	  "A pool keeps blocks of 100, 105, 110 MiB and so on. Each request is 5 % larger than the "
	  "last, so no kept block fits." },
	{ "stranded-pool",
	  "The allocator's statistics show a free block that is large enough, and the request "
	  "fails.",
	  "A graph's private pool has 4 GiB free. A request on the default stream cannot use "
	  "them." },
	{ "other-allocator",
	  "The failing call comes from a library (NCCL, cuBLAS, ONNX Runtime), while PyTorch or "
	  "a pool reports free memory.",
	  "PyTorch has 6 GiB reserved but unallocated. NCCL calls cudaMalloc for its buffers and "
	  "gets out of memory." },
	{ "fragmentation-pool",
	  "The pool's attribute 'reserved' is well above 'used', and a request that is smaller "
	  "than the difference fails.",
	  "A cudaMallocAsync pool has reserved 10 GiB and uses 6. The largest piece is 512 MiB, "
	  "and the request is 1 GiB." },
	{ "library-memory", "nvidia-smi shows much more memory than the program's own counters.",
	  "NCCL creates eight communicators. Each takes several hundred MiB that PyTorch does not "
	  "count." },
	{ "gpu-leak",
	  "GPU memory rises from request to request and never falls. The failure comes sooner with "
	  "more traffic, and a restart cures it.",
	  "A server keeps a reference to each request's output tensor in a list. After 353 "
	  "requests, 5.69 GiB are held by a list that nobody reads." },
	{ "page-lock-refused",
	  "The error is 'out of memory', although the GPU has free memory. The failing call is "
	  "cudaHostAlloc, cudaMallocHost or cudaHostRegister.",
	  "A data loader pins 8 GiB of batches in a container with a limit of 4 GiB." },
	{ "host-leak",
	  "RSS rises for hours. The container is OOM-killed, and lasts longer with a higher limit.",
	  "An agent appends every message and tool output to a history that it never trims." },
	{ "pinned-fills-host",
	  "RSS and 'shared' rise with the number of data loader workers or with the size of the "
	  "batches.",
	  "PyTorch rounds 5.0 GB of pinned buffers up to 8 GiB. The container has a limit of 10 "
	  "GiB." },
	{ "host-cache",
	  "Memory rises to a fixed amount and stays there. The container's limit is below it.",
	  "llama-server keeps up to 8 GiB of prompts. The container is OOM-killed at 6 GiB." },
	{ "allocator-keeps-freed",
	  "RSS stays high after the work is done, and the program's own counters are low. glibc's "
	  "malloc_stats() shows much free memory. Python's pymalloc keeps an arena of 1 MiB as "
	  "long as one object in it lives.",
	  "Sixty threads free 2 GiB into sixty arenas. glibc does not return it to the kernel." },
	{ "managed-heap",
	  "The container is OOM-killed, and the runtime's own statistics are below the limit that "
	  "it was given. With a lower limit the program runs, or the runtime itself reports that "
	  "its heap is full.",
	  "A service of Node.js runs in a container of 512 MiB. V8 lets its heap grow to 2 GiB "
	  "before it collects thoroughly, so the kernel kills it first." },
	{ "loading-needs-more-host",
	  "The container is OOM-killed while it loads the model. It needs about twice the size "
	  "of the file.",
	  "torch.load reads a checkpoint of 14 GB into host memory before it copies it to the "
	  "GPU. The container has a limit of 16 GiB." },
	{ "host-work-at-once",
	  "The failure comes only under load, or with larger batches. One request at a time "
	  "always works.",
	  "A chain serves a batch of 32 requests at once, and each holds a document of 16 MiB. "
	  "Twenty fit into the container." },
	{ "host-request-doubles",
	  "Each turn takes twice as long as the last, and the last one fails at once.",
	  "A chain feeds each answer back, and the answer repeats the prompt. After twelve turns "
	  "a prompt of 64 KiB has become one of 256 MiB." },
	{ "host-request-does-not-fit",
	  "The process is OOM-killed at one line, while memory was far from full a moment before.",
	  "A table of 100 MiB is held, and a copy of 150 MiB is made of it. The container has "
	  "200 MiB." },
	{ "host-request-too-large",
	  "The first such call fails at once, on an idle machine, too. Memory is nearly free.",
	  "A length that was read from a file is -1. As a size of 64 bits that is 16 EiB." },
	{ "host-process-limit",
	  "MemoryError, or std::bad_alloc, while most memory of the machine is free. 'ulimit -a' "
	  "in the same shell, or /proc/PID/limits, shows a limit of virtual memory or of data.",
	  "A batch system starts a job with ulimit -v 8388608. The job maps a file of 6 GiB, "
	  "holds 1 GiB, and asks for 2 GiB." },
	{ "host-out-of-memory",
	  "The container is OOM-killed, or malloc returns NULL, and no call site of this process "
	  "holds most of the memory.",
	  "A sidecar in the same container uses the memory, or the program maps large files." },
	{ NULL, NULL, NULL },
};

const struct cause_guide *cause_guide_find(const char *name_id)
{
	for (const struct cause_guide *guide = cause_guides; guide->name_id; guide++)
		if (!strcmp(guide->name_id, name_id))
			return guide;
	return NULL;
}
