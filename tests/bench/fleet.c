/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet DIRECTORY COUNT: writes the recordings of a fleet of servers, COUNT of them below
 * DIRECTORY/NODE/, and prints the truth about it as JSON, one line for each process.
 *
 * Nothing is random: process i is on node i % 40 and serves model i % 4, and the remainders below
 * decide what is wrong with it. Each has two call sites and a request loop of 24 turns.
 */
#include <inttypes.h>
#include <sys/stat.h>
#include "interpose/abi/gpu_processes.h"
#include "tests/unit/fixtures/recording_maker.h"

static const struct maker_plan plan = { 12, 16384, 2, 4096, 512, 64, 16, 32, 4, 0, 0 };

#define DAY_NS 86400000000000ull
#define FIRST_DAY_NS 1795305600000000000ull /* 2026-11-22 */
#define TOTAL_BYTES (16 * GiB)
#define CODE 0x401000ull
enum { NODES = 40, DAYS = 7, TURNS = 24, SITES = 5 };

/* What a process does. */
struct process {
	unsigned number, node, day, model, version;
	bool leaks, fails, retries, shares, fragments;
	uint64_t leak_bytes;    /* of each turn */
	uint64_t weight_bytes, tenant_bytes, hole_bytes;
};

static const char *const models[] = { "llama-8b", "mistral-7b", "qwen-14b", "gemma-9b" };
static const char *const versions[] = { "2.8.0", "2.9.0" };
/* by number of the stack, from 1 */
static const char *const functions[SITES] = { "load_weights", "append_session", "run_layer",
					      "keep_result", "grow_cache" };

static struct process process_of(unsigned number)
{
	struct process p = {
		.number = number,
		.node = number % NODES,
		.day = number % DAYS,
		.model = number % 4,
		.version = number / 3 % 2,
	};

	p.leaks = number % 5 == 0;
	p.fails = number % 20 == 3;
	p.retries = number % 10 == 7;
	p.shares = p.node % 8 == 2;
	p.fragments = number % 25 == 11;
	p.weight_bytes = (p.model + 2) * GiB;
	/* the newer version leaks twice as much */
	p.leak_bytes = p.leaks ? (4 + 4 * p.version) * MiB : 0;
	p.tenant_bytes = p.shares ? (p.node + 1) * 64 * MiB : 0;
	p.hole_bytes = p.fragments ? (number % 7 + 1) * 128 * 1024 : 0;
	return p;
}

/* ---- META ---- */

static void describe(struct maker *maker, const struct process *p)
{
	char text[256];

	maker->h->pid = 1000 + p->number;
	maker->h->start_realtime_ns = FIRST_DAY_NS + p->day * DAY_NS + p->number * 1000000ull;
	maker_meta(maker, CUF_META_EXE, 0, "/usr/bin/python3.11");
	snprintf(text, sizeof text, "python3 serve.py --model %s --port %u", models[p->model],
		 8000 + p->number % 100);
	maker_meta(maker, CUF_META_CMDLINE, 0, text);
	snprintf(text, sizeof text, "node%02u", p->node);
	maker_meta(maker, CUF_META_HOSTNAME, 0, text);
	snprintf(text, sizeof text, "framework=PyTorch\nversion=%s\nbackend=native\n",
		 versions[p->version]);
	maker_meta(maker, CUF_META_FRAMEWORK, 0, text);
	maker_meta(maker, CUF_META_HOOK, 100, "cuMemAlloc_v2");
	maker_meta(maker, CUF_META_HOOK, 200, "cudaMalloc");
	maker_module(maker, 1, CODE, CODE + 0x100000, "/srv/app/libserve.so");
	for (unsigned i = 0; i < SITES; i++) {
		maker_stack(maker, i + 1, CODE + i * 0x1000, 2);
		maker_meta(maker, CUF_META_FUNCTION, CODE + i * 0x1000, functions[i]);
		maker_meta(maker, CUF_META_FUNCTION, CODE + i * 0x1000 + 16, "serve_request");
	}
}

/* What NVML reports of the device: this process and another one. */
static void add_tenant(struct maker *maker, const struct process *p, uint64_t own_bytes)
{
	struct cuf_meta_gpu_processes *head = (void *)((uint8_t *)maker_section(maker, CUF_SEC_META) +
						       maker->h->meta_used);
	struct cuf_gpu_process *holders = (void *)(head + 1);

	*head = (struct cuf_meta_gpu_processes){
		.meta = { CUF_META_GPU_PROCESSES, 0, sizeof *head + 2 * sizeof *holders,
			  maker->now_ns, 0, 0, 0 },
		.total_bytes = TOTAL_BYTES,
		.used_bytes = own_bytes + p->tenant_bytes,
		.free_bytes = TOTAL_BYTES - own_bytes - p->tenant_bytes,
		.reported_count = 2,
		.stored_count = 2,
	};
	holders[0] = (struct cuf_gpu_process){ maker->h->pid, CUF_GPU_PROCESS_SEEN, own_bytes,
					       "python3" };
	holders[1] = (struct cuf_gpu_process){ 777777, CUF_GPU_PROCESS_SEEN, p->tenant_bytes,
					       "notebook" };
	maker->h->meta_used += head->meta.bytes;
}

/* ---- what happens ---- */

static uint64_t place;

static uint64_t take(struct maker *maker, uint64_t bytes, uint32_t site)
{
	uint64_t at = place;

	place += (bytes + 2 * MiB - 1) / (2 * MiB) * 2 * MiB;
	maker_alloc(maker, at, bytes, site);
	return at;
}

/* Small blocks that share pages; all but the first of each page are freed. */
static void fragment(struct maker *maker, const struct process *p)
{
	for (unsigned page = 0; page < 8; page++) {
		uint64_t at = 0x7f0000000000 + page * 2 * MiB;

		maker_alloc(maker, at, 2 * MiB - p->hole_bytes, 4);
		maker_alloc(maker, at + 2 * MiB - p->hole_bytes, p->hole_bytes, 5);
		maker_free(maker, at + 2 * MiB - p->hole_bytes);
	}
}

static uint64_t serve(struct maker *maker, const struct process *p)
{
	uint64_t held = p->weight_bytes;

	take(maker, p->weight_bytes, 1);
	for (unsigned turn = 0; turn < TURNS; turn++) {
		uint64_t scratch = take(maker, 64 * MiB, 3);

		if (p->leaks)
			take(maker, p->leak_bytes, 2);
		held += p->leak_bytes;
		maker_free(maker, scratch);
		maker_sample(maker);
	}
	if (p->fragments)
		fragment(maker, p);
	return held;
}

static void finish(struct maker *maker, const struct process *p, uint64_t held)
{
	uint64_t free_bytes = TOTAL_BYTES - held - p->tenant_bytes - 512 * MiB;

	maker_free_memory(maker, 0, free_bytes, TOTAL_BYTES);
	if (p->retries) { /* served at the second attempt */
		maker_fail(maker, 0, 128 * MiB, free_bytes, TOTAL_BYTES, 3);
		take(maker, 128 * MiB, 3);
	}
	if (p->fails)
		maker_fail(maker, 0, free_bytes + GiB, free_bytes, TOTAL_BYTES, 5);
	if (p->shares)
		add_tenant(maker, p, held);
	maker_end(maker, CUF_END_EXIT, p->fails);
}

static void print_truth(const struct process *p, uint64_t held)
{
	printf("{\"pid\":%u,\"host\":\"node%02u\",\"day\":%u,\"model\":\"%s\",\"version\":\"%s\","
	       "\"leaked_bytes\":%" PRIu64 ",\"fails\":%s,\"retries\":%s,\"tenant_bytes\":%" PRIu64
	       ",\"hole_bytes\":%" PRIu64 ",\"held_bytes\":%" PRIu64 "}\n",
	       1000 + p->number, p->node, p->day, models[p->model], versions[p->version],
	       p->leak_bytes * TURNS, p->fails ? "true" : "false", p->retries ? "true" : "false",
	       p->tenant_bytes, p->hole_bytes, held);
}

static void write_process(const char *directory, unsigned number)
{
	struct process p = process_of(number);
	struct maker *maker = maker_new(&plan);
	char path[4096];
	uint64_t held;

	place = 0x700000000000;
	maker->step_ns = 500000000; /* half a second an event */
	describe(maker, &p);
	maker_device(maker, 0, TOTAL_BYTES);
	held = serve(maker, &p);
	finish(maker, &p, held);
	snprintf(path, sizeof path, "%s/node%02u", directory, p.node);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/node%02u/cuflight.python3.node%02u.%u.cuf", directory,
		 p.node, p.node, maker->h->pid);
	maker_write(maker, path);
	maker_free_all(maker);
	print_truth(&p, held);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: fleet DIRECTORY COUNT\n");
		return 2;
	}
	mkdir(argv[1], 0700);
	for (unsigned i = 0; i < (unsigned)atoi(argv[2]); i++)
		write_process(argv[1], i);
	return 0;
}
