/* What jitgemm-bench --help prints: see bench_usage.h. */
#include "bench_usage.h"

#include "bench_suites.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: jitgemm-bench WHAT... [OPTION]...\n"
    "Measures jitgemm on this machine's GPU, beside its targets, cuBLAS and cuBLASLt. WHAT is one or several of:\n"
    "\n"
    "SUITES of products: kernel times, ratio to the best peer, part of the roofline\n";

static const char usage_options[] =
    "  --list FILE     also the sizes of a file, one a line; -: standard input\n"
    "  --size SIZE     also this one, e.g. 196x768x768:f16:nt\n"
    "  --type LIST     of sizes that name none; default f32,f16,bf16. Also s8, u8.s8, f16.s4, s4, e4m3, f16-f32 ...,\n"
    "                  tf32, 3xtf32, strict (of f32), and each with words of a size, e.g. f16:f16acc or s8-s8:relu\n"
    "  --data WHERE    resident: operands in the L2 cache; rotated: over more than twice the L2; default: by suite\n"
    "  --plans WHICH   auto: recorded plans, as jitgemm-prewarm --tune finds them, else the model's; model: those alone\n"
    "  --rounds N      samples of each kernel, in turns; default 21\n"
    "  --sample US     length of one, of a graph's replay; default 500\n"
    "  --generic       measure the generic kernel too\n"
    "  --record        record in the --cache FILE what the own kernel gains over the generic one\n"
    "  --cublaslt FILE cuBLASLt library; default libcublasLt.so.13, .12 or .11\n"
    "plans, before suites: instead, every kernel that the planner chooses among, and what its choice costs over the best\n"
    "  --all-classes   also kernels of other numeric classes, which give other bits\n"
    "  --write-csv FILE also write a line of CSV for each kernel\n"
    "  --jobs N        compiles at once; default: one a processor\n"
    "  --list, --size, --type, --data, --rounds, --sample: as of suites\n"
    "planner, before suites (default: all): how far the planner's model is from the plans that --tune recorded; needs no GPU\n"
    "  --place TEXT    only of places whose name has it, e.g. 132sm\n"
    "  --cache FILE    where they are recorded; default: the library's own cache file\n"
    "  --list, --size, --type: as of suites\n"
    "compile: how long the kernels of the common sizes take to compile\n"
    "  --jobs N        compiles at once, after one at a time; default: one a processor, at most 16\n"
    "memory: resident memory of a process that compiles kernels, on a thread and in a helper process\n"
    "  --compiles N    how many kernels; default 8\n"
    "  --helper FILE   the helper; default: the installed one\n"
    "  --driver cpu    without any GPU\n"
    "all: first-call, all suites and compile\n"
    "first-call: host time from call to return, for sizes never seen before, on a GPU that is never idle\n"
    "  --sizes N       how many; default 20000\n"
    "  --seed N        of the list of sizes; default 1\n"
    "  --busy MS       length of the kernels on another stream; 0: none; default 20\n"
    "  --poll N        calls from one jg_poll to the next; 0: never; default 64\n"
    "  --compiling     keep the worker compiling meanwhile\n"
    "  --peer-sizes N  how many of the sizes cuBLAS gets; default 300\n"
    "  --neighbour     instead: another thread's launches, the worker idle and compiling in turn\n"
    "  --launches N    with --neighbour: launches in each of the two; default 20000\n"
    "dispatch: what a call for a known size adds to cuLaunchKernel\n"
    "  --problem SIZE  default 1x1x1, e.g. 16:f16\n"
    "  --threads N     that launch at once, each on its own stream, 1 to 64; default 1\n"
    "  --problems N    then again with N other problems remembered; default 0: not\n"
    "  --batches N     rounds of one batch of each kind; default 400\n"
    "cold-start: from process start to the first result, with a warm cache file\n"
    "  --runs N        processes started of each kind; default 20\n"
    "Drift\n"
    "  --save FILE     run all in several processes and keep their medians as a baseline\n"
    "  --against FILE  run all in several processes and compare with a baseline\n"
    "  --processes N   how many; default 10, at least 10\n"
    "  --percent N     a change up to this is none; default 3\n"
    "All but cold-start and memory\n"
    "  --sms N         on N multiprocessors only, in a green context; plan as for an Orin\n"
    "  --as-arch ARCH  plan for this older architecture; default with --sms: 87; 0: the GPU's own\n"
    "All\n"
    "  --html FILE     also write a page with plots\n"
    "  --cache FILE    kernels' cache; default: a temporary one, filled first\n"
    "  --fill          before first-call, dispatch, cold-start: put the generic kernels into FILE\n"
    "  --cpus LIST     run on these processors only, all threads, e.g. 0,1 or 2-5\n"
    "  --no-peer       leave cuBLAS and cuBLASLt out\n"
    "  --cublas FILE   cuBLAS library; default libcublas.so.13, .12 or .11\n"
    "  --driver FILE   CUDA driver library; swgpu: the software GPU, for counts without times\n"
    "  --nvrtc FILE    NVRTC library; default $JITGEMM_NVRTC, else the usual places\n"
    "  --check         exit with 3 if a target is missed\n"
    "  --json, --csv   instead of the table\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 bad command line, 3 target missed or slower than the baseline, 130 interrupted.\n";

/* All of it is written when the output ends, which tells why that failed. */
void bench_usage_print(void)
{
    static char buffer[16384];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    const bench_list *list, *before = NULL;
    fputs(usage, stdout);
    for (size_t i = 0; (list = bench_list_at(i)); before = list, i++) {
        const int is_part = strcmp(list->name, list->suite) != 0;
        if (is_part && (!before || strcmp(before->suite, list->suite) != 0)) printf("  %s: all of\n", list->suite);
        printf("  %s%-*s%s\n", is_part ? "  " : "", is_part ? 14 : 16, list->name, list->what);
    }
    fputs(usage_options, stdout);
}
