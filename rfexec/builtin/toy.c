/* The networks of paper 003: that of table 1 and the parametric toy of figure 7. The paper does not
 * mention biases, batch norms or activations; these networks have biases and rectifiers. Table 1
 * has 3x3 pools with stride 2; here they have padding 1, so that they halve the map as the table
 * states. The toy has 2x2 pools with stride 2, as section 3.3 states: "the kernel size and stride
 * of both max-pooling layers are 2". */
#include "rfexec/builtin/builtin_networks.h"

static int conv_relu(struct rfx_builder *b, int x, const char *name, struct rfx_conv_spec spec) {
    spec.bias = true;
    x = rfx_builder_conv(b, name, x, spec);
    return rfx_builder_relu(b, rfx_name("%s.relu", name).text, x);
}

static int halve(struct rfx_builder *b, int x, int index, int64_t kernel) {
    int64_t pad = (kernel - 1) / 2;
    return rfx_builder_max_pool(b, rfx_name("maxpool%d", index).text, x,
                                rfx_square_pool(kernel, 2, pad));
}

void rfx_builtin_table1(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    (void)config;
    for (int i = 0; i < 6; i++) {
        if (i == 2 || i == 4) x = halve(b, x, i / 2, 3);
        x = conv_relu(b, x, rfx_name("conv%d", i + 1).text, rfx_spec((int64_t)32 << i / 2, 3));
    }
    rfx_builder_output(b, x, "output");
}

/* Adds a block of `convs` 3x3 convolutions. The block's input is added to the last one before its
 * rectifier. */
static int toy_block(struct rfx_builder *b, int in, const char *name, int convs) {
    int64_t c = rfx_builder_channels(b, in);
    int x = in;
    for (int i = 0; i + 1 < convs; i++)
        x = conv_relu(b, x, rfx_name("%s.conv%d", name, i + 1).text, rfx_spec(c, 3));
    x = rfx_builder_conv(b, rfx_name("%s.conv%d", name, convs).text, x, rfx_spec_biased(c, 3));
    x = rfx_builder_add(b, rfx_name("%s.add", name).text, x, in);
    x = rfx_builder_relu(b, rfx_name("%s.relu", name).text, x);
    rfx_builder_alias(b, x, name);
    return x;
}

void rfx_builtin_toy(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    x = conv_relu(b, x, "stem", rfx_spec(config->toy.channels, 3));
    for (int m = 0; m < config->toy.modules; m++) {
        struct rfx_name module = rfx_name("module%d", m + 1);
        if (m > 0) x = halve(b, x, m, 2);
        for (int i = 0; i < config->toy.blocks; i++)
            x = toy_block(b, x, rfx_name("%s.block%d", module.text, i + 1).text, config->toy.convs);
        x = conv_relu(b, x, rfx_name("%s.widen", module.text).text,
                      rfx_spec(2 * rfx_builder_channels(b, x), 1));
        rfx_builder_alias(b, x, module.text);
    }
    rfx_builder_output(b, x, "output");
}
