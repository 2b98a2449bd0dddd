/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded objects, as the stacks need them: which file, build-id and load address an address belongs to, written once
 * into META (CUF_META_MODULE) at first sight of one of its addresses, and closed (CUF_META_MODULE_END) when it went.
 *
 * Contract: nothing here takes a lock, allocates, or calls anything in libc that does (_dl_find_object is lock-free,
 * glibc 2.35 and later; older: a snapshot made at start, so objects loaded later are not known). Any thread, any time
 * after cuf_modules_init. What is borrowed from an object (path, unwind table) is good while the object is loaded.
 * At most 1024 objects are held at a time; more are counted (CUF_LOST_META) and their addresses stay without a module.
 */
#ifndef CUF_MODULES_H
#define CUF_MODULES_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* What the loader knows about the object that holds an address. */
struct cuf_object {
	uintptr_t start, end;   /* mapped range; may have unreadable gaps between segments */
	uintptr_t base;         /* load bias: run-time address - ELF address */
	uintptr_t eh_frame_hdr; /* PT_GNU_EH_FRAME at run time; 0 none */
	const char *path;       /* as loaded; "" the executable */
};

/* A readable segment of an object: start <= addr < end. */
struct cuf_span {
	uintptr_t start, end;
};

/* Called once for each object, when it is noted, on the thread that met it; bias and dynamic as in struct link_map. */
typedef void cuf_module_listener(uintptr_t bias, const ElfW(Dyn) *dynamic);

/* Each time a recording begins, the first time in the constructor: notes the executable, the vdso, ourselves and libc.
 * on_new_object may be NULL. */
void cuf_modules_init(cuf_module_listener *on_new_object);
void cuf_modules_note(uint64_t code_addr); /* makes sure that the object holding this address is in META */
uint64_t cuf_modules_generation(void);     /* changes when an object may have gone; never 0 */
void cuf_modules_changed(void);            /* after a dlclose: notes the end of objects that are gone, bumps the generation */
/* In a forked child, before its recording begins: forgets what was noted; writes nothing. */
void cuf_modules_atfork_child(void);
bool cuf_modules_is_self(uint64_t code_addr); /* inside this library; never so when it was linked into the executable */

bool cuf_object_find(uintptr_t addr, struct cuf_object *object);
/* The readable part of the object around addr. false: none, or addr lies in a gap. An object whose program headers
 * cannot be seen answers with its whole range. */
bool cuf_object_span(const struct cuf_object *object, uintptr_t addr, struct cuf_span *span);
/* PF_R, PF_W and PF_X as the object's program headers give them, less PF_W where the loader took it away after relocation.
 * 0: a gap, or the headers cannot be seen. */
unsigned cuf_object_access(const struct cuf_object *object, uintptr_t addr);

#endif
