/* SPDX-License-Identifier: Apache-2.0 */
/* A row for each phase, a column for each group of memory that any phase needed. */
#include "analysis/view/commands/phases_view.h"

#include <stdlib.h>
#include "analysis/base/clean.h"
#include "analysis/base/units.h"
#include "analysis/view/json/json_parts.h"

enum { NAME_BYTES = 128, SHOWN_SITES = 3, SITE_COLUMNS = 72 };

/* ---- text ---- */

static bool has_group(const struct phase_uses *uses, int group)
{
	for (size_t i = 0; i < uses->count; i++) {
		const struct phase_amount *amount = &uses->items[i].amounts[group];
		if (amount->basis != BASIS_NONE && (amount->need_bytes || amount->stay_bytes))
			return true;
	}
	return false;
}

static struct unit_text need_text(const struct phase_amount *amount)
{
	if (amount->basis == BASIS_ESTIMATED)
		return units_bytes_rough(amount->need_bytes);
	return units_bytes(amount->need_bytes);
}

static struct unit_text stay_text(const struct phase_amount *amount)
{
	struct unit_text text = { "?" };

	if (amount->basis != BASIS_NONE)
		text = units_bytes_signed((double)amount->stay_bytes);
	return text;
}

static void print_sites(FILE *out, const struct phases_view *view, const struct phase_use *use)
{
	char line[1024], clean[1024];
	size_t shown = 0;

	for (size_t i = 0; i < use->site_count; i++) {
		const struct phase_site *site = &use->sites[i];
		bool first = !i || site->group != site[-1].group || site->at_end != site[-1].at_end;
		if (first)
			shown = 0;
		if (shown++ >= SHOWN_SITES)
			continue;
		place_line(view->places, &site->stack, SITE_COLUMNS, line, sizeof line);
		clean_terminal(clean, sizeof clean, line, false);
		fprintf(out, "    %-9s %-7s %10s  %s\n", gate_group_names[site->group],
			site->at_end ? "stays" : "peak",
			units_bytes((uint64_t)site->bytes).s, clean);
	}
}

static void print_heading(FILE *out, const bool shown[GROUP_MAX])
{
	for (int group = 0; group < GROUP_MAX; group++)
		if (shown[group])
			fprintf(out, "%12s%13s", gate_group_names[group], "stays");
	fputs("  phase\n", out);
}

void phases_text(FILE *out, const struct phases_view *view)
{
	const struct phase_uses *uses = view->uses;
	bool shown[GROUP_MAX];
	char name[NAME_BYTES];

	if (!uses->count) {
		fputs("no phases or requests are marked in this recording; those that are inferred "
		      "are in\ncuflight report --full\n", out);
		return;
	}
	for (int group = 0; group < GROUP_MAX; group++)
		shown[group] = has_group(uses, group);
	print_heading(out, shown);
	for (size_t i = 0; i < uses->count; i++) {
		const struct phase_use *use = &uses->items[i];
		clean_terminal(name, sizeof name, use->name, false);
		for (int group = 0; group < GROUP_MAX; group++)
			if (shown[group])
				fprintf(out, "%12s%13s", need_text(&use->amounts[group]).s,
					stay_text(&use->amounts[group]).s);
		fprintf(out, "  %*s%s\n", (int)(2 * (use->depth % 20)), "", name);
		print_sites(out, view, use);
	}
}

/* ---- JSON ---- */

static struct json_object *site_json(const struct phases_view *view, const struct phase_site *site)
{
	struct json_object *object = json_object_new_object();
	struct place place;

	place_of(view->places, &site->stack, &place);
	json_add_text(object, "kind", gate_group_names[site->group]);
	json_add_text(object, "moment", site->at_end ? "end" : "peak");
	json_add(object, "bytes", json_object_new_int64(site->bytes));
	json_add(object, "count", json_object_new_int64(site->blocks));
	json_add_text(object, "function", place.function);
	json_add_word(object, "file", place.file);
	json_add_positive(object, "line", place.line);
	json_add_word(object, "callers", place.callers);
	json_add(object, "stack", json_stack(view->frames, &site->stack));
	return object;
}

static struct json_object *amounts_json(const struct phase_use *use)
{
	struct json_object *memory = json_object_new_object();

	for (int group = 0; group < GROUP_MAX; group++) {
		const struct phase_amount *amount = &use->amounts[group];
		struct json_object *object = json_object_new_object();
		json_add_number(object, "need_bytes", amount->need_bytes);
		json_add(object, "stay_bytes",
			 amount->basis == BASIS_NONE ? NULL
						     : json_object_new_int64(amount->stay_bytes));
		json_add_basis(object, amount->basis);
		json_add_word(object, "why", amount->why);
		json_add(memory, gate_group_names[group], object);
	}
	return memory;
}

static struct json_object *use_json(const struct phases_view *view, const struct phase_use *use)
{
	struct json_object *object = json_object_new_object();
	struct json_object *sites = json_object_new_array();

	json_add_text(object, "name", use->name);
	json_add_text(object, "sort", use->is_request ? "request" : "phase");
	json_add_positive(object, "id", use->id);
	json_add_positive(object, "pid", use->pid);
	json_add_number(object, "depth", use->depth);
	json_add_number(object, "begin_ns", use->begin_ns);
	json_add_number(object, "end_ns", use->end_ns);
	json_add(object, "memory", amounts_json(use));
	for (size_t i = 0; i < use->site_count; i++)
		json_object_array_add(sites, site_json(view, &use->sites[i]));
	json_add(object, "sites", sites);
	return object;
}

void phases_json(FILE *out, const struct phases_view *view)
{
	struct json_stream stream;

	json_stream_begin(&stream, out, UINT64_MAX);
	json_stream_object(&stream, NULL);
	json_stream_value(&stream, "schema", json_text("cuflight.phases/1"));
	json_stream_value(&stream, "recording", json_text(view->path));
	json_stream_array(&stream, "phases");
	for (size_t i = 0; i < view->uses->count; i++)
		json_stream_value(&stream, NULL, use_json(view, &view->uses->items[i]));
	json_stream_close(&stream);
	json_stream_close(&stream);
	json_stream_end(&stream);
}
