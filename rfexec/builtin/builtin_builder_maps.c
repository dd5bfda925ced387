/* The layers of the vocabulary that move numbers instead of making them: TensorFlow's padding and
 * pools, enlarging, channels of zeros, rows of a detector's answer; see builtin_builder.h. */
#include <math.h>

#include "layers/core/checked.h"
#include "rfexec/builtin/builtin_builder.h"

static void same_axis(int64_t size, int64_t k, int64_t stride, int64_t dilation, int64_t *before,
                      int64_t *after) {
    int64_t window = (k - 1) * dilation + 1;
    int64_t total = (rfx_ceil_div(size, stride) - 1) * stride + window - size;
    if (total < 0) total = 0;
    *before = total / 2;
    *after = total - total / 2;
}

struct rfx_pads rfx_builder_same_pads(const struct rfx_builder *b, int in, int64_t kh, int64_t kw,
                                      int64_t stride, int64_t dilation) {
    struct rfx_pads pads = {0, 0, 0, 0};
    if (b->status != RFX_OK) return pads;
    const struct rfx_tensor *map = &b->graph->nodes[in].out;
    same_axis(map->h, kh, stride, dilation, &pads.top, &pads.bottom);
    same_axis(map->w, kw, stride, dilation, &pads.left, &pads.right);
    return pads;
}

static int add_like(struct rfx_builder *b, const struct rfx_node *node, int like) {
    struct rfx_signal signal = rfx_builder_signal(b, like);
    return rfx_builder_add_node(b, node, signal.mean, signal.square);
}

int rfx_builder_avg_pool_inside(struct rfx_builder *b, const char *name, int in,
                                struct rfx_pool_attr pool) {
    struct rfx_node node = {.op = RFX_OP_POOL_AVG, .name = name, .n_in = 1, .in = &in};
    node.attr.pool = pool;
    node.attr.pool.dh = 1;
    node.attr.pool.dw = 1;
    return add_like(b, &node, in);
}

int rfx_builder_resize(struct rfx_builder *b, const char *name, int in, int64_t oh, int64_t ow) {
    if (b->status != RFX_OK) return -1;
    const struct rfx_tensor *map = &b->graph->nodes[in].out;
    struct rfx_node node = {.op = RFX_OP_RESIZE, .name = name, .n_in = 1, .in = &in};
    node.attr.resize = (struct rfx_resize_attr){.mode = RFX_RESIZE_LINEAR,
                                                .coord = RFX_COORD_ALIGN_CORNERS,
                                                .nearest = RFX_NEAREST_FLOOR,
                                                .scale_h = (float)oh / (float)map->h,
                                                .scale_w = (float)ow / (float)map->w,
                                                .oh = oh,
                                                .ow = ow};
    return add_like(b, &node, in);
}

int rfx_builder_enlarge(struct rfx_builder *b, const char *name, int in, int64_t times) {
    if (b->status != RFX_OK) return -1;
    const struct rfx_tensor *map = &b->graph->nodes[in].out;
    struct rfx_node node = {.op = RFX_OP_RESIZE, .name = name, .n_in = 1, .in = &in};
    node.attr.resize = (struct rfx_resize_attr){.mode = RFX_RESIZE_NEAREST,
                                                .coord = RFX_COORD_ASYMMETRIC,
                                                .nearest = RFX_NEAREST_FLOOR,
                                                .scale_h = (float)times,
                                                .scale_w = (float)times,
                                                .oh = times * map->h,
                                                .ow = times * map->w};
    return add_like(b, &node, in);
}

int rfx_builder_pixel_shuffle(struct rfx_builder *b, const char *name, int in, int64_t block) {
    struct rfx_node node = {.op = RFX_OP_DEPTH_TO_SPACE, .name = name, .n_in = 1, .in = &in};
    node.attr.depth.block = block;
    node.attr.depth.column_major = true;
    return add_like(b, &node, in);
}

/* Channels `first` and so on of `in`, then zeros, `count` in all. */
static int select_channels(struct rfx_builder *b, const char *name, int in, int64_t first,
                           int64_t count) {
    if (b->status != RFX_OK) return -1;
    int64_t given = rfx_builder_channels(b, in) - first;
    int64_t *map = rfx_memory_calloc(b->graph->mem, (size_t)count, sizeof *map);
    if (map == NULL)
        return rfx_builder_fail(
            b, rfx_memory_fail(b->graph->mem, "channel map", (size_t)count * sizeof *map, b->err));
    for (int64_t i = 0; i < count; i++) map[i] = i < given ? first + i : -1;
    struct rfx_node node = {.op = RFX_OP_CHANNEL_SELECT, .name = name, .n_in = 1, .in = &in};
    node.attr.select.count = count;
    node.attr.select.map = map;
    struct rfx_signal signal = rfx_builder_signal(b, in);
    float share = given < count ? (float)given / (float)count : 1.0f;
    int index = rfx_builder_add_node(b, &node, signal.mean * share, signal.square * share);
    rfx_memory_release(b->graph->mem, map);
    return index;
}

int rfx_builder_pad_channels(struct rfx_builder *b, const char *name, int in, int64_t c) {
    return select_channels(b, name, in, 0, c);
}

int rfx_builder_pick_channels(struct rfx_builder *b, const char *name, int in, int64_t first,
                              int64_t count) {
    return select_channels(b, name, in, first, count);
}

int rfx_builder_pad_to(struct rfx_builder *b, const char *name, int in, int64_t multiple) {
    if (b->status != RFX_OK) return -1;
    const struct rfx_tensor *map = &b->graph->nodes[in].out;
    struct rfx_node node = {.op = RFX_OP_PAD, .name = name, .n_in = 1, .in = &in};
    node.attr.pad.pads.bottom = rfx_ceil_div(map->h, multiple) * multiple - map->h;
    node.attr.pad.pads.right = rfx_ceil_div(map->w, multiple) * multiple - map->w;
    bool fits = node.attr.pad.pads.bottom == 0 && node.attr.pad.pads.right == 0;
    b->graph->filled[0] = fits ? 0 : map->h + node.attr.pad.pads.bottom;
    b->graph->filled[1] = fits ? 0 : map->w + node.attr.pad.pads.right;
    return fits ? in : add_like(b, &node, in);
}

int rfx_builder_crop_like(struct rfx_builder *b, const char *name, int in, int like) {
    if (b->status != RFX_OK) return -1;
    const struct rfx_tensor *map = &b->graph->nodes[in].out, *wanted = &b->graph->nodes[like].out;
    struct rfx_node node = {.op = RFX_OP_CROP, .name = name, .n_in = 1, .in = &in};
    b->graph->filled[0] = b->graph->filled[1] = 0; /* outputs are cut back */
    node.attr.crop.sy = node.attr.crop.sx = 1;
    node.attr.crop.oh = wanted->h;
    node.attr.crop.ow = wanted->w;
    return map->h == wanted->h && map->w == wanted->w ? in : add_like(b, &node, in);
}

int rfx_builder_rows(struct rfx_builder *b, const char *name, int in, int64_t k) {
    struct rfx_name plain_name = rfx_name("%s.nhwc", name);
    struct rfx_node plain = {
        .op = RFX_OP_NHWC_AS_PLAIN, .name = plain_name.text, .n_in = 1, .in = &in};
    int middle = add_like(b, &plain, in);
    if (b->status != RFX_OK) return -1;
    struct rfx_node node = {.op = RFX_OP_RESHAPE, .name = name, .n_in = 1, .in = &middle};
    int64_t rows = b->graph->nodes[middle].out.elems / k;
    node.attr.reshape.shape = (struct rfx_shape){3, {1, rows, k}};
    return add_like(b, &node, in);
}

int rfx_builder_join_rows(struct rfx_builder *b, const char *name, int left, int right) {
    int in[2] = {left, right};
    struct rfx_node node = {.op = RFX_OP_PLAIN_CONCAT, .name = name, .n_in = 2, .in = in};
    node.attr.concat.axis = 1;
    return add_like(b, &node, left);
}
