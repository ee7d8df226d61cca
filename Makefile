# Coppice. `make help` lists the targets.
BUILD   ?= build
ifeq ($(origin CC),default)
CC      := gcc
endif
OPT     ?= -O2 -g
SAN     ?=
WARN    := -Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wstrict-prototypes -Werror
PKGS    := libwebsockets libuv libzmq libsodium libcrypto libcurl libcjson libcmark libgit2 sqlite3 zlib libzstd
CFLAGS  += -std=gnu17 -D_GNU_SOURCE -I. -I$(BUILD)/gen -MMD -MP $(OPT) $(SAN) $(WARN) -fstack-protector-strong
CFLAGS  += $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LDLIBS  += $(shell pkg-config --libs $(PKGS) 2>/dev/null) -linih -lpthread -lm
LDFLAGS += $(SAN)

# One list of sources per room.
BASE   := $(wildcard gateway/base/*.c)
DOOR   := $(wildcard gateway/door/*.c)
SPINE  := $(wildcard gateway/spine/*.c)
MAIN   := $(wildcard gateway/*.c)
BRIDGE := $(wildcard kernel-bridge/*.c)
HISTORY := $(wildcard history/*.c)
ADAPTER := $(wildcard frontend-adapter/*.c)
LIB    := $(BASE) $(DOOR) $(SPINE) $(BRIDGE) $(HISTORY) $(ADAPTER) $(filter-out gateway/main.c,$(MAIN))
# A program of its own, the only one with these libraries.
RENDER := $(wildcard frontend-adapter/render/*.c)
RENDER_PKGS := gumbo librsvg-2.0 gdk-pixbuf-2.0 pangocairo fontconfig libsodium
RENDER_CFLAGS := $(patsubst -I%,-isystem %,$(shell pkg-config --cflags $(RENDER_PKGS) 2>/dev/null))
RENDER_LIBS := $(shell pkg-config --libs $(RENDER_PKGS) libcjson 2>/dev/null) -lm

C_FILES := $(wildcard gateway/*.[ch] gateway/*/*.[ch] kernel-bridge/*.[ch] history/*.[ch] \
	frontend-adapter/*.[ch] frontend-adapter/render/*.[ch] tests/lib/*.[ch] tests/unit/*.c \
	tests/flow/*/*.c tests/fuzz/*.c tests/bench/*.c)
ASAN   := OPT="-O1 -g" SAN="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
TSAN   := OPT="-O1 -g" SAN="-fsanitize=thread"
PREFIX ?= /usr/local

LIB_O  := $(LIB:%.c=$(BUILD)/obj/%.o)
RENDER_O := $(RENDER:%.c=$(BUILD)/obj/%.o)
UNIT   := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
FLOW   := $(patsubst tests/flow/%.c,$(BUILD)/tests/flow/%,$(wildcard tests/flow/*/test_*.c))
BENCH  := $(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%,$(wildcard tests/bench/*.c))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all run test check unit flow python lint asan asan-check faults tsan e2e soak fuzz bench bench-branch \
	bench-history image install clean help build-tests bench-programs replay explore

all: $(BUILD)/coppice $(BUILD)/coppice-render ## the gateway, at build/coppice, and its drawing program

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1	/p' Makefile | expand -t 16

$(BUILD)/coppice: $(BUILD)/obj/gateway/main.o $(BUILD)/libcoppice.a
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/coppice-render: $(BUILD)/obj/frontend-adapter/render/main.o $(BUILD)/librender.a
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(RENDER_LIBS)

$(BUILD)/librender.a: $(filter-out %/render/main.o,$(RENDER_O)) $(BASE:%.c=$(BUILD)/obj/%.o)
	@rm -f $@
	@ar rcs $@ $^

$(RENDER_O): CFLAGS += $(RENDER_CFLAGS)

$(BUILD)/libcoppice.a: $(LIB_O)
	@rm -f $@
	@ar rcs $@ $^

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "CC  $<"
	@$(CC) $(CFLAGS) -c -o $@ $<

# The profile is embedded.
$(BUILD)/obj/kernel-bridge/docker_create.o: images/kernel/seccomp.json
$(BUILD)/obj/gateway/door/rest_openapi.o: gateway/door/openapi.json

# Tests link the archive last, so a fake that defines a room's functions takes its place.
$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(BUILD)/libcoppice.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

$(BUILD)/tests/unit/test_render_%: $(BUILD)/obj/tests/unit/test_render_%.o $(BUILD)/librender.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(RENDER_LIBS) -lcmocka

$(BUILD)/tests/bench/%: $(BUILD)/obj/tests/bench/%.o $(BUILD)/libcoppice.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# spine: fake bridge (kernels), fake recorder and fake clock. bridge: fake engine and fake clock.
$(BUILD)/tests/flow/spine/%: $(BUILD)/obj/tests/flow/spine/%.o $(BUILD)/obj/tests/lib/fake_bridge.o \
		$(BUILD)/obj/tests/lib/fake_histories.o $(BUILD)/obj/tests/lib/fake_clock.o $(BUILD)/libcoppice.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

$(BUILD)/tests/flow/bridge/%: $(BUILD)/obj/tests/flow/bridge/%.o $(BUILD)/obj/tests/lib/fake_engine.o $(BUILD)/obj/tests/lib/fake_script.o \
		$(BUILD)/obj/tests/lib/fake_clock.o $(BUILD)/libcoppice.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

# history: real git, real sqlite, a folder of its own.
$(BUILD)/tests/flow/history/%: $(BUILD)/obj/tests/flow/history/%.o $(BUILD)/libcoppice.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

# house: all of it, but the bridge, whose objects' calls can be made to fail (tests/lib/faults.h).
FAULTY := $(filter-out $(BUILD)/faulty/gateway/base/base.o,$(LIB:%.c=$(BUILD)/faulty/%.o))

$(BUILD)/faulty/%.o: $(BUILD)/obj/%.o tests/lib/faults.syms
	@mkdir -p $(@D)
	@objcopy --redefine-syms=tests/lib/faults.syms $< $@

$(BUILD)/libfaulty.a: $(FAULTY) $(BUILD)/obj/gateway/base/base.o
	@rm -f $@
	@ar rcs $@ $^

$(BUILD)/tests/flow/house/%: $(BUILD)/obj/tests/flow/house/%.o $(BUILD)/obj/tests/lib/faults.o \
		$(BUILD)/libfaulty.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

# ---- what people type ----

run: ## all set-up, then serve (Ctrl-C ends it)
	@.ci/setup run
	@$(MAKE) --no-print-directory -j2 all
	@.ci/engine start
	@images/kernel/build
	@exec $(BUILD)/coppice serve $(ARGS)

test: ## all set-up, then every test
	@.ci/setup test
	@$(MAKE) --no-print-directory -j2 all build-tests
	@$(MAKE) --no-print-directory lint check asan-check faults
	@.ci/engine start
	@images/kernel/build
	@images/kernel/build --variant newest
	@tests/e2e/setup
	@$(MAKE) --no-print-directory python e2e

check: unit flow replay ## unit and flow tests, no containers

lint: ## style, structure, formatting, static analysis
	@tests/lint/check
	@tests/lint/architecture
	@# Versions of clang-format disagree with each other: only the one that formatted this judges.
	@if clang-format --version | grep -q "version 14\."; then clang-format --dry-run -Werror $(C_FILES); fi
	@cppcheck --quiet -j2 --std=c11 --inline-suppr --enable=warning,portability --error-exitcode=1 \
		--suppressions-list=tests/lint/cppcheck -I. '-DcJSON_ArrayForEach(a,b)=for(;;)' \
		'-DHASH_ITER(a,b,c,d)=for(;;)' $(LIB) $(RENDER) gateway/main.c
	@echo "lint: cppcheck: fine"

asan: ## the gateway with address and undefined sanitizers, at build/asan/coppice
	@$(MAKE) --no-print-directory -j2 BUILD=$(BUILD)/asan $(ASAN) all

asan-check: ## unit and flow tests with the sanitizers
	@$(MAKE) --no-print-directory -j2 BUILD=$(BUILD)/asan $(ASAN) all build-tests
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan $(ASAN) check

tsan: ## unit and flow tests with the thread sanitizer (files are written by other threads)
	@$(MAKE) --no-print-directory -j2 BUILD=$(BUILD)/tsan $(TSAN) all build-tests
	@TSAN_OPTIONS="suppressions=$(CURDIR)/tests/lint/tsan allocator_may_return_null=1 exitcode=66" \
		$(MAKE) --no-print-directory BUILD=$(BUILD)/tsan $(TSAN) check

FAULTS ?= all
faults: ## the whole gateway with each call failing in turn, sanitized; FAULTS=each: as often as it is made
	@$(MAKE) --no-print-directory -j2 BUILD=$(BUILD)/asan $(ASAN) $(BUILD)/asan/tests/flow/house/test_faults
	@FAULTS=$(FAULTS) $(BUILD)/asan/tests/flow/house/test_faults

python: ## coppice_kernel's own tests
	$(BUILD)/venv/bin/python -m pytest -q --timeout 120 \
		--reruns $${COPPICE_RERUNS:-0} images/kernel/coppice_kernel/tests

e2e: ## real containers, real clients, real pages; the gateway is the sanitized one
	tests/check_coverage
	COPPICE_BIN=$(CURDIR)/$(BUILD)/asan/coppice $(BUILD)/venv/bin/python -m pytest -q -n 2 --dist loadfile \
		--reruns $${COPPICE_RERUNS:-0} tests/e2e $(PYTEST_ARGS)

soak: ## all set-up, then what takes long: 200 rounds of the kill sweep, 100,000 nodes
	@.ci/setup test
	@$(MAKE) --no-print-directory asan
	@$(MAKE) --no-print-directory faults FAULTS=each
	@.ci/engine start
	@images/kernel/build
	@images/kernel/build --variant newest
	@tests/e2e/setup
	COPPICE_BIN=$(CURDIR)/$(BUILD)/asan/coppice $(BUILD)/venv/bin/python -m pytest -q -s -m soak tests/e2e $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory bench-history

bench: ## we and the peers in one run; ARGS="--only FAMILY", "--full", "--quick"
	@.ci/setup test
	@$(MAKE) --no-print-directory -j2 all bench-programs
	@.ci/engine start
	@images/kernel/build
	@tests/bench/setup
	$(BUILD)/bench-venv/main/bin/python tests/bench/bench.py $(ARGS)

bench-branch: ## going back, beside Kishu, dill, pickle and run-all; ARGS="--states S0,S2", "--full", "--quick"
	@.ci/setup test
	@$(MAKE) --no-print-directory -j2 all
	@.ci/engine start
	@images/kernel/build
	@tests/bench/setup branch
	$(BUILD)/bench-venv/main/bin/python tests/bench/branch.py $(ARGS)

bench-history: ## a history that grows, to 100,000 nodes and beside Kishu; ARGS="--full", "--quick"
	@.ci/setup test
	@$(MAKE) --no-print-directory -j2 all $(BUILD)/tests/flow/history/test_figures
	@tests/bench/setup branch
	$(BUILD)/bench-venv/main/bin/python tests/bench/history.py $(ARGS)
	COPPICE_HISTORY_NODES=100000 $(BUILD)/tests/flow/history/test_figures

image: ## the kernel image coppice-kernel
	@.ci/setup run
	@.ci/engine start
	@images/kernel/build

install: all ## to $(DESTDIR)$(PREFIX)
	install -D -m 755 $(BUILD)/coppice $(DESTDIR)$(PREFIX)/bin/coppice
	install -m 755 $(BUILD)/coppice-render $(DESTDIR)$(PREFIX)/bin/coppice-render
	install -d $(DESTDIR)$(PREFIX)/share/coppice/kernelspec
	install -m 644 images/kernel/kernelspec/* $(DESTDIR)$(PREFIX)/share/coppice/kernelspec/

# ---- tests ----

# Fuzz targets: replayed over their committed seeds with any compiler (part of check), and explored by
# libFuzzer with clang: `make fuzz FUZZ_SECONDS=600`.
FUZZ   := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAY := $(FUZZ:%=$(BUILD)/tests/fuzz/replay_%)
FUZZ_SECONDS ?= 60
FUZZ_SAN := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined

$(BUILD)/tests/fuzz/replay_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/obj/tests/lib/fuzz_main.o $(BUILD)/libcoppice.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/tests/fuzz/replay_render_%: $(BUILD)/obj/tests/fuzz/fuzz_render_%.o $(BUILD)/obj/tests/lib/fuzz_main.o \
		$(BUILD)/librender.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(RENDER_LIBS)

replay: $(REPLAY)
	@set -e; for f in $(FUZZ); do $(BUILD)/tests/fuzz/replay_$$f tests/fuzz/seeds/$$f/*; done

$(BUILD)/tests/fuzz/explore_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/libcoppice.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)

$(BUILD)/tests/fuzz/explore_render_%: $(BUILD)/obj/tests/fuzz/fuzz_render_%.o $(BUILD)/librender.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(RENDER_LIBS)

explore: $(FUZZ:%=$(BUILD)/tests/fuzz/explore_%)
	@set -e; for f in $(FUZZ); do mkdir -p $(BUILD)/corpus/$$f; \
		$(BUILD)/tests/fuzz/explore_$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 \
			-artifact_prefix=tests/fuzz/seeds/$$f/ -print_final_stats=1 -verbosity=0 \
			$(BUILD)/corpus/$$f tests/fuzz/seeds/$$f; done

fuzz: ## libFuzzer over every decoder, FUZZ_SECONDS each
	@.ci/setup test
	@$(MAKE) --no-print-directory -j2 BUILD=$(BUILD)/fuzz CC=clang OPT="-O1 -g" SAN="$(FUZZ_SAN)" explore

build-tests: $(UNIT) $(FLOW) $(REPLAY)

bench-programs: $(BENCH)

unit: $(UNIT)
	@printf '%s\n' $(UNIT) | xargs -P "$$(nproc)" -n 1 tests/run_one

flow: $(FLOW)
	@printf '%s\n' $(FLOW) | xargs -P "$$(nproc)" -n 1 tests/run_one

clean: ## removes build/
	rm -rf $(BUILD)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
