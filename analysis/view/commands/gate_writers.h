/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats in which CI systems take the result of a gate: one table, with the word that people
 * type and the function that writes.
 *
 * Contract: a writer only prints. Every text of a recording is data: it is escaped, control
 * characters and invalid UTF-8 are replaced, so it can neither end its place in the document nor
 * add a line of its own. What is unknown is left out. Errors of the stream are its caller's.
 */
#pragma once

#include <stdio.h>
#include "analysis/gate/finding.h"

struct gate_document {
	const struct gate_result *result;
	const char *root; /* source files below it are written relative to it; "" none are */
};

struct gate_writer {
	const char *name;  /* "junit" */
	const char *about; /* one phrase: who reads it */
	void (*write)(const struct gate_document *document, FILE *out);
};
extern const struct gate_writer gate_writers[]; /* ends with a NULL name */

const struct gate_writer *gate_writer_find(const char *name, size_t length); /* NULL: none */

void write_junit(const struct gate_document *document, FILE *out);
void write_sarif(const struct gate_document *document, FILE *out);
void write_markdown(const struct gate_document *document, FILE *out);
void write_github(const struct gate_document *document, FILE *out);
