/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites for people. */
#include "analysis/view/commands/site_text.h"

#include <stddef.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/paths.h"

enum { LINE_BYTES = 1024 };

void site_print_clean(const struct site_printer *printer, const char *text)
{
	char clean[LINE_BYTES];

	clean_terminal(clean, sizeof clean, text, !printer->style->utf8);
	fputs(clean, printer->out);
}

/* "append_kv (server.c:64)", or where it is if there is no line. */
static void own_text(const struct gate_site *site, char *out, size_t bytes)
{
	if (site->file && site->line)
		snprintf(out, bytes, "%s (%s:%u)", site->function, path_base_name(site->file),
			 site->line);
	else if (*site->module)
		snprintf(out, bytes, "%s in %s", site->function, site->module);
	else
		snprintf(out, bytes, "%s", site->function);
}

/* The callers in the identity, behind the frame that is the user's own. */
static const char *callers_of(const struct gate_site *site)
{
	const char *at = site->identity, *end;

	for (; at; at = end ? end + 3 : NULL) {
		const char *mark = strchr(at, '!');
		size_t length = strlen(site->function);
		end = strstr(at, " < ");
		if (mark && !strncmp(mark + 1, site->function, length) &&
		    (mark[1 + length] == ' ' || !mark[1 + length]))
			return end ? end + 3 : NULL;
	}
	end = strstr(site->identity, " < ");
	return end ? end + 3 : NULL;
}

void site_print_line(const struct site_printer *printer, const struct gate_site *site,
		     unsigned used)
{
	char text[LINE_BYTES];
	const char *callers = callers_of(site), *end;

	own_text(site, text, sizeof text);
	site_print_clean(printer, text);
	used += (unsigned)strlen(text);
	for (; callers; callers = end ? end + 3 : NULL) {
		const char *mark;
		end = strstr(callers, " < ");
		snprintf(text, sizeof text, "%.*s",
			 (int)(end ? end - callers : (ptrdiff_t)strlen(callers)), callers);
		mark = strchr(text, '!');
		mark = mark ? mark + 1 : text;
		used += (unsigned)strlen(mark) + 3;
		if (used > printer->style->columns)
			break;
		fputs(" < ", printer->out);
		site_print_clean(printer, mark);
	}
	fputc('\n', printer->out);
}
