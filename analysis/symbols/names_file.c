/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/symbols/names_file.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <libiberty/libiberty.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/symbols/symbols_store.h"

enum { FORMAT = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE };
enum { FRAME_PARTS = 5, ID_BYTES_MAX = 64 };

/* ---- writing ---- */

static void write_line(FILE *out, struct json_object *object)
{
	fprintf(out, "%s\n", json_object_to_json_string_ext(object, FORMAT));
	json_object_put(object);
}

static struct json_object *json_of(const char *text)
{
	return text ? json_object_new_string(text) : NULL;
}

static const char *path_of(const struct symbols_module *module)
{
	return (const char *)module->key + module->build_id_bytes;
}

static void write_module(FILE *out, const struct symbols_module *module)
{
	struct json_object *object = json_object_new_object();
	char id[2 * ID_BYTES_MAX + 1] = "";

	for (size_t i = 0; i < module->build_id_bytes && i < ID_BYTES_MAX; i++)
		snprintf(id + 2 * i, sizeof id - 2 * i, "%02x", module->key[i]);
	json_object_object_add(object, "path", json_object_new_string(path_of(module)));
	json_object_object_add(object, "build_id", json_object_new_string(id));
	json_object_object_add(object, "state", json_object_new_int((int)module->file.state));
	json_object_object_add(object, "reason", json_of(module->file.reason));
	json_object_object_add(object, "constant", json_of(module->constant));
	write_line(out, object);
}

static void write_place(FILE *out, const struct place *place)
{
	struct json_object *object = json_object_new_object(), *frames = json_object_new_array();
	char at[24];

	for (size_t i = 0; i < place->count; i++) {
		const struct symbols_frame *frame = &place->frames[i];
		struct json_object *parts = json_object_new_array();

		json_object_array_add(parts, json_of(frame->function));
		json_object_array_add(parts, json_of(frame->file));
		json_object_array_add(parts, json_object_new_int64(frame->line));
		json_object_array_add(parts, json_object_new_boolean(frame->inlined));
		json_object_array_add(parts, json_object_new_boolean(frame->hinted));
		json_object_array_add(frames, parts);
	}
	snprintf(at, sizeof at, "0x%" PRIx64, place->elf_address);
	json_object_object_add(object, "at", json_object_new_string(at));
	json_object_object_add(object, "frames", frames);
	write_line(out, object);
}

static int by_path(struct symbols_module *a, struct symbols_module *b)
{
	int order = strcmp(path_of(a), path_of(b));

	if (order)
		return order;
	if (a->build_id_bytes != b->build_id_bytes)
		return a->build_id_bytes > b->build_id_bytes ? 1 : -1;
	return memcmp(a->key, b->key, a->build_id_bytes);
}

static int by_address(struct place *a, struct place *b)
{
	return (a->elf_address > b->elf_address) - (a->elf_address < b->elf_address);
}

void names_file_write(struct symbols *symbols, FILE *out)
{
	pthread_mutex_lock(&symbols->lock);
	HASH_SORT(symbols->modules, by_path);
	for (struct symbols_module *module = symbols->modules; module; module = module->hh.next) {
		write_module(out, module);
		HASH_SORT(module->places, by_address);
		for (struct place *place = module->places; place; place = place->hh.next)
			if (place->frames)
				write_place(out, place);
	}
	pthread_mutex_unlock(&symbols->lock);
}

/* ---- reading ---- */

/* NULL: no such text. */
static const char *text_in(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value) ||
	    !json_object_is_type(value, json_type_string))
		return NULL;
	return json_object_get_string(value);
}

static size_t parse_id(const char *text, uint8_t id[ID_BYTES_MAX])
{
	size_t bytes = strlen(text) / 2;

	if (bytes > ID_BYTES_MAX)
		return 0;
	for (size_t i = 0; i < bytes; i++) {
		char digits[3] = { text[2 * i], text[2 * i + 1], 0 }, *end;

		id[i] = (uint8_t)strtoul(digits, &end, 16);
		if (end != digits + 2)
			return 0;
	}
	return bytes;
}

/* The module of a line, if its names are to be used; NULL: they are left to this machine. */
static struct symbols_module *read_module(struct symbols *symbols, struct json_object *line)
{
	const char *path = text_in(line, "path"), *id = text_in(line, "build_id");
	const char *reason = text_in(line, "reason"), *constant = text_in(line, "constant");
	struct json_object *state;
	struct symbols_module *module;
	uint8_t bytes[ID_BYTES_MAX];

	if (!path || !id || !json_object_object_get_ex(line, "state", &state) ||
	    json_object_get_int(state) < SYMBOLS_VERIFIED ||
	    json_object_get_int(state) > SYMBOLS_UNVERIFIED)
		return NULL;
	module = symbols_module_of(symbols, path, bytes, parse_id(id, bytes));
	module_file_fini(&module->file);
	module->file = (struct module_file){
		.fd = -1,
		.state = (enum symbols_state)json_object_get_int(state),
		.reason = reason ? xstrdup(reason) : NULL,
	};
	module->recorded = true;
	if (constant)
		module->constant = symbols_keep(symbols, constant, strlen(constant));
	return module;
}

static const char *keep_part(struct symbols *symbols, struct json_object *parts, size_t number)
{
	struct json_object *part = json_object_array_get_idx(parts, number);
	const char *text;

	if (!json_object_is_type(part, json_type_string))
		return NULL;
	text = json_object_get_string(part);
	return symbols_keep(symbols, text, strlen(text));
}

static void read_frame(struct symbols_module *module, struct json_object *parts,
		       struct symbols_frame *frame)
{
	*frame = (struct symbols_frame){ .module = module->name, .language = "native" };
	if (!json_object_is_type(parts, json_type_array) ||
	    json_object_array_length(parts) != FRAME_PARTS)
		return;
	frame->function = keep_part(module->symbols, parts, 0);
	frame->file = keep_part(module->symbols, parts, 1);
	frame->line = (unsigned)json_object_get_int64(json_object_array_get_idx(parts, 2));
	frame->inlined = json_object_get_boolean(json_object_array_get_idx(parts, 3));
	frame->hinted = json_object_get_boolean(json_object_array_get_idx(parts, 4));
}

static void read_place(struct symbols_module *module, struct json_object *line)
{
	const char *at = text_in(line, "at");
	struct json_object *frames;
	struct place *place;
	size_t count;

	if (!at || !json_object_object_get_ex(line, "frames", &frames) ||
	    !json_object_is_type(frames, json_type_array))
		return;
	count = json_object_array_length(frames);
	place = symbols_place_at(module, strtoull(at, NULL, 16));
	if (place->frames || !count || count > DEBUG_CHAIN_MAX)
		return;
	place->frames = xcalloc(count, sizeof *place->frames);
	place->count = count;
	for (size_t i = 0; i < count; i++)
		read_frame(module, json_object_array_get_idx(frames, i), &place->frames[i]);
}

void names_file_read(struct symbols *symbols, char *text)
{
	struct symbols_module *module = NULL;
	char *rest = text;

	pthread_mutex_lock(&symbols->lock);
	for (char *at; (at = strsep(&rest, "\n"));) {
		struct json_object *line = json_tokener_parse(at);

		if (json_object_object_get_ex(line, "path", NULL))
			module = read_module(symbols, line);
		else if (module)
			read_place(module, line);
		json_object_put(line);
	}
	pthread_mutex_unlock(&symbols->lock);
}
