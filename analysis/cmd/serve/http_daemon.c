/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd in our own loop. */
#include "analysis/cmd/serve/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/serve/child.h"

enum { ANSWER_SECONDS = 90, SPARE_CONNECTIONS = 16, WAITING_MOST = 16 };

/* One connection. Until its request is complete it may be closed at any time. */
struct link {
	struct link *next, **at;
	int socket;
	uint64_t since_ns; /* it began, or its last request was answered */
	bool is_answering, is_closing;
	struct MHD_Connection *waiting; /* for a child; NULL */
};

struct http {
	struct MHD_Daemon *daemon;
	struct server *server;
	struct link *links;
	unsigned link_count, waiting_count;
	struct children children;
};

/* ---- connections ---- */

/* libmicrohttpd sees it when it reads next. */
static void close_link(struct link *link)
{
	link->is_closing = true;
	shutdown(link->socket, SHUT_RDWR);
}

/* The oldest one without a request: a client that waits for an answer is not disturbed. */
static void make_room(struct http *http)
{
	struct link *oldest = NULL;

	for (struct link *link = http->links; link; link = link->next)
		if (!link->is_answering && !link->is_closing &&
		    (!oldest || link->since_ns < oldest->since_ns))
			oldest = link;
	if (oldest)
		close_link(oldest);
}

static void add_link(struct http *http, struct MHD_Connection *connection, void **context)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct link *link = xalloc_zeroed(1, sizeof *link);

	link->socket = info ? info->connect_fd : -1;
	link->since_ns = watch_now_ns();
	link->next = http->links;
	link->at = &http->links;
	if (link->next)
		link->next->at = &link->next;
	http->links = *context = link;
	if (++http->link_count > HTTP_CONNECTIONS - SPARE_CONNECTIONS)
		make_room(http);
}

static void remove_link(struct http *http, void **context)
{
	struct link *link = *context;

	if (!link)
		return;
	*link->at = link->next;
	if (link->next)
		link->next->at = link->at;
	http->link_count--;
	free(link);
	*context = NULL;
}

static void on_connection(void *state, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		add_link(state, connection, context);
	else
		remove_link(state, context);
}

static struct link *link_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void on_completed(void *state, struct MHD_Connection *connection, void **context,
			 enum MHD_RequestTerminationCode code)
{
	struct link *link = link_of(connection);

	(void)state, (void)code;
	*context = NULL;
	if (!link)
		return;
	link->is_answering = false;
	link->since_ns = watch_now_ns();
}

static void close_slow_ones(struct http *http)
{
	uint64_t now_ns = watch_now_ns();

	for (struct link *link = http->links; link; link = link->next) {
		uint64_t seconds = link->is_answering ? ANSWER_SECONDS : HTTP_SECONDS;
		if (now_ns - link->since_ns > seconds * 1000000000)
			close_link(link);
	}
}

/* ---- requests ---- */

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static const char *query_of(void *state, const char *key)
{
	return MHD_lookup_connection_value(state, MHD_GET_ARGUMENT_KIND, key);
}

/* Takes the body, or what a child wrote. */
static struct MHD_Response *response_of(struct answer *answer, const struct child_result *made)
{
	struct MHD_Response *response;

	if (made)
		return MHD_create_response_from_fd64(made->bytes, dup(made->fd));
	response = MHD_create_response_from_buffer(answer->bytes, answer->body,
						   MHD_RESPMEM_MUST_FREE);
	if (response)
		answer->body = NULL;
	return response;
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, struct answer *answer,
				   const struct child_result *made)
{
	struct MHD_Response *response = response_of(answer, made);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Type", answer->type);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	MHD_add_response_header(response, "Content-Security-Policy",
				answer->policy ? answer->policy :
						 "default-src 'none'; frame-ancestors 'none'");
	if (answer->status == 401)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	if (answer->status == 405)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	result = MHD_queue_response(connection, answer->status, response);
	MHD_destroy_response(response);
	return result;
}

/* After a child has ended, libmicrohttpd asks again for each connection that waited. */
static enum MHD_Result wait_for_child(struct http *http, struct MHD_Connection *connection,
				      struct link *link, struct answer *answer)
{
	if (http->waiting_count >= WAITING_MOST || !link) {
		answer_fini(answer);
		answer_text(answer, 503, "too many wait for reports\n");
		return send_answer(connection, answer, NULL);
	}
	children_start(&http->children, answer->words);
	link->waiting = connection;
	http->waiting_count++;
	MHD_suspend_connection(connection);
	return MHD_YES;
}

static void resume_waiting(struct http *http)
{
	for (struct link *link = http->links; link; link = link->next) {
		if (!link->waiting)
			continue;
		MHD_resume_connection(link->waiting);
		link->waiting = NULL;
	}
	http->waiting_count = 0;
}

static enum MHD_Result answer_by_child(struct http *http, struct MHD_Connection *connection,
				       struct link *link, struct answer *answer)
{
	const struct child_result *made = children_find(&http->children, answer->words);

	if (!made)
		return wait_for_child(http, connection, link, answer);
	if (made->is_good)
		return send_answer(connection, answer, made);
	answer_fini(answer);
	answer_text(answer, 500, "the report could not be made\n");
	return send_answer(connection, answer, NULL);
}

static enum MHD_Result on_request(void *state, struct MHD_Connection *connection,
				  const char *path, const char *method, const char *version,
				  const char *upload, size_t *upload_bytes, void **context)
{
	struct http *http = state;
	struct link *link = link_of(connection);
	struct request request = {
		.method = method, .path = path, .host = header_of(connection, "Host"),
		.authorization = header_of(connection, "Authorization"),
		.accept = header_of(connection, "Accept"),
		.query = query_of, .state = connection,
	};
	struct answer answer;
	enum MHD_Result result;

	(void)version, (void)upload, (void)upload_bytes, (void)context;
	if (link)
		link->is_answering = true;
	server_answer(http->server, &request, &answer);
	result = answer.words[0] ? answer_by_child(http, connection, link, &answer) :
				   send_answer(connection, &answer, NULL);
	answer_fini(&answer);
	return result;
}

/* ---- the daemon ---- */

static struct MHD_Daemon *start_daemon(struct http *http, const struct listen_address *address)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)address->port) };
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)address->port) };
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;

	if (address->is_ipv6)
		inet_pton(AF_INET6, address->text, &six.sin6_addr);
	else
		inet_pton(AF_INET, address->text, &four.sin_addr);
	return MHD_start_daemon(
		flags | (address->is_ipv6 ? MHD_USE_IPv6 : 0), (uint16_t)address->port, NULL, NULL,
		on_request, http,
		MHD_OPTION_SOCK_ADDR, address->is_ipv6 ? (void *)&six : (void *)&four,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)ANSWER_SECONDS,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
		MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
}

struct http *http_open(struct server *server, const struct listen_address *address)
{
	struct http *http = xalloc_zeroed(1, sizeof *http);

	http->server = server;
	children_init(&http->children, server->memory_bytes);
	errno = 0;
	http->daemon = start_daemon(http, address);
	if (http->daemon)
		return http;
	say_error("cannot listen on %s:%u: %s", address->text, address->port,
		  errno ? strerror(errno) : "libmicrohttpd refused");
	free(http);
	return NULL;
}

void http_close(struct http *http)
{
	resume_waiting(http);
	MHD_stop_daemon(http->daemon);
	children_fini(&http->children);
	free(http);
}

unsigned http_port(const struct http *http)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
	return info ? info->port : 0;
}

int http_fd(const struct http *http)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	return info ? info->epoll_fd : -1;
}

int http_child_fd(const struct http *http) { return http->children.fd; }

int http_run(struct http *http)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (children_take(&http->children))
		resume_waiting(http);
	close_slow_ones(http);
	MHD_run(http->daemon);
	if (MHD_get_timeout(http->daemon, &ms) != MHD_YES || ms > 1000)
		return 1000;
	return (int)ms;
}
