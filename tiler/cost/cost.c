/* Counts of stages, and the time that they come to; see cost.h.
 *
 * Where a byte comes from follows from what has been touched since it was last: the rows that the
 * nodes in between make in a step or, for rows kept from the step before, all that a step touches.
 */
#include "tiler/cost/cost.h"

#include <math.h>
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "layers/kernels/kernels.h"
#include "tiler/cost/cost_constants.h"
#include "tiler/cost/cost_nodes.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan_build.h"

#define USUAL_SECOND_BYTES ((size_t)512 << 10)
#define USUAL_SHARED_BYTES ((size_t)8 << 20)
#define UNIT_BYTES                                                                \
    (384.0 * 1024.0) /* of input that the direct kernels take through all weights \
                      */
#define TURNS_BEFORE \
    3 /* bytes of an arena that a node's result takes were free for so many nodes */

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

/* The constants of the kernels in use; of others, those of the plainest. */
static const struct rfx_cost_set *constants_in_use(void) {
    for (size_t i = 0; i < sizeof cost_sets / sizeof cost_sets[0]; i++)
        if (strcmp(cost_sets[i].kernels, rfx_kernels()->name) == 0) return &cost_sets[i];
    return &cost_sets[0];
}

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

/* A stage whose counts are taken. */
struct counter {
    const struct rfx_cost_model *model;
    const struct rfx_stage_shape *shape;
    double *bytes;           /* bytes[i + 1] - bytes[j]: what the nodes j .. i make in a step */
    double round;            /* bytes that one time through the nodes touches */
    struct rfx_cost_area at; /* of the node at hand */
};

static const struct rfx_node *node_of(const struct counter *c, int i) {
    return &c->model->graph->nodes[i];
}

static double cols_of(const struct counter *c, int i) {
    const struct rfx_tile_extent *cols = c->shape->cols;
    return cols != NULL ? (double)cols[i].sum : (double)rfx_rect_cols(node_of(c, i)->wanted);
}

static double map_bytes(const struct counter *c, int i) {
    return (double)rfx_node_wanted_bytes(node_of(c, i));
}

/* Bytes of rows of a node, as wide as a part. */
static double rows_bytes(const struct counter *c, int i, int64_t rows) {
    double across = c->shape->cols != NULL ? (double)c->shape->spec.parts_x : 1.0;
    return (double)rows * cols_of(c, i) / across * c->model->nodes[i].bytes;
}

/* Rows that a step makes of a node, at most. */
static int64_t step_rows(const struct counter *c, int i) {
    int64_t rows = rfx_max_i64(1, c->shape->rows[i].fresh);
    int64_t less = rfx_stage_step_rows(c->model->graph, c->shape, i);
    return less > 0 ? less : rows;
}

static struct rfx_cost_area area_of(const struct counter *c, int i) {
    const struct rfx_node_rows *rows = &c->shape->rows[i];
    struct rfx_cost_area area = {1.0, 1.0, 1.0, 1.0};
    area.across = c->shape->cols != NULL ? (double)c->shape->spec.parts_x : 1.0;
    if (c->shape->places[i] == RFX_PLACE_REDUCED) {
        int in = node_of(c, i)->in[0];
        int64_t h = rfx_rect_rows(node_of(c, i)->taken);
        area.down = (double)rfx_ceil_div(h, rfx_max_i64(1, c->shape->rows[in].fresh));
        return area;
    }
    area.rows = (double)rows->computed;
    area.cols = cols_of(c, i);
    area.down = (double)rfx_ceil_div(rows->computed, step_rows(c, i));
    return area;
}

static void measure_round(struct counter *c) {
    const struct rfx_graph *graph = c->model->graph;
    double *bytes = c->bytes, lasting = 0.0, most = 0.0;
    bool whole = c->shape->spec.mode->once; /* others make nothing outside of the stage */
    int first = whole ? 0 : c->shape->first, end = whole ? graph->n_nodes : c->shape->end;
    for (int i = 0; i <= first; i++) bytes[i] = 0.0;
    for (int i = first; i < end; i++) {
        double made = 0.0;
        enum rfx_node_place place = c->shape->places[i];
        if (rfx_place_is_computed(place) && place != RFX_PLACE_REDUCED) {
            made = rows_bytes(c, i, c->shape->rows[i].fresh);
            if (c->shape->rows[i].lasting)
                lasting += rows_bytes(c, i, rfx_stage_buffer_rows(c->shape, i));
            if (place != RFX_PLACE_FETCHED) lasting += c->model->nodes[i].packed;
        } else if (whole && is_made(&graph->nodes[i])) {
            made = map_bytes(c, i); /* whole maps all the way, whichever stage made them */
        }
        if (made > most) most = made;
        bytes[i + 1] = bytes[i] + made;
    }
    c->round = lasting + 2.0 * most;
    if (c->round > bytes[end] + lasting) c->round = bytes[end] + lasting;
}

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

static bool by_threads(int unit) {
    return unit <= RFX_COST_RUN && unit != RFX_COST_IMAGE_ELEMENT;
}

/* Of those units alone that there are as many of as pixels. */
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
    const struct rfx_graph *base = graph; /* without groups */
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
        bool read = rfx_node_is_input(&graph->nodes[i]); /* of a section: computed in the base */
        rfx_cost_describe(base, read ? &graph->nodes[i] : &base->nodes[i], graph->nodes[i].taken,
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

/* What is read of input k: new rows as far back as they were made, rows read before a round ago. */
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
    rfx_cost_add_bytes(m, i, rows * row, back, counts);
    double again = k == 0 ? (double)m->nodes[i].halo * (c->at.down - 1.0) : 0.0;
    if (again > 0.0) rfx_cost_add_bytes(m, i, again * row, c->round, counts);
}

/* What is written: into bytes that were used a round ago, or a few nodes ago; out and, where memory
 * is meant, in before, which goes on beside the products of dense convolutions. */
static void count_output(const struct counter *c, int i, struct rfx_cost_counts *counts) {
    const struct rfx_cost_model *m = c->model;
    enum rfx_node_place place = c->shape->places[i];
    if (place == RFX_PLACE_REDUCED) return;
    const struct rfx_node_rows *rows = &c->shape->rows[i];
    double bytes = c->at.rows * c->at.cols * m->nodes[i].bytes;
    double back = c->bytes[i + 1] - c->bytes[i < TURNS_BEFORE ? 0 : i - TURNS_BEFORE + 1];
    bool fresh = rows->lasting && rfx_stage_has_fresh(c->shape, i);
    if (place == RFX_PLACE_STORED && map_bytes(c, i) > back) back = map_bytes(c, i);
    if (rows->lasting && !fresh) back = c->round;
    rfx_cost_add_bytes(m, i, m->nodes[i].dense ? bytes : 2.0 * bytes, back, counts);
    if (!fresh) return;
    double kept = (double)rows->kept * (c->at.down - 1.0) * c->at.cols;
    counts->n[RFX_COST_ELEMENT] +=
        kept * m->nodes[i].bytes / (double)rfx_type_bytes(node_of(c, i)->out.type);
    rfx_cost_add_bytes(m, i, 2.0 * kept * m->nodes[i].bytes, c->round, counts);
    counts->n[RFX_COST_STEP] += (c->at.down - 1.0) * c->at.across;
}

/* Bytes of the input that a node's area takes, without what is read again. */
static double read_in_all(const struct counter *c, const struct rfx_node *node) {
    const struct rfx_tensor *in = &node_of(c, node->in[0])->out;
    double share = c->at.rows * c->at.cols / (double)(node->out.h * node->out.w);
    return share * (double)rfx_tensor_bytes(in);
}

#define HIDING_TILES 28 /* whose products take as long as the constants that they share */

/* How often a node with tiles reads its constants: in each step for so many tiles; *shown: the
 * share of them that does not come beside the products: all where factors are made of them first.
 */
static double readings_by_tiles(const struct counter *c, const struct rfx_cost_node *fact,
                                double *shown) {
    double edge = (double)fact->tile, steps = c->at.down * c->at.across;
    double tiles = ceil(c->at.rows / c->at.down / edge) * ceil(c->at.cols / c->at.across / edge);
    double times = ceil(tiles / (double)fact->tiles);
    *shown = fact->made > 0.0 ? 1.0 : fmax(0.0, 1.0 - tiles / times / HIDING_TILES);
    return steps * times;
}

/* Constants: read in every step and, by the direct kernels, for every unit of the input, or for so
 * many tiles. What all threads read takes as long as what one reads. */
static void count_constants(const struct counter *c, int i, struct rfx_cost_counts *counts) {
    const struct rfx_cost_model *m = c->model;
    const struct rfx_cost_node *fact = &m->nodes[i];
    double steps = c->at.down * c->at.across, units = steps, readers = (double)m->threads,
           shown = 1.0;
    if (fact->packed == 0.0) return;
    if (fact->pixel.n[RFX_COST_OPENBLAS_MAC] > 0.0) /* it copies them in every call */
        counts->n[RFX_COST_CONV_ELEMENT] += fact->packed / sizeof(float) * steps;
    if (c->shape->spec.weights_by_stage) counts->n[RFX_COST_LOAD_BYTE] += fact->packed;
    if (fact->by_units) {
        const struct rfx_node *node = node_of(c, i);
        double input = read_in_all(c, node);
        units = fmax(steps, input / UNIT_BYTES);
        if (rfx_conv_shares_outputs(&node->attr.conv, input / steps, m->threads)) readers = 1.0;
    }
    if (fact->tiles > 0) {
        units = readings_by_tiles(c, fact, &shown);
        counts->n[RFX_COST_TILE_FACTOR] += units * fact->made;
        if (units < steps * readers) readers = 1.0; /* of few tiles the outputs are shared */
    }
    const double bytes = shown * fact->packed;
    /* the first time they come from memory */
    rfx_cost_add_weights(m, readers * bytes, (double)m->caches.shared_bytes, counts);
    rfx_cost_add_weights(m, readers * bytes * (steps - 1.0), c->round, counts);
    rfx_cost_add_weights(m, bytes * (units - steps), fact->packed + UNIT_BYTES, counts);
}

/* What is read from a file, into rows that are written like any others. */
static void count_fetched(const struct counter *c, int i, struct rfx_cost_counts *counts) {
    counts->n[RFX_COST_STEP] += c->at.down * c->at.across;
    counts->n[RFX_COST_SPILL_BYTE] += c->at.rows * c->at.cols * c->model->nodes[i].bytes;
    count_output(c, i, counts);
}

/* Picoseconds of passes over the image. Tiles come row by row, so that one pass serves them all;
 * strips of a stream begin at the top again. */
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
        rfx_cost_add_group(c->model, g, c->model->nodes[i].group, &c->at, counts);
        if (c->shape->spec.weights_by_stage)
            for (int m = g->first; m <= g->last; m++)
                counts->n[RFX_COST_LOAD_BYTE] += c->model->nodes[m].packed;
    } else {
        rfx_cost_add_node(c->model, i, &c->at, counts);
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
            struct rfx_cost_area area = area_of(&c, i);
            least += rfx_cost_least_of_group(model, &node->attr.group, &area);
        }
    }
    return least;
}

/* A counter of the whole graph as one stage, whose round is known. */
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
    rfx_cost_add_group(model, group, fact, &c.at, counts);
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
