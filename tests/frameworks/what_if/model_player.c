/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_player MODEL VALUES CAPACITY: plays lines of the standard input on a model: "a BLOCK BYTES GROUP" and
 * "f BLOCK"; "r" begins anew. After each it prints what the model has of the driver, and "-" where
 * it refused. On the standard error: the first line of each trace at which the real allocator may have done
 * something else, from 1; 0: none. For tests that compare a model with the real allocator.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/what_if/allocator_model.h"

enum { BLOCKS = 1 << 16 };

static const struct allocator_model *find(const char *id)
{
	for (size_t i = 0; allocator_models[i]; i++)
		if (!strcmp(allocator_models[i]->id, id))
			return allocator_models[i];
	return NULL;
}

static void *open_model(const struct allocator_model *model, const char *typed,
			struct driver_pages **driver, uint64_t capacity_bytes)
{
	struct arena *arena = arena_new();
	struct model_values values;
	const char *why = "";
	void *state = NULL;

	*driver = driver_pages_new(capacity_bytes, 2 << 20);
	if (model_values_parse(model, typed, &values, arena, &why))
		state = model->open(&values,
				    &(struct model_ground){ .driver = *driver,
							    .total_bytes = capacity_bytes,
							    .limit_bytes = UINT64_MAX,
							    .block_count = BLOCKS,
							    .version = "" },
				    &why);
	if (!state) {
		fprintf(stderr, "model_player: %s\n", why);
		exit(2);
	}
	arena_free(arena);
	return state;
}

int main(int argc, char **argv)
{
	const struct allocator_model *model = argc == 4 ? find(argv[1]) : NULL;
	struct driver_pages *driver;
	unsigned long long bytes;
	unsigned block, group, step = 0, first = 0;
	char line[128];
	void *state;

	if (!model)
		return 2;
	state = open_model(model, argv[2], &driver, strtoull(argv[3], NULL, 10));
	while (fgets(line, sizeof line, stdin)) {
		int refused = 0;

		if (*line == 'r') {
			model->close(state);
			driver_pages_free(driver);
			fprintf(stderr, "%u\n", first);
			first = step = 0;
			state = open_model(model, argv[2], &driver, strtoull(argv[3], NULL, 10));
		} else if (sscanf(line, "a %u %llu %u", &block, &bytes, &group) == 3) {
			refused = !model->alloc(state, &(struct model_request){
							       .bytes = bytes,
							       .block = block % BLOCKS,
							       .group = group });
		} else if (sscanf(line, "f %u", &block) == 1) {
			model->free(state, block % BLOCKS);
		}
		printf("%llu%s\n", (unsigned long long)model->look(state).reserved_bytes,
		       refused ? " -" : "");
		step++;
		if (!first && model->look(state).free_choices)
			first = step;
	}
	fprintf(stderr, "%u\n", first);
	return 0;
}
