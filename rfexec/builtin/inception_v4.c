/* Inception-v4 (Szegedy et al. 2017, figures 3 to 9) in the form and under the names of TF-slim.
 * Padding: VALID in the stem and wherever a layer strides, SAME elsewhere; average pools do not
 * count their padding. 1000 classes. A concatenation within a branch is merged with that of the
 * module. */
#include "rfexec/builtin/builtin_networks.h"

/* One convolution of a branch. Its padding is SAME when the stride is 1, otherwise VALID. */
struct part {
    int64_t oc, kh, kw, stride;
};

enum { VALID = 0 }; /* as part.stride: a stride of 1 with VALID padding */

static int conv(struct rfx_builder *b, int x, const char *name, struct part p) {
    struct rfx_conv_spec spec = {.oc = p.oc,
                                 .kh = p.kh,
                                 .kw = p.kw,
                                 .stride = p.stride == VALID ? 1 : p.stride,
                                 .same = p.stride == 1};
    return rfx_builder_conv_bn_act(b, x, name, rfx_name("%s/BatchNorm", name).text,
                                   rfx_name("%s/relu", name).text, rfx_act_relu(), spec);
}

/* Adds n successive convolutions, called <module>/Branch_<index>/conv<i>. */
static int branch(struct rfx_builder *b, int x, const char *module, int index,
                  const struct part *parts, int n) {
    for (int i = 0; i < n; i++)
        x = conv(b, x, rfx_name("%s/Branch_%d/conv%d", module, index, i).text, parts[i]);
    return x;
}

#define BRANCH(b, x, module, index, ...)                            \
    branch(b, x, module, index, (const struct part[]){__VA_ARGS__}, \
           (int)(sizeof(const struct part[]){__VA_ARGS__} / sizeof(struct part)))

static int max_pool(struct rfx_builder *b, int x, const char *module, int index) {
    return rfx_builder_max_pool(b, rfx_name("%s/Branch_%d/MaxPool", module, index).text, x,
                                rfx_square_pool(3, 2, 0));
}

/* Adds a branch of a 3x3 average pool and a 1x1 convolution. */
static int avg_branch(struct rfx_builder *b, int x, const char *module, int64_t oc) {
    x = rfx_builder_avg_pool_inside(b, rfx_name("%s/Branch_3/AvgPool", module).text, x,
                                    rfx_square_pool(3, 1, 1));
    return BRANCH(b, x, module, 3, {oc, 1, 1, 1});
}

static int join(struct rfx_builder *b, const char *module, const int *branches, int n) {
    return rfx_builder_concat(b, module, branches, n);
}

/* Adds the stem of figure 3: 299x299x3 -> 35x35x384. */
static int stem(struct rfx_builder *b, int x) {
    int parts[2];
    x = conv(b, x, "Conv2d_1a_3x3", (struct part){32, 3, 3, 2});
    x = conv(b, x, "Conv2d_2a_3x3", (struct part){32, 3, 3, VALID});
    x = conv(b, x, "Conv2d_2b_3x3", (struct part){64, 3, 3, 1});
    parts[0] = max_pool(b, x, "Mixed_3a", 0);
    parts[1] = BRANCH(b, x, "Mixed_3a", 1, {96, 3, 3, 2});
    x = join(b, "Mixed_3a", parts, 2);
    parts[0] = BRANCH(b, x, "Mixed_4a", 0, {64, 1, 1, 1}, {96, 3, 3, VALID});
    parts[1] =
        BRANCH(b, x, "Mixed_4a", 1, {64, 1, 1, 1}, {64, 1, 7, 1}, {64, 7, 1, 1}, {96, 3, 3, VALID});
    x = join(b, "Mixed_4a", parts, 2);
    parts[0] = BRANCH(b, x, "Mixed_5a", 0, {192, 3, 3, 2});
    parts[1] = max_pool(b, x, "Mixed_5a", 1);
    return join(b, "Mixed_5a", parts, 2);
}

static int inception_a(struct rfx_builder *b, int x, const char *m) {
    int parts[4];
    parts[0] = BRANCH(b, x, m, 0, {96, 1, 1, 1});
    parts[1] = BRANCH(b, x, m, 1, {64, 1, 1, 1}, {96, 3, 3, 1});
    parts[2] = BRANCH(b, x, m, 2, {64, 1, 1, 1}, {96, 3, 3, 1}, {96, 3, 3, 1});
    parts[3] = avg_branch(b, x, m, 96);
    return join(b, m, parts, 4);
}

static int reduction_a(struct rfx_builder *b, int x, const char *m) {
    int parts[3];
    parts[0] = BRANCH(b, x, m, 0, {384, 3, 3, 2});
    parts[1] = BRANCH(b, x, m, 1, {192, 1, 1, 1}, {224, 3, 3, 1}, {256, 3, 3, 2});
    parts[2] = max_pool(b, x, m, 2);
    return join(b, m, parts, 3);
}

static int inception_b(struct rfx_builder *b, int x, const char *m) {
    int parts[4];
    parts[0] = BRANCH(b, x, m, 0, {384, 1, 1, 1});
    parts[1] = BRANCH(b, x, m, 1, {192, 1, 1, 1}, {224, 1, 7, 1}, {256, 7, 1, 1});
    parts[2] = BRANCH(b, x, m, 2, {192, 1, 1, 1}, {192, 7, 1, 1}, {224, 1, 7, 1}, {224, 7, 1, 1},
                      {256, 1, 7, 1});
    parts[3] = avg_branch(b, x, m, 128);
    return join(b, m, parts, 4);
}

static int reduction_b(struct rfx_builder *b, int x, const char *m) {
    int parts[3];
    parts[0] = BRANCH(b, x, m, 0, {192, 1, 1, 1}, {192, 3, 3, 2});
    parts[1] = BRANCH(b, x, m, 1, {256, 1, 1, 1}, {256, 1, 7, 1}, {320, 7, 1, 1}, {320, 3, 3, 2});
    parts[2] = max_pool(b, x, m, 2);
    return join(b, m, parts, 3);
}

static int inception_c(struct rfx_builder *b, int x, const char *m) {
    int parts[6];
    parts[0] = BRANCH(b, x, m, 0, {256, 1, 1, 1});
    int fork = BRANCH(b, x, m, 1, {384, 1, 1, 1});
    parts[1] = conv(b, fork, rfx_name("%s/Branch_1/1x3", m).text, (struct part){256, 1, 3, 1});
    parts[2] = conv(b, fork, rfx_name("%s/Branch_1/3x1", m).text, (struct part){256, 3, 1, 1});
    fork = BRANCH(b, x, m, 2, {384, 1, 1, 1}, {448, 3, 1, 1}, {512, 1, 3, 1});
    parts[3] = conv(b, fork, rfx_name("%s/Branch_2/1x3", m).text, (struct part){256, 1, 3, 1});
    parts[4] = conv(b, fork, rfx_name("%s/Branch_2/3x1", m).text, (struct part){256, 3, 1, 1});
    parts[5] = avg_branch(b, x, m, 256);
    return join(b, m, parts, 6);
}

void rfx_builtin_inception_v4(struct rfx_builder *b, int x,
                              const struct rfx_builtin_config *config) {
    (void)config;
    x = stem(b, x);
    for (int i = 0; i < 4; i++) x = inception_a(b, x, rfx_name("Mixed_5%c", 'b' + i).text);
    x = reduction_a(b, x, "Mixed_6a");
    for (int i = 0; i < 7; i++) x = inception_b(b, x, rfx_name("Mixed_6%c", 'b' + i).text);
    x = reduction_b(b, x, "Mixed_7a");
    for (int i = 0; i < 3; i++) x = inception_c(b, x, rfx_name("Mixed_7%c", 'b' + i).text);
    rfx_builder_classify(b, x, "AvgPool_1a", "PreLogitsFlatten", "Logits");
}
