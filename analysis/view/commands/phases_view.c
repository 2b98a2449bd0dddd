/* SPDX-License-Identifier: Apache-2.0 */
/* A row for each phase, a column for each group of memory that any phase needed. */
#include "analysis/view/commands/phases_view.h"

#include <stdlib.h>
#include "analysis/base/clean.h"
#include "analysis/base/units.h"
#include "analysis/view/json/fields.h"

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

struct named_site { const struct phase_site *site; struct place place; };

static const void *named_site_of(const struct fields *fields, const void *object)
{
	const struct named_site *named = object;

	return named->site;
}

static const void *kept_amount(const struct fields *fields, const void *object)
{
	const struct phase_amount *amount = object;

	return amount->basis == BASIS_NONE ? NULL : amount;
}

static struct json_object *moment(const struct fields *fields, const void *object)
{
	const struct named_site *named = object;

	return json_text(named->site->at_end ? "end" : "peak");
}

static struct json_object *sort(const struct fields *fields, const void *object)
{
	const struct phase_use *use = object;

	return json_text(use->is_request ? "request" : "phase");
}

static size_t write_sites(struct fields *fields, const struct field *field, const void *object)
{
	const struct phases_view *view = fields->document;
	const struct phase_use *use = object;

	for (size_t i = 0; i < use->site_count; i++) {
		struct named_site named = { .site = &use->sites[i] };
		place_of(view->places, &named.site->stack, &named.place);
		fields_row(fields, NULL, field->shape, &named);
	}
	return use->site_count;
}

static size_t write_amounts(struct fields *fields, const struct field *field, const void *object)
{
	const struct phase_use *use = object;

	for (int group = 0; group < GROUP_MAX; group++)
		fields_row(fields, gate_group_names[group], field->shape, &use->amounts[group]);
	return GROUP_MAX;
}

static const struct words group_words = WORDS(NULL, gate_group_names, .is_open = true);

#define OF struct phase_site
static const struct field site_fields[] = {
	{ "kind", .base = named_site_of, NAME(group, group_words) },
	{ "moment", VALUE(TEXT, moment), .meaning = "peak or end" },
	{ "bytes", .base = named_site_of, SIGNED(bytes),
	  .meaning = "allocated and not freed between the begin and the moment" },
	{ "count", .base = named_site_of, SIGNED(blocks) },
#undef OF
#define OF struct named_site
	{ "function", TEXT_HERE(place.function),
	  .meaning = "the innermost one of the program itself" },
	{ "file", WORD_HERE(place.file), .meaning = "without its directory" },
	{ "line", POSITIVE(place.line) },
	{ "callers", WORD_HERE(place.callers) },
#undef OF
#define OF struct phase_site
	{ "stack", .base = named_site_of, STACK(stack) },
};
static const struct shape site_shape = SHAPE("site", site_fields);
#undef OF

#define OF struct phase_amount
static const struct field amount_fields[] = {
	{ "need_bytes", NUMBER(need_bytes), .meaning = "peak over the level at the begin" },
	{ "stay_bytes", .base = kept_amount, FIELD(SIGNED, true, stay_bytes),
	  .meaning = "level at the end over that at the begin" },
	{ "basis", BASIS(basis) },
	{ "why", WORD(why), .meaning = "why it is unknown" },
};
static const struct shape amount_shape = SHAPE("amount", amount_fields);
#undef OF

#define OF struct phase_use
static const struct field use_fields[] = {
	{ "name", TEXT(name) },
	{ "sort", VALUE(TEXT, sort), .meaning = "phase or request" },
	{ "id", POSITIVE(id),
	  .meaning = "that cuflight_phase_start or cuflight_request_begin returned" },
	{ "pid", POSITIVE(pid) },
	{ "depth", COUNT(depth), .meaning = "enclosing phases of its thread" },
	{ "begin_ns", COUNT(begin_ns), .meaning = "since 1970" },
	{ "end_ns", NUMBER(end_ns), .meaning = "null: open" },
	{ "memory", .type = FIELD_MAP, .shape = &amount_shape, .rows = write_amounts,
	  .meaning = "by kind: device, pinned, managed, framework (inside device), host, python "
	  "(part of host)" },
	{ "sites", ROWS(site_shape, write_sites),
	  .meaning = "with --sites: the largest of each kind and moment" },
};
static const struct shape use_shape = SHAPE("phase", use_fields);
#undef OF

static const void *uses(const struct fields *fields, const void *object)
{
	const struct phases_view *view = object;

	return view->uses;
}

#define OF struct phases_view
static const struct field document_fields[] = {
	{ "recording", TEXT(path), .meaning = "as given on the command line" },
#undef OF
#define OF struct phase_uses
	{ "phases", .base = uses, LIST(items, count, use_shape),
	  .meaning = "by process and begin" },
};
const struct shape phases_shape = SHAPE("phases", document_fields, .meaning = "What phases and "
	"requests needed. Written by cuflight phases --json. Keys are only added. Bytes are "
	"integers, unknown is null, never 0.");
#undef OF

void phases_json(FILE *out, const struct phases_view *view)
{
	struct fields fields = { .frames = view->frames, .document = view };

	fields_print(out, &fields, &phases_shape, view);
}
