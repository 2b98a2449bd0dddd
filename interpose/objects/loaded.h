/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loaded object at an address. Asked of the loader where it can answer without its lock
 * (_dl_find_object, glibc 2.35 and later), which is found at run time. Elsewhere a list of our own
 * answers, which is read from the loader's list without a lock.
 *
 * Contract: no lock, no allocation, errno untouched; any thread, also in a signal handler and
 * before the constructor. The list has the objects of the first namespace, at most 2048. While one
 * thread reads the loader's list, another one that asks for an object that is not in ours yet gets
 * no answer.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct cuf_loaded {
	/* mapped range */
	uintptr_t start, end;
	/* PT_GNU_EH_FRAME at run time; 0: none */
	uintptr_t eh_frame_hdr;
	/* never NULL; in place only while the object stays */
	struct link_map *map;
};

/* false: no object is loaded there. */
bool cuf_loaded_at(uintptr_t addr, struct cuf_loaded *found);

/* The same, always by our own list. */
bool cuf_loaded_listed_at(uintptr_t addr, struct cuf_loaded *found);
