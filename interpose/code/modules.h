/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded objects, as stacks need them: the file, build-id and load address that an address
 * belongs to. An object is written into META (CUF_META_MODULE) when one of its addresses is first
 * met, and closed (CUF_META_MODULE_END) when it is gone.
 *
 * Contract: no function takes a lock, allocates, or calls a libc function that does (objects/
 * finds objects without the loader's lock). Any thread, any time after cuf_modules_init. What is
 * borrowed from an object (path, unwind table) is valid while the object is loaded. Of an object
 * that this thread is not in, everything is copied by the kernel, as another thread may close it.
 * At most 1024 objects are held at a time; more are counted (CUF_LOST_META), and their addresses
 * stay without a module.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* The object that holds an address, as the loader has it. */
struct cuf_object {
	/* mapped range; there may be unreadable gaps between segments */
	uintptr_t start, end;
	/* load bias: run-time address - ELF address */
	uintptr_t base;
	/* PT_GNU_EH_FRAME at run time; 0: none */
	uintptr_t eh_frame_hdr;
	/* as loaded; "" for the executable */
	const char *path;
};

/* A readable segment of an object: start <= addr < end. */
struct cuf_span {
	uintptr_t start, end;
};

/*
 * Called once for each object, when it is noted, on the thread that met it. bias and dynamic as
 * in struct link_map.
 */
typedef void cuf_module_listener(uintptr_t bias, const ElfW(Dyn) *dynamic);

/*
 * Called when a recording begins, the first time in the constructor. Notes the executable, the
 * vdso, this library and libc. on_new_object may be NULL.
 */
void cuf_modules_init(cuf_module_listener *on_new_object);

/*
 * Makes sure that the object that holds this address is in META. The address is on this thread's
 * stack; cuf_modules_note_going is for any other one.
 */
void cuf_modules_note(uint64_t code_addr);
void cuf_modules_note_going(uint64_t code_addr);

/* To be called after a dlclose: closes objects that are gone and changes the generation. */
void cuf_modules_changed(void);

/* Changes when an object may have gone; never 0. */
uint64_t cuf_modules_generation(void);

/*
 * Which object is at an address, where that changes: 0 where no object was closed so far, and else
 * a number of the one that is there now (0: none), the same whenever that one is loaded there. To
 * be mixed into what is remembered by addresses.
 */
uint64_t cuf_modules_epoch(uint64_t code_addr);
uint64_t cuf_modules_epoch_going(uint64_t code_addr);

/* True when cuf_modules_epoch may differ from 0. */
bool cuf_modules_any_closed(void);

/*
 * For an object that is noted: exchanges the number of frames of the recording that were searched
 * for addresses in it. false: it is not noted, so no frame is in it.
 */
bool cuf_modules_searched(const struct cuf_object *object, uint64_t frames, uint64_t *before);

/* True inside this library. Always false when it was linked into the executable. */
bool cuf_modules_is_self(uint64_t code_addr);

/* false: no object is loaded there. */
bool cuf_object_find(uintptr_t addr, struct cuf_object *object);
/*
 * The same for an object that another thread may close at any moment: nothing of it or of the
 * loader's data is read in place. path may end at once.
 */
bool cuf_object_find_going(uintptr_t addr, struct cuf_object *object);

/*
 * The readable segment of the object around addr. false: none, or addr is in a gap. An object
 * whose program headers cannot be seen answers with its whole range.
 */
bool cuf_object_span(const struct cuf_object *object, uintptr_t addr, struct cuf_span *span);

/*
 * PF_R, PF_W and PF_X from the program headers, without PF_W where the loader removed it after
 * relocation. 0: a gap, or the headers cannot be seen.
 */
unsigned cuf_object_access(const struct cuf_object *object, uintptr_t addr);
