/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the META section once. Records grow arrays in the heap; at the end all move to the
 * arena. */
#include "analysis/recording/meta.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/key_values.h"
#include "analysis/base/numbers.h"
#include "both/secrets.h"
#include "interpose/abi/format.h"

/* False for a text that no user and no program wrote: paths and names of functions. */
static bool search_begin(struct secrets_search *search, uint32_t type, const char *text,
			 size_t bytes)
{
	*search = (struct secrets_search){ .text = text, .bytes = bytes };
	switch (type) {
	case CUF_META_CMDLINE: search->kind = SECRETS_JOINED; return true;
	case CUF_META_ENV: search->kind = SECRETS_ARGUMENT; return true;
	case CUF_META_NOTE:
	case CUF_META_PHASE: search->kind = SECRETS_WORDS; return true;
	default: return false;
	}
}

/* What is kept moves down over what was cut, once, behind the search. */
void secret_texts_hide(uint32_t meta_type, char *text)
{
	struct secrets_search search;
	struct secret secret;
	char *to = text, *from = text;

	if (!search_begin(&search, meta_type, text, strlen(text)))
		return;
	while (secrets_find(&search, &secret)) {
		size_t kept = secret.at - (size_t)(from - text);
		size_t stars = secret.bytes < 3 ? secret.bytes : 3;

		memmove(to, from, kept);
		memset(to + kept, '*', stars);
		to += kept + stars;
		from = text + secret.at + secret.bytes;
	}
	memmove(to, from, search.bytes - (size_t)(from - text) + 1);
}

size_t secret_texts_cover(void *meta, size_t bytes)
{
	size_t count = 0, at = 0;

	while (at + sizeof(struct cuf_meta) <= bytes) {
		char *record = (char *)meta + at, *text = record + sizeof(struct cuf_meta);
		struct secrets_search search;
		struct secret secret;
		struct cuf_meta head;

		memcpy(&head, record, sizeof head);
		if (!head.type || head.bytes < sizeof head || head.bytes % 8 ||
		    head.bytes > bytes - at)
			break;
		at += head.bytes;
		if (head.text_bytes > head.bytes - sizeof head ||
		    !search_begin(&search, head.type, text, head.text_bytes))
			continue;
		for (; secrets_find(&search, &secret); count++)
			memset(text + secret.at, '*', secret.bytes);
	}
	return count;
}

enum {
	HOOK_ID_MAX = 4096,
	/* the recorder holds 1024 at a time; the unloaded ones lie between them */
	MODULES_BACK_MAX = 16384
};

struct walk {
	struct meta *meta;
	const struct reader *reader;
	struct arena *arena;
	size_t module_room, function_room, text_room, reading_room;
	const char **hook_names;
};

/*
 * A record and its length. Lengths come from the file, which may change while it is read. So the
 * head is a copy, `bytes` was checked once, and whatever else has a length is limited to that.
 */
struct record {
	struct cuf_meta head;
	uint32_t bytes;       /* within the section */
	const uint8_t *at;    /* in the file; begins with what head is a copy of */
};

static void read_module(struct walk *walk, const struct record *record)
{
	struct cuf_meta_module module;
	struct fact_module *to;
	struct meta *meta = walk->meta;
	if (record->bytes < sizeof module)
		return;
	memcpy(&module, record->at, sizeof module);
	module.meta = record->head;
	if (module.path_bytes > record->bytes - sizeof module)
		module.path_bytes = (uint32_t)(record->bytes - sizeof module);
	xalloc_grow(&meta->modules, meta->module_count, &walk->module_room, sizeof *meta->modules);
	to = &meta->modules[meta->module_count++];
	*to = (struct fact_module){
		.id = (uint32_t)module.meta.number,
		.base = module.base,
		.start = module.start,
		.end = module.end,
		.path = arena_text(walk->arena, (const char *)record->at + sizeof module,
				   module.path_bytes),
		.loaded_ns = reader_realtime(walk->reader, module.meta.time_ns),
		.unloaded_ns = CUF_UNKNOWN,
		.build_id_bytes = (uint32_t)least_of(module.build_id_bytes, sizeof to->build_id),
	};
	memcpy(to->build_id, module.build_id, sizeof to->build_id);
}

/* An unload ends the last module of that id that is still loaded: ids are reused. */
static void end_module(struct walk *walk, const struct cuf_meta *head)
{
	for (size_t i = walk->meta->module_count; i--;) {
		struct fact_module *module = &walk->meta->modules[i];
		if (module->id == head->number && module->unloaded_ns == CUF_UNKNOWN) {
			module->unloaded_ns = reader_realtime(walk->reader, head->time_ns);
			return;
		}
	}
}

/* A reading of NVML: a head and as many processes as fit into the record. */
static void read_tenants(struct walk *walk, const struct record *record)
{
	struct gpu_processes_reading *to;
	struct meta *meta = walk->meta;
	size_t bytes, most;
	if (record->bytes < sizeof to->head)
		return;
	xalloc_grow(&meta->readings, meta->reading_count, &walk->reading_room,
		    sizeof *meta->readings);
	to = &meta->readings[meta->reading_count++];
	memcpy(&to->head, record->at, sizeof to->head);
	most = (record->bytes - sizeof to->head) / sizeof *to->holders;
	if (to->head.stored_count > most)
		to->head.stored_count = (uint32_t)most;
	bytes = to->head.stored_count * sizeof *to->holders;
	to->holders = arena_copy(walk->arena, (const char *)record->at + sizeof to->head, bytes, 1);
	to->time_ns = reader_realtime(walk->reader, record->head.time_ns);
}

/* FNV-1a over the values that tell one allocator from another (Fowler, Noll, Vo). */
static uint64_t allocator_hash(const char *text)
{
	static const char *const keys[] = { "name", "role", "object" };
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		size_t bytes = 0;
		const char *value = key_value(text, keys[i], &bytes);
		for (size_t at = 0; value && at < bytes; at++)
			hash = (hash ^ (unsigned char)value[at]) * 0x100000001b3;
		hash = (hash ^ '\n') * 0x100000001b3; /* "ab" "c" is not "a" "bc" */
	}
	return hash;
}

/* The one that is loaded there as far as META is read; MODULE_NONE: none. */
static uint32_t module_loaded_at(const struct meta *meta, uint64_t addr)
{
	for (size_t back = 1; back <= meta->module_count && back <= MODULES_BACK_MAX; back++) {
		const struct fact_module *module = &meta->modules[meta->module_count - back];
		if (module->unloaded_ns == CUF_UNKNOWN && addr >= module->start &&
		    addr < module->end)
			return (uint32_t)(meta->module_count - back);
	}
	return MODULE_NONE;
}

/* Every other type is a text. Names of functions and hooks are also indexed. */
static void read_text(struct walk *walk, const struct record *record)
{
	const struct cuf_meta *head = &record->head;
	struct meta *meta = walk->meta;
	uint32_t bytes = head->text_bytes, most = record->bytes - (uint32_t)sizeof *head;
	char *text =
		arena_text(walk->arena, (const char *)record->at + sizeof *head,
			   least_of(bytes, most));

	secret_texts_hide(head->type, text);
	if (head->type == CUF_META_FUNCTION) {
		xalloc_grow(&meta->functions, meta->function_count, &walk->function_room,
			    sizeof *meta->functions);
		meta->functions[meta->function_count++] = (struct fact_function){
			head->number, text, module_loaded_at(meta, head->number)
		};
		return;
	}
	if (head->type == CUF_META_HOOK && head->number < HOOK_ID_MAX) {
		walk->hook_names[head->number] = text;
		if (head->number >= meta->hook_name_count)
			meta->hook_name_count = head->number + 1;
	}
	xalloc_grow(&meta->texts, meta->text_count, &walk->text_room, sizeof *meta->texts);
	meta->texts[meta->text_count++] = (struct fact_meta_text){
		head->type, head->number, reader_realtime(walk->reader, head->time_ns), text,
		head->type == CUF_META_ALLOCATOR ? allocator_hash(text) : 0
	};
}

static void read_record(struct walk *walk, const struct record *record)
{
	switch (record->head.type) {
	case 0: break; /* incomplete when the process died */
	case CUF_META_MODULE: read_module(walk, record); break;
	case CUF_META_MODULE_END: end_module(walk, &record->head); break;
	case CUF_META_GPU_PROCESSES: read_tenants(walk, record); break;
	default: read_text(walk, record);
	}
}

static int by_addr(const void *a, const void *b)
{
	const struct fact_function *left = a, *right = b;
	int order = compare_numbers(left->addr, right->addr);
	return order ? order : compare_numbers(left->module, right->module);
}

/* Moves the arrays into the arena, so that one free frees all. */
static void settle_meta(struct walk *walk)
{
	struct meta *meta = walk->meta;
	void *heap[] = { meta->modules, meta->functions, meta->texts, meta->readings };
	if (meta->function_count)
		qsort(meta->functions, meta->function_count, sizeof *meta->functions, by_addr);
	meta->modules =
		arena_copy(walk->arena, meta->modules, meta->module_count, sizeof *meta->modules);
	meta->functions = arena_copy(walk->arena, meta->functions, meta->function_count,
				     sizeof *meta->functions);
	meta->texts = arena_copy(walk->arena, meta->texts, meta->text_count, sizeof *meta->texts);
	meta->readings = arena_copy(walk->arena, meta->readings, meta->reading_count,
				    sizeof *meta->readings);
	meta->hook_names = arena_copy(walk->arena, walk->hook_names, meta->hook_name_count,
				      sizeof *walk->hook_names);
	for (size_t i = 0; i < sizeof heap / sizeof *heap; i++)
		free(heap[i]);
}

void meta_read(struct meta *meta, const struct reader *reader, struct arena *arena)
{
	const struct reader_section *section = &reader->sections[CUF_SEC_META];
	struct walk walk = { .meta = meta, .reader = reader, .arena = arena };
	uint64_t at = 0, end = least_of(section->bytes, reader->header.meta_used);
	*meta = (struct meta){ 0 };
	walk.hook_names = xalloc_zeroed(HOOK_ID_MAX, sizeof *walk.hook_names);
	while (end - at >= sizeof(struct cuf_meta)) {
		struct record record = { .at = section->at + at };
		memcpy(&record.head, record.at, sizeof record.head);
		record.bytes = record.head.bytes;
		if (!record.bytes && !record.head.type)
			break;
		if (record.bytes < sizeof record.head || record.bytes % 8 ||
		    record.bytes > end - at) {
			meta->damage_offset = section->offset + at;
			break;
		}
		read_record(&walk, &record);
		at += record.bytes;
	}
	settle_meta(&walk);
	free(walk.hook_names);
}

const char *meta_text(const struct meta *meta, uint32_t type)
{
	for (size_t i = 0; i < meta->text_count; i++)
		if (meta->texts[i].type == type)
			return meta->texts[i].text;
	return NULL;
}

/* LIMITS may have "max" for no limit, which is no number. */
uint64_t meta_limit(const struct meta *meta, const char *key)
{
	return key_number(meta_text(meta, CUF_META_LIMITS), key);
}

bool meta_noted(const struct meta *meta, uint64_t note)
{
	for (size_t i = 0; i < meta->text_count; i++)
		if (meta->texts[i].type == CUF_META_NOTE && meta->texts[i].number == note)
			return true;
	return false;
}
