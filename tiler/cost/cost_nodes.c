/* Counts of nodes and groups; see cost_nodes.h. */
#include "tiler/cost/cost_nodes.h"

#include <math.h>
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "layers/kernels/kernels.h"

/* Which unit a backend's multiply-adds are. */
static const struct {
    const char *backend;
    enum rfx_cost_unit unit;
} backends[] = {{"direct", RFX_COST_DIRECT_MAC},
                {"openblas", RFX_COST_OPENBLAS_MAC},
                {"depthwise", RFX_COST_CHANNEL_MAC},
                {"few-channels", RFX_COST_FEW_MAC}};

static enum rfx_cost_unit unit_of_backend(const char *name) {
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++)
        if (strcmp(name, backends[i].backend) == 0) return backends[i].unit;
    return RFX_COST_DIRECT_MAC;
}

static void describe_tiles(const struct rfx_conv_tiles *t, const struct rfx_conv_attr *a,
                           struct rfx_cost_node *fact) {
    double pixels = (double)(t->edge * t->edge);
    fact->pixel.n[RFX_COST_WINOGRAD_MAC] = (double)t->products / pixels;
    fact->pixel.n[RFX_COST_TILE_ELEMENT] = (double)t->transformed / pixels;
    fact->pixel.n[RFX_COST_CONV_ELEMENT] = (double)a->oc;
    fact->dense = true;
    fact->tile = t->edge;
    fact->tiles = t->together;
    fact->made = (double)t->made;
}

static void describe_conv(const struct rfx_graph *graph, const struct rfx_node *node,
                          struct rfx_cost_node *fact) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    const struct rfx_conv_backend *backend = rfx_conv_backend_of(graph, node);
    if (backend->tiles != NULL) {
        struct rfx_conv_tiles tiles = backend->tiles(node);
        describe_tiles(&tiles, a, fact);
        return;
    }
    enum rfx_cost_unit unit = unit_of_backend(backend->name);
    int64_t icg = a->ic / a->groups, ocg = a->oc / a->groups;
    int64_t made = unit == RFX_COST_DIRECT_MAC ? rfx_conv_filled(ocg) : ocg;
    bool sums = unit != RFX_COST_CHANNEL_MAC;
    fact->pixel.n[unit] = (double)(a->groups * made * a->kh * a->kw * icg);
    fact->pixel.n[sums ? RFX_COST_CONV_ELEMENT : RFX_COST_ELEMENT] = (double)a->oc;
    fact->dense = sums;
    fact->by_units = unit == RFX_COST_DIRECT_MAC;
    fact->runs = fact->by_units ? (double)(a->groups * rfx_ceil_div(ocg, RFX_CONV_PANEL)) : 1.0;
}

/* Scores of attention and values of a softmax, of which each is an exponential, and that takes half
 * its time: the rest are the bias, the largest, the sum and the division (swinir_light, one
 * thread). */
#define EXPONENTIAL 2.0

static double scores_of(const struct rfx_graph *graph, const struct rfx_node *node) {
    if (node->op == RFX_OP_WINDOW_ATTENTION) {
        const struct rfx_window_attention_attr *a = &node->attr.window_attention;
        return (double)(a->h * a->w * a->heads);
    }
    if (node->op == RFX_OP_ATTENTION) {
        const struct rfx_tensor *q = &graph->nodes[node->in[0]].out;
        const struct rfx_shape *k = &graph->nodes[node->in[1]].out.shape;
        int64_t rows = q->elems / q->shape.dims[q->shape.rank - 1];
        return (double)rows * (double)k->dims[k->rank - 1];
    }
    return node->op == RFX_OP_SOFTMAX || node->op == RFX_OP_PLAIN_SOFTMAX
               ? (double)node->out.elems / (double)(node->out.h * node->out.w)
               : 0.0;
}

static double summed_of(const struct rfx_tensor *in, struct rfx_rect taken) {
    return (double)(in->elems / (in->h * in->w) * rfx_rect_area(taken));
}

static void describe_other(const struct rfx_graph *graph, const struct rfx_node *node,
                           struct rfx_rect taken, double elements, struct rfx_cost_node *fact) {
    uint64_t macs = rfx_op_macs(graph, node, rfx_rect_full(1, 1));
    fact->pixel.n[RFX_COST_ELEMENT] = elements;
    fact->pixel.n[RFX_COST_ACT_ELEMENT] = EXPONENTIAL * scores_of(graph, node);
    if (macs > 0) fact->pixel.n[RFX_COST_OTHER_MAC] = (double)macs;
    if (rfx_node_reduction(node) != NULL) {
        fact->pixel.n[RFX_COST_SUM_ELEMENT] = summed_of(&graph->nodes[node->in[0]].out, taken);
    } else if (rfx_node_is_class(node, RFX_CLASS_POOLING)) {
        struct rfx_window w = rfx_op_window(node);
        /* every value in a window is a tap, of all channels if they become one */
        double read =
            rfx_op_def(node->op)->spatial ? (double)graph->nodes[node->in[0]].out.c : elements;
        fact->pixel.n[RFX_COST_POOL_TAP] = read * (double)(w.kernel[0] * w.kernel[1]);
    }
}

void rfx_cost_describe(const struct rfx_graph *graph, const struct rfx_node *node,
                       struct rfx_rect taken, struct rfx_cost_node *fact) {
    double pixels = (double)(node->out.h * node->out.w);
    double elements = (double)node->out.elems / pixels;
    float lo, hi;
    memset(fact, 0, sizeof *fact);
    fact->bytes = (double)rfx_tensor_bytes(&node->out) / pixels;
    if (rfx_node_is_constant(node) || rfx_op_def(node->op)->view) return;
    fact->packed = (double)rfx_op_packed_bytes(graph, node);
    fact->runs = 1.0;
    if (node->op == RFX_OP_INPUT)
        fact->pixel.n[RFX_COST_IMAGE_ELEMENT] = elements;
    else if (node->op == RFX_OP_CONV)
        describe_conv(graph, node, fact);
    else
        describe_other(graph, node, taken, elements, fact);
    if (!rfx_conv_clamp(&node->act, &lo, &hi)) fact->pixel.n[RFX_COST_ACT_ELEMENT] += elements;
    if (!rfx_op_def(node->op)->spatial || node->n_in == 0) return;
    struct rfx_window w = rfx_op_window(node);
    fact->halo = rfx_max_i64(0, (w.kernel[0] - 1) * w.dilation[0] + 1 - w.stride[0]);
}

static void add_pixels(const struct rfx_cost_node *fact, const struct rfx_cost_area *area,
                       struct rfx_cost_counts *counts) {
    for (int u = 0; u < RFX_COST_RUN; u++)
        counts->n[u] += fact->pixel.n[u] * area->rows * area->cols;
    counts->n[RFX_COST_RUN] += fact->runs * area->rows * area->across;
    counts->n[RFX_COST_STEP] += area->down * area->across;
}

static void add_meetings(const struct rfx_cost_model *model, const struct rfx_cost_area *area,
                         struct rfx_cost_counts *counts) {
    if (model->threads > 1) counts->n[RFX_COST_MEETING] += area->down * area->across;
}

void rfx_cost_add_node(const struct rfx_cost_model *model, int node,
                       const struct rfx_cost_area *area, struct rfx_cost_counts *counts) {
    add_pixels(&model->nodes[node], area, counts);
    add_meetings(model, area, counts);
}

void rfx_cost_describe_group(const struct rfx_group_attr *group, struct rfx_cost_group *fact) {
    int64_t two[RFX_GROUP_MAX_NODES];
    for (int axis = 0; axis < 2; axis++) {
        rfx_group_extents(group, axis, 1, fact->one[axis]);
        rfx_group_extents(group, axis, 2, two);
        for (int i = 0; i <= group->last - group->first; i++)
            fact->more[axis][i] = two[i] - fact->one[axis][i];
    }
}

/* A group in an area: steps of so many rows and columns. */
struct group_area {
    const struct rfx_group_attr *group;
    const struct rfx_cost_group *fact;
    const struct rfx_cost_area *area;
    int64_t rows, cols; /* of a step, in a strip */
    int64_t strips;
    double rounds; /* of a few rows through all nodes */
};

static struct group_area group_area_of(const struct rfx_group_attr *group,
                                       const struct rfx_cost_group *fact,
                                       const struct rfx_cost_area *area) {
    struct group_area g = {.group = group, .fact = fact, .area = area};
    double steps = area->down * area->across;
    int64_t w = rfx_max_i64(1, (int64_t)ceil(area->cols / area->across));
    g.rows = rfx_max_i64(1, (int64_t)ceil(area->rows / area->down));
    g.strips = rfx_group_strips(group, w);
    g.cols = rfx_ceil_div(w, g.strips);
    g.rounds = steps * (double)g.strips * (double)rfx_ceil_div(g.rows, group->step_rows);
    return g;
}

/* Positions of map i for so many of the last one. */
static double extent_of(const struct group_area *g, int axis, int64_t size, int i) {
    const struct rfx_tensor *out = &g->group->base->nodes[g->group->first + i].out;
    int64_t needed = g->fact->one[axis][i] + g->fact->more[axis][i] * (size - 1);
    return (double)rfx_min_i64(needed, axis == 0 ? out->h : out->w);
}

/* What is made of map i in all. */
static struct rfx_cost_area area_inside(const struct group_area *g, int i) {
    struct rfx_cost_area part = {.down = g->rounds / (double)g->strips / g->area->across,
                                 .across = g->area->across * (double)g->strips};
    part.rows = g->area->down * extent_of(g, 0, g->rows, i);
    part.cols = part.across * extent_of(g, 1, g->cols, i);
    return part;
}

void rfx_cost_add_group(const struct rfx_cost_model *model, const struct rfx_group_attr *group,
                        const struct rfx_cost_group *fact, const struct rfx_cost_area *area,
                        struct rfx_cost_counts *counts) {
    struct group_area g = group_area_of(group, fact, area);
    double packed = 0.0;
    for (int i = group->first; i <= group->last; i++) {
        struct rfx_cost_area part = area_inside(&g, i - group->first);
        add_pixels(&model->nodes[i], &part, counts);
        packed += model->nodes[i].packed;
    }
    add_meetings(model, area, counts);
    double held = packed + g.fact->ring_bytes;
    rfx_cost_add_weights(model, packed * g.rounds, held * model->threads, counts);
}

double rfx_cost_least_of_group(const struct rfx_cost_model *model,
                               const struct rfx_group_attr *group,
                               const struct rfx_cost_area *area) {
    struct group_area g = group_area_of(group, model->nodes[group->last].group, area);
    double least = 0.0;
    for (int i = group->first; i <= group->last; i++) {
        struct rfx_cost_area part = area_inside(&g, i - group->first);
        least += model->nodes[i].least * part.rows * part.cols;
    }
    return least;
}

/* How much of what is touched again after so many bytes a cache has lost: none that it holds
 * `from` of, all from its size on. */
static double lost_share(double distance, double from, double size) {
    if (distance <= from) return 0.0;
    return distance >= size ? 1.0 : (distance - from) / (size - from);
}

static void add_bytes(const struct rfx_cost_model *model, double bytes, double distance,
                      enum rfx_cost_unit near, enum rfx_cost_unit far,
                      struct rfx_cost_counts *counts) {
    double own = (double)model->caches.second_bytes * model->threads;
    double shared = (double)model->caches.shared_bytes;
    double outside = lost_share(distance, own / 2, own);
    double dram = lost_share(distance, shared / 4, shared);
    if (dram > outside) dram = outside;
    counts->n[near] += bytes * (outside - dram);
    counts->n[far] += bytes * dram;
}

void rfx_cost_add_bytes(const struct rfx_cost_model *model, int node, double bytes, double distance,
                        struct rfx_cost_counts *counts) {
    bool dense = model->nodes[node].dense;
    add_bytes(model, bytes, distance, dense ? RFX_COST_SHARED_BYTE : RFX_COST_PLAIN_BYTE,
              dense ? RFX_COST_AHEAD_BYTE : RFX_COST_DRAM_BYTE, counts);
}

void rfx_cost_add_weights(const struct rfx_cost_model *model, double bytes, double distance,
                          struct rfx_cost_counts *counts) {
    add_bytes(model, bytes, distance, RFX_COST_WEIGHT_BYTE, RFX_COST_COLD_BYTE, counts);
}
