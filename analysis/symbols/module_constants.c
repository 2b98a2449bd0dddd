/* SPDX-License-Identifier: Apache-2.0 */
/* Searches .rodata in pieces that overlap by the length of the longest text. */
#include "analysis/symbols/module_file.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

enum { PIECE_BYTES = 1 << 20, OVERLAP_BYTES = 64 };
#define SECTION_BYTES_MAX (256ull << 20) /* the code of the GPU is in sections of its own */

/* Stripped files keep their section headers, so .rodata is found by name. */
static bool constants_of(int fd, uint64_t *offset, uint64_t *bytes)
{
	Elf *elf = NULL;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;
	bool found = false;

	if (elf_version(EV_CURRENT) != EV_NONE)
		elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && !elf_getshdrstrndx(elf, &names))
		while (!found && (section = elf_nextscn(elf, section))) {
			const char *name = NULL;

			if (gelf_getshdr(section, &header))
				name = elf_strptr(elf, names, header.sh_name);
			found = name && !strcmp(name, ".rodata") && header.sh_type == SHT_PROGBITS;
		}
	elf_end(elf);
	*offset = 0;
	*bytes = 0;
	if (found) {
		*offset = header.sh_offset;
		*bytes = least_of(header.sh_size, SECTION_BYTES_MAX);
	}
	return found;
}

/* The index of the first of the texts that the piece has; count: none. */
static size_t find_in(const char *piece, size_t bytes, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (memmem(piece, bytes, texts[i], strlen(texts[i])))
			return i;
	return count;
}

size_t module_constants_find(int fd, const char *const *texts, size_t count)
{
	char *piece = xalloc_bytes(PIECE_BYTES);
	uint64_t offset, left;
	size_t found = count, kept = 0;

	if (!constants_of(fd, &offset, &left))
		left = 0;
	while (left && found == count) {
		ssize_t got = pread(fd, piece + kept, least_of(left, PIECE_BYTES - kept),
				    (off_t)offset);
		size_t held = kept + (size_t)got;

		if (got <= 0)
			break;
		found = find_in(piece, held, texts, count);
		offset += (uint64_t)got;
		left -= (uint64_t)got;
		kept = least_of(held, OVERLAP_BYTES); /* a text may cross the edge of a piece */
		memmove(piece, piece + held - kept, kept);
	}
	free(piece);
	return found;
}
