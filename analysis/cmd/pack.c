/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight pack`: a run, its report and the names of its functions in one file. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cli/unfinished.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/run/open_facts.h"
#include "analysis/cmd/run/recording_append.h"
#include "analysis/explain/facts_build.h"
#include "analysis/recording/pack.h"
#include "analysis/recording/meta.h"
#include "analysis/replay/process_life.h"
#include "analysis/replay/run.h"
#include "analysis/symbols/names_file.h"
#include "analysis/view/json/report_json.h"
#include "analysis/view/text/report_text.h"

/* The copies are explained and packed, so that nothing in the pack is from before the secrets were
 * hidden. */
struct packing {
	const char *source; /* operand */
	char directory[PATH_MAX]; /* of the copies */
	bool copied;              /* the directory was made */
	char name[NAME_MAX];      /* of the pack, in its own report */
	size_t hidden;
	struct symbols *symbols;
	struct facts *facts;
};

/* ---- the copies ---- */

enum { PAGE_BYTES = 4096, OWNER_ONLY = 0600, SAME_NAMES_MAX = 10000 };

static int copy_pages(int fd, const struct reader *reader)
{
	static const uint8_t zeros[PAGE_BYTES];

	if (ftruncate(fd, (off_t)reader->bytes))
		return -1;
	for (uint64_t at = 0; at < reader->bytes; at += PAGE_BYTES) {
		size_t bytes = reader->bytes - at < PAGE_BYTES ? reader->bytes - at : PAGE_BYTES;

		if (!memcmp(reader->data + at, zeros, bytes))
			continue;
		if (pwrite(fd, reader->data + at, bytes, (off_t)at) != (ssize_t)bytes)
			return -1;
		if (at % (1 << 24) == 0)
			reader_drop_range(reader, reader->data, at);
	}
	return 0;
}

static int hide_secrets(int fd, const struct reader *reader, size_t *hidden)
{
	const struct reader_section *meta = &reader->sections[CUF_SEC_META];
	void *copy = xalloc_bytes(meta->bytes);
	int status = 0;

	if (meta->bytes)
		memcpy(copy, meta->at, meta->bytes);
	*hidden += secret_texts_cover(copy, meta->bytes);
	if (meta->bytes && pwrite(fd, copy, meta->bytes, (off_t)meta->offset) !=
				   (ssize_t)meta->bytes)
		status = -1;
	free(copy);
	return status;
}

/* A file's name of plain characters, as every tar has it. */
static void plain_name(const char *path, char *out, size_t bytes)
{
	const char *slash = strrchr(path, '/');

	snprintf(out, bytes, "%s", slash ? slash + 1 : path);
	for (char *c = out; *c; c++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+%@",
			    *c))
			*c = '_';
}

/* Names that became equal get a number. All end with .cuf, as recordings of a directory do. */
static int create_copy(const char *directory, const char *source, char path[2 * PATH_MAX])
{
	char name[NAME_MAX - 8];
	size_t length;
	int fd = -1;

	plain_name(source, name, sizeof name - 4);
	length = strlen(name);
	if (length < 4 || strcmp(name + length - 4, ".cuf") != 0)
		strcpy(name + length, ".cuf");
	snprintf(path, 2 * PATH_MAX, "%s/%s", directory, name);
	for (unsigned i = 1; i < SAME_NAMES_MAX; i++) {
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, OWNER_ONLY);
		if (fd >= 0 || errno != EEXIST)
			break;
		snprintf(path, 2 * PATH_MAX, "%s/%u.%s", directory, i, name);
	}
	return fd;
}

static int copy_recording(struct packing *packing, const struct reader *reader)
{
	char path[2 * PATH_MAX];
	/* asked before: what ends while it is copied still ran */
	bool runs = !reader->header.end_kind && process_life(reader) == LIFE_RUNS;
	int fd = create_copy(packing->directory, reader->path, path);
	int status = fd < 0 || copy_pages(fd, reader) || hide_secrets(fd, reader, &packing->hidden);

	if (status)
		say_error("cannot copy '%s' to '%s': %s; TMPDIR names another directory",
			  reader->path, packing->directory, strerror(errno));
	if (fd >= 0)
		close(fd);
	/* a copy without room for it reads as one of a process that was killed */
	if (!status && runs)
		recording_append_wait(path, "running=1\n");
	return status ? -1 : 0;
}

static int copy_run(struct packing *packing, const struct opts *opts)
{
	struct reader_error error = { 0 };
	struct run run;
	int status = 0;

	if (run_open_number(&run, packing->source, opts_number(opts, "run", 0), &error)) {
		refuse_recording(packing->source, &error);
		run_fini(&run);
		return -1;
	}
	if (run.pack) {
		say_error("'%s' is a pack already; 'cuflight report' reads it", packing->source);
		status = -1;
	} else if (!unfinished_make_directory(packing->directory)) {
		say_error("cannot make '%s': %s; TMPDIR names another directory",
			  packing->directory, strerror(errno));
		status = -1;
	} else {
		packing->copied = true;
	}
	for (size_t i = 0; !status && i < run.count; i++)
		status = copy_recording(packing, run.processes[i].reader);
	run_fini(&run);
	return status;
}

/* ---- the entries ---- */

/* What a printer writes, as an entry. */
struct pack_entry { FILE *out; char *text; size_t bytes; };

static void entry_begin(struct pack_entry *entry)
{
	entry->out = open_memstream(&entry->text, &entry->bytes);
	if (!entry->out) {
		say_error("cannot pack: %s", strerror(errno));
		exit(CMD_USAGE);
	}
}

static void entry_add(struct pack_entry *entry, struct pack_writer *writer, const char *name)
{
	fclose(entry->out);
	pack_writer_add(writer, name, entry->text, entry->bytes);
	free(entry->text);
}

/* What the pack is, for a reader that does not know it. */
static void add_contents(struct packing *packing, struct pack_writer *writer)
{
	const struct run *run = packing->facts->run;
	struct json_object *top = json_object_new_object(), *list = json_object_new_array();
	struct pack_entry entry;

	for (size_t i = 0; i < run->count; i++)
		json_object_array_add(list,
				      json_object_new_string(packing->facts->processes[i].path));
	json_object_object_add(top, "schema", json_object_new_string("cuflight.pack/1"));
	json_object_object_add(top, "version", json_object_new_string(CUFLIGHT_VERSION));
	json_object_object_add(top, "recordings", list);
	json_object_object_add(top, "secrets_hidden", json_object_new_uint64(packing->hidden));
	entry_begin(&entry);
	fprintf(entry.out, "%s\n",
		json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY |
						    JSON_C_TO_STRING_NOSLASHESCAPE));
	entry_add(&entry, writer, "pack.json");
	json_object_put(top);
}

static void add_reports(struct packing *packing, struct pack_writer *writer)
{
	const struct report_text_options options = { .full = true, .operand = packing->name };
	const struct style style = { .columns = STYLE_COLUMNS };
	struct frames *frames = frames_new(packing->facts, packing->symbols);
	struct pack_entry entry;

	entry_begin(&entry);
	report_text(entry.out, packing->facts, frames, &style, &options);
	entry_add(&entry, writer, "report.txt");
	entry_begin(&entry);
	report_json(entry.out, packing->facts, frames);
	entry_add(&entry, writer, "report.json");
	entry_begin(&entry);
	names_file_write(packing->symbols, entry.out);
	entry_add(&entry, writer, PACK_NAMES);
	frames_free(frames);
}

/* The report in the pack names the pack and what is in it, not this machine's directories. */
static void rename_sources(struct packing *packing)
{
	struct facts *facts = packing->facts;

	facts->path = packing->name;
	for (size_t i = 0; i < facts->process_count; i++)
		facts->processes[i].path = strrchr(facts->processes[i].path, '/') + 1;
}

static void add_recordings(struct packing *packing, struct pack_writer *writer)
{
	const struct run *run = packing->facts->run;
	char name[sizeof PACK_RECORDINGS + NAME_MAX];

	for (size_t i = 0; i < run->count; i++) {
		const struct reader *reader = run->processes[i].reader;

		snprintf(name, sizeof name, "%s%s", PACK_RECORDINGS,
			 packing->facts->processes[i].path);
		pack_writer_add(writer, name, reader->data, reader->bytes);
		reader_drop_range(reader, reader->data, reader->bytes);
	}
}

/* ---- the command ---- */

static int write_pack(struct packing *packing, struct output *output)
{
	struct pack_writer *writer = pack_writer_begin(output->file);
	char error[256];

	rename_sources(packing);
	add_contents(packing, writer);
	add_reports(packing, writer);
	add_recordings(packing, writer);
	if (pack_writer_end(writer, error, sizeof error)) {
		say_error("cannot write '%s': %s", output->path ? output->path : "stdout", error);
		output_abandon(output);
		return CMD_USAGE;
	}
	if (output_close(output))
		return CMD_USAGE;
	if (packing->hidden)
		say_info("%zu secret%s hidden in the copy that is packed", packing->hidden,
			 packing->hidden == 1 ? " was" : "s were");
	if (output->path)
		say_info("wrote %s; on any machine: cuflight report %s", output->path,
			 output->path);
	return CMD_FINE;
}

static int explain_copies(struct packing *packing, const struct opts *opts)
{
	struct facts_options options = { .symbols = packing->symbols,
					 .warm_up_s = (double)opts_number(opts, "warm-up", 0) };
	struct reader_error error = { 0 };

	if (!facts_build(packing->directory, &options, &packing->facts, &error))
		return 0;
	refuse_recording(packing->source, &error);
	return -1;
}

/* NAME.cufpack here, of the recording or of the directory. */
static void default_path(const char *source, char *out, size_t bytes)
{
	char resolved[PATH_MAX], name[NAME_MAX];
	size_t length;

	plain_name(realpath(source, resolved) ? resolved : source, name, sizeof name - 16);
	length = strlen(name);
	if (length > 4 && !strcmp(name + length - 4, ".cuf"))
		name[length - 4] = 0;
	snprintf(out, bytes, "%s.cufpack", *name ? name : "run");
}

static int pack_source(const char *source, const struct opts *opts)
{
	struct symbols_options symbols = { .sysroot = opts_text(opts, "sysroot") };
	struct packing packing = { .source = source };
	const char *temporary = getenv("TMPDIR"), *wanted = opts_text(opts, "output");
	char path[PATH_MAX];
	struct output output;
	int status = CMD_USAGE;

	snprintf(packing.directory, sizeof packing.directory, "%s/cuflight-pack.XXXXXX",
		 temporary && *temporary ? temporary : "/tmp");
	default_path(source, path, sizeof path);
	if (wanted)
		snprintf(path, sizeof path, "%s", wanted);
	plain_name(path, packing.name, sizeof packing.name);
	if (output_open_path(&output, path, opts_has(opts, "force")))
		return CMD_USAGE;
	packing.symbols = symbols_new(&symbols);
	if (!copy_run(&packing, opts) && !explain_copies(&packing, opts))
		status = write_pack(&packing, &output);
	else
		output_abandon(&output);
	facts_free(packing.facts);
	symbols_free(packing.symbols);
	if (packing.copied)
		unfinished_remove(packing.directory, UNFINISHED_FILES);
	return status;
}

static int run_pack(const struct opts *opts, const struct cmd *const *commands)
{
	(void)commands;
	if (opts->operand_count == 1)
		return pack_source(opts->operands[0], opts);
	say_error("%s; see 'cuflight pack --help'",
		  opts->operand_count ? "pack takes one recording or one directory" :
					"name a recording, or the directory of a run");
	return CMD_USAGE;
}

static const struct opt options[] = {
	{ "output", 'o', OPT_TEXT, "FILE", 0, 0, NULL,
	  "the pack; without it, NAME.cufpack here; - is stdout" },
	{ "force", 'f', OPT_FLAG, NULL, 0, 0, NULL, "overwrite an existing FILE" },
	{ "run", 0, OPT_COUNT, "N", 1, 1000000, NULL,
	  "which run of a directory, as 'cuflight list' numbers them; without it, the newest" },
	{ "sysroot", 0, OPT_TEXT, "DIR", 0, 0, NULL,
	  "get function names from the recorded machine's files below DIR, not from here" },
	{ "warm-up", 0, OPT_COUNT, "SECONDS", 1, 86400, "300",
	  "of a program that runs: before that the report in the pack calls nothing growth" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_pack = {
	.name = "pack",
	.summary = "put a run, its report and its function names into one file",
	.usage = "[OPTIONS] RECORDING|DIRECTORY",
	.manual = "cuflight-pack",
	.about = "Writes one file for another machine: the recordings of a run, the names of the "
		 "functions in them, and the report. Every command that reads recordings reads the "
		 "pack, and needs none of the recorded programs for it. Secrets in command lines "
		 "and variables are looked for again and hidden. 'tar xf' opens a pack, too.",
	.examples = "cuflight pack server.cuf\twrites server.cufpack\n"
		    "cuflight report server.cufpack\ton any machine\n"
		    "tar xOf server.cufpack report.txt\twithout cuflight\n",
	.groups = { &option_group, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_pack,
};
