/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call sites as people speak of them: the innermost function of the program itself, its
 * line, and who called it. Frames of the CUDA runtime, of allocators, of libraries and of
 * the interpreter are skipped where the program has a frame; a stack that is a runtime's own is
 * called after its memory ("Java heap"). Contract: texts are foreign
 * and copied into the caller's struct place, cut to fit (clean.h before printing). The
 * frames are borrowed and must outlive the places. One thread.
 */
#pragma once

#include "analysis/facts/frames.h"

struct place {
	char function[160]; /* "Session.append", "module+0x1f2c"; "?" when the stack is unknown */
	char file[96];      /* without its directory; "" unknown */
	unsigned line;      /* 0 unknown */
	bool in_thread;     /* a library did it, in a thread that this line created */
	char callers[512];  /* "serve_request (:109) < main"; "" none */
};

struct places;

struct places *places_new(const struct facts *facts, struct frames *frames);
void places_free(struct places *places);

void place_of(struct places *places, const struct fact_stack *stack, struct place *out);
/* The index of the frame that place_of names; 0 for an unknown stack. */
size_t places_own_frame(const struct places *places, const struct frame *frames, size_t count);
/* The same function and line, whoever called it. */
bool place_is_same(const struct place *place, const struct place *other);
/* Also the same callers. */
bool place_has_same_path(const struct place *place, const struct place *other);
/*
 * Whether two call sites print as one row of a table, with their roles (NULL unknown). On the host
 * one line allocates from many paths, which no table has room for. On a GPU the path shows what it
 * was for. A site without a role goes with any other; one line may hold a cache and work on it.
 */
bool place_shares_row(const struct place *place, const char *role, const struct place *other,
		      const char *other_role, bool is_host);

/*
 * Is this frame worth a line of a stack? Not what every program has: libc's start, the
 * interpreter, the CUDA runtime.
 */
bool places_shows(const struct frame *frames, size_t count, size_t index);
/* The interpreter's C code, without a Python frame that it runs. */
bool places_is_interpreter(const struct frame *frame);
/* The same for a picture of many stacks, whole stacks at once: of one of libraries only, the frame
 * that names it and main. drawn: as long as frames. */
void places_drawn(const struct places *places, const struct frame *frames, size_t count,
		  bool *drawn);

/* Its function in at most `columns` columns, abridged at its brackets, then at its scopes. */
void place_function(const struct place *place, size_t columns, char *out, size_t bytes);
/* ", in a thread" of a line that created the thread; "". */
const char *place_thread(const struct place *place);
/* "append_kv (server.c:64)", "load (app.py:6), in a thread". */
void place_text(const struct place *place, char *out, size_t bytes);
/*
 * "append_kv (server.c:64) < serve < main": whole frames, as many as `columns` hold, the
 * first in any case.
 */
void place_line(struct places *places, const struct fact_stack *stack, size_t columns, char *out,
		size_t bytes);
