/* DenseNet as torchvision builds it (Huang et al. 2017): every layer of a block reads the
 * concatenation of all before it; batch norm and activation come before the convolution. */
#include "rfexec/builtin/builtin_networks.h"

enum { GROWTH = 32, BOTTLENECK = 4 * GROWTH, MOST_LAYERS = 64 };

/* <block>.norm<i>, <block>.relu<i>, <block>.conv<i>. */
static int norm_relu_conv(struct rfx_builder *b, int x, const char *block, const char *i,
                          struct rfx_conv_spec spec) {
    x = rfx_builder_batch_norm(b, rfx_name("%s.norm%s", block, i).text, x, 1.0f);
    x = rfx_builder_relu(b, rfx_name("%s.relu%s", block, i).text, x);
    return rfx_builder_conv(b, rfx_name("%s.conv%s", block, i).text, x, spec);
}

static int dense_block(struct rfx_builder *b, int x, const char *block, int layers) {
    int features[MOST_LAYERS + 1] = {x};
    for (int i = 0; i < layers; i++) {
        struct rfx_name layer = rfx_name("%s.denselayer%d", block, i + 1);
        if (i > 0) x = rfx_builder_concat(b, rfx_name("%s.cat", layer.text).text, features, i + 1);
        x = norm_relu_conv(b, x, layer.text, "1", rfx_spec(BOTTLENECK, 1));
        x = norm_relu_conv(b, x, layer.text, "2", rfx_spec(GROWTH, 3));
        features[i + 1] = x;
    }
    x = rfx_builder_concat(b, rfx_name("%s.cat", block).text, features, layers + 1);
    rfx_builder_alias(b, x, block);
    return x;
}

void rfx_builtin_densenet(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    x = rfx_builder_conv_bn_act(b, x, "features.conv0", "features.norm0", "features.relu0",
                                rfx_act_relu(), rfx_spec_strided(64, 7, 2));
    x = rfx_builder_max_pool(b, "features.pool0", x, rfx_square_pool(3, 2, 1));
    for (int i = 0; i < 4; i++) {
        x = dense_block(b, x, rfx_name("features.denseblock%d", i + 1).text, config->blocks[i]);
        if (i == 3) break;
        struct rfx_name transition = rfx_name("features.transition%d", i + 1);
        x = norm_relu_conv(b, x, transition.text, "", rfx_spec(rfx_builder_channels(b, x) / 2, 1));
        x = rfx_builder_avg_pool(b, rfx_name("%s.pool", transition.text).text, x,
                                 rfx_square_pool(2, 2, 0));
        rfx_builder_alias(b, x, transition.text);
    }
    x = rfx_builder_batch_norm(b, "features.norm5", x, 1.0f);
    x = rfx_builder_relu(b, "relu", x);
    rfx_builder_classify(b, x, "avgpool", "flatten", "classifier");
}
