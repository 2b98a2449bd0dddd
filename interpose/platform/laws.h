/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included last by every file of core/: what must never be called inside somebody else's process is a compile error
 * (DESIGN: the recorder allocates nothing, prints nothing, never exits).
 */
#ifndef CUF_LAWS_H
#define CUF_LAWS_H
#pragma GCC poison malloc calloc realloc free strdup asprintf printf fprintf puts fopen fwrite perror abort exit _exit assert
#pragma GCC poison pthread_mutex_lock dl_iterate_phdr backtrace getenv
#endif
