/* Splits a mask that is a tree of concatenations into boxes, tensors whose elements are all equal,
 * and compares each box with the values of each kind of mask at the same place. */
#include "rfexec/onnx/import/onnx_mask_tree.h"

#include "layers/core/checked.h"

#define MOST_DEPTH 12
#define PIECE 256 /* floats of a constant that are read at a time */

enum { DOWN, ACROSS, QUERY_ROW, QUERY_COL, KEY_ROW, KEY_COL, AXES };

struct tree {
    const struct rfx_graph *graph;
    struct rfx_error *err;
    enum rfx_status status;
    int64_t size[AXES], cut[AXES]; /* a mask changes along an axis only at the cut */
    int axis_of[RFX_MAX_RANK];     /* per axis of the tensor: one of AXES; -1: its size is 1 */
    struct rfx_masks *masks;
};

/* Returns whether all elements of a weight are equal, and sets *value to them. */
static bool weight_is_one(struct tree *t, int index, float *value) {
    const struct rfx_weight *weight = &t->graph->weights[index];
    float values[PIECE];
    for (int64_t first = 0; first < weight->elems; first += PIECE) {
        int64_t n = rfx_min_i64(PIECE, weight->elems - first);
        t->status = rfx_weight_read(weight, first, n, values, t->err);
        if (t->status != RFX_OK) return false;
        if (first == 0) *value = values[0];
        for (int64_t i = 0; i < n; i++)
            if (values[i] != *value) return false;
    }
    return weight->elems > 0;
}

/* Returns whether all elements of a node's tensor are equal, and sets *value to them. */
static bool is_one(struct tree *t, int node, float *value) {
    for (int steps = 0; steps < MOST_DEPTH; steps++) {
        const struct rfx_node *n = &t->graph->nodes[node];
        float other;
        switch ((int)n->op) {
            case RFX_OP_RESHAPE:
            case RFX_OP_TRANSPOSE:
            case RFX_OP_TO_PLAIN:
            case RFX_OP_NHWC_AS_PLAIN:
                node = n->in[0];
                break;
            case RFX_OP_CONST_PLAIN:
            case RFX_OP_CONST_MAP:
                return weight_is_one(t, n->attr.constant.weight, value);
            case RFX_OP_REPEAT:
                if (n->attr.repeat.down < 0) return weight_is_one(t, n->attr.repeat.across, value);
                if (!weight_is_one(t, n->attr.repeat.down, value)) return false;
                if (n->attr.repeat.across < 0) return true;
                return weight_is_one(t, n->attr.repeat.across, &other) && other == *value;
            default:
                return false;
        }
    }
    return false;
}

/* Clears the masks in t->masks that do not have the value `hides` everywhere in a box. */
static void check_box(const struct tree *t, const int64_t *lo, const struct rfx_shape *shape,
                      bool hides) {
    bool can[AXES][2]; /* whether the box has positions before the cut, and from it on */
    for (int k = 0; k < AXES; k++) {
        can[k][0] = t->cut[k] > 0;
        can[k][1] = t->cut[k] < t->size[k];
    }
    for (int i = 0; i < shape->rank; i++) {
        int k = t->axis_of[i];
        if (k < 0) continue;
        can[k][0] = lo[i] < t->cut[k];
        can[k][1] = lo[i] + shape->dims[i] > t->cut[k];
    }
    for (int sides = 0; sides < 1 << AXES; sides++) {
        bool at[AXES], there = true;
        for (int k = 0; k < AXES; k++) {
            at[k] = (sides >> k & 1) != 0;
            there = there && can[k][at[k]];
        }
        if (!there) continue;
        bool rows = at[DOWN] && at[QUERY_ROW] != at[KEY_ROW];
        bool cols = at[ACROSS] && at[QUERY_COL] != at[KEY_COL];
        t->masks->rows = t->masks->rows && hides == rows;
        t->masks->cols = t->masks->cols && hides == cols;
        t->masks->both = t->masks->both && hides == (rows || cols);
    }
}

/* Checks the part whose first element is at `lo`. Returns false when the part does not consist of
 * boxes. Calls itself for the parts of a concatenation, to a depth of MOST_DEPTH. */
static bool check_part(struct tree *t, int node, int64_t *lo, int depth) {
    const struct rfx_node *n = &t->graph->nodes[node];
    float value;
    if (n->op != RFX_OP_PLAIN_CONCAT) {
        if (!is_one(t, node, &value)) return false;
        check_box(t, lo, &n->out.shape, value != 0.0f);
        return true;
    }
    int axis = n->attr.concat.axis;
    int64_t start = lo[axis];
    bool good = depth < MOST_DEPTH;
    for (int k = 0; good && k < n->n_in; k++) {
        good = check_part(t, n->in[k], lo, depth + 1);
        lo[axis] += t->graph->nodes[n->in[k]].out.shape.dims[axis];
    }
    lo[axis] = start;
    return good;
}

/* Returns whether the axes of a tensor are those of windows, queries and keys, in this order. Sets
 * t->axis_of. */
static bool name_axes(struct tree *t, const struct rfx_shape *shape) {
    int next = 0;
    for (int i = 0; i < shape->rank; i++) {
        t->axis_of[i] = -1;
        if (shape->dims[i] == 1) continue;
        while (next < AXES && t->size[next] == 1) next++;
        if (next == AXES || t->size[next] != shape->dims[i]) return false;
        t->axis_of[i] = next++;
    }
    while (next < AXES && t->size[next] == 1) next++;
    return next == AXES;
}

enum rfx_status rfx_mask_tree_check(const struct rfx_graph *graph, int node,
                                    const struct rfx_mask_windows *w, struct rfx_masks *masks,
                                    bool *known, struct rfx_error *err) {
    struct tree t = {.graph = graph,
                     .err = err,
                     .status = RFX_OK,
                     .size = {w->down, w->across, w->h, w->w, w->h, w->w},
                     .cut = {w->down - 1, w->across - 1, w->h - w->shift_h, w->w - w->shift_w,
                             w->h - w->shift_h, w->w - w->shift_w},
                     .masks = masks};
    int64_t lo[RFX_MAX_RANK] = {0};
    *masks = (struct rfx_masks){true, true, true};
    for (int i = 0; i < MOST_DEPTH && graph->nodes[node].op == RFX_OP_RESHAPE; i++)
        node = graph->nodes[node].in[0];
    *known = name_axes(&t, &graph->nodes[node].out.shape) && check_part(&t, node, lo, 0);
    return t.status;
}
