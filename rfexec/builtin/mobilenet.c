/* MobileNetV2 as torchvision builds it (Sandler et al. 2018, table 2), and MobileNetV1 (Howard et
 * al. 2017, table 1) under the names of TF-slim, padded alike on both sides;
 * MNASNet 1.3 as torchvision builds it (Tan et al. 2019, B1). */
#include <math.h>

#include "rfexec/builtin/builtin_networks.h"

const struct rfx_inverted_stage rfx_mobilenet_v2_stages[RFX_MOBILENET_V2_STAGES] = {
    {1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
    {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

/* torchvision's _make_divisible: returns `channels` rounded to a multiple of 8 that is at most 10 %
 * smaller. */
static int64_t make_divisible(double channels) {
    int64_t rounded = (int64_t)(channels + 4.0) / 8 * 8;
    if (rounded < 8) rounded = 8;
    return (double)rounded < 0.9 * channels ? rounded + 8 : rounded;
}

/* Adds torchvision's ConvNormActivation: nodes <name>.0, <name>.1, <name>.2. */
static int conv_bn_relu6(struct rfx_builder *b, int x, const char *name,
                         struct rfx_conv_spec spec) {
    return rfx_builder_conv_bn_act_named(b, x, name, rfx_suffixes_numbers, rfx_act_relu6(), spec);
}

static int inverted_residual(struct rfx_builder *b, int in, int index, int64_t expand, int64_t oc,
                             int64_t stride) {
    int64_t ic = rfx_builder_channels(b, in), hidden = ic * expand;
    int x = in, part = 0;
    if (expand != 1)
        x = conv_bn_relu6(b, x, rfx_name("features.%d.conv.%d", index, part++).text,
                          rfx_spec(hidden, 1));
    x = conv_bn_relu6(b, x, rfx_name("features.%d.conv.%d", index, part++).text,
                      rfx_spec_depthwise(hidden, 3, stride));
    x = rfx_builder_conv(b, rfx_name("features.%d.conv.%d", index, part).text, x, rfx_spec(oc, 1));
    x = rfx_builder_batch_norm(b, rfx_name("features.%d.conv.%d", index, part + 1).text, x, 1.0f);
    if (stride == 1 && ic == oc)
        x = rfx_builder_add(b, rfx_name("features.%d.add", index).text, in, x);
    rfx_builder_alias(b, x, rfx_name("features.%d", index).text);
    return x;
}

void rfx_builtin_mobilenet_v2(struct rfx_builder *b, int x,
                              const struct rfx_builtin_config *config) {
    double width = config->width;
    int index = 0;
    x = conv_bn_relu6(b, x, rfx_name("features.%d", index).text,
                      rfx_spec_strided(make_divisible(32 * width), 3, 2));
    rfx_builder_alias(b, x, rfx_name("features.%d", index++).text);
    for (size_t s = 0; s < RFX_MOBILENET_V2_STAGES; s++) {
        int64_t oc = make_divisible((double)rfx_mobilenet_v2_stages[s].channels * width);
        for (int i = 0; i < rfx_mobilenet_v2_stages[s].blocks; i++)
            x = inverted_residual(b, x, index++, rfx_mobilenet_v2_stages[s].expand, oc,
                                  i == 0 ? rfx_mobilenet_v2_stages[s].stride : 1);
    }
    int64_t last = make_divisible(1280 * (width > 1.0 ? width : 1.0));
    x = conv_bn_relu6(b, x, rfx_name("features.%d", index).text, rfx_spec(last, 1));
    rfx_builder_alias(b, x, rfx_name("features.%d", index).text);
    rfx_builder_classify(b, x, "avgpool", "flatten", "classifier.1");
}

static const struct {
    int64_t channels, stride;
} mobilenet_v1_layers[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                           {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};

static int named_conv_bn_relu6(struct rfx_builder *b, int x, const char *name,
                               struct rfx_conv_spec spec) {
    return rfx_builder_conv_bn_act(b, x, name, rfx_name("%s.bn", name).text,
                                   rfx_name("%s.relu", name).text, rfx_act_relu6(), spec);
}

void rfx_builtin_mobilenet_v1(struct rfx_builder *b, int x,
                              const struct rfx_builtin_config *config) {
    double width = config->width;
    int64_t first = (int64_t)fmax(32 * width, 8.0);
    x = named_conv_bn_relu6(b, x, "Conv2d_0", rfx_spec_strided(first, 3, 2));
    for (int i = 0; i < (int)(sizeof mobilenet_v1_layers / sizeof mobilenet_v1_layers[0]); i++) {
        int64_t ic = rfx_builder_channels(b, x);
        int64_t oc = (int64_t)fmax((double)mobilenet_v1_layers[i].channels * width, 8.0);
        x = named_conv_bn_relu6(b, x, rfx_name("Conv2d_%d_depthwise", i + 1).text,
                                rfx_spec_depthwise(ic, 3, mobilenet_v1_layers[i].stride));
        x = named_conv_bn_relu6(b, x, rfx_name("Conv2d_%d_pointwise", i + 1).text, rfx_spec(oc, 1));
    }
    rfx_builder_classify(b, x, "avgpool", "flatten", "Logits");
}

static const double mnasnet_width = 1.3;

static const struct {
    int64_t expand, k, stride, channels;
    int blocks;
} mnasnet_stages[] = {{3, 3, 2, 24, 3}, {3, 5, 2, 40, 3},  {6, 5, 2, 80, 3},
                      {6, 3, 1, 96, 2}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};

/* Adds a convolution <name>.<i>, a batch norm <name>.<i + 1> and, if `rectify`, a rectifier
 * <name>.<i + 2>. */
static int mnasnet_conv(struct rfx_builder *b, int x, const char *name, int i, bool rectify,
                        struct rfx_conv_spec spec) {
    struct rfx_act none = {.kind = RFX_ACT_NONE, .slope = -1};
    return rfx_builder_conv_bn_act(
        b, x, rfx_name("%s.%d", name, i).text, rfx_name("%s.%d", name, i + 1).text,
        rfx_name("%s.%d", name, i + 2).text, rectify ? rfx_act_relu() : none, spec);
}

static int mnasnet_block(struct rfx_builder *b, int in, const char *name, int stage,
                         int64_t stride) {
    int64_t ic = rfx_builder_channels(b, in), hidden = ic * mnasnet_stages[stage].expand;
    int64_t oc = make_divisible((double)mnasnet_stages[stage].channels * mnasnet_width);
    int64_t k = mnasnet_stages[stage].k;
    struct rfx_name layers = rfx_name("%s.layers", name);
    int x = mnasnet_conv(b, in, layers.text, 0, true, rfx_spec(hidden, 1));
    x = mnasnet_conv(b, x, layers.text, 3, true, rfx_spec_depthwise(hidden, k, stride));
    x = mnasnet_conv(b, x, layers.text, 6, false, rfx_spec(oc, 1));
    if (stride == 1 && ic == oc) x = rfx_builder_add(b, rfx_name("%s.add", name).text, x, in);
    rfx_builder_alias(b, x, name);
    return x;
}

void rfx_builtin_mnasnet(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    (void)config;
    int64_t c = make_divisible(32 * mnasnet_width);
    x = mnasnet_conv(b, x, "layers", 0, true, rfx_spec_strided(c, 3, 2));
    x = mnasnet_conv(b, x, "layers", 3, true, rfx_spec_depthwise(c, 3, 1));
    x = mnasnet_conv(b, x, "layers", 6, false, rfx_spec(make_divisible(16 * mnasnet_width), 1));
    int count = (int)(sizeof mnasnet_stages / sizeof mnasnet_stages[0]);
    for (int s = 0; s < count; s++)
        for (int i = 0; i < mnasnet_stages[s].blocks; i++)
            x = mnasnet_block(b, x, rfx_name("layers.%d.%d", 8 + s, i).text, s,
                              i == 0 ? mnasnet_stages[s].stride : 1);
    x = mnasnet_conv(b, x, "layers", 8 + count, true, rfx_spec(1280, 1));
    rfx_builder_classify(b, x, "avgpool", "flatten", "classifier.1");
}
