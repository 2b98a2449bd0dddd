/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sample of scripts/quickstart: a small inference server that uses memory as real ones do. It
 * loads weights at the start. Its KV cache of blocks grows with every sequence and is freed at the
 * end of the sequence. It has activations for each step and a prompt cache of fixed size. It has
 * one fault: it remembers a LoRA delta for each session and never drops it. Requests are a fixed
 * sequence. It serves until the device is full, reports that as CUDA programs do, and exits 1.
 */
#include "tests/victims/doors.h"

enum {
	LAYERS = 32,
	SLOTS = 24,
	BLOCKS_MAX = 64,
	PROMPTS = 8,
	REQUESTS_MAX = 100000,
	STEP_US = 300
};

struct sequence { CUdeviceptr blocks[BLOCKS_MAX]; int count, length; };

static struct model {
	size_t layer_bytes, kv_block_bytes, activation_bytes, delta_bytes, prompt_bytes;
} model;
static struct sequence slots[SLOTS];
static CUdeviceptr prompts[PROMPTS];
static size_t remembered_bytes, remembered_count;

void give_up(const char *where, size_t bytes, CUresult result);
CUdeviceptr device_malloc(const char *where, size_t bytes);
void load_weights(void);
void append_kv(struct sequence *sequence);
void finish_sequence(struct sequence *sequence);
void run_attention(void);
void remember_adapter_delta(void);
void cache_prompt(int request);
void serve_request(int request);

void give_up(const char *where, size_t bytes, CUresult result)
{
	size_t free_bytes = 0, total = 0;
	MUST(cu.memory(&free_bytes, &total));
	say("incident api %s requested %zu outcome fatal site %s attempts 1 free %zu total %zu",
	    api_of("cudaMalloc", "cuMemAlloc_v2"), bytes, where, free_bytes, total);
	say("leak site remember_adapter_delta kind device bytes %zu count %zu per_request %zu",
	    remembered_bytes, remembered_count, model.delta_bytes);
	say("end state exit 1");
	fprintf(stderr,
	        "CUDA error %d: out of memory. Tried to allocate %.2f MiB in %s (device 0; %.2f GiB total; %.2f MiB free)\n",
	        result, (double)bytes / (double)MiB, where, (double)total / 1073741824.0,
	        (double)free_bytes / (double)MiB);
	exit(1);
}

CUdeviceptr device_malloc(const char *where, size_t bytes)
{
	CUdeviceptr ptr = 0;
	CUresult result = cu.alloc(&ptr, bytes);
	if (result)
		give_up(where, bytes, result);
	return ptr;
}

/* Each layer in four blocks, as checkpoints are: attention, output, two of the feed-forward part.
 */
void load_weights(void)
{
	static const unsigned eighths[] = {2, 1, 3, 2};
	for (int layer = 0; layer < LAYERS; layer++)
		for (int part = 0; part < 4; part++)
			device_malloc("load_weights", model.layer_bytes * eighths[part] / 8);
}

void append_kv(struct sequence *sequence)
{
	if (sequence->count < BLOCKS_MAX)
		sequence->blocks[sequence->count++] = device_malloc("append_kv",
		                                                    model.kv_block_bytes);
}

void finish_sequence(struct sequence *sequence)
{
	while (sequence->count)
		MUST(cu.release(sequence->blocks[--sequence->count]));
	sequence->length = 0;
}

void run_attention(void)
{
	CUdeviceptr scores = device_malloc("run_attention", model.activation_bytes);
	CUdeviceptr output = device_malloc("run_attention", model.activation_bytes / 2);
	usleep(STEP_US); /* the kernels */
	MUST(cu.release(output));
	MUST(cu.release(scores));
}

/* the fault: nobody ever forgets these */
void remember_adapter_delta(void)
{
	device_malloc("remember_adapter_delta", model.delta_bytes);
	remembered_bytes += model.delta_bytes;
	remembered_count++;
}

void cache_prompt(int request)
{
	CUdeviceptr *slot = &prompts[request % PROMPTS];
	if (!*slot)
		*slot = device_malloc("cache_prompt", model.prompt_bytes);
}

void serve_request(int request)
{
	struct sequence *sequence = &slots[request % SLOTS];
	int steps = 4 + request * 11 % 24;
	finish_sequence(sequence);
	cache_prompt(request);
	for (int step = 0; step < steps; step++) {
		append_kv(sequence);
		run_attention();
	}
	sequence->length = steps;
	remember_adapter_delta();
}

/* All sizes follow from what is free, so that some hundred requests fill any device. */
static void size_model(size_t free_bytes)
{
	model.layer_bytes = (free_bytes * 45 / 100 / LAYERS + 8 * GPU_PAGE) / (8 * GPU_PAGE) * 8 *
	                    GPU_PAGE;
	model.kv_block_bytes = (free_bytes / 3000 + GPU_PAGE) / GPU_PAGE * GPU_PAGE;
	model.activation_bytes = model.kv_block_bytes * 2;
	model.prompt_bytes = model.kv_block_bytes;
	model.delta_bytes = (free_bytes / 1000 + 512 * KiB) / (512 * KiB) * (512 * KiB);
}

int main(int argc, char **argv)
{
	door_open(argc, argv);
	size_model(free_now());
	load_weights();
	for (int request = 0; request < REQUESTS_MAX; request++)
		serve_request(request);
	fprintf(stderr, "victim: %d requests served and memory left\n", REQUESTS_MAX);
	return BROKEN;
}
