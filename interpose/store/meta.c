/* SPDX-License-Identifier: Apache-2.0 */
/* Appends records to META: reserve by one atomic add, fill, publish the type last. */
#include "interpose/store/meta.h"

#include <string.h>
#include "interpose/platform/clock.h"
#include "interpose/store/dropped.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

/* Reserves a record; its type is still 0. NULL: no room. */
static struct cuf_meta *reserve(size_t bytes)
{
	struct cuf_recording *r = &cuf_recording;
	uint64_t at;
	struct cuf_meta *meta;
	if (!r->base)
		return NULL;
	bytes = (bytes + 7) & ~(size_t)7;
	/* what did not fit leaves meta_used beyond the section: nothing after it is read, so stop at the first miss */
	at = __atomic_load_n(&r->header->meta_used, __ATOMIC_RELAXED);
	do {
		if (at + bytes > r->meta_bytes) {
			cuf_count_dropped(CUF_LOST_META);
			return NULL;
		}
	} while (!__atomic_compare_exchange_n(&r->header->meta_used, &at, at + bytes, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	meta = (struct cuf_meta *)(r->meta + at);
	meta->bytes = (uint32_t)bytes;
	meta->time_ns = cuf_now_ns();
	return meta;
}

static void publish(struct cuf_meta *meta, unsigned type) { __atomic_store_n(&meta->type, (uint16_t)type, __ATOMIC_RELEASE); }

void cuf_meta_text(unsigned type, uint64_t number, const char *text, size_t bytes)
{
	struct cuf_meta *meta;
	if (bytes > 4096)
		bytes = 4096;
	meta = reserve(sizeof *meta + bytes);
	if (!meta)
		return;
	meta->number = number;
	meta->text_bytes = (uint32_t)bytes;
	memcpy(meta + 1, text, bytes);
	publish(meta, type);
}

void cuf_meta_record(const struct cuf_meta *record, size_t bytes)
{
	struct cuf_meta *meta = bytes <= 4096 ? reserve(bytes) : NULL;
	if (!meta)
		return;
	meta->time_ns = record->time_ns;
	meta->number = record->number;
	memcpy(meta + 1, record + 1, bytes - sizeof *record);
	publish(meta, record->type);
}

void cuf_meta_module(uint64_t id, uint64_t base, uint64_t start, uint64_t end, const uint8_t *build_id, unsigned build_id_bytes,
		     const char *path, size_t path_bytes)
{
	struct cuf_meta_module *module;
	if (path_bytes > 4096)
		path_bytes = 4096;
	module = (struct cuf_meta_module *)reserve(sizeof *module + path_bytes);
	if (!module)
		return;
	module->meta.number = id;
	module->base = base;
	module->start = start;
	module->end = end;
	module->build_id_bytes = build_id_bytes < sizeof module->build_id ? build_id_bytes : (uint32_t)sizeof module->build_id;
	memcpy(module->build_id, build_id, module->build_id_bytes);
	module->path_bytes = (uint32_t)path_bytes;
	memcpy(module + 1, path, path_bytes);
	publish(&module->meta, CUF_META_MODULE);
}

void cuf_meta_module_end(uint64_t id) { cuf_meta_text(CUF_META_MODULE_END, id, "", 0); }
