/* YOLOv1 (Redmon et al. 2016, figure 3): 24 convolutions with biases and leaky rectifiers of slope
 * 0.1, two fully connected layers, 7 x 7 cells of 2 boxes and 20 classes. Made for 448 x 448; at
 * other sizes an adaptive average brings the last map to 7 x 7. */
#include "rfexec/builtin/builtin_networks.h"

enum { CELLS = 7, MAX_POOL = 0 };

/* Channels and kernel of each convolution, its stride; channels MAX_POOL: 2x2 pool of stride 2. */
static const struct {
    int64_t channels, k, stride;
} layers[] = {{64, 7, 2},   {MAX_POOL, 2, 2}, {192, 3, 1}, {MAX_POOL, 2, 2}, {128, 1, 1},
              {256, 3, 1},  {256, 1, 1},      {512, 3, 1}, {MAX_POOL, 2, 2}, {256, 1, 1},
              {512, 3, 1},  {256, 1, 1},      {512, 3, 1}, {256, 1, 1},      {512, 3, 1},
              {256, 1, 1},  {512, 3, 1},      {512, 1, 1}, {1024, 3, 1},     {MAX_POOL, 2, 2},
              {512, 1, 1},  {1024, 3, 1},     {512, 1, 1}, {1024, 3, 1},     {1024, 3, 1},
              {1024, 3, 2}, {1024, 3, 1},     {1024, 3, 1}};

void rfx_builtin_yolo_v1(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    (void)config;
    int convs = 0, pools = 0;
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        int64_t k = layers[i].k;
        if (layers[i].channels == MAX_POOL) {
            struct rfx_pool_attr pool = {.kh = k, .kw = k, .sh = k, .sw = k};
            x = rfx_builder_max_pool(b, rfx_name("pool%d", ++pools).text, x, pool);
            continue;
        }
        struct rfx_name name = rfx_name("conv%d", ++convs);
        x = rfx_builder_conv(b, name.text, x,
                             (struct rfx_conv_spec){.oc = layers[i].channels,
                                                    .kh = k,
                                                    .stride = layers[i].stride,
                                                    .pad = k / 2,
                                                    .bias = true});
        x = rfx_builder_act(b, rfx_name("%s.leaky", name.text).text, x, rfx_act_leaky_relu(0.1f));
    }
    if (b->status == RFX_OK &&
        (b->graph->nodes[x].out.h != CELLS || b->graph->nodes[x].out.w != CELLS))
        x = rfx_builder_adaptive_avg(b, "cells", x, CELLS, CELLS);
    x = rfx_builder_flatten(b, "flatten", x);
    x = rfx_builder_linear(b, "fc1", x, 4096);
    x = rfx_builder_act(b, "fc1.leaky", x, rfx_act_leaky_relu(0.1f));
    x = rfx_builder_linear(b, "fc2", x, CELLS * CELLS * 30);
    rfx_builder_output(b, x, "output");
}
