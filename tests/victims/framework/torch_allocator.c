/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server on PyTorch's allocator (torch/c10_cuda.c, opened RTLD_LOCAL as Python does): weights, a
 * cache that grows by blocks, activations that come and go, and long-lived small blocks that pin
 * segments. The truth is the allocator's statistics, at random points and at the failure. Sizes are
 * shares of the device's memory; the sequence follows --seed.
 *
 * --mode=serve    until a request fails, exit 1 (default)
 * --mode=capped   the same under a memory fraction
 * --mode=retried  a request succeeds after the cache is released, exit 0
 * --mode=silent   no reports, as cudaMallocAsync
 * --mode=bench    --events=N block events of --bytes=N, then prints the time of each
 * --expandable    expandable segments
 * --era=0..3      shape of the reports
 * --seed=N  --points=N
 */
#include <time.h>

#include "tests/victims/doors.h"
#include "tests/victims/torch/handles.h"
#include "tests/victims/torch/library.h"

enum { LIVE_MAX = 4096, STEPS_A_POINT = 23, PAUSE_NS = 100000 };

static struct {
	const char *mode;
	bool expandable;
	int era;
	uint64_t seed, points, events, bytes;
} options = {
	.mode = "serve",
	.era = TORCH_M,
	.seed = 1,
	.points = 1000,
	.events = 10000000,
	.bytes = 65536,
};
static struct torch_block *live[LIVE_MAX];
static size_t free_bytes, total_bytes;

void connect_ranks(void);
struct torch_block *load_weights(size_t bytes);
struct torch_block *append_kv(size_t bytes);
struct torch_block *run_attention(size_t bytes);
struct torch_block *remember_prefix(size_t bytes);

/* ---- truth ---- */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Far enough from the events around it that a reader's rounding of times does not matter. */
static void pause_here(void)
{
	const struct timespec pause = { 0, PAUSE_NS };
	nanosleep(&pause, NULL);
}

static void say_books(const char *subject)
{
	struct torch_books books = torch.books();
	uint64_t wall = now_ns(CLOCK_REALTIME), monotonic = now_ns(CLOCK_MONOTONIC);
	say("%s time_ns %llu allocated %zu reserved %zu slack %zu hole_small %zu hole_large %zu events %llu monotonic_ns %llu",
	    subject, (unsigned long long)wall, books.allocated, books.reserved,
	    books.reserved - books.allocated, books.hole_small, books.hole_large,
	    (unsigned long long)books.events, (unsigned long long)monotonic);
}

static void say_point(uint64_t number)
{
	char subject[32];
	snprintf(subject, sizeof subject, "point %llu", (unsigned long long)number);
	pause_here();
	say_books(subject);
	pause_here();
}

static void say_reports(void)
{
	struct c10_sums sums = torch.reported();
	say("reported count %llu failures %llu came %lld went %lld mixed %llu",
	    (unsigned long long)sums.reports, (unsigned long long)sums.failures,
	    (long long)sums.came_bytes, (long long)sums.went_bytes, (unsigned long long)sums.mixed);
}

/* ---- the program: who asks ---- */

/* What NCCL, cuBLAS and cuDNN take past PyTorch. */
void connect_ranks(void)
{
	typeof(&handles_open) open;
	typeof(&ncclCommInitRank) communicator;
	typeof(&cublasCreate_v2) blas, dnn;
	const struct torch_function rows[] = {
		{ "handles_open", (void **)&open }, { "ncclCommInitRank", (void **)&communicator },
		{ "cublasCreate_v2", (void **)&blas }, { "cudnnCreate", (void **)&dnn },
	};
	const struct handles_settings settings = {
		(int (*)(unsigned long long *, size_t))(void *)cu.alloc, total_bytes / 8, 32 * MiB
	};
	nccl_UniqueId id = { { [0] = 1, [sizeof id.bytes - 1] = 2 } };
	const char *why = torch_find("libhandles.so", rows, sizeof rows / sizeof *rows);
	void *handle;
	if (why)
		skip(why);
	open(&settings);
	MUST((CUresult)communicator(&handle, 8, id, 7));
	MUST((CUresult)blas(&handle));
	MUST((CUresult)dnn(&handle));
	say("role communication bytes %zu", settings.communicator_bytes);
	say("role library bytes %zu", 2 * settings.handle_bytes);
}

struct torch_block *load_weights(size_t bytes) { return torch.malloc(bytes); }
struct torch_block *append_kv(size_t bytes) { return torch.malloc(bytes); }
struct torch_block *run_attention(size_t bytes) { return torch.malloc(bytes); }
struct torch_block *remember_prefix(size_t bytes) { return torch.malloc(bytes); }

static uint64_t random_number(void)
{
	options.seed ^= options.seed << 13;
	options.seed ^= options.seed >> 7;
	options.seed ^= options.seed << 17;
	return options.seed * 0x2545F4914F6CDD1Dull >> 20;
}

/* From `least` to some `most`, every order of magnitude alike. */
static size_t random_bytes(unsigned least_shift, unsigned most_shift)
{
	unsigned shift = least_shift + (unsigned)(random_number() % (most_shift - least_shift));
	return ((size_t)1 << shift) + random_number() % ((size_t)1 << shift);
}

static struct torch_block *must_have(struct torch_block *block)
{
	if (!block) {
		fprintf(stderr, "victim: out of memory too early\n");
		exit(BROKEN);
	}
	return block;
}

static void load(void)
{
	while (torch.books().allocated < total_bytes / 4) {
		must_have(load_weights(total_bytes / 512 + 4096));
		must_have(load_weights(8192));
	}
}

static struct torch_block *ask(unsigned kind)
{
	if (kind < 2)
		return append_kv(3 * MiB / 2);
	if (kind < 3)
		return remember_prefix(random_bytes(10, 16));
	return run_attention(random_bytes(9, 27));
}

/* One block comes or goes, at a place that is chosen at random. */
static void step(void)
{
	unsigned place = (unsigned)(random_number() % LIVE_MAX),
		 kind = (unsigned)(random_number() % 8);
	if (live[place]) {
		torch.free(live[place]);
		live[place] = NULL;
	} else if (torch.books().allocated < total_bytes / 2) {
		live[place] = must_have(ask(kind));
	}
	if (random_number() % 2048 == 0)
		torch.empty_cache();
}

static void serve(void)
{
	for (uint64_t point = 1; point <= options.points; point++) {
		uint64_t steps = 1 + random_number() % (2 * STEPS_A_POINT);
		while (steps--)
			step();
		say_point(point);
	}
}

/* Ever larger prompts, until one is refused. */
static int grow_until_refused(void)
{
	size_t bytes = total_bytes / 64;
	struct torch_pinned pinned;
	while (run_attention(bytes))
		bytes += bytes / 16;
	say_books("oom");
	MUST(cu.memory(&free_bytes, &total_bytes));
	bytes = (bytes + 511) / 512 * 512;
	say("refused requested %zu free %zu total %zu retries %llu", bytes, free_bytes, total_bytes,
	    (unsigned long long)torch.books().retries);
	if (torch.most_pinned(20 * MiB, &pinned))
		say("pinned segment %llu bytes %zu live %zu count %zu block %llu block_bytes %zu",
		    pinned.segment, pinned.segment_bytes, pinned.live_bytes, pinned.live_count,
		    pinned.block, pinned.block_bytes);
	say_reports();
	say("end state exit 1");
	fprintf(stderr, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %.2f MiB.\n",
	        (double)bytes / (double)MiB);
	return 1;
}

/* Cached segments of one size stand in the way of a larger one, until they are released. */
static int retry(void)
{
	struct torch_block *block;
	unsigned count = 0;
	while (count < LIVE_MAX && torch.books().reserved < free_bytes - free_bytes / 8)
		live[count++] = must_have(run_attention(total_bytes / 64));
	while (count)
		torch.free(live[--count]);
	block = run_attention(free_bytes / 2);
	say_books("retried");
	say("retried requested %zu retries %llu", block ? torch.bytes(block) : 0,
	    (unsigned long long)torch.books().retries);
	say_reports();
	say("end state exit 0");
	return block && torch.books().retries == 1 ? 0 : BROKEN;
}

static int silent(void)
{
	for (unsigned i = 0; i < 8; i++)
		must_have(append_kv(3 * MiB));
	say("end state exit 0");
	return 0;
}

/* Half of the places are taken at any time, so that blocks live for a while. */
static int bench(void)
{
	uint64_t began;
	for (unsigned i = 0; i < LIVE_MAX; i += 2)
		live[i] = must_have(append_kv(options.bytes));
	/* what others do with this machine is not its cost */
	began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (uint64_t n = 0; n < options.events; n++) {
		unsigned place = (unsigned)(n * 2654435761u >> 7) % LIVE_MAX;
		if (live[place]) {
			torch.free(live[place]);
			live[place] = NULL;
		} else {
			live[place] = must_have(append_kv(options.bytes));
		}
	}
	began = now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	say("bench events %llu ns %llu ns_each %.1f", (unsigned long long)options.events,
	    (unsigned long long)began, (double)began / (double)options.events);
	say_reports();
	return 0;
}

static void read_options(int argc, char **argv)
{
	const struct {
		const char *name;
		uint64_t *value;
	} numbers[] = {
		{ "--seed=", &options.seed },
		{ "--points=", &options.points },
		{ "--events=", &options.events },
		{ "--bytes=", &options.bytes },
	};
	for (int i = 1; i < argc; i++) {
		for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++)
			if (!strncmp(argv[i], numbers[n].name, strlen(numbers[n].name)))
				*numbers[n].value = strtoull(argv[i] + strlen(numbers[n].name),
				                             NULL, 10);
		if (!strncmp(argv[i], "--mode=", 7))
			options.mode = argv[i] + 7;
		if (!strncmp(argv[i], "--era=", 6))
			options.era = atoi(argv[i] + 6);
		if (!strcmp(argv[i], "--expandable"))
			options.expandable = true;
	}
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	door_open(argc, argv);
	const char *missing = torch_library_open();
	if (missing)
		skip(missing);
	MUST(cu.memory(&free_bytes, &total_bytes));
	const struct torch_settings settings = {
		.alloc = cu.alloc,
		.release = cu.release,
		.memory = cu.memory,
		.reserve = cu.reserve,
		.create = cu.create,
		.handle_release = cu.handle_release,
		.map = cu.map,
		.unmap = cu.unmap,
		.set_access = cu.set_access,
		.era = (enum torch_era)options.era,
		.expandable = options.expandable,
		.silent = !strcmp(options.mode, "silent"),
		.reserved_max = strcmp(options.mode, "capped") ? 0 : total_bytes * 3 / 4,
	};
	torch.open(&settings);
	if (!strcmp(options.mode, "bench"))
		return bench();
	if (!strcmp(options.mode, "retried"))
		return retry();
	if (settings.silent)
		return silent();
	connect_ranks();
	load();
	serve();
	return grow_until_refused();
}
