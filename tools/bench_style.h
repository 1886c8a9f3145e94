/* The page's style sheet: part of the page, so that one file is all there is. */
#ifndef JG_TOOLS_BENCH_STYLE_H
#define JG_TOOLS_BENCH_STYLE_H

extern const char bench_style[];

#endif
