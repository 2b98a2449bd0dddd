/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes seed recordings into the folder named by the first argument: small ones, with something in
 * every section.
 */
#include "interpose/abi/gpu_processes.h"
#include "tests/unit/fixtures/recording_maker.h"

static struct maker *begin(void)
{
	static const struct maker_plan tiny = { 4, 1024, 4, 512, 64, 64, 16, 4, 4, 4, 512 };
	struct maker *maker = maker_new(&tiny);
	maker_device(maker, 0, 16 * GiB);
	maker_stack(maker, 1, 0x401000, 3);
	maker_stack(maker, 2, 0x402000, 2);
	maker_meta(maker, CUF_META_EXE, 0, "/usr/bin/victim");
	maker_meta(maker, CUF_META_HOOK, 100, "cuMemAlloc_v2");
	maker_meta(maker, CUF_META_LIMITS, 0, "memory.max=1000000\nMemTotal=2000000\n");
	maker_meta(
		maker, CUF_META_ALLOCATOR, CUF_MOMENT_END,
		"name=glibc\nrole=process\nobject=l\nlive_bytes=999\nfree_bytes=99999999\ntop_bytes=9\nfree.64=7,500\n");
	maker_meta(
		maker, CUF_META_ALLOCATOR, CUF_MOMENT_END,
		"name=jemalloc\nrole=private\nobject=j\nlive_bytes=9\nscattered_bytes=99999999\npage_bytes=4096\nextent.8=3,131072\nslab.64=1,64\n");
	maker_meta(
		maker, CUF_META_MEMORY, CUF_MOMENT_END,
		"heap_bytes=99999\nanonymous_bytes=99999\nfile_bytes=9\nwhole=1\nmapped_anonymous_bytes=8\n");
	maker_meta(maker, CUF_META_WAIT, 0, "signal=9\noom_kill=1\n");
	maker_meta(maker, CUF_META_NOTE, CUF_NOTE_DEEPBIND, "libx.so");
	maker_meta(maker, CUF_META_FUNCTION, 0x401000, "main+0x10");
	maker_module(maker, 1, 0x400000, 0x500000, "/usr/bin/victim");
	maker_meta(maker, CUF_META_MODULE_END, 1, "");
	return maker;
}

static void finish(struct maker *maker, const char *directory, const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	maker_write(maker, path);
	maker_free_all(maker);
}

static void kinds(const char *directory)
{
	struct maker *maker = begin();
	maker_alloc(maker, 0x700000000000, 3 * MiB, 1);
	maker_alloc(maker, 0x700000400000, 1000, 1);
	maker_born(maker, CUF_KIND_ASYNC, 0, 0x710000000000, 1 * MiB, 1, 7, 0);
	maker_born(maker, CUF_KIND_ASYNC, 0, 0x710000400000, 1 * MiB, 1, 7, 0);
	maker_born(maker, CUF_KIND_GRAPH, 0, 1, 8 * MiB, 1, 4 * MiB, 0);
	maker_born(maker, CUF_KIND_VMM, 0, 5, 4 * MiB, 1, 0, CUF_EVENT_EXPORTED);
	maker_born(maker, CUF_KIND_RESERVATION, CUF_DEVICE_NONE, 0x720000000000, 1 * GiB, 1, 0, 0);
	maker_born(maker, CUF_KIND_MAPPING, 0, 0x720000000000, 4 * MiB, 1, 5, 0);
	maker_event(maker, (struct cuf_event){
		.op = CUF_OP_POOL_LEVEL, .addr = 7, .bytes = 32 * MiB, .aux = 2 * MiB,
	});
	maker_free_memory(maker, 0, 10 * GiB, 16 * GiB);
	maker_refused_free(maker, CUF_KIND_DEVICE, 0x700000000000);
	maker_fail(maker, 0, 20 * GiB, 10 * GiB, 16 * GiB, 2);
	maker_sample(maker);
	maker_end(maker, CUF_END_EXIT, 1);
	maker_free(maker, 0x700000000000);
	finish(maker, directory, "kinds.cuf");
}

static void leak(const char *directory, const char *name, bool host, unsigned mode)
{
	struct maker *maker = begin();
	maker->h->options_host_mode = mode;
	for (unsigned i = 0; i < 12; i++) {
		maker->thread = i % 2;
		if (host) {
			maker_host_alloc(maker, 0x10000 + i * 64, 48, 1);
			maker_host_alloc(maker, 0x50000, 100000, 2);
			maker_host_free(maker, 0x50000);
		} else {
			maker_alloc(maker, 0x700000000000 + i * 512, 512, 1);
			maker_alloc(maker, 0x710000000000, 4 * MiB, 2);
			maker_free(maker, 0x710000000000);
		}
	}
	maker->h->replaced = 1;
	maker_sample(maker);
	finish(maker, directory, name);
}

/* A framework's blocks in a segment and in a mapped run, its giving up after chunks that were
 * rolled back, roles, a cached segment. */
static void framework(const char *directory)
{
	struct maker *maker = begin();
	maker->reserved[0] = 24 * MiB;
	maker_meta(maker, CUF_META_FRAMEWORK, 0,
	           "framework=PyTorch\nversion=2.9.0\nbackend=native\nstreams=0\n");
	maker_meta(maker, CUF_META_CODE, 1, "LlamaModel.load_weights\n/opt/llama.py\n400\n");
	maker_module(maker, 2, 0x600000, 0x700000, "/opt/libonnxruntime_providers_cuda.so");
	maker_alloc(maker, 0x700000000000, 20 * MiB, 1);
	maker_alloc(maker, 0x710000000000, 20 * MiB, 1);
	maker_born(maker, CUF_KIND_RESERVATION, CUF_DEVICE_NONE, 0x720000000000, 1 * GiB, 1, 0, 0);
	maker_born(maker, CUF_KIND_VMM, 0, 5, 2 * MiB, 1, 0, 0);
	maker_born(maker, CUF_KIND_MAPPING, 0, 0x720000000000, 2 * MiB, 1, 5, 0);
	maker_block(maker, 0, 0x700000100000, 2 * MiB, 1);
	maker_block(maker, 0, 0x720000000200, 512, 2);
	maker_block(maker, 0, 0x710000000000, 1 * MiB, 2);
	maker_block_freed(maker, 0x710000000000);
	maker_event_in(maker, MAKER_FRAMEWORK,
	               (struct cuf_event){ .addr = 0x700000000000,
	                                   .op = CUF_OP_ROLE,
	                                   .kind = CUF_KIND_DEVICE,
	                                   .extra = CUF_ROLE_KV });
	maker_born(maker, CUF_KIND_VMM, 0, 6, 2 * MiB, 1, 0, 0);
	maker_fail_of(maker, CUF_KIND_VMM, 0, 2 * MiB, 0, 16 * GiB, 2);
	maker_freed(maker, CUF_KIND_VMM, 6);
	maker_fail_of(maker, CUF_KIND_FRAMEWORK, 0, 9 * MiB, CUF_UNKNOWN, CUF_UNKNOWN, 2);
	maker_free(maker, 0x700000000000);
	maker_end(maker, CUF_END_EXIT, 1);
	finish(maker, directory, "framework.cuf");
}

static void say(struct maker *maker, unsigned op, unsigned source, uint64_t name, uint64_t id)
{
	maker_event_in(maker, source ? MAKER_FRAMEWORK : MAKER_DEVICE,
	               (struct cuf_event){ .op = CUF_OP_PHASE,
	                                   .addr = name,
	                                   .aux = id,
	                                   .extra = cuf_phase_extra(op, source),
	                                   .device = CUF_DEVICE_NONE });
}

/* What NVML reported of the device's other processes at the failure. */
static void tenants(struct maker *maker, uint64_t incident)
{
	static const struct cuf_gpu_process two[] = {
		{ 4242, CUF_GPU_PROCESS_COMPUTE | CUF_GPU_PROCESS_SEEN, 1 * GiB, "victim" },
		{ 77, CUF_GPU_PROCESS_GRAPHICS, CUF_UNKNOWN, "other" }
	};
	struct cuf_meta_gpu_processes *r = (void *)((uint8_t *)maker_section(maker, CUF_SEC_META) +
	                                            maker->h->meta_used);
	*r = (struct cuf_meta_gpu_processes){ .meta = { .type = CUF_META_GPU_PROCESSES,
		                                        .bytes = sizeof *r + sizeof two,
		                                        .time_ns = maker->now_ns,
		                                        .number = incident },
		                              .total_bytes = 16 * GiB,
		                              .used_bytes = 12 * GiB,
		                              .free_bytes = 4 * GiB,
		                              .reserved_bytes = CUF_UNKNOWN,
		                              .reported_count = 2,
		                              .stored_count = 2 };
	memcpy(r + 1, two, sizeof two);
	maker->h->meta_used += r->meta.bytes;
}

/* Marked requests with phases inside, ranges of NVTX, a capture, a sampler whose mean changed, and
 * a failure in the middle of it. */
static void served(const char *directory)
{
	struct maker *maker = begin();
	maker->h->options_host_mode = CUF_HOST_SAMPLED;
	maker->h->sample_mean_bytes = 512 << 10;
	maker_meta(maker, CUF_META_PHASE, 1, "generate");
	maker_meta(maker, CUF_META_PHASE, 2, "torch: forward");
	maker_meta(maker, CUF_META_SAMPLE, 4096, "3");
	maker_alloc(maker, 0x700000000000, 1 * GiB, 1);
	maker_event(maker, (struct cuf_event){ .op = CUF_OP_CAPTURE, .addr = 9, .extra = 1 });
	maker_event(maker, (struct cuf_event){
		.op = CUF_OP_NODE, .addr = 0x740000000000, .bytes = 4096, .kind = CUF_KIND_GRAPH,
	});
	maker_event(maker, (struct cuf_event){ .op = CUF_OP_CAPTURE, .addr = 9 });
	for (unsigned i = 0; i < 3; i++) {
		maker->thread = i % 2;
		say(maker, CUF_PHASE_REQUEST_BEGIN, CUF_PHASE_PROGRAM, 1, i);
		say(maker, CUF_PHASE_PUSH, CUF_PHASE_NVTX, 2, 0);
		maker_alloc(maker, 0x710000000000, (i + 1) * MiB, 2);
		maker_host_alloc(maker, 0x10000 + i * 64, 48, 1);
		say(maker, CUF_PHASE_POP, CUF_PHASE_NVTX, 2, 0);
		say(maker, CUF_PHASE_MARK, CUF_PHASE_NVTX, 2, 0);
		maker_free(maker, 0x710000000000);
		say(maker, CUF_PHASE_REQUEST_END, CUF_PHASE_PROGRAM, 1, i);
	}
	say(maker, CUF_PHASE_START, CUF_PHASE_PROGRAM, 1, 5);
	maker_fail(maker, 0, 20 * GiB, 4 * GiB, 16 * GiB, 2)->phase = 1;
	tenants(maker, 1);
	say(maker, CUF_PHASE_END, CUF_PHASE_PROGRAM, 1, 5);
	maker_sample(maker);
	maker_end(maker, CUF_END_ABORT, 6);
	finish(maker, directory, "served.cuf");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	kinds(argv[1]);
	framework(argv[1]);
	served(argv[1]);
	leak(argv[1], "device_leak.cuf", false, 2);
	leak(argv[1], "host_leak.cuf", true, 2);
	leak(argv[1], "sampled.cuf", true, 1);
	return 0;
}
