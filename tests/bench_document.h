/* A made-up result of jitgemm-bench (tools/bench_result.h) with something in every section: numbers such as a large GPU gives,
 * the same ones each time. */
#ifndef JG_TESTS_BENCH_DOCUMENT_H
#define JG_TESTS_BENCH_DOCUMENT_H

#include <cjson/cJSON.h>

/* About `rows` rows, in several suites and types; on the software GPU if `software`: counters, no times. The caller deletes it.
 */
cJSON *bench_document(int rows, int software);

#endif
