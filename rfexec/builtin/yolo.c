/* Detectors.
 *
 * YOLOv1 (Redmon et al. 2016, figure 3): 24 convolutions with biases and leaky rectifiers of slope
 * 0.1, two fully connected layers, 7 x 7 cells with 2 boxes and 20 classes each. It is made for
 * images of 448 x 448; for other sizes an adaptive average pool makes the last map 7 x 7.
 *
 * YOLOv8 nano (Ultralytics, yolov8n.yaml; 3,157,200 parameters), with its own layer names. The
 * backbone has C2f blocks and a pyramid pooling. The neck enlarges maps twice, then shrinks them
 * twice. The output of the three heads has the form of Ultralytics' exporter: (1, 4 + 80, cells),
 * with boxes as centre and size in pixels. Images are padded with zeros to multiples of 32. */
#include "rfexec/builtin/builtin_networks.h"

enum { CELLS = 7, MAX_POOL = 0 };

/* Channels, kernel and stride of each convolution. Channels MAX_POOL: a max pool. */
static const struct {
    int64_t channels, k, stride;
} layers[] = {{64, 7, 2},   {MAX_POOL, 2, 2}, {192, 3, 1}, {MAX_POOL, 2, 2}, {128, 1, 1},
              {256, 3, 1},  {256, 1, 1},      {512, 3, 1}, {MAX_POOL, 2, 2}, {256, 1, 1},
              {512, 3, 1},  {256, 1, 1},      {512, 3, 1}, {256, 1, 1},      {512, 3, 1},
              {256, 1, 1},  {512, 3, 1},      {512, 1, 1}, {1024, 3, 1},     {MAX_POOL, 2, 2},
              {512, 1, 1},  {1024, 3, 1},     {512, 1, 1}, {1024, 3, 1},     {1024, 3, 1},
              {1024, 3, 2}, {1024, 3, 1},     {1024, 3, 1}};

void rfx_builtin_yolo_v1(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    (void)config;
    int convs = 0, pools = 0;
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        int64_t k = layers[i].k;
        if (layers[i].channels == MAX_POOL) {
            struct rfx_pool_attr pool = rfx_square_pool(k, k, 0);
            x = rfx_builder_max_pool(b, rfx_name("pool%d", ++pools).text, x, pool);
            continue;
        }
        struct rfx_name name = rfx_name("conv%d", ++convs);
        x = rfx_builder_conv(b, name.text, x,
                             (struct rfx_conv_spec){.oc = layers[i].channels,
                                                    .kh = k,
                                                    .stride = layers[i].stride,
                                                    .pad = k / 2,
                                                    .bias = true});
        x = rfx_builder_act(b, rfx_name("%s.leaky", name.text).text, x, rfx_act_leaky_relu(0.1f));
    }
    if (b->status == RFX_OK &&
        (b->graph->nodes[x].out.h != CELLS || b->graph->nodes[x].out.w != CELLS))
        x = rfx_builder_adaptive_avg(b, "cells", x, CELLS, CELLS);
    x = rfx_builder_flatten(b, "flatten", x);
    x = rfx_builder_linear(b, "fc1", x, 4096);
    x = rfx_builder_act(b, "fc1.leaky", x, rfx_act_leaky_relu(0.1f));
    x = rfx_builder_linear(b, "fc2", x, CELLS * CELLS * 30);
    rfx_builder_output(b, x, "output");
}

enum {
    LEVELS = 3,
    MULTIPLE = 32,
    BINS = 16, /* of the distribution of a distance */
    SIDES = 4,
    BOX = SIDES * BINS,
    CLASSES = 80,
    CHANNELS = BOX + CLASSES
};

static const int64_t strides[LEVELS] = {8, 16, 32};

static int conv_of(struct rfx_builder *b, int x, const char *name, int64_t oc, int64_t k,
                   int64_t stride) {
    struct rfx_conv_spec spec = rfx_spec_strided(oc, k, stride);
    return rfx_builder_conv_bn_act_named(b, x, name, rfx_suffixes_words, rfx_act_silu(), spec);
}

/* Adds two 3x3 convolutions. If `shortcut`, their input is added to the result. */
static int bottleneck(struct rfx_builder *b, int in, const char *name, bool shortcut) {
    int64_t c = rfx_builder_channels(b, in);
    int x = conv_of(b, in, rfx_name("%s.cv1", name).text, c, 3, 1);
    x = conv_of(b, x, rfx_name("%s.cv2", name).text, c, 3, 1);
    return shortcut ? rfx_builder_add(b, rfx_name("%s.add", name).text, in, x) : x;
}

/* Adds a C2f block: half of the channels goes through n bottlenecks, and the results of all
 * bottlenecks are concatenated. */
static int c2f(struct rfx_builder *b, int x, const char *name, int64_t oc, int n, bool shortcut) {
    int64_t half = oc / 2;
    int kept[4];
    x = conv_of(b, x, rfx_name("%s.cv1", name).text, oc, 1, 1);
    kept[0] = rfx_builder_pick_channels(b, rfx_name("%s.first", name).text, x, 0, half);
    kept[1] = rfx_builder_pick_channels(b, rfx_name("%s.second", name).text, x, half, half);
    for (int i = 0; i < n; i++)
        kept[2 + i] = bottleneck(b, kept[1 + i], rfx_name("%s.m.%d", name, i).text, shortcut);
    x = rfx_builder_concat(b, rfx_name("%s.concat", name).text, kept, 2 + n);
    x = conv_of(b, x, rfx_name("%s.cv2", name).text, oc, 1, 1);
    rfx_builder_alias(b, x, name);
    return x;
}

/* Adds three 5x5 max pools, one after the other, and concatenates their results. */
static int pyramid_pool(struct rfx_builder *b, int x, const char *name, int64_t oc) {
    struct rfx_pool_attr pool = rfx_square_pool(5, 1, 2);
    int kept[4];
    kept[0] = conv_of(b, x, rfx_name("%s.cv1", name).text, oc / 2, 1, 1);
    for (int i = 0; i < 3; i++)
        kept[1 + i] = rfx_builder_max_pool(b, rfx_name("%s.m.%d", name, i).text, kept[i], pool);
    x = rfx_builder_concat(b, rfx_name("%s.concat", name).text, kept, 4);
    x = conv_of(b, x, rfx_name("%s.cv2", name).text, oc, 1, 1);
    rfx_builder_alias(b, x, name);
    return x;
}

static int join(struct rfx_builder *b, int x, int other, const char *name) {
    int both[2] = {x, other};
    return rfx_builder_concat(b, name, both, 2);
}

/* Adds the head of one level: channels for the distributions of four distances, then for the scores
 * of the classes. */
static int level(struct rfx_builder *b, int in, int i) {
    static const char *const branches[2] = {"cv2", "cv3"};
    static const int64_t widths[2] = {64, 80}, answers[2] = {BOX, CLASSES};
    int made[2];
    for (int k = 0; k < 2; k++) {
        struct rfx_name name = rfx_name("model.22.%s.%d", branches[k], i);
        struct rfx_conv_spec last = rfx_spec_biased(answers[k], 1);
        int x = conv_of(b, in, rfx_name("%s.0", name.text).text, widths[k], 3, 1);
        x = conv_of(b, x, rfx_name("%s.1", name.text).text, widths[k], 3, 1);
        made[k] = rfx_builder_conv(b, rfx_name("%s.2", name.text).text, x, last);
    }
    return join(b, made[0], made[1], rfx_name("model.22.concat.%d", i).text);
}

/* Adds a node on whole tensors. The result is assumed to have the mean and the square mean of the
 * first input. */
static int tensor_node(struct rfx_builder *b, const char *name, struct rfx_node node, int left,
                       int right) {
    struct rfx_signal signal = rfx_builder_signal(b, left);
    int in[2] = {left, right};
    node.name = name;
    node.in = in;
    node.n_in = right < 0 ? 1 : 2;
    return rfx_builder_add_node(b, &node, signal.mean, signal.square);
}

static int reshape(struct rfx_builder *b, const char *name, int x, struct rfx_shape shape) {
    struct rfx_node node = {.op = RFX_OP_RESHAPE, .attr.reshape.shape = shape};
    return tensor_node(b, name, node, x, -1);
}

/* Returns elements [first, first + count) along axis 1 of (1, channels, cells). */
static int slice(struct rfx_builder *b, const char *name, int x, int64_t first, int64_t count) {
    if (b->status != RFX_OK) return -1;
    struct rfx_node node = {.op = RFX_OP_PLAIN_SLICE};
    node.attr.slice = (struct rfx_slice_attr){
        .starts = {0, first, 0}, .steps = {1, 1, 1}, .shape = b->graph->nodes[x].out.shape};
    node.attr.slice.shape.dims[1] = count;
    return tensor_node(b, name, node, x, -1);
}

static int binary(struct rfx_builder *b, const char *name, enum rfx_binary_kind kind, int left,
                  int right) {
    struct rfx_node node = {.op = RFX_OP_PLAIN_BINARY, .attr.binary.kind = kind};
    return tensor_node(b, name, node, left, right);
}

static int concat(struct rfx_builder *b, const char *name, const int *in, int n, int axis) {
    struct rfx_node node = {.op = RFX_OP_PLAIN_CONCAT, .name = name, .in = in, .n_in = n};
    node.attr.concat.axis = axis;
    return rfx_builder_add_node(b, &node, 0.0f, 1.0f);
}

static int add_owned(struct rfx_builder *b, struct rfx_shape shape, float **values) {
    struct rfx_weight weight = {.source = RFX_WEIGHT_OWNED, .shape = shape, .elems = 1};
    int index;
    if (b->status != RFX_OK) return -1;
    for (int i = 0; i < shape.rank; i++) weight.elems *= shape.dims[i];
    enum rfx_status status = rfx_graph_add_weight(b->graph, &weight, &index, b->err);
    if (status != RFX_OK) return rfx_builder_fail(b, status);
    *values = rfx_graph_owned_weight(b->graph, index);
    return index;
}

/* Adds a constant tensor (1, rows, cells). With two rows it holds the centre (column, row) of each
 * cell, in cells of the cell's level; with one row, the stride of the level. */
static int cells_of(struct rfx_builder *b, const char *name, const int *levels, int64_t rows,
                    int64_t n) {
    float *values = NULL;
    struct rfx_node node = {.op = RFX_OP_CONST_PLAIN, .name = name};
    node.attr.constant.shape = (struct rfx_shape){3, {1, rows, n}};
    node.attr.constant.weight = add_owned(b, node.attr.constant.shape, &values);
    if (b->status != RFX_OK) return -1;
    for (int i = 0; i < LEVELS; i++) {
        const struct rfx_tensor *t = &b->graph->nodes[levels[i]].out;
        for (int64_t p = 0; p < t->h * t->w; p++, values++) {
            values[0] = rows == 1 ? (float)strides[i] : (float)(p % t->w) + 0.5f;
            if (rows == 2) values[n] = (float)(p / t->w) + 0.5f;
        }
    }
    return rfx_builder_add_node(b, &node, 0.0f, 1.0f);
}

/* Returns the means of four distributions: (1, 64, cells) -> (1, 4, cells). */
static int distances(struct rfx_builder *b, int x, int64_t n) {
    struct rfx_node turn = {.op = RFX_OP_TRANSPOSE, .attr.transpose.perm = {0, 2, 1, 3}};
    struct rfx_node softmax = {.op = RFX_OP_PLAIN_SOFTMAX, .attr.softmax.axis = 1};
    struct rfx_node conv = {.op = RFX_OP_CONV};
    struct rfx_shape weight = {4, {1, BINS, 1, 1}};
    float *values = NULL;
    x = reshape(b, "model.22.dfl.bins", x, (struct rfx_shape){4, {1, SIDES, BINS, n}});
    x = tensor_node(b, "model.22.dfl.turn", turn, x, -1);
    x = tensor_node(b, "model.22.dfl.softmax", softmax, x, -1);
    x = tensor_node(b, "model.22.dfl.map", (struct rfx_node){.op = RFX_OP_TO_NHWC}, x, -1);
    conv.attr.conv = rfx_conv_pointwise(1);
    conv.attr.conv.weight = add_owned(b, weight, &values);
    for (int i = 0; i < BINS && b->status == RFX_OK; i++) values[i] = (float)i;
    x = tensor_node(b, "model.22.dfl.conv", conv, x, -1);
    x = tensor_node(b, "model.22.dfl.nchw", (struct rfx_node){.op = RFX_OP_TO_PLAIN}, x, -1);
    return reshape(b, "model.22.dfl", x, (struct rfx_shape){3, {1, SIDES, n}});
}

/* Converts distances from the centre of each cell to boxes: centre and size in pixels of the image.
 */
static int boxes(struct rfx_builder *b, int x, const int *levels, int64_t n) {
    int anchors = cells_of(b, "model.22.anchors", levels, 2, n);
    int scales = cells_of(b, "model.22.strides", levels, 1, n);
    int two = rfx_builder_number(b, "model.22.two", 2.0f), parts[2];
    int before = slice(b, "model.22.lt", x, 0, 2), after = slice(b, "model.22.rb", x, 2, 2);
    int first = binary(b, "model.22.x1y1", RFX_BINARY_SUB, anchors, before);
    int second = binary(b, "model.22.x2y2", RFX_BINARY_ADD, anchors, after);
    int sum = binary(b, "model.22.sum", RFX_BINARY_ADD, first, second);
    parts[0] = binary(b, "model.22.centre", RFX_BINARY_DIV, sum, two);
    parts[1] = binary(b, "model.22.size", RFX_BINARY_SUB, second, first);
    x = concat(b, "model.22.cells", parts, 2, 1);
    return binary(b, "model.22.boxes", RFX_BINARY_MUL, x, scales);
}

static void head(struct rfx_builder *b, const int *levels) {
    int flat[LEVELS], parts[2];
    int64_t n = 0;
    for (int i = 0; i < LEVELS && b->status == RFX_OK; i++) {
        const struct rfx_tensor *t = &b->graph->nodes[levels[i]].out;
        struct rfx_shape shape = {3, {1, CHANNELS, t->h * t->w}};
        n += t->h * t->w;
        int x = tensor_node(b, rfx_name("model.22.nchw.%d", i).text,
                            (struct rfx_node){.op = RFX_OP_TO_PLAIN}, levels[i], -1);
        flat[i] = reshape(b, rfx_name("model.22.flat.%d", i).text, x, shape);
    }
    if (b->status != RFX_OK) return;
    int x = concat(b, "model.22.levels", flat, LEVELS, 2);
    int box = slice(b, "model.22.box", x, 0, BOX);
    int cls = slice(b, "model.22.cls", x, BOX, CLASSES);
    parts[0] = boxes(b, distances(b, box, n), levels, n);
    parts[1] = rfx_builder_act(b, "model.22.sigmoid", cls, rfx_act_sigmoid());
    rfx_builder_output(b, concat(b, "model.22", parts, 2, 1), "output0");
}

void rfx_builtin_yolo_v8(struct rfx_builder *b, int x, const struct rfx_builtin_config *config) {
    (void)config;
    x = rfx_builder_pad_to(b, "padded", x, MULTIPLE);
    x = conv_of(b, x, "model.0", 16, 3, 2);
    x = conv_of(b, x, "model.1", 32, 3, 2);
    x = c2f(b, x, "model.2", 32, 1, true);
    x = conv_of(b, x, "model.3", 64, 3, 2);
    int p3 = c2f(b, x, "model.4", 64, 2, true);
    x = conv_of(b, p3, "model.5", 128, 3, 2);
    int p4 = c2f(b, x, "model.6", 128, 2, true);
    x = conv_of(b, p4, "model.7", 256, 3, 2);
    x = c2f(b, x, "model.8", 256, 1, true);
    int p5 = pyramid_pool(b, x, "model.9", 256);
    x = join(b, rfx_builder_enlarge(b, "model.10", p5, 2), p4, "model.11");
    int up = c2f(b, x, "model.12", 128, 1, false), levels[LEVELS];
    x = join(b, rfx_builder_enlarge(b, "model.13", up, 2), p3, "model.14");
    x = c2f(b, x, "model.15", 64, 1, false);
    levels[0] = level(b, x, 0);
    x = join(b, conv_of(b, x, "model.16", 64, 3, 2), up, "model.17");
    x = c2f(b, x, "model.18", 128, 1, false);
    levels[1] = level(b, x, 1);
    x = join(b, conv_of(b, x, "model.19", 128, 3, 2), p5, "model.20");
    x = c2f(b, x, "model.21", 256, 1, false);
    levels[2] = level(b, x, 2);
    head(b, levels);
}
