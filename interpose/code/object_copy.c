/* SPDX-License-Identifier: Apache-2.0 */
/* Reads program headers, notes and the path of an object. */
#include "interpose/code/object_copy.h"

#include <elf.h>
#include <string.h>
#include "interpose/platform/guarded_copy.h"
#include "interpose/platform/laws.h"

enum { HEAD_BYTES = CUF_PATH_BYTES_MAX, NOTES_BYTES_MAX = 512 };

/* None where the first page does not have them all. */
static void copy_headers(struct cuf_object_copy *to, const uint8_t *page)
{
	ElfW(Ehdr) head;

	memcpy(&head, page, sizeof head);
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_phentsize != sizeof(ElfW(Phdr)) ||
	    head.e_phoff > HEAD_BYTES || head.e_phoff % 8 || head.e_phnum > CUF_HEADERS_MAX ||
	    head.e_phnum > (HEAD_BYTES - head.e_phoff) / sizeof(ElfW(Phdr)))
		return;
	to->count = head.e_phnum;
	memcpy(to->segments, page + head.e_phoff, to->count * sizeof(ElfW(Phdr)));
}

/* Searches a copy of the notes of one segment for the GNU build-id. */
static bool find_build_id(const uint8_t *notes, size_t bytes, struct cuf_object_copy *to)
{
	for (size_t at = 0; bytes - at >= sizeof(ElfW(Nhdr));) {
		ElfW(Nhdr) note;
		size_t name = at + sizeof note, text, next;

		memcpy(&note, notes + at, sizeof note);
		if (note.n_namesz > bytes || note.n_descsz > bytes)
			return false;
		text = name + ((note.n_namesz + 3ul) & ~3ul);
		next = text + ((note.n_descsz + 3ul) & ~3ul);
		if (next > bytes)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4)) {
			to->build_id_bytes = note.n_descsz < CUF_BUILD_ID_MAX ? note.n_descsz
									  : CUF_BUILD_ID_MAX;
			memcpy(to->build_id, notes + text, to->build_id_bytes);
			return true;
		}
		at = next;
	}
	return false;
}

/* Linkers place notes in the first page as well; one that is not there is copied. */
static void copy_build_id(struct cuf_object_copy *to, const uint8_t *page)
{
	uint8_t copy[NOTES_BYTES_MAX];

	for (unsigned i = 0; i < to->count; i++) {
		const ElfW(Phdr) *segment = &to->segments[i];
		uintptr_t from = to->object->base + segment->p_vaddr;
		size_t bytes = segment->p_memsz < sizeof copy ? segment->p_memsz : sizeof copy;
		const uint8_t *notes = copy;

		if (segment->p_type != PT_NOTE || segment->p_vaddr % 4)
			continue;
		if (from - to->object->start <= HEAD_BYTES - bytes)
			notes = page + (from - to->object->start);
		else
			bytes = cuf_guarded_copy_part(copy, from, bytes);
		if (find_build_id(notes, bytes, to))
			return;
	}
}

void cuf_object_take_copy(struct cuf_object_copy *to, const struct cuf_object *object)
{
	uint8_t *page = (uint8_t *)to->path; /* room, until the path is there */

	to->object = object;
	to->count = to->build_id_bytes = 0;
	if (object->end - object->start >= HEAD_BYTES &&
	    cuf_guarded_copy(page, object->start, HEAD_BYTES))
		copy_headers(to, page);
	copy_build_id(to, page);
	to->path_bytes = strnlen(to->path,
				 cuf_guarded_copy_part(to->path, (uintptr_t)to->object->path,
						       sizeof to->path));
}
