/* Conversion of what samples a map elsewhere: Resize (opset 10, 11, 13, 18, 19), Upsample (7, 9)
 * and GridSample, where another tensor (1, rows, columns, 2) says. */
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/fold/onnx_repeat.h"
#include "rfexec/onnx/import/onnx_import.h"

#define MOST_SIZE 1000000000 /* of an axis: two of them have a product of 62 bits */

struct target {
    double scale[2]; /* rows, columns */
    int64_t size[2];
};

/* Which of `count` texts it is, or -1. */
static int index_of(const char *text, const char *const *texts, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(text, texts[i]) == 0) return i;
    return -1;
}

static enum rfx_status set_mode(struct rfx_onnx_import *ctx, struct rfx_resize_attr *a) {
    static const char *const modes[] = {"nearest", "linear", "cubic", "",
                                        "bilinear" /* Upsample 1 */};
    const char *mode = rfx_onnx_attr_string(ctx, "mode", "nearest");
    int m = index_of(mode, modes, 5);
    if (m < 0 || mode[0] == '\0')
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "mode %.40s", mode);
    a->mode = (enum rfx_resize_mode)(m % 3);
    return RFX_OK;
}

/* Which pixels positions of the output are made of. */
static enum rfx_status set_positions(struct rfx_onnx_import *ctx, struct rfx_resize_attr *a) {
    static const char *const coords[] = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                         "asymmetric", "half_pixel_symmetric"};
    static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                         "ceil"};
    bool old = ctx->opset < 11;
    const char *coord = rfx_onnx_attr_string(ctx, "coordinate_transformation_mode",
                                             old ? "asymmetric" : "half_pixel");
    const char *nearest =
        rfx_onnx_attr_string(ctx, "nearest_mode", old ? "floor" : "round_prefer_floor");
    int c = index_of(coord, coords, 5), n = index_of(nearest, rounds, 4);
    if (c < 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "coordinate_transformation_mode %.60s",
                               coord);
    if (n < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "nearest_mode %.40s", nearest);
    a->coord = (enum rfx_resize_coord)c;
    a->nearest = (enum rfx_resize_nearest)n;
    return RFX_OK;
}

/* Linear without antialias reads pixels outside only beside the border's, which they are like:
 * exclude_outside changes nothing. */
static enum rfx_status set_kernel(struct rfx_onnx_import *ctx, struct rfx_resize_attr *a) {
    a->cubic_a = rfx_onnx_attr_float(ctx, "cubic_coeff_a", -0.75f);
    a->exclude_outside = rfx_onnx_attr_flag(ctx, "exclude_outside", false);
    a->antialias = rfx_onnx_attr_flag(ctx, "antialias", false);
    if (a->mode != RFX_RESIZE_NEAREST || (!a->exclude_outside && !a->antialias)) return RFX_OK;
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                           "%s = 1 with mode nearest; modes linear and cubic take it",
                           a->antialias ? "antialias" : "exclude_outside");
}

static enum rfx_status refuse_axis(struct rfx_onnx_import *ctx, int axis) {
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "axis %d is resized; only rows and columns",
                           axis);
}

/* values[i] belongs to axes[i]; scales of rows and columns, sizes from them. */
static enum rfx_status from_scales(struct rfx_onnx_import *ctx, const double *values,
                                   const int *axes, int64_t count, struct target *to) {
    for (int64_t i = 0; i < count; i++) {
        double scale = (double)(float)values[i];
        if (axes[i] < 2 && scale != 1.0) return refuse_axis(ctx, axes[i]);
        if (axes[i] < 2) continue;
        int64_t in = to->size[axes[i] - 2];
        double size = floor((double)((float)in * (float)scale));
        if (!(scale > 0.0) || !(size >= 1.0) || size > MOST_SIZE)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "scale %g of %lld", scale,
                                   (long long)in);
        to->scale[axes[i] - 2] = scale;
        to->size[axes[i] - 2] = (int64_t)size;
    }
    return RFX_OK;
}

/* All axes are scaled by size / dim; sizes are rounded, halves up. A scale of 1 for the axes of
 * images and channels is the only one that leaves them alone, but where there is one image. */
static enum rfx_status keep_aspect(struct rfx_onnx_import *ctx, int64_t size, int64_t dim,
                                   const int *axes, int64_t count, const struct rfx_tensor *in,
                                   struct target *to) {
    for (int64_t i = 0; i < count; i++) {
        int64_t old = in->shape.dims[axes[i]], made = (2 * size * old + dim) / (2 * dim);
        if (axes[i] < 2 && (old > 1 ? size != dim : made > 1)) return refuse_axis(ctx, axes[i]);
        if (made < 1 || made > MOST_SIZE)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                   "keep_aspect_ratio_policy makes %lld pixels of %lld",
                                   (long long)made, (long long)old);
        if (axes[i] < 2) continue;
        to->scale[axes[i] - 2] = (double)((float)size / (float)dim);
        to->size[axes[i] - 2] = made;
    }
    return RFX_OK;
}

static enum rfx_status from_sizes(struct rfx_onnx_import *ctx, const int64_t *sizes,
                                  const int *axes, int64_t count, const struct rfx_tensor *in,
                                  struct target *to) {
    const char *policy = rfx_onnx_attr_string(ctx, "keep_aspect_ratio_policy", "stretch");
    int best = 0; /* the axis whose ratio is that of all, where the policy is not to stretch */
    bool smaller = strcmp(policy, "not_larger") == 0;
    bool stretch = strcmp(policy, "stretch") == 0;
    if (!stretch && !smaller && strcmp(policy, "not_smaller") != 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "keep_aspect_ratio_policy %.40s",
                               policy);
    for (int64_t i = 0; i < count; i++) {
        int64_t dim = in->shape.dims[axes[i]];
        if (sizes[i] < 1 || sizes[i] > MOST_SIZE || dim > MOST_SIZE)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "size %lld", (long long)sizes[i]);
        if (axes[i] < 2 && sizes[i] != dim) return refuse_axis(ctx, axes[i]);
        int64_t left = sizes[i] * in->shape.dims[axes[best]], right = sizes[best] * dim;
        if (smaller ? left < right : left > right) best = (int)i;
        if (axes[i] < 2) continue;
        to->size[axes[i] - 2] = sizes[i];
        to->scale[axes[i] - 2] = (double)((float)sizes[i] / (float)dim);
    }
    return stretch ? RFX_OK
                   : keep_aspect(ctx, sizes[best], in->shape.dims[axes[best]], axes, count, in, to);
}

static enum rfx_status emit_resize(struct rfx_onnx_import *ctx, int in, struct rfx_node *node,
                                   const struct target *to) {
    int out;
    if (to->scale[0] >= 1.0 && to->scale[1] >= 1.0) node->attr.resize.antialias = false;
    node->attr.resize.oh = to->size[0];
    node->attr.resize.ow = to->size[1];
    node->attr.resize.scale_h = (float)to->scale[0];
    node->attr.resize.scale_w = (float)to->scale[1];
    enum rfx_status status = rfx_onnx_emit(ctx, node, "", &in, 1, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

/* Nearest before opset 11: pixels left out of an axis that shrinks are those before the position,
 * of one that grows those behind it (the example of Resize 10, and ONNX Runtime). Where the axes
 * differ, rows come first. */
static enum rfx_status emit_nearest_of_10(struct rfx_onnx_import *ctx, int in,
                                          struct rfx_node *node, const struct target *to) {
    bool shrinks[2] = {to->scale[0] < 1.0, to->scale[1] < 1.0};
    struct target columns = *to;
    if (shrinks[0] != shrinks[1]) {
        struct rfx_node rows = *node;
        rows.attr.resize.nearest = shrinks[0] ? RFX_NEAREST_CEIL : RFX_NEAREST_FLOOR;
        rows.attr.resize.oh = to->size[0];
        rows.attr.resize.ow = rfx_onnx_tensor_of(ctx, in)->w;
        rows.attr.resize.scale_h = (float)to->scale[0];
        rows.attr.resize.scale_w = 1.0f;
        enum rfx_status status = rfx_onnx_emit(ctx, &rows, "/rows", &in, 1, &in);
        if (status != RFX_OK) return status;
        columns.scale[0] = 1.0;
    }
    node->attr.resize.nearest = shrinks[1] ? RFX_NEAREST_CEIL : RFX_NEAREST_FLOOR;
    return emit_resize(ctx, in, node, &columns);
}

/* The axes that scales and sizes speak of: all four, or attribute axes (opset 18). */
static enum rfx_status read_axes(struct rfx_onnx_import *ctx, int *axes, int64_t *count) {
    const struct rfx_onnx_attr *a = rfx_onnx_attr_find(ctx, "axes");
    *count = 4;
    for (int i = 0; i < 4; i++) axes[i] = i;
    if (a == NULL || a->kind != RFX_ONNX_ATTR_INTS || a->count == 0) return RFX_OK;
    if (a->count > 4)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%zu axes of rank 4", a->count);
    *count = (int64_t)a->count;
    enum rfx_status status = RFX_OK;
    for (size_t i = 0; status == RFX_OK && i < a->count; i++)
        status = rfx_onnx_axis(ctx, a->ints[i], 4, &axes[i]);
    for (int64_t i = 0; status == RFX_OK && i < *count; i++)
        for (int64_t k = 0; k < i; k++)
            if (axes[i] == axes[k])
                return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "axis %d is there twice",
                                       axes[i]);
    return status;
}

/* Whether constant input k is there and not empty. */
static bool given(const struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, k);
    return x.node >= 0 || (x.constant != NULL && x.constant->elems != 0);
}

enum rfx_status rfx_onnx_resize(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_RESIZE};
    size_t k_scales = ctx->opset < 11 ? 1 : 2;
    struct rfx_onnx_const *c;
    int axes[4], in;
    int64_t count;
    enum rfx_status status = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status == RFX_OK) status = set_mode(ctx, &node.attr.resize);
    if (status == RFX_OK) status = set_positions(ctx, &node.attr.resize);
    if (status == RFX_OK) status = set_kernel(ctx, &node.attr.resize);
    if (status == RFX_OK) status = read_axes(ctx, axes, &count);
    if (status != RFX_OK) return status;
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, in);
    struct target to = {{1.0, 1.0}, {t.h, t.w}};
    bool sizes = ctx->opset >= 11 && given(ctx, 3);
    if (!sizes && !given(ctx, k_scales))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "neither scales nor sizes");
    status = rfx_onnx_in_const(ctx, sizes ? 3 : k_scales, &c);
    if (status != RFX_OK) return status;
    if (c->elems != count)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld scales or sizes for %lld axes",
                               (long long)c->elems, (long long)count);
    const int64_t *ints;
    const double *reals;
    if (sizes) {
        status = rfx_onnx_const_ints(ctx, c, &ints);
        if (status == RFX_OK) status = from_sizes(ctx, ints, axes, count, &t, &to);
    } else {
        status = rfx_onnx_const_reals(ctx, c, &reals);
        if (status == RFX_OK) status = from_scales(ctx, reals, axes, count, &to);
    }
    if (status != RFX_OK) return status;
    if (ctx->opset < 11 && node.attr.resize.mode == RFX_RESIZE_NEAREST)
        return emit_nearest_of_10(ctx, in, &node, &to);
    return emit_resize(ctx, in, &node, &to);
}

enum rfx_status rfx_onnx_upsample(struct rfx_onnx_import *ctx) {
    static const int axes[4] = {0, 1, 2, 3};
    struct rfx_node node = {.op = RFX_OP_RESIZE};
    const struct rfx_onnx_attr *a = rfx_onnx_attr_find(ctx, "scales");
    double scales[4];
    int in;
    enum rfx_status status = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status == RFX_OK) status = set_mode(ctx, &node.attr.resize);
    if (status != RFX_OK) return status;
    if (node.attr.resize.mode == RFX_RESIZE_CUBIC)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "mode cubic");
    node.attr.resize.coord = RFX_COORD_ASYMMETRIC;
    node.attr.resize.nearest = RFX_NEAREST_FLOOR;
    if (a != NULL && a->kind == RFX_ONNX_ATTR_FLOATS && a->count == 4) {
        for (int i = 0; i < 4; i++) scales[i] = (double)a->floats[i];
    } else {
        struct rfx_onnx_const *c;
        const double *reals;
        status = rfx_onnx_in_const(ctx, 1, &c);
        if (status == RFX_OK) status = rfx_onnx_const_reals(ctx, c, &reals);
        if (status != RFX_OK) return status;
        if (c->elems != 4)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld scales for rank 4",
                                   (long long)c->elems);
        memcpy(scales, reals, sizeof scales);
    }
    const struct rfx_tensor *t = rfx_onnx_tensor_of(ctx, in);
    struct target to = {{1.0, 1.0}, {t->h, t->w}};
    for (int i = 2; i < 4; i++)
        if (scales[i] < 1.0)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                                   "scale %g of axis %d; Upsample takes 1 and above", scales[i], i);
    status = from_scales(ctx, scales, axes, 4, &to);
    return status == RFX_OK ? emit_resize(ctx, in, &node, &to) : status;
}

/* "bilinear" and "bicubic" until opset 19. */
static enum rfx_status read_attributes(struct rfx_onnx_import *ctx, struct rfx_node *node) {
    static const char *const modes[] = {"nearest", "linear",   "cubic",
                                        "nearest", "bilinear", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const char *mode = rfx_onnx_attr_string(ctx, "mode", "linear");
    const char *padding = rfx_onnx_attr_string(ctx, "padding_mode", "zeros");
    int m = index_of(mode, modes, 6), p = index_of(padding, paddings, 3);
    if (m < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "mode %.40s", mode);
    if (p < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "padding_mode %.40s", padding);
    node->attr.grid.mode = (enum rfx_resize_mode)(m % 3);
    node->attr.grid.padding = (enum rfx_grid_padding)p;
    node->attr.grid.align_corners = rfx_onnx_attr_flag(ctx, "align_corners", false);
    return RFX_OK;
}

/* A constant of pixels as a map: its values are read channel by channel. */
static enum rfx_status constant_grid(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *grid,
                                     int *out) {
    int64_t h = grid->shape.dims[1], w = grid->shape.dims[2];
    const struct rfx_shape pixels = {2, {h * w, 2}};
    struct rfx_onnx_const *view = rfx_onnx_const_view(ctx, grid, &pixels);
    struct rfx_node node = {.op = RFX_OP_CONST_MAP};
    if (view == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
    node.attr.constant.shape = (struct rfx_shape){4, {1, 2, h, w}};
    enum rfx_status status =
        rfx_onnx_const_weight_transposed(ctx, view, &node.attr.constant.weight);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &node, "/grid", NULL, 0, out) : status;
}

/* A tensor (1, h, w, 2) as a map of two channels. */
static enum rfx_status grid_map(struct rfx_onnx_import *ctx, size_t k, int *out) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, k);
    if (x.node < 0 && x.constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu is missing", k);
    const struct rfx_shape *shape = rfx_onnx_shape(ctx, x);
    if (shape->rank != 4 || shape->dims[0] != 1 || shape->dims[3] != 2)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a grid that is not (1, rows, columns, 2)");
    if (x.constant != NULL && x.constant->repeat != NULL) {
        static const int to_first[4] = {0, 3, 1, 2};
        x.constant = rfx_onnx_repeat_transpose(ctx, x.constant, to_first);
        if (x.constant == NULL)
            return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
        return rfx_onnx_map(ctx, x, out);
    }
    if (x.constant != NULL) return constant_grid(ctx, x.constant, out);
    *out = rfx_onnx_map_behind(ctx, x.node);
    if (*out >= 0) return RFX_OK;
    struct rfx_node view = {.op = RFX_OP_PLAIN_AS_NHWC};
    int plain;
    enum rfx_status status = rfx_onnx_plain(ctx, x, &plain);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &view, "/grid", &plain, 1, out) : status;
}

enum rfx_status rfx_onnx_grid_sample(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_GRID_SAMPLE};
    int in[2], out;
    enum rfx_status status = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0), &in[0]);
    if (status == RFX_OK) status = grid_map(ctx, 1, &in[1]);
    if (status == RFX_OK) status = read_attributes(ctx, &node);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", in, 2, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

/* Where pixel i of n lies on [-1, 1]: corners are the ends, or half a pixel from them. */
static double place_of(int64_t i, int64_t n, bool corners) {
    if (!corners) return (2.0 * (double)i + 1.0) / (double)n - 1.0;
    return n > 1 ? 2.0 * (double)i / (double)(n - 1) - 1.0 : -1.0;
}

/* For each of n pixels of an axis factor[k] place + shift[k], of both coordinates k, in that shape.
 */
static enum rfx_status places_of(struct rfx_onnx_import *ctx, const struct rfx_shape *shape,
                                 int64_t n, const double *factor, const double *shift, bool corners,
                                 struct rfx_onnx_operand *out) {
    *out = (struct rfx_onnx_operand){-1, rfx_onnx_const_new(ctx, RFX_ONNX_FLOAT, shape)};
    if (out->constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a grid of %lld pixels", (long long)n);
    double *values = rfx_onnx_const_reals_rw(out->constant);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            values[2 * i + k] = factor[k] * place_of(i, n, corners) + shift[k];
    return RFX_OK;
}

/* theta (x, y, 1) of each pixel (1, rows, columns, 2): a row of columns' parts and a column of
 * rows' parts, which are added. */
enum rfx_status rfx_onnx_affine_grid(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *theta = rfx_onnx_in_as_named(ctx, 0).constant, *size;
    bool corners = rfx_onnx_attr_flag(ctx, "align_corners", false);
    const double *t;
    const int64_t *sizes;
    if (theta == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "theta is computed from the image");
    enum rfx_status status = rfx_onnx_in_const(ctx, 1, &size);
    if (status == RFX_OK) status = rfx_onnx_const_reals(ctx, theta, &t);
    if (status == RFX_OK) status = rfx_onnx_const_ints(ctx, size, &sizes);
    if (status != RFX_OK) return status;
    if (theta->elems != 6 || size->elems != 4 || sizes[0] != 1 || sizes[2] < 1 || sizes[3] < 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a grid that is not of one image with rows and columns");
    const struct rfx_shape row = {4, {1, 1, sizes[3], 2}}, column = {4, {1, sizes[2], 1, 2}};
    const double of_x[2] = {t[0], t[3]}, of_y[2] = {t[1], t[4]}, shift[2] = {t[2], t[5]};
    static const double none[2] = {0.0, 0.0};
    struct rfx_onnx_operand x, y;
    int out;
    status = places_of(ctx, &row, sizes[3], of_x, none, corners, &x);
    if (status == RFX_OK) status = places_of(ctx, &column, sizes[2], of_y, shift, corners, &y);
    if (status == RFX_OK) status = rfx_onnx_plain(ctx, x, &x.node);
    x.constant = NULL;
    if (status == RFX_OK) status = rfx_onnx_combine(ctx, RFX_BINARY_ADD, "", x, y, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

/* A grid is a constant that is computed. */
enum rfx_status rfx_onnx_fold_affine_grid(struct rfx_onnx_import *ctx) {
    return rfx_onnx_compute(ctx, rfx_onnx_affine_grid);
}
