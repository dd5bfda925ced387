/* Models of a few nodes each, which together have most operators and attributes. */
#include "tests/fuzz/fuzz_models.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rfexec/run/model.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/makers/late_maker.h"

static struct maker graph, node, model, function; /* function: of the model, where not empty */
static float weights[1024];

static void input(int64_t c, int64_t h, int64_t w) {
    const int64_t dims[] = {1, c, h, w};
    maker_value(&graph, MAKER_INPUT, "x", dims, 4);
}

static void output(const char *name) {
    maker_value(&graph, MAKER_OUTPUT, name, NULL, 0);
}

static void weight(const char *name, int64_t a, int64_t b, int64_t c, int64_t d) {
    const int64_t dims[] = {a, b, c, d};
    maker_floats(&graph, name, dims, 4, weights);
}

static void vector(const char *name, int64_t n) {
    maker_floats(&graph, name, &n, 1, weights);
}

static const int64_t pads_1[] = {1, 1, 1, 1}, strides_2[] = {2, 2}, kernel_2[] = {2, 2},
                     kernel_3[] = {3, 3}, dilations_2[] = {2, 2};

/* Convolutions of every kind, a residual and classes. */
static void make_classes(void) {
    input(3, 14, 11);
    weight("k", 4, 3, 3, 3);
    weight("d", 4, 1, 3, 3);
    weight("p", 8, 4, 1, 1);
    vector("b", 4);
    maker_node(&node, "Conv", "x k b", "c");
    maker_attr_ints(&node, "pads", pads_1, 4);
    maker_attr_ints(&node, "strides", strides_2, 2);
    maker_message(&graph, MAKER_NODE, &node);
    maker_add(&graph, "Relu", "c", "r");
    maker_node(&node, "Conv", "r d", "e");
    maker_attr_int(&node, "group", 4);
    maker_attr_ints(&node, "pads", pads_1, 4);
    maker_message(&graph, MAKER_NODE, &node);
    maker_add(&graph, "Add", "e r", "s");
    maker_add(&graph, "Conv", "s p", "f");
    maker_add(&graph, "GlobalAveragePool", "f", "g");
    maker_add(&graph, "Flatten", "g", "y");
    output("y");
}

/* Skips joined after pooling and enlarging. */
static void make_skips(void) {
    input(2, 12, 12);
    weight("k", 3, 2, 3, 3);
    weight("t", 3, 2, 2, 2);
    maker_add_ints(&graph, "Conv", "x k", "c", "pads", pads_1, 4);
    maker_node(&node, "MaxPool", "c", "m");
    maker_attr_ints(&node, "kernel_shape", kernel_2, 2);
    maker_attr_ints(&node, "strides", strides_2, 2);
    maker_message(&graph, MAKER_NODE, &node);
    maker_add_ints(&graph, "ConvTranspose", "m t", "u", "strides", strides_2, 2);
    maker_add_int(&graph, "Concat", "c u", "j", "axis", 1);
    maker_node(&node, "AveragePool", "j", "a");
    maker_attr_ints(&node, "kernel_shape", kernel_3, 2);
    maker_attr_ints(&node, "pads", pads_1, 4);
    maker_message(&graph, MAKER_NODE, &node);
    maker_add(&graph, "Sigmoid", "a", "y");
    output("y");
    output("m");
}

static void scale(void) {
    static const float step = 0.05f;
    const int64_t one = 1;
    maker_floats(&graph, "s", &one, 1, &step);
}

/* Adds QuantizeLinear to uint8, and unless `back` is NULL DequantizeLinear. */
static void pair(const char *from, const char *to, const char *back) {
    char in[32];
    (void)snprintf(in, sizeof in, "%s s", from);
    maker_add(&graph, "QuantizeLinear", in, to);
    (void)snprintf(in, sizeof in, "%s s", to);
    if (back != NULL) maker_add(&graph, "DequantizeLinear", in, back);
}

/* Operators between DequantizeLinear and QuantizeLinear, which are joined. */
static void make_quantised(void) {
    input(3, 9, 8);
    scale();
    weight("k", 4, 3, 3, 3);
    weight("d", 4, 1, 3, 3);
    vector("b", 4);
    pair("k", "k_q", "k_f");
    pair("d", "d_q", "d_f");
    pair("x", "x_q", "x_f");
    maker_node(&node, "Conv", "x_f k_f b", "c");
    maker_attr_ints(&node, "pads", pads_1, 4);
    maker_message(&graph, MAKER_NODE, &node);
    maker_add(&graph, "Relu", "c", "r");
    pair("r", "r_q", "r_f");
    maker_node(&node, "Conv", "r_f d_f", "e");
    maker_attr_int(&node, "group", 4);
    maker_attr_ints(&node, "pads", pads_1, 4);
    maker_message(&graph, MAKER_NODE, &node);
    pair("e", "e_q", "e_f");
    maker_add(&graph, "Add", "e_f r_f", "a");
    pair("a", "a_q", "a_f");
    maker_add(&graph, "Mul", "a_f r_f", "m");
    pair("m", "m_q", "m_f");
    maker_add_int(&graph, "Concat", "m_f a_f", "j", "axis", 1);
    pair("j", "j_q", "j_f");
    maker_add_ints(&graph, "AveragePool", "j_f", "p", "kernel_shape", kernel_2, 2);
    pair("p", "p_q", "p_f");
    maker_add(&graph, "GlobalAveragePool", "p_f", "g");
    pair("g", "y", NULL);
    output("y");
}

/* Operators that take bytes. */
static void make_bytes(void) {
    input(4, 8, 7);
    scale();
    weight("k", 6, 2, 3, 1);
    pair("k", "k_q", NULL);
    pair("x", "x_q", NULL);
    maker_node(&node, "QLinearConv", "x_q s _ k_q s _ s", "c");
    maker_attr_int(&node, "group", 2);
    maker_attr_ints(&node, "strides", strides_2, 2);
    maker_message(&graph, MAKER_NODE, &node);
    maker_add(&graph, "DequantizeLinear", "c s", "y");
    output("y");
}

/* Dynamic quantisation. */
static void make_dynamic(void) {
    input(4, 8, 7);
    scale();
    weight("k", 4, 4, 3, 1);
    pair("k", "k_q", NULL);
    maker_add(&graph, "DynamicQuantizeLinear", "x", "x_q x_s x_z");
    maker_add(&graph, "ConvInteger", "x_q k_q x_z", "i");
    maker_add_int(&graph, "Cast", "i", "f", "to", 1);
    maker_add(&graph, "Mul", "x_s s", "t");
    maker_add(&graph, "Mul", "f t", "y");
    output("y");
}

/* Squeeze and excite, dilation, batch norm. */
static void make_excite(void) {
    input(4, 10, 9);
    weight("k", 4, 4, 3, 3);
    weight("q", 2, 4, 1, 1);
    weight("w", 4, 2, 1, 1);
    vector("one", 4);
    maker_add_ints(&graph, "Conv", "x k", "c", "dilations", dilations_2, 2);
    maker_add(&graph, "BatchNormalization", "c one one one one", "n");
    maker_add(&graph, "GlobalAveragePool", "n", "g");
    maker_add(&graph, "Conv", "g q", "h");
    maker_add(&graph, "HardSwish", "h", "i");
    maker_add(&graph, "Conv", "i w", "j");
    maker_add(&graph, "HardSigmoid", "j", "l");
    maker_add(&graph, "Mul", "n l", "y");
    output("y");
}

/* Arithmetic on shapes, which is folded. */
static void make_shapes(void) {
    static const int64_t perm[] = {0, 2, 3, 1}, axes[] = {1, 0}, flat[] = {0, -1};
    static const int64_t start = 2, end = 4, zero = 0;
    input(3, 6, 8);
    maker_ints(&graph, "lo", &start, 1);
    maker_ints(&graph, "hi", &end, 1);
    maker_ints(&graph, "zero", &zero, 1);
    maker_ints(&graph, "flat", flat, 2);
    maker_ints(&graph, "axes", axes, 1);
    maker_add(&graph, "Shape", "x", "s");
    maker_add(&graph, "Slice", "s lo hi zero", "t");
    maker_add_int(&graph, "Gather", "s lo", "u", "axis", 0);
    maker_add_int(&graph, "Concat", "t u", "v", "axis", 0);
    maker_add_int(&graph, "Cast", "v", "z", "to", 7);
    maker_add(&graph, "Slice", "x zero hi axes", "p");
    maker_add_ints(&graph, "Transpose", "p", "q", "perm", perm, 4);
    maker_add(&graph, "Reshape", "q flat", "r");
    maker_add_int(&graph, "Softmax", "r", "y", "axis", 1);
    output("y");
}

/* Changes of size and place. */
static void make_places(void) {
    static const int64_t pads[] = {0, 0, 1, 2, 0, 0, 3, 1}, sizes[] = {1, 4, 13, 7};
    input(4, 5, 6);
    maker_ints(&graph, "pads", pads, 8);
    maker_ints(&graph, "sizes", sizes, 4);
    maker_add(&graph, "Pad", "x pads", "p");
    maker_add(&graph, "Resize", "p _ _ sizes", "r");
    maker_add_int(&graph, "DepthToSpace", "r", "d", "blocksize", 2);
    maker_add_int(&graph, "SpaceToDepth", "d", "s", "blocksize", 2);
    maker_add(&graph, "LRN", "s", "l");
    maker_add_int(&graph, "LogSoftmax", "l", "y", "axis", 1);
    output("y");
}

/* Matrix products and elementwise functions. */
static void make_dense(void) {
    static const int64_t matrix[] = {24, 5}, second[] = {5, 3};
    input(2, 3, 4);
    maker_floats(&graph, "a", matrix, 2, weights);
    maker_floats(&graph, "b", second, 2, weights);
    vector("c", 5);
    maker_add(&graph, "Flatten", "x", "f");
    maker_add(&graph, "Gemm", "f a c", "g");
    maker_add(&graph, "Tanh", "g", "t");
    maker_add(&graph, "MatMul", "t b", "m");
    maker_add(&graph, "Exp", "m", "e");
    maker_add(&graph, "Div", "m e", "d");
    maker_add(&graph, "Clip", "d", "y");
    output("y");
}

/* Reductions over space and chains of small functions. */
static void make_reduced(void) {
    static const int64_t axes[] = {2, 3};
    input(3, 9, 7);
    vector("slope", 1);
    maker_add(&graph, "Sub", "x slope", "a");
    maker_add(&graph, "Pow", "a slope", "b");
    maker_add(&graph, "PRelu", "b slope", "c");
    maker_add_ints(&graph, "ReduceMean", "c", "d", "axes", axes, 2);
    maker_add(&graph, "Mul", "c d", "e");
    maker_add(&graph, "Max", "e x", "f");
    maker_add(&graph, "LeakyRelu", "f", "g");
    maker_add_ints(&graph, "ReduceMax", "g", "y", "axes", axes, 2);
    output("y");
    output("g");
}

/* Statistics over space one after the other: of three kinds, in two rounds of parts. */
static void make_normed(void) {
    static const int64_t axes[] = {2, 3};
    input(2, 9, 7);
    vector("scale", 2);
    maker_add(&graph, "InstanceNormalization", "x scale scale", "n");
    maker_add_ints(&graph, "ReduceMax", "n", "t", "axes", axes, 2);
    maker_add(&graph, "GlobalAveragePool", "n", "g");
    maker_add(&graph, "Add", "t g", "y");
    output("y");
    output("n");
}

static void make_no_nodes(void) {
    input(1, 3, 4);
    output("x");
}

/* Filters that are computed from constants, a table of positions, places of maxima. */
static void make_computed(void) {
    static const int64_t filters[] = {4, 3, 3, 3}, table[] = {1, 4, 2, 2}, sizes[] = {1, 4, 9, 7},
                         axes[] = {1, 2, 3}, scores[] = {3, 4};
    input(3, 9, 7);
    maker_floats(&graph, "v", filters, 4, weights);
    maker_floats(&graph, "table", table, 4, weights);
    maker_floats(&graph, "scores", scores, 2, weights);
    maker_ints(&graph, "sizes", sizes, 4);
    maker_add_ints(&graph, "ReduceL2", "v", "l", "axes", axes, 3);
    maker_add(&graph, "Div", "v l", "w");
    maker_add_ints(&graph, "Conv", "x w", "c", "pads", pads_1, 4);
    maker_add(&graph, "Resize", "table _ _ sizes", "t");
    maker_add(&graph, "Sin", "t", "s");
    maker_add(&graph, "Add", "c s", "a");
    maker_add(&graph, "Softmax", "scores", "p");
    maker_node(&node, "ArgMax", "p", "places");
    maker_attr_int(&node, "axis", 1);
    maker_attr_int(&node, "keepdims", 0);
    maker_message(&graph, MAKER_NODE, &node);
    maker_add_int(&graph, "Gather", "a places", "y", "axis", 1);
    output("y");
}

/* Into the node: a branch of one operator. */
static void branch(const char *name, const char *op, const char *in) {
    static struct maker inner, body, attr;
    body.size = attr.size = 0;
    maker_node(&inner, op, in, "b");
    maker_message(&body, MAKER_NODE, &inner);
    maker_value(&body, MAKER_OUTPUT, "b", NULL, 0);
    maker_text(&attr, 1, name);
    maker_message(&attr, 6, &body);
    maker_int(&attr, 20, 5);
    maker_message(&node, 5, &attr);
}

/* A branch by the rank of a map, and a function with an attribute of its own and a default. */
static void make_inlined(void) {
    static const int64_t four = 4;
    static struct maker attr, given;
    input(2, 5, 6);
    maker_ints(&graph, "four", &four, 1);
    maker_add(&graph, "Shape", "x", "s");
    maker_add(&graph, "Size", "s", "rank");
    maker_add(&graph, "Equal", "rank four", "is_map");
    maker_add(&graph, "Relu", "x", "r");
    maker_node(&node, "If", "is_map", "n");
    branch("then_branch", "Neg", "r");
    branch("else_branch", "Abs", "x");
    maker_message(&graph, MAKER_NODE, &node);
    maker_node(&node, "F", "n", "y");
    maker_text(&node, 7, "own");
    maker_message(&graph, MAKER_NODE, &node);
    output("y");
    maker_text(&function, 1, "F");
    maker_text(&function, 10, "own");
    maker_text(&function, 4, "x");
    maker_text(&function, 5, "z");
    attr.size = given.size = 0;
    maker_text(&attr, 1, "alpha");
    maker_text(&attr, 21, "slope");
    maker_int(&attr, 20, 1);
    maker_node(&node, "LeakyRelu", "x", "z");
    maker_message(&node, 5, &attr);
    maker_message(&function, 7, &node);
    maker_text(&given, 1, "slope");
    maker_float(&given, 2, 0.25f);
    maker_int(&given, 20, 1);
    maker_message(&function, 11, &given);
}

/* Parts of a shape of which one is empty. */
static void make_empty(void) {
    static const int64_t zero = 0, two = 2, four = 4, far = INT64_MAX;
    input(2, 5, 6);
    maker_ints(&graph, "zero", &zero, 1);
    maker_ints(&graph, "two", &two, 1);
    maker_ints(&graph, "four", &four, 1);
    maker_ints(&graph, "far", &far, 1);
    maker_add(&graph, "Shape", "x", "s");
    maker_add(&graph, "Slice", "s four far zero", "rest");
    maker_add(&graph, "Slice", "s zero two zero", "start");
    maker_add(&graph, "Slice", "s two four zero", "size");
    maker_add(&graph, "ReduceProd", "rest", "one");
    maker_add_int(&graph, "Concat", "start size rest one", "all", "axis", 0);
    maker_add(&graph, "Reshape", "x all", "y");
    output("y");
}

/* A detector that ends in nodes whose sizes depend on data. */
static void make_late(void) {
    late_maker_graph(&graph, 12, 16, 0.5f);
}

static void make_plugin(void) {
    late_maker_plugin_graph(&graph, 12, 16, 0.5f, "TRT");
}

static const struct {
    const char *name;
    void (*make)(void);
} makers[] = {
    {"classes", make_classes},     {"skips", make_skips},     {"excite", make_excite},
    {"shapes", make_shapes},       {"places", make_places},   {"dense", make_dense},
    {"reduced", make_reduced},     {"normed", make_normed},   {"no_nodes", make_no_nodes},
    {"computed", make_computed},   {"inlined", make_inlined}, {"empty", make_empty},
    {"quantised", make_quantised}, {"bytes", make_bytes},     {"dynamic", make_dynamic},
    {"late", make_late},           {"plugin", make_plugin},
};

const char *const fuzz_model_names[] = {"classes",  "skips",    "excite",  "shapes",    "places",
                                        "dense",    "reduced",  "normed",  "quantised", "bytes",
                                        "no_nodes", "computed", "inlined", "empty",     "dynamic",
                                        "late",     "plugin",   NULL};

const struct maker *fuzz_model(const char *name) {
    fuzz_values(weights, (int64_t)(sizeof weights / sizeof weights[0]));
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        if (strcmp(makers[i].name, name) != 0) continue;
        graph.size = function.size = 0;
        makers[i].make();
        maker_model(&graph, 17, &model);
        if (function.size != 0) maker_message(&model, 25, &function);
        return &model;
    }
    fuzz_fail("no model '%s'", name);
}

const char *fuzz_model_path(const char *name) {
    static char paths[sizeof makers / sizeof makers[0]][32];
    const struct maker *bytes = fuzz_model(name);
    size_t i = 0;
    while (strcmp(makers[i].name, name) != 0) i++;
    if (paths[i][0] != '\0') return paths[i];
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes->bytes, bytes->size) != (ssize_t)bytes->size)
        fuzz_fail("no file in memory");
    (void)snprintf(paths[i], sizeof paths[i], "/proc/self/fd/%d", fd);
    return paths[i];
}

struct rfx_graph *fuzz_model_graph(const char *name) {
    static const struct rfx_load_options own_size = {0};
    struct rfx_graph *loaded = NULL;
    struct rfx_error err = {""};
    fuzz_keep(true);
    struct rfx_memory *mem = rfx_memory_create(0);
    if (rfx_onnx_load(mem, fuzz_model_path(name), &own_size, &loaded, &err) != RFX_OK)
        fuzz_fail("model '%s': %s", name, err.text);
    fuzz_keep(false);
    return loaded;
}
