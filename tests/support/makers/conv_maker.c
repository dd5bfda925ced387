/* See conv_maker.h. */
#include "tests/support/makers/conv_maker.h"

#include "tests/support/makers/onnx_maker.h"
#include "tests/support/test_util.h"

/* Declares the output "y" as INT64. */
static void declare_integers(struct maker *graph) {
    enum { NAME = 1, TYPE = 2, TENSOR = 1, ELEMENTS = 1, INT64 = 7 }; /* of onnx.proto */
    static struct maker tensor, type, value;
    tensor.size = type.size = value.size = 0;
    maker_int(&tensor, ELEMENTS, INT64);
    maker_message(&type, TENSOR, &tensor);
    maker_text(&value, NAME, "y");
    maker_message(&value, TYPE, &type);
    maker_message(graph, MAKER_OUTPUT, &value);
}

void conv_maker_save(const char *path, const struct conv_maker *net) {
    static struct maker graph, node, model;
    static float weights[4 * 3 * 9 * 9];
    const int64_t c = net->channels, k = net->kernel, pad = net->pad;
    const int64_t image[] = {1, 3, 0, 0}, shape[] = {c, 3, k, k}, kernels[] = {k, k};
    const int64_t strides[] = {net->stride, net->stride}, pads[] = {pad, pad, pad, pad};
    struct test_rng rng = test_rng_make(net->seed);
    test_rng_fill(&rng, weights, c * 3 * k * k, -net->largest, net->largest);
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_floats(&graph, "w", shape, 4, weights);
    maker_node(&node, "Conv", "image w", net->argmax ? "scores" : "y");
    maker_attr_ints(&node, "kernel_shape", kernels, 2);
    maker_attr_ints(&node, "strides", strides, 2);
    maker_attr_ints(&node, "pads", pads, 4);
    maker_message(&graph, MAKER_NODE, &node);
    if (net->argmax) {
        maker_node(&node, "ArgMax", "scores", "y");
        maker_attr_int(&node, "axis", 1);
        maker_attr_int(&node, "keepdims", net->integers);
        maker_message(&graph, MAKER_NODE, &node);
    }
    if (net->integers)
        declare_integers(&graph);
    else
        maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    maker_model(&graph, 13, &model);
    maker_save(&model, path);
}
