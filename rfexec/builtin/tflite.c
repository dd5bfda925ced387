/* Networks in the form in which TensorFlow Lite published them: DeepLab v3 on MobileNetV2
 * (deeplabv3_257_mv_gpu: width 0.5, output stride 8), PoseNet on MobileNetV1
 * (multi_person_mobilenet_v1_075_float: width 0.75, output stride 16, 353 x 257) and BlazeFace
 * (face_detection_front, 128 x 128).
 *
 * All windows have TensorFlow's SAME padding. For a stride of 2 and an even size it pads one side
 * only. The published files have no batch norms, because the conversion folds them into weights;
 * here the networks have batch norms where the papers do. */
#include <math.h>

#include "rfexec/builtin/builtin_networks.h"

static const struct rfx_act no_act = {.kind = RFX_ACT_NONE, .slope = -1};

static int conv_bn(struct rfx_builder *b, int x, const char *name, struct rfx_act act,
                   struct rfx_conv_spec spec) {
    spec.same = true;
    return rfx_builder_conv_bn_act(b, x, name, rfx_name("%s/BatchNorm", name).text,
                                   rfx_name("%s/act", name).text, act, spec);
}

static int conv_bias(struct rfx_builder *b, int x, const char *name, struct rfx_conv_spec spec) {
    spec.same = true;
    spec.bias = true;
    return rfx_builder_conv(b, name, x, spec);
}

/* State of a backbone with atrous convolutions. After the output stride `most` is reached, a
 * layer's stride becomes a dilation of the layers after it. */
struct atrous {
    int64_t stride, rate, most;
};

/* Returns the stride that a layer gets, and sets *dilation to the layer's dilation. */
static int64_t next_stride(struct atrous *atrous, int64_t stride, int64_t *dilation) {
    *dilation = atrous->rate;
    if (atrous->stride < atrous->most) {
        atrous->stride *= stride;
        return stride;
    }
    atrous->rate *= stride;
    return 1;
}

/* --- DeepLab v3 --- */

static int64_t scaled(int64_t channels, double width) {
    return (int64_t)fmax(floor((double)channels * width), 8.0);
}

static int expanded_conv(struct rfx_builder *b, int in, int index, int64_t expand, int64_t oc,
                         struct atrous *atrous, int64_t stride) {
    int64_t ic = rfx_builder_channels(b, in), hidden = ic * expand, dilation;
    struct rfx_name name =
        index == 0 ? rfx_name("expanded_conv") : rfx_name("expanded_conv_%d", index);
    int x = in;
    stride = next_stride(atrous, stride, &dilation);
    if (expand != 1)
        x = conv_bn(b, x, rfx_name("%s/expand", name.text).text, rfx_act_relu6(),
                    rfx_spec(hidden, 1));
    x = conv_bn(
        b, x, rfx_name("%s/depthwise", name.text).text, rfx_act_relu6(),
        (struct rfx_conv_spec){
            .oc = hidden, .kh = 3, .stride = stride, .groups = hidden, .dilation = dilation});
    x = conv_bn(b, x, rfx_name("%s/project", name.text).text, no_act, rfx_spec(oc, 1));
    if (stride == 1 && ic == oc) x = rfx_builder_add(b, rfx_name("%s/add", name.text).text, in, x);
    rfx_builder_alias(b, x, name.text);
    return x;
}

/* Adds pyramid pooling with one bin: the mean over the map, a convolution, and a resize to the
 * map's size.
 */
static int image_pooling(struct rfx_builder *b, int x) {
    if (b->status != RFX_OK) return -1;
    int64_t h = b->graph->nodes[x].out.h, w = b->graph->nodes[x].out.w;
    x = rfx_builder_global_mean(b, "AvgPool2D", x);
    x = conv_bn(b, x, "image_pooling", rfx_act_relu(), rfx_spec(256, 1));
    return rfx_builder_resize(b, "ResizeBilinear", x, h, w);
}

void rfx_builtin_deeplab_v3(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    if (b->status != RFX_OK) return;
    int64_t h = b->graph->nodes[x].out.h, w = b->graph->nodes[x].out.w;
    struct atrous atrous = {2, 1, 8};
    int index = 0;
    x = conv_bn(b, x, "Conv", rfx_act_relu6(),
                (struct rfx_conv_spec){.oc = scaled(32, config->width), .kh = 3, .stride = 2});
    for (size_t s = 0; s < RFX_MOBILENET_V2_STAGES; s++)
        for (int i = 0; i < rfx_mobilenet_v2_stages[s].blocks; i++)
            x = expanded_conv(b, x, index++, rfx_mobilenet_v2_stages[s].expand,
                              scaled(rfx_mobilenet_v2_stages[s].channels, config->width), &atrous,
                              i == 0 ? rfx_mobilenet_v2_stages[s].stride : 1);
    int parts[2];
    parts[0] = image_pooling(b, x);
    parts[1] = conv_bn(b, x, "aspp0", rfx_act_relu(), rfx_spec(256, 1));
    x = rfx_builder_concat(b, "concat", parts, 2);
    x = conv_bn(b, x, "concat_projection", rfx_act_relu(), rfx_spec(256, 1));
    x = conv_bias(b, x, "logits/semantic", rfx_spec(21, 1));
    x = rfx_builder_resize(b, "ResizeBilinear_2", x, h, w);
    rfx_builder_output(b, x, "ResizeBilinear_2:0");
}

/* --- PoseNet --- */

/* In the published network of width 0.75, layers 12 and 13 are as wide as the layers before them
 * and have stride 1. */
static const struct {
    int64_t channels, stride;
} posenet_layers[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1}, {512, 2}, {512, 1},
                      {512, 1}, {512, 1}, {512, 1}, {512, 1}, {512, 1}, {512, 1}};

void rfx_builtin_posenet(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    static const struct {
        const char *name, *output;
        int64_t channels;
    } heads[] = {{"heatmap_2", "float_heatmaps", 17},
                 {"offset_2", "float_short_offsets", 34},
                 {"displacement_fwd_2", NULL, 32},
                 {"displacement_bwd_2", NULL, 32},
                 {"segment_2", "float_segments", 1}};
    x = conv_bn(b, x, "Conv2d_0", rfx_act_relu6(),
                (struct rfx_conv_spec){.oc = scaled(32, config->width), .kh = 3, .stride = 2});
    for (int i = 0; i < (int)(sizeof posenet_layers / sizeof posenet_layers[0]); i++) {
        int64_t c = rfx_builder_channels(b, x), stride = posenet_layers[i].stride;
        x = conv_bn(b, x, rfx_name("Conv2d_%d_depthwise", i + 1).text, rfx_act_relu6(),
                    (struct rfx_conv_spec){.oc = c, .kh = 3, .stride = stride, .groups = c});
        x = conv_bn(b, x, rfx_name("Conv2d_%d_pointwise", i + 1).text, rfx_act_relu6(),
                    rfx_spec(scaled(posenet_layers[i].channels, config->width), 1));
    }
    int made[sizeof heads / sizeof heads[0]];
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        made[i] = conv_bias(b, x, heads[i].name, rfx_spec(heads[i].channels, 1));
        if (heads[i].output != NULL) rfx_builder_output(b, made[i], heads[i].output);
    }
    x = rfx_builder_concat(b, "mid_offsets", (const int[]){made[2], made[3]}, 2);
    rfx_builder_output(b, x, "float_mid_offsets");
}

/* --- BlazeFace --- */

/* Adds a depthwise 3x3 and a 1x1 convolution to their input. If the block has stride 2, a max pool
 * shrinks the input; if it has more output channels, zeros are appended to the input. */
static int blaze_block(struct rfx_builder *b, int in, const char *name, int64_t oc,
                       int64_t stride) {
    int64_t ic = rfx_builder_channels(b, in);
    int x = conv_bias(b, in, rfx_name("%s/depthwise", name).text,
                      (struct rfx_conv_spec){.oc = ic, .kh = 3, .stride = stride, .groups = ic});
    x = conv_bias(b, x, rfx_name("%s/pointwise", name).text, rfx_spec(oc, 1));
    int side = in;
    if (stride == 2) {
        struct rfx_pool_attr pool = rfx_square_pool(2, 2, 0);
        pool.pads = rfx_builder_same_pads(b, in, 2, 2, 2, 1);
        side = rfx_builder_max_pool(b, rfx_name("%s/max_pool", name).text, side, pool);
    }
    if (oc > ic)
        side = rfx_builder_pad_channels(b, rfx_name("%s/channel_pad", name).text, side, oc);
    x = rfx_builder_add(b, rfx_name("%s/add", name).text, x, side);
    x = rfx_builder_relu(b, rfx_name("%s/relu", name).text, x);
    rfx_builder_alias(b, x, name);
    return x;
}

/* Adds a head: from both maps, k numbers for each anchor, as the rows of one tensor. */
static int blaze_heads(struct rfx_builder *b, const int *maps, const char *name, int64_t k) {
    static const int64_t anchors[2] = {2, 6};
    int rows[2];
    for (int i = 0; i < 2; i++) {
        struct rfx_name head = rfx_name("%s_%d", name, i == 0 ? 8 : 16);
        rows[i] = conv_bias(b, maps[i], head.text, rfx_spec(anchors[i] * k, 1));
        rows[i] = rfx_builder_rows(b, rfx_name("%s/rows", head.text).text, rows[i], k);
    }
    return rfx_builder_join_rows(b, name, rows[0], rows[1]);
}

void rfx_builtin_blazeface(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    static const struct {
        int64_t channels, stride;
    } blocks[] = {{24, 1}, {28, 1}, {32, 2}, {36, 1}, {42, 1}, {48, 2}, {56, 1}, {64, 1},
                  {72, 1}, {80, 1}, {88, 1}, {96, 2}, {96, 1}, {96, 1}, {96, 1}, {96, 1}};
    enum { LAST_OF_STRIDE_8 = 10 };
    (void)config;
    int maps[2] = {-1, -1};
    x = conv_bias(b, x, "conv0", (struct rfx_conv_spec){.oc = 24, .kh = 5, .stride = 2});
    x = rfx_builder_relu(b, "conv0/relu", x);
    for (int i = 0; i < (int)(sizeof blocks / sizeof blocks[0]); i++) {
        x = blaze_block(b, x, rfx_name("block%d", i).text, blocks[i].channels, blocks[i].stride);
        if (i == LAST_OF_STRIDE_8) maps[0] = x;
    }
    maps[1] = x;
    rfx_builder_output(b, blaze_heads(b, maps, "classificators", 1), "classificators");
    rfx_builder_output(b, blaze_heads(b, maps, "regressors", 16), "regressors");
}
