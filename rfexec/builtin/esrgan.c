/* Real-ESRGAN (Wang et al. 2021), four times larger: the network of 23 residual-in-residual dense
 * blocks, and the compact form of 32 plain convolutions. Named as in their own code. */
#include "rfexec/builtin/builtin_networks.h"

enum { CHANNELS = 64, GROWTH = 32, BLOCKS = 23, DENSE_LAYERS = 5, COMPACT_LAYERS = 32, TIMES = 4 };

static int conv(struct rfx_builder *b, int x, const char *name, int64_t oc) {
    struct rfx_conv_spec spec = {.oc = oc, .kh = 3, .pad = 1, .bias = true};
    return rfx_builder_conv(b, name, x, spec);
}

static int conv_lrelu(struct rfx_builder *b, int x, const char *name, int64_t oc) {
    x = conv(b, x, name, oc);
    return rfx_builder_act(b, rfx_name("%s.lrelu", name).text, x, rfx_act_leaky_relu(0.2f));
}

/* in + 0.2 x */
static int add_fifth(struct rfx_builder *b, int in, int x, const char *name) {
    x = rfx_builder_scale(b, rfx_name("%s.fifth", name).text, x, 0.2f);
    x = rfx_builder_add(b, rfx_name("%s.add", name).text, in, x);
    rfx_builder_alias(b, x, name);
    return x;
}

/* Each layer reads the input and what all layers before it made. */
static int dense_block(struct rfx_builder *b, int in, const char *name) {
    int made[DENSE_LAYERS] = {in}, x = in;
    for (int i = 1; i < DENSE_LAYERS; i++) {
        made[i] = conv_lrelu(b, x, rfx_name("%s.conv%d", name, i).text, GROWTH);
        x = rfx_builder_concat(b, rfx_name("%s.cat%d", name, i).text, made, i + 1);
    }
    x = conv(b, x, rfx_name("%s.conv%d", name, DENSE_LAYERS).text, CHANNELS);
    return add_fifth(b, in, x, name);
}

void rfx_builtin_real_esrgan(struct rfx_builder *b, int x,
                             const struct rfx_builtin_config *config) {
    (void)config;
    int first = x = conv(b, x, "conv_first", CHANNELS);
    for (int i = 0; i < BLOCKS; i++) {
        struct rfx_name body = rfx_name("body.%d", i);
        int in = x;
        for (int j = 1; j <= 3; j++) x = dense_block(b, x, rfx_name("%s.rdb%d", body.text, j).text);
        x = add_fifth(b, in, x, body.text);
    }
    x = rfx_builder_add(b, "feat", first, conv(b, x, "conv_body", CHANNELS));
    for (int i = 1; i <= 2; i++) {
        x = rfx_builder_enlarge(b, rfx_name("nearest%d", i).text, x, 2);
        x = conv_lrelu(b, x, rfx_name("conv_up%d", i).text, CHANNELS);
    }
    x = conv_lrelu(b, x, "conv_hr", CHANNELS);
    rfx_builder_output(b, conv(b, x, "conv_last", 3), "output");
}

void rfx_builtin_real_esrgan_compact(struct rfx_builder *b, int in,
                                     const struct rfx_builtin_config *config) {
    int x = in;
    (void)config;
    for (int i = 0; i <= COMPACT_LAYERS; i++) {
        x = conv(b, x, rfx_name("body.%d", 2 * i).text, CHANNELS);
        x = rfx_builder_prelu(b, rfx_name("body.%d", 2 * i + 1).text, x);
    }
    x = conv(b, x, rfx_name("body.%d", 2 * COMPACT_LAYERS + 2).text, (int64_t)3 * TIMES * TIMES);
    x = rfx_builder_pixel_shuffle(b, "upsampler", x, TIMES);
    x = rfx_builder_add(b, "sum", x, rfx_builder_enlarge(b, "base", in, TIMES));
    rfx_builder_output(b, x, "output");
}
