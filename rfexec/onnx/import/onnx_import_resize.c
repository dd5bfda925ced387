/* Converters that sample a map at other positions: Resize (opset 10, 11, 13, 18, 19), Upsample
 * (opset 7, 9), GridSample, whose second input (1, rows, columns, 2) holds the positions, and
 * AffineGrid, which computes such positions. */
#include <math.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"
#include "rfexec/onnx/import/onnx_repeat.h"

#define MOST_SIZE 1000000000 /* of an axis: two of them have a product of 62 bits */

struct target {
    double scale[2]; /* rows, columns */
    int64_t size[2];
};

static void set_mode(struct rfx_onnx_import *ctx, struct rfx_resize_attr *a) {
    static const char *const modes[] = {"nearest", "linear", "cubic", "nearest",
                                        "bilinear" /* Upsample 1 */};
    a->mode = (enum rfx_resize_mode)(rfx_onnx_attr_choice(ctx, "mode", "nearest", modes, 5) % 3);
}

/* Sets how positions of the output are mapped to positions of the input. */
static void set_positions(struct rfx_onnx_import *ctx, struct rfx_resize_attr *a) {
    static const char *const coords[] = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                         "asymmetric", "half_pixel_symmetric"};
    static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                         "ceil"};
    bool old = ctx->opset < 11;
    a->coord = (enum rfx_resize_coord)rfx_onnx_attr_choice(
        ctx, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel", coords, 5);
    a->nearest = (enum rfx_resize_nearest)rfx_onnx_attr_choice(
        ctx, "nearest_mode", old ? "floor" : "round_prefer_floor", rounds, 4);
}

/* Sets the coefficients and flags. exclude_outside changes nothing for mode linear without
 * antialias: pixels outside of the map that such a resize reads equal the pixels at the border
 * beside them. */
static void set_kernel(struct rfx_onnx_import *ctx, struct rfx_resize_attr *a) {
    a->cubic_a = rfx_onnx_attr_float(ctx, "cubic_coeff_a", -0.75f);
    a->exclude_outside = rfx_onnx_attr_flag(ctx, "exclude_outside", false);
    a->antialias = rfx_onnx_attr_flag(ctx, "antialias", false);
    if (a->mode == RFX_RESIZE_NEAREST && (a->exclude_outside || a->antialias))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "%s = 1 with mode nearest; modes linear and cubic take it",
                              a->antialias ? "antialias" : "exclude_outside");
}

static int refuse_axis(struct rfx_onnx_import *ctx, int axis) {
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "axis %d is resized; only rows and columns",
                           axis);
}

/* Sets scales of rows and columns, and computes sizes from them. values[i] is the scale of axes[i].
 */
static void from_scales(struct rfx_onnx_import *ctx, const double *values, const int *axes,
                        int64_t count, struct target *to) {
    for (int64_t i = 0; !rfx_onnx_failed(ctx) && i < count; i++) {
        double scale = (double)(float)values[i];
        if (axes[i] < 2 && scale != 1.0) (void)refuse_axis(ctx, axes[i]);
        if (axes[i] < 2) continue;
        int64_t in = to->size[axes[i] - 2];
        double size = floor((double)((float)in * (float)scale));
        if (!(scale > 0.0) || !(size >= 1.0) || size > MOST_SIZE) {
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "scale %g of %lld", scale,
                                  (long long)in);
            return;
        }
        to->scale[axes[i] - 2] = scale;
        to->size[axes[i] - 2] = (int64_t)size;
    }
}

/* Scales all axes by size / dim. Sizes are rounded, halves up. The batch and channel axes must keep
 * their sizes: the scale must be 1, or the axis has one element and keeps one. */
static void keep_aspect(struct rfx_onnx_import *ctx, int64_t size, int64_t dim, const int *axes,
                        int64_t count, const struct rfx_tensor *in, struct target *to) {
    for (int64_t i = 0; i < count; i++) {
        int64_t old = in->shape.dims[axes[i]], made = (2 * size * old + dim) / (2 * dim);
        if (axes[i] < 2 && (old > 1 ? size != dim : made > 1)) (void)refuse_axis(ctx, axes[i]);
        if (made < 1 || made > MOST_SIZE)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                  "keep_aspect_ratio_policy makes %lld pixels of %lld",
                                  (long long)made, (long long)old);
        if (axes[i] < 2) continue;
        to->scale[axes[i] - 2] = (double)((float)size / (float)dim);
        to->size[axes[i] - 2] = made;
    }
}

static void from_sizes(struct rfx_onnx_import *ctx, const int64_t *sizes, const int *axes,
                       int64_t count, const struct rfx_tensor *in, struct target *to) {
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    int policy = rfx_onnx_attr_choice(ctx, "keep_aspect_ratio_policy", "stretch", policies, 3);
    int best = 0; /* not_larger, not_smaller: the axis whose scale all axes get */
    for (int64_t i = 0; !rfx_onnx_failed(ctx) && i < count; i++) {
        int64_t dim = in->shape.dims[axes[i]];
        if (sizes[i] < 1 || sizes[i] > MOST_SIZE || dim > MOST_SIZE)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "size %lld", (long long)sizes[i]);
        if (axes[i] < 2 && sizes[i] != dim) (void)refuse_axis(ctx, axes[i]);
        if (rfx_onnx_failed(ctx)) return;
        int64_t left = sizes[i] * in->shape.dims[axes[best]], right = sizes[best] * dim;
        if (policy == 1 ? left < right : left > right) best = (int)i;
        if (axes[i] < 2) continue;
        to->size[axes[i] - 2] = sizes[i];
        to->scale[axes[i] - 2] = (double)((float)sizes[i] / (float)dim);
    }
    if (policy != 0 && !rfx_onnx_failed(ctx))
        keep_aspect(ctx, sizes[best], in->shape.dims[axes[best]], axes, count, in, to);
}

static int emit_resize(struct rfx_onnx_import *ctx, const char *suffix, int in,
                       struct rfx_node *node, const struct target *to) {
    if (to->scale[0] >= 1.0 && to->scale[1] >= 1.0) node->attr.resize.antialias = false;
    node->attr.resize.oh = to->size[0];
    node->attr.resize.ow = to->size[1];
    node->attr.resize.scale_h = (float)to->scale[0];
    node->attr.resize.scale_w = (float)to->scale[1];
    return rfx_onnx_emit1(ctx, node, suffix, in);
}

/* Returns the node of mode nearest before opset 11. An axis that shrinks reads the pixel after the
 * position, an axis that grows the pixel before it (as in the example of Resize 10 and in ONNX
 * Runtime). If only one of rows and columns shrinks, rows are resized first, then columns. */
static int emit_nearest_of_10(struct rfx_onnx_import *ctx, int in, struct rfx_node *node,
                              const struct target *to) {
    bool shrinks[2] = {to->scale[0] < 1.0, to->scale[1] < 1.0};
    struct target columns = *to;
    if (shrinks[0] != shrinks[1]) {
        struct target rows = {{to->scale[0], 1.0}, {to->size[0], rfx_onnx_tensor_of(ctx, in)->w}};
        struct rfx_node first = *node;
        first.attr.resize.nearest = shrinks[0] ? RFX_NEAREST_CEIL : RFX_NEAREST_FLOOR;
        in = emit_resize(ctx, "/rows", in, &first, &rows);
        columns.scale[0] = 1.0;
    }
    node->attr.resize.nearest = shrinks[1] ? RFX_NEAREST_CEIL : RFX_NEAREST_FLOOR;
    return emit_resize(ctx, "", in, node, &columns);
}

/* Lists the axes of the scales and sizes: all four, or those of the attribute axes (opset 18).
 * Returns their number. */
static int64_t read_axes(struct rfx_onnx_import *ctx, int *axes) {
    const struct rfx_onnx_attr *a = rfx_onnx_attr_find(ctx, "axes");
    for (int i = 0; i < 4; i++) axes[i] = i;
    if (a == NULL || a->kind != RFX_ONNX_ATTR_INTS || a->count == 0) return 4;
    if (a->count > 4) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%zu axes of rank 4", a->count);
        return 4;
    }
    for (size_t i = 0; i < a->count; i++) {
        axes[i] = rfx_onnx_axis(ctx, a->ints[i], 4);
        for (size_t k = 0; k < i; k++)
            if (axes[i] == axes[k])
                (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "axis %d is there twice", axes[i]);
    }
    return (int64_t)a->count;
}

/* Returns whether the node has input k, and the input is not an empty constant. */
static bool given(const struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, k);
    return x.node >= 0 || (x.constant != NULL && x.constant->elems != 0);
}

int rfx_onnx_resize(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_RESIZE};
    size_t k = ctx->opset < 11 ? 1 : 2;
    int axes[4], in = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0));
    set_mode(ctx, &node.attr.resize);
    set_positions(ctx, &node.attr.resize);
    set_kernel(ctx, &node.attr.resize);
    int64_t count = read_axes(ctx, axes);
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, in);
    struct target to = {{1.0, 1.0}, {t.h, t.w}};
    bool sizes = ctx->opset >= 11 && given(ctx, 3);
    if (!sizes && !given(ctx, k))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "neither scales nor sizes");
    struct rfx_onnx_const *c = rfx_onnx_in_const(ctx, sizes ? 3 : k);
    if (c == NULL) return -1;
    if (c->elems != count)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld scales or sizes for %lld axes",
                               (long long)c->elems, (long long)count);
    if (sizes)
        from_sizes(ctx, rfx_onnx_const_ints(ctx, c), axes, count, &t, &to);
    else
        from_scales(ctx, rfx_onnx_const_reals(ctx, c), axes, count, &to);
    if (ctx->opset < 11 && node.attr.resize.mode == RFX_RESIZE_NEAREST)
        return emit_nearest_of_10(ctx, in, &node, &to);
    return emit_resize(ctx, "", in, &node, &to);
}

int rfx_onnx_upsample(struct rfx_onnx_import *ctx) {
    static const int axes[4] = {0, 1, 2, 3};
    struct rfx_node node = {.op = RFX_OP_RESIZE};
    const struct rfx_onnx_attr *a = rfx_onnx_attr_find(ctx, "scales");
    bool listed = a != NULL && a->kind == RFX_ONNX_ATTR_FLOATS && a->count == 4;
    double scales[4] = {1.0, 1.0, 1.0, 1.0};
    int in = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0));
    set_mode(ctx, &node.attr.resize);
    if (node.attr.resize.mode == RFX_RESIZE_CUBIC)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "mode cubic");
    node.attr.resize.coord = RFX_COORD_ASYMMETRIC;
    node.attr.resize.nearest = RFX_NEAREST_FLOOR;
    struct rfx_onnx_const *c = listed ? NULL : rfx_onnx_in_const(ctx, 1);
    if (c != NULL && c->elems != 4)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld scales for rank 4",
                               (long long)c->elems);
    const double *reals = c == NULL ? NULL : rfx_onnx_const_reals(ctx, c);
    if (rfx_onnx_failed(ctx)) return -1;
    for (int i = 0; i < 4; i++) scales[i] = listed ? (double)a->floats[i] : reals[i];
    for (int i = 2; i < 4; i++)
        if (scales[i] < 1.0)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                                   "scale %g of axis %d; Upsample takes 1 and above", scales[i], i);
    const struct rfx_tensor *t = rfx_onnx_tensor_of(ctx, in);
    struct target to = {{1.0, 1.0}, {t->h, t->w}};
    from_scales(ctx, scales, axes, 4, &to);
    return emit_resize(ctx, "", in, &node, &to);
}

/* Returns a constant (1, h, w, 2) as a map of two channels. */
static int constant_grid(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *grid) {
    int64_t h = grid->shape.dims[1], w = grid->shape.dims[2];
    const struct rfx_shape pixels = {2, {h * w, 2}};
    struct rfx_node node = {.op = RFX_OP_CONST_MAP};
    node.attr.constant.shape = (struct rfx_shape){4, {1, 2, h, w}};
    node.attr.constant.weight =
        rfx_onnx_const_weight_transposed(ctx, rfx_onnx_const_view(ctx, grid, &pixels));
    return rfx_onnx_emit(ctx, &node, "/grid", NULL, 0);
}

/* Returns operand k, a tensor (1, h, w, 2), as a map of two channels. */
static int grid_map(struct rfx_onnx_import *ctx, size_t k) {
    static const int to_first[4] = {0, 3, 1, 2};
    struct rfx_node view = {.op = RFX_OP_PLAIN_AS_NHWC};
    struct rfx_onnx_operand x = rfx_onnx_need(ctx, k);
    const struct rfx_shape *shape = rfx_onnx_shape(ctx, x);
    if (shape->rank != 4 || shape->dims[0] != 1 || shape->dims[3] != 2)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a grid that is not (1, rows, columns, 2)");
    if (x.constant != NULL && x.constant->repeat != NULL) {
        x.constant = rfx_onnx_repeat_transpose(ctx, x.constant, to_first);
        return x.constant == NULL ? rfx_onnx_out_of_memory(ctx) : rfx_onnx_map(ctx, x);
    }
    if (x.constant != NULL) return constant_grid(ctx, x.constant);
    int map = rfx_onnx_map_behind(ctx, x.node);
    return map >= 0 ? map : rfx_onnx_emit1(ctx, &view, "/grid", rfx_onnx_plain(ctx, x));
}

/* GridSample. Before opset 20 the modes are named "bilinear" and "bicubic". */
int rfx_onnx_grid_sample(struct rfx_onnx_import *ctx) {
    static const char *const modes[] = {"nearest", "linear",   "cubic",
                                        "nearest", "bilinear", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    struct rfx_node node = {.op = RFX_OP_GRID_SAMPLE};
    int map = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0)), grid = grid_map(ctx, 1);
    int mode = rfx_onnx_attr_choice(ctx, "mode", "linear", modes, 6) % 3;
    node.attr.grid.mode = (enum rfx_resize_mode)mode;
    node.attr.grid.padding =
        (enum rfx_grid_padding)rfx_onnx_attr_choice(ctx, "padding_mode", "zeros", paddings, 3);
    node.attr.grid.align_corners = rfx_onnx_attr_flag(ctx, "align_corners", false);
    return rfx_onnx_emit2(ctx, &node, "", map, grid);
}

/* Returns the position of pixel i of n on [-1, 1]. If `corners`, the ends are the centres of the
 * outer pixels, else the outer borders of these pixels. */
static double place_of(int64_t i, int64_t n, bool corners) {
    if (!corners) return (2.0 * (double)i + 1.0) / (double)n - 1.0;
    return n > 1 ? 2.0 * (double)i / (double)(n - 1) - 1.0 : -1.0;
}

/* Returns a constant of this shape with factor[k] * position + shift[k] for both coordinates k of
 * each of n pixels along an axis. */
static struct rfx_onnx_operand places_of(struct rfx_onnx_import *ctx, const struct rfx_shape *shape,
                                         int64_t n, const double *factor, const double *shift,
                                         bool corners) {
    struct rfx_onnx_const *c = rfx_onnx_const_new(ctx, RFX_ONNX_FLOAT, shape);
    for (int64_t i = 0; c != NULL && i < 2 * n; i++)
        rfx_onnx_const_reals_rw(c)[i] = factor[i % 2] * place_of(i / 2, n, corners) + shift[i % 2];
    return rfx_onnx_of_const(c);
}

/* AffineGrid: theta * (x, y, 1) for each pixel, of shape (1, rows, columns, 2). It is the sum of
 * one row with the terms of x and one column with the terms of y. */
int rfx_onnx_affine_grid(struct rfx_onnx_import *ctx) {
    static const double none[2] = {0.0, 0.0};
    struct rfx_onnx_const *theta = rfx_onnx_in_as_named(ctx, 0).constant;
    bool corners = rfx_onnx_attr_flag(ctx, "align_corners", false);
    int64_t count;
    if (theta == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "theta is computed from the image");
    const int64_t *sizes = rfx_onnx_in_ints(ctx, 1, &count);
    const double *t = rfx_onnx_const_reals(ctx, theta);
    if (rfx_onnx_failed(ctx)) return -1;
    if (theta->elems != 6 || count != 4 || sizes[0] != 1 || sizes[2] < 1 || sizes[3] < 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a grid that is not of one image with rows and columns");
    const struct rfx_shape row = {4, {1, 1, sizes[3], 2}}, column = {4, {1, sizes[2], 1, 2}};
    const double of_x[2] = {t[0], t[3]}, of_y[2] = {t[1], t[4]}, shift[2] = {t[2], t[5]};
    struct rfx_onnx_operand x = places_of(ctx, &row, sizes[3], of_x, none, corners);
    struct rfx_onnx_operand y = places_of(ctx, &column, sizes[2], of_y, shift, corners);
    x = rfx_onnx_of(rfx_onnx_plain(ctx, x));
    return rfx_onnx_combine(ctx, RFX_BINARY_ADD, "", x, y);
}

/* AffineGrid has constant operands only; its result is a computed constant. */
int rfx_onnx_fold_affine_grid(struct rfx_onnx_import *ctx) {
    return rfx_onnx_compute(ctx, rfx_onnx_affine_grid);
}
