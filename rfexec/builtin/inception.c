/* Inception-v3 as torchvision builds it without its auxiliary classifier (Szegedy et al. 2016).
 * Branches are tables of convolutions; average pools count their padding, as torch's do.
 *
 * Two things are as in TensorFlow Lite's file, because they save memory. A concatenation within a
 * branch is merged with that of the module. The branch with the largest maps runs last, when no
 * other branch needs the module's input. */
#include "rfexec/builtin/builtin_networks.h"

/* One convolution of a branch; pads keep the size unless it strides. */
struct part {
    const char *name;
    int64_t oc, kh, kw, stride;
};

static int basic_conv(struct rfx_builder *b, int x, const char *name, struct rfx_conv_spec spec) {
    return rfx_builder_conv_bn_act(b, x, rfx_name("%s.conv", name).text,
                                   rfx_name("%s.bn", name).text, rfx_name("%s.relu", name).text,
                                   rfx_act_relu(), spec);
}

static int branch(struct rfx_builder *b, int x, const char *module, const struct part *parts,
                  int n_parts) {
    for (int i = 0; i < n_parts; i++) {
        const struct part *p = &parts[i];
        bool same = p->stride < 2;
        x = basic_conv(b, x, rfx_name("%s.%s", module, p->name).text,
                       (struct rfx_conv_spec){.oc = p->oc,
                                              .kh = p->kh,
                                              .kw = p->kw,
                                              .stride = p->stride,
                                              .pad_h = same ? p->kh / 2 : 0,
                                              .pad_w = same ? p->kw / 2 : 0});
    }
    return x;
}

#define BRANCH(b, x, module, ...)                            \
    branch(b, x, module, (const struct part[]){__VA_ARGS__}, \
           (int)(sizeof(const struct part[]){__VA_ARGS__} / sizeof(struct part)))

static int pool_branch(struct rfx_builder *b, int x, const char *module, int64_t oc) {
    x = rfx_builder_avg_pool(b, rfx_name("%s.avg_pool", module).text, x, rfx_square_pool(3, 1, 1));
    return BRANCH(b, x, module, {"branch_pool", oc, 1, 1, 1});
}

static int half_pool(struct rfx_builder *b, int x, const char *name) {
    return rfx_builder_max_pool(b, name, x, rfx_square_pool(3, 2, 0));
}

static int join(struct rfx_builder *b, const char *module, const int *branches, int count) {
    int x = rfx_builder_concat(b, rfx_name("%s.cat", module).text, branches, count);
    rfx_builder_alias(b, x, module);
    return x;
}

static int inception_a(struct rfx_builder *b, int x, const char *m, int64_t pool_channels) {
    int branches[4];
    branches[0] = BRANCH(b, x, m, {"branch1x1", 64, 1, 1, 1});
    branches[1] = BRANCH(b, x, m, {"branch5x5_1", 48, 1, 1, 1}, {"branch5x5_2", 64, 5, 5, 1});
    branches[3] = pool_branch(b, x, m, pool_channels);
    branches[2] = BRANCH(b, x, m, {"branch3x3dbl_1", 64, 1, 1, 1}, {"branch3x3dbl_2", 96, 3, 3, 1},
                         {"branch3x3dbl_3", 96, 3, 3, 1});
    return join(b, m, branches, 4);
}

static int inception_b(struct rfx_builder *b, int x, const char *m) {
    int branches[3];
    branches[0] = BRANCH(b, x, m, {"branch3x3", 384, 3, 3, 2});
    branches[2] = half_pool(b, x, rfx_name("%s.max_pool", m).text);
    branches[1] = BRANCH(b, x, m, {"branch3x3dbl_1", 64, 1, 1, 1}, {"branch3x3dbl_2", 96, 3, 3, 1},
                         {"branch3x3dbl_3", 96, 3, 3, 2});
    return join(b, m, branches, 3);
}

static int inception_c(struct rfx_builder *b, int x, const char *m, int64_t c7) {
    int branches[4];
    branches[0] = BRANCH(b, x, m, {"branch1x1", 192, 1, 1, 1});
    branches[1] = BRANCH(b, x, m, {"branch7x7_1", c7, 1, 1, 1}, {"branch7x7_2", c7, 1, 7, 1},
                         {"branch7x7_3", 192, 7, 1, 1});
    branches[3] = pool_branch(b, x, m, 192);
    branches[2] = BRANCH(b, x, m, {"branch7x7dbl_1", c7, 1, 1, 1}, {"branch7x7dbl_2", c7, 7, 1, 1},
                         {"branch7x7dbl_3", c7, 1, 7, 1}, {"branch7x7dbl_4", c7, 7, 1, 1},
                         {"branch7x7dbl_5", 192, 1, 7, 1});
    return join(b, m, branches, 4);
}

static int inception_d(struct rfx_builder *b, int x, const char *m) {
    int branches[3];
    branches[0] = BRANCH(b, x, m, {"branch3x3_1", 192, 1, 1, 1}, {"branch3x3_2", 320, 3, 3, 2});
    branches[2] = half_pool(b, x, rfx_name("%s.max_pool", m).text);
    branches[1] = BRANCH(b, x, m, {"branch7x7x3_1", 192, 1, 1, 1}, {"branch7x7x3_2", 192, 1, 7, 1},
                         {"branch7x7x3_3", 192, 7, 1, 1}, {"branch7x7x3_4", 192, 3, 3, 2});
    return join(b, m, branches, 3);
}

/* Adds a 1x3 and a 3x1 convolution of the same input, called <stem>a and <stem>b. */
static void cross(struct rfx_builder *b, int x, const char *m, const char *stem, int *parts) {
    parts[0] = BRANCH(b, x, m, {rfx_name("%sa", stem).text, 384, 1, 3, 1});
    parts[1] = BRANCH(b, x, m, {rfx_name("%sb", stem).text, 384, 3, 1, 1});
}

static int inception_e(struct rfx_builder *b, int x, const char *m) {
    int parts[6];
    parts[0] = BRANCH(b, x, m, {"branch1x1", 320, 1, 1, 1});
    int fork = BRANCH(b, x, m, {"branch3x3_1", 384, 1, 1, 1});
    cross(b, fork, m, "branch3x3_2", &parts[1]);
    parts[5] = pool_branch(b, x, m, 192);
    fork = BRANCH(b, x, m, {"branch3x3dbl_1", 448, 1, 1, 1}, {"branch3x3dbl_2", 384, 3, 3, 1});
    cross(b, fork, m, "branch3x3dbl_3", &parts[3]);
    return join(b, m, parts, 6);
}

void rfx_builtin_inception_v3(struct rfx_builder *b, int x,
                              const struct rfx_builtin_config *config) {
    (void)config;
    x = basic_conv(b, x, "Conv2d_1a_3x3", (struct rfx_conv_spec){.oc = 32, .kh = 3, .stride = 2});
    x = basic_conv(b, x, "Conv2d_2a_3x3", (struct rfx_conv_spec){.oc = 32, .kh = 3});
    x = basic_conv(b, x, "Conv2d_2b_3x3", rfx_spec(64, 3));
    x = half_pool(b, x, "maxpool1");
    x = basic_conv(b, x, "Conv2d_3b_1x1", rfx_spec(80, 1));
    x = basic_conv(b, x, "Conv2d_4a_3x3", (struct rfx_conv_spec){.oc = 192, .kh = 3});
    x = half_pool(b, x, "maxpool2");
    x = inception_a(b, x, "Mixed_5b", 32);
    x = inception_a(b, x, "Mixed_5c", 64);
    x = inception_a(b, x, "Mixed_5d", 64);
    x = inception_b(b, x, "Mixed_6a");
    x = inception_c(b, x, "Mixed_6b", 128);
    x = inception_c(b, x, "Mixed_6c", 160);
    x = inception_c(b, x, "Mixed_6d", 160);
    x = inception_c(b, x, "Mixed_6e", 192);
    x = inception_d(b, x, "Mixed_7a");
    x = inception_e(b, x, "Mixed_7b");
    x = inception_e(b, x, "Mixed_7c");
    rfx_builder_classify(b, x, "avgpool", "flatten", "fc");
}
