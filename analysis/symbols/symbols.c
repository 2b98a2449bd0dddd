/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and the names in them: joins the file (module_file), its symbol table and its DWARF into frames, and keeps every
 * answer. All modules share one libdwfl session (each session costs two descriptors more, for debuginfod), reported at
 * address 0, all of them: we never ask libdwfl which module an address is in, and so its addresses are ELF addresses.
 * Prints nothing.
 */
#include "analysis/symbols/symbols.h"

#include <libiberty/libiberty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "analysis/symbols/debug_lines.h"
#include "analysis/symbols/demangle.h"
#include "analysis/symbols/module_constants.h"
#include "analysis/symbols/module_file.h"
#include "analysis/symbols/symbol_table.h"

struct text { UT_hash_handle hh; char bytes[]; };

struct place {
	uint64_t elf_address;
	const char *hint;
	struct symbols_frame *frames; /* NULL: not asked for yet */
	size_t count;
	UT_hash_handle hh;
};

struct symbols_module {
	struct symbols *symbols;
	struct module_file file;
	const char *name;
	bool loaded;
	struct symbol_table table;
	struct debug_lines lines;
	struct place *places;
	UT_hash_handle hh;
	size_t build_id_bytes;
	uint8_t key[];                /* build-id, then path, NUL-terminated */
};

struct symbols {
	struct symbols_options options;
	char *debug_path;
	Dwfl_Callbacks callbacks;
	Dwfl *dwfl;
	struct symbols_module *modules;
	struct text *texts;
};

static const char *text_keep(struct symbols *symbols, const char *bytes, size_t count)
{
	struct text *text;

	HASH_FIND(hh, symbols->texts, bytes, count, text);
	if (!text) {
		text = xmalloc(sizeof *text + count + 1);
		memcpy(text->bytes, bytes, count);
		text->bytes[count] = 0;
		HASH_ADD_KEYPTR(hh, symbols->texts, text->bytes, count, text);
	}
	return text->bytes;
}

static const char *name_keep(struct symbols *symbols, const char *name)
{
	char *readable = demangle(name);
	const char *kept = text_keep(symbols, readable, strlen(readable));

	free(readable);
	return kept;
}

/* Under a sysroot, debug files named by debuglink lie below SYSROOT/usr/lib/debug by the path without the sysroot. */
static int find_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **found)
{
	const struct symbols_module *owner = *userdata;
	const char *sysroot = owner->symbols->options.sysroot;
	int fd = dwfl_standard_find_debuginfo(module, userdata, name, base, file, link, crc, found);

	if (fd < 0 && sysroot && file && strncmp(file, sysroot, strlen(sysroot)) == 0)
		fd = dwfl_standard_find_debuginfo(module, userdata, name, base,
						  file + strlen(sysroot), link, crc, found);
	return fd;
}

/* Never called: modules are reported with their file. */
static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		    char **path, Elf **elf)
{
	return -1;
}

struct symbols *symbols_new(const struct symbols_options *options)
{
	struct symbols *symbols = xcalloc(1, sizeof *symbols);
	const struct symbols_options *wanted = &symbols->options;

	if (options)
		symbols->options = *options;
	symbols->options.sysroot =
		wanted->sysroot && *wanted->sysroot ? xstrdup(wanted->sysroot) : NULL;
	symbols->options.search_dirs = NULL;
	symbols->debug_path =
		concat(":.debug:", wanted->sysroot ? wanted->sysroot : "", "/usr/lib/debug", NULL);
	if (wanted->search_dir_count) {
		char **copies = xmalloc(wanted->search_dir_count * sizeof *copies);
		for (size_t i = 0; i < wanted->search_dir_count; i++) {
			copies[i] = xstrdup(options->search_dirs[i]);
			symbols->debug_path = reconcat(symbols->debug_path, symbols->debug_path,
						       ":", copies[i], NULL);
		}
		symbols->options.search_dirs = (const char *const *)copies;
	}
	symbols->callbacks = (Dwfl_Callbacks){ .find_elf = find_elf,
					       .find_debuginfo = find_debuginfo,
					       .section_address = dwfl_offline_section_address,
					       .debuginfo_path = &symbols->debug_path };
	/* libdw asks the servers whenever the variable is there, and an unreachable one costs minutes */
	if (!wanted->debuginfod)
		unsetenv("DEBUGINFOD_URLS");
	elf_version(EV_CURRENT);
	symbols->dwfl = dwfl_begin(&symbols->callbacks);
	return symbols;
}

static void module_free(struct symbols_module *module)
{
	struct place *place, *next;

	HASH_ITER(hh, module->places, place, next) {
		HASH_DEL(module->places, place);
		free(place->frames);
		free(place);
	}
	symbol_table_fini(&module->table);
	debug_lines_fini(&module->lines);
	module_file_fini(&module->file);
	free(module);
}

void symbols_free(struct symbols *symbols)
{
	struct symbols_module *module, *next_module;
	struct text *text, *next_text;

	if (!symbols)
		return;
	HASH_ITER(hh, symbols->modules, module, next_module) {
		HASH_DEL(symbols->modules, module);
		module_free(module);
	}
	dwfl_end(symbols->dwfl);
	HASH_ITER(hh, symbols->texts, text, next_text) {
		HASH_DEL(symbols->texts, text);
		free(text);
	}
	for (size_t i = 0; i < symbols->options.search_dir_count; i++)
		free((char *)symbols->options.search_dirs[i]);
	free((void *)symbols->options.search_dirs);
	free((char *)symbols->options.sysroot);
	free(symbols->debug_path);
	free(symbols);
}

static struct module_file file_find(const struct symbols_module *module)
{
	return module_file_find(&module->symbols->options,
				(const char *)module->key + module->build_id_bytes, module->key,
				module->build_id_bytes);
}

struct symbols_module *symbols_module(struct symbols *symbols, const char *path,
				      const uint8_t *build_id, size_t build_id_bytes)
{
	size_t path_bytes = path ? strlen(path) : 0, key_bytes = build_id_bytes + path_bytes;
	struct symbols_module *module = xcalloc(1, sizeof *module + key_bytes + 1), *known;

	module->build_id_bytes = build_id_bytes;
	if (build_id_bytes)
		memcpy(module->key, build_id, build_id_bytes);
	if (path_bytes)
		memcpy(module->key + build_id_bytes, path, path_bytes);
	HASH_FIND(hh, symbols->modules, module->key, key_bytes, known);
	if (known) {
		free(module);
		return known;
	}
	module->symbols = symbols;
	module->name = path_bytes ? lbasename(path) : "";
	module->name = *module->name ? text_keep(symbols, module->name, strlen(module->name)) : "?";
	HASH_ADD(hh, symbols->modules, key, key_bytes, module);
	module->file = file_find(module);
	module_file_close(&module->file); /* a process can have more modules than we may have descriptors */
	return module;
}

enum symbols_state symbols_module_state(const struct symbols_module *module)
{
	return module->file.state;
}
const char *symbols_module_reason(const struct symbols_module *module)
{
	return module->file.reason;
}
const char *symbols_module_name(const struct symbols_module *module) { return module->name; }

size_t symbols_module_constant(struct symbols_module *module, const char *const *texts,
			       size_t count)
{
	struct module_file file = file_find(module);
	size_t found = file.fd >= 0 && file.state <= SYMBOLS_UNVERIFIED
			       ? module_constants_find(file.fd, texts, count)
			       : count;
	module_file_fini(&file);
	return found;
}

static struct place *place_at(struct symbols_module *module, uint64_t elf_address)
{
	struct place *place;

	HASH_FIND(hh, module->places, &elf_address, sizeof elf_address, place);
	if (!place) {
		place = xcalloc(1, sizeof *place);
		place->elf_address = elf_address;
		HASH_ADD(hh, module->places, elf_address, sizeof elf_address, place);
	}
	return place;
}

void symbols_hint(struct symbols_module *module, uint64_t elf_address, const char *name,
		  size_t name_bytes)
{
	struct place *place = place_at(module, elf_address);
	const char *offset;
	char *copy;

	name_bytes = strnlen(name, name_bytes);
	offset = memmem(name, name_bytes, "+0x", 3);
	if (offset)
		name_bytes = (size_t)(offset - name);
	if (!name_bytes || place->hint)
		return;
	copy = xmemdup(name, name_bytes, name_bytes + 1);
	place->hint = name_keep(module->symbols, copy);
	free(copy);
}

/* Gives the file to libdwfl, which owns the descriptor from there on. NULL: no usable file. */
static Dwfl_Module *module_report(struct symbols_module *module)
{
	struct module_file *file = &module->file;
	Dwfl *dwfl = module->symbols->dwfl;
	Dwfl_Module *reported = NULL;
	void **userdata;
	char unique[32];

	if (!file->path)
		return NULL;
	/* found again rather than opened again: it may have been replaced since, and names from another build are lies */
	module_file_fini(file);
	*file = file_find(module);
	if (file->fd < 0)
		return NULL;
	snprintf(unique, sizeof unique, "%p", (void *)module); /* libdwfl takes equal names and sizes for one module */
	dwfl_report_begin_add(dwfl);
	reported = dwfl_report_elf(dwfl, unique, file->path, file->fd, 0, true);
	dwfl_report_end(dwfl, NULL, NULL);
	if (!reported) {
		module_file_damaged(file, dwfl_errmsg(-1));
		return NULL;
	}
	file->fd = -1;
	dwfl_module_info(reported, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	*userdata = module;
	return reported;
}

/* At the first look-up: most modules of a process are in no stack. */
static void module_load(struct symbols_module *module)
{
	Dwfl_Module *reported = module_report(module);

	module->loaded = true;
	if (!reported)
		return;
	symbol_table_load(&module->table, reported);
	debug_lines_open(&module->lines, reported);
}

static bool is_mangled(const char *name)
{
	return name && (strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0);
}

/* A mangled name says the scope and the arguments too, so it comes before the bare one, from wherever it is; an unmangled
 * linkage name is a build's private alias (__GI__IO_getc). The symbol is that of the outermost function alone. */
static const char *best_name(const struct debug_frame *debug, const char *symbol)
{
	if (is_mangled(debug->linkage_name))
		return debug->linkage_name;
	if (is_mangled(symbol))
		return symbol;
	if (debug->name)
		return debug->name;
	return symbol ? symbol : debug->linkage_name;
}

static void place_resolve(struct symbols_module *module, struct place *place)
{
	struct symbols *symbols = module->symbols;
	struct debug_frame chain[DEBUG_CHAIN_MAX];
	size_t count = debug_lines_find(&module->lines, place->elf_address, chain);
	const char *symbol = symbol_table_find(&module->table, place->elf_address);

	if (!count) {
		chain[0] = (struct debug_frame){ 0 };
		count = 1;
	}
	place->count = count;
	place->frames = xcalloc(count, sizeof *place->frames);
	for (size_t i = 0; i < count; i++) {
		struct symbols_frame *frame = &place->frames[i];
		const char *name = best_name(&chain[i], i + 1 == count ? symbol : NULL);
		frame->module = module->name;
		frame->language = "native";
		frame->inlined = i + 1 < count;
		frame->function = name ? name_keep(symbols, name) : NULL;
		frame->file = chain[i].file
				      ? text_keep(symbols, chain[i].file, strlen(chain[i].file))
				      : NULL;
		frame->line = chain[i].line;
	}
	if (!place->frames[count - 1].function && place->hint) {
		place->frames[count - 1].function = place->hint;
		place->frames[count - 1].hinted = true;
	}
}

size_t symbols_resolve(struct symbols_module *module, uint64_t elf_address,
		       const struct symbols_frame **frames)
{
	struct place *place = place_at(module, elf_address);

	if (!module->loaded)
		module_load(module);
	if (!place->frames)
		place_resolve(module, place);
	*frames = place->frames;
	return place->count;
}
