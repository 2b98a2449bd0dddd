/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantities to text and back, in one way for the whole command: IEC units with three digits,
 * commas between thousands, "?" for the unknown.
 *
 * Contract: no allocation, no locale, any thread. struct unit_text is returned by value; its text
 * is valid until the end of the full expression, as in printf("%s", units_bytes(n).s).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"

struct unit_text {
	char s[40];
};

struct unit_text units_bytes(uint64_t bytes);          /* 2.00 GiB; 34.5 MiB; 512 KiB; 17 B; ? */
struct unit_text units_bytes_rough(uint64_t bytes);    /* of a sample: ~2.0 GiB; ~510 KiB */
struct unit_text units_bytes_signed(double bytes);     /* +1.50 MiB; NAN: ? */
struct unit_text units_count(uint64_t count);          /* 1,204,551 */
/* 12.5%; "?" when whole is 0 or a figure is unknown */
struct unit_text units_percent(uint64_t part, uint64_t whole);
/* 850 us, 12 ms, 3.2 s, 41m07s, 3h05m, 2d04h */
struct unit_text units_duration(uint64_t duration_ns);
struct unit_text units_wall(uint64_t epoch_ns);        /* 14:03:22.118, local time */
struct unit_text units_date(uint64_t epoch_ns);        /* 2026-05-01 14:03:22, local time */

/* A size as both/sizes.h reads it, and a plain number. False: none, or of more than 64 bits. */
bool units_parse_bytes(const char *text, uint64_t *bytes);
bool units_parse_count(const char *text, uint64_t *count);

/* A GPU's UUID as nvidia-smi and DCGM write it: "GPU-" and five groups of digits; NULL: all bytes
 * are zero, so the driver was not asked. */
enum { UUID_TEXT = 48 };
const char *uuid_text(const uint8_t uuid[16], char out[UUID_TEXT]);
