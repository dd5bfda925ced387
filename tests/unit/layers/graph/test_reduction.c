/* Rows added to a state by several threads: the bits of one row after the other, whatever the
 * threads; few pixels are added by one. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

#include "layers/core/team.h"
#include "layers/graph/reduction.h"
#include "tests/support/test_util.h"

enum { H = 37, W = 131, C = 40, MARK = 0x5a };

static struct rfx_node moments(void) {
    struct rfx_node node = {.op = RFX_OP_MOMENTS};
    node.attr.moments.groups = 1;
    node.attr.moments.eps = 1e-5f;
    node.out.c = 2 * C;
    return node;
}

static struct rfx_node pool(enum rfx_reduce_kind kind) {
    struct rfx_node node = {.op = RFX_OP_GLOBAL_POOL};
    node.attr.global_pool.kind = kind;
    node.out.c = C;
    return node;
}

/* A map of which two rectangles are added, by a team. */
struct adding {
    const struct rfx_node *node;
    const struct rfx_view *in;
    struct rfx_rect first, second;
    void *state, *scratch;
};

static void add_both(struct rfx_team *team, void *user) {
    const struct adding *a = user;
    rfx_reduction_add(a->node, a->state, a->in, a->first, team, a->scratch);
    rfx_reduction_add(a->node, a->state, a->in, a->second, team, a->scratch);
}

static void finish(const struct rfx_node *node, void *state, float *out) {
    struct rfx_view view = rfx_view_dense(out, rfx_rect_make(0, 1, 0, 1), node->out.c);
    rfx_node_reduction(node)->finish(node, state, H, W, &view);
}

/* Whether the scratch of `bytes` has been written to. */
static bool is_used(const unsigned char *scratch, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (scratch[i] != MARK) return true;
    return false;
}

static void check(const struct rfx_node *node, float *map) {
    const struct rfx_reduction *reduction = rfx_node_reduction(node);
    const struct rfx_view in = rfx_view_dense(map, rfx_rect_make(0, H, 0, W), C);
    size_t bytes = reduction->state_bytes(node);
    void *state = malloc(bytes);
    unsigned char *scratch = malloc(4 * bytes);
    float want[2 * C], got[2 * C];
    reduction->begin(node, state);
    for (int64_t y = H - 1; y >= 0; y--)
        reduction->add(node, state, &in, rfx_rect_make(y, y + 1, 0, W));
    finish(node, state, want);
    for (int threads = 1; threads <= 4; threads++) {
        struct adding a = {node,  &in,    rfx_rect_make(0, 30, 0, W), rfx_rect_make(30, H, 0, W),
                           state, scratch};
        memset(scratch, MARK, 4 * bytes);
        reduction->begin(node, state);
        rfx_team_run(threads, add_both, &a);
        finish(node, state, got);
        struct test_diff diff;
        assert_true(test_same_bits(got, want, node->out.c, &diff));
        assert_int_equal(is_used(scratch, 4 * bytes), threads > 1); /* 3,930 pixels; then 917 */
    }
    free(state);
    free(scratch);
}

static void test_threads_add_the_same(void **state) {
    (void)state;
    static const enum rfx_reduce_kind kinds[] = {
        RFX_REDUCE_MEAN, RFX_REDUCE_SUM, RFX_REDUCE_SUM_SQUARE, RFX_REDUCE_MAX, RFX_REDUCE_MIN};
    float *map = test_floats(H * W * C);
    struct test_rng rng = test_rng_make(1);
    test_rng_fill(&rng, map, H * W * C, -3.0f, 3.0f);
    for (int i = 0; i < 50; i++) map[test_rng_int(&rng, 0, H * W * C - 1)] *= 1e-12f;
    struct rfx_node node = moments();
    check(&node, map);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        node = pool(kinds[k]);
        check(&node, map);
    }
    free(map);
}

/* Of few pixels, here 917, the states of other threads would take longer to merge. */
static void test_few_pixels_stay_with_one(void **state) {
    (void)state;
    float *map = test_floats(H * W * C);
    const struct rfx_node node = moments();
    const struct rfx_reduction *reduction = rfx_node_reduction(&node);
    const struct rfx_view in = rfx_view_dense(map, rfx_rect_make(0, H, 0, W), C);
    size_t bytes = reduction->state_bytes(&node);
    void *sums = malloc(bytes);
    unsigned char *scratch = malloc(bytes);
    memset(scratch, MARK, bytes);
    reduction->begin(&node, sums);
    struct adding a = {&node, &in,    rfx_rect_make(0, 7, 0, W), rfx_rect_make(7, 14, 0, W),
                       sums,  scratch};
    rfx_team_run(2, add_both, &a);
    assert_false(is_used(scratch, bytes));
    free(sums);
    free(scratch);
    free(map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_add_the_same),
        cmocka_unit_test(test_few_pixels_stay_with_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
