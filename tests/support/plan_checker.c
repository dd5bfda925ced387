/* The walk: per node, what part of it is valid in memory, and which steps wrote over its bytes. */
#include "tests/support/plan_checker.h"

#include <stdio.h>
#include <stdlib.h>

#include "layers/op.h"
#include "tiler/schedule.h"

struct state {
    const struct rfx_plan *plan;
    const struct rfx_graph *graph;
    struct rfx_rect *written; /* per node: the last rectangle written (tiled), or the whole */
    bool *valid;              /* written and not written over */
    int64_t *area;            /* total area written so far */
    int64_t *pooled_rows;     /* of a streamed global pool's input */
    size_t high_water;
    uint64_t macs;
    char *why;
    size_t size;
};

/* Whether a node's full map is put together from the rectangles of many steps. */
static bool is_stitched(const struct state *s, int node) {
    return node == s->plan->split && s->plan->buffers[node].ring_rows == 0;
}

static bool check_reads(const struct state *s, const struct rfx_schedule *schedule,
                        const struct rfx_step *step) {
    const struct rfx_node *node = &s->graph->nodes[step->node];
    for (int k = 0; k < node->n_in; k++) {
        int in = node->in[k];
        const struct rfx_node *producer = &s->graph->nodes[in];
        if (rfx_node_is_constant(producer)) continue;
        if (step->kind == RFX_STEP_POOL_FINISH) continue; /* reads its state: check_pool */
        struct rfx_rect full = rfx_node_full_rect(producer);
        struct rfx_rect need = rfx_rect_intersect(
            step->kind == RFX_STEP_POOL_ROWS ? step->rect
                                             : rfx_op_in_rect(s->graph, node, k, step->rect),
            full);
        if (rfx_rect_is_empty(need)) continue;
        struct rfx_rect have = is_stitched(s, in) ? full : s->written[in];
        bool complete = !is_stitched(s, in) || s->area[in] == rfx_rect_area(full);
        bool in_view = rfx_rect_contains(rfx_schedule_view_rect(schedule, in), need);
        if (s->valid[in] && complete && in_view && rfx_rect_contains(have, need)) continue;
        snprintf(s->why, s->size,
                 "'%s' reads '%s' rows %lld..%lld columns %lld..%lld: valid %d complete %d in view "
                 "%d",
                 node->name, producer->name, (long long)need.y0, (long long)need.y1,
                 (long long)need.x0, (long long)need.x1, s->valid[in], complete, in_view);
        return false;
    }
    return true;
}

/* Pool states: every row once and in order, nobody writes over the state, read when complete. */
static bool check_pool(struct state *s, const struct rfx_step *step) {
    const struct rfx_buffer *mine = &s->plan->pool_states[step->node];
    const struct rfx_node *in = &s->graph->nodes[s->graph->nodes[step->node].in[0]];
    int64_t *rows = &s->pooled_rows[step->node];
    bool good = mine->offset + mine->bytes <= s->plan->bytes.arena;
    if (step->kind == RFX_STEP_POOL_FINISH) {
        good = good && *rows == in->out.h;
    } else {
        good = good && step->rect.y0 == *rows && rfx_rect_cols(step->rect) == in->out.w;
        *rows = step->rect.y1;
    }
    for (int j = 0; j < s->graph->n_nodes; j++) {
        const struct rfx_buffer *other = &s->plan->buffers[j];
        bool apart = other->offset >= mine->offset + mine->bytes ||
                     other->offset + other->bytes <= mine->offset;
        bool alive = other->bytes != 0 && other->first <= step->node && j < step->node;
        if (alive && !apart) good = false;
    }
    if (mine->offset + mine->bytes > s->high_water) s->high_water = mine->offset + mine->bytes;
    if (!good)
        snprintf(s->why, s->size, "the sums of '%s' are not sound",
                 s->graph->nodes[step->node].name);
    return good;
}

static bool apply_write(struct state *s, const struct rfx_schedule *schedule,
                        const struct rfx_step *step) {
    const struct rfx_plan *plan = s->plan;
    if (step->kind != RFX_STEP_RUN && !check_pool(s, step)) return false;
    if (step->kind == RFX_STEP_POOL_ROWS) return true;
    const struct rfx_node *node = &s->graph->nodes[step->node];
    const struct rfx_buffer *mine = &plan->buffers[step->node];
    struct rfx_rect view = rfx_schedule_view_rect(schedule, step->node);
    size_t bytes = (size_t)(rfx_rect_area(view) * node->out.c) * sizeof(float);
    size_t end = mine->offset + (bytes + 63) / 64 * 64;
    if (end > plan->bytes.arena || bytes > mine->bytes || !rfx_rect_contains(view, step->rect)) {
        snprintf(s->why, s->size, "'%s' writes to byte %zu of %zu, buffer %zu of %zu bytes",
                 node->name, end, plan->bytes.arena, bytes, mine->bytes);
        return false;
    }
    if (end > s->high_water) s->high_water = end;
    for (int j = 0; j < s->graph->n_nodes; j++) {
        const struct rfx_buffer *other = &plan->buffers[j];
        bool apart = other->offset >= end || other->offset + other->bytes <= mine->offset;
        if (j != step->node && !apart) s->valid[j] = false;
    }
    bool continues = is_stitched(s, step->node) && s->area[step->node] > 0;
    if (continues && !s->valid[step->node]) {
        snprintf(s->why, s->size, "stitched '%s' was written over", node->name);
        return false;
    }
    /* a ring keeps the rows before as long as nobody wrote over them and they fit */
    bool ring = mine->ring_rows != 0 && s->valid[step->node];
    if (ring && s->written[step->node].y1 != step->rect.y0) {
        snprintf(s->why, s->size, "'%s' skips from row %lld to %lld", node->name,
                 (long long)s->written[step->node].y1, (long long)step->rect.y0);
        return false;
    }
    int64_t first = ring ? s->written[step->node].y0 : step->rect.y0;
    s->valid[step->node] = true;
    s->written[step->node] = step->rect;
    if (ring)
        s->written[step->node].y0 =
            first > step->rect.y1 - mine->ring_rows ? first : step->rect.y1 - mine->ring_rows;
    s->area[step->node] += rfx_rect_area(step->rect);
    s->macs += rfx_op_macs(s->graph, node, step->rect);
    return true;
}

static bool check_end(const struct state *s) {
    const struct rfx_plan *plan = s->plan;
    for (int k = 0; k < s->graph->n_outputs; k++) {
        int i = s->graph->outputs[k].node;
        const struct rfx_node *node = &s->graph->nodes[i];
        if (rfx_node_is_constant(node)) continue;
        if (s->valid[i] && s->area[i] == rfx_rect_area(rfx_node_full_rect(node))) continue;
        snprintf(s->why, s->size, "output '%s' is not complete at the end", node->name);
        return false;
    }
    if (s->macs != plan->macs || s->high_water != plan->bytes.arena) {
        snprintf(s->why, s->size, "MACs %llu of %llu planned, highest byte %zu of %zu planned",
                 (unsigned long long)s->macs, (unsigned long long)plan->macs, s->high_water,
                 plan->bytes.arena);
        return false;
    }
    const struct rfx_plan_bytes *b = &plan->bytes;
    if (b->arena + b->weights + b->scratch + b->source + b->reserve != plan->peak_bytes) {
        snprintf(s->why, s->size, "the breakdown does not add up to %zu", plan->peak_bytes);
        return false;
    }
    return true;
}

bool rfx_plan_check(const struct rfx_plan *plan, char *why, size_t size) {
    size_t n = (size_t)plan->graph->n_nodes;
    struct state s = {.plan = plan, .graph = plan->graph, .why = why, .size = size};
    struct rfx_schedule *schedule = NULL;
    struct rfx_error err;
    bool sound = false;
    s.written = calloc(n, sizeof *s.written);
    s.valid = calloc(n, sizeof *s.valid);
    s.area = calloc(n, sizeof *s.area);
    s.pooled_rows = calloc(n, sizeof *s.pooled_rows);
    snprintf(why, size, "no memory or no schedule");
    if (s.written == NULL || s.valid == NULL || s.area == NULL || s.pooled_rows == NULL) goto done;
    if (rfx_schedule_create(plan, &schedule, &err) != RFX_OK) goto done;
    sound = true;
    struct rfx_step step;
    while (sound && rfx_schedule_next(schedule, &step))
        sound = check_reads(&s, schedule, &step) && apply_write(&s, schedule, &step);
    sound = sound && check_end(&s);
done:
    rfx_schedule_free(schedule);
    free(s.written);
    free(s.valid);
    free(s.area);
    free(s.pooled_rows);
    return sound;
}
