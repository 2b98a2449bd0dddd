/* SPDX-License-Identifier: Apache-2.0 */
/* A machine of states over the bytes, and a stack of what is open. */
#include "tests/fuzz/json_check.h"

#include <string.h>
#include <sys/types.h>

enum state {
	VALUE,
	VALUE_OR_END,
	KEY,
	KEY_OR_END,
	COLON,
	COMMA,
	STRING,
	ESCAPE,
	WORD,
	NUMBER,
	DONE
};

/* Where a number may stand. A number may end after the marked ones. */
enum number { SIGN, ZERO, DIGITS, POINT, FRACTION, EXPONENT, EXPONENT_SIGN, POWER };

static bool ends_number(unsigned at)
{
	return at == ZERO || at == DIGITS || at == FRACTION || at == POWER;
}

/* The next place in the number after this byte; -1: the number does not go on. */
static int number_next(unsigned at, unsigned char c)
{
	bool digit = c >= '0' && c <= '9', power = c == 'e' || c == 'E';

	if (at == SIGN && c == '0')
		return ZERO;
	if ((at == SIGN || at == DIGITS) && digit)
		return DIGITS;
	if ((at == ZERO || at == DIGITS) && c == '.')
		return POINT;
	if ((at == POINT || at == FRACTION) && digit)
		return FRACTION;
	if ((at == ZERO || at == DIGITS || at == FRACTION) && power)
		return EXPONENT;
	if (at == EXPONENT && (c == '+' || c == '-'))
		return EXPONENT_SIGN;
	if (at >= EXPONENT && digit)
		return POWER;
	return -1;
}

/* After a whole value. */
static void settle(struct json_check *check) { check->state = check->depth ? COMMA : DONE; }

static void enter(struct json_check *check, unsigned char c)
{
	if (check->depth == JSON_CHECK_DEPTH) {
		check->broken = true;
		return;
	}
	check->open[check->depth++] = c;
	check->state = c == '{' ? KEY_OR_END : VALUE_OR_END;
}

static void leave(struct json_check *check, unsigned char c)
{
	unsigned char opened = c == '}' ? '{' : '[';

	if (!check->depth || check->open[--check->depth] != opened)
		check->broken = true;
	settle(check);
}

static void begin_value(struct json_check *check, unsigned char c)
{
	if (c == '{' || c == '[') {
		enter(check, c);
	} else if (c == '"') {
		check->key = false;
		check->state = STRING;
	} else if (c == '-' || (c >= '0' && c <= '9')) {
		check->state = NUMBER;
		check->number = SIGN;
		if (c != '-')
			check->number = (unsigned)number_next(SIGN, c);
	} else if (c >= 'a' && c <= 'z') {
		check->state = WORD;
		check->word[0] = (char)c;
		check->word_bytes = 1;
	} else {
		check->broken = true;
	}
}

/* The first byte of a character that is not ASCII: how many follow, and the least of the next. */
static void begin_character(struct json_check *check, unsigned char c)
{
	check->tail = c >= 0xf0 ? 3 : 1 + (c >= 0xe0);
	check->least = 0x80;
	if (c == 0xe0)
		check->least = 0xa0;
	if (c == 0xf0)
		check->least = 0x90;
	check->broken |= c < 0xc2 || c > 0xf4;
}

static void in_string(struct json_check *check, unsigned char c)
{
	if (check->tail) {
		check->broken |= c < check->least || c > 0xbf;
		check->least = 0x80;
		check->tail--;
	} else if (check->hex) {
		check->broken |= !strchr("0123456789abcdefABCDEF", c) || !c;
		check->hex--;
	} else if (c == '"') {
		check->state = COLON;
		if (!check->key)
			settle(check);
	} else if (c == '\\') {
		check->state = ESCAPE;
	} else if (c >= 0x80) {
		begin_character(check, c);
	} else {
		check->broken |= c < 0x20 || c == 0x7f;
	}
}

static void in_escape(struct json_check *check, unsigned char c)
{
	check->broken |= !c || !strchr("\"\\/bfnrtu", c);
	check->hex = c == 'u' ? 4 : 0;
	check->state = STRING;
}

static void end_word(struct json_check *check)
{
	static const char *const words[] = { "true", "false", "null" };
	bool known = false;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		known |= strlen(words[i]) == check->word_bytes &&
			 !memcmp(words[i], check->word, check->word_bytes);
	check->broken |= !known;
	settle(check);
}

static void between(struct json_check *check, unsigned char c)
{
	if (c == ' ' || c == '\n')
		return;
	if ((c == '}' && (check->state == KEY_OR_END || check->state == COMMA)) ||
	    (c == ']' && (check->state == VALUE_OR_END || check->state == COMMA))) {
		leave(check, c);
	} else if (check->state == COMMA && c == ',') {
		check->state = check->open[check->depth - 1] == '{' ? KEY : VALUE;
	} else if (check->state == COLON && c == ':') {
		check->state = VALUE;
	} else if ((check->state == KEY || check->state == KEY_OR_END) && c == '"') {
		check->key = true;
		check->state = STRING;
	} else if (check->state == VALUE || check->state == VALUE_OR_END) {
		begin_value(check, c);
	} else {
		check->broken = true;
	}
}

static void take(struct json_check *check, unsigned char c)
{
	if (check->state == STRING) {
		in_string(check, c);
		return;
	}
	if (check->state == ESCAPE) {
		in_escape(check, c);
		return;
	}
	if (check->state == NUMBER) {
		int next = number_next(check->number, c);

		if (next >= 0) {
			check->number = (unsigned)next;
			return;
		}
		check->broken |= !ends_number(check->number);
		settle(check);
	}
	if (check->state == WORD) {
		if (c >= 'a' && c <= 'z' && check->word_bytes < sizeof check->word) {
			check->word[check->word_bytes++] = (char)c;
			return;
		}
		end_word(check);
	}
	between(check, c);
}

static ssize_t write_bytes(void *cookie, const char *bytes, size_t count)
{
	struct json_check *check = cookie;

	for (size_t i = 0; i < count && !check->broken; i++)
		take(check, (unsigned char)bytes[i]);
	return (ssize_t)count;
}

FILE *json_check_open(struct json_check *check)
{
	*check = (struct json_check){ .state = VALUE };
	return fopencookie(check, "w", (cookie_io_functions_t){ .write = write_bytes });
}

bool json_check_whole(const struct json_check *check)
{
	return !check->broken && check->state == DONE;
}
