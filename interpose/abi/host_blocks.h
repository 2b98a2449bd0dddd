/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks and events of the malloc family and of maps: two words each, and how these are packed.
 * Contract: as format.h, of which this is a part. On disk: never reuse a number.
 */
#pragma once

#include <stdint.h>

/*
 * Host blocks, 16 bytes. word0 = address >> 3 in bits 19..63 [commit: the whole word], birth time
 * in bits 0..18 (cuf_birth_*). word1 = stack << 40 | bytes. Blocks are in no order. The writer uses
 * a prefix of the section that doubles as the live set grows; a reader checks every entry.
 */
struct cuf_host_block { uint64_t word0, word1; };
#define CUF_HOST_BUCKET 4u

enum cuf_host_op {
	CUF_HOST_NONE = 0,
	CUF_HOST_ALLOC = 1,      /* malloc and friends */
	CUF_HOST_ZEROED = 2,     /* calloc */
	CUF_HOST_RESIZED = 3,    /* the new block of a realloc */
	CUF_HOST_ALIGNED = 4,    /* memalign family */
	CUF_HOST_FREE = 5,
	CUF_HOST_FREE_RESIZE = 6, /* the old block of a realloc */
	CUF_HOST_RESTORE = 7,    /* the realloc failed: the old block is live again */
	CUF_HOST_TIME = 8,       /* word1 = absolute time in ns; later ticks count from here */
	CUF_HOST_MMAP = 9,
	CUF_HOST_MUNMAP = 10,
	CUF_HOST_THREAD = 11     /* word1 = tid: the slot's next thread writes from here on */
};

/*
 * One host event, 16 bytes. word0 = op in bits 0..3, ms since the last TIME record in bits 4..18
 * (saturating), address >> 3 in bits 19..63. word1 = stack << 40 | bytes (FREE: of the block when
 * it was known, otherwise 0). Blocks of 1 TiB and more saturate the 40 bits. [commit:
 * cuf_segment.used]
 */
struct cuf_host_event { uint64_t word0, word1; };
#define CUF_HOST_BYTES_MASK ((1ull << 40) - 1)

static inline uint64_t cuf_host_word0(unsigned op, unsigned tick_ms, uint64_t addr)
{
	uint64_t tick = tick_ms > 0x7fff ? 0x7fff : tick_ms;
	return (addr >> 3) << 19 | tick << 4 | op;
}

static inline uint64_t cuf_host_block_word0(uint64_t addr, uint32_t birth)
{
	return (addr >> 3) << 19 | birth;
}

static inline uint64_t cuf_host_word1(uint32_t stack, uint64_t bytes)
{
	if (bytes > CUF_HOST_BYTES_MASK)
		bytes = CUF_HOST_BYTES_MASK;
	return (uint64_t)stack << 40 | bytes;
}

static inline unsigned cuf_host_op(uint64_t word0) { return (unsigned)(word0 & 15); }
static inline unsigned cuf_host_tick_ms(uint64_t word0) { return (unsigned)(word0 >> 4 & 0x7fff); }
static inline uint64_t cuf_host_addr(uint64_t word0) { return word0 >> 19 << 3; }
/* cuf_birth_encode */
static inline uint32_t cuf_host_birth(uint64_t word0) { return (uint32_t)(word0 & 0x7ffff); }
static inline uint64_t cuf_host_bytes(uint64_t word1) { return word1 & CUF_HOST_BYTES_MASK; }
static inline uint32_t cuf_host_stack(uint64_t word1) { return (uint32_t)(word1 >> 40); }

/*
 * Blocks that are not malloc's have addresses that malloc's never have. A map's is its start + 8;
 * that of a file's map + 24, of shared memory (memfd, tmpfs, MAP_SHARED) + 40; its bytes are whole
 * pages. malloc returns no block of whole pages there. A block of CPython's own allocator has bit 3
 * set. Its bytes are as requested, but at least 16, and one more where they would be whole pages.
 * malloc's blocks of more than 8 bytes are multiples of 16.
 */
enum {
	CUF_MAP_PAGE_BYTES = 4096,
	CUF_MAP_ANONYMOUS_OFFSET = 8,
	CUF_MAP_FILE_OFFSET = 24,
	CUF_MAP_SHARED_OFFSET = 40,
	CUF_PYTHON_OFFSET = 8,
	CUF_PYTHON_BYTES_MIN = 16
};

static inline uint64_t cuf_python_address(uint64_t addr) { return addr | CUF_PYTHON_OFFSET; }

static inline uint64_t cuf_python_bytes(uint64_t bytes)
{
	if (bytes < CUF_PYTHON_BYTES_MIN)
		return CUF_PYTHON_BYTES_MIN;
	return bytes + !(bytes % CUF_MAP_PAGE_BYTES);
}

/* Also where the bytes are saturated. */
static inline int cuf_address_is_at(uint64_t addr, uint64_t bytes, unsigned offset)
{
	return addr % CUF_MAP_PAGE_BYTES == offset && bytes >= CUF_MAP_PAGE_BYTES &&
	       (!(bytes % CUF_MAP_PAGE_BYTES) || bytes == CUF_HOST_BYTES_MASK);
}

static inline int cuf_address_is_file_map(uint64_t addr, uint64_t bytes)
{
	return cuf_address_is_at(addr, bytes, CUF_MAP_FILE_OFFSET);
}

static inline int cuf_address_is_shared_map(uint64_t addr, uint64_t bytes)
{
	return cuf_address_is_at(addr, bytes, CUF_MAP_SHARED_OFFSET);
}

static inline int cuf_address_is_map(uint64_t addr, uint64_t bytes)
{
	return cuf_address_is_at(addr, bytes, CUF_MAP_ANONYMOUS_OFFSET) ||
	       cuf_address_is_file_map(addr, bytes) || cuf_address_is_shared_map(addr, bytes);
}

static inline int cuf_address_is_python(uint64_t addr, uint64_t bytes)
{
	return addr & CUF_PYTHON_OFFSET && bytes >= CUF_PYTHON_BYTES_MIN &&
	       !cuf_address_is_map(addr, bytes);
}

/*
 * Birth times in 19 bits: ms since start_ns as a floating-point number of 5 bits exponent and 14
 * bits mantissa. Exact up to 16 s, then to 1/16384 of the age of the process. Weeks fit.
 */
static inline uint32_t cuf_birth_encode(uint64_t ms)
{
	unsigned e = 0;
	while (ms >> e > 0x3fff && e < 31)
		e++;
	return (uint32_t)(e << 14 | ((ms >> e) & 0x3fff));
}

static inline uint64_t cuf_birth_ms(uint32_t birth)
{
	return (uint64_t)(birth & 0x3fff) << (birth >> 14 & 31);
}

_Static_assert(sizeof(struct cuf_host_event) == 16, "packed by hand");
_Static_assert(sizeof(struct cuf_host_block) == 16, "packed by hand");
