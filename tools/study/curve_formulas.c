/* Translates a graph into the blocks of the equations.
 *
 * The equations describe modules of one convolution each, so this file checks operators by name and
 * rejects everything that they do not describe. */
#include "tools/study/curve_formulas.h"

#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "rf_analysis/regions.h"

/* Returns whether a node is a module of the equations. */
static bool is_module(const struct rfx_node *node) {
    return node->op == RFX_OP_CONV;
}

/* Returns whether a node may stand between the modules of a run. */
static bool is_passed_through(const struct rfx_node *node) {
    return node->n_in == 1 && (is_module(node) || node->op == RFX_OP_AFFINE ||
                               node->op == RFX_OP_ACTIVATION || node->op == RFX_OP_PAD);
}

/* Returns whether `node` is `at`, or lies before `at` with only nodes between them that
 * is_passed_through accepts. */
static bool is_behind(const struct rfx_graph *graph, int node, int at) {
    while (at > node && is_passed_through(&graph->nodes[at])) at = graph->nodes[at].in[0];
    return at == node;
}

/* Lists the modules from `end` backwards to the node at which the path meets `shortcut`, without
 * that node. run[]: the modules, the last one first. end_joins: `end` is the convolution that adds
 * the shortcut. Returns the number of modules; 0: there is no module or no such path. */
static int find_run(const struct rfx_graph *graph, int end, bool end_joins, int shortcut,
                    int *run) {
    int n = 0;
    for (int at = end; at >= 0;) {
        const struct rfx_node *node = &graph->nodes[at];
        bool first = at == end && end_joins;
        if (!first && is_behind(graph, at, shortcut)) return n;
        if (!first && !is_passed_through(node)) return 0;
        if (is_module(node)) run[n++] = at;
        at = node->in[0];
    }
    return 0;
}

/* Lists the modules whose result node i adds to their input. Returns their number; 0: node i does
 * not end a residual block. */
static int find_residual(const struct rfx_graph *graph, int i, int *run) {
    const struct rfx_node *node = &graph->nodes[i];
    if (node->op == RFX_OP_CONV && node->residual)
        return find_run(graph, i, true, node->in[1], run);
    if (node->op != RFX_OP_BINARY || node->attr.binary.kind != RFX_BINARY_ADD) return 0;
    int n = find_run(graph, node->in[0], false, node->in[1], run);
    int other = find_run(graph, node->in[1], false, node->in[0], run + n);
    if (other <= n) return n;
    for (int k = 0; k < other; k++) run[k] = run[n + k];
    return other;
}

/* Assigns the modules of a run to a block. Returns false when there are none, or one of them
 * belongs to a block already. */
static bool claim(struct rfx_curve_formulas *f, const int *run, int n, int block) {
    for (int k = 0; k < n; k++)
        if (f->block_of[run[k]] >= 0) return false;
    for (int k = 0; k < n; k++) f->block_of[run[k]] = block;
    return n > 0;
}

/* Returns whether the equations describe a node. Adds are checked by find_residual. */
static bool is_expressible(const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    if (node->op == RFX_OP_CONV_TRANSPOSE || node->op == RFX_OP_MATMUL) return false;
    return !is_module(node) || a->kh == a->kw;
}

/* Finds the residual blocks, then makes a block of each remaining module. block_of[i]: the node
 * that ends the block of node i, which is the Add of a residual block. run: scratch. Returns false
 * when the equations do not describe the graph. */
static bool find_blocks(struct rfx_curve_formulas *f, int *run) {
    const struct rfx_graph *graph = f->curve->graph;
    for (int i = 0; i < graph->n_nodes; i++) f->block_of[i] = -1;
    for (int i = 0; i < graph->n_nodes; i++) {
        if (!is_expressible(&graph->nodes[i])) return false;
        if (graph->nodes[i].n_in < 2) continue;
        int n = find_residual(graph, i, run);
        if (!claim(f, run, n, i)) return false;
        if (n > 1) f->residual = true;
    }
    for (int i = 0; i < graph->n_nodes; i++)
        if (is_module(&graph->nodes[i]) && f->block_of[i] < 0) f->block_of[i] = i;
    return true;
}

static struct rfx_formula_map map_of(const struct rfx_node *node) {
    return (struct rfx_formula_map){node->out.h, node->out.w, node->out.c};
}

/* Lists the blocks in the order in which they finish, with their modules and whole maps. */
static void list_blocks(struct rfx_curve_formulas *f) {
    const struct rfx_graph *graph = f->curve->graph;
    int n_maps = 0;
    for (int b = 0; b < graph->n_nodes; b++) {
        struct rfx_formula_block *block = &f->blocks[f->whole.n];
        *block = (struct rfx_formula_block){0, &f->maps[n_maps], &f->kernels[f->n_modules],
                                            &f->groups[f->n_modules]};
        for (int i = 0; i <= b; i++) {
            const struct rfx_node *node = &graph->nodes[i];
            if (f->block_of[i] != b) continue;
            if (block->m == 0) f->maps[n_maps++] = map_of(&graph->nodes[node->in[0]]);
            f->maps[n_maps++] = map_of(node);
            f->kernels[f->n_modules] = node->attr.conv.kh;
            f->groups[f->n_modules] = node->attr.conv.groups;
            f->module[f->n_modules++] = i;
            block->m++;
        }
        if (block->m > 0) f->last[f->whole.n++] = b;
    }
}

/* Fills the tables of the tile: the blocks of the whole maps, with an array for the sizes of the
 * tile's own maps. */
static void copy_blocks(struct rfx_curve_formulas *f) {
    struct rfx_formula_block *blocks = f->blocks + f->curve->graph->n_nodes;
    struct rfx_formula_map *maps = f->maps + 2 * f->curve->graph->n_nodes;
    f->tile = f->whole;
    f->whole.blocks = f->blocks;
    f->tile.blocks = blocks;
    for (int b = 0; b < f->whole.n; b++) {
        blocks[b] = f->blocks[b];
        blocks[b].maps = maps + (f->blocks[b].maps - f->maps);
    }
}

enum rfx_status rfx_curve_formulas_create(const struct rfx_curve *curve,
                                          struct rfx_curve_formulas **out, struct rfx_error *err) {
    struct rfx_memory *mem = curve->mem;
    size_t n = (size_t)curve->graph->n_nodes;
    struct rfx_curve_formulas *f = rfx_memory_calloc(mem, 1, sizeof *f);
    if (f == NULL) return rfx_memory_fail(mem, "formulas", sizeof *f, err);
    f->mem = mem;
    f->curve = curve;
    f->last = rfx_memory_calloc(mem, n, sizeof *f->last);
    f->module = rfx_memory_calloc(mem, 2 * n,
                                  sizeof *f->module); /* find_residual lists up to two runs here */
    f->block_of = rfx_memory_calloc(mem, n, sizeof *f->block_of);
    f->kernels = rfx_memory_calloc(mem, n, sizeof *f->kernels);
    f->groups = rfx_memory_calloc(mem, n, sizeof *f->groups);
    f->blocks = rfx_memory_calloc(mem, 2 * n, sizeof *f->blocks);
    f->maps = rfx_memory_calloc(mem, 4 * n, sizeof *f->maps);
    f->need = rfx_memory_calloc(mem, 2 * n, sizeof *f->need);
    if (f->last == NULL || f->module == NULL || f->block_of == NULL || f->kernels == NULL ||
        f->groups == NULL || f->blocks == NULL || f->maps == NULL || f->need == NULL) {
        rfx_curve_formulas_free(f);
        return rfx_memory_fail(mem, "formulas", 4 * n * sizeof *f->maps, err);
    }
    f->whole.params = curve->weights_bytes / rfx_floats_bytes(1);
    f->fit = find_blocks(f, f->module);
    if (f->fit) list_blocks(f);
    f->fit = f->fit && f->whole.n > 0;
    copy_blocks(f);
    *out = f;
    return RFX_OK;
}

void rfx_curve_formulas_free(struct rfx_curve_formulas *formulas) {
    if (formulas == NULL) return;
    void *const blocks[] = {formulas->last,    formulas->module, formulas->block_of,
                            formulas->kernels, formulas->groups, formulas->blocks,
                            formulas->maps,    formulas->need};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(formulas->mem, blocks[i]);
    rfx_memory_release(formulas->mem, formulas);
}

/* Computes need[i]: the range of node i along one axis that the largest of n tiles of the split
 * needs if maps had no border. */
static void find_needs(const struct rfx_graph *graph, int split, enum rfx_axis axis, int64_t n,
                       struct rfx_range *need) {
    int64_t extent = rfx_node_extent(&graph->nodes[split], axis);
    for (int i = 0; i < split; i++) need[i] = (struct rfx_range){0, 0};
    need[split] = (struct rfx_range){0, rfx_ceil_div(extent, n)};
    for (int i = split; i > 0; i--) {
        const struct rfx_node *node = &graph->nodes[i];
        if (need[i].lo >= need[i].hi) continue;
        for (int k = 0; k < node->n_in; k++) {
            struct rfx_range more = rfx_input_range(graph, node, k, axis, need[i]);
            struct rfx_range *in = &need[node->in[k]];
            bool first = in->lo >= in->hi;
            in->lo = first ? more.lo : rfx_min_i64(in->lo, more.lo);
            in->hi = first ? more.hi : rfx_max_i64(in->hi, more.hi);
        }
    }
}

/* Writes the sizes of the tile's maps in the first l blocks. */
static void fill_tile(struct rfx_curve_formulas *f, int l, const struct rfx_curve_point *point) {
    const struct rfx_graph *graph = f->curve->graph;
    const struct rfx_range *rows = f->need;
    const struct rfx_range *cols = f->need + graph->n_nodes;
    find_needs(graph, point->split, RFX_AXIS_ROWS, point->tiles_y, f->need);
    find_needs(graph, point->split, RFX_AXIS_COLS, point->tiles_x, f->need + graph->n_nodes);
    struct rfx_formula_map *map = f->maps + 2 * graph->n_nodes;
    const int *module = f->module;
    for (int b = 0; b < l; b++) {
        for (int j = 0; j <= f->tile.blocks[b].m; j++, map++) {
            int i = j == 0 ? graph->nodes[module[0]].in[0] : *module++;
            *map = (struct rfx_formula_map){rows[i].hi - rows[i].lo, cols[i].hi - cols[i].lo,
                                            graph->nodes[i].out.c};
        }
    }
}

/* Evaluates equation 1 or 3 and converts the result to bytes. Returns false on overflow. */
static bool peak_bytes(const struct rfx_curve_formulas *f, const struct rfx_formula_net *net,
                       size_t *bytes) {
    uint64_t elems;
    bool good = f->residual ? rfx_formula_peak_residual(net, &elems)
                            : rfx_formula_peak_sequential(net, &elems);
    return good && rfx_checked_mul_size((size_t)elems, rfx_floats_bytes(1), bytes);
}

bool rfx_curve_formulas_point(struct rfx_curve_formulas *formulas,
                              const struct rfx_curve_point *point,
                              struct rfx_curve_figures *figures) {
    struct rfx_curve_formulas *f = formulas;
    struct rfx_curve_figures made = {0};
    int l = 0;
    if (!f->fit) return false;
    while (l < f->whole.n && f->last[l] <= point->split) l++;
    if (l > 0) fill_tile(f, l, point);
    struct rfx_formula_net head = {l, f->tile.blocks, f->whole.params};
    struct rfx_formula_net tail = {f->whole.n - l, f->whole.blocks + l, f->whole.params};
    uint64_t tiles = (uint64_t)point->tiles_y * (uint64_t)point->tiles_x;
    if (!rfx_formula_macs(&f->whole, &head, l, tiles, &made.macs) ||
        !rfx_formula_macs(&f->whole, &head, 0, 1, &made.macs_untiled) ||
        !peak_bytes(f, &head, &made.head_bytes) || !peak_bytes(f, &tail, &made.tail_bytes))
        return false;
    made.peak_bytes = made.head_bytes > made.tail_bytes ? made.head_bytes : made.tail_bytes;
    *figures = made;
    return true;
}
