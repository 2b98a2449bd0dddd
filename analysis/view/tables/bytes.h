/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing row of bytes, for pages and footers of Parquet, and its encodings of numbers. Contract:
 * zeroed is empty; heap memory, freed by bytes_fini; dies on exhaustion. Numbers are little-endian.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct bytes { uint8_t *at; size_t count, room; };

void bytes_fini(struct bytes *bytes);
void bytes_add(struct bytes *bytes, const void *data, size_t count);
void bytes_add_byte(struct bytes *bytes, uint8_t byte);
/* The low `count` bytes of a number, at most 8. */
void bytes_add_number(struct bytes *bytes, uint64_t number, size_t count);
/* Seven bits a byte, the lowest first. */
void bytes_add_varint(struct bytes *bytes, uint64_t number);

/* Parquet's hybrid of run lengths and packed bits, for small numbers: which values are null, and
 * the places of texts in a dictionary. Every number fits in `width` bits, 1 to 32. */
void bytes_add_hybrid(struct bytes *out, const uint32_t *numbers, size_t count, unsigned width);
/* The bits that a number of this size needs, at least 1. */
unsigned hybrid_width(uint32_t largest);
