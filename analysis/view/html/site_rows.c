/* SPDX-License-Identifier: Apache-2.0 */
/* Each site is compared with the rows so far, which are few. */
#include "analysis/view/html/site_rows.h"

#include <stdlib.h>
#include "analysis/base/xalloc.h"

struct row {
	struct place place;
	const char *role;
	uint32_t site; /* the first */
};

struct site_rows { struct row *items; size_t count, room; };

static uint32_t page_row(struct site_rows *rows, const struct timeline *timeline, uint32_t number,
			 const struct place *place)
{
	const struct timeline_site *site = &timeline->sites[number];
	const char *role = site->known ? site->known->role : NULL;

	for (size_t i = 0; i < rows->count; i++) {
		struct row *row = &rows->items[i];
		if (timeline->sites[row->site].layer != site->layer ||
		    !place_shares_row(&row->place, row->role, place, role,
				      site->layer == TIMELINE_HOST))
			continue;
		if (!row->role)
			row->role = role;
		return row->site;
	}
	xalloc_grow(&rows->items, rows->count, &rows->room, sizeof *rows->items);
	rows->items[rows->count++] = (struct row){ *place, role, number };
	return number;
}

uint32_t *site_rows(const struct timeline *timeline, struct places *places)
{
	uint32_t *of_site = xalloc_zeroed(timeline->site_count, sizeof *of_site);
	struct site_rows rows = { 0 };

	for (uint32_t i = 0; i < timeline->site_count; i++) {
		struct place place;
		of_site[i] = i;
		if (timeline->sites[i].is_rest)
			continue;
		place_of(places, &timeline->sites[i].stack, &place);
		of_site[i] = page_row(&rows, timeline, i, &place);
	}
	free(rows.items);
	return of_site;
}
