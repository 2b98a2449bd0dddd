/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_numbers RECORDING...: the sequence numbers that a recording has, one a line after its pid:
 * of the events in its rings, of the blocks in its ledger, of its incidents. What a report cites as
 * evidence must be among them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/recording/events.h"

static void say_events(const struct reader *reader, uint32_t pid)
{
	struct events *events = events_new(reader, NULL);
	struct event_merge merge;
	struct cuf_event event;
	event_merge_begin(&merge, events, 0);
	while (event_merge_next(&merge, &event))
		printf("%" PRIu32 " %" PRIu64 "\n", pid, event.seq);
	events_free(events);
}

static void say_blocks(const struct reader *reader, enum cuf_section_id ledger, uint32_t pid)
{
	for (uint64_t i = 0; i < reader_count(reader, ledger); i++) {
		const struct cuf_block *block = reader_at(reader, ledger, i);
		if (block->key && block->key != CUF_KEY_BUSY)
			printf("%" PRIu32 " %" PRIu64 "\n", pid, block->seq);
	}
}

static void say_incidents(const struct reader *reader, uint32_t pid)
{
	struct cuf_incident incident;
	for (uint64_t slot = 0; slot < reader_count(reader, CUF_SEC_INCIDENTS); slot++)
		if (reader_incident_slot(reader, slot, &incident))
			printf("%" PRIu32 " %" PRIu64 "\n", pid, incident.seq);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct reader *reader;
		struct reader_error error;
		if (reader_open(argv[i], &reader, &error)) {
			fprintf(stderr, "event_numbers: %s cannot be read\n", argv[i]);
			return 2;
		}
		say_events(reader, reader->header.pid);
		say_blocks(reader, CUF_SEC_LEDGER, reader->header.pid);
		say_incidents(reader, reader->header.pid);
		reader_close(reader);
	}
	return 0;
}
