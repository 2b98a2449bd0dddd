/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One allocator as a model: requests come in, requests to the driver go out (driver_pages.h). A
 * model is a constant table of functions, so that the player knows no allocator by name.
 *
 * Contract: open returns a state that only the functions of the same model are called with, and
 * that close frees; or NULL with *why, a constant clause, when the values contradict each other. A
 * model owns what it took from the driver, and need not free it at close: the driver ends with
 * the replay. `block` numbers come from the trace; a model keeps what it needs below that number,
 * which is less than block_count. alloc returns false when the request is refused, and must then be
 * as it was after its own attempts to make room. Threads: each state is one thread's.
 */
#pragma once

#include <stddef.h>
#include "analysis/base/xalloc.h"
#include "analysis/what_if/driver_pages.h"

enum { MODEL_SETTINGS_MAX = 16 };

enum model_setting_type {
	SETTING_FLAG,  /* True, False, 1, 0, yes, no */
	SETTING_MIB,   /* a number of MiB; the value is in bytes */
	SETTING_BYTES, /* a size as in 512MiB, or a number of bytes */
	SETTING_NUMBER,
	SETTING_RATIO, /* from least to most, which are 0 and 1 where the row has 0 and 0 */
	SETTING_WORD,  /* one of words */
	SETTING_TEXT   /* the model reads it; NULL from its check function is no error */
};

/* A setting by the name that users type. */
struct model_setting {
	const char *name;
	enum model_setting_type type;
	double least, most; /* of a number; both 0: any */
	const char *words;  /* of WORD: separated by spaces; the value is the index */
};

/* What was typed, by the rows of the model's settings. */
struct model_value {
	const char *text; /* NULL: not set, the default counts */
	double number;    /* of FLAG, MIB, BYTES (in bytes), NUMBER, RATIO; WORD: the index */
};
struct model_values { struct model_value value[MODEL_SETTINGS_MAX]; };

/* What an allocator is opened on. */
struct model_ground {
	struct driver_pages *driver;
	uint64_t total_bytes;  /* of the device: fractions are of this */
	uint64_t limit_bytes;  /* what the program allows the allocator; CUF_UNKNOWN */
	uint32_t block_count;
	const char *version;   /* of the framework as recorded; "": the newest that is known */
};

struct model_request {
	uint64_t bytes;
	uint32_t block;
	unsigned group;  /* trace_step.group: memory is shared only inside a group */
	bool is_private; /* the group is a private pool of graphs */
};

struct model_figures {
	uint64_t allocated_bytes; /* in blocks, as rounded by the allocator */
	uint64_t reserved_bytes;  /* of the driver */
	uint64_t releasable_bytes; /* of these: what the allocator would release for a request */
	uint64_t peak_reserved_bytes;
};

struct allocator_model {
	const char *name;     /* "PyTorch's caching allocator" */
	const char *variable; /* of the environment, or an option, that has the settings; NULL */
	const struct model_setting *settings;
	size_t setting_count;
	/* Which requests are its own, 1u << enum cuf_kind; the driver gets the others. */
	unsigned kinds;
	void *(*open)(const struct model_values *values, const struct model_ground *ground,
		      const char **why);
	bool (*alloc)(void *state, const struct model_request *request);
	void (*free)(void *state, uint32_t block);
	void (*empty_cache)(void *state); /* NULL: it has no cache that a program can empty */
	struct model_figures (*look)(const void *state);
	void (*close)(void *state);
};

/* Only the driver: the floor with which allocators are compared; in driver_pages.c. */
extern const struct allocator_model driver_model;
/* All models, NULL-terminated; in trials.c. */
extern const struct allocator_model *const allocator_models[];

/*
 * Reads settings as they are typed: "name:value,name:value", or with = instead of the colon; a
 * value in [] may have commas and colons. Copies go to the arena. False: *why is a clause.
 */
bool model_values_parse(const struct allocator_model *model, const char *typed,
			struct model_values *out, struct arena *arena, const char **why);
