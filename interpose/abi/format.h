/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording: what one process leaves in its .cuf file. Grammar, meaning and the compatibility
 * promise are in FORMAT.md next to this file.
 *
 * Contract. The recorded process maps the file MAP_SHARED. Its threads write without locks, and
 * nothing is flushed: whatever was stored is in the file, also after SIGKILL. All integers are
 * little-endian and naturally aligned. Offsets are bytes from the start of the file. Times are
 * CLOCK_MONOTONIC nanoseconds unless a name states otherwise. In sequence numbers, keys and types,
 * 0 means "never written". In quantities, CUF_UNKNOWN (all ones) means "unknown", and 0 is a value.
 * A reader must treat every number in the file as hostile and check it before use.
 *
 * Publishing order, the one rule that a reader of a live or killed recording needs: the field
 * marked [commit] is stored last (release). A record whose commit field is 0 (or CUF_KEY_BUSY) is
 * incomplete and must be skipped.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/host_blocks.h"
#include "interpose/abi/meta_records.h"
#include "interpose/abi/phase.h"
#include "interpose/abi/recent.h"

#define CUF_MAGIC "CUFLIGHT"
#define CUF_VERSION 1u
#define CUF_ENDIAN 0x01020304u
#define CUF_UNKNOWN UINT64_MAX   /* the one name for an unknown quantity of 64 bits */
#define CUF_UNKNOWN32 UINT32_MAX /* and of 32 bits */
#define CUF_DEVICES_MAX 16u
#define CUF_DEVICE_NONE 0xffu /* no device: pinned memory without one, host events */
#define CUF_POOLS_MAX 8u
/* host=sampled: all blocks of at least this size are recorded, with weight 1 */
#define CUF_SAMPLE_EXACT_BYTES 65536u
/* framework blocks of at least this size: the stack of each is recorded */
#define CUF_FRAMEWORK_EXACT_BYTES (1u << 20)
/* GPU page: cudaMalloc's unit since Pascal (pytorch PR 17120) */
#define CUF_PAGE_BYTES (2ull << 20)
#define CUF_PLACE_BYTES 512ull /* the driver puts blocks at multiples of it */

/* What is recorded of the malloc family: option host=, with its words in this order. On disk. */
enum cuf_host_mode {
	CUF_HOST_OFF = 0,
	CUF_HOST_SAMPLED = 1,
	CUF_HOST_FULL = 2
};

/* What a block is made of. On disk: never reuse a number. */
enum cuf_kind {
	CUF_KIND_NONE = 0,
	CUF_KIND_DEVICE = 1,      /* cuMemAlloc, cuMemAllocPitch */
	CUF_KIND_MANAGED = 2,     /* cuMemAllocManaged: not resident until touched */
	CUF_KIND_PINNED = 3,      /* cuMemHostAlloc, cuMemAllocHost */
	CUF_KIND_REGISTERED = 4,  /* cuMemHostRegister: the program's memory, page-locked */
	CUF_KIND_ASYNC = 5,       /* cuMemAllocAsync, cuMemAllocFromPoolAsync; aux = pool */
	CUF_KIND_GRAPH = 6,       /* a device's graph pool; addr = ordinal + 1, bytes = reserved, */
				  /* aux = used */
	CUF_KIND_VMM = 7,         /* physical memory of cuMemCreate; addr = handle */
	CUF_KIND_ARRAY = 8,       /* CUDA arrays and mipmapped arrays; addr = handle */
	CUF_KIND_IMPORTED = 9,    /* IPC, imported pool pointers, external memory: another */
				  /* owner's bytes */
	CUF_KIND_HOST = 10,       /* malloc family, or an mmap */
	CUF_KIND_FRAMEWORK = 11,  /* a sub-block inside a device block; aux = bytes allocated by */
				  /* the framework after it */
	CUF_KIND_MAPPING = 12,    /* VMM: a mapped range of addresses; aux = handle; not memory */
				  /* by itself */
	CUF_KIND_RESERVATION = 13,/* VMM: reserved addresses; never memory */
	CUF_KIND_POOL = 14,       /* a memory pool object; addr = handle, bytes = release */
				  /* threshold */
	CUF_KIND_CONTEXT = 15,    /* what the driver allocated for itself during one call: */
				  /* context, module, limit, graph */
	CUF_KIND_MAX
};

/*
 * Addresses of different spaces may be equal numbers: a handle, a pool, a reservation and the
 * mapping at its start. So a ledger key contains the space: key = space << 58 | address.
 */
enum cuf_space {
	CUF_SPACE_DEVICE = 0,  /* device, managed, async, imported; host pointers cannot clash, */
			       /* because addresses are unified */
	CUF_SPACE_HOST = 1,    /* pinned, registered */
	CUF_SPACE_HANDLE = 2,  /* vmm physical */
	CUF_SPACE_MAPPING = 3,
	CUF_SPACE_RESERVATION = 4,
	CUF_SPACE_ARRAY = 5,
	CUF_SPACE_POOL = 6,
	CUF_SPACE_GRAPH = 7,
	CUF_SPACE_CONTEXT = 8,
	CUF_SPACE_FRAMEWORK = 9
};
#define CUF_KEY_SHIFT 58
#define CUF_KEY_BUSY 1ull /* an entry being filled; no block has address 1 */

static inline unsigned cuf_kind_space(unsigned kind)
{
	switch (kind) {
	case CUF_KIND_PINNED: return CUF_SPACE_HOST;
	case CUF_KIND_REGISTERED: return CUF_SPACE_HOST;
	case CUF_KIND_VMM: return CUF_SPACE_HANDLE;
	case CUF_KIND_MAPPING: return CUF_SPACE_MAPPING;
	case CUF_KIND_RESERVATION: return CUF_SPACE_RESERVATION;
	case CUF_KIND_ARRAY: return CUF_SPACE_ARRAY;
	case CUF_KIND_POOL: return CUF_SPACE_POOL;
	case CUF_KIND_GRAPH: return CUF_SPACE_GRAPH;
	case CUF_KIND_CONTEXT: return CUF_SPACE_CONTEXT;
	case CUF_KIND_FRAMEWORK: return CUF_SPACE_FRAMEWORK;
	default: return CUF_SPACE_DEVICE;
	}
}

static inline uint64_t cuf_key(unsigned space, uint64_t addr)
{
	return (uint64_t)space << CUF_KEY_SHIFT | (addr & ((1ull << CUF_KEY_SHIFT) - 1));
}

static inline uint64_t cuf_key_addr(uint64_t key) { return key & ((1ull << CUF_KEY_SHIFT) - 1); }
static inline unsigned cuf_key_space(uint64_t key) { return (unsigned)(key >> CUF_KEY_SHIFT); }

/* Sections. The header's table lists those present. A reader skips ids that it does not know. */
enum cuf_section_id {
	CUF_SEC_META = 1,         /* append-only records: struct cuf_meta */
	CUF_SEC_DEVICES = 2,      /* struct cuf_device[CUF_DEVICES_MAX], index = ordinal */
	CUF_SEC_THREADS = 3,      /* struct cuf_thread[] */
	CUF_SEC_STACK_INDEX = 4,  /* struct cuf_stack[]; a stack's id is its index + 1 */
	CUF_SEC_STACK_FRAMES = 5, /* uint64_t return addresses */
	CUF_SEC_LEDGER = 6,       /* struct cuf_block[]: what is live, all kinds except host */
	CUF_SEC_HOST_LEDGER = 7,  /* struct cuf_host_block[] */
	CUF_SEC_RING = 8,         /* segments of struct cuf_event */
	CUF_SEC_HOST_RING = 9,    /* segments of struct cuf_host_event */
	CUF_SEC_INCIDENTS = 10,   /* struct cuf_incident[] */
	CUF_SEC_TIMELINE = 11,    /* struct cuf_sample[] */
	CUF_SEC_FRAMEWORK_RING = 12, /* segments of struct cuf_event: framework blocks and */
				     /* phases; one order (seq) with RING */
	CUF_SEC_HOST_PEAK = 13,   /* struct cuf_host_peak[2]: the newer whole one counts */
	CUF_SEC_RECENT = 14,      /* struct cuf_recent[]: extremes of the last seconds to hours */
	CUF_SEC_MAX
};

struct cuf_section {
	uint32_t id;
	uint32_t record_bytes; /* size of one record as written; a reader steps by it */
	uint64_t offset;
	uint64_t bytes;        /* the whole section, a multiple of 4096 */
};

enum cuf_run_state {
	CUF_RUNNING = 1,
	CUF_OFF = 2         /* the recorder switched itself off: META NOTE has the reason */
};

enum cuf_end_kind {
	CUF_END_NONE = 0,   /* no end record: running, or killed */
	CUF_END_EXIT = 1,   /* exit, quick_exit, return from main; end_status = exit status */
	CUF_END_ABORT = 2,  /* abort(); end_status = signal number (SIGABRT) */
	CUF_END_EXEC = 3,   /* the process image was replaced */
	CUF_END_FAST = 4    /* _exit: no exit handlers ran; end_status = exit status */
};

/* Tables that can overflow. Each counts what was dropped. On disk: append only. */
enum cuf_loss {
	CUF_LOST_THREADS = 0,    /* events of threads without a slot */
	CUF_LOST_RING = 1,       /* device events without a segment */
	CUF_LOST_HOST_RING = 2,
	CUF_LOST_LEDGER = 3,     /* blocks without a ledger entry */
	CUF_LOST_HOST_LEDGER = 4,
	CUF_LOST_STACKS = 5,     /* stacks not interned: index or frames full */
	CUF_LOST_META = 6,       /* module, name or note records for which META was full */
	CUF_LOST_INCIDENTS = 7,  /* incidents that overwrote an older one */
	CUF_LOST_DEVICES = 8,    /* devices beyond CUF_DEVICES_MAX */
	CUF_LOST_SWITCH = 9,     /* events during the one hand-over from memory to the file */
	CUF_LOST_NESTED = 10,    /* events from inside the recorder (signal handlers) */
	CUF_LOST_FRAMEWORK_RING = 11, /* framework events without a segment */
	CUF_LOST_CODES = 12,     /* names of Python functions and of phases */
	CUF_LOST_TASKS = 13,     /* events of clone tasks that have another thread's TLS */
	CUF_LOST_SMALL = 14,     /* what a small table had no room for: sums of call sites and */
				 /* pages (incidents have none then), pools, bindings, shared */
				 /* maps, creators of threads */
	CUF_LOST_MAX = 16
};

/* Stacks that stopped early, by reason. Index of cuf_header.stack_stops. On disk: append only. */
enum cuf_stop {
	CUF_STOP_END = 0,        /* the outermost frame was reached */
	CUF_STOP_DEPTH = 1,      /* stack_depth frames */
	CUF_STOP_NO_RULE = 2,    /* no unwind information: JIT code, hand-written assembly */
	CUF_STOP_UNSUPPORTED = 3, /* a rule that the walker does not interpret */
	CUF_STOP_BOUNDS = 4,     /* next frame outside the stack: fiber, alternate stack, damage */
	CUF_STOP_SIGNAL = 5,     /* signal frame not crossed */
	CUF_STOP_MAX = 8
};

struct cuf_header {
	char magic[8];
	uint32_t version;
	uint32_t endian;
	uint32_t header_bytes;   /* where this struct ends for this writer */
	uint32_t section_count;
	uint64_t file_bytes;
	uint32_t machine;        /* ELF e_machine */
	uint32_t page_bytes;
	uint64_t created_ns;     /* file created */
	uint64_t start_ns;       /* recorder started, CLOCK_MONOTONIC */
	uint64_t start_realtime_ns; /* the same instant in CLOCK_REALTIME */
	uint32_t pid, ppid;
	uint64_t process_start_ticks; /* /proc/self/stat field 22: distinguishes a reused pid; */
				      /* CUF_UNKNOWN */
	uint8_t boot_id[16];     /* /proc/sys/kernel/random/boot_id; zeros when unknown */
	uint64_t options_host_mode;  /* enum cuf_host_mode */
	uint64_t sample_mean_bytes;  /* of the sampler, at start */
	uint64_t stack_depth;
	uint64_t device_segment_bytes; /* of the ring segments */
	uint64_t host_segment_bytes;
	struct cuf_section sections[24];

	/* from here on written while recording */
	_Alignas(64) uint32_t state;  /* enum cuf_run_state */
	uint32_t end_kind;       /* [commit] of the four below */
	uint64_t end_status;
	uint64_t end_ns;
	uint64_t end_seq;        /* last sequence number before exit handlers */
	uint64_t driver_version; /* cuDriverGetVersion: 13000 = 13.0; 0 before CUDA was seen */
	uint64_t gpa_identity;   /* self-test: 0 not run; 1 cuGetProcAddress returns the exported */
				 /* pointers; 2 it does not */
	uint64_t first_cuda_ns;  /* first CUDA call; 0 none */
	_Alignas(64) uint64_t next_seq;      /* last sequence number of a device event */
	_Alignas(64) uint64_t next_ticket;   /* last ticket of a device ring segment */
	uint64_t overwritten;                /* device events that were overwritten */
	_Alignas(64) uint64_t next_host_ticket;
	uint64_t host_overwritten;
	_Alignas(64) uint64_t meta_used;     /* bytes reserved in META; may exceed it: clamp */
	uint64_t frames_used;                /* frames reserved in STACK_FRAMES; clamp */
	uint64_t stack_count;
	uint64_t incident_count;             /* incidents ever; see struct cuf_incident */
	uint64_t sample_count;               /* [commit] entries in use in TIMELINE */
	uint64_t sample_interval_ns;         /* present spacing; doubles when TIMELINE is full */
	_Alignas(64) uint64_t lost[CUF_LOST_MAX];
	uint64_t stack_stops[CUF_STOP_MAX];
	uint64_t unknown_frees;  /* of addresses not in the ledger: older than the recorder, or */
				 /* foreign */
	uint64_t replaced;       /* blocks allocated over a live entry: a free was missed */
	uint64_t undone_frees;   /* frees that the driver or libc refused */
	uint64_t recorder_ns;    /* time in the recorder's device paths: one operation in 16, */
				 /* scaled */

	/* from here on not in the first recordings: a reader checks header_bytes */
	_Alignas(64) uint64_t next_framework_ticket;
	uint64_t framework_overwritten;      /* framework events that were overwritten */
	uint64_t framework_sample_mean_bytes; /* stacks of framework blocks below 1 MiB are */
					      /* sampled by bytes with this mean; 0: all are */
					      /* recorded */
	uint64_t framework_segment_bytes;    /* of its ring segments */
	uint64_t framework_events;           /* reports of the framework's allocator, ever */
	uint64_t framework_blind;            /* reports without an address (PyTorch before 1.10) */
	uint64_t python_state;               /* enum cuf_python_state */
	uint64_t python_stops[4];            /* walks of Python frames that ended early: damaged, */
					     /* too deep, unknown layout, no room for names */
	uint64_t phases_left_out;            /* phases, requests and marks dropped: too fast or */
					     /* too deep */
	uint64_t work_end_ns, work_end_seq;  /* an interpreter began to shut down: later frees */
					     /* are not the program's work; 0: not seen */
	uint64_t python_objects_ns;          /* CPython's own allocator is recorded from here on; */
					     /* 0: it is not */
	uint64_t python_arena_bytes;         /* maps that this allocator holds, as far as they */
					     /* were seen */
	uint64_t reserved_bytes;             /* file_bytes of the recorder, where `cuflight` */
					     /* trimmed the file after the end; 0: it did not */
	uint64_t host_peak_bytes;            /* most that was live of host memory, estimated in */
					     /* sampled mode; full mode: as looked at every few */
					     /* ms and at large blocks; 0: not recorded */
	uint64_t host_peak_ns;
	uint64_t pid_namespace;              /* inode of /proc/self/ns/pid, which gave pid; */
					     /* 0: unknown */
};

/* Whether stacks have Python frames. META NOTE has the reason if not. */
enum cuf_python_state {
	CUF_PYTHON_NONE = 0,     /* no interpreter seen */
	CUF_PYTHON_ON = 1,
	CUF_PYTHON_OPTION = 2,   /* python=0 */
	CUF_PYTHON_UNKNOWN = 3,  /* frame layout of this version not supported */
	CUF_PYTHON_DAMAGED = 4   /* a walk found impossible data: switched off */
};

/*
 * A frame of a stack (STACK_FRAMES) is a native return address. With the top bit set, which no
 * address of a program has, it is a Python frame: a code object, named by META CODE, and a line.
 * Python frames replace the interpreter's native frames.
 */
#define CUF_FRAME_PYTHON (1ull << 63)
static inline uint64_t cuf_frame_python(uint32_t code, uint32_t line)
{
	return CUF_FRAME_PYTHON | (uint64_t)(code & 0x7fffffff) << 32 | line;
}
static inline int cuf_frame_is_python(uint64_t frame) { return (frame & CUF_FRAME_PYTHON) != 0; }

/*
 * With the top bits 01, the last frame of a stack is no code: its low bits are the id of the stack
 * that created the thread by pthread_create. The main thread's stacks have none.
 */
#define CUF_FRAME_CREATOR (1ull << 62)
static inline int cuf_frame_is_creator(uint64_t frame)
{
	return frame >> 62 == CUF_FRAME_CREATOR >> 62;
}

/* from 1; 0: the name was dropped */
static inline uint32_t cuf_frame_code(uint64_t frame)
{
	return (uint32_t)(frame >> 32) & 0x7fffffff;
}

/* 0: unknown */
static inline uint32_t cuf_frame_line(uint64_t frame) { return (uint32_t)frame; }

/* What a block is for, where it is known: from ggml's functions, or from the library call during
 * which it was allocated. On disk: never reuse a number. */
enum cuf_role {
	CUF_ROLE_NONE = 0,
	CUF_ROLE_WEIGHTS = 1,
	CUF_ROLE_KV = 2,
	CUF_ROLE_COMPUTE = 3,    /* activations and workspace of a graph */
	CUF_ROLE_OUTPUT = 4,     /* logits, embeddings */
	CUF_ROLE_SCRATCH = 5,    /* a pool that a library grows for its kernels */
	CUF_ROLE_LIBRARY = 6,    /* cuBLAS, cuDNN: workspace, handles */
	CUF_ROLE_COMMUNICATION = 7, /* NCCL */
	CUF_ROLE_GRAPH = 8,      /* a graph's private pool */
	CUF_ROLE_MAX
};

struct cuf_device {
	uint32_t present;        /* [commit] 1: the fields below were queried */
	uint32_t ordinal;        /* driver's index */
	uint8_t uuid[16];
	char name[64];
	char pci[16];
	uint64_t total_bytes;    /* cuMemGetInfo, else cuDeviceTotalMem */
	uint64_t free_bytes;     /* last known before the end; CUF_UNKNOWN */
	uint64_t free_ns;        /* when */
	uint64_t first_free_bytes; /* at the first sample: total - first_free - first_live is */
				   /* what contexts and other processes held before us */
	uint64_t first_live_bytes; /* live device bytes of this process at that sample */
	uint64_t granularity_bytes; /* minimum of cuMemGetAllocationGranularity; CUF_UNKNOWN */
	uint64_t live_bytes[16]; /* by enum cuf_kind */
	uint64_t live_count[16];
	uint64_t peak_bytes;     /* recorded peak of live device memory: device + array + async + */
				 /* graph + vmm */
	uint64_t peak_ns;
	uint64_t alloc_count, free_count, fail_count;
	uint64_t end_free_bytes; /* older recorders queried the driver at the end; CUF_UNKNOWN */
	uint64_t pool_count;     /* entries of end_pools in use: as of free_ns where */
				 /* end_free_bytes is unknown, else of the end */
	struct cuf_pool_level {
		uint64_t pool, reserved_bytes, used_bytes, threshold_bytes;
	} end_pools[CUF_POOLS_MAX];
};

struct cuf_thread {
	uint32_t tid;            /* [commit]; 0: slot never used */
	uint32_t generation;     /* how many threads used this slot */
	uint64_t start_ns;
	char name[16];           /* comm at first sight */
	uint32_t segment, host_segment; /* index + 1 of the current ones; 0 none */
	uint64_t host_allocs, host_frees; /* full mode: calls; sampled mode: recorded blocks; */
					  /* summed over the slot's threads */
	uint64_t host_alloc_bytes, host_free_bytes; /* free_bytes: in full mode only */
	uint32_t busy;           /* 1 while inside the recorder */
	uint32_t reserved;
	uint32_t framework_segment; /* index + 1 of the current one; 0 none */
	uint32_t ended;          /* 1: the thread was gone when the process began to end */
	uint64_t reserved3[5];
};

struct cuf_stack {
	uint64_t hash;           /* of the frames, never 0; claimed first, by compare-and-swap */
	uint32_t first;          /* index into STACK_FRAMES */
	uint16_t depth;          /* [commit] number of frames; 0: incomplete, or dropped */
	uint8_t stop;            /* enum cuf_stop */
	uint8_t noted;           /* for the writer: low byte of the modules' generation when META */
				 /* had all modules of the stack */
};

/* A ring segment: a header, then records to its end. A thread owns one until it is full. */
struct cuf_segment {
	uint64_t ticket;         /* order in which segments were claimed, from 1; 0: never used */
	uint64_t start_ns;
	uint32_t used;           /* [commit] records written */
	uint32_t thread;         /* slot in THREADS */
	uint32_t tid;
	uint32_t owned;          /* 1 while a thread may still append */
	uint64_t sample_mean_bytes; /* host ring: the sampler's mean for these records; 0: all */
				    /* events */
	uint64_t reserved[3];
};

enum cuf_op {
	CUF_OP_NONE = 0,
	CUF_OP_ALLOC = 1,
	CUF_OP_FREE = 2,         /* logged before the real call */
	CUF_OP_RESTORE = 3,      /* the free failed: the block is live again */
	CUF_OP_FAIL = 4,         /* a request that failed; addr = incident number (from 1), extra */
				 /* = CUresult */
	CUF_OP_RESET = 5,        /* context or device reset; FREE events with CUF_EVENT_BULK */
				 /* follow */
	CUF_OP_NODE = 6,         /* an allocation captured into a graph: no memory yet; addr = */
				 /* its future address */
	CUF_OP_REFERENCE = 7,    /* VMM handle, IPC mapping: extra = references | maps << 16 */
				 /* after the change */
	CUF_OP_POOL_LEVEL = 8,   /* addr = pool, bytes = reserved, aux = used */
	CUF_OP_FREE_MEMORY = 9,  /* cuMemGetInfo, of the program or of the recorder: bytes = */
				 /* free, aux = total */
	CUF_OP_EXIT = 10,        /* the end begins: nothing after this is the program's work */
	CUF_OP_UNKNOWN_FREE = 11, /* an address not in the ledger; the call was forwarded */
	CUF_OP_CAPTURE = 12,     /* extra = 1 begin, 0 end of a stream capture; addr = stream */
	CUF_OP_LAUNCH = 13,      /* a graph with memory nodes was launched */
	CUF_OP_PHASE = 14,       /* addr = id of the name (META PHASE; 0 dropped), extra = */
				 /* cuf_phase_extra(), aux = id of the range or request */
	CUF_OP_ROLE = 15         /* the block at addr (kind as given) is for: extra = enum */
				 /* cuf_role */
};

/*
 * Events of kind FRAMEWORK are in the framework ring only: a block inside a device block, as the
 * framework's allocator reports it.
 * ALLOC: bytes = the block, aux = allocated by the framework on this device after it, extra =
 * reserved >> 9; stack 0 = not recorded. FREE: aux and alloc_stack as for other kinds.
 * FAIL: bytes = the request, aux = allocated, extra = reserved >> 9, addr = incident.
 */

#define CUF_EVENT_BULK 0x01u     /* freed by a reset, not by a call of its own */
#define CUF_EVENT_ESTIMATED 0x02u /* bytes are estimated (arrays) */
#define CUF_EVENT_RESERVED_4 0x04u /* never written */
#define CUF_EVENT_EXPORTED 0x08u /* shared with another process: it may stay alive there */
#define CUF_EVENT_HOST_LOCATION 0x10u /* VMM or pool memory located on the host */
#define CUF_EVENT_CONTEXT_BOUND 0x20u /* freed with its context */
/* framework block whose stack was recorded by sampling; weight as for host blocks, header's mean */
#define CUF_EVENT_SAMPLED 0x40u

/* One device event. 64 bytes, one cache line. */
struct cuf_event {
	uint64_t seq;            /* [commit] process-wide order, from 1 */
	uint64_t time_ns;
	uint64_t addr;
	uint64_t bytes;          /* as requested; FREE, RESTORE: of the block */
	uint64_t aux;            /* of the block: pool, handle, ... see enum cuf_kind */
	uint32_t stack;          /* of this call; 0 unknown */
	uint32_t alloc_stack;    /* FREE: of the block's allocation */
	uint32_t tid;
	uint32_t extra;          /* FREE: age of the block in ms; FAIL: CUresult; else see enum */
				 /* cuf_op */
	uint16_t hook;           /* id in hooks.def of the called driver function */
	uint16_t label;          /* id of the runtime function around it; 0 none */
	uint8_t op;              /* enum cuf_op */
	uint8_t kind;            /* enum cuf_kind */
	uint8_t device;
	uint8_t flags;           /* CUF_EVENT_* */
};

/* One live block, in the ledger. 64 bytes. It may be in any entry: readers check all of them. */
struct cuf_block {
	uint64_t key;            /* [commit] cuf_key(); 0 empty, CUF_KEY_BUSY incomplete */
	uint64_t bytes;
	uint64_t aux;
	uint64_t seq;            /* of its ALLOC event */
	uint64_t time_ns;
	uint32_t stack;
	uint32_t tid;
	uint32_t context;        /* folded CUcontext; 0 unknown */
	uint16_t references;     /* VMM handle, IPC mapping: references held */
	uint16_t maps;           /* VMM handle: mappings */
	uint16_t hook, label;
	uint8_t kind, device, flags, role; /* role: enum cuf_role */
};

/*
 * An allocation request that failed, with the state of memory at that moment. The first quarter of
 * the slots keeps the first failures permanently; the rest is reused in turn. With keep = slots/4,
 * incident i (from 1) is in slot i-1 when i <= keep, otherwise in keep + (i-1-keep) % (slots-keep).
 * The number in the slot decides.
 */
#define CUF_INCIDENT_SITES 16u
struct cuf_incident {
	uint64_t number;         /* [commit] from 1 */
	uint64_t seq;            /* of its FAIL event */
	uint64_t time_ns;
	uint64_t requested_bytes;
	uint32_t stack, tid;
	uint16_t hook, label;
	uint8_t kind, device;
	uint8_t outcome;         /* 0 open, 1 recovered, 2 the program went on */
	uint8_t is_request;      /* 0: a launch or a load, which names no size */
	uint32_t result;         /* CUresult, e.g. 2 CUDA_ERROR_OUT_OF_MEMORY */
	uint32_t attempt;        /* 0: the first attempt; n: the n-th retry of it */
	uint64_t first;          /* number of the incident of the first attempt */
	uint64_t free_bytes, total_bytes; /* cuMemGetInfo after the failure; CUF_UNKNOWN */
	uint64_t probed_bytes;   /* largest request that succeeded, option probe=1; CUF_UNKNOWN */
	uint64_t live_bytes[16], live_count[16]; /* this device, by enum cuf_kind */
	uint64_t page_hole_bytes; /* largest free range inside 2 MiB pages in use, from the first */
				  /* place for a block on (until 2026-11-28: to the byte); */
				  /* CUF_UNKNOWN */
	uint64_t pages;          /* with small blocks */
	uint64_t pages_partial;  /* those of them that are not full */
	uint64_t page_free_bytes; /* free bytes in them */
	uint64_t vmm_hole_bytes, vmm_mapped_bytes;
	uint64_t rss_bytes, cgroup_bytes, cgroup_max_bytes; /* CUF_UNKNOWN */
	uint64_t host_live_bytes; /* an estimate in sampled mode; CUF_UNKNOWN */
	uint64_t pool_count;
	struct cuf_pool_level pools[CUF_POOLS_MAX];
	struct cuf_site_level {
		uint32_t stack, kind;
		uint64_t bytes, count;
	} sites[CUF_INCIDENT_SITES]; /* call sites with the most live bytes */
	uint64_t site_count;
	uint64_t resolved_seq;   /* the ALLOC that recovered it; 0 none */

	/* from here on not in the first recordings: see record_bytes */
	uint64_t framework_allocated_bytes; /* as the framework last reported; CUF_UNKNOWN */
	uint64_t framework_reserved_bytes;
	uint32_t phase;          /* id of the name of the thread's innermost phase; 0 none */
	uint32_t request_phase;  /* id of the name of the thread's open request; 0 none */
	uint64_t request_id;
	/* addresses that are mapped, and of these private memory that may be written to, stacks */
	/* included; each with the limit in force (RLIMIT_AS, RLIMIT_DATA). CUF_UNKNOWN, no limit */
	uint64_t address_bytes, address_max_bytes;
	uint64_t data_bytes, data_max_bytes;
};

/* A sample of the timeline. When the table is full, every second one is dropped and the spacing
 * doubles. The last one may be nearer than the spacing: then the next one takes its place. */
struct cuf_sample {
	uint64_t time_ns;
	uint64_t seq;            /* device events so far */
	uint64_t rss_bytes;      /* CUF_UNKNOWN without /proc */
	uint64_t cgroup_bytes;   /* memory.current */
	uint64_t host_live_bytes; /* malloc, estimated in sampled mode */
	uint64_t pinned_bytes;
	uint64_t device_live_bytes[CUF_DEVICES_MAX]; /* device + array + async + graph + vmm */
	uint64_t device_free_bytes[CUF_DEVICES_MAX]; /* last known; CUF_UNKNOWN */
	/* from here on not in the first recordings: see record_bytes */
	uint64_t rss_shared_bytes; /* of rss_bytes: pages of files and shared memory; CUF_UNKNOWN */
	uint64_t framework_live_bytes[CUF_DEVICES_MAX]; /* allocated inside segments, as the */
							/* framework last reported; CUF_UNKNOWN: */
							/* none seen */
	uint64_t cgroup_file_bytes; /* of cgroup_bytes: pages of files, which the kernel drops */
				    /* before it kills; CUF_UNKNOWN except near the limit */
	uint64_t cgroup_shmem_bytes; /* of cgroup_bytes: shared memory and files of tmpfs, mapped */
				     /* or not; CUF_UNKNOWN except near the limit */
	uint64_t thread_count;   /* of the process, recorded or not; CUF_UNKNOWN without /proc */
};

/* A call site in the note of the host's peak. Blocks that were recorded by sampling, and others. */
#define CUF_PEAK_SITES 96u
struct cuf_host_peak_site {
	uint32_t stack;          /* 0: unknown, and in the rest */
	uint32_t is_python;      /* 1: of CPython's own allocator */
	uint64_t exact_bytes;
	uint64_t sampled_bytes;  /* as recorded */
	uint64_t weight_bytes;   /* what these stand for */
	uint32_t exact_count, sampled_count;
};

/*
 * What was live on the host when the total was 5 % above the last note of it, and so at most some
 * 5 % below its peak. Written in turn; the one with the higher number counts.
 */
struct cuf_host_peak {
	uint64_t number;         /* [commit] from 1; 0: never written, or incomplete */
	uint64_t time_ns;
	uint64_t live_bytes;     /* sum of sites and rest */
	uint64_t rss_bytes;      /* CUF_UNKNOWN without /proc */
	uint64_t site_count;
	struct cuf_host_peak_site sites[CUF_PEAK_SITES]; /* largest first */
	struct cuf_host_peak_site rest[2]; /* all others: of malloc, of CPython's own allocator */
};

/* What the first writers wrote of structs that have grown since. The rest is unknown. */
#define CUF_HEADER_BYTES_FIRST offsetof(struct cuf_header, next_framework_ticket)
#define CUF_INCIDENT_BYTES_FIRST offsetof(struct cuf_incident, framework_allocated_bytes)
#define CUF_SAMPLE_BYTES_FIRST offsetof(struct cuf_sample, rss_shared_bytes)

_Static_assert(sizeof(struct cuf_event) == 64, "one cache line");
_Static_assert(sizeof(struct cuf_block) == 64, "one cache line");
_Static_assert(sizeof(struct cuf_segment) == 64, "one cache line");
_Static_assert(sizeof(struct cuf_stack) == 16, "packed by hand");
_Static_assert(sizeof(struct cuf_thread) == 128, "two cache lines");
_Static_assert(sizeof(struct cuf_header) <= 4096, "the header is one page");
