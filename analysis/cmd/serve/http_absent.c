/* SPDX-License-Identifier: Apache-2.0 */
/* A command that was built without libmicrohttpd. */
#include "analysis/cmd/serve/http.h"

#include "analysis/cmd/cli/say.h"

struct http *http_open(struct server *server, const struct listen_address *address)
{
	(void)server, (void)address;
	say_error("this build of cuflight cannot listen: it was made without libmicrohttpd. "
		  "Install libmicrohttpd-dev and run make again, or use --metrics-file");
	return NULL;
}

void http_close(struct http *http) { (void)http; }
unsigned http_port(const struct http *http) { (void)http; return 0; }
int http_fd(const struct http *http) { (void)http; return -1; }
int http_child_fd(const struct http *http) { (void)http; return -1; }
int http_run(struct http *http) { (void)http; return -1; }
