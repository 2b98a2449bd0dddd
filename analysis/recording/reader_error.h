/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a recording could not be read: a negative code with a sentence, and where in the file the damage is. Plain data;
 * path is borrowed from the caller of the function that filled it. Only cmd/ prints it.
 */
#ifndef ANALYSIS_RECORDING_READER_ERROR_H
#define ANALYSIS_RECORDING_READER_ERROR_H

#include <stdint.h>

/* READER_ERROR(name, code, sentence): append only. */
#define READER_ERRORS(READER_ERROR) \
	READER_ERROR(OPEN, -1, "cannot open the recording") \
	READER_ERROR(EMPTY, -2, "the file is empty") \
	READER_ERROR(SHORT, -3, "the file ends inside its header") \
	READER_ERROR(MAGIC, -4, "not a cuflight recording") \
	READER_ERROR(ENDIAN, -5, "recorded on a machine of the other byte order") \
	READER_ERROR(VERSION, -6, "written by a newer cuflight; this one cannot read it") \
	READER_ERROR(HEADER, -7, "the header is damaged") \
	READER_ERROR(SECTIONS, -8, "the section table is damaged") \
	READER_ERROR(NONE_FOUND, -9, "no recordings in this directory") \
	READER_ERROR(READ, -10, "cannot read the recording")

enum reader_error_code {
	READER_OK = 0,
#define READER_ERROR(name, code, sentence) READER_E_##name = code,
	READER_ERRORS(READER_ERROR)
#undef READER_ERROR
};

struct reader_error {
	int code;              /* enum reader_error_code */
	int system;            /* errno of the failing call; 0 none */
	uint64_t offset;       /* bytes from the start of the file; where the damage is */
	char path[512];        /* the file, cut to fit; "" for memory */
};

/* The sentence; never NULL. No full stop, lower case: "PATH: SENTENCE (at byte OFFSET)". */
const char *reader_error_sentence(int code);

#endif
