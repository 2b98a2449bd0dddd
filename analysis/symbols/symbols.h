/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for native code, read offline: (module file, build-id, ELF address) -> function, file and line, inlines included.
 *
 * Contract. A module is verified before a single name is taken from it: the build-id of the file on disk must be the one
 * recorded, else the handle knows its module's name and the address alone and says why (symbols_module_state). No input
 * fails a call: what is not known is NULL or 0 in the frame. Files are hostile: damage costs names, never the process
 * (a file that somebody truncates while it is read is the one exception: it is mapped).
 * Every string and array handed out belongs to the struct symbols and lives as long as it. One thread at a time.
 * Memory: dies on exhaustion (libiberty's xmalloc).
 *
 * elf_address is the caller's business: an address as the module's own program headers count, with 1 taken off, since a
 * return address is that of the next instruction, perhaps of the next function or line:
 *     elf_address = return_address - cuf_meta_module.base - 1
 */
#ifndef SYMBOLS_H
#define SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols;
struct symbols_module;

struct symbols_options {
	const char *sysroot;            /* put before every module's path and every debug directory; NULL: this machine's own files */
	const char *const *search_dirs; /* also looked in: DIR/full/path, DIR/basename, DIR/.build-id; NULL */
	size_t search_dir_count;
	bool debuginfod;                /* ask the servers of DEBUGINFOD_URLS: slow, and over the network. false: the variable is unset */
};

enum symbols_state {
	SYMBOLS_VERIFIED,   /* build-id on disk equals the recorded one */
	SYMBOLS_UNVERIFIED, /* neither the recording nor the file has a build-id: names are a guess by path */
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

/* The module of this path and build-id, opened at first sight and kept. build_id_bytes 0: the recording has none; 20: the
 * recorder cuts there, so a longer id on disk is compared by its head. Never NULL. path NULL or "" is a missing file. */
struct symbols_module *symbols_module(struct symbols *symbols, const char *path,
				      const uint8_t *build_id, size_t build_id_bytes);

enum symbols_state symbols_module_state(const struct symbols_module *module);
const char *symbols_module_reason(const struct symbols_module *module); /* a sentence part, "no such file: /x"; NULL when verified */
const char *symbols_module_name(const struct symbols_module *module);   /* last part of its path */

/* Reads the module's constants (.rodata) through for these texts: the index of one that is there, count when none is or
 * there is no file that may be its. Slow: once a module. */
size_t symbols_module_constant(struct symbols_module *module, const char *const *texts,
			       size_t count);

/* The functions at this address, innermost first: the inlined ones, then the real one. Returns their count, at least 1;
 * *frames stays valid. With nothing known: one frame with the module's name. Asked again, answers at once. */
size_t symbols_resolve(struct symbols_module *module, uint64_t elf_address,
		       const struct symbols_frame **frames);

/* A name kept in the recording (CUF_META_FUNCTION: "symbol" or "symbol+0x1f", mangled or not) for exactly this address;
 * used where the file has no better. Call it before resolving the address. The text need not be NUL-terminated. */
void symbols_hint(struct symbols_module *module, uint64_t elf_address, const char *name,
		  size_t name_bytes);

#endif
