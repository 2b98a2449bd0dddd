/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one header of cuflight that a program may include, to say what its work is: requests, phases, marks. Nothing is
 * linked: the functions are weak references that libcuflight.so answers when it is preloaded (`cuflight run`, or
 * LD_PRELOAD). Without it each call here is one test of a pointer, and does nothing.
 *
 * Contract. Names are NUL-terminated UTF-8, of which the first 119 bytes are kept; they are copied, and may change or go
 * when the call returns. A name is a kind of work ("prefill", "load weights"), not one piece of it: about a thousand
 * names are held, and when many are in use digits in them are taken for one ("step 17" becomes "step #"). NULL is the empty name.
 * Any thread may call anything at any time, from signal handlers too (such a call may go unrecorded); nothing here
 * blocks, allocates, fails visibly or changes errno. A call costs about a tenth of a microsecond; floods are thinned so
 * that they cannot push the history of memory out, and the report counts what was left out. Calls before the recorder has
 * started, after it is off, or in a child after vfork, do nothing.
 * The first call makes the recorder keep a file, if it has none yet.
 * C (C99 and later) and C++. Version 1: functions are only added.
 */
#ifndef CUFLIGHT_H
#define CUFLIGHT_H

#include <stdint.h>

#define CUFLIGHT_API_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

#if defined __GNUC__ && defined __ELF__
/* noplt: a program that is not position-independent would otherwise be given the answer "nobody" when it is linked */
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
#define CUFLIGHT_ASK(type, none, params, name, args) do { type(*f) params = name; return f ? f args : (none); } while (0)
#define CUFLIGHT_TELL(params, name, args) do { void (*f) params = name; if (f) f args; } while (0)
#else /* no such library can be there */
#define CUFLIGHT_ASK(type, none, params, name, args) return (none)
#define CUFLIGHT_TELL(params, name, args) do { } while (0)
#endif

/* The version of the recorder that answers, at least CUFLIGHT_API_VERSION of its header; 0: none is there. */
static inline int cuflight_version(void) { CUFLIGHT_ASK(int, 0, (void), cuflight_1_version, ()); }

/* 1 while events are recorded; 0: no recorder, or it is off. */
static inline int cuflight_active(void) { CUFLIGHT_ASK(int, 0, (void), cuflight_1_active, ()); }

/* A moment. */
static inline void cuflight_mark(const char *name) { (void)name; CUFLIGHT_TELL((const char *), cuflight_1_mark, (name)); }

/* A phase of this thread's work, inside the phases that it has pushed before. A pop ends the last one; one too many does nothing. */
static inline void cuflight_phase_push(const char *name) { (void)name; CUFLIGHT_TELL((const char *), cuflight_1_phase_push, (name)); }
static inline void cuflight_phase_pop(void) { CUFLIGHT_TELL((void), cuflight_1_phase_pop, ()); }

/* A phase of the whole program: begins and ends in any thread, in any order with others. Returns what names it to
 * cuflight_phase_end; 0 when it was not recorded, which cuflight_phase_end ignores. */
static inline uint64_t cuflight_phase_start(const char *name)
{
	(void)name;
	CUFLIGHT_ASK(uint64_t, 0, (const char *), cuflight_1_phase_start, (name));
}
static inline void cuflight_phase_end(uint64_t phase) { (void)phase; CUFLIGHT_TELL((uint64_t), cuflight_1_phase_end, (phase)); }

/*
 * A unit of the program's work: a request, a batch, a step. The report says what one takes at its peak and what stays
 * after it. id tells those that are open at the same time apart; 0: one is made. Returns the id, 0 when there is no
 * recorder. A request belongs to the thread that began it, and may be ended by any.
 */
static inline uint64_t cuflight_request_begin(const char *name, uint64_t id)
{
	(void)name;
	(void)id;
	CUFLIGHT_ASK(uint64_t, 0, (const char *, uint64_t), cuflight_1_request_begin, (name, id));
}
static inline void cuflight_request_end(uint64_t id) { (void)id; CUFLIGHT_TELL((uint64_t), cuflight_1_request_end, (id)); }

/*
 * The mean distance in bytes between samples of the malloc family, from now on, in all threads (each at its next sample):
 * option `sample`, within its bounds of 4 KiB and 1 GiB. 0: done. -1: no recorder, not in sampled mode, or out of bounds.
 */
static inline int cuflight_set_sample_bytes(uint64_t mean_bytes)
{
	(void)mean_bytes;
	CUFLIGHT_ASK(int, -1, (uint64_t), cuflight_1_set_sample_bytes, (mean_bytes));
}

#undef CUFLIGHT_ASK
#undef CUFLIGHT_TELL

#ifdef __cplusplus
}

namespace cuflight {
/* A phase, or a request, for as long as the object lives. */
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
	explicit request(const char *name, uint64_t id = 0) : id_(cuflight_request_begin(name, id)) { }
	~request() { cuflight_request_end(id_); }
	uint64_t id() const { return id_; }
private:
	request(const request &);
	request &operator=(const request &);
	uint64_t id_;
};
}
#endif

#endif
