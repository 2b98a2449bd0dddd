/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of our JSON documents as tables: a row a key, with what it is made from, its type and
 * what it means. The document is written from these rows (fields_document), read by them
 * (fields_read), and its published schema is made from them (schema_json). The unit is the key's
 * ending: _bytes, _ns, _s; without one it is a count.
 *
 * Rows are made by the macros below, of the struct that OF names:
 *
 *	#define OF struct fact_pool
 *	static const struct field pool_fields[] = {
 *		{ "pid", PROCESS(process) },
 *		{ "live_bytes", NUMBER(live_bytes), LATER, "of the recorded blocks in it" },
 *	};
 *	const struct shape pool_shape = SHAPE("pool", pool_fields);
 *
 * Contract: constant data. Texts and facts are borrowed; a value that is returned is the writer's.
 */
#pragma once

#include <stddef.h>
#include "analysis/facts/facts.h"
#include "analysis/facts/frames.h"
#include "analysis/view/json/json_parts.h"
#include "analysis/view/json/json_stream.h"

enum field_type {
	FIELD_NUMBER,   /* uint64_t, uint32_t, size_t; CUF_UNKNOWN: null */
	FIELD_POSITIVE, /* the same; also 0 is null */
	FIELD_SIGNED,   /* int64_t */
	FIELD_REAL,     /* double; not finite: null */
	FIELD_FLAG,     /* bool */
	FIELD_ANSWER,   /* enum fact_tristate; FACT_CANNOT_TELL: null */
	FIELD_TEXT,     /* NULL: null */
	FIELD_WORD,     /* the same; also "" is null: what has no name is unknown */
	FIELD_HEX,      /* an address */
	FIELD_NAME,     /* an enum, as one of `words` */
	FIELD_INDEX,    /* uint32_t; FACT_NONE: null */
	FIELD_TIME,     /* a number: CLOCK_REALTIME in nanoseconds */
	FIELD_PROCESS,  /* the index of a process: its pid */
	FIELD_DEVICE,   /* the index of a device: the driver's number; null: host */
	FIELD_LAYER,    /* struct fact_layer: where its bytes were read; null: unknown */
	FIELD_STACK,    /* struct fact_stack: its frames */
	FIELD_NUMBERS,  /* an interval: two numbers */
	FIELD_REALS,
	FIELD_TEXTS,    /* an array of texts and its count */
	FIELD_OBJECT,
	FIELD_MAP,      /* an object with keys that `rows` writes, each of `shape` */
	FIELD_LIST,
	FIELD_WORDS,    /* all of `words` */
	FIELD_COLUMN,   /* of the page: where the numbers of a column are */
	FIELD_COLUMNS,  /* without a key: for each field of `shape` a column, which `rows` writes */
	FIELD_ANY,      /* `limits` are its whole schema */
};

/* Of a row; _LONG: a list of at most json_stream.rows_max rows. */
enum {
	LATER = 1,   /* not in the first documents of this schema: a reader may miss it */
	LONG = 2,
	COUNTED = 6, /* LONG, and KEY_left_out tells how many rows are missing */
	A_LINE_EACH = 8, /* each of its rows is in one line */
	ONE_LINE = 16,   /* all of it is */
};

/* What a document is written with. outer: the struct that the present one is part of or listed
 * in. facts and frames may be NULL where no row needs them. */
struct fields {
	struct json_stream *stream;
	const struct facts *facts;
	struct frames *frames;
	const void *document; /* whoever writes it: anything that its functions need */
	const void *outer;
	void *state;           /* what its functions fill */
	uint64_t origin_ns;    /* times are since then */
};

/* The words of an enum, by number; without a word: null. name: of its definition in the schema. */
struct words {
	const char *name, *meaning;
	const char *const *items;
	size_t count;
	bool is_open; /* there may be more of them: the schema has no list */
};

struct shape;
struct fields_reading;
struct field {
	const char *key;
	enum field_type type;
	/* the struct has a pointer to the object; it has the text or the rows itself */
	bool is_nullable, is_pointer, is_array;
	const struct shape *shape;
	const struct words *words;
	/* of a computed value: all of it; the struct that `at` is in (NULL: null); all rows of a
	 * list, of which it returns the number; whether there is this key */
	struct json_object *(*value)(const struct fields *fields, const void *object);
	const void *(*base)(const struct fields *fields, const void *object);
	size_t (*rows)(struct fields *fields, const struct field *field, const void *object);
	bool (*is_there)(const struct fields *fields, const void *object);
	/* reads what `rows` wrote; value NULL: there is none. false: the document is wrong */
	bool (*take)(struct fields_reading *reading, struct json_object *value, void *object);
	size_t via; /* 1 + the offset of a pointer in the struct, to the one that `at` is in */
	size_t count_at, at, size;
	unsigned flags;
	const char *meaning; /* for the schema; NULL: the key tells it */
	const char *limits;  /* members of the schema that replace what follows from the type */
};

/* One struct. name: of its definition in the schema; NULL: described where it is used. */
struct shape {
	const char *name, *meaning;
	const struct field *fields;
	size_t count, bytes;
	bool is_closed; /* it never gets more keys */
	bool is_bare;   /* a document without the key "schema" */
	bool is_tuple;  /* written as an array of its values, in one line; a number each */
};

#define FIELDS_COUNT(array) (sizeof(array) / sizeof *(array))
#define SHAPE(name_, fields_, ...) { .name = (name_), .fields = (fields_), \
	.count = FIELDS_COUNT(fields_), .bytes = sizeof(OF), __VA_ARGS__ }
#define WORDS(name_, items_, ...) { .name = (name_), .items = (items_), \
	.count = FIELDS_COUNT(items_), __VA_ARGS__ }
#define LIMITS(...) .limits = #__VA_ARGS__

/* Where: a member of OF, of another struct that .base finds, or of one that a member points to. */
#define VIA(struct_, member) .via = 1 + offsetof(struct_, member)
#define IN(struct_, member) .at = offsetof(struct_, member), .size = sizeof(((struct_ *)0)->member)
#define FIELD(type_, is_nullable_, member) \
	.type = FIELD_##type_, .is_nullable = (is_nullable_), IN(OF, member)
#define NUMBER(member) FIELD(NUMBER, true, member)
#define SIGNED(member) FIELD(SIGNED, false, member)
#define COUNT(member) FIELD(NUMBER, false, member) /* a number that is always known */
#define POSITIVE(member) FIELD(POSITIVE, true, member)
#define INDEX(member) FIELD(INDEX, true, member)
#define TIME(member) FIELD(TIME, true, member)
#define REAL(member) FIELD(REAL, true, member)
#define FLAG(member) FIELD(FLAG, false, member)
#define ANSWER(member) FIELD(ANSWER, true, member)
#define TEXT(member) FIELD(TEXT, false, member)
#define TEXT_OR_NULL(member) FIELD(TEXT, true, member)
#define WORD(member) FIELD(WORD, true, member)
#define TEXT_HERE(member) .is_array = true, TEXT(member)
#define WORD_HERE(member) .is_array = true, WORD(member)
#define HEX(member) FIELD(HEX, false, member)
#define PROCESS(member) FIELD(PROCESS, true, member)
#define DEVICE(member) FIELD(DEVICE, true, member)
#define LAYER(member) FIELD(LAYER, true, member)
#define STACK(member) FIELD(STACK, false, member)
#define NAME(member, words_) .words = &(words_), FIELD(NAME, false, member)
#define BASIS(member) NAME(member, basis_words)
/* size: from the low end to the high one */
#define INTERVAL(type_, is_nullable_, low, high) .type = FIELD_##type_, \
	.is_nullable = (is_nullable_), .at = offsetof(OF, low), \
	.size = offsetof(OF, high) - offsetof(OF, low)
#define TEXTS(member, count_) .count_at = offsetof(OF, count_), FIELD(TEXTS, false, member)
/* The rows are a part of the struct. */
#define LIST_HERE(member, count_, shape_) .is_array = true, LIST(member, count_, shape_)
#define LIST(member, count_, shape_) .shape = &(shape_), .count_at = offsetof(OF, count_), \
	FIELD(LIST, false, member)
#define ROWS(shape_, rows_) .type = FIELD_LIST, .shape = &(shape_), .rows = (rows_), .size = 0
#define OBJECT(member, shape_) .shape = &(shape_), FIELD(OBJECT, false, member)
#define POINTER(member, shape_) .is_pointer = true, .shape = &(shape_), FIELD(OBJECT, true, member)
/* An object with members of the same struct; one that a function finds, or NULL. */
#define PART(shape_) .type = FIELD_OBJECT, .shape = &(shape_), .size = 0
#define FOUND(shape_, base_) .type = FIELD_OBJECT, .is_nullable = true, .shape = &(shape_), \
	.base = (base_), .size = 0
#define VALUE(type_, value_) .type = FIELD_##type_, .value = (value_), .size = 0
#define VALUE_OR_NULL(type_, value_) .is_nullable = true, VALUE(type_, value_)

extern const struct words basis_words;
extern const struct shape frame_shape; /* of a stack */

/* A row of the list that is open, or a member; object NULL: null. */
void fields_row(struct fields *fields, const char *key, const struct shape *shape,
		const void *object);
/* A whole document, whose first key is "schema": cuflight.NAME/1. false: it has not become whole
 * (json_stream_end). */
bool fields_document(struct fields *fields, const struct shape *shape, const void *object);
/* The same, without a limit, on a stream of its own; as json-c's JSON_C_TO_STRING_* `style` it. */
void fields_print(FILE *out, struct fields *fields, const struct shape *shape, const void *object);
void fields_print_as(FILE *out, int style, struct fields *fields, const struct shape *shape,
		     const void *object);
/* As a TIME is written: from the origin, never -1, which is what an unknown one is. */
int64_t fields_since(uint64_t origin_ns, uint64_t time_ns);
/* Whether row `i` of `count` is to be written. */
bool fields_wants(const struct fields *fields, const struct field *field, size_t i, size_t count);

/* A value as the program has it, for who writes no JSON: numbers, texts, flags and what is one of
 * them (a process: its pid; a stack: its id). Texts are borrowed. */
struct field_value {
	enum { VALUE_UNKNOWN, VALUE_NUMBER, VALUE_SIGNED, VALUE_REAL, VALUE_FLAG, VALUE_TEXT } sort;
	union {
		uint64_t number;
		int64_t integer;
		double real;
		bool flag;
		const char *text;
	};
};
struct field_value fields_value(const struct fields *fields, const struct field *field,
				const void *object);

/* ---- reading ---- */

struct arena;
struct fields_reading {
	struct arena *arena; /* for texts and rows */
	const char *wrong;   /* the key without which the document cannot be used */
};
/* Fills the members of a struct from what fields_document wrote of one. A null, or a key that is
 * LATER and missing, is unknown: CUF_UNKNOWN, NULL, "". Of NAME, a word of a newer version is the
 * number of words. What only a function of the row wrote is left as it is. false: see wrong. */
bool fields_read(struct fields_reading *reading, const struct shape *shape,
		 struct json_object *from, void *object);

/* The schema of a document: cuflight.NAME/1. */
struct json_object *schema_json(const struct shape *document);
