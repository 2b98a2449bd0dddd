/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of a document (JSON Schema, draft 2020-12) from the rows that describe it. */
#include "analysis/view/json/fields.h"

#include <string.h>

static struct json_object *shape_schema(struct json_object *defs, const struct shape *shape);
static struct json_object *tuple_schema(const struct shape *shape);

static struct json_object *text(const char *words)
{
	return json_object_new_string(words);
}

static void describe(struct json_object *schema, const char *meaning)
{
	if (meaning)
		json_object_object_add(schema, "description", text(meaning));
}

/* NULL stands for null, which has a type of its own. */
static struct json_object *pair(struct json_object *a, struct json_object *b)
{
	struct json_object *array = json_object_new_array();

	json_object_array_add(array, a);
	json_object_array_add(array, b);
	return array;
}

static struct json_object *list_of_one(const char *word)
{
	struct json_object *array = json_object_new_array();

	json_object_array_add(array, text(word));
	return array;
}

static struct json_object *typed(const char *type, bool is_nullable)
{
	struct json_object *schema = json_object_new_object();

	json_object_object_add(schema, "type",
			       is_nullable ? pair(text(type), text("null")) : text(type));
	return schema;
}

static struct json_object *number(bool is_nullable)
{
	struct json_object *schema = typed("integer", is_nullable);

	json_object_object_add(schema, "minimum", json_object_new_int(0));
	return schema;
}

static struct json_object *array_of(struct json_object *items)
{
	struct json_object *schema = typed("array", false);

	json_object_object_add(schema, "items", items);
	return schema;
}

static struct json_object *tuple_of(struct json_object *items, size_t count)
{
	struct json_object *schema = array_of(items);

	json_object_object_add(schema, "minItems", json_object_new_uint64(count));
	json_object_object_add(schema, "maxItems", json_object_new_uint64(count));
	return schema;
}

static struct json_object *hex(void)
{
	struct json_object *schema = typed("string", false);

	json_object_object_add(schema, "pattern", text("^0x[0-9a-f]+$"));
	return schema;
}

/* A reference to a definition, which is made when it is first met. */
static struct json_object *reference(const char *name)
{
	struct json_object *schema = json_object_new_object();
	char path[64];

	snprintf(path, sizeof path, "#/$defs/%s", name);
	json_object_object_add(schema, "$ref", text(path));
	return schema;
}

static struct json_object *or_null(struct json_object *schema, bool is_nullable)
{
	struct json_object *either;

	if (!is_nullable)
		return schema;
	either = json_object_new_object();
	json_object_object_add(either, "anyOf", pair(typed("null", false), schema));
	return either;
}

static struct json_object *words_schema(const struct words *words, bool is_nullable)
{
	struct json_object *schema, *list;

	if (words->is_open)
		return typed("string", is_nullable);
	schema = json_object_new_object();
	list = json_object_new_array();
	for (size_t i = 0; i < words->count; i++) {
		const char *word = words->items[i];
		if (word && *word)
			json_object_array_add(list, text(word));
		else
			is_nullable = true;
	}
	if (is_nullable)
		json_object_array_add(list, NULL);
	json_object_object_add(schema, "enum", list);
	describe(schema, words->meaning);
	return schema;
}

static struct json_object *name_schema(struct json_object *defs, const struct field *field)
{
	const struct words *words = field->words;

	if (!words->name)
		return words_schema(words, field->is_nullable);
	if (!json_object_object_get_ex(defs, words->name, NULL))
		json_object_object_add(defs, words->name, words_schema(words, false));
	return or_null(reference(words->name), field->is_nullable);
}

static struct json_object *object_schema(struct json_object *defs, const struct shape *shape)
{
	if (shape->is_tuple)
		return tuple_schema(shape);
	if (!shape->name)
		return shape_schema(defs, shape);
	if (!json_object_object_get_ex(defs, shape->name, NULL)) {
		json_object_object_add(defs, shape->name, NULL);
		json_object_object_add(defs, shape->name, shape_schema(defs, shape));
	}
	return reference(shape->name);
}

static struct json_object *stack_schema(struct json_object *defs, bool is_nullable)
{
	struct json_object *frames = array_of(object_schema(defs, &frame_shape));

	describe(frames, "innermost first; the caller of the interposed function first");
	json_object_object_add(defs, "stack", frames);
	return or_null(reference("stack"), is_nullable);
}

static struct json_object *map_schema(struct json_object *defs, const struct field *field)
{
	struct json_object *schema = typed("object", false);

	json_object_object_add(schema, "additionalProperties", object_schema(defs, field->shape));
	return schema;
}

static struct json_object *column_schema(struct json_object *defs)
{
	struct json_object *schema, *place = tuple_of(number(false), 3),
			   *properties = json_object_new_object();

	if (!json_object_object_get_ex(defs, "column", NULL)) {
		schema = typed("object", false);
		json_object_object_add(properties, "column", place);
		json_object_object_add(schema, "properties", properties);
		json_object_object_add(schema, "required", list_of_one("column"));
		json_object_object_add(defs, "column", schema);
	}
	return reference("column");
}

static struct json_object *type_schema(struct json_object *defs, const struct field *field)
{
	switch (field->type) {
	case FIELD_TIME: /* before the origin, where clocks differ */
	case FIELD_SIGNED: return typed("integer", field->is_nullable);
	case FIELD_REAL: return typed("number", field->is_nullable);
	case FIELD_FLAG:
	case FIELD_ANSWER: return typed("boolean", field->is_nullable);
	case FIELD_TEXT:
	case FIELD_WORD:
	case FIELD_LAYER: return typed("string", field->is_nullable);
	case FIELD_HEX: return hex();
	case FIELD_NAME: return name_schema(defs, field);
	case FIELD_STACK: return stack_schema(defs, field->is_nullable);
	case FIELD_NUMBERS: return tuple_of(number(field->is_nullable), 2);
	case FIELD_REALS: return tuple_of(typed("number", field->is_nullable), 2);
	case FIELD_TEXTS: return array_of(typed("string", false));
	case FIELD_OBJECT: return or_null(object_schema(defs, field->shape), field->is_nullable);
	case FIELD_MAP: return map_schema(defs, field);
	case FIELD_LIST: return array_of(object_schema(defs, field->shape));
	case FIELD_WORDS: return array_of(typed("string", true));
	case FIELD_COLUMN: return column_schema(defs);
	case FIELD_ANY: return json_object_new_object();
	default: return number(field->is_nullable);
	}
}

static void add_limits(struct json_object *schema, const char *members)
{
	char object[512];
	struct json_object *limits;

	snprintf(object, sizeof object, "{%s}", members);
	limits = json_tokener_parse(object);
	json_object_object_foreach(limits, key, value)
		json_object_object_add(schema, key, json_object_get(value));
	json_object_put(limits);
}

static struct json_object *left_out_schema(struct json_object *defs)
{
	struct json_object *schema = number(false);

	describe(schema, "rows of this list that the document does not have: a list has at most "
			 "4096, of incidents the last ones. A text has at most 16384 bytes and "
			 "then states how many more there were.");
	json_object_object_add(defs, "left_out", schema);
	return reference("left_out");
}

static void add_field(struct json_object *defs, struct json_object *properties,
		      const struct field *field)
{
	struct json_object *schema = type_schema(defs, field);
	char left_out[64];

	describe(schema, field->meaning);
	if (field->limits)
		add_limits(schema, field->limits);
	json_object_object_add(properties, field->key, schema);
	if ((field->flags & COUNTED) != COUNTED)
		return;
	snprintf(left_out, sizeof left_out, "%s_left_out", field->key);
	json_object_object_add(properties, left_out, left_out_schema(defs));
}

/* What the numbers of a column are, before what it means. */
static const char *column_words(const struct field *field)
{
	switch (field->type) {
	case FIELD_TIME: return "a time";
	case FIELD_TEXT: return "in strings";
	case FIELD_FLAG: return "0 or 1";
	case FIELD_INDEX: return "an index";
	default: return NULL;
	}
}

static void add_column(struct json_object *defs, struct json_object *properties,
		       struct json_object *required, const struct field *field)
{
	struct json_object *schema = column_schema(defs);
	const char *words = column_words(field);
	char meaning[512];

	snprintf(meaning, sizeof meaning, "%s%s%s", words ? words : "",
		 words && field->meaning ? "; " : "", field->meaning ? field->meaning : "");
	describe(schema, *meaning ? meaning : NULL);
	json_object_object_add(properties, field->key, schema);
	json_object_array_add(required, text(field->key));
}

static void add_fields(struct json_object *defs, struct json_object *properties,
		       struct json_object *required, const struct shape *shape)
{
	for (size_t i = 0; i < shape->count; i++) {
		const struct field *field = &shape->fields[i];

		for (size_t c = 0; field->type == FIELD_COLUMNS && c < field->shape->count; c++)
			add_column(defs, properties, required, &field->shape->fields[c]);
		if (field->type == FIELD_COLUMNS)
			continue;
		add_field(defs, properties, field);
		if (!(field->flags & LATER) && !field->is_there)
			json_object_array_add(required, text(field->key));
	}
}

static struct json_object *tuple_schema(const struct shape *shape)
{
	struct json_object *schema = tuple_of(number(shape->fields->is_nullable), shape->count);

	describe(schema, shape->meaning);
	return schema;
}

static struct json_object *shape_schema(struct json_object *defs, const struct shape *shape)
{
	struct json_object *schema = typed("object", false), *properties = json_object_new_object(),
			   *required = json_object_new_array();

	add_fields(defs, properties, required, shape);
	describe(schema, shape->meaning);
	json_object_object_add(schema, "properties", properties);
	json_object_object_add(schema, "required", required);
	if (shape->is_closed)
		json_object_object_add(schema, "additionalProperties",
				       json_object_new_boolean(false));
	return schema;
}

/* fields_document writes it. */
static void add_schema_key(struct json_object *body, const char *title)
{
	struct json_object *key = json_object_new_object();

	json_object_object_add(key, "const", text(title));
	json_object_object_add(json_object_object_get(body, "properties"), "schema", key);
	json_object_array_add(json_object_object_get(body, "required"), text("schema"));
}

struct json_object *schema_json(const struct shape *document)
{
	struct json_object *schema = json_object_new_object(), *defs = json_object_new_object();
	struct json_object *body = shape_schema(defs, document);
	char title[64], id[64];

	snprintf(title, sizeof title, "cuflight.%s/1", document->name);
	snprintf(id, sizeof id, "urn:cuflight:%s:1", document->name);
	if (!document->is_bare)
		add_schema_key(body, title);
	json_object_object_add(schema, "$schema",
			       text("https://json-schema.org/draft/2020-12/schema"));
	json_object_object_add(schema, "$id", text(id));
	json_object_object_add(schema, "title", text(title));
	json_object_object_foreach(body, key, value)
		json_object_object_add(schema, key, json_object_get(value));
	json_object_object_add(schema, "$defs", defs);
	json_object_put(body);
	return schema;
}
