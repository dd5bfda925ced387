/* The decoder of the autoencoder of latent diffusion (Rombach et al. 2022), with the layer names of
 * diffusers. Its input has four channels of latents, its output is an image eight times as large.
 * It consists of residual blocks of group norms and 3x3 convolutions, with one attention over all
 * pixels in the middle. */
#include <math.h>

#include "rfexec/builtin/builtin_networks.h"

enum { GROUPS = 32, WIDEST = 512 };

static const float eps = 1e-6f;

static int conv(struct rfx_builder *b, int x, const char *name, int64_t oc, int64_t k) {
    struct rfx_conv_spec spec = rfx_spec_biased(oc, k);
    return rfx_builder_conv(b, name, x, spec);
}

static int norm_silu(struct rfx_builder *b, int x, const char *norm) {
    x = rfx_builder_group_norm(b, norm, x, GROUPS, eps);
    return rfx_builder_act(b, rfx_name("%s.silu", norm).text, x, rfx_act_silu());
}

static int residual_block(struct rfx_builder *b, int in, const char *name, int64_t oc) {
    int x = norm_silu(b, in, rfx_name("%s.norm1", name).text);
    x = conv(b, x, rfx_name("%s.conv1", name).text, oc, 3);
    x = norm_silu(b, x, rfx_name("%s.norm2", name).text);
    x = conv(b, x, rfx_name("%s.conv2", name).text, oc, 3);
    if (rfx_builder_channels(b, in) != oc)
        in = conv(b, in, rfx_name("%s.conv_shortcut", name).text, oc, 1);
    x = rfx_builder_add(b, rfx_name("%s.add", name).text, x, in);
    rfx_builder_alias(b, x, name);
    return x;
}

static int tensor_node(struct rfx_builder *b, const char *name, struct rfx_node node, int left,
                       int right) {
    int in[2] = {left, right};
    node.name = name;
    node.in = in;
    node.n_in = right < 0 ? 1 : 2;
    return rfx_builder_add_node(b, &node, 0.0f, 1.0f);
}

/* Returns a map as tokens (1, pixels, channels). */
static int tokens(struct rfx_builder *b, int map, const char *name) {
    if (b->status != RFX_OK) return -1;
    const struct rfx_tensor *t = &b->graph->nodes[map].out;
    struct rfx_node node = {.op = RFX_OP_RESHAPE};
    node.attr.reshape.shape = (struct rfx_shape){3, {1, t->h * t->w, t->c}};
    int plain = tensor_node(b, rfx_name("%s.nhwc", name).text,
                            (struct rfx_node){.op = RFX_OP_NHWC_AS_PLAIN}, map, -1);
    return tensor_node(b, rfx_name("%s.tokens", name).text, node, plain, -1);
}

/* Returns tokens as a map of the size of `like`. */
static int as_map(struct rfx_builder *b, int in, int like, const char *name) {
    if (b->status != RFX_OK) return -1;
    const struct rfx_tensor *t = &b->graph->nodes[like].out;
    struct rfx_node node = {.op = RFX_OP_RESHAPE};
    node.attr.reshape.shape = (struct rfx_shape){4, {1, t->h, t->w, t->c}};
    int plain = tensor_node(b, rfx_name("%s.nhwc", name).text, node, in, -1);
    return tensor_node(b, rfx_name("%s.map", name).text,
                       (struct rfx_node){.op = RFX_OP_PLAIN_AS_NHWC}, plain, -1);
}

/* Adds attention with one head: softmax(q k' / sqrt(channels)) v. */
static int attention(struct rfx_builder *b, int in, const char *name) {
    static const char *const parts[3] = {"to_q", "to_k", "to_v"};
    int64_t c = rfx_builder_channels(b, in);
    int qkv[3],
        x = rfx_builder_group_norm(b, rfx_name("%s.group_norm", name).text, in, GROUPS, eps);
    for (int i = 0; i < 3; i++) {
        struct rfx_name part = rfx_name("%s.%s", name, parts[i]);
        qkv[i] = tokens(b, conv(b, x, part.text, c, 1), part.text);
    }
    struct rfx_node turn = {.op = RFX_OP_TRANSPOSE, .attr.transpose.perm = {0, 2, 1}};
    struct rfx_node product = {.op = RFX_OP_MATMUL}, times = {.op = RFX_OP_PLAIN_BINARY};
    struct rfx_node softmax = {.op = RFX_OP_PLAIN_SOFTMAX, .attr.softmax.axis = 2};
    times.attr.binary.kind = RFX_BINARY_MUL;
    int scale = rfx_builder_number(b, rfx_name("%s.scale", name).text, 1.0f / sqrtf((float)c));
    int keys = tensor_node(b, rfx_name("%s.keys", name).text, turn, qkv[1], -1);
    int scores = tensor_node(b, rfx_name("%s.scores", name).text, product, qkv[0], keys);
    scores = tensor_node(b, rfx_name("%s.scaled", name).text, times, scores, scale);
    int weights = tensor_node(b, rfx_name("%s.softmax", name).text, softmax, scores, -1);
    int mixed = tensor_node(b, rfx_name("%s.mixed", name).text, product, weights, qkv[2]);
    x = conv(b, as_map(b, mixed, in, name), rfx_name("%s.to_out.0", name).text, c, 1);
    x = rfx_builder_add(b, rfx_name("%s.add", name).text, x, in);
    rfx_builder_alias(b, x, name);
    return x;
}

void rfx_builtin_vae_decoder(struct rfx_builder *b, int x,
                             const struct rfx_builtin_config *config) {
    static const int64_t channels[4] = {WIDEST, WIDEST, 256, 128};
    (void)config;
    x = conv(b, x, "decoder.conv_in", WIDEST, 3);
    x = residual_block(b, x, "decoder.mid_block.resnets.0", WIDEST);
    x = attention(b, x, "decoder.mid_block.attentions.0");
    x = residual_block(b, x, "decoder.mid_block.resnets.1", WIDEST);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 3; j++)
            x = residual_block(b, x, rfx_name("decoder.up_blocks.%d.resnets.%d", i, j).text,
                               channels[i]);
        if (i == 3) break;
        struct rfx_name up = rfx_name("decoder.up_blocks.%d.upsamplers.0", i);
        x = rfx_builder_enlarge(b, rfx_name("%s.nearest", up.text).text, x, 2);
        x = conv(b, x, rfx_name("%s.conv", up.text).text, channels[i], 3);
    }
    x = norm_silu(b, x, "decoder.conv_norm_out");
    x = conv(b, x, "decoder.conv_out", 3, 3);
    rfx_builder_output(b, x, "sample");
}
