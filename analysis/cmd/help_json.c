/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of commands, options and causes as JSON. */
#include <json-c/json.h>
#include <string.h>
#include "analysis/cmd/help.h"
#include "analysis/explain/cause_guide.h"
#include "analysis/gate/measures.h"
#include "analysis/view/commands/baseline_file.h"
#include "analysis/view/commands/diff_view.h"
#include "analysis/view/commands/gate_view.h"
#include "analysis/view/commands/phases_view.h"
#include "analysis/view/commands/runs.h"
#include "analysis/view/commands/what_if_view.h"
#include "analysis/view/html/html_page.h"
#include "analysis/view/json/shapes.h"
#include "analysis/view/live/frame.h"
#include "analysis/view/live/metrics.h"
#include "analysis/view/tables/database.h"
#include "analysis/view/tables/tables.h"

/* A text that may be absent: NULL and "" become null. */
static void add_help_text(struct json_object *object, const char *key, const char *text)
{
	struct json_object *value = NULL;

	if (text && *text)
		value = json_object_new_string(text);
	json_object_object_add(object, key, value);
}

/* The words of a choice or a switch as an array; null for other options. */
static struct json_object *choices_to_json(const struct opt *opt)
{
	const char *words = opt->value;
	struct json_object *list;

	if (opt->type == OPT_SWITCH)
		words = "0|1";
	else if (opt->type != OPT_CHOICE)
		return NULL;
	list = json_object_new_array();
	for (; *words; words += strcspn(words, "|"), words += *words == '|')
		json_object_array_add(list,
				      json_object_new_string_len(words, (int)strcspn(words, "|")));
	return list;
}

/* spelled is what people type, "-o, --output=FILE"; the other keys are its parts. */
static struct json_object *option_to_json(const struct opts_row *row)
{
	struct json_object *object = json_object_new_object();
	const char letter[2] = { row->opt.letter, 0 };
	char fallback[64], spelled[160];

	opts_default(&row->opt, fallback, sizeof fallback);
	opts_spell(row, spelled, sizeof spelled);
	add_help_text(object, "name", row->name);
	add_help_text(object, "letter", letter);
	add_help_text(object, "spelled", spelled + strspn(spelled, " "));
	add_help_text(object, "value", row->opt.value);
	if (row->opt.type == OPT_CHOICE)
		add_help_text(object, "value", NULL); /* its words are the choices */
	json_object_object_add(object, "choices", choices_to_json(&row->opt));
	json_object_object_add(object, "value_optional",
			       json_object_new_boolean(row->opt.type == OPT_SWITCH));
	add_help_text(object, "default", fallback);
	add_help_text(object, "help", row->opt.help);
	add_help_text(object, "group", row->group->title);
	return object;
}

/* The examples are one text, "COMMAND\tWHAT FOR\n" each. */
static struct json_object *examples_to_json(const char *examples)
{
	struct json_object *list = json_object_new_array();

	while (*examples) {
		size_t command = strcspn(examples, "\t");
		const char *what = examples + command + 1;
		size_t what_bytes = strcspn(what, "\n");
		struct json_object *example = json_object_new_object();
		json_object_object_add(example, "command",
				       json_object_new_string_len(examples, (int)command));
		json_object_object_add(example, "what",
				       json_object_new_string_len(what, (int)what_bytes));
		json_object_array_add(list, example);
		examples = what + what_bytes + 1;
	}
	return list;
}

/* The options include the groups that the command shares with others, as in --help. */
static struct json_object *command_to_json(const struct cmd *cmd)
{
	struct json_object *object = json_object_new_object(), *list = json_object_new_array();
	struct opts opts;

	opts_init(&opts, cmd->groups);
	for (size_t i = 0; i < opts.count; i++)
		json_object_array_add(list, option_to_json(&opts.rows[i]));
	add_help_text(object, "name", cmd->name);
	add_help_text(object, "summary", cmd->summary);
	add_help_text(object, "usage", cmd->usage);
	add_help_text(object, "manual", cmd->manual);
	add_help_text(object, "about", cmd->about);
	json_object_object_add(object, "examples", examples_to_json(cmd->examples));
	json_object_object_add(object, "options", list);
	return object;
}

/* framework is null for advice to any program. */
static struct json_object *advice_to_json(const char *id)
{
	struct json_object *list = json_object_new_array();
	struct help_advice advice;

	for (size_t i = 0; help_cause_advice(id, i, &advice); i++) {
		struct json_object *object = json_object_new_object();
		add_help_text(object, "framework", advice.framework);
		add_help_text(object, "words", advice.words);
		json_object_array_add(list, object);
	}
	return list;
}

/* recognise and example are missing for a cause without a guide. */
static struct json_object *cause_to_json(const struct cause_rule *rule)
{
	struct json_object *object = json_object_new_object();
	const struct cause_guide *guide = cause_guide_find(rule->name_id);

	add_help_text(object, "name_id", rule->name_id);
	add_help_text(object, "id", rule->id);
	add_help_text(object, "name", rule->name);
	add_help_text(object, "about", help_cause_about(rule->id));
	if (guide) {
		add_help_text(object, "recognise", guide->recognise);
		add_help_text(object, "example", guide->example);
	}
	json_object_object_add(object, "advice", advice_to_json(rule->id));
	return object;
}

/* What limits can be set on. percent 0: not judged by a baseline unless a limit names it. */
static struct json_object *measures_to_json(void)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < MEASURE_MAX; i++) {
		const struct gate_measure *measure = &gate_measures[i];
		struct json_object *object = json_object_new_object();
		add_help_text(object, "name", measure->name);
		add_help_text(object, "unit", measure->unit == GATE_BYTES ? "bytes" : "count");
		add_help_text(object, "about", measure->about);
		json_object_object_add(object, "percent", json_object_new_double(measure->percent));
		json_object_object_add(object, "floor_bytes",
				       json_object_new_uint64(measure->floor_bytes));
		json_object_array_add(list, object);
	}
	return list;
}

static struct json_object *table_to_json(const struct table *table)
{
	struct json_object *object = json_object_new_object(), *columns = json_object_new_array();

	for (size_t i = 0; i < table->column_count; i++) {
		struct json_object *column = json_object_new_object();
		add_help_text(column, "name", table->columns[i].key);
		add_help_text(column, "type", column_type_names[column_type(&table->columns[i])]);
		add_help_text(column, "help", table->columns[i].meaning);
		json_object_array_add(columns, column);
	}
	add_help_text(object, "name", table->name);
	add_help_text(object, "help", table->help);
	json_object_object_add(object, "columns", columns);
	return object;
}

/* What `cuflight export` writes as tables, and the views of its database. */
static void add_tables(struct json_object *top)
{
	struct json_object *tables = json_object_new_array(), *views = json_object_new_array();

	for (size_t i = 0; table_all[i]; i++)
		json_object_array_add(tables, table_to_json(table_all[i]));
	for (size_t i = 0; database_views[i].sql; i++) {
		struct json_object *view = json_object_new_object();

		add_help_text(view, "name", database_views[i].name);
		add_help_text(view, "help", database_views[i].help);
		if (database_views[i].name)
			json_object_array_add(views, view);
		else
			json_object_put(view);
	}
	json_object_object_add(top, "tables", tables);
	json_object_object_add(top, "views", views);
}

/* "process,gpu", and the words of those labels that have some. */
static void add_labels(struct json_object *to, const struct exposed *metric)
{
	struct json_object *words = json_object_new_object();
	const char *at = metric->labels;
	struct metric_label label;
	char names[256], name[64];
	size_t used = 0;

	while (metric_label_next(&at, &label)) {
		used += (size_t)snprintf(names + used, sizeof names - used, "%s%.*s",
					 used ? "," : "", (int)label.bytes, label.name);
		snprintf(name, sizeof name, "%.*s", (int)label.bytes, label.name);
		if (label.word_bytes)
			json_object_object_add(words, name,
					       json_object_new_string_len(label.words,
							       (int)label.word_bytes));
	}
	add_help_text(to, "labels", names);
	json_object_object_add(to, "words", words);
}

/* What `cuflight serve` exposes. */
static struct json_object *metrics_to_json(void)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; metric_table[i]; i++) {
		const struct exposed *metric = metric_table[i];
		struct json_object *object = json_object_new_object();
		add_help_text(object, "name", metric->name);
		add_help_text(object, "type", metric->type == METRIC_COUNTER ? "counter" : "gauge");
		add_labels(object, metric);
		add_help_text(object, "help", metric->help);
		add_help_text(object, "source", metric->source);
		json_object_array_add(list, object);
	}
	return list;
}

/* The published schemas, by the name of their document. */
static struct json_object *schemas_to_json(void)
{
	static const struct shape *const documents[] = {
		&report_shape, &phases_shape, &what_if_document, &check_shape, &diff_shape,
		&live_shape, &baseline_shape, &runs_shape, &page_shape,
	};
	struct json_object *schemas = json_object_new_object();

	for (size_t i = 0; i < sizeof documents / sizeof *documents; i++)
		json_object_object_add(schemas, documents[i]->name, schema_json(documents[i]));
	return schemas;
}

/* Schema cuflight.help/1. The man pages and README.md are made from this document. */
void help_json(FILE *out, const struct cmd *const *commands)
{
	struct json_object *top = json_object_new_object();
	struct json_object *list = json_object_new_array(), *causes = json_object_new_array();
	struct json_object *confidence = json_object_new_array();

	for (; *commands; commands++)
		json_object_array_add(list, command_to_json(*commands));
	for (size_t i = 0; help_cause_at(i); i++)
		json_object_array_add(causes, cause_to_json(help_cause_at(i)));
	for (size_t i = 0; help_confidence[i]; i++)
		json_object_array_add(confidence, json_object_new_string(help_confidence[i]));
	add_help_text(top, "schema", "cuflight.help/1");
	add_help_text(top, "version", CUFLIGHT_VERSION);
	json_object_object_add(top, "commands", list);
	json_object_object_add(top, "causes", causes);
	json_object_object_add(top, "confidence", confidence);
	json_object_object_add(top, "measures", measures_to_json());
	add_tables(top);
	json_object_object_add(top, "metrics", metrics_to_json());
	json_object_object_add(top, "schemas", schemas_to_json());
	fprintf(out, "%s\n",
		json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY |
						    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(top);
}
