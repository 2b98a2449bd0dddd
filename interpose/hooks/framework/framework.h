/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about PyTorch in the recording: that it is there, its version, which of its blocks are not
 * seen. Contract: any thread; no allocation, no lock but the loader's; errno untouched. Each text
 * is written once a recording.
 */
#pragma once

/* A hook of PyTorch was called. real: the function behind it, or NULL. One load when PyTorch is
 * described already. */
void cuf_framework_describe(unsigned hook, const void *real);

/* Reads PyTorch's version once its library is loaded. Call it where no lock of PyTorch is held.
 * Cheap to call often. */
void cuf_framework_read_version(void);

/* A stream was created, or captures. From here on, free blocks belong to one stream or graph. */
void cuf_framework_note_streams(void);

/* PyTorch holds device memory, or requested some, and has reported no block: notes why, as far as
 * it can be known. */
void cuf_framework_check_unseen(void);
