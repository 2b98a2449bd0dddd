/* SPDX-License-Identifier: Apache-2.0 */
/* What is built in, and the search for the rule of a call site. */
#include "analysis/gate/suppress.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"
#include "analysis/gate/suppress_rules.h"

/* What is allocated once and kept on purpose. A leak in the same functions is still reported. */
static const char built_in_rules[] =
	"#cuflight reason=\"the driver keeps what it sets up once\"\n"
	"once:libcuda.so\n"
	"#cuflight reason=\"the driver keeps what it sets up once\"\n"
	"once:libnvidia-\n"
	"#cuflight reason=\"the CUDA runtime registers kernels once\"\n"
	"once:^__cudaRegister\n"
	"#cuflight reason=\"communicators live as long as the process\"\n"
	"once:^ncclCommInit\n"
	"#cuflight reason=\"communicators live as long as the process\"\n"
	"once:libnccl.so\n"
	"#cuflight reason=\"workspaces of cuBLAS live as long as their handle\"\n"
	"once:^cublasCreate\n"
	"#cuflight reason=\"workspaces of cuBLAS live as long as their handle\"\n"
	"once:^cublasLtCreate\n"
	"#cuflight reason=\"PyTorch keeps a workspace of cuBLAS for each stream\"\n"
	"once:getCurrentCUDABlasHandle\n"
	"#cuflight reason=\"PyTorch keeps a workspace of cuBLAS for each stream\"\n"
	"once:getCUDABlasLtWorkspace\n"
	"#cuflight reason=\"handles of cuDNN live as long as their thread\"\n"
	"once:^cudnnCreate\n"
	"#cuflight reason=\"Python keeps imported modules\"\n"
	"once:^_find_and_load\n"
	"#cuflight reason=\"Python keeps imported modules\"\n"
	"once:^PyImport_Import\n"
	"#cuflight reason=\"Perl keeps what it requires\"\n"
	"once:^Perl_pp_require\n"
	"#cuflight reason=\"Node.js keeps its built-in modules\"\n"
	"once:node::builtins::BuiltinLoader\n"
	"#cuflight reason=\"the loader keeps loaded libraries\"\n"
	"once:^_dl_open\n";

struct suppressions *suppressions_new(const char *today, bool built_in)
{
	struct suppressions *suppressions = xalloc_zeroed(1, sizeof *suppressions);
	char error[200];

	suppressions->arena = arena_new();
	suppressions->today = arena_text(suppressions->arena, today, strlen(today));
	if (built_in && suppressions_parse(suppressions, built_in_rules, sizeof built_in_rules - 1,
					   "", error, sizeof error))
		abort(); /* a rule of this file cannot be read */
	return suppressions;
}

void suppressions_free(struct suppressions *suppressions)
{
	if (!suppressions)
		return;
	free(suppressions->rules);
	arena_free(suppressions->arena);
	free(suppressions);
}

size_t suppressions_count(const struct suppressions *suppressions)
{
	return suppressions->count;
}

const struct suppress_rule *suppressions_rule(const struct suppressions *suppressions, size_t i)
{
	return &suppressions->rules[i];
}

/* ---- matching ---- */

static const char *find_part(const char *text, const char *part, size_t length)
{
	return memmem(text, strlen(text), part, length);
}

/* As LeakSanitizer does it: parts between asterisks are found one after the other, each at its
 * first place. So "b$" does not match "bb", there as here. */
bool suppress_matches(const char *pattern, const char *text)
{
	bool anchored = *pattern == '^', any = false;

	if (!text || !*text)
		return false;
	pattern += anchored;
	while (*pattern) {
		size_t length = strcspn(pattern, "*$");
		const char *found;

		if (*pattern == '*') {
			pattern++;
			anchored = false;
			any = true;
			continue;
		}
		if (*pattern == '$')
			return !*text || any;
		found = *text ? find_part(text, pattern, length) : NULL;
		if (!found || (anchored && found != text))
			return false;
		text = found + length;
		pattern += length;
		anchored = any = false;
	}
	return true;
}

static bool matches_frame(const char *pattern, const struct gate_frame *frame)
{
	return suppress_matches(pattern, frame->function) ||
	       suppress_matches(pattern, frame->file) || suppress_matches(pattern, frame->module);
}

static bool matches_site(const char *pattern, const struct gate_site *site)
{
	struct gate_frame own = { site->function, site->module, site->file, site->line };

	for (size_t i = 0; i < site->frame_count; i++)
		if (matches_frame(pattern, &site->frames[i]))
			return true;
	return matches_frame(pattern, &own);
}

static bool applies(const struct suppress_kind *kind, const struct gate_measure *measure,
		    const struct gate_site *site)
{
	size_t number = (size_t)(measure - gate_measures);

	return kind->measures >> number & 1 && kind->groups >> site->group & 1;
}

const char *suppressions_match(void *context, const struct gate_measure *measure,
			       const struct gate_site *site)
{
	struct suppressions *suppressions = context;

	suppressions->asked = true;
	for (size_t i = 0; i < suppressions->count; i++) {
		struct suppress_rule *rule = &suppressions->rules[i];
		if (rule->expired || !applies(suppress_kind_find(rule->kind), measure, site) ||
		    !matches_site(rule->pattern, site))
			continue;
		rule->sites++;
		return rule->text;
	}
	return NULL;
}

/* ---- what people should know of their rules ---- */

size_t suppressions_print_stale(const struct suppressions *suppressions, const char *prefix,
				FILE *out)
{
	size_t printed = 0;

	for (size_t i = 0; i < suppressions->count; i++) {
		const struct suppress_rule *rule = &suppressions->rules[i];
		bool unused = suppressions->asked && !rule->sites;
		if (!*rule->origin || !(rule->expired || unused))
			continue;
		if (rule->expired)
			fprintf(out, "%s%s: rule '%s' has expired on %s; it suppresses nothing\n",
				prefix, rule->origin, rule->text, rule->until);
		else
			fprintf(out, "%s%s: rule '%s' matched nothing\n", prefix, rule->origin,
				rule->text);
		printed++;
	}
	return printed;
}
