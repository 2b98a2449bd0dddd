/* SPDX-License-Identifier: Apache-2.0 */
/* What several structs are made of: frames, kinds of blocks, owners, layers. */
#include "analysis/view/json/shapes.h"

#include "analysis/facts/kinds.h"

const struct words basis_words = WORDS("basis", basis_names,
	.meaning = "how the figure was come by; null for unknown figures");
const struct words kind_words = WORDS("kind", kind_names);
const struct words end_words = WORDS("end_state", end_names);

#define OF struct frame
static const struct field frame_fields[] = {
	{ "function", TEXT_OR_NULL(function) },
	{ "module", TEXT_OR_NULL(module) },
	{ "file", TEXT_OR_NULL(file) },
	{ "line", POSITIVE(line) },
	{ "language", TEXT(language), LIMITS("enum": ["native", "python"]) },
	{ "address", HEX(addr) },
	{ "inlined", FLAG(inlined) },
};
const struct shape frame_shape = SHAPE("frame", frame_fields);
#undef OF

static const char *const owner_sources[] = { NULL, "nvml" };
const struct words owner_words = WORDS(NULL, owner_names);
static const struct words source_words = WORDS(NULL, owner_sources);

static struct json_object *owner_source(const struct fields *fields, const void *object)
{
	const struct fact_owner_row *row = object;

	return row->by_nvml ? json_text("nvml") : NULL;
}

/* Managed memory is listed too, but it moves between host and device and is not in the sum. */
#define OF struct fact_owner_row
static const struct field owner_fields[] = {
	{ "kind", NAME(kind, owner_words) },
	{ "role", TEXT_OR_NULL(role), .meaning = "what the blocks are for" },
	{ "role_basis", BASIS(role_basis) },
	{ "bytes", NUMBER(bytes) },
	{ "count", NUMBER(count) },
	{ "basis", BASIS(basis) },
	{ "pid", POSITIVE(pid) },
	{ "name", TEXT_OR_NULL(name), .meaning = "of another process, where it could be read" },
	{ "source", .words = &source_words, VALUE(NAME, owner_source),
	  .meaning = "nvml: reported by NVML, or computed from that; null: as recorded" },
	{ "in_sum", FLAG(in_sum) },
};
const struct shape owner_shape = SHAPE("owner", owner_fields);
#undef OF

/* A request can use only the free ranges of the layer that serves it. */
struct layers { struct fact_layer at[LAYER_MAX]; };
#define OF struct layers
static const struct field layer_basis_fields[] = {
	{ "device_upper_bound_bytes", LAYER(at[LAYER_DEVICE]) },
	{ "measured_bytes", LAYER(at[LAYER_MEASURED]) },
	{ "page_hole_bytes", LAYER(at[LAYER_PAGE]) },
	{ "pool_bytes", LAYER(at[LAYER_POOL]) },
	{ "vmm_bytes", LAYER(at[LAYER_VMM]) },
	{ "segment_bytes", LAYER(at[LAYER_SEGMENT]) },
	{ "host_bytes", LAYER(at[LAYER_HOST]) },
};
static const struct shape layer_basis_shape = SHAPE(NULL, layer_basis_fields,
	.meaning = "what kind of figure it is: upper bound, measured, exact ...");

static const struct field layers_fields[] = {
	{ "device_upper_bound_bytes", NUMBER(at[LAYER_DEVICE].bytes) },
	{ "measured_bytes", NUMBER(at[LAYER_MEASURED].bytes) },
	{ "page_hole_bytes", NUMBER(at[LAYER_PAGE].bytes) },
	{ "pool_bytes", NUMBER(at[LAYER_POOL].bytes) },
	{ "vmm_bytes", NUMBER(at[LAYER_VMM].bytes) },
	{ "segment_bytes", NUMBER(at[LAYER_SEGMENT].bytes) },
	{ "host_bytes", NUMBER(at[LAYER_HOST].bytes) },
	{ "basis", PART(layer_basis_shape) },
};
const struct shape layers_shape = SHAPE("largest_free", layers_fields,
	.meaning = "null: the layer is absent or cannot be seen; 0: it is there and has no hole");
#undef OF
