/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/replay/rank.h"

#include <string.h>
#include "interpose/abi/format.h"

const char *rank_of_texts(const struct fact_meta_text *texts, size_t count)
{
	static const char *const names[] = { "RANK=", "LOCAL_RANK=", "OMPI_COMM_WORLD_RANK=",
					     "SLURM_PROCID=" };

	for (size_t n = 0; n < sizeof names / sizeof *names; n++)
		for (size_t i = 0; i < count; i++)
			if (texts[i].type == CUF_META_ENV &&
			    !strncmp(texts[i].text, names[n], strlen(names[n])))
				return texts[i].text + strlen(names[n]);
	return NULL;
}
