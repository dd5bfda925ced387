/* Coordinates, grids and masks that a file makes from sizes: their values, that rows and columns of
 * them are stored and no map is, and that such networks stream. Random chains of operators on such
 * constants, beside ONNX Runtime: tests/oracle/coordinate_models.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/makers/onnx_net.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"
#include "tiler/plan/plan.h"

enum { H = 70, W = 83, C = 2, AREA = H * W };

static struct maker graph;

/* x: the image; rx, ry: 0, 1, ... for its columns and rows, fx, fy as floats; numbers and shapes.
 */
static void begin(int64_t h, int64_t w) {
    const int64_t image[4] = {1, C, h, w}, map[4] = {1, 1, h, w}, last[4] = {1, h, w, 1},
                  pixels[2] = {h * w, 1}, flat[3] = {1, C, h * w};
    static const int64_t numbers[] = {0, 1, 2, 3}, leading[3] = {0, 1, 2}, beside[3] = {0, 1, 3};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
    maker_ints(&graph, "zero", &numbers[0], 1);
    maker_ints(&graph, "one", &numbers[1], 1);
    maker_ints(&graph, "two", &numbers[2], 1);
    maker_ints(&graph, "three", &numbers[3], 1);
    maker_ints(&graph, "w", &w, 1);
    maker_ints(&graph, "h", &h, 1);
    maker_ints(&graph, "leading", leading, 3);
    maker_ints(&graph, "beside", beside, 3);
    maker_ints(&graph, "map", map, 4);
    maker_ints(&graph, "last", last, 4);
    maker_ints(&graph, "pixels", pixels, 2);
    maker_ints(&graph, "flat", flat, 3);
    maker_add(&graph, "Range", "zero w one", "rx");
    maker_add(&graph, "Range", "zero h one", "ry");
    maker_add_int(&graph, "Cast", "rx", "fx", "to", 1);
    maker_add_int(&graph, "Cast", "ry", "fy", "to", 1);
}

/* gx and gy: (1, 1, h, w) of those two tensors. */
static void grids(const char *across, const char *down) {
    char in[64];
    (void)snprintf(in, sizeof in, "%s leading", across);
    maker_add(&graph, "Unsqueeze", in, "across");
    (void)snprintf(in, sizeof in, "%s beside", down);
    maker_add(&graph, "Unsqueeze", in, "down");
    maker_add(&graph, "Expand", "across map", "gx");
    maker_add(&graph, "Expand", "down map", "gy");
}

/* lx and ly: (1, h, w, 1) of columns and rows. */
static void grids_last(void) {
    grids("fx", "fy");
    maker_add(&graph, "Reshape", "gx last", "lx");
    maker_add(&graph, "Reshape", "gy last", "ly");
}

/* The network's output is wanted(c, y, x) beside an image of values of its own. No constant has as
 * many elements as a map has pixels; or, of a head, the output is joined of maps. */
typedef float wanted_at(float image, int64_t c, int64_t y, int64_t x);

static void expect(int64_t channels, bool joined, bool head, wanted_at *wanted, const char *what) {
    struct test_rng rng = test_rng_make(7);
    float *image = test_floats(C * AREA);
    test_rng_fill(&rng, image, C * AREA, -1.0f, 1.0f);
    struct rfx_graph *net = onnx_net_loaded(&graph, 17);
    if (head) assert_int_equal(net->nodes[net->outputs[0].node].op, RFX_OP_JOIN_MAPS);
    for (int i = 0; i < net->n_weights && !head; i++)
        if (net->weights[i].elems >= AREA && net->weights[i].source != RFX_WEIGHT_FILLED)
            fail_msg("%s: a constant of %d elements", what, (int)net->weights[i].elems);
    float *got = test_run_output(net, image, 0);
    for (int64_t i = 0; i < channels * AREA; i++) {
        int64_t c = i / AREA, y = i / W % H, x = i % W;
        bool own = joined && c < C;
        float v = own ? image[i] : wanted(joined ? 0.0f : image[i], joined ? c - C : c, y, x);
        if (got[i] != v)
            fail_msg("%s: [%d, %d, %d] is %g, not %g", what, (int)c, (int)y, (int)x, (double)got[i],
                     (double)v);
    }
    free(got);
    free(image);
    onnx_net_discard(net);
}

static float scaled(float image, int64_t c, int64_t y, int64_t x) {
    (void)image;
    return c == 0 ? (float)x / (float)W : (float)y / (float)H;
}

static void coord_conv(const char *out) {
    maker_add_int(&graph, "Cast", "w", "wf", "to", 1);
    maker_add_int(&graph, "Cast", "h", "hf", "to", 1);
    maker_add(&graph, "Div", "fx wf", "nx");
    maker_add(&graph, "Div", "fy hf", "ny");
    grids("nx", "ny");
    maker_add_int(&graph, "Concat", "x gx gy", out, "axis", 1);
}

static void channels(void **state) {
    (void)state;
    begin(H, W);
    coord_conv("y");
    expect(C + 2, true, false, scaled, "channels");
}

static float counted(float image, int64_t c, int64_t y, int64_t x) {
    (void)image;
    return (float)(c == 0 ? x : c == 1 ? y : c == 2 ? x + 1 : y + 1);
}

/* A mesh of rows and columns that is expanded again, and sums of ones: what torch.meshgrid and
 * encodings of positions become. */
static void meshes(void **state) {
    (void)state;
    static const int64_t dims[2] = {H, W}, column[2] = {-1, 1};
    begin(H, W);
    maker_ints(&graph, "mesh", dims, 2);
    maker_ints(&graph, "column", column, 2);
    maker_add(&graph, "Reshape", "fy column", "fyc");
    maker_add(&graph, "Expand", "fx mesh", "mx");
    maker_add(&graph, "Expand", "fyc mesh", "my");
    maker_add(&graph, "Expand", "mx map", "gx");
    maker_add(&graph, "Expand", "my map", "gy");
    maker_add(&graph, "ConstantOfShape", "map", "zeros");
    maker_add_int(&graph, "Cast", "one", "onef", "to", 1);
    maker_add(&graph, "Add", "zeros onef", "ones");
    maker_add(&graph, "CumSum", "ones three", "sx");
    maker_add(&graph, "CumSum", "ones two", "sy");
    maker_add_int(&graph, "Concat", "x gx gy sx sy", "y", "axis", 1);
    expect(C + 4, true, false, counted, "meshes");
}

static float woven(float image, int64_t c, int64_t y, int64_t x) {
    (void)image;
    return (float)((c < 2 ? 1 : 2) * (c % 2 == 0 ? x : y));
}

/* Channels of two coordinates, interleaved with their doubles. */
static void interleaved(void **state) {
    (void)state;
    static const int64_t pairs[5] = {1, H, W, 2, 1}, channels_of[4] = {1, H, W, 4},
                         to_first[4] = {0, 3, 1, 2}, four[4] = {1, 4, 1, 1};
    static const float times[4] = {1, 1, 2, 2};
    begin(H, W);
    maker_ints(&graph, "pairs", pairs, 5);
    maker_ints(&graph, "all", channels_of, 4);
    grids_last();
    maker_add_int(&graph, "Concat", "lx lx", "xx", "axis", 3);
    maker_add_int(&graph, "Concat", "ly ly", "yy", "axis", 3);
    maker_add(&graph, "Reshape", "xx pairs", "px");
    maker_add(&graph, "Reshape", "yy pairs", "py");
    maker_add_int(&graph, "Concat", "px py", "p", "axis", 4);
    maker_add(&graph, "Reshape", "p all", "a");
    maker_add_ints(&graph, "Transpose", "a", "first", "perm", to_first, 4);
    maker_floats(&graph, "times", four, 4, times);
    maker_add(&graph, "Mul", "first times", "scaled");
    maker_add_int(&graph, "Concat", "x scaled", "y", "axis", 1);
    expect(C + 4, true, false, woven, "interleaved");
}

static float turned(float image, int64_t c, int64_t y, int64_t x) {
    (void)image;
    return c == 0 ? (float)(W - 1 - x) : c == 1 ? (float)(3 * y - 7) : (float)(2 * x + 1);
}

/* Integers, flipped, doubled and joined before they become floats. */
static void integers(void **state) {
    (void)state;
    const int64_t from = -1, far = INT64_MIN + 1, seven = 7;
    begin(H, W);
    grids("rx", "ry");
    maker_ints(&graph, "from", &from, 1);
    maker_ints(&graph, "far", &far, 1);
    maker_ints(&graph, "seven", &seven, 1);
    maker_add(&graph, "Slice", "gx from far three from", "a");
    maker_add(&graph, "Mul", "gy three", "b0");
    maker_add(&graph, "Sub", "b0 seven", "b");
    maker_add(&graph, "Add", "gx gx", "c0");
    maker_add(&graph, "Add", "c0 one", "c");
    maker_add_int(&graph, "Concat", "a b c", "all", "axis", 1);
    maker_add_int(&graph, "Cast", "all", "real", "to", 1);
    maker_add_int(&graph, "Concat", "x real", "y", "axis", 1);
    expect(C + 3, true, false, turned, "integers");
}

static float moved(float image, int64_t c, int64_t y, int64_t x) {
    return (float)(c == 0 ? x : y) * 0.5f + image;
}

/* A grid with its channels last, beside the image with its channels last. */
static void channels_last(void **state) {
    (void)state;
    static const int64_t to_last[4] = {0, 2, 3, 1}, to_first[4] = {0, 3, 1, 2}, dims[1] = {1};
    static const float half = 0.5f;
    begin(H, W);
    grids_last();
    maker_floats(&graph, "half", dims, 1, &half);
    maker_add_int(&graph, "Concat", "lx ly", "g0", "axis", 3);
    maker_add(&graph, "Mul", "g0 half", "g");
    maker_add_ints(&graph, "Transpose", "x", "t", "perm", to_last, 4);
    maker_add(&graph, "Add", "g t", "sum");
    maker_add_ints(&graph, "Transpose", "sum", "y", "perm", to_first, 4);
    expect(C, false, false, moved, "channels last");
}

static float moved_back(float image, int64_t c, int64_t y, int64_t x) {
    return moved(-image, c, y, x);
}

/* The places of pixels in a row, as detectors have them: the head is computed map by map. */
static void cells(void **state) {
    (void)state;
    static const int64_t dims[1] = {1}, swap[2] = {1, 0};
    static const float half = 0.5f;
    begin(H, W);
    grids("fx", "fy");
    maker_floats(&graph, "half", dims, 1, &half);
    maker_add(&graph, "Reshape", "gx pixels", "px");
    maker_add(&graph, "Reshape", "gy pixels", "py");
    maker_add_int(&graph, "Concat", "px py", "g0", "axis", -1);
    maker_add(&graph, "Mul", "g0 half", "g1");
    maker_add_ints(&graph, "Transpose", "g1", "g", "perm", swap, 2);
    maker_add(&graph, "Neg", "x", "minus");
    maker_add(&graph, "Reshape", "minus flat", "t");
    maker_add(&graph, "Add", "t g", "y");
    expect(C, false, true, moved_back, "cells");
}

/* Cells of two levels of one map: their coordinates and strides are not stored, however many. */
static void many_cells(void **state) {
    (void)state;
    static const int64_t swap[3] = {0, 2, 1}, pairs[3] = {1, -1, 2}, ones[3] = {1, -1, 1};
    static const int64_t sides[] = {50, 900, 1600};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        int64_t h = sides[i], w = sides[i] + 10;
        begin(h, w);
        maker_ints(&graph, "pairs", pairs, 3);
        maker_ints(&graph, "ones", ones, 3);
        grids_last();
        maker_add_int(&graph, "Concat", "lx ly", "xy", "axis", 3);
        maker_add(&graph, "Reshape", "xy pairs", "level");
        maker_add(&graph, "Add", "level level", "other");
        maker_add_int(&graph, "Concat", "level other", "cells", "axis", 1);
        maker_add_ints(&graph, "Transpose", "cells", "places", "perm", swap, 3);
        maker_add(&graph, "Reshape", "gx ones", "column");
        maker_add(&graph, "Sub", "column column", "zeros");
        maker_add_int(&graph, "Cast", "two", "twof", "to", 1);
        maker_add_int(&graph, "Cast", "three", "threef", "to", 1);
        maker_add(&graph, "Add", "zeros twof", "s1");
        maker_add(&graph, "Add", "zeros threef", "s2");
        maker_add_int(&graph, "Concat", "s1 s2", "all", "axis", 1);
        maker_add_ints(&graph, "Transpose", "all", "strides", "perm", swap, 3);
        maker_add(&graph, "Neg", "x", "minus");
        maker_add(&graph, "Abs", "x", "plus");
        maker_add(&graph, "Reshape", "plus flat", "t1");
        maker_add(&graph, "Reshape", "minus flat", "t2");
        maker_add_int(&graph, "Concat", "t1 t2", "both", "axis", 2);
        maker_add(&graph, "Add", "both places", "moved");
        maker_add(&graph, "Mul", "moved strides", "y");
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        assert_int_equal(net->nodes[net->outputs[0].node].op, RFX_OP_JOIN_MAPS);
        if (net->load_bytes > (size_t)2 << 20)
            fail_msg("%zu bytes for 2 x %d x %d cells", net->load_bytes, (int)h, (int)w);
        if (i == 0) {
            int64_t area = h * w;
            float *image = test_floats(C * area);
            for (int64_t e = 0; e < C * area; e++) image[e] = 0.25f;
            float *got = test_run_output(net, image, 0);
            for (int64_t e = 0; e < 2 * C * area; e++) {
                int64_t c = e / (2 * area), level = e / area % 2, y = e % area / w,
                        x = e % area % w;
                float place =
                    (float)(c == 0 ? x : y) * (float)(level + 1) + (level == 0 ? 0.25f : -0.25f);
                assert_true(got[e] == place * (float)(level + 2));
            }
            free(got);
            free(image);
        }
        onnx_net_discard(net);
    }
}

/* Rows and columns of a large image are all that is stored: it streams. */
static void large(void **state) {
    (void)state;
    enum { SIDE = 20000 };
    const int64_t dims[4] = {1, C + 2, 3, 3}, pads[4] = {1, 1, 1, 1};
    float filters[(C + 2) * 9] = {0.5f};
    struct rfx_error err = {{0}};
    struct rfx_plan *plan = NULL;
    struct rfx_plan_request request = {
        .source = {.h = SIDE, .w = SIDE, .c = C, .random_access = true},
        .threads = 1,
        .memory_bytes = (size_t)64 << 20,
        .emit_outputs = true};
    begin(SIDE, SIDE);
    coord_conv("joined");
    maker_floats(&graph, "k", dims, 4, filters);
    maker_add_ints(&graph, "Conv", "joined k", "y", "pads", pads, 4);
    struct rfx_graph *net = onnx_net_loaded(&graph, 17);
    if (rfx_plan_create(net, &request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_true(net->held_bytes < (size_t)2 << 20);
    rfx_plan_free(plan);
    onnx_net_discard(net);
}

/* What has to be stored, and what no machine can: the text says how large it is. */
static void too_large(void **state) {
    (void)state;
    const int64_t huge = (int64_t)1 << 50;
    begin(H, W);
    maker_ints(&graph, "huge", &huge, 1);
    maker_add(&graph, "Range", "zero huge one", "far");
    maker_add_int(&graph, "Cast", "far", "real", "to", 1);
    maker_add(&graph, "Add", "x real", "y");
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED,
                     "a constant of 1125899906842624 elements, 8589934592.0 MiB while the model");
    begin(H, W);
    maker_add(&graph, "Range", "zero w zero", "far");
    maker_add(&graph, "Add", "x far", "y");
    onnx_net_refused(&graph, 17, RFX_STATUS_MALFORMED, "a step of 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(channels),      cmocka_unit_test(meshes),
                                       cmocka_unit_test(interleaved),   cmocka_unit_test(integers),
                                       cmocka_unit_test(channels_last), cmocka_unit_test(cells),
                                       cmocka_unit_test(many_cells),    cmocka_unit_test(large),
                                       cmocka_unit_test(too_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
