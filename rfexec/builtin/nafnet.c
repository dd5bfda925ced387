/* NAFNet of width 32 for denoising (Chen et al. 2022), with the layer names of its own code: a
 * U-Net of blocks without activations. The blocks have norms over channels, products of two halves
 * of the channels instead of rectifiers, and channel attention, which reads the whole map. Images
 * are padded with zeros to multiples of 16. */
#include "layers/core/checked.h"
#include "rfexec/builtin/builtin_networks.h"

enum { WIDTH = 32, LEVELS = 4, MULTIPLE = 1 << LEVELS };

static const int encoder_blocks[LEVELS] = {2, 2, 4, 8}, middle_blocks = 12;
static const int decoder_blocks[LEVELS] = {2, 2, 2, 2};

static int conv1(struct rfx_builder *b, int x, const char *name, int64_t oc) {
    return rfx_builder_conv(b, name, x, rfx_spec_biased(oc, 1));
}

/* Adds the product of the first half of the channels and the second half. */
static int simple_gate(struct rfx_builder *b, int x, const char *name) {
    int64_t half = rfx_builder_channels(b, x) / 2;
    int first = rfx_builder_pick_channels(b, rfx_name("%s.first", name).text, x, 0, half);
    int second = rfx_builder_pick_channels(b, rfx_name("%s.second", name).text, x, half, half);
    return rfx_builder_mul(b, name, first, second);
}

/* Adds in + x * factor, with one factor for each channel. */
static int add_scaled(struct rfx_builder *b, int in, int x, const char *name, const char *factor) {
    x = rfx_builder_channel_scale(b, rfx_name("%s.%s", name, factor).text, x, 0.3f, 0.7f);
    return rfx_builder_add(b, rfx_name("%s.%s.add", name, factor).text, in, x);
}

static int block(struct rfx_builder *b, int in, const char *name) {
    int64_t c = rfx_builder_channels(b, in);
    int x = rfx_builder_layer_norm(b, rfx_name("%s.norm1", name).text, in, 1e-6f);
    x = conv1(b, x, rfx_name("%s.conv1", name).text, 2 * c);
    struct rfx_conv_spec depthwise = {
        .oc = 2 * c, .kh = 3, .pad = 1, .groups = 2 * c, .bias = true};
    x = rfx_builder_conv(b, rfx_name("%s.conv2", name).text, x, depthwise);
    x = simple_gate(b, x, rfx_name("%s.sg", name).text);
    int gate = rfx_builder_global_mean(b, rfx_name("%s.sca.0", name).text, x);
    gate = conv1(b, gate, rfx_name("%s.sca.1", name).text, c);
    x = rfx_builder_mul(b, rfx_name("%s.sca", name).text, x, gate);
    x = conv1(b, x, rfx_name("%s.conv3", name).text, c);
    in = add_scaled(b, in, x, name, "beta");
    x = rfx_builder_layer_norm(b, rfx_name("%s.norm2", name).text, in, 1e-6f);
    x = conv1(b, x, rfx_name("%s.conv4", name).text, 2 * c);
    x = simple_gate(b, x, rfx_name("%s.sg2", name).text);
    x = conv1(b, x, rfx_name("%s.conv5", name).text, c);
    x = add_scaled(b, in, x, name, "gamma");
    rfx_builder_alias(b, x, name);
    return x;
}

static int blocks(struct rfx_builder *b, int x, const char *name, int count) {
    for (int i = 0; i < count; i++) x = block(b, x, rfx_name("%s.%d", name, i).text);
    return x;
}

/* Adds a 1x1 convolution without bias and a PixelShuffle. The result has half the channels and
 * twice the rows and columns. */
static int enlarge(struct rfx_builder *b, int x, const char *name) {
    struct rfx_conv_spec spec = rfx_spec(2 * rfx_builder_channels(b, x), 1);
    x = rfx_builder_conv(b, rfx_name("%s.0", name).text, x, spec);
    return rfx_builder_pixel_shuffle(b, rfx_name("%s.1", name).text, x, 2);
}

void rfx_builtin_nafnet(struct rfx_builder *b, int image, const struct rfx_builtin_config *config) {
    int skips[LEVELS], x = rfx_builder_pad_to(b, "padder", image, MULTIPLE), padded = x;
    (void)config;
    struct rfx_conv_spec three = rfx_spec_biased(WIDTH, 3);
    x = rfx_builder_conv(b, "intro", x, three);
    for (int i = 0; i < LEVELS; i++) {
        x = skips[i] = blocks(b, x, rfx_name("encoders.%d", i).text, encoder_blocks[i]);
        struct rfx_conv_spec down = {
            .oc = 2 * rfx_builder_channels(b, x), .kh = 2, .stride = 2, .bias = true};
        x = rfx_builder_conv(b, rfx_name("downs.%d", i).text, x, down);
    }
    x = blocks(b, x, "middle_blks", middle_blocks);
    for (int i = 0; i < LEVELS; i++) {
        x = enlarge(b, x, rfx_name("ups.%d", i).text);
        x = rfx_builder_add(b, rfx_name("ups.%d.add", i).text, x, skips[LEVELS - 1 - i]);
        x = blocks(b, x, rfx_name("decoders.%d", i).text, decoder_blocks[i]);
    }
    three.oc = 3;
    x = rfx_builder_conv(b, "ending", x, three);
    x = rfx_builder_add(b, "sum", x, padded);
    rfx_builder_output(b, rfx_builder_crop_like(b, "cropped", x, image), "output");
}
