/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page as it was bundled at build time, by scripts/embed-page. Contract: constant; not
 * NUL-terminated. A build without node and without a ready-made bundle has 0 bytes.
 */
#pragma once

#include <stddef.h>

extern const unsigned char html_js[], html_css[];
extern const size_t html_js_bytes, html_css_bytes;
/* For the policy of the page: SHA-256, base64. */
extern const char html_js_hash[], html_css_hash[];
