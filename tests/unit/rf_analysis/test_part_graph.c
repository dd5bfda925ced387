/* Part graphs of networks whose regions can be worked out on paper; rounds of global operations;
 * every allocation failing once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "rf_analysis/part_ends.h"
#include "rf_analysis/part_graph.h"
#include "rfexec/run/model.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/test_util.h"

static void assert_rect(struct rfx_rect got, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
    if (rfx_rect_equal(got, rfx_rect_make(y0, y1, x0, x1))) return;
    fail_msg("{%lld, %lld, %lld, %lld} instead of {%lld, %lld, %lld, %lld}", (long long)got.y0,
             (long long)got.y1, (long long)got.x0, (long long)got.x1, (long long)y0, (long long)y1,
             (long long)x0, (long long)x1);
}

/* "a" 3x3 stride 2 pad 1, "b" 3x3 pad 1 on a 20 x 30 image: maps of 10 x 15. */
static void test_wanted(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 20, 30), *part = NULL;
    (void)state;
    int a = rfx_graph_find(graph, "a"), b = rfx_graph_find(graph, "b");
    assert_int_equal(rfx_part_graph_create(graph, 0, rfx_rect_make(4, 6, 0, 3), &part, NULL),
                     RFX_OK);
    assert_rect(part->nodes[b].wanted, 4, 6, 0, 3);
    assert_rect(part->nodes[a].wanted, 3, 7, 0, 4);       /* one more on each side, as there is */
    assert_rect(rfx_part_graph_image(part), 5, 14, 0, 8); /* 2 * 3 - 1 .. 2 * 6 + 2 */
    assert_rect(part->outputs[0].part, 4, 6, 0, 3);
    assert_rect(graph->nodes[a].wanted, 0, 10, 0, 15); /* the base stays as it is */
    rfx_graph_free(part);
    struct rfx_error err;
    static const struct rfx_rect wrong[] = {
        {0, 0, 0, 1}, {0, 11, 0, 1}, {-1, 2, 0, 1}, {0, 1, 3, 3}, {0, 1, 0, 16}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(rfx_part_graph_create(graph, 0, wrong[i], &part, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* What other outputs alone need is not there any more. */
static void test_others_are_dropped(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options load = {.h = 65, .w = 65};
    struct rfx_graph *graph, *part;
    int inner = 0;
    (void)state;
    assert_int_equal(rfx_model_load(mem, "posenet", &load, &graph, NULL), RFX_OK);
    assert_int_equal(rfx_part_graph_create(graph, 1, rfx_rect_make(0, 2, 0, 2), &part, NULL),
                     RFX_OK);
    bool *needed = calloc((size_t)graph->n_nodes, sizeof *needed);
    assert_non_null(needed);
    needed[graph->outputs[1].node] = true;
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        for (int k = 0; needed[i] && k < graph->nodes[i].n_in; k++)
            needed[graph->nodes[i].in[k]] = true;
        assert_true(needed[i] == (part->nodes[i].op != RFX_OP_INNER));
        inner += !needed[i];
    }
    free(needed);
    assert_true(inner >= graph->n_outputs - 1); /* a convolution for each of the others */
    assert_int_equal(part->n_outputs, 1);
    assert_string_equal(part->outputs[0].name, graph->outputs[1].name);
    rfx_graph_free(part);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static struct rfx_part_rounds rounds_of(struct rfx_memory *mem, const char *model) {
    struct rfx_load_options load = {.h = 64, .w = 64};
    struct rfx_graph *graph;
    struct rfx_part_rounds rounds;
    assert_int_equal(rfx_model_load(mem, model, &load, &graph, NULL), RFX_OK);
    assert_int_equal(rfx_part_graph_rounds(graph, 0, NULL, 0, &rounds, NULL), RFX_OK);
    rfx_graph_free(graph);
    return rounds;
}

static void test_rounds(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    (void)state;
    struct rfx_part_rounds unet = rounds_of(mem, "unet"), pool = rounds_of(mem, "resnet18"),
                           norms = rounds_of(mem, "unet_instance"), dense = rounds_of(mem, "vgg16");
    assert_true(unet.rounds == 0 && unet.blocking == -1 && unet.reads_image);
    assert_true(pool.rounds == 1 && pool.blocking == -1 && !pool.reads_image);
    assert_true(norms.rounds == 18 && norms.blocking == -1 && norms.reads_image);
    assert_true(dense.blocking >= 0);
    rfx_memory_free(mem);
}

/* Shares of the rows go to the pool, and what they need of the image follows. */
static void test_shares(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 20, 30), *part;
    (void)state;
    int pool = rfx_graph_find(graph, "pool"), c = rfx_graph_find(graph, "c");
    int64_t rows = 0;
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(
            rfx_part_graph_states(graph, 0, NULL, 0, RFX_PART_OUTER, i, 3, &part, NULL), RFX_OK);
        assert_int_equal(part->n_outputs, 1);
        assert_int_equal(part->outputs[0].node, pool);
        assert_int_equal(part->nodes[pool].taken.y0, rows);
        assert_true(rfx_rect_equal(part->nodes[pool].taken, part->nodes[c].wanted));
        rows = part->nodes[pool].taken.y1;
        rfx_graph_free(part);
    }
    assert_int_equal(rows, 10);
    float values[3] = {1.0f, 2.0f, 3.0f};
    struct rfx_part_known known = {pool, values};
    struct rfx_part_rounds rounds;
    assert_int_equal(rfx_part_graph_rounds(graph, 0, &known, 1, &rounds, NULL), RFX_OK);
    assert_true(rounds.rounds == 0 && !rounds.reads_image);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* Shares of all outputs: together every row of every map once, whatever an output is joined of. */
static void test_shares_of_all(void **state) {
    static const char *const models[] = {"posenet", "yolov8n"};
    static const int ends[] = {4, 3};
    struct rfx_memory *mem = rfx_memory_create(0);
    (void)state;
    for (int m = 0; m < 2; m++) {
        struct rfx_load_options load = {.h = 96, .w = 64};
        struct rfx_graph *graph, *part;
        struct rfx_part_rounds rounds;
        assert_int_equal(rfx_model_load(mem, models[m], &load, &graph, NULL), RFX_OK);
        assert_int_equal(graph->n_ends, ends[m]);
        assert_int_equal(rfx_part_graph_rounds(graph, RFX_PART_ALL, NULL, 0, &rounds, NULL),
                         RFX_OK);
        assert_true(rounds.rounds == 0 && rounds.blocking == -1 && rounds.reads_image);
        int64_t rows[4] = {0};
        int made = 0;
        for (int64_t i = 0; i < 9; i++) { /* more than the smallest map has rows */
            assert_int_equal(rfx_part_graph_share(graph, RFX_PART_ALL, NULL, 0, i, 9, &part, NULL),
                             RFX_OK);
            for (int e = 0, k = 0; e < graph->n_ends; e++) {
                struct rfx_rect share = rfx_part_end_share(graph, e, i, 9);
                if (rfx_rect_is_empty(share)) continue;
                assert_int_equal(share.y0, rows[e]);
                rows[e] = share.y1;
                made++;
                assert_int_equal(part->outputs[k].node, graph->ends[e].node);
                assert_true(rfx_rect_equal(part->outputs[k++].part, share));
                assert_true(rfx_rect_equal(part->nodes[graph->ends[e].node].wanted, share));
            }
            rfx_graph_free(part);
        }
        for (int e = 0; e < graph->n_ends; e++)
            assert_int_equal(rows[e], graph->nodes[graph->ends[e].node].out.h);
        assert_true(made > graph->n_ends && made < 9 * graph->n_ends);
        rfx_graph_free(graph);
    }
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* What is no map belongs to the first share, once the states before it are known; a share of
 * nothing is no graph. */
static void test_share_of_a_vector(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options load = {.h = 64, .w = 64};
    struct rfx_graph *graph, *part;
    struct rfx_part_rounds rounds;
    float *values = calloc(4096, sizeof *values);
    (void)state;
    assert_non_null(values);
    assert_int_equal(rfx_model_load(mem, "resnet18", &load, &graph, NULL), RFX_OK);
    assert_int_equal(rfx_part_graph_rounds(graph, RFX_PART_ALL, NULL, 0, &rounds, NULL), RFX_OK);
    assert_true(rounds.rounds == 1 && rounds.first >= 0);
    struct rfx_part_known known = {rounds.first, values};
    assert_true(graph->nodes[known.node].out.elems <= 4096);
    assert_int_equal(rfx_part_graph_share(graph, RFX_PART_ALL, &known, 1, 0, 3, &part, NULL),
                     RFX_OK);
    assert_int_equal(part->n_outputs, 1);
    assert_int_equal(part->outputs[0].node, graph->outputs[0].node);
    assert_true(rfx_rect_is_empty(rfx_part_graph_image(part)));
    rfx_graph_free(part);
    for (int64_t i = 1; i < 3; i++) {
        assert_int_equal(rfx_part_graph_share(graph, RFX_PART_ALL, &known, 1, i, 3, &part, NULL),
                         RFX_OK);
        assert_null(part);
    }
    free(values);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* Shares of what is before the map "a" of the two convolutions, and of what is behind it. */
static void test_sections(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 20, 30), *part;
    int a = rfx_graph_find(graph, "a"), b = rfx_graph_find(graph, "b");
    const struct rfx_part_section head = {RFX_PART_OUTER, a}, tail = {a, RFX_PART_OUTER};
    (void)state;
    assert_int_equal(rfx_part_graph_section(graph, head, NULL, 0, 1, 3, &part, NULL), RFX_OK);
    assert_int_equal(part->n_ends, 1);
    assert_int_equal(part->ends[0].node, a);
    assert_rect(part->nodes[a].wanted, 4, 7, 0, 15); /* 4, 3 and 3 of 10 rows */
    assert_rect(rfx_part_graph_image(part), 7, 14, 0, 30);
    assert_int_equal(part->nodes[b].op, RFX_OP_INNER);
    rfx_graph_free(part);
    assert_int_equal(rfx_part_graph_section(graph, tail, NULL, 0, 1, 3, &part, NULL), RFX_OK);
    assert_int_equal(part->input, a);
    assert_int_equal(part->nodes[a].op, RFX_OP_INPUT);
    assert_int_equal(part->nodes[graph->input].op, RFX_OP_INNER);
    assert_rect(part->nodes[b].wanted, 4, 7, 0, 15);
    assert_rect(rfx_part_graph_image(part), 3, 8, 0, 15);
    rfx_graph_free(part);
    assert_int_equal(rfx_part_graph_section(graph, head, NULL, 0, 11, 12, &part, NULL), RFX_OK);
    assert_null(part); /* fewer rows than shares */
    assert_int_equal(graph->nodes[a].op, RFX_OP_CONV);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* States made of a cut's rows: what a share takes is what it reads of them. */
static void test_states_from_a_cut(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 20, 30), *part;
    int pool = rfx_graph_find(graph, "pool"), c = rfx_graph_find(graph, "c"), cuts[32], n;
    const struct rfx_part_section ends = {c, RFX_PART_STATES};
    (void)state;
    assert_true(graph->n_nodes <= 32);
    n = rfx_part_cuts_list(graph, cuts);
    assert_true(n > 0 && cuts[n - 1] >= c);
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(rfx_part_graph_section(graph, ends, NULL, 0, i, 3, &part, NULL), RFX_OK);
        assert_int_equal(part->input, c);
        assert_int_equal(part->outputs[0].node, pool);
        assert_true(rfx_rect_equal(part->nodes[pool].taken, rfx_part_graph_image(part)));
        rfx_graph_free(part);
    }
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void test_no_memory(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 20, 30), *part;
    float values[3] = {0};
    struct rfx_part_known known = {rfx_graph_find(graph, "pool"), values};
    size_t before = rfx_memory_current_bytes(mem);
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    int64_t failed = 0;
    (void)state;
    for (; status != RFX_OK; failed++) {
        rfx_memory_fail_after(mem, failed);
        status = rfx_part_graph_after(graph, 0, &known, 1, rfx_rect_full(1, 1), &part, NULL);
        rfx_memory_fail_after(mem, -1);
        if (status == RFX_OK) rfx_graph_free(part);
        if (status != RFX_OK) assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        assert_int_equal(rfx_memory_current_bytes(mem), before);
    }
    assert_true(failed > 5);
    const struct rfx_part_section ends = {rfx_graph_find(graph, "c"), RFX_PART_OUTER};
    status = RFX_STATUS_OUT_OF_MEMORY;
    for (failed = 0; status != RFX_OK; failed++) {
        rfx_memory_fail_after(mem, failed);
        status = rfx_part_graph_section(graph, ends, &known, 1, 0, 2, &part, NULL);
        rfx_memory_fail_after(mem, -1);
        if (status == RFX_OK) rfx_graph_free(part);
        if (status != RFX_OK) assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        assert_int_equal(rfx_memory_current_bytes(mem), before);
    }
    assert_true(failed > 5);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wanted),        cmocka_unit_test(test_others_are_dropped),
        cmocka_unit_test(test_rounds),        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_shares_of_all), cmocka_unit_test(test_share_of_a_vector),
        cmocka_unit_test(test_sections),      cmocka_unit_test(test_states_from_a_cut),
        cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
