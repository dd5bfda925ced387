/* Tiles without halos; see naive_tiles.h. A small executor of whole feature maps (struct part) runs
 * both the layers before the split (head) and those after it (tail). */
#include "tools/commands/naive_tiles.h"

#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rf_analysis/analysis.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/tiling.h"

enum { READ_ROWS = 16, CACHED_SIZES = 4 };
enum { NAIVE_TILES = 4 }; /* tiles along each axis when the plan itself has none */

/* The part of a graph between a given tensor and the wanted ones. */
struct part {
    struct rfx_memory *mem;
    const struct rfx_graph *graph;
    int given;     /* node whose values the caller sets */
    int threads;   /* number of threads that `scratch` suffices for */
    bool *needed;  /* nodes to compute; false for `given` */
    int *last_use; /* last node of the part that reads the node's value; n_nodes: the value is kept
                    */
    void **packed;
    float **values; /* owned, except of constants */
    void *scratch;
    struct rfx_view *in;
};

static void drop_value(struct part *part, int i) {
    if (!rfx_node_is_constant(&part->graph->nodes[i]))
        rfx_memory_release(part->mem, part->values[i]);
    part->values[i] = NULL;
}

static void part_release(struct part *part) {
    int n = part->graph != NULL ? part->graph->n_nodes : 0;
    for (int i = 0; i < n && part->values != NULL; ++i) drop_value(part, i);
    for (int i = 0; i < n && part->packed != NULL; ++i)
        rfx_memory_release(part->mem, part->packed[i]);
    rfx_memory_release(part->mem, part->needed);
    rfx_memory_release(part->mem, part->last_use);
    rfx_memory_release(part->mem, part->packed);
    rfx_memory_release(part->mem, part->values);
    rfx_memory_release(part->mem, part->scratch);
    rfx_memory_release(part->mem, part->in);
    *part = (struct part){0};
}

/* Marks all nodes between the given node and the wanted nodes as needed, and sets their last use.
 * The wanted nodes are already marked with last_use n_nodes. */
static void mark_needed(struct part *part) {
    const struct rfx_graph *graph = part->graph;
    part->needed[part->given] = false;
    for (int i = graph->n_nodes - 1; i >= 0; --i) {
        const struct rfx_node *node = &graph->nodes[i];
        for (int k = 0; part->needed[i] && k < node->n_in; ++k) {
            int from = node->in[k];
            part->needed[from] = from != part->given;
            if (part->last_use[from] < i) part->last_use[from] = i;
        }
    }
}

static enum rfx_status pack_needed(struct part *part, struct rfx_error *err) {
    const struct rfx_graph *graph = part->graph;
    size_t scratch = 0;
    for (int i = 0; i < graph->n_nodes; ++i) {
        const struct rfx_node *node = &graph->nodes[i];
        if (!part->needed[i]) continue;
        size_t bytes = rfx_op_packed_bytes(graph, node);
        part->packed[i] = rfx_memory_alloc(part->mem, bytes);
        if (part->packed[i] == NULL)
            return rfx_memory_fail(part->mem, "packed weights", bytes, err);
        enum rfx_status status = rfx_op_pack(graph, node, part->packed[i], err);
        if (status != RFX_OK) return status;
        size_t need = rfx_op_scratch_bytes(graph, node, part->threads);
        if (need > scratch) scratch = need;
    }
    part->scratch = rfx_memory_alloc(part->mem, scratch);
    return part->scratch != NULL ? RFX_OK : rfx_memory_fail(part->mem, "scratch", scratch, err);
}

/* Prepares the part between the node `given` and the node `target` (-1: the graph's outputs). On
 * failure frees all memory. */
static enum rfx_status part_init(struct part *part, const struct rfx_graph *graph, int given,
                                 int target, int threads, struct rfx_error *err) {
    size_t n = (size_t)graph->n_nodes, max_in = 1;
    *part = (struct part){.mem = graph->mem, .graph = graph, .given = given, .threads = threads};
    for (size_t i = 0; i < n; ++i)
        if ((size_t)graph->nodes[i].n_in > max_in) max_in = (size_t)graph->nodes[i].n_in;
    part->needed = rfx_memory_calloc(part->mem, n, sizeof *part->needed);
    part->last_use = rfx_memory_calloc(part->mem, n, sizeof *part->last_use);
    part->packed = rfx_memory_calloc(part->mem, n, sizeof *part->packed);
    part->values = rfx_memory_calloc(part->mem, n, sizeof *part->values);
    part->in = rfx_memory_calloc(part->mem, max_in, sizeof *part->in);
    enum rfx_status status = RFX_OK;
    if (part->needed == NULL || part->last_use == NULL || part->packed == NULL ||
        part->values == NULL || part->in == NULL) {
        status = rfx_memory_fail(part->mem, "naive tiles", n * sizeof *part->values, err);
    } else {
        for (int k = 0; k < (target >= 0 ? 1 : graph->n_outputs); ++k) {
            int wanted = target >= 0 ? target : graph->outputs[k].node;
            part->needed[wanted] = true;
            part->last_use[wanted] = graph->n_nodes;
        }
        mark_needed(part);
        status = pack_needed(part, err);
    }
    if (status != RFX_OK) part_release(part);
    return status;
}

static enum rfx_status alloc_value(struct part *part, int i, struct rfx_error *err) {
    size_t bytes = rfx_node_out_bytes(&part->graph->nodes[i]);
    part->values[i] = rfx_memory_alloc(part->mem, bytes);
    return part->values[i] != NULL
               ? RFX_OK
               : rfx_memory_fail(part->mem, part->graph->nodes[i].name, bytes, err);
}

static struct rfx_view value_view(const struct part *part, int i) {
    const struct rfx_node *node = &part->graph->nodes[i];
    return rfx_view_of(&node->out, part->values[i], rfx_node_full_rect(node));
}

static enum rfx_status run_node(struct part *part, struct rfx_team *team, int i,
                                struct rfx_error *err) {
    const struct rfx_node *node = &part->graph->nodes[i];
    if (rfx_node_is_constant(node)) {
        part->values[i] = part->packed[i];
        return RFX_OK;
    }
    enum rfx_status status = alloc_value(part, i, err);
    if (status != RFX_OK) return status;
    for (int k = 0; k < node->n_in; ++k) part->in[k] = value_view(part, node->in[k]);
    struct rfx_run_args args = {.graph = part->graph,
                                .node = node,
                                .in = part->in,
                                .out = value_view(part, i),
                                .rect = rfx_node_full_rect(node),
                                .packed = part->packed[i],
                                .scratch = part->scratch,
                                .threads = rfx_team_threads(team),
                                .team = team};
    rfx_op_def(node->op)->run(&args);
    for (int k = 0; k < node->n_in; ++k)
        if (part->last_use[node->in[k]] == i && part->values[node->in[k]] != NULL)
            drop_value(part, node->in[k]);
    return RFX_OK;
}

struct part_steps {
    struct part *part;
    struct rfx_error *err;
    enum rfx_status status;
};

static void run_nodes(struct rfx_team *team, void *user) {
    struct part_steps *steps = user;
    struct part *part = steps->part;
    for (int i = 0; i < part->graph->n_nodes && steps->status == RFX_OK; ++i)
        if (part->needed[i]) steps->status = run_node(part, team, i, steps->err);
}

/* Runs the part. The caller has set values[given]. The wanted values stay until drop_value. */
static enum rfx_status part_run(struct part *part, struct rfx_error *err) {
    struct part_steps steps = {part, err, RFX_OK};
    rfx_team_run(part->threads, run_nodes, &steps);
    return steps.status;
}

/* The layers up to the split, loaded for one size of tile. */
struct head {
    int64_t h, w; /* size of the tile; 0, 0: this entry is unused */
    struct rfx_graph *graph;
    int split;
    struct part part;
};

struct naive_run {
    const struct rfx_plan *plan;
    const char *model;
    const struct rfx_load_options *load;
    struct rfx_image *image;
    struct rfx_naive_tiles *naive;
    struct rfx_ratio jump[2];
    int64_t tiles[2];
    struct head heads[CACHED_SIZES];
    int next_head;
    struct part tail;
};

/* Returns the plan's graph without groups: every layer is a separate node. */
static const struct rfx_graph *layers_of(const struct rfx_plan *plan) {
    return plan->graph->base != NULL ? plan->graph->base : plan->graph;
}

static void head_release(struct head *head) {
    part_release(&head->part);
    rfx_graph_free(head->graph);
    *head = (struct head){0};
}

static enum rfx_status get_head(struct naive_run *run, int64_t h, int64_t w, struct head **out,
                                struct rfx_error *err) {
    for (int i = 0; i < CACHED_SIZES; ++i) {
        *out = &run->heads[i];
        if ((*out)->h == h && (*out)->w == w) return RFX_OK;
    }
    struct head *head = &run->heads[run->next_head];
    run->next_head = (run->next_head + 1) % CACHED_SIZES;
    head_release(head);
    const struct rfx_graph *whole = layers_of(run->plan);
    struct rfx_load_options load = *run->load;
    load.h = h;
    load.w = w;
    enum rfx_status status = rfx_model_load(whole->mem, run->model, &load, &head->graph, err);
    if (status != RFX_OK) goto fail;
    const struct rfx_tensor *input = &head->graph->nodes[head->graph->input].out;
    head->split = rfx_graph_find(head->graph, whole->nodes[run->plan->split].name);
    if (input->h != h || input->w != w || head->split < 0 ||
        head->graph->nodes[head->split].out.c != whole->nodes[run->plan->split].out.c) {
        status = rfx_fail(err, RFX_STATUS_UNSUPPORTED, "the model is another one at this size");
        goto fail;
    }
    status = part_init(&head->part, head->graph, head->graph->input, head->split,
                       run->plan->threads, err);
    if (status != RFX_OK) goto fail;
    head->h = h;
    head->w = w;
    *out = head;
    return RFX_OK;
fail:
    head_release(head);
    return rfx_fail_within(err, status, "tile of %lldx%lld", (long long)h, (long long)w);
}

/* Returns the image rows or columns of tile t: its range of the map at the split times the jump.
 * The last tile extends to the end of the image. */
static struct rfx_range image_range(const struct naive_run *run, enum rfx_axis axis,
                                    struct rfx_range part, int64_t t) {
    const struct rfx_graph *graph = layers_of(run->plan);
    int64_t extent = rfx_node_extent(&graph->nodes[graph->input], axis);
    struct rfx_ratio jump = run->jump[axis];
    struct rfx_range r = {part.lo * jump.num / jump.den, part.hi * jump.num / jump.den};
    r.lo = rfx_min_i64(r.lo, extent);
    r.hi = t + 1 == run->tiles[axis] ? extent : rfx_min_i64(r.hi, extent);
    return r;
}

static enum rfx_status read_tile(struct naive_run *run, struct rfx_rect rect, struct head *head,
                                 struct rfx_error *err) {
    int input = head->graph->input;
    enum rfx_status status = alloc_value(&head->part, input, err);
    if (status != RFX_OK) return status;
    struct rfx_view view =
        rfx_view_of(&head->graph->nodes[input].out, head->part.values[input], rect);
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y += READ_ROWS) {
        struct rfx_rect band = rect;
        band.y0 = y;
        band.y1 = rfx_min_i64(y + READ_ROWS, rect.y1);
        status = rfx_image_read(run->image, band, &view, err);
    }
    return status;
}

/* Copies the tile's map to its place in the joined map. Copies only rows and columns that exist in
 * both. */
static void stitch(struct naive_run *run, struct head *head, struct rfx_rect place) {
    const struct rfx_tensor *map = &layers_of(run->plan)->nodes[run->plan->split].out;
    const struct rfx_tensor *tile = &head->graph->nodes[head->split].out;
    const float *from = head->part.values[head->split];
    float *to = run->tail.values[run->plan->split];
    int64_t rows = rfx_min_i64(tile->h, rfx_rect_rows(place));
    int64_t cols = rfx_min_i64(tile->w, rfx_rect_cols(place));
    for (int64_t y = 0; y < rows; ++y)
        memcpy(to + ((place.y0 + y) * map->w + place.x0) * map->c, from + y * tile->w * tile->c,
               (size_t)(cols * map->c) * sizeof *to);
    run->naive->tiles++;
    run->naive->resized_tiles += tile->h != rfx_rect_rows(place) || tile->w != rfx_rect_cols(place);
}

static enum rfx_status run_tile(struct naive_run *run, int64_t ty, int64_t tx,
                                struct rfx_error *err) {
    const struct rfx_tensor *map = &layers_of(run->plan)->nodes[run->plan->split].out;
    struct rfx_range rows = rfx_tile_range(map->h, run->tiles[0], ty);
    struct rfx_range cols = rfx_tile_range(map->w, run->tiles[1], tx);
    struct rfx_rect cut = rfx_rect_from_ranges(image_range(run, RFX_AXIS_ROWS, rows, ty),
                                               image_range(run, RFX_AXIS_COLS, cols, tx));
    if (rfx_rect_is_empty(cut)) return RFX_OK;
    struct head *head;
    enum rfx_status status = get_head(run, rfx_rect_rows(cut), rfx_rect_cols(cut), &head, err);
    if (status == RFX_OK) status = read_tile(run, cut, head, err);
    if (status == RFX_OK) status = part_run(&head->part, err);
    if (status != RFX_OK) return status;
    stitch(run, head, rfx_rect_from_ranges(rows, cols));
    drop_value(&head->part, head->split);
    if (head->part.values[head->graph->input] != NULL) drop_value(&head->part, head->graph->input);
    return RFX_OK;
}

static enum rfx_status run_heads(struct naive_run *run, struct rfx_error *err) {
    int split = run->plan->split;
    enum rfx_status status = alloc_value(&run->tail, split, err);
    if (status != RFX_OK) return status;
    memset(run->tail.values[split], 0, rfx_node_out_bytes(&layers_of(run->plan)->nodes[split]));
    const struct rfx_tensor *map = &layers_of(run->plan)->nodes[split].out;
    int64_t window = READ_ROWS;
    for (int64_t ty = 0; ty < run->tiles[0]; ++ty) {
        struct rfx_range rows =
            image_range(run, RFX_AXIS_ROWS, rfx_tile_range(map->h, run->tiles[0], ty), ty);
        window = rfx_max_i64(window, rows.hi - rows.lo + READ_ROWS);
    }
    status = rfx_image_set_window(run->image, window, err);
    if (status == RFX_OK) status = rfx_image_rewind(run->image, err);
    for (int64_t ty = 0; ty < run->tiles[0] && status == RFX_OK; ++ty)
        for (int64_t tx = 0; tx < run->tiles[1] && status == RFX_OK; ++tx)
            status = run_tile(run, ty, tx, err);
    for (int i = 0; i < CACHED_SIZES; ++i) head_release(&run->heads[i]);
    return status;
}

/* Copies output k to its result array in the declared order: [h, w, c] mostly becomes [c, h, w]. */
static enum rfx_status keep_output(struct naive_run *run, int k, struct rfx_error *err) {
    int i = layers_of(run->plan)->outputs[k].node;
    const struct rfx_tensor *t = &layers_of(run->plan)->nodes[i].out;
    const float *from = run->tail.values[i];
    size_t bytes = (size_t)t->elems * sizeof *from;
    float *to = rfx_memory_alloc(run->naive->mem, bytes);
    if (to == NULL) return rfx_memory_fail(run->naive->mem, "naive output", bytes, err);
    int64_t plane = t->h * t->w; /* 1 for the layout PLAIN, whose order does not change */
    bool last = layers_of(run->plan)->outputs[k].stored.last;
    for (int64_t p = 0; p < plane; ++p)
        for (int64_t c = 0; c < t->c; ++c)
            to[last ? p * t->c + c : c * plane + p] = from[p * t->c + c];
    run->naive->outputs[k] = to;
    return RFX_OK;
}

static enum rfx_status find_jumps(struct naive_run *run, struct rfx_error *err) {
    struct rfx_analysis *analysis = NULL;
    enum rfx_status status = rfx_analysis_create(layers_of(run->plan), &analysis, err);
    if (status != RFX_OK) return status;
    for (int axis = 0; axis < 2; ++axis)
        run->jump[axis] = analysis->layers[run->plan->split].field[axis].jump;
    rfx_analysis_free(analysis);
    return RFX_OK;
}

static enum rfx_status naive_create(const struct rfx_graph *graph, struct rfx_naive_tiles **out,
                                    struct rfx_error *err) {
    struct rfx_naive_tiles *naive = rfx_memory_calloc(graph->mem, 1, sizeof *naive);
    float **outputs = rfx_memory_calloc(graph->mem, (size_t)graph->n_outputs, sizeof *outputs);
    if (naive == NULL || outputs == NULL) {
        rfx_memory_release(graph->mem, naive);
        rfx_memory_release(graph->mem, outputs);
        return rfx_memory_fail(graph->mem, "naive tiles", sizeof *naive, err);
    }
    *naive = (struct rfx_naive_tiles){
        .mem = graph->mem, .n_outputs = graph->n_outputs, .outputs = outputs};
    *out = naive;
    return RFX_OK;
}

enum rfx_status rfx_naive_tiles_run(const struct rfx_plan *plan, const char *model,
                                    const struct rfx_load_options *load, struct rfx_image *image,
                                    struct rfx_naive_tiles **out, struct rfx_error *err) {
    struct naive_run run = {.plan = plan, .model = model, .load = load, .image = image};
    const struct rfx_graph *graph = layers_of(plan);
    if (plan->split < 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "the plan is untiled: no seams to show");
    const struct rfx_stage_spec *head = &plan->stages[0].spec;
    bool grid = (head->mode->knows & RFX_KNOWS_TILES_Y) != 0;
    run.tiles[0] = grid ? head->tiles_y : NAIVE_TILES;
    run.tiles[1] = grid ? head->tiles_x : NAIVE_TILES;
    enum rfx_status status = naive_create(graph, &run.naive, err);
    if (status != RFX_OK) return status;
    status = find_jumps(&run, err);
    if (status == RFX_OK) status = part_init(&run.tail, graph, plan->split, -1, plan->threads, err);
    if (status == RFX_OK) status = run_heads(&run, err);
    if (status == RFX_OK) status = part_run(&run.tail, err);
    for (int k = 0; k < graph->n_outputs && status == RFX_OK; ++k)
        status = keep_output(&run, k, err);
    for (int i = 0; i < CACHED_SIZES; ++i) head_release(&run.heads[i]);
    part_release(&run.tail);
    if (status != RFX_OK) {
        rfx_naive_tiles_free(run.naive);
        return status;
    }
    *out = run.naive;
    return RFX_OK;
}

void rfx_naive_tiles_free(struct rfx_naive_tiles *naive) {
    if (naive == NULL) return;
    struct rfx_memory *mem = naive->mem;
    for (int k = 0; k < naive->n_outputs; ++k) rfx_memory_release(mem, naive->outputs[k]);
    rfx_memory_release(mem, naive->outputs);
    rfx_memory_release(mem, naive);
}
