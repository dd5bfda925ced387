/* Counts the work of nodes and stages, predicts their time, counts the work of a finished plan, and
 * finds the sizes of caches.
 *
 * The cache from which a byte is read follows from the number of bytes touched since the byte's
 * last use. For rows of the current step, these are the rows that the nodes in between compute in
 * the step; for rows kept from the previous step, all bytes that a step touches. */
#include "tiler/cost/cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/core/descriptor.h"
#include "layers/graph/op.h"
#include "layers/kernels/kernels.h"
#include "tiler/cost/cost_constants.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan_build.h"
#include "tiler/plan/stage.h"

/* The area that a stage computes of a node: rows x cols in total, in `down` x `across` steps. */
struct area {
    double rows, cols, down, across;
};

/* The unit of a convolution backend's multiply-adds. */
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

/* Fills the costs of a Winograd convolution from its tiles. */
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

/* Time of an integer multiply-add over that of the float32 kernel of its kind, measured with the
 * avx2 kernels: 0.55 to 0.70 for dense layers, 1.06 to 1.2 for depthwise 3x3. */
#define INT_DENSE 0.65
#define INT_CHANNEL 1.1
/* With dot products of bytes: the avx512vnni kernels beside those of avx512. Whole layers of one
 * thread took 0.24 to 0.28 of the time of float32 (3x3), 0.19 to 0.35 (1x1), 0.31 to 0.64
 * (depthwise); these are the factors of the products. */
#define BYTES_DENSE 0.28
#define BYTES_CHANNEL 0.3
/* Integer kernels do more products than those of float32 for each byte of their maps, so that the
 * way to the shared cache is hidden less: their bytes count that many times. So more of their
 * layers are in groups, which are faster on a busy machine and take as long on a quiet one. */
#define BYTES_SHOWN 4.0

static void describe_int_conv(const struct rfx_node *node, struct rfx_cost_node *fact) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    bool sums = a->groups != a->ic || a->oc != a->ic;
    int64_t icg = a->ic / a->groups, ocg = a->oc / a->groups;
    const bool bytes = rfx_kernels()->int_bytes;
    double macs = (double)(a->oc * a->kh * a->kw * icg);
    fact->of_bytes = true;
    if (sums)
        fact->pixel.n[RFX_COST_DIRECT_MAC] = macs * (bytes ? BYTES_DENSE : INT_DENSE);
    else
        fact->pixel.n[RFX_COST_CHANNEL_MAC] = macs * (bytes ? BYTES_CHANNEL : INT_CHANNEL);
    fact->pixel.n[sums ? RFX_COST_CONV_ELEMENT : RFX_COST_ELEMENT] = (double)a->oc;
    fact->dense = fact->by_units = sums;
    if (sums) fact->runs = (double)(a->groups * rfx_ceil_div(ocg, RFX_INT_LANES));
}

/* Activation elements that one score of an attention, or one value of a softmax, takes. Each takes
 * one exponential, which is half of its time; the bias, the maximum, the sum and the division are
 * the other half (measured on swinir_light, one thread). */
#define EXPONENTIAL 2.0

/* Returns the number of exponentials per pixel: scores of an attention, or values of a softmax. */
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

/* Returns the number of elements that a reduction adds up. */
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
        /* every value in a window is a tap; a pool over channels reads all channels for a value */
        double read =
            rfx_op_def(node->op)->spatial ? (double)graph->nodes[node->in[0]].out.c : elements;
        fact->pixel.n[RFX_COST_POOL_TAP] = read * (double)(w.kernel[0] * w.kernel[1]);
    }
}

/* Fills `fact` for a node that is not a group. taken: the rectangle of its input that a reduction
 * reads; in the graph of a shard, less than the whole map. */
static void describe_node(const struct rfx_graph *graph, const struct rfx_node *node,
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
    else if (node->op == RFX_OP_INT_CONV)
        describe_int_conv(node, fact);
    else
        describe_other(graph, node, taken, elements, fact);
    if (!rfx_conv_clamp(&node->act, &lo, &hi)) fact->pixel.n[RFX_COST_ACT_ELEMENT] += elements;
    if (!rfx_op_def(node->op)->spatial || node->n_in == 0) return;
    struct rfx_window w = rfx_op_window(node);
    fact->halo = rfx_max_i64(0, (w.kernel[0] - 1) * w.dilation[0] + 1 - w.stride[0]);
}

static void add_pixels(const struct rfx_cost_node *fact, const struct area *area,
                       struct rfx_cost_counts *counts) {
    for (int u = 0; u < RFX_COST_RUN; u++)
        counts->n[u] += fact->pixel.n[u] * area->rows * area->cols;
    counts->n[RFX_COST_RUN] += fact->runs * area->rows * area->across;
    counts->n[RFX_COST_STEP] += area->down * area->across;
}

static void add_meetings(const struct rfx_cost_model *model, const struct area *area,
                         struct rfx_cost_counts *counts) {
    if (model->threads > 1) counts->n[RFX_COST_MEETING] += area->down * area->across;
}

/* Adds the counts of an area of a node, except bytes. */
static void add_node(const struct rfx_cost_model *model, int node, const struct area *area,
                     struct rfx_cost_counts *counts) {
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

/* A group of nodes that computes an area: its steps and strips. */
struct group_area {
    const struct rfx_group_attr *group;
    const struct rfx_cost_group *fact;
    const struct area *area;
    int64_t rows, cols; /* of a step, in a strip */
    int64_t strips;
    double rounds; /* passes of a few rows through all nodes */
};

static struct group_area group_area_of(const struct rfx_group_attr *group,
                                       const struct rfx_cost_group *fact, const struct area *area) {
    struct group_area g = {.group = group, .fact = fact, .area = area};
    double steps = area->down * area->across;
    int64_t w = rfx_max_i64(1, (int64_t)ceil(area->cols / area->across));
    g.rows = rfx_max_i64(1, (int64_t)ceil(area->rows / area->down));
    g.strips = rfx_group_strips(group, w);
    g.cols = rfx_ceil_div(w, g.strips);
    g.rounds = steps * (double)g.strips * (double)rfx_ceil_div(g.rows, group->step_rows);
    return g;
}

/* Returns how many positions of map i are needed for `size` positions of the last map. */
static double extent_of(const struct group_area *g, int axis, int64_t size, int i) {
    const struct rfx_tensor *out = &g->group->base->nodes[g->group->first + i].out;
    int64_t needed = g->fact->one[axis][i] + g->fact->more[axis][i] * (size - 1);
    return (double)rfx_min_i64(needed, axis == 0 ? out->h : out->w);
}

/* Returns the area of map i that the group computes in total. */
static struct area area_inside(const struct group_area *g, int i) {
    struct area part = {.down = g->rounds / (double)g->strips / g->area->across,
                        .across = g->area->across * (double)g->strips};
    part.rows = g->area->down * extent_of(g, 0, g->rows, i);
    part.cols = part.across * extent_of(g, 1, g->cols, i);
    return part;
}

/* Returns the share of some bytes that a cache has lost when they are touched again after
 * `distance` other bytes: 0 up to the distance `from`, 1 from `size` on. */
static double lost_share(double distance, double from, double size) {
    if (distance <= from) return 0.0;
    return distance >= size ? 1.0 : (distance - from) / (size - from);
}

/* Adds bytes last touched `distance` bytes ago: `near` counts those that the shared cache still
 * holds, `far` those that come from memory. */
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

/* Adds bytes of maps that a node reads or writes, last touched `distance` bytes ago; bytes in a
 * core's own caches are free. */
static void add_map_bytes(const struct rfx_cost_model *model, int node, double bytes,
                          double distance, struct rfx_cost_counts *counts) {
    bool dense = model->nodes[node].dense;
    if (model->nodes[node].of_bytes) bytes *= BYTES_SHOWN;
    add_bytes(model, bytes, distance, dense ? RFX_COST_SHARED_BYTE : RFX_COST_PLAIN_BYTE,
              dense ? RFX_COST_AHEAD_BYTE : RFX_COST_DRAM_BYTE, counts);
}

/* Adds bytes of weights, which are read while multiply-adds go on. */
static void add_weight_bytes(const struct rfx_cost_model *model, double bytes, double distance,
                             struct rfx_cost_counts *counts) {
    add_bytes(model, bytes, distance, RFX_COST_WEIGHT_BYTE, RFX_COST_COLD_BYTE, counts);
}

/* Returns the share of the threads that have work in a step of a group: a strip, or a part of its
 * rows, is computed by one thread. */
static double shared_out(const struct rfx_cost_model *model, const struct group_area *g) {
    int64_t items = g->strips * rfx_group_row_parts(g->group, g->rows, g->strips);
    return items < model->threads ? (double)items / model->threads : 1.0;
}

static void add_group(const struct rfx_cost_model *model, const struct rfx_group_attr *group,
                      const struct rfx_cost_group *fact, const struct area *area,
                      struct rfx_cost_counts *counts) {
    struct group_area g = group_area_of(group, fact, area);
    struct rfx_cost_counts work = {{0}};
    double packed = 0.0, share = shared_out(model, &g);
    for (int i = group->first; i <= group->last; i++) {
        struct area part = area_inside(&g, i - group->first);
        add_pixels(&model->nodes[i], &part, &work);
        packed += model->nodes[i].packed;
    }
    double held = packed + g.fact->ring_bytes;
    add_weight_bytes(model, packed * g.rounds, held * model->threads, &work);
    for (int unit = 0; unit < RFX_COST_UNITS; unit++) counts->n[unit] += work.n[unit] / share;
    add_meetings(model, area, counts);
}

/* Returns a lower bound in picoseconds for a group's nodes in an area. */
static double least_of_group(const struct rfx_cost_model *model, const struct rfx_group_attr *group,
                             const struct area *area) {
    struct group_area g = group_area_of(group, model->nodes[group->last].group, area);
    double least = 0.0;
    for (int i = group->first; i <= group->last; i++) {
        struct area part = area_inside(&g, i - group->first);
        least += model->nodes[i].least * part.rows * part.cols;
    }
    return least;
}

#define USUAL_SECOND_BYTES ((size_t)512 << 10)
#define USUAL_SHARED_BYTES ((size_t)8 << 20)
/* Bytes of a block of the input: the direct kernels read all weights once per block. */
#define UNIT_BYTES (384.0 * 1024.0)
/* A node's output is written over arena bytes that the last few nodes have not touched: about this
 * many nodes. */
#define NODES_SINCE_USE 3

const char *rfx_cost_unit_name(enum rfx_cost_unit unit) {
    static const char *const names[] = {
        "direct_mac",  "winograd_mac",  "openblas_mac", "channel_mac", "pool_tap",  "few_mac",
        "other_mac",   "conv_element",  "tile_element", "tile_factor", "element",   "act_element",
        "sum_element", "image_element", "run",          "step",        "meeting",   "weight_byte",
        "shared_byte", "plain_byte",    "cold_byte",    "ahead_byte",  "dram_byte", "load_byte",
        "spill_byte",  "decoding"};
    _Static_assert(sizeof names / sizeof names[0] == RFX_COST_UNITS, "a name per unit");
    return names[unit];
}

/* Returns the constants of the kernels in use. For kernels without constants of their own, returns
 * the first set. */
static const struct rfx_cost_set *constants_in_use(void) {
    for (size_t i = 0; i < sizeof cost_sets / sizeof cost_sets[0]; i++)
        if (strcmp(cost_sets[i].kernels, rfx_kernels()->like) == 0) return &cost_sets[i];
    return &cost_sets[0];
}

/* Returns whether a run computes the node's map or reads it from the image. */
static bool is_made(const struct rfx_node *node) {
    return !rfx_node_is_constant(node) && !rfx_node_is_joined(node) && node->op != RFX_OP_INNER;
}

void rfx_cost_release(struct rfx_cost_model *model) {
    if (model->graph == NULL) return;
    rfx_memory_release(model->graph->mem, model->nodes);
    rfx_memory_release(model->graph->mem, model->groups);
    rfx_memory_release(model->graph->mem, model->bytes);
    rfx_memory_release(model->graph->mem, model->whole_bytes);
    rfx_memory_release(model->graph->mem, model->whole_places);
    rfx_memory_release(model->graph->mem, model->whole_rows);
}

/* The stage being counted. */
struct counter {
    const struct rfx_cost_model *model;
    const struct rfx_stage_shape *shape;
    double *bytes;  /* bytes[i + 1] - bytes[j]: bytes that nodes j .. i compute in a step */
    double round;   /* bytes touched by one pass through the nodes */
    struct area at; /* of the current node */
};

static const struct rfx_node *node_of(const struct counter *c, int i) {
    return &c->model->graph->nodes[i];
}

static double cols_of(const struct counter *c, int i) {
    const struct rfx_tile_extent *cols = c->shape->cols;
    return cols != NULL ? (double)cols[i].sum : (double)rfx_rect_cols(node_of(c, i)->wanted);
}

static double map_bytes(const struct counter *c, int i) {
    return (double)rfx_node_roi_bytes(node_of(c, i));
}

/* Returns the bytes of some rows of a node that are as wide as a tile. */
static double rows_bytes(const struct counter *c, int i, int64_t rows) {
    double across = c->shape->cols != NULL ? (double)c->shape->spec.tiles_x : 1.0;
    return (double)rows * cols_of(c, i) / across * c->model->nodes[i].bytes;
}

/* Returns the most rows of a node that a step computes. */
static int64_t step_rows(const struct counter *c, int i) {
    int64_t rows = rfx_max_i64(1, c->shape->rows[i].per_step);
    int64_t less = rfx_stage_step_rows(c->model->graph, c->shape, i);
    return less > 0 ? less : rows;
}

/* Returns the area of a node that the stage computes. The area of a reduction is its one result;
 * its steps are those of its input. */
static struct area area_of(const struct counter *c, int i) {
    const struct rfx_node_rows *rows = &c->shape->rows[i];
    struct area area = {1.0, 1.0, 1.0, 1.0};
    area.across = c->shape->cols != NULL ? (double)c->shape->spec.tiles_x : 1.0;
    if (c->shape->places[i] == RFX_PLACE_REDUCED) {
        int in = node_of(c, i)->in[0];
        int64_t h = rfx_rect_rows(node_of(c, i)->taken);
        area.down = (double)rfx_ceil_div(h, rfx_max_i64(1, c->shape->rows[in].per_step));
        return area;
    }
    area.rows = (double)rows->computed;
    area.cols = cols_of(c, i);
    area.down = (double)rfx_ceil_div(rows->computed, step_rows(c, i));
    return area;
}

/* Computes the bytes of a step: `bytes` and `round`. */
static void measure_round(struct counter *c) {
    const struct rfx_graph *graph = c->model->graph;
    double *bytes = c->bytes, lasting = 0.0, most = 0.0;
    bool whole = c->shape->spec.mode->once; /* other modes compute nothing outside of the stage */
    int first = whole ? 0 : c->shape->first, end = whole ? graph->n_nodes : c->shape->end;
    for (int i = 0; i <= first; i++) bytes[i] = 0.0;
    for (int i = first; i < end; i++) {
        double made = 0.0;
        enum rfx_node_place place = c->shape->places[i];
        if (rfx_place_is_computed(place) && place != RFX_PLACE_REDUCED) {
            made = rows_bytes(c, i, c->shape->rows[i].per_step);
            if (c->shape->rows[i].lasting)
                lasting += rows_bytes(c, i, rfx_stage_buffer_rows(c->shape, i));
            if (place != RFX_PLACE_FETCHED) lasting += c->model->nodes[i].packed;
        } else if (whole && is_made(&graph->nodes[i])) {
            made = map_bytes(c, i); /* whole maps are counted, whichever stage computed them */
        }
        if (made > most) most = made;
        bytes[i + 1] = bytes[i] + made;
    }
    c->round = lasting + 2.0 * most;
    if (c->round > bytes[end] + lasting) c->round = bytes[end] + lasting;
}

/* Lays out the whole graph as one stage, for rfx_cost_count_whole. */
static void lay_out_whole(struct rfx_cost_model *model) {
    const struct rfx_graph *graph = model->graph;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        model->whole_places[i] = is_made(node) ? RFX_PLACE_LOCAL : RFX_PLACE_NONE;
    }
    model->whole = (struct rfx_stage_shape){.spec = rfx_ask_whole(),
                                            .end = graph->n_nodes,
                                            .places = model->whole_places,
                                            .rows = model->whole_rows};
    struct rfx_mode_measure measure = {
        .graph = graph, .places = model->whole_places, .spec = &model->whole.spec};
    model->whole.spec.mode->measure(&measure, model->whole_rows, &model->whole.overlap_rows);
    struct counter c = {.model = model, .shape = &model->whole, .bytes = model->whole_bytes};
    measure_round(&c);
    model->whole_round = c.round;
}

/* Returns whether threads share the work that a unit counts. */
static bool by_threads(int unit) {
    return unit <= RFX_COST_RUN && unit != RFX_COST_IMAGE_ELEMENT;
}

/* Returns the least picoseconds per pixel. Counts only the units that grow with the number of
 * pixels. */
static double least_of_pixel(const struct rfx_cost_model *model, const struct rfx_cost_node *fact) {
    double least = 0.0;
    for (int u = 0; u < RFX_COST_RUN; u++) {
        double part = fact->pixel.n[u] * model->picoseconds[u];
        least += by_threads(u) ? part / (double)model->threads : part;
    }
    return least;
}

static size_t count_groups(const struct rfx_graph *graph) {
    size_t n = 0;
    for (int i = 0; i < graph->n_nodes; i++) n += graph->nodes[i].op == RFX_OP_GROUP;
    return n;
}

void rfx_cost_read(struct rfx_cost_model *model, const struct rfx_source_traits *source) {
    model->pass_picoseconds = source->random_access ? 0.0 : source->pass_picoseconds;
}

enum rfx_status rfx_cost_init(struct rfx_cost_model *model, const struct rfx_graph *graph,
                              const struct rfx_caches *caches, int threads, struct rfx_error *err) {
    const struct rfx_graph *base = graph; /* the graph without groups */
    while (base->base != NULL) base = base->base;
    size_t n = (size_t)graph->n_nodes;
    const struct rfx_cost_set *set = constants_in_use();
    struct rfx_cost_model m = {
        .graph = graph, .caches = *caches, .threads = threads, .picoseconds = set->picoseconds};
    m.dram_speed = threads > 1 ? set->dram_speed : 1.0;
    if (m.caches.second_bytes == 0) m.caches.second_bytes = USUAL_SECOND_BYTES;
    if (m.caches.shared_bytes == 0) m.caches.shared_bytes = USUAL_SHARED_BYTES;
    m.nodes = rfx_memory_calloc(graph->mem, n, sizeof *m.nodes);
    m.groups = rfx_memory_calloc(graph->mem, count_groups(graph) + 1, sizeof *m.groups);
    m.bytes = rfx_memory_calloc(graph->mem, n + 1, sizeof *m.bytes);
    m.whole_bytes = rfx_memory_calloc(graph->mem, n + 1, sizeof *m.whole_bytes);
    m.whole_places = rfx_memory_calloc(graph->mem, n, sizeof *m.whole_places);
    m.whole_rows = rfx_memory_calloc(graph->mem, n, sizeof *m.whole_rows);
    *model = m;
    if (m.nodes == NULL || m.groups == NULL || m.bytes == NULL || m.whole_bytes == NULL ||
        m.whole_places == NULL || m.whole_rows == NULL)
        return rfx_memory_fail(graph->mem, "cost model", n * sizeof *m.nodes, err);
    struct rfx_cost_group *group = m.groups;
    for (int i = 0; i < graph->n_nodes; i++) {
        bool read = rfx_node_is_input(
            &graph->nodes[i]); /* the input of a section is computed in the base */
        describe_node(base, read ? &graph->nodes[i] : &base->nodes[i], graph->nodes[i].taken,
                      &m.nodes[i]);
        m.nodes[i].least = least_of_pixel(&m, &m.nodes[i]);
        if (graph->nodes[i].op != RFX_OP_GROUP) continue;
        rfx_cost_describe_group(&graph->nodes[i].attr.group, group);
        group->ring_bytes = (double)rfx_group_ring_bytes(&graph->nodes[i].attr.group);
        m.nodes[i].group = group++;
    }
    lay_out_whole(model);
    return RFX_OK;
}

/* Adds the reads of input k. Its new rows were last touched when they were computed. Rows that are
 * read a second time were last touched in the previous pass. */
static void count_input(const struct counter *c, int i, int k, struct rfx_cost_counts *counts) {
    const struct rfx_node *node = node_of(c, i);
    int in = node->in[k];
    const struct rfx_cost_model *m = c->model;
    enum rfx_node_place place = c->shape->places[in];
    if (place == RFX_PLACE_NONE) return;
    const struct rfx_tensor *t = &node_of(c, in)->out;
    struct rfx_rect wanted = node_of(c, in)->wanted;
    double row = (double)rfx_rect_cols(wanted) * m->nodes[in].bytes;
    if (rfx_place_is_computed(place)) row = cols_of(c, in) * m->nodes[in].bytes;
    double rows = c->at.rows * (double)t->h / (double)node->out.h;
    double all = (double)rfx_rect_rows(wanted);
    if (c->shape->places[i] == RFX_PLACE_REDUCED || rows > all * c->at.down) rows = all;
    double back = c->bytes[i + 1] - c->bytes[in];
    if (!rfx_place_is_computed(place) && back < map_bytes(c, in)) back = map_bytes(c, in);
    add_map_bytes(m, i, rows * row, back, counts);
    double again = k == 0 ? (double)m->nodes[i].halo * (c->at.down - 1.0) : 0.0;
    if (again > 0.0) add_map_bytes(m, i, again * row, c->round, counts);
}

/* Adds the writes of a node. The bytes that its output overwrites were last touched in the previous
 * pass, or a few nodes ago. Bytes that go to memory count twice, because cache lines are read
 * before they are written. They count once for dense convolutions, whose computation hides the
 * reads. */
static void count_output(const struct counter *c, int i, struct rfx_cost_counts *counts) {
    const struct rfx_cost_model *m = c->model;
    enum rfx_node_place place = c->shape->places[i];
    if (place == RFX_PLACE_REDUCED) return;
    const struct rfx_node_rows *rows = &c->shape->rows[i];
    double bytes = c->at.rows * c->at.cols * m->nodes[i].bytes;
    double back = c->bytes[i + 1] - c->bytes[i < NODES_SINCE_USE ? 0 : i - NODES_SINCE_USE + 1];
    bool staged = rows->lasting && rfx_stage_has_staging(c->shape, i);
    if (place == RFX_PLACE_STORED && map_bytes(c, i) > back) back = map_bytes(c, i);
    if (rows->lasting && !staged) back = c->round;
    add_map_bytes(m, i, m->nodes[i].dense ? bytes : 2.0 * bytes, back, counts);
    if (!staged) return;
    double kept = (double)rows->kept * (c->at.down - 1.0) * c->at.cols;
    counts->n[RFX_COST_ELEMENT] +=
        kept * m->nodes[i].bytes / (double)rfx_type_bytes(node_of(c, i)->out.type);
    add_map_bytes(m, i, 2.0 * kept * m->nodes[i].bytes, c->round, counts);
    counts->n[RFX_COST_STEP] += (c->at.down - 1.0) * c->at.across;
}

/* Returns the bytes of the input that a node's area needs. Rows that are read twice count once. */
static double read_in_all(const struct counter *c, const struct rfx_node *node) {
    const struct rfx_tensor *in = &node_of(c, node->in[0])->out;
    double share = c->at.rows * c->at.cols / (double)(node->out.h * node->out.w);
    return share * (double)rfx_tensor_bytes(in);
}

/* Number of tiles whose products take as long as reading the weights that they share. */
#define HIDING_TILES 28

/* Returns how often a node with Winograd tiles reads its weights: once per group of tiles in each
 * step. *shown receives the share of the weights whose reading the products do not hide: 1 if
 * transformed weights are computed during the run. */
static double readings_by_tiles(const struct counter *c, const struct rfx_cost_node *fact,
                                double *shown) {
    double edge = (double)fact->tile, steps = c->at.down * c->at.across;
    double tiles = ceil(c->at.rows / c->at.down / edge) * ceil(c->at.cols / c->at.across / edge);
    double times = ceil(tiles / (double)fact->tiles);
    *shown = fact->made > 0.0 ? 1.0 : fmax(0.0, 1.0 - tiles / times / HIDING_TILES);
    return steps * times;
}

/* Returns the bytes of a node's weights that are loaded, as float32: a weight of one byte takes as
 * long to read and to place as one of four. */
static double loaded_bytes(const struct rfx_cost_node *fact) {
    return fact->of_bytes ? fact->packed * (double)sizeof(float) : fact->packed;
}

/* Adds the reads of weights: once per step and, within a step, once per block of the input (direct
 * kernels) or once per group of tiles (Winograd). If every thread reads all weights, they count
 * once per thread; if threads share the outputs, they count once. */
static void count_constants(const struct counter *c, int i, struct rfx_cost_counts *counts) {
    const struct rfx_cost_model *m = c->model;
    const struct rfx_cost_node *fact = &m->nodes[i];
    double steps = c->at.down * c->at.across, units = steps, readers = (double)m->threads,
           shown = 1.0;
    if (fact->packed == 0.0) return;
    if (fact->pixel.n[RFX_COST_OPENBLAS_MAC] > 0.0) /* OpenBLAS copies them in every call */
        counts->n[RFX_COST_CONV_ELEMENT] += fact->packed / sizeof(float) * steps;
    if (c->shape->spec.weights_by_stage) counts->n[RFX_COST_LOAD_BYTE] += loaded_bytes(fact);
    if (fact->by_units) {
        const struct rfx_node *node = node_of(c, i);
        double input = read_in_all(c, node);
        units = fmax(steps, input / UNIT_BYTES);
        if (rfx_conv_shares_outputs(&node->attr.conv, input / steps, m->threads)) readers = 1.0;
    }
    if (fact->tiles > 0) {
        units = readings_by_tiles(c, fact, &shown);
        counts->n[RFX_COST_TILE_FACTOR] += units * fact->made;
        if (units < steps * readers) readers = 1.0; /* with few tiles, threads share the outputs */
    }
    const double bytes = shown * fact->packed;
    /* the first time, weights come from memory */
    add_weight_bytes(m, readers * bytes, (double)m->caches.shared_bytes, counts);
    add_weight_bytes(m, readers * bytes * (steps - 1.0), c->round, counts);
    add_weight_bytes(m, bytes * (units - steps), fact->packed + UNIT_BYTES, counts);
}

/* Adds the reads of a spilled map from its file, and the writes of its rows into memory. */
static void count_fetched(const struct counter *c, int i, struct rfx_cost_counts *counts) {
    counts->n[RFX_COST_STEP] += c->at.down * c->at.across;
    counts->n[RFX_COST_SPILL_BYTE] += c->at.rows * c->at.cols * c->model->nodes[i].bytes;
    count_output(c, i, counts);
}

/* Returns the picoseconds of decoding the image. A stage of tiles takes one pass, because its tiles
 * come from top to bottom. A stream takes one pass per strip, since each strip starts from the
 * image's first row. */
static double passes(const struct counter *c) {
    bool streamed = c->shape->spec.band_rows > 0;
    return c->model->pass_picoseconds * (streamed ? c->at.across : 1.0);
}

static void count_node(struct counter *c, int i, struct rfx_cost_counts *counts) {
    const struct rfx_node *node = node_of(c, i);
    c->at = area_of(c, i);
    if (c->at.rows * c->at.cols == 0.0) return;
    if (c->shape->places[i] == RFX_PLACE_FETCHED) {
        count_fetched(c, i, counts);
        return;
    }
    if (c->shape->places[i] == RFX_PLACE_SPILLED) {
        counts->n[RFX_COST_SPILL_BYTE] += map_bytes(c, i);
        counts->n[RFX_COST_STEP] += c->at.down * c->at.across;
    }
    if (i == c->model->graph->input) counts->n[RFX_COST_DECODING] += passes(c);
    if (rfx_op_def(node->op)->view) return;
    if (node->op == RFX_OP_GROUP) {
        const struct rfx_group_attr *g = &node->attr.group;
        add_group(c->model, g, c->model->nodes[i].group, &c->at, counts);
        if (c->shape->spec.weights_by_stage)
            for (int m = g->first; m <= g->last; m++)
                counts->n[RFX_COST_LOAD_BYTE] += loaded_bytes(&c->model->nodes[m]);
    } else {
        add_node(c->model, i, &c->at, counts);
        count_constants(c, i, counts);
    }
    for (int k = 0; k < node->n_in; k++) count_input(c, i, k, counts);
    count_output(c, i, counts);
}

void rfx_cost_count(const struct rfx_cost_model *model, const struct rfx_stage_shape *shape,
                    int only, struct rfx_cost_counts *counts) {
    struct counter c = {.model = model, .shape = shape, .bytes = model->bytes};
    measure_round(&c);
    int first = only < 0 ? shape->first : only, last = only < 0 ? shape->end - 1 : only;
    for (int i = first; i <= last; i++)
        if (rfx_place_is_computed(shape->places[i])) count_node(&c, i, counts);
}

double rfx_cost_least(const struct rfx_cost_model *model, const struct rfx_stage_shape *shape) {
    const struct rfx_graph *graph = model->graph;
    struct counter c = {.model = model, .shape = shape};
    double least = 0.0;
    for (int i = shape->first; i < shape->end; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        int64_t rows = shape->rows[i].computed;
        if (shape->places[i] < RFX_PLACE_LOCAL || shape->places[i] == RFX_PLACE_REDUCED) continue;
        if (node->op != RFX_OP_GROUP) {
            least += model->nodes[i].least * (double)rows * cols_of(&c, i);
        } else if (rows > 0 && cols_of(&c, i) > 0.0) {
            struct area area = area_of(&c, i);
            least += least_of_group(model, &node->attr.group, &area);
        }
    }
    return least;
}

/* Returns a counter of the whole graph as one stage, whose bytes of a step are computed already. */
static struct counter count_of_whole(const struct rfx_cost_model *model) {
    return (struct counter){.model = model,
                            .shape = &model->whole,
                            .bytes = model->whole_bytes,
                            .round = model->whole_round};
}

void rfx_cost_count_untiled(const struct rfx_cost_model *model, struct rfx_cost_counts *counts) {
    rfx_cost_count(model, &model->whole, -1, counts);
}

void rfx_cost_count_whole(const struct rfx_cost_model *model, int node,
                          struct rfx_cost_counts *counts) {
    struct counter c = count_of_whole(model);
    if (rfx_place_is_computed(model->whole.places[node])) count_node(&c, node, counts);
}

void rfx_cost_count_group(const struct rfx_cost_model *model, const struct rfx_group_attr *group,
                          const struct rfx_cost_group *fact, struct rfx_cost_counts *counts) {
    struct counter c = count_of_whole(model);
    c.at = area_of(&c, group->last);
    add_group(model, group, fact, &c.at, counts);
    for (int i = group->first; i <= group->last; i++)
        for (int k = 0; k < model->graph->nodes[i].n_in; k++)
            if (model->graph->nodes[i].in[k] < group->first) count_input(&c, i, k, counts);
    count_output(&c, group->last, counts);
}

uint64_t rfx_cost_picoseconds(const struct rfx_cost_model *model,
                              const struct rfx_cost_counts *counts) {
    double time = 0.0, threads = (double)model->threads;
    for (int u = 0; u < RFX_COST_UNITS; u++) {
        double part = counts->n[u] * model->picoseconds[u];
        if (by_threads(u) || (u >= RFX_COST_WEIGHT_BYTE && u < RFX_COST_DRAM_BYTE)) part /= threads;
        if (u == RFX_COST_DRAM_BYTE) part /= model->dram_speed;
        time += part;
    }
    return time < 1.0 ? 1 : (uint64_t)time;
}

/* Tables for counting one stage of a plan; filled again for each stage. */
struct tables {
    enum rfx_node_place *places;
    struct rfx_node_rows *rows;
    struct rfx_tile_extent *cols;
    struct rfx_axis_region *regions;
    int64_t *done;
};

static void release_tables(struct rfx_memory *mem, struct tables *t) {
    rfx_memory_release(mem, t->places);
    rfx_memory_release(mem, t->rows);
    rfx_memory_release(mem, t->cols);
    rfx_memory_release(mem, t->regions);
    rfx_memory_release(mem, t->done);
}

static enum rfx_status allocate_tables(struct rfx_memory *mem, size_t n, struct tables *t,
                                       struct rfx_error *err) {
    t->places = rfx_memory_calloc(mem, n, sizeof *t->places);
    t->rows = rfx_memory_calloc(mem, n, sizeof *t->rows);
    t->cols = rfx_memory_calloc(mem, n, sizeof *t->cols);
    t->regions = rfx_memory_calloc(mem, RFX_SWEEP_REGIONS * n, sizeof *t->regions);
    t->done = rfx_memory_calloc(mem, RFX_MODE_SCRATCH * n, sizeof *t->done);
    if (t->places == NULL || t->rows == NULL || t->cols == NULL || t->regions == NULL ||
        t->done == NULL)
        return rfx_memory_fail(mem, "counts of a plan", n * sizeof *t->rows, err);
    return RFX_OK;
}

/* Lets a stage run the nodes of its groups one by one. Returns the first node that it runs. */
static int place_members(const struct rfx_plan *plan, const struct rfx_stage *stage,
                         enum rfx_node_place *places) {
    int first = stage->first;
    for (int i = stage->first; i <= stage->last; i++) {
        const struct rfx_node *node = &plan->graph->nodes[i];
        if (node->op != RFX_OP_GROUP || stage->places[i] < RFX_PLACE_LOCAL) continue;
        if (node->attr.group.first < first) first = node->attr.group.first;
        for (int m = node->attr.group.first; m < i; m++) places[m] = RFX_PLACE_LOCAL;
    }
    return first;
}

/* Counts a stage in the graph of the model: the plan's, or that graph without its groups. round:
 * bytes that a step touches; 0: those of the stage. Returns that number. */
static double count_plan_stage(const struct rfx_cost_model *model, const struct rfx_plan *plan,
                               const struct rfx_stage *stage, double round, struct tables *t,
                               struct rfx_cost_counts *counts) {
    const struct rfx_graph *graph = model->graph;
    struct rfx_stage_shape shape = {.spec = stage->spec,
                                    .first = stage->first,
                                    .end = stage->last + 1,
                                    .places = t->places,
                                    .rows = t->rows};
    struct counter c = {.model = model, .shape = &shape, .bytes = model->bytes};
    memcpy(t->places, stage->places, (size_t)graph->n_nodes * sizeof *t->places);
    if (graph != plan->graph) shape.first = place_members(plan, stage, t->places);
    struct rfx_mode_measure measure = {graph, t->places, &stage->spec, t->done, t->regions};
    stage->spec.mode->measure(&measure, t->rows, &shape.overlap_rows);
    if (rfx_stage_cuts_cols(&stage->spec)) {
        rfx_stage_extents(graph, t->places, RFX_AXIS_COLS, stage->spec.tiles_x, t->regions,
                          t->cols);
        shape.cols = t->cols;
    }
    measure_round(&c);
    if (round > 0.0) c.round = round;
    for (int i = shape.first; i < shape.end; i++)
        if (rfx_place_is_computed(t->places[i])) count_node(&c, i, &counts[i]);
    return c.round;
}

enum rfx_status rfx_cost_count_plan(const struct rfx_plan *plan, const struct rfx_caches *caches,
                                    struct rfx_cost_counts *counts, struct rfx_error *err) {
    struct rfx_memory *mem = plan->graph->mem;
    struct rfx_cost_model model = {0};
    struct tables t = {0};
    enum rfx_status status = rfx_cost_init(&model, plan->graph, caches, plan->threads, err);
    if (status == RFX_OK) status = allocate_tables(mem, (size_t)plan->graph->n_nodes, &t, err);
    for (int i = 0; status == RFX_OK && i < plan->graph->n_nodes; i++)
        counts[i] = (struct rfx_cost_counts){{0}};
    for (int s = 0; status == RFX_OK && s < plan->n_stages; s++)
        (void)count_plan_stage(&model, plan, &plan->stages[s], 0.0, &t, counts);
    release_tables(mem, &t);
    rfx_cost_release(&model);
    return status;
}

/* Adds the predicted time of the counts of each group's nodes to its times. */
static void add_times(const struct rfx_plan *plan, const struct rfx_cost_model *model,
                      const struct rfx_cost_counts *counts, struct rfx_cost_times *times) {
    bool apart = model->graph != plan->graph;
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const struct rfx_node *node = &plan->graph->nodes[i];
        struct rfx_cost_counts all = {{0}};
        if (node->op != RFX_OP_GROUP) continue;
        for (int m = node->attr.group.first; m <= i; m++)
            for (int u = 0; u < RFX_COST_UNITS; u++) all.n[u] += counts[m].n[u];
        *(apart ? &times[i].apart : &times[i].grouped) += (double)rfx_cost_picoseconds(model, &all);
    }
}

/* The nodes of a group are counted as if the steps touched as many bytes as with groups: a single
 * group that is taken apart adds few. Without any group they would touch far more, and each group
 * would seem to save what all groups save together. */
enum rfx_status rfx_cost_time_groups(const struct rfx_plan *plan, const struct rfx_caches *caches,
                                     struct rfx_cost_times *times, struct rfx_error *err) {
    struct rfx_memory *mem = plan->graph->mem;
    size_t n = (size_t)plan->graph->n_nodes;
    struct rfx_cost_model with = {0}, without = {0};
    struct tables t = {0};
    struct rfx_cost_counts *counts = rfx_memory_alloc(mem, n * sizeof *counts);
    enum rfx_status status = allocate_tables(mem, n, &t, err);
    if (status == RFX_OK && counts == NULL)
        status = rfx_memory_fail(mem, "counts of a plan", n * sizeof *counts, err);
    if (status == RFX_OK) status = rfx_cost_init(&with, plan->graph, caches, plan->threads, err);
    if (status == RFX_OK)
        status = rfx_cost_init(&without, plan->graph->base, caches, plan->threads, err);
    memset(times, 0, n * sizeof *times);
    for (int s = 0; status == RFX_OK && s < plan->n_stages; s++) {
        const struct rfx_stage *stage = &plan->stages[s];
        memset(counts, 0, n * sizeof *counts);
        double round = count_plan_stage(&with, plan, stage, 0.0, &t, counts);
        add_times(plan, &with, counts, times);
        memset(counts, 0, n * sizeof *counts);
        (void)count_plan_stage(&without, plan, stage, round, &t, counts);
        add_times(plan, &without, counts, times);
    }
    rfx_cost_release(&without);
    rfx_cost_release(&with);
    release_tables(mem, &t);
    rfx_memory_release(mem, counts);
    return status;
}

#define DEEPEST 8 /* most caches that a processor lists */

/* Reads a number from a file of one line; a trailing K means times 1024. Returns 0 when there is
 * none. */
static size_t read_number(int index, const char *what) {
    char path[80];
    unsigned long long value = 0;
    char unit = ' ';
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, what);
    FILE *file = rfx_descriptor_stream(path);
    if (file == NULL) return 0;
    int n = fscanf(file, "%llu%c", &value, &unit);
    (void)fclose(file);
    if (n < 1) return 0;
    return (size_t)value * (n == 2 && unit == 'K' ? 1024U : 1U);
}

/* Returns the size of one cache level: as the kernel lists it, which is right in virtual machines,
 * or else as the C library reports it; 0: unknown. */
static size_t level_bytes(size_t level, int name) {
    for (int i = 0; i < DEEPEST; i++)
        if (read_number(i, "level") == level) {
            size_t bytes = read_number(i, "size");
            if (bytes != 0) return bytes;
        }
    long bytes = sysconf(name);
    return bytes > 0 ? (size_t)bytes : 0;
}

struct rfx_caches rfx_machine_caches(void) {
    struct rfx_caches caches = {level_bytes(2, _SC_LEVEL2_CACHE_SIZE),
                                level_bytes(3, _SC_LEVEL3_CACHE_SIZE)};
    if (caches.second_bytes == 0) caches.second_bytes = USUAL_SECOND_BYTES;
    if (caches.shared_bytes == 0) caches.shared_bytes = USUAL_SHARED_BYTES;
    return caches;
}
