/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol buffers' wire format, as far as a writer needs it: numbers, texts and nested messages.
 * Written by hand because a library builds the whole document in memory first, and because a build
 * would need a generator and another project's schema. The tests read the result with the real
 * tool.
 *
 * Contract: a message grows in memory until it is taken; proto_fini frees it. Strings may have any
 * bytes; those of pprof must be UTF-8, which is the caller's duty.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct proto {
	uint8_t *bytes;
	size_t count, room;
};

void proto_fini(struct proto *message);
void proto_clear(struct proto *message);
void proto_number(struct proto *message, unsigned field, uint64_t value); /* 0 is left out */
void proto_text(struct proto *message, unsigned field, const char *text);
void proto_message(struct proto *message, unsigned field, const struct proto *inner);
/* A repeated number, packed; nothing when count is 0. */
void proto_packed(struct proto *message, unsigned field, const uint64_t *values, size_t count);
