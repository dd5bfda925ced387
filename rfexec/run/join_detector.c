/* Finds levels and sizes of a described head in the network's tensors, and adds the nodes that join
 * them; see join_detector.h. */
#include "rfexec/run/join_detector.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/run/join_heads.h"

enum { OUTPUTS = RFX_DETECTOR_OUTPUTS, LEVELS = RFX_DETECTOR_LEVELS, LETTERS = 4, TEXT = 160 };

struct join {
    struct rfx_graph *graph;
    struct rfx_detector *detector;
    bool only;
    int node[OUTPUTS][LEVELS]; /* tensors without a layout, each of one level; -1: not known yet */
    int whole[OUTPUTS];        /* tensors of outputs that have all levels */
    int peaks[LEVELS];         /* of centernet: the largest scores around each cell */
    struct rfx_error *err;
};

static const struct rfx_tensor *tensor_of(const struct join *j, int node) {
    return &j->graph->nodes[node].out;
}

static enum rfx_status add(struct join *j, const char *base, struct rfx_node *node, int in,
                           int *out) {
    char name[RFX_JOIN_NAME];
    rfx_join_free_name(j->graph, base, name);
    node->name = name;
    node->n_in = 1;
    node->in = &in;
    return rfx_graph_add(j->graph, node, out, j->err);
}

/* Reshapes *node. A reshape of a reshape is one reshape of what comes before. */
static enum rfx_status reshape(struct join *j, const struct rfx_shape *shape, int *node) {
    while (j->graph->nodes[*node].op == RFX_OP_RESHAPE) *node = j->graph->nodes[*node].in[0];
    if (rfx_shape_equal(&tensor_of(j, *node)->shape, shape)) return RFX_OK;
    struct rfx_node made = {.op = RFX_OP_RESHAPE};
    made.attr.reshape.shape = *shape;
    return add(j, "cells", &made, *node, node);
}

/* How an output declares its values. */
struct declared {
    struct rfx_shape shape;
    bool last; /* channels are the last axis */
};

/* Makes a feature map a tensor of the declared shape. */
static enum rfx_status as_declared(struct join *j, const struct declared *as, int *node) {
    if (tensor_of(j, *node)->layout == RFX_LAYOUT_PLAIN) return RFX_OK;
    struct rfx_node plain = {.op = as->last ? RFX_OP_NHWC_AS_PLAIN : RFX_OP_TO_PLAIN};
    enum rfx_status status = add(j, "values", &plain, *node, node);
    return status == RFX_OK ? reshape(j, &as->shape, node) : status;
}

/* Sets *node to the numbers of output k as a tensor of its declared shape. map: the same, as a
 * feature map if the output is one. */
static enum rfx_status take_output(struct join *j, int k, struct declared *as, int *map,
                                   int *node) {
    struct rfx_graph *graph = j->graph;
    const struct rfx_stored stored = graph->outputs[k].stored;
    *as = (struct declared){rfx_output_shape(graph, k), stored.reshaped && stored.last};
    enum rfx_status status = j->only
                                 ? rfx_graph_as_numbers(graph, graph->outputs[k].node, node, j->err)
                                 : rfx_join_take_output(graph, k, node, j->err);
    *map = *node;
    return status == RFX_OK ? as_declared(j, as, node) : status;
}

/* Fails with the shape of a tensor, which is not what the description says. */
RFX_PRINTF(4, 5)
static enum rfx_status refuse(const struct join *j, int o, int node, const char *format, ...) {
    char shape[RFX_SHAPE_TEXT], why[TEXT];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return rfx_fail(j->err, RFX_STATUS_INVALID_ARGUMENT,
                    "head '%s': outputs[%d], axes \"%s\", has the shape %s: %s", j->detector->name,
                    o, j->detector->outputs[o].axes,
                    rfx_shape_text(&tensor_of(j, node)->shape, "x", shape), why);
}

/* ---- axes ---- */

static int n_words(const char *axes) {
    int n = 1;
    for (const char *p = axes; *p != '\0'; p++) n += *p == ' ';
    return n;
}

/* Returns the axis (behind the batch, from 1) of a letter, or -1. */
static int axis_of(const char *axes, char letter) {
    int axis = 1;
    for (const char *p = axes; *p != '\0'; p++) {
        if (*p == letter) return axis;
        axis += *p == ' ';
    }
    return -1;
}

/* Whether a letter has an axis of its own. */
static bool is_alone(const char *axes, char letter) {
    const char *p = strchr(axes, letter);
    return p != NULL && (p == axes || p[-1] == ' ') && (p[1] == ' ' || p[1] == '\0');
}

/* Returns what a letter but v runs over in a level. */
static int64_t extent_of(const struct rfx_detector_level *level, char letter) {
    switch (letter) {
        case 'y':
            return level->h;
        case 'x':
        case 'n':
            return level->w;
        case 'a':
            return level->anchors;
        default:
            return 1;
    }
}

/* Returns the product of all letters but v of an axis. */
static int64_t known_extent(const char *axes, int axis, const struct rfx_detector_level *level) {
    int64_t product = 1;
    for (const char *p = axes; *p != '\0'; p++) {
        if (axis_of(axes, *p) != axis || *p == ' ') continue;
        if (!rfx_checked_mul_i64(product, extent_of(level, *p), &product)) return -1;
    }
    return product;
}

static int cells_axis(const char *axes) {
    return axis_of(axes, strchr(axes, 'n') != NULL ? 'n' : 'y');
}

/* ---- peaks ---- */

static bool has_peaks(const struct rfx_detector *d, int o) {
    return d->decode == RFX_DETECTOR_CENTERNET && d->outputs[o].values[0] == RFX_DETECTOR_SCORES;
}

/* Adds the largest values of the 3 x 3 pixels around each pixel of a map of scores. */
static enum rfx_status find_peaks(struct join *j, int o, const struct declared *as, int map,
                                  int scores, int *out) {
    const struct rfx_tensor *t = tensor_of(j, map);
    const struct rfx_shape *shape = &as->shape;
    int axis = axis_of(j->detector->outputs[o].axes, 'v'), first = axis == 1 ? 2 : 1;
    if (t->layout != RFX_LAYOUT_NHWC || as->last != (axis == 3) || shape->rank != 4 ||
        shape->dims[axis] != t->c || shape->dims[first] != t->h || shape->dims[first + 1] != t->w)
        return refuse(j, o, scores, "peaks are found in feature maps alone");
    struct rfx_node pool = {.op = RFX_OP_POOL_MAX};
    pool.attr.pool = (struct rfx_pool_attr){
        .kh = 3, .kw = 3, .sh = 1, .sw = 1, .dh = 1, .dw = 1, .pads = {1, 1, 1, 1}};
    enum rfx_status status = add(j, "peaks", &pool, map, out);
    return status == RFX_OK ? as_declared(j, as, out) : status;
}

/* ---- levels and their sizes ---- */

/* Checks that a tensor has as many axes as the description says. */
static enum rfx_status check_rank(const struct join *j, int o, int node) {
    const struct rfx_shape *shape = &tensor_of(j, node)->shape;
    int rank = 1 + n_words(j->detector->outputs[o].axes);
    if (shape->rank == rank && shape->dims[0] == 1) return RFX_OK;
    return refuse(j, o, node, "there must be %d axes, the first of them 1", rank);
}

/* Sets the nodes of the levels of an output, where they can be told before their sizes are known:
 * they are outputs of their own, or inputs of one concatenation. */
static enum rfx_status find_levels(struct join *j, int o) {
    const struct rfx_detector_output *out = &j->detector->outputs[o];
    int n_levels = j->detector->n_levels;
    enum rfx_status status = RFX_OK;
    for (int l = 0; l < n_levels; l++) j->node[o][l] = -1;
    for (int i = 0; i < out->n_names && status == RFX_OK; i++) {
        int k = rfx_join_find_output(j->graph, out->names[i]);
        if (k < 0)
            return rfx_fail(j->err, RFX_STATUS_INVALID_ARGUMENT,
                            "head '%s': the network has no output '%s'; its first one is '%s'",
                            j->detector->name, out->names[i], j->graph->outputs[0].name);
        struct declared as;
        int map;
        status = take_output(j, k, &as, &map, &j->whole[o]);
        if (status == RFX_OK) status = check_rank(j, o, j->whole[o]);
        if (status == RFX_OK && has_peaks(j->detector, o))
            status = find_peaks(j, o, &as, map, j->whole[o], &j->peaks[i]);
        if (out->n_names > 1 || n_levels == 1) j->node[o][i] = j->whole[o];
    }
    const struct rfx_node *whole = &j->graph->nodes[j->whole[o]];
    if (status != RFX_OK || out->n_names > 1 || n_levels == 1) return status;
    if (whole->op != RFX_OP_PLAIN_CONCAT || whole->n_in != n_levels ||
        whole->attr.concat.axis != cells_axis(out->axes))
        return RFX_OK;
    for (int l = 0; l < n_levels; l++) j->node[o][l] = whole->in[l];
    return RFX_OK;
}

/* Finds the map that a tensor is made of by moving its elements. */
static bool find_map(const struct join *j, int node, int64_t *h, int64_t *w) {
    while (tensor_of(j, node)->layout == RFX_LAYOUT_PLAIN) {
        if (j->graph->nodes[node].n_in != 1) return false;
        node = j->graph->nodes[node].in[0];
    }
    *h = tensor_of(j, node)->h;
    *w = tensor_of(j, node)->w;
    return true;
}

/* Sets the rows and columns of a level from the tensor of one output. False: they are not known
 * there. */
static bool size_of(const struct join *j, int o, int l) {
    const struct rfx_detector_output *out = &j->detector->outputs[o];
    struct rfx_detector_level *level = &j->detector->levels[l];
    int node = j->node[o][l];
    if (node < 0) return false;
    const struct rfx_shape *shape = &tensor_of(j, node)->shape;
    int axis = cells_axis(out->axes);
    if (is_alone(out->axes, 'n')) {
        level->h = 1;
        level->w = shape->dims[axis];
        return true;
    }
    if (is_alone(out->axes, 'y') && is_alone(out->axes, 'x')) {
        level->h = shape->dims[axis];
        level->w = shape->dims[axis_of(out->axes, 'x')];
        return true;
    }
    struct rfx_detector_level found = *level;
    if (!find_map(j, node, &found.h, &found.w) ||
        known_extent(out->axes, axis, &found) != shape->dims[axis])
        return false;
    *level = found;
    return true;
}

static enum rfx_status find_size(struct join *j, int l) {
    struct rfx_detector *d = j->detector;
    struct rfx_detector_level *level = &d->levels[l];
    for (int o = 0; o < d->n_outputs; o++)
        if (size_of(j, o, l)) return RFX_OK;
    if (!(level->stride > 0))
        return rfx_fail(j->err, RFX_STATUS_INVALID_ARGUMENT,
                        "head '%s': the rows and columns of levels[%d] cannot be told from the "
                        "outputs: give its \"stride\"",
                        d->name, l);
    level->h = (int64_t)ceil((double)d->image_h / (double)level->stride);
    level->w = (int64_t)ceil((double)d->image_w / (double)level->stride);
    return RFX_OK;
}

/* Cuts the levels out of an output that has all of them and is no concatenation. */
static enum rfx_status cut_levels(struct join *j, int o) {
    struct rfx_detector *d = j->detector;
    const char *axes = d->outputs[o].axes;
    int axis = cells_axis(axes);
    int64_t from = 0;
    enum rfx_status status = RFX_OK;
    if (j->node[o][0] >= 0) return RFX_OK;
    for (int l = 0; l < d->n_levels && status == RFX_OK; l++) {
        const struct rfx_shape *whole = &tensor_of(j, j->whole[o])->shape;
        struct rfx_node slice = {.op = RFX_OP_PLAIN_SLICE};
        struct rfx_slice_attr *attr = &slice.attr.slice;
        int64_t n = known_extent(axes, axis, &d->levels[l]), left = whole->dims[axis] - from;
        attr->shape = *whole;
        for (int i = 0; i < whole->rank; i++) attr->steps[i] = 1;
        if (axis_of(axes, 'v') == axis || n < 1 || n > left || (l == d->n_levels - 1 && n < left))
            return refuse(j, o, j->whole[o],
                          "level %d has %" PRId64 " x %" PRId64 " cells of %d anchors, and %" PRId64
                          " candidates are left for it",
                          l, d->levels[l].h, d->levels[l].w, d->levels[l].anchors, left);
        attr->starts[axis] = from;
        attr->shape.dims[axis] = n;
        from += n;
        status = add(j, "level", &slice, j->whole[o], &j->node[o][l]);
    }
    return status;
}

/* Checks the tensor of a level against the sizes, and sets *channels to the values of a candidate.
 */
static enum rfx_status count_values(const struct join *j, int o, int l, int64_t *channels) {
    const char *axes = j->detector->outputs[o].axes;
    const struct rfx_detector_level *level = &j->detector->levels[l];
    int node = j->node[o][l];
    const struct rfx_shape *shape = &tensor_of(j, node)->shape;
    *channels = 0;
    for (int i = 1; i < shape->rank; i++) {
        int64_t known = known_extent(axes, i, level);
        bool values = axis_of(axes, 'v') == i;
        if (known < 1 || (values ? shape->dims[i] % known != 0 : shape->dims[i] != known))
            return refuse(j, o, node,
                          "axis %d of level %d must be %s%" PRId64 ", for %" PRId64 " x %" PRId64
                          " cells of %d anchors",
                          i, l, values ? "a multiple of " : "", known, level->h, level->w,
                          level->anchors);
        if (values) *channels = shape->dims[i] / known;
    }
    return RFX_OK;
}

/* ---- values ---- */

/* Fails as an output has other values than are described. */
static enum rfx_status refuse_values(const struct join *j, int o) {
    const struct rfx_detector_output *out = &j->detector->outputs[o];
    bool scores;
    int64_t fixed = rfx_detector_fixed(out, &scores);
    return refuse(j, o, j->node[o][0],
                  "%" PRId64 " values of a candidate, where %" PRId64 "%s are described",
                  out->channels, fixed, scores ? " and the classes" : "");
}

static enum rfx_status find_values(struct join *j) {
    struct rfx_detector *d = j->detector;
    enum rfx_status status = RFX_OK;
    for (int o = 0; o < d->n_outputs && status == RFX_OK; o++) {
        struct rfx_detector_output *out = &d->outputs[o];
        for (int l = 0; l < d->n_levels && status == RFX_OK; l++) {
            int64_t channels;
            status = count_values(j, o, l, &channels);
            if (status == RFX_OK && l > 0 && channels != out->channels)
                status = refuse(j, o, j->node[o][l],
                                "level %d has %" PRId64
                                " values of a candidate, level 0 has "
                                "%" PRId64,
                                l, channels, out->channels);
            out->channels = channels;
        }
    }
    int other = status == RFX_OK ? rfx_detector_settle(d) : -1;
    if (other >= 0) return refuse_values(j, other);
    int64_t classes = d->places[RFX_DETECTOR_SCORES].n;
    if (status == RFX_OK && (classes > INT32_MAX || d->background >= classes))
        status = rfx_fail(j->err, RFX_STATUS_INVALID_ARGUMENT,
                          "head '%s': \"background\" is class %" PRId64
                          ", and the outputs have "
                          "%" PRId64 " classes",
                          d->name, d->background, classes);
    return status;
}

/* ---- the joined output ---- */

/* Makes a tensor of a level, with the axes of an output, a tensor 1 x cells x values of a cell. */
static enum rfx_status make_cells(struct join *j, int o, int l, int node, int *out) {
    const char *axes = j->detector->outputs[o].axes;
    const struct rfx_detector_level *level = &j->detector->levels[l];
    int64_t channels = j->detector->outputs[o].channels;
    struct rfx_shape split = {.rank = 1, .dims = {1}};
    struct rfx_node turn = {.op = RFX_OP_TRANSPOSE};
    int *perm = turn.attr.transpose.perm, n = 1;
    int axis[128] = {0};
    for (const char *p = axes; *p != '\0'; p++) {
        if (*p == ' ') continue;
        axis[(int)*p] = split.rank;
        split.dims[split.rank++] = *p == 'v' ? channels : extent_of(level, *p);
    }
    /* Rows, columns (or candidates), then anchors and values in their own order. */
    for (const char *p = "yxn"; *p != '\0'; p++)
        if (axis[(int)*p] > 0) perm[n++] = axis[(int)*p];
    for (const char *p = axes; *p != '\0'; p++)
        if (*p == 'a' || *p == 'v') perm[n++] = axis[(int)*p];
    bool turned = false;
    for (int i = 0; i < n; i++) turned |= perm[i] != i;
    enum rfx_status status = reshape(j, &split, &node);
    if (status == RFX_OK && turned) status = add(j, "turned", &turn, node, &node);
    const struct rfx_shape cells = {3, {1, level->h * level->w, level->anchors * channels}};
    if (status == RFX_OK) status = reshape(j, &cells, &node);
    *out = node;
    return status;
}

/* Adds `more` values to the cells of a level, copies of their own values. */
static enum rfx_status fill_up(struct join *j, int64_t more, int *node) {
    enum rfx_status status = RFX_OK;
    while (more > 0 && status == RFX_OK) {
        struct rfx_node slice = {.op = RFX_OP_PLAIN_SLICE};
        struct rfx_slice_attr *attr = &slice.attr.slice;
        int in[2] = {*node, -1};
        attr->shape = tensor_of(j, *node)->shape;
        for (int i = 0; i < attr->shape.rank; i++) attr->steps[i] = 1;
        attr->shape.dims[2] = rfx_min_i64(attr->shape.dims[2], more);
        more -= attr->shape.dims[2];
        status = add(j, "filling", &slice, *node, &in[1]);
        if (status == RFX_OK) status = rfx_join_concat(j->graph, "filled", 2, in, 2, node, j->err);
    }
    return status;
}

static enum rfx_status join_level(struct join *j, int l, int *out) {
    struct rfx_detector *d = j->detector;
    const struct rfx_detector_level *level = &d->levels[l];
    int in[OUTPUTS + 1], n = d->n_outputs;
    enum rfx_status status = RFX_OK;
    for (int o = 0; o < d->n_outputs && status == RFX_OK; o++) {
        status = make_cells(j, o, l, j->node[o][l], &in[o]);
        if (status == RFX_OK && has_peaks(d, o))
            status = make_cells(j, o, l, j->peaks[l], &in[n++]);
    }
    if (status != RFX_OK) return status;
    *out = in[0];
    if (n > 1) status = rfx_join_concat(j->graph, "candidates", 2, in, n, out, j->err);
    return status == RFX_OK ? fill_up(j, (d->most_anchors - level->anchors) * d->channels, out)
                            : status;
}

/* Removes the outputs that the description names. */
static void remove_outputs(struct join *j) {
    struct rfx_graph *graph = j->graph;
    const struct rfx_detector *d = j->detector;
    for (int o = 0; o < d->n_outputs; o++)
        for (int i = 0; i < d->outputs[o].n_names; i++)
            rfx_join_remove_output(graph, d->outputs[o].names[i]);
}

static enum rfx_status join(struct join *j) {
    struct rfx_detector *d = j->detector;
    int in[LEVELS] = {0}, node = -1;
    enum rfx_status status = RFX_OK;
    for (int o = 0; o < d->n_outputs && status == RFX_OK; o++) status = find_levels(j, o);
    for (int l = 0; l < d->n_levels && status == RFX_OK; l++) status = find_size(j, l);
    for (int o = 0; o < d->n_outputs && status == RFX_OK; o++) status = cut_levels(j, o);
    if (status == RFX_OK) status = find_values(j);
    for (int l = 0; l < d->n_levels && status == RFX_OK; l++) status = join_level(j, l, &in[l]);
    if (status != RFX_OK) return status;
    node = in[0];
    if (d->n_levels > 1)
        status = rfx_join_concat(j->graph, "detections", 1, in, d->n_levels, &node, j->err);
    if (status == RFX_OK && j->only) remove_outputs(j);
    if (status == RFX_OK) status = rfx_join_add_output(j->graph, node, d->name, j->err);
    if (status == RFX_OK) j->graph->outputs[j->graph->n_outputs - 1].stored.detector = d;
    return status;
}

enum rfx_status rfx_graph_join_detector(struct rfx_graph *graph,
                                        const struct rfx_detector *detector, bool only,
                                        struct rfx_error *err) {
    struct join j = {.graph = graph, .only = only, .err = err};
    if (graph->input < 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "head '%s': the network has no image",
                        detector->name);
    graph->detector = rfx_memory_alloc(graph->mem, sizeof *graph->detector);
    if (graph->detector == NULL)
        return rfx_memory_fail(graph->mem, "head", sizeof *graph->detector, err);
    *graph->detector = *detector;
    j.detector = graph->detector;
    j.detector->image_h = rfx_graph_image_extent(graph, 0);
    j.detector->image_w = rfx_graph_image_extent(graph, 1);
    return join(&j);
}
