/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of the recordings first, then what they mean: causes are judged last. */
#include "analysis/explain/facts_build.h"

#include <stdlib.h>
#include "analysis/base/xalloc.h"
#include "analysis/explain/causes.h"
#include "analysis/explain/evidence/event_pass.h"
#include "analysis/explain/judge.h"
#include "analysis/explain/replayed.h"
#include "analysis/explain/what_if_facts.h"
#include "analysis/facts/passes/assemble.h"

struct facts_store {
	struct facts facts;
	struct trace *trace;
	struct replayed about; /* the trace */
};

/* What explains a failure reads the events along with what grows. */
struct heard {
	const struct facts_options *options;
	struct trace_walk *walk; /* of the process whose requests are played again; NULL */
	struct event_pass **passes; /* by process, EVENT_PASSES each */
};

static uint64_t since(void *state, const struct facts *facts, uint32_t process)
{
	uint64_t seq = what_ifs_since(facts, ((struct heard *)state)->options, process);

	return seq ? seq : CUF_UNKNOWN;
}

static void listen(void *state, const struct facts *facts, uint32_t process, uint32_t leaking,
		   struct sweep_consumer consumers[LISTENERS])
{
	struct heard *heard = state;
	struct trace_walk *walk = listen_for_what_ifs(facts, heard->options, process,
						      &consumers[0]);

	if (walk)
		heard->walk = walk;
	event_pass_listen(facts, process, leaking, &heard->passes[process * EVENT_PASSES],
			  &consumers[1]);
}

/*
 *   facts_assemble   all but what follows
 *   build_recent     processes[].recent
 *   build_judgement  judgement; of a running process, leaks[].class and growth[].class
 *   what_ifs_of      what_ifs
 *   build_causes     incidents[].cause, cause, also
 */
static void explain(struct facts_store *store, const struct facts_options *options)
{
	struct facts *facts = &store->facts;
	size_t passes = facts->run->count * EVENT_PASSES;
	struct heard heard = { options, NULL, xalloc_zeroed(passes, sizeof *heard.passes) };

	facts_assemble(facts, options, &(struct listener){ since, listen, &heard });
	build_recent(facts);
	build_judgement(facts, options->warm_up_s);
	if (heard.walk && options->whole_replay)
		store->trace = replayed_trace(heard.walk, facts, &store->about);
	else if (heard.walk)
		facts->what_ifs = what_ifs_of(facts, heard.walk);
	build_causes(facts, heard.passes);
	for (size_t i = 0; i < passes; i++)
		event_pass_fini(heard.passes[i]);
	free(heard.passes);
}

static int finish(struct facts_store *store, int code, const struct facts_options *options,
		  struct facts **out)
{
	*out = NULL;
	if (code) {
		free(store);
		return code;
	}
	store->facts.store = store;
	explain(store, options ? options : &(struct facts_options){ 0 });
	*out = &store->facts;
	return 0;
}

int facts_build(const char *path, const struct facts_options *options, struct facts **out,
		struct reader_error *error)
{
	struct facts_store *store = xalloc_zeroed(1, sizeof *store);
	return finish(store, facts_open(&store->facts, path, options, error), options, out);
}

int facts_build_memory(const void *data, size_t bytes, const struct facts_options *options,
		       struct facts **out, struct reader_error *error)
{
	struct facts_store *store = xalloc_zeroed(1, sizeof *store);
	return finish(store, facts_open_memory(&store->facts, data, bytes, error), options, out);
}

struct trace *facts_trace(const struct facts *facts, struct replayed *about)
{
	*about = facts->store->about;
	return facts->store->trace;
}

void facts_free(struct facts *facts)
{
	struct facts_store *store = facts ? facts->store : NULL;
	if (!store)
		return;
	trace_free(store->trace);
	facts_close(&store->facts);
	free(store);
}
