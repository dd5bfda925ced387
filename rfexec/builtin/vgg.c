/* VGG without batch norms, as torchvision builds it (Simonyan and Zisserman 2015; configuration D
 * is vgg16). The adaptive pool before the classifier allows images of any size. */
#include "rfexec/builtin/builtin_networks.h"

static const int64_t stage_channels[5] = {64, 128, 256, 512, 512};

void rfx_builtin_vgg(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    int index = 0;
    for (int stage = 0; stage < 5; stage++) {
        for (int i = 0; i < config->blocks[stage]; i++) {
            x = rfx_builder_conv(b, rfx_name("features.%d", index++).text, x,
                                 rfx_spec_biased(stage_channels[stage], 3));
            x = rfx_builder_relu(b, rfx_name("features.%d", index++).text, x);
        }
        x = rfx_builder_max_pool(b, rfx_name("features.%d", index++).text, x,
                                 rfx_square_pool(2, 2, 0));
    }
    x = rfx_builder_adaptive_avg(b, "avgpool", x, 7, 7);
    x = rfx_builder_flatten(b, "flatten", x);
    x = rfx_builder_linear(b, "classifier.0", x, 4096);
    x = rfx_builder_relu(b, "classifier.1", x);
    x = rfx_builder_linear(b, "classifier.3", x, 4096);
    x = rfx_builder_relu(b, "classifier.4", x);
    x = rfx_builder_linear(b, "classifier.6", x, 1000);
    rfx_builder_output(b, x, "output");
}
