/* ResNet v2 (He et al. 2016, "Identity mappings") with the structure and the names of TF-slim.
 * Batch norm and rectifier precede each unit. The last unit of a block, not the first, has the
 * stride. Where the number of channels does not change, the shortcut is a strided 1x1 max pool. The
 * strided 7x7 and 3x3 convolutions are padded by (k - 1) / 2 on both sides (slim's conv2d_same).
 * The root's pool has TensorFlow's SAME padding, which at even sizes is one row at the bottom and
 * one column at the right. 1000 classes. */
#include "rfexec/builtin/builtin_networks.h"

/* Gain of the last batch norm of each unit. It is small, as in resnet.c, so that the values do not
 * grow with depth. */
static const float branch_gain = 0.25f;

static int bn_relu(struct rfx_builder *b, int x, const char *name, float gain) {
    x = rfx_builder_batch_norm(b, name, x, gain);
    return rfx_builder_relu(b, rfx_name("%s.relu", name).text, x);
}

static int conv_bn_relu(struct rfx_builder *b, int x, const char *unit, const char *part,
                        float gain, struct rfx_conv_spec spec) {
    struct rfx_name name = rfx_name("%s/%s", unit, part);
    x = rfx_builder_conv(b, name.text, x, spec);
    return bn_relu(b, x, rfx_name("%s/BatchNorm", name.text).text, gain);
}

static int bottleneck(struct rfx_builder *b, int in, const char *unit, int64_t planes,
                      int64_t stride) {
    int64_t oc = planes * 4;
    int before = bn_relu(b, in, rfx_name("%s/preact", unit).text, 1.0f);
    int shortcut = in;
    if (rfx_builder_channels(b, in) != oc)
        shortcut = rfx_builder_conv(
            b, rfx_name("%s/shortcut", unit).text, before,
            (struct rfx_conv_spec){.oc = oc, .kh = 1, .stride = stride, .bias = true});
    else if (stride != 1)
        shortcut = rfx_builder_max_pool(b, rfx_name("%s/shortcut", unit).text, in,
                                        rfx_square_pool(1, stride, 0));
    int x = conv_bn_relu(b, before, unit, "conv1", 1.0f, rfx_spec(planes, 1));
    x = conv_bn_relu(b, x, unit, "conv2", branch_gain, rfx_spec_strided(planes, 3, stride));
    x = rfx_builder_conv(b, rfx_name("%s/conv3", unit).text, x, rfx_spec_biased(oc, 1));
    x = rfx_builder_add(b, rfx_name("%s/add", unit).text, shortcut, x);
    rfx_builder_alias(b, x, unit);
    return x;
}

void rfx_builtin_resnet_v2(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    x = rfx_builder_conv(
        b, "conv1", x,
        (struct rfx_conv_spec){.oc = 64, .kh = 7, .stride = 2, .pad = 3, .bias = true});
    struct rfx_pool_attr pool = rfx_square_pool(3, 2, 0);
    pool.pads = rfx_builder_same_pads(b, x, 3, 3, 2, 1);
    x = rfx_builder_max_pool(b, "pool1", x, pool);
    for (int block = 0; block < 4; block++)
        for (int i = 0; i < config->blocks[block]; i++)
            x = bottleneck(b, x, rfx_name("block%d/unit_%d", block + 1, i + 1).text,
                           (int64_t)64 << block,
                           i == config->blocks[block] - 1 && block < 3 ? 2 : 1);
    x = bn_relu(b, x, "postnorm", 1.0f);
    rfx_builder_classify(b, x, "pool5", "flatten", "logits");
}
