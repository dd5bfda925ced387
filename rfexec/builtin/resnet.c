/* ResNet as torchvision builds it (He et al. 2016; of a bottleneck the 3x3 has the stride), and
 * ConvNeXt tiny (Liu et al. 2022), a modernised ResNet: depthwise 7x7 convolutions, norms over
 * channels, GELU, and a factor for each channel before each residual addition. */
#include "rfexec/builtin/builtin_networks.h"

/* Gain of a block's branch before the residual addition. It is small, so that the values do not
 * grow with depth. */
static const float branch_gain = 0.25f;

/* <block>.conv<i>, <block>.bn<i> */
static int conv_bn(struct rfx_builder *b, int x, const char *block, int i, float gain,
                   struct rfx_conv_spec spec) {
    x = rfx_builder_conv(b, rfx_name("%s.conv%d", block, i).text, x, spec);
    return rfx_builder_batch_norm(b, rfx_name("%s.bn%d", block, i).text, x, gain);
}

static int residual_block(struct rfx_builder *b, int in, const char *block, int64_t planes,
                          int64_t stride, bool bottleneck) {
    int64_t oc = bottleneck ? planes * 4 : planes;
    int x = in;
    if (bottleneck) {
        x = conv_bn(b, x, block, 1, 1.0f, rfx_spec(planes, 1));
        x = rfx_builder_relu(b, rfx_name("%s.relu", block).text, x);
    }
    x = conv_bn(b, x, block, bottleneck ? 2 : 1, 1.0f, rfx_spec_strided(planes, 3, stride));
    x = rfx_builder_relu(b, rfx_name(bottleneck ? "%s.relu_1" : "%s.relu", block).text, x);
    x = conv_bn(b, x, block, bottleneck ? 3 : 2, branch_gain,
                bottleneck ? rfx_spec(oc, 1) : rfx_spec(oc, 3));
    int identity = in;
    if (stride != 1 || rfx_builder_channels(b, in) != oc) {
        identity = rfx_builder_conv(b, rfx_name("%s.downsample.0", block).text, in,
                                    rfx_spec_strided(oc, 1, stride));
        identity =
            rfx_builder_batch_norm(b, rfx_name("%s.downsample.1", block).text, identity, 1.0f);
    }
    x = rfx_builder_add(b, rfx_name("%s.add", block).text, x, identity);
    x = rfx_builder_relu(b, rfx_name(bottleneck ? "%s.relu_2" : "%s.relu_1", block).text, x);
    rfx_builder_alias(b, x, block);
    return x;
}

void rfx_builtin_resnet(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    x = rfx_builder_conv_bn_act(b, x, "conv1", "bn1", "relu", rfx_act_relu(),
                                rfx_spec_strided(64, 7, 2));
    x = rfx_builder_max_pool(b, "maxpool", x, rfx_square_pool(3, 2, 1));
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < config->blocks[stage]; i++)
            x = residual_block(b, x, rfx_name("layer%d.%d", stage + 1, i).text,
                               (int64_t)64 << stage, i == 0 && stage > 0 ? 2 : 1,
                               config->bottleneck);
    rfx_builder_classify(b, x, "avgpool", "flatten", "fc");
}

static int conv_bias(struct rfx_builder *b, int x, const char *name, struct rfx_conv_spec spec) {
    spec.bias = true;
    return rfx_builder_conv(b, name, x, spec);
}

static int convnext_block(struct rfx_builder *b, int in, const char *name) {
    int64_t c = rfx_builder_channels(b, in);
    struct rfx_conv_spec by_channel = rfx_spec_depthwise(c, 7, 1);
    int x = conv_bias(b, in, rfx_name("%s.block.0", name).text, by_channel);
    x = rfx_builder_layer_norm(b, rfx_name("%s.block.2", name).text, x, 1e-6f);
    x = conv_bias(b, x, rfx_name("%s.block.3", name).text, rfx_spec(4 * c, 1));
    x = rfx_builder_gelu(b, rfx_name("%s.block.4", name).text, x);
    x = conv_bias(b, x, rfx_name("%s.block.5", name).text, rfx_spec(c, 1));
    x = rfx_builder_channel_scale(b, rfx_name("%s.layer_scale", name).text, x, 0.1f, 0.4f);
    x = rfx_builder_add(b, rfx_name("%s.add", name).text, x, in);
    rfx_builder_alias(b, x, name);
    return x;
}

void rfx_builtin_convnext(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    for (int stage = 0; stage < 4; stage++) {
        struct rfx_name name = rfx_name("features.%d", 2 * stage);
        struct rfx_conv_spec down = {.oc = (int64_t)96 << stage, .kh = 2, .stride = 2};
        if (stage == 0) {
            down.kh = down.stride = 4;
            x = conv_bias(b, x, rfx_name("%s.0", name.text).text, down);
            x = rfx_builder_layer_norm(b, rfx_name("%s.1", name.text).text, x, 1e-6f);
        } else {
            x = rfx_builder_layer_norm(b, rfx_name("%s.0", name.text).text, x, 1e-6f);
            x = conv_bias(b, x, rfx_name("%s.1", name.text).text, down);
        }
        rfx_builder_alias(b, x, name.text);
        for (int i = 0; i < config->blocks[stage]; i++)
            x = convnext_block(b, x, rfx_name("features.%d.%d", 2 * stage + 1, i).text);
    }
    x = rfx_builder_global_mean(b, "avgpool", x);
    x = rfx_builder_layer_norm(b, "classifier.0", x, 1e-6f);
    x = rfx_builder_flatten(b, "classifier.1", x);
    x = rfx_builder_linear(b, "classifier.2", x, 1000);
    rfx_builder_output(b, x, "output");
}
