/* SPDX-License-Identifier: Apache-2.0 */
/* The causes. A row is data alone: `cuflight help S6` and the man page print it. */
#include "analysis/explain/causes.h"

#define IF(what, least, weight) { TERM_##what, false, least, weight }
#define UNLESS(what, below, weight) { TERM_##what, true, below, weight }
#define NEED(what, least) { TERM_##what, false, least, 0 }
#define NEED_BELOW(what, below) { TERM_##what, true, below, 0 }
#define ANY 1e-9 /* more than nothing */
#define KV_LAID_OUT \
	{ UNLESS(nothing_freed, 0.5, -0.15), IF(kv_prealloc, 1, 0.15), IF(after_query, 1, 0.1), IF(burst, 0.8, 0.1), IF(kv_named, 1, 0.1), IF(own, 0.9, 0.05), \
	  IF(early, 1, 0.05), IF(packed, 1, -0.3), IF(kv_grown, 1, -0.4), IF(leak, 0.5, -0.2), IF(arithmetic, 0.6, -0.3), IF(slots_named, 1, -0.1) }

const struct cause_rule cause_rules[] = {
	{ "S0", "recovered", "no fatal shortage: recovered or handled",
	  { "{request} was refused with {free} free, and the program went on", "a request was refused, and the program went on" },
	  "A request failed, and a retry was served or the program did without. Caching allocators do this as a matter of course: "
	  "they give back what they keep and ask again. It is a near miss, not a death.",
	  "PyTorch's, ggml's and BFC's retry ladders, as read in their sources",
	  "nothing", AT_FAILURE | AT_REFUSAL, 0.95, { NEED(survived, 1) }, { IF(retried, 1, 0.02) } },

	{ "S1.cap", "memory-cap", "a limit below the device's memory",
	  { "{request} was refused although {free} was free: something other than the device's memory is the limit", NULL },
	  "The driver refused a request that its own figure of free memory would have served by far, or the framework refused by itself. "
	  "A quota, a partition of the device (MIG, vGPU) or a fraction set in the framework is the limit.",
	  "HAMi and MIG reports; torch.cuda.set_per_process_memory_fraction short-circuits before any call. 64 MiB of slack: the driver rounds to pages",
	  "the quota's own log", AT_FAILURE, 0.75, { NEED(room, 1.05), NEED_BELOW(host_request, 1) }, { IF(room, 2, 0.1), IF(own, 0.9, -0.2) } },

	{ "S1.cap", "memory-cap", "a limit below the device's memory",
	  { "the framework refused {request} by itself: {free} of the device was free", "the framework refused a request by itself" },
	  "", "", "the fraction that the program sets", AT_FAILURE, 0.8, { NEED(no_driver_call, 1) }, { IF(room, 1.05, 0.15), IF(packed, 1, -0.2) } },

	{ "S1.tenant", "other-tenant", "another tenant holds the device",
	  { "{others} of the {total} device are held by others; {mine} are this process's, and {request} more would have fitted without them", NULL },
	  "Somebody else's memory is on the device: a stale process, a second engine, another rank. Their bytes are the driver's used memory "
	  "less what this process was seen to take. A share for the context is allowed for (5 % of the device, at most 1 GiB).",
	  "field reports in which the failing process held under 2 % of the device; rule 0.9: below it the process would have had room",
	  "nvidia-smi at the failure, or the recordings of all processes in one directory", AT_FAILURE, 0.55, { NEED(alone_fits, 1), NEED_BELOW(own, 0.95) },
	  { IF(before, 1, 0.3), IF(others_run, 0.5, 0.3), IF(late, 1, 0.25), IF(libraries, 1, -0.15), IF(leak, 1, -0.1), UNLESS(own, 0.8, 0.1) } },

	{ "S2a", "model-too-large", "the model does not fit",
	  { "{mine} were loaded, nothing was given back, and the next {request} found {free} free", NULL },
	  "Weights are loaded until the device is full. Nothing is freed on the way, sizes repeat layer by layer, the failing request is no "
	  "larger than those before it, and packing would not help.",
	  "field guides (cause 'model too large'); 4 repeats of at least 2 sizes tell layers from a batch",
	  "names of functions, or the size of the weight files", AT_FAILURE, 0.4, { NEED(nothing_freed, 0.98), NEED_BELOW(packed, 1) },
	  { IF(layered, 0.6, 0.25), IF(weights_named, 1, 0.25), UNLESS(over_layer, 1.01, 0.05), IF(own, 0.9, 0.1), UNLESS(own, 0.9, -0.15), IF(over_layer, 1.5, -0.3),
	    IF(family_next, 1, -0.1), IF(kv_named, 1, -0.25), IF(after_query, 1, -0.2), IF(slots_named, 1, -0.2), IF(activations_named, 1, -0.25),
	    IF(leak, 0.5, -0.3), IF(late_failure, 8, -0.2), IF(arithmetic, 0.6, -0.3) } },

	{ "S2b", "activations-too-large", "activations do not fit",
	  { "one step asked for {request} at once, with {mine} held and {free} free", NULL },
	  "The weights fit; the working memory of a step does not. The request is far larger than what earlier requests took, or it is "
	  "the first step's, and packing would not help. Long prompts, full-vocabulary logits and attention without tiling look like this.",
	  "vLLM issues on prompt_logprobs (tokens x vocabulary x 4); 4 times the median of earlier blocks, and twice their largest",
	  "marks of requests (cuflight.h), or the prompt's length", AT_FAILURE, 0.35, { NEED_BELOW(packed, 1) },
	  { UNLESS(own, 0.9, -0.25), IF(own_context, 1, -0.2), IF(over_served, 4, 0.3), IF(over_layer, 1.5, 0.2), IF(activations_named, 1, 0.2), IF(new_site, 1, 0.1), IF(own, 0.9, 0.1), IF(kv_named, 1, -0.3),
	    IF(weights_named, 1, -0.25), IF(family_next, 1, -0.2), IF(leak, 0.5, -0.3), IF(arithmetic, 0.6, -0.25), IF(kv_done, 1, -0.1), IF(slots_named, 1, -0.1),
	    IF(ladder, 8, -0.2), IF(concurrent, 4, -0.15) } },

	{ "S3", "kv-cache-too-large", "the KV cache laid out in advance is too large",
	  { "a cache of equal blocks of {unit} was being laid out; {family} were served, and {free} were left for the next", NULL },
	  "The key and value cache is reserved at start: equal blocks directly after a look at free memory (vLLM, SGLang), or one large buffer "
	  "(llama.cpp, Ollama). It does not fit beside the weights.",
	  "vLLM's and llama.cpp's sources; a family is at least 4 equal blocks, nothing else in between",
	  "names of functions or framework events", AT_FAILURE, 0.4, { NEED(kv_prealloc, 0.5), NEED(family_next, 1) }, KV_LAID_OUT },

	{ "S3", "kv-cache-too-large", "the KV cache laid out in advance is too large",
	  { "{request} for the KV cache were asked for at once, with {free} free", NULL },
	  "", "", "names of functions or framework events", AT_FAILURE, 0.4, { NEED(kv_prealloc, 0.5), NEED_BELOW(family_next, 1) }, KV_LAID_OUT },

	{ "S3.V", "kv-cache-leaves-no-room", "the KV cache leaves too little for the rest",
	  { "the KV cache of {kv} fits, but leaves {free}; {request} were needed next", NULL },
	  "The key and value cache was reserved and took what graphs, sampler, draft model or the first long prompt need. The share "
	  "of the device that it may take must go down.",
	  "vLLM issues on graph capture after the KV cache; SGLang's mem_fraction_static",
	  "framework events: which blocks are the cache", AT_FAILURE, 0.5, { NEED(kv_done, 1), NEED_BELOW(packed, 1) },
	  { IF(early, 1, 0.15), IF(graph_capture, 1, 0.2), IF(own, 0.9, 0.1), IF(kv_named, 1, 0.05), IF(slots_named, 1, 0.05), IF(per_slot, 1, -0.25), IF(over_served, 4, -0.1), IF(leak, 0.5, -0.4),
	    IF(family_next, 1, -0.2), IF(weights_named, 1, -0.3), IF(arithmetic, 0.6, -0.2), IF(concurrent, 4, -0.1), IF(per_slot, 1, -0.3) } },

	{ "S4", "kv-cache-grew", "the KV cache grew with the context",
	  { "requests of one site grow by {step} a step, {terms} steps so far; the next, {request}, found {free} free", NULL },
	  "A cache that grows with the tokens: each step asks for the last size plus the same amount, copies and frees the old block. It shrinks "
	  "when the request ends. Long requests fail, short ones succeed. When only one request was seen, a leak cannot be excluded.",
	  "transformers' DynamicCache (torch.cat); 8 equal steps, six in ten of all rises",
	  "a second request, or marks of requests (cuflight.h)", AT_FAILURE, 0.5, { NEED(arithmetic, 0.6) },
	  { IF(next_term, 1, 0.15), IF(sawtooth, 1, 0.2), IF(kv_named, 1, 0.1), IF(longest, 1, 0.05), IF(one_request, 1, -0.05), IF(nothing_freed, 0.9, -0.25), IF(packed, 1, -0.15),
	    IF(leak, 0.5, -0.1) } },

	{ "S4", "kv-cache-grew", "the KV cache grew with the context",
	  { "the cache grows by {step} a step, {terms} steps so far; the next, {request}, found {free} free",
	    "a cache that grows with requests and shrinks when they end holds {grown}, more than ever before, in {siblings} blocks; {request} more found {free} free",
	    "the key and value cache grew within a request" },
	  "", "", "a second request, or marks of requests (cuflight.h)", AT_FAILURE, 0.45, { NEED(kv_grown, 4) },
	  { IF(one_request, 1, -0.05), IF(sawtooth, 1, 0.15), IF(sawtooth, 2, 0.1), IF(kv_named, 1, 0.2), IF(own, 0.9, 0.05), UNLESS(grown_over_slack, 10, -0.2), IF(slots_named, 1, -0.1),
	    IF(over_served, 4, -0.1), IF(leak, 0.5, -0.25) } },

	{ "S5", "too-many-requests", "too many sequences at once: laid out in advance",
	  { "{family} blocks of {unit} were laid out, one for each sequence; {fits} fit, and more were wanted", NULL },
	  "A static batch: the same block for each slot, reserved before there is work. Fewer of them fit; a single one does.",
	  "field guides ('static batch', 'batch misconfiguration'); a fifth of the device in one family of equal blocks",
	  "names of functions, or the number of slots that was set", AT_FAILURE, 0.45, { NEED(family_next, 1), NEED(family, 0.2), NEED(family_fits, 1), NEED_BELOW(family_churn, 0.25) },
	  { IF(burst, 0.8, 0.15), IF(slots_named, 1, 0.25), IF(own, 0.9, 0.1), IF(nothing_freed, 0.95, 0.05), IF(kv_named, 1, -0.2), IF(after_query, 1, -0.15), IF(layered, 0.6, -0.15),
	    IF(weights_named, 1, -0.25), IF(leak, 0.5, -0.35), IF(arithmetic, 0.6, -0.3), IF(late_failure, 8, -0.1), IF(packed, 1, -0.2) } },

	{ "S5", "too-many-requests", "too many sequences at once: one buffer",
	  { "{request} were asked for at once, {per_slot} for each of {slots} sequences; {slots_fit} of them fit", "a buffer for all sequences at once, {request}, found {free} free", NULL },
	  "A warm-up or a first step takes a buffer for the largest number of sequences that was set (logits: sequences x vocabulary x 4).",
	  "vllm#14452: 1024 dummy requests in the sampler's warm-up",
	  "the number of sequences that was set", AT_FAILURE, 0.35, { NEED(slots_named, 1), NEED_BELOW(packed, 1), NEED_BELOW(family_next, 1) },
	  { IF(per_slot, 1, 0.35), IF(new_site, 1, 0.1), IF(own, 0.9, 0.1), IF(kv_done, 1, 0.05), IF(concurrent, 4, -0.2), IF(leak, 0.5, -0.3) } },

	{ "S5", "too-many-requests", "too many requests at once",
	  { "{siblings} requests at once hold or want {together} each, and {together_fit} fit; before there were {siblings_before} at most",
	    "{siblings} blocks of the failing site were held at once; one alone would have fitted", NULL },
	  "Requests that fit one by one are served at the same time. The failure comes at the highest concurrency, and the blocks are "
	  "given back when a request ends.",
	  "field guides ('fails only under load'); at least 4 at once, no fewer than ever before",
	  "marks of requests (cuflight.h)", AT_FAILURE, 0.55, { NEED(concurrent, 4), NEED(one_fits, 1) },
	  { IF(slots_named, 1, 0.1), IF(own, 0.9, 0.1), IF(concurrent, 8, 0.05), IF(activations_named, 1, 0.05), IF(kv_named, 1, -0.25), IF(leak, 0.5, -0.3), IF(packed, 1, -0.2),
	    IF(over_served, 4, -0.2), IF(arithmetic, 0.6, -0.1) } },

	{ "S6.F1", "fragmentation-pinned", "fragmentation: small blocks hold memory open",
	  { "{request} found {free} free and {slack} in holes, the largest {hole}; {pins} blocks of {pin} hold most of them open",
	    "{request} found {free} free and {slack} in holes, the largest {hole}; packed, there would be {packed}",
	    "packed, there would be {packed} for {request}" },
	  "Free memory is there and lies in pieces: packed it would serve the request, but no piece is large enough, and blocks still in use keep "
	  "pages or segments from being given back. The device's own free memory is never called fragmented: its pages are mapped.",
	  "pytorch#35901, #29554; judged after the allocator has given back what is whole",
	  "framework events, where a framework cuts the blocks", AT_FAILURE, 0.65, { NEED(packed, 1), NEED_BELOW(hole, 1), NEED_BELOW(room, 1), NEED(slack, 1) },
	  { IF(sparse, 0.5, 0.15), IF(pinning, 0.5, 0.1), IF(late_failure, 8, 0.05), IF(leak, 1, -0.3), IF(ladder, 8, -0.1), IF(foreign_caller, 1, -0.3), IF(pool, 1, -0.1), IF(arithmetic, 0.6, -0.15),
	    IF(grown_over_slack, 10, -0.4) } },

	{ "S6.F2", "fragmentation-growing-sizes", "fragmentation: requests outgrow what is kept",
	  { "{ladder} blocks of a growing series, {kept}, are kept though each later request is larger: the next, {series_request}, found {free} free",
	    "{ladder} blocks of a growing series, {kept}, are kept though each later request is larger; {request} beside them found {free} free", NULL },
	  "A pool that keeps its blocks meets requests that are each a little larger than all it has, so nothing kept is ever used again.",
	  "llama.cpp#22107 (five percent look-ahead); 8 steps of about the same factor",
	  "framework events: which blocks are in use", AT_FAILURE, 0.5, { NEED(ladder, 8), NEED(geometric, 1) },
	  { IF(geometric, 1, 0.2), IF(nothing_freed, 0.9, 0.1), IF(own, 0.9, 0.05), IF(arithmetic, 0.6, -0.3), IF(kv_named, 1, -0.1), IF(sawtooth, 2, -0.1) } },

	{ "S6.F3", "stranded-pool", "memory stranded in another pool or stream",
	  { "a free range of {hole} would have served {request}, and was not used", NULL },
	  "There was a large enough free range inside the memory that this process holds, but the request could not use it: it belongs to another "
	  "stream, a graph's private pool, or waits for an event. This is not fragmentation: packing is not what is missing.",
	  "pytorch#189504; blocks are reusable on their own stream and pool alone",
	  "the streams of the blocks", AT_FAILURE, 0.7, { NEED(hole, 1), NEED_BELOW(room, 1), NEED(packed, 1) }, { IF(graph_capture, 1, 0.1), IF(pool, 1, 0.05), IF(foreign_caller, 1, -0.4) } },

	{ "S6.F3", "stranded-pool", "memory stranded in another pool or stream",
	  { "{slack} lies free in pools that this request may not use; it wanted {request}", NULL },
	  "", "", "the streams of the blocks", AT_FAILURE, 0.8, { NEED(stranded, 1), NEED_BELOW(room, 1), NEED(packed, 1) }, { IF(pool, 1, 0.05) } },

	{ "S6.F4", "other-allocator", "free memory is kept by another allocator",
	  { "{slack} lies free in an allocator that the failing call does not use; it wanted {request} of the driver", NULL },
	  "A framework or a pool keeps free memory, and a library that asks the driver itself (NCCL, cuBLAS, another runtime, plain cudaMalloc) "
	  "cannot have it.",
	  "NCCL and ONNX Runtime beside PyTorch, by their sources",
	  "names of functions", AT_FAILURE, 0.75, { NEED(foreign_caller, 1), NEED(packed, 1), NEED_BELOW(room, 1) }, { IF(pool, 1, 0.1), IF(contribution, 1, 0.05) } },

	{ "S6.F5", "fragmentation-pool", "fragmentation inside a memory pool",
	  { "a pool has {slack} reserved and unused, but no piece of {request}", NULL },
	  "A stream-ordered pool (cudaMallocAsync) or a BFC arena has reserved enough, in pieces that are too small.",
	  "pool attributes reserved and used; the largest gap between live blocks",
	  "cudaMemPoolTrimTo before the request", AT_FAILURE, 0.7, { NEED(pool, 0.3), NEED(packed, 1), NEED_BELOW(hole, 1), NEED_BELOW(foreign_caller, 1), NEED_BELOW(stranded, 1) },
	  { IF(pool, 1, 0.15), IF(late_failure, 8, 0.05) } },

	{ "S7", "library-memory", "libraries took memory unseen",
	  { "used memory rose by {rose} more than this process was seen to allocate", NULL },
	  "The driver's used memory rises while recorded blocks do not: communicators (NCCL), handles and workspaces (cuBLAS, cuDNN), kernels "
	  "loaded at first use, captured graphs.",
	  "NCCL and cuBLAS embed their own runtime; 5 % of the device, at most 1 GiB, is allowed for the context",
	  "recordings of all processes on the device: somebody else may have come", AT_FAILURE, 0.4, { NEED(creep, 1), NEED_BELOW(others_run, 0.5) },
	  { IF(own_context, 1, 0.4), IF(libraries, 1, 0.3), IF(graph_capture, 1, 0.1), IF(before, 1, -0.1) } },

	{ "S8", "gpu-leak", "a leak on the device",
	  { "{leaked} are in sites that only grow, {each_request} with each request", "{leaked} are in sites that only grow, {per_request} with each cycle of work (inferred)",
	    "{leaked} are in sites that only grow" },
	  "The least that a site holds between requests rises, all through the run, in at least 8 cycles of the program's own work, made of blocks "
	  "that stay. Memory that is merely live at the end is no leak, nor is a cache that stops growing.",
	  "analysis/facts/README.md, Growth and leaks; half of the shortfall must be the leak's",
	  "more cycles of work", AT_FAILURE | AT_END, 0.75, { NEED(leak, 0.5) },
	  { IF(leak, 1, 0.1), IF(growing, 1, 0.05), IF(late_failure, 16, 0.05), IF(kv_grown, 1, -0.25), IF(packed, 1, -0.1), IF(geometric, 1, -0.35) } },

	{ "S9.H6", "page-lock-refused", "page-locked host memory ran out",
	  { "{locked} of page-locked host memory were refused; the device is not the problem, it had {free} free",
	    "{locked} of page-locked host memory were refused; the device is not the problem", "locking host memory was refused; the device is not the problem" },
	  "The failing call locks host memory, and CUDA reports it with the same error as a full device. The limit is the machine's or the "
	  "container's: memory, RLIMIT_MEMLOCK, or the driver's own. The next kernel launch may report the error once more.",
	  "Soup#989; cudaHostAlloc, cudaMallocHost and cudaHostRegister fail with error 2",
	  "the limits of the container", AT_FAILURE, 0.9, { NEED(host_request, 1) }, { IF(pinned_rounded, 0.2, 0.02) } },

	{ "S9.H2", "host-leak", "host memory grows without end",
	  { "{host_leaked} of host memory are in sites that only grow, {host_each_request} with each request; the limit was {limit}",
	    "{host_leaked} of host memory are in sites that only grow, {host_per_request} with each cycle of work (inferred); the limit was {limit}",
	    "{host_leaked} of host memory are in sites that only grow" },
	  "As S8, for the malloc family: histories, messages, tool outputs, checkpoints, clients made anew in a loop.",
	  "field guides on LangChain, LangGraph, AutoGen, CrewAI; a tenth of resident memory when the kernel killed the process",
	  "host=full", AT_END, 0.7, { NEED(oom_killed, 1), NEED(host_leak, 0.1) }, { IF(host_leak, 0.3, 0.15), IF(host_growing, 1, 0.05), IF(host_full, 0.9, 0.05) } },

	{ "S9.H2", "host-leak", "host memory grows without end",
	  { "{host_leaked} of host memory are in sites that only grow, {host_each_request} with each request",
	    "{host_leaked} of host memory are in sites that only grow, {host_per_request} with each cycle of work (inferred)",
	    "{host_leaked} of host memory are in sites that only grow" },
	  "", "", "host=full", AT_END, 0.75, { NEED(host_leak, ANY), NEED_BELOW(oom_killed, 1) }, { IF(host_growing, 1, 0.05), IF(host_leak, 0.2, 0.1) } },

	{ "S9.H2", "host-leak", "host memory grows without end",
	  { "malloc refused {request}; {host_leaked} are in sites that only grow, {host_each_request} with each request",
	    "malloc refused {request}; {host_leaked} are in sites that only grow, {host_per_request} with each cycle of work (inferred)",
	    "malloc refused {request}; {host_leaked} are in sites that only grow" },
	  "", "", "", AT_REFUSAL, 0.6, { NEED(host_refused, 1), NEED(host_leak, 0.1) }, { IF(host_leak, 0.3, 0.2), IF(host_growing, 1, 0.1), IF(host_huge, 1, -0.2) } },

	{ "S9.H4", "pinned-fills-host", "page-locked memory fills the host",
	  { "{pinned} of the {limit} limit are page-locked", NULL },
	  "Page-locked memory cannot be reclaimed; PyTorch's pinned allocator rounds each request up to a power of two.",
	  "pytorch#95823 (5.0 GB became 8 GiB), vllm#56410",
	  "", AT_END, 0.6, { NEED(oom_killed, 1), NEED(pinned_share, 0.3) }, { IF(pinned_rounded, 0.15, 0.2), IF(host_leak, 0.3, -0.2) } },

	{ "S9.H3", "host-cache", "a host cache leaves no room in the limit",
	  { "caches that have stopped growing hold {plateau} of a limit of {limit}", NULL },
	  "A cache with a bound of its own, higher than the container's limit leaves room for: llama-server keeps 8 GiB of prompts a runner.",
	  "llama.cpp#22629, ollama#18264; a third of resident memory in caches that stand still",
	  "", AT_END, 0.55, { NEED(oom_killed, 1), NEED(host_cache, 0.3) }, { IF(host_cache, 0.6, 0.2), IF(host_leak, 0.2, -0.2) } },

	{ "S9.H5", "allocator-keeps-freed", "the host allocator keeps what was freed",
	  { "{host_cached} of {rss} resident are free inside the allocator", "{host_idle} of {rss} resident are neither live in malloc nor files",
	    "much of the {rss} resident is not live in malloc" },
	  "Freed memory stays with the allocator: many arenas of many threads, or pages held open by a few blocks.",
	  "glibc's arenas; three tenths of resident memory",
	  "the allocator's books at the end", AT_END, 0.45, { NEED(oom_killed, 1), NEED(host_slack, 0.3) }, { IF(host_freed, 0.3, 0.15), IF(host_slack, 0.5, 0.15), IF(host_leak, 0.2, -0.2), IF(pinned_share, 0.3, -0.2) } },

	{ "S9.H1", "loading-needs-more-host", "loading takes more host memory than there is",
	  { "resident memory rose from {rss_first} to {rss} while loading, of a limit of {limit}", "resident memory rose to {rss} while loading" },
	  "Weights are read into memory of the process's own (torch.load, --no-mmap), so the peak is the model, or twice that.",
	  "transformers#16844; half of resident memory gained before any repeated work",
	  "", AT_END, 0.45, { NEED(oom_killed, 1), NEED(host_ramp, 0.5) }, { UNLESS(host_freed, 0.3, 0.15), UNLESS(host_leak, 0.1, 0.05), UNLESS(host_slack, 0.3, 0.05), IF(host_freed, 0.3, -0.2), IF(host_leak, 0.2, -0.3) } },

	{ "S9.H1", "loading-needs-more-host", "loading takes more host memory than there is",
	  { "malloc refused {request} while loading: resident memory rose from {rss_first} to {rss}", "malloc refused {request} while loading", NULL },
	  "", "", "", AT_REFUSAL, 0.45, { NEED(host_refused, 1), NEED(host_ramp, 0.5) }, { UNLESS(host_freed, 0.3, 0.15), UNLESS(host_leak, 0.1, 0.1), IF(host_freed, 0.5, -0.2), IF(host_leak, 0.2, -0.3) } },

	{ "S9", "host-out-of-memory", "host memory ran out",
	  { "malloc refused {request} at once; {host_live} were live", "malloc refused {request}", NULL },
	  "", "", "the process's limits (ulimit -v, the container's memory)", AT_REFUSAL, 0.35, { NEED(host_refused, 1) }, { IF(host_huge, 1, 0.3) } },

	{ "S9", "host-out-of-memory", "host memory ran out",
	  { "the cgroup held {cgroup} of {limit}; {rss} of that was resident here", "the kernel killed the process for want of memory", NULL },
	  "The kernel killed the process for want of memory, and nothing recorded explains most of it: other processes of the container, files that "
	  "are mapped, or memory that does not come from malloc.",
	  "the cgroup's count of kills, or its last sample within 5 % of the limit",
	  "recordings of the container's other processes", AT_END, 0.35, { NEED(oom_killed, 1) }, { IF(host_full, 0.9, 0.1), UNLESS(host_mine, 0.5, 0.15) } },

	{ 0 },
};
