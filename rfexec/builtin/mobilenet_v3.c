/* MobileNetV3 large and small as torchvision builds them (Howard et al. 2019, tables 1 and 2).
 *
 * A text detector (PP-OCRv2, mobile). Its backbone is MobileNetV3 large with half the channels and
 * without squeeze-and-excitation. A feature pyramid combines the maps at strides 4 to 32. The
 * output is the probability map of Liao et al. 2020 (differentiable binarization). Layers have the
 * names of PaddleOCR's modules. Images are padded with zeros to multiples of 32; the output map is
 * cropped to the image's size. */
#include "rfexec/builtin/builtin_networks.h"

struct row {
    int64_t k, expanded, channels;
    bool squeeze, swish; /* swish: hard swish instead of a rectifier */
    int64_t stride;
};

static const struct row large[] = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1}};

static const struct row small[] = {
    {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
    {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
    {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
    {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1}};

static int conv_bn_act(struct rfx_builder *b, int x, const char *name, struct rfx_act act,
                       struct rfx_conv_spec spec) {
    return rfx_builder_conv_bn_act_named(b, x, name, rfx_suffixes_numbers, act, spec);
}

/* Returns `channels` rounded to a multiple of 8 that is at most a tenth smaller. */
static int64_t eights(int64_t channels) {
    int64_t rounded = (channels + 4) / 8 * 8;
    if (rounded < 8) rounded = 8;
    return rounded * 10 < channels * 9 ? rounded + 8 : rounded;
}

static int block(struct rfx_builder *b, int in, const char *name, const struct row *row) {
    struct rfx_act act = row->swish ? rfx_act_hard_swish() : rfx_act_relu();
    struct rfx_act none = {.kind = RFX_ACT_NONE, .slope = -1};
    int64_t ic = rfx_builder_channels(b, in);
    int x = in, part = 0;
    if (row->expanded != ic)
        x = conv_bn_act(b, x, rfx_name("%s.block.%d", name, part++).text, act,
                        rfx_spec(row->expanded, 1));
    x = conv_bn_act(b, x, rfx_name("%s.block.%d", name, part++).text, act,
                    rfx_spec_depthwise(row->expanded, row->k, row->stride));
    if (row->squeeze)
        x = rfx_builder_squeeze_excite(b, x, rfx_name("%s.block.%d", name, part++).text,
                                       eights(row->expanded / 4), rfx_act_relu(),
                                       rfx_act_hard_sigmoid());
    x = conv_bn_act(b, x, rfx_name("%s.block.%d", name, part).text, none,
                    rfx_spec(row->channels, 1));
    if (row->stride == 1 && ic == row->channels)
        x = rfx_builder_add(b, rfx_name("%s.add", name).text, x, in);
    rfx_builder_alias(b, x, name);
    return x;
}

static void build(struct rfx_builder *b, int x, const struct row *rows, int count, int64_t hidden) {
    x = conv_bn_act(b, x, "features.0", rfx_act_hard_swish(), rfx_spec_strided(16, 3, 2));
    rfx_builder_alias(b, x, "features.0");
    for (int i = 0; i < count; i++) x = block(b, x, rfx_name("features.%d", i + 1).text, &rows[i]);
    struct rfx_name last = rfx_name("features.%d", count + 1);
    x = conv_bn_act(b, x, last.text, rfx_act_hard_swish(),
                    rfx_spec(6 * rfx_builder_channels(b, x), 1));
    rfx_builder_alias(b, x, last.text);
    x = rfx_builder_flatten(b, "flatten", rfx_builder_global_mean(b, "avgpool", x));
    x = rfx_builder_linear(b, "classifier.0", x, hidden);
    x = rfx_builder_act(b, "classifier.1", x, rfx_act_hard_swish());
    x = rfx_builder_linear(b, "classifier.3", x, 1000);
    rfx_builder_output(b, x, "output");
}

void rfx_builtin_mobilenet_v3(struct rfx_builder *b, int x,
                              const struct rfx_builtin_config *config) {
    if (config->small)
        build(b, x, small, (int)(sizeof small / sizeof small[0]), 1024);
    else
        build(b, x, large, (int)(sizeof large / sizeof large[0]), 1280);
}

enum { MULTIPLE = 32, LEVELS = 4, WIDTH = 96 };

static int conv_bn(struct rfx_builder *b, int x, const char *name, struct rfx_act act,
                   struct rfx_conv_spec spec) {
    return rfx_builder_conv_bn_act_named(b, x, name, rfx_suffixes_words, act, spec);
}

/* Adds a block with half the channels. Unlike in MobileNetV3, every block has an expansion layer.
 */
static int half_block(struct rfx_builder *b, int in, const char *name, const struct row *row) {
    struct rfx_act act = row->swish ? rfx_act_hard_swish() : rfx_act_relu();
    struct rfx_act none = {.kind = RFX_ACT_NONE, .slope = -1};
    int64_t wide = eights(row->expanded / 2), narrow = eights(row->channels / 2);
    struct rfx_conv_spec depthwise = rfx_spec_depthwise(wide, row->k, row->stride);
    int x = conv_bn(b, in, rfx_name("%s.expand_conv", name).text, act, rfx_spec(wide, 1));
    x = conv_bn(b, x, rfx_name("%s.bottleneck_conv", name).text, act, depthwise);
    x = conv_bn(b, x, rfx_name("%s.linear_conv", name).text, none, rfx_spec(narrow, 1));
    if (row->stride == 1 && rfx_builder_channels(b, in) == narrow)
        x = rfx_builder_add(b, rfx_name("%s.add", name).text, in, x);
    rfx_builder_alias(b, x, name);
    return x;
}

/* Adds the backbone. Sets levels[] to the maps at strides 4, 8, 16 and 32. */
static void text_backbone(struct rfx_builder *b, int x, int levels[LEVELS]) {
    static const int starts[LEVELS + 1] = {0, 3, 6, 12, sizeof large / sizeof large[0]};
    x = conv_bn(b, x, "backbone.conv", rfx_act_hard_swish(), rfx_spec_strided(8, 3, 2));
    for (int s = 0; s < LEVELS; s++) {
        for (int i = starts[s]; i < starts[s + 1]; i++)
            x = half_block(b, x, rfx_name("backbone.stage%d.%d", s, i - starts[s]).text, &large[i]);
        if (s + 1 == LEVELS)
            x = conv_bn(b, x, "backbone.stage3.3", rfx_act_hard_swish(), rfx_spec(480, 1));
        levels[s] = x;
    }
}

/* Adds the feature pyramid. A 1x1 convolution gives every level WIDTH channels, and the levels are
 * summed from the coarsest one on. Each sum is reduced to a quarter of the channels, enlarged to
 * the size of the finest level, and the results are concatenated. */
static int text_pyramid(struct rfx_builder *b, const int levels[LEVELS]) {
    int sums[LEVELS], parts[LEVELS];
    for (int s = LEVELS - 1; s >= 0; s--) {
        int x = rfx_builder_conv(b, rfx_name("neck.in%d_conv", s + 2).text, levels[s],
                                 rfx_spec(WIDTH, 1));
        if (s + 1 < LEVELS) {
            int up = rfx_builder_enlarge(b, rfx_name("neck.up%d", s + 3).text, sums[s + 1], 2);
            x = rfx_builder_add(b, rfx_name("neck.out%d", s + 2).text, x, up);
        }
        sums[s] = x;
        x = rfx_builder_conv(b, rfx_name("neck.p%d_conv", s + 2).text, x,
                             rfx_spec(WIDTH / LEVELS, 3));
        if (s > 0) x = rfx_builder_enlarge(b, rfx_name("neck.p%d", s + 2).text, x, (int64_t)1 << s);
        parts[LEVELS - 1 - s] = x;
    }
    return rfx_builder_concat(b, "neck.fuse", parts, LEVELS);
}

void rfx_builtin_text_detector(struct rfx_builder *b, int image,
                               const struct rfx_builtin_config *config) {
    struct rfx_upsample_spec twice = {.k = 2, .stride = 2};
    int levels[LEVELS];
    (void)config;
    int x = rfx_builder_pad_to(b, "padded", image, MULTIPLE);
    text_backbone(b, x, levels);
    x = text_pyramid(b, levels);
    x = rfx_builder_conv_bn_act(b, x, "head.binarize.conv1", "head.binarize.conv_bn1",
                                "head.binarize.relu1", rfx_act_relu(), rfx_spec(WIDTH / 4, 3));
    x = rfx_builder_conv_transpose(b, "head.binarize.conv2", x, WIDTH / 4, twice);
    x = rfx_builder_batch_norm(b, "head.binarize.conv_bn2", x, 1.0f);
    x = rfx_builder_relu(b, "head.binarize.relu2", x);
    x = rfx_builder_conv_transpose(b, "head.binarize.conv3", x, 1, twice);
    x = rfx_builder_act(b, "head.binarize.sigmoid", x, rfx_act_sigmoid());
    rfx_builder_output(b, rfx_builder_crop_like(b, "cropped", x, image), "maps");
}
