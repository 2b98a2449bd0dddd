/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a size as a person writes it: "512MiB", "1.5 GiB", "2 GB", "65536". One reading for the
 * options of both sides, limits and baselines.
 *
 *   K  Ki  KiB   powers of 1024: what reports print; so are M, G and T
 *   KB           powers of 1000: MB, GB, TB
 *   B, none      bytes, without decimals
 *
 * Contract: freestanding. The text needs no terminator. Case and blanks before the unit do not
 * matter. Decimals after the sixth are ignored, and a part of a byte is. False: it is no size, or
 * has more than 64 bits; then *out is not written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool sizes_read(const char *text, size_t bytes, uint64_t *out);
