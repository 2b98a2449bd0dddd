/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of rules as text, what is built in, and the search for the rule of a call site. */
#include "analysis/gate/suppress.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "analysis/base/paths.h"
#include "analysis/base/regular_file.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"

/* Bit n of measures: enum gate_measure_id n. Bit n of groups: enum gate_group n. */
struct suppress_kind {
	const char *name;
	uint32_t measures, groups;
	const char *about; /* one phrase: what it suppresses */
};
extern const struct suppress_kind suppress_kinds[]; /* ends with a NULL name */

const struct suppress_kind *suppress_kind_find(const char *name); /* NULL: there is none */

struct suppressions {
	struct arena *arena;
	const char *today;
	struct suppress_rule *rules;
	size_t count, room;
	bool asked; /* for the rule of any call site */
};

/* The kinds of rules. A new one is a row here. */
#define GROUP(group) (1u << GROUP_##group)
#define ALL_GROUPS ((1u << GROUP_MAX) - 1)
#define MEASURES(first, last) (((2u << MEASURE_##last) - 1) & ~((1u << MEASURE_##first) - 1))
#define ENDS MEASURES(DEVICE_END, PYTHON_END)
#define LEAKS MEASURES(DEVICE_LEAK, REQUEST_GROWTH)
#define ALL_MEASURES ((1u << MEASURE_MAX) - 1)
#define INCIDENTS MEASURES(INCIDENTS_FATAL, INCIDENTS_RECOVERED)

/* A rule applies where both its measures and its groups do. Groups are those of the call site. */
const struct suppress_kind suppress_kinds[] = {
	{ "leak", LEAKS | ENDS, ALL_GROUPS,
	  "what remains: at the end, or from request to request" },
	{ "once", ENDS, ALL_GROUPS, "what remains at the end, but no proven leak" },
	{ "growth", LEAKS, ALL_GROUPS, "proven leaks and growth per request" },
	{ "incident", INCIDENTS, ~0u, "requests that failed at this place" },
	{ "device", ALL_MEASURES, GROUP(DEVICE) | GROUP(FRAMEWORK), "GPU memory, also its peak" },
	{ "framework", ALL_MEASURES, GROUP(FRAMEWORK), "blocks of a framework, also their peak" },
	{ "pinned", ALL_MEASURES, GROUP(PINNED), "page-locked memory, also its peak" },
	{ "managed", ALL_MEASURES, GROUP(MANAGED), "managed memory, also its peak" },
	{ "host", ALL_MEASURES, GROUP(HOST) | GROUP(PYTHON), "host memory, also its peak" },
	{ "python", ALL_MEASURES, GROUP(PYTHON), "host memory of Python code, also its peak" },
	{ NULL, 0, 0, NULL },
};

const struct suppress_kind *suppress_kind_find(const char *name)
{
	for (const struct suppress_kind *kind = suppress_kinds; kind->name; kind++)
		if (!strcmp(kind->name, name))
			return kind;
	return NULL;
}

/* ---- files of rules, line by line ---- */

enum { FILE_BYTES_MAX = 16 << 20, SHOWN = 120, DATE_LENGTH = 10 };
#define PRAGMA "#cuflight"

/* One file while it is read. A date and a reason wait for the next rule. */
struct parse {
	struct suppressions *suppressions;
	const char *name;
	unsigned line;
	const char *until, *reason;
	char *error;
	size_t error_bytes;
};

static int bad_line(struct parse *parse, const char *what, const char *text)
{
	snprintf(parse->error, parse->error_bytes, "%s:%u: %s '%.*s'", parse->name, parse->line,
		 what, SHOWN, text);
	return -1;
}

static bool is_date(const char *text, size_t length)
{
	static const char form[] = "0000-00-00";

	if (length != DATE_LENGTH)
		return false;
	for (size_t i = 0; i < length; i++)
		if (form[i] == '-' ? text[i] != '-' : !isdigit((unsigned char)text[i]))
			return false;
	return atoi(text + 5) >= 1 && atoi(text + 5) <= 12 && atoi(text + 8) >= 1 &&
	       atoi(text + 8) <= 31;
}

/* "kind:pattern"; the pattern is everything after the colon, as LeakSanitizer takes it. */
static int add_rule(struct parse *parse, const char *text)
{
	struct suppressions *list = parse->suppressions;
	size_t length = strcspn(text, ":");
	struct suppress_rule rule = { .reason = parse->reason, .until = parse->until };

	if (!text[length])
		return bad_line(parse, "expected KIND:PATTERN, not", text);
	rule.kind = arena_text(list->arena, text, length);
	rule.text = text;
	rule.pattern = text + length + 1;
	if (!suppress_kind_find(rule.kind))
		return bad_line(parse, "unknown kind of rule (expected leak, once, growth, "
				       "incident, device, framework, pinned, managed, host or "
				       "python):",
				rule.kind);
	if (!*rule.pattern)
		return bad_line(parse, "the rule has no pattern:", text);
	rule.origin = "";
	if (*parse->name)
		rule.origin = arena_format(list->arena, "%s:%u", parse->name, parse->line);
	rule.expired = *rule.until && strcmp(list->today, rule.until) > 0;
	xalloc_grow(&list->rules, list->count, &list->room, sizeof rule);
	list->rules[list->count++] = rule;
	parse->until = parse->reason = "";
	return 0;
}

/* key=value or key="value with blanks" at text; *after: what follows it. */
static int take_setting(struct parse *parse, const char *text, const char **after)
{
	size_t key = strcspn(text, "="), length;
	const char *value = text + key + 1;
	const char *end = value + strcspn(value, " \t");
	struct arena *arena = parse->suppressions->arena;

	if (*value == '"') {
		end = strchr(++value, '"');
		if (!end)
			return bad_line(parse, "a quotation mark is missing after", text);
	}
	length = (size_t)(end - value);
	*after = *end == '"' ? end + 1 : end;
	if (key == strlen("reason") && !strncmp(text, "reason", key)) {
		parse->reason = arena_text(arena, value, length);
	} else if (key == strlen("until") && !strncmp(text, "until", key)) {
		if (!is_date(value, length))
			return bad_line(parse, "expected until=YYYY-MM-DD, not", text);
		parse->until = arena_text(arena, value, length);
	} else {
		return bad_line(parse, "expected until=DATE, reason=\"TEXT\" or KIND:PATTERN, not",
				text);
	}
	return 0;
}

/* What follows "#cuflight": settings, then perhaps a rule. */
static int take_pragma(struct parse *parse, const char *text)
{
	for (;;) {
		text += strspn(text, " \t");
		if (!*text)
			return 0;
		if (text[strcspn(text, "=:")] != '=')
			return add_rule(parse, text);
		if (take_setting(parse, text, &text))
			return -1;
	}
}

static bool is_pragma(const char *line)
{
	size_t length = strlen(PRAGMA);

	return !strncmp(line, PRAGMA, length) && strchr(": \t", line[length]);
}

/* Blanks at both ends were removed. "#cuflight:" may have a colon. */
static int take_line(struct parse *parse, const char *line)
{
	if (is_pragma(line)) {
		line += strlen(PRAGMA);
		return take_pragma(parse, line + (*line == ':'));
	}
	if (!*line || *line == '#')
		return 0;
	return add_rule(parse, line);
}

/* Trailing blanks are removed. A NUL ends the line early. */
static const char *line_text(struct arena *arena, const char *at, size_t length)
{
	while (length && strchr(" \t\r", at[length - 1]) && at[length - 1])
		length--;
	while (length && (*at == ' ' || *at == '\t')) {
		at++;
		length--;
	}
	return arena_text(arena, at, length);
}

int suppressions_parse(struct suppressions *suppressions, const char *text, size_t bytes,
		       const char *name, char *error, size_t error_bytes)
{
	struct parse parse = { .suppressions = suppressions, .until = "", .reason = "",
			       .error = error, .error_bytes = error_bytes };
	const char *end = text + bytes;
	size_t before = suppressions->count;

	parse.name = arena_text(suppressions->arena, name, strlen(name));
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((stop ? stop : end) - text);

		parse.line++;
		if (take_line(&parse, line_text(suppressions->arena, text, length))) {
			suppressions->count = before;
			return -1;
		}
		text += length + 1;
	}
	return 0;
}

/* The whole file on the heap; NULL with errno set. */
static char *read_file(int fd, size_t *bytes)
{
	char *text = xalloc_bytes(FILE_BYTES_MAX);
	ssize_t got = 0;

	*bytes = 0;
	do {
		*bytes += (size_t)got;
		got = read(fd, text + *bytes, FILE_BYTES_MAX - *bytes);
	} while (got > 0);
	if (!got && *bytes < FILE_BYTES_MAX)
		return text;
	errno = got ? errno : EFBIG;
	free(text);
	return NULL;
}

int suppressions_read(struct suppressions *suppressions, const char *path, char *error,
		      size_t error_bytes)
{
	const char *why;
	int fd = regular_file_open(path, 0, &why), status;
	size_t bytes;
	char *text;

	if (fd < 0) {
		snprintf(error, error_bytes, "cannot open '%s': %s", path, why);
		return -1;
	}
	text = read_file(fd, &bytes);
	close(fd);
	if (!text) {
		snprintf(error, error_bytes, "cannot read '%s': %s", path, strerror(errno));
		return -1;
	}
	status = suppressions_parse(suppressions, text, bytes, path, error, error_bytes);
	free(text);
	return status;
}

/* Rules for what a gate found, ready to be kept in a file. */
enum { PATTERN_MAX = 400 };

/* What would end a line or mean something else becomes an asterisk. */
static void copy_pattern(char *out, size_t bytes, const char *name, size_t length)
{
	size_t used = 0;

	for (size_t i = 0; i < length && used + 1 < bytes; i++) {
		bool plain = (unsigned char)name[i] >= ' ' && name[i] != '$' && name[i] != 0x7f;
		out[used++] = '*';
		if (plain)
			out[used - 1] = name[i];
	}
	out[used] = 0;
}

/* The function and its callers would be safer, but a rule of LeakSanitizer has one pattern. The
 * arguments of a C++ function are left out: tools print them differently. */
static bool print_pattern(const struct gate_site *site, FILE *out)
{
	const char *name = site->function;
	size_t length = name ? strcspn(name, "(") : 0;
	char pattern[PATTERN_MAX];

	if (name && length && *name != '*') {
		copy_pattern(pattern, sizeof pattern, name, length);
		fprintf(out, "^%s%s\n", pattern, name[length] ? "(" : "$");
		return true;
	}
	name = path_base_name(site->module ? site->module : "");
	if (!*name)
		return false;
	copy_pattern(pattern, sizeof pattern, name, strlen(name));
	fprintf(out, "%s\n", pattern);
	return true;
}

static bool has_pattern(const struct gate_site *site)
{
	return (site->function && *site->function) || (site->module && *site->module);
}

/* leak: where LeakSanitizer and heaptrack see the same bytes; else the group, in a comment. */
static void print_rule(const struct gate_finding *finding, const struct gate_site *site, FILE *out)
{
	const struct gate_measure *measure = finding->limit.measure;
	bool leak = suppress_kind_find("leak")->measures >> (measure - gate_measures) & 1;

	fprintf(out, "# %s: %s in %s blocks\n", measure->name, units_bytes(site->bytes_now).s,
		units_count(site->count_now).s);
	if (measure->group == GROUP_MAX)
		fputs("#cuflight incident:", out);
	else if (leak && (site->group == GROUP_HOST || site->group == GROUP_PYTHON))
		fputs("leak:", out);
	else if (leak)
		fputs("#cuflight leak:", out);
	else
		fprintf(out, "#cuflight %s:", gate_group_names[site->group]);
	print_pattern(site, out);
}

size_t suppressions_generate(const struct gate_result *result, FILE *out)
{
	size_t printed = 0;

	for (size_t i = 0; i < result->finding_count; i++) {
		const struct gate_finding *finding = &result->findings[i];
		if (finding->status != GATE_EXCEEDED)
			continue;
		for (size_t k = 0; k < finding->site_count; k++) {
			if (finding->sites[k].rule || !has_pattern(&finding->sites[k]))
				continue;
			print_rule(finding, &finding->sites[k], out);
			printed++;
		}
	}
	return printed;
}

/* ---- what is built in, and the search ---- */

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
