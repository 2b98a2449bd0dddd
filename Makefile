# SPDX-License-Identifier: Apache-2.0
# One file, non-recursive. `make help` lists targets and variables. Objects are in $(O)/, sanitizer
# builds in $(O)/$(SAN)/.
V      ?=
SAN    ?=
O      ?= build
PREFIX ?= /usr/local
DESTDIR ?=
CC     ?= cc
OBJCOPY ?= objcopy
CUDA_HOME ?= $(firstword $(wildcard /usr/local/cuda) $(wildcard $(O)/cuda))

B := $(O)$(if $(SAN),/$(SAN))
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) $(patsubst $(B)/%,%,$@);)

WARN   := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter \
          $(if $(CI),-Werror)
BASE   := -std=gnu11 -O2 -g -fno-strict-aliasing -I. -D_GNU_SOURCE $(WARN) -MMD -MP \
          $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# the same for programs and libraries of one file, whose rules list their headers
PLAIN  := $(filter-out -MMD -MP,$(BASE))
# The library runs in other people's processes: it exports only what it must and uses few bytes of
# static TLS. It defines malloc, so the compiler must not know what malloc does.
LIBF   := $(BASE) -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-builtin \
          -fno-plt -fdata-sections
# Behind CFLAGS: Ubuntu's compiler and packagers switch checks on, whose functions of glibc are not
# in libc.map.
UNCHECKED := -U_FORTIFY_SOURCE -fno-stack-protector
CMDF   := $(BASE)
VERSION := 0.1.0
KINDS  := lint unit e2e golden fault torture gpu $(if $(filter yes,$(FRAMEWORKS)),frameworks)
SANITIZED := $(if $(SANITIZERS),asan ubsan tsan valgrind)
results = $(KINDS:%=$(B)/results/%) $(foreach s,$(SANITIZED),$(result_$(s)))
result_asan = $(B)/address/results/unit
result_ubsan = $(B)/undefined/results/unit
result_tsan = $(B)/thread/results/unit
result_valgrind = $(B)/results/valgrind

# The rooms of the recorder from the bottom up. Six files of hooks/ hook nothing, so unit tests
# can link them.
core_rooms := platform objects store code python stack process incident record
core_src := $(wildcard both/*.c $(core_rooms:%=interpose/%/*.c)) $(patsubst %,interpose/hooks/%.c, \
            cuda/nvml malloc/boot_alloc malloc/map_table malloc/process_maps \
            malloc/glibc_heap)
hook_src := $(filter-out $(core_src),$(wildcard interpose/hooks/*/*.c))
# `cuflight serve` listens where libmicrohttpd is there, and `top` has its screen where ncursesw is.
has_header = $(shell $(CC) -E -include $(1) -x c /dev/null >/dev/null 2>&1 && echo yes)
HTTP     ?= $(call has_header,microhttpd.h)
CURSES   ?= $(call has_header,ncursesw/curses.h)
cmd_src  := $(filter-out analysis/cmd/main.c analysis/cmd/serve/http_$(if $(HTTP),absent,daemon).c \
            analysis/cmd/live/$(if $(CURSES),screen_absent,curses_%).c analysis/cmd/target/asker.c, \
            $(wildcard analysis/*/*.c analysis/*/*/*.c))
both_obj := $(patsubst %.c,$(B)/obj/%.o,$(wildcard both/*.c)) # compiled once, for both sides
core_obj := $(core_src:%.c=$(B)/obj/%.o)
hook_obj := $(hook_src:%.c=$(B)/obj/%.o)
cmd_obj  := $(cmd_src:%.c=$(B)/obj/%.o) $(both_obj) $(B)/obj/gen/html_assets.o
# The page of `report --html`, two texts. They are bundled when its npm modules are there, which
# `scripts/setup build` fetches. A release has them ready. Without the texts the command is built
# without the page.
page_modules := $(wildcard $(O)/page/node_modules/esbuild/package.json)
html     := $(if $(page_modules),$(O)/view/html,$(patsubst %/page.js,%, \
            $(firstword $(wildcard release/page.js) $(O)/view/html/page.js)))
HTML_JS  ?= $(html)/page.js
HTML_CSS ?= $(html)/page.css
page_src := $(wildcard $(foreach kind,js mjs css json,analysis/view/html/page/*.$(kind) \
            analysis/view/html/page/*/*.$(kind)))
page_texts   := $(if $(page_modules),$(HTML_JS) $(HTML_CSS),$(wildcard $(HTML_JS) $(HTML_CSS)))
CMD_LIBS := $(if $(HTTP),-lmicrohttpd) $(if $(CURSES),-lncursesw) -ldw -lelf -ljson-c -lsqlite3 -lzstd -lz -liberty -lm

# A unit test is in the folder of the room that it tests. Its program has the same path below
# $(B)/unit.
unit_src      := $(filter-out tests/unit/fixtures/%,$(wildcard \
                 $(foreach depth,*/* */*/* */*/*/*,tests/unit/$(depth).c)))
unit_tests    := $(unit_src:tests/%.c=$(B)/%)
call_obj      := $(filter-out %/cuda_runtime.o, \
                 $(filter $(B)/obj/interpose/hooks/cuda/cuda_%,$(hook_obj)))
# A victim is in the folder of what misbehaves. Its program is $(B)/victims/NAME.
victim_rooms  := device driver host process framework gate
victim_src    := $(wildcard $(victim_rooms:%=tests/victims/%/*.c))
victim_heads  := $(wildcard tests/victims/*.h tests/victims/*.def tests/victims/*/*.h)
victims       := $(patsubst %.c,$(B)/victims/%,$(notdir $(victim_src))) $(B)/victims/cause_fixture
preloads      := $(patsubst %,tests/bench/%.c,walker_oracle python_stacks null_interposer)
benches       := $(patsubst tests/bench/%.c,$(B)/bench/%, \
                 $(filter-out $(preloads),$(wildcard tests/bench/*.c))) \
                 $(preloads:tests/bench/%.c=$(B)/bench/%.so) \
                 $(B)/bench/malloc_workload_nofp $(B)/bench/malloc_workload_fp
# the same victims linked to the driver, as programs built with -lcuda are
linked        := $(patsubst %.c,$(B)/victims/linked/%,$(notdir \
                 $(shell grep -lE 'victims/(doors|vmm)\.h"' $(victim_src))))
static        := $(if $(wildcard $(CUDA_HOME)/lib/libcudart_static.a), \
                 $(B)/victims/static/real_runtime_lookups)
tools         := $(patsubst tests/fault/%.c,$(B)/fault/%,$(wildcard tests/fault/*.c))
torture       := $(B)/torture/program $(B)/torture/plugin.so
sim           := $(B)/sim/libcuda.so.1 $(B)/sim/libcudart.so.13 $(B)/sim/libcudart.so.12 \
                 $(foreach release,450 535 580,$(B)/sim/nvml-$(release)/libnvidia-ml.so.1)
# what the simulator shares with the product
sim_shared    := $(wildcard interpose/abi/*.h) interpose/abi/hooks.def \
                 $(wildcard tests/sim/*.h tests/sim/*.def)

# the second is for tests: it does as where glibc, before 2.35, cannot find objects
recorders     := $(B)/libcuflight.so $(B)/before_2.35/libcuflight.so

all: interpose analysis ## the library and the command
	$(if $(page_texts),,@echo "built without the page of 'cuflight report --html':" \
		"install npm, run 'scripts/setup build', then make again")
interpose: $(B)/libcuflight.so ## only libcuflight.so: needs nothing except a C compiler
analysis: $(B)/cuflight ## only the command
tests: all unit ## what checks run
tests: $(sim) $(victims) $(linked) $(static) $(tools) $(torture) $(benches) $(recorders)
unit: $(unit_tests) ## only the unit tests
sim: $(sim) ## the simulated driver and runtime

$(B)/export.map: interpose/export.map.in interpose/abi/hooks.def Makefile
	@mkdir -p $(@D)
	$(call say,GEN)$(CC) -E -P -x c -I. $< -o $@

# What the recorder may use of the C library. Sanitizers bring their own needs.
$(B)/libc/libc.so.6: interpose/libc.map.in Makefile
	@mkdir -p $(@D)
	$(call say,GEN)$(CC) -E -P -x c $< -o $(@D)/libc.map && \
		sed '/^GLIBC/s/.*{//; s/[};]/ /g' $(@D)/libc.map | tr -s ' \t' '\n\n' | \
		sed -n 's/..*/void &(void) {}/p' > $(@D)/libc.c && \
		$(CC) -w -fPIC -fno-builtin -nostdlib -shared -Wl,-soname,libc.so.6 \
		-Wl,--version-script=$(@D)/libc.map $(@D)/libc.c -o $@
link_libc := $(if $(SAN),,-nodefaultlibs $(B)/libc/libc.so.6 -lgcc)
# lld has only the first, which is the same here: no variable is exported.
bind_locally = $(if $(findstring zig,$(CC)),-Bsymbolic,-Bsymbolic-functions)
loaded := $(B)/obj/interpose/objects/loaded.o
$(B)/before_2.35/loaded.o: $(loaded)
	@mkdir -p $(@D)
	$(call say,GEN)$(OBJCOPY) --redefine-sym _dl_find_object=is_not_there $< $@
$(B)/libcuflight.so: $(loaded)
$(B)/before_2.35/libcuflight.so: $(B)/before_2.35/loaded.o
$(recorders): $(filter-out $(loaded),$(core_obj)) $(hook_obj) $(B)/export.map \
		$(filter %.6,$(link_libc))
	$(call say,LINK)$(CC) $(LIBF) -shared $(LDFLAGS) \
		-Wl,-z,defs,-z,now,-z,relro,--sort-section=alignment,$(bind_locally) -Wl,-soname,libcuflight.so \
		-Wl,--version-script=$(B)/export.map $(filter %.o,$^) -o $@ $(link_libc)

$(B)/cuflight: $(B)/obj/analysis/cmd/main.o $(B)/libanalysis.a
	$(call say,LINK)$(CC) $(CMDF) $(LDFLAGS) $^ -o $@ $(CMD_LIBS)

$(B)/libanalysis.a: $(cmd_obj)
	$(call say,AR)rm -f $@ && ar rcs $@ $^
$(B)/libcore.a: $(core_obj)
	$(call say,AR)rm -f $@ && ar rcs $@ $^
$(B)/libcalls.a: $(call_obj)
	$(call say,AR)rm -f $@ && ar rcs $@ $^

$(B)/obj/interpose/%.o: interpose/%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(LIBF) $(CFLAGS) $(UNCHECKED) -c $< -o $@
$(B)/obj/both/%.o: both/%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(LIBF) $(CFLAGS) $(UNCHECKED) -c $< -o $@
$(B)/obj/analysis/%.o: analysis/%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CMDF) -DCUFLIGHT_VERSION='"$(VERSION)"' \
		-DCUFLIGHT_PREFIX='"$(PREFIX)"' $(CFLAGS) -c $< -o $@

# A program inside the command: the asker, which loads libraries. A static command needs another
# compiler for it, and has the recorder inside.
PROGRAM_CC ?= $(CC)
asker_src := analysis/cmd/target/asker.c analysis/cmd/target/nvml_reader.c
$(B)/asker: $(asker_src) analysis/cmd/target/nvml_reader.h $(wildcard interpose/abi/*.h)
	@mkdir -p $(@D)
	$(call say,LINK)$(PROGRAM_CC) $(filter-out -fsanitize=%,$(PLAIN)) $(CFLAGS) $(LDFLAGS) -s \
		$(asker_src) -o $@ -ldl
$(B)/obj/analysis/cmd/target/images.o: $(B)/asker $(RECORDER)
$(B)/obj/analysis/cmd/target/images.o: CMDF += -DASKER_FILE='"$(B)/asker"' \
	$(if $(RECORDER),-DRECORDER_FILE='"$(RECORDER)"')

ifneq ($(page_modules),)
$(O)/view/html/page.js $(O)/view/html/page.css $(O)/view/html/licences.txt &: $(page_src) $(page_modules)
	@mkdir -p $(@D)
	$(call say,BUNDLE)PATH="$(CURDIR)/build/node/bin:$$PATH" node analysis/view/html/page/bundle.mjs $(O)/page/node_modules $(@D)
endif
$(B)/obj/analysis/view/live/live_page.o: analysis/view/live/live_page.html
$(B)/gen/html_assets.c: scripts/embed-page $(page_texts)
	@mkdir -p $(@D)
	$(call say,GEN)scripts/embed-page $(HTML_JS) $(HTML_CSS) > $@.tmp && mv $@.tmp $@
$(B)/obj/gen/html_assets.o: $(B)/gen/html_assets.c analysis/view/html/assets.h
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CMDF) $(CFLAGS) -c $< -o $@

# A unit test of interpose/ links the recorder without its hooks, which would interpose the test's
# malloc. A test of hooks/cuda adds the driver's functions. A test of analysis/ links all of it
# except main(). A test of both sides reads what it has written.
$(B)/unit/interpose/objects/loaded: private CFLAGS += \
	-Wl,-z,max-page-size=0x200000,-z,noseparate-code # a program with a gap
$(B)/unit/interpose/%: tests/unit/interpose/%.c $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,TEST)$(CC) $(BASE) -fno-builtin-malloc $(CFLAGS) $< $(B)/libcore.a -o $@ \
		-lcmocka -lpthread -ldl
$(B)/unit/interpose/hooks/cuda/%: tests/unit/interpose/hooks/cuda/%.c $(B)/libcalls.a $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,TEST)$(CC) $(BASE) $(CFLAGS) $< $(B)/libcalls.a $(B)/libcore.a -o $@ \
		-lcmocka -lpthread -ldl
$(B)/unit/both_sides/%: tests/unit/both_sides/%.c $(B)/libcore.a $(B)/libanalysis.a
	@mkdir -p $(@D)
	$(call say,TEST)$(CC) $(BASE) -fno-builtin-malloc $(CFLAGS) $< $(B)/libcore.a \
		$(B)/libanalysis.a -o $@ -lcmocka $(CMD_LIBS) -lpthread -ldl
$(B)/unit/analysis/%: tests/unit/analysis/%.c $(B)/libanalysis.a
	@mkdir -p $(@D)
	$(call say,TEST)$(CC) $(BASE) $(CFLAGS) $< $(B)/libanalysis.a -o $@ -lcmocka $(CMD_LIBS)

SHAREDF := -fPIC -fvisibility=hidden -shared
$(B)/sim/libcuda.so.1: $(wildcard tests/sim/driver*.c) tests/sim/settings.c $(sim_shared)
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(PLAIN) $(SHAREDF) -Wl,-soname,libcuda.so.1 $(filter %.c,$^) -o $@ \
		-lpthread && ln -sf libcuda.so.1 $(@D)/libcuda.so
# NVML as in a driver of that release; scripts/simcuda chooses one
nvml_src := $(patsubst %,tests/sim/%.c,nvml driver_device settings)
$(B)/sim/nvml-%/libnvidia-ml.so.1: $(nvml_src) $(sim_shared)
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(PLAIN) $(SHAREDF) -DNVML_ERA=$* -Wl,-soname,libnvidia-ml.so.1 \
		$(filter %.c,$^) -o $@ -lpthread
$(B)/sim/libcudart.so.%: $(wildcard tests/sim/runtime/*) $(sim_shared)
	@mkdir -p $(@D)
	$(call say,SIM)sed 's/@SONAME@/libcudart.so.$*/' tests/sim/runtime/runtime.map.in \
		> $@.map && \
		$(CC) $(PLAIN) $(SHAREDF) -DCUDART_MAJOR=$* -Wl,-soname,libcudart.so.$* \
		-Wl,--version-script=$@.map $(filter %.c,$^) -o $@ -ldl -lpthread

# Checked functions are builtins again: a memset of what nobody reads would be gone.
VICTIMF = $(filter-out -fsanitize=%,$(PLAIN)) -O1 -fno-builtin -fno-inline \
          -fno-optimize-sibling-calls $(CFLAGS) -U_FORTIFY_SOURCE
VICTIM_LIBS_runtime_linked := -L$(B)/sim -l:libcudart.so.13
$(B)/victims/runtime_linked: | $(B)/sim/libcudart.so.13
# the parts of PyTorch's two libraries that handle memory
$(B)/victims/torch/libc10.so: tests/victims/torch/c10.c $(wildcard tests/victims/torch/*.h)
	@mkdir -p $(@D)
	$(call say,VICTIM)$(CC) $(VICTIMF) $(SHAREDF) -Wl,-soname,libc10.so $< -o $@
$(B)/victims/torch/libc10_cuda.so: tests/victims/torch/c10_cuda.c \
		$(wildcard tests/victims/torch/*.h) $(B)/victims/torch/libc10.so
	@mkdir -p $(@D)
	$(call say,VICTIM)$(CC) $(filter-out -O1 -fno-inline,$(VICTIMF)) $(SHAREDF) \
		-Wl,-soname,libc10_cuda.so $< -o $@ -L$(@D) -l:libc10.so -Wl,-rpath,'$$ORIGIN'
# a communicator and handles that allocate device memory; ggml's buffers
small_libraries := $(B)/victims/torch/libhandles.so $(B)/victims/torch/libggml-base.so
$(small_libraries): $(B)/victims/torch/lib%.so: $(wildcard tests/victims/torch/*.[ch])
	@mkdir -p $(@D)
	$(call say,VICTIM)$(CC) $(VICTIMF) $(SHAREDF) -Wl,-soname,$(@F) \
		tests/victims/torch/$(firstword $(subst -, ,$*)).c -o $@
$(B)/victims/ggml_buffers $(B)/victims/linked/ggml_buffers: $(B)/victims/torch/libggml-base.so
$(B)/victims/torch_allocator $(B)/victims/linked/torch_allocator: $(B)/victims/torch/libhandles.so
$(B)/victims/torch_allocator $(B)/victims/linked/torch_allocator $(B)/victims/cause_fixture: \
		$(B)/victims/torch/libc10_cuda.so
vpath %.c $(victim_rooms:%=tests/victims/%)
# one more function in a library changes nothing for what was linked before
$(B)/victims/linked/%: %.c $(victim_heads) | $(B)/sim/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,VICTIM)$(CC) $(VICTIMF) -DDOOR_LINKED $< -o $@ -L$(B)/sim -l:libcuda.so.1 \
		-ldl -lpthread
$(B)/victims/static/%: %.c $(CUDA_HOME)/lib/libcudart_static.a
	@mkdir -p $(@D)
	$(call say,VICTIM)$(CC) $(VICTIMF) -DRUNTIME_STATIC $^ -o $@ -ldl -lpthread -lrt
$(B)/victims/is_interposed: interpose/abi/hooks.def
$(B)/victims/cause_fixture: $(wildcard tests/victims/causes/*.[ch]) $(victim_heads)
	@mkdir -p $(@D)
	$(call say,VICTIM)$(CC) $(VICTIMF) $(filter %.c,$^) -o $@ -ldl -lpthread
# -fno-builtin: the compiler must not remove a pair of malloc and free. Symbols come from .symtab,
# so -rdynamic is not needed.
$(B)/victims/%: %.c $(victim_heads)
	@mkdir -p $(@D)
	$(call say,VICTIM)$(CC) $(VICTIMF) $< -o $@ $(VICTIM_LIBS_$*) -ldl -lpthread
$(B)/bench/%: tests/bench/%.c
	@mkdir -p $(@D)
	$(call say,BENCH)$(CC) $(PLAIN) -fno-builtin $(CFLAGS) $< $(filter %.a,$^) -o $@ \
		$(if $(filter %/libanalysis.a,$^),$(CMD_LIBS)) -ldl -lpthread -lm
$(B)/bench/unwinder_cost $(B)/bench/live_verdict: $(B)/libcore.a
workloads := $(B)/bench/malloc_workload_fp $(B)/bench/malloc_workload_nofp
$(workloads): $(B)/bench/malloc_workload_%: tests/bench/malloc_workload.c
	@mkdir -p $(@D)
	$(call say,BENCH)$(CC) $(filter-out -fsanitize=% -fno-omit-frame-pointer,$(PLAIN)) \
		$(if $(filter fp,$*),-fno-omit-frame-pointer,-fomit-frame-pointer) \
		-fno-builtin $(CFLAGS) $< -o $@ -lpthread
$(B)/bench/null_interposer.so: tests/bench/null_interposer.c
	@mkdir -p $(@D)
	$(call say,BENCH)$(CC) $(filter-out -MMD -MP,$(LIBF)) $(CFLAGS) -shared $< -o $@
$(B)/bench/reader_throughput $(B)/bench/timelapse: $(B)/libanalysis.a
# Loaded into real programs. The first one compares the walker's stacks with libunwind's, the second
# one measures what Python frames cost (scripts/bench python).
probes := $(B)/bench/walker_oracle.so $(B)/bench/python_stacks.so
$(probes): $(B)/bench/%.so: tests/bench/%.c $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,BENCH)$(CC) $(filter-out -MMD -MP,$(LIBF)) $(CFLAGS) -shared $< $(B)/libcore.a \
		-o $@ -ldl -lpthread
# -fno-builtin: the compiler must not remove a pair of malloc and free
$(B)/torture/program: tests/torture/program.c tests/torture/blocks.c tests/torture/blocks.h \
		tests/torture/loaders.c tests/torture/loaders.h tests/victims/host/host_ways.h \
		interpose/abi/cuda_types.h
	@mkdir -p $(@D)
	$(call say,TORTURE)$(CC) $(VICTIMF) $(filter %.c,$^) -o $@ -ldl -lpthread
$(B)/torture/plugin.so: tests/torture/plugin.c
	@mkdir -p $(@D)
	$(call say,TORTURE)$(CC) $(VICTIMF) -fPIC -shared $< -o $@
# tools of the fault runs may read recordings, so they link the analysis
$(B)/fault/%: tests/fault/%.c $(B)/libanalysis.a $(victim_heads)
	@mkdir -p $(@D)
	$(call say,FAULT)$(CC) $(PLAIN) $(CFLAGS) $< $(B)/libanalysis.a -o $@ $(CMD_LIBS)

# A failed kind does not stop the others. The last line is their sum. SANITIZERS=1 adds sanitizers
# and valgrind.
check: tests ## all checks; the last line is "N passed, N failed, N skipped"
	@rm -rf $(B)/results $(B)/*/results
	@for kind in $(KINDS); do scripts/check $$kind $(B) || :; done
	@for kind in $(SANITIZED); do \
		$(MAKE) -s -j$$(nproc) --no-print-directory check-$$kind || :; \
	done
	@scripts/tally $(results)
check-unit: unit ## unit tests of the recorder and the analysis
	@scripts/check unit $(B)
check-e2e: tests ## victims under cuflight, on the simulated device
	@scripts/check e2e $(B)
check-golden: tests ## kept recordings, read again
	@scripts/check golden $(B)
check-fault: tests ## failing system calls, kills, full disks
	@scripts/check fault $(B)
check-torture: tests ## random programs, native and recorded, for a minute
	@scripts/check torture $(B)
torture: tests ## the same for TORTURE_SECONDS=600, from TORTURE_SEED
	@tests/torture/run.py $(B) --seconds $${TORTURE_SECONDS:-600} \
		$(if $(TORTURE_SEED),--seed $(TORTURE_SEED))
check-gpu: tests ## the same victims on a real GPU; skipped where there is none
	@scripts/check gpu $(B)
check-suites: all ## test suites of allocators and C libraries (minutes, so not in check)
	@CHECK_SECONDS=$${CHECK_SECONDS:-3000} scripts/check suites $(B)
check-machines: all ## aarch64 under qemu; needs scripts/setup machines
	@scripts/check machines $(B)
check-systems: ## what bundle made, on old and new glibc, musl, nothing: as root, with debootstrap
	@scripts/check-systems
check-agents: all ## LangChain, LangGraph, AutoGen, CrewAI; needs scripts/setup frameworks
	@scripts/check frameworks $(B) agents
check-frameworks: tests ## real PyTorch, llama.cpp, agents, CuPy, JAX, as far as setup fetched them
	@scripts/check frameworks $(B)
check-asan: ## unit tests, readers included, under AddressSanitizer
	$(Q)$(MAKE) SAN=address check-unit
check-ubsan: ## the same under UndefinedBehaviorSanitizer
	$(Q)$(MAKE) SAN=undefined check-unit
check-tsan: ## the same under ThreadSanitizer, for the recorder's thread tests
	$(Q)$(MAKE) SAN=thread check-unit
check-valgrind: unit ## unit tests under valgrind's memcheck
	@scripts/check valgrind $(B)
fuzz: ## the reader under libFuzzer, FUZZ_SECONDS=60; FUZZ_TARGET=exports, pack, rules, serve: others
	@scripts/fuzz $(B) $${FUZZ_SECONDS:-60} $${FUZZ_TARGET:-recording}
lint: ## rules that no compiler checks: layers, sizes, words, exports, shell, documents
	@scripts/lint $(B)
bench: tests ## what recording costs, compared with native runs
	@scripts/bench $(B)
bench-host: tests ## malloc compared with heaptrack, jemalloc and gperftools; QUICK=1
	@tests/bench/host.py $(B)
bench-fleet: tests ## 10,000 recordings exported and queried; FLEET_PROCESSES=
	@tests/bench/fleet.py $(B)
bench-causes: tests ## which causes the report confuses, 20 seeds each
	@tests/bench/causes.py $(B)
gen: analysis ## write the documents that come from the tables
	@scripts/gen-docs $(B)
format: ## clang-format on the lines changed since HEAD
	$(Q)git diff -U0 --no-color HEAD -- '*.c' '*.h' | clang-format-diff -p1 -i

into = $(DESTDIR)$(PREFIX)
# what loaders make of $$LIB in a path: this, lib64 or lib
multiarch = $(if $(filter aarch64%,$(shell $(CC) -dumpmachine)),aarch64,x86_64)-linux-gnu
put = $(if $(2),install -d $(into)/$(3) && install -m $(1) $(2) $(into)/$(3)/)
install: all ## into $(DESTDIR)$(PREFIX)
	$(call put,755,$(B)/cuflight,bin)
	$(call put,644,$(B)/libcuflight.so,lib)
	install -d $(into)/lib64 $(into)/lib/$(multiarch)
	ln -sf ../lib/libcuflight.so $(into)/lib64/
	ln -sf ../libcuflight.so $(into)/lib/$(multiarch)/
	$(call put,644,$(wildcard interpose/cuflight.h scripts/ci/*.h),include)
	$(call put,644,$(wildcard analysis/cmd/man/*.1),share/man/man1)
	$(call put,644,$(wildcard analysis/cmd/man/*.7),share/man/man7)
	$(call put,644,$(wildcard analysis/view/*.schema.json),share/cuflight)
	$(call put,644,$(wildcard analysis/cmd/man/cuflight.bash),share/bash-completion/completions)
dist: $(page_texts) ## a release that builds without node and network: $(O)/dist/*.tar.gz
	@scripts/dist cuflight-$(VERSION) $(html) $(O)/dist
ARCH ?= x86_64
bundle: ## wheel, .deb, tar, image for ARCH=x86_64|aarch64, with zig: $(O)/bundle/ARCH/dist
	@scripts/bundle/build $(ARCH) $(VERSION) $(O)/bundle
uninstall: ## remove what install wrote
	rm -f $(into)/bin/cuflight $(into)/include/cuflight*.h
	rm -f $(patsubst %,$(into)/%/libcuflight.so,lib lib64 lib/$(multiarch))
	rm -f $(into)/share/man/man1/cuflight*.1 $(into)/share/man/man7/cuflight*.7
	rm -f $(into)/share/bash-completion/completions/cuflight.bash
	rm -rf $(into)/share/cuflight
downloaded = page cuda cuda12 nvtx% pytest% ci_readers table_readers clickhouse wheels memory_viz \
             frameworks trace_processor node node_modules package% bundle \
             drivers systems fresh
clean: ## remove $(O)/, except downloads
	rm -rf $(filter-out $(downloaded:%=$(O)/%),$(wildcard $(O)/*))
help: ## this list
	@echo 'targets:'
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' Makefile
	@echo 'variables: O=build PREFIX= DESTDIR= CC= CFLAGS='
	@echo '  V=1                            show commands'
	@echo '  CI=1                           warnings are errors'
	@echo '  SAN=address|undefined|thread   build with a sanitizer'
	@echo '  SANITIZERS=1                   check adds sanitizers and valgrind'
	@echo '  FRAMEWORKS=yes                 check adds check-frameworks'
	@echo '  CUDA_HOME=                     test with the real headers and runtime'

-include $(core_obj:.o=.d) $(hook_obj:.o=.d) $(cmd_obj:.o=.d) $(B)/obj/analysis/cmd/main.d
-include $(wildcard $(unit_tests:=.d))
.PHONY: all interpose analysis tests unit sim check check-unit check-e2e check-golden \
        check-fault check-torture torture check-gpu check-suites check-machines check-systems \
        check-agents check-frameworks check-asan check-ubsan check-tsan check-valgrind fuzz lint bench \
        bench-host bench-causes bench-fleet gen format dist bundle install uninstall clean help
.DELETE_ON_ERROR:
