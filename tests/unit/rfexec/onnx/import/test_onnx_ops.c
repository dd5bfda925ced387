/* The table of ONNX's operators that users read: docs/operators.md has what the code writes, and
 * what it says of each operator on a map is what becomes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "rfexec/late/late_ops.h"
#include "rfexec/onnx/import/onnx_import.h"
#include "rfexec/onnx/import/onnx_ops.h"
#include "rfexec/run/model.h"
#include "tests/support/makers/onnx_maker.h"

#define MODEL_PATH "test_onnx_ops.onnx"
#define DOCS_PATH RFX_SOURCE_DIR "/docs/operators.md"

/* An operator on the map x (1, 6, 4, 6), or on (1, 4, 6, 6) with its channels last. "_": missing.
 */
struct example {
    const char *op, *in;
    const char *attr; /* of one integer, or (text not NULL) of text; or NULL */
    int64_t value;
    const char *text;
    const char *list; /* of two integers, or NULL */
    int64_t values[2];
    int64_t opset; /* 0: 17 */
    bool last;
};

static const struct example examples[] = {
    {.op = "Add", .in = "x x"},
    {.op = "And", .in = "x x"},
    {.op = "ArgMax", .in = "x", .attr = "axis", .value = 1},
    {.op = "ArgMin", .in = "x", .attr = "axis", .value = 1},
    {.op = "Attention", .in = "x x x", .opset = 23},
    {.op = "AveragePool", .in = "x", .list = "kernel_shape", .values = {2, 2}},
    {.op = "BatchNormalization", .in = "x six six six six"},
    {.op = "Cast", .in = "x", .attr = "to", .value = 9},
    {.op = "CastLike", .in = "x six"},
    {.op = "CenterCropPad", .in = "x sizes", .opset = 18},
    {.op = "Clip", .in = "x low"},
    {.op = "Col2Im", .in = "x rows_columns pixel", .opset = 18},
    {.op = "Concat", .in = "x x", .attr = "axis", .value = 1},
    {.op = "Conv", .in = "x filters"},
    {.op = "ConvInteger", .in = "bytes filter_bytes"},
    {.op = "ConvTranspose", .in = "x filters"},
    {.op = "DepthToSpace", .in = "x", .attr = "blocksize", .value = 1},
    {.op = "CumSum", .in = "x three"},
    {.op = "DequantizeLinear", .in = "x low low"},
    {.op = "Div", .in = "x x"},
    {.op = "Dropout", .in = "x"},
    {.op = "DynamicQuantizeLinear", .in = "x"},
    {.op = "Einsum", .in = "x matrix", .attr = "equation", .text = "bchw,oc->bohw"},
    {.op = "Equal", .in = "x x"},
    {.op = "Expand", .in = "x shape"},
    {.op = "Flatten", .in = "x"},
    {.op = "FusedConv", .in = "x filters", .attr = "activation", .text = "Relu"},
    {.op = "Gather", .in = "x two", .attr = "axis", .value = 1},
    {.op = "GatherElements", .in = "x tuple"},
    {.op = "GatherND", .in = "x tuple"},
    {.op = "Gelu", .in = "x", .opset = 20},
    {.op = "Gemm", .in = "x matrix"},
    {.op = "GlobalAveragePool", .in = "x"},
    {.op = "GlobalLpPool", .in = "x"},
    {.op = "GlobalMaxPool", .in = "x"},
    {.op = "Greater", .in = "x x"},
    {.op = "GreaterOrEqual", .in = "x x"},
    {.op = "GridSample", .in = "x grid"},
    {.op = "GroupNormalization", .in = "x six six", .attr = "num_groups", .value = 2, .opset = 21},
    {.op = "Hardmax", .in = "x", .attr = "axis", .value = 1},
    {.op = "Identity", .in = "x"},
    {.op = "InstanceNormalization", .in = "x six six"},
    {.op = "IsInf", .in = "x"},
    {.op = "IsNaN", .in = "x"},
    {.op = "LRN", .in = "x", .attr = "size", .value = 3},
    {.op = "LayerNormalization", .in = "x six six", .last = true},
    {.op = "Less", .in = "x x"},
    {.op = "LessOrEqual", .in = "x x"},
    {.op = "LogSoftmax", .in = "x", .attr = "axis", .value = 1},
    {.op = "LpNormalization", .in = "x", .attr = "axis", .value = 1},
    {.op = "LpPool", .in = "x", .list = "kernel_shape", .values = {2, 2}},
    {.op = "MatMul", .in = "x matrix", .last = true},
    {.op = "MatMulInteger", .in = "bytes matrix_bytes", .last = true},
    {.op = "Max", .in = "x x"},
    {.op = "MaxPool", .in = "x", .list = "kernel_shape", .values = {2, 2}},
    {.op = "MaxUnpool", .in = "p i shape", .list = "kernel_shape", .values = {2, 2}},
    {.op = "Mean", .in = "x x"},
    {.op = "MeanVarianceNormalization", .in = "x"},
    {.op = "Min", .in = "x x"},
    {.op = "Mish", .in = "x", .opset = 18},
    {.op = "Mod", .in = "x x"},
    {.op = "Mul", .in = "x x"},
    {.op = "Not", .in = "x"},
    {.op = "OneHot", .in = "x four pair"},
    {.op = "Or", .in = "x x"},
    {.op = "PRelu", .in = "x each"},
    {.op = "Pad", .in = "x pads"},
    {.op = "Pow", .in = "x x"},
    {.op = "QGemm", .in = "bytes low _ matrix_bytes low _ _ low"},
    {.op = "QLinearAdd", .in = "bytes low _ bytes low _ low"},
    {.op = "QLinearAveragePool", .in = "bytes low _ low", .list = "kernel_shape", .values = {2, 2}},
    {.op = "QLinearConcat", .in = "low _ bytes low _ bytes low", .attr = "axis", .value = 1},
    {.op = "QLinearConv", .in = "bytes low _ filter_bytes low _ low"},
    {.op = "QLinearGlobalAveragePool", .in = "bytes low _ low"},
    {.op = "QLinearLeakyRelu", .in = "bytes low _ low"},
    {.op = "QLinearMul", .in = "bytes low _ bytes low _ low"},
    {.op = "QLinearSigmoid", .in = "bytes low _ low"},
    {.op = "QLinearMatMul", .in = "bytes low _ matrix_bytes low _ low", .last = true},
    {.op = "QLinearSoftmax", .in = "bytes low _ low", .attr = "axis", .value = 1},
    {.op = "QuantizeLinear", .in = "x low"},
    {.op = "RMSNormalization", .in = "x six", .opset = 23, .last = true},
    {.op = "ReduceL1", .in = "x", .list = "axes", .values = {2, 3}},
    {.op = "ReduceL2", .in = "x", .list = "axes", .values = {2, 3}},
    {.op = "ReduceLogSum", .in = "x", .list = "axes", .values = {2, 3}},
    {.op = "ReduceLogSumExp", .in = "x", .list = "axes", .values = {2, 3}},
    {.op = "ReduceMax", .in = "x", .list = "axes", .values = {2, 3}},
    {.op = "ReduceMean", .in = "x", .list = "axes", .values = {2, 3}},
    {.op = "ReduceMin", .in = "x", .list = "axes", .values = {2, 3}},
    {.op = "ReduceProd", .in = "x", .list = "axes", .values = {1, 1}},
    {.op = "ReduceSum", .in = "x space"},
    {.op = "ReduceSumSquare", .in = "x", .list = "axes", .values = {2, 3}},
    {.op = "Reshape", .in = "x flat"},
    {.op = "Resize", .in = "x _ _ sizes"},
    {.op = "Scatter", .in = "x tuple tuple", .opset = 10},
    {.op = "ScatterElements", .in = "x tuple tuple"},
    {.op = "ScatterND", .in = "x place low"},
    {.op = "Selu", .in = "x"},
    {.op = "Shrink", .in = "x"},
    {.op = "Slice", .in = "x two four two"},
    {.op = "Softmax", .in = "x", .attr = "axis", .value = 1},
    {.op = "SpaceToDepth", .in = "x", .attr = "blocksize", .value = 2},
    {.op = "Split", .in = "x", .attr = "axis", .value = 1},
    {.op = "Squeeze", .in = "x"},
    {.op = "Sub", .in = "x x"},
    {.op = "Sum", .in = "x x"},
    {.op = "Swish", .in = "x", .opset = 24},
    {.op = "Tile", .in = "x repeats"},
    {.op = "TopK", .in = "x two", .attr = "axis", .value = 1},
    {.op = "Transpose", .in = "x"},
    {.op = "Trilu", .in = "x"},
    {.op = "Unsqueeze", .in = "x two"},
    {.op = "Upsample", .in = "x scales", .opset = 9},
    {.op = "Where", .in = "x x x"},
    {.op = "Xor", .in = "x x"},
};

static struct maker graph, node, model;

static void add_constants(void) {
    static const int64_t six[] = {6}, each[] = {6, 1, 1}, filters[] = {6, 6, 1, 1}, one[] = {1},
                         matrix[] = {6, 6}, grid[] = {1, 2, 3, 2}, four[] = {4};
    static const float values[36] = {1, 1, 2, 1};
    static const int64_t two[] = {2}, end[] = {4}, pads[] = {0, 0, 1, 1, 0, 0, 1, 1},
                         sizes[] = {1, 6, 8, 9}, repeats[] = {1, 2, 1, 1}, space[] = {2, 3},
                         shape[] = {1, 6, 4, 6}, flat[] = {1, -1}, none = 0;
    maker_floats(&graph, "six", six, 1, values);
    maker_floats(&graph, "each", each, 3, values);
    maker_floats(&graph, "filters", filters, 4, values);
    maker_floats(&graph, "low", one, 1, values);
    maker_floats(&graph, "matrix", matrix, 2, values);
    maker_floats(&graph, "grid", grid, 4, values);
    maker_floats(&graph, "scales", four, 1, (const float[]){1, 1, 2, 2});
    maker_floats(&graph, "pair", two, 1, values);
    maker_int_tensor(&graph, "tuple", (const int64_t[]){1, 1, 1, 1}, 4, &none);
    maker_int_tensor(&graph, "place", (const int64_t[]){1, 4}, 2, (const int64_t[]){0, 0, 0, 0});
    maker_ints(&graph, "two", two, 1);
    maker_ints(&graph, "four", end, 1);
    maker_ints(&graph, "three", (const int64_t[]){3}, 1);
    maker_ints(&graph, "pads", pads, 8);
    maker_ints(&graph, "sizes", sizes, 4);
    maker_ints(&graph, "repeats", repeats, 4);
    maker_ints(&graph, "space", space, 2);
    maker_ints(&graph, "shape", shape, 4);
    maker_ints(&graph, "flat", flat, 2);
    maker_ints(&graph, "rows_columns", (const int64_t[]){4, 6}, 2);
    maker_ints(&graph, "pixel", (const int64_t[]){1, 1}, 2);
}

static void add_node(const char *op, const char *in, const char *out, const int64_t *perm) {
    maker_node(&node, op, in, out);
    if (perm != NULL) maker_attr_ints(&node, "perm", perm, 4);
    maker_message(&graph, MAKER_NODE, &node);
}

/* "image" becomes "x", the operator makes "m", which becomes "y". */
static void write_model(const struct example *e) {
    static const int64_t image[] = {1, 6, 4, 6};
    static const int64_t to_last[4] = {0, 2, 3, 1}, to_first[4] = {0, 3, 1, 2};
    bool matrix = strcmp(e->op, "Gemm") == 0, bytes = strstr(e->in, "bytes") != NULL;
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    add_constants();
    if (matrix) {
        static const int64_t sixes[] = {-1, 6};
        maker_ints(&graph, "sixes", sixes, 2);
        add_node("Reshape", "image sixes", "x", NULL);
    } else if (strcmp(e->op, "QGemm") == 0) {
        add_node("GlobalAveragePool", "image", "pixel_map", NULL);
        add_node("Reshape", "pixel_map flat", "x", NULL);
    } else if (strcmp(e->op, "Col2Im") == 0) {
        maker_ints(&graph, "blocks", (const int64_t[]){1, 6, 24}, 3);
        add_node("Reshape", "image blocks", "x", NULL);
    } else {
        add_node(e->last ? "Transpose" : "Identity", "image", "x", e->last ? to_last : NULL);
    }
    if (bytes) {
        add_node("QuantizeLinear", "x low", "bytes", NULL);
        add_node("QuantizeLinear", "matrix low", "matrix_bytes", NULL);
        add_node("QuantizeLinear", "filters low", "filter_bytes", NULL);
    }
    if (strcmp(e->op, "MaxUnpool") == 0) {
        maker_node(&node, "MaxPool", "x", "p i");
        maker_attr_ints(&node, "kernel_shape", e->values, 2);
        maker_attr_ints(&node, "strides", e->values, 2);
        maker_message(&graph, MAKER_NODE, &node);
    }
    maker_node(&node, e->op, e->in, "m");
    if (!rfx_onnx_op_is_of(e->op, "")) maker_text(&node, 7, "com.microsoft");
    if (e->text != NULL) maker_attr_text(&node, e->attr, e->text);
    if (e->attr != NULL && e->text == NULL) maker_attr_int(&node, e->attr, e->value);
    if (e->list != NULL) maker_attr_ints(&node, e->list, e->values, e->values[0] == 1 ? 1 : 2);
    maker_message(&graph, MAKER_NODE, &node);
    add_node(e->last ? "Transpose" : "Identity", "m", "y", e->last ? to_first : NULL);
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    maker_model(&graph, e->opset != 0 ? e->opset : 17, &model);
    maker_save(&model, MODEL_PATH);
}

/* The least that all nodes of a graph are: by rows, taken in by rows, whole. Constants lie there.
 */
static enum rfx_onnx_way way_of(const struct rfx_graph *loaded) {
    enum rfx_onnx_way way = RFX_ONNX_ROWS;
    for (int i = 0; i < loaded->n_nodes; i++) {
        const struct rfx_node *n = &loaded->nodes[i];
        bool sums = rfx_op_def(n->op)->reduction != NULL;
        if (rfx_node_is_local(n) || rfx_node_is_constant(n)) continue;
        if (!sums) return RFX_ONNX_WHOLE;
        way = RFX_ONNX_SUMS;
    }
    return way;
}

static const struct example *example_of(const char *op) {
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        if (strcmp(examples[i].op, op) == 0) return &examples[i];
    return NULL;
}

static bool check_example(const struct example *e, enum rfx_onnx_way wanted) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options options = {0};
    struct rfx_graph *loaded = NULL;
    struct rfx_error err = {""};
    write_model(e);
    bool right = rfx_onnx_load(mem, MODEL_PATH, &options, &loaded, &err) == RFX_OK;
    if (!right) fprintf(stderr, "%s: %s\n", e->op, err.text);
    enum rfx_onnx_way way = right ? way_of(loaded) : wanted;
    if (way != wanted)
        fprintf(stderr, "%s: the table says %d, its graph is %d\n", e->op, (int)wanted, (int)way);
    rfx_graph_free(loaded);
    rfx_memory_free(mem);
    return right && way == wanted;
}

/* Calls check for each operator of the table, which is read from the table that users are shown. */
static int each_operator(bool (*check)(const char *op)) {
    char *text = NULL, *next;
    size_t size = 0;
    int wrong = 0, rows = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    rfx_onnx_write_operators(out);
    assert_int_equal(fclose(out), 0);
    for (char *line = strtok_r(text, "\n", &next); line != NULL;
         line = strtok_r(NULL, "\n", &next), rows++) {
        char op[64];
        if (rows < 2) continue; /* the head */
        assert_int_equal(sscanf(line, "| %63s |", op), 1);
        if (!check(op)) wrong++;
    }
    free(text);
    assert_true(rows > 100);
    return wrong;
}

/* As the table says; functions of one element need no example of their own. */
static bool is_as_said(const char *op) {
    const struct rfx_onnx_op *row = rfx_onnx_op_find(op);
    const struct example *e = example_of(op);
    struct example element = {.op = op, .in = "x", .opset = 22};
    assert_non_null(row);
    if (row->way == RFX_ONNX_CONSTANT) return row->fold != NULL;
    if (row->way == RFX_ONNX_LATE) return rfx_late_op_find(op) != NULL;
    if (e == NULL && row->convert == rfx_onnx_activation) e = &element;
    if (e == NULL) fprintf(stderr, "no example of %s\n", op);
    return e != NULL && check_example(e, row->way);
}

static void says_what_is(void **state) {
    (void)state;
    assert_int_equal(each_operator(is_as_said), 0);
    (void)unlink(MODEL_PATH);
}

/* Names in order, each once. */
static bool follows(const char *op) {
    static char last[64];
    bool right = strcmp(last, op) < 0;
    if (!right) fprintf(stderr, "%s behind %s\n", op, last);
    (void)snprintf(last, sizeof last, "%s", op);
    return right;
}

static void is_sorted(void **state) {
    (void)state;
    assert_int_equal(each_operator(follows), 0);
}

/* The page ends with the table: `rfexec operators` writes it. */
static void docs_are_as_written(void **state) {
    (void)state;
    static char docs[65536];
    char *table = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&table, &size), *file = fopen(DOCS_PATH, "r");
    assert_non_null(file);
    assert_non_null(out);
    size_t n = fread(docs, 1, sizeof docs - 1, file);
    rfx_onnx_write_operators(out);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(fclose(file), 0);
    if (n < size || memcmp(docs + n - size, table, size) != 0)
        fail_msg("docs/operators.md does not end with what `rfexec operators` writes");
    free(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_is),
        cmocka_unit_test(is_sorted),
        cmocka_unit_test(docs_are_as_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
