/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of call sites and sums of values, which every part of the account adds to. */
#include "analysis/gate/take/account.h"

#include "analysis/base/xalloc.h"

static struct fact_stack copy_stack(const struct account_process *from, uint32_t id)
{
	struct fact_stack stack = { .process = from->process, .time_ns = CUF_UNKNOWN };
	const uint64_t *addrs = reader_stack(from->recorded->reader, id, &stack.depth, &stack.stop);

	if (stack.depth) {
		stack.id = id;
		stack.addrs = arena_copy(from->account->arena, addrs, stack.depth, sizeof *addrs);
	}
	return stack;
}

struct account_site *account_site_of(const struct account_process *from, enum gate_group group,
				     uint32_t stack)
{
	struct account *account = from->account;
	uint64_t owner = (uint64_t)from->process * GROUP_MAX + group;
	uint32_t id = reader_call_site(from->recorded->reader, stack);
	uint32_t *place = hash_index_place(&account->index, owner << 32 | id);

	if (!*place) {
		xalloc_grow(&account->sites, account->site_count, &account->site_room,
			    sizeof *account->sites);
		account->sites[account->site_count] =
			(struct account_site){ .stack = copy_stack(from, id), .group = group };
		*place = (uint32_t)++account->site_count;
	}
	return &account->sites[*place - 1];
}

void account_add(struct gate_value *sum, uint64_t value, uint64_t low, uint64_t high,
		 const char *why)
{
	if (value == CUF_UNKNOWN || sum->value == CUF_UNKNOWN)
		sum->value = CUF_UNKNOWN;
	else
		sum->value += value;
	sum->low += low;
	if (high == CUF_UNKNOWN || sum->high == CUF_UNKNOWN)
		sum->high = CUF_UNKNOWN;
	else
		sum->high += high;
	if (!*sum->why)
		sum->why = why;
}
