/* Lines of measured products: made-up rows in; table, CSV and summaries out. */
#include "output_fixture.h"

#include <math.h>

#include "tools/bench_rows.h"

static const bench_environment here = {.device = "Chip", .arch = 90, .driver_version = 13000, .processors = 4, .allowed = 4};
static const bench_environment simulated = {.device = "Orin", .arch = 87, .driver_version = 13000, .processors = 4, .allowed = 4,
                                            .software = 1};

/* ---- made-up rows ---- */

/* A row as bench_contest makes it, of its JSON without quotes: ' stands for ". */
static cJSON *row_of(const char *text)
{
    char json[4096];
    snprintf(json, sizeof json, "%s", text);
    for (char *at = json; *at; at++)
        if (*at == '\'') *at = '"';
    cJSON *row = cJSON_Parse(json);
    if (!row) fail_msg("bad JSON: %s", json);
    return row;
}

/* What every row begins with; `rest` is more of the object. */
static cJSON *make_row(const char *suite, const char *list, const char *problem, const char *rest)
{
    char text[4096];
    snprintf(text, sizeof text,
             "{'suite':'%s','list':'%s','problem':'%s','m':64,'n':32,'k':16,'batch':1,'type':'f16','data':'resident',"
             "'kernel':'jg_sm90_x','plan':'mma 64x32x16 w32x32 s3','flops':65536,'bytes':8192,%s}", suite, list, problem, rest);
    return row_of(text);
}

#define OURS_4_US "{'name':'jitgemm','us':{'n':21,'min':3.5,'p25':3.9,'p50':4,'p75':4.1,'max':5}}"
#define CUBLAS_5_US "{'name':'cublas','us':{'n':21,'min':4,'p25':5,'p50':5,'p75':5,'max':6}}"
#define FIRST_6_US "{'name':'lt first','us':{'n':21,'min':4,'p25':6,'p50':6,'p75':6,'max':6}}"
#define GENERIC_8_US "{'name':'generic','us':{'n':21,'min':8,'p25':8,'p50':8,'p75':8,'max':8}}"
#define WON "'peer':'cublas','ratio':1.25,'ratio_p':0.0001,'roofline_percent':41.52,'bound':'compute'"
#define RIGHT "'check':{'reference':0.213,'peer':0.3}"

static const char usual[] = "'contestants':[" OURS_4_US "," CUBLAS_5_US "," FIRST_6_US "]," WON "," RIGHT;

/* ---- writing ---- */

static bench_report r;
static bench_rows rows;

static void begin(bench_format format, const bench_environment *e)
{
    r = (bench_report){.format = format};
    rows = (bench_rows){.shown = 0};
    catch_output();
    bench_report_command(&r, "suites");
    bench_report_begin(&r, e);
    give_stdout_back();
    catch_output(); /* what follows is of rows only */
}

/* Returns the document, which is the caller's. */
static cJSON *end(void)
{
    take_output();
    cJSON *document = bench_report_take(&r);
    assert_non_null(document);
    return document;
}

static void add(const char *suite, const char *list, const char *problem, const char *rest)
{
    bench_rows_add(&rows, &r, make_row(suite, list, problem, rest));
}

/* ---- the table ---- */

static void table(void **state)
{
    (void)state;
#define HEADING "  size, us                         jitgemm  spread    cublas  lt first   ratio  roofline  check  plan\n"
#define NUMBERS "        4.00    5.0%      5.00      6.00   1.25    41.5% c   0.21  mma 64x32x16 w32x32 s3\n"
    begin(BENCH_TABLE, &here);
    add("layers", "resnet50", "64x32x16:f16:nt:lda=20", usual);
    add("common16", "common16", "128:f16", usual);
    cJSON_Delete(end());
    assert_string_equal(out, "\n"
                             "layers: resnet50, f16, operands resident\n" HEADING
                             "  64x32x16:f16:nt:lda=20      " NUMBERS
                             "\n"
                             "common16, f16, operands resident\n" HEADING
                             "  128:f16                     " NUMBERS);
}

/* A heading stands where suite, list, type or where the data lies changes, and nowhere else. */
static void groups(void **state)
{
    (void)state;
    begin(BENCH_TABLE, &here);
    add("layers", "resnet50", "64:f16", usual);
    add("layers", "resnet50", "65:f16", usual);
    add("layers", "vit_b16", "64:f16", usual);
    cJSON *other_type = make_row("layers", "vit_b16", "64:f32", usual), *rotated = make_row("layers", "vit_b16", "64:f32", usual);
    cJSON_ReplaceItemInObject(other_type, "type", cJSON_CreateString("f32"));
    cJSON_ReplaceItemInObject(rotated, "type", cJSON_CreateString("f32"));
    cJSON_ReplaceItemInObject(rotated, "data", cJSON_CreateString("rotated"));
    bench_rows_add(&rows, &r, other_type);
    bench_rows_add(&rows, &r, rotated);
    cJSON *document = end();
    assert_int_equal(count_of("size, us"), 4);
    assert_int_equal(count_of("\nlayers: resnet50, f16, operands resident\n"), 1);
    assert_int_equal(count_of("\nlayers: vit_b16, f16, operands resident\n"), 1);
    assert_int_equal(count_of("\nlayers: vit_b16, f32, operands resident\n"), 1);
    assert_int_equal(count_of("\nlayers: vit_b16, f32, operands rotated\n"), 1);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(document, "rows")), 5);
    cJSON_Delete(document);
}

/* What the line of a problem begins with, up to its end. */
static const char *line_of(const char *problem)
{
    static char line[512];
    char start[64];
    snprintf(start, sizeof start, "\n  %s ", problem);
    const char *at = strstr(out, start);
    if (!at) fail_msg("no line of %s in:\n%s", problem, out);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
    return line;
}

static void assert_line(const char *problem, const char *part)
{
    if (!strstr(line_of(problem), part)) fail_msg("\"%s\" is not in \"%s\"", part, line_of(problem));
}

static void what_a_line_may_lack(void **state)
{
    (void)state;
    begin(BENCH_TABLE, &here);
    add("s", "s", "1:f16", "'contestants':[" OURS_4_US "]," RIGHT); /* no peer, no ceilings */
    add("s", "s", "2:f16", "'contestants':[" OURS_4_US "],'ratio':0.5,'ratio_p':0.01," RIGHT);            /* not sure */
    add("s", "s", "3:f16", "'contestants':[" OURS_4_US "],'ratio':0.5,'ratio_p':0.0099," RIGHT);
    add("s", "s", "4:f16", "'contestants':[" OURS_4_US "],'check':{'reference':1.01,'peer':40}");
    add("s", "s", "5:f16", "'contestants':[" OURS_4_US "],'check':{'reference':0.5,'peer':1.5}");
    add("s", "s", "6:f16", "'contestants':[" OURS_4_US "],'check':{'reference':1,'peer':1}");
    add("s", "s", "7:f16", "'contestants':[{'name':'jitgemm','refused':'no tile'}],'check':{}");
    cJSON_Delete(end());
    assert_line("1:f16", "      4.00    5.0%       -         -   0.21  mma");
    assert_line("2:f16", "   0.50~");
    assert_line("3:f16", "   0.50 ");
    assert_line("4:f16", "   1.01  mma 64x32x16 w32x32 s3  WRONG RESULT");
    assert_line("5:f16", "   0.50  mma 64x32x16 w32x32 s3  (the peer is off by 2x)");
    assert_line("7:f16", "   refused               -         -      -  mma");
    assert_int_equal(count_of("WRONG RESULT"), 1);
    assert_int_equal(count_of("the peer is off"), 1);
    assert_has("\n    refused by jitgemm: no tile\n");
}

/* A row that lacks a contestant, or has one more than the group began with, keeps to the heading's columns. */
static void columns_stay_under_their_heading(void **state)
{
    (void)state;
    begin(BENCH_TABLE, &here);
    add("s", "s", "1:f16", "'contestants':[" OURS_4_US "," GENERIC_8_US "," CUBLAS_5_US "]," RIGHT);
    add("s", "s", "2:f16", "'contestants':[" OURS_4_US "," CUBLAS_5_US "," FIRST_6_US "]," RIGHT);
    cJSON_Delete(end());
    assert_has("   jitgemm  spread   generic    cublas   ratio");
    assert_line("1:f16", "      4.00    5.0%      8.00      5.00       -");
    assert_line("2:f16", "      4.00    5.0%         -      5.00       -");
}

#define REFUSED(name, why) "'contestants':[" OURS_4_US ",{'name':'" name "','refused':'" why "'}]," RIGHT

/* Each reason once a group. */
static void refusals(void **state)
{
    (void)state;
    begin(BENCH_TABLE, &here);
    add("s", "one", "1:f16", REFUSED("cublas", "not supported, here"));
    add("s", "one", "2:f16", REFUSED("cublas", "not supported, here"));
    add("s", "one", "3:f16", REFUSED("cublas", "not supported"));        /* another reason, though the beginning of one */
    add("s", "one", "4:f16", REFUSED("lt first", "not supported"));      /* and another peer */
    add("s", "two", "1:f16", REFUSED("cublas", "not supported\\nsecond line"));
    cJSON_Delete(end());
    assert_line("2:f16", "   refused       -");
    assert_int_equal(count_of("refused by cublas: not supported, here\n"), 1);
    assert_int_equal(count_of("refused by cublas: not supported\n"), 2); /* the second in the second group */
    assert_int_equal(count_of("refused by lt first: not supported\n"), 1);
    assert_has_not("second line");
}

/* What a peer does not do at all is no refusal. */
static void no_peer(void **state)
{
    (void)state;
    begin(BENCH_TABLE, &here);
    add("s", "s", "1:u8", REFUSED("cublas", "no peer: cuBLAS takes no u8"));
    add("s", "s", "2:u8", REFUSED("cublas", "no peer: cuBLAS takes no u8"));
    cJSON_Delete(end());
    assert_line("1:u8", "   no peer       -");
    assert_int_equal(count_of("    cublas: no peer: cuBLAS takes no u8\n"), 1);
    assert_has_not("refused");
    begin(BENCH_CSV, &here);
    add("s", "s", "1:u8", REFUSED("cublas", "no peer: cuBLAS takes no u8"));
    cJSON_Delete(end());
    assert_has(",no peer,");
}

#define LAYOUT(name, cost) "'contestants':[" OURS_4_US "," CUBLAS_5_US "],'layout':'" name "','cost':" cost "," WON "," RIGHT

/* A column of what each layout costs, and their means: the root of 1.21 * 1.44 is 1.32. Wrong results do not count. */
static void costs(void **state)
{
    (void)state;
    begin(BENCH_TABLE, &here);
    add("misalign", "misalign", "1:f16", LAYOUT("aligned", "1"));
    add("misalign", "misalign", "1:f16:lda=2", LAYOUT("odd ld", "1.21"));
    add("misalign", "misalign", "1:f16:align=2", LAYOUT("offset", "2"));
    add("misalign", "misalign", "1:f16:lda=8", "'contestants':[" OURS_4_US "],'layout':'padded'," RIGHT);
    add("misalign", "misalign", "2:f16:lda=2", LAYOUT("odd ld", "1.44"));
    add("misalign", "misalign", "3:f16:lda=2",
        "'contestants':[" OURS_4_US "],'layout':'odd ld','cost':9,'check':{'reference':2}");
    bench_rows_sum_up(&r, 0);
    cJSON_Delete(end());
    assert_has("   ratio    cost  roofline  check  plan\n");
    assert_line("1:f16:align=2", "      5.00   1.25     2.00   41.5% c   0.21  mma");
    assert_line("1:f16:lda=8", "         -       -       -         -   0.21  mma");
    assert_has("\n  time / time of the aligned layout, geometric means: odd ld 1.32, offset 2.00\n");
    begin(BENCH_CSV, &here);
    add("misalign", "misalign", "1:f16:align=2", LAYOUT("offset", "2"));
    cJSON_Delete(end());
    assert_has(",cublas,1.25,0.0001,2,41.52,compute,");
}

/* However long the reasons are. */
static void many_long_refusals(void **state)
{
    (void)state;
    char why[200], rest[2048];
    memset(why, 'x', sizeof why - 1);
    why[sizeof why - 1] = 0;
    snprintf(rest, sizeof rest, "'contestants':[" OURS_4_US ",{'name':'generic','refused':'%s'},{'name':'cublas','refused':'%s'},"
             "{'name':'lt first','refused':'%s'},{'name':'lt best','refused':'%s'}]," RIGHT, why, why, why, why);
    begin(BENCH_TABLE, &here);
    add("s", "s", "1:f16", rest);
    add("s", "s", "2:f16", rest);
    cJSON_Delete(end());
    assert_int_equal(count_of("refused by"), 4);
}

/* ---- the software GPU ---- */

static const char counted[] =
    "'contestants':[{'name':'jitgemm'}],'check':{'reference':0.25},'counters':{'instructions':123456,'fma':7,'mma':9,"
    "'global_load_requests':1,'global_load_sectors':2048,'global_store_sectors':256,'shared_load_cycles':3,"
    "'shared_load_conflicts':30,'shared_store_conflicts':12,'barriers':88,'blocks':4,'blocks_run':4}";

static void software_table(void **state)
{
    (void)state;
    begin(BENCH_TABLE, &simulated);
    add("common16", "common16", "64:f16", counted);
    add("common16", "common16", "65:f16", "'contestants':[{'name':'jitgemm','refused':'no'}],'check':{}");
    cJSON_Delete(end());
    assert_has("\n"
               "common16, f16, operands resident\n"
               "  size                            instructions  load sect. store sect.  conflicts  barriers  check  plan\n"
               "  64:f16                                123456        2048         256         42        88   0.25  mma");
    assert_has("refused by jitgemm: no\n");
    assert_has_not(" us");
    /* A row without counters has its check and plan under the same headings. */
    assert_has("\n  65:f16                               refused           -           -          -         -      -  mma");
}

static void software_csv(void **state)
{
    (void)state;
    begin(BENCH_CSV, &simulated);
    add("common16", "common16", "64:f16", counted);
    add("common16", "common16", "65:f16", "'contestants':[{'name':'jitgemm','refused':'no'}],'check':{}");
    cJSON_Delete(end());
    assert_string_equal(out,
        "\n"
        "suite,list,problem,m,n,k,batch,type,data,kernel,instructions,global_load_sectors,global_store_sectors,"
        "shared_load_conflicts,shared_store_conflicts,barriers,check_reference,check_peer\n"
        "common16,common16,64:f16,64,32,16,1,f16,resident,jg_sm90_x,123456,2048,256,30,12,88,0.25,\n"
        "common16,common16,65:f16,64,32,16,1,f16,resident,jg_sm90_x,,,,,,,,\n");
}

/* ---- CSV ---- */

/* The rows' lines of `out` all have as many fields as their heading. Returns how many there are, with the heading. */
static int check_fields(void)
{
    const char *heading = strstr(out, "suite,list,");
    assert_non_null(heading);
    int lines = 0;
    for (const char *line = heading; *line; line = strchr(line, '\n') + 1, lines++)
        if (commas_of(line) != commas_of(heading))
            fail_msg("%d fields, not %d: %s", commas_of(line) + 1, commas_of(heading) + 1, line);
    return lines;
}

static void csv(void **state)
{
    (void)state;
    begin(BENCH_CSV, &here);
    add("layers", "resnet50", "64x32x16:f16:nt:lda=20", usual);
    add("layers", "vit_b16", "2:f16", "'contestants':[" OURS_4_US "]," RIGHT);
    add("layers", "vit_b16", "3:f16", REFUSED("lt best", "a, reason with \\\"commas\\\", not written"));
    add("layers", "vit_b16", "4:f16", "'contestants':[{'name':'jitgemm','refused':'no'}," CUBLAS_5_US "],'check':{}");
    bench_rows_sum_up(&r, 0); /* only in the table and the document */
    cJSON_Delete(end());
    assert_has("\nsuite,list,problem,m,n,k,batch,type,data,kernel,jitgemm_us,jitgemm_p25_us,jitgemm_p75_us,generic_us,cublas_us,"
               "lt_first_us,lt_best_us,grouped_us,peer,ratio,ratio_p,cost,roofline_percent,bound,check_reference,check_peer\n"
               "layers,resnet50,64x32x16:f16:nt:lda=20,64,32,16,1,f16,resident,jg_sm90_x,4,3.9,4.1,,5,6,,,cublas,1.25,"
               "0.0001,,41.52,compute,0.213,0.3\n"
               "layers,vit_b16,2:f16,64,32,16,1,f16,resident,jg_sm90_x,4,3.9,4.1,,,,,,,,,,,,0.213,0.3\n"
               "layers,vit_b16,3:f16,64,32,16,1,f16,resident,jg_sm90_x,4,3.9,4.1,,,,refused,,,,,,,,0.213,0.3\n"
               "layers,vit_b16,4:f16,64,32,16,1,f16,resident,jg_sm90_x,");
    assert_int_equal(check_fields(), 5);
    assert_has_not("reason");
}

/* A list's name is that of a file, and may be anything. */
static void csv_with_names_of_files(void **state)
{
    (void)state;
    begin(BENCH_CSV, &here);
    add("list", "sizes, my \\\"own\\\".txt", "64:f16", usual);
    cJSON_Delete(end());
    assert_has("\nlist,\"sizes, my \"\"own\"\".txt\",64:f16,64,");
    assert_int_equal(check_fields(), 2);
}

static void json_prints_no_lines(void **state)
{
    (void)state;
    begin(BENCH_JSON, &here);
    add("layers", "resnet50", "64:f16", usual);
    bench_rows_sum_up(&r, 0);
    cJSON *document = end();
    assert_string_equal(out, "");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(document, "rows")), 1);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(document, "summaries")), 1);
    cJSON_Delete(document);
}

/* ---- summaries ---- */

static void add_ratio(const char *list, const char *problem, double ratio)
{
    char rest[512];
    snprintf(rest, sizeof rest, "'contestants':[" OURS_4_US "],'ratio':%g,'ratio_p':0," RIGHT, ratio);
    add("layers", list, problem, rest);
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *found = cJSON_GetObjectItem(object, name);
    if (!cJSON_IsNumber(found)) fail_msg("%s is no number", name);
    return found->valuedouble;
}

/* 0.5, 1 and 4: the third root of 2 is 1.2599. Of 9 and 0.25 it is the root of 2.25. */
static void summaries(void **state)
{
    (void)state;
    begin(BENCH_TABLE, &here);
    add_ratio("resnet50", "1:f16", 1);
    add_ratio("resnet50", "2:f16", 4);
    add("layers", "resnet50", "3:f16", "'contestants':[" OURS_4_US "]," RIGHT); /* no ratio: it does not count */
    add_ratio("resnet50", "4:f16", 0.5);
    bench_rows_sum_up(&r, 0);
    const int second = cJSON_GetArraySize(r.rows);
    add_ratio("vit_b16", "5:f16", 9);
    add_ratio("vit_b16", "6:f16", 0.25);
    add("layers", "vit_b16", "8:f16", "'contestants':[" OURS_4_US "],'ratio':100,'check':{'reference':1.5}"); /* wrong */
    bench_rows_sum_up(&r, second);
    const int third = cJSON_GetArraySize(r.rows);
    add("layers", "yolo_v8n", "7:f16", "'contestants':[" OURS_4_US "]," RIGHT);
    bench_rows_sum_up(&r, third); /* nothing to sum up */
    cJSON *document = end();
    assert_has("  best peer / ours, geometric mean of 3: 1.26; worst 0.50 (4:f16), best 4.00 (2:f16)\n");
    assert_has("  best peer / ours, geometric mean of 2: 1.50; worst 0.25 (6:f16), best 9.00 (5:f16)\n");
    const cJSON *list = cJSON_GetObjectItem(document, "summaries"), *first = cJSON_GetArrayItem(list, 0);
    assert_int_equal(cJSON_GetArraySize(list), 2);
    assert_true(fabs(number(first, "geomean") - 1.2599210498948732) < 1e-12);
    assert_true(number(first, "rows") == 3 && number(first, "worst") == 0.5 && number(first, "best") == 4);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(first, "suite")), "layers");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(first, "list")), "resnet50");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(first, "type")), "f16");
    assert_true(fabs(number(cJSON_GetArrayItem(list, 1), "geomean") - 1.5) < 1e-12);
    cJSON_Delete(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),
        cmocka_unit_test(groups),
        cmocka_unit_test(what_a_line_may_lack),
        cmocka_unit_test(columns_stay_under_their_heading),
        cmocka_unit_test(refusals),
        cmocka_unit_test(no_peer),
        cmocka_unit_test(costs),
        cmocka_unit_test(many_long_refusals),
        cmocka_unit_test(software_table),
        cmocka_unit_test(software_csv),
        cmocka_unit_test(csv),
        cmocka_unit_test(csv_with_names_of_files),
        cmocka_unit_test(json_prints_no_lines),
        cmocka_unit_test(summaries),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
