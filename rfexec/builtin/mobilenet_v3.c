/* MobileNetV3 large and small as torchvision builds them (Howard et al. 2019, tables 1 and 2). */
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
    return rfx_builder_conv_bn_act(b, x, rfx_name("%s.0", name).text, rfx_name("%s.1", name).text,
                                   rfx_name("%s.2", name).text, act, spec);
}

/* A quarter of the channels, as a multiple of 8 at most a tenth below. */
static int64_t squeezed(int64_t channels) {
    int64_t quarter = channels / 4, rounded = (quarter + 4) / 8 * 8;
    if (rounded < 8) rounded = 8;
    return rounded * 10 < quarter * 9 ? rounded + 8 : rounded;
}

static int squeeze_excite(struct rfx_builder *b, int x, const char *name) {
    int64_t c = rfx_builder_channels(b, x);
    int gate = rfx_builder_global_mean(b, rfx_name("%s.avgpool", name).text, x);
    gate = rfx_builder_conv(b, rfx_name("%s.fc1", name).text, gate,
                            (struct rfx_conv_spec){.oc = squeezed(c), .kh = 1, .bias = true});
    gate = rfx_builder_relu(b, rfx_name("%s.activation", name).text, gate);
    gate = rfx_builder_conv(b, rfx_name("%s.fc2", name).text, gate,
                            (struct rfx_conv_spec){.oc = c, .kh = 1, .bias = true});
    gate = rfx_builder_act(b, rfx_name("%s.scale_activation", name).text, gate,
                           rfx_act_hard_sigmoid());
    return rfx_builder_mul(b, rfx_name("%s.mul", name).text, gate, x);
}

static int block(struct rfx_builder *b, int in, const char *name, const struct row *row) {
    struct rfx_act act = row->swish ? rfx_act_hard_swish() : rfx_act_relu();
    struct rfx_act none = {.kind = RFX_ACT_NONE, .slope = -1};
    int64_t ic = rfx_builder_channels(b, in);
    int x = in, part = 0;
    if (row->expanded != ic)
        x = conv_bn_act(b, x, rfx_name("%s.block.%d", name, part++).text, act,
                        (struct rfx_conv_spec){.oc = row->expanded, .kh = 1});
    x = conv_bn_act(b, x, rfx_name("%s.block.%d", name, part++).text, act,
                    (struct rfx_conv_spec){.oc = row->expanded,
                                           .kh = row->k,
                                           .stride = row->stride,
                                           .pad = row->k / 2,
                                           .groups = row->expanded});
    if (row->squeeze) x = squeeze_excite(b, x, rfx_name("%s.block.%d", name, part++).text);
    x = conv_bn_act(b, x, rfx_name("%s.block.%d", name, part).text, none,
                    (struct rfx_conv_spec){.oc = row->channels, .kh = 1});
    if (row->stride == 1 && ic == row->channels)
        x = rfx_builder_add(b, rfx_name("%s.add", name).text, x, in);
    rfx_builder_alias(b, x, name);
    return x;
}

static void build(struct rfx_builder *b, int x, const struct row *rows, int count, int64_t hidden) {
    x = conv_bn_act(b, x, "features.0", rfx_act_hard_swish(),
                    (struct rfx_conv_spec){.oc = 16, .kh = 3, .stride = 2, .pad = 1});
    rfx_builder_alias(b, x, "features.0");
    for (int i = 0; i < count; i++) x = block(b, x, rfx_name("features.%d", i + 1).text, &rows[i]);
    struct rfx_name last = rfx_name("features.%d", count + 1);
    x = conv_bn_act(b, x, last.text, rfx_act_hard_swish(),
                    (struct rfx_conv_spec){.oc = 6 * rfx_builder_channels(b, x), .kh = 1});
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
