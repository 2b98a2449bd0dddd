/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a recording or a directory of them for check, baseline and diff.
 *
 * Contract: NULL after an error on stderr; else facts, freed by facts_free. symbols and options may
 * be NULL; the member symbols of options is not used.
 */
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/recording/reader.h"

struct facts *open_facts(const char *path, struct symbols *symbols,
			 const struct facts_options *options);

/* Prints why a recording cannot be read. */
void refuse_recording(const char *path, const struct reader_error *error);
