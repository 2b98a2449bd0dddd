/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of native code, read offline: module file, build-id and ELF address to function, file and
 * line, inlined functions included.
 *
 * Contract. A module is verified before it is used: the build-id of the file must be the recorded
 * one. Otherwise the handle has only the name of the module, and symbols_module_reason tells why.
 * No input makes a call fail: what is unknown is NULL or 0 in the frame. Files are hostile: damage
 * costs names, never the process. The one exception is a file that is truncated while it is
 * mapped. Strings and arrays belong to the struct symbols and live as long as it. Several threads
 * may use one struct symbols; they wait for each other. Dies on exhaustion (xmalloc of libiberty).
 *
 * elf_address is an address as the program headers of the module count, minus 1: a return address
 * is that of the next instruction, which may belong to the next line or function.
 *
 *     elf_address = return_address - cuf_meta_module.base - 1
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols;
struct symbols_module;

struct symbols_options {
	/* prefix of every module path and debug directory; NULL: none */
	const char *sysroot;
	/* searched, too: DIR/full/path, DIR/basename, DIR/.build-id; NULL */
	const char *const *search_dirs;
	size_t search_dir_count;
	/* query DEBUGINFOD_URLS: slow, over the network. false: the variable is unset */
	bool debuginfod;
};

enum symbols_state {
	SYMBOLS_VERIFIED,   /* build-id on disk equals the recorded one */
	SYMBOLS_UNVERIFIED, /* neither recording nor file has a build-id: a guess by path */
	SYMBOLS_MISSING,    /* no such file here */
	SYMBOLS_DIFFERENT,  /* a file is there, with another build-id */
	SYMBOLS_UNREADABLE  /* not a regular file, no permission, or not ELF */
};

struct symbols_frame {
	const char *function;   /* demangled; NULL unknown */
	const char *module;     /* last part of the module's path; never NULL */
	const char *file;       /* source; NULL unknown */
	unsigned line;          /* 0 unknown */
	bool inlined;           /* this function was inlined into the next frame of the array */
	bool hinted;            /* function comes from the recording, not from a file */
	const char *language;   /* "native" */
};

/* options NULL: all defaults. */
struct symbols *symbols_new(const struct symbols_options *options);
void symbols_free(struct symbols *symbols); /* NULL is fine */

/* The module of this path and build-id, opened at the first call and kept; never NULL.
 * build_id_bytes 0: the recording has none; 20: the recorder cut there, so a longer id is compared
 * by its first 20. path NULL or "" is a missing file. */
struct symbols_module *symbols_module(struct symbols *symbols, const char *path,
				      const uint8_t *build_id, size_t build_id_bytes);

enum symbols_state symbols_module_state(const struct symbols_module *module);
/* A clause such as "no such file: /x"; NULL when the module is verified. */
const char *symbols_module_reason(const struct symbols_module *module);
/* The last part of its path. */
const char *symbols_module_name(const struct symbols_module *module);

/* Searches the module's constants (.rodata) for texts: the index of the first one found; count when
 * none is there or the file is not verified. Slow: call it once per module. */
size_t symbols_module_constant(struct symbols_module *module, const char *const *texts,
			       size_t count);

/* The functions at this address, innermost first: the inlined ones, then the real one. Returns
 * their number, at least 1; *frames stays valid. Of an unknown address: one frame with the name of
 * the module. Answers are cached. */
size_t symbols_resolve(struct symbols_module *module, uint64_t elf_address,
		       const struct symbols_frame **frames);

/* A name that the recording has for this address (CUF_META_FUNCTION: "symbol" or "symbol+0x1f",
 * mangled or not). It is used where the file has no better one. Call it before resolving the
 * address. The text need not be NUL-terminated. */
void symbols_hint(struct symbols_module *module, uint64_t elf_address, const char *name,
		  size_t name_bytes);
