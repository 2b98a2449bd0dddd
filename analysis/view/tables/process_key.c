/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/view/tables/process_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "analysis/base/clean.h"
#include "analysis/base/paths.h"

/* A host's name is at most 64 bytes; what claims more is cut. */
enum { HOST_BYTES = 65 };

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.';
}

/* As a name of a file, cut to fit; "unknown" where there is nothing. */
static void encode(char *out, size_t bytes, const char *text)
{
	size_t used = 0;

	if (!*text)
		text = "unknown";
	for (; *text && used + 4 <= bytes; text++) {
		if (is_plain(*text))
			out[used++] = *text;
		else
			used += (size_t)snprintf(out + used, bytes - used, "%%%02X",
						 (unsigned char)*text);
	}
	out[used] = 0;
}

static void date_of(uint64_t time_ns, char *out, size_t bytes)
{
	time_t seconds = (time_t)(time_ns / 1000000000u);
	struct tm utc;

	gmtime_r(&seconds, &utc);
	if (!strftime(out, bytes, "%Y-%m-%d", &utc))
		snprintf(out, bytes, "1970-01-01");
}

void process_key_of(const struct fact_process *process, struct process_key *key)
{
	char host[HOST_BYTES], word[PROCESS_WORD_BYTES], encoded_host[PROCESS_WORD_BYTES];
	uint64_t start_ns = process->start_ns == CUF_UNKNOWN ? 0 : process->start_ns;

	clean_utf8(host, sizeof host, process->hostname);
	snprintf(key->text, sizeof key->text, "%s.%u.%" PRIu64, *host ? host : "unknown",
		 process->pid, start_ns);
	date_of(start_ns, key->date, sizeof key->date);
	program_name(process->exe, process->cmdline, word, sizeof word);
	clean_utf8(key->program, sizeof key->program, word);
	clean_utf8(key->model, sizeof key->model, process->model);
	encode(encoded_host, sizeof encoded_host, host);
	encode(word, sizeof word, key->program);
	snprintf(key->partition, sizeof key->partition, "date=%s/host=%s/program=%s", key->date,
		 encoded_host, word);
	snprintf(key->file, sizeof key->file, "%.120s.%u.%" PRIu64, encoded_host, process->pid,
		 start_ns);
}
