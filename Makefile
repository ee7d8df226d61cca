# Coppice. `make help` lists the targets.
BUILD   ?= build
ifeq ($(origin CC),default)
CC      := gcc
endif
OPT     ?= -O2 -g
SAN     ?=
WARN    := -Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wstrict-prototypes -Werror
PKGS    := libwebsockets libuv libzmq libsodium libcurl libcjson
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
LIB    := $(BASE) $(DOOR) $(SPINE) $(BRIDGE) $(filter-out gateway/main.c,$(MAIN))

C_FILES := $(wildcard gateway/*.[ch] gateway/*/*.[ch] kernel-bridge/*.[ch] tests/lib/*.[ch] tests/unit/*.c \
	tests/flow/*/*.c tests/fuzz/*.c)
ASAN   := OPT="-O1 -g" SAN="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
PREFIX ?= /usr/local

LIB_O  := $(LIB:%.c=$(BUILD)/obj/%.o)
UNIT   := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
FLOW   := $(patsubst tests/flow/%.c,$(BUILD)/tests/flow/%,$(wildcard tests/flow/*/test_*.c))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all run test check unit flow python lint asan asan-check e2e fuzz bench image \
	install clean help build-tests replay explore

all: $(BUILD)/coppice ## the gateway, at build/coppice

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1	/p' Makefile | expand -t 16

$(BUILD)/coppice: $(BUILD)/obj/gateway/main.o $(BUILD)/libcoppice.a
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/libcoppice.a: $(LIB_O)
	@rm -f $@
	@ar rcs $@ $^

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "CC  $<"
	@$(CC) $(CFLAGS) -c -o $@ $<

# The profile is embedded.
$(BUILD)/obj/kernel-bridge/docker_create.o: images/kernel/seccomp.json

# Tests link the archive last, so a fake that defines a room's functions takes its place.
$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(BUILD)/libcoppice.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

# spine: fake bridge (kernels) and fake clock. bridge: fake engine and fake clock.
$(BUILD)/tests/flow/spine/%: $(BUILD)/obj/tests/flow/spine/%.o $(BUILD)/obj/tests/lib/fake_bridge.o \
		$(BUILD)/obj/tests/lib/fake_clock.o $(BUILD)/libcoppice.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

$(BUILD)/tests/flow/bridge/%: $(BUILD)/obj/tests/flow/bridge/%.o $(BUILD)/obj/tests/lib/fake_engine.o \
		$(BUILD)/obj/tests/lib/fake_clock.o $(BUILD)/libcoppice.a
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
	@$(MAKE) --no-print-directory lint check asan-check
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
		'-DHASH_ITER(a,b,c,d)=for(;;)' $(LIB) gateway/main.c
	@echo "lint: cppcheck: fine"

asan: ## the gateway with address and undefined sanitizers, at build/asan/coppice
	@$(MAKE) --no-print-directory -j2 BUILD=$(BUILD)/asan $(ASAN) all

asan-check: ## unit and flow tests with the sanitizers
	@$(MAKE) --no-print-directory -j2 BUILD=$(BUILD)/asan $(ASAN) all build-tests
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan $(ASAN) check

python: ## coppice_kernel's own tests
	$(BUILD)/venv/bin/python -m pytest -q --timeout 120 images/kernel/coppice_kernel/tests

e2e: ## real containers, real clients, real pages; the gateway is the sanitized one
	tests/check_coverage
	COPPICE_BIN=$(CURDIR)/$(BUILD)/asan/coppice $(BUILD)/venv/bin/python -m pytest -q --reruns 1 -r fER tests/e2e $(PYTEST_ARGS)

bench: all ## we and the peers in one run
	@.ci/setup test
	@.ci/engine start
	@images/kernel/build
	@tests/e2e/setup
	$(BUILD)/venv/bin/python tests/bench/bench.py $(ARGS)

image: ## the kernel image coppice-kernel
	@.ci/setup run
	@.ci/engine start
	@images/kernel/build

install: all ## to $(DESTDIR)$(PREFIX)
	install -D -m 755 $(BUILD)/coppice $(DESTDIR)$(PREFIX)/bin/coppice
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

replay: $(REPLAY)
	@set -e; for f in $(FUZZ); do $(BUILD)/tests/fuzz/replay_$$f tests/fuzz/seeds/$$f/*; done

$(BUILD)/tests/fuzz/explore_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/libcoppice.a
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)

explore: $(FUZZ:%=$(BUILD)/tests/fuzz/explore_%)
	@set -e; for f in $(FUZZ); do mkdir -p $(BUILD)/corpus/$$f; \
		$(BUILD)/tests/fuzz/explore_$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 \
			-artifact_prefix=tests/fuzz/seeds/$$f/ -print_final_stats=1 -verbosity=0 \
			$(BUILD)/corpus/$$f tests/fuzz/seeds/$$f; done

fuzz: ## libFuzzer over every decoder, FUZZ_SECONDS each
	@.ci/setup test
	@$(MAKE) --no-print-directory -j2 BUILD=$(BUILD)/fuzz CC=clang OPT="-O1 -g" SAN="$(FUZZ_SAN)" explore

build-tests: $(UNIT) $(FLOW) $(REPLAY)

unit: $(UNIT)
	@set -e; for t in $(UNIT); do echo "== $$t"; $$t; done

flow: $(FLOW)
	@set -e; for t in $(FLOW); do echo "== $$t"; $$t; done

clean: ## removes build/
	rm -rf $(BUILD)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
