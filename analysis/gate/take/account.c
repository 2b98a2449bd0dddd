/* SPDX-License-Identifier: Apache-2.0 */
/* Lets each part add its groups. */
#include "analysis/gate/take/account.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/facts.h"

static void start(struct account *account)
{
	for (int i = 0; i < GROUP_MAX; i++)
		account->peak[i] = account->end[i] = (struct gate_value){ .why = "" };
}

/* The recorder counts the peak of each device itself, whatever the rings lost. */
static void take_counted_peaks(struct account *account, const struct facts *facts)
{
	struct gate_value peak = { .why = "" };

	for (size_t i = 0; i < facts->device_count; i++) {
		const struct fact_device *device = &facts->devices[i];
		uint64_t bytes = device->peak_bytes;
		if (device->peak_basis == BASIS_OBSERVED || facts->process_count < 2)
			account_add(&peak, bytes, known_or_zero(bytes), bytes, "");
		else
			account_add(&peak, bytes, 0, bytes,
				    "older events of one of several processes are overwritten");
	}
	account->peak[GROUP_DEVICE] = peak;
}

void account_read(struct account *out, const struct facts *facts, struct run *run,
		  struct arena *arena)
{
	*out = (struct account){ .arena = arena };
	hash_index_init(&out->index, 64);
	start(out);
	for (uint32_t i = 0; i < run->count; i++) {
		struct account_process from = { out, facts, &run->processes[i], i };
		account_device(&from);
		account_host(&from);
	}
	take_counted_peaks(out, facts);
}

void account_free(struct account *account)
{
	hash_index_fini(&account->index);
	free(account->sites);
	*account = (struct account){ 0 };
}
