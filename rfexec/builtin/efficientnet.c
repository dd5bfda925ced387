/* EfficientNet-B0 and EfficientNetV2-S as torchvision builds them (Tan and Le 2019, 2021): inverted
 * residuals with squeeze-and-excitation. Squeeze-and-excitation reads a whole map before it scales
 * the map, so layers can be tiled only up to the first one. The first stages of EfficientNetV2-S
 * have no squeeze-and-excitation. Their blocks have one 3x3 convolution in place of a 1x1 and a
 * depthwise one. */
#include "rfexec/builtin/builtin_networks.h"

struct stage {
    int64_t expand, k, stride, channels;
    int blocks;
    bool fused;
};

static const struct stage b0[] = {
    {1, 3, 1, 16, 1, false},  {6, 3, 2, 24, 2, false},  {6, 5, 2, 40, 2, false},
    {6, 3, 2, 80, 3, false},  {6, 5, 1, 112, 3, false}, {6, 5, 2, 192, 4, false},
    {6, 3, 1, 320, 1, false},
};

static const struct stage v2_s[] = {
    {1, 3, 1, 24, 2, true},   {4, 3, 2, 48, 4, true},   {4, 3, 2, 64, 4, true},
    {4, 3, 2, 128, 6, false}, {6, 3, 1, 160, 9, false}, {6, 3, 2, 256, 15, false},
};

static int conv_bn_silu(struct rfx_builder *b, int x, const char *name, struct rfx_conv_spec spec) {
    return rfx_builder_conv_bn_act_named(b, x, name, rfx_suffixes_numbers, rfx_act_silu(), spec);
}

/* Adds a block without squeeze and excitation. A block that does not expand is only a 3x3
 * convolution. */
static int fused_conv(struct rfx_builder *b, int in, const char *name, const struct stage *stage,
                      int64_t stride) {
    int64_t ic = rfx_builder_channels(b, in), oc = stage->channels, hidden = ic * stage->expand;
    int x = conv_bn_silu(b, in, rfx_name("%s.block.0", name).text,
                         rfx_spec_strided(hidden == ic ? oc : hidden, stage->k, stride));
    if (hidden != ic) {
        struct rfx_conv_spec project = rfx_spec(oc, 1);
        x = rfx_builder_conv(b, rfx_name("%s.block.1.0", name).text, x, project);
        x = rfx_builder_batch_norm(b, rfx_name("%s.block.1.1", name).text, x, 1.0f);
    }
    if (stride == 1 && ic == oc) x = rfx_builder_add(b, rfx_name("%s.add", name).text, x, in);
    rfx_builder_alias(b, x, name);
    return x;
}

static int mb_conv(struct rfx_builder *b, int in, const char *name, const struct stage *stage,
                   int64_t stride) {
    int64_t ic = rfx_builder_channels(b, in), oc = stage->channels;
    int64_t hidden = ic * stage->expand, k = stage->k;
    int x = in, part = 0;
    if (hidden != ic)
        x = conv_bn_silu(b, x, rfx_name("%s.block.%d", name, part++).text, rfx_spec(hidden, 1));
    x = conv_bn_silu(b, x, rfx_name("%s.block.%d", name, part++).text,
                     rfx_spec_depthwise(hidden, k, stride));
    x = rfx_builder_squeeze_excite(b, x, rfx_name("%s.block.%d", name, part++).text, ic / 4,
                                   rfx_act_silu(), rfx_act_sigmoid());
    x = rfx_builder_conv(b, rfx_name("%s.block.%d.0", name, part).text, x, rfx_spec(oc, 1));
    x = rfx_builder_batch_norm(b, rfx_name("%s.block.%d.1", name, part).text, x, 1.0f);
    if (stride == 1 && ic == oc) x = rfx_builder_add(b, rfx_name("%s.add", name).text, x, in);
    rfx_builder_alias(b, x, name);
    return x;
}

static void build(struct rfx_builder *b, int x, const struct stage *stages, int count,
                  int64_t stem) {
    x = conv_bn_silu(b, x, "features.0", rfx_spec_strided(stem, 3, 2));
    rfx_builder_alias(b, x, "features.0");
    for (int s = 0; s < count; s++)
        for (int i = 0; i < stages[s].blocks; i++) {
            struct rfx_name name = rfx_name("features.%d.%d", s + 1, i);
            int64_t stride = i == 0 ? stages[s].stride : 1;
            x = stages[s].fused ? fused_conv(b, x, name.text, &stages[s], stride)
                                : mb_conv(b, x, name.text, &stages[s], stride);
        }
    struct rfx_name last = rfx_name("features.%d", count + 1);
    x = conv_bn_silu(b, x, last.text, rfx_spec(1280, 1));
    rfx_builder_alias(b, x, last.text);
    rfx_builder_classify(b, x, "avgpool", "flatten", "classifier.1");
}

void rfx_builtin_efficientnet(struct rfx_builder *b, int x,
                              const struct rfx_builtin_config *config) {
    (void)config;
    build(b, x, b0, (int)(sizeof b0 / sizeof b0[0]), 32);
}

void rfx_builtin_efficientnet_v2(struct rfx_builder *b, int x,
                                 const struct rfx_builtin_config *config) {
    (void)config;
    build(b, x, v2_s, (int)(sizeof v2_s / sizeof v2_s[0]), 24);
}
