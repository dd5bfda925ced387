/* Networks whose output is an image: U-Net (Ronneberger et al. 2015, here with padding and batch
 * norm, as usual today) and FSRCNN (Dong et al. 2016: d 56, s 12, m 4, here for colour images). */
#include "rfexec/builtin/builtin_networks.h"

static int double_conv(struct rfx_builder *b, int x, const char *name, int64_t oc) {
    for (int i = 0; i < 6; i += 3)
        x = rfx_builder_conv_bn_act(b, x, rfx_name("%s.double_conv.%d", name, i).text,
                                    rfx_name("%s.double_conv.%d", name, i + 1).text,
                                    rfx_name("%s.double_conv.%d", name, i + 2).text, rfx_act_relu(),
                                    rfx_spec(oc, 3));
    return x;
}

/* Enlarges x to the size of the node `skip`, which is twice that of x. When the size is odd, the
 * transposed convolution adds a row or column at the end. */
static int unet_up(struct rfx_builder *b, int x, int skip, int index) {
    if (b->status != RFX_OK) return -1;
    int64_t c = rfx_builder_channels(b, x);
    const struct rfx_tensor *small = &b->graph->nodes[x].out, *large = &b->graph->nodes[skip].out;
    struct rfx_upsample_spec spec = {.k = 2,
                                     .stride = 2,
                                     .out_pad_h = large->h - 2 * small->h,
                                     .out_pad_w = large->w - 2 * small->w};
    struct rfx_name name = rfx_name("up%d", index);
    x = rfx_builder_conv_transpose(b, rfx_name("%s.up", name.text).text, x, c / 2, spec);
    x = rfx_builder_concat(b, rfx_name("%s.cat", name.text).text, (const int[]){skip, x}, 2);
    x = double_conv(b, x, rfx_name("%s.conv", name.text).text, c / 2);
    rfx_builder_alias(b, x, name.text);
    return x;
}

void rfx_builtin_unet(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    (void)config;
    int skips[4];
    x = double_conv(b, x, "inc", 64);
    rfx_builder_alias(b, x, "inc");
    for (int i = 0; i < 4; i++) {
        skips[i] = x;
        struct rfx_name name = rfx_name("down%d", i + 1);
        x = rfx_builder_max_pool(b, rfx_name("%s.maxpool_conv.0", name.text).text, x,
                                 rfx_square_pool(2, 2, 0));
        x = double_conv(b, x, rfx_name("%s.maxpool_conv.1", name.text).text, (int64_t)128 << i);
        rfx_builder_alias(b, x, name.text);
    }
    for (int i = 0; i < 4; i++) x = unet_up(b, x, skips[3 - i], i + 1);
    x = rfx_builder_conv(b, "outc.conv", x, rfx_spec_biased(2, 1));
    rfx_builder_output(b, x, "output");
}

static int conv_prelu(struct rfx_builder *b, int x, const char *conv, const char *act,
                      struct rfx_conv_spec spec) {
    spec.bias = true;
    return rfx_builder_prelu(b, act, rfx_builder_conv(b, conv, x, spec));
}

void rfx_builtin_fsrcnn(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    int64_t scale = config->scale;
    x = conv_prelu(b, x, "feature_extraction.0", "feature_extraction.1", rfx_spec(56, 5));
    x = conv_prelu(b, x, "shrink.0", "shrink.1", rfx_spec(12, 1));
    for (int i = 0; i < 4; i++)
        x = conv_prelu(b, x, rfx_name("map.%d", 2 * i).text, rfx_name("map.%d", 2 * i + 1).text,
                       rfx_spec(12, 3));
    x = conv_prelu(b, x, "expand.0", "expand.1", rfx_spec(56, 1));
    x = rfx_builder_conv_transpose(
        b, "deconv", x, 3,
        (struct rfx_upsample_spec){
            .k = 9, .stride = scale, .pad = 4, .out_pad_h = scale - 1, .out_pad_w = scale - 1});
    rfx_builder_output(b, x, "output");
}
