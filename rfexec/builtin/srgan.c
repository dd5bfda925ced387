/* The generator of SRGAN (Ledig et al. 2017, figure 4): 16 residual blocks of 64 channels, two
 * convolutions that double the picture by PixelShuffle, four times larger in all. Convolutions have
 * biases, a PReLU a slope per channel; the last layer is a tanh. */
#include "rfexec/builtin/builtin_networks.h"

enum { CHANNELS = 64, BLOCKS = 16 };

static int conv(struct rfx_builder *b, int x, const char *name, int64_t oc, int64_t k) {
    struct rfx_conv_spec spec = {.oc = oc, .kh = k, .pad = k / 2, .bias = true};
    return rfx_builder_conv(b, name, x, spec);
}

static int residual_block(struct rfx_builder *b, int in, const char *name) {
    int x = conv(b, in, rfx_name("%s.conv1", name).text, CHANNELS, 3);
    x = rfx_builder_batch_norm(b, rfx_name("%s.bn1", name).text, x, 1.0f);
    x = rfx_builder_prelu(b, rfx_name("%s.prelu", name).text, x);
    x = conv(b, x, rfx_name("%s.conv2", name).text, CHANNELS, 3);
    x = rfx_builder_batch_norm(b, rfx_name("%s.bn2", name).text, x, 0.25f);
    x = rfx_builder_add(b, rfx_name("%s.add", name).text, in, x);
    rfx_builder_alias(b, x, name);
    return x;
}

void rfx_builtin_srgan(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    (void)config;
    x = rfx_builder_prelu(b, "head.prelu", conv(b, x, "head.conv", CHANNELS, 9));
    int skip = x;
    for (int i = 0; i < BLOCKS; i++) x = residual_block(b, x, rfx_name("block%d", i).text);
    x = conv(b, x, "trunk.conv", CHANNELS, 3);
    x = rfx_builder_batch_norm(b, "trunk.bn", x, 1.0f);
    x = rfx_builder_add(b, "trunk.add", skip, x);
    for (int i = 0; i < 2; i++) {
        struct rfx_name name = rfx_name("up%d", i);
        x = conv(b, x, rfx_name("%s.conv", name.text).text, CHANNELS * 4, 3);
        x = rfx_builder_pixel_shuffle(b, rfx_name("%s.shuffle", name.text).text, x, 2);
        x = rfx_builder_prelu(b, rfx_name("%s.prelu", name.text).text, x);
        rfx_builder_alias(b, x, name.text);
    }
    x = conv(b, x, "tail.conv", 3, 9);
    x = rfx_builder_act(b, "tail.tanh", x, rfx_act_tanh());
    rfx_builder_output(b, x, "output");
}
