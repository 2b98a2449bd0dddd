/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said of PyTorch in the recording: that it is there, its version, what of it is not seen. Contract: any thread;
 * no allocation, no lock but the loader's, errno untouched; texts are written once a recording.
 */
#ifndef CUF_HOOKS_FRAMEWORK_H
#define CUF_HOOKS_FRAMEWORK_H

/* A hook of PyTorch's was called; real: what is behind it, NULL: nothing. One load when it is known already. */
void cuf_framework_introduce(unsigned hook, const void *real);

/* Where none of PyTorch's locks is held: reads its version, once it is loaded. May be called often. */
void cuf_framework_look(void);

/* A stream was created, or captures: the free blocks of each stream, and of each graph, are its own from here on. errno untouched. */
void cuf_framework_streams(void);

/* PyTorch holds device memory, or wanted some, and has reported no block: notes why, as far as it can be told. */
void cuf_framework_check_blind(void);

#endif
