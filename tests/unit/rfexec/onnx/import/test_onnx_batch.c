/* Models that are fixed to a batch: what works image by image becomes the model of one image, with
 * its values; what mixes images is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/makers/onnx_net.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"

enum { N = 3, C = 2, H = 6, W = 4, IMAGE = C * H * W };

static struct maker graph, node;

static void begin(int64_t batch) {
    const int64_t image[] = {batch, C, H, W};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
}

/* A constant (rows, ...) of which all rows are alike, or not. */
static void constant(const char *name, int64_t rows, const int64_t *shape, int rank, bool alike) {
    float values[N * IMAGE];
    int64_t dims[4], each = 1;
    for (int i = 0; i < rank; i++) dims[i] = i == 0 ? rows : shape[i];
    for (int i = 1; i < rank; i++) each *= shape[i];
    for (int64_t i = 0; i < rows * each; i++)
        values[i] = (float)(i % each) * 0.5f + (alike ? 1.0f : (float)(i / each));
    maker_floats(&graph, name, dims, rank, values);
}

/* Forms of networks for a batch of `n`, as exporters write them with that number in. */
static void tokens(int64_t n) {
    static const int64_t last[] = {0, 2, 1}, cls[] = {0, 1, C}, w[] = {C, C};
    const int64_t to[] = {n, C, H * W};
    begin(n);
    maker_ints(&graph, "to", to, 3);
    constant("cls", n, cls, 3, true);
    constant("w", C, w, 2, false);
    maker_add(&graph, "Reshape", "x to", "r");
    maker_add_ints(&graph, "Transpose", "r", "t", "perm", last, 3);
    maker_add_int(&graph, "Concat", "cls t", "s", "axis", 1);
    maker_add(&graph, "MatMul", "s w", "m");
    maker_add_int(&graph, "Softmax", "m", "y", "axis", -1);
}

static void computed_shape(int64_t n) {
    static const int64_t zero[] = {0}, rest[] = {-1}, w[] = {IMAGE, 3};
    begin(n);
    maker_ints(&graph, "zero", zero, 1);
    maker_ints(&graph, "rest", rest, 1);
    constant("w", IMAGE, w, 2, false);
    constant("b", n, (int64_t[]){0, 3}, 2, true);
    maker_add(&graph, "Shape", "x", "shape");
    maker_add_int(&graph, "Gather", "shape zero", "first", "axis", 0);
    maker_add_int(&graph, "Concat", "first rest", "to", "axis", 0);
    maker_add(&graph, "Reshape", "x to", "r");
    maker_add(&graph, "Gemm", "r w b", "g");
    maker_add(&graph, "Add", "g b", "y");
}

static void resized(int64_t n) {
    static const int64_t all[] = {0, 0, 0, 0}, axes[] = {0, 1, 2, 3};
    const int64_t sizes[] = {n, C, 2 * H, 2 * W}, ends[] = {n, C, 2 * H, W};
    begin(n);
    maker_ints(&graph, "sizes", sizes, 4);
    maker_ints(&graph, "starts", all, 4);
    maker_ints(&graph, "ends", ends, 4);
    maker_ints(&graph, "axes", axes, 4);
    maker_node(&node, "Resize", "x _ _ sizes", "r");
    maker_attr_text(&node, "mode", "nearest");
    maker_message(&graph, MAKER_NODE, &node);
    maker_add(&graph, "Slice", "r starts ends axes", "s");
    constant("c", n, (int64_t[]){0, C, 1, 1}, 4, true);
    maker_add(&graph, "Mul", "s c", "p");
    maker_add_ints(&graph, "ReduceMean", "p", "y", "axes", (int64_t[]){2, 3}, 2);
}

static void expanded(int64_t n) {
    const int64_t to[] = {n, C, H, W};
    begin(n);
    maker_ints(&graph, "to", to, 4);
    maker_add_int(&graph, "Flatten", "x", "f", "axis", 1);
    maker_add(&graph, "Relu", "f", "g");
    maker_add(&graph, "Reshape", "g to", "back");
    maker_add_ints(&graph, "ReduceMax", "back", "m", "axes", (int64_t[]){1}, 1);
    maker_add(&graph, "Expand", "m to", "e");
    maker_add(&graph, "Sub", "e x", "y");
}

/* Rows of all images, which are told apart again. */
static void merged(int64_t n) {
    const int64_t rows[] = {n * C * H, W}, back[] = {n, C, H, W}, w[] = {W, W};
    begin(n);
    maker_ints(&graph, "rows", rows, 2);
    maker_ints(&graph, "back", back, 4);
    constant("w", W, w, 2, false);
    constant("c", n * C * H, (int64_t[]){0, 1}, 2, true);
    maker_add(&graph, "Reshape", "x rows", "r");
    maker_add_int(&graph, "Flatten", "x", "f", "axis", -1);
    maker_add(&graph, "MatMul", "r w", "m");
    maker_add(&graph, "Add", "m f", "s");
    maker_add(&graph, "Shape", "s", "shape");
    maker_add(&graph, "Reshape", "s shape", "same");
    maker_add(&graph, "Add", "same c", "t");
    maker_add(&graph, "Reshape", "t back", "y");
}

/* The model of N images is that of one, written for one. */
static void check_same(void (*form)(int64_t)) {
    float x[IMAGE];
    struct test_rng rng = test_rng_make(3);
    test_rng_fill(&rng, x, IMAGE, -1.0f, 1.0f);
    form(1);
    struct rfx_graph *one = onnx_net_loaded(&graph, 13);
    form(N);
    struct rfx_graph *many = onnx_net_loaded(&graph, 13);
    const struct rfx_tensor *a = &one->nodes[one->outputs[0].node].out,
                            *b = &many->nodes[many->outputs[0].node].out;
    assert_int_equal(one->batch, 0);
    assert_int_equal(many->batch, N);
    assert_int_equal(a->shape.rank, b->shape.rank);
    assert_memory_equal(a->shape.dims, b->shape.dims, (size_t)a->shape.rank * sizeof(int64_t));
    float *wanted = test_run_output(one, x, 0), *got = test_run_output(many, x, 0);
    assert_memory_equal(got, wanted, (size_t)a->elems * sizeof *got);
    free(wanted);
    free(got);
    onnx_net_discard(one);
    onnx_net_discard(many);
}

static void what_is_fixed_becomes_one(void **state) {
    (void)state;
    check_same(tokens);
    check_same(computed_shape);
    check_same(resized);
    check_same(expanded);
    check_same(merged);
}

static void refused(const char *words) {
    onnx_net_refused(&graph, 13, RFX_STATUS_UNSUPPORTED, words);
}

static void shapes_that_mix_are_refused(void **state) {
    (void)state;
    begin(INT64_MAX);
    maker_add(&graph, "Relu", "x", "y");
    refused("has a batch of 9223372036854775807; at most 1048576 are supported");
    static const int64_t to[][4] = {{1, -1, H, W}, {2 * C, -1, 0, 0}, {-1, 2 * IMAGE, 0, 0}};
    for (int i = 0; i < 3; i++) {
        begin(N);
        maker_ints(&graph, "to", to[i], i == 0 ? 4 : 2);
        maker_add(&graph, "Reshape", "x to", "y");
        refused(
            "fixed to a batch of 3, and this node does not work image by image (its shape "
            "mixes the batch with other axes): export the model with a batch of 1 or of any");
    }
    begin(N);
    maker_add_int(&graph, "Flatten", "x", "y", "axis", 0);
    refused("Flatten 'y' (opset 13): the model is fixed to a batch of 3");
    begin(N);
    maker_add_ints(&graph, "Transpose", "x", "y", "perm", (int64_t[]){1, 0, 2, 3}, 4);
    refused("it moves the batch axis");
    begin(N);
    maker_add(&graph, "Squeeze", "x", "y");
    refused("its axes are all");
}

static void axes_of_the_batch_are_refused(void **state) {
    (void)state;
    static const char *const axis[] = {"Softmax", "ArgMax", "Split", "LayerNormalization"};
    for (int i = 0; i < 4; i++) {
        begin(N);
        constant("s", N, (int64_t[]){0, C, H, W}, 4, true);
        maker_add_int(&graph, axis[i], i == 3 ? "x s" : "x", "y", "axis", -4);
        refused("it works along the batch axis");
    }
    begin(N);
    maker_add_int(&graph, "Concat", "x x", "y", "axis", 0);
    refused("it works along the batch axis");
    begin(N);
    maker_add_ints(&graph, "ReduceMean", "x", "y", "axes", (int64_t[]){0, 2}, 2);
    refused("it works along the batch axis");
    begin(N);
    maker_add(&graph, "ReduceMean", "x", "y");
    refused("its axes are all");
    begin(N);
    maker_add(&graph, "MeanVarianceNormalization", "x", "y");
    refused("its axes are all");
    begin(N);
    maker_ints(&graph, "one", (int64_t[]){1}, 1);
    maker_ints(&graph, "two", (int64_t[]){2}, 1);
    maker_ints(&graph, "axis", (int64_t[]){0}, 1);
    maker_add(&graph, "Slice", "x one two axis", "y");
    refused("it takes some images of the batch");
    begin(N);
    maker_ints(&graph, "one", (int64_t[]){1}, 1);
    maker_add_int(&graph, "Gather", "x one", "y", "axis", 0);
    refused("it works along the batch axis");
}

static void operands_of_the_batch_are_refused(void **state) {
    (void)state;
    begin(N);
    constant("c", N, (int64_t[]){0, C, 1, 1}, 4, false);
    maker_add(&graph, "Mul", "x c", "y");
    refused("a constant has other values for each image");
    begin(N);
    maker_ints(&graph, "axes", (int64_t[]){1}, 1);
    maker_add_ints(&graph, "ReduceMean", "x", "m", "axes", (int64_t[]){1}, 1);
    maker_add(&graph, "Squeeze", "m axes", "q");
    maker_add(&graph, "Mul", "x q", "y");
    refused("operands of two ranks");
    begin(N);
    maker_ints(&graph, "to", (int64_t[]){N, -1}, 2);
    constant("w", 4, (int64_t[]){0, N}, 2, false);
    maker_add(&graph, "Reshape", "x to", "r");
    maker_add(&graph, "MatMul", "w r", "y");
    refused("it sums over the batch");
    begin(N);
    maker_ints(&graph, "times", (int64_t[]){2, 1, 1, 1}, 4);
    maker_add(&graph, "Tile", "x times", "y");
    refused("it repeats the batch");
    begin(N);
    maker_add(&graph, "NonZero", "x", "y");
    refused("the size of its result depends on the data");
    begin(N);
    constant("k", 2, (int64_t[]){0, 3}, 2, true);
    maker_add(&graph, "Einsum", "x x", "y");
    refused("as far as is known");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_fixed_becomes_one),
        cmocka_unit_test(shapes_that_mix_are_refused),
        cmocka_unit_test(axes_of_the_batch_are_refused),
        cmocka_unit_test(operands_of_the_batch_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
