/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer over rules of `cuflight watch`. Any text is refused with a sentence and a place in it,
 * or read; what was read can be asked for its samples.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/cmd/live/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void take(void *state, const struct rule_sample *sample)
{
	const struct rule *rule = state;
	char text[64];

	rule_value_text(rule, sample->value, sample->share, text, sizeof text);
	if (!memchr(text, 0, sizeof text) || !memchr(sample->series, 0, sizeof sample->series))
		abort();
	rule_holds(rule, sample->value, sample->share);
}

/* A process with one of everything that has labels. */
static struct watch *a_watch(void)
{
	static struct watch_process process;
	static struct watch_process *processes[] = { &process };
	static struct watch watch = { .finder = { .root = "." }, .processes = processes,
				      .count = 1 };
	static struct pass pass;
	static char path[] = "./a.cuf";

	if (process.path)
		return &watch;
	process.path = path;
	strcpy(process.name, "a server");
	process.pass = &pass;
	process.levels.device_count = pass.device_count = pass.resource_count = 1;
	process.levels.devices[0].total_bytes = pass.devices[0].total_bytes = 1u << 30;
	return &watch;
}

static void check_actions(const struct rule *rule)
{
	if (!rule->action_count || rule->action_count > RULE_ACTIONS)
		abort();
	for (size_t i = 0; i < rule->action_count; i++) {
		const struct rule_action *action = &rule->actions[i];
		size_t args = 0;

		if (action->kind == ACTION_EXEC || action->kind == ACTION_WEBHOOK)
			while (action->args[args])
				args += strlen(action->args[args]) < RULE_TEXT;
		if (action->kind == ACTION_SIGNAL ? !action->signal : action->args && !args)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct rule rule;
	struct rule_error error = { 0, "" };
	char *text = malloc(bytes + 1);

	if (!text)
		abort();
	memcpy(text, data, bytes);
	text[bytes] = 0;
	if (rule_parse(&rule, text, &error)) {
		check_actions(&rule);
		rule_read(&rule, a_watch(), take, &rule);
	} else if (!*error.text || error.at > strlen(rule.text)) {
		abort();
	}
	free(text);
	return 0;
}
