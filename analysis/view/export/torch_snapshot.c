/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snapshot of torch.cuda.memory._dump_snapshot(), for pytorch.org/memory_viz and
 * torch.cuda._memory_viz: the segments at the moment, and what happened before it.
 */
#include "analysis/view/export/torch_snapshot.h"

#include <stdlib.h>

static int write_torch(struct export_target *target, struct rows *rows)
{
	const struct facts *facts = rows_facts(rows);
	const uint32_t shown = 1u << CUF_KIND_DEVICE | 1u << CUF_KIND_MANAGED |
			       1u << CUF_KIND_ASYNC | 1u << CUF_KIND_VMM | 1u << CUF_KIND_ARRAY |
			       1u << CUF_KIND_IMPORTED | 1u << CUF_KIND_FRAMEWORK;
	uint32_t kinds = rows_filter_of(rows)->kinds & shown;
	struct torch torch = { .rows = rows };

	if (!kinds) {
		snprintf(target->error, sizeof target->error,
			 "a snapshot has memory of devices only; leave out --kind");
		return -1;
	}
	if (!facts->device_count) {
		snprintf(target->error, sizeof target->error,
			 "the recording has no memory of a device, and a snapshot has no other; "
			 "folded and pprof have the host's");
		return -1;
	}
	while (torch.process + 1 < facts->process_count && !rows_want_process(rows, torch.process))
		torch.process++;
	if (kinds >> CUF_KIND_VMM & 1) /* what is mapped */
		kinds |= 1u << CUF_KIND_MAPPING;
	rows_want_kinds(rows, kinds);
	pickle_begin(&torch.pickle, target->file);
	pickle_begin_dict(&torch.pickle);
	pickle_word(&torch.pickle, "segments");
	torch_put_segments(&torch);
	pickle_word(&torch.pickle, "device_traces");
	torch_put_traces(&torch);
	pickle_word(&torch.pickle, "allocator_settings");
	pickle_begin_dict(&torch.pickle);
	pickle_end_dict(&torch.pickle);
	pickle_word(&torch.pickle, "external_annotations");
	pickle_begin_list(&torch.pickle);
	pickle_end_list(&torch.pickle);
	pickle_end_dict(&torch.pickle);
	pickle_end(&torch.pickle);
	free(torch.kept);
	return 0;
}

const struct export_format export_torch_snapshot = {
	.name = "torch-snapshot",
	.ending = ".pickle",
	.about = "segments and history of GPU memory as PyTorch's snapshot, for memory_viz",
	.binary = true,
	.takes_moment = true,
	.one_process = true,
	.write = write_torch,
};
