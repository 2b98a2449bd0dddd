/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule has its own memory, since it points into itself. */
#include "analysis/cmd/live/rules_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/say.h"

enum { RULES_MAX = 256 };

/* where: "" or "FILE:3: " */
static int add_rule(struct rules *rules, const char *text, const char *where)
{
	struct rule *rule = xalloc_zeroed(1, sizeof *rule);
	struct rule_error error;

	if (rules->count == RULES_MAX) {
		say_error("%smore than %d rules", where, RULES_MAX);
	} else if (rule_parse(rule, text, &error)) {
		xalloc_grow(&rules->rules, rules->count, &rules->room, sizeof *rules->rules);
		rules->rules[rules->count++] = rule;
		return 0;
	} else {
		say_error("%scannot read the rule at column %zu, '%.60s': %s; for example: "
			  RULE_EXAMPLE, where, error.at + 1, rule->text + error.at, error.text);
	}
	free(rule);
	return -1;
}

static int read_lines(struct rules *rules, FILE *file, const char *path)
{
	char line[RULE_TEXT + 1], where[128];

	for (unsigned number = 1; fgets(line, sizeof line, file); number++) {
		const char *begin = line + strspn(line, " \t");

		snprintf(where, sizeof where, "%.100s:%u: ", path, number);
		if (!strchr(line, '\n') && !feof(file)) {
			say_error("%slonger than %d bytes, or no text", where, RULE_TEXT);
			return -1;
		}
		line[strcspn(line, "\n")] = 0;
		if (*begin && *begin != '#' && add_rule(rules, begin, where))
			return -1;
	}
	if (!ferror(file))
		return 0;
	say_error("cannot read '%s': %s", path, strerror(errno));
	return -1;
}

static int read_file(struct rules *rules, const char *path)
{
	FILE *file = fopen(path, "re");
	int status;

	if (!file) {
		say_error("cannot read '%s': %s", path, strerror(errno));
		return -1;
	}
	status = read_lines(rules, file, path);
	fclose(file);
	return status;
}

int rules_of_options(struct rules *rules, const struct opts *opts)
{
	const char *path = opts_text(opts, "rules");
	const char *const *texts;
	size_t count;

	*rules = (struct rules){ 0 };
	texts = opts_list(opts, "rule", &count);
	for (size_t i = 0; i < count; i++)
		if (add_rule(rules, texts[i], ""))
			return -1;
	if (path && read_file(rules, path))
		return -1;
	if (rules->count)
		return 0;
	say_error("name a rule, for example: --rule '" RULE_EXAMPLE "'");
	return -1;
}

void rules_fini(struct rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		free(rules->rules[i]);
	free(rules->rules);
}
