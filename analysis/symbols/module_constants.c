/* SPDX-License-Identifier: Apache-2.0 */
/* The section .rodata of a file, searched in pieces that overlap by the longest text. */
#include "analysis/symbols/module_constants.h"

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
#define SECTION_BYTES_MAX (256ull << 20) /* constants; the GPU's code is in sections of its own */

static bool constants_of(int fd, uint64_t *offset, uint64_t *bytes)
{
	Elf *elf = elf_version(EV_CURRENT) == EV_NONE ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;
	bool found = false;
	if (elf && !elf_getshdrstrndx(elf, &names))
		while (!found && (section = elf_nextscn(elf, section))) {
			const char *name = gelf_getshdr(section, &header)
						   ? elf_strptr(elf, names, header.sh_name)
						   : NULL;
			found = name && !strcmp(name, ".rodata") && header.sh_type == SHT_PROGBITS;
		}
	elf_end(elf);
	*offset = found ? header.sh_offset : 0;
	*bytes = found && header.sh_size < SECTION_BYTES_MAX ? header.sh_size
		 : found				     ? SECTION_BYTES_MAX
							     : 0;
	return found;
}

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
	ssize_t got;
	if (constants_of(fd, &offset, &left))
		while (left && found == count &&
		       (got = pread(fd, piece + kept,
				    left < PIECE_BYTES - kept ? left : PIECE_BYTES - kept,
				    (off_t)offset)) > 0) {
			size_t held = kept + (size_t)got;
			found = find_in(piece, held, texts, count);
			offset += (uint64_t)got;
			left -= (uint64_t)got;
			kept = least_of(held, OVERLAP_BYTES);
			memmove(piece, piece + held - kept, kept);
		}
	free(piece);
	return found;
}
