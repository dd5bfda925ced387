/* Element-wise operations on two values that are made of maps, or on such a value and a constant.
 *
 * A constant has its own values for every cell of all levels, for example the coordinates of the
 * cells' centres. For one level it becomes a constant map; if it does not change along rows or
 * columns, it is stored once for all of them. If one channel changes along rows and another along
 * columns, the constant is split into two, which are applied one after the other. Each has neutral
 * numbers in the other's channels: x + -0, x - 0, x * 1 and x / 1 are x, up to the sign of zero; c
 * - x is computed as -x + c. */
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/fuse/head_ops.h"
#include "layers/graph/infer.h"

/* A constant operand. */
struct constant {
    const struct rfx_head_value *like; /* the value, broadcast to the result's shape */
    struct rfx_shape shape;            /* shape with as many axes */
    int64_t step[RFX_MAX_RANK];        /* elements per axis; 0 if broadcast */
    int64_t channels;
    bool cells;  /* it differs from cell to cell */
    int index;   /* index of the constant's weight */
    float *rows; /* temporary: two rows of a level, because the whole constant may be large */
};

/* One level of a constant, [channel][row][column]. */
struct level {
    int64_t first, h, w; /* first: index of its first cell among the cells of all levels */
    int64_t anchors;     /* cells of a pixel */
    int64_t channels;    /* of the constant: 1, or those of the level's map */
    bool down, across;   /* down: some channel changes from row to row; across: some channel changes
                            from column to column */
    bool both;           /* some channel changes along both */
};

static bool differ(float a, float b) {
    return memcmp(&a, &b, sizeof a) != 0;
}

/* The place of one channel of a level in the constant: its first element, and the distances between
 * rows and columns. */
struct plane {
    int64_t first, row_step, column_step;
};

static struct plane plane_of(const struct constant *c, const struct level *level, int64_t e) {
    struct plane plane = {.first = 0};
    int64_t at[RFX_MAX_RANK];
    rfx_head_unravel(c->like, c->channels == 1 ? 0 : e % c->like->n, at);
    for (int i = 0; i < c->shape.rank; i++) {
        enum rfx_head_axis kind = c->like->kind[i];
        if (kind == RFX_HEAD_CELLS) at[i] = level->first + e / c->like->n;
        if (kind == RFX_HEAD_CELLS) plane.row_step = c->step[i] * level->w * level->anchors;
        if (kind == RFX_HEAD_ROWS) plane.row_step = c->step[i];
        if (kind == RFX_HEAD_CELLS) plane.column_step = c->step[i] * level->anchors;
        if (kind == RFX_HEAD_COLUMNS) plane.column_step = c->step[i];
        plane.first += at[i] * c->step[i];
    }
    return plane;
}

enum { PIECE = 1024 }; /* elements that are read at once if only some of them are needed */

/* Reads the first n values of row y. */
static enum rfx_status read_row(struct rfx_heads *h, const struct constant *c,
                                const struct plane *plane, int64_t y, int64_t n, float *out) {
    const struct rfx_weight *weight = &h->graph->weights[c->index];
    int64_t first = plane->first + y * plane->row_step, step = plane->column_step;
    int64_t together = step == 0 ? n : (PIECE - 1) / step + 1;
    float piece[PIECE];
    enum rfx_status status = RFX_OK;
    if (step == 1) return rfx_weight_read(weight, first, n, out, h->err);
    for (int64_t x = 0; status == RFX_OK && x < n; x += together) {
        int64_t here = rfx_min_i64(together, n - x);
        status = rfx_weight_read(weight, first + x * step, (here - 1) * step + 1, piece, h->err);
        for (int64_t i = 0; status == RFX_OK && i < here; i++) out[x + i] = piece[i * step];
    }
    return status;
}

/* Finds whether channel e of a level changes down the rows and across the columns. */
static enum rfx_status look(struct rfx_heads *h, const struct constant *c,
                            const struct level *level, int64_t e, bool *down, bool *across) {
    struct plane plane = plane_of(c, level, e);
    float *top = c->rows, *row = c->rows + level->w;
    enum rfx_status status = read_row(h, c, &plane, 0, level->w, top);
    *down = *across = false;
    for (int64_t y = 0; status == RFX_OK && y < level->h && !(*down && *across); y++) {
        status = read_row(h, c, &plane, y, level->w, row);
        for (int64_t x = 0; status == RFX_OK && x < level->w; x++) {
            *down = *down || differ(row[x], top[x]);
            *across = *across || differ(row[x], row[0]);
        }
    }
    return status;
}

static enum rfx_status look_at(struct rfx_heads *h, const struct constant *c, struct level *level) {
    enum rfx_status status = RFX_OK;
    for (int64_t e = 0; status == RFX_OK && e < level->channels; e++) {
        bool down, across;
        status = look(h, c, level, e, &down, &across);
        level->down = level->down || down;
        level->across = level->across || across;
        level->both = level->both || (down && across);
    }
    return status;
}

/* Adds a constant map of rows x cols. `which` selects channels: ALL, those that do not change down
 * the rows, or those that do. All other channels contain `neutral`. */
enum which { ALL, NOT_DOWN, DOWN };

static enum rfx_status add_constant(struct rfx_heads *h, const struct constant *c,
                                    const struct level *level, int64_t rows, int64_t cols,
                                    enum which which, float neutral, int index, int *out,
                                    bool *added) {
    struct rfx_shape shape = {4, {1, level->channels, rows, cols}};
    struct rfx_weight weight = {
        .source = RFX_WEIGHT_OWNED, .shape = shape, .elems = level->channels * rows * cols};
    struct rfx_node node = {.op = RFX_OP_CONST_MAP};
    node.attr.constant.shape = shape;
    enum rfx_status status =
        rfx_graph_add_weight(h->graph, &weight, &node.attr.constant.weight, h->err);
    if (status != RFX_OK) return status;
    float *to = rfx_graph_owned_weight(h->graph, node.attr.constant.weight);
    for (int64_t e = 0; status == RFX_OK && e < level->channels; e++) {
        bool down = false, across;
        if (which != ALL) status = look(h, c, level, e, &down, &across);
        bool own = which == ALL || (which == DOWN) == down;
        struct plane plane = plane_of(c, level, e);
        for (int64_t y = 0; status == RFX_OK && y < rows; y++, to += cols) {
            for (int64_t x = 0; x < cols; x++) to[x] = neutral;
            if (own) status = read_row(h, c, &plane, y, cols, to);
        }
    }
    if (status != RFX_OK) return status;
    return rfx_head_add(h, &node, NULL, 0, which == DOWN ? "rows" : "constant", index, out, added);
}

/* Sets the second operation and the neutral numbers if the operation can be done in two steps;
 * returns false if it cannot. */
static bool take_apart(enum rfx_binary_kind kind, bool constant_left, enum rfx_binary_kind *second,
                       float neutral[2]) {
    *second = kind;
    neutral[0] = neutral[1] = 1.0f;
    if (kind == RFX_BINARY_MUL || (kind == RFX_BINARY_DIV && !constant_left)) return true;
    neutral[0] = neutral[1] = -0.0f;
    if (kind == RFX_BINARY_ADD) return true;
    if (kind != RFX_BINARY_SUB) return false;
    if (constant_left)
        *second = RFX_BINARY_ADD;
    else
        neutral[0] = neutral[1] = 0.0f;
    return true;
}

static enum rfx_status add_join(struct rfx_heads *h, enum rfx_binary_kind kind,
                                const struct rfx_act *act, int left, int right, const char *what,
                                int level, int *out, bool *added) {
    struct rfx_node node = {.op = RFX_OP_BINARY, .act = {.slope = -1}};
    int in[2] = {left, right};
    node.attr.binary.kind = kind;
    if (act != NULL) node.act = *act;
    return rfx_head_add(h, &node, in, 2, what, level, out, added);
}

/* Applies the operation to a level's map and the constant. */
static enum rfx_status join_level(struct rfx_heads *h, const struct rfx_node *node,
                                  const struct constant *c, struct level level, bool left, int l,
                                  int *map, bool *added) {
    enum rfx_binary_kind kind = node->attr.binary.kind, second = kind;
    float neutral[2] = {0.0f, 0.0f};
    bool apart =
        level.down && level.across && !level.both && take_apart(kind, left, &second, neutral);
    int constant, made = *map;
    int64_t rows = level.down && !apart ? level.h : 1, cols = level.across ? level.w : 1;
    enum rfx_status status = add_constant(h, c, &level, rows, cols, apart ? NOT_DOWN : ALL,
                                          neutral[0], l, &constant, added);
    if (status == RFX_OK && *added)
        status = add_join(h, kind, apart ? NULL : &node->act, left ? constant : made,
                          left ? made : constant, "join", l, &made, added);
    if (apart && status == RFX_OK && *added)
        status = add_constant(h, c, &level, level.h, 1, DOWN, neutral[1], l, &constant, added);
    if (apart && status == RFX_OK && *added)
        status = add_join(h, second, &node->act, made, constant, "join/rows", l, &made, added);
    *map = made;
    return status;
}

/* Examines the constant on this level, then applies the operation. */
static enum rfx_status join_one_level(struct rfx_heads *h, const struct rfx_node *node,
                                      struct constant *c, struct level level, bool left, int l,
                                      struct rfx_head_value *out) {
    size_t bytes = 2 * (size_t)level.w * sizeof *c->rows;
    c->rows = rfx_memory_alloc(h->graph->mem, bytes);
    if (c->rows == NULL) return rfx_memory_fail(h->graph->mem, "heads", bytes, h->err);
    enum rfx_status status = look_at(h, c, &level);
    if (status == RFX_OK)
        status = join_level(h, node, c, level, left, l, &out->map[l], &out->known);
    rfx_memory_release(h->graph->mem, c->rows);
    return status;
}

static enum rfx_status join_constant(struct rfx_heads *h, const struct rfx_node *node,
                                     struct constant *c, bool left, struct rfx_head_value *out) {
    enum rfx_status status = rfx_head_settle(h, out, NULL);
    int64_t first = 0;
    c->like = out;
    for (int l = 0; l < out->n_levels && status == RFX_OK && out->known; l++) {
        const struct rfx_tensor map = h->graph->nodes[out->map[l]].out;
        int64_t anchors = out->anchors[l];
        bool one = c->channels == 1 && (anchors == 1 || !c->cells);
        const struct level level = {.first = first,
                                    .h = map.h,
                                    .w = map.w,
                                    .anchors = anchors,
                                    .channels = one ? 1 : anchors * out->n};
        status = join_one_level(h, node, c, level, left, l, out);
        first += map.h * map.w * anchors;
    }
    return status;
}

/* Returns the description of a constant next to the value `like`, which has the result's shape. */
static struct constant constant_of(const struct rfx_heads *h, int index,
                                   const struct rfx_head_value *like) {
    const struct rfx_node *node = &h->graph->nodes[index];
    int64_t strides[RFX_MAX_RANK];
    int more = like->shape.rank - node->out.shape.rank;
    struct constant c = {.like = like, .shape = like->shape, .channels = 1};
    rfx_shape_strides(&node->out.shape, strides);
    for (int i = 0; i < c.shape.rank; i++) {
        int64_t dim = i < more ? 1 : node->out.shape.dims[i - more];
        c.step[i] = dim == 1 ? 0 : strides[i - more];
        if (dim != 1 && like->kind[i] == RFX_HEAD_CHANNELS) c.channels = like->n;
        c.cells = c.cells || (dim != 1 && like->kind[i] == RFX_HEAD_CELLS);
    }
    c.index = node->attr.constant.weight;
    return c;
}

/* Applies the operation to two values made of maps, level by level. A value of one channel and one
 * anchor is broadcast to all channels of the other. */
static enum rfx_status join_values(struct rfx_heads *h, const struct rfx_node *node,
                                   struct rfx_head_value *out) {
    struct rfx_head_value side[2] = {{.known = false}, {.known = false}};
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < 2 && status == RFX_OK; k++) {
        const struct rfx_head_value *in = &h->values[node->in[k]];
        bool one = in->n == 1 && !rfx_head_has_anchors(in);
        struct rfx_shape shape = one ? in->shape : node->out.shape;
        status = rfx_head_expand(h, in, &shape, &side[k]);
        if (status == RFX_OK && side[k].known) status = rfx_head_settle(h, &side[k], NULL);
    }
    bool fits = status == RFX_OK && side[0].known && side[1].known;
    int64_t n = side[0].n > side[1].n ? side[0].n : side[1].n;
    int wide = side[0].n >= side[1].n ? 0 : 1;
    fits = fits && side[wide].shape.rank == node->out.shape.rank;
    if (fits) status = rfx_head_make(h, &side[wide], &node->out.shape, n, out);
    for (int l = 0; l < out->n_levels && status == RFX_OK && out->known; l++)
        status = add_join(h, node->attr.binary.kind, &node->act, side[0].map[l], side[1].map[l],
                          "join", l, &out->map[l], &out->known);
    for (int k = 0; k < 2; k++) rfx_head_release(h, &side[k]);
    return status;
}

enum rfx_status rfx_head_binary(struct rfx_heads *h, const struct rfx_node *node,
                                struct rfx_head_value *out) {
    const struct rfx_head_value *a = &h->values[node->in[0]], *b = &h->values[node->in[1]];
    bool fixed[2], prelu = node->act.kind == RFX_ACT_PRELU;
    for (int k = 0; k < 2; k++) fixed[k] = h->graph->nodes[node->in[k]].op == RFX_OP_CONST_PLAIN;
    if (prelu && h->graph->weights[node->act.slope].elems != 1) return RFX_OK;
    if (a->known && b->known)
        return rfx_head_same_pixels(h, a, b) ? join_values(h, node, out) : RFX_OK;
    bool left = fixed[0];
    if (!(a->known && fixed[1]) && !(fixed[0] && b->known)) return RFX_OK;
    enum rfx_status status = rfx_head_expand(h, left ? b : a, &node->out.shape, out);
    if (status != RFX_OK || !out->known) return status;
    struct constant c = constant_of(h, node->in[left ? 0 : 1], out);
    return join_constant(h, node, &c, left, out);
}
