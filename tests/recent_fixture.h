/* Every member of jg_problem, and copies of the members alone. */
#ifndef JG_TESTS_RECENT_FIXTURE_H
#define JG_TESTS_RECENT_FIXTURE_H

#include "background_fixture.h"

#include "recent.h"

#include <stdatomic.h>

static const struct {
    size_t at, bytes;
} members[] = {
#define MEMBER(name) {offsetof(jg_problem, name), sizeof((jg_problem *)0)->name}
    MEMBER(m), MEMBER(n), MEMBER(k), MEMBER(batch), MEMBER(type_a), MEMBER(type_b), MEMBER(type_c), MEMBER(op_a), MEMBER(op_b),
    MEMBER(order), MEMBER(form), MEMBER(lda), MEMBER(ldb), MEMBER(ldc), MEMBER(stride_a), MEMBER(stride_b), MEMBER(stride_c),
    MEMBER(align_bytes), MEMBER(dynamic), MEMBER(compile), MEMBER(math), MEMBER(epilogue), MEMBER(activation), MEMBER(type_bias),
    MEMBER(group_k), MEMBER(zero_points), MEMBER(ld_residual), MEMBER(stride_residual), MEMBER(reserved),
};
enum { MEMBERS = sizeof members / sizeof members[0] };

/* A copy whose padding holds something else. */
static inline void copy_members(jg_problem *to, const jg_problem *from, int padding)
{
    memset(to, padding, sizeof *to);
    for (int i = 0; i < MEMBERS; i++) memcpy((char *)to + members[i].at, (const char *)from + members[i].at, members[i].bytes);
}

#endif
