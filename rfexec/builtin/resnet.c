/* ResNet as torchvision builds it (He et al. 2016; of a bottleneck the 3x3 has the stride). */
#include "rfexec/builtin/builtin_networks.h"

/* How much of a block's branch is added to the stream: small, so that depth does not add up. */
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
        x = conv_bn(b, x, block, 1, 1.0f, (struct rfx_conv_spec){.oc = planes, .kh = 1});
        x = rfx_builder_relu(b, rfx_name("%s.relu", block).text, x);
    }
    x = conv_bn(b, x, block, bottleneck ? 2 : 1, 1.0f,
                (struct rfx_conv_spec){.oc = planes, .kh = 3, .stride = stride, .pad = 1});
    x = rfx_builder_relu(b, rfx_name(bottleneck ? "%s.relu_1" : "%s.relu", block).text, x);
    x = conv_bn(b, x, block, bottleneck ? 3 : 2, branch_gain,
                bottleneck ? (struct rfx_conv_spec){.oc = oc, .kh = 1}
                           : (struct rfx_conv_spec){.oc = oc, .kh = 3, .pad = 1});
    int identity = in;
    if (stride != 1 || rfx_builder_channels(b, in) != oc) {
        identity = rfx_builder_conv(b, rfx_name("%s.downsample.0", block).text, in,
                                    (struct rfx_conv_spec){.oc = oc, .kh = 1, .stride = stride});
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
                                (struct rfx_conv_spec){.oc = 64, .kh = 7, .stride = 2, .pad = 3});
    x = rfx_builder_max_pool(
        b, "maxpool", x,
        (struct rfx_pool_attr){.kh = 3, .kw = 3, .sh = 2, .sw = 2, .pads = {1, 1, 1, 1}});
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < config->blocks[stage]; i++)
            x = residual_block(b, x, rfx_name("layer%d.%d", stage + 1, i).text,
                               (int64_t)64 << stage, i == 0 && stage > 0 ? 2 : 1,
                               config->bottleneck);
    x = rfx_builder_global_mean(b, "avgpool", x);
    x = rfx_builder_flatten(b, "flatten", x);
    x = rfx_builder_linear(b, "fc", x, 1000);
    rfx_builder_output(b, x, "output");
}
