/* SPDX-License-Identifier: Apache-2.0 */
/* Every failed request with its retries, the state of memory at that moment, and its stack. */
#include "analysis/view/text/text.h"

#include <string.h>
#include "analysis/view/kinds.h"
#include "analysis/view/text/table.h"
#include "analysis/view/units.h"

enum { INCIDENT_ATTEMPTS = 5, INCIDENT_SITES = 5 };

static void attempts(const struct text *text, const struct fact_incident *incident)
{
	if (incident->attempt_count < 2)
		return;
	for (size_t i = 0; i < incident->attempt_count && i < INCIDENT_ATTEMPTS; i++) {
		const struct fact_attempt *a = &incident->attempts[i];
		text_line(text, STYLE_PLAIN, i ? "" : "tries", "%s  %s = %u, free %s", units_wall(a->time_ns).s, units_bytes(a->requested_bytes).s, a->result,
			  units_bytes(a->free_bytes).s);
	}
	if (incident->attempt_count > INCIDENT_ATTEMPTS)
		text_line(text, STYLE_PLAIN, "", "and %zu more", incident->attempt_count - INCIDENT_ATTEMPTS);
}

static void held(const struct text *text, const struct fact_incident *incident)
{
	char words[TEXT_LINE_BYTES] = "";
	size_t used = 0;
	for (uint32_t kind = 1; kind < CUF_KIND_MAX && used < sizeof words; kind++) {
		int length;
		if (!incident->live_count[kind] || incident->live_count[kind] == CUF_UNKNOWN || !kind_name(kind))
			continue;
		length = snprintf(words + used, sizeof words - used, "%s%s %s in %s", used ? ", " : "", kind_name(kind),
				  units_bytes(incident->live_bytes[kind]).s, units_count(incident->live_count[kind]).s);
		used += length > 0 ? (size_t)length : 0;
	}
	if (used)
		text_flow(text, STYLE_PLAIN, "live", 3, words);
}

static void live_sites(const struct text *text, const struct fact_incident *incident)
{
	static const struct table_column columns[] = { { NULL, TABLE_RIGHT }, { NULL, TABLE_RIGHT }, { NULL, TABLE_LEFT }, { NULL, TABLE_FLEX } };
	struct table *table;
	char where[TEXT_LINE_BYTES];
	if (!incident->site_count)
		return;
	table = table_new(text->style, columns, 4);
	for (size_t i = 0; i < incident->site_count && i < INCIDENT_SITES; i++) {
		const struct fact_live_site *site = &incident->sites[i];
		frames_line(text->frames, &site->stack, where, sizeof where);
		table_row(table, (const char *[]){ units_bytes(site->bytes).s, units_count(site->count).s, kind_name(site->kind), where });
	}
	text_line(text, STYLE_PLAIN, "held by", "bytes, blocks, kind, site: the largest at that moment");
	table_print(table, text->out, TEXT_LABEL);
	table_free(table);
}

static void phase(const struct text *text, const struct fact_incident *incident)
{
	char request[160] = "";
	if (!incident->phase && !incident->request_phase)
		return;
	if (incident->request_phase)
		snprintf(request, sizeof request, "%srequest %s (%.48s)", incident->phase ? ", " : "", units_count(incident->request_id).s, incident->request_phase);
	text_line(text, STYLE_PLAIN, "phase", "%s%s%s", incident->phase ? incident->phase : "", incident->phase && incident->phase_basis == BASIS_INFERRED ? " (inferred)" : "",
		  request);
}

static void one(const struct text *text, const struct fact_incident *incident)
{
	char call[160], words[TEXT_LINE_BYTES], number[24];
	enum style_tone tone = incident->outcome == OUTCOME_FATAL ? STYLE_BAD : incident->outcome == OUTCOME_RECOVERED ? STYLE_GOOD : STYLE_WARN;
	text_requested(incident, call, sizeof call);
	snprintf(number, sizeof number, "#%llu", (unsigned long long)incident->id);
	text_line(text, tone, number, "%s: %s, pid %u thread %u, %s", outcome_names[incident->outcome], units_wall(incident->time_ns).s,
		  incident->pid, incident->tid, call);
	if (incident->outcome_why && *incident->outcome_why) {
		snprintf(words, sizeof words, "%s, since %s", outcome_names[incident->outcome], incident->outcome_why);
		text_flow(text, STYLE_PLAIN, "outcome", 2, words);
	}
	phase(text, incident);
	if (incident->api && incident->driver_api && strcmp(incident->api, incident->driver_api) != 0)
		text_line(text, STYLE_PLAIN, "driver", "%s", incident->driver_api);
	text_shortage(incident, words, sizeof words);
	text_flow(text, STYLE_PLAIN, "facts", 3, words);
	attempts(text, incident);
	text_layers(incident->largest_free, words, sizeof words);
	text_flow(text, STYLE_PLAIN, "largest", 3, words);
	held(text, incident);
	live_sites(text, incident);
	text_line(text, STYLE_PLAIN, "stack", "%s", "innermost first");
	text_stack(text, &incident->stack, TEXT_LABEL);
}

void text_incidents(const struct text *text)
{
	const struct facts *facts = text->facts;
	size_t first = facts->incident_count > TEXT_ROWS_MAX ? facts->incident_count - TEXT_ROWS_MAX : 0;
	if (!facts->incident_count)
		return;
	text_section(text, "FAILED REQUESTS (%zu)", facts->incident_count);
	if (first)
		fprintf(text->out, "the last %d; --json has all\n", TEXT_ROWS_MAX);
	for (size_t i = first; i < facts->incident_count; i++)
		one(text, &facts->incidents[i]);
}
