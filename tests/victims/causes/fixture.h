/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of running out of memory. Each is one realistic allocation script. This header is what
 * fixture.c offers to them.
 *
 * Contract. A scenario is a function without arguments. It plays its script on device 0, prints its
 * truth (README.md, "Scenarios") and returns, or ends the process as its program would. Every size
 * and order comes from the seed: between(), around(), chance() and pick() share one sequence of
 * numbers. The sequence is the same for the same scenario, seed and scale, so a rerun with an
 * advised value meets the same program. Sizes are bytes and follow from the free memory of the
 * device. device_malloc returns 0 when refused; take_bytes ends the process as a CUDA program does.
 * Sites are functions that only allocate. They are named like those of real programs because
 * reports show them. Main thread only, unless stated otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned long long device_ptr;

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)
#define GiB ((size_t)1 << 30)
#define COUNT(array) (sizeof(array) / sizeof *(array))

struct scenario {
	const char *name;
	void (*play)(void);
	/* before CUDA is there, for the simulated device's environment; may be NULL */
	void (*prepare)(void);
	unsigned cgroup_mib;   /* to be started in a memory cgroup with this limit; 0: anywhere */
	/* what a person would have written behind the program's name, by setting(); may be NULL */
	void (*arguments)(void);
};
/* one table a file, ended by a row without a name */
extern const struct scenario loading_scenarios[], kv_scenarios[], batch_scenarios[],
	fragmentation_scenarios[], growth_scenarios[], recovered_scenarios[], host_scenarios[],
	healthy_scenarios[], torch_scenarios[], reported_scenarios[], reported_torch_scenarios[],
	unseen_scenarios[], unseen_torch_scenarios[], second_round_scenarios[];

/* Of the command line. */
extern struct request {
	const char *name;
	unsigned seed;
	double scale;
	uint64_t value;     /* --value=N: the advised value of the scenario's knob; UNKNOWN: none */
	uint64_t by_bytes;  /* --by-bytes=N: lower what is too large by so much; 0: not asked */
	/* --apart: what lives long is allocated first, and not between what comes and goes */
	bool apart;
	bool no_tenant;     /* --no-tenant: other processes are on another device, or gone */
	bool whole;         /* --whole: without the limit that the program set itself */
	/* what must not change the cause: everything twice as large; an idle process that has 2 % of
	 * the device; small holes, 1 % of it; ten times as slow */
	bool doubled, idle_tenant, holes, slow;
} request;
#define UNKNOWN UINT64_MAX

/* A setting of the command line, which reports may read: flags as the real programs have them, one
 * value. */
void setting(const char *flag, unsigned value);
unsigned setting_planned(void);
unsigned setting_value(void); /* --value, else as planned */

/* random numbers */
double between(double low, double high);
unsigned between_whole(unsigned low, unsigned high); /* both included */
/* 0.7 to 1.3 of it, times the scale, whole KiB, at least 1 KiB */
size_t around(size_t bytes);
bool chance(double probability);

/* truth */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_not(const char *ids); /* blank between ids */

/* the device */
extern size_t device_total;      /* free before the scenario's first allocation */
size_t share_of(double share);   /* of device_total, whole MiB, at least one */
size_t whole(size_t bytes, size_t unit); /* rounded up */
device_ptr device_malloc(size_t bytes);
void device_free(device_ptr ptr);
size_t device_room(void);        /* asks the driver */
void device_use(int device);
int device_count(void);
void device_synchronize(void);
device_ptr stream_new(void);
device_ptr pool_new(void);                                   /* never releases by itself */
device_ptr pool_malloc(device_ptr pool, device_ptr stream, size_t bytes); /* 0 when refused */
void pool_free(device_ptr ptr, device_ptr stream);
void *pinned_malloc(size_t bytes);                           /* NULL when refused */
void pinned_free(void *ptr);
struct torch_settings;
void device_functions(struct torch_settings *settings);      /* for PyTorch's allocator */
bool kernel_launch(void);                                    /* false: out of memory */
void module_load(void);
void graph_capture_begin(device_ptr stream);
void graph_capture_end(device_ptr stream);

/* Another process that takes so many bytes, its context included, and keeps them for as long as
 * this one lives; recorded as well, or not. Returns when it has them. */
void process_holding(size_t bytes, bool recorded);

/* as CUDA programs end when refused: a message, status 1 */
void give_up(const char *what, size_t bytes) __attribute__((noreturn));

/* sites */
typedef device_ptr site(size_t bytes);
site load_tensors, load_state_dict, llama_load_tensors, read_checkpoint;
site allocate_kv_cache, llama_kv_cache, create_buffers;
site append_kv, dynamic_layer_update, extend_cache;
site mlp_forward, attention_forward, run_step;
site compute_logits, dummy_sampler_run, vocab_projection;
site create_slot_buffers, allocate_batch, worker_request;
site remember_session, keep_outputs, track_history;
site prompt_cache_insert, lru_put, memoize;
site capture_graph, workspace, jit_buffer, adapter_load, legacy_pool_alloc, shrinking_arena_extend;
/* one of the seed's choice */
site *pick(site *const *sites, size_t count);
#define PICK(...) pick((site *const[]){__VA_ARGS__}, COUNT(((site *const[]){__VA_ARGS__})))

device_ptr take_bytes(site *at, const char *what, size_t bytes); /* gives up when refused */

/* a model: layers of four blocks each, as checkpoints are */
struct model { size_t part[4]; unsigned layers; size_t bytes; site *at; };
struct model model_of(size_t bytes); /* about so large, and never more than 1 % off */
void model_load(const struct model *model);
/* what another process has from the start; called before the driver is opened */
void tenant_of(unsigned percent);

/* background work of every program: small blocks come and go, in a fixed share of the device */
void noise(unsigned rounds);
/* the same, in a thread of its own, until noise_end; two in five runs have one */
void noise_begin(void);
void noise_end(void);
/* one step of a forward pass: blocks of these bytes come and go; gives up when refused */
void forward(size_t bytes);
void pause_us(unsigned us);
/* --slow: the next request comes after ten times as long; sleeps of 1 ms at least. Every request
 * calls it. */
void slow_down(void);
