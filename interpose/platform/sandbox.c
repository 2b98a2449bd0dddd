/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices a seccomp filter that the program has enabled since it started. The kernel states only
 * that there is one. Where one was there from the start, a second one shows by the calls that
 * enable it: an unprivileged program has to give up new privileges first.
 */
#include "interpose/platform/sandbox.h"

#include <errno.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

/* true before cuf_sandbox_start: nothing can count as a change yet */
static bool filtered_at_start = true;

static bool had_no_new_privileges = true;
/* the program enabled a filter; it gave up new privileges, perhaps once more */
static bool is_enabled, gave_up;

/* Seccomp mode 1 kills at this call too, but in that mode no memory can be mapped either. */
static bool is_filtered(void) { return cuf_sys(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) > 0; }

/* Without privileges, PR_SET_NO_NEW_PRIVS comes first. It is never undone. */
static bool has_no_new_privileges(void)
{
	return cuf_sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0) > 0;
}

void cuf_sandbox_start(void)
{
	filtered_at_start = is_filtered();
	had_no_new_privileges = has_no_new_privileges();
}

void cuf_sandbox_announced(bool by_filter)
{
	__atomic_store_n(by_filter ? &is_enabled : &gave_up, true, __ATOMIC_RELAXED);
}

bool cuf_sandbox_entered(void)
{
	if (__atomic_load_n(&is_enabled, __ATOMIC_RELAXED))
		return true;
	if (!is_filtered())
		return false;
	return !filtered_at_start || __atomic_load_n(&gave_up, __ATOMIC_RELAXED) ||
	       (!had_no_new_privileges && has_no_new_privileges());
}

/* ---- open files ---- */

/*
 * The table keeps closed ones too, until others take their places: fork copies the descriptors
 * before it copies the memory, and a file may be closed in between. So the number is not enough.
 * The file is compared, and the signal of its descriptor, which nobody sets to this one and nobody
 * sends: the program may have the same file of /proc open.
 */
enum { FILES_KEPT = 8, MARK = 63 };

static struct open_file {
	uint64_t device, inode; /* 0: none */
	int fd;
} last_files[FILES_KEPT];
static unsigned files_opened;

static bool identify(struct open_file *file, int fd)
{
	struct stat stat;
	if (cuf_sys(SYS_fstat, fd, (long)&stat, 0, 0, 0, 0))
		return false;
	*file = (struct open_file){ stat.st_dev, stat.st_ino, fd };
	return true;
}

static void keep(int fd)
{
	unsigned number = __atomic_fetch_add(&files_opened, 1, __ATOMIC_RELAXED);
	if (!cuf_sys(SYS_fcntl, fd, F_SETSIG, MARK, 0, 0, 0))
		identify(&last_files[number % FILES_KEPT], fd);
}

long cuf_open(const char *path, int flags, int mode)
{
	long fd;
	if (cuf_sandbox_entered())
		return -ECANCELED;
	fd = cuf_sys_open(path, flags | O_CLOEXEC, mode);
	if (fd >= 0)
		keep((int)fd);
	return fd;
}

void cuf_close(int fd) { cuf_sys_close(fd); }

static bool is_copy(const struct open_file *file)
{
	struct open_file now;
	return file->inode && cuf_sys(SYS_fcntl, file->fd, F_GETSIG, 0, 0, 0, 0) == MARK &&
	       identify(&now, file->fd) && now.device == file->device && now.inode == file->inode;
}

void cuf_close_copies(void)
{
	for (unsigned i = 0; i < FILES_KEPT; i++) {
		struct open_file file = last_files[i];
		last_files[i] = (struct open_file){ 0 };
		if (!cuf_sandbox_entered() && is_copy(&file))
			cuf_sys_close(file.fd);
	}
}
CUF_AT_FORK_CHILD(cuf_close_copies);
