# SPDX-License-Identifier: Apache-2.0
# The libraries that the command links, from their pinned sources, as $(OUT)/lib/*.a with their
# headers in $(OUT)/include. Called by scripts/bundle with CC, AR, SOURCES (unpacked) and OUT.
# Their own build systems ask the machine; here is written what a static program of musl needs.
HERE := scripts/bundle
FLAGS := -O2 -g -w -std=gnu11 -fPIE -D_GNU_SOURCE $(MAP)
E := $(SOURCES)/elfutils
Z := $(SOURCES)/zstd/lib

# What reads files. Not: libasm, debuginfod, kernels' modules, options for command lines, and the
# machines that have no recorder.
skipped := $(patsubst %,$E/%.c,libdwfl/argp-std libdwfl/linux-kernel-modules libdwfl/bzip2 \
           libdwfl/lzma libdwfl/zstd libelf/libelf_crc32 libelf/dl-hash \
           lib/color lib/printversion lib/error lib/dynamicsizehash \
           lib/dynamicsizehash_concurrent backends/x86_corenote backends/linux-core-note)
elf_src := $(filter-out $(skipped),$(sort $(wildcard $E/libelf/*.c)))
dw_src  := $(filter-out $(skipped),$(sort $(wildcard \
           $(patsubst %,$E/%/*.c,lib libdw libdwfl libdwelf libebl) \
           $(patsubst %,$E/backends/%_*.c,x86_64 aarch64)) $E/backends/x32_corenote.c)) \
           $(HERE)/elfutils.c
zstd_src := $(sort $(wildcard $Z/common/*.c $Z/compress/*.c $Z/decompress/*.c))
zlib_src := $(patsubst %,$(SOURCES)/zlib/%.c,adler32 compress crc32 deflate gzclose gzlib gzread gzwrite infback inffast inflate \
           inftrees trees uncompr zutil)
json_src := $(sort $(wildcard $(SOURCES)/json-c/*.c))
demangle_src := $(patsubst %,$(SOURCES)/libiberty/libiberty/%.c,cp-demangle cplus-dem d-demangle \
           rust-demangle concat lbasename safe-ctype xmalloc xmemdup xexit xstrdup)
# no TLS, authentication, forms: what `cuflight serve` answers
http_src := $(patsubst %,$(SOURCES)/microhttpd/src/microhttpd/%.c,connection daemon internal memorypool mhd_compat \
           mhd_itc mhd_mono_clock mhd_send mhd_sockets mhd_str mhd_threads reason_phrase response sysfdsetsize)
sqlite_src := $(SOURCES)/sqlite/deps/sqlite3/sqlite3.c

elf_flags := -DHAVE_CONFIG_H -I$(HERE)/elfutils_config \
           $(patsubst %,-I$E/%,lib libelf libdw libdwfl libdwelf libebl backends libasm) \
           -I$(SOURCES)/zlib
dw_flags := $(elf_flags)
zstd_flags := -DZSTD_DISABLE_ASM -DXXH_NAMESPACE=ZSTD_ -DDEBUGLEVEL=0
zlib_flags := -DHAVE_UNISTD_H -DHAVE_STDARG_H
json_flags := -I$(HERE)/json_config -I$(SOURCES)/json-c
demangle_flags := -DHAVE_STDLIB_H -DHAVE_STRING_H -DHAVE_LIMITS_H -DHAVE_ALLOCA_H -DSTDC_HEADERS \
           -I$(HERE)/libiberty_config -I$(SOURCES)/libiberty/include
http_flags := -I$(HERE)/microhttpd_config -I$(SOURCES)/microhttpd/src/include
sqlite_flags := -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_THREADSAFE=1 -DSQLITE_DQS=0

archives := $(patsubst %,$(OUT)/lib/lib%.a,elf dw zstd z json-c iberty microhttpd sqlite3)
all: $(archives) $(OUT)/include/complete

# KIND ARCHIVE
define archive
$(1)_obj := $$(patsubst %.c,$(OUT)/obj/$(1)/%.o,$$(notdir $$($(1)_src)))
$$($(1)_obj): | $(OUT)/obj/$(1)
$(OUT)/lib/lib$(2).a: $$($(1)_obj) | $(OUT)/lib
	rm -f $$@ && $$(AR) rcsD $$@ $$(sort $$^)
$(OUT)/obj/$(1)/%.o:
	$$(CC) $$(FLAGS) $$($(1)_flags) -c $$(filter %/$$*.c,$$($(1)_src)) -o $$@
endef
$(foreach pair,elf:elf dw:dw zstd:zstd zlib:z json:json-c demangle:iberty http:microhttpd sqlite:sqlite3,\
	$(eval $(call archive,$(firstword $(subst :, ,$(pair))),$(lastword $(subst :, ,$(pair))))))

# the sources are pinned, these are not
$(elf_obj) $(dw_obj): $(HERE)/elfutils_config/config.h
$(OUT)/obj/dw/elfutils.o: $(HERE)/elfutils.c
$(http_obj): $(HERE)/microhttpd_config/MHD_config.h
$(json_obj): $(wildcard $(HERE)/json_config/*)

$(OUT)/lib $(patsubst %,$(OUT)/obj/%,elf dw zstd zlib json demangle http sqlite):
	mkdir -p $@
$(OUT)/include/complete: $(HERE)/libraries.mk
	rm -rf $(@D) && mkdir -p $(patsubst %,$(@D)/%,elfutils json-c libiberty)
	cp $(patsubst %,$E/%,libelf/libelf.h libelf/gelf.h libelf/nlist.h libdw/dwarf.h) $(@D)
	cp $(patsubst %,$E/%,libelf/elf-knowledge.h libdw/libdw.h libdwfl/libdwfl.h \
		libdwelf/libdwelf.h version.h) $(@D)/elfutils
	cp $Z/*.h $(SOURCES)/zlib/zlib.h $(SOURCES)/zlib/zconf.h \
		$(SOURCES)/sqlite/deps/sqlite3/sqlite3.h \
		$(SOURCES)/microhttpd/src/include/microhttpd.h $(@D)
	cp $(SOURCES)/json-c/*.h $(HERE)/json_config/*.h $(@D)/json-c
	cp $(SOURCES)/libiberty/include/*.h $(@D)/libiberty
	cp -r $(wildcard $(patsubst %,$(SOURCES)/%/usr/include/*,libbsd xxhash uthash)) $(@D)
	touch $@
.PHONY: all
.DELETE_ON_ERROR:
