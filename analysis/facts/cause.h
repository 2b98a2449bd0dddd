/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A verdict: why memory ran out, or what grows, with its evidence and what to change. The rules
 * are in explain/causes.h. Contract: as in facts.h.
 */
#pragma once

#include <stdbool.h>
#include "analysis/recording/fact_types.h"

/* From where on a confidence is called so; all other thresholds are in explain/. */
#define CAUSE_HIGH 0.8
#define CAUSE_MEDIUM 0.5

/* One line of evidence. Its events are in the recording of `process`: seqs, or a sample's time. */
struct fact_evidence {
	const char *text; /* a clause with its figures, for people */
	bool against;     /* speaks against the cause */
	uint32_t process;
	uint64_t seqs[4];
	size_t seq_count;
	uint64_t time_ns; /* CUF_UNKNOWN */
	struct fact_stack stack; /* the call site that it is about; process FACT_NONE: none */
};

/* One thing to change. */
struct fact_fix {
	const char *text;  /* a sentence: what, in which direction, to what value */
	const char *knob;  /* "n_ctx", "PYTORCH_CUDA_ALLOC_CONF"; NULL: code, not a setting */
	uint64_t value;    /* that would fit, in `unit`; CUF_UNKNOWN */
	const char *unit;  /* bytes, count, percent; "" without a value */
	uint64_t by_bytes; /* how much it must free at least; CUF_UNKNOWN */
};

/* What would have happened without one thing, at the program's own rates. */
struct fact_counterfactual {
	const char *without; /* "the leak" */
	uint64_t bytes;      /* that it frees */
	bool fits;           /* the failed request, then */
	bool endless;        /* nothing would have grown any more */
	double requests, seconds; /* how many more; NAN: unknown, endless, or it does not fit */
	const char *text; /* the sentence */
};

/* Which call sites a cause marks in the table of holders. */
enum fact_marks { MARKS_NOTHING, MARKS_GPU_LEAKS, MARKS_HOST_LEAKS, MARKS_HEAPS };

struct fact_cause {
	const char *id;      /* S0 .. S9 with a sub-type: "S2a", "S6.F1"; "" inconclusive */
	const char *name_id; /* the same as a word to type: "kv-cache-grew"; "" inconclusive */
	const char *name;    /* a few words */
	const char *summary; /* one sentence with its figures */
	double confidence;   /* 0 .. 1; high >= 0.8, medium >= 0.5, else low */
	const struct fact_evidence *evidence; /* strongest first */
	size_t evidence_count;
	const struct fact_fix *fixes;         /* best first */
	size_t fix_count;
	const struct fact_counterfactual *counterfactual; /* what buys most first; of failures */
	size_t counterfactual_count;
	struct fact_stack site; /* the place that it is about; depth 0: the failing call, or none */
	const char *runner_up_id, *runner_up_name_id, *runner_up_name; /* NULL none */
	double runner_up_confidence;
	/* a clause: what distinguishes the two causes, or which data would; "" */
	const char *discriminator;
	const char *const *lacks; /* what was not seen and lowered the confidence */
	size_t lack_count;
	uint32_t process, device; /* whose; FACT_NONE */
	unsigned blames;          /* owners without a call site, a bit for each enum fact_owner */
	enum fact_marks marks;
	bool is_page_lock;        /* what was refused is no memory of the device */
};
