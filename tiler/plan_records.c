/* The tensor usage records of a candidate plan.
 *
 * Time has n_nodes + 1 steps per stage. In a whole stage node i is made in step i; in a tiled one
 * too, for every tile anew, so that what lives longer than a tile lives for the whole stage; rings
 * of a stream live for the whole stage, rows that end with the step that made them only from their
 * node to its last reader. A result may take over the bytes of an input that dies (in place); in a
 * stage that runs row by row it may slide over them. */
#include "layers/checked.h"
#include "layers/conv_backend.h"
#include "layers/op.h"
#include "tiler/placement_rows.h"
#include "tiler/plan_build.h"

#define STEP_PARTS 32 /* a map is made in about this many steps where it runs row by row */

int rfx_plan_count_steps(const struct rfx_graph *graph, int n_stages) {
    return n_stages * (graph->n_nodes + 1);
}

struct lister {
    struct rfx_plan_context *context;
    const struct rfx_graph *graph;
    const struct rfx_plan_candidate *candidate;
    int stage;
    const struct rfx_stage_choice *choice; /* of the stage */
    int begin, end;                        /* first and last step of the stage */
};

static bool is_whole(const struct lister *l) {
    return l->choice->spec.mode == RFX_STAGE_WHOLE;
}

static bool is_computed(const struct lister *l, int node) {
    return rfx_place_is_computed(l->choice->places[node]);
}

static void enter_stage(struct lister *l, int stage) {
    l->stage = stage;
    l->choice = &l->candidate->stages[stage];
    l->begin = rfx_plan_count_steps(l->graph, stage);
    l->end = l->begin + l->graph->n_nodes;
}

static int add_record(const struct lister *l, enum rfx_record_kind kind, int node, int first,
                      int last, size_t bytes) {
    struct rfx_plan_context *c = l->context;
    struct rfx_record *r = &c->records[c->n_records];
    if (bytes == 0) return -1; /* nothing of the node is needed here */
    *r = (struct rfx_record){
        kind, l->stage, node, first, last, rfx_align_up(bytes) + RFX_RED_ZONE_BYTES, 0};
    return c->n_records++;
}

/* Last step in which each stored map is read or still wanted. */
static void find_stored_lasts(struct lister *l) {
    const struct rfx_graph *graph = l->graph;
    int *last = l->context->stored_last;
    for (int i = 0; i < graph->n_nodes; i++) last[i] = 0;
    for (int s = 0; s < l->candidate->n_stages; s++) {
        enter_stage(l, s);
        for (int i = 0; i < graph->n_nodes; i++) {
            if (!is_computed(l, i)) continue;
            int step = is_whole(l) ? l->begin + i : l->end;
            if (step > last[i]) last[i] = step;
            for (int k = 0; k < graph->nodes[i].n_in; k++) {
                int in = graph->nodes[i].in[k];
                if (l->choice->places[in] != RFX_PLACE_LOCAL && step > last[in]) last[in] = step;
            }
        }
    }
    for (int k = 0; k < graph->n_outputs; k++) last[graph->outputs[k].node] = l->end;
}

/* Per node: the last node of the stage that reads it (itself when none does), and how many do. */
static void find_readers(const struct lister *l) {
    const struct rfx_graph *graph = l->graph;
    int *last = l->context->last_reader;
    int *readers = l->context->n_readers;
    for (int i = 0; i < graph->n_nodes; i++) {
        last[i] = i;
        readers[i] = 0;
        if (!is_computed(l, i)) continue;
        for (int k = 0; k < graph->nodes[i].n_in; k++) {
            last[graph->nodes[i].in[k]] = i;
            readers[graph->nodes[i].in[k]]++;
        }
    }
}

/* Whether a node's new rows and those that outlive their step lie apart. */
static bool is_tight(const struct lister *l, int node) {
    enum rfx_node_place place = l->choice->places[node];
    bool local = rfx_place_is_local(place);
    return local && l->choice->spec.tight && !l->choice->rings[node].transient;
}

/* Bytes of what a stage has at hand of a node that it does not store. */
static size_t local_bytes(const struct lister *l, int node) {
    const struct rfx_stage_choice *choice = l->choice;
    const struct rfx_tensor *out = &l->graph->nodes[node].out;
    int64_t elems = out->elems;
    if (choice->places[node] == RFX_PLACE_REDUCED)
        return rfx_node_reduction(&l->graph->nodes[node])->state_bytes(&l->graph->nodes[node]);
    int64_t cols = choice->cols != NULL ? choice->cols[node].max : out->w;
    if (choice->spec.mode == RFX_STAGE_TILED) elems = choice->rows[node].max * cols * out->c;
    if (choice->spec.mode == RFX_STAGE_STREAMED)
        elems = (is_tight(l, node) ? choice->rings[node].kept : choice->rings[node].rows) * cols *
                out->c;
    return (size_t)elems * sizeof(float);
}

/* Per node: the record of what this stage has at hand. */
static int *local_record(const struct lister *l) {
    return l->context->local_records + (size_t)l->stage * (size_t)l->graph->n_nodes;
}

/* The record that holds a node's tensor in this stage. */
static int record_of(const struct lister *l, int node) {
    enum rfx_node_place place = l->choice->places[node];
    if (place == RFX_PLACE_NONE) return -1; /* a constant */
    if (place == RFX_PLACE_READ && l->context->by_caller[node]) return -1;
    bool local = rfx_place_is_local(place);
    return local ? local_record(l)[node] : l->context->stored_record[node];
}

/* Whether all inputs in this record may be written over by the node's result. */
static bool may_take(const struct lister *l, int node, int record) {
    const struct rfx_node *n = &l->graph->nodes[node];
    const struct rfx_op_def *def = rfx_op_def(n->op);
    for (int k = 0; k < n->n_in; k++) {
        if (record_of(l, n->in[k]) != record) continue;
        if (!def->in_place(l->graph, n, k)) return false;
        if (l->graph->nodes[n->in[k]].out.elems != n->out.elems) return false;
    }
    return l->context->records[record].last == l->begin + node;
}

/* The record of an input whose bytes the node's result may take over, or -1. */
static int taken_over(const struct lister *l, int node) {
    const struct rfx_node *n = &l->graph->nodes[node];
    const struct rfx_op_def *def = rfx_op_def(n->op);
    bool tiled = l->choice->spec.mode == RFX_STAGE_TILED;
    bool possible = is_whole(l) || (tiled && l->choice->places[node] == RFX_PLACE_LOCAL);
    if (!possible || def->in_place == NULL || l->context->request->no_inplace) return -1;
    for (int k = 0; k < n->n_in; k++) {
        int in = n->in[k];
        int record = record_of(l, in);
        if (record < 0 || !may_take(l, node, record)) continue;
        bool alone = l->choice->places[in] == RFX_PLACE_LOCAL && l->context->n_readers[in] == 1;
        if (is_whole(l) || alone) return record; /* of a tile both have the same part then */
    }
    return -1;
}

static void list_node(const struct lister *l, int i) {
    struct rfx_plan_context *c = l->context;
    enum rfx_node_place place = l->choice->places[i];
    bool stored = place == RFX_PLACE_STORED || place == RFX_PLACE_REDUCED;
    bool lasting = l->choice->spec.mode == RFX_STAGE_STREAMED &&
                   (place == RFX_PLACE_REDUCED || !l->choice->rings[i].transient);
    int first = is_whole(l) ? l->begin + i : l->begin;
    if (place == RFX_PLACE_REDUCED)
        local_record(l)[i] =
            add_record(l, RFX_RECORD_LOCAL, i, l->begin, l->end, local_bytes(l, i));
    int taken = stored && c->by_caller[i] ? -1 : taken_over(l, i);
    int last = stored ? c->stored_last[i] : l->begin + c->last_reader[i];
    if (taken >= 0) {
        c->records[taken].last = last;
        *(stored ? &c->stored_record[i] : &local_record(l)[i]) = taken;
        return;
    }
    if (stored && c->by_caller[i]) {
        c->stored_record[i] = -1;
        return;
    }
    if (stored) {
        c->stored_record[i] = add_record(l, RFX_RECORD_STORED, i, first, last,
                                         rfx_node_out_bytes(&l->graph->nodes[i]));
        return;
    }
    if (l->choice->spec.mode == RFX_STAGE_STREAMED && is_tight(l, i)) {
        int64_t cols = l->choice->cols != NULL ? l->choice->cols[i].max : l->graph->nodes[i].out.w;
        int64_t elems = l->choice->rings[i].fresh * cols * l->graph->nodes[i].out.c;
        (void)add_record(l, RFX_RECORD_FRESH, i, l->begin + i, l->begin + c->last_reader[i],
                         (size_t)elems * sizeof(float));
    }
    first = lasting ? l->begin : l->begin + i;
    last = lasting ? l->end : last;
    local_record(l)[i] = add_record(l, RFX_RECORD_LOCAL, i, first, last, local_bytes(l, i));
}

/* Packed constants of node i; those of constant nodes always stay. */
static void list_packed(const struct lister *l, int i) {
    size_t bytes = l->context->packed_bytes[i];
    if (!l->candidate->weights_by_stage || bytes == 0) return;
    int first = is_whole(l) ? l->begin + i : l->begin;
    int last = is_whole(l) ? l->begin + i : l->end;
    (void)add_record(l, RFX_RECORD_PACKED, i, first, last, bytes);
}

int64_t rfx_plan_step_rows(const struct rfx_graph *graph, int node) {
    const struct rfx_node *n = &graph->nodes[node];
    int64_t block = rfx_conv_block_of(graph, n).h;
    return rfx_ceil_div(rfx_ceil_div(n->out.h, STEP_PARTS), block) * block;
}

/* Which inputs die row by row while node i is made. */
static void list_slides(const struct lister *l, int i) {
    struct rfx_plan_context *c = l->context;
    const struct rfx_node *n = &l->graph->nodes[i];
    int after = record_of(l, i);
    int step = l->begin + i;
    if (!rfx_node_runs_by_rows(n) || after < 0) return;
    if (c->records[after].first != step) return;
    for (int k = 0; k < n->n_in; k++) {
        int before = record_of(l, n->in[k]);
        if (before < 0 || before == after || c->records[before].last != step) continue;
        if (l->graph->nodes[n->in[k]].out.layout != RFX_LAYOUT_NHWC) continue;
        struct rfx_slide slide = {.before = before, .after = after, .stage = l->stage, .node = i};
        rfx_slide_measure(l->graph, i, k, &slide);
        rfx_slide_add(c->slides, &c->n_slides, &slide);
    }
}

void rfx_plan_list_records(struct rfx_plan_context *context,
                           const struct rfx_plan_candidate *candidate) {
    struct lister l = {.context = context, .graph = context->graph, .candidate = candidate};
    context->n_records = context->n_slides = 0;
    find_stored_lasts(&l);
    for (int s = 0; s < candidate->n_stages; s++) {
        enter_stage(&l, s);
        find_readers(&l);
        for (int i = 0; i < l.graph->n_nodes; i++) {
            if (!is_computed(&l, i)) continue;
            list_packed(&l, i);
            list_node(&l, i);
            if (is_whole(&l) && l.choice->spec.row_by_row) list_slides(&l, i);
        }
    }
}
