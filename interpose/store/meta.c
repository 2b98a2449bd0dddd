/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends records to META: one atomic add reserves the bytes, and the type, stored last,
 * publishes the record.
 */
#include "interpose/store/meta.h"

#include <string.h>
#include "interpose/platform/clock.h"
#include "interpose/store/dropped.h"
#include "interpose/store/fault.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum { TEXT_BYTES_MAX = 4096 };

/* Reserves a record whose type is still 0. NULL: it does not fit. */
static struct cuf_meta *reserve(size_t bytes)
{
	struct cuf_header *header = cuf_recording.header;
	struct cuf_meta *meta;
	uint64_t at;

	if (!cuf_recording.base)
		return NULL;
	bytes = (bytes + 7) & ~(size_t)7;
	/* meta_used must never pass the section's end, as a reader stops there: so no plain add */
	at = __atomic_load_n(&header->meta_used, __ATOMIC_RELAXED);
	do {
		if (at > cuf_recording.meta_bytes) {
			cuf_fault(CUF_FAULT_META);
			return NULL;
		}
		if (bytes > cuf_recording.meta_bytes - at) {
			cuf_count_dropped(CUF_LOST_META);
			return NULL;
		}
	} while (!__atomic_compare_exchange_n(&header->meta_used, &at, at + bytes, 1,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	meta = (struct cuf_meta *)(cuf_recording.meta + at);
	meta->bytes = (uint32_t)bytes;
	meta->time_ns = cuf_now_ns();
	return meta;
}

static void publish(struct cuf_meta *meta, unsigned type)
{
	__atomic_store_n(&meta->type, (uint16_t)type, __ATOMIC_RELEASE);
}

void cuf_meta_text(unsigned type, uint64_t number, const char *text, size_t bytes)
{
	struct cuf_meta *meta;

	if (bytes > TEXT_BYTES_MAX)
		bytes = TEXT_BYTES_MAX;
	meta = reserve(sizeof *meta + bytes);
	if (!meta)
		return;
	meta->number = number;
	meta->text_bytes = (uint32_t)bytes;
	memcpy(meta + 1, text, bytes);
	publish(meta, type);
}

/* While it is written it has no type, like a record that was never finished. */
void cuf_meta_rewrite(struct cuf_meta **record, unsigned type, uint64_t number, const char *text,
		      size_t bytes, size_t room)
{
	struct cuf_meta *meta = *record;

	if (bytes > room)
		bytes = room;
	if (!meta) {
		meta = *record = reserve(sizeof *meta + room);
		if (!meta)
			return;
	} else {
		__atomic_store_n(&meta->type, 0, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_RELEASE);
		meta->time_ns = cuf_now_ns();
	}
	meta->number = number;
	meta->text_bytes = (uint32_t)bytes;
	memcpy(meta + 1, text, bytes);
	publish(meta, type);
}

void cuf_meta_record(unsigned type, uint64_t number, const void *body, size_t bytes)
{
	struct cuf_meta *meta = NULL;

	if (bytes <= TEXT_BYTES_MAX)
		meta = reserve(sizeof *meta + bytes);
	if (!meta)
		return;
	meta->number = number;
	memcpy(meta + 1, body, bytes);
	publish(meta, type);
}

void cuf_meta_module(uint64_t id, uint64_t base, uint64_t start, uint64_t end,
		     const uint8_t *build_id, unsigned build_id_bytes, const char *path,
		     size_t path_bytes)
{
	struct cuf_meta_module *module;

	if (path_bytes > TEXT_BYTES_MAX)
		path_bytes = TEXT_BYTES_MAX;
	module = (struct cuf_meta_module *)reserve(sizeof *module + path_bytes);
	if (!module)
		return;
	if (build_id_bytes > sizeof module->build_id)
		build_id_bytes = sizeof module->build_id;
	module->meta.number = id;
	module->base = base;
	module->start = start;
	module->end = end;
	module->build_id_bytes = build_id_bytes;
	memcpy(module->build_id, build_id, build_id_bytes);
	module->path_bytes = (uint32_t)path_bytes;
	memcpy(module + 1, path, path_bytes);
	publish(&module->meta, CUF_META_MODULE);
}

void cuf_meta_module_end(uint64_t id) { cuf_meta_text(CUF_META_MODULE_END, id, "", 0); }
