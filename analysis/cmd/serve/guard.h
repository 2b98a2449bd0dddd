/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may ask. A page of a stranger that a browser has open can send requests to this machine, and
 * can make its own name mean this machine (DNS rebinding); it cannot change the Host that the
 * browser sends. So only numbers and names that are known to be ours are answered.
 *
 * Contract: pure, except guard_read_token. NULL: the header was not sent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool guard_knows_host(const char *host, const char *const *names, size_t count);
/* token "": none is needed. Takes as long for a wrong one as for the right one. */
bool guard_accepts(const char *token, const char *authorization);
/* The first line of a file: 0, or -1 after an error on stderr. */
int guard_read_token(const char *path, char *token, size_t bytes);

struct listen_address { char text[64]; unsigned port; bool is_ipv6, is_loopback; };
/* "127.0.0.1:9741", "[::1]:0", ":9741" (all addresses). False: it is none. */
bool guard_parse_address(const char *typed, struct listen_address *out);
