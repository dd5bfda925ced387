/* The walk of the checker. Memory is a set of spans of rows that nothing has overwritten. A write
 * removes every row on the bytes that it touches; a read needs spans on all rows that the
 * operator's region map asks for. Columns are checked against the views, rows byte by byte. No two
 * spans share a byte. Functions on spans that return bool return false when there is no memory. */
#include "tiler/plan/plan_check.h"

#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/memory.h"
#include "layers/graph/op.h"
#include "layers/graph/reduction.h"
#include "layers/graph/tensor.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/schedule.h"

/* Consecutive rows [y0, y1) of a node that are in memory. */
struct row_span {
    int node;
    int64_t y0, y1;
    size_t begin, row_bytes; /* in the arena */
    struct rfx_range cols;   /* columns that have been written (their hull) */
    int64_t x0;              /* the view's first column when they were written */
};

/* Empty when all is zero but `mem`. */
struct row_spans {
    struct rfx_memory *mem;
    struct row_span *items;
    size_t count, capacity;
};

static bool add_span(struct row_spans *s, struct row_span span) {
    if (span.y0 >= span.y1) return true;
    struct row_span *items =
        rfx_memory_reserve(s->mem, s->items, &s->capacity, s->count + 1, sizeof *s->items);
    if (items == NULL) return false;
    s->items = items;
    s->items[s->count++] = span;
    return true;
}

/* Removes rows [lo, hi) from span i; another span may take its place in the list. */
static bool cut_span(struct row_spans *s, size_t i, int64_t lo, int64_t hi) {
    struct row_span above = s->items[i];
    struct row_span below = above;
    s->items[i] = s->items[--s->count];
    above.y1 = rfx_min_i64(lo, above.y1);
    below.y0 = rfx_max_i64(hi, below.y0);
    below.begin += (size_t)(below.y0 - above.y0) * below.row_bytes;
    return add_span(s, above) && add_span(s, below);
}

/* Removes the rows of all nodes that lie on bytes [begin, end). */
static bool spans_overwrite(struct row_spans *s, size_t begin, size_t end) {
    for (size_t i = s->count; i-- > 0;) {
        const struct row_span *span = &s->items[i];
        size_t span_end = span->begin + (size_t)(span->y1 - span->y0) * span->row_bytes;
        if (begin >= span_end || end <= span->begin) continue;
        size_t from = begin > span->begin ? (begin - span->begin) / span->row_bytes : 0;
        size_t to = (end - span->begin + span->row_bytes - 1) / span->row_bytes;
        if (!cut_span(s, i, span->y0 + (int64_t)from, span->y0 + (int64_t)to)) return false;
    }
    return true;
}

/* Removes rows [lo, hi) of a node, wherever they lie. */
static bool spans_forget(struct row_spans *s, int node, int64_t lo, int64_t hi) {
    for (size_t i = s->count; i-- > 0;) {
        const struct row_span *span = &s->items[i];
        if (span->node != node || span->y0 >= hi || span->y1 <= lo) continue;
        if (!cut_span(s, i, lo, hi)) return false;
    }
    return true;
}

/* Returns the span with row y of a node, or NULL. *until: rows [y, *until) are all in that span, or
 * all in none. */
static const struct row_span *spans_find(const struct row_spans *s, int node, int64_t y,
                                         int64_t *until) {
    for (size_t i = 0; i < s->count; i++) {
        const struct row_span *span = &s->items[i];
        if (span->node != node) continue;
        if (span->y0 <= y && y < span->y1) {
            *until = rfx_min_i64(*until, span->y1);
            return span;
        }
        if (span->y0 > y) *until = rfx_min_i64(*until, span->y0);
    }
    return NULL;
}

/* Adds a span on free bytes, or lengthens the span that it continues. Does nothing when the span is
 * empty. */
static bool spans_join(struct row_spans *s, struct row_span span) {
    for (size_t i = 0; i < s->count; i++) {
        struct row_span *have = &s->items[i];
        bool alike = have->node == span.node && have->row_bytes == span.row_bytes &&
                     have->x0 == span.x0 && have->cols.lo == span.cols.lo &&
                     have->cols.hi == span.cols.hi;
        if (!alike || have->y1 != span.y0) continue;
        if (have->begin + (size_t)(have->y1 - have->y0) * have->row_bytes != span.begin) continue;
        have->y1 = span.y1;
        return true;
    }
    return add_span(s, span);
}

static void spans_free(struct row_spans *s) {
    rfx_memory_release(s->mem, s->items);
}

struct state {
    const struct rfx_plan *plan;
    const struct rfx_graph *graph;
    struct rfx_schedule *schedule;
    struct row_spans spans, files; /* files: rows of spilled maps */
    int64_t *reduced;              /* per node: pixels taken by a reduction */
    int64_t *emitted;              /* per node: pixels passed to the output */
    int stage;
    size_t high_water;
    uint64_t macs;
    struct rfx_plan_spill spill;
    char *why;
    size_t size;
};

static bool complain(const struct state *s, int node, const char *what, int64_t a, int64_t b) {
    snprintf(s->why, s->size, "stage %d, '%s': %s (%lld, %lld)", s->stage,
             s->graph->nodes[node].name, what, (long long)a, (long long)b);
    return false;
}

static bool complain_of_memory(const struct state *s, int node) {
    return complain(s, node, RFX_PLAN_CHECK_NO_MEMORY " for spans", (int64_t)s->spans.capacity, 0);
}

static bool check_bytes(struct state *s, int node, const struct rfx_buffer *buffer, size_t bytes) {
    size_t end = buffer->offset + (bytes + 63) / 64 * 64 + RFX_RED_ZONE_BYTES;
    if (end > s->plan->bytes.arena) return complain(s, node, "outside the arena", (int64_t)end, 0);
    if (bytes > buffer->bytes)
        return complain(s, node, "more bytes than its buffer", (int64_t)bytes,
                        (int64_t)buffer->bytes);
    if (buffer->offset % 64 != 0) return complain(s, node, "not aligned", 0, 0);
    if (end > s->high_water) s->high_water = end;
    return true;
}

/* Returns where row y of a node's resident region lies (staging: where the step writes it). Lowers
 * *until to the first row that no longer follows contiguously. */
static size_t row_at(const struct state *s, int node, const struct rfx_resident_region *region,
                     bool staging, int64_t y, int64_t *until, size_t *row_bytes) {
    *row_bytes = rfx_tensor_pixel_bytes(&s->graph->nodes[node].out, rfx_rect_cols(region->rect));
    if (staging && region->has_staging && y >= region->staging_y0)
        return region->staging_offset + (size_t)(y - region->staging_y0) * *row_bytes;
    if (staging && region->has_staging) *until = rfx_min_i64(*until, region->staging_y0);
    int64_t slot = region->ring_rows != 0 ? y % region->ring_rows : y - region->rect.y0;
    if (region->ring_rows != 0) *until = rfx_min_i64(*until, y + region->ring_rows - slot);
    return region->offset + (size_t)slot * *row_bytes;
}

/* Returns whether a span has row y where the view expects it. */
static bool is_where(const struct row_span *span, int64_t y, size_t begin, size_t row_bytes,
                     int64_t x0) {
    return span != NULL && span->row_bytes == row_bytes && span->x0 == x0 &&
           span->begin + (size_t)(y - span->y0) * row_bytes == begin;
}

static bool check_rows_there(const struct state *s, int node, int in, struct rfx_rect need) {
    struct rfx_resident_region region = rfx_schedule_resident_region(s->schedule, in);
    if (!rfx_rect_contains(region.rect, need))
        return complain(s, node, "reads outside a view", need.y0, need.y1);
    for (int64_t y = need.y0, until; y < need.y1; y = until) {
        size_t bytes;
        until = need.y1;
        size_t begin = row_at(s, in, &region, true, y, &until, &bytes);
        const struct row_span *span = spans_find(&s->spans, in, y, &until);
        if (!is_where(span, y, begin, bytes, region.rect.x0))
            return complain(s, node, "reads a row that is not there", in, y);
        if (need.x0 < span->cols.lo || need.x1 > span->cols.hi)
            return complain(s, node, "reads columns that were not made", in, y);
    }
    return true;
}

/* Returns the first row from which the step's result overwrites input k element by element; the end
 * of all rows if it does not. */
static int64_t in_place_from(const struct state *s, const struct rfx_step *step, int k) {
    const struct rfx_node *n = &s->graph->nodes[step->node];
    const struct rfx_op_def *def = rfx_op_def(n->op);
    if (def->in_place == NULL || !def->in_place(s->graph, n, k)) return INT64_MAX;
    struct rfx_resident_region out = rfx_schedule_resident_region(s->schedule, step->node);
    struct rfx_resident_region in = rfx_schedule_resident_region(s->schedule, n->in[k]);
    int64_t from = step->rect.y1, until = from;
    for (int64_t y = from - 1; y >= step->rect.y0 && from == y + 1; y--) {
        size_t bytes;
        if (row_at(s, n->in[k], &in, true, y, &until, &bytes) ==
            row_at(s, step->node, &out, true, y, &until, &bytes))
            from = y;
    }
    return from;
}

/* Returns whether everything that a step reads is in memory. written: the step has run, so rows
 * that it has overwritten in place are no longer required. */
static bool check_reads(const struct state *s, const struct rfx_step *step, bool written) {
    const struct rfx_node *node = &s->graph->nodes[step->node];
    for (int k = 0; k < node->n_in; k++) {
        const struct rfx_node *in = &s->graph->nodes[node->in[k]];
        if (rfx_node_is_constant(in)) continue;
        struct rfx_rect need = step->kind == RFX_STEP_REDUCE_ADD
                                   ? step->rect
                                   : rfx_op_in_rect(s->graph, node, k, step->rect);
        need = rfx_rect_intersect(need, rfx_node_full_rect(in));
        if (written) need.y1 = rfx_min_i64(need.y1, in_place_from(s, step, k));
        if (rfx_rect_is_empty(need)) continue;
        if (!check_rows_there(s, step->node, node->in[k], need)) return false;
    }
    return true;
}

/* Returns the buffer that holds the rows which the step writes. */
static const struct rfx_buffer *written_buffer(const struct state *s, const struct rfx_step *step) {
    const struct rfx_stage_node *how = &s->plan->stages[step->stage].nodes[step->node];
    bool staging = how->staging.bytes != 0 && step->kind != RFX_STEP_KEEP;
    return staging ? &how->staging : rfx_plan_buffer(s->plan, step->stage, step->node);
}

/* Applies the step's write; its inputs have been checked. */
static bool apply_write(struct state *s, const struct rfx_step *step) {
    struct rfx_resident_region region = rfx_schedule_resident_region(s->schedule, step->node);
    const struct rfx_buffer *buffer = written_buffer(s, step);
    if (!rfx_rect_contains(region.rect, step->rect))
        return complain(s, step->node, "writes outside its view", step->rect.y0, step->rect.y1);
    for (int64_t y = step->rect.y0, until; y < step->rect.y1; y = until) {
        size_t bytes;
        until = step->rect.y1;
        bool staging = step->kind != RFX_STEP_KEEP;
        size_t begin = row_at(s, step->node, &region, staging, y, &until, &bytes);
        const struct row_span *span = spans_find(&s->spans, step->node, y, &until);
        size_t end = begin + (size_t)(until - y) * bytes;
        if (begin - buffer->offset > s->plan->bytes.arena) /* wraps around below 0 */
            return complain(s, step->node, "writes before its buffer", y, until);
        if (!check_bytes(s, step->node, buffer, end - buffer->offset)) return false;
        struct rfx_range cols = {step->rect.x0, step->rect.x1};
        if (is_where(span, y, begin, bytes, region.rect.x0) && cols.lo <= span->cols.hi &&
            cols.hi >= span->cols.lo)
            cols = rfx_range_union(cols, span->cols);
        struct row_span made = {step->node, y, until, begin, bytes, cols, region.rect.x0};
        if (!spans_overwrite(&s->spans, begin, end) ||
            !spans_forget(&s->spans, step->node, y, until) || !spans_join(&s->spans, made))
            return complain_of_memory(s, step->node);
    }
    return true;
}

/* Checks that the step has not overwritten inputs that it reads in this step, or still has to read
 * later (row-by-row stages). */
static bool check_inputs_survive(const struct state *s, const struct rfx_step *step) {
    if (!check_reads(s, step, true)) return false;
    const struct rfx_stage *stage = &s->plan->stages[step->stage];
    const struct rfx_stage_node *how = &stage->nodes[step->node];
    if (how->step_rows == 0) return true;
    struct rfx_rect rest = s->graph->nodes[step->node].wanted;
    if (how->upwards)
        rest.y1 = step->rect.y0;
    else
        rest.y0 = step->rect.y1;
    struct rfx_step later = *step;
    later.rect = rest;
    return rfx_rect_is_empty(rest) || check_reads(s, &later, false);
}

/* Checks that reduction states and packed weights that the stage still needs lie apart from `mine`,
 * which the step writes. */
static bool check_states_apart(const struct state *s, const struct rfx_step *step,
                               const struct rfx_buffer *mine) {
    const struct rfx_stage *stage = &s->plan->stages[step->stage];
    for (int i = stage->first; i <= stage->last; i++) {
        const struct rfx_buffer *held[2] = {&stage->nodes[i].packed, &stage->nodes[i].buffer};
        bool reduced = stage->places[i] == RFX_PLACE_REDUCED;
        bool packed = !stage->spec.mode->once || i == step->node;
        for (int h = 0; h < 2; h++) {
            if ((h == 0 && !packed) || (h == 1 && !reduced) || held[h]->bytes == 0) continue;
            bool apart = held[h] == mine || mine->offset >= held[h]->offset + held[h]->bytes ||
                         mine->offset + mine->bytes <= held[h]->offset;
            if (!apart) return complain(s, step->node, "lies over the state or constants of", i, h);
        }
    }
    return true;
}

/* Checks that a reduction's state, or packed weights, have the size that the operator writes. */
static bool check_held_bytes(struct state *s, int index, bool load,
                             const struct rfx_buffer *buffer) {
    const struct rfx_node *node = &s->graph->nodes[index];
    const struct rfx_reduction *reduction = rfx_node_reduction(node);
    if (!load && reduction == NULL) return complain(s, index, "is no reduction", 0, 0);
    size_t bytes = load ? rfx_op_packed_bytes(s->graph, node) : reduction->state_bytes(node);
    return check_bytes(s, index, buffer, bytes);
}

static bool apply_state(struct state *s, const struct rfx_step *step) {
    const struct rfx_stage_node *how = &s->plan->stages[step->stage].nodes[step->node];
    bool load = step->kind == RFX_STEP_LOAD;
    const struct rfx_buffer *buffer = load ? &how->packed : &how->buffer;
    if (!check_held_bytes(s, step->node, load, buffer) || !check_states_apart(s, step, buffer))
        return false;
    if (step->kind == RFX_STEP_REDUCE_FINISH) {
        int64_t pixels = rfx_rect_area(s->graph->nodes[step->node].taken);
        if (s->reduced[step->node] != pixels)
            return complain(s, step->node, "pixels reduced", s->reduced[step->node], pixels);
        return apply_write(s, step);
    }
    if (step->kind == RFX_STEP_REDUCE_ADD) {
        s->reduced[step->node] += rfx_rect_area(step->rect);
        if (!check_reads(s, step, false)) return false;
    }
    if (step->kind == RFX_STEP_REDUCE_BEGIN) s->reduced[step->node] = 0;
    if (!check_bytes(s, step->node, buffer, buffer->bytes)) return false;
    return spans_overwrite(&s->spans, buffer->offset, buffer->offset + buffer->bytes) ||
           complain_of_memory(s, step->node);
}

/* Returns the addresses of a node's rows in files; no other node has the same ones. */
static size_t place_in_files(int node) {
    return (size_t)node << 44;
}

/* Applies a write to a node's file, which lies apart from everything else. Columns of consecutive
 * strips join to whole rows. */
static bool apply_spill(struct state *s, const struct rfx_step *step) {
    const struct rfx_tensor *out = &s->graph->nodes[step->node].out;
    size_t row_bytes = rfx_tensor_pixel_bytes(out, out->w);
    if (s->plan->stages[step->stage].places[step->node] != RFX_PLACE_SPILLED)
        return complain(s, step->node, "is not to be written to a file", step->rect.y0, 0);
    if (!check_rows_there(s, step->node, step->node, step->rect)) return false;
    for (int64_t y = step->rect.y0, until; y < step->rect.y1; y = until) {
        until = step->rect.y1;
        const struct row_span *span = spans_find(&s->files, step->node, y, &until);
        struct rfx_range cols = {step->rect.x0, step->rect.x1};
        if (span != NULL && cols.lo <= span->cols.hi && cols.hi >= span->cols.lo)
            cols = rfx_range_union(cols, span->cols);
        size_t begin = place_in_files(step->node) + (size_t)y * row_bytes;
        struct row_span made = {step->node, y, until, begin, row_bytes, cols, 0};
        if (!spans_forget(&s->files, step->node, y, until) || !spans_join(&s->files, made))
            return complain_of_memory(s, step->node);
    }
    s->spill.written += rfx_tensor_pixel_bytes(out, rfx_rect_area(step->rect));
    return true;
}

/* Checks that rows read from a node's file have been written there. */
static bool check_fetch(struct state *s, const struct rfx_step *step) {
    const struct rfx_tensor *out = &s->graph->nodes[step->node].out;
    if (s->plan->stages[step->stage].places[step->node] != RFX_PLACE_FETCHED)
        return complain(s, step->node, "is not to be read from a file", step->rect.y0, 0);
    for (int64_t y = step->rect.y0, until; y < step->rect.y1; y = until) {
        until = step->rect.y1;
        const struct row_span *span = spans_find(&s->files, step->node, y, &until);
        if (span == NULL || step->rect.x0 < span->cols.lo || step->rect.x1 > span->cols.hi)
            return complain(s, step->node, "reads of its file what was not written", y, until);
    }
    s->spill.read += rfx_tensor_pixel_bytes(out, rfx_rect_area(step->rect));
    return true;
}

static bool apply_step(struct state *s, const struct rfx_step *step) {
    s->stage = step->stage;
    switch (step->kind) {
        case RFX_STEP_LOAD:
        case RFX_STEP_REDUCE_BEGIN:
        case RFX_STEP_REDUCE_ADD:
        case RFX_STEP_REDUCE_FINISH:
            return apply_state(s, step);
        case RFX_STEP_KEEP:
            return check_rows_there(s, step->node, step->node, step->rect) && apply_write(s, step);
        case RFX_STEP_FETCH:
            return check_fetch(s, step) && check_states_apart(s, step, written_buffer(s, step)) &&
                   apply_write(s, step);
        case RFX_STEP_SPILL:
            return apply_spill(s, step);
        case RFX_STEP_EMIT:
            s->emitted[step->node] += rfx_rect_area(step->rect);
            return check_rows_there(s, step->node, step->node, step->rect);
        case RFX_STEP_RUN:
            break;
    }
    s->macs += rfx_op_macs(s->graph, &s->graph->nodes[step->node], step->rect);
    return check_reads(s, step, false) && check_states_apart(s, step, written_buffer(s, step)) &&
           apply_write(s, step) && check_inputs_survive(s, step);
}

static bool check_end(const struct state *s) {
    const struct rfx_plan *plan = s->plan;
    for (int e = 0; e < s->graph->n_ends; e++) {
        int i = s->graph->ends[e].node;
        const struct rfx_node *node = &s->graph->nodes[i];
        if (rfx_node_is_constant(node)) continue;
        struct rfx_rect full = rfx_end_part(s->graph, &s->graph->ends[e]);
        bool kept = plan->stored[i].bytes != 0;
        if (!kept && s->emitted[i] == rfx_rect_area(full)) continue;
        if (!kept) return complain(s, i, "not stored, handed out", s->emitted[i], 0);
        if (!check_rows_there(s, i, i, full)) return false;
    }
    if (s->macs != plan->macs || s->high_water != plan->bytes.arena) {
        snprintf(s->why, s->size, "MACs %llu of %llu planned, highest byte %zu of %zu planned",
                 (unsigned long long)s->macs, (unsigned long long)plan->macs, s->high_water,
                 plan->bytes.arena);
        return false;
    }
    const struct rfx_plan_spill *planned = &plan->spill;
    if (s->spill.written != planned->written || s->spill.read != planned->read) {
        snprintf(s->why, s->size, "bytes in files: %llu written of %llu planned, %llu read of %llu",
                 (unsigned long long)s->spill.written, (unsigned long long)planned->written,
                 (unsigned long long)s->spill.read, (unsigned long long)planned->read);
        return false;
    }
    const struct rfx_plan_bytes *b = &plan->bytes;
    if (b->arena + b->weights + b->scratch + b->source + b->reserve != plan->peak_bytes) {
        snprintf(s->why, s->size, "the breakdown does not add up to %zu", plan->peak_bytes);
        return false;
    }
    return true;
}

/* Checks that every input of a computed node is computed in the same stage or read from a full map
 * (a stream would wait for any other node forever), and that weights loaded by stage have a buffer.
 */
static bool check_places(struct state *s) {
    for (s->stage = 0; s->stage < s->plan->n_stages; s->stage++) {
        const enum rfx_node_place *places = s->plan->stages[s->stage].places;
        for (int i = 0; i < s->graph->n_nodes; i++) {
            const struct rfx_node *node = &s->graph->nodes[i];
            if (!rfx_place_is_computed(places[i]) || places[i] == RFX_PLACE_FETCHED) continue;
            bool unpacked = s->plan->stages[s->stage].nodes[i].packed.bytes == 0;
            if (!s->plan->resident[i] && unpacked && rfx_op_packed_bytes(s->graph, node) != 0)
                return complain(s, i, "its constants have no buffer", 0, 0);
            for (int k = 0; k < node->n_in; k++) {
                int in = node->in[k];
                if (rfx_node_is_constant(&s->graph->nodes[in]) || rfx_place_is_computed(places[in]))
                    continue;
                bool kept =
                    s->plan->stored[in].bytes != 0 || rfx_rect_is_empty(s->graph->nodes[in].wanted);
                if (places[in] == RFX_PLACE_NONE || !kept)
                    return complain(s, i, "an input is neither made nor kept", in, 0);
            }
        }
    }
    return true;
}

bool rfx_plan_check(const struct rfx_plan *plan, char *why, size_t size) {
    struct rfx_memory *mem = plan->mem;
    size_t n = (size_t)plan->graph->n_nodes;
    struct state s = {.plan = plan,
                      .graph = plan->graph,
                      .spans.mem = mem,
                      .files.mem = mem,
                      .why = why,
                      .size = size};
    struct rfx_error err;
    bool sound = false;
    s.reduced = rfx_memory_calloc(mem, n, sizeof *s.reduced);
    s.emitted = rfx_memory_calloc(mem, n, sizeof *s.emitted);
    snprintf(why, size, "%s", RFX_PLAN_CHECK_NO_MEMORY);
    if (s.reduced == NULL || s.emitted == NULL) goto done;
    enum rfx_status status = rfx_schedule_create(plan, &s.schedule, &err);
    if (status != RFX_OK && status != RFX_STATUS_OUT_OF_MEMORY) snprintf(why, size, "%s", err.text);
    if (status != RFX_OK) goto done;
    sound = check_places(&s);
    struct rfx_step step;
    while (sound && rfx_schedule_next(s.schedule, &step))
        sound = !rfx_memory_is_stopped(mem) && apply_step(&s, &step);
    sound = sound && check_end(&s);
done:
    rfx_schedule_free(s.schedule);
    spans_free(&s.spans);
    spans_free(&s.files);
    rfx_memory_release(mem, s.reduced);
    rfx_memory_release(mem, s.emitted);
    return sound;
}
