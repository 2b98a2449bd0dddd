/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that the documents of check and diff share: unknown is null, texts are valid UTF-8.
 * Contract: json-c owns the memory; an object takes ownership of what is added to it.
 */
#ifndef VIEW_GATE_JSON_VALUES_H
#define VIEW_GATE_JSON_VALUES_H

#include <json-c/json.h>
#include <stdio.h>
#include "analysis/gate/finding.h"

void value_add_text(struct json_object *object, const char *key, const char *text); /* NULL: null */
void value_add_number(struct json_object *object, const char *key, uint64_t number);
struct json_object *value_texts(const char *const *texts, size_t count);
struct json_object *value_site(const struct gate_site *site);
struct json_object *value_environment(const struct gate_environment *environment);
/* Indented, with a newline; releases the document. */
void value_print(struct json_object *document, FILE *out);

#endif
