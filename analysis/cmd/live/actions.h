/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done when a rule fires: one action at a time, in the order of the rule, in processes of
 * their own with a limit of time. What follows knows the snapshot that was made before it.
 *
 * Contract: one thread. actions_add copies the event; false: too many wait already.
 * actions_work starts and finishes what is due; fd of struct actions is readable when it has
 * something; -1: nothing runs. actions_end asks what runs to end, and kills it after a second.
 */
#pragma once

#include <limits.h>
#include <sys/types.h>
#include "analysis/cmd/live/rule.h"
#include "analysis/cmd/live/snapshots.h"

enum { ACTIONS_WAITING = 32, ACTION_SECONDS = 30, SNAPSHOT_SECONDS = 120 };

struct event {
	const struct rule *rule;
	struct rule_sample sample; /* its process and gpu are not used */
	char process[128], gpu[8], recording[PATH_MAX], snapshot[PATH_MAX], cause[256];
	struct cuf_header header;  /* whose process it is */
	bool has_process;
	uint64_t time_ns;          /* CLOCK_REALTIME */
	size_t next;               /* its action */
};

struct actions {
	struct snapshots snapshots;
	const char *warm_up;       /* for pack; NULL: not given */
	struct event *waiting[ACTIONS_WAITING]; size_t count; /* the first one is at work */
	pid_t pid;                 /* of what runs; 0: nothing */
	int fd, wrote;             /* its pidfd, and what it wrote on stderr; -1 */
	uint64_t started_ns;
};

void actions_init(struct actions *actions);
bool actions_add(struct actions *actions, const struct event *event);
/* The milliseconds until it wants to be called again, at most. */
int actions_work(struct actions *actions);
void actions_end(struct actions *actions);

/* To the process of this recording and to no other that has its pid now. 0, or -1 with errno. */
int signal_recorded(const struct cuf_header *header, int signal);
