/* Types and what goes with them, as text: see bench_label.h. */
#include "bench_label.h"

#include "problem.h"

#include <stdio.h>
#include <string.h>

/* The library's own text of a product of that kind, less its size. The type is left out there where it is the usual one. */
void bench_label_make(const jg_problem *p, char label[BENCH_LABEL_BYTES])
{
    char text[JG_PROBLEM_TEXT_BYTES];
    const jg_problem kind = {.m = 1, .n = 1, .k = 1, .type_a = p->type_a, .type_b = p->type_b, .type_c = p->type_c,
                             .math = p->math, .epilogue = p->epilogue, .activation = p->activation, .type_bias = p->type_bias,
                             .group_k = p->group_k, .zero_points = p->zero_points};
    snprintf(label, BENCH_LABEL_BYTES, "?");
    if (jg_problem_format(&kind, text, sizeof text, NULL) != JG_OK) return;
    const char *words = strchr(text, ':'), *usual = type_name(JG_F32);
    words = words ? words + 1 : "";
    const int has_type = strncmp(words, usual, strlen(usual)) == 0 || (p->type_a && p->type_a != JG_F32);
    if (has_type) snprintf(label, BENCH_LABEL_BYTES, "%s", words);
    else snprintf(label, BENCH_LABEL_BYTES, "%s%s%s", usual, *words ? ":" : "", words);
}

const char *bench_label_ceiling(const jg_problem *p)
{
    problem c;
    if (problem_canonicalise(p, &c) != JG_OK) return "?";
    switch (problem_math_mode(&c)) {
    case JG_MATH_TF32: case JG_MATH_F32_3XTF32: return "tf32";
    case JG_MATH_F16: return "f16acc";
    case JG_MATH_STRICT: return "f32";
    default: break;
    }
    const int a_is_weights = problem_is_weights(&c, 0), is_narrow = c.type_a == JG_E5M2 || c.type_a == JG_E4M3;
    if (problem_multiply_type(&c) == JG_S8) return "s8";
    return is_narrow ? "e4m3" : type_name((jg_type)(a_is_weights ? c.type_b : c.type_a));
}
