/* The tensor usage records of a candidate plan, and which of them slide.
 *
 * Time has n_nodes + 1 steps per stage. Where a mode visits its nodes once, node i is computed in
 * step i. Otherwise every tile computes all nodes again, so a buffer that outlives a tile lives for
 * the whole stage. Rings live for the whole stage; rows that end with their step live only from
 * their node to its last reader, or overwrite such rows of an input. The mode says how many rows a
 * buffer has (mode.h). A result may overwrite an input whose lifetime ends there (in place); in a
 * stage that runs row by row it may slide over the input. */
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "tiler/arena/placement_slides.h"
#include "tiler/plan/plan_build.h"

bool rfx_plan_sliding_init(struct rfx_plan_sliding *sliding, const struct rfx_graph *graph) {
    sliding->lags = rfx_memory_calloc(graph->mem, RFX_PLAN_LAGS, sizeof *sliding->lags);
    sliding->scratch =
        rfx_memory_calloc(graph->mem, 2 * (size_t)graph->n_nodes, sizeof *sliding->scratch);
    return sliding->lags != NULL && sliding->scratch != NULL;
}

void rfx_plan_sliding_release(struct rfx_plan_sliding *sliding, struct rfx_memory *mem) {
    rfx_memory_release(mem, sliding->lags);
    rfx_memory_release(mem, sliding->scratch);
}

/* Returns the table's entry for the lag of a pair of maps; INT64_MAX in it: not computed yet. */
static int64_t *lag_of(struct rfx_plan_sliding *sliding, int before, int after) {
    enum { TRIES = 8 };
    struct rfx_plan_lag *lag = NULL;
    uint32_t hash = ((uint32_t)before * 2654435761U) ^ ((uint32_t)after * 2246822519U);
    for (uint32_t t = 0; t < TRIES; t++) {
        lag = &sliding->lags[((hash >> 8) + t) % RFX_PLAN_LAGS];
        if (lag->after == after && lag->before == before) return &lag->lag;
        if (lag->after == 0) break;
    }
    *lag = (struct rfx_plan_lag){before, after, INT64_MAX};
    return &lag->lag;
}

/* State while the slides between the stored maps of a stage are listed. */
struct slider {
    struct rfx_plan_context *context;
    const struct rfx_stage_shape *shape;
    int stage, end; /* end: last step of the stage */
    int begin;      /* first slide of the stage */
};

/* Returns whether the node is a stored map of an earlier stage that this stage is the last to read,
 * so that later rows may overwrite it. A map of one row does not count: its bytes become free all
 * at once. Network outputs do not count either. */
static bool dies_with_stage(const struct slider *s, int node) {
    const struct rfx_plan_context *c = s->context;
    if (s->shape->places[node] != RFX_PLACE_READ) return false;
    const struct rfx_tensor *out = &c->graph->nodes[node].out;
    int record = c->stored_record[node];
    return record >= 0 && c->records[record].last == s->end && out->layout == RFX_LAYOUT_NHWC &&
           out->h > 1 && rfx_graph_count_outputs(c->graph, node) == 0;
}

/* Returns whether some slide already writes this map over another one. */
static bool is_taken(const struct slider *s, int after) {
    for (int k = s->begin; k < s->context->n_slides; k++)
        if (s->context->slides[k].after == after) return true;
    return false;
}

/* Finds the slide from the map of `before` to the largest stored map of the stage that may be
 * written over it. Maps that are not yet written over another one are preferred, because two maps
 * may replace two. `after` is -1 when there is none. */
static struct rfx_slide find_slide(const struct slider *s, int before) {
    struct rfx_plan_context *c = s->context;
    struct rfx_slide found = {.after = -1};
    bool found_taken = false;
    const struct rfx_stage_spec *spec = &s->shape->spec;
    for (int t = 0; t < spec->n_targets; t++) {
        int node = spec->targets[t];
        bool stored = s->shape->places[node] == RFX_PLACE_STORED && node > before;
        int after = stored ? c->stored_record[node] : -1;
        if (after < 0) continue;
        bool taken = is_taken(s, after);
        if (found.after >= 0 && taken && !found_taken) continue;
        if (found.after >= 0 && taken == found_taken &&
            c->records[found.after].bytes >= c->records[after].bytes)
            continue;
        struct rfx_slide slide = {.before = c->stored_record[before],
                                  .after = after,
                                  .stage = s->stage,
                                  .node = node,
                                  .up = c->records[c->stored_record[before]].bytes};
        if (spec->mode->slide(c->graph, s->shape, before, node, c->sliding.scratch,
                              lag_of(&c->sliding, before, node), &slide.down)) {
            found = slide;
            found_taken = taken;
        }
    }
    return found;
}

/* Inserts a slide so that slides to one map are adjacent. */
static void insert(struct rfx_plan_context *c, int begin, const struct rfx_slide *slide) {
    int at = c->n_slides;
    while (at > begin && c->slides[at - 1].node > slide->node) at--;
    memmove(&c->slides[at + 1], &c->slides[at], (size_t)(c->n_slides - at) * sizeof *c->slides);
    c->slides[at] = *slide;
    c->n_slides++;
}

static void list_stage_slides(struct rfx_plan_context *context, const struct rfx_stage_shape *shape,
                              int stage) {
    const struct rfx_graph *graph = context->graph;
    int begin = context->n_slides, end = rfx_plan_count_steps(graph, stage) + graph->n_nodes;
    struct slider s = {context, shape, stage, end, begin};
    if (!shape->spec.row_by_row || shape->spec.mode->slide == NULL) return;
    for (int i = shape->first; i < shape->end; i++) {
        if (!rfx_place_is_computed(shape->places[i])) continue;
        for (int k = 0; k < rfx_place_inputs(shape->places[i], &graph->nodes[i]); k++) {
            int in = graph->nodes[i].in[k];
            bool listed = !dies_with_stage(&s, in);
            for (int l = begin; l < context->n_slides && !listed; l++)
                listed = context->slides[l].before == context->stored_record[in];
            struct rfx_slide slide = listed ? (struct rfx_slide){.after = -1} : find_slide(&s, in);
            if (slide.after >= 0) insert(context, begin, &slide);
        }
    }
}

void rfx_plan_take_slides(const struct rfx_plan_context *context, struct rfx_plan *plan) {
    for (int s = 0; s < plan->n_stages; s++)
        if (plan->stages[s].spec.mode->slide != NULL) plan->stages[s].spec.row_by_row = false;
    for (int k = 0; k < context->n_slides; k++) {
        const struct rfx_slide *slide = &context->slides[k];
        struct rfx_stage *stage = &plan->stages[slide->stage];
        stage->spec.row_by_row = true;
        if (context->upwards[k]) stage->nodes[slide->node].upwards = true;
    }
}

int rfx_plan_count_steps(const struct rfx_graph *graph, int n_stages) {
    return n_stages * (graph->n_nodes + 1);
}

void rfx_plan_find_resident(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                            int n_stages) {
    const struct rfx_graph *graph = context->graph;
    for (int i = 0; i < graph->n_nodes; i++)
        context->resident[i] = rfx_node_is_constant(&graph->nodes[i]);
    for (int s = 0; s < n_stages; s++)
        for (int i = shapes[s].first; !shapes[s].spec.weights_by_stage && i < shapes[s].end; i++)
            if (shapes[s].places[i] >= RFX_PLACE_LOCAL) context->resident[i] = true;
}

/* State while the records of a candidate are listed. */
struct lister {
    struct rfx_plan_context *context;
    const struct rfx_graph *graph;
    const struct rfx_stage_shape *shapes;
    int n_stages;
    int stage;
    const struct rfx_stage_shape *shape; /* of the current stage */
    int begin, end;                      /* first and last step of the current stage */
};

static bool is_once(const struct lister *l) {
    return l->shape->spec.mode->once;
}

static bool is_computed(const struct lister *l, int node) {
    return rfx_place_is_computed(l->shape->places[node]);
}

static int inputs_of(const struct lister *l, int node) {
    return rfx_place_inputs(l->shape->places[node], &l->graph->nodes[node]);
}

static void enter_stage(struct lister *l, int stage) {
    l->stage = stage;
    l->shape = &l->shapes[stage];
    l->begin = rfx_plan_count_steps(l->graph, stage);
    l->end = l->begin + l->graph->n_nodes;
}

static int add_record(const struct lister *l, enum rfx_record_kind kind, int node, int first,
                      int last, size_t bytes) {
    struct rfx_plan_context *c = l->context;
    struct rfx_record *r = &c->records[c->n_records];
    if (bytes == 0) return -1; /* the ROI is empty in this stage */
    *r = (struct rfx_record){
        kind, l->stage, node, first, last, rfx_align_up(bytes) + RFX_RED_ZONE_BYTES, 0};
    return c->n_records++;
}

/* Computes the last step in which each stored map is read or needed. */
static void find_stored_lasts(struct lister *l) {
    const struct rfx_graph *graph = l->graph;
    int *last = l->context->stored_last;
    for (int i = 0; i < graph->n_nodes; i++) last[i] = 0;
    for (int s = 0; s < l->n_stages; s++) {
        enter_stage(l, s);
        for (int i = l->shape->first; i < l->shape->end; i++) {
            if (!is_computed(l, i)) continue;
            int step = is_once(l) ? l->begin + i : l->end;
            bool made_again = l->shape->places[i] == RFX_PLACE_LOCAL;
            if (!made_again && step > last[i]) last[i] = step;
            for (int k = 0; k < inputs_of(l, i); k++) {
                int in = graph->nodes[i].in[k];
                if (l->shape->places[in] != RFX_PLACE_LOCAL && step > last[in]) last[in] = step;
            }
        }
    }
    for (int e = 0; e < graph->n_ends; e++) last[graph->ends[e].node] = l->end;
}

/* Computes, for each computed node, the last node of the stage that reads it (itself when none
 * does) and the number of readers. */
static void find_readers(const struct lister *l) {
    const struct rfx_graph *graph = l->graph;
    int *last = l->context->last_reader;
    int *readers = l->context->n_readers;
    for (int i = l->shape->first; i < l->shape->end; i++) {
        last[i] = i;
        readers[i] = 0;
        if (!is_computed(l, i)) continue;
        for (int k = 0; k < inputs_of(l, i); k++) {
            last[graph->nodes[i].in[k]] = i;
            readers[graph->nodes[i].in[k]]++;
        }
    }
}

bool rfx_stage_has_staging(const struct rfx_stage_shape *shape, int node) {
    return shape->spec.staging && rfx_place_is_local(shape->places[node]);
}

int64_t rfx_stage_step_rows(const struct rfx_graph *graph, const struct rfx_stage_shape *shape,
                            int node) {
    const struct rfx_mode *mode = shape->spec.mode;
    if (mode->step_rows == NULL || shape->places[node] == RFX_PLACE_FETCHED) return 0;
    return mode->step_rows(graph, &shape->spec, node);
}

int64_t rfx_stage_buffer_rows(const struct rfx_stage_shape *shape, int node) {
    const struct rfx_node_rows *rows = &shape->rows[node];
    return rfx_stage_has_staging(shape, node) ? rows->kept : rows->most;
}

/* Returns the bytes of some rows of a node that are as wide as the stage's tiles. */
static size_t rows_bytes(const struct lister *l, int node, int64_t rows) {
    const struct rfx_tensor *out = &l->graph->nodes[node].out;
    int64_t cols = l->shape->cols != NULL ? l->shape->cols[node].max
                                          : rfx_rect_cols(l->graph->nodes[node].wanted);
    return rfx_tensor_pixel_bytes(out, rows * cols);
}

/* Returns the bytes of the resident region of a node that the stage does not store. */
static size_t local_bytes(const struct lister *l, int node) {
    const struct rfx_node *n = &l->graph->nodes[node];
    if (l->shape->places[node] == RFX_PLACE_REDUCED)
        return rfx_rect_is_empty(n->wanted) ? 0 : rfx_node_reduction(n)->state_bytes(n);
    return rows_bytes(l, node, rfx_stage_buffer_rows(l->shape, node));
}

/* Per node: the record of its resident region in the current stage. */
static int *local_record(const struct lister *l) {
    return l->context->local_records + (size_t)l->stage * (size_t)l->graph->n_nodes;
}

/* Returns the record that holds a node's tensor in this stage. */
static int record_of(const struct lister *l, int node) {
    enum rfx_node_place place = l->shape->places[node];
    if (place == RFX_PLACE_NONE) return -1; /* a constant */
    bool local = rfx_place_is_local(place);
    return local ? local_record(l)[node] : l->context->stored_record[node];
}

/* Returns whether a node's result may overwrite its input k, element by element. */
static bool takes(const struct lister *l, int node, int k) {
    const struct rfx_node *n = &l->graph->nodes[node], *in = &l->graph->nodes[n->in[k]];
    return rfx_op_def(n->op)->in_place(l->graph, n, k) && in->out.elems == n->out.elems &&
           rfx_rect_equal(in->wanted, n->wanted);
}

/* Returns whether the node's result may overwrite every input in this record. */
static bool may_take(const struct lister *l, int node, int record) {
    const struct rfx_node *n = &l->graph->nodes[node];
    for (int k = 0; k < n->n_in; k++)
        if (record_of(l, n->in[k]) == record && !takes(l, node, k)) return false;
    return l->context->records[record].last == l->begin + node;
}

/* Returns the record of an input that the node's result may overwrite; -1: none. */
static int taken_over(const struct lister *l, int node) {
    const struct rfx_node *n = &l->graph->nodes[node];
    enum rfx_take_over rule = l->shape->spec.mode->take_over;
    bool local = l->shape->places[node] == RFX_PLACE_LOCAL;
    bool possible = rule == RFX_TAKE_ANY || (rule == RFX_TAKE_SAME_TILE && local);
    if (!possible || rfx_op_def(n->op)->in_place == NULL || l->context->request->no_inplace)
        return -1;
    for (int k = 0; k < inputs_of(l, node); k++) {
        int in = n->in[k];
        int record = record_of(l, in);
        if (record < 0 || !may_take(l, node, record)) continue;
        bool alone = l->shape->places[in] == RFX_PLACE_LOCAL && l->context->n_readers[in] == 1;
        if (rule == RFX_TAKE_ANY || alone) return record;
    }
    return -1;
}

static void list_stored(const struct lister *l, int i, int taken) {
    struct rfx_plan_context *c = l->context;
    int first = is_once(l) ? l->begin + i : l->begin;
    if (taken >= 0) {
        c->records[taken].last = c->stored_last[i];
        c->stored_record[i] = taken;
    } else {
        c->stored_record[i] = add_record(l, RFX_RECORD_STORED, i, first, c->stored_last[i],
                                         rfx_node_roi_bytes(&l->graph->nodes[i]));
    }
}

static struct rfx_plan_staging *staging_of(const struct lister *l, int node) {
    return l->context->staging + (size_t)l->stage * (size_t)l->graph->n_nodes + (size_t)node;
}

/* Returns whether a node reads an input element by element, at the place of its own result. */
static bool takes_all(const struct lister *l, int node, int in) {
    const struct rfx_node *n = &l->graph->nodes[node];
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] == in && !takes(l, node, k)) return false;
    return true;
}

/* Returns whether the staging rows of node i may overwrite those of an input. The older rows that
 * the input keeps for i then lie in front of them; they must not be more rows than are saved. */
static bool may_overwrite(const struct lister *l, int i, int in) {
    struct rfx_plan_context *c = l->context;
    const struct rfx_mode *mode = l->shape->spec.mode;
    if (l->shape->places[in] != RFX_PLACE_LOCAL || staging_of(l, in)->record < 0) return false;
    if (c->last_reader[in] != i)
        return false; /* `frees` would find the same, after a walk over all nodes */
    if (l->shape->rows[in].kept >= l->shape->rows[i].per_step || !takes_all(l, i, in)) return false;
    return c->n_readers[in] == 1 ||
           mode->frees(l->graph, l->shape, in, i, c->sliding.scratch, lag_of(&c->sliding, in, i));
}

/* Lists the staging rows of node i. In strips an input has more columns than the node, so nothing
 * is overwritten. */
static void list_staging(const struct lister *l, int i) {
    struct rfx_plan_context *c = l->context;
    const struct rfx_node *node = &l->graph->nodes[i];
    struct rfx_plan_staging *staging = staging_of(l, i);
    const struct rfx_node_rows *rows = l->shape->rows;
    int last = l->begin + c->last_reader[i];
    bool possible = l->shape->spec.mode->frees != NULL && l->shape->cols == NULL &&
                    rfx_op_def(node->op)->in_place != NULL && !c->request->no_inplace;
    *staging = (struct rfx_plan_staging){-1, -1, c->last_reader[i]};
    for (int k = 0; possible && k < inputs_of(l, i); k++) {
        int in = node->in[k];
        bool less = staging->over < 0 || rows[in].kept < rows[staging->over].kept;
        if (less && may_overwrite(l, i, in)) staging->over = in;
    }
    if (staging->over < 0) {
        staging->record = add_record(l, RFX_RECORD_STAGING, i, l->begin + i, last,
                                     rows_bytes(l, i, rows[i].per_step));
        return;
    }
    staging->record = staging_of(l, staging->over)->record;
    struct rfx_record *record = &c->records[staging->record];
    record->last = last;
    record->bytes += rfx_align_up(rows_bytes(l, i, rows[staging->over].kept));
}

static void list_local(const struct lister *l, int i, int taken) {
    struct rfx_plan_context *c = l->context;
    bool lasting = l->shape->rows[i].lasting;
    int last = l->begin + c->last_reader[i];
    if (taken >= 0) {
        c->records[taken].last = last;
        local_record(l)[i] = taken;
        return;
    }
    if (rfx_stage_has_staging(l->shape, i)) list_staging(l, i);
    local_record(l)[i] = add_record(l, RFX_RECORD_LOCAL, i, lasting ? l->begin : l->begin + i,
                                    lasting ? l->end : last, local_bytes(l, i));
}

static void list_node(const struct lister *l, int i) {
    enum rfx_node_place place = l->shape->places[i];
    if (place == RFX_PLACE_REDUCED)
        local_record(l)[i] =
            add_record(l, RFX_RECORD_LOCAL, i, l->begin, l->end, local_bytes(l, i));
    bool stored = place == RFX_PLACE_STORED || place == RFX_PLACE_REDUCED;
    int taken = taken_over(l, i);
    if (stored)
        list_stored(l, i, taken);
    else
        list_local(l, i, taken);
}

/* Lists the packed weights of node i, unless they stay in memory for the whole run. */
static void list_packed(const struct lister *l, int i) {
    size_t bytes = l->context->packed_bytes[i];
    if (!l->shape->spec.weights_by_stage || bytes == 0 || l->context->resident[i]) return;
    if (l->shape->places[i] == RFX_PLACE_FETCHED) return;
    int first = is_once(l) ? l->begin + i : l->begin;
    int last = is_once(l) ? l->begin + i : l->end;
    (void)add_record(l, RFX_RECORD_PACKED, i, first, last, bytes);
}

/* Fills the distances of a slide; they are the same in every candidate. */
static void measure_slide(const struct lister *l, int i, int k, struct rfx_slide *slide) {
    if (k >= RFX_PLAN_MEASURED) {
        rfx_slide_measure(l->graph, i, k, slide);
        return;
    }
    struct rfx_slide *measured = &l->context->measured[(size_t)i * RFX_PLAN_MEASURED + (size_t)k];
    if (measured->node != i) rfx_slide_measure(l->graph, i, k, measured);
    measured->node = i;
    slide->down = measured->down;
    slide->up = measured->up;
}

/* Largest number of inputs over which a node slides: each offset of its map is compared with all of
 * them. */
#define SLIDING_INPUTS 256

/* Lists the inputs that node i overwrites row by row. */
static void list_slides(const struct lister *l, int i) {
    struct rfx_plan_context *c = l->context;
    const struct rfx_node *n = &l->graph->nodes[i];
    if (n->n_in > SLIDING_INPUTS) return;
    int after = record_of(l, i);
    int step = l->begin + i;
    if (after < 0 || c->records[after].first != step) return;
    for (int k = 0; k < n->n_in; k++) {
        int before = record_of(l, n->in[k]);
        if (before < 0 || before == after || c->records[before].last != step) continue;
        if (l->graph->nodes[n->in[k]].out.layout != RFX_LAYOUT_NHWC) continue;
        struct rfx_slide slide = {.before = before, .after = after, .stage = l->stage, .node = i};
        measure_slide(l, i, k, &slide);
        rfx_slide_add(c->slides, &c->n_slides, &slide);
    }
}

/* Lists the steps at which records begin or have ended: in each stage the first step, the steps of
 * the computed nodes, and the step after the last one. */
static void list_spans(struct rfx_plan_context *c, const struct rfx_stage_shape *shapes,
                       int n_stages) {
    c->n_spans = 0;
    for (int s = 0; s < n_stages; s++) {
        int begin = rfx_plan_count_steps(c->graph, s);
        int from = begin + (shapes[s].first < 1 ? 1 : shapes[s].first);
        c->spans[c->n_spans++] = (struct rfx_place_span){begin, begin + 1};
        c->spans[c->n_spans++] = (struct rfx_place_span){from, begin + shapes[s].end + 1};
    }
}

void rfx_plan_list_records(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                           int n_stages) {
    struct lister l = {
        .context = context, .graph = context->graph, .shapes = shapes, .n_stages = n_stages};
    context->n_records = context->n_slides = 0;
    list_spans(context, shapes, n_stages);
    rfx_plan_find_resident(context, shapes, n_stages);
    find_stored_lasts(&l);
    for (int s = 0; s < n_stages; s++) {
        enter_stage(&l, s);
        find_readers(&l);
        for (int i = shapes[s].first; i < shapes[s].end; i++) {
            if (!is_computed(&l, i)) continue;
            list_packed(&l, i);
            list_node(&l, i);
            if (rfx_stage_step_rows(l.graph, &shapes[s], i) > 0) list_slides(&l, i);
        }
        list_stage_slides(context, &shapes[s], s);
    }
}

bool rfx_plan_loads_by_stage(const struct rfx_plan *plan) {
    for (int s = 0; s < plan->n_stages; s++)
        if (plan->stages[s].spec.weights_by_stage) return true;
    return false;
}

const struct rfx_buffer *rfx_plan_buffer(const struct rfx_plan *plan, int stage, int node) {
    enum rfx_node_place place = plan->stages[stage].places[node];
    bool local = rfx_place_is_local(place);
    return local ? &plan->stages[stage].nodes[node].buffer : &plan->stored[node];
}
