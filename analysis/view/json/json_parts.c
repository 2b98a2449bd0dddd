/* SPDX-License-Identifier: Apache-2.0 */
/* json-c with our rules for what is unknown and what is foreign. */
#include "analysis/view/json/json_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/xalloc.h"

/* The document must not end inside a character: back to where one begins. */
static size_t end_of_character(const char *text, size_t bytes)
{
	while (bytes && ((unsigned char)text[bytes] & 0xc0) == 0x80)
		bytes--;
	return bytes;
}

/* A text that is too long ends with how much of it is missing. */
static char *cut_text(const char *text, size_t length)
{
	size_t kept = end_of_character(text, JSON_TEXT_MAX), bytes = kept + 64;
	char *cut = xalloc_bytes(bytes);

	snprintf(cut, bytes, "%.*s... (%zu bytes more)", (int)kept, text, length - kept);
	return cut;
}

static struct json_object *clean_text(const char *text)
{
	size_t bytes = 3 * strlen(text) + 1; /* every byte may become U+FFFD */
	char *clean = xalloc_bytes(bytes);
	struct json_object *value;

	clean_utf8(clean, bytes, text);
	value = json_object_new_string(clean);
	free(clean);
	return value;
}

struct json_object *json_text(const char *text)
{
	struct json_object *value;
	size_t length;
	char *cut;

	if (!text)
		return NULL;
	length = strlen(text);
	if (length <= JSON_TEXT_MAX)
		return clean_text(text);
	cut = cut_text(text, length);
	value = clean_text(cut);
	free(cut);
	return value;
}

struct json_object *json_number(uint64_t number)
{
	if (number == CUF_UNKNOWN)
		return NULL;
	return json_object_new_uint64(number);
}

/* JSON has no infinity and no NaN. */
struct json_object *json_double(double number)
{
	if (!isfinite(number))
		return NULL;
	return json_object_new_double(number);
}

void json_add(struct json_object *object, const char *key, struct json_object *value)
{
	json_object_object_add(object, key, value);
}

void json_add_number(struct json_object *object, const char *key, uint64_t number)
{
	json_add(object, key, json_number(number));
}

void json_add_index(struct json_object *object, const char *key, uint32_t number)
{
	if (number == UINT32_MAX)
		json_add(object, key, NULL);
	else
		json_add(object, key, json_object_new_uint64(number));
}

void json_add_double(struct json_object *object, const char *key, double number)
{
	json_add(object, key, json_double(number));
}

void json_add_text(struct json_object *object, const char *key, const char *text)
{
	json_add(object, key, json_text(text));
}

void json_add_word(struct json_object *object, const char *key, const char *text)
{
	if (text && !*text)
		text = NULL;
	json_add_text(object, key, text);
}

void json_add_positive(struct json_object *object, const char *key, uint64_t number)
{
	if (!number)
		number = CUF_UNKNOWN;
	json_add_number(object, key, number);
}

void json_add_bool(struct json_object *object, const char *key, bool value)
{
	json_add(object, key, json_object_new_boolean(value));
}
