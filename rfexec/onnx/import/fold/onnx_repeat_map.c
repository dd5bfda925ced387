/* Constants whose elements repeat, as maps that are made where they are read (RFX_OP_REPEAT). */
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/fold/onnx_repeat.h"

/* The same of a constant that is no map beside what is none either: as a weight whose elements are
 * found when they are read (onnx_repeat_weight.c), by which heads of detectors, which are taken
 * apart into maps (layers/fuse/heads.h), know coordinates of cells. */
#define STORED_PLAIN_UP_TO ((int64_t)1 << 22)

/* How a tensor's axes are those of a map: one is its channels, the others rows and columns. */
struct order {
    int rank, channels; /* channels: -1: none of them, there is one */
    int end[RFX_MAX_RANK];
    struct rfx_pixels_factor factors[RFX_DIGITS]; /* of rows and columns */
    int64_t extent[2], roll[2];
};

/* A factor of the rows or columns: `step` of them are one position of what moves on among stored
 * elements. */
struct piece {
    int64_t step;
    struct rfx_digit stored;
};

/* What a channel is made of along each axis. */
struct line {
    struct rfx_onnx_const *stored;
    int64_t first;
    int n[2];
    struct piece pieces[2][RFX_DIGITS];
};

static int begin_of(const int *end, int axis) {
    return axis == 0 ? 0 : end[axis - 1];
}

static int64_t channels_of(const struct order *order, const struct rfx_onnx_const *c) {
    int axis = order->channels < 0 ? -1 : order->channels - (order->rank - c->shape.rank);
    return axis < 0 ? 1 : c->shape.dims[axis];
}

/* Channel `ch` of the constant, whose axes lie in that order; NULL: it has no such form. */
static struct rfx_onnx_const *take_channel(struct rfx_onnx_import *ctx, const struct order *order,
                                           struct rfx_onnx_const *c, int64_t ch) {
    int axis = order->channels - (order->rank - c->shape.rank);
    if (channels_of(order, c) == 1) return c;
    return rfx_onnx_repeat_slice(ctx, c, axis, ch, 1, 1);
}

/* The pieces of an axis of the tensor, which is axis `own` of the pattern. */
static bool add_pieces(const struct order *order, const struct rfx_onnx_pattern *p, int axis,
                       int own, struct line *line) {
    int lo = begin_of(order->end, axis), n = order->end[axis] - lo, from = begin_of(p->end, own);
    for (int role = 0; role < 2; role++) {
        struct rfx_digit map[RFX_DIGITS], made[RFX_DIGITS], stored[RFX_DIGITS];
        for (int f = 0; f < n; f++) {
            const struct rfx_pixels_factor *factor = &order->factors[lo + f];
            map[f] = (struct rfx_digit){.size = factor->size,
                                        .stride = factor->axis == role ? factor->stride : 0};
        }
        int count =
            rfx_onnx_factors_align(map, n, p->factors + from, p->end[own] - from, made, stored);
        if (count < 0) return false;
        for (int f = 0; f < count; f++) {
            if (made[f].stride == 0 || stored[f].stride == 0) continue;
            if (line->n[role] == RFX_DIGITS) return false;
            line->pieces[role][line->n[role]++] = (struct piece){made[f].stride, stored[f]};
        }
    }
    return true;
}

/* A channel's line; false: it changes along rows and columns, or has parts. */
static bool find_line(const struct order *order, struct rfx_onnx_const *c, struct line *line) {
    struct rfx_onnx_pattern p;
    if (!rfx_onnx_pattern_of(c, &p)) return false;
    memset(line, 0, sizeof *line);
    line->stored = p.stored;
    line->first = p.first;
    for (int i = 0; i < order->rank; i++) {
        int own = i - (order->rank - c->shape.rank);
        if (i == order->channels || own < 0 || c->shape.dims[own] == 1) continue;
        if (!add_pieces(order, &p, i, own, line)) return false;
    }
    return line->n[0] == 0 || line->n[1] == 0;
}

static bool same_line(const struct line *a, const struct line *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

/* The lines of all channels, in the making. */
struct lines {
    int64_t count;    /* channels */
    int64_t *map;     /* of the node; lines of rows are counted from -1 down until the end */
    float *values[2]; /* rows, columns */
    size_t capacity[2];
    int64_t made[2];
};

static int axis_of(const struct order *order, const struct line *line) {
    if (line->n[0] > 0 || line->n[1] > 0) return line->n[0] > 0 ? 0 : 1;
    return order->extent[0] < order->extent[1] ? 0 : 1; /* a number: the shorter line */
}

static enum rfx_status append_line(struct rfx_onnx_import *ctx, const struct order *order,
                                   const struct line *line, struct lines *lines) {
    const double *reals;
    int axis = axis_of(order, line);
    int64_t extent = order->extent[axis], old = lines->made[axis] * extent;
    enum rfx_status status = rfx_onnx_const_stored_reals(ctx, line->stored, &reals);
    if (status != RFX_OK) return status;
    float *values = rfx_memory_reserve(ctx->mem, lines->values[axis], &lines->capacity[axis],
                                       (size_t)(old + extent), sizeof *values);
    if (values == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY,
                               "no memory for %lld lines of a constant of %lld values",
                               (long long)lines->made[axis] + 1, (long long)extent);
    lines->values[axis] = values;
    for (int64_t i = 0; i < extent; i++) {
        int64_t at = line->first, from = (i - order->roll[axis] + extent) % extent;
        for (int f = 0; f < line->n[axis]; f++) {
            const struct piece *piece = &line->pieces[axis][f];
            at += rfx_digit_moves(&piece->stored, from / piece->step % piece->stored.size);
        }
        values[old + i] = (float)reals[at];
    }
    lines->made[axis]++;
    return RFX_OK;
}

/* Adds the lines of all channels; *fits: whether each has one. */
static enum rfx_status list_lines(struct rfx_onnx_import *ctx, const struct order *order,
                                  struct rfx_onnx_const *c, struct lines *lines, bool *fits) {
    struct line line, before = {.stored = NULL};
    enum rfx_status status = RFX_OK;
    for (int64_t ch = 0; status == RFX_OK && ch < lines->count; ch++) {
        struct rfx_onnx_const *channel = take_channel(ctx, order, c, ch);
        *fits = channel != NULL && find_line(order, channel, &line);
        if (!*fits) return RFX_OK;
        if (ch == 0 || !same_line(&line, &before))
            status = append_line(ctx, order, &line, lines);
        else {
            lines->map[ch] = lines->map[ch - 1];
            continue;
        }
        int axis = axis_of(order, &line);
        lines->map[ch] = axis == 0 ? -lines->made[0] : lines->made[1] - 1;
        before = line;
    }
    for (int64_t ch = 0; ch < lines->count; ch++)
        if (lines->map[ch] < 0) lines->map[ch] = lines->made[1] - lines->map[ch] - 1;
    return status;
}

static enum rfx_status own_lines(struct rfx_onnx_import *ctx, const struct lines *lines, int axis,
                                 int64_t extent, int *weight) {
    *weight = -1;
    if (lines->made[axis] == 0) return RFX_OK;
    return rfx_onnx_own_weight(ctx, lines->values[axis], lines->made[axis] * extent, weight);
}

static enum rfx_status emit_lines(struct rfx_onnx_import *ctx, const struct order *order,
                                  const struct lines *lines, int *out) {
    struct rfx_node node = {.op = RFX_OP_REPEAT};
    node.attr.repeat.h = order->extent[0];
    node.attr.repeat.w = order->extent[1];
    node.attr.repeat.count = lines->count;
    node.attr.repeat.map = lines->map;
    enum rfx_status status = own_lines(ctx, lines, 0, order->extent[0], &node.attr.repeat.down);
    if (status == RFX_OK)
        status = own_lines(ctx, lines, 1, order->extent[1], &node.attr.repeat.across);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &node, "/repeat", NULL, 0, out) : status;
}

/* A map of c channels of the constant in that order; *out: -1: there is none. */
static enum rfx_status make_map(struct rfx_onnx_import *ctx, const struct order *order,
                                struct rfx_onnx_const *c, int *out) {
    struct lines lines = {.count = channels_of(order, c)};
    bool fits = true;
    lines.map = rfx_memory_alloc(ctx->mem, (size_t)lines.count * sizeof *lines.map);
    enum rfx_status status = lines.map == NULL ? rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY,
                                                                 "no memory for a constant")
                                               : list_lines(ctx, order, c, &lines, &fits);
    *out = -1;
    if (status == RFX_OK && fits) status = emit_lines(ctx, order, &lines, out);
    rfx_memory_release(ctx->mem, lines.map);
    rfx_memory_release(ctx->mem, lines.values[0]);
    rfx_memory_release(ctx->mem, lines.values[1]);
    return status;
}

/* A tensor (1, c, h, w) as it is. */
static bool order_of_map(const struct rfx_shape *shape, struct order *order) {
    *order = (struct order){.rank = 4, .channels = 1};
    if (shape->rank != 4 || shape->dims[0] != 1) return false;
    for (int axis = 0; axis < 2; axis++) {
        int64_t n = order->extent[axis] = shape->dims[2 + axis];
        if (n > 1) order->factors[order->end[1 + axis]] = (struct rfx_pixels_factor){axis, n, 1};
        order->end[2 + axis] = order->end[1 + axis] + (n > 1 ? 1 : 0);
    }
    return true;
}

/* A tensor whose last axis is a map's channels. */
static bool order_like(const struct rfx_pixels *like, const struct rfx_shape *shape,
                       struct order *order) {
    *order = (struct order){.rank = like->rank, .channels = like->rank - 1};
    if (shape->rank > like->rank || like->first != 0) return false;
    for (int axis = 0; axis < 2; axis++) {
        order->extent[axis] = like->extent[axis];
        order->roll[axis] = like->roll[axis];
    }
    for (int i = 0; i < like->rank - 1; i++) order->end[i] = like->end[i];
    for (int f = 0; like->rank > 1 && f < like->end[like->rank - 2]; f++)
        order->factors[f] = like->factors[f];
    struct rfx_shape dims = rfx_pixels_shape(like);
    for (int i = 0; i < shape->rank - 1; i++) { /* no axis may be longer than the map's */
        int64_t n = dims.dims[i + like->rank - shape->rank];
        if (shape->dims[i] != 1 && shape->dims[i] != n) return false;
    }
    return true;
}

enum rfx_status rfx_onnx_repeat_map(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                    const struct rfx_pixels *like, int *out) {
    struct order order;
    *out = -1;
    if (c->repeat == NULL || c->elems <= RFX_ONNX_STORED_UP_TO) return RFX_OK;
    if (like == NULL ? !order_of_map(&c->shape, &order) : !order_like(like, &c->shape, &order))
        return RFX_OK;
    return make_map(ctx, &order, c, out);
}

/* --- as a tensor of any shape --- */

/* Adds the factors that all channels of an axis have in common. */
static bool align_axis(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                       const struct order *order, int axis, struct rfx_digit *common, int *count) {
    int64_t channels = channels_of(order, c);
    *count = 0;
    for (int64_t ch = 0; ch < channels; ch++) {
        struct rfx_onnx_const *channel = take_channel(ctx, order, c, ch);
        struct rfx_onnx_pattern p;
        struct rfx_digit own[RFX_DIGITS];
        if (channel == NULL || !rfx_onnx_pattern_of(channel, &p)) return false;
        int from = begin_of(p.end, axis), n = p.end[axis] - from;
        if (ch == 0) {
            memcpy(common, p.factors + from, (size_t)n * sizeof *common);
            *count = n;
            continue;
        }
        *count = rfx_onnx_factors_align(common, *count, p.factors + from, n, common, own);
        if (*count < 0) return false;
    }
    return true;
}

/* Whether the axes but for that of channels have two factors in all, or fewer, of channel 0: of all
 * channels together they have no fewer. */
static bool may_be_map(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                       const struct order *order) {
    struct rfx_onnx_const *channel = take_channel(ctx, order, c, 0);
    struct rfx_onnx_pattern p;
    int n = 0;
    if (channel == NULL || !rfx_onnx_pattern_of(channel, &p)) return false;
    for (int i = 0; i < order->rank; i++)
        if (i != order->channels) n += p.end[i] - begin_of(p.end, i);
    return n <= 2;
}

/* Whether all but one axis come to one factor of rows and one of columns. */
static bool find_order(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, int channels,
                       struct order *order) {
    *order = (struct order){.rank = c->shape.rank, .channels = channels, .extent = {1, 1}};
    int n = 0;
    if (!may_be_map(ctx, c, order)) return false;
    for (int i = 0; i < order->rank; i++) {
        struct rfx_digit common[RFX_DIGITS];
        int count = 0;
        if (i != channels && !align_axis(ctx, c, order, i, common, &count)) return false;
        for (int f = 0; f < count; f++) {
            if (n == 2) return false;
            order->extent[n] = common[f].size;
            order->factors[n] = (struct rfx_pixels_factor){n, common[f].size, 1};
            n++;
        }
        order->end[i] = n;
    }
    return n == 2;
}

/* The map in the order of the tensor. */
static enum rfx_status emit_in_order(struct rfx_onnx_import *ctx, const struct order *order,
                                     const struct rfx_onnx_const *c, int map, int *out) {
    struct rfx_onnx_operand x = {map, NULL};
    if (order->rank == 4 && order->channels == 1 && order->end[1] == 0)
        return rfx_onnx_plain(ctx, x, out);
    int64_t channels = channels_of(order, c);
    struct rfx_pixels p = {
        .map = map, .extent = {order->extent[0], order->extent[1], channels}, .rank = order->rank};
    for (int i = 0; i < order->rank; i++) {
        for (int f = begin_of(order->end, i); f < order->end[i]; f++)
            p.factors[p.count++] = order->factors[f];
        if (i == order->channels && channels > 1)
            p.factors[p.count++] = (struct rfx_pixels_factor){RFX_PIXELS_CHANNEL, channels, 1};
        p.end[i] = p.count;
    }
    return rfx_onnx_emit_pixels(ctx, &p, out);
}

/* The axes that may be channels, the likeliest first: that of parts, none, then short ones. */
static int list_channel_axes(const struct rfx_onnx_const *c, int *axes) {
    bool parts = c->repeat != NULL && c->repeat->n_parts > 0;
    int n = 0;
    axes[n++] = parts ? c->repeat->axis : -1;
    for (int i = 0; !parts && i < c->shape.rank; i++) {
        int at = n;
        if (c->shape.dims[i] == 1) continue;
        for (; at > 1 && c->shape.dims[axes[at - 1]] > c->shape.dims[i]; at--)
            axes[at] = axes[at - 1];
        axes[at] = i;
        n++;
    }
    return n;
}

/* One map in the order of the tensor; *out: -1: there is none. */
static enum rfx_status plain_of_map(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                    int *out) {
    struct order order;
    int axes[RFX_MAX_RANK + 1], n = list_channel_axes(c, axes), map = -1;
    enum rfx_status status = RFX_OK;
    *out = -1;
    for (int i = 0; status == RFX_OK && map < 0 && i < n; i++) {
        bool few = axes[i] < 0 || c->shape.dims[axes[i]] <= RFX_ONNX_MOST_CHANNELS;
        if (few && find_order(ctx, c, axes[i], &order)) status = make_map(ctx, &order, c, &map);
    }
    return status == RFX_OK && map >= 0 ? emit_in_order(ctx, &order, c, map, out) : status;
}

/* Parts each as a map, put side by side. As deep as parts are. */
static enum rfx_status plain_of_parts(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                      int *out) {
    const struct rfx_onnx_repeat *r = c->repeat;
    int *in = rfx_memory_alloc(ctx->mem, (size_t)r->n_parts * sizeof *in);
    enum rfx_status status =
        in == NULL ? rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant")
                   : RFX_OK;
    for (int i = 0; status == RFX_OK && i < r->n_parts; i++) {
        struct rfx_onnx_operand part = {-1, r->parts[i]};
        status = plain_of_map(ctx, r->parts[i], &in[i]);
        if (status == RFX_OK && in[i] < 0) status = rfx_onnx_plain(ctx, part, &in[i]);
    }
    struct rfx_node node = {.op = RFX_OP_PLAIN_CONCAT};
    node.attr.concat.axis = r->axis;
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "/parts", in, r->n_parts, out);
    rfx_memory_release(ctx->mem, in);
    return status;
}

enum rfx_status rfx_onnx_repeat_plain(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                      int *out) {
    *out = -1;
    if (c->repeat == NULL || c->elems <= STORED_PLAIN_UP_TO) return RFX_OK;
    enum rfx_status status = plain_of_map(ctx, c, out);
    bool parts = status == RFX_OK && *out < 0 && c->repeat->n_parts > 0 &&
                 !rfx_onnx_repeat_has_weight(ctx, c);
    return parts ? plain_of_parts(ctx, c, out) : status;
}

/* Whether nothing changes along an axis. */
bool rfx_onnx_repeat_is_same(struct rfx_onnx_const *c, int axis) {
    struct rfx_onnx_pattern p;
    bool same = true;
    if (!rfx_onnx_pattern_of(c, &p)) {
        same = c->repeat != NULL && c->repeat->axis != axis;
        for (int i = 0; same && i < c->repeat->n_parts; i++)
            same = rfx_onnx_repeat_is_same(c->repeat->parts[i], axis);
        return same;
    }
    for (int f = begin_of(p.end, axis); f < p.end[axis]; f++)
        same = same && p.factors[f].stride == 0;
    return same;
}

struct rfx_onnx_const *rfx_onnx_repeat_shrink(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                              const struct rfx_shape *beside) {
    if (c->repeat == NULL) return c;
    for (int i = 0; c != NULL && i < c->shape.rank; i++) {
        int own = i + beside->rank - c->shape.rank;
        if (own < 0 || beside->dims[own] != c->shape.dims[i] || !rfx_onnx_repeat_is_same(c, i))
            continue;
        c = rfx_onnx_repeat_slice(ctx, c, i, 0, 1, 1);
    }
    return c;
}
