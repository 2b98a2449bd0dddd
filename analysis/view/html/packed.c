/* SPDX-License-Identifier: Apache-2.0 */
/* zlib, base64, and the five characters that HTML takes for markup. */
#include "analysis/view/html/packed.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "analysis/base/clean.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

/* Level 6: the data shrinks by a few per cent more at 9, in three times the time. */
enum { LEVEL = 6, GZIP_WINDOW = 15 + 16, MEMORY = 9, CHUNK = 1 << 30 };

static bool feed(z_stream *stream, const void *bytes, size_t count, int flush)
{
	const Bytef *at = bytes;

	do {
		size_t take = least_of(count, CHUNK);
		stream->next_in = (Bytef *)at; /* zlib does not write there */
		stream->avail_in = (uInt)take;
		at += take;
		count -= take;
		if (deflate(stream, count ? Z_NO_FLUSH : flush) == Z_STREAM_ERROR)
			return false;
	} while (count);
	return !stream->avail_in;
}

uint8_t *packed_make(const char *json, size_t json_bytes, const struct columns *columns,
		     size_t *bytes)
{
	uint8_t head[16] = "CUFPAGE1";
	size_t room = sizeof head + json_bytes + columns->count;
	z_stream stream = { 0 };
	uint8_t *out;
	bool fine;

	if (json_bytes > UINT32_MAX || room > CHUNK)
		return NULL;
	for (unsigned i = 0; i < 4; i++)
		head[8 + i] = (uint8_t)(json_bytes >> 8 * i);
	if (deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY, Z_DEFAULT_STRATEGY))
		return NULL;
	room = deflateBound(&stream, room);
	out = xalloc_bytes(room);
	stream.next_out = out;
	stream.avail_out = (uInt)room;
	fine = feed(&stream, head, sizeof head, Z_NO_FLUSH) &&
	       feed(&stream, json, json_bytes, Z_NO_FLUSH) &&
	       feed(&stream, columns->bytes, columns->count, Z_FINISH);
	*bytes = room - stream.avail_out;
	deflateEnd(&stream);
	if (fine)
		return out;
	free(out);
	return NULL;
}

size_t packed_base64_bytes(size_t count) { return (count + 2) / 3 * 4; }

void packed_write_base64(FILE *out, const uint8_t *bytes, size_t count)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < count; i += 3) {
		uint32_t word = (uint32_t)bytes[i] << 16;
		char text[4];
		if (i + 1 < count)
			word |= (uint32_t)bytes[i + 1] << 8;
		if (i + 2 < count)
			word |= bytes[i + 2];
		for (unsigned k = 0; k < 4; k++)
			text[k] = digits[word >> (18 - 6 * k) & 63];
		if (i + 2 >= count)
			text[3] = '=';
		if (i + 1 >= count)
			text[2] = '=';
		fwrite(text, 1, sizeof text, out);
	}
}

static const char *entity(char character)
{
	switch (character) {
	case '&': return "&amp;";
	case '<': return "&lt;";
	case '>': return "&gt;";
	case '"': return "&quot;";
	case '\'': return "&#39;";
	default: return NULL;
	}
}

/* Control characters are not allowed in HTML, except line ends and tabs. */
void packed_write_escaped(FILE *out, const char *text)
{
	size_t bytes = 3 * strlen(text) + 1;
	char *clean = xalloc_bytes(bytes);

	clean_utf8(clean, bytes, text);
	for (const char *at = clean; *at; at++) {
		const char *escaped = entity(*at);
		if (escaped)
			fputs(escaped, out);
		else if ((unsigned char)*at < ' ' && *at != '\n' && *at != '\t')
			fputs("\xef\xbf\xbd", out);
		else
			fputc(*at, out);
	}
	free(clean);
}
