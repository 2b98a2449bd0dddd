/* SPDX-License-Identifier: Apache-2.0 */
/* Command word to file, to interpreter, to ELF header. */
#include "analysis/cmd/target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "analysis/base/paths.h"

enum { TARGET_SCRIPTS_MAX = 5 }; /* the kernel follows 4 */

/* 0, or the errno that executing the file would give. */
static int check_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno;
	if (!S_ISREG(st.st_mode) || access(path, X_OK))
		return EACCES;
	return 0;
}

/*
 * As execvp: a word with a slash is a path; else the first executable in PATH. EACCES when PATH has
 * files of that name, but none is executable.
 */
static int find_command(const char *word, char *out, size_t bytes)
{
	const char *path = getenv("PATH");
	int worst = ENOENT, error;

	if (strchr(word, '/')) {
		snprintf(out, bytes, "%s", word);
		return check_executable(word);
	}
	if (!path)
		path = "/bin:/usr/bin"; /* as execvp */
	while (*word) {
		size_t length = strcspn(path, ":");
		if (length)
			snprintf(out, bytes, "%.*s/%s", (int)length, path, word);
		else /* an empty entry is the current directory */
			snprintf(out, bytes, "./%s", word);
		error = check_executable(out);
		if (!error)
			return 0;
		if (error == EACCES)
			worst = error;
		if (!path[length])
			break;
		path += length + 1;
	}
	snprintf(out, bytes, "%s", word);
	return worst;
}

/* The command in the arguments of env(1): the first word that is no option and no assignment. */
static const char *skip_env(const char *env, char **save)
{
	const char *next;

	while ((next = strtok_r(NULL, " \t", save)) && (*next == '-' || strchr(next, '=')))
		;
	if (!next)
		return env;
	return next;
}

/* The interpreter in the first line of a script. "#!/usr/bin/env -S VAR=1 python3 -u" names
 * python3; every other line names its first word. False: this is no script. A line of more than 511
 * bytes is cut off; the kernel's limit is lower. */
static bool read_first_line(const char *path, char *interpreter, size_t bytes)
{
	char line[512], *save = NULL;
	const char *word;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return false;
	length = read(fd, line, sizeof line - 1);
	close(fd);
	if (length < 3 || memcmp(line, "#!", 2) != 0)
		return false;
	line[length] = 0;
	line[strcspn(line, "\n")] = 0;
	word = strtok_r(line + 2, " \t", &save);
	if (!word)
		return false;
	if (!strcmp(path_base_name(word), "env"))
		word = skip_env(word, &save);
	snprintf(interpreter, bytes, "%s", word);
	return true;
}

/* PT_INTERP names the loader. Without it the kernel starts the program directly, so nothing can be
 * preloaded. A static PIE has a dynamic section, but no PT_INTERP. */
static void read_loader(struct target *target, Elf *elf)
{
	size_t count = 0, size = 0;
	const char *image = elf_rawfile(elf, &size);

	target->is_static = true;
	if (elf_getphdrnum(elf, &count))
		return;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr ph;
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_INTERP)
			continue;
		target->is_static = false;
		if (image && ph.p_offset < size && ph.p_filesz <= size - ph.p_offset)
			snprintf(target->loader, sizeof target->loader, "%.*s", (int)ph.p_filesz,
				 image + ph.p_offset);
	}
}

/*
 * glibc's loader is in the folder of its libc, often behind a link. libc has its version in a text:
 * "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.".
 */
static void read_glibc_version(struct target *target)
{
	static const char mark[] = "release version ";
	char path[PATH_MAX];
	const char *image = NULL, *at = NULL;
	size_t bytes = 0;
	Elf *elf = NULL;
	int fd = -1;

	if (realpath(target->loader, path) && strlen(path) + sizeof "libc.so.6" < sizeof path) {
		strcpy(strrchr(path, '/') + 1, "libc.so.6");
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd >= 0)
		elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf)
		image = elf_rawfile(elf, &bytes);
	if (image)
		at = memmem(image, bytes, mark, sizeof mark - 1);
	if (at && (size_t)(image + bytes - at) > sizeof mark + sizeof target->glibc_version) {
		at += sizeof mark - 1;
		snprintf(target->glibc_version, sizeof target->glibc_version, "%.*s",
			 (int)strspn(at, "0123456789."), at);
		bytes = strlen(target->glibc_version);
		if (bytes && target->glibc_version[bytes - 1] == '.')
			target->glibc_version[bytes - 1] = 0;
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}

/* A file of another kind leaves is_elf false. That is no error: a shell may run it. */
static void read_elf(struct target *target)
{
	int fd = open(target->executed, O_RDONLY | O_CLOEXEC);
	Elf *elf;
	GElf_Ehdr header;

	if (fd < 0) { /* a file may be executable and not readable */
		target->error = errno;
		return;
	}
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header)) {
		target->is_elf = true;
		target->machine = header.e_machine;
		target->is_64 = gelf_getclass(elf) == ELFCLASS64;
		read_loader(target, elf);
	}
	elf_end(elf);
	close(fd);
}

/* Bits that change nothing for this user do not count: a setuid file of its owner, capabilities
 * under root. */
static void read_privileges(struct target *target)
{
	struct stat st;

	if (stat(target->executed, &st))
		return;
	target->gains_user = (st.st_mode & S_ISUID) && st.st_uid != getuid();
	target->gains_group = (st.st_mode & S_ISGID) && st.st_gid != getgid();
	target->gains_capabilities =
		geteuid() != 0 && getxattr(target->executed, "security.capability", NULL, 0) > 0;
}

/* Follows scripts to the program that the kernel executes in the end. path keeps what the user
 * typed, executed the end of the chain. */
void target_inspect(struct target *target, const char *command)
{
	char interpreter[PATH_MAX];

	memset(target, 0, sizeof *target);
	target->error = find_command(command, target->path, sizeof target->path);
	snprintf(target->executed, sizeof target->executed, "%s", target->path);
	while (!target->error &&
	       read_first_line(target->executed, interpreter, sizeof interpreter)) {
		if (++target->scripts > TARGET_SCRIPTS_MAX)
			target->error = ELOOP;
		else
			target->error = find_command(interpreter, target->executed,
						     sizeof target->executed);
	}
	if (target->error)
		return;
	read_elf(target);
	if (*target->loader)
		read_glibc_version(target);
	read_privileges(target);
}

const char *target_machine_name(uint16_t machine)
{
	static const struct {
		uint16_t machine;
		const char *name;
	} names[] = {
		{ EM_X86_64, "x86-64" }, { EM_AARCH64, "aarch64" }, { EM_386, "i386" },
		{ EM_ARM, "arm" }, { EM_PPC64, "ppc64" }, { EM_RISCV, "riscv" },
		{ EM_S390, "s390" },
	};
	static char number[24];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].machine == machine)
			return names[i].name;
	snprintf(number, sizeof number, "machine %u", machine);
	return number;
}
