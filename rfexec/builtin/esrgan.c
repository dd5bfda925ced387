/* Generators that enlarge images four times.
 *
 * SRGAN's (Ledig et al. 2017, figure 4): 16 residual blocks of 64 channels, two convolutions that
 * double the picture by PixelShuffle. Convolutions have biases, a PReLU a slope per channel; the
 * last layer is a tanh. Real-ESRGAN's (Wang et al. 2021), named as in their own code: the network
 * of 23 residual-in-residual dense blocks, and the compact form of 32 plain convolutions. */
#include "rfexec/builtin/builtin_networks.h"

enum {
    CHANNELS = 64,
    GROWTH = 32,
    SRGAN_BLOCKS = 16,
    BLOCKS = 23,
    DENSE_LAYERS = 5,
    COMPACT_LAYERS = 32,
    TIMES = 4
};

static int conv_k(struct rfx_builder *b, int x, const char *name, int64_t oc, int64_t k) {
    struct rfx_conv_spec spec = rfx_spec_biased(oc, k);
    return rfx_builder_conv(b, name, x, spec);
}

static int conv(struct rfx_builder *b, int x, const char *name, int64_t oc) {
    return conv_k(b, x, name, oc, 3);
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

/* Adds a dense block: each layer reads the input and the outputs of all layers before it. */
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

static int residual_block(struct rfx_builder *b, int in, const char *name) {
    int x = conv(b, in, rfx_name("%s.conv1", name).text, CHANNELS);
    x = rfx_builder_batch_norm(b, rfx_name("%s.bn1", name).text, x, 1.0f);
    x = rfx_builder_prelu(b, rfx_name("%s.prelu", name).text, x);
    x = conv(b, x, rfx_name("%s.conv2", name).text, CHANNELS);
    x = rfx_builder_batch_norm(b, rfx_name("%s.bn2", name).text, x, 0.25f);
    x = rfx_builder_add(b, rfx_name("%s.add", name).text, in, x);
    rfx_builder_alias(b, x, name);
    return x;
}

void rfx_builtin_srgan(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    (void)config;
    x = rfx_builder_prelu(b, "head.prelu", conv_k(b, x, "head.conv", CHANNELS, 9));
    int skip = x;
    for (int i = 0; i < SRGAN_BLOCKS; i++) x = residual_block(b, x, rfx_name("block%d", i).text);
    x = conv(b, x, "trunk.conv", CHANNELS);
    x = rfx_builder_batch_norm(b, "trunk.bn", x, 1.0f);
    x = rfx_builder_add(b, "trunk.add", skip, x);
    for (int i = 0; i < 2; i++) {
        struct rfx_name name = rfx_name("up%d", i);
        x = conv(b, x, rfx_name("%s.conv", name.text).text, CHANNELS * 4);
        x = rfx_builder_pixel_shuffle(b, rfx_name("%s.shuffle", name.text).text, x, 2);
        x = rfx_builder_prelu(b, rfx_name("%s.prelu", name.text).text, x);
        rfx_builder_alias(b, x, name.text);
    }
    x = conv_k(b, x, "tail.conv", 3, 9);
    x = rfx_builder_act(b, "tail.tanh", x, rfx_act_tanh());
    rfx_builder_output(b, x, "output");
}
