/* Finds attention within windows. The shapes of the tensors do not matter, only which pixel and
 * channel of the map each element is (onnx_pixels.h). The axes of the scores may be in the order
 * windows, heads, queries, keys or in the order heads, windows, queries, keys. */
#include "rfexec/onnx/import/onnx_windows.h"

#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_mask_tree.h"

enum { QUERIES, KEYS, VALUES };

#define MOST_ADDED 4
#define HIDDEN (-100.0f) /* a score with this number added has no weight after a softmax */
#define PIECE 4096       /* floats of a constant that are read at a time */
#define MOST_MOVES 16    /* of a part between its scale and the product */

/* A constant that is added to scores of shape `scores`. If `hides`, it is a condition instead:
 * where the condition is true, the score becomes a large negative number. */
struct added {
    int constant;
    struct rfx_shape scores;
    bool hides;
};

struct search {
    const struct rfx_graph *graph;
    struct rfx_error *err;
    struct rfx_found_windows *out;
    int64_t pixels;       /* of a window */
    int64_t down, across; /* number of windows */
    bool heads_first;     /* the axis of heads comes before that of windows */
    double scale;
    int n_added;
    struct added added[MOST_ADDED];
};

/* The axes of the scores along which the values of a constant change. */
struct varies {
    bool heads, rows, cols;            /* heads; windows from row to row; from column to column */
    int64_t windows[RFX_MAX_RANK + 1]; /* strides in the constant of the axes of windows */
    int from, end;                     /* axes [from, end) of the scores are those of windows */
};

static const struct rfx_node *node_of(const struct search *s, int node) {
    return &s->graph->nodes[node];
}

static bool is_constant(const struct search *s, int node) {
    return node_of(s, node)->op == RFX_OP_CONST_PLAIN;
}

/* If *in is x * number, number * x or x / number, sets *in to x and takes the number into s->scale.
 */
static enum rfx_status take_scale(struct search *s, int *in, bool *taken) {
    const struct rfx_node *n = node_of(s, *in);
    *taken = false;
    if (n->op != RFX_OP_PLAIN_BINARY || n->act.kind != RFX_ACT_NONE) return RFX_OK;
    bool times = n->attr.binary.kind == RFX_BINARY_MUL,
         over = n->attr.binary.kind == RFX_BINARY_DIV;
    int k = times && is_constant(s, n->in[0]) ? 0 : 1;
    const struct rfx_node *number = node_of(s, n->in[k]);
    if (!(times || over) || !is_constant(s, n->in[k]) || number->out.elems != 1) return RFX_OK;
    float value;
    enum rfx_status status =
        rfx_weight_read(&s->graph->weights[number->attr.constant.weight], 0, 1, &value, s->err);
    if (status != RFX_OK) return status;
    s->scale = times ? s->scale * (double)value : s->scale / (double)value;
    *taken = true;
    *in = n->in[1 - k];
    return RFX_OK;
}

static bool take_added(struct search *s, int *in) {
    const struct rfx_node *n = node_of(s, *in);
    if (n->op != RFX_OP_PLAIN_BINARY || n->act.kind != RFX_ACT_NONE ||
        n->attr.binary.kind != RFX_BINARY_ADD || s->n_added == MOST_ADDED)
        return false;
    int k = is_constant(s, n->in[0]) ? 0 : 1;
    if (!is_constant(s, n->in[k])) return false;
    s->added[s->n_added++] = (struct added){n->in[k], n->out.shape, false};
    *in = n->in[1 - k];
    return true;
}

static bool is_choice(const struct search *s, int node, enum rfx_binary_kind kind) {
    const struct rfx_node *n = node_of(s, node);
    return n->op == RFX_OP_PLAIN_BINARY && n->act.kind == RFX_ACT_NONE &&
           n->attr.binary.kind == kind;
}

/* If *in is a large negative number where a mask is true and the scores elsewhere, sets *in to the
 * scores and records the mask. The import converts Where to a sum of two terms. */
static enum rfx_status take_hidden(struct search *s, int *in, bool *taken) {
    const struct rfx_node *n = node_of(s, *in);
    float value;
    *taken = false;
    if (n->op != RFX_OP_PLAIN_BINARY || n->act.kind != RFX_ACT_NONE ||
        n->attr.binary.kind != RFX_BINARY_ADD || s->n_added == MOST_ADDED)
        return RFX_OK;
    int k = is_choice(s, n->in[0], RFX_BINARY_IF) ? 0 : 1;
    if (!is_choice(s, n->in[k], RFX_BINARY_IF) || !is_choice(s, n->in[1 - k], RFX_BINARY_UNLESS))
        return RFX_OK;
    const struct rfx_node *chosen = node_of(s, n->in[k]), *rest = node_of(s, n->in[1 - k]);
    const struct rfx_node *number = node_of(s, chosen->in[1]);
    if (chosen->in[0] != rest->in[0] || !is_constant(s, chosen->in[1]) || number->out.elems != 1)
        return RFX_OK;
    enum rfx_status status =
        rfx_weight_read(&s->graph->weights[number->attr.constant.weight], 0, 1, &value, s->err);
    if (status != RFX_OK || !(value <= HIDDEN)) return status;
    s->added[s->n_added++] = (struct added){chosen->in[0], n->out.shape, true};
    *taken = true;
    *in = rest->in[1];
    return RFX_OK;
}

int rfx_find_rounding(const struct rfx_graph *graph, int bytes, int floats,
                      struct rfx_rounding *rounding) {
    const struct rfx_node *to = &graph->nodes[bytes], *from = &graph->nodes[floats];
    if (to->op != RFX_OP_CONVERT || from->op != RFX_OP_CONVERT) return -1;
    if (to->attr.convert.to == RFX_TYPE_FLOAT32 || from->attr.convert.to != RFX_TYPE_FLOAT32 ||
        to->attr.convert.shifted || to->attr.convert.scale == 0.0f ||
        to->attr.convert.scale != from->attr.convert.scale ||
        to->attr.convert.zero_point != from->attr.convert.zero_point)
        return -1;
    *rounding = (struct rfx_rounding){to->attr.convert.to, to->attr.convert.scale,
                                      to->attr.convert.zero_point};
    return to->in[0];
}

/* Follows the softmax back to the product of queries and keys. *product is -1 when another operator
 * is between them. */
static enum rfx_status climb(struct search *s, int softmax, int *product) {
    int at = node_of(s, softmax)->in[0];
    bool scaled = false;
    *product = -1;
    if (node_of(s, at)->op == RFX_OP_CONVERT) {
        struct rfx_rounding *rounding = &s->out->attr.round_scores;
        at = rfx_find_rounding(s->graph, node_of(s, at)->in[0], at, rounding);
        if (at < 0) return RFX_OK;
    }
    while (node_of(s, at)->op != RFX_OP_MATMUL) {
        bool taken;
        if (node_of(s, at)->op == RFX_OP_RESHAPE) {
            at = node_of(s, at)->in[0];
            continue;
        }
        enum rfx_status status = take_scale(s, &at, &taken);
        if (status != RFX_OK) return status;
        scaled = scaled || taken;
        if (!taken && !scaled) status = take_hidden(s, &at, &taken);
        if (status != RFX_OK) return status;
        if (taken) continue;
        if (scaled || !take_added(s, &at)) return RFX_OK; /* a scaled bias is not supported */
    }
    *product = at;
    return RFX_OK;
}

static void push(struct rfx_pixels_factor *list, int *n, int axis, int64_t size, int64_t stride) {
    if (size > 1) list[(*n)++] = (struct rfx_pixels_factor){axis, size, stride};
}

/* Returns whether the axes of part i are windows, heads (or heads, windows if `heads_first`), then
 * pixels, channels of the head (of keys channels, pixels). */
static bool has_order(const struct search *s, int i, bool heads_first) {
    const struct rfx_window_attention_attr *a = &s->out->attr;
    const struct rfx_pixels *p = &s->out->parts[i];
    struct rfx_pixels_factor want[RFX_PIXELS_FACTORS], merged[RFX_PIXELS_FACTORS];
    int64_t size = s->out->size[i], stride = s->out->stride[i];
    bool turned = i == KEYS;
    int n = 0;
    if (heads_first) push(want, &n, RFX_PIXELS_CHANNEL, a->heads, stride);
    push(want, &n, RFX_PIXELS_ROW, s->down, a->h);
    push(want, &n, RFX_PIXELS_COL, s->across, a->w);
    if (!heads_first) push(want, &n, RFX_PIXELS_CHANNEL, a->heads, stride);
    if (turned) push(want, &n, RFX_PIXELS_CHANNEL, size, 1);
    push(want, &n, RFX_PIXELS_ROW, a->h, 1);
    push(want, &n, RFX_PIXELS_COL, a->w, 1);
    if (!turned) push(want, &n, RFX_PIXELS_CHANNEL, size, 1);
    n = rfx_pixels_merge(want, n, want);
    if (rfx_pixels_merge(p->factors, p->count, merged) != n) return false;
    for (int f = 0; f < n; f++)
        if (merged[f].axis != want[f].axis || merged[f].size != want[f].size ||
            merged[f].stride != want[f].stride)
            return false;
    struct rfx_shape shape = rfx_pixels_shape(p);
    return shape.rank >= 3 && shape.dims[shape.rank - 2] == (turned ? size : s->pixels) &&
           shape.dims[shape.rank - 1] == (turned ? s->pixels : size);
}

/* If the map of a part is another map times one number, replaces it by that map and takes the
 * number into s->scale. */
static enum rfx_status look_through_factor(struct search *s, struct rfx_pixels *p, bool *through) {
    const struct rfx_node *n = node_of(s, p->map);
    float value;
    *through = n->op == RFX_OP_AFFINE && n->act.kind == RFX_ACT_NONE && n->attr.affine.shift < 0 &&
               n->attr.affine.scale >= 0 && s->graph->weights[n->attr.affine.scale].elems == 1;
    if (!*through) return RFX_OK;
    p->map = n->in[0];
    enum rfx_status status =
        rfx_weight_read(&s->graph->weights[n->attr.affine.scale], 0, 1, &value, s->err);
    if (status == RFX_OK) s->scale *= (double)value;
    return status;
}

/* If the map of a part is consecutive channels of another map, replaces it by that map. */
static bool look_through_select(const struct search *s, struct rfx_pixels *p) {
    const struct rfx_node *n = node_of(s, p->map);
    if (n->op != RFX_OP_CHANNEL_SELECT || n->act.kind != RFX_ACT_NONE) return false;
    const int64_t *from = n->attr.select.map;
    for (int64_t i = 0; i < n->attr.select.count; i++)
        if (from[0] < 0 || from[i] != from[0] + i) return false;
    p->map = n->in[0];
    p->first += from[0];
    p->extent[RFX_PIXELS_CHANNEL] = node_of(s, p->map)->out.c;
    return true;
}

/* Replaces the maps of queries, keys and values by the maps from which they were scaled or
 * selected. */
static enum rfx_status look_through(struct search *s) {
    for (int i = 0; i < 3; i++) {
        bool through = i < 2; /* s->scale is not applied to the values */
        while (through) {
            enum rfx_status status = look_through_factor(s, &s->out->parts[i], &through);
            if (status != RFX_OK) return status;
        }
        while (look_through_select(s, &s->out->parts[i])) continue;
    }
    return RFX_OK;
}

/* Sets the channels of a head of part i, and those from one head to the next. */
static bool find_head(struct search *s, int i) {
    const struct rfx_pixels *p = &s->out->parts[i];
    struct rfx_shape shape = rfx_pixels_shape(p);
    if (shape.rank < 3) return false;
    s->out->size[i] = s->out->stride[i] = shape.dims[shape.rank - (i == KEYS ? 2 : 1)];
    for (int f = 0; f < p->end[shape.rank - 3]; f++) /* the innermost factor of the heads is last */
        if (p->factors[f].axis == RFX_PIXELS_CHANNEL) s->out->stride[i] = p->factors[f].stride;
    return true;
}

/* Sets all sizes: the window from the queries' axis of pixels, the heads from their axis of
 * channels. */
static bool find_sizes(struct search *s) {
    struct rfx_window_attention_attr *a = &s->out->attr;
    const struct rfx_pixels *q = &s->out->parts[QUERIES];
    struct rfx_shape shape = rfx_pixels_shape(q);
    for (int i = 0; i < 3; i++)
        if (!find_head(s, i)) return false;
    a->h = a->w = 1;
    for (int f = q->end[shape.rank - 3]; f < q->end[shape.rank - 2]; f++) {
        if (q->factors[f].axis == RFX_PIXELS_ROW) a->h *= q->factors[f].size;
        if (q->factors[f].axis == RFX_PIXELS_COL) a->w *= q->factors[f].size;
    }
    int64_t channels = 1;
    for (int f = 0; f < q->count; f++)
        if (q->factors[f].axis == RFX_PIXELS_CHANNEL) channels *= q->factors[f].size;
    s->pixels = a->h * a->w;
    a->heads = channels / s->out->size[QUERIES];
    a->value_size = s->out->size[VALUES] != s->out->size[KEYS] ? s->out->size[VALUES] : 0;
    a->shift_h = q->roll[0];
    a->shift_w = q->roll[1];
    if (a->heads < 1 || q->extent[0] % a->h != 0 || q->extent[1] % a->w != 0) return false;
    s->down = q->extent[0] / a->h;
    s->across = q->extent[1] / a->w;
    return s->pixels > 1 &&
           s->pixels <= (s->n_added > 0 ? RFX_WINDOW_MOST_BIASED : RFX_WINDOW_MOST_PIXELS) &&
           a->heads <= RFX_WINDOW_MOST_HEADS && a->shift_h < a->h && a->shift_w < a->w;
}

/* Describes a part; *good is false if it has no description. If `scaled`, numbers that the part is
 * multiplied by, before or after its elements move, become factors of s->scale. */
static enum rfx_status find_part(struct search *s, int node, bool scaled, struct rfx_pixels *p,
                                 bool *good) {
    int moves[MOST_MOVES], n = 0;
    *good = false;
    while (!rfx_pixels_of(s->graph, node, p)) {
        bool taken = false;
        enum rfx_status status = scaled ? take_scale(s, &node, &taken) : RFX_OK;
        if (status != RFX_OK) return status;
        if (taken) continue;
        enum rfx_op op = node_of(s, node)->op;
        if (n == MOST_MOVES || (op != RFX_OP_RESHAPE && op != RFX_OP_TRANSPOSE)) return RFX_OK;
        moves[n++] = node;
        node = node_of(s, node)->in[0];
    }
    *good = true;
    while (*good && n > 0) *good = rfx_pixels_move(s->graph, moves[--n], p);
    return RFX_OK;
}

static bool have_same_order(struct search *s) {
    if (!find_sizes(s)) return false;
    s->heads_first = !has_order(s, QUERIES, false);
    for (int i = 0; i < 3; i++) {
        const struct rfx_pixels *p = &s->out->parts[i], *q = &s->out->parts[QUERIES];
        if (!has_order(s, i, s->heads_first) || p->roll[0] != q->roll[0] ||
            p->roll[1] != q->roll[1] || p->extent[0] != q->extent[0] ||
            p->extent[1] != q->extent[1])
            return false;
    }
    return true;
}

/* A constant's axes, aligned with those of the scores. `at` is the last axis that has not been
 * taken. */
struct axes {
    int at;
    int64_t dims[RFX_MAX_RANK], stride;
};

/* Takes axes, from the last one, until the product of their sizes is `wanted`: axes of heads (sets
 * v->heads) or of windows (sets v->windows). */
static bool take_axes(const struct rfx_shape *scores, int64_t wanted, bool heads, struct axes *x,
                      struct varies *v) {
    int64_t taken = 1;
    if (!heads) v->end = x->at + 1;
    for (; x->at >= 0 && taken < wanted; x->at--) {
        int64_t own = x->dims[x->at], all = scores->dims[x->at];
        if (own != 1 && own != all) return false;
        taken *= all;
        if (heads)
            v->heads = v->heads || own != 1;
        else
            v->windows[x->at] = own == 1 ? 0 : x->stride;
        x->stride *= own;
    }
    if (!heads) v->from = x->at + 1;
    return taken == wanted;
}

/* Sets *v to the axes along which an added constant changes. Returns false when its shape does not
 * fit. */
static bool find_varies(const struct search *s, const struct added *added, struct varies *v) {
    const struct rfx_shape *scores = &added->scores, *c = &node_of(s, added->constant)->out.shape;
    int64_t windows = s->down * s->across, heads = s->out->attr.heads;
    struct axes x = {.at = scores->rank - 3, .stride = s->pixels * s->pixels};
    int rank = scores->rank;
    *v = (struct varies){.heads = false};
    if (rank < 3 || c->rank > rank) return false;
    for (int i = 0; i < rank; i++)
        x.dims[i] = i < rank - c->rank ? 1 : c->dims[i - (rank - c->rank)];
    for (int i = rank - 2; i < rank; i++)
        if (scores->dims[i] != s->pixels || x.dims[i] != s->pixels) return false;
    for (int k = 0; k < 2; k++) {
        bool of_heads = s->heads_first == (k == 1);
        if (!take_axes(scores, of_heads ? heads : windows, of_heads, &x, v)) return false;
    }
    for (; x.at >= 0; x.at--)
        if (scores->dims[x.at] != 1) return false;
    return true;
}

/* Returns the index in a constant of the first score of a window. */
static int64_t place_of(const struct search *s, const struct added *added, const struct varies *v,
                        int64_t row, int64_t col) {
    int64_t index = row * s->across + col, place = 0;
    for (int i = v->end - 1; i >= v->from; i--) {
        place += index % added->scores.dims[i] * v->windows[i];
        index /= added->scores.dims[i];
    }
    return place;
}

static void find_directions(const struct search *s, const struct added *added, struct varies *v) {
    for (int64_t row = 0; row < s->down && !(v->rows && v->cols); row++)
        for (int64_t col = 0; col < s->across && !(v->rows && v->cols); col++) {
            int64_t place = place_of(s, added, v, row, col);
            v->rows = v->rows || place != place_of(s, added, v, 0, col);
            v->cols = v->cols || place != place_of(s, added, v, row, 0);
        }
}

/* Compares the constant's values for one window with each kind of mask, and clears the members of
 * *m that do not fit. A mask must be -100 or less between pixels that only the roll has brought
 * together, and 0 elsewhere. Such pixels are in the last windows of an axis, which end with the
 * map's first pixels. */
static enum rfx_status check_window(const struct search *s, const struct added *added,
                                    const struct varies *v, int64_t row, int64_t col,
                                    struct rfx_masks *m) {
    const struct rfx_window_attention_attr *a = &s->out->attr;
    const struct rfx_weight *weight =
        &s->graph->weights[node_of(s, added->constant)->attr.constant.weight];
    int64_t place = place_of(s, added, v, row, col), n = s->pixels * s->pixels;
    int64_t low = row == s->down - 1 ? a->h - a->shift_h : a->h;
    int64_t right = col == s->across - 1 ? a->w - a->shift_w : a->w;
    float values[PIECE];
    for (int64_t first = 0; first < n; first += PIECE) {
        int64_t count = rfx_min_i64(PIECE, n - first);
        enum rfx_status status = rfx_weight_read(weight, place + first, count, values, s->err);
        if (status != RFX_OK) return status;
        for (int64_t e = 0; e < count; e++) {
            int64_t i = (first + e) / s->pixels, j = (first + e) % s->pixels;
            bool rows = (i / a->w < low) != (j / a->w < low);
            bool cols = (i % a->w < right) != (j % a->w < right);
            bool masked = added->hides ? values[e] != 0.0f : values[e] <= HIDDEN;
            bool known = masked || values[e] == 0.0f;
            m->rows = m->rows && known && masked == rows;
            m->cols = m->cols && known && masked == cols;
            m->both = m->both && known && masked == (rows || cols);
        }
    }
    return RFX_OK;
}

/* Does the same for a mask that is not stored. The mask must have all windows and no heads. */
static enum rfx_status find_tree_masks(const struct search *s, const struct added *added,
                                       const struct varies *v, struct rfx_masks *m) {
    const struct rfx_window_attention_attr *a = &s->out->attr;
    const struct rfx_mask_windows windows = {s->down, s->across,  a->h,
                                             a->w,    a->shift_h, a->shift_w};
    int64_t all = s->down * s->across * s->pixels * s->pixels;
    bool known = added->hides && !v->heads && node_of(s, added->constant)->out.elems == all;
    enum rfx_status status = RFX_OK;
    if (known) status = rfx_mask_tree_check(s->graph, added->constant, &windows, m, &known, s->err);
    if (!known) *m = (struct rfx_masks){false, false, false};
    return status;
}

/* Returns whether the values for `count` windows, beginning with window a = (row, column), are the
 * same as those beginning with window b. It compares how the constant is stored, not the values:
 * false does not mean that they differ. */
static bool same_windows(const struct search *s, const struct added *added, const struct varies *v,
                         const int64_t *a, const int64_t *b, int64_t count) {
    const struct rfx_weight *weight =
        &s->graph->weights[node_of(s, added->constant)->attr.constant.weight];
    int64_t n = s->pixels * s->pixels, at = place_of(s, added, v, a[0], a[1]);
    bool together = place_of(s, added, v, a[0], a[1] + count - 1) == at + (count - 1) * n;
    return together && rfx_weight_repeats(weight, at, place_of(s, added, v, b[0], b[1]), count * n);
}

/* Checks a row of windows. A window with the same values as the window before it is skipped, except
 * the last one. */
static enum rfx_status check_row(const struct search *s, const struct added *added,
                                 const struct varies *v, int64_t row, struct rfx_masks *m) {
    int64_t step = v->cols || s->across == 1 ? 1 : s->across - 1;
    enum rfx_status status = RFX_OK;
    for (int64_t col = 0; status == RFX_OK && col < s->across; col += step) {
        const int64_t at[2] = {row, col}, before[2] = {row, col - 1};
        bool same = col > 0 && col < s->across - 1 && same_windows(s, added, v, at, before, 1);
        if (!same && (m->rows || m->cols || m->both))
            status = check_window(s, added, v, row, col, m);
    }
    return status;
}

/* Sets *m to the kinds of mask that a constant is. Along an axis on which the constant does not
 * change, only the first and the last windows are checked. */
static enum rfx_status find_masks(const struct search *s, const struct added *added,
                                  const struct varies *v, struct rfx_masks *m) {
    int64_t step = v->rows || s->down == 1 ? 1 : s->down - 1;
    enum rfx_status status = RFX_OK;
    *m = (struct rfx_masks){!v->heads, !v->heads, !v->heads};
    for (int64_t row = 0; status == RFX_OK && row < s->down; row += step) {
        const int64_t at[2] = {row, 0}, before[2] = {row - 1, 0};
        bool same =
            row > 0 && row < s->down - 1 && same_windows(s, added, v, at, before, s->across);
        if (!same) status = check_row(s, added, v, row, m);
    }
    return status;
}

/* Explains each added constant as a mask of the roll or as the bias. *good is set to false when
 * that is not possible, or when a mask is missing. */
static enum rfx_status explain_added(struct search *s, bool *good) {
    struct rfx_window_attention_attr *a = &s->out->attr;
    bool rows = a->shift_h == 0, cols = a->shift_w == 0; /* no mask is missing */
    enum rfx_status status = RFX_OK;
    a->bias = -1;
    for (int k = 0; status == RFX_OK && *good && k < s->n_added; k++) {
        struct varies v;
        struct rfx_masks m;
        *good = find_varies(s, &s->added[k], &v);
        if (!*good) break;
        find_directions(s, &s->added[k], &v);
        status = is_constant(s, s->added[k].constant) ? find_masks(s, &s->added[k], &v, &m)
                                                      : find_tree_masks(s, &s->added[k], &v, &m);
        rows = rows || m.both || m.rows;
        cols = cols || m.both || m.cols;
        if (m.both || m.rows || m.cols) continue;
        if (s->added[k].hides) *good = false;
        if (!*good) break;
        *good = !v.rows && !v.cols && (v.heads || a->heads == 1) && a->bias < 0;
        a->bias = node_of(s, s->added[k].constant)->attr.constant.weight;
    }
    *good = *good && rows && cols;
    return status;
}

enum rfx_status rfx_find_windows(const struct rfx_graph *graph, int softmax, int values,
                                 const struct rfx_shape *product, struct rfx_found_windows *out,
                                 struct rfx_error *err) {
    struct search s = {.graph = graph, .err = err, .out = out, .scale = 1.0};
    int scores;
    bool good = true;
    *out = (struct rfx_found_windows){.found = false,
                                      .attr.steps = graph->nodes[softmax].attr.softmax.steps};
    enum rfx_status status = climb(&s, softmax, &scores);
    if (status != RFX_OK || scores < 0) return status;
    const int nodes[3] = {node_of(&s, scores)->in[0], node_of(&s, scores)->in[1], values};
    for (int i = 0; status == RFX_OK && good && i < 3; i++)
        status = find_part(&s, nodes[i], i < 2, &out->parts[i], &good);
    if (status != RFX_OK || !good || !have_same_order(&s)) return status;
    status = explain_added(&s, &good);
    if (status == RFX_OK && good) status = look_through(&s);
    if (status != RFX_OK || !good) return status;
    out->attr.scale = (float)s.scale;
    out->out = out->parts[VALUES];
    out->out.first = 0;
    for (int f = 0; f < out->out.count; f++) {
        struct rfx_pixels_factor *factor = &out->out.factors[f];
        if (factor->axis == RFX_PIXELS_CHANNEL && factor->stride >= out->stride[VALUES])
            factor->stride = factor->stride / out->stride[VALUES] * out->size[VALUES];
    }
    out->out.extent[RFX_PIXELS_CHANNEL] = out->attr.heads * out->size[VALUES];
    out->found = rfx_pixels_reshape(&out->out, product);
    return RFX_OK;
}
