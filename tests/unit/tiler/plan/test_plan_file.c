/* Plans as text: what is written is read back as the same plan; every wrong input is refused with
 * its place; files with bytes and values changed at random never do harm. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "layers/conv/conv_backend.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan_check.h"
#include "tiler/plan/plan_file.h"

#define HEAD "{\"schema\": 1, \"kind\": \"rfexec plan\", "
#define GROUP(first, last) "\"first\": \"" first "\", \"last\": \"" last "\", \"strip_cols\": 8"
#define STREAM(spilled) \
    "{\"mode\": \"streamed\", \"targets\": [\"sum\"], \"band_rows\": 2, \"spilled\": " spilled "}"
#define WHOLE "{\"mode\": \"whole\", \"targets\": [\"pool\"]}"

/* Three stages written by hand: a in 2x3 tiles, sum streamed in 2 strips, the rest row by row. */
static void three_stages(void **state) {
    static const char text[] = HEAD
        "\"size\": [23, 17], \"threads\": 3, \"weights_by_stage\": true, \"in_place\": false, "
        "\"predicted\": {\"anything\": [1]}, \"stages\": ["
        "{\"mode\": \"tiled\", \"targets\": [\"a\"], \"tiles\": [2, 3]},"
        "{\"mode\": \"streamed\", \"targets\": [\"sum\"], \"tiles\": [1, 2], \"band_rows\": 5, "
        "\"tight\": true, \"forgets\": [\"a\"]},"
        "{\"mode\": \"whole\", \"targets\": [\"pool\"], \"row_by_row\": true}]}";
    struct small_plan_case f = small_plan_case_begin(23, 17);
    struct rfx_plan *plan = NULL;
    struct rfx_plan *again = NULL;
    struct rfx_error err = {{0}};
    char *written = NULL;
    (void)state;
    if (small_plan_case_plan(&f, text, strlen(text), &plan, &err) != RFX_OK)
        fail_msg("%s", err.text);
    assert_int_equal(plan->n_stages, 3);
    assert_int_equal(plan->threads, 3);
    assert_true(rfx_plan_loads_by_stage(plan));
    assert_false(plan->in_place);
    assert_int_equal(plan->stages[0].spec.tiles_y, 2);
    assert_int_equal(plan->stages[0].spec.tiles_x, 3);
    assert_ptr_equal(plan->stages[1].spec.mode, &rfx_mode_streamed);
    assert_int_equal(plan->stages[1].spec.tiles_x, 2);
    assert_int_equal(plan->stages[1].spec.band_rows, 5);
    assert_true(plan->stages[1].spec.staging);
    assert_true(plan->stages[2].spec.row_by_row);
    assert_int_equal(plan->stages[0].spec.n_forgotten, 0);
    assert_int_equal(plan->stages[1].spec.n_forgotten, 1);
    assert_string_equal(f.graph->nodes[plan->stages[1].forgotten[0]].name, "a");
    assert_int_equal(rfx_plan_file_text(plan, "net", &written, &err), RFX_OK);
    if (small_plan_case_plan(&f, written, strlen(written), &again, &err) != RFX_OK)
        fail_msg("%s", err.text);
    assert_int_equal(again->peak_bytes, plan->peak_bytes);
    assert_int_equal(again->macs, plan->macs);
    assert_int_equal(again->stages[1].spec.n_forgotten, 1);
    assert_int_equal(again->stages[1].forgotten[0], plan->stages[1].forgotten[0]);
    char a[RFX_PLAN_TEXT], b[RFX_PLAN_TEXT];
    rfx_plan_describe(plan, a, sizeof a);
    rfx_plan_describe(again, b, sizeof b);
    assert_string_equal(a, b);
    rfx_memory_release(f.mem, written);
    rfx_plan_free(plan);
    rfx_plan_free(again);
    small_plan_case_end(&f);
}

static void refusals(void **state) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "line 1"},
        {"[]", "is no plan"},
        {"{\"schema\": 1,\n\n \"kind\" 3}", "line 3"},
        {"{\"schema\": 1, \"schema\": 1}", "duplicate"},
        {"{\"schema\": 1}", "kind: nothing is not"},
        {"{\"schema\": 2, \"kind\": \"rfexec plan\"}", "schema: 2"},
        {"{\"kind\": \"rfexec plan\"}", "schema: missing"},
        {HEAD "\"stagse\": []}", "did you mean 'stages'?"},
        {HEAD "\"comment\": 1}", "unknown key 'comment'"},
        {HEAD "\"size\": [23, 18], \"stages\": [" WHOLE "]}", "is for 23x18"},
        {HEAD "\"size\": 23, \"stages\": [" WHOLE "]}", "size: 23"},
        {HEAD "\"conv\": \"fast\", \"stages\": [" WHOLE "]}", "conv: \"fast\" is not"},
        {HEAD "\"conv\": 1, \"stages\": [" WHOLE "]}", "conv: 1 is not"},
        {HEAD "\"threads\": 0, \"stages\": [" WHOLE "]}", "threads: 0"},
        {HEAD "\"in_place\": 1, \"stages\": [" WHOLE "]}", "'in_place': 1"},
        {HEAD "\"keeps_factors\": \"a\", \"stages\": [" WHOLE "]}",
         "keeps_factors: \"a\" is no list"},
        {HEAD "\"keeps_factors\": [\"a\", \"d\"], \"stages\": [" WHOLE "]}",
         "keeps_factors[1]: this network has no tensor 'd'"},
        {HEAD "\"keeps_factors\": [\"pool\"], \"stages\": [" WHOLE "]}",
         "keeps_factors[0]: it is no convolution"},
        {HEAD "\"groups\": 3, \"stages\": [" WHOLE "]}", "groups: 3 is no list"},
        {HEAD "\"groups\": [7], \"stages\": [" WHOLE "]}", "groups[0]: 7 is no group"},
        {HEAD "\"groups\": [{\"firts\": \"a\"}], \"stages\": [" WHOLE "]}",
         "groups[0]: unknown key 'firts': did you mean 'first'?"},
        {HEAD "\"groups\": [{\"last\": \"sum\"}], \"stages\": [" WHOLE "]}",
         "groups[0].first: nothing is not the name"},
        {HEAD "\"groups\": [{" GROUP("a", "smu") "}], \"stages\": [" WHOLE "]}",
         "groups[0].last: this network has no tensor 'smu'; near names: sum"},
        {HEAD "\"groups\": [{" GROUP("a", "b") "}], \"stages\": [" WHOLE "]}",
         "groups[0]: a map inside is read outside"},
        {HEAD "\"groups\": [{" GROUP("c", "pool") "}], \"stages\": [" WHOLE "]}",
         "groups[0]: a node is not local"},
        {HEAD "\"groups\": [{\"first\": \"a\", \"last\": \"sum\"}], \"stages\": [" WHOLE "]}",
         "groups[0]: no 'strip_cols'"},
        {HEAD "\"groups\": [{" GROUP("a", "sum") ", \"step_rows\": 0}], \"stages\": [" WHOLE "]}",
         "groups[0].step_rows: 0"},
        {HEAD "\"groups\": [{" GROUP("a", "sum") "}, {" GROUP("sum", "c") "}], \"stages\": [" WHOLE
                                                                          "]}",
         "groups[1]: it overlaps"},
        {HEAD "\"groups\": [{" GROUP("a", "sum") "}], \"stages\": [{\"mode\": \"whole\", "
                                                 "\"targets\": [\"b\", \"pool\"]}]}",
         "stages[0]: target 'b' lies inside a group"},
        {HEAD "\"stages\": [{\"mode\": \"tiled\", \"targets\": [\"sum\"], \"spilled\": "
              "[\"sum\"]}, " WHOLE "]}",
         "stages[0]: target 'sum' cannot be spilled: only streamed stages"},
        {HEAD "\"stages\": [" STREAM("[7]") ", " WHOLE "]}",
         "stages[0].spilled[0]: 7 is not the name"},
        {HEAD "\"stages\": [" STREAM("[\"a\"]") ", " WHOLE "]}",
         "stages[0].spilled[0]: it is no target of this stage"},
        {HEAD "\"stages\": [" STREAM("\"sum\"") ", " WHOLE "]}",
         "stages[0]: 'spilled': \"sum\" is no list"},
        {HEAD "\"stages\": [{\"mode\": \"whole\", \"targets\": [\"pool\"], \"forgets\": \"sum\"}]}",
         "stages[0]: 'forgets': \"sum\" is no list"},
        {HEAD "\"stages\": [{\"mode\": \"whole\", \"targets\": [\"pool\"], \"forgets\": [7]}]}",
         "stages[0].forgets[0]: 7 is not the name"},
        {HEAD
         "\"stages\": [{\"mode\": \"whole\", \"targets\": [\"pool\"], \"forgets\": [\"sum\"]}]}",
         "stages[0]: 'sum' cannot be forgotten: it is not stored"},
        {HEAD "\"stages\": [{\"mode\": \"streamed\", \"targets\": [\"pool\"], \"band_rows\": 2, "
              "\"spilled\": [\"pool\"]}]}",
         "target 'pool' cannot be spilled: it is the result of a reduction"},
        {HEAD "\"stages\": []}", "at least one stage"},
        {HEAD "\"stages\": [3]}", "stages[0]: 3 is no stage"},
        {HEAD "\"stages\": [{\"targets\": [\"pool\"]}]}", "no 'mode'"},
        {HEAD "\"stages\": [{\"mode\": \"fast\", \"targets\": [\"pool\"]}]}", "mode \"fast\""},
        {HEAD "\"stages\": [{\"mode\": \"whole\"}]}", "'targets'"},
        {HEAD "\"stages\": [{\"mode\": \"whole\", \"targets\": [\"pol\"]}]}",
         "stages[0].targets[0]: this network has no tensor 'pol'; near names: pool"},
        {HEAD "\"stages\": [{\"mode\": \"whole\", \"targets\": [7]}]}", "7 is not the name"},
        {HEAD "\"stages\": [{\"mode\": \"whole\", \"targets\": [\"pool\", \"pool\"]}]}",
         "stages[0]: target 'pool' is stored twice"},
        {HEAD "\"stages\": [" WHOLE ", " WHOLE "]}", "stages[1]: target 'pool' is stored twice"},
        {HEAD "\"stages\": [{\"mode\": \"whole\", \"targets\": [\"a\"]}]}",
         "is no target of any stage"},
        {HEAD "\"stages\": [{\"mode\": \"whole\", \"tiles\": [1, 2], \"targets\": [\"pool\"]}]}",
         "a whole stage has no tiles"},
        {HEAD "\"stages\": [{\"mode\": \"whole\", \"band_rows\": 2, \"targets\": [\"pool\"]}]}",
         "a whole stage has no bands"},
        {HEAD "\"stages\": [{\"mode\": \"streamed\", \"targets\": [\"pool\"]}]}",
         "needs 'band_rows'"},
        {HEAD
         "\"stages\": [{\"mode\": \"streamed\", \"band_rows\": 2.5, \"targets\": [\"pool\"]}]}",
         "stages[0].band_rows: 2.5"},
        {HEAD "\"stages\": [{\"mode\": \"streamed\", \"band_rows\": 2, \"tiles\": [2, 1], "
              "\"targets\": [\"pool\"]}]}",
         "a streamed stage has no rows of tiles"},
        {HEAD "\"stages\": [{\"mode\": \"tiled\", \"tiles\": [0, 1], \"targets\": [\"sum\"]}]}",
         "stages[0].tiles: 0"},
        {HEAD "\"stages\": [{\"mode\": \"tiled\", \"tiles\": [1], \"targets\": [\"sum\"]}]}",
         "is not [rows, columns]"},
        {HEAD "\"stages\": [{\"mode\": \"tiled\", \"row_by_row\": true, \"targets\": [\"sum\"]}]}",
         "a tiled stage cannot run row by row"},
        {HEAD "\"stages\": [{\"mode\": \"whole\", \"target\": [\"sum\"]}]}",
         "did you mean 'targets'?"},
    };
    struct small_plan_case f = small_plan_case_begin(23, 17);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_plan *plan = NULL;
        struct rfx_error err = {{0}};
        if (small_plan_case_plan(&f, cases[i].text, strlen(cases[i].text), &plan, &err) == RFX_OK)
            fail_msg("accepted: %s", cases[i].text);
        if (strstr(err.text, cases[i].words) == NULL)
            fail_msg("%s\nno \"%s\" in: %s", cases[i].text, cases[i].words, err.text);
    }
    small_plan_case_end(&f);
}

/* A plan says whose arithmetic it was made for, and is a plan for the others too. */
static void another_arithmetic(void **state) {
    struct small_plan_case f = small_plan_case_begin(23, 17);
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    (void)state;
    static const char text[] = HEAD "\"conv\": \"openblas\", \"stages\": [" WHOLE "]}";
    for (int c = 0; c <= RFX_CONV_OPENBLAS; c++) {
        char *written = NULL, key[64];
        f.graph->conv = (enum rfx_conv_choice)c;
        assert_int_equal(small_plan_case_plan(&f, text, strlen(text), &plan, &err), RFX_OK);
        assert_int_equal(f.graph->conv, c);
        assert_int_equal(rfx_plan_file_text(plan, "net", &written, &err), RFX_OK);
        (void)snprintf(key, sizeof key, "\"conv\": \"%s\",",
                       rfx_conv_choice_name(rfx_conv_choice_of(f.graph)));
        assert_non_null(strstr(written, key));
        rfx_memory_release(f.mem, written);
        rfx_plan_free(plan);
    }
    small_plan_case_end(&f);
}

/* A plan is for one arithmetic of 8-bit networks, whose nodes differ from the other's. */
static void another_int8(void **state) {
    struct small_plan_case f = small_plan_case_begin(23, 17);
    static const char *const texts[] = {HEAD "\"stages\": [" WHOLE "]}",
                                        HEAD "\"int8\": \"spec\", \"stages\": [" WHOLE "]}"};
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    (void)state;
    for (int c = 0; c < RFX_INT8_COUNT; c++) {
        char *written = NULL;
        f.graph->int8 = (enum rfx_int8_choice)c;
        assert_int_equal(small_plan_case_plan(&f, texts[1 - c], strlen(texts[1 - c]), &plan, &err),
                         RFX_STATUS_MALFORMED);
        assert_non_null(
            strstr(err.text, c == 0 ? "for --int8 spec, the network was loaded with --int8 ort"
                                    : "for --int8 ort, the network was loaded with --int8 spec"));
        assert_int_equal(small_plan_case_plan(&f, texts[c], strlen(texts[c]), &plan, &err), RFX_OK);
        assert_int_equal(rfx_plan_file_text(plan, "net", &written, &err), RFX_OK);
        assert_true((strstr(written, "\"int8\": \"spec\"") != NULL) == (c != 0));
        rfx_memory_release(f.mem, written);
        rfx_plan_free(plan);
    }
    static const char wrong[] = HEAD "\"int8\": \"int4\", \"stages\": [" WHOLE "]}";
    assert_int_equal(small_plan_case_plan(&f, wrong, strlen(wrong), &plan, &err),
                     RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, "is not \"ort\" or \"spec\""));
    small_plan_case_end(&f);
}

/* Tiles of the whole network, which nothing follows. */
static void tiles_alone(void **state) {
    struct small_plan_case f = small_plan_case_begin(23, 17);
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    (void)state;
    rfx_graph_free(f.graph);
    f.graph = small_net_two_convs(f.mem, 23, 17);
    static const char text[] =
        HEAD "\"stages\": [{\"mode\": \"tiled\", \"tiles\": [4, 4], \"targets\": [\"b\"]}]}";
    assert_int_equal(small_plan_case_plan(&f, text, strlen(text), &plan, &err), RFX_OK);
    assert_int_equal(plan->stages[0].spec.tiles_y, 4);
    rfx_plan_free(plan);
    small_plan_case_end(&f);
}

/* A plan of three stages with single bytes and whole stretches changed, cut off or doubled. */
static void changed_at_random(void **state) {
    struct small_plan_case f = small_plan_case_begin(23, 17);
    struct test_rng rng = test_rng_make(1);
    static const char *const words[] = {
        "-1", "0",     "1e9",     "1073741824", "99999999999999999999",
        "{",  "]",     "\"",      "null",       "\"sum\"",
        ",",  "true",  "\"b\"",   "\"whole\"",  "\"streamed\"",
        "7",  "\"a\"", "\"pool\""};
    static const char text[] = HEAD
        "\"size\": [23, 17], \"weights_by_stage\": true, \"in_place\": false, "
        "\"groups\": [{\"first\": \"sum\", \"last\": \"c\", \"strip_cols\": 9, "
        "\"strips\": 1, \"step_rows\": 2}], \"stages\": ["
        "{\"mode\": \"tiled\", \"targets\": [\"a\"], \"tiles\": [2, 3]},"
        "{\"mode\": \"streamed\", \"targets\": [\"b\", \"c\"], \"tiles\": [1, 2], \"band_rows\": "
        "5},"
        "{\"mode\": \"whole\", \"targets\": [\"pool\"], \"row_by_row\": true}]}";
    int accepted = 0;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        char changed[sizeof text + 64];
        size_t length = strlen(text);
        memcpy(changed, text, length);
        for (int64_t n = test_rng_chance(&rng, 30) ? 3 : 1; n > 0; n--) {
            size_t at = (size_t)test_rng_int(&rng, 0, (int64_t)length - 1);
            const char *word = words[test_rng_int(&rng, 0, sizeof words / sizeof words[0] - 1)];
            if (changed[at] >= '0' && changed[at] <= '9')
                changed[at] = (char)test_rng_int(&rng, '0', '9');
            else if (test_rng_chance(&rng, 40))
                changed[at] = (char)test_rng_int(&rng, -128, 127);
            else if (test_rng_chance(&rng, 10))
                length = at + 1;
            else if (at + strlen(word) <= length)
                memcpy(changed + at, word, strlen(word));
        }
        struct rfx_plan *plan = NULL;
        struct rfx_error err = {{0}};
        char *exact = malloc(length); /* so that reading past the end is found */
        assert_non_null(exact);
        memcpy(exact, changed, length);
        if (small_plan_case_plan(&f, exact, length, &plan, &err) == RFX_OK)
            accepted++;
        else
            assert_true(err.text[0] != '\0');
        rfx_plan_free(plan);
        free(exact);
    }
    fprintf(stderr, "%d of 2000 changed plans are plans\n", accepted);
    assert_true(accepted > 20 && accepted < 1500);
    small_plan_case_end(&f);
}

static enum rfx_status read_and_free(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct small_plan_case *f = context;
    struct rfx_plan_file *file = NULL;
    static const char text[] = HEAD "\"stages\": [" WHOLE "]}";
    (void)mem;
    enum rfx_status status =
        rfx_plan_file_parse(f->graph, text, strlen(text), "plan.json", &file, err);
    rfx_plan_file_free(file);
    return status;
}

static void failing_allocations(void **state) {
    struct small_plan_case f = small_plan_case_begin(23, 17);
    (void)state;
    size_t before = rfx_memory_current_bytes(f.mem);
    int64_t k = 0;
    for (enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY; status != RFX_OK; k++) {
        struct rfx_error err = {{0}};
        rfx_memory_fail_after(f.mem, k);
        status = read_and_free(f.mem, &f, &err);
        rfx_memory_fail_after(f.mem, -1);
        assert_int_equal(rfx_memory_current_bytes(f.mem), before);
        assert_true(status == RFX_OK || status == RFX_STATUS_OUT_OF_MEMORY);
        assert_true(k < 20);
    }
    assert_true(k > 2);
    small_plan_case_end(&f);
}

static int64_t passes_left = -1; /* allocations of Jansson's before one fails; -1: none does */

static void *no_block(void) {
    errno = ENOMEM;
    return NULL;
}

static void *limited_malloc(size_t bytes) {
    if (passes_left == 0) return no_block();
    if (passes_left > 0) passes_left--;
    return malloc(bytes);
}

/* One fails, the later ones do not: what was left out must be missed. */
static void *once_failing_malloc(size_t bytes) {
    if (passes_left >= 0 && passes_left-- == 0) return no_block();
    return malloc(bytes);
}

/* Jansson's own: a text is whole or there is none, and none of ours is called malformed. */
static void failing_allocations_of_documents(void **state) {
    static const json_malloc_t ways[] = {limited_malloc, once_failing_malloc};
    static const char text_of_plan[] =
        HEAD "\"groups\": [{" GROUP("sum", "c") "}], \"stages\": [" WHOLE "]}";
    struct small_plan_case f = small_plan_case_begin(23, 17);
    struct rfx_plan *plan = NULL;
    char *whole = NULL;
    struct rfx_error err = {{0}};
    (void)state;
    assert_int_equal(small_plan_case_plan(&f, text_of_plan, strlen(text_of_plan), &plan, &err),
                     RFX_OK);
    assert_non_null(plan->grouped); /* all lists are there */
    assert_int_equal(rfx_plan_file_text(plan, "m", &whole, &err), RFX_OK);
    for (int way = 0; way < 2; way++) {
        json_set_alloc_funcs(ways[way], free);
        int64_t k = 0;
        for (bool failed = true; failed; k++) {
            struct rfx_plan_file *file = NULL;
            char *text = NULL;
            passes_left = k;
            enum rfx_status written = rfx_plan_file_text(plan, "m", &text, &err);
            passes_left = k;
            enum rfx_status read =
                rfx_plan_file_parse(f.graph, whole, strlen(whole), "plan.json", &file, &err);
            passes_left = -1;
            failed = written != RFX_OK || read != RFX_OK;
            assert_true(written == RFX_OK || written == RFX_STATUS_OUT_OF_MEMORY);
            /* Where one fails by itself, Jansson may leave out a letter: the text is refused. */
            bool refused =
                read == RFX_STATUS_OUT_OF_MEMORY || (way == 1 && read == RFX_STATUS_MALFORMED);
            if (read != RFX_OK && !refused) fail_msg("%s", err.text);
            if (written == RFX_OK) assert_string_equal(text, whole);
            rfx_memory_release(f.mem, text);
            rfx_plan_file_free(file);
        }
        assert_true(k > 20);
    }
    json_set_alloc_funcs(malloc, free);
    rfx_memory_release(f.mem, whole);
    rfx_plan_free(plan);
    small_plan_case_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_allocations_of_documents),
        cmocka_unit_test(three_stages),
        cmocka_unit_test(refusals),
        cmocka_unit_test(another_arithmetic),
        cmocka_unit_test(another_int8),
        cmocka_unit_test(tiles_alone),
        cmocka_unit_test(changed_at_random),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
