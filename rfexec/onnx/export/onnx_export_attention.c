/* The ONNX form of attention in windows: the cyclic one of the papers, for maps of one size. The
 * map is rolled, cut into windows that wrap, and what is no neighbour is masked, rows and columns
 * apart: a mask of all windows would be larger than the map. */
#include <string.h>

#include "rfexec/onnx/export/onnx_export.h"

typedef struct rfx_onnx_node onnx_node;

/* A node on its way: sizes, and the names of what it makes begin with its own. */
struct windows {
    struct rfx_exporter *x;
    const struct rfx_node *node;
    const struct rfx_window_attention_attr *attr;
    int64_t down, across; /* windows */
    int64_t pixels, size; /* of a window; channels of a head */
};

static const char *text(const struct windows *w, const char *part) {
    return rfx_onnx_text(&w->x->writer, "%s#%s", w->node->name, part);
}

static const char *emit(const struct windows *w, const char *op, const char *part, const char *a,
                        const char *b) {
    const char *name = text(w, part);
    (void)rfx_export_emit2(w->x, op, name, name, a, b);
    return name;
}

static const char *transpose(const struct windows *w, const char *part, const char *in,
                             const int64_t *perm, int rank) {
    const char *name = text(w, part);
    rfx_onnx_ints(rfx_export_emit1(w->x, "Transpose", name, name, in), "perm", perm, rank);
    return name;
}

/* Makes `output`, or NULL: a tensor called by the part. */
static const char *reshape(const struct windows *w, const char *part, const char *in,
                           const int64_t *dims, int rank, const char *output) {
    struct rfx_onnx_writer *writer = &w->x->writer;
    const char *shape = rfx_onnx_int64(
        writer, rfx_onnx_text(writer, "%s#%s.shape", w->node->name, part), dims, rank);
    const char *name = text(w, part);
    if (output == NULL) output = name;
    (void)rfx_export_emit2(w->x, "Reshape", output == name ? name : w->node->name, output, in,
                           shape);
    return output;
}

/* Positions [lo, hi) of an axis. */
static const char *slice(const struct windows *w, const char *part, const char *in, int64_t axis,
                         int64_t lo, int64_t hi) {
    struct rfx_onnx_writer *writer = &w->x->writer;
    const char *name = text(w, part);
    const char *inputs[4] = {
        in, rfx_onnx_int64(writer, rfx_onnx_text(writer, "%s.from", name), &lo, 1),
        rfx_onnx_int64(writer, rfx_onnx_text(writer, "%s.to", name), &hi, 1),
        rfx_onnx_int64(writer, rfx_onnx_text(writer, "%s.axis", name), &axis, 1)};
    (void)rfx_onnx_node(writer, "Slice", name, name, inputs, 4);
    return name;
}

/* Position i of the result, which is called `output` or by the part, is position i + shift, around.
 */
static const char *roll(const struct windows *w, const char *part, const char *in, int64_t axis,
                        int64_t shift, int64_t extent, const char *output) {
    struct rfx_onnx_writer *writer = &w->x->writer;
    if (shift == 0) return in;
    const char *name = text(w, part);
    const char *both[2] = {
        slice(w, rfx_onnx_text(writer, "%s.first", part), in, axis, shift, extent),
        slice(w, rfx_onnx_text(writer, "%s.rest", part), in, axis, 0, shift)};
    onnx_node *concat =
        rfx_onnx_node(writer, "Concat", name, output == NULL ? name : output, both, 2);
    rfx_onnx_int(concat, "axis", axis);
    return output == NULL ? name : output;
}

/* Channels [first, first + c) as (down, across, heads, pixels, size), or with the last two turned.
 */
static const char *part_of(const struct windows *w, const char *part, const char *map,
                           int64_t first, bool turned) {
    static const int64_t straight[6] = {2, 4, 0, 3, 5, 1}, keys[6] = {2, 4, 0, 1, 3, 5};
    const struct rfx_window_attention_attr *a = w->attr;
    struct rfx_onnx_writer *writer = &w->x->writer;
    const int64_t apart[6] = {a->heads, w->size, w->down, a->h, w->across, a->w};
    const int64_t joined[5] = {w->down, w->across, a->heads, turned ? w->size : w->pixels,
                               turned ? w->pixels : w->size};
    const char *in =
        slice(w, rfx_onnx_text(writer, "%s.channels", part), map, 1, first, first + w->node->out.c);
    in = reshape(w, rfx_onnx_text(writer, "%s.apart", part), in, apart, 6, NULL);
    in = transpose(w, rfx_onnx_text(writer, "%s.windows", part), in, turned ? keys : straight, 6);
    return reshape(w, part, in, joined, 5, NULL);
}

/* A table's biases as (heads, pixels, pixels), picked as the papers' code does. */
static const char *table_bias(const struct windows *w) {
    static const int64_t turn[2] = {1, 0};
    const struct rfx_window_attention_attr *a = w->attr;
    struct rfx_onnx_writer *writer = &w->x->writer;
    int64_t n = w->pixels, rows = (2 * a->h - 1) * (2 * a->w - 1);
    int64_t *index = rfx_memory_calloc(w->x->graph->mem, (size_t)(n * n), sizeof *index);
    const int64_t full[3] = {a->heads, n, n};
    if (index == NULL) {
        rfx_export_refuse(w->x, w->node, "out of memory");
        return "";
    }
    for (int64_t i = 0; i < n * n; i++) {
        int64_t below = i / n / a->w - i % n / a->w, right = i / n % a->w - i % n % a->w;
        index[i] = (below + a->h - 1) * (2 * a->w - 1) + right + a->w - 1;
    }
    const char *picks = rfx_onnx_int64(
        writer, rfx_onnx_text(writer, "places#%lldx%lld", (long long)a->h, (long long)a->w), index,
        n * n);
    rfx_memory_release(w->x->graph->mem, index);
    const char *table = rfx_onnx_weight(writer, text(w, "bias.table"), a->bias,
                                        (struct rfx_shape){2, {rows, a->heads}});
    const char *picked = emit(w, "Gather", "bias.picked", table, picks);
    return reshape(w, "bias", transpose(w, "bias.turned", picked, turn, 2), full, 3, NULL);
}

static const char *add_bias(const struct windows *w, const char *scores) {
    const struct rfx_window_attention_attr *a = w->attr;
    if (a->bias < 0) return scores;
    struct rfx_shape full = {3, {a->heads, w->pixels, w->pixels}};
    const char *bias = a->by_table ? table_bias(w)
                                   : rfx_onnx_weight(&w->x->writer, text(w, "bias"), a->bias, full);
    return emit(w, "Add", "biased", scores, bias);
}

static bool is_written(const struct rfx_onnx_writer *writer, const char *value) {
    for (int i = writer->n_nodes - 1; i >= 0; i--)
        if (strcmp(writer->nodes[i]->output, value) == 0) return true;
    return false;
}

/* For each pixel of a window, in each window of an axis: 1 where it is of the map's other end. */
static const char *ends_of(const struct windows *w, bool rows, const char *name) {
    const struct rfx_window_attention_attr *a = w->attr;
    int64_t windows = rows ? w->down : w->across, n = w->pixels;
    int64_t *end = rfx_memory_calloc(w->x->graph->mem, (size_t)(windows * n), sizeof *end);
    if (end == NULL) {
        rfx_export_refuse(w->x, w->node, "out of memory");
        return "";
    }
    for (int64_t i = 0; i < n; i++)
        end[(windows - 1) * n + i] =
            rows ? i / a->w >= a->h - a->shift_h : i % a->w >= a->w - a->shift_w;
    (void)rfx_onnx_int64(&w->x->writer, name, end, windows * n);
    rfx_memory_release(w->x->graph->mem, end);
    return name;
}

/* A value of this name: `in` with another shape. */
static const char *shaped(const struct windows *w, const char *name, const char *in,
                          const int64_t *dims, int rank) {
    struct rfx_onnx_writer *writer = &w->x->writer;
    const char *shape = rfx_onnx_int64(writer, rfx_onnx_text(writer, "%s.shape", name), dims, rank);
    (void)rfx_export_emit2(w->x, "Reshape", name, name, in, shape);
    return name;
}

/* -100 between the first and the last rows (or columns) of the last windows of an axis, which are
 * of both ends of the map. All nodes with the same windows share it. */
static const char *mask_of(const struct windows *w, bool rows) {
    const struct rfx_window_attention_attr *a = w->attr;
    struct rfx_onnx_writer *writer = &w->x->writer;
    int64_t windows = rows ? w->down : w->across;
    const int64_t from[5] = {rows ? windows : 1, rows ? 1 : windows, 1, w->pixels, 1};
    const int64_t to[5] = {from[0], from[1], 1, 1, w->pixels};
    const char *mask = rfx_onnx_text(
        writer, "%s#mask.%lldx%lld.%lld.%lld", rows ? "rows" : "columns", (long long)a->h,
        (long long)a->w, (long long)(rows ? a->shift_h : a->shift_w), (long long)windows);
    if (is_written(writer, mask)) return mask;
    const char *ends = ends_of(w, rows, rfx_onnx_text(writer, "%s.ends", mask));
    const char *same = rfx_onnx_text(writer, "%s.same", mask);
    (void)rfx_export_emit2(w->x, "Equal", same, same,
                           shaped(w, rfx_onnx_text(writer, "%s.queries", mask), ends, from, 5),
                           shaped(w, rfx_onnx_text(writer, "%s.keys", mask), ends, to, 5));
    const char *choice[3] = {same, rfx_export_scalar(w->x, mask, "none", 0.0f),
                             rfx_export_scalar(w->x, mask, "least", -100.0f)};
    (void)rfx_onnx_node(writer, "Where", mask, mask, choice, 3);
    return mask;
}

static const char *add_masks(const struct windows *w, const char *scores) {
    if (w->attr->shift_h != 0) scores = emit(w, "Add", "masked.rows", scores, mask_of(w, true));
    if (w->attr->shift_w == 0) return scores;
    return emit(w, "Add", "masked.columns", scores, mask_of(w, false));
}

/* (down, across, heads, pixels, size) as a map again. */
static void as_map(const struct windows *w, const char *in, const char *output) {
    static const int64_t perm[6] = {2, 5, 0, 3, 1, 4};
    const struct rfx_window_attention_attr *a = w->attr;
    const struct rfx_tensor *out = &w->node->out;
    const int64_t apart[6] = {w->down, w->across, a->heads, a->h, a->w, w->size};
    const int64_t map[4] = {1, out->c, out->h, out->w};
    bool rolled = a->shift_h != 0 || a->shift_w != 0;
    in = reshape(w, "out.apart", in, apart, 6, NULL);
    in = transpose(w, "out.turned", in, perm, 6);
    in = reshape(w, "out.map", in, map, 4, rolled ? NULL : output);
    if (!rolled) return;
    if (a->shift_h != 0)
        in = roll(w, "out.down", in, 2, out->h - a->shift_h, out->h,
                  a->shift_w == 0 ? output : NULL);
    if (a->shift_w != 0) (void)roll(w, "out.across", in, 3, out->w - a->shift_w, out->w, output);
}

void rfx_export_window_attention(struct rfx_exporter *x, const struct rfx_node *node,
                                 const char *output) {
    const struct rfx_window_attention_attr *a = &node->attr.window_attention;
    const struct rfx_tensor *map = &node->out;
    const struct windows w = {
        x, node, a, map->h / a->h, map->w / a->w, a->h * a->w, map->c / a->heads};
    const char *in = roll(&w, "down", rfx_export_in(x, node, 0), 2, a->shift_h, map->h, NULL);
    in = roll(&w, "across", in, 3, a->shift_w, map->w, NULL);
    const char *queries = part_of(&w, "queries", in, 0, false);
    const char *keys = part_of(&w, "keys", in, map->c, true);
    const char *values = part_of(&w, "values", in, 2 * map->c, false);
    queries =
        emit(&w, "Mul", "scaled", queries, rfx_export_scalar(x, node->name, "scale", a->scale));
    const char *scores = add_bias(&w, emit(&w, "MatMul", "scores", queries, keys));
    scores = add_masks(&w, scores);
    const char *weights = text(&w, "softmax");
    rfx_onnx_int(rfx_export_emit1(x, "Softmax", weights, weights, scores), "axis", -1);
    as_map(&w, emit(&w, "MatMul", "mixed", weights, values), output);
}
