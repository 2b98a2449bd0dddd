/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included last by every file of the recorder. What must never be called inside another program's
 * process becomes a compile error: the recorder allocates nothing, prints nothing, takes no lock
 * and never exits.
 */
#pragma once

#pragma GCC poison malloc calloc realloc free strdup asprintf printf fprintf puts fopen fwrite
#pragma GCC poison perror abort exit _exit assert
#pragma GCC poison pthread_mutex_lock dl_iterate_phdr backtrace getenv
