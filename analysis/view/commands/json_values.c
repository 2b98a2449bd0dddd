/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the gate's documents. */
#include "analysis/view/commands/json_values.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/xalloc.h"
#include "interpose/abi/format.h"

enum { REPLACEMENT_BYTES = 3 }; /* U+FFFD, for one byte that is no character */

static struct json_object *text_json(const char *text)
{
	struct json_object *object;
	size_t room;
	char *clean;

	if (!text)
		return NULL;
	room = REPLACEMENT_BYTES * strlen(text) + 1;
	clean = xalloc_bytes(room);
	clean_utf8(clean, room, text);
	object = json_object_new_string(clean);
	free(clean);
	return object;
}

void value_add_text(struct json_object *object, const char *key, const char *text)
{
	json_object_object_add(object, key, text_json(text));
}

void value_add_number(struct json_object *object, const char *key, uint64_t number)
{
	struct json_object *value = NULL;

	if (number != CUF_UNKNOWN)
		value = json_object_new_uint64(number);
	json_object_object_add(object, key, value);
}

struct json_object *value_texts(const char *const *texts, size_t count)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < count; i++)
		json_object_array_add(array, text_json(texts[i]));
	return array;
}

static struct json_object *frame_json(const struct gate_frame *frame)
{
	struct json_object *object = json_object_new_object();

	value_add_text(object, "function", frame->function);
	value_add_text(object, "module", frame->module);
	value_add_text(object, "file", frame->file);
	value_add_number(object, "line", frame->line ? frame->line : CUF_UNKNOWN);
	return object;
}

struct json_object *value_site(const struct gate_site *site)
{
	struct json_object *object = json_object_new_object();
	struct json_object *stack = json_object_new_array();

	value_add_text(object, "kind", gate_group_names[site->group]);
	value_add_text(object, "site", site->identity);
	value_add_text(object, "function", site->function);
	value_add_text(object, "module", site->module);
	value_add_text(object, "file", site->file);
	value_add_number(object, "line", site->line ? site->line : CUF_UNKNOWN);
	value_add_number(object, "bytes", site->bytes_now);
	value_add_number(object, "count", site->count_now);
	value_add_number(object, "bytes_before", site->bytes_before);
	value_add_text(object, "rule", site->rule);
	for (size_t i = 0; i < site->frame_count; i++)
		json_object_array_add(stack, frame_json(&site->frames[i]));
	json_object_object_add(object, "stack", stack);
	return object;
}

struct json_object *value_environment(const struct gate_environment *environment)
{
	struct json_object *object = json_object_new_object();

	value_add_text(object, "gpu", environment->gpu);
	value_add_number(object, "gpu_bytes", environment->gpu_bytes);
	value_add_text(object, "driver", environment->driver);
	value_add_text(object, "frameworks", environment->frameworks);
	value_add_text(object, "host", environment->host_mode);
	value_add_text(object, "recorder", environment->recorder);
	return object;
}

void value_print(struct json_object *document, FILE *out)
{
	fprintf(out, "%s\n", json_object_to_json_string_ext(
				     document, JSON_C_TO_STRING_PRETTY |
						       JSON_C_TO_STRING_SPACED |
						       JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(document);
}
