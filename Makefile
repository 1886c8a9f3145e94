# jitgemm: `make help` lists the targets. Everything that is made lies under build/.

PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   ?= build
CC      ?= cc
OPT     ?= -O2 -g
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)

VERSION := $(shell sed -n 's/^\#define JG_VERSION_STRING "\(.*\)"/\1/p' include/jitgemm.h)
SOVERSION := $(firstword $(subst ., ,$(VERSION)))

# The toolkit: CUDA_HOME, else beside nvcc, else /usr/local/cuda. Only its headers are needed to build.
NVCC_PATH := $(shell command -v nvcc 2>/dev/null)
CUDA_HOME ?= $(if $(NVCC_PATH),$(patsubst %/bin/nvcc,%,$(realpath $(NVCC_PATH))),/usr/local/cuda)
CUDA_INCLUDE := $(firstword $(wildcard $(CUDA_HOME)/include/cuda.h $(CUDA_HOME)/targets/*/include/cuda.h))

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings $(if $(CI),-Werror)
CFLAGS  += -std=c11 $(OPT) $(WARNINGS) $(SANITIZE) -fPIC -fvisibility=hidden -pthread
CPPFLAGS += -D_GNU_SOURCE -Iinclude -Isrc -I. -DJG_TEMPLATE_DIR='"templates"' \
            -isystem $(dir $(CUDA_INCLUDE)) -MMD -MP
LDFLAGS += $(SANITIZE) -pthread
LDLIBS  := -lsqlite3 -lxxhash -ldl -lm

LIB_SRC   := $(wildcard src/*.c cache/*.c)
LIB_OBJ   := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
TOOL_SRC  := $(wildcard tools/*.c)
TOOLS     := $(patsubst tools/jitgemm-%.c,$(BUILD)/bin/jitgemm-%,$(wildcard tools/jitgemm-*.c))
TOOL_OBJ  := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(wildcard tools/jitgemm-*.c),$(TOOL_SRC)))
EXAMPLES  := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))
TESTS     := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/test_*.c))
TEST_OBJ  := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(wildcard tests/test_*.c tests/fake_*.c),$(wildcard tests/*.c)))
