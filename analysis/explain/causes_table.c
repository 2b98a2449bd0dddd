/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The causes. A row is data: `cuflight help NAME` prints it. Several rows may share an id: they are
 * different signs of one cause, and the first one describes it.
 */
#include "analysis/facts/device.h"
#include "analysis/explain/causes.h"

/* IF: adds the weight when the signal is at least so high; UNLESS: when it is known and below. */
#define IF(what, least, weight) { SIGNAL_##what, false, least, weight }
#define UNLESS(what, limit, weight) { SIGNAL_##what, true, limit, weight }
/* Of causes that the budget decides: what shows it, the most telling first. */
#define SHOWN_BY(what, least) { SIGNAL_##what, false, least, CAUSE_SHOWN }
#define SHOWN_BY_LESS(what, limit) { SIGNAL_##what, true, limit, CAUSE_SHOWN }
#define NEED(what, least) { SIGNAL_##what, false, least, 0 }
#define NEED_BELOW(what, limit) { SIGNAL_##what, true, limit, 0 }
/* A row that is another sign of a cause above, which describes it. */
#define SIGN_OF(id_, name_id_, name_) \
	.id = id_, .name_id = name_id_, .name = name_, .about = "", .source = ""
#define ROW(owner) (1u << OWNER_##owner)
#define ANY 1e-9 /* more than nothing */

const struct cause_rule cause_rules[] = {
	{
		.id = "S0", .name_id = "recovered",
		.name = "a failed request that the program survived",
		.summaries = {
			"{request} was refused with {free} free, and the program went on",
			"a request was refused, and the program went on",
		},
		.about = "A request failed, and a retry succeeded or the program did without. "
			"Caching allocators do this routinely: they release what they keep and "
			"request again. Nothing has to be changed unless it happens often.",
		.source = "the retry ladders of PyTorch, ggml and BFC, as read in their sources",
		.would_confirm = "nothing",
		.scope = AT_FAILURE | AT_REFUSAL, .base = 0.95, .needs = { NEED(survived, 1) },
		.tests = { IF(retried, 1, 0.02) },
	}, {
		.id = "S1.cap", .name_id = "memory-cap",
		.name = "a memory limit below the size of the device",
		.summaries = {
			"{request} was refused although {free} was free: something other than the "
				"device's memory is the limit",
		},
		.about = "The driver refused a request that its own figure of free memory would "
			"have served easily, or the framework refused by itself. The limit is a "
			"quota, a partition of the device (MIG, vGPU) or a fraction that was set "
			"in the framework.",
		.source = "HAMi and MIG reports; torch.cuda.set_per_process_memory_fraction "
			"refuses before any driver call; 64 MiB of slack because the driver "
			"rounds to pages",
		.would_confirm = "the log of the quota",
		.removes = REMOVED_CAP, .scope = AT_FAILURE,
		.needs = { NEED(room, 1.05), NEED_BELOW(host_request, 1) },
		.tests = { SHOWN_BY(room, 2) },
	}, {
		SIGN_OF("S1.cap", "memory-cap", "a memory limit below the size of the device"),
		.summaries = {
			"the framework refused {request} by itself with {free} of the device free",
			"the framework refused a request by itself",
		},
		.would_confirm = "the fraction that the program sets",
		.removes = REMOVED_CAP, .scope = AT_FAILURE, .needs = { NEED(no_driver_call, 1) },
		.tests = { SHOWN_BY(room, 1.05) },
	}, {
		.id = "S1.tenant", .name_id = "other-tenant",
		.blames = ROW(OTHER_PROCESSES),
		.name = "another process holds the device",
		.summaries = {
			"others hold {others} of {total}; this process holds {mine}, and without "
				"the others {request} more would have fit",
		},
		.about = "Memory of another process is on the device: a stale process, a second "
			"engine, another rank. Its bytes are the driver's used memory minus what "
			"this process allocated. 5 % of the device, at most 1 GiB, is allowed for "
			"the context.",
		.source = "field reports in which the failing process held under 2 % of the "
			"device; below 0.9 of it the process would have had room",
		.would_confirm = "nvidia-smi at the failure, or recordings of all processes in "
			"one directory",
		.removes = REMOVED_TENANT, .scope = AT_FAILURE,
		.needs = { NEED(alone_fits, 1), NEED_BELOW(own, 0.95) },
		.tests = { SHOWN_BY(before, 1), SHOWN_BY(others_run, 0.5), SHOWN_BY(late, 1),
			SHOWN_BY_LESS(own, 0.8) },
	}, {
		.id = "S2a", .name_id = "model-too-large",
		.name = "the model does not fit",
		.summaries = {
			"{mine} was loaded, nothing was freed, and the next {request} failed with "
				"{free} free",
		},
		.about = "Weights are loaded until the device is full. Nothing is freed "
			"meanwhile, sizes repeat layer by layer, the failing request is no larger "
			"than earlier ones, and closing gaps would not help.",
		.source = "field guides (cause 'model too large'); 4 repeats of at least 2 sizes "
			"distinguish layers from a batch",
		.would_confirm = "function names, or the size of the weight files",
		.removes = REMOVED_LOAD, .named_by = SIGNAL_weights_named,
		.scope = AT_FAILURE,
		.needs = { NEED(nothing_freed, 0.98) },
		.tests = { SHOWN_BY(layered, 0.6), SHOWN_BY(weights_named, 1), SHOWN_BY(own, 0.9),
			SHOWN_BY_LESS(over_layer, 1.01) },
	}, {
		SIGN_OF("S2a", "model-too-large", "the model does not fit"),
		.summaries = {
			"{mine} is held, {kept_growth} of it was loaded last and stays, and the "
				"next {request} failed with {free} free",
		},
		.would_confirm = "function names, or the size of the weight files",
		.removes = REMOVED_LOAD, .named_by = SIGNAL_weights_named,
		.scope = AT_FAILURE,
		.needs = { NEED(loads, 0.8) },
		.tests = { SHOWN_BY(weights_named, 1), SHOWN_BY(layered, 0.6),
			SHOWN_BY(own, 0.9) },
	}, {
		SIGN_OF("S2a", "model-too-large", "the model does not fit"),
		.summaries = {
			"{request} was requested at once before anything large was held, with "
				"{free} free",
		},
		.would_confirm = "function names, or the size of the weight files",
		.removes = REMOVED_LOAD, .named_by = SIGNAL_weights_named,
		.scope = AT_FAILURE, .needs = { NEED(first_large, 8) },
	}, {
		.id = "S2b", .name_id = "activations-too-large",
		.name = "activations do not fit",
		.summaries = {
			"one step requested {request} at once, with {mine} held and {free} free",
		},
		.about = "The weights fit, but the working memory of a step does not. The request "
			"is far larger than what earlier requests needed, or it is the first "
			"step's, and closing gaps would not help. Typical reasons are long "
			"prompts, full-vocabulary logits and attention without tiling.",
		.source = "vLLM issues on prompt_logprobs (tokens x vocabulary x 4); 4 times the "
			"median of earlier blocks, and twice their largest",
		.would_confirm = "marked requests (cuflight.h), or the length of the prompt",
		.removes = REMOVED_WORK, .named_by = SIGNAL_activations_named,
		.scope = AT_FAILURE,
		.needs = { NEED_BELOW(first_large, 8) },
		.tests = { SHOWN_BY(over_served, 4), SHOWN_BY(over_layer, 1.5),
			SHOWN_BY(activations_named, 1), SHOWN_BY(new_site, 1),
			SHOWN_BY(own, 0.9) },
	}, {
		SIGN_OF("S2b", "activations-too-large", "one request is larger than the device"),
		.summaries = {
			"one request of {request} is more than the {total} of the whole device",
		},
		.would_confirm = "the sizes in the failing function: attention without tiling "
			"grows with the square of the prompt",
		.removes = REMOVED_WORK, .named_by = SIGNAL_activations_named,
		.scope = AT_FAILURE,
		.needs = { NEED(over_device, 1), NEED_BELOW(first_large, 8) },
		.tests = { SHOWN_BY(activations_named, 1), SHOWN_BY(new_site, 1) },
	}, {
		.id = "S3", .name_id = "kv-cache-too-large",
		.name = "the KV cache is too large",
		.summaries = {
			"{family} equal blocks of {unit} were allocated for the KV cache; the "
				"next one failed with {free} free",
		},
		.about = "The KV cache is reserved at start, as equal blocks right after a query "
			"of free memory (vLLM, SGLang) or as one large buffer (llama.cpp, "
			"Ollama). It does not fit next to the weights.",
		.source = "sources of vLLM and llama.cpp; a family is at least 4 equal blocks "
			"with nothing else in between",
		.would_confirm = "function names or framework events",
		.removes = REMOVED_KV, .named_by = SIGNAL_kv_named,
		.scope = AT_FAILURE,
		.needs = { NEED(kv_prealloc, 0.5), NEED(family_next, 1) },
		.tests = { SHOWN_BY_LESS(family_churn, 0.1), SHOWN_BY(kv_prealloc, 1),
			SHOWN_BY(after_query, 1), SHOWN_BY(burst, 0.8), SHOWN_BY(kv_named, 1),
			SHOWN_BY(own, 0.9), SHOWN_BY(early, 1) },
	}, {
		SIGN_OF("S3", "kv-cache-too-large", "the KV cache is too large"),
		.summaries = {
			"{request} was requested at once for the KV cache, with {free} free",
		},
		.would_confirm = "function names or framework events",
		.removes = REMOVED_KV, .named_by = SIGNAL_kv_named,
		.scope = AT_FAILURE,
		.needs = { NEED(kv_prealloc, 0.5), NEED_BELOW(family_next, 1) },
		.tests = { SHOWN_BY_LESS(family_churn, 0.1), SHOWN_BY(kv_prealloc, 1),
			SHOWN_BY(after_query, 1), SHOWN_BY(burst, 0.8), SHOWN_BY(kv_named, 1),
			SHOWN_BY(own, 0.9), SHOWN_BY(early, 1) },
	}, {
		.id = "S3.V", .name_id = "kv-cache-leaves-no-room",
		.name = "the KV cache leaves too little for the rest",
		.summaries = {
			"the KV cache of {kv} fits but leaves {free} free; the next {request} "
				"failed",
		},
		.about = "The KV cache was reserved and took the memory that graphs, sampler, "
			"draft model or the first long prompt need. Its share of the device must "
			"be smaller.",
		.source = "vLLM issues on graph capture after the KV cache; SGLang's "
			"mem_fraction_static",
		.would_confirm = "framework events that show which blocks are the cache",
		.removes = REMOVED_KV, .named_by = SIGNAL_kv_named,
		.scope = AT_FAILURE,
		.needs = { NEED(kv_done, 1) },
		.tests = { SHOWN_BY(graph_capture, 1), SHOWN_BY(early, 1), SHOWN_BY(own, 0.9),
			SHOWN_BY(kv_named, 1), SHOWN_BY(slots_named, 1) },
	}, {
		SIGN_OF("S3.V", "kv-cache-leaves-no-room",
			"the KV cache leaves too little for the rest"),
		.summaries = {
			"the KV cache of {kv} was reserved first; {kept_growth} of blocks that "
				"stay came after it, and the next {request} failed",
		},
		.would_confirm = "framework events that show which blocks are the cache",
		.removes = REMOVED_KV, .named_by = SIGNAL_kv_named,
		.scope = AT_FAILURE,
		.needs = { NEED(kv_first, 1), NEED(loads, 0.8) },
		.tests = { SHOWN_BY(early, 1), SHOWN_BY(own, 0.9) },
	}, {
		.id = "S4", .name_id = "kv-cache-grew",
		.name = "the KV cache grew with the context",
		.summaries = {
			"requests of one call site grew {terms} times by {step}; the next, "
				"{request}, failed with {free} free",
		},
		.about = "A cache grows with the tokens: each step requests the last size plus "
			"the same amount, copies, and frees the old block. It shrinks when the "
			"request ends. Long requests fail, short ones succeed. If only one "
			"request was seen, a leak cannot be excluded.",
		.source = "transformers' DynamicCache (torch.cat); 8 equal steps, six in ten of "
			"all rises",
		.would_confirm = "a second request, or marked requests (cuflight.h)",
		.removes = REMOVED_CACHE, .named_by = SIGNAL_kv_named,
		.scope = AT_FAILURE, .needs = { NEED(arithmetic, 0.6) },
		.tests = { SHOWN_BY(sawtooth, 1), SHOWN_BY(next_term, 1), SHOWN_BY(kv_named, 1),
			SHOWN_BY(longest, 1), SHOWN_BY(one_request, 1) },
	}, {
		SIGN_OF("S4", "kv-cache-grew", "the KV cache grew with the context"),
		.summaries = {
			"the cache grew {terms} times by {step}; the next, {request}, failed with "
				"{free} free",
			"a cache that grows with requests and shrinks when they end holds {grown} "
				"in {siblings} blocks, more than ever before; {request} more "
				"failed with {free} free",
			"the KV cache grew within a request",
		},
		.would_confirm = "a second request, or marked requests (cuflight.h)",
		.removes = REMOVED_CACHE, .named_by = SIGNAL_kv_named,
		.scope = AT_FAILURE, .needs = { NEED(kv_grown, 4) },
		.tests = { SHOWN_BY(kv_named, 1), SHOWN_BY(sawtooth, 1), SHOWN_BY(sawtooth, 2),
			SHOWN_BY(own, 0.9) },
	}, {
		SIGN_OF("S4", "kv-cache-grew", "the KV cache grew with the context"),
		.summaries = {
			"{grown_need} more than before was in blocks that are freed when requests "
				"end; {request} more failed with {free} free",
		},
		.would_confirm = "marked requests (cuflight.h): one long request, or many",
		.removes = REMOVED_CACHE, .named_by = SIGNAL_kv_named,
		.scope = AT_FAILURE,
		.needs = { NEED(comes_and_goes, 0.8) },
	}, {
		.id = "S5", .name_id = "too-many-requests",
		.name = "more sequences were configured than fit",
		.summaries = {
			"{family} blocks of {unit} were allocated, one for each sequence; {fits} "
				"fit, and more were requested",
		},
		.about = "A static batch: one equal block for each slot, reserved before there is "
			"work. A single block fits, but fewer of them fit than were configured.",
		.source = "field guides ('static batch', 'batch misconfiguration'); a fifth of "
			"the device in one family of equal blocks",
		.would_confirm = "function names, or the configured number of slots",
		.removes = REMOVED_SLOTS, .named_by = SIGNAL_slots_named,
		.scope = AT_FAILURE,
		.needs = { NEED(family_next, 1), NEED(family, 0.2), NEED(family_fits, 1),
			NEED_BELOW(family_churn, 0.25), NEED_BELOW(layered, 0.6),
			NEED_BELOW(weights_named, 1), NEED_BELOW(kv_prealloc, 0.5) },
		.tests = { SHOWN_BY(slots_named, 1), SHOWN_BY(burst, 0.8), SHOWN_BY(own, 0.9),
			SHOWN_BY(nothing_freed, 0.95) },
	}, {
		.id = "S5", .name_id = "too-many-requests",
		.name = "the buffer for all sequences does not fit",
		.summaries = {
			"{request} was requested at once, {per_slot} for each of {slots} "
				"sequences; {slots_fit} of them fit",
			"a buffer for all sequences at once, {request}, failed with {free} free",
		},
		.about = "A warm-up or a first step allocates a buffer for the largest configured "
			"number of sequences (logits: sequences x vocabulary x 4).",
		.source = "vllm#14452: 1024 dummy requests in the sampler's warm-up",
		.would_confirm = "the configured number of sequences",
		.removes = REMOVED_SLOTS, .named_by = SIGNAL_slots_named,
		.scope = AT_FAILURE,
		.needs = { NEED(per_slot, 1), NEED(slots_named, 1), NEED_BELOW(family_next, 1) },
		.tests = { SHOWN_BY(per_slot, 1), SHOWN_BY(new_site, 1), SHOWN_BY(own, 0.9),
			SHOWN_BY(kv_done, 1) },
	}, {
		.id = "S5", .name_id = "too-many-requests",
		.name = "too many requests at once",
		.summaries = {
			"{siblings} requests at once need {together} each, and {together_fit} "
				"fit; before there were at most {siblings_before}",
			"{siblings} blocks of the failing call site were live at once; a single "
				"one would have fit",
		},
		.about = "Requests that fit one at a time are served at the same time. The "
			"failure comes at the highest concurrency, and the blocks are freed when "
			"a request ends.",
		.source = "field guides ('fails only under load'); at least 4 at once, no fewer "
			"than ever before",
		.would_confirm = "marked requests (cuflight.h)",
		.removes = REMOVED_CONCURRENCY, .named_by = SIGNAL_slots_named,
		.scope = AT_FAILURE,
		.needs = { NEED(concurrent, 4), NEED(one_fits, 1) },
		.tests = { SHOWN_BY(slots_named, 1), SHOWN_BY(own, 0.9), SHOWN_BY(concurrent, 8),
			SHOWN_BY(activations_named, 1) },
	}, {
		.id = "S6.F1", .name_id = "fragmentation-pinned",
		.blames = ROW(FRAMEWORK_SLACK) | ROW(PAGE_ROUNDING),
		.name = "fragmentation: small blocks pin free memory",
		.summaries = {
			"{request} was requested with {free} free; a further {slack} is split "
				"into gaps of at most {hole}, pinned mostly by {pins} blocks of "
				"{pin}",
			"{request} was requested with {free} free; a further {slack} is split "
				"into gaps of at most {hole}",
			"with every gap closed, {packed} would be free for {request}",
		},
		.about = "Enough memory is free, but in pieces that are all too small, and blocks "
			"in use keep pages or segments from being released. The free memory of "
			"the device itself is never called fragmented, because the GPU maps "
			"pages.",
		.source = "pytorch#35901, #29554; judged after the allocator has released "
			"whatever is whole",
		.would_confirm = "framework events, if a framework splits the blocks",
		.removes = REMOVED_GAPS, .scope = AT_FAILURE,
		.needs = { NEED(packed, 1), NEED_BELOW(hole, 1), NEED_BELOW(room, 1),
			NEED(slack, 1) },
		.tests = { SHOWN_BY(sparse, 0.5), SHOWN_BY(pinning, 0.5),
			SHOWN_BY(late_failure, 8) },
	}, {
		.id = "S6.F2", .name_id = "fragmentation-growing-sizes",
		.name = "fragmentation: requests outgrow what is kept",
		.summaries = {
			"{ladder} blocks of a growing series, {kept}, are kept though each later "
				"request is larger; the next, {series_request}, failed with "
				"{free} free",
			"{ladder} blocks of a growing series, {kept}, are kept though each later "
				"request is larger; another {request} failed with {free} free",
		},
		.about = "A pool keeps its blocks while each request is a little larger than all "
			"of them, so nothing that it keeps is ever used again.",
		.source = "llama.cpp#22107 (five percent look-ahead); 8 steps of about the same "
			"factor",
		.would_confirm = "framework events that show which blocks are in use",
		.removes = REMOVED_LADDER, .scope = AT_FAILURE,
		.needs = { NEED(ladder, 8), NEED(geometric, 1) },
		.tests = { SHOWN_BY(geometric, 1), SHOWN_BY(nothing_freed, 0.9),
			SHOWN_BY(own, 0.9) },
	}, {
		.id = "S6.F3", .name_id = "stranded-pool",
		.blames = ROW(FRAMEWORK_SLACK) | ROW(POOL_SLACK),
		.name = "memory stranded in another pool or stream",
		.summaries = {
			"a gap of {hole} would have served {request}, and was not used",
		},
		.about = "A large enough gap was free inside this process's memory, but the "
			"request could not use it: it belongs to another stream, to a graph's "
			"private pool, or it waits for an event. This is not fragmentation: "
			"closing gaps would not help.",
		.source = "pytorch#189504; blocks can be reused only in their own stream and pool",
		.would_confirm = "the streams of the blocks",
		.removes = REMOVED_STRANDED, .scope = AT_FAILURE,
		.needs = { NEED(hole, 1), NEED_BELOW(room, 1), NEED(packed, 1),
			NEED_BELOW(foreign_caller, 1) },
		.tests = { SHOWN_BY(graph_capture, 1), SHOWN_BY(pool, 1) },
	}, {
		SIGN_OF("S6.F3", "stranded-pool", "memory stranded in another pool or stream"),
		.summaries = {
			"{slack} is free in pools that this request may not use; it needed "
				"{request}",
		},
		.would_confirm = "the streams of the blocks",
		.removes = REMOVED_STRANDED, .scope = AT_FAILURE,
		.needs = { NEED(stranded, 1), NEED_BELOW(room, 1), NEED(packed, 1) },
		.tests = { SHOWN_BY(pool, 1) },
	}, {
		.id = "S6.F4", .name_id = "other-allocator",
		.blames = ROW(FRAMEWORK_SLACK) | ROW(POOL_SLACK),
		.name = "free memory is kept by another allocator",
		.summaries = {
			"{slack} is free in an allocator that the failing call does not use; it "
				"requested {request} from the driver",
		},
		.about = "A framework or a pool keeps free memory, and a library that allocates "
			"from the driver (NCCL, cuBLAS, another runtime, plain cudaMalloc) cannot "
			"use it.",
		.source = "NCCL and ONNX Runtime next to PyTorch, by their sources",
		.would_confirm = "function names",
		.removes = REMOVED_STRANDED, .scope = AT_FAILURE,
		.needs = { NEED(foreign_caller, 1), NEED(packed, 1), NEED_BELOW(room, 1) },
		.tests = { SHOWN_BY(pool, 1), SHOWN_BY(contribution, 1) },
	}, {
		.id = "S6.F5", .name_id = "fragmentation-pool",
		.blames = ROW(POOL_SLACK),
		.name = "fragmentation inside a memory pool",
		.summaries = {
			"a pool has {slack} reserved and unused, but no gap of {request}",
		},
		.about = "A stream-ordered pool (cudaMallocAsync) or a BFC arena has reserved "
			"enough, in pieces that are too small.",
		.source = "pool attributes reserved and used; the largest gap between live blocks",
		.would_confirm = "cudaMemPoolTrimTo before the request",
		.removes = REMOVED_GAPS, .scope = AT_FAILURE,
		.needs = { NEED(pool, 0.3), NEED(packed, 1), NEED_BELOW(hole, 1),
			NEED_BELOW(foreign_caller, 1), NEED_BELOW(stranded, 1) },
		.tests = { SHOWN_BY(pool, 1), SHOWN_BY(late_failure, 8) },
	}, {
		.id = "S7", .name_id = "library-memory",
		.blames = ROW(UNEXPLAINED) | ROW(CONTEXT),
		.name = "libraries allocated memory that no call shows",
		.summaries = {
			"used memory rose by {rose} more than this process allocated",
		},
		.about = "The driver's used memory rises while recorded blocks do not: "
			"communicators (NCCL), handles and workspaces (cuBLAS, cuDNN), kernels "
			"loaded at first use, captured graphs.",
		.source = "NCCL and cuBLAS embed their own runtime; 5 % of the device, at most 1 "
			"GiB, is allowed for the context",
		.would_confirm = "recordings of all processes on the device: another one may have "
			"come",
		.removes = REMOVED_LIBRARIES, .scope = AT_FAILURE,
		.needs = { NEED(creep, 1), NEED_BELOW(others_run, 0.5) },
		.tests = { SHOWN_BY(own_context, 1), SHOWN_BY(libraries, 1),
			SHOWN_BY(graph_capture, 1) },
	}, {
		.id = "S8", .name_id = "gpu-leak",
		.marks = MARKS_GPU_LEAKS,
		.name = "GPU memory leak",
		.summaries = {
			"call sites that only grow hold {leaked} and gain {each_request} with "
				"each request",
			"call sites that only grow hold {leaked}",
		},
		.about = "The minimum that a call site holds between requests keeps rising, all "
			"through the run, over at least 8 requests or iterations, and consists of "
			"blocks that stay. Memory that is merely live at the end is no leak, and "
			"neither is a cache that stops growing.",
		.source = "analysis/growth: growth and leaks; at least half of the shortfall must "
			"be the leak's",
		.would_confirm = "more requests or iterations",
		.removes = REMOVED_LEAK, .scope = AT_FAILURE | AT_END, .base = 0.75,
		.needs = { NEED(leak, 0.5) },
		.tests = { IF(leak, 1, 0.1), IF(growing, 1, 0.05), IF(late_failure, 16, 0.05),
			IF(kv_grown, 1, -0.25), IF(packed, 1, -0.1), IF(geometric, 1, -0.35) },
	}, {
		.id = "S9.H6", .name_id = "page-lock-refused",
		.is_page_lock = true,
		.name = "page-locked host memory ran out",
		.summaries = {
			"{locked} of page-locked host memory was refused; the device had {free} "
				"free and is not the problem",
			"{locked} of page-locked host memory was refused; the device is not the "
				"problem",
			"page-locking host memory was refused; the device is not the problem",
		},
		.about = "The failing call locks host memory, and CUDA reports the same error as "
			"for a full device. The limit is the machine's or the container's: "
			"memory, RLIMIT_MEMLOCK, or the driver's own. The next kernel launch may "
			"report the error once more.",
		.source = "Soup#989; cudaHostAlloc, cudaMallocHost and cudaHostRegister fail with "
			"error 2",
		.would_confirm = "the limits of the container",
		.scope = AT_FAILURE, .needs = { NEED(host_request, 1) },
		.tests = { SHOWN_BY(pinned_rounded, 0.2) },
	}, {
#include "analysis/explain/causes_host.def"
	},
	{ 0 },
};
