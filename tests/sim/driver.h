/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the simulated driver: one struct for every object that an application can hold
 * (memory, handles, contexts, pools, graphs), found by address or handle, and the few functions
 * that its files share.
 *
 * Contract. Every export goes through CALL(), which takes the one lock of the process. Functions
 * named without cu are called with that lock held. Device bytes are counted in the state that all
 * processes of a run share (driver_device.c); everything else is private to the process. Device
 * addresses are numbers without memory behind them; managed and pinned memory is real. Sizes are
 * bytes. Results are CUresult; a failing function changes nothing.
 *
 * No function here calls an export of this library by name: under a preload that could be another
 * object's function. The exceptions, in cuInit, test exactly that.
 */
#pragma once

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "interpose/abi/cuda_types.h"

#define API __attribute__((visibility("default")))
#define SIM_LIBC(ret, name, params)
#define SIM_FOREIGN(ret, name, params)
#define SIM_CUDART(ret, name, params)
#define SIM_CUFLIGHT(ret, name, params)
#define SIM_CUDA(ret, name, params) API ret name params;
#define HOOK(id, lib, ret, name, params, args, role) SIM_##lib(ret, name, params)
#include "interpose/abi/hooks.def"

/* An export that the hook table does not declare. */
#define EXPORT(name, params) API CUresult name params; API CUresult name params
#define CALL(base, how, work) { CUresult result_ = call_begin(base, how); if (!result_) { result_ = (work); call_end(); } return result_; }

enum call_how {
	CALL_PLAIN = 0,
	CALL_UNSAFE = 1 /* prohibited while a stream captures, see capture_prohibits() */
};

enum { CUDA_ERROR_INVALID_IMAGE = 200, CUDA_ERROR_CONTEXT_IS_DESTROYED = 709, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903 };

#define PAGE_BYTES (2ull << 20)
#define SLOT_BYTES 512u
#define SMALL_BYTES (1u << 20) /* requests up to here share pages */
#define DEVICES_MAX 16

#define TENANTS_MAX 32
#define SIM_UUID_STEM "simulated-gpu-" /* its end is part of it; one byte more: the ordinal */
#define SIM_PCI_FORMAT "0000:%02X:00.0" /* of ordinal + 1 */

struct settings {
	int devices, version;
	/* processes elsewhere, on each device; NVML knows them */
	struct gpu_process { uint32_t pid; bool untold; uint64_t bytes; } tenants[TENANTS_MAX];
	int tenant_count;
	uint64_t tenant_bytes;
	uint64_t total_bytes, other_bytes, context_bytes, module_bytes, granularity_bytes;
	unsigned delay_us;
	bool lookups_only, no_vmm;
	const char *fail, *log, *state;
};
extern struct settings settings;

enum kind {
	KIND_LINEAR = 1, KIND_MANAGED, KIND_PINNED, KIND_REGISTERED, KIND_ASYNC, KIND_NODE_MEMORY, KIND_MAPPING, KIND_IMPORTED,
	KIND_RESERVATION, /* its own tree: a mapping begins where its reservation does */
	KIND_VMM, KIND_POOL, KIND_ARRAY, KIND_CONTEXT, KIND_STREAM, KIND_EVENT, KIND_MODULE, KIND_EXTERNAL, KIND_GRAPH,
	KIND_NODE, KIND_EXEC, KIND_MULTICAST,
	KIND_BINDING /* of the memory `owner` to the multicast object `requested`, at `bytes` */
};

/* Free address ranges, sorted, adjacent ones joined. */
struct range { struct range *next; uint64_t start, bytes; };

/* A 2 MiB page that small blocks share, one bit for 512 bytes; the list `next` holds those with
 * room, by address. */
struct page {
	struct page *next;
	uint64_t addr;
	struct object *context;
	int device, used_slots, run_bound /* no run of free slots is longer than this */;
	bool listed;
	uint64_t bits[PAGE_BYTES / SLOT_BYTES / 64];
};

struct place { uint64_t addr, bytes; struct page *page; /* shared last page, or NULL */ };

struct pool {
	struct range *unused; /* reserved, in no block */
	uint64_t reserved, reserved_high, used, used_high, threshold, max_bytes;
	uint64_t reuse[4];
	unsigned blocks;
	bool destroyed, on_host, imported;
};

struct object {
	RB_ENTRY(object) link;
	uint64_t addr;             /* key: address or handle */
	uint64_t bytes;            /* as the driver counts them */
	uint64_t requested;
	uint64_t id;               /* never reused */
	struct object *context;    /* dies with it; NULL: bound to none */
	/* pool of a block, handle of a mapping, graph of a node or an exec, external memory of a
	 * buffer */
	struct object *owner;
	struct object *next;       /* nodes of a graph, node memory of an exec */
	enum kind kind;
	int device;
	uint32_t refs, maps, flags;
	union {
		struct place place;                               /* LINEAR, ARRAY */
		struct pool pool;                                 /* POOL */
		/* shared: index in the exported table, or -1 */
		struct { int shared; bool on_host; CUmemAllocationProp prop; } vmm;
		struct { struct object *graph; uint64_t id; pid_t thread; int mode; bool broken; } stream;
		struct { struct object *first, *last; bool instantiated; } graph;
		struct { int type; CUdeviceptr ptr; CUDA_MEM_ALLOC_NODE_PARAMS alloc; } node;
		struct { uint64_t peak_bytes, attached_bytes; bool auto_free; unsigned live; } exec;
		struct { bool attached; } node_memory;
		struct { CUDA_ARRAY3D_DESCRIPTOR desc; struct place place; bool deferred; } array;
		struct { bool primary, active; } context_state;
		struct { char handle[64]; } imported;
	};
};

/* driver.c */
CUresult call_begin(const char *base, enum call_how how);
void call_end(void);
bool device_valid(CUdevice device);
static inline uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

/* driver_lookup.c */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *self_symbol(const char *exact_name);

/* driver_device.c: bytes of the devices, shared among processes */
bool device_join(void);
bool device_take(int device, uint64_t bytes);
void device_give(int device, uint64_t bytes);
bool device_look(void);                                 /* only to read: takes no part */
uint64_t device_free_bytes(int device);
struct device_user { uint32_t pid; bool untold; uint64_t bytes; };
/* how many there are, perhaps more than max */
unsigned device_users(int device, struct device_user *users, unsigned max);
/* own bytes become shared ones; index, or -1 */
int shared_export(int device, uint64_t bytes);
bool shared_import(int index, uint64_t id, uint64_t *bytes, int *device);
void shared_release(int index);
uint64_t shared_id(int index);
bool process_alive(pid_t pid, uint64_t start_ticks);
uint64_t process_start_ticks(pid_t pid);

/* driver_object.c: objects, ranges, real memory */
/* addr 0: the object's own address is the handle */
struct object *object_new(enum kind kind, uint64_t addr);
void object_delete(struct object *object);
struct object *object_find(enum kind kind, uint64_t addr);
/* memory that covers the address, any kind */
struct object *object_at(uint64_t addr);
/* walk of one tree; NULL begins */
struct object *object_next(const struct object *after, bool memory);
struct object *reservation_at(uint64_t addr, uint64_t bytes);
uint64_t range_take(struct range **list, uint64_t bytes, uint64_t alignment);
bool range_take_at(struct range **list, uint64_t start, uint64_t bytes);
void range_give(struct range **list, uint64_t start, uint64_t bytes);
struct page *page_new(void);
void page_delete(struct page *page);
uint64_t address_take(uint64_t bytes, uint64_t alignment);
uint64_t address_take_low(uint64_t bytes, uint64_t alignment); /* fits 32 bits */
bool address_take_at(uint64_t addr, uint64_t bytes);
void address_give(uint64_t addr, uint64_t bytes);
void *host_take(uint64_t bytes);
void host_give(uint64_t addr, uint64_t bytes);

/* driver_context.c */
CUresult context_current(struct object **out);
int current_device(void);                                /* -1: none */

/* driver_linear.c */
CUresult place_take(struct object *context, uint64_t bytes, struct place *out);
void place_give(int device, const struct place *place);
/* any kind that cuMemFree and resets free */
void memory_free(struct object *memory);

/* driver_array.c, driver_share.c, driver_graph.c, driver_pool.c: ends of what a context or a free
 * takes along */
void array_free(struct object *array);
void pool_block_free(struct object *block);
CUresult pool_alloc(CUdeviceptr *out, uint64_t bytes, struct object *pool, CUstream stream);
struct object *pool_current(CUdevice device);
/* release above the threshold: what a synchronize does */
void pools_settle(int device);
void node_memory_free(struct object *memory);
void graph_drop(struct object *graph);                   /* one reference less */
bool capture_prohibits(void);
/* the stream when it captures, else NULL */
struct object *capture_of(CUstream stream);
CUresult capture_alloc(struct object *stream, CUdeviceptr *out, uint64_t bytes, const CUmemPoolProps *props);
CUresult capture_free(struct object *stream, CUdeviceptr ptr);
