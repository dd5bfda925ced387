/* Computes which bytes of the arena are in use, and records them over time; see run_timeline.h. */
#include "tools/report/run_timeline.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "layers/core/clock.h"
#include "tiler/plan/mode.h"

/* Largest number of boxes of a node in a stage: its stored map, its rows or state in the stage, the
 * rows that a step of a tight stream computes, and its weights. */
enum { BOXES_PER_NODE = 4 };

static size_t steps_of(const struct rfx_graph *graph) {
    return (size_t)graph->n_nodes + 1;
}

size_t rfx_arena_use_bytes(const struct rfx_graph *graph) {
    return steps_of(graph) *
               (BOXES_PER_NODE * sizeof(struct rfx_arena_box) + sizeof(size_t) + 2 * sizeof(int)) +
           sizeof(struct rfx_arena_use);
}

/* Finds the last stage that computes or reads each stored map. For an output this is the plan's
 * last stage. */
static void find_last_stages(struct rfx_arena_use *use) {
    const struct rfx_graph *graph = use->plan->graph;
    for (int s = 0; s < use->plan->n_stages; ++s) {
        const enum rfx_node_place *places = use->plan->stages[s].places;
        for (int i = 0; i < graph->n_nodes; ++i)
            if (rfx_place_has_map(places[i])) use->last_stage[i] = s;
    }
    for (int e = 0; e < graph->n_ends; ++e)
        use->last_stage[graph->ends[e].node] = use->plan->n_stages - 1;
}

enum rfx_status rfx_arena_use_create(struct rfx_memory *mem, const struct rfx_plan *plan,
                                     struct rfx_arena_use **out, struct rfx_error *err) {
    size_t n = steps_of(plan->graph);
    struct rfx_arena_use *use = rfx_memory_calloc(mem, 1, sizeof *use);
    if (use == NULL) return rfx_memory_fail(mem, "arena of a plan", sizeof *use, err);
    *use = (struct rfx_arena_use){.mem = mem, .plan = plan, .stage = -1, .n_steps = (int)n};
    use->boxes = rfx_memory_calloc(mem, n, BOXES_PER_NODE * sizeof *use->boxes);
    use->live = rfx_memory_calloc(mem, n, sizeof *use->live);
    use->last_reader = rfx_memory_calloc(mem, n, sizeof *use->last_reader);
    use->last_stage = rfx_memory_calloc(mem, n, sizeof *use->last_stage);
    if (use->boxes == NULL || use->live == NULL || use->last_reader == NULL ||
        use->last_stage == NULL) {
        rfx_arena_use_free(use);
        return rfx_memory_fail(mem, "arena of a plan", rfx_arena_use_bytes(plan->graph), err);
    }
    find_last_stages(use);
    *out = use;
    return RFX_OK;
}

void rfx_arena_use_free(struct rfx_arena_use *use) {
    if (use == NULL) return;
    rfx_memory_release(use->mem, use->boxes);
    rfx_memory_release(use->mem, use->live);
    rfx_memory_release(use->mem, use->last_reader);
    rfx_memory_release(use->mem, use->last_stage);
    rfx_memory_release(use->mem, use);
}

static void find_last_readers(struct rfx_arena_use *use, const struct rfx_stage *stage) {
    const struct rfx_graph *graph = use->plan->graph;
    for (int i = 0; i < graph->n_nodes; ++i) {
        use->last_reader[i] = i;
        if (!rfx_place_is_computed(stage->places[i])) continue;
        for (int k = 0; k < rfx_place_inputs(stage->places[i], &graph->nodes[i]); ++k)
            use->last_reader[graph->nodes[i].in[k]] = i;
    }
}

static void add_box(struct rfx_arena_use *use, enum rfx_arena_kind kind, int node, int first,
                    int last, struct rfx_buffer buffer) {
    if (buffer.bytes == 0) return;
    use->boxes[use->n_boxes++] =
        (struct rfx_arena_box){kind, node, first, last, buffer.offset, buffer.bytes};
}

/* Adds the box of a node's whole map if the map exists in the stage: the stage or an earlier one
 * computes it, and the stage or a later one reads it. */
static void add_stored(struct rfx_arena_use *use, const struct rfx_stage *stage, int node) {
    const struct rfx_plan *plan = use->plan;
    enum rfx_node_place place = stage->places[node];
    bool made = place == RFX_PLACE_STORED || place == RFX_PLACE_REDUCED, earlier = false;
    for (int s = 0; s < use->stage && !earlier; ++s) {
        enum rfx_node_place before = plan->stages[s].places[node];
        earlier = before == RFX_PLACE_STORED || before == RFX_PLACE_REDUCED;
    }
    if ((!made && !earlier) || use->last_stage[node] < use->stage) return;
    bool once = stage->spec.mode->once, ends = use->last_stage[node] == use->stage;
    if (rfx_graph_count_outputs(plan->graph, node) > 0) ends = false;
    add_box(use, RFX_ARENA_STORED, node, made && once && !earlier ? node : 0,
            ends && once ? use->last_reader[node] : use->n_steps - 1, plan->stored[node]);
}

/* Adds the boxes of a node that only this stage uses: its rows or state, its staging rows and its
 * weights. */
static void add_own(struct rfx_arena_use *use, const struct rfx_stage *stage, int node) {
    const struct rfx_stage_node *own = &stage->nodes[node];
    bool once = stage->spec.mode->once;
    int end = use->n_steps - 1;
    if (!rfx_place_is_computed(stage->places[node])) return;
    if (rfx_place_is_local(stage->places[node]))
        add_box(use, RFX_ARENA_LOCAL, node, node, use->last_reader[node], own->buffer);
    else if (stage->places[node] == RFX_PLACE_REDUCED)
        add_box(use, RFX_ARENA_LOCAL, node, 0, end, own->buffer);
    add_box(use, RFX_ARENA_FRESH, node, node, use->last_reader[node], own->staging);
    add_box(use, RFX_ARENA_PACKED, node, once ? node : 0, once ? node : end, own->packed);
}

static int compare_offsets(const void *a, const void *b) {
    const struct rfx_arena_box *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Lets the box of each ring buffer that shares no byte with another box last for the whole stage:
 * such a buffer keeps its rows from step to step. */
static void lengthen_rings(struct rfx_arena_use *use) {
    size_t reached = 0; /* end of the boxes so far */
    for (int i = 0; i < use->n_boxes; ++i) {
        struct rfx_arena_box *box = &use->boxes[i];
        size_t end = box->offset + box->bytes;
        bool alone =
            box->offset >= reached && (i + 1 == use->n_boxes || use->boxes[i + 1].offset >= end);
        if (alone && box->kind == RFX_ARENA_LOCAL) {
            box->first = 0;
            box->last = use->n_steps - 1;
        }
        if (end > reached) reached = end;
    }
}

/* Returns the number of bytes that lie in at least one box at a step. */
static size_t live_at(const struct rfx_arena_use *use, int step) {
    size_t reached = 0, bytes = 0;
    for (int i = 0; i < use->n_boxes; ++i) {
        const struct rfx_arena_box *box = &use->boxes[i];
        size_t end = box->offset + box->bytes;
        if (step < box->first || step > box->last || end <= reached) continue;
        bytes += end - (box->offset > reached ? box->offset : reached);
        reached = end;
    }
    return bytes;
}

void rfx_arena_use_stage(struct rfx_arena_use *use, int stage) {
    if (use->stage == stage) return;
    const struct rfx_stage *at = &use->plan->stages[stage];
    use->stage = stage;
    use->n_boxes = 0;
    find_last_readers(use, at);
    for (int i = 0; i < use->plan->graph->n_nodes; ++i) {
        add_stored(use, at, i);
        add_own(use, at, i);
    }
    qsort(use->boxes, (size_t)use->n_boxes, sizeof *use->boxes, compare_offsets);
    if (at->spec.mode->rings) lengthen_rings(use);
    for (int step = 0; step < use->n_steps; ++step) use->live[step] = live_at(use, step);
}

/* Seconds. FIRST_INTERVAL: length of an interval at the start. LOOK_EVERY: shortest time between
 * two readings of the resident set; one reading takes some microseconds. */
static const double FIRST_INTERVAL = 1e-3, LOOK_EVERY = 2e-3;

/* Returns the resident set of the process in bytes, or 0 when it is not known. */
static size_t look(const struct rfx_run_timeline *t) {
    char text[128];
    unsigned long pages = 0;
    ssize_t n = t->statm >= 0 ? pread(t->statm, text, sizeof text - 1, 0) : -1;
    if (n <= 0) return 0;
    text[n] = '\0';
    if (sscanf(text, "%*u %lu", &pages) != 1) return 0;
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Makes the intervals twice as long: the larger values of two neighbours count. */
static void join_pairs(struct rfx_run_timeline *t) {
    for (int i = 0; i < RFX_TIMELINE_INTERVALS; ++i) {
        bool half = i < RFX_TIMELINE_INTERVALS / 2;
        t->planned[i] = half ? larger(t->planned[2 * i], t->planned[2 * i + 1]) : 0;
        t->resident[i] = half ? larger(t->resident[2 * i], t->resident[2 * i + 1]) : 0;
    }
    t->interval *= 2;
    t->used = (t->used + 1) / 2;
}

void rfx_run_timeline_add(struct rfx_run_timeline *t, double at, size_t planned, size_t resident) {
    while (at >= t->interval * RFX_TIMELINE_INTERVALS) join_pairs(t);
    int i = at > 0 ? (int)(at / t->interval) : 0;
    if (i >= RFX_TIMELINE_INTERVALS) i = RFX_TIMELINE_INTERVALS - 1;
    for (; t->used <= i; ++t->used) /* a long step fills all intervals since the last step */
        t->planned[t->used] = larger(t->planned[t->used], planned);
    t->planned[i] = larger(t->planned[i], planned);
    t->resident[i] = larger(t->resident[i], resident);
}

static void take_step(void *user, const struct rfx_step *step, double seconds) {
    struct rfx_run_timeline *t = user;
    double at = rfx_clock_seconds(CLOCK_MONOTONIC);
    bool due = at - t->last_look >= LOOK_EVERY;
    if (due) t->last_look = at;
    rfx_arena_use_stage(t->use, step->stage);
    rfx_run_timeline_add(t, at - t->begin, t->use->live[step->node], due ? look(t) : 0);
    if (t->next != NULL) t->next->step(t->next->user, step, seconds);
}

void rfx_run_timeline_start(struct rfx_run_timeline *t, struct rfx_arena_use *use,
                            const struct rfx_step_observer *next) {
    *t = (struct rfx_run_timeline){.next = next, .use = use, .interval = FIRST_INTERVAL};
    t->observer = (struct rfx_step_observer){.step = take_step, .user = t};
    t->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    t->begin = rfx_clock_seconds(CLOCK_MONOTONIC);
}

void rfx_run_timeline_end(struct rfx_run_timeline *t) {
    if (t->observer.user != NULL && t->statm >= 0) (void)close(t->statm);
    t->observer = (struct rfx_step_observer){0};
}
