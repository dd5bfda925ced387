/* U-Net with instance norms: the plain form of nnU-Net (Isensee et al. 2021) in two dimensions,
 * with five stages. A stage has two 3x3 convolutions with bias. Each is followed by an instance
 * norm with scale and shift and by a leaky rectifier of slope 0.01. Strided convolutions replace
 * pools. */
#include "rfexec/builtin/builtin_networks.h"

#define STAGES 5
#define CLASSES 2

static int conv_norm_act(struct rfx_builder *b, int x, const char *name, int64_t oc,
                         int64_t stride) {
    struct rfx_conv_spec spec = {.oc = oc, .kh = 3, .pad = 1, .stride = stride, .bias = true};
    x = rfx_builder_conv(b, rfx_name("%s.conv", name).text, x, spec);
    x = rfx_builder_instance_norm(b, rfx_name("%s.norm", name).text, x);
    return rfx_builder_act(b, rfx_name("%s.nonlin", name).text, x, rfx_act_leaky_relu(0.01f));
}

static int stage(struct rfx_builder *b, int x, const char *name, int64_t oc, int64_t stride) {
    for (int i = 0; i < 2; i++)
        x = conv_norm_act(b, x, rfx_name("%s.convs.%d", name, i).text, oc, i == 0 ? stride : 1);
    rfx_builder_alias(b, x, name);
    return x;
}

/* Enlarges x twofold to the size of `skip`. If that size is odd, the last row or column is cut off.
 */
static int double_size(struct rfx_builder *b, int x, int skip, const char *name) {
    if (b->status != RFX_OK) return -1;
    const struct rfx_tensor *small = &b->graph->nodes[x].out, *large = &b->graph->nodes[skip].out;
    struct rfx_upsample_spec spec = {.k = 2,
                                     .stride = 2,
                                     .cut_bottom = 2 * small->h - large->h,
                                     .cut_right = 2 * small->w - large->w};
    return rfx_builder_conv_transpose(b, name, x, rfx_builder_channels(b, skip), spec);
}

void rfx_builtin_unet_instance(struct rfx_builder *b, int x,
                               const struct rfx_builtin_config *config) {
    int skips[STAGES];
    (void)config;
    for (int i = 0; i < STAGES; i++)
        x = skips[i] =
            stage(b, x, rfx_name("encoder.stages.%d", i).text, (int64_t)32 << i, i == 0 ? 1 : 2);
    for (int i = 0; i + 1 < STAGES; i++) {
        int skip = skips[STAGES - 2 - i];
        x = double_size(b, x, skip, rfx_name("decoder.transpconvs.%d", i).text);
        x = rfx_builder_concat(b, rfx_name("decoder.cat.%d", i).text, (const int[]){x, skip}, 2);
        x = stage(b, x, rfx_name("decoder.stages.%d", i).text, rfx_builder_channels(b, skip), 1);
    }
    x = rfx_builder_conv(b, "decoder.seg_layer", x, rfx_spec_biased(CLASSES, 1));
    rfx_builder_output(b, x, "output");
}
