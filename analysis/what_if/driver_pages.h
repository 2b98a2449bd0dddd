/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a device as the driver gives it out, the floor below every allocator model. A
 * request above 1 MiB has whole pages of 2 MiB. Small ones may use the tail of the last. A small
 * one has slots of 512 bytes in a page that it shares, first fit by address. A page is released
 * when nothing is left in it.
 *
 * Contract: heap memory, freed by driver_pages_free. Addresses are made up, lowest first, and never
 * 0; they say which block comes before which. driver_give takes what driver_take returned, with the
 * same size. No errors but "refused", for which the capacity is the one reason.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct driver_pages;

struct driver_figures {
	uint64_t capacity_bytes;
	uint64_t used_bytes; /* in whole pages */
	uint64_t peak_bytes;
	uint64_t calls;      /* of all functions below but driver_look */
	uint64_t refused;    /* of these */
};

struct driver_pages *driver_pages_new(uint64_t capacity_bytes, uint64_t granularity_bytes);
void driver_pages_free(struct driver_pages *driver); /* NULL is fine */

/* cuMemAlloc and cuMemFree. False: refused. */
bool driver_take(struct driver_pages *driver, uint64_t bytes, uint64_t *addr);
void driver_give(struct driver_pages *driver, uint64_t addr, uint64_t bytes);

/* cuMemCreate and cuMemRelease: physical memory, mapped by the caller where it likes. The size is a
 * multiple of the granularity. */
bool driver_create(struct driver_pages *driver, uint64_t bytes);
void driver_release(struct driver_pages *driver, uint64_t bytes);
/* cuMemAddressReserve: addresses without memory. */
uint64_t driver_reserve(struct driver_pages *driver, uint64_t bytes);
void driver_unreserve(struct driver_pages *driver, uint64_t addr, uint64_t bytes);

struct driver_figures driver_look(const struct driver_pages *driver);
