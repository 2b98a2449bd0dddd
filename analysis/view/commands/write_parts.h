/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the formats of gate_writers.h share: places, quantities, escapes, identities.
 *
 * Contract: pure, except the print_ functions; out is always NUL-terminated, valid UTF-8, and cut
 * to fit at the end of a character. Texts may be NULL, which is "".
 */
#pragma once

#include "analysis/base/units.h"
#include "analysis/view/commands/gate_writers.h"

enum { GATE_TEXT_MAX = 1024, GATE_SITES_MAX = 10 };

/* A place in a source file. */
struct gate_place {
	char file[GATE_TEXT_MAX]; /* relative to the root where it is below it; "" unknown */
	unsigned line;            /* 0 unknown */
};

/* The user's own line of a call site; site NULL: unknown. */
struct gate_place gate_site_place(const struct gate_document *document,
				  const struct gate_site *site);
/* The same for a finding: its worst call site that no rule suppresses, else the line that states
 * the limit. */
struct gate_place gate_finding_place(const struct gate_document *document,
				     const struct gate_finding *finding);

/* "34.5 MiB", "12", "?" */
struct unit_text gate_quantity(const struct gate_measure *measure, uint64_t value);

/* "remember (server.c:100)", "remember (libserver.so)", "remember"; cleaned, not escaped. */
void gate_site_text(const struct gate_site *site, char *out, size_t bytes);
/* "5.69 GiB in 353 blocks at SITE", "... (1.00 GiB before)" */
void gate_site_sentence(const struct gate_finding *finding, const struct gate_site *site,
			char *out, size_t bytes);

/* The same for the same limit and call site in every run and build; site NULL: of the limit. */
uint64_t gate_fingerprint(const struct gate_finding *finding, const struct gate_site *site);

size_t gate_count(const struct gate_result *result, enum gate_status status);
/* "2 of 5 limits exceeded", "all 5 limits kept", "3 of 5 limits could not be judged" */
void gate_headline(const struct gate_result *result, char *out, size_t bytes);

/* The character at text and how many bytes it has. What is not valid is one byte, and "?". */
size_t gate_character(const char *text, char out[8]);
/* Attributes and texts of XML 1.0. */
void print_xml(FILE *out, const char *text);
/* Texts of Markdown, also within a table: whatever could be markup is an entity. */
void print_markdown(FILE *out, const char *text);
/* Indented, with a newline; releases the document. A gate has few findings: it fits in memory. */
struct json_object;
void print_json(FILE *out, struct json_object *document);
