/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts freed code objects, before 3.12 and with host=full. The address of a code object may be
 * another function's a moment later, and reading its name at every stack costs four times the
 * rest. So a destructor that counts is put in front of the interpreter's: while the count of an
 * address is unchanged, so is the code there.
 *
 * Owns that one word of the interpreter. Must never write it where it is not what the headers
 * describe; then code is identified by its name and file instead.
 */
#include <string.h>
#include "interpose/code/modules.h"
#include "interpose/platform/readable.h"
#include "interpose/python/python_parts.h"
#include "interpose/platform/laws.h"

/* In a type object of 3.9 to 3.11: its name, and what frees its objects. */
enum { TYPE_NAME = 24, TYPE_FREE = 48 };

uint32_t cuf_python_frees[CUF_PYTHON_FREES];
static void (*free_code)(void *code);

/* The GIL orders the count before whatever the next owner of the address does. */
static void count_and_free(void *code)
{
	__atomic_fetch_add(cuf_python_frees_of((uintptr_t)code), 1, __ATOMIC_RELAXED);
	free_code(code);
}

bool cuf_python_frees_are_counted(uintptr_t code_type)
{
	return cuf_python_load(code_type + TYPE_FREE) == (uintptr_t)count_and_free;
}

/* True for a type whose name is "code". *function: its destructor. */
static bool read_code_type(uintptr_t code_type, uint64_t *function)
{
	static const char name[] = "code";
	char found[sizeof name];
	uint64_t at;

	return cuf_readable_copy(&at, code_type + TYPE_NAME, sizeof at) &&
	       cuf_readable_copy(found, at, sizeof found) && !memcmp(found, name, sizeof name) &&
	       cuf_readable_copy(function, code_type + TYPE_FREE, sizeof *function);
}

bool cuf_python_count_frees(uintptr_t code_type)
{
	struct cuf_object object, of_function;
	uint64_t function;

	if (!cuf_object_find(code_type, &object) || !read_code_type(code_type, &function))
		return false;
	if (function == (uintptr_t)count_and_free)
		return true;
	/* only a writable word that leads into the interpreter's code */
	if (!cuf_object_find(function, &of_function) || of_function.start != object.start ||
	    cuf_object_access(&object, function) != (PF_R | PF_X) ||
	    cuf_object_access(&object, code_type + TYPE_FREE) != (PF_R | PF_W))
		return false;
	free_code = (void (*)(void *))function;
	__atomic_store_n((uintptr_t *)(code_type + TYPE_FREE), (uintptr_t)count_and_free,
			 __ATOMIC_RELEASE);
	return true;
}
