/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one header of cuflight that a program may include. With it, the program describes its work:
 * requests, phases, marks. Nothing is linked. The functions are weak references, which
 * libcuflight.so defines when it is preloaded (`cuflight run`, or LD_PRELOAD). Without it, each
 * call here is one test of a pointer and does nothing.
 *
 * Contract. Names are NUL-terminated UTF-8, cut at 119 bytes. They are copied, so they may change
 * when the call returns. NULL is the empty name. A name is a kind of work ("prefill", "load
 * weights"), not one piece of it. About a thousand names are held. When many are in use, a run of
 * digits is replaced by one sign: "step 17" becomes "step #".
 *
 * Any thread may call anything at any time, also in signal handlers, where a call may go
 * unrecorded. Nothing here blocks, allocates, fails visibly or changes errno. A call costs about a
 * tenth of a microsecond. Floods are thinned so that they cannot overwrite the history of memory,
 * and the report states how many calls were dropped. Calls before the recorder has started, after
 * it switched off, or in a child after vfork, do nothing.
 *
 * The first call makes the recorder create its file, if there is none yet. C (C99 and later) and
 * C++. Version 1: functions are only added.
 */
#pragma once

#include <stdint.h>

#define CUFLIGHT_API_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

#if defined __GNUC__ && defined __ELF__
/* noplt: the linker of a program that is not position-independent would otherwise resolve them to
 * 0 */
#define CUFLIGHT_WEAK __attribute__((weak, noplt))
extern int cuflight_1_version(void) CUFLIGHT_WEAK;
extern int cuflight_1_active(void) CUFLIGHT_WEAK;
extern void cuflight_1_mark(const char *name) CUFLIGHT_WEAK;
extern void cuflight_1_phase_push(const char *name) CUFLIGHT_WEAK;
extern void cuflight_1_phase_pop(void) CUFLIGHT_WEAK;
extern uint64_t cuflight_1_phase_start(const char *name) CUFLIGHT_WEAK;
extern void cuflight_1_phase_end(uint64_t phase) CUFLIGHT_WEAK;
extern uint64_t cuflight_1_request_begin(const char *name, uint64_t id) CUFLIGHT_WEAK;
extern void cuflight_1_request_end(uint64_t id) CUFLIGHT_WEAK;
extern int cuflight_1_set_sample_bytes(uint64_t mean_bytes) CUFLIGHT_WEAK;
#define CUFLIGHT_RETURN(type, none, params, name, args) \
	do { \
		type(*f) params = name; \
		if (!f) \
			return (none); \
		return f args; \
	} while (0)
#define CUFLIGHT_CALL(params, name, args) \
	do { \
		void (*f) params = name; \
		if (f) \
			f args; \
	} while (0)
#else /* there is no such library */
#define CUFLIGHT_RETURN(type, none, params, name, args) return (none)
#define CUFLIGHT_CALL(params, name, args) do { } while (0)
#endif

/* ---- the recorder ---- */

/* The API version of the recorder; at least CUFLIGHT_API_VERSION of its header. 0: there is
 * none. */
static inline int cuflight_version(void)
{
	CUFLIGHT_RETURN(int, 0, (void), cuflight_1_version, ());
}

/* 1 while events are recorded. 0: no recorder, or it is off. */
static inline int cuflight_active(void)
{
	CUFLIGHT_RETURN(int, 0, (void), cuflight_1_active, ());
}

/* ---- marks and phases ---- */

/* A moment. */
static inline void cuflight_mark(const char *name)
{
	(void)name;
	CUFLIGHT_CALL((const char *), cuflight_1_mark, (name));
}

/* A phase of this thread's work, inside the phases that it pushed before. */
static inline void cuflight_phase_push(const char *name)
{
	(void)name;
	CUFLIGHT_CALL((const char *), cuflight_1_phase_push, (name));
}

/* Ends the last phase of this thread. Does nothing when there is none. */
static inline void cuflight_phase_pop(void) { CUFLIGHT_CALL((void), cuflight_1_phase_pop, ()); }

/* A phase of the whole program. It may begin and end in any thread, in any order with others.
 * Returns its id for cuflight_phase_end. 0: it was not recorded; cuflight_phase_end ignores it. */
static inline uint64_t cuflight_phase_start(const char *name)
{
	(void)name;
	CUFLIGHT_RETURN(uint64_t, 0, (const char *), cuflight_1_phase_start, (name));
}

static inline void cuflight_phase_end(uint64_t phase)
{
	(void)phase;
	CUFLIGHT_CALL((uint64_t), cuflight_1_phase_end, (phase));
}

/* ---- requests ---- */

/*
 * A unit of the program's work: a request, a batch, a step. The report states how much memory one
 * uses at its peak, and how much stays after it. id distinguishes requests that are open at the
 * same time; 0: one is chosen. Returns the id, or 0 without a recorder. A request belongs to the
 * thread that began it. Any thread may end it.
 */
static inline uint64_t cuflight_request_begin(const char *name, uint64_t id)
{
	(void)name;
	(void)id;
	CUFLIGHT_RETURN(uint64_t, 0, (const char *, uint64_t), cuflight_1_request_begin,
			(name, id));
}

static inline void cuflight_request_end(uint64_t id)
{
	(void)id;
	CUFLIGHT_CALL((uint64_t), cuflight_1_request_end, (id));
}

/* ---- sampling ---- */

/*
 * Sets the mean distance in bytes between samples of the malloc family, in all threads, for each
 * from its next sample on. It is the option `sample`, between 4 KiB and 1 GiB. Returns 0, or -1
 * without a recorder, when it is not in sampled mode, or out of bounds.
 */
static inline int cuflight_set_sample_bytes(uint64_t mean_bytes)
{
	(void)mean_bytes;
	CUFLIGHT_RETURN(int, -1, (uint64_t), cuflight_1_set_sample_bytes, (mean_bytes));
}

#undef CUFLIGHT_RETURN
#undef CUFLIGHT_CALL

#ifdef __cplusplus
}

namespace cuflight {
/* A phase or a request, for the lifetime of the object. */
class phase {
public:
	explicit phase(const char *name) { cuflight_phase_push(name); }
	~phase() { cuflight_phase_pop(); }
private:
	phase(const phase &);
	phase &operator=(const phase &);
};
class request {
public:
	explicit request(const char *name, uint64_t id = 0)
		: id_(cuflight_request_begin(name, id)) { }
	~request() { cuflight_request_end(id_); }
	uint64_t id() const { return id_; }
private:
	request(const request &);
	request &operator=(const request &);
	uint64_t id_;
};
}
#endif
