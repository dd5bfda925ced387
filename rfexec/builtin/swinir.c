/* SwinIR lightweight for enlarging images twice (Liang et al. 2021), with the layer names of its
 * own code. It has four groups of six transformer layers of width 60 with six heads. Attention is
 * within windows of 8 x 8 pixels, which every other layer shifts by 4. A last convolution computes
 * the enlarged pixels directly. Image sizes must be multiples of the window. */
#include <math.h>

#include "rfexec/builtin/builtin_networks.h"

enum { WIDTH = 60, GROUPS = 4, LAYERS = 6, HEADS = 6, WINDOW = 8, MLP = 2, TIMES = 2 };

static const float eps = 1e-5f;

static int conv(struct rfx_builder *b, int x, const char *name, int64_t oc, int64_t k) {
    struct rfx_conv_spec spec = rfx_spec_biased(oc, k);
    return rfx_builder_conv(b, name, x, spec);
}

/* Adds window attention. The map x consists of queries, keys and values, one after the other. */
static int attend(struct rfx_builder *b, int x, const char *name, int64_t shift) {
    int64_t c = rfx_builder_channels(b, x) / 3, places = 2 * WINDOW - 1;
    struct rfx_node node = {.op = RFX_OP_WINDOW_ATTENTION, .name = name, .n_in = 1, .in = &x};
    node.attr.window_attention = (struct rfx_window_attention_attr){
        .h = WINDOW,
        .w = WINDOW,
        .shift_h = shift,
        .shift_w = shift,
        .heads = HEADS,
        .scale = 1.0f / sqrtf((float)c / HEADS),
        .by_table = true,
        .bias = rfx_builder_uniform(b, name, "relative_position_bias_table",
                                    (struct rfx_shape){2, {places * places, HEADS}}, -1.0f, 1.0f)};
    /* about a dozen pixels have notable weight, and neighbouring pixels are similar */
    return rfx_builder_add_node(b, &node, 0.0f, 0.25f * rfx_builder_variance(b, x));
}

static int layer(struct rfx_builder *b, int in, const char *name, int64_t shift) {
    struct rfx_name attn = rfx_name("%s.attn", name), mlp = rfx_name("%s.mlp", name);
    int x = rfx_builder_layer_norm(b, rfx_name("%s.norm1", name).text, in, eps);
    x = conv(b, x, rfx_name("%s.qkv", attn.text).text, 3 * (int64_t)WIDTH, 1);
    x = attend(b, x, attn.text, shift);
    x = conv(b, x, rfx_name("%s.proj", attn.text).text, WIDTH, 1);
    in = rfx_builder_add(b, rfx_name("%s.add", attn.text).text, in, x);
    x = rfx_builder_layer_norm(b, rfx_name("%s.norm2", name).text, in, eps);
    x = conv(b, x, rfx_name("%s.fc1", mlp.text).text, (int64_t)MLP * WIDTH, 1);
    x = rfx_builder_gelu(b, rfx_name("%s.act", mlp.text).text, x);
    x = conv(b, x, rfx_name("%s.fc2", mlp.text).text, WIDTH, 1);
    x = rfx_builder_add(b, rfx_name("%s.add", mlp.text).text, in, x);
    rfx_builder_alias(b, x, name);
    return x;
}

void rfx_builtin_swinir(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    (void)config;
    int first = conv(b, x, "conv_first", WIDTH, 3);
    x = rfx_builder_layer_norm(b, "patch_embed.norm", first, eps);
    for (int i = 0; i < GROUPS; i++) {
        struct rfx_name group = rfx_name("layers.%d", i);
        int in = x;
        for (int j = 0; j < LAYERS; j++)
            x = layer(b, x, rfx_name("%s.residual_group.blocks.%d", group.text, j).text,
                      j % 2 == 0 ? 0 : WINDOW / 2);
        x = conv(b, x, rfx_name("%s.conv", group.text).text, WIDTH, 3);
        x = rfx_builder_add(b, rfx_name("%s.add", group.text).text, in, x);
        rfx_builder_alias(b, x, group.text);
    }
    x = rfx_builder_layer_norm(b, "norm", x, eps);
    x = conv(b, x, "conv_after_body", WIDTH, 3);
    x = rfx_builder_add(b, "feat", first, x);
    x = conv(b, x, "upsample.0", (int64_t)3 * TIMES * TIMES, 3);
    rfx_builder_output(b, rfx_builder_pixel_shuffle(b, "upsample.1", x, TIMES), "output");
}
