/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jemalloc and tcmalloc take locks to answer, and the list of loaded objects is the loader's. At
 * the end of a process any of them may be held by a thread that hangs, or by code that a handler
 * interrupted. A copy of the process may wait for them in vain.
 */
#include "interpose/hooks/malloc/allocator_copy.h"

#include <string.h>
#include <sys/mman.h>
#include "interpose/hooks/malloc/process_copy.h"
#include "interpose/platform/sys.h"
#include "interpose/record/recorder.h"

enum { ANSWER_BYTES = 256 << 10 };
#define LIMIT_NS 2000000000ull
/* The copy of its page tables takes ten milliseconds a GiB. */
#define RESIDENT_BYTES_MAX (8ull << 30)

/* In memory that both share. */
struct answer {
	size_t used;
	uint8_t at[ANSWER_BYTES - sizeof(size_t)];
};
struct record {
	uint64_t number;
	uint32_t type, bytes; /* of the text that follows, padded to eight */
};

static struct answer *answer; /* in the copy; else NULL */

static size_t padded(size_t bytes) { return (bytes + 7) & ~(size_t)7; }

void cuf_allocator_deliver(unsigned type, uint64_t number, const char *text, size_t bytes)
{
	const struct record record = { number, type, (uint32_t)bytes };
	if (!answer) {
		cuf_note(type, number, text, bytes);
		return;
	}
	if (sizeof answer->at - answer->used < sizeof record + padded(bytes))
		return;
	memcpy(answer->at + answer->used, &record, sizeof record);
	if (bytes)
		memcpy(answer->at + answer->used + sizeof record, text, bytes);
	answer->used += sizeof record + padded(bytes);
}

struct question {
	void (*read)(void *);
	void *argument;
	struct answer *answer;
};

/* Events of the copy are nobody's: what the allocator maps for itself is not recorded. */
static void read_in_copy(void *question_of_parent)
{
	const struct question *question = question_of_parent;
	cuf_gate_turn_off();
	answer = question->answer;
	question->read(question->argument);
}

static void deliver_all(const struct answer *all)
{
	for (size_t at = 0; at + sizeof(struct record) <= all->used;) {
		struct record record;
		memcpy(&record, all->at + at, sizeof record);
		at += sizeof record;
		cuf_note(record.type, record.number, (const char *)all->at + at, record.bytes);
		at += padded(record.bytes);
	}
}

void cuf_allocator_read_in_copy(void (*read)(void *), void *argument, uint64_t resident_bytes)
{
	struct question question = { read, argument, NULL };
	long at;
	if (resident_bytes > RESIDENT_BYTES_MAX)
		return;
	at = cuf_sys_mmap(NULL, ANSWER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	if (cuf_sys_failed(at))
		return;
	question.answer = (struct answer *)at;
	if (cuf_in_process_copy(read_in_copy, &question, LIMIT_NS))
		deliver_all(question.answer);
	cuf_sys_munmap(question.answer, ANSWER_BYTES);
}
