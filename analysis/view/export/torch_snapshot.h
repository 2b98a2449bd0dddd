/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of a PyTorch snapshot share. Contract: private to them; as in formats.h. */
#pragma once

#include "analysis/view/export/formats.h"
#include "analysis/view/export/names.h"
#include "analysis/view/export/pickle.h"

struct torch {
	struct pickle pickle;
	struct rows *rows;
	uint32_t process;
	unsigned ordinal;        /* the driver's, of the device that is being written */
	uint8_t *kept;           /* by site: its frames were written */
	size_t kept_room;
	struct holders *holders; /* torch_trace.c */
};

static inline void torch_put(struct torch *torch, const char *key, uint64_t number)
{
	pickle_word(&torch->pickle, key);
	pickle_number(&torch->pickle, number);
}

static inline bool torch_has_kind(const struct torch *torch, unsigned kind)
{
	return kind < CUF_KIND_MAX && rows_filter_of(torch->rows)->kinds >> kind & 1;
}

void torch_frames(struct torch *torch, uint32_t site);
void torch_put_segments(struct torch *torch);
/* One list of events for each device up to the last that was used. */
void torch_put_traces(struct torch *torch);
