/* The usage of jitgemm-bench. */
#ifndef JG_TOOLS_BENCH_USAGE_H
#define JG_TOOLS_BENCH_USAGE_H

/* Prints it on standard output, the suites by their own words. */
void bench_usage_print(void);

#endif
