/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP for server.h. http_daemon.c has it by libmicrohttpd; a command that was built without that
 * library has http_absent.c.
 *
 * Contract: one thread. http_open prints its errors and returns NULL. Limits: HTTP_CONNECTIONS at a
 * time, HTTP_BYTES of a request, HTTP_SECONDS until a request is there; whoever is too slow makes
 * room for others when connections run short.
 */
#pragma once

#include "analysis/cmd/serve/guard.h"
#include "analysis/cmd/serve/server.h"

enum { HTTP_CONNECTIONS = 128, HTTP_BYTES = 32 << 10, HTTP_SECONDS = 10 };

struct http;
struct http *http_open(struct server *server, const struct listen_address *address);
void http_close(struct http *http);

unsigned http_port(const struct http *http); /* that was given to port 0 */
int http_fd(const struct http *http);        /* readable: call http_run */
int http_child_fd(const struct http *http);  /* the same; -1: nothing to wait for */
/* Answers what is there. Returns the milliseconds until it wants to be called again. */
int http_run(struct http *http);
