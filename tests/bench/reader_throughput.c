/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader throughput on a large recording, filled as the recorder would after a long run: all rings
 * full, both ledgers half full.
 *
 * Usage: reader_throughput [MiB]: 1024 MiB by default, in $TMPDIR, measured and removed. Prints what
 * reading only the bytes costs, what building the facts costs, and the memory used.
 * reader_throughput MiB FILE [FAILURES [PID]]: only writes FILE, with as many failed requests of as
 * many threads, at most 128.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "analysis/explain/facts_build.h"

enum { PAGE = 4096, DEVICE_SEGMENT = 16384, HOST_SEGMENT = 65536, STACKS = 4096, THREADS = 16 };

static uint8_t *data;
static struct cuf_header *h;

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint32_t random_below(uint32_t n)
{
	static uint64_t x = 88172645463325252ull;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 20) % n;
}

/* The shares of the recorder's own layout. */
static uint64_t lay_out(struct cuf_header *to, uint64_t total)
{
	static const struct {
		uint32_t id, record_bytes, share;
	} plan[] = {
		{ CUF_SEC_DEVICES, sizeof(struct cuf_device), 0 },
		{ CUF_SEC_INCIDENTS, sizeof(struct cuf_incident), 0 },
		{ CUF_SEC_TIMELINE, sizeof(struct cuf_sample), 4 },
		{ CUF_SEC_META, 1, 10 },
		{ CUF_SEC_THREADS, sizeof(struct cuf_thread), 2 },
		{ CUF_SEC_STACK_INDEX, sizeof(struct cuf_stack), 8 },
		{ CUF_SEC_STACK_FRAMES, 8, 36 },
		{ CUF_SEC_LEDGER, sizeof(struct cuf_block), 32 },
		{ CUF_SEC_HOST_LEDGER, sizeof(struct cuf_host_block), 64 },
		{ CUF_SEC_RING, sizeof(struct cuf_event), 24 },
		{ CUF_SEC_HOST_RING, sizeof(struct cuf_host_event), 50 },
		{ CUF_SEC_FRAMEWORK_RING, sizeof(struct cuf_event), 24 },
	};
	uint64_t offset = PAGE;
	for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) {
		uint64_t bytes = plan[i].share ? total / 256 * plan[i].share
		                               : 128 * (uint64_t)plan[i].record_bytes;
		bytes = (bytes + PAGE - 1) / PAGE * PAGE;
		to->sections[to->section_count++] =
			(struct cuf_section){ plan[i].id, plan[i].record_bytes, offset, bytes };
		offset += bytes;
	}
	return offset;
}

static void *section(unsigned id, uint64_t *bytes)
{
	for (unsigned i = 0; i < h->section_count; i++)
		if (h->sections[i].id == id) {
			*bytes = h->sections[i].bytes;
			return data + h->sections[i].offset;
		}
	abort();
}

static void fill_devices(void)
{
	uint64_t bytes;
	struct cuf_device *d = section(CUF_SEC_DEVICES, &bytes);
	struct cuf_stack *stacks = section(CUF_SEC_STACK_INDEX, &bytes);
	d->present = 1;
	d->uuid[0] = 1;
	d->total_bytes = 80ull << 30;
	d->free_bytes = d->first_free_bytes = d->end_free_bytes = CUF_UNKNOWN;
	for (uint32_t i = 0; i < STACKS; i++)
		stacks[i] = (struct cuf_stack){ i + 1, i * 20, 20, 0, 0 };
}

/* One allocation: of the n-th of a segment. */
typedef struct cuf_event allocation_of(uint64_t segment, uint64_t n, uint64_t per_segment);

/* Each thread allocates and frees at once, segment by segment. Returns how many segments there are.
 */
static uint64_t fill_event_ring(enum cuf_section_id id, allocation_of *allocation)
{
	uint64_t bytes,
		per = (DEVICE_SEGMENT - sizeof(struct cuf_segment)) / sizeof(struct cuf_event),
		seq = h->next_seq;
	uint8_t *ring = section(id, &bytes);
	for (uint64_t i = 0; i < bytes / DEVICE_SEGMENT; i++) {
		struct cuf_segment *s = (void *)(ring + i * DEVICE_SEGMENT);
		struct cuf_event *e = (void *)(s + 1);
		*s = (struct cuf_segment){
			.ticket = i + 1, .start_ns = 1000 + seq * 1000, .used = (uint32_t)per,
			.thread = (uint32_t)(i % THREADS),
		};
		for (uint64_t n = 0; n < per; n++) {
			bool frees = n & 1;
			e[n] = frees ? e[n - 1] : allocation(i, n / 2, per);
			e[n].op = frees ? CUF_OP_FREE : CUF_OP_ALLOC;
			e[n].extra = frees ? 0 : e[n].extra; /* of a free: its age */
			e[n].alloc_stack = e[n].stack;
			e[n].seq = ++seq;
			e[n].time_ns = 1000 + seq * 1000;
		}
	}
	h->next_seq = seq;
	return bytes / DEVICE_SEGMENT;
}

static struct cuf_event driver_allocation(uint64_t segment, uint64_t n, uint64_t per_segment)
{
	struct cuf_event e = { .addr = 0x7f0000000000 +
		                       (segment * per_segment + n) % 100000 * 4194304,
		               .kind = CUF_KIND_DEVICE,
		               .hook = 100 };
	e.stack = 1 + random_below(STACKS);
	e.bytes = 1 + random_below(8 << 20);
	return e;
}

/* Inside one of the framework's segments, thread by thread. */
static struct cuf_event framework_allocation(uint64_t segment, uint64_t n, uint64_t per_segment)
{
	struct cuf_event e = {
		.addr = 0x7e0000000000 + segment % THREADS * 4194304 + n * 8192, .aux = 64 << 20,
		.extra = 128 << 11, .kind = CUF_KIND_FRAMEWORK, .hook = 500,
	};
	e.stack = 1 + random_below(STACKS);
	e.bytes = 512u << random_below(4);
	return e;
}

/* Failed requests, evenly over the events of the driver. Each takes the place of a free, so its
 * block stays live. */
static void fill_failures(uint64_t failures)
{
	uint64_t bytes, ring_bytes,
		per = (DEVICE_SEGMENT - sizeof(struct cuf_segment)) / sizeof(struct cuf_event);
	struct cuf_incident *incidents = section(CUF_SEC_INCIDENTS, &bytes);
	uint8_t *ring = section(CUF_SEC_RING, &ring_bytes);
	uint64_t segments = ring_bytes / DEVICE_SEGMENT;
	for (uint64_t i = 0; i < failures && i < bytes / sizeof *incidents; i++) {
		struct cuf_segment *s =
			(void *)(ring + (i + 1) * segments / (failures + 1) * DEVICE_SEGMENT);
		struct cuf_event *e = (struct cuf_event *)(s + 1) + per / 2 * 2 - 1;
		*e = (struct cuf_event){
			.seq = e->seq, .time_ns = e->time_ns, .addr = i + 1, .bytes = 64ull << 30,
			.stack = e->stack, .tid = 1000 + (uint32_t)i, .extra = 2, .hook = e->hook,
			.op = CUF_OP_FAIL, .kind = CUF_KIND_DEVICE,
		};
		memset(&incidents[i], 0xff, sizeof *incidents); /* unknown */
		incidents[i].number = incidents[i].first = i + 1;
		incidents[i].seq = e->seq;
		incidents[i].time_ns = e->time_ns;
		incidents[i].requested_bytes = e->bytes;
		incidents[i].stack = e->stack;
		incidents[i].tid = e->tid;
		incidents[i].hook = e->hook;
		incidents[i].label = 0;
		incidents[i].kind = CUF_KIND_DEVICE;
		incidents[i].device = incidents[i].outcome = 0;
		incidents[i].is_request = 1;
		incidents[i].result = 2;
		incidents[i].attempt = 0;
		incidents[i].free_bytes = 1ull << 30;
		incidents[i].total_bytes = 80ull << 30;
		incidents[i].pool_count = incidents[i].site_count = incidents[i].resolved_seq = 0;
		incidents[i].phase = incidents[i].request_phase = 0;
		incidents[i].request_id = 0;
		h->incident_count = i + 1;
	}
}

/* Blocks that were there before; a few thousand of a framework in its segments. */
static void fill_ledger(void)
{
	uint64_t bytes;
	struct cuf_block *ledger = section(CUF_SEC_LEDGER, &bytes);
	for (uint64_t i = 0; i < bytes / sizeof *ledger; i += 2)
		ledger[i] = (struct cuf_block){
			.key = 0x700000000000 + i * 4096, .bytes = 1 + random_below(8192), .seq = 1,
			.time_ns = 500, .stack = 1 + random_below(STACKS), .kind = CUF_KIND_DEVICE,
		};
	for (uint64_t i = 0; i < 20000; i++)
		ledger[2 * i + 1] =
			i < THREADS ? (struct cuf_block){
				.key = 0x7e0000000000 + i * 4194304, .bytes = 4194304, .seq = 1,
				.time_ns = 500, .stack = 1, .kind = CUF_KIND_DEVICE,
			}
				    : (struct cuf_block){ .key = cuf_key(CUF_SPACE_FRAMEWORK,
			                                                 0x7e0000000000 + i * 2048 +
			                                                         1024),
			                                  .bytes = 512,
			                                  .seq = 2,
			                                  .time_ns = 600,
			                                  .stack = 1 + random_below(STACKS),
			                                  .kind = CUF_KIND_FRAMEWORK };
}

static uint64_t fill_host_ring(void)
{
	uint64_t bytes,
		per = (HOST_SEGMENT - sizeof(struct cuf_segment)) / sizeof(struct cuf_host_event),
		events = 0;
	uint8_t *ring = section(CUF_SEC_HOST_RING, &bytes);
	struct cuf_host_block *ledger;
	for (uint64_t i = 0; i < bytes / HOST_SEGMENT; i++) {
		struct cuf_segment *s = (void *)(ring + i * HOST_SEGMENT);
		struct cuf_host_event *e = (void *)(s + 1);
		*s = (struct cuf_segment){
			.ticket = i + 1, .start_ns = i * 1000000, .used = (uint32_t)per,
			.thread = (uint32_t)(i % THREADS),
		};
		e[0] = (struct cuf_host_event){ CUF_HOST_TIME, 1 + i / THREADS * 20000000 };
		for (uint64_t n = 1; n < per; n++) {
			bool frees = !(n & 1);
			uint64_t word1 = frees ? e[n - 1].word1
			                       : cuf_host_word1(1 + random_below(STACKS),
			                                        1 + random_below(4096));
			e[n] = (struct cuf_host_event){
				cuf_host_word0(frees ? CUF_HOST_FREE : CUF_HOST_ALLOC,
				               (unsigned)(n / 200), 0x100000 + n * 64),
				word1
			};
		}
		events += per - 1;
	}
	h->next_host_ticket = bytes / HOST_SEGMENT;
	ledger = section(CUF_SEC_HOST_LEDGER, &bytes);
	for (uint64_t i = 0; i < bytes / sizeof *ledger; i += 2)
		ledger[i] = (struct cuf_host_block){ (0x10000 + i * 2) << 19 | 5,
			                             cuf_host_word1(1 + random_below(STACKS),
			                                            1 + random_below(4096)) };
	return events;
}

static uint64_t make(const char *path, uint64_t total, uint64_t failures, uint32_t pid)
{
	struct cuf_header plan = {
		.magic = CUF_MAGIC, .version = CUF_VERSION, .endian = CUF_ENDIAN,
		.header_bytes = sizeof plan, .start_ns = 1, .start_realtime_ns = 1, .pid = pid, .ppid = 1,
		.options_host_mode = CUF_HOST_FULL, .device_segment_bytes = DEVICE_SEGMENT,
		.host_segment_bytes = HOST_SEGMENT, .framework_segment_bytes = DEVICE_SEGMENT,
	};
	uint64_t bytes = lay_out(&plan, total), events;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	plan.file_bytes = bytes;
	if (fd < 0 || posix_fallocate(fd, 0, (off_t)bytes))
		return 0;
	data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return 0;
	h = (struct cuf_header *)data;
	*h = plan;
	fill_devices();
	h->next_ticket = fill_event_ring(CUF_SEC_RING, driver_allocation);
	h->next_framework_ticket = fill_event_ring(CUF_SEC_FRAMEWORK_RING, framework_allocation);
	fill_failures(failures);
	fill_ledger();
	events = fill_host_ring() + h->next_seq;
	munmap(data, bytes);
	close(fd);
	return events;
}

static int read_bytes(const char *path)
{
	static uint64_t buffer[8192];
	volatile uint64_t sum = 0;
	ssize_t got;
	int fd = open(path, O_RDONLY);
	while ((got = read(fd, buffer, sizeof buffer)) > 0)
		for (ssize_t i = 0; i < got / 8; i++)
			sum += buffer[i];
	close(fd);
	return 0;
}

static int build(const char *path)
{
	struct facts *facts;
	struct reader_error error;
	int code = facts_build(path, NULL, &facts, &error);
	if (code)
		fprintf(stderr, "reader_throughput: %s at byte %llu\n", reader_error_sentence(code),
		        (unsigned long long)error.offset);
	facts_free(facts);
	return code != 0;
}

/* In a process of its own, so that its memory is its own. */
static double measure(int (*what)(const char *), const char *path, long *rss_kib, double *cpu_s)
{
	struct rusage usage;
	double start = now_s();
	int status;
	pid_t child = fork();
	if (!child)
		_exit(what(path));
	if (wait4(child, &status, 0, &usage) != child || status)
		exit(1);
	*rss_kib = usage.ru_maxrss;
	*cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	return now_s() - start;
}

int main(int argc, char **argv)
{
	uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 1024, events;
	const char *directory = getenv("TMPDIR");
	char path[4096];
	long rss_kib;
	double bytes_s, facts_s, cpu_s;
	if (argc > 2)
		return !make(argv[2], mib << 20, argc > 3 ? strtoull(argv[3], NULL, 10) : 0,
		             argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 1);
	snprintf(path, sizeof path, "%s/reader_throughput.%d.cuf", directory ? directory : "/tmp",
	         (int)getpid());
	events = make(path, mib << 20, 0, 1);
	if (!events) {
		perror(path);
		unlink(path);
		return 1;
	}
	bytes_s = measure(read_bytes, path, &rss_kib, &cpu_s);
	facts_s = measure(build, path, &rss_kib, &cpu_s);
	printf("%llu MiB, %llu events: only the bytes %.2f s, facts %.2f s, of it CPU %.2f s (goal for 1024 MiB: 2 s on 2 cores), %.1f M events/s, RSS %ld MiB (goal 400)\n",
	       (unsigned long long)mib, (unsigned long long)events, bytes_s, facts_s, cpu_s,
	       (double)events / facts_s / 1e6, rss_kib >> 10);
	unlink(path);
	return 0;
}
