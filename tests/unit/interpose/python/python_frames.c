/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python frames from memory laid out as in each version from 3.9 to 3.14; the last two by what
 * their runtime publishes about itself. Names, files, lines, runs. Layouts that are wrong, in one
 * field or in all, cost frames and never the process.
 */
#include "tests/unit/fixtures/recorder.h"
#include <sys/mman.h>
#include "interpose/python/python_parts.h"

enum { ARENA_BYTES = 1 << 16, MAX = 64 };
static uint8_t *arena; /* ends at an unreadable page */
static size_t used;
static struct cuf_python python;
static struct cuf_python_thread thread;

static unsigned kind_shift = 2; /* of texts where the version does not publish it */

static uintptr_t place(size_t bytes)
{
	uintptr_t at = (uintptr_t)arena + used;
	used += (bytes + 15) & ~(size_t)15;
	assert_true(used <= ARENA_BYTES);
	return at;
}

static void put(uintptr_t at, uint64_t value, size_t bytes) { memcpy((void *)at, &value, bytes); }

static void begin(const struct cuf_python_layout *layout)
{
	if (!arena) {
		arena = mmap(NULL, 2 * ARENA_BYTES, PROT_READ | PROT_WRITE,
		             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(arena != MAP_FAILED);
		mprotect(arena + ARENA_BYTES, ARENA_BYTES, PROT_NONE);
	}
	memset(arena, 0, ARENA_BYTES);
	used = 0;
	python = (struct cuf_python){ .layout = *layout };
	python.code_type = place(64);
	python.text_type = place(64);
	python.bytes_type = place(64);
	memset(&thread, 0, sizeof thread);
}

/* size: bytes of a character; 1 also for some beyond ASCII */
static uintptr_t make_text(const void *characters, size_t length, unsigned size, bool ascii)
{
	const struct cuf_python_layout *layout = &python.layout;
	uintptr_t at = place(96 + length * size);
	put(at + layout->type, python.text_type, 8);
	put(at + layout->text_length, length, 8);
	put(at + layout->text_length + 8, UINT64_MAX, 8);
	put(at + layout->text_state,
	    (size | 1u << 3 | (unsigned)ascii << 4)
	                    << (layout->kind_shift ? layout->kind_shift : kind_shift) |
	            1,
	    4);
	memcpy((void *)(at + (ascii ? layout->text_ascii_bytes : layout->text_compact_bytes)),
	       characters, length * size);
	return at;
}

static uintptr_t make_string(const char *text) { return make_text(text, strlen(text), 1, true); }

static uintptr_t make_bytes(const void *bytes, size_t count)
{
	const struct cuf_python_layout *layout = &python.layout;
	uintptr_t at = place(64 + count);
	put(at + layout->type, python.bytes_type, 8);
	put(at + layout->bytes_length, count, 8);
	memcpy((void *)(at + layout->bytes_data), bytes, count);
	return at;
}

static uintptr_t make_code(const char *name, const char *file, unsigned line, uintptr_t lines)
{
	const struct cuf_python_layout *layout = &python.layout;
	uintptr_t at = place(512), text = make_string(name);
	static uint32_t version;
	put(at + layout->type, python.code_type, 8);
	put(at + layout->code_name, text, 8);
	if (layout->code_qualified)
		put(at + layout->code_qualified, text, 8);
	put(at + layout->code_file, make_string(file), 8);
	put(at + layout->code_first_line, line, 4);
	put(at + layout->code_lines, lines, 8);
	if (layout->code_version)
		put(at + layout->code_version, ++version, 4);
	return at;
}

/* Stopped at this byte of its code. */
static uintptr_t make_frame(uintptr_t code, unsigned offset, uintptr_t previous)
{
	const struct cuf_python_layout *layout = &python.layout;
	uintptr_t at = place(128), tag = layout->minor >= 14;
	put(at + layout->frame_code, code | tag, 8);
	put(at + layout->frame_previous, previous, 8);
	if (layout->code_bytes)
		put(at + layout->frame_instruction, code + layout->code_bytes + offset, 8);
	else
		put(at + layout->frame_instruction,
		    layout->lines == CUF_PYTHON_LINETABLE ? offset / 2 : offset, 4);
	return at;
}

/* What the interpreter keeps on the stack for one native call. */
static uintptr_t make_call(uintptr_t previous)
{
	uintptr_t at = place(128);
	if (python.layout.chain == CUF_PYTHON_ENTRY_FRAME) {
		put(at + python.layout.frame_previous, previous, 8);
		put(at + python.layout.frame_owner, python.layout.outer_owner, 1);
	} else if (python.layout.cframe_previous) {
		put(at + python.layout.cframe_previous, previous, 8);
	}
	return at;
}

/* inner, outer: the markers of the two calls; 0: none */
struct made { uintptr_t state, inner, outer; };

/* inner < middle < call < outer: one call of the interpreter runs the first two where calls run
 * more than one frame. */
static struct made make_stack(const uintptr_t codes[3], const unsigned offsets[3])
{
	const struct cuf_python_layout *layout = &python.layout;
	struct made m = { place(512), 0, 0 };
	uintptr_t outer, middle, inner, calls[3];
	if (layout->chain == CUF_PYTHON_ENTRY_FRAME) {
		m.outer = make_call(0);
		outer = make_frame(codes[2], offsets[2], m.outer);
		m.inner = make_call(outer);
		middle = make_frame(codes[1], offsets[1], m.inner);
		inner = make_frame(codes[0], offsets[0], middle);
		if (layout->cframe_previous) { /* 3.12 */
			calls[0] = place(64);
			put(calls[0] + layout->cframe_frame, inner, 8);
			put(m.state + layout->thread_frame, calls[0], 8);
		} else {
			put(m.state + layout->thread_frame, inner, 8);
		}
		return m;
	}
	outer = make_frame(codes[2], offsets[2], 0);
	middle = make_frame(codes[1], offsets[1], outer);
	inner = make_frame(codes[0], offsets[0], middle);
	calls[2] = make_call(0);
	calls[1] = make_call(calls[2]);
	calls[0] = make_call(calls[1]);
	put(m.state + layout->thread_frame, inner, 8);
	if (layout->chain == CUF_PYTHON_ENTRY_FLAG) {
		put(outer + layout->frame_entry, 1, 1);
		put(middle + layout->frame_entry, 1, 1);
		put(calls[1] + layout->cframe_frame, inner, 8);
		put(m.state + layout->thread_frame, calls[1], 8);
		m.inner = calls[1];
		m.outer = calls[2];
	} else if (layout->chain == CUF_PYTHON_FRAME_CALLS) {
		put(m.state + layout->thread_cframe, calls[0], 8);
		m.inner = calls[0];
		m.outer = calls[2];
	}
	return m;
}

/* Lines 10, 11 (from byte 4) and 20 (from byte 8) of a function that begins in line 10. */
static uintptr_t make_lines(void)
{
	static const uint8_t lnotab[] = { 4, 1, 4, 9 }, linetable[] = { 4, 0, 4, 1, 8, 9 };
	static const uint8_t locations[] = { 0x80 | 10 << 3 | 1,
		                             0,
		                             0,
		                             0x80 | 11 << 3 | 1,
		                             0,
		                             0,
		                             0x80 | 14 << 3 | 3,
		                             9 << 1,
		                             0,
		                             1,
		                             1 };
	switch (python.layout.lines) {
	case CUF_PYTHON_LNOTAB: return make_bytes(lnotab, sizeof lnotab);
	case CUF_PYTHON_LINETABLE: return make_bytes(linetable, sizeof linetable);
	default: return make_bytes(locations, sizeof locations);
	}
}

/*
 * What the runtime of a version publishes, made from its layout: the reverse of
 * cuf_python_layout_of.
 */
static void tell_offsets(uint64_t *words, const struct cuf_python_layout *layout, uint32_t version)
{
	static const uint8_t at[2][18] = {
		{ 23, 24, 29, 30, 31, 33, 35, 36, 37, 38, 39, 43, 45, 65, 66, 68, 69, 70 },
		{ 26, 27, 32, 33, 34, 36, 40, 41, 42, 43, 44, 48, 51, 75, 76, 78, 79, 80 }
	};
	const uint16_t fields[18] = {
		layout->thread_frame, layout->thread_id,         layout->frame_previous,
		layout->frame_code,   layout->frame_instruction, layout->frame_owner,
		layout->code_file,    layout->code_name,         layout->code_qualified,
		layout->code_lines,   layout->code_first_line,   layout->code_bytes,
		layout->type,         layout->bytes_length,      layout->bytes_data,
		layout->text_state,   layout->text_length,       layout->text_ascii_bytes
	};
	memset(words, 0, CUF_PYTHON_OFFSETS_BYTES);
	memcpy(words, "xdebugpy", 8);
	words[1] = version;
	for (unsigned i = 0; i < 18; i++)
		words[at[layout->minor - 13][i]] = fields[i];
}

static const struct cuf_python_layout known[] = { /* from 3.9 on */
#define LAYOUT(of, ...) { __VA_ARGS__ },
#include "interpose/python/python_layouts.def"
};

static struct cuf_python_layout layout_of(unsigned minor)
{
	uint64_t words[CUF_PYTHON_OFFSETS_BYTES / 8] = { 0 };
	uint32_t version = 3u << 24 | minor << 16 | 5 << 8 | 0xf0;
	struct cuf_python_layout layout;
	if (minor >= 13)
		tell_offsets(words, &known[minor - 9], version);
	assert_true(cuf_python_layout_of(version, words, &layout));
	return layout;
}

/* The text of META CODE with this number. */
static bool named(uint32_t code, const char *expected)
{
	const struct cuf_recording *r = &cuf_recording;
	for (uint64_t at = 0; at < r->header->meta_used;) {
		const struct cuf_meta *meta = (const void *)(r->meta + at);
		if (meta->type == CUF_META_CODE && meta->number == code)
			return meta->text_bytes == strlen(expected) &&
			       !memcmp(meta + 1, expected, meta->text_bytes);
		at += meta->bytes;
	}
	return false;
}

static void check_named(const struct cuf_python_frame *frame, const char *expected, uint32_t line)
{
	uint64_t token = cuf_python_name(&python, &thread, frame);
	assert_true(cuf_frame_is_python(token));
	assert_int_equal(cuf_frame_line(token), line);
	if (!named(cuf_frame_code(token), expected))
		fail_msg("3.%u: code %u is not %s", python.layout.minor, cuf_frame_code(token),
		         expected);
}

static void test_frames__of_every_version(void **state)
{
	fixture_start("stack_depth=64", "/nowhere");
	for (unsigned minor = 9; minor <= 14; minor++) {
		struct cuf_python_layout layout = layout_of(minor);
		char inner[64], middle[64], outer[64];
		uintptr_t lines, codes[3];
		struct made made;
		begin(&layout);
		assert_int_equal(layout.minor, minor);
		lines = make_lines();
		codes[0] = make_code("inner", "/a/inner.py", 10, lines);
		codes[1] = make_code("K.middle", "/a/b.py", 10, lines);
		codes[2] = make_code("<module>", "<string>", 10, lines);
		made = make_stack(codes, (unsigned[]){ 0, 6, 14 });
		snprintf(inner, sizeof inner, "inner\n/a/inner.py\n10\n");
		snprintf(middle, sizeof middle, "K.middle\n/a/b.py\n10\n");
		snprintf(outer, sizeof outer, "<module>\n<string>\n10\n");
		for (unsigned way = 0; way < 2; way++) {
			const struct cuf_python_walks *walks = way ? cuf_python_walks_for(&layout,
			                                                                  true)
			                                           : cuf_python_walks_checked();
			uint64_t hash;
			assert_true(walks->hash(&python, &thread, made.state, MAX));
			assert_int_equal(thread.count, 3);
			hash = thread.hash;
			assert_true(walks->note(&python, &thread, made.state, MAX));
			assert_int_equal(thread.count, 3);
			assert_true(thread.hash == hash);
			assert_false(thread.more);
			check_named(&thread.frames[0], inner, 10);
			check_named(&thread.frames[1], middle, 11);
			check_named(&thread.frames[2], outer, 20);
			assert_int_equal(thread.runs,
			                 layout.chain <= CUF_PYTHON_FRAME_CALLS ? 3 : 2);
			assert_int_equal(thread.run[0].end, thread.runs == 3 ? 1 : 2);
			assert_int_equal(thread.run[thread.runs - 1].end, 3);
			assert_int_equal(thread.run[0].marker, made.inner);
			assert_int_equal(thread.run[thread.runs - 1].marker, made.outer);
		}
		assert_true(cuf_python_walks_checked()->note(&python, &thread, made.state, 2));
		assert_int_equal(thread.count, 2);
		assert_true(thread.more);
	}
}

static void test_frames__differ_in_their_hash(void **state)
{
	struct cuf_python_layout layout = layout_of(11);
	uint64_t seen[64];
	unsigned count = 0;
	begin(&layout);
	uintptr_t lines = make_lines(), a = make_code("a", "f", 1, lines),
		  b = make_code("b", "f", 1, lines), c = make_code("a", "g", 1, lines);
	const uintptr_t codes[][3] = { { a, b, c }, { a, c, b }, { b, a, c },
		                       { b, c, a }, { c, a, b }, { c, b, a },
		                       { a, a, b }, { a, b, a }, { b, a, a } };
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		for (unsigned offset = 0; offset < 6; offset += 2) {
			struct made made = make_stack(codes[i], (unsigned[]){ offset, 4, 2 });
			assert_true(cuf_python_walks_for(&layout, true)
			                    ->hash(&python, &thread, made.state, MAX));
			for (unsigned j = 0; j < count; j++)
				assert_true(seen[j] != thread.hash);
			seen[count++] = thread.hash;
		}
}

/* Code that is freed and made anew at the same address, all pointers as they were: every byte that
 * is shown counts. */
static void test_code__made_again_at_an_address_is_another(void **state)
{
	static const char *const names[] = { "Generated_1.name_of_a_method",
		                             "Generated_2.name_of_a_method",
		                             "Generated_1.name_of_a_methof" };
	char file[600];
	for (unsigned minor = 9; minor <= 14; minor++) {
		struct cuf_python_layout layout = layout_of(minor);
		uint64_t identities[40];
		unsigned count = 0;
		for (unsigned i = 0; i < 36; i++) {
			uintptr_t codes[3];
			begin(&layout);
			memset(file, 'x', sizeof file);
			file[i < 3 ? 500 : 33] = 0; /* (rest: one byte of 33 is another) */
			if (i >= 3)
				file[i - 3] = 'y';
			codes[0] = codes[1] = codes[2] = make_code(names[i < 3 ? i : 0], file, 1,
			                                           make_lines());
			struct made made = make_stack(codes, (unsigned[]){ 0, 0, 0 });
			/* without counts of what was freed */
			for (unsigned way = 0; way < 2; way++) {
				assert_true((way ? cuf_python_walks_for(&layout, false)
				                 : cuf_python_walks_checked())
				                    ->note(&python, &thread, made.state, MAX));
				assert_true(!way || thread.frames[0].identity == identities[count]);
				identities[count] = thread.frames[0].identity;
			}
			for (unsigned j = 0; j < count; j++)
				assert_true(identities[j] != identities[count]);
			count++;
		}
	}
}

static unsigned freed;
static void free_it(void *code) { freed += code == &freed; }

/* The part of a type that is read. */
struct type { uint64_t head[3]; const char *name; uint64_t sizes[2]; void (*free)(void *); };
static struct type code_type = { { 0 }, "code", { 0 }, free_it };
static struct type other_type = { { 0 }, "coder", { 0 }, free_it };
static struct type foreign_type = { { 0 }, "code", { 0 }, NULL };
/* has relocations: read-only after them */
static const struct type constant_type = { { 0 }, "code", { 0 }, free_it };

static void test_frees__are_counted_where_that_can_be_done_alone(void **state)
{
	struct cuf_python_layout layout = layout_of(10);
	uintptr_t codes[3];
	uint64_t hash;
	begin(&layout);
	codes[0] = codes[1] = codes[2] = make_code("name", "file", 1, make_lines());
	struct made made = make_stack(codes, (unsigned[]){ 0, 0, 0 });
	foreign_type.free = (void (*)(void *))free; /* of another object */
	assert_false(cuf_python_count_frees((uintptr_t)&other_type));
	assert_false(cuf_python_count_frees((uintptr_t)&foreign_type));
	assert_false(cuf_python_count_frees((uintptr_t)&constant_type));
	assert_false(cuf_python_count_frees((uintptr_t)arena));
	assert_ptr_equal(other_type.free, free_it);
	assert_true(cuf_python_count_frees((uintptr_t)&code_type));
	/* a second call changes nothing */
	assert_true(cuf_python_count_frees((uintptr_t)&code_type));
	assert_true(cuf_python_frees_are_counted((uintptr_t)&code_type));

	const struct cuf_python_walks *walks = cuf_python_walks_for(&layout, true);
	assert_ptr_not_equal(walks, cuf_python_walks_for(&layout, false));
	assert_true(walks->hash(&python, &thread, made.state, MAX));
	hash = thread.hash;
	code_type.free(&freed);
	assert_int_equal(freed, 1);
	assert_true(walks->hash(&python, &thread, made.state, MAX));
	assert_int_equal(thread.hash, hash); /* another program's destructor */
	code_type.free((void *)codes[0]);
	assert_int_equal(freed, 1);
	assert_true(walks->hash(&python, &thread, made.state, MAX));
	assert_true(thread.hash != hash);
	code_type.free = free_it;
	assert_false(cuf_python_frees_are_counted((uintptr_t)&code_type));
}

/* Addresses and numbers that are close together, as an allocator and a counter give them. */
static void test_mix__of_neighbours_differs(void **state)
{
	static uint64_t mixed[256 * 256];
	for (unsigned address = 0; address < 256; address++)
		for (unsigned number = 0; number < 256; number++)
			mixed[address * 256 + number] =
				cuf_python_mix(0x7f1234560000 + address * 16, number);
	for (unsigned i = 0; i < 256; i++) /* one of each address and number, with all the others */
		for (unsigned j = 0; j < 256 * 256; j++)
			assert_true(j == i * 257 || mixed[i * 257] != mixed[j]);
}

static void test_texts__of_all_widths(void **state)
{
	struct cuf_python_layout layout = layout_of(14);
	const uint16_t two[] = { 0x4e2d, 'x', 0xdc80 };
	const uint32_t four[] = { 0x1f600, '\n', 'y' };
	const uint8_t latin[] = { 'g', 0xfc };
	const struct {
		const void *at;
		size_t length;
		unsigned size;
		const char *expected;
	} texts[] = { { two, 3, 2, "\xe4\xb8\xadx\x80\nfile\n1\n" },
		      { four, 3, 4, "\xf0\x9f\x98\x80 y\nfile\n1\n" },
		      { latin, 2, 1, "g\xc3\xbc\nfile\n1\n" } };
	begin(&layout);
	for (unsigned i = 0; i < 9; i++) { /* three releases and builds of 3.14 */
		kind_shift = (const unsigned[]){ 2, 8, 16 }[i / 3];
		uintptr_t code = make_code("x", "file", 1, make_lines());
		put(code + layout.code_qualified,
		    make_text(texts[i % 3].at, texts[i % 3].length, texts[i % 3].size, false), 8);
		struct cuf_python_frame frame = { code, code + layout.code_bytes, 1000 + i, 0 };
		check_named(&frame, texts[i % 3].expected, 10 - 9);
	}
	kind_shift = 2;
}

static uint64_t seed = 1;
static unsigned draw(unsigned below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % below;
}

/* Every offset of a layout, wrong by every amount, and many wrong at once. Nothing may fault:
 * walks, names, lines. */
static void test_layouts__that_are_wrong_cost_frames_alone(void **state)
{
	unsigned survived = 0;
	const char *preload = getenv("LD_PRELOAD");
	/* valgrind answers instead of the kernel, and always with yes */
	if (preload && strstr(preload, "vgpreload"))
		skip();
	for (unsigned minor = 9; minor <= 14; minor++) {
		struct cuf_python_layout layout = layout_of(minor);
		uintptr_t codes[3];
		begin(&layout);
		for (unsigned i = 0; i < 3; i++)
			codes[i] = make_code("name", "file", i, make_lines());
		struct made made = make_stack(codes, (unsigned[]){ 2, 4, 6 });
		/* pointers to everywhere, some to nowhere */
		for (unsigned i = 0; i < ARENA_BYTES - used; i += 8)
			put((uintptr_t)arena + used + i,
			    draw(4) ? (uintptr_t)arena + draw(2 * ARENA_BYTES) : seed, 8);
		for (unsigned i = 0; i < 20000; i++) {
			uint16_t *fields = &python.layout.type;
			size_t count = (sizeof python.layout -
			                offsetof(struct cuf_python_layout, type)) /
			               sizeof *fields;
			python.layout = layout;
			for (unsigned wrong = draw(3) + 1; wrong; wrong--)
				fields[draw((unsigned)count)] = (uint16_t)(draw(3) ? draw(64) * 8
				                                                   : draw(4096));
			if (!draw(4))
				python.layout.lines = (uint8_t)draw(3);
			survived += cuf_python_walks_checked()->note(&python, &thread, made.state,
			                                             MAX);
			for (unsigned frame = 0; frame < thread.count; frame++)
				cuf_python_name(&python, &thread, &thread.frames[frame]);
		}
	}
	/* some mistakes do no harm, others are detected */
	assert_in_range(survived, 1, 6 * 20000 - 1);
}

/*
 * One function (assignment over two lines, try, for, except, finally, comprehension) as four
 * compilers translated it, and the line of every second byte of its code; 0: none.
 */
static void test_lines__of_real_tables(void **state)
{
	static const struct {
		unsigned minor;
		const char *table;
		uint8_t lines[120];
	} functions[] = {
		{ 9, "0001020106ff0402040108010a030c010e011a0210010a0102ff", { 2,  3,  3,  3,  2,
		                                                               2,  4,  4,  5,  5,
		                                                               5,  5,  6,  6,  6,
		                                                               6,  6,  9,  9,  9,
		                                                               9,  9,  9,  10, 10,
		                                                               10, 10, 10, 10, 10,
		                                                               11, 11, 11, 11, 11,
		                                                               11, 11, 11, 11, 11,
		                                                               11, 11, 11, 13, 13,
		                                                               13, 13, 13, 13, 13,
		                                                               13, 14, 14, 14, 14,
		                                                               14, 15, 14, 14, 14 } },
		{ 10,
		  "0201060104ff040208010a010c030e010201088002ff02ff10040a01020106ff",
		  { 2, 3,  3,  3,  2,  2,  4,  4,  5,  5,  5,  5,  6,  6,  6,  6,  6,  9,
		    9, 9,  9,  9,  9,  10, 10, 10, 10, 10, 10, 10, 11, 0,  0,  0,  0,  10,
		    9, 13, 13, 13, 13, 13, 13, 13, 13, 14, 14, 14, 14, 14, 15, 14, 14, 14 } },
		{ 11,
		  "f88000d8090add090a883189148c14f103010a0e8041f00409050cd81112f000010913f0000109138841d80c0d9011894688418841f506"
		  "00090a882189048c0488048804f8dd0b15f00001050ef00001050ef00001050ed8080df8f8f8f8f00301050ef8f8f8f00300090df50800"
		  "090a89038c0388038803f88d0189038c0388038803f8f8f8f002010c1df000010c1df000010c1df000010c1dd81516f003010c1df10001"
		  "0c1df400010c1df00001051d",
		  { 0,  1,  2,  3,  3,  3,  3,  3,  3,  3,  3,  3,  3,  3,  3,  3,  3,  2,  2,  2,
		    4,  5,  5,  5,  5,  6,  6,  6,  6,  6,  6,  9,  9,  9,  9,  9,  9,  9,  9,  9,
		    9,  9,  9,  9,  9,  9,  9,  0,  10, 10, 10, 10, 10, 10, 10, 10, 10, 11, 0,  0,
		    0,  0,  10, 0,  0,  0,  9,  13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13,
		    13, 13, 0,  13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 0,  0,
		    0,  14, 14, 14, 14, 15, 14, 14, 14, 14, 14, 14, 14, 14, 14 } },
		{ 13,
		  "8000d8090adc090a88318b14f103010a0e8041f00409050cdb11128841d80c0d89468a41f103001213f40800090a88218d04f40800090a"
		  "8c03e11516f303010c1dd9151690019b21f703000d0ed91516f103010c1df00001051df8f409000c16f30001050ed8080dfbf00301050e"
		  "fbf40600090a8d03fcf202010c1d",
		  { 1,  2,  3,  3,  3,  3,  3,  3,  3,  3,  3,  3,  2,  2,  2,  4,  5,  5,  5,  5,
		    5,  6,  6,  6,  6,  6,  6,  5,  5,  9,  9,  9,  9,  9,  9,  9,  9,  9,  9,  9,
		    9,  13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 15, 15, 14, 14, 14, 14, 15, 15, 15,
		    15, 15, 15, 15, 14, 14, 14, 14, 14, 14, 14, 14, 15, 15, 14, 14, 14, 0,  10, 10,
		    10, 10, 10, 10, 10, 10, 10, 11, 0,  0,  0,  0,  10, 0,  0,  0,  0,  13, 13, 13,
		    13, 13, 13, 13, 13, 13, 13, 13, 0,  0,  0,  0,  0,  14, 14, 14 } },
	};
	for (unsigned f = 0; f < sizeof functions / sizeof *functions; f++) {
		struct cuf_python_layout layout = layout_of(functions[f].minor);
		uint8_t bytes[512];
		unsigned count = 0, byte, code_bytes = sizeof functions[f].lines;
		for (const char *at = functions[f].table; sscanf(at, "%2x", &byte) == 1; at += 2)
			bytes[count++] = (uint8_t)byte;
		while (!functions[f].lines[code_bytes - 1])
			code_bytes--;
		begin(&layout);
		uintptr_t code = make_code("f", "f.py", 1, make_bytes(bytes, count));
		for (unsigned i = 0; i < code_bytes; i++)
			if (cuf_python_line(&python, code, 2 * i) != functions[f].lines[i])
				fail_msg("3.%u: byte %u is on line %u, not %u", functions[f].minor,
				         2 * i, functions[f].lines[i],
				         cuf_python_line(&python, code, 2 * i));
		assert_int_equal(cuf_python_line(&python, code, -2), 1);
		if (functions[f].minor > 9) /* there the last line has no end */
			assert_int_equal(cuf_python_line(&python, code, 1 << 20), 0);
	}
}

static void test_versions__that_are_not_known_have_no_layout(void **state)
{
	uint64_t words[CUF_PYTHON_OFFSETS_BYTES / 8] = { 0 };
	struct cuf_python_layout layout;
	assert_false(cuf_python_layout_of(0x02071200, words, &layout));
	assert_false(cuf_python_layout_of(0x03080000, words, &layout));
	assert_false(cuf_python_layout_of(0x030d00f0, words, &layout)); /* publishes nothing */
	tell_offsets(words, &known[14 - 9], 0x030e00f0);
	assert_true(cuf_python_layout_of(0x030e00f0, words, &layout));
	assert_false(cuf_python_layout_of(0x030e01f0, words, &layout)); /* of another build */
	assert_false(cuf_python_layout_of(0x030f00f0, words, &layout));
	words[26] = 1 << 20;
	assert_false(cuf_python_layout_of(0x030e00f0, words, &layout));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames__of_every_version),
		cmocka_unit_test(test_frames__differ_in_their_hash),
		cmocka_unit_test(test_code__made_again_at_an_address_is_another),
		cmocka_unit_test(test_frees__are_counted_where_that_can_be_done_alone),
		cmocka_unit_test(test_mix__of_neighbours_differs),
		cmocka_unit_test(test_texts__of_all_widths),
		cmocka_unit_test(test_layouts__that_are_wrong_cost_frames_alone),
		cmocka_unit_test(test_lines__of_real_tables),
		cmocka_unit_test(test_versions__that_are_not_known_have_no_layout),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
