/* Grids of networks on paper, and of whole networks against their receptive fields; allocations
 * failing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rf_analysis/analysis.h"
#include "rf_analysis/grid.h"
#include "rfexec/run/model.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/test_util.h"

static struct rfx_grid grid_of(const struct rfx_graph *graph, int node) {
    struct rfx_grid grid;
    assert_int_equal(rfx_grid_find(graph, node, &grid, NULL), RFX_OK);
    return grid;
}

static void check_axis(const struct rfx_grid *grid, int axis, double step, double shift,
                       double size) {
    assert_true(grid->known);
    if (grid->axis[axis].step != step || grid->axis[axis].shift != shift ||
        grid->axis[axis].size_px != size)
        fail_msg("o * %g + %g, field %g, instead of o * %g + %g, field %g", grid->axis[axis].step,
                 grid->axis[axis].shift, grid->axis[axis].size_px, step, shift, size);
}

/* 3x3 stride 2 pad 1, then 3x3 pad 1. */
static void chain(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 16, 20);
    for (int axis = 0; axis < 2; axis++) {
        struct rfx_grid image = grid_of(graph, 0), a = grid_of(graph, 1), b = grid_of(graph, 2);
        check_axis(&image, axis, 1.0, 0.0, 1.0);
        check_axis(&a, axis, 2.0, 0.0, 3.0);
        check_axis(&b, axis, 2.0, 0.0, 7.0);
        assert_true(b.axis[axis].spread_px == 0.0);
    }
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static int add(struct rfx_graph *graph, struct rfx_node *node, const int *in, int n_in) {
    int at = -1;
    struct rfx_error err = {{0}};
    node->in = in;
    node->n_in = n_in;
    if (rfx_graph_add(graph, node, &at, &err) != RFX_OK) fail_msg("%s", err.text);
    return at;
}

/* Pooled, enlarged and cropped: each of the rows and columns in its own way. */
static void places(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    assert_int_equal(rfx_graph_create(mem, "places", &graph, NULL), RFX_OK);
    struct rfx_node image = {.op = RFX_OP_INPUT, .name = "in", .attr.input = {2, 12, 9}};
    int in = add(graph, &image, NULL, 0);
    struct rfx_node crop = {.op = RFX_OP_CROP, .name = "crop"};
    crop.attr.crop.y0 = 11;
    crop.attr.crop.sy = -1;
    crop.attr.crop.x0 = 1;
    crop.attr.crop.sx = 2;
    crop.attr.crop.oh = 12;
    crop.attr.crop.ow = 4;
    int cropped = add(graph, &crop, &in, 1);
    struct rfx_node resize = {.op = RFX_OP_RESIZE, .name = "resize"};
    resize.attr.resize.mode = RFX_RESIZE_LINEAR;
    resize.attr.resize.coord = RFX_COORD_HALF_PIXEL;
    resize.attr.resize.scale_h = 1.5f;
    resize.attr.resize.scale_w = 3.0f;
    resize.attr.resize.oh = 18;
    resize.attr.resize.ow = 12;
    int linear = add(graph, &resize, &in, 1);
    resize.name = "corners";
    resize.attr.resize.coord = RFX_COORD_ALIGN_CORNERS;
    int corners = add(graph, &resize, &in, 1);
    resize.name = "nearest";
    resize.attr.resize.mode = RFX_RESIZE_NEAREST;
    resize.attr.resize.coord = RFX_COORD_ASYMMETRIC;
    resize.attr.resize.nearest = RFX_NEAREST_FLOOR;
    resize.attr.resize.scale_h = 2.0f;
    resize.attr.resize.oh = 24;
    int nearest = add(graph, &resize, &in, 1);
    struct rfx_grid grid = grid_of(graph, cropped);
    check_axis(&grid, 0, -1.0, 11.0, 1.0);
    check_axis(&grid, 1, 2.0, 1.0, 1.0);
    grid = grid_of(graph, linear); /* (o + 0.5) / 1.5 - 0.5, and with the sizes' own third */
    assert_true(fabs(grid.axis[0].step - 2.0 / 3.0) < 1e-15);
    assert_true(fabs(grid.axis[0].shift - (1.0 / 3.0 - 0.5)) < 1e-15);
    assert_true(fabs(grid.axis[1].step - 1.0 / 3.0) < 1e-15); /* as the scale, not the sizes say */
    grid = grid_of(graph, corners);
    assert_true(grid.axis[0].step == 11.0 / 17.0 && grid.axis[0].shift == 0.0);
    grid = grid_of(graph, nearest); /* pixels twice: two lie around the one they are of */
    check_axis(&grid, 0, 0.5, -0.25, 1.5);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Of branches that see other places the one with the smaller field counts; what is the same for
 * all pixels does not. */
static void joins(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    assert_int_equal(rfx_graph_create(mem, "joins", &graph, NULL), RFX_OK);
    struct rfx_node image = {.op = RFX_OP_INPUT, .name = "in", .attr.input = {2, 12, 12}};
    int in = add(graph, &image, NULL, 0);
    struct rfx_node pool = {.op = RFX_OP_POOL_MAX, .name = "even"};
    pool.attr.pool = (struct rfx_pool_attr){.kh = 2, .kw = 2, .sh = 2, .sw = 2, .dh = 1, .dw = 1};
    int even = add(graph, &pool, &in, 1);
    pool.name = "odd";
    pool.attr.pool.kh = pool.attr.pool.kw = 3;
    pool.attr.pool.pads = (struct rfx_pads){1, 1, 0, 0};
    int odd = add(graph, &pool, &in, 1);
    const int both[] = {odd, even};
    struct rfx_node sum = {.op = RFX_OP_BINARY, .name = "sum"};
    int joined = add(graph, &sum, both, 2);
    struct rfx_node mean = {.op = RFX_OP_GLOBAL_POOL, .name = "mean"};
    mean.attr.global_pool.kind = RFX_REDUCE_MEAN;
    int all = add(graph, &mean, &in, 1);
    const int excited[] = {all, in};
    struct rfx_node times = {.op = RFX_OP_BINARY, .name = "times"};
    times.attr.binary.kind = RFX_BINARY_MUL;
    int scaled = add(graph, &times, excited, 2);
    struct rfx_grid grid = grid_of(graph, odd);
    check_axis(&grid, 0, 2.0, 0.0, 3.0);
    grid = grid_of(graph, joined);
    check_axis(&grid, 1, 2.0, 0.5, 2.0);
    assert_true(grid.axis[1].spread_px == 0.5);
    assert_false(grid_of(graph, all).known);
    grid = grid_of(graph, scaled);
    check_axis(&grid, 0, 1.0, 0.0, 1.0);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Where nothing is enlarged and branches agree, the middle of the receptive field that is found
 * backwards, through everything between the pixel and the image. */
static void whole_networks(void **state) {
    (void)state;
    static const char *const names[] = {"mobilenet_v2", "resnet50", "posenet",  "deeplab_v3",
                                        "yolov8n",      "unet",     "blazeface"};
    int checked = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_load_options load = {.h = 128, .w = 128};
        struct rfx_graph *graph;
        struct rfx_analysis *analysis;
        assert_int_equal(rfx_model_load(mem, names[i], &load, &graph, NULL), RFX_OK);
        assert_int_equal(rfx_analysis_create(graph, &analysis, NULL), RFX_OK);
        for (int k = 0; k < 2 * graph->n_nodes; k++) {
            const struct rfx_axis_field *field = &analysis->layers[k / 2].field[k % 2];
            struct rfx_grid grid = grid_of(graph, k / 2);
            const struct rfx_grid_axis *axis = &grid.axis[k % 2];
            if (analysis->layers[k / 2].global || field->size_px == 0 || field->period != 1)
                continue;
            assert_true(grid.known);
            assert_true(axis->step == (double)field->jump.num / (double)field->jump.den);
            double middle = (double)(field->size_px - 1) / 2.0 - (double)field->padding_px;
            if (axis->spread_px == 0.0 && axis->shift != middle)
                fail_msg("%s, '%s': %g instead of %g", names[i], graph->nodes[k / 2].name,
                         axis->shift, middle);
            checked += axis->spread_px == 0.0;
        }
        rfx_analysis_free(analysis);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
    assert_in_range(checked, 500, 5000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(chain), cmocka_unit_test(places),
                                       cmocka_unit_test(joins), cmocka_unit_test(whole_networks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
