/* A detector that is one convolution; see detector_maker.h. */
#include "tests/support/makers/detector_maker.h"

#include <assert.h>
#include <stdio.h>

#include "tests/support/makers/onnx_maker.h"

enum { STRIDE = 16, FINE = 4, MOST = 16, RED = 0, GREEN = 1, BLUE = 2 };

/* Adds a convolution of single pixels of the image. The bias has `channels` elements. */
static void add_convolution(struct maker *graph, int64_t stride, int64_t channels,
                            const float *weights, const float *bias, const char *names,
                            const char *out) {
    static struct maker node;
    const int64_t kernels[] = {1, 1}, strides[] = {stride, stride}, shape[] = {channels, 3, 1, 1};
    char in[64];
    maker_floats(graph, names, shape, 4, weights);
    (void)snprintf(in, sizeof in, "bias_%.40s", names);
    maker_floats(graph, in, &channels, 1, bias);
    (void)snprintf(in, sizeof in, "stem %.20s bias_%.20s", names, names);
    maker_node(&node, "Conv", in, out);
    maker_attr_ints(&node, "kernel_shape", kernels, 2);
    maker_attr_ints(&node, "strides", strides, 2);
    maker_message(graph, MAKER_NODE, &node);
}

/* Weights that differ in sign from channel to channel: of coefficients, key points, prototypes. */
static void draw(float weights[][3], float *bias, int n, float scale) {
    unsigned drawn = 7919U;
    for (int k = 0; k < n; k++) {
        for (int colour = 0; colour < 4; colour++) {
            drawn = drawn * 1664525U + 1013904223U;
            float value = scale * ((float)(drawn >> 8) * 0x1p-24f - 0.5f);
            *(colour < 3 ? &weights[k][colour] : &bias[k]) = value;
        }
    }
}

void detector_maker_save_more(const char *path, int64_t h, int64_t w, float least, int classes,
                              int behind, bool masks) {
    static struct maker graph, model;
    float weights[4 + 2 * MOST][3] = {{0}}, bias[4 + 2 * MOST] = {0};
    const int64_t image[] = {1, 3, 0, 0}, channels = 4 + classes + behind;
    const int64_t list[] = {1, channels, -1};
    assert(classes >= 1 && classes <= MOST && behind >= 0 && behind <= MOST);
    weights[0][RED] = (float)w;
    weights[1][GREEN] = (float)h;
    for (int side = 2; side < 4; side++) {
        weights[side][BLUE] = side == 2 ? 4 * least : 2 * least;
        bias[side] = least;
    }
    for (int k = 0; k < classes; k++) { /* each class likes another colour */
        weights[4 + k][RED] = 0.3f * (float)(k % 3);
        weights[4 + k][GREEN] = 0.2f * (float)(k % 4);
        weights[4 + k][BLUE] = k % 2 == 0 ? 0.6f : -0.1f;
        bias[4 + k] = 0.05f * (float)(k % 5);
    }
    draw(weights + 4 + classes, bias + 4 + classes, behind, masks ? 2.0f : (float)h);
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_ints(&graph, "list", list, 3);
    maker_add(&graph, "Relu", "image", "stem"); /* so that one map begins both outputs */
    add_convolution(&graph, STRIDE, channels, weights[0], bias, "w", "cells");
    maker_add(&graph, "Reshape", "cells list", "boxes");
    maker_value(&graph, MAKER_OUTPUT, "boxes", NULL, 0);
    if (masks) {
        draw(weights, bias, behind, 1.0f);
        add_convolution(&graph, FINE, behind, weights[0], bias, "p", "prototypes");
        maker_value(&graph, MAKER_OUTPUT, "prototypes", NULL, 0);
    }
    maker_model(&graph, 13, &model);
    maker_save(&model, path);
}

void detector_maker_save(const char *path, int64_t h, int64_t w, float least, int classes) {
    detector_maker_save_more(path, h, w, least, classes, 0, false);
}
