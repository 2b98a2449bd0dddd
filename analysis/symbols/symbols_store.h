/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What struct symbols consists of, for the files that fill it: symbols.c from program files,
 * names_file.c from a pack. Contract: the lock of struct symbols is held for every access, except
 * to what a finished struct place points to.
 */
#pragma once

#include <pthread.h>
#include <uthash.h>
#include "analysis/symbols/debug_lines.h"
#include "analysis/symbols/module_file.h"
#include "analysis/symbols/symbol_table.h"
#include "analysis/symbols/symbols.h"

/* A text, kept once. */
struct stored_text { UT_hash_handle hh; char bytes[]; };

struct place {
	uint64_t elf_address;
	const char *hint;
	struct symbols_frame *frames; /* NULL: not resolved yet */
	size_t count;
	UT_hash_handle hh;
};

/* The names of one file. Modules whose paths lead to the same file share them. */
struct file_id { dev_t device; ino_t inode; };
struct file_names {
	struct file_id id;
	struct symbol_table table;
	struct debug_lines lines;
	UT_hash_handle hh;
};

struct symbols_module {
	struct symbols *symbols;
	struct module_file file;
	const char *name;
	bool loaded;
	struct file_names *names;     /* NULL: not loaded, or no usable file */
	struct place *places;
	const char *constant;         /* that symbols_module_constant found; NULL: none */
	bool recorded;                /* state, constant and names come from a pack */
	UT_hash_handle hh;
	size_t build_id_bytes;
	uint8_t key[];                /* build-id, then path, NUL-terminated */
};

struct symbols {
	pthread_mutex_t lock; /* of everything below, of all modules and of libdw */
	struct symbols_options options; /* its texts are the copies below */
	char *sysroot, **search_dirs;
	char *debug_path;
	Dwfl_Callbacks callbacks;
	Dwfl *dwfl;
	struct symbols_module *modules;
	struct file_names *files;
	struct stored_text *texts;
};

/* One copy of a text, for as long as the symbols live. */
const char *symbols_keep(struct symbols *symbols, const char *bytes, size_t count);
/* As symbols_module, with the lock held. */
struct symbols_module *symbols_module_of(struct symbols *symbols, const char *path,
					 const uint8_t *build_id, size_t build_id_bytes);
struct place *symbols_place_at(struct symbols_module *module, uint64_t elf_address);
