/* The equations of paper 003 on graphs: a network by hand, the figures of docs/notes/tradeoff.md,
 * networks that the equations do not speak of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/small_nets.h"
#include "tests/support/test_util.h"
#include "tools/study/curve_formulas.h"

struct net {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct rfx_curve *curve;
    struct rfx_curve_formulas *formulas;
};

static void begin(struct net *net, int64_t tiles_y, int64_t tiles_x) {
    struct rfx_curve_request request = {RFX_BASELINE_FUSED, tiles_y, tiles_x, false};
    assert_int_equal(rfx_curve_create(net->graph, &request, &net->curve, NULL), RFX_OK);
    assert_int_equal(rfx_curve_formulas_create(net->curve, &net->formulas, NULL), RFX_OK);
}

static struct net begin_builtin(const char *name, int64_t size) {
    struct rfx_fuse_options fuse = rfx_baseline_fuse(RFX_BASELINE_FUSED);
    struct net net = {.mem = rfx_memory_create(0)};
    net.graph = test_builtin(net.mem, name, size, size, 0, &fuse);
    begin(&net, 4, 4);
    return net;
}

static void end(struct net *net) {
    rfx_curve_formulas_free(net->formulas);
    rfx_curve_free(net->curve);
    rfx_graph_free(net->graph);
    assert_int_equal(rfx_memory_current_bytes(net->mem), 0);
    rfx_memory_free(net->mem);
}

/* 12x12, R = 324: "a" 2 -> 4 channels, "b" 4 -> 4 (one module between a and the Add), "c" 4 -> 3 at
 * stride 2, all 3x3. Equation 2 takes the modules' input sizes: 144 pixels for all three.
 *
 * Two tiles of 6 rows after "sum", as if there were no border: b is made 6 x 12 from 8 x 14 of a
 * from 10 x 16 of the image. */
static void by_hand(void **state) {
    (void)state;
    struct net net = {.mem = rfx_memory_create(0)};
    net.graph = small_net_residual(net.mem, 12, 12);
    begin(&net, 2, 1);
    struct rfx_curve_figures f;
    assert_true(rfx_curve_formulas_point(net.formulas, &net.curve->untiled, &f));
    assert_int_equal(f.macs, 144 * 9 * (2 * 4 + 4 * 4 + 4 * 3));
    assert_int_equal(f.peak_bytes, 4 * (576 + 576 + 324));
    assert_int_equal(net.curve->points[1].split, 3);
    assert_true(rfx_curve_formulas_point(net.formulas, &net.curve->points[1], &f));
    assert_int_equal(f.macs, 2 * 9 * (160 * 2 * 4 + 112 * 4 * 4) + 144 * 9 * 4 * 3);
    assert_int_equal(f.macs_untiled, 46656);
    assert_int_equal(f.head_bytes, 4 * (160 * 2 + 112 * 4 + 324));
    assert_int_equal(f.tail_bytes, 4 * (576 + 36 * 3 + 324));
    assert_int_equal(f.peak_bytes, f.head_bytes);
    end(&net);
}

/* Equation 3: while a block's second module runs its input is kept, three maps of 32 x 224 x 224.
 */
static void residual_blocks_keep_their_input(void **state) {
    (void)state;
    struct net net = begin_builtin("toy", 224);
    struct rfx_curve_figures f;
    assert_true(net.formulas->residual);
    assert_true(rfx_curve_formulas_point(net.formulas, &net.curve->untiled, &f));
    assert_int_equal(f.peak_bytes, 4 * 3 * 32 * 224 * 224 + net.curve->weights_bytes);
    end(&net);
}

/* Projections on the way around a block are blocks of their own. At 224 x 224 the first convolution
 * holds the most: 3 x 224 x 224 and 64 x 112 x 112. */
static void projections_are_no_part_of_a_block(void **state) {
    (void)state;
    struct net net = begin_builtin("resnet18", 224);
    struct rfx_curve_figures f;
    assert_true(net.formulas->residual);
    assert_int_equal(net.formulas->whole.n, 1 + 8 + 3); /* conv1, 8 blocks, 3 projections */
    assert_int_equal(net.formulas->n_modules, 20);
    assert_true(rfx_curve_formulas_point(net.formulas, &net.curve->untiled, &f));
    assert_int_equal(f.peak_bytes, 4 * (3 * 224 * 224 + 64 * 112 * 112) + net.curve->weights_bytes);
    end(&net);
}

/* docs/notes/tradeoff.md, VGG-16 at 1024 in 4x4 tiles: memory of equation 1, MACs of equation 2
 * with the linear layers' 123 633 664, over the exact untiled MACs. */
static void figures_of_vgg16(void **state) {
    (void)state;
    static const struct {
        const char *split;
        double ratio;
    } known[] = {{"features.4", 1.0021},
                 {"features.9", 1.0178},
                 {"features.16", 1.1146},
                 {"features.23", 1.4567},
                 {"features.30", 2.4700}};
    struct net net = begin_builtin("vgg16", 1024);
    struct rfx_curve_figures f;
    size_t found = 0;
    assert_true(rfx_curve_formulas_point(net.formulas, &net.curve->untiled, &f));
    assert_int_equal(f.peak_bytes, 4 * 64 * 1024 * 1024 * 2 + net.curve->weights_bytes);
    assert_int_equal(f.macs, net.curve->untiled.macs - 123633664);
    for (int p = 0; p < net.curve->n_points && found < 5; p++) {
        const struct rfx_curve_point *point = &net.curve->points[p];
        const struct rfx_node *node = &net.graph->nodes[point->split];
        if (strcmp(node->name, known[found].split) != 0) continue;
        assert_true(rfx_curve_formulas_point(net.formulas, point, &f));
        double ratio = (double)(f.macs + 123633664) / (double)net.curve->untiled.macs;
        assert_true(ratio > known[found].ratio - 0.00005 && ratio < known[found].ratio + 0.00005);
        assert_true(f.macs > point->macs - 123633664);
        found++;
    }
    assert_int_equal(found, 5);
    end(&net);
}

/* Concatenations, products of maps (squeeze and excite), kernels that are no squares. */
static void other_networks_have_no_figures(void **state) {
    (void)state;
    static const char *const names[] = {"squeezenet1_1", "efficientnet_b0", "inception_v3"};
    for (int i = 0; i < 3; i++) {
        struct net net = begin_builtin(names[i], 256);
        struct rfx_curve_figures f = {.macs = 7};
        assert_false(rfx_curve_formulas_point(net.formulas, &net.curve->untiled, &f));
        assert_int_equal(f.macs, 7);
        end(&net);
    }
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct net *net = context;
    struct rfx_curve curve = *net->curve;
    struct rfx_curve_formulas *formulas = NULL;
    curve.mem = mem;
    enum rfx_status status = rfx_curve_formulas_create(&curve, &formulas, err);
    rfx_curve_formulas_free(formulas);
    return status;
}

static void allocations_may_fail(void **state) {
    (void)state;
    struct net net = begin_builtin("toy", 64);
    assert_int_equal(test_fail_each_allocation(build, &net), 9);
    end(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(residual_blocks_keep_their_input),
        cmocka_unit_test(projections_are_no_part_of_a_block),
        cmocka_unit_test(figures_of_vgg16),
        cmocka_unit_test(other_networks_have_no_figures),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
