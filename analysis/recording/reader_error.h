/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a recording could not be read: a negative code with a sentence, and where in the file the
 * damage is. Only cmd/ prints it.
 *
 * Contract: plain data. The functions that fill a struct reader_error copy the path into it.
 */
#pragma once

#include <stdint.h>

/* READER_ERROR(name, code, sentence): append only. */
#define READER_ERRORS(READER_ERROR) \
	READER_ERROR(OPEN, -1, "cannot open the recording") \
	READER_ERROR(EMPTY, -2, "the file is empty") \
	READER_ERROR(SHORT, -3, "the file is truncated inside its header") \
	READER_ERROR(MAGIC, -4, "not a cuflight recording") \
	READER_ERROR(ENDIAN, -5, "recorded on a machine with the other byte order") \
	READER_ERROR(VERSION, -6, "written by a newer version of cuflight") \
	READER_ERROR(HEADER, -7, "the header is damaged") \
	READER_ERROR(SECTIONS, -8, "the section table is damaged") \
	READER_ERROR(NONE_FOUND, -9, "no recordings in this directory") \
	READER_ERROR(READ, -10, "cannot read the recording") \
	READER_ERROR(NO_RUN, -11, "the directory has no run of that number") \
	READER_ERROR(PACK, -12, "the pack is damaged, or no pack of cuflight") \
	READER_ERROR(PACK_LIMIT, -13, "the pack would unpack to far more than its size") \
	READER_ERROR(UNPACK, -14, "cannot unpack into TMPDIR, else /tmp") \
	READER_ERROR(LARGE, -15, "larger than any recording, which has at most 8 GiB") \
	READER_ERROR(UNBEGUN, -16, "never begun: its process ended while it was being created") \
	READER_ERROR(NO_PROCESS, -17, "the run has no recording of that process")

enum reader_error_code {
	READER_OK = 0,
#define READER_ERROR(name, code, sentence) READER_E_##name = code,
	READER_ERRORS(READER_ERROR)
#undef READER_ERROR
};

struct reader_error {
	int code;              /* enum reader_error_code */
	int system;            /* errno of the failing call; 0 none */
	uint64_t offset;       /* where the damage is, in bytes from the start of the file */
	char path[512];        /* the file, cut to fit; "" for memory */
};

/* The sentence of a code, never NULL: lower case, no full stop, as in "PATH: SENTENCE (at byte
 * OFFSET)". */
const char *reader_error_sentence(int code);
