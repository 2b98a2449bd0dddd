/* SPDX-License-Identifier: Apache-2.0 */
/* Who may ask, and what for. */
#include "analysis/cmd/serve/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/cmd/serve/guard.h"
#include "analysis/base/xalloc.h"
#include "analysis/view/live/frame.h"

enum { FRESH_NS = 100000000 };

static const char plain[] = "text/plain; charset=utf-8";

void server_refresh(struct server *server)
{
	uint64_t now_ns = watch_now_ns();

	if (now_ns < server->refreshed_ns + FRESH_NS)
		return;
	watch_refresh(&server->watch);
	server->refreshed_ns = now_ns;
}

/* ---- answers ---- */

void answer_text(struct answer *answer, unsigned status, const char *text)
{
	answer->status = status;
	answer->type = plain;
	answer->body = xalloc_string(text);
	answer->bytes = strlen(text);
}

void answer_fini(struct answer *answer)
{
	free(answer->body);
	for (size_t i = 0; i < SERVE_WORDS; i++)
		free(answer->words[i]);
	*answer = (struct answer){ 0 };
}

/* ---- routes ---- */

typedef void route_function(struct server *server, const struct request *request,
			    struct answer *answer);

/* Prometheus asks for both and prefers OpenMetrics; a browser asks for neither. */
static bool wants_openmetrics(const struct request *request)
{
	return request->accept && strstr(request->accept, "application/openmetrics-text");
}

static void answer_metrics(struct server *server, const struct request *request,
			   struct answer *answer)
{
	bool is_openmetrics = wants_openmetrics(request);
	FILE *out = open_memstream(&answer->body, &answer->bytes);

	if (!out) {
		answer_text(answer, 500, "out of memory\n");
		return;
	}
	server_refresh(server);
	metrics_write(out, &server->watch, &server->metrics, is_openmetrics);
	fclose(out);
	answer->status = 200;
	answer->type = is_openmetrics ?
			       "application/openmetrics-text; version=1.0.0; charset=utf-8" :
			       "text/plain; version=0.0.4; charset=utf-8";
}

static void answer_live(struct server *server, const struct request *request,
			struct answer *answer)
{
	FILE *out = open_memstream(&answer->body, &answer->bytes);
	struct top_frame frame;

	(void)request;
	if (!out) {
		answer_text(answer, 500, "out of memory\n");
		return;
	}
	server_refresh(server);
	top_take(&frame, &server->watch);
	top_json(out, &frame);
	top_fini(&frame);
	fclose(out);
	answer->status = 200;
	answer->type = "application/json";
}

static void answer_health(struct server *server, const struct request *request,
			  struct answer *answer)
{
	(void)server, (void)request;
	answer_text(answer, 200, "ok\n");
}

/* It has no data: it asks for live.json, with the token if there is one. */
static void answer_live_page(struct server *server, const struct request *request,
			     struct answer *answer)
{
	(void)server, (void)request;
	answer_text(answer, 200, live_page);
	answer->type = "text/html; charset=utf-8";
	answer->policy = "default-src 'none'; script-src 'unsafe-inline'; style-src "
			 "'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'";
}

/* ---- reports and profiles, which a child makes ---- */

static void put_word(struct answer *answer, const char *word)
{
	for (size_t i = 0; i < SERVE_WORDS; i++)
		if (!answer->words[i]) {
			answer->words[i] = xalloc_string(word);
			return;
		}
}

/* The process of ?process=, else the only one; the newest one where several are shown. */
static const struct watch_process *asked_process(const struct server *server,
						 const struct request *request)
{
	const char *name = request->query(request->state, "process");
	const struct watch_process *found = NULL;

	for (size_t i = 0; i < server->watch.count; i++) {
		const struct watch_process *process = server->watch.processes[i];
		if (!process->is_succeeded && (!name || !strcmp(process->name, name)))
			found = process;
	}
	return found;
}

static void run_child(struct server *server, const struct request *request,
		      struct answer *answer, const char *const *words, const char *type)
{
	const struct watch_process *process;

	server_refresh(server);
	process = asked_process(server, request);
	if (!process) {
		answer_text(answer, 404, "there is no such process\n");
		return;
	}
	for (; *words; words++)
		put_word(answer, *words);
	put_word(answer, "--");
	put_word(answer, process->path);
	answer->status = 200;
	answer->type = type;
}

static void answer_report(struct server *server, const struct request *request,
			  struct answer *answer)
{
	static const char *const words[] = { "report", NULL };

	run_child(server, request, answer, words, plain);
}

static void answer_report_json(struct server *server, const struct request *request,
			       struct answer *answer)
{
	static const char *const words[] = { "report", "--json", NULL };

	run_child(server, request, answer, words, "application/json");
}

static void answer_page(struct server *server, const struct request *request,
			struct answer *answer)
{
	static const char *const words[] = { "report", "--html", NULL };

	run_child(server, request, answer, words, "text/html; charset=utf-8");
	answer->policy = "default-src 'none'; script-src 'unsafe-inline'; style-src "
			 "'unsafe-inline'; img-src data:; frame-ancestors 'none'";
}

static void answer_heap(struct server *server, const struct request *request,
			struct answer *answer)
{
	static const char *const words[] = { "export", "--to=pprof", "--kind=host", NULL };

	run_child(server, request, answer, words, "application/octet-stream");
}

/* ?device=N: only that one. */
static void answer_gpu(struct server *server, const struct request *request,
		       struct answer *answer)
{
	const char *words[5] = { "export", "--to=pprof",
				"--kind=device,managed,async,vmm,array,imported" };
	const char *device = request->query(request->state, "device");
	char option[32];

	if (device && (!*device || strspn(device, "0123456789") != strlen(device) ||
		       strlen(device) > 4)) {
		answer_text(answer, 400, "device is a number\n");
		return;
	}
	snprintf(option, sizeof option, "--device=%s", device ? device : "");
	words[3] = device ? option : NULL;
	run_child(server, request, answer, words, "application/octet-stream");
}

static const struct route {
	const char *path;
	bool is_public; /* without the token */
	route_function *answer;
} routes[] = {
	{ "/", true, answer_live_page },
	{ "/metrics", false, answer_metrics },
	{ "/live.json", false, answer_live },
	{ "/report", false, answer_report },
	{ "/report.json", false, answer_report_json },
	{ "/report.html", false, answer_page },
	{ "/debug/pprof/heap", false, answer_heap },
	{ "/debug/pprof/gpu", false, answer_gpu },
	{ "/healthz", true, answer_health },
	{ "/-/ready", true, answer_health },
};

static const struct route *route_of(const char *path)
{
	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
		if (!strcmp(routes[i].path, path))
			return &routes[i];
	return NULL;
}

void server_answer(struct server *server, const struct request *request, struct answer *answer)
{
	const struct route *route = route_of(request->path);

	*answer = (struct answer){ 0 };
	if (!guard_knows_host(request->host, server->hosts, server->host_count))
		answer_text(answer, 403, "this Host is none of mine; see --allow-host\n");
	else if (strcmp(request->method, "GET") && strcmp(request->method, "HEAD"))
		answer_text(answer, 405, "only GET\n");
	else if ((!route || !route->is_public) &&
		 !guard_accepts(server->token, request->authorization))
		answer_text(answer, 401, "a token is needed: Authorization: Bearer TOKEN\n");
	else if (!route)
		answer_text(answer, 404, "there is no such page\n");
	else
		route->answer(server, request, answer);
}
