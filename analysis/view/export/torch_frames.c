/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a call site, written once and repeated by number. */
#include "analysis/view/export/torch_snapshot.h"

#include <string.h>
#include "analysis/base/xalloc.h"

static void keep(struct torch *torch, uint32_t site)
{
	size_t room = torch->kept_room;

	if (site >= room) {
		torch->kept_room = 2 * ((size_t)site + 64);
		torch->kept = xalloc_resize(torch->kept, torch->kept_room, 1);
		memset(torch->kept + room, 0, torch->kept_room - room);
	}
	torch->kept[site] = 1;
}

void torch_frames(struct torch *torch, uint32_t site)
{
	const struct frame *frames;
	size_t count;
	char name[NAME_BYTES];

	if (site < torch->kept_room && torch->kept[site]) {
		pickle_repeat(&torch->pickle, PICKLE_MEMO_FIRST + site);
		return;
	}
	count = rows_site_frames(torch->rows, site, &frames);
	pickle_begin_list(&torch->pickle);
	for (size_t i = 0; i < count; i++) {
		pickle_begin_dict(&torch->pickle);
		pickle_word(&torch->pickle, "name");
		name_function(&frames[i], name, sizeof name);
		pickle_text(&torch->pickle, name);
		pickle_word(&torch->pickle, "filename");
		pickle_text(&torch->pickle, frames[i].file ? frames[i].file : "??");
		pickle_word(&torch->pickle, "line");
		pickle_number(&torch->pickle, frames[i].line);
		pickle_end_dict(&torch->pickle);
	}
	pickle_end_list(&torch->pickle);
	pickle_keep(&torch->pickle, PICKLE_MEMO_FIRST + site);
	keep(torch, site);
}
