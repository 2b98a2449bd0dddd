/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of frameworks and libraries by name: one table. A new framework is a row here and
 * its advice in explain/causes_fix.c; which functions of it allocate what is in role_names.c.
 *
 * Contract: constant data and pure look-ups. Paths are those of loaded modules, or of Python files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct framework {
	const char *name;
	const char *built_on;      /* the framework below an engine; NULL */
	const char *paths[8];      /* parts of paths by which it is recognised */
	const char *words[4];      /* parts of the command line by which it is recognised */
	bool agents; /* no device memory; it explains most of the host memory */
	/* Its allocator keeps freed device memory. keepers: parts of paths of the libraries that
	 * allocate from the driver for it. */
	const char *keepers[8];
	/* What its allocator is called if it reports nothing of what is inside its regions.
	 * NULL: it reports its blocks, or keeps no regions. */
	const char *region_backend;
	/* How its functions begin, where it may be linked into a program; NULL. */
	const char *function_prefix;
	const char *fronts[2]; /* beginnings of file names: code that allocates for its callers */
	/* Beginnings of file names of libraries whose functions show what blocks are for. */
	const char *symbols[6];
};

/* By index from 0; NULL at the end. Engines come before the frameworks that they are built on. */
const struct framework *framework_at(size_t index);
const struct framework *framework_named(const char *name); /* NULL: not in the table */
bool framework_has_path(const struct framework *framework, const char *path);
bool framework_has_words(const struct framework *framework, const char *cmdline);
/* Is this one of the libraries that allocate from the driver for the framework's allocator? */
bool framework_keeps(const struct framework *framework, const char *path);
/* Is `name` this framework, or what it is built on ("PyTorch" for "vLLM")? */
bool framework_is(const char *framework, const char *name);

/* Code that allocates for its callers: a framework's allocator, or the CUDA runtime. A call site
 * begins behind it. */
bool is_allocator_front(const char *path);
/* The CUDA runtime and driver, which every caller of CUDA has on its stack. */
bool is_cuda_library(const char *path);
/* Do functions of this module show what blocks are for? The program itself may be a single-file
 * build. */
bool has_telling_symbols(const char *path, const char *exe);
/* The Python interpreter: it makes the arenas of small objects. */
bool is_python_interpreter(const char *path);

/* The vendor of the GPUs that this runtime is for; NULL: no runtime, or NVIDIA's. */
const char *other_gpu_vendor(const char *path);

/* Libraries whose blocks are all for themselves: "communication", "library", ...; NULL: none of
 * them. */
const char *library_role(const char *path);
/* Libraries that allocate device memory which no call shows; 0 .. unseen_libraries() - 1. */
size_t unseen_libraries(void);
bool is_unseen_library(size_t index, const char *path);

/*
 * The model that a server's command line names: "--model NAME", "vllm serve NAME", "llama-server
 * -m FILE" and their like. Contract: cmdline as recorded, words separated by blanks; pure; out is
 * always terminated, "" where no model is named.
 */
void model_name(const char *cmdline, char *out, size_t bytes);
