/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that JSON documents of ours are made of. Unknown is null, addresses are hex strings.
 * Texts are valid UTF-8 of at most JSON_TEXT_MAX bytes; a longer one ends with the number of bytes
 * that were left out. Contract: json_add_* add a key to an object that takes ownership of the
 * value; memory is json-c's.
 */
#ifndef VIEW_JSON_PARTS_H
#define VIEW_JSON_PARTS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "analysis/explain/cause.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/frames.h"
#include "analysis/view/json/json_stream.h"

/*
 * Values. json-c represents null by a NULL pointer, which every function here accepts and
 * may return.
 */
enum { JSON_TEXT_MAX = 16384 };
struct json_object *json_text(const char *text); /* NULL: null */
struct json_object *json_number(uint64_t number); /* CUF_UNKNOWN: null */
struct json_object *json_double(double number); /* not finite: null */
struct json_object *json_basis(enum fact_basis basis); /* BASIS_NONE: null */
/* Where the bytes of a layer were read; NULL when they are unknown. */
const char *json_layer_words(const struct fact_layer *layer);

/* Keys. The object takes ownership of the value. */
void json_add(struct json_object *object, const char *key, struct json_object *value);
/* CUF_UNKNOWN: null */
void json_add_number(struct json_object *object, const char *key, uint64_t number);
/* UINT32_MAX: null */
void json_add_index(struct json_object *object, const char *key, uint32_t number);
/* not finite: null */
void json_add_double(struct json_object *object, const char *key, double number);
void json_add_text(struct json_object *object, const char *key, const char *text);  /* NULL: null */
/* Also "" is null: what has no name is unknown. */
void json_add_word(struct json_object *object, const char *key, const char *text);
/* 0 is null: process ids, line numbers, the numbers of incidents. */
void json_add_positive(struct json_object *object, const char *key, uint64_t number);
void json_add_bool(struct json_object *object, const char *key, bool value);
void json_add_hex(struct json_object *object, const char *key, uint64_t addr);
/* key "basis" */
void json_add_basis(struct json_object *object, enum fact_basis basis);

/* What several documents share. facts and frames are borrowed. */
struct json_object *json_stack(struct frames *frames, const struct fact_stack *stack);
struct json_object *json_owners(const struct fact_owner_row *owners, size_t count);
struct json_object *json_largest_free(const struct fact_layer *layers);
/* the driver's index; null: host */
struct json_object *json_device_ordinal(const struct facts *facts, uint32_t device);
/* null: of the run */
struct json_object *json_pid(const struct facts *facts, uint32_t process);

/* Structures that can have many rows are written row by row. */
void stream_device(struct json_stream *stream, const struct facts *facts, struct frames *frames,
		   const struct fact_device *device); /* a row of "devices" */
/* key "fragmentation" */
void stream_fragmentation(struct json_stream *stream, const struct facts *facts,
			  struct frames *frames, const struct fact_device *device);
/* keys "frameworks" and "segments"; json_frameworks.c */
void stream_frameworks(struct json_stream *stream, const struct facts *facts,
		       struct frames *frames, const struct fact_fragmentation *fragmentation);
void stream_segments(struct json_stream *stream, const struct facts *facts, struct frames *frames,
		     const struct fact_fragmentation *fragmentation);
struct json_object *json_incident(const struct facts *facts, struct frames *frames,
				  const struct fact_incident *incident);
struct json_object *json_site(const struct facts *facts, struct frames *frames,
			      const struct fact_site *site);
/* NULL: null; json_cause.c */
struct json_object *json_cause(const struct facts *facts, struct frames *frames,
			       const struct fact_cause *cause);
/* Settings that were played; json_what_if.c */
struct json_object *json_what_ifs(const struct fact_what_ifs *what_ifs);
/* Lists of processes[].recent, and the judgement (NULL: null); json_live.c */
struct json_object *json_recent(const struct facts *facts, const struct fact_process *process);
struct json_object *json_judgement(const struct facts *facts, struct frames *frames);
/* json_host.c */
struct json_object *json_host(struct frames *frames, const struct fact_host *host);
/* key "phases", of all processes; json_phases.c */
void stream_phases(struct json_stream *stream, const struct facts *facts);
/* and what is known of phases by name */
struct json_object *json_requests(const struct fact_process *process);

#endif
