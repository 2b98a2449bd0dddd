/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer over what `cuflight serve` answers. An input is texts, each ended by a zero: method,
 * path, Host, Authorization, Accept and two values of the query, and then the names of a process,
 * its model, its call site and its folder. Any of them gives an answer; metrics are whole
 * expositions; a command line that makes a report has our words and a path of ours.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/cmd/serve/server.h"
#include "tests/fuzz/json_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { METHOD, PATH, HOST, AUTHORIZATION, ACCEPT, PROCESS, DEVICE, NAME, MODEL, SITE, FOLDER,
       TEXTS };

static const char *texts[TEXTS];

static const char *query(void *state, const char *key)
{
	(void)state;
	return texts[!strcmp(key, "process") ? PROCESS : DEVICE];
}

/* ---- what is served ---- */

static struct watch_process process;
static struct watch_process *processes[] = { &process };
static struct pass pass;
static char path[256];

static void prepare(struct server *server)
{
	server->watch = (struct watch){ .finder = { .root = "dir" }, .processes = processes,
					.count = 1 };
	/* nothing is looked for, however long this machine waits: the process here is not the heap's */
	server->refreshed_ns = watch_now_ns() + 3600000000000;
	strcpy(server->token, "a-secret-token");
	metrics_name_folders(&server->metrics, "namespace/pod");
	snprintf(path, sizeof path, "dir/%.100s/a.cuf", texts[FOLDER]);
	process = (struct watch_process){ .path = path, .pass = &pass, .pass_ns = 1 };
	clean_terminal(process.name, sizeof process.name, texts[NAME], false); /* as levels.c */
	pass = (struct pass){ .device_count = 1, .resource_count = 1, .site_count = 1 };
	clean_terminal(pass.model, sizeof pass.model, texts[MODEL], false); /* as pass.c */
	snprintf(pass.cause, sizeof pass.cause, "gpu-leak");
	clean_terminal(pass.sites[0].name, sizeof pass.sites[0].name, texts[SITE], false);
	process.levels.device_count = 1;
	process.levels.devices[0].total_bytes = pass.devices[0].total_bytes = 1 << 20;
	memcpy(process.sites[0].name, pass.sites[0].name, sizeof process.sites[0].name);
	process.site_count = 1;
}

/* ---- what is answered ---- */

/* "name="value", with three escapes; NULL: it is not. */
static const char *skip_label(const char *at)
{
	at += strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
	if (strncmp(at, "=\"", 2) != 0)
		return NULL;
	for (at += 2; *at && *at != '"'; at++) {
		size_t bytes = clean_character(at);

		if (*at == '\n' || !bytes || (*at == '\\' && !strchr("\\\"n", *++at)))
			return NULL;
		at += bytes > 1 ? bytes - 1 : 0;
	}
	return *at ? at + 1 : NULL;
}

static void check_line(const char *at)
{
	if (!strncmp(at, "# ", 2))
		return;
	if (strncmp(at, "cuflight_", 9) != 0)
		abort();
	at += strcspn(at, "{ ");
	while (*at == '{' || *at == ',')
		if (!(at = skip_label(at + 1)))
			abort();
	at += *at == '}';
	if (*at != ' ' || strcspn(at + 1, "\n \"") != strcspn(at + 1, "\n"))
		abort();
}

static void check_metrics(const struct answer *answer)
{
	const char *at = answer->body, *end;

	if (strlen(at) != answer->bytes)
		abort();
	for (; (end = strchr(at, '\n')); at = end + 1)
		check_line(at);
	if (*at)
		abort();
}

static void check_json(const struct answer *answer)
{
	struct json_check check;
	FILE *out = json_check_open(&check);

	fwrite(answer->body, 1, answer->bytes, out);
	fclose(out);
	if (!json_check_whole(&check))
		abort();
}

static void check_words(const struct answer *answer)
{
	static const char *const ours[] = { "report", "export", "--json", "--html", "--to=pprof",
					    "--kind=host", "--" };
	size_t count = 0;

	while (answer->words[count])
		count++;
	if (strcmp(answer->words[count - 1], path) != 0 ||
	    strcmp(answer->words[count - 2], "--") != 0)
		abort();
	for (size_t i = 0; i < count - 1; i++) {
		const char *word = answer->words[i];
		bool is_ours = !strncmp(word, "--kind=device,", 14) ||
			       (!strncmp(word, "--device=", 9) && strlen(word) < 14);

		for (size_t w = 0; w < sizeof ours / sizeof *ours; w++)
			is_ours |= !strcmp(word, ours[w]);
		if (!is_ours)
			abort();
	}
}

static void check(const struct answer *answer)
{
	bool is_refused = answer->status == 400 || answer->status == 401 ||
			  answer->status == 403 || answer->status == 404 || answer->status == 405;

	if ((answer->status != 200 && !is_refused) || !answer->body == !*answer->words)
		abort();
	if (*answer->words)
		check_words(answer);
	if (answer->status != 200 || !answer->body)
		return;
	if (!strcmp(texts[PATH], "/metrics"))
		check_metrics(answer);
	if (!strcmp(texts[PATH], "/live.json"))
		check_json(answer);
	if ((strncasecmp(texts[AUTHORIZATION], "Bearer ", 7) != 0 ||
	     strcmp(texts[AUTHORIZATION] + 7, "a-secret-token") != 0) &&
	    (!strcmp(texts[PATH], "/metrics") || !strcmp(texts[PATH], "/live.json")))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct server server;
	struct request request = { .query = query };
	struct answer answer;
	char *copy = calloc(bytes + 1, 1), *at = copy;

	if (!copy)
		abort();
	memcpy(copy, data, bytes);
	for (size_t i = 0; i < TEXTS; i++) {
		texts[i] = at;
		at += at < copy + bytes ? strlen(at) + 1 : 0;
		at = at > copy + bytes ? copy + bytes : at;
	}
	prepare(&server);
	request.method = texts[METHOD];
	request.path = texts[PATH];
	request.host = texts[HOST];
	request.authorization = texts[AUTHORIZATION];
	request.accept = texts[ACCEPT];
	server_answer(&server, &request, &answer);
	check(&answer);
	answer_fini(&answer);
	free(copy);
	return 0;
}
