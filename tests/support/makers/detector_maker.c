/* A detector that is one convolution; see detector_maker.h. */
#include "tests/support/makers/detector_maker.h"

#include <assert.h>

#include "tests/support/makers/onnx_maker.h"

enum { STRIDE = 16, MOST = 16, RED = 0, GREEN = 1, BLUE = 2 };

void detector_maker_save(const char *path, int64_t h, int64_t w, float least, int classes) {
    static struct maker graph, node, model;
    float weights[4 + MOST][3] = {{0}}, bias[4 + MOST] = {0};
    const int64_t image[] = {1, 3, 0, 0}, kernels[] = {1, 1}, strides[] = {STRIDE, STRIDE};
    const int64_t channels = 4 + classes, shape[] = {channels, 3, 1, 1};
    const int64_t list[] = {1, channels, -1};
    assert(classes >= 1 && classes <= MOST);
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
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_floats(&graph, "w", shape, 4, weights[0]);
    maker_floats(&graph, "b", &channels, 1, bias);
    maker_ints(&graph, "list", list, 3);
    maker_node(&node, "Conv", "image w b", "cells");
    maker_attr_ints(&node, "kernel_shape", kernels, 2);
    maker_attr_ints(&node, "strides", strides, 2);
    maker_message(&graph, MAKER_NODE, &node);
    maker_add(&graph, "Reshape", "cells list", "boxes");
    maker_value(&graph, MAKER_OUTPUT, "boxes", NULL, 0);
    maker_model(&graph, 13, &model);
    maker_save(&model, path);
}
