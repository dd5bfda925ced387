/* SqueezeNet 1.1 as torchvision builds it (Iandola et al. 2016): fire modules, a convolution as
 * classifier, no batch norm. */
#include "rfexec/builtin/builtin_networks.h"

static int conv_relu(struct rfx_builder *b, int x, const char *conv, const char *act,
                     struct rfx_conv_spec spec) {
    spec.bias = true;
    return rfx_builder_relu(b, act, rfx_builder_conv(b, conv, x, spec));
}

static int fire(struct rfx_builder *b, int x, int index, int64_t squeeze, int64_t expand) {
    struct rfx_name module = rfx_name("features.%d", index);
    const char *m = module.text;
    x = conv_relu(b, x, rfx_name("%s.squeeze", m).text, rfx_name("%s.squeeze_activation", m).text,
                  rfx_spec(squeeze, 1));
    int parts[2];
    parts[0] = conv_relu(b, x, rfx_name("%s.expand1x1", m).text,
                         rfx_name("%s.expand1x1_activation", m).text, rfx_spec(expand, 1));
    parts[1] = conv_relu(b, x, rfx_name("%s.expand3x3", m).text,
                         rfx_name("%s.expand3x3_activation", m).text, rfx_spec(expand, 3));
    x = rfx_builder_concat(b, rfx_name("%s.cat", m).text, parts, 2);
    rfx_builder_alias(b, x, m);
    return x;
}

void rfx_builtin_squeezenet(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    (void)config;
    static const struct {
        int64_t squeeze, expand; /* 0: a pool */
    } modules[] = {{0, 0}, {16, 64},  {16, 64},  {0, 0},    {32, 128}, {32, 128},
                   {0, 0}, {48, 192}, {48, 192}, {64, 256}, {64, 256}};
    x = conv_relu(b, x, "features.0", "features.1",
                  (struct rfx_conv_spec){.oc = 64, .kh = 3, .stride = 2});
    for (int i = 0; i < (int)(sizeof modules / sizeof modules[0]); i++) {
        if (modules[i].squeeze != 0)
            x = fire(b, x, i + 2, modules[i].squeeze, modules[i].expand);
        else
            x = rfx_builder_max_pool(
                b, rfx_name("features.%d", i + 2).text, x,
                (struct rfx_pool_attr){.kh = 3, .kw = 3, .sh = 2, .sw = 2, .ceil_mode = true});
    }
    x = conv_relu(b, x, "classifier.1", "classifier.2", rfx_spec(1000, 1));
    x = rfx_builder_global_mean(b, "classifier.3", x);
    x = rfx_builder_flatten(b, "flatten", x);
    rfx_builder_output(b, x, "output");
}
