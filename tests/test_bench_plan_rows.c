/* Lines of products with all their candidates: made-up rows in; table, CSV, a file of CSV, and summaries out. */
#include "output_fixture.h"

#include <math.h>

#include "tools/bench_plan_rows.h"

static const bench_environment here = {.device = "Chip", .arch = 90, .driver_version = 13000, .processors = 4, .allowed = 4};
static const bench_environment simulated = {.device = "Orin", .arch = 87, .driver_version = 13000, .processors = 4, .allowed = 4,
                                            .software = 1};

/* ---- made-up rows ---- */

#define PLAN(kernel, slices, rest)                                                                                            \
    "{'kernel':'" kernel "','family':'mma','of_class':true,'tile_m':64,'tile_n':32,'tile_k':16,'warp_m':32,'warp_n':16,"      \
    "'stages':3,'slices':" slices ",'threads':128,'grid_x':2,'grid_y':1,'shared_bytes':4096,'registers':90,'blocks_per_sm':4," \
    "'waves':0.25,'estimate_clocks':1500.5" rest "}"
#define CHOSEN_6_US PLAN("jg_x", "1", ",'us':6,'samples':21,'check':0.25")
#define BEST_4_US PLAN("jg_y", "2", ",'us':4,'samples':21")
#define WRONG_2_US PLAN("jg_z", "1", ",'us':2,'samples':1,'wrong':true")
#define REFUSED "{'kernel':'','family':'','of_class':false,'refused':'no,\\nway'}"

/* A row as bench_race makes it, of its JSON without quotes: ' stands for ". */
static cJSON *make_row(const char *list, const char *type, const char *problem, const char *rest)
{
    char json[4096];
    snprintf(json, sizeof json,
             "{'suite':'layers','list':'%s','problem':'%s','m':64,'n':32,'k':16,'batch':1,'type':'%s','data':'resident',%s}", list,
             problem, type, rest);
    for (char *at = json; *at; at++)
        if (*at == '\'') *at = '"';
    cJSON *row = cJSON_Parse(json);
    if (!row) fail_msg("bad JSON: %s", json);
    return row;
}

static const char usual[] = "'chosen':0,'best':1,'gap':1.5,'candidates':[" CHOSEN_6_US "," BEST_4_US "]";
static const char ideal[] = "'chosen':0,'best':0,'gap':1,'candidates':[" BEST_4_US "]";
static const char faulty[] = "'chosen':0,'best':0,'gap':1,'candidates':[" BEST_4_US "," WRONG_2_US "," REFUSED "]";
static const char nothing[] = "'chosen':0,'candidates':[" REFUSED "]";

/* ---- writing ---- */

static bench_report r;
static bench_plan_rows rows;

static void begin(bench_format format, const bench_environment *e)
{
    r = (bench_report){.format = format};
    rows = (bench_plan_rows){0};
    catch_output();
    bench_report_command(&r, "plans");
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

static void add(const char *list, const char *type, const char *problem, const char *rest)
{
    bench_plan_rows_add(&rows, &r, make_row(list, type, problem, rest));
}

#define HEADING \
    "  size, us                        plans  chosen                                time  best                                  time     gap\n"

static void table(void **state)
{
    (void)state;
    begin(BENCH_TABLE, &here);
    add("layers", "f16", "64:f16", usual);
    add("layers", "f16", "65:f16", ideal);
    bench_plan_rows_sum_up(&r, 0);
    add("vit", "f32", "64", nothing);
    bench_plan_rows_sum_up(&r, 2);
    cJSON *document = end();
    assert_string_equal(out,
        "\nlayers, f16, operands resident\n" HEADING
        "  64:f16                              2  mma 64x32x16 w32x16 s3                6.00  mma 64x32x16 w32x16 s3 x2             4.00    1.50\n"
        "  65:f16                              1  mma 64x32x16 w32x16 s3 x2             4.00  mma 64x32x16 w32x16 s3 x2             4.00    1.00\n"
        "  chosen / best, geometric mean of 2: 1.225; worst 1.50 (64:f16)\n"
        "\nlayers: vit, f32, operands resident\n" HEADING
        "  64                                  1  -                                        -  -                                        -       -\n"
        "    refused: no,\n");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(document, "plans")), 3);
    const cJSON *gaps = cJSON_GetObjectItem(document, "gaps"), *gap = cJSON_GetArrayItem(gaps, 0);
    assert_int_equal(cJSON_GetArraySize(gaps), 1);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(gap, "list")), "layers");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(gap, "type")), "f16");
    assert_true(cJSON_GetObjectItem(gap, "rows")->valuedouble == 2);
    assert_true(fabs(cJSON_GetObjectItem(gap, "geomean")->valuedouble - sqrt(1.5)) < 1e-9);
    assert_true(cJSON_GetObjectItem(gap, "worst")->valuedouble == 1.5);
    cJSON_Delete(document);
}

static void faults(void **state)
{
    (void)state;
    begin(BENCH_TABLE, &here);
    add("layers", "f16", "64:f16", faulty);
    cJSON_Delete(end());
    assert_non_null(strstr(out, "\n    WRONG RESULT of jg_z\n    refused: no,\n"));
}

static void another_class(void **state)
{
    (void)state;
    char rest[2048];
    snprintf(rest, sizeof rest, "%s", usual);
    memcpy(strstr(strstr(rest, "jg_y"), "true"), "null", 4);
    begin(BENCH_TABLE, &here);
    add("layers", "f16", "64:f16", rest);
    cJSON_Delete(end());
    assert_non_null(strstr(out, "    1.50  of another class\n"));
}

static void software(void **state)
{
    (void)state;
    begin(BENCH_TABLE, &simulated);
    add("layers", "f16", "64:f16", "'chosen':1,'candidates':[" PLAN("jg_x", "1", "") "," PLAN("jg_y", "1", ",'instructions':4832") "]");
    bench_plan_rows_sum_up(&r, 0);
    cJSON_Delete(end());
    assert_string_equal(out, "\nlayers, f16, operands resident\n"
                             "  size                            plans    instructions  chosen\n"
                             "  64:f16                              2            4832  mma 64x32x16 w32x16 s3\n");
}

#define CSV_HEADING                                                                                                            \
    "suite,list,problem,m,n,k,batch,type,data,candidate,of_class,chosen,best,kernel,family,tile_m,tile_n,tile_k,warp_m,warp_n," \
    "stages,slices,threads,grid_x,grid_y,shared_bytes,registers,blocks_per_sm,waves,estimate_clocks,us,samples,instructions,"  \
    "check,wrong,refused\n"
#define CSV_LINES                                                                                                              \
    "layers,\"a,b\",64:f16,64,32,16,1,f16,resident,0,1,1,1,jg_y,mma,64,32,16,32,16,3,2,128,2,1,4096,90,4,0.25,1500.5,4,21,,,0,\n" \
    "layers,\"a,b\",64:f16,64,32,16,1,f16,resident,1,1,0,0,jg_z,mma,64,32,16,32,16,3,1,128,2,1,4096,90,4,0.25,1500.5,2,1,,,1,\n" \
    "layers,\"a,b\",64:f16,64,32,16,1,f16,resident,2,0,0,0,,,,,,,,,,,,,,,,,,,,,,0,\"no,\nway\"\n"

static void csv(void **state)
{
    (void)state;
    begin(BENCH_CSV, &here);
    add("a,b", "f16", "64:f16", faulty);
    add("layers", "f16", "65:f16", ideal);
    bench_plan_rows_sum_up(&r, 0);
    cJSON_Delete(end());
    assert_string_equal(out, "\n" CSV_HEADING CSV_LINES
                             "layers,layers,65:f16,64,32,16,1,f16,resident,0,1,1,1,jg_y,mma,64,32,16,32,16,3,2,128,2,1,4096,90,4,0.25,"
                             "1500.5,4,21,,,0,\n");
}

/* The file has the same, whatever is on standard output. */
static void a_file_of_candidates(void **state)
{
    (void)state;
    char text[4096] = "";
    begin(BENCH_JSON, &here);
    rows.file = tmpfile();
    assert_non_null(rows.file);
    add("a,b", "f16", "64:f16", faulty);
    rewind(rows.file);
    text[fread(text, 1, sizeof text - 1, rows.file)] = 0;
    fclose(rows.file);
    cJSON_Delete(end());
    assert_string_equal(text, CSV_HEADING CSV_LINES);
    assert_string_equal(out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),    cmocka_unit_test(faults), cmocka_unit_test(another_class),
        cmocka_unit_test(software), cmocka_unit_test(csv),    cmocka_unit_test(a_file_of_candidates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
