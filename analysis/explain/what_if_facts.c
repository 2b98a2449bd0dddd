/* SPDX-License-Identifier: Apache-2.0 */
/* Fills facts.what_ifs: the fatal request played again, where PyTorch refused it. */
#include "analysis/explain/what_if_facts.h"

#include "analysis/explain/replayed.h"
#include "analysis/what_if/what_if.h"

/* Bounds the cost: at most so many events for each setting. */
enum { STEPS_MAX = 1 << 17 };

static void take_rows(struct fact_what_ifs *facts, struct arena *arena,
		      const struct what_if *what_if)
{
	struct fact_what_if *rows = arena_zeroed(arena, what_if->count, sizeof *rows);
	for (size_t i = 0; i < what_if->count; i++) {
		const struct what_if_row *row = &what_if->rows[i];
		rows[i] = (struct fact_what_if){
			.kind = trial_kind_names[row->trial.kind],
			.id = row->trial.id,
			.change = row->trial.typed,
			.knob = row->trial.knob,
			.why_not = row->result.why_not,
			.fits = !row->result.why_not && row->result.fits,
			.room_bytes = row->result.room_bytes,
			.peak_reserved_bytes = row->result.peak_reserved_bytes,
		};
	}
	facts->rows = rows;
	facts->count = what_if->count;
	facts->unlike = what_if->unlike;
}

/* Where a setting of PyTorch could matter; others have their own command. */
static bool is_asked(const struct facts *facts, const struct facts_options *options)
{
	const struct fact_incident *incident;
	if (options->whole_replay)
		return true;
	if (options->without_replay || !facts->fatal_incident)
		return false;
	incident = &facts->incidents[facts->fatal_incident - 1];
	return incident->device != FACT_NONE && is_known(incident->framework_requested_bytes);
}

static size_t steps_most(const struct facts_options *options)
{
	return options->whole_replay ? 0 : STEPS_MAX;
}

uint64_t what_ifs_since(const struct facts *facts, const struct facts_options *options,
			uint32_t process)
{
	if (!is_asked(facts, options))
		return 0;
	return replayed_since(facts, process, steps_most(options));
}

struct trace_walk *listen_for_what_ifs(const struct facts *facts,
				       const struct facts_options *options, uint32_t process,
				       struct sweep_consumer *consumer)
{
	if (!is_asked(facts, options))
		return NULL;
	return replayed_begin(facts, process, steps_most(options), consumer);
}

struct fact_what_ifs what_ifs_of(const struct facts *facts, struct trace_walk *walk)
{
	struct what_if_options options = { .threads = facts->run->threads };
	struct fact_what_ifs played = { 0 };
	struct what_if what_if;
	struct replayed about;
	struct trace *trace = replayed_trace(walk, facts, &about);
	const char *why;

	if (trace && about.incident && trace_refused(trace) &&
	    what_if_run(trace, &options, facts->arena, &what_if, &why)) {
		played.incident = about.incident->id;
		played.complete = !trace->old_count;
		take_rows(&played, facts->arena, &what_if);
	}
	trace_free(trace);
	return played;
}
