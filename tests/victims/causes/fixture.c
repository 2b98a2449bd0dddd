/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause_fixture NAME [--seed=N] [--scale=F] [--value=N] [--by-bytes=N] [--apart] [--no-tenant]
 * [--whole] [--doubled] [--idle-tenant] [--holes] [--slow]: plays one scenario.
 * cause_fixture --list: prints their names and the MiB of the memory cgroup that each needs, 0 for
 * none.
 * cause_fixture NAME --settings [--seed=N] ...: prints the options that its user would have
 * written, which the caller adds to the command line.
 *
 * This file has the command line, the random numbers, the device and the truth. The scripts are in
 * the other files.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>

#define say say_door /* the door brings its own */
#include "tests/victims/doors.h"
#undef say
#undef KiB
#undef MiB
#include "tests/victims/causes/fixture.h"
#include "tests/victims/torch/c10_cuda.h"

struct request request = {.scale = 1, .value = UNKNOWN};
size_t device_total;
/* what other processes would have had, with --no-tenant: sizes of the scenario follow the rest */
static size_t absent_bytes;
static uint64_t random_state;

static uint64_t random_next(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

double between(double low, double high)
{
	return low + (high - low) * ((double)(random_next() >> 11) / 9007199254740992.0);
}
unsigned between_whole(unsigned low, unsigned high)
{
	return low + (unsigned)(random_next() % (high - low + 1));
}
bool chance(double probability) { return between(0, 1) < probability; }
size_t whole(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
size_t around(size_t bytes)
{
	return whole((size_t)((double)bytes * between(0.7, 1.3) * request.scale), KiB);
}
site *pick(site *const *sites, size_t count) { return sites[random_next() % count]; }

void say(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

void say_not(const char *ids)
{
	char id[16];
	for (int used = 0; sscanf(ids, "%15s%n", id, &used) == 1; ids += used)
		say("not %s", id);
}

/* ---- time ---- */

enum { SLOWER = 10 };

static uint64_t clock_us(clockid_t clock)
{
	struct timespec t;
	MUST(clock_gettime(clock, &t));
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void sleep_us(uint64_t us)
{
	nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

void pause_us(unsigned us) { sleep_us(request.slow ? SLOWER * (uint64_t)us : us); }

void slow_down(void)
{
	static __thread uint64_t last_us, owed_us;

	if (!request.slow)
		return;
	if (last_us)
		owed_us += (SLOWER - 1) * (clock_us(CLOCK_THREAD_CPUTIME_ID) - last_us);
	if (owed_us >= 1000) {
		sleep_us(owed_us);
		owed_us = 0;
	}
	last_us = clock_us(CLOCK_THREAD_CPUTIME_ID);
}

/* ---- the device ---- */

size_t share_of(double share) { return whole((size_t)((double)device_total * share), MiB); }

device_ptr device_malloc(size_t bytes)
{
	CUdeviceptr ptr = 0;
	slow_down();
	return cu.alloc(&ptr, bytes) ? 0 : ptr;
}

void device_free(device_ptr ptr) { MUST(cu.release(ptr)); }
size_t device_room(void) { return free_now() - absent_bytes; }
void device_use(int device) { door_use(device); }
void device_synchronize(void) { MUST(cu.synchronize()); }

int device_count(void)
{
	int count = 0;
	MUST(cu.device_count(&count));
	return count;
}

device_ptr stream_new(void)
{
	CUstream stream;
	MUST(cu.stream_create(&stream, 1));
	return (device_ptr)(uintptr_t)stream;
}

device_ptr pool_new(void)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	cuuint64_t keep = UINT64_MAX;
	CUmemoryPool pool;
	MUST(cu.pool_create(&pool, &props));
	MUST(cu.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
	return (device_ptr)(uintptr_t)pool;
}

device_ptr pool_malloc(device_ptr pool, device_ptr stream, size_t bytes)
{
	CUdeviceptr ptr = 0;
	slow_down();
	return cu.alloc_pool(&ptr, bytes, (CUmemoryPool)(uintptr_t)pool,
	                     (CUstream)(uintptr_t)stream)
	               ? 0
	               : ptr;
}

void pool_free(device_ptr ptr, device_ptr stream)
{
	MUST(cu.free_async(ptr, (CUstream)(uintptr_t)stream));
}

void *pinned_malloc(size_t bytes)
{
	void *ptr = NULL;
	return cu.pinned(&ptr, bytes, 0) ? NULL : ptr;
}

void pinned_free(void *ptr) { MUST(cu.pinned_free(ptr)); }

void device_functions(struct torch_settings *s)
{
	s->alloc = cu.alloc;
	s->release = cu.release;
	s->memory = cu.memory;
	s->reserve = cu.reserve;
	s->create = cu.create;
	s->handle_release = cu.handle_release;
	s->map = cu.map;
	s->unmap = cu.unmap;
	s->set_access = cu.set_access;
}

static void *driver_function(const char *name)
{
	static void *driver;
	if (!driver)
		driver = open_driver();
	return driver ? dlsym(driver, name) : NULL;
}

bool kernel_launch(void)
{
	static CUresult (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned,
	                          unsigned, unsigned, CUstream, void **, void **);
	if (!launch)
		*(void **)&launch = driver_function("cuLaunchKernel");
	return !launch(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

void module_load(void)
{
	static CUresult (*load)(void **, const void *);
	void *module;
	if (!load)
		*(void **)&load = driver_function("cuModuleLoadData");
	if (load(&module, ""))
		give_up("cuModuleLoadData", 0);
}

void graph_capture_begin(device_ptr stream)
{
	MUST(cu.capture_begin((CUstream)(uintptr_t)stream, 2 /* relaxed */));
}

void graph_capture_end(device_ptr stream)
{
	CUgraph graph;
	CUgraphExec executable;
	MUST(cu.capture_end((CUstream)(uintptr_t)stream, &graph));
	MUST(cu.graph_instantiate(&executable, graph, 0));
	MUST(cu.graph_launch(executable, (CUstream)(uintptr_t)stream));
}

/* the other process (--hold LEAVES): allocates all but LEAVES bytes, reports when it has them, and
 * ends with its standard input */
static int hold(int argc, char **argv)
{
	char byte;
	size_t leaves = strtoull(argv[2], NULL, 10), room;
	door_open(argc, argv);
	room = free_now();
	take(room > leaves ? room - leaves : GPU_PAGE);
	say("holds");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	_exit(0);
}

void process_holding(size_t bytes, bool recorded)
{
	int to[2], from[2];
	char text[32], line[64] = "";
	ssize_t n = 1;
	if (request.no_tenant) {
		absent_bytes += bytes;
		return;
	}
	snprintf(text, sizeof text, "%zu", free_now() - bytes);
	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		exit(BROKEN);
	if (!fork()) {
		if (!recorded)
			unsetenv("LD_PRELOAD");
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		execl("/proc/self/exe", program_invocation_name, "--hold", text, (char *)NULL);
		_exit(BROKEN);
	}
	close(from[1]);
	while (n > 0 && !memchr(line, 'h', sizeof line)) /* of "holds" */
		n = read(from[0], memset(line, 0, sizeof line), sizeof line);
	if (n <= 0)
		exit(BROKEN);
}

void give_up(const char *what, size_t bytes)
{
	/* of several threads that are refused, one ends the process */
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&once);
	noise_end();
	say("end state exit 1");
	fprintf(stderr, "CUDA error 2: out of memory. Tried to allocate %.2f MiB in %s\n",
	        (double)bytes / (double)MiB, what);
	exit(1);
}

device_ptr take_bytes(site *at, const char *what, size_t bytes)
{
	device_ptr ptr = at(bytes);
	if (!ptr)
		give_up(what, bytes);
	return ptr;
}

/* ---- sites: the names that reports show ---- */

#define SITE(name) device_ptr name(size_t bytes) { return device_malloc(bytes); }
SITE(load_tensors) SITE(load_state_dict) SITE(llama_load_tensors) SITE(read_checkpoint)
SITE(allocate_kv_cache) SITE(llama_kv_cache) SITE(create_buffers)
SITE(append_kv) SITE(dynamic_layer_update) SITE(extend_cache)
SITE(mlp_forward) SITE(attention_forward) SITE(run_step)
SITE(compute_logits) SITE(dummy_sampler_run) SITE(vocab_projection)
SITE(create_slot_buffers) SITE(allocate_batch) SITE(worker_request)
SITE(remember_session) SITE(keep_outputs) SITE(track_history)
SITE(prompt_cache_insert) SITE(lru_put) SITE(memoize)
SITE(capture_graph) SITE(workspace) SITE(jit_buffer) SITE(adapter_load) SITE(legacy_pool_alloc) SITE(shrinking_arena_extend)

/* ---- what every program does ---- */

struct model model_of(size_t bytes)
{
	static const unsigned eighths[] = {2, 1, 3, 2};
	struct model model = {
		.layers = between_whole(16, 48),
		.at = PICK(load_tensors, load_state_dict, llama_load_tensors, read_checkpoint),
	};
	size_t layer = bytes / model.layers, sum = 0;
	for (int i = 0; i < 3; i++)
		sum += model.part[i] =
			(size_t)((double)layer * eighths[i] / 8 * between(0.7, 1.2)) / KiB * KiB;
	model.part[3] = (layer - sum) / KiB * KiB;
	model.bytes = model.layers * (sum + model.part[3]);
	return model;
}

void tenant_of(unsigned percent)
{
	unsigned long long mib = strtoull(getenv("SIMCUDA_TOTAL"), NULL, 10) * 1024 * percent / 100;
	char bytes[32];

	if (request.no_tenant) {
		absent_bytes = mib * MiB;
		return;
	}
	snprintf(bytes, sizeof bytes, "%lluMiB", mib);
	setenv("SIMCUDA_OTHER", bytes, 1);
}

void model_load(const struct model *model)
{
	for (unsigned layer = 0; layer < model->layers; layer++) {
		for (int part = 0; part < 4; part++)
			take_bytes(model->at, "load", model->part[part]);
		if (layer % 4 == 0)
			noise(1);
	}
}

enum { NOISE_SLOTS = 6 };
struct noise { device_ptr slot[NOISE_SLOTS]; uint64_t turn; };
static struct noise noise_here, noise_there;
static pthread_t noise_thread;
static bool noise_runs;

/* Slot i always holds the same bytes, so that what noise takes of the device is soon constant.
 * Refusals are nobody's concern here. */
static void noise_round(struct noise *n)
{
	unsigned i = (unsigned)(n->turn++ * 7 % NOISE_SLOTS);
	if (n->slot[i])
		device_free(n->slot[i]);
	n->slot[i] = workspace((16 + i * 24) * KiB);
}

void noise(unsigned rounds)
{
	while (rounds--)
		noise_round(&noise_here);
}

static uint64_t worked_by_others_us(void)
{
	return clock_us(CLOCK_PROCESS_CPUTIME_ID) - clock_us(CLOCK_THREAD_CPUTIME_ID);
}

/* Only while the others work, too: when they wait for a processor or are asleep, this is no program
 * that goes on without them. */
static void *noise_play(void *unused)
{
	uint64_t seen = worked_by_others_us();
	(void)unused;
	door_enter();
	for (; __atomic_load_n(&noise_runs, __ATOMIC_ACQUIRE); pause_us(200))
		if (worked_by_others_us() >= seen + 100) {
			noise_round(&noise_there);
			seen = worked_by_others_us();
		}
	return NULL;
}

void noise_begin(void)
{
	/* from now on it takes no more of the device than this */
	for (int i = 0; i < NOISE_SLOTS; i++)
		noise_round(&noise_there);
	noise_runs = true;
	if (pthread_create(&noise_thread, NULL, noise_play, NULL))
		exit(BROKEN);
}

void noise_end(void)
{
	if (!noise_runs)
		return;
	__atomic_store_n(&noise_runs, false, __ATOMIC_RELEASE);
	pthread_join(noise_thread, NULL);
}

void forward(size_t bytes)
{
	device_ptr scores = take_bytes(attention_forward, "attention_forward", bytes);
	device_ptr hidden = take_bytes(mlp_forward, "mlp_forward", bytes / 2);
	device_free(scores);
	device_free(hidden);
	noise(1);
}

/* ---- the command line ---- */

static const struct scenario *const tables[] = { loading_scenarios, kv_scenarios,
	                                         batch_scenarios,   fragmentation_scenarios,
	                                         growth_scenarios,  recovered_scenarios,
	                                         host_scenarios,    healthy_scenarios,
	                                         torch_scenarios,   reported_scenarios,
	                                         reported_torch_scenarios,
	                                         unseen_scenarios,  unseen_torch_scenarios,
	                                         second_round_scenarios };

static const struct scenario *find_scenario(const char *name, bool list)
{
	for (size_t i = 0; i < COUNT(tables); i++)
		for (const struct scenario *s = tables[i]; s->name; s++)
			if (list)
				printf("%s %u\n", s->name, s->cgroup_mib);
			else if (!strcmp(s->name, name))
				return s;
	return NULL;
}

static void read_arguments(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "--seed=", 7))
			request.seed = (unsigned)strtoul(argv[i] + 7, NULL, 10);
		else if (!strncmp(argv[i], "--scale=", 8))
			request.scale = strtod(argv[i] + 8, NULL);
		else if (!strncmp(argv[i], "--value=", 8))
			request.value = strtoull(argv[i] + 8, NULL, 10);
		else if (!strcmp(argv[i], "--apart"))
			request.apart = true;
		else if (!strcmp(argv[i], "--no-tenant"))
			request.no_tenant = true;
		else if (!strcmp(argv[i], "--whole"))
			request.whole = true;
		else if (!strcmp(argv[i], "--doubled"))
			request.doubled = true;
		else if (!strcmp(argv[i], "--idle-tenant"))
			request.idle_tenant = true;
		else if (!strcmp(argv[i], "--holes"))
			request.holes = true;
		else if (!strcmp(argv[i], "--slow"))
			request.slow = true;
		else if (!strncmp(argv[i], "--by-bytes=", 11))
			request.by_bytes = strtoull(argv[i] + 11, NULL, 10);
	random_state = request.seed * 0x100000001b3ull + (uint64_t)(request.scale * 1000);
	for (const char *c = request.name; *c; c++)
		random_state = (random_state ^ (uint8_t)*c) * 0x100000001b3ull;
}

static char settings[64];
static unsigned set_value;

void setting(const char *flag, unsigned value)
{
	snprintf(settings, sizeof settings, "%s %u", flag, value);
	set_value = value;
}

unsigned setting_planned(void) { return set_value; }
unsigned setting_value(void)
{
	return request.value == UNKNOWN ? set_value : (unsigned)request.value;
}

/* devices as people have them; on a real one this has no effect */
static void choose_device(void)
{
	static const unsigned totals[] = { 8, 12, 16, 24, 40, 48, 80 };
	unsigned total = totals[between_whole(0, COUNT(totals) - 1)];
	char text[16];

	snprintf(text, sizeof text, "%uGiB", request.doubled ? 2 * total : total);
	setenv("SIMCUDA_TOTAL", text, 1);
}

/* Beside what the scenario itself says of other processes. */
static void add_idle_tenant(void)
{
	const char *others = getenv("SIMCUDA_OTHER");
	unsigned long long mib = others ? strtoull(others, NULL, 10) : 0;
	char text[32];

	mib += strtoull(getenv("SIMCUDA_TOTAL"), NULL, 10) * 1024 / 50;
	snprintf(text, sizeof text, "%lluMiB", mib);
	setenv("SIMCUDA_OTHER", text, 1);
}

/* A hundredth of the device is free in pages that a small block keeps open. */
static void make_holes(void)
{
	static device_ptr between_blocks[2048];
	size_t count = device_room() / 100 / MiB;

	if (count > COUNT(between_blocks))
		count = COUNT(between_blocks);
	for (size_t i = 0; i < count; i++) {
		lru_put(256 * KiB);
		between_blocks[i] = workspace(768 * KiB);
	}
	for (size_t i = 0; i < count; i++)
		device_free(between_blocks[i]);
}

int main(int argc, char **argv)
{
	request.name = argc > 1 ? argv[1] : "";
	bool list = !strcmp(request.name, "--list");
	const struct scenario *scenario = find_scenario(request.name, list);
	if (list)
		return 0;
	if (!strcmp(request.name, "--hold"))
		return hold(argc, argv);
	if (!scenario) {
		fprintf(stderr, "cause_fixture: no scenario \"%s\", see --list\n", request.name);
		return 2;
	}
	read_arguments(argc, argv);
	if (scenario->arguments)
		scenario->arguments();
	if (argc > 2 && !strcmp(argv[2], "--settings"))
		return puts(settings) < 0;
	choose_device();
	if (scenario->prepare)
		scenario->prepare();
	if (request.idle_tenant)
		add_idle_tenant();
	door_open(argc, argv);
	if (request.holes)
		make_holes();
	if (chance(0.4))
		noise_begin();
	device_total = device_room();
	scenario->play();
	noise_end();
	say("end state exit 0");
	return 0;
}
