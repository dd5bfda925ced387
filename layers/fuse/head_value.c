/* Reorders channels of values; see head_value.h. */
#include "layers/fuse/head_value.h"

#include <stdio.h>
#include <string.h>

enum rfx_status rfx_head_make(struct rfx_heads *h, const struct rfx_head_value *like,
                              const struct rfx_shape *shape, int64_t n,
                              struct rfx_head_value *out) {
    struct rfx_memory *mem = h->graph->mem;
    *out = *like;
    out->known = false;
    out->from = NULL;
    if (n > RFX_HEAD_MAX_CHANNELS) return RFX_OK;
    out->shape = *shape;
    out->n = n;
    out->from = rfx_memory_calloc(mem, (size_t)n, sizeof *out->from);
    if (out->from == NULL)
        return rfx_memory_fail(mem, "heads", (size_t)n * sizeof *out->from, h->err);
    for (int64_t e = 0; e < n; e++) out->from[e] = e;
    out->known = true;
    return RFX_OK;
}

void rfx_head_release(struct rfx_heads *h, struct rfx_head_value *value) {
    rfx_memory_release(h->graph->mem, value->from);
    *value = (struct rfx_head_value){.known = false};
}

void rfx_head_unravel(const struct rfx_head_value *value, int64_t e, int64_t *at) {
    for (int i = value->shape.rank - 1; i >= 0; i--) {
        bool channels = value->kind[i] == RFX_HEAD_CHANNELS;
        at[i] = channels ? e % value->shape.dims[i] : 0;
        if (channels) e /= value->shape.dims[i];
    }
}

int64_t rfx_head_ravel(const struct rfx_head_value *value, const int64_t *at) {
    int64_t e = 0;
    for (int i = 0; i < value->shape.rank; i++)
        if (value->kind[i] == RFX_HEAD_CHANNELS) e = e * value->shape.dims[i] + at[i];
    return e;
}

int64_t rfx_head_step(const struct rfx_heads *h, const struct rfx_head_value *value, int level) {
    return h->graph->nodes[value->map[level]].out.c / value->anchors[level];
}

bool rfx_head_has_anchors(const struct rfx_head_value *value) {
    bool any = false;
    for (int l = 0; l < value->n_levels; l++) any = any || value->anchors[l] > 1;
    return any;
}

static int64_t count_channels(const struct rfx_head_value *value, const struct rfx_shape *shape) {
    int64_t n = 1;
    for (int i = 0; i < shape->rank; i++)
        if (value->kind[i] == RFX_HEAD_CHANNELS) n *= shape->dims[i];
    return n;
}

/* State of a reshape. */
struct matching {
    const struct rfx_heads *h;
    const struct rfx_head_value *in;
    struct rfx_head_value *out;
    int64_t before, anchors; /* channels in front of the anchors; number of anchors, the channels
                                that become cells */
    bool inner;              /* the anchors are behind the pixels */
};

/* A group of axes of the old or the new shape, without axes of extent 1. */
struct axes {
    int n, at[RFX_MAX_RANK];
};

static struct axes long_axes(const int64_t *dims, int from, int to) {
    struct axes axes = {.n = 0};
    for (int i = from; i < to; i++)
        if (dims[i] != 1) axes.at[axes.n++] = i;
    return axes;
}

/* Whether the axes from the k-th on are all pixels of the value's only map. */
static bool is_one_map(const struct rfx_head_value *in, const struct axes *axes, int k) {
    if (in->n_levels != 1 || in->anchors[0] != 1) return false;
    if (axes->n - k == 1) return in->kind[axes->at[k]] == RFX_HEAD_CELLS;
    return axes->n - k == 2 && in->kind[axes->at[k]] == RFX_HEAD_ROWS &&
           in->kind[axes->at[k + 1]] == RFX_HEAD_COLUMNS;
}

/* Sets the number of channels in front of a group of old axes. */
static void count_before(struct matching *m, const struct axes *old) {
    for (int i = 0; i < old->at[0]; i++)
        if (m->in->kind[i] == RFX_HEAD_CHANNELS) m->before *= m->in->shape.dims[i];
}

/* Whether channels and all pixels after them can be merged into one axis. If so, sets m->before and
 * m->anchors. */
static bool match_anchors(struct matching *m, const struct axes *old) {
    const struct rfx_head_value *in = m->in;
    int k = 0;
    int64_t anchors = 1;
    while (k < old->n && in->kind[old->at[k]] == RFX_HEAD_CHANNELS)
        anchors *= in->shape.dims[old->at[k++]];
    if (!is_one_map(in, old, k) || m->anchors != 1 || anchors > RFX_HEAD_MAX_LEVELS) return false;
    m->anchors = anchors;
    count_before(m, old);
    return true;
}

/* Whether the old axes are all pixels and channels behind them, and the first new axis has all
 * pixels and some of these channels. If so, sets m->before, m->anchors and the kind of the axis. */
static bool match_inner_anchors(struct matching *m, const struct axes *old,
                                const struct axes *new) {
    const struct rfx_head_value *in = m->in;
    int64_t cells = m->out->shape.dims[new->at[0]], pixels = 1;
    int k = 0;
    while (k < old->n && in->kind[old->at[k]] != RFX_HEAD_CHANNELS)
        pixels *= in->shape.dims[old->at[k++]];
    for (int i = k; i < old->n; i++)
        if (in->kind[old->at[i]] != RFX_HEAD_CHANNELS) return false;
    /* A row, or the rows of a map whose columns are in another group, would be no whole pixels. */
    bool all = in->kind[old->at[0]] == RFX_HEAD_CELLS || (k == 2 && in->n_levels == 1);
    if (k < 1 || !all || m->anchors != 1 || cells % pixels != 0) return false;
    if (k == 2 && in->kind[old->at[0]] != RFX_HEAD_ROWS) return false;
    m->out->kind[new->at[0]] = RFX_HEAD_CELLS;
    m->anchors = cells / pixels;
    m->inner = true;
    count_before(m, old);
    return true;
}

/* Whether a group of old axes can become a group of new axes with as many elements. If so, sets the
 * kinds of the new axes. */
static bool match_axes(struct matching *m, const struct axes *old, const struct axes *new) {
    const struct rfx_head_value *in = m->in;
    const struct rfx_tensor *map = &m->h->graph->nodes[in->map[0]].out;
    enum rfx_head_axis *kind = m->out->kind;
    bool pixels = false;
    for (int i = 0; i < old->n; i++) pixels |= in->kind[old->at[i]] != RFX_HEAD_CHANNELS;
    if (!pixels) return true;
    if (new->n == 1) {
        kind[new->at[0]] = old->n == 1 ? in->kind[old->at[0]] : RFX_HEAD_CELLS;
        if (old->n == 1 || match_anchors(m, old)) return true;
    }
    if (old->n > 1) return match_inner_anchors(m, old, new);
    if (new->n != 2 || !is_one_map(in, old, 0)) return false;
    kind[new->at[0]] = RFX_HEAD_ROWS;
    kind[new->at[1]] = RFX_HEAD_COLUMNS;
    return m->out->shape.dims[new->at[0]] == map->h && m->out->shape.dims[new->at[1]] == map->w;
}

/* Groups old and new axes, as few at a time as have equal numbers of elements, and matches each
 * pair of groups. */
static bool match_shape(struct matching *m) {
    const struct rfx_shape *old = &m->in->shape, *new = &m->out->shape;
    int i = 0, j = 0;
    for (;;) {
        while (i < old->rank && old->dims[i] == 1) i++;
        while (j < new->rank &&new->dims[j] == 1) j++;
        if (i == old->rank || j == new->rank) return i == old->rank && j == new->rank;
        int i0 = i, j0 = j;
        int64_t a = old->dims[i++], b = new->dims[j++];
        while (a != b) {
            if (a < b ? i == old->rank : j == new->rank) return false;
            if (a < b)
                a *= old->dims[i++];
            else
                b *= new->dims[j++];
        }
        struct axes from = long_axes(old->dims, i0, i), to = long_axes(new->dims, j0, j);
        if (!match_axes(m, &from, &to)) return false;
    }
}

/* Returns which channel of the old value is channel e of anchor a. */
static int64_t of_anchor(const struct matching *m, int64_t a, int64_t e) {
    int64_t behind = m->in->n / m->anchors / m->before;
    return (e / behind * m->anchors + a) * behind + e % behind;
}

/* Makes the anchors behind the pixels cells: anchor by anchor, the maps have the remaining
 * channels.
 */
static enum rfx_status take_anchors(struct rfx_heads *h, const struct matching *m) {
    struct rfx_memory *mem = h->graph->mem;
    struct rfx_head_value *out = m->out;
    int64_t rest = m->in->n / m->anchors;
    size_t bytes = (size_t)out->n * sizeof(int64_t);
    int64_t *order = rfx_memory_alloc(mem, bytes);
    if (order == NULL) return rfx_memory_fail(mem, "heads", bytes, h->err);
    for (int64_t i = 0; i < out->n; i++) order[i] = of_anchor(m, i / rest, i % rest);
    enum rfx_status status = rfx_head_settle(h, out, order);
    rfx_memory_release(mem, order);
    for (int l = 0; l < out->n_levels; l++) out->anchors[l] *= m->anchors;
    out->n = rest;
    for (int64_t e = 0; e < rest; e++) out->from[e] = e;
    return status;
}

enum rfx_status rfx_head_as_cells(struct rfx_heads *h, struct rfx_head_value *value, int axis) {
    const struct rfx_tensor *map = &h->graph->nodes[value->map[0]].out;
    struct matching m = {
        .h = h, .in = value, .out = value, .before = 1, .anchors = value->shape.dims[axis]};
    if (value->kind[axis] != RFX_HEAD_CHANNELS) return RFX_OK;
    value->known =
        value->n_levels == 1 && value->anchors[0] == 1 && map->h * map->w == 1 && m.anchors > 0;
    if (!value->known) return RFX_OK;
    for (int i = 0; i < axis; i++)
        if (value->kind[i] == RFX_HEAD_CHANNELS) m.before *= value->shape.dims[i];
    enum rfx_status status = take_anchors(h, &m);
    value->kind[axis] = RFX_HEAD_CELLS;
    return status;
}

/* Makes each anchor in front of the pixels a level, whose maps have the remaining channels. */
static enum rfx_status split_anchors(struct rfx_heads *h, const struct matching *m) {
    struct rfx_head_value *out = m->out, level;
    int64_t rest = m->in->n / m->anchors;
    int map = m->in->map[0];
    enum rfx_status status = RFX_OK;
    for (int64_t a = 0; a < m->anchors && status == RFX_OK && out->known; a++) {
        status = rfx_head_make(h, m->in, &m->in->shape, rest, &level);
        if (status != RFX_OK) return status;
        level.map[0] = map;
        for (int64_t e = 0; e < rest; e++) level.from[e] = m->in->from[of_anchor(m, a, e)];
        status = rfx_head_settle(h, &level, NULL);
        out->known = level.known;
        out->map[a] = level.map[0];
        out->anchors[a] = 1;
        rfx_head_release(h, &level);
    }
    out->n_levels = (int)m->anchors;
    out->n = rest;
    for (int64_t e = 0; e < rest; e++) out->from[e] = e;
    return status;
}

enum rfx_status rfx_head_reshape(struct rfx_heads *h, const struct rfx_head_value *in,
                                 const struct rfx_shape *shape, struct rfx_head_value *out) {
    enum rfx_status status = rfx_head_make(h, in, shape, in->n, out);
    struct matching m = {.h = h, .in = in, .out = out, .before = 1, .anchors = 1};
    if (status != RFX_OK || !out->known) return status;
    for (int i = 0; i < RFX_MAX_RANK; i++) out->kind[i] = RFX_HEAD_CHANNELS;
    memcpy(out->from, in->from, (size_t)in->n * sizeof *in->from);
    out->known = match_shape(&m);
    if (!out->known || m.anchors == 1) return RFX_OK;
    return m.inner ? take_anchors(h, &m) : split_anchors(h, &m);
}

enum rfx_status rfx_head_transpose(struct rfx_heads *h, const struct rfx_head_value *in,
                                   const int *perm, struct rfx_head_value *out) {
    struct rfx_shape shape = in->shape;
    int64_t at[RFX_MAX_RANK], old[RFX_MAX_RANK];
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = in->shape.dims[perm[i]];
    enum rfx_status status = rfx_head_make(h, in, &shape, in->n, out);
    if (status != RFX_OK || !out->known) return status;
    for (int i = 0; i < shape.rank; i++) out->kind[i] = in->kind[perm[i]];
    for (int64_t e = 0; e < out->n; e++) {
        rfx_head_unravel(out, e, at);
        for (int i = 0; i < shape.rank; i++) old[perm[i]] = at[i];
        out->from[e] = in->from[rfx_head_ravel(in, old)];
    }
    return RFX_OK;
}

/* Removes the levels before cell `from` and those from cell `to` on. Returns false if one of these
 * cells is not the first one of a level. */
static bool keep_levels(const struct rfx_heads *h, struct rfx_head_value *value, int64_t from,
                        int64_t to) {
    int64_t first = 0;
    int kept = 0;
    bool whole = true;
    for (int l = 0; l < value->n_levels; l++) {
        const struct rfx_tensor *map = &h->graph->nodes[value->map[l]].out;
        int64_t end = first + map->h * map->w * value->anchors[l];
        whole = whole && (end <= from || first >= from) && (end <= to || first >= to);
        if (first >= from && end <= to) {
            value->map[kept] = value->map[l];
            value->anchors[kept++] = value->anchors[l];
        }
        first = end;
    }
    value->n_levels = kept;
    return whole && kept > 0;
}

/* Removes the levels of which a slice takes nothing. Returns false if a slice or a gather takes
 * only some pixels of another one. */
static bool takes_all_pixels(const struct rfx_heads *h, struct rfx_head_value *in,
                             const struct rfx_node *node) {
    const struct rfx_slice_attr *slice = &node->attr.slice;
    for (int i = 0; i < in->shape.rank; i++) {
        if (in->kind[i] == RFX_HEAD_CHANNELS) continue;
        if (node->op == RFX_OP_PLAIN_GATHER && node->attr.gather.axis == i) return false;
        if (node->op != RFX_OP_PLAIN_SLICE) continue;
        int64_t from = slice->starts[i], to = from + slice->shape.dims[i];
        if (slice->steps[i] != 1) return false;
        if (in->kind[i] == RFX_HEAD_CELLS && !keep_levels(h, in, from, to)) return false;
        if (in->kind[i] != RFX_HEAD_CELLS && (from != 0 || to != in->shape.dims[i])) return false;
    }
    return true;
}

enum rfx_status rfx_head_take(struct rfx_heads *h, const struct rfx_head_value *in,
                              const struct rfx_node *node, struct rfx_head_value *out) {
    int64_t at[RFX_MAX_RANK];
    struct rfx_head_value levels = *in;
    if (!takes_all_pixels(h, &levels, node)) return RFX_OK;
    const struct rfx_shape *shape = &node->out.shape;
    enum rfx_status status = rfx_head_make(h, &levels, shape, count_channels(in, shape), out);
    if (status != RFX_OK || !out->known) return status;
    for (int64_t e = 0; e < out->n; e++) {
        rfx_head_unravel(out, e, at);
        if (node->op == RFX_OP_PLAIN_GATHER)
            at[node->attr.gather.axis] = node->attr.gather.map[at[node->attr.gather.axis]];
        for (int i = 0; node->op == RFX_OP_PLAIN_SLICE && i < shape->rank; i++)
            at[i] = node->attr.slice.starts[i] + at[i] * node->attr.slice.steps[i];
        out->from[e] = in->from[rfx_head_ravel(in, at)];
    }
    return RFX_OK;
}

enum rfx_status rfx_head_expand(struct rfx_heads *h, const struct rfx_head_value *in,
                                const struct rfx_shape *shape, struct rfx_head_value *out) {
    struct rfx_head_value wide = *in;
    int64_t at[RFX_MAX_RANK];
    int more = shape->rank - in->shape.rank;
    for (int i = shape->rank - 1; i >= 0; i--) {
        wide.kind[i] = i < more ? RFX_HEAD_CHANNELS : in->kind[i - more];
        wide.shape.dims[i] = i < more ? 1 : in->shape.dims[i - more];
        if (wide.kind[i] != RFX_HEAD_CHANNELS && wide.shape.dims[i] != shape->dims[i])
            return RFX_OK;
    }
    wide.shape.rank = shape->rank;
    enum rfx_status status = rfx_head_make(h, &wide, shape, count_channels(&wide, shape), out);
    if (status != RFX_OK || !out->known) return status;
    for (int64_t e = 0; e < out->n; e++) {
        rfx_head_unravel(out, e, at);
        for (int i = 0; i < shape->rank; i++)
            if (wide.shape.dims[i] == 1) at[i] = 0;
        out->from[e] = in->from[rfx_head_ravel(&wide, at)];
    }
    return RFX_OK;
}

bool rfx_head_same_pixels(const struct rfx_heads *h, const struct rfx_head_value *a,
                          const struct rfx_head_value *b) {
    int rank = a->shape.rank > b->shape.rank ? a->shape.rank : b->shape.rank;
    if (a->n_levels != b->n_levels) return false;
    for (int back = 1; back <= rank; back++) {
        int i = a->shape.rank - back, j = b->shape.rank - back;
        enum rfx_head_axis ka = i < 0 ? RFX_HEAD_CHANNELS : a->kind[i];
        enum rfx_head_axis kb = j < 0 ? RFX_HEAD_CHANNELS : b->kind[j];
        if (ka != kb) return false;
    }
    for (int l = 0; l < a->n_levels; l++) {
        const struct rfx_tensor *ta = &h->graph->nodes[a->map[l]].out;
        const struct rfx_tensor *tb = &h->graph->nodes[b->map[l]].out;
        if (ta->h != tb->h || ta->w != tb->w || a->anchors[l] != b->anchors[l]) return false;
    }
    return true;
}

bool rfx_head_is_refusal(enum rfx_status status) {
    return status == RFX_STATUS_UNSUPPORTED || status == RFX_STATUS_MALFORMED;
}

enum rfx_status rfx_head_add(struct rfx_heads *h, struct rfx_node *node, const int *in, int n_in,
                             const char *what, int level, int *out, bool *added) {
    char name[320];
    (void)snprintf(name, sizeof name, "%.240s/%s%d", h->name, what, level);
    size_t length = strlen(name);
    for (int again = 1; rfx_graph_find(h->graph, name) >= 0; again++)
        (void)snprintf(name + length, sizeof name - length, "#%d", again);
    node->name = name;
    node->alias = NULL;
    node->in = in;
    node->n_in = n_in;
    enum rfx_status status = rfx_graph_add(h->graph, node, out, h->err);
    *added = status == RFX_OK;
    return rfx_head_is_refusal(status) ? RFX_OK : status;
}

enum rfx_status rfx_head_settle(struct rfx_heads *h, struct rfx_head_value *value,
                                const int64_t *order) {
    struct rfx_memory *mem = h->graph->mem;
    int64_t most = 1, n = value->n, step = rfx_head_step(h, value, 0);
    for (int l = 0; l < value->n_levels; l++) most = rfx_max_i64(most, value->anchors[l]);
    if (most > RFX_HEAD_MAX_CHANNELS / n) {
        value->known = false;
        return RFX_OK;
    }
    size_t bytes = (size_t)(most * n) * sizeof(int64_t);
    int64_t *list = rfx_memory_alloc(mem, bytes);
    if (list == NULL) return rfx_memory_fail(mem, "heads", bytes, h->err);
    bool same = n == step;
    for (int64_t i = 0; i < most * n; i++) {
        list[i] = i / n * step + value->from[order == NULL ? i % n : order[i % n]];
        same = same && list[i] == i;
    }
    for (int64_t e = 0; e < n; e++) value->from[order == NULL ? e : order[e]] = e;
    enum rfx_status status = RFX_OK;
    for (int l = 0; !same && l < value->n_levels && status == RFX_OK && value->known; l++) {
        struct rfx_node node = {.op = RFX_OP_CHANNEL_SELECT};
        node.attr.select.count = value->anchors[l] * n;
        node.attr.select.map = list;
        status =
            rfx_head_add(h, &node, &value->map[l], 1, "channels", l, &value->map[l], &value->known);
    }
    rfx_memory_release(mem, list);
    return status;
}
