/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, lays out and maps the recording. Knows sizes and files, and no events. */
#include "interpose/store/recording.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "interpose/platform/clock.h"
#include "interpose/platform/options.h"
#include "interpose/platform/sampler.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/page.h"
#include "interpose/platform/sys.h"
#include "interpose/store/fault.h"
#include "interpose/store/recording_file.h"
#include "interpose/platform/laws.h"

struct cuf_recording cuf_recording;

enum { PAGE = 4096, STACKS_NEAR_MAX = 4096, STACKS_LARGE_PART = 8, RECORD_BYTES_NONE = 1 };

/* ---- sizes ---- */

/*
 * A section is fixed_bytes long, or gets a share, in 1/256, of the recording's size. Ledgers and
 * indexes are powers of two, because their hashes mask; they get the largest one that fits the
 * share.
 */
static const struct plan {
	uint32_t id, record_bytes;
	uint32_t share; /* 0: fixed_bytes */
	uint32_t fixed_bytes;
	uint8_t power_of_two;
} plans[] = {
	{ CUF_SEC_DEVICES, sizeof(struct cuf_device), 0,
	  CUF_DEVICES_MAX * sizeof(struct cuf_device), 0 },
	{ CUF_SEC_INCIDENTS, sizeof(struct cuf_incident), 0, 128 * sizeof(struct cuf_incident), 0 },
	{ CUF_SEC_HOST_PEAK, sizeof(struct cuf_host_peak), 0, 2 * sizeof(struct cuf_host_peak), 0 },
	{ CUF_SEC_TIMELINE, sizeof(struct cuf_sample), 4, 0, 0 },
	{ CUF_SEC_RECENT, sizeof(struct cuf_recent), 8, 0, 1 },
	{ CUF_SEC_META, RECORD_BYTES_NONE, 10, 0, 0 },
	{ CUF_SEC_THREADS, sizeof(struct cuf_thread), 2, 0, 0 },
	{ CUF_SEC_STACK_INDEX, sizeof(struct cuf_stack), 8, 0, 1 },
	{ CUF_SEC_STACK_FRAMES, sizeof(uint64_t), 36, 0, 0 },
	{ CUF_SEC_LEDGER, sizeof(struct cuf_block), 32, 0, 1 },
	{ CUF_SEC_HOST_LEDGER, sizeof(struct cuf_host_block), 64, 0, 1 },
	{ CUF_SEC_RING, sizeof(struct cuf_event), 24, 0, 0 },
	{ CUF_SEC_HOST_RING, sizeof(struct cuf_host_event), 50, 0, 0 },
	/*
	 * As large as the driver's ring. A framework that reports its blocks calls the driver a
	 * hundred times less often. Which blocks live is in the ledger, however old they are.
	 */
	{ CUF_SEC_FRAMEWORK_RING, sizeof(struct cuf_event), 24, 0, 0 },
};
enum { PLANS = sizeof plans / sizeof *plans };

/*
 * A thread owns a segment of each ring that it writes to. Small ones serve more threads, large
 * ones are exchanged less often.
 */
static const struct {
	uint32_t section, segment_bytes;
} rings[CUF_RINGS] = {
	[CUF_RING_DEVICE] = { CUF_SEC_RING, 16 << 10 },
	[CUF_RING_HOST] = { CUF_SEC_HOST_RING, 64 << 10 },
	[CUF_RING_FRAMEWORK] = { CUF_SEC_FRAMEWORK_RING, 16 << 10 },
};

struct cuf_ring_counts cuf_recording_ring_counts(enum cuf_ring ring)
{
	struct cuf_header *header = cuf_recording.header;
	const struct cuf_ring_counts counts[CUF_RINGS] = {
		[CUF_RING_DEVICE] = { &header->next_ticket, &header->overwritten,
				      &header->device_segment_bytes },
		[CUF_RING_HOST] = { &header->next_host_ticket, &header->host_overwritten,
				    &header->host_segment_bytes },
		[CUF_RING_FRAMEWORK] = { &header->next_framework_ticket,
					 &header->framework_overwritten,
					 &header->framework_segment_bytes },
	};

	return counts[ring];
}

/* The ring that is in this section; CUF_RINGS: none. */
static unsigned ring_of(uint32_t section)
{
	unsigned ring = 0;

	while (ring < CUF_RINGS && rings[ring].section != section)
		ring++;
	return ring;
}

static size_t round_to_page(size_t bytes) { return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1); }

static size_t plan_bytes(const struct plan *plan, size_t total)
{
	size_t bytes = plan->share ? total / 256 * plan->share : plan->fixed_bytes;
	size_t power = PAGE;

	if (!plan->power_of_two)
		return round_to_page(bytes);
	while (power * 2 <= bytes)
		power *= 2;
	return power;
}

static void lay_out(struct cuf_header *header, size_t total)
{
	uint64_t offset = PAGE;

	header->section_count = PLANS;
	for (unsigned i = 0; i < PLANS; i++) {
		size_t bytes = plan_bytes(&plans[i], total);

		header->sections[i] = (struct cuf_section){
			plans[i].id, plans[i].record_bytes, offset, bytes
		};
		offset += bytes;
	}
	header->file_bytes = offset;
}

/* ---- in memory ---- */

/* In full mode stacks are many, and a search in two places would cost more than it saves. */
static uint32_t choose_stacks_near(size_t count)
{
	if (cuf_options.host == CUF_HOST_FULL)
		return 0;
	return count / 2 < STACKS_NEAR_MAX ? (uint32_t)count / 2 : STACKS_NEAR_MAX;
}

/* Points one table at its section. */
static void bind_section(struct cuf_recording *recording, const struct cuf_section *section)
{
	uint8_t *at = recording->base + section->offset;
	size_t count = section->bytes / section->record_bytes;
	unsigned ring = ring_of(section->id);

	if (ring < CUF_RINGS) {
		uint32_t bytes = rings[ring].segment_bytes;

		recording->rings[ring] = (struct cuf_ring_place){
			at, (unsigned)(section->bytes / bytes), bytes
		};
		return;
	}
	switch (section->id) {
	case CUF_SEC_META:
		recording->meta = at;
		recording->meta_bytes = section->bytes;
		break;
	case CUF_SEC_DEVICES:
		recording->devices = (void *)at;
		break;
	case CUF_SEC_THREADS:
		recording->threads = (void *)at;
		recording->thread_count = (unsigned)count;
		break;
	case CUF_SEC_STACK_INDEX:
		recording->stacks = (void *)at;
		recording->stack_mask = (uint32_t)count - 1;
		recording->stacks_near = choose_stacks_near(count);
		recording->stacks_shared = (uint32_t)(count - count / STACKS_LARGE_PART);
		break;
	case CUF_SEC_STACK_FRAMES:
		recording->frames = (void *)at;
		recording->frame_count = count;
		break;
	case CUF_SEC_LEDGER:
		recording->ledger = (void *)at;
		recording->ledger_mask = count - 1;
		break;
	case CUF_SEC_HOST_LEDGER:
		recording->host_ledger = (void *)at;
		recording->host_bucket_mask = count / CUF_HOST_BUCKET - 1;
		break;
	case CUF_SEC_RECENT:
		recording->recent = (void *)at;
		recording->recent_mask = count / CUF_RECENT_RINGS - 1;
		break;
	case CUF_SEC_HOST_PEAK:
		recording->host_peaks = (void *)at;
		break;
	case CUF_SEC_INCIDENTS:
		recording->incidents = (void *)at;
		recording->incident_slots = (unsigned)count;
		break;
	case CUF_SEC_TIMELINE:
		recording->samples = (void *)at;
		recording->sample_slots = (unsigned)count;
		break;
	}
}

/*
 * One instant by two clocks. Who loses the processor between them would shift all its times against
 * those of other processes: of a few readings, that with the shortest way there and back counts.
 */
static void read_start(struct cuf_header *header)
{
	enum { TRIES = 8, NEAR_NS = 2000 };
	uint64_t best_ns = UINT64_MAX;

	for (unsigned i = 0; i < TRIES && best_ns > NEAR_NS; i++) {
		uint64_t before_ns = cuf_clock_ns(CLOCK_MONOTONIC);
		uint64_t realtime_ns = cuf_clock_ns(CLOCK_REALTIME);
		uint64_t passed_ns = cuf_clock_ns(CLOCK_MONOTONIC) - before_ns;

		if (passed_ns >= best_ns)
			continue;
		best_ns = passed_ns;
		header->start_ns = before_ns;
		header->start_realtime_ns = realtime_ns - passed_ns / 2;
	}
}

static void fill_header(struct cuf_header *header)
{
	memcpy(header->magic, CUF_MAGIC, sizeof header->magic);
	header->version = CUF_VERSION;
	header->endian = CUF_ENDIAN;
	header->header_bytes = sizeof *header;
#if defined __x86_64__
	header->machine = EM_X86_64;
#elif defined __aarch64__
	header->machine = EM_AARCH64;
#endif
	header->page_bytes = PAGE;
	read_start(header);
	header->pid = (uint32_t)cuf_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
	header->ppid = (uint32_t)cuf_sys(SYS_getppid, 0, 0, 0, 0, 0, 0);
	header->options_host_mode = cuf_options.host;
	header->sample_mean_bytes = cuf_options.sample;
	header->stack_depth = cuf_options.stack_depth;
	for (unsigned ring = 0; ring < CUF_RINGS; ring++)
		*cuf_recording_ring_counts(ring).segment_bytes = rings[ring].segment_bytes;
	header->framework_sample_mean_bytes = CUF_FRAMEWORK_SAMPLE_MEAN_BYTES;
	header->state = CUF_RUNNING;
	header->sample_interval_ns = CUF_SAMPLE_INTERVAL_NS;
}

int cuf_recording_open(size_t bytes)
{
	struct cuf_recording *recording = &cuf_recording;
	struct cuf_header plan = { 0 };
	void *old = recording->base;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	long at;

	lay_out(&plan, bytes);
	recording->bytes = plan.file_bytes;
	if (old)
		flags |= MAP_FIXED;
	at = cuf_sys_mmap(old, recording->bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (cuf_sys_failed(at)) {
		recording->base = NULL;
		return (int)at;
	}
	/*
	 * tables are touched sparsely: a huge page for each touch would cost megabytes of the
	 * program's memory
	 */
	cuf_sys_madvise((void *)at, recording->bytes, MADV_NOHUGEPAGE);
	recording->base = (uint8_t *)at;
	recording->header = (void *)recording->base;
	recording->path[0] = 0;
	memcpy(recording->header, &plan, sizeof plan);
	fill_header(recording->header);
	for (unsigned i = 0; i < PLANS; i++)
		bind_section(recording, &recording->header->sections[i]);
	return 0;
}

/* ---- copying into the file ---- */

/* One word a page, Documentation/admin-guide/mm/pagemap.rst: bit 63 present, bit 62 swapped. */
#define PAGEMAP_TOUCHED (3ull << 62)
enum { PAGEMAP_BATCH = 512 };

/*
 * Which of up to PAGEMAP_BATCH pages of the kernel were ever written. Without a page map (no /proc)
 * all of them count as written.
 */
static void find_touched(int pagemap, uintptr_t first, uint64_t *words)
{
	size_t known = 0;
	long bytes = -1;

	if (pagemap >= 0)
		bytes = cuf_sys(SYS_pread64, pagemap, (long)words, PAGEMAP_BATCH * sizeof *words,
				(long)(first * sizeof *words), 0, 0);
	if (bytes > 0)
		known = (size_t)bytes / sizeof *words;
	for (size_t i = known; i < PAGEMAP_BATCH; i++)
		words[i] = PAGEMAP_TOUCHED;
}

/* Where the recording is copied to. at NULL: there are no addresses left to map the file at. */
struct target {
	int fd;
	uint8_t *at;
};

/* False: a part of the file was not written. */
static bool put(const struct target *target, size_t offset, const uint8_t *from, size_t bytes)
{
	if (target->at) {
		memcpy(target->at + offset, from, bytes);
		return true;
	}
	return cuf_sys(SYS_pwrite64, target->fd, (long)from, (long)bytes, (long)offset, 0, 0) ==
	       (long)bytes;
}

/*
 * The file holds zeros already, and most pages were never touched. Even reading such a page costs
 * a fault, while the program waits. A section may begin inside a page of the kernel's.
 */
static bool copy_touched(const struct target *target, size_t offset, size_t bytes, int pagemap)
{
	const uint8_t *from = cuf_recording.base + offset;
	const uintptr_t page = cuf_page_bytes();
	uint64_t words[PAGEMAP_BATCH];

	for (size_t at = 0, part, n = 0; at < bytes; at += part, n++) {
		part = page - ((uintptr_t)from + at) % page;
		if (part > bytes - at)
			part = bytes - at;
		if (n % PAGEMAP_BATCH == 0)
			find_touched(pagemap, ((uintptr_t)from + at) / page, words);
		if (words[n % PAGEMAP_BATCH] & PAGEMAP_TOUCHED &&
		    !put(target, offset + at, from + at, part))
			return false;
	}
	return true;
}

/*
 * How much of a section may hold something: rings, META and frames are filled from the beginning.
 */
static size_t used_bytes(const struct cuf_recording *recording, const struct cuf_section *section)
{
	unsigned ring = ring_of(section->id);
	uint64_t used = section->bytes;

	if (ring < CUF_RINGS) {
		uint64_t tickets = *cuf_recording_ring_counts(ring).tickets;

		if (tickets < recording->rings[ring].segment_count)
			used = tickets * recording->rings[ring].segment_bytes;
	} else if (section->id == CUF_SEC_META) {
		used = recording->header->meta_used;
	} else if (section->id == CUF_SEC_STACK_FRAMES) {
		used = recording->header->frames_used * sizeof *recording->frames;
	}
	return used < section->bytes ? used : section->bytes;
}

/*
 * The header comes last, and its magic is left to the caller: a process that is killed in between
 * leaves a file whose header is zeros, which a reader recognizes as never begun.
 */
static bool copy_contents(const struct target *target)
{
	struct cuf_recording *recording = &cuf_recording;
	const size_t magic_bytes = sizeof recording->header->magic;
	int pagemap = (int)cuf_open("/proc/self/pagemap", O_RDONLY, 0);
	bool is_whole = true;

	for (unsigned i = 0; is_whole && i < recording->header->section_count; i++) {
		const struct cuf_section *section = &recording->header->sections[i];

		is_whole = copy_touched(target, section->offset, used_bytes(recording, section),
					pagemap);
	}
	if (pagemap >= 0)
		cuf_close(pagemap);
	recording->header->created_ns = cuf_clock_ns(CLOCK_MONOTONIC);
	return is_whole &&
	       put(target, magic_bytes, recording->base + magic_bytes, PAGE - magic_bytes);
}

/* ---- moving to the file ---- */

/* Beyond this limit the kernel does not only refuse. It sends SIGXFSZ, which ends the program. */
static int beyond_file_limit(uint64_t bytes)
{
	struct rlimit64 limit;

	if (cuf_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0))
		return 0;
	return bytes > limit.rlim_cur;
}

enum { RESERVE_ATTEMPTS = 1000 };

/*
 * Every block of the file must exist before it is mapped: a store to a sparse file on a full disk
 * is SIGBUS.
 */
static long reserve_blocks(int fd, size_t bytes)
{
	long result;

	/* a signal of the program's may interrupt it, again and again where a timer ticks fast */
	for (unsigned attempt = 0; attempt < RESERVE_ATTEMPTS; attempt++) {
		result = cuf_sys(SYS_fallocate, fd, 0, 0, (long)bytes, 0, 0);
		if (result != -EINTR)
			break;
	}
	if (result == -EOPNOTSUPP || result == -ENOSYS)
		result = cuf_recording_file_fill(fd, bytes);
	return result;
}

/* The kernel may have unmapped the recording's addresses before it failed. */
static long check_move(long result)
{
	if (!cuf_sys_failed(result))
		return 0;
	cuf_fault(CUF_FAULT_MAPPING);
	return result;
}

/*
 * Under a limit of addresses (ulimit -v) there may be none for the file and the recording at the
 * same time. Then the recording is written to the file, which is mapped over its addresses.
 */
static long write_and_map(struct cuf_recording *recording, int fd)
{
	const struct target target = { fd, NULL };
	const uint64_t magic = *(const uint64_t *)recording->base;
	long result = -EIO;

	if (copy_contents(&target))
		result = check_move(cuf_sys_mmap(recording->base, recording->bytes,
						 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
						 fd, 0));
	if (result)
		return result;
	cuf_sys_madvise(recording->base, recording->bytes, MADV_RANDOM);
	__atomic_store_n((uint64_t *)recording->base, magic, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Maps the file somewhere, copies the recording into it, then moves the mapping over the
 * recording's addresses.
 */
static long exchange_mapping(struct cuf_recording *recording, int fd)
{
	struct target target = { fd, NULL };
	long mapped, result;

	mapped = cuf_sys_mmap(NULL, recording->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (cuf_sys_failed(mapped))
		return write_and_map(recording, fd);
	target.at = (uint8_t *)mapped;
	__atomic_store_n(&recording->copy, target.at, __ATOMIC_RELEASE);
	/*
	 * no read-ahead: the kernel would zero large folios around every first touch,
	 * milliseconds each
	 */
	cuf_sys_madvise(target.at, recording->bytes, MADV_RANDOM);
	copy_contents(&target);
	__atomic_store_n((uint64_t *)target.at, *(const uint64_t *)recording->base,
			 __ATOMIC_RELEASE);
	__atomic_store_n(&recording->copy, NULL, __ATOMIC_RELEASE);
	result = cuf_sys(SYS_mremap, mapped, (long)recording->bytes, (long)recording->bytes,
			 MREMAP_MAYMOVE | MREMAP_FIXED, (long)recording->base, 0);
	if (cuf_sys_failed(result))
		cuf_sys_munmap(target.at, recording->bytes);
	return check_move(result);
}

void cuf_recording_discard_file(int fd, const char *path)
{
	cuf_close(fd);
	cuf_sys(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0, 0, 0);
}

int cuf_recording_open_file(const struct cuf_name_parts *names, char *path, unsigned path_bytes,
			    const char **why)
{
	long result;
	int fd;

	path[0] = 0;
	*why = "cannot create recording";
	if (cuf_sandbox_entered())
		return -ECANCELED;
	if (beyond_file_limit(cuf_recording.bytes))
		return -EFBIG;
	fd = cuf_recording_file_create(names, path, path_bytes);
	if (fd < 0)
		return fd;
	*why = "cannot reserve space for recording";
	result = reserve_blocks(fd, cuf_recording.bytes);
	if (!result)
		return fd;
	cuf_recording_discard_file(fd, path);
	return (int)result;
}

int cuf_recording_to_file(int fd, const char *path, const char **why)
{
	long result = exchange_mapping(&cuf_recording, fd);

	*why = "cannot map recording";
	if (result) {
		cuf_recording_discard_file(fd, path);
		return (int)result;
	}
	cuf_close(fd);
	strcpy(cuf_recording.path, path);
	return 0;
}

/* MADV_POPULATE_WRITE of Linux 5.14; older kernels refuse it, and nothing happens */
#define POPULATE_WRITE 23

void cuf_recording_populate(void *from, size_t bytes)
{
	if (!*cuf_recording.path || cuf_sandbox_entered())
		return;
	cuf_sys_madvise(from, bytes, MADV_NORMAL); /* large folios are welcome here */
	cuf_sys_madvise(from, bytes, POPULATE_WRITE);
}
