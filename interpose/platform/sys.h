/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls made directly, so that no interposer is entered (ours included) and errno stays
 * untouched. Contract: each returns the kernel's answer, a result or -errno. Any thread.
 */
#pragma once

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static inline long cuf_sys(long number, long a, long b, long c, long d, long e, long f)
{
#if defined __x86_64__
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined __aarch64__
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "port cuf_sys to this machine"
#endif
}

static inline long cuf_sys_open(const char *path, int flags, int mode)
{
	return cuf_sys(SYS_openat, AT_FDCWD, (long)path, flags, mode, 0, 0);
}

static inline long cuf_sys_close(int fd) { return cuf_sys(SYS_close, fd, 0, 0, 0, 0, 0); }

static inline long cuf_sys_read(int fd, void *to, size_t bytes)
{
	return cuf_sys(SYS_read, fd, (long)to, (long)bytes, 0, 0, 0);
}

static inline long cuf_sys_write(int fd, const void *from, size_t bytes)
{
	return cuf_sys(SYS_write, fd, (long)from, (long)bytes, 0, 0, 0);
}

static inline long cuf_sys_mmap(void *at, size_t bytes, int prot, int flags, int fd,
				uint64_t offset)
{
	return cuf_sys(SYS_mmap, (long)at, (long)bytes, prot, flags, fd, (long)offset);
}

static inline long cuf_sys_munmap(void *at, size_t bytes)
{
	return cuf_sys(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0);
}

static inline long cuf_sys_madvise(void *at, size_t bytes, int advice)
{
	return cuf_sys(SYS_madvise, (long)at, (long)bytes, advice, 0, 0, 0);
}

/* For calls whose result is an address. */
static inline int cuf_sys_failed(long result) { return result < 0 && result > -4096; }
