/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a gate found: one finding for each limit, and whether the run could be judged at all. The
 * writers of JUnit, SARIF, Markdown and the text all read this.
 *
 * Contract: plain data in the arena of the result; nothing changes after gate_check. Texts are
 * never NULL unless noted; those of the recording are foreign (base/clean.h before printing).
 * Quantities that are unknown are CUF_UNKNOWN. An array and its count are one pair.
 */
#pragma once

#include "analysis/gate/limits.h"

struct arena;

/* As in ok < suppressed < inconclusive < exceeded: the worst decides the exit status. */
enum gate_status { GATE_OK, GATE_SUPPRESSED, GATE_INCONCLUSIVE, GATE_EXCEEDED, GATE_STATUS_MAX };
extern const char *const gate_status_names[GATE_STATUS_MAX]; /* ok suppressed ... */

/* One frame of a call site, as a report shows it. */
struct gate_frame {
	const char *function; /* NULL unknown */
	const char *module;   /* NULL: a Python frame, or no module */
	const char *file;     /* with its directories as the debug information has it; NULL */
	unsigned line;        /* 0 unknown */
};

/* A call site with what it held then and now. */
struct gate_site {
	const char *identity;    /* site_name.h: survives a rebuild; the key of baselines */
	const char *function;    /* the user's own frame: "append_kv" */
	const char *module;      /* its module or Python file; "" unknown */
	const char *file;        /* its source file; NULL unknown */
	unsigned line;           /* 0 unknown */
	enum gate_group group;
	uint64_t bytes_now, count_now;
	uint64_t bytes_before;   /* median of the baseline; 0: it was not there; CUF_UNKNOWN:
				  * there is no baseline */
	const struct gate_frame *frames; /* all, innermost first; none for a site that is gone */
	size_t frame_count;
	const char *rule;        /* the suppression that matched; NULL */
};

/* The spread of a measure over the runs of a baseline. */
struct gate_spread { uint64_t median, least, most, mad, runs; };

struct gate_finding {
	struct gate_limit limit;
	enum gate_status status;
	struct gate_value observed;    /* without what was suppressed */
	uint64_t suppressed_bytes;
	uint64_t allowed;              /* the figure that the limit comes to; CUF_UNKNOWN */
	struct gate_spread baseline;   /* runs 0: none has this measure */
	const char *message;           /* one sentence without a full stop */
	const struct gate_site *sites; /* exceeded or suppressed: the guilty ones, worst first */
	size_t site_count;
	const char *rule;              /* suppressed: the first rule that matched; else NULL */
};

/* What makes two runs comparable. Unknown texts are "". */
struct gate_environment {
	const char *gpu;          /* name of the device; several: joined by " + " */
	uint64_t gpu_bytes;       /* CUF_UNKNOWN: none was used */
	const char *driver;       /* CUDA version of the driver: "13.0" */
	const char *frameworks;   /* "PyTorch 2.9.0 native", sorted */
	const char *host_mode;    /* off, sampled, full */
	const char *recorder;     /* settings that change what is measured */
};

struct gate_result {
	struct arena *arena;
	const char *path, *program;   /* program: the executable of the run's first process */
	const char *baseline;         /* its file; NULL */
	struct gate_environment environment;
	struct gate_finding *findings; /* worst first */
	size_t finding_count;
	const char *const *inconclusive; /* sentences: why the whole run cannot be judged */
	size_t inconclusive_count;
	const char *const *notes;     /* sentences that change nothing */
	size_t note_count;
	uint64_t suppressed_bytes;    /* of all findings */
};

/*
 * What must be the same in two runs before their memory can be compared.
 *
 * Contract: texts are in the arena; facts are borrowed during the call. A part that one side does
 * not know makes no difference. environment_difference returns a sentence, or NULL where the two
 * are comparable; versions of frameworks differ without making a comparison useless, so
 * environment_remark has a sentence for those.
 */
struct facts;
void environment_take(const struct facts *facts, struct arena *arena,
		      struct gate_environment *out);
const char *environment_difference(const struct gate_environment *baseline,
				   const struct gate_environment *now, struct arena *arena);
const char *environment_remark(const struct gate_environment *baseline,
			       const struct gate_environment *now, struct arena *arena);

/* 0 nothing exceeded, 1 exceeded, 3 inconclusive and nothing exceeded. */
int gate_exit_status(const struct gate_result *result);
