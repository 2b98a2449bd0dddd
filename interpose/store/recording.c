/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, lays out and maps the recording. Knows sizes and files, nothing of events. */
#include "interpose/store/recording.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "interpose/platform/clock.h"
#include "interpose/platform/options.h"
#include "interpose/store/recording_file.h"
#include "interpose/platform/sampler.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

struct cuf_recording cuf_recording;

#define RECORD_BYTES_NONE 1

/*
 * Shares of the recording, in 1/256 of what is left after the fixed sections. Ledgers and indexes are powers of two
 * (their hashes mask), so they get the largest that fits the share.
 */
static const struct plan {
	uint32_t id, record_bytes;
	uint32_t share;        /* 0: fixed_bytes */
	uint32_t fixed_bytes;
	uint8_t power_of_two;
} plans[] = {
	{ CUF_SEC_DEVICES, sizeof(struct cuf_device), 0, CUF_DEVICES_MAX * sizeof(struct cuf_device), 0 },
	{ CUF_SEC_INCIDENTS, sizeof(struct cuf_incident), 0, 128 * sizeof(struct cuf_incident), 0 },
	{ CUF_SEC_TIMELINE, sizeof(struct cuf_sample), 4, 0, 0 },
	{ CUF_SEC_META, RECORD_BYTES_NONE, 10, 0, 0 },
	{ CUF_SEC_THREADS, sizeof(struct cuf_thread), 2, 0, 0 },
	{ CUF_SEC_STACK_INDEX, sizeof(struct cuf_stack), 8, 0, 1 },
	{ CUF_SEC_STACK_FRAMES, sizeof(uint64_t), 36, 0, 0 },
	{ CUF_SEC_LEDGER, sizeof(struct cuf_block), 32, 0, 1 },
	{ CUF_SEC_HOST_LEDGER, sizeof(struct cuf_host_block), 64, 0, 1 },
	{ CUF_SEC_RING, sizeof(struct cuf_event), 24, 0, 0 },
	{ CUF_SEC_HOST_RING, sizeof(struct cuf_host_event), 50, 0, 0 },
	/* as many events as the driver's: a framework that reports its blocks asks the driver a hundred times less often,
	 * and which blocks live is in the ledger, however old */
	{ CUF_SEC_FRAMEWORK_RING, sizeof(struct cuf_event), 24, 0, 0 },
};
enum { PLANS = sizeof plans / sizeof *plans };

enum { PAGE = 4096, STACKS_NEAR_MAX = 4096 };

/* A thread holds a segment of each ring that it writes to: small ones serve more threads, large ones are changed less often. */
static const struct { uint32_t section, segment_bytes; } rings[CUF_RINGS] = {
	[CUF_RING_DEVICE] = { CUF_SEC_RING, 16 << 10 },
	[CUF_RING_HOST] = { CUF_SEC_HOST_RING, 64 << 10 },
	[CUF_RING_FRAMEWORK] = { CUF_SEC_FRAMEWORK_RING, 16 << 10 },
};

struct cuf_ring_counts cuf_recording_ring_counts(enum cuf_ring ring)
{
	struct cuf_header *h = cuf_recording.header;
	const struct cuf_ring_counts counts[CUF_RINGS] = {
		[CUF_RING_DEVICE] = { &h->next_ticket, &h->overwritten, &h->device_segment_bytes },
		[CUF_RING_HOST] = { &h->next_host_ticket, &h->host_overwritten, &h->host_segment_bytes },
		[CUF_RING_FRAMEWORK] = { &h->next_framework_ticket, &h->framework_overwritten, &h->framework_segment_bytes },
	};
	return counts[ring];
}

/* The ring that lies in this section; CUF_RINGS: none. */
static unsigned ring_of(uint32_t section)
{
	unsigned ring = 0;
	while (ring < CUF_RINGS && rings[ring].section != section)
		ring++;
	return ring;
}

static size_t page_round(size_t bytes) { return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1); }

static size_t plan_bytes(const struct plan *plan, size_t total)
{
	size_t bytes = plan->share ? total / 256 * plan->share : plan->fixed_bytes;
	if (plan->power_of_two) {
		size_t power = PAGE;
		while (power * 2 <= bytes)
			power *= 2;
		return power;
	}
	return page_round(bytes);
}

static void lay_out(struct cuf_recording *r, struct cuf_header *h, size_t total)
{
	uint64_t offset = PAGE;
	h->section_count = PLANS;
	for (unsigned i = 0; i < PLANS; i++) {
		size_t bytes = plan_bytes(&plans[i], total);
		h->sections[i] = (struct cuf_section){ plans[i].id, plans[i].record_bytes, offset, bytes };
		offset += bytes;
	}
	h->file_bytes = r->bytes = offset;
}

static void bind(struct cuf_recording *r)
{
	struct cuf_header *h = r->header;
	for (unsigned i = 0; i < h->section_count; i++) {
		uint8_t *at = r->base + h->sections[i].offset;
		size_t bytes = h->sections[i].bytes, count = bytes / h->sections[i].record_bytes;
		unsigned ring = ring_of(h->sections[i].id);
		if (ring < CUF_RINGS)
			r->rings[ring] = (struct cuf_ring_place){ at, (unsigned)(bytes / rings[ring].segment_bytes), rings[ring].segment_bytes };
		switch (h->sections[i].id) {
		case CUF_SEC_META: r->meta = at; r->meta_bytes = bytes; break;
		case CUF_SEC_DEVICES: r->devices = (void *)at; break;
		case CUF_SEC_THREADS: r->threads = (void *)at; r->thread_count = (unsigned)count; break;
		case CUF_SEC_STACK_INDEX:
			r->stacks = (void *)at;
			r->stack_mask = (uint32_t)count - 1;
			r->stacks_near = cuf_options.host == CUF_HOST_FULL ? 0 : count / 2 < STACKS_NEAR_MAX ? (uint32_t)count / 2 : STACKS_NEAR_MAX;
			break;
		case CUF_SEC_STACK_FRAMES: r->frames = (void *)at; r->frame_count = count; break;
		case CUF_SEC_LEDGER: r->ledger = (void *)at; r->ledger_mask = count - 1; break;
		case CUF_SEC_HOST_LEDGER: r->host_ledger = (void *)at; r->host_bucket_mask = count / CUF_HOST_BUCKET - 1; break;
		case CUF_SEC_INCIDENTS: r->incidents = (void *)at; r->incident_slots = (unsigned)count; break;
		case CUF_SEC_TIMELINE: r->samples = (void *)at; r->sample_slots = (unsigned)count; break;
		default: break;
		}
	}
}

static void fill_header(struct cuf_header *h)
{
	memcpy(h->magic, CUF_MAGIC, sizeof h->magic);
	h->version = CUF_VERSION;
	h->endian = CUF_ENDIAN;
	h->header_bytes = sizeof *h;
#if defined __x86_64__
	h->machine = EM_X86_64;
#elif defined __aarch64__
	h->machine = EM_AARCH64;
#endif
	h->page_bytes = PAGE;
	h->start_ns = cuf_clock_ns(CLOCK_MONOTONIC);
	h->start_realtime_ns = cuf_clock_ns(CLOCK_REALTIME);
	h->pid = (uint32_t)cuf_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
	h->ppid = (uint32_t)cuf_sys(SYS_getppid, 0, 0, 0, 0, 0, 0);
	h->options_host_mode = cuf_options.host;
	h->sample_mean_bytes = cuf_options.sample;
	h->stack_depth = cuf_options.stack_depth;
	for (unsigned ring = 0; ring < CUF_RINGS; ring++)
		*cuf_recording_ring_counts(ring).segment_bytes = rings[ring].segment_bytes;
	h->framework_sample_mean_bytes = CUF_FRAMEWORK_SAMPLE_MEAN_BYTES;
	h->state = CUF_RUNNING;
	h->sample_interval_ns = 10000000; /* 10 ms, doubling as the timeline fills */
}

int cuf_recording_open(size_t bytes)
{
	struct cuf_recording *r = &cuf_recording;
	struct cuf_header plan = { 0 };
	void *old = r->base;
	long at;
	lay_out(r, &plan, bytes);
	at = cuf_sys_mmap(old, r->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (old ? MAP_FIXED : 0), -1, 0);
	if (cuf_sys_failed(at)) {
		r->base = NULL;
		return (int)at;
	}
	/* tables are touched here and there: a huge page for each touch would be megabytes of the program's memory */
	cuf_sys_madvise((void *)at, r->bytes, MADV_NOHUGEPAGE);
	r->base = (uint8_t *)at;
	r->header = (void *)r->base;
	r->path[0] = 0;
	memcpy(r->header, &plan, sizeof plan);
	fill_header(r->header);
	bind(r);
	return 0;
}

/* One word a page, Documentation/admin-guide/mm/pagemap.rst: bit 63 present, bit 62 swapped. */
#define PAGEMAP_TOUCHED (3ull << 62)
enum { PAGEMAP_BATCH = 512 };

/* Which of up to PAGEMAP_BATCH pages were ever written. Without a page map (no /proc): all of them may have been. */
static void find_touched(int pagemap, const uint8_t *from, uint64_t *words, size_t pages)
{
	long bytes = pagemap < 0 ? -1 : cuf_sys(SYS_pread64, pagemap, (long)words, (long)(pages * sizeof *words),
						 (long)((uintptr_t)from / PAGE * sizeof *words), 0, 0);
	for (size_t i = bytes > 0 ? (size_t)bytes / sizeof *words : 0; i < pages; i++)
		words[i] = PAGEMAP_TOUCHED;
}

/* The file is zeros already, and most pages were never touched: even to read one costs a fault, while the program waits. */
static void copy_touched(uint8_t *to, const uint8_t *from, size_t bytes, int pagemap)
{
	uint64_t words[PAGEMAP_BATCH];
	for (size_t at = 0, n = 0; at < bytes; at += PAGE, n++) {
		size_t part = bytes - at < PAGE ? bytes - at : PAGE;
		if (n % PAGEMAP_BATCH == 0)
			find_touched(pagemap, from + at, words, PAGEMAP_BATCH);
		if (words[n % PAGEMAP_BATCH] & PAGEMAP_TOUCHED)
			memcpy(to + at, from + at, part);
	}
}

/* What may hold something while the recording is in memory: all but unused ring segments. The header comes last, its
 * magic at the very end: a process killed in between leaves a file that says of itself that it was never begun. */
static void copy_contents(uint8_t *to)
{
	struct cuf_recording *r = &cuf_recording;
	const size_t magic_bytes = sizeof r->header->magic;
	int pagemap = (int)cuf_open("/proc/self/pagemap", O_RDONLY, 0);
	for (unsigned i = 0; i < r->header->section_count; i++) {
		const struct cuf_section *s = &r->header->sections[i];
		unsigned ring = ring_of(s->id);
		size_t bytes = s->bytes;
		if (ring < CUF_RINGS) {
			uint64_t tickets = *cuf_recording_ring_counts(ring).tickets;
			if (tickets < r->rings[ring].segment_count)
				bytes = tickets * r->rings[ring].segment_bytes;
		} else if (s->id == CUF_SEC_META && r->header->meta_used < bytes) {
			bytes = r->header->meta_used;
		} else if (s->id == CUF_SEC_STACK_FRAMES && r->header->frames_used * 8 < bytes) {
			bytes = r->header->frames_used * 8;
		}
		copy_touched(to + s->offset, r->base + s->offset, bytes, pagemap);
	}
	if (pagemap >= 0)
		cuf_sys_close(pagemap);
	r->header->created_ns = cuf_clock_ns(CLOCK_MONOTONIC);
	memcpy(to + magic_bytes, r->base + magic_bytes, PAGE - magic_bytes);
	__atomic_store_n((uint64_t *)to, *(const uint64_t *)r->base, __ATOMIC_RELEASE);
}

/* Past this limit the kernel does not only refuse: it sends SIGXFSZ, which ends the program. */
static int beyond_file_limit(uint64_t bytes)
{
	struct rlimit64 limit;
	return !cuf_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) && bytes > limit.rlim_cur;
}

int cuf_recording_to_file(const struct cuf_name_parts *names, const char **why)
{
	struct cuf_recording *r = &cuf_recording;
	long result, mapped;
	int fd;
	*why = "cannot create the recording";
	if (cuf_sandbox_entered())
		return -ECANCELED;
	if (beyond_file_limit(r->bytes))
		return -EFBIG;
	fd = cuf_recording_file_create(names, r->path, sizeof r->path);
	if (fd < 0) {
		return fd;
	}
	/* reserve every block now: a sparse mapping on a full disk is SIGBUS in the program */
	*why = "cannot reserve space for the recording";
	result = cuf_sys(SYS_fallocate, fd, 0, 0, (long)r->bytes, 0, 0);
	if (result == -EOPNOTSUPP || result == -ENOSYS) /* some file systems: write zeros instead */
		result = cuf_recording_file_fill(fd, r->bytes);
	if (result) {
		goto out_unlink;
	}
	*why = "cannot map the recording";
	mapped = result = cuf_sys_mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (cuf_sys_failed(result)) {
		goto out_unlink;
	}
	/* no read-ahead: the kernel would fill and zero large folios around every first touch, milliseconds each */
	cuf_sys_madvise((void *)mapped, r->bytes, MADV_RANDOM);
	copy_contents((uint8_t *)mapped);
	result = cuf_sys(SYS_mremap, mapped, (long)r->bytes, (long)r->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (long)r->base, 0);
	if (cuf_sys_failed(result)) {
		cuf_sys_munmap((void *)mapped, r->bytes);
		goto out_unlink;
	}
	cuf_sys_close(fd);
	return 0;
out_unlink:
	cuf_sys_close(fd);
	cuf_sys(SYS_unlinkat, AT_FDCWD, (long)r->path, 0, 0, 0, 0);
	return (int)result;
}

#define POPULATE_WRITE 23 /* MADV_POPULATE_WRITE of Linux 5.14; before, nothing happens */

void cuf_recording_populate(void *from, size_t bytes)
{
	if (!*cuf_recording.path || cuf_sandbox_entered())
		return;
	cuf_sys_madvise(from, bytes, MADV_NORMAL); /* large folios are welcome here */
	cuf_sys_madvise(from, bytes, POPULATE_WRITE);
}
