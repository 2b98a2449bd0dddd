/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings under which the requests of the fatal incident were played again. Contract: as in
 * facts.h. Only a request that PyTorch refused is played, and only its last 131,072 events.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fact_what_if {
	const char *kind;    /* recorded, setting, allocator, work */
	const char *id;      /* "expandable-segments" */
	const char *change;  /* as it is typed */
	const char *knob;    /* NULL: no setting */
	const char *why_not; /* it cannot be judged: a clause; NULL: the rest is filled */
	bool fits;
	uint64_t room_bytes; /* what a further request could have had */
	uint64_t peak_reserved_bytes;
};

struct fact_what_ifs {
	uint64_t incident;   /* id of the request that was played; 0: none */
	/* How the replay of the recorded setting ends otherwise than the program did, a clause;
	 * NULL: it ends alike, so the rows can be believed. */
	const char *unlike;
	bool complete;       /* false: the oldest events are not among those that were played */
	const struct fact_what_if *rows; /* as struct what_if orders them */
	size_t count;
};
