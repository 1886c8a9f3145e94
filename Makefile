# jitgemm: `make help` lists the targets. Everything that is made lies under build/.

PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   ?= build
CC      ?= cc
OBJCOPY ?= objcopy
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
CPPFLAGS += -D_GNU_SOURCE -Iinclude -Isrc -I. -DJG_TEMPLATE_DIR='"templates"' -DJG_SHAPES_SOURCE='"tests/shapes"' \
            -isystem $(dir $(CUDA_INCLUDE)) -MMD -MP
LDFLAGS += $(SANITIZE) -pthread
LDLIBS  := -lsqlite3 -lxxhash -ldl -lm

LIB_SRC   := $(wildcard src/*.c cache/*.c)
LIB_OBJ   := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
# The software GPU. What runs instructions is built twice on x86-64 (src/swgpu/variant.h).
SWGPU_SRC := $(wildcard src/swgpu/*.c)
SWGPU_OBJ := $(SWGPU_SRC:%.c=$(BUILD)/obj/%.o)
ifneq ($(findstring x86_64,$(shell $(CC) -dumpmachine)),)
SWGPU_OBJ += $(patsubst %.c,$(BUILD)/obj/%.wide.o,$(filter src/swgpu/ops_%.c src/swgpu/optable.c,$(SWGPU_SRC)))
SWGPU_WIDE := -DSWGPU_HAS_WIDE
endif
TOOL_SRC  := $(wildcard tools/*.c)
# The compile helper is for the library to start, not for the PATH.
HELPER    := $(BUILD)/libexec/jitgemm/jitgemm-compile
# Kernels are compiled once for all tests, those under the sanitizers included, which take the helper of the ordinary build: the
# folder is one NVRTC's own. What is about compiling itself goes without it, or names another helper.
KEEPER ?= $(BUILD)/tests/keeping_helper
KEPT   ?= $(BUILD)/kept-$(shell stat -Lc %s-%Y $(CUDA_HOME)/lib64/libnvrtc.so 2>/dev/null)
TOOLS     := $(patsubst tools/jitgemm-%.c,$(BUILD)/bin/jitgemm-%,$(filter-out tools/jitgemm-compile.c,$(wildcard tools/jitgemm-*.c)))
TOOL_OBJ  := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(wildcard $(addprefix tools/,jitgemm-*.c bench_*.c prewarm_*.c tune_*.c)),$(TOOL_SRC)))
PREWARM_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tools/prewarm_*.c tools/tune_*.c))
BENCH_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tools/bench_*.c))
# Parts of the video pipeline, of which examples/20_video_pipeline.c is the one to read first.
PIPELINE_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard examples/pipeline/*.c))
EXAMPLES  := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))
TESTS     := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/test_*.c))
TEST_OBJ  := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(wildcard tests/test_*.c tests/gpu_*.c tests/fake_*.c tests/fuzz_*.c tests/guard*.c tests/fill_*.c tests/keeping_*.c),$(wildcard tests/*.c)))

# The GStreamer element, where GStreamer is found.
GST_MODULES := gstreamer-1.0 gstreamer-base-1.0 gstreamer-video-1.0
HAVE_GST  := $(shell pkg-config --exists $(GST_MODULES) 2>/dev/null && echo yes)
GST_CFLAGS := $(if $(HAVE_GST),-DJG_HAVE_GST $(patsubst -I%,-isystem %,$(shell pkg-config --cflags $(GST_MODULES))))
GST_LIBS  := $(if $(HAVE_GST),$(shell pkg-config --libs $(GST_MODULES)))
GST_OBJ   := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard examples/gstreamer/*.c))
PLUGIN    := $(BUILD)/gst/libgstjitgemm.so

REFERENCE_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/reference*.c))

# Tests see the library's internals, so they link its objects; programs link the library.
STATIC := $(BUILD)/lib/libjitgemm.a
SHARED := $(BUILD)/lib/libjitgemm.so.$(VERSION)
SWGPU  := $(BUILD)/lib/libjitgemm-swgpu.so
PKGCONFIG := $(BUILD)/lib/jitgemm.pc

.DEFAULT_GOAL := all
.PHONY: all lib tools examples gst gst-if-found deps demo demo-program test test-gpu bench tune pipeline bundle asan tsan factory install uninstall clean help bench-swgpu fuzz

## all          the library, the tools and the examples (default)
all: lib tools examples

lib: $(STATIC) $(SHARED) $(SWGPU) $(PKGCONFIG)
tools: $(TOOLS) $(HELPER)
examples: $(EXAMPLES)

# What is missing is said before the first compiler error would say it worse.
$(BUILD)/.checked: Makefile
	@test -n "$(CUDA_INCLUDE)" || { echo "jitgemm: no CUDA toolkit found (no cuda.h under $(CUDA_HOME)/include)."; \
	  echo "  Install CUDA 11.4 or newer from https://developer.nvidia.com/cuda-downloads, or set CUDA_HOME."; exit 1; }
	@mkdir -p $(BUILD) && touch $@

$(BUILD)/obj/%.o: %.c $(BUILD)/.checked
	@mkdir -p $(@D)
	@echo "CC   $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

$(BUILD)/obj/src/template.o: $(wildcard templates/*.cu templates/*.cuh)
$(BUILD)/obj/tools/bench_suites.o: $(wildcard tests/shapes/*.txt)
# Numbers of the cpu device must not depend on the compiler's taste for contraction.
$(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard src/cpu*.c)): CFLAGS += -O3 -ffp-contract=off
# Tests are mostly assertions, each of which runs once: half of the time that building them takes.
$(BUILD)/obj/tests/test_%.o: CFLAGS += -O1
$(foreach t,numbers cpu cpu_types cpu_epilogue,$(BUILD)/obj/tests/test_$(t).o): CFLAGS += -O2 -ffp-contract=off
$(BUILD)/obj/tests/reference.o: CFLAGS += -O3
# Each of its operations is a rounding that JG_MATH_STRICT promises.
$(BUILD)/obj/tests/reference_strict.o: CFLAGS += -ffp-contract=off

# Rounding is part of what is computed: no contraction, and no errno in the way of vector instructions. Vectors are only
# passed to inlined functions, so how a call would pass them does not matter; the thread sanitizer does not know fences.
$(BUILD)/obj/src/swgpu/%.o: CFLAGS += -O3 -ffp-contract=off -fno-math-errno -Wno-psabi $(if $(findstring thread,$(SANITIZE)),-Wno-tsan)
# With checks of undefined behaviour its loops run one element at a time, which doubles the time of all tests; test_swgpu_model
# runs the same arithmetic (mma_model.h) with them.
$(BUILD)/obj/src/swgpu/ops_mma.o $(BUILD)/obj/src/swgpu/ops_mma.wide.o: CFLAGS += $(if $(findstring undefined,$(SANITIZE)),-fno-sanitize=undefined)
$(BUILD)/obj/tests/test_swgpu_model.o: CFLAGS += -Wno-psabi
$(BUILD)/obj/src/swgpu/opcodes.o: CPPFLAGS += $(SWGPU_WIDE)
$(BUILD)/obj/src/swgpu/%.wide.o: src/swgpu/%.c $(BUILD)/.checked
	@mkdir -p $(@D)
	@echo "CC   $< (wide)"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -DSWGPU_WIDE -mavx2 -mfma -mf16c -c $< -o $@

# One object with only the public symbols global, so that a static link cannot clash with the host's names.
$(STATIC): $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "AR   $@"
	$(Q)$(CC) -r -nostdlib -o $(BUILD)/obj/jitgemm.o $^
	$(Q)$(OBJCOPY) --localize-hidden $(BUILD)/obj/jitgemm.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(BUILD)/obj/jitgemm.o

# nodelete: a compile under way must not lose its code when the host calls dlclose.
$(SHARED): $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,libjitgemm.so.$(SOVERSION) -Wl,-z,nodelete -Wl,--no-undefined -o $@ $^ $(LDLIBS)
	$(Q)ln -sf $(@F) $(BUILD)/lib/libjitgemm.so.$(SOVERSION)
	$(Q)ln -sf libjitgemm.so.$(SOVERSION) $(BUILD)/lib/libjitgemm.so

# Its calls stay inside it, whatever other driver the program has loaded.
$(SWGPU): $(SWGPU_OBJ)
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-Bsymbolic -Wl,--no-undefined -o $@ $^ -lm

$(PKGCONFIG): Makefile
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' 'Name: jitgemm' \
	  'Description: Matrix products whose CUDA kernels are generated at run time' 'Version: $(VERSION)' \
	  'Libs: -L$${libdir} -ljitgemm' 'Libs.private: $(LDLIBS) -pthread' \
	  'Cflags: -I$${includedir}' > $@

$(BUILD)/bin/jitgemm-%: $(BUILD)/obj/tools/jitgemm-%.o $(TOOL_OBJ) $(STATIC)
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcjson $(LDLIBS)

# It times the driver too, through the library's own table of calls, so it links the library's objects; so does tuning.
$(BUILD)/bin/jitgemm-bench: $(BUILD)/obj/tools/jitgemm-bench.o $(BENCH_OBJ) $(TOOL_OBJ) $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcjson $(LDLIBS)

# It compiles and no more, so it links what that needs and no more.
$(HELPER): $(patsubst %,$(BUILD)/obj/%.o,tools/jitgemm-compile src/nvrtc src/exit_guard src/helper_wire src/status src/text)
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -ldl

# A helper of another build must not be taken for this one's (src/helper_wire.c).
HELPER_SRC := $(wildcard src/nvrtc*.[ch] src/helper*.[ch]) tools/jitgemm-compile.c
$(BUILD)/obj/src/helper_wire.o: $(HELPER_SRC)
$(BUILD)/obj/src/helper_wire.o: CPPFLAGS += -DJG_HELPER_DIGEST='"$(shell cat $(HELPER_SRC) | cksum | cut -d' ' -f1)"'

$(BUILD)/bin/jitgemm-prewarm: $(BUILD)/obj/tools/jitgemm-prewarm.o $(PREWARM_OBJ) $(BENCH_OBJ) $(TOOL_OBJ) $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcjson $(LDLIBS)

$(BUILD)/examples/%: $(BUILD)/obj/examples/%.o $(STATIC)
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/examples/20_video_pipeline: $(PIPELINE_OBJ)

## gst          the GStreamer element jitgemmfilter: build/gst/libgstjitgemm.so (examples/gstreamer/README.md)
gst:
	@test -n "$(HAVE_GST)" || { echo "jitgemm: GStreamer 1.x was not found ($(GST_MODULES)). Run:"; \
	  echo "  sudo apt-get install -y $(GST_DEPS)"; exit 1; }
	@$(MAKE) --no-print-directory all $(PLUGIN)
gst-if-found: $(if $(HAVE_GST),$(PLUGIN))

# It links the shared library, which finds its compile helper and factory file from where it lies itself.
$(GST_OBJ): CPPFLAGS += $(GST_CFLAGS)
$(PLUGIN): $(GST_OBJ) $(SHARED)
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,--no-undefined -Wl,-rpath,'$$ORIGIN/../lib:$$ORIGIN/..' -o $@ $(GST_OBJ) -L$(BUILD)/lib -ljitgemm $(GST_LIBS) -lcjson -lm

# The demo checks its results with the tests' oracle and reads the tests' shapes.
$(BUILD)/examples/10_demo: $(REFERENCE_OBJ) $(BUILD)/obj/tools/sizelist.o $(BUILD)/obj/tools/progress.o

$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(LIB_OBJ) $(TEST_OBJ) $(BUILD)/obj/tools/sizelist.o
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka -lcjson $(LDLIBS)

# These see the parts of jitgemm-bench, and some load its kernels into the software GPU.
$(BUILD)/tests/test_bench_%: $(BUILD)/obj/tests/test_bench_%.o $(BENCH_OBJ) $(TOOL_OBJ) $(LIB_OBJ) $(TEST_OBJ)
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka -lcjson $(LDLIBS)

# These see the parts of jitgemm-prewarm that tune, which measure with those of jitgemm-bench.
$(BUILD)/tests/test_tune_%: $(BUILD)/obj/tests/test_tune_%.o $(PREWARM_OBJ) $(BENCH_OBJ) $(TOOL_OBJ) $(LIB_OBJ) $(TEST_OBJ)
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka -lcjson $(LDLIBS)

# These run the element, or its parts, of which some need no GStreamer.
GST_TEST_OBJ := $(if $(HAVE_GST),$(filter-out %/plugin.o %/jitgemmfilter.o,$(GST_OBJ)),$(addprefix $(BUILD)/obj/examples/gstreamer/,weights.o color_matrix.o))
$(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/test_gst_*.c)): CPPFLAGS += $(GST_CFLAGS) $(if $(HAVE_GST),$(patsubst -I%,-isystem %,$(shell pkg-config --cflags gstreamer-check-1.0)))
$(BUILD)/tests/test_gst_%: $(BUILD)/obj/tests/test_gst_%.o $(GST_TEST_OBJ) $(LIB_OBJ) $(TEST_OBJ) | gst-if-found
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka -lcjson $(if $(HAVE_GST),$(GST_LIBS) $(shell pkg-config --libs gstreamer-check-1.0)) $(LDLIBS)

# These see the parts of the video pipeline, and the other one runs it.
$(BUILD)/tests/test_pipeline_%: $(BUILD)/obj/tests/test_pipeline_%.o $(PIPELINE_OBJ) $(STATIC) $(patsubst %,$(BUILD)/obj/tests/%.o,scratch xml_check)
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka -lcjson $(LDLIBS)
$(BUILD)/tests/test_pipeline: | $(BUILD)/examples/20_video_pipeline $(SWGPU)

# These see the software GPU's internals too.
$(BUILD)/tests/test_swgpu_%: $(BUILD)/obj/tests/test_swgpu_%.o $(LIB_OBJ) $(SWGPU_OBJ) $(TEST_OBJ) $(BUILD)/obj/tools/sizelist.o
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka -lcjson $(LDLIBS)

# A compile helper that keeps what the real one answers.
$(BUILD)/tests/keeping_helper: $(patsubst %,$(BUILD)/obj/%.o,tests/keeping_helper src/helper src/helper_process src/helper_wire src/nvrtc src/exit_guard src/status src/text) | $(HELPER)
	@mkdir -p $(@D)
	@echo "LD   $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lxxhash -ldl -lm

# A driver that records calls, for the tests of the launch path.
$(BUILD)/tests/libfake_cuda.so: $(BUILD)/obj/tests/fake_cuda.o
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^ -lm

# An NVRTC that refuses everything, with what stands in for its builtins.
$(BUILD)/tests/libfake_nvrtc.so: $(BUILD)/obj/tests/fake_nvrtc.o
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^
	$(Q)cp $@ $(BUILD)/tests/libnvrtc-builtins.so.99.9
	$(Q)cp $@ $(BUILD)/tests/libnvrtc-builtins.so.12.8

# A compile helper that does what the test wants.
$(BUILD)/tests/fake_helper: $(BUILD)/obj/tests/fake_helper.o $(BUILD)/obj/src/helper_wire.o
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^

# An NVML with one GPU, and an older one that lacks functions.
$(BUILD)/tests/libfake_nvml.so: $(BUILD)/obj/tests/fake_nvml.o
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^
$(BUILD)/tests/libfake_nvml_old.so: tests/fake_nvml.c tests/fake_nvml.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -MMD -MP,$(CPPFLAGS)) $(CFLAGS) $(LDFLAGS) -DFAKE_NVML_OLD -shared -o $@ $<

# A cuBLAS and cuBLASLt that computes on the host; the old one knows nothing of multiprocessors.
$(BUILD)/tests/libfake_cublas.so: $(BUILD)/obj/tests/fake_cublas.o $(BUILD)/obj/src/half.o
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^
$(BUILD)/tests/libfake_cublas_old.so: $(BUILD)/obj/tests/fake_cublas_old.o $(BUILD)/obj/src/half.o
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^
$(BUILD)/obj/tests/fake_cublas_old.o: tests/fake_cublas.c $(BUILD)/.checked
	@mkdir -p $(@D)
	@echo "CC   $< (old)"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -DFAKE_CUBLAS_OLD -c $< -o $@

# An NVRTC that passes calls on to the real one, unless the test's guard forbids it; the guard itself is in the program, where
# libraries find it.
$(BUILD)/tests/libguard_nvrtc.so: $(BUILD)/obj/tests/guard_nvrtc.o
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^ -ldl
# Opened at run time: nothing has to be linked again, but a double that is older than the library would judge it wrongly.
DOUBLES := $(addprefix $(BUILD)/tests/lib,fake_cuda.so fake_nvrtc.so fake_cublas.so fake_cublas_old.so fake_nvml.so fake_nvml_old.so guard_nvrtc.so) $(BUILD)/tests/fake_helper $(HELPER) $(KEEPER)
$(TESTS): | $(DOUBLES)
$(BUILD)/tests/gpu_helper $(BUILD)/tests/test_cli_bench_memory: | $(HELPER)
$(BUILD)/tests/test_counters_operands: $(BUILD)/obj/tools/counters_operands.o
$(BUILD)/tests/test_never_wait: $(BUILD)/obj/tests/guard.o
$(BUILD)/tests/test_never_wait: LDFLAGS += -rdynamic
# Its green contexts are in the program itself.
$(BUILD)/tests/test_bench_green: LDFLAGS += -rdynamic

.SECONDARY:
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

## deps         install what building and testing need (apt-get, as root), or say how
DEPS := gcc make pkg-config libsqlite3-dev libxxhash-dev uthash-dev libcmocka-dev libcjson-dev
GST_DEPS := libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good
# What a test is skipped without, so it may be missing: a browser, with letters, that looks at the page of jitgemm-bench,
# systemd-analyze, which looks at the unit, GStreamer and valgrind for the element.
CI_DEPS := $(if $(CI),chromium fonts-dejavu-core systemd valgrind $(GST_DEPS))
deps:
	@missing=; for p in $(DEPS); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
	if [ -z "$$missing" ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing$$missing"; apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	else echo "jitgemm: packages are missing. Run:"; echo "  sudo apt-get install -y$$missing"; exit 1; fi
	@wanted=; for p in $(CI_DEPS); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || wanted="$$wanted $$p"; done; \
	if [ -n "$$wanted" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing$$wanted, if there are such packages"; apt-get update -qq; \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$wanted >/dev/null || echo "jitgemm: going on without$$wanted"; \
	fi

## demo         multiply the common sizes and two networks' layers, check and print a table
demo: deps
	@$(MAKE) --no-print-directory demo-program
	@JG_SHAPES_DIR=tests/shapes $(BUILD)/examples/10_demo
demo-program: $(BUILD)/examples/10_demo $(SWGPU)
	@:

# NVRTC is not built for the sanitizers: what it does inside is not ours to report.
TEST_ENV := TSAN_OPTIONS='ignore_noninstrumented_modules=1 halt_on_error=1' ASAN_OPTIONS=malloc_context_size=8 JG_TEST_ARCHS='$(JG_TEST_ARCHS)' JG_TEST_BIN_DIR=$(BUILD)/bin JG_TEST_BUILD_DIR=$(BUILD) JG_SHAPES_DIR=tests/shapes JITGEMM_FACTORY='' \
  JITGEMM_HELPER='$(abspath $(KEEPER))' JG_TEST_KEPT='$(abspath $(KEPT))'

GPU_TESTS := $(addprefix $(BUILD)/tests/gpu_,numeric breadth grouped limits rules special math tiles helper)

# The numeric tests on the software GPU: all of them as an AGX Orin, a part as other chips. JG_TEST_STRIDE=N: every N-th problem.
SWGPU_TESTS := $(foreach chip,orin-agx:6 h200:30 t4:60,"JITGEMM_DRIVER=swgpu JITGEMM_SWGPU_BLOCKS=8 JG_TEST_STRIDE=$(or $(JG_TEST_STRIDE),$(word 2,$(subst :, ,$(chip)))) \
  JITGEMM_SWGPU_DEVICE=$(word 1,$(subst :, ,$(chip))) $(BUILD)/tests/gpu_numeric")

# The breadth tests: all rows on the cpu device; on the software GPU, whose kernels have to be compiled, the first quarter of them, which
# has most pairs, and fewer as other chips.
SWGPU_TESTS += "JG_TEST_CPU=1 $(BUILD)/tests/gpu_breadth"
SWGPU_TESTS += $(foreach test,grouped limits rules special math helper,"JITGEMM_DRIVER=swgpu JITGEMM_SWGPU_DEVICE=orin-agx $(BUILD)/tests/gpu_$(test)")
SWGPU_TESTS += "JITGEMM_DRIVER=swgpu JG_TEST_STRIDE=$(or $(JG_TEST_STRIDE),3) JITGEMM_SWGPU_DEVICE=orin-agx $(BUILD)/tests/gpu_tiles"
SWGPU_TESTS += $(foreach chip,orin-agx:4 h200:14 t4:28,"JITGEMM_DRIVER=swgpu JG_TEST_STRIDE=$(or $(JG_TEST_STRIDE),$(word 2,$(subst :, ,$(chip)))) \
  JITGEMM_SWGPU_DEVICE=$(word 1,$(subst :, ,$(chip))) $(BUILD)/tests/gpu_breadth")

## test         every test that needs no GPU; the kernels run on the software GPU
test: deps
	@$(MAKE) --no-print-directory all gst-if-found $(TESTS) $(GPU_TESTS) $(DOUBLES)
	@$(TEST_ENV) sh tests/run.sh $(SWGPU_TESTS) $(TESTS)

## test-gpu     the numeric tests on this machine's GPU, compared with the software GPU
test-gpu: deps
	@$(MAKE) --no-print-directory all $(GPU_TESTS) $(BUILD)/tests/test_swgpu_hardware $(BUILD)/tests/test_capture $(BUILD)/tests/test_capture_kernels \
	  gst-if-found $(if $(HAVE_GST),$(addprefix $(BUILD)/tests/test_gst_,color embed stream))
	@BUILD=$(BUILD) sh tests/gpu.sh

## bundle       collect in build/bundle/lib the shared libraries that build/ needs, for a device without packages
bundle:
	@$(MAKE) --no-print-directory all $(GPU_TESTS) $(BUILD)/tests/test_swgpu_hardware $(BUILD)/tests/test_capture $(BUILD)/tests/test_capture_kernels \
	  $(BUILD)/tests/fill_cache
	@mkdir -p $(BUILD)/bundle/lib
	@ldd $(BUILD)/tests/gpu_numeric $(TOOLS) | sed -n 's/.*=> \(.*\(sqlite3\|xxhash\|cmocka\|cjson\)[^ ]*\) .*/\1/p' | sort -u | xargs -I{} cp -L {} $(BUILD)/bundle/lib/

## asan         the tests under AddressSanitizer and UndefinedBehaviorSanitizer
asan: deps
	@$(MAKE) --no-print-directory $(KEEPER)
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan KEEPER='$(KEEPER)' KEPT='$(KEPT)' OPT='-O2 -g' JG_TEST_ARCHS=87 JG_TEST_STRIDE=60 SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer' test

## tsan         the tests under ThreadSanitizer
tsan: deps
	@$(MAKE) --no-print-directory $(KEEPER)
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/tsan KEEPER='$(KEEPER)' KEPT='$(KEPT)' OPT='-O1 -g' JG_TEST_ARCHS=87 JG_TEST_STRIDE=120 SANITIZE='-fsanitize=thread' test

## bench        suites of products and the promises of "never wait" on this machine's GPU, beside cuBLAS; OUT=build/bench, QUICK=1
bench: deps
	@$(MAKE) --no-print-directory all $(BUILD)/tests/fill_cache
	@BUILD=$(BUILD) sh tests/bench.sh

## tune         tuning within a minute and what it gains, compile helpers' memory, and killed ones, on this machine's GPU; OUT=build/tune, QUICK=1
tune: deps
	@$(MAKE) --no-print-directory all $(BUILD)/tests/gpu_helper
	@BUILD=$(BUILD) sh tests/tune.sh

## pipeline     the video pipeline at 60 frames a second with 20 changes of resolution on this machine's GPU; OUT=build/pipeline, CLIP=, QUICK=1
pipeline: deps
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) sh tests/pipeline.sh

## bench-swgpu  how long the software GPU takes for 256x256x256, with its checks and without, against its targets
bench-swgpu: deps
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) sh tests/bench_swgpu.sh

## fuzz         the PTX parser under libFuzzer for FUZZ_SECONDS (600) with clang, from the texts in tests/ptx
FUZZ_SECONDS ?= 600
CLANG ?= clang
fuzz: $(BUILD)/fuzz/fuzz_ptx
	@mkdir -p $(BUILD)/fuzz/corpus
	$(BUILD)/fuzz/fuzz_ptx -max_total_time=$(FUZZ_SECONDS) -max_len=20000 -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
	  -artifact_prefix=$(BUILD)/fuzz/ $(BUILD)/fuzz/corpus tests/ptx
$(BUILD)/fuzz/fuzz_ptx: tests/fuzz_ptx.c $(SWGPU_SRC) $(wildcard src/swgpu/*.h)
	@mkdir -p $(@D)
	$(Q)$(CLANG) -std=c11 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -D_GNU_SOURCE -Iinclude -Isrc -I. \
	  -isystem $(dir $(CUDA_INCLUDE)) tests/fuzz_ptx.c $(SWGPU_SRC) -o $@ -lm -pthread

## factory      ARCHS="87 90" (default 87): build/factory/factory.db, with the generic kernels that serve every size; needs no GPU.
##              FACTORY_LIST=FILE adds the kernels of its sizes; FACTORY_SMS="8 16" plans these for so many multiprocessors
ARCHS   ?= 87
FACTORY ?= $(BUILD)/factory/factory.db
FACTORY_TYPES ?= f32 f16 bf16
FACTORY_LIST ?=
FACTORY_SMS ?=
comma := ,
space := $(subst ,, )
comma_list = $(subst $(space),$(comma),$(strip $(1)))
# The old file stays until the new one is whole and has its name. Its folder must not be one that others can write.
factory: tools
	@umask 022; mkdir -p "$(dir $(FACTORY))"; new="$(FACTORY).new"; \
	clean() { rm -f "$$new" "$$new"-*; }; \
	trap clean EXIT; trap 'exit 130' INT TERM HUP; clean; \
	for sms in $(or $(strip $(FACTORY_SMS)),default); do \
	  set -- --cache "$$new" --arch $(call comma_list,$(ARCHS)) --generic=$(call comma_list,$(FACTORY_TYPES)) $(foreach f,$(FACTORY_LIST),--list "$(f)"); \
	  [ $$sms = default ] || set -- "$$@" --sms $$sms; \
	  $(BUILD)/bin/jitgemm-prewarm "$$@" || exit; \
	done; \
	$(BUILD)/bin/jitgemm-cache seal "$$new" >/dev/null && chmod 644 "$$new" && mv -f "$$new" "$(FACTORY)" && \
	$(BUILD)/bin/jitgemm-cache stats --cache "$(FACTORY)"

## install      PREFIX=/usr/local DESTDIR=: libraries, header, tools, compile helper, man pages, pkg-config file, size list, systemd unit and
##              examples for it, factory.db if made, the GStreamer element if made (to GST_PLUGIN_DIR=PREFIX/lib/gstreamer-1.0)
D := $(DESTDIR)$(PREFIX)
GST_PLUGIN_DIR ?= $(PREFIX)/lib/gstreamer-1.0
install: all
	install -d "$(D)/lib/pkgconfig" "$(D)/include" "$(D)/bin" "$(D)/share/man/man1" "$(D)/share/jitgemm" "$(D)/lib/systemd/system"
	install -m 644 $(STATIC) "$(D)/lib/"
	install -m 755 $(SHARED) $(SWGPU) "$(D)/lib/"
	cp -d $(BUILD)/lib/libjitgemm.so $(BUILD)/lib/libjitgemm.so.$(SOVERSION) "$(D)/lib/"
	sed 's|^prefix=.*|prefix=$(PREFIX)|' $(PKGCONFIG) > "$(D)/lib/pkgconfig/jitgemm.pc"
	install -m 644 include/jitgemm.h "$(D)/include/"
	install -m 755 $(TOOLS) "$(D)/bin/"
	install -d "$(D)/libexec/jitgemm" && install -m 755 $(HELPER) "$(D)/libexec/jitgemm/"
	install -m 644 $(wildcard tools/*.1) "$(D)/share/man/man1/"
	install -m 644 tools/sizes-default.txt tools/jitgemm.default $(wildcard tools/*.conf) "$(D)/share/jitgemm/"
	@if [ -f "$(PLUGIN)" ]; then set -e; echo 'install -m 755 $(PLUGIN) "$(DESTDIR)$(GST_PLUGIN_DIR)/"'; \
	  install -d "$(DESTDIR)$(GST_PLUGIN_DIR)"; install -m 755 $(PLUGIN) "$(DESTDIR)$(GST_PLUGIN_DIR)/"; fi
	@if [ -f "$(FACTORY)" ]; then set -e; \
	  if [ -n "$$(find templates -newer "$(FACTORY)" -name '*.cu*')" ]; then echo "jitgemm: $(FACTORY) is older than the templates; make factory makes it anew"; fi; \
	  echo 'install -m 644 $(FACTORY) "$(D)/share/jitgemm/factory.db"'; \
	  install -m 644 "$(FACTORY)" "$(D)/share/jitgemm/factory.db.new"; mv -f "$(D)/share/jitgemm/factory.db.new" "$(D)/share/jitgemm/factory.db"; fi
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' tools/jitgemm-prewarm.service > "$(D)/lib/systemd/system/jitgemm-prewarm.service"
	if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ] && command -v ldconfig >/dev/null; then ldconfig; fi

## uninstall    remove what install put there
uninstall:
	rm -f "$(D)/lib/libjitgemm.a" "$(D)/lib/libjitgemm.so" "$(D)/lib/libjitgemm.so.$(SOVERSION)" "$(D)/lib/libjitgemm.so.$(VERSION)" "$(D)/lib/$(notdir $(SWGPU))" \
	  "$(D)/lib/pkgconfig/jitgemm.pc" "$(D)/include/jitgemm.h" $(patsubst $(BUILD)/bin/%,"$(D)/bin/%",$(TOOLS)) \
	  $(patsubst tools/%,"$(D)/share/man/man1/%",$(wildcard tools/*.1)) "$(D)/lib/systemd/system/jitgemm-prewarm.service"
	rm -f "$(DESTDIR)$(GST_PLUGIN_DIR)/$(notdir $(PLUGIN))"
	rm -rf "$(D)/share/jitgemm" "$(D)/libexec/jitgemm"

## clean        remove build/
clean:
	rm -rf $(BUILD)

## help         this list; V=1 shows commands, BUILD= the output folder, CUDA_HOME= the toolkit
help:
	@sed -n 's/^## /  /p' $(MAKEFILE_LIST)
