/* Attention within windows in ONNX files: what is exported in the cyclic form is found again, with
 * the same bits; and what only looks like it is not found. */
#include "rfexec/onnx/import/onnx_windows.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/run/model.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_net.h"
#include "tests/support/test_util.h"

static int after(struct rfx_graph *graph, struct rfx_node node, int in) {
    return test_net_add(graph, node, &in, 1);
}

static struct rfx_graph *begin(int64_t c, int64_t h, int64_t w) {
    struct rfx_graph *graph = NULL;
    struct rfx_node image = {.op = RFX_OP_INPUT, .attr.input = {c, h, w}};
    assert_int_equal(rfx_graph_create(rfx_memory_create(0), "g", &graph, NULL), RFX_OK);
    (void)test_net_add(graph, image, NULL, 0);
    return graph;
}

static void discard(struct rfx_graph *graph) {
    struct rfx_memory *mem = graph->mem;
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static int random_weight(struct rfx_graph *graph, int64_t elems) {
    struct rfx_weight weight = {.source = RFX_WEIGHT_GENERATED,
                                .seed = 5,
                                .lo = -1.0f,
                                .hi = 1.0f,
                                .shape = {1, {elems}},
                                .elems = elems};
    int index;
    assert_int_equal(rfx_graph_add_weight(graph, &weight, &index, NULL), RFX_OK);
    return index;
}

/* --- what is exported --- */

static struct rfx_graph *exported_and_loaded(struct rfx_graph *graph) {
    struct rfx_load_options options = {.h = 0};
    struct rfx_graph *loaded = NULL;
    struct rfx_error err = {""};
    char path[64];
    (void)snprintf(path, sizeof path, "onnx_windows_%ld.onnx", (long)getpid());
    if (rfx_onnx_export(graph, path, &err) != RFX_OK) fail_msg("%s", err.text);
    if (rfx_onnx_load(rfx_memory_create(0), path, &options, &loaded, &err) != RFX_OK)
        fail_msg("%s", err.text);
    (void)unlink(path);
    return loaded;
}

/* The values of a network's last node. */
static float *values_of(const struct rfx_graph *graph, const float *input, int64_t *elems) {
    struct test_prepared prepared;
    float **outs = calloc((size_t)graph->n_nodes, sizeof *outs);
    assert_true(test_prepare(graph, 1, &prepared));
    test_run_whole(&prepared, input, outs);
    *elems = graph->nodes[graph->n_nodes - 1].out.elems;
    float *values = test_floats(*elems);
    memcpy(values, outs[graph->n_nodes - 1], (size_t)*elems * sizeof *values);
    test_run_whole_free(graph, outs);
    test_prepared_free(&prepared);
    free(outs);
    return values;
}

static void there_and_back(void **state) {
    (void)state;
    static const struct {
        int64_t h, w, size; /* of the map; channels of a head's keys */
        struct rfx_window_attention_attr attr;
    } cases[] = {
        {8, 12, 3, {.h = 4, .w = 4, .heads = 2, .scale = 0.5f}},
        {8, 12, 3, {.h = 4, .w = 4, .shift_h = 2, .shift_w = 2, .heads = 2, .scale = 0.5f}},
        {8, 12, 4, {.h = 4, .w = 6, .shift_h = 1, .shift_w = 5, .heads = 1, .scale = 2.0f}},
        {9, 10, 1, {.h = 3, .w = 5, .shift_h = 2, .heads = 3, .scale = 1.0f}},
        {9, 10, 2, {.h = 3, .w = 5, .shift_w = 3, .heads = 2, .scale = 1.0f}},
        {4, 12, 2, {.h = 4, .w = 3, .shift_h = 1, .shift_w = 1, .heads = 2, .scale = 1.0f}},
        {12, 5, 2, {.h = 4, .w = 5, .shift_h = 3, .shift_w = 2, .heads = 2, .scale = 1.0f}},
        {4, 5, 2, {.h = 4, .w = 5, .shift_h = 3, .shift_w = 2, .heads = 2, .scale = 1.0f}},
        {4, 5, 2, {.h = 4, .w = 5, .heads = 1, .scale = 1.0f}},
        {6, 8, 3, {.h = 1, .w = 4, .shift_w = 1, .heads = 2, .scale = 1.0f}},
        {6, 8, 3, {.h = 2, .w = 1, .shift_h = 1, .heads = 2, .scale = 1.0f}},
        {8, 12, 3, {.h = 4, .w = 4, .shift_h = 2, .heads = 2, .value_size = 5, .scale = 0.5f}},
        {4, 5, 3, {.h = 4, .w = 5, .heads = 3, .value_size = 1, .scale = 1.0f}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int bias = 0; bias < 3; bias++) {
            struct rfx_window_attention_attr a = cases[i].attr;
            int64_t n = a.h * a.w, table = (2 * a.h - 1) * (2 * a.w - 1), elems[2];
            int64_t values = a.value_size > 0 ? a.value_size : cases[i].size;
            struct rfx_graph *graph =
                begin(a.heads * (2 * cases[i].size + values), cases[i].h, cases[i].w);
            a.by_table = bias == 1;
            a.bias = bias == 0 ? -1 : random_weight(graph, a.heads * (bias == 1 ? table : n * n));
            int last = after(
                graph, (struct rfx_node){.op = RFX_OP_WINDOW_ATTENTION, .attr.window_attention = a},
                0);
            assert_int_equal(rfx_graph_add_output(graph, last, "y", NULL), RFX_OK);
            assert_int_equal(rfx_graph_finish(graph, NULL, NULL), RFX_OK);
            struct rfx_graph *loaded = exported_and_loaded(graph);
            if (loaded->n_nodes != 2 || loaded->nodes[1].op != RFX_OP_WINDOW_ATTENTION)
                fail_msg("case %zu, bias %d: not found", i, bias);
            const struct rfx_window_attention_attr *b = &loaded->nodes[1].attr.window_attention;
            assert_true(b->h == a.h && b->w == a.w && b->shift_h == a.shift_h &&
                        b->shift_w == a.shift_w && b->heads == a.heads && b->scale == a.scale &&
                        b->value_size == a.value_size);
            float *input = test_floats(graph->nodes[0].out.elems);
            struct test_rng rng = test_rng_make(i);
            test_rng_fill(&rng, input, graph->nodes[0].out.elems, -2.0f, 2.0f);
            float *one = values_of(graph, input, &elems[0]);
            float *two = values_of(loaded, input, &elems[1]);
            assert_int_equal(elems[0], elems[1]);
            assert_memory_equal(one, two, (size_t)elems[0] * sizeof *one);
            free(one);
            free(two);
            free(input);
            discard(loaded);
            discard(graph);
        }
}

/* --- what only looks like it --- */

enum { H = 8, W = 12, HEADS = 2, SIZE = 3, WINDOW = 4, PIXELS = WINDOW * WINDOW };
enum { DOWN = H / WINDOW, ACROSS = W / WINDOW, COUNT = DOWN * ACROSS, WIDTH = HEADS * SIZE };

struct form {
    const char *what;
    bool found;
    int64_t shift, mask_shift; /* mask_shift 0: no mask */
    float masked;              /* 0: -100 */
    float one;                 /* of an element that is not masked */
    bool scaled_later;         /* a factor behind the bias */
    bool other_values;         /* the values are the keys */
    bool other_order;          /* pixels of a window column by column */
    bool bias_by_window;
    bool two_biases;
};

static int constant(struct rfx_graph *graph, const float *values, int rank, const int64_t *dims) {
    struct rfx_node node = {.op = RFX_OP_CONST_PLAIN};
    struct rfx_weight weight = {.source = RFX_WEIGHT_OWNED, .data = values, .elems = 1};
    node.attr.constant.shape.rank = weight.shape.rank = rank;
    for (int i = 0; i < rank; i++) {
        node.attr.constant.shape.dims[i] = weight.shape.dims[i] = dims[i];
        weight.elems *= dims[i];
    }
    assert_int_equal(rfx_graph_add_weight(graph, &weight, &node.attr.constant.weight, NULL),
                     RFX_OK);
    return test_net_add(graph, node, NULL, 0);
}

static int binary(struct rfx_graph *graph, enum rfx_binary_kind kind, int a, int b) {
    struct rfx_node node = {.op = RFX_OP_PLAIN_BINARY, .attr.binary = {kind}};
    return test_net_add(graph, node, (const int[]){a, b}, 2);
}

static int reshape(struct rfx_graph *graph, int in, struct rfx_shape shape) {
    return after(graph, (struct rfx_node){.op = RFX_OP_RESHAPE, .attr.reshape = {shape}}, in);
}

static int transpose(struct rfx_graph *graph, int in, int rank, const int *perm) {
    struct rfx_node node = {.op = RFX_OP_TRANSPOSE};
    memcpy(node.attr.transpose.perm, perm, (size_t)rank * sizeof *perm);
    return after(graph, node, in);
}

static int rolled(struct rfx_graph *graph, int in, int axis, int64_t shift) {
    struct rfx_node half = {.op = RFX_OP_PLAIN_SLICE}, join = {.op = RFX_OP_PLAIN_CONCAT};
    int halves[2];
    for (int k = 0; k < 2; k++) {
        half.attr.slice = (struct rfx_slice_attr){.shape = graph->nodes[in].out.shape};
        for (int i = 0; i < 4; i++) half.attr.slice.steps[i] = 1;
        int64_t extent = half.attr.slice.shape.dims[axis];
        half.attr.slice.starts[axis] = k == 0 ? shift : 0;
        half.attr.slice.shape.dims[axis] = k == 0 ? extent - shift : shift;
        halves[k] = after(graph, half, in);
    }
    join.attr.concat.axis = axis;
    return test_net_add(graph, join, halves, 2);
}

/* (windows, heads, pixels, channels) of part k. */
static int part(struct rfx_graph *graph, int windows, int64_t k) {
    struct rfx_node pick = {.op = RFX_OP_PLAIN_GATHER};
    pick.attr.gather.count = 1;
    pick.attr.gather.map = &k;
    return reshape(graph, after(graph, pick, windows),
                   (struct rfx_shape){4, {COUNT, HEADS, PIXELS, SIZE}});
}

static int mask(struct rfx_graph *graph, const struct form *f) {
    float values[COUNT * PIXELS * PIXELS];
    const int64_t dims[5] = {1, COUNT, 1, PIXELS, PIXELS};
    float masked = f->masked != 0.0f ? f->masked : -100.0f;
    for (int64_t e = 0; e < COUNT * PIXELS * PIXELS; e++) {
        int64_t window = e / PIXELS / PIXELS, i = e / PIXELS % PIXELS, j = e % PIXELS;
        int64_t cut = WINDOW - f->mask_shift;
        bool below = window / ACROSS == DOWN - 1 && (i / WINDOW < cut) != (j / WINDOW < cut);
        bool beside = window % ACROSS == ACROSS - 1 && (i % WINDOW < cut) != (j % WINDOW < cut);
        values[e] = below || beside ? masked : 0.0f;
    }
    values[3] += f->one;
    return constant(graph, values, 5, dims);
}

static int bias(struct rfx_graph *graph, bool by_window) {
    float values[COUNT * HEADS * PIXELS * PIXELS];
    const int64_t dims[4] = {by_window ? COUNT : 1, HEADS, PIXELS, PIXELS};
    for (int i = 0; i < COUNT * HEADS * PIXELS * PIXELS; i++) values[i] = 0.01f * (float)(i % 97);
    return constant(graph, values, 4, dims);
}

static int scores_of(struct rfx_graph *graph, const struct form *f, int q, int k) {
    const int turn[4] = {0, 1, 3, 2};
    const float half = 0.5f;
    const int64_t one = 1;
    int number = constant(graph, &half, 1, &one);
    struct rfx_node product = {.op = RFX_OP_MATMUL};
    int in[2] = {binary(graph, RFX_BINARY_MUL, q, number), transpose(graph, k, 4, turn)};
    int at = test_net_add(graph, product, in, 2);
    at = binary(graph, RFX_BINARY_ADD, at, bias(graph, f->bias_by_window));
    if (f->two_biases) at = binary(graph, RFX_BINARY_ADD, at, bias(graph, false));
    if (f->scaled_later) at = binary(graph, RFX_BINARY_MUL, at, number);
    if (f->mask_shift == 0) return at;
    at = reshape(graph, at, (struct rfx_shape){5, {1, COUNT, HEADS, PIXELS, PIXELS}});
    at = binary(graph, RFX_BINARY_ADD, at, mask(graph, f));
    return reshape(graph, at, (struct rfx_shape){4, {COUNT, HEADS, PIXELS, PIXELS}});
}

/* A layer as exporters write it, up to its second product; is it found? */
static void look(const struct form *f) {
    const int by_rows[8] = {4, 0, 2, 5, 1, 3, 6, 7}, by_columns[8] = {4, 0, 2, 5, 3, 1, 6, 7};
    struct rfx_graph *graph = begin(3 * WIDTH, H, W);
    int at = after(graph, (struct rfx_node){.op = RFX_OP_NHWC_AS_PLAIN}, 0);
    for (int axis = 1; axis < 3 && f->shift != 0; axis++) at = rolled(graph, at, axis, f->shift);
    at = reshape(graph, at, (struct rfx_shape){7, {DOWN, WINDOW, ACROSS, WINDOW, 3, HEADS, SIZE}});
    int perm[8];
    memcpy(perm, f->other_order ? by_columns : by_rows, sizeof perm);
    at = transpose(graph, at, 7, perm);
    at = reshape(graph, at, (struct rfx_shape){5, {3, COUNT, HEADS, PIXELS, SIZE}});
    int q = part(graph, at, 0), k = part(graph, at, 1),
        v = part(graph, at, f->other_values ? 1 : 2);
    struct rfx_node softmax = {.op = RFX_OP_PLAIN_SOFTMAX, .attr.softmax.axis = 3};
    int weights = after(graph, softmax, scores_of(graph, f, q, k));
    struct rfx_found_windows found;
    const struct rfx_shape product = {4, {COUNT, HEADS, PIXELS, SIZE}};
    assert_int_equal(rfx_find_windows(graph, weights, v, &product, &found, NULL), RFX_OK);
    if (found.found != f->found) fail_msg("%s: %s", f->what, f->found ? "not found" : "found");
    if (f->found) {
        assert_int_equal(found.attr.h, WINDOW);
        assert_int_equal(found.attr.shift_w, f->shift);
        assert_int_equal(found.attr.heads, HEADS);
        assert_true(found.attr.scale == 0.5f && found.attr.bias >= 0);
        assert_int_equal(found.parts[2].first, f->other_values ? WIDTH : 2 * WIDTH);
    }
    discard(graph);
}

static void likeness(void **state) {
    (void)state;
    static const struct form forms[] = {
        {.what = "plain", .found = true},
        {.what = "shifted", .found = true, .shift = 2, .mask_shift = 2},
        {.what = "a mask of -1000", .found = true, .shift = 1, .mask_shift = 1, .masked = -1000.0f},
        {.what = "nothing is kept apart", .shift = 2},
        {.what = "another shift's mask", .shift = 2, .mask_shift = 1},
        {.what = "a mask without a shift", .mask_shift = 2},
        {.what = "a mask of -50", .shift = 2, .mask_shift = 2, .masked = -50.0f},
        {.what = "a mask of NaN", .shift = 2, .mask_shift = 2, .masked = NAN},
        {.what = "a mask with one more", .shift = 2, .mask_shift = 2, .one = -1e-3f},
        {.what = "shifted by a window", .shift = 4, .mask_shift = 2},
        {.what = "a factor behind the bias", .scaled_later = true},
        {.what = "keys are values too", .found = true, .other_values = true},
        {.what = "pixels column by column", .other_order = true},
        {.what = "a bias of each window", .bias_by_window = true},
        {.what = "two biases", .two_biases = true},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) look(&forms[i]);
}

/* --- the whole map as a window, as YOLO11 and YOLOv10 export it --- */

/* Axis 2 of a tensor (1, heads, channels, pixels): channels [start, start + size). */
static int channels(struct rfx_graph *graph, int in, int64_t start, int64_t size) {
    struct rfx_node cut = {.op = RFX_OP_PLAIN_SLICE};
    cut.attr.slice = (struct rfx_slice_attr){.shape = graph->nodes[in].out.shape};
    for (int i = 0; i < 4; i++) cut.attr.slice.steps[i] = 1;
    cut.attr.slice.starts[2] = start;
    cut.attr.slice.shape.dims[2] = size;
    return after(graph, cut, in);
}

/* With heads side by side in a map, attention with whole tensors and the operator that is found for
 * it have the same bits. */
static void whole_map(void **state) {
    (void)state;
    static const struct {
        int64_t h, w, heads, keys, values;
    } cases[] = {{5, 6, 2, 4, 8},  {13, 11, 2, 32, 64}, {9, 15, 3, 5, 2},
                 {7, 4, 1, 3, 17}, {3, 50, 2, 8, 8},    {65, 64, 1, 3, 6}};
    const int turn[4] = {0, 1, 3, 2};
    const float number = 0.176776695f;
    const int64_t one = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t heads = cases[i].heads, keys = cases[i].keys, values = cases[i].values;
        int64_t of_head = 2 * keys + values, n = cases[i].h * cases[i].w, elems[2];
        struct rfx_graph *graph = begin(heads * of_head, cases[i].h, cases[i].w);
        int at = after(graph, (struct rfx_node){.op = RFX_OP_TO_PLAIN}, 0);
        at = reshape(graph, at, (struct rfx_shape){4, {1, heads, of_head, n}});
        int q = binary(graph, RFX_BINARY_MUL, channels(graph, at, 0, keys),
                       constant(graph, &number, 1, &one));
        struct rfx_node product = {.op = RFX_OP_MATMUL};
        struct rfx_node softmax = {.op = RFX_OP_PLAIN_SOFTMAX, .attr.softmax.axis = 3};
        int scores[2] = {transpose(graph, q, 4, turn), channels(graph, at, keys, keys)};
        int mixed[2] = {after(graph, softmax, test_net_add(graph, product, scores, 2)),
                        transpose(graph, channels(graph, at, 2 * keys, values), 4, turn)};
        struct rfx_found_windows found;
        const struct rfx_shape shape = {4, {1, heads, n, values}};
        assert_int_equal(rfx_find_windows(graph, mixed[0], mixed[1], &shape, &found, NULL), RFX_OK);
        assert_true(found.found && found.attr.h == cases[i].h && found.attr.w == cases[i].w);
        assert_int_equal(found.attr.heads, heads);
        assert_int_equal(found.attr.value_size, values == keys ? 0 : values);
        int64_t *order = calloc((size_t)(heads * of_head), sizeof *order);
        for (int64_t part = 0, k = 0; part < 3; part++) {
            assert_int_equal(found.size[part], part < 2 ? keys : values);
            assert_int_equal(found.parts[part].first, part * keys);
            if (heads > 1) assert_int_equal(found.stride[part], of_head);
            for (int64_t c = 0; c < heads * found.size[part]; c++)
                order[k++] = part * keys + c / found.size[part] * of_head + c % found.size[part];
        }
        (void)test_net_add(graph, product, mixed, 2);
        struct rfx_graph *map = begin(heads * of_head, cases[i].h, cases[i].w);
        struct rfx_node select = {.op = RFX_OP_CHANNEL_SELECT,
                                  .attr.select = {.count = heads * of_head, .map = order}};
        struct rfx_node attention = {.op = RFX_OP_WINDOW_ATTENTION,
                                     .attr.window_attention = found.attr};
        (void)after(map, attention, after(map, select, 0));
        float *input = test_floats(graph->nodes[0].out.elems);
        struct test_rng rng = test_rng_make(i);
        test_rng_fill(&rng, input, graph->nodes[0].out.elems, -2.0f, 2.0f);
        float *tensors = values_of(graph, input, &elems[0]),
              *got = values_of(map, input, &elems[1]);
        assert_int_equal(elems[0], elems[1]);
        for (int64_t e = 0; e < elems[0]; e++) { /* (heads, pixels, values) in one, pixels first */
            int64_t v = e % values, pixel = e / values % n, head = e / values / n;
            const float *other = got + (pixel * heads + head) * values + v;
            if (memcmp(&tensors[e], other, sizeof *other) != 0)
                fail_msg("case %zu, head %lld, pixel %lld, value %lld: %.9g, not %.9g", i,
                         (long long)head, (long long)pixel, (long long)v, (double)*other,
                         (double)tensors[e]);
        }
        free(tensors);
        free(got);
        free(input);
        free(order);
        discard(map);
        discard(graph);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(likeness),
                                       cmocka_unit_test(whole_map)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
