/* SPDX-License-Identifier: Apache-2.0 */
/* The version, the recording format, and the build-id from the ELF notes of this executable. */
#include "analysis/cmd/cli/version.h"

#include <elf.h>
#include <link.h>
#include "interpose/abi/format.h"

/* Names and contents of ELF notes are padded to 4 bytes. */
static unsigned padded(unsigned bytes)
{
	return (bytes + 3) & ~3u;
}

/* Prints the build-id if it is among the notes of one segment. */
static int print_build_id_note(FILE *out, const char *note, const char *end)
{
	while (end - note >= (long)sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *head = (const ElfW(Nhdr) *)note;
		const unsigned char *id =
			(const unsigned char *)(head + 1) + padded(head->n_namesz);
		if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == sizeof "GNU") {
			fputs(", build ", out);
			for (unsigned byte = 0; byte < head->n_descsz; byte++)
				fprintf(out, "%02x", id[byte]);
			return 1;
		}
		note = (const char *)id + padded(head->n_descsz);
	}
	return 0;
}

/* Returns 1, which ends dl_iterate_phdr at its first object: the executable. */
static int print_build_id(struct dl_phdr_info *info, size_t size, void *out)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const char *note = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
		if (info->dlpi_phdr[i].p_type == PT_NOTE &&
		    print_build_id_note(out, note, note + info->dlpi_phdr[i].p_memsz))
			break;
	}
	return 1;
}

/* The build-id identifies the exact executable in a bug report. */
void version_print(FILE *out)
{
	fprintf(out, "cuflight %s (recording format %u", CUFLIGHT_VERSION, CUF_VERSION);
	dl_iterate_phdr(print_build_id, out);
	fputs(")\n", out);
}
