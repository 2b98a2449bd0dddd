/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins the file of a module, its symbol table and its DWARF into frames, and caches every answer.
 * All modules share one libdwfl session, since each session costs two descriptors for debuginfod.
 * All are reported at address 0: no look-up goes through libdwfl's search by address, so its
 * addresses are ELF addresses.
 */
#include "analysis/symbols/symbols.h"

#include <libiberty/libiberty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "analysis/symbols/function_name.h"
#include "analysis/symbols/module_file.h"
#include "analysis/symbols/symbols_store.h"

const char *symbols_keep(struct symbols *symbols, const char *bytes, size_t count)
{
	struct stored_text *text;

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
	const char *kept = symbols_keep(symbols, readable, strlen(readable));

	free(readable);
	return kept;
}

/* Under a sysroot, a debug file named by a debuglink is below SYSROOT/usr/lib/debug, at its path
 * without the sysroot. */
static int find_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **found)
{
	const struct symbols_module *owner = *userdata;
	const char *sysroot = owner->symbols->options.sysroot;
	const char *debug_path = owner->symbols->debug_path;
	int fd = -1;

	if (debug_link_is_safe(file, link, debug_path))
		fd = dwfl_standard_find_debuginfo(module, userdata, name, base, file, link, crc,
						  found);
	if (fd >= 0 || !sysroot || !file || strncmp(file, sysroot, strlen(sysroot)) != 0)
		return fd;
	file += strlen(sysroot);
	if (debug_link_is_safe(file, link, debug_path))
		fd = dwfl_standard_find_debuginfo(module, userdata, name, base, file, link, crc,
						  found);
	return fd;
}

/* Never called: modules are reported together with their file. */
static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		    char **path, Elf **elf)
{
	return -1;
}

struct symbols *symbols_new(const struct symbols_options *options)
{
	struct symbols *symbols = xcalloc(1, sizeof *symbols);
	const struct symbols_options *wanted = &symbols->options;

	pthread_mutex_init(&symbols->lock, NULL);
	if (options)
		symbols->options = *options;
	symbols->options.sysroot = NULL;
	if (options && options->sysroot && *options->sysroot)
		symbols->options.sysroot = symbols->sysroot = xstrdup(options->sysroot);
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
		symbols->search_dirs = copies;
		symbols->options.search_dirs = (const char *const *)copies;
	}
	symbols->callbacks = (Dwfl_Callbacks){ .find_elf = find_elf,
					       .find_debuginfo = find_debuginfo,
					       .section_address = dwfl_offline_section_address,
					       .debuginfo_path = &symbols->debug_path };
	/* libdw queries the servers whenever the variable is set; an unreachable one costs
	 * minutes */
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
	module_file_fini(&module->file);
	free(module);
}

void symbols_free(struct symbols *symbols)
{
	struct symbols_module *module, *next_module;
	struct file_names *file, *next_file;
	struct stored_text *text, *next_text;

	if (!symbols)
		return;
	HASH_ITER(hh, symbols->modules, module, next_module) {
		HASH_DEL(symbols->modules, module);
		module_free(module);
	}
	HASH_ITER(hh, symbols->files, file, next_file) {
		HASH_DEL(symbols->files, file);
		symbol_table_fini(&file->table);
		debug_lines_fini(&file->lines);
		free(file);
	}
	dwfl_end(symbols->dwfl);
	HASH_ITER(hh, symbols->texts, text, next_text) {
		HASH_DEL(symbols->texts, text);
		free(text);
	}
	for (size_t i = 0; i < symbols->options.search_dir_count; i++)
		free(symbols->search_dirs[i]);
	free(symbols->search_dirs);
	free(symbols->sysroot);
	free(symbols->debug_path);
	pthread_mutex_destroy(&symbols->lock);
	free(symbols);
}

static struct module_file file_find(const struct symbols_module *module)
{
	return module_file_find(&module->symbols->options,
				(const char *)module->key + module->build_id_bytes, module->key,
				module->build_id_bytes);
}

struct symbols_module *symbols_module_of(struct symbols *symbols, const char *path,
					 const uint8_t *build_id, size_t build_id_bytes)
{
	size_t path_bytes = strlen(path ? path : ""), key_bytes = build_id_bytes + path_bytes;
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
	module->name = "?";
	if (path_bytes && *lbasename(path))
		module->name = symbols_keep(symbols, lbasename(path), strlen(lbasename(path)));
	HASH_ADD(hh, symbols->modules, key, key_bytes, module);
	module->file = file_find(module);
	/* a process can have more modules than we can have descriptors */
	module_file_close(&module->file);
	return module;
}

struct symbols_module *symbols_module(struct symbols *symbols, const char *path,
				      const uint8_t *build_id, size_t build_id_bytes)
{
	struct symbols_module *module;

	pthread_mutex_lock(&symbols->lock);
	module = symbols_module_of(symbols, path, build_id, build_id_bytes);
	pthread_mutex_unlock(&symbols->lock);
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
	struct module_file file;
	size_t found = count;

	for (size_t i = 0; module->constant && i < count; i++)
		if (!strcmp(module->constant, texts[i]))
			return i;
	if (module->recorded)
		return count;
	file = file_find(module);
	if (file.fd >= 0 && file.state <= SYMBOLS_UNVERIFIED)
		found = module_constants_find(file.fd, texts, count);
	module_file_fini(&file);
	if (found < count)
		module->constant =
			symbols_keep(module->symbols, texts[found], strlen(texts[found]));
	return found;
}

struct place *symbols_place_at(struct symbols_module *module, uint64_t elf_address)
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

/* The recorded name ends at its offset; the first name for an address is kept. */
static void hint_keep(struct symbols_module *module, uint64_t elf_address, const char *name,
		      size_t name_bytes)
{
	struct place *place = symbols_place_at(module, elf_address);
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

void symbols_hint(struct symbols_module *module, uint64_t elf_address, const char *name,
		  size_t name_bytes)
{
	pthread_mutex_lock(&module->symbols->lock);
	hint_keep(module, elf_address, name, name_bytes);
	pthread_mutex_unlock(&module->symbols->lock);
}

/* Opens the file. Searched for again, not just opened again: the file may have been replaced
 * since, and names from another build would be wrong. False: no usable file. */
static bool file_open(struct symbols_module *module, struct file_id *id)
{
	struct stat status;

	if (!module->file.path)
		return false;
	module_file_fini(&module->file);
	module->file = file_find(module);
	if (module->file.fd < 0 || fstat(module->file.fd, &status))
		return false;
	memset(id, 0, sizeof *id);
	id->device = status.st_dev;
	id->inode = status.st_ino;
	return true;
}

/* Passes the open file to libdwfl, which then owns the descriptor. NULL: it is damaged. */
static Dwfl_Module *module_report(struct symbols_module *module)
{
	struct module_file *file = &module->file;
	Dwfl *dwfl = module->symbols->dwfl;
	Dwfl_Module *reported = NULL;
	void **userdata;
	char unique[32];

	/* libdwfl takes two modules of equal name and size for one */
	snprintf(unique, sizeof unique, "%p", (void *)module);
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

/* Runs at the first look-up: most modules of a process are in no stack. */
static void module_load(struct symbols_module *module)
{
	struct symbols *symbols = module->symbols;
	Dwfl_Module *reported;
	struct file_id id;

	module->loaded = true;
	if (!file_open(module, &id))
		return;
	HASH_FIND(hh, symbols->files, &id, sizeof id, module->names);
	if (module->names) {
		module_file_close(&module->file);
		return;
	}
	reported = module_report(module);
	if (!reported)
		return;
	module->names = xcalloc(1, sizeof *module->names);
	module->names->id = id;
	HASH_ADD(hh, symbols->files, id, sizeof id, module->names);
	symbol_table_load(&module->names->table, reported);
	debug_lines_open(&module->names->lines, reported);
}

static bool is_mangled(const char *name)
{
	return name && (strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0);
}

/* A mangled name includes the scope and the arguments, so it is preferred wherever it comes from.
 * An unmangled linkage name is a private alias of a build (__GI__IO_getc). The symbol names the
 * outermost function only. */
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

/* Fills the frames of one address; the outermost one may take its name from the symbol table or
 * from the recording. */
static void place_resolve(struct symbols_module *module, struct place *place)
{
	struct symbols *symbols = module->symbols;
	struct debug_frame chain[DEBUG_CHAIN_MAX];
	const char *symbol = NULL;
	size_t count = 0;

	if (module->names) {
		count = debug_lines_find(&module->names->lines, place->elf_address, chain);
		symbol = symbol_table_find(&module->names->table, place->elf_address);
	}

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
		if (name)
			frame->function = name_keep(symbols, name);
		if (chain[i].file)
			frame->file = symbols_keep(symbols, chain[i].file, strlen(chain[i].file));
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
	struct place *place;

	pthread_mutex_lock(&module->symbols->lock);
	place = symbols_place_at(module, elf_address);
	if (!module->loaded)
		module_load(module);
	if (!place->frames)
		place_resolve(module, place);
	pthread_mutex_unlock(&module->symbols->lock);
	*frames = place->frames; /* never changes again */
	return place->count;
}
