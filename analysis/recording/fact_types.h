/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types that every room above the reader shares: how a figure was obtained, call stacks, and the
 * modules, function names and texts of a recording.
 *
 * Contract: plain data. Strings are NUL-terminated and not NULL unless noted; they have the bytes
 * that the recorded process had, UTF-8 or not. 64-bit quantities and times that are unknown are
 * CUF_UNKNOWN, doubles are NAN; unknown is never 0. An index that refers to nothing is FACT_NONE.
 * Times `_ns` are CLOCK_REALTIME.
 */
#pragma once

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#define FACT_NONE UINT32_MAX

/* How a figure was obtained. BASIS_NONE goes with unknown figures. */
enum fact_basis { BASIS_NONE, BASIS_OBSERVED, BASIS_INFERRED, BASIS_ESTIMATED, BASIS_MAX };

/* The largest free block of one layer. */
struct fact_layer {
	uint64_t bytes;
	const char *words; /* its kind: "upper bound", "measured", "exact", "lower bound", ... */
};

/* A call stack: return addresses, innermost first. The first one is in the caller of the hook. */
struct fact_stack {
	uint32_t process;      /* the process whose modules name it; FACT_NONE: no stack */
	uint32_t id;           /* in that process's recording; 0: unknown, depth is 0 */
	uint32_t depth;
	uint8_t stop;          /* enum cuf_stop: why it ends */
	bool is_joined;        /* a library's in a thread, then that which created the thread */
	const uint64_t *addrs; /* borrowed from the mapped recording; NULL when depth is 0 */
	uint64_t time_ns;      /* when it was in use: selects among modules at one address */
};

/* A loaded object. It has an address when start <= address < end and loaded <= time < unloaded. */
struct fact_module {
	uint32_t id;
	const char *path;
	uint64_t base;           /* load bias: address - base is the ELF address */
	uint64_t start, end;
	uint64_t loaded_ns;
	uint64_t unloaded_ns;    /* CUF_UNKNOWN: still loaded */
	uint32_t build_id_bytes; /* 0: none */
	uint8_t build_id[20];
};

/* No module. */
#define MODULE_NONE UINT32_MAX

/* The recorder's name for a return address, for code whose file may be gone: "symbol+0x1f". */
struct fact_function {
	uint64_t addr;
	const char *name;
	uint32_t module; /* index of the one that was loaded there when the name was read */
};

struct fact_meta_text {
	uint32_t type; /* enum cuf_meta_type */
	uint64_t number;
	uint64_t time_ns;
	const char *text;
	uint64_t allocator; /* of an allocator's text: a hash of which one it is; else 0 */
};

/* The module that had this address at this time (CUF_UNKNOWN: any time); NULL: none. */
const struct fact_module *module_at(const struct fact_module *modules, size_t count, uint64_t addr,
				    uint64_t time_ns);
/* True when different modules had this address, one after another. */
bool module_is_ambiguous(const struct fact_module *modules, size_t count, uint64_t addr);

/* Names of return addresses, sorted by address; modules: the table that they refer to. */
struct fact_functions {
	const struct fact_function *at;
	size_t count;
	const struct fact_module *modules;
};

/* The name of a return address in this module (NULL: in none); NULL: unknown. A name that was read
 * when another module had the address is none. */
const char *function_at(const struct fact_functions *functions, uint64_t addr,
			const struct fact_module *module);
