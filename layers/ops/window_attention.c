/* WINDOW_ATTENTION: softmax(q k' + bias) v among the pixels of a window, for each head (Swin
 * transformers, Liu et al. 2021).
 *
 * Windows lie on a grid that is displaced by the shift, and the map's borders cut them off. The
 * papers use a cyclic form: the map is rolled, windows wrap around, and a mask subtracts 100 from
 * the scores of pixels that are not neighbours in the map. The result is the same, because
 * exp(-100) is too small to change a float sum that contains a 1. Here the sums leave out such
 * pairs, so that a window's values depend on its own pixels alone.
 *
 * For each query and head: q is multiplied by the scale. Scores are sums over the channels of the
 * head's keys, as in MATMUL. The bias is added. Scores, and the results of the softmax, may be
 * rounded to the values that bytes stand for, as files of 8 bits have it. Softmax and the product
 * with v are computed as by PLAIN_SOFTMAX and MATMUL, over the window's pixels row by row. So the
 * bits of an element depend neither on the rectangle nor on which other elements are computed with
 * it. */
#include <stddef.h>
#include <string.h>

#include "layers/graph/infer.h"
#include "layers/graph/units.h"
#include "layers/kernels/packing.h"
#include "layers/ops/softmax.h"

static int64_t pixels_of(const struct rfx_window_attention_attr *a) {
    return a->h * a->w;
}

/* Returns the channels of a head's values, for an input of c channels. */
static int64_t value_size_of(const struct rfx_window_attention_attr *a, int64_t c) {
    return a->value_size > 0 ? a->value_size : c / 3 / a->heads;
}

static enum rfx_status check_channels(const struct rfx_node *node, int64_t c,
                                      struct rfx_error *err) {
    const struct rfx_window_attention_attr *a = &node->attr.window_attention;
    bool heads = a->heads >= 1 && a->heads <= RFX_WINDOW_MOST_HEADS;
    if (a->value_size == 0 && (!heads || c % 3 != 0 || c / 3 % a->heads != 0))
        return rfx_infer_refuse(node, err, "%lld channels are no three times %lld heads",
                                (long long)c, (long long)a->heads);
    if (a->value_size == 0) return RFX_OK;
    int64_t of_head = heads ? c / a->heads : 0; /* of queries, keys and values */
    if (!heads || c % a->heads != 0 || a->value_size < 0 || a->value_size >= of_head ||
        (of_head - a->value_size) % 2 != 0)
        return rfx_infer_refuse(node, err,
                                "%lld channels are no %lld heads with as many channels of queries "
                                "as of keys, and %lld of values",
                                (long long)c, (long long)a->heads, (long long)a->value_size);
    return RFX_OK;
}

static enum rfx_status check_sizes(const struct rfx_node *node, const struct rfx_tensor *in,
                                   struct rfx_error *err) {
    const struct rfx_window_attention_attr *a = &node->attr.window_attention;
    int64_t most = a->bias >= 0 ? RFX_WINDOW_MOST_BIASED : RFX_WINDOW_MOST_PIXELS;
    if (a->h < 1 || a->w < 1 || a->h > most || a->w > most || pixels_of(a) > most)
        return rfx_infer_refuse(node, err, "windows of %lld x %lld: 1 to %lld pixels are possible",
                                (long long)a->h, (long long)a->w, (long long)most);
    if (a->shift_h < 0 || a->shift_h >= a->h || a->shift_w < 0 || a->shift_w >= a->w)
        return rfx_infer_refuse(node, err, "windows of %lld x %lld shifted by %lld x %lld",
                                (long long)a->h, (long long)a->w, (long long)a->shift_h,
                                (long long)a->shift_w);
    enum rfx_status status = check_channels(node, in->c, err);
    if (status != RFX_OK) return status;
    if (in->h % a->h != 0 || in->w % a->w != 0)
        return rfx_infer_refuse(node, err,
                                "a map of %lld x %lld is not cut into windows of %lld x %lld: "
                                "rows must be a multiple of %lld, columns of %lld",
                                (long long)in->h, (long long)in->w, (long long)a->h,
                                (long long)a->w, (long long)a->h, (long long)a->w);
    return RFX_OK;
}

/* Returns the elements of one row of the bias table. One row holds the biases of all pairs of query
 * and key with the same row distance. */
static int64_t table_row(const struct rfx_window_attention_attr *a) {
    return (2 * a->w - 1) * a->heads;
}

static enum rfx_status check_rounding(const struct rfx_node *node, const struct rfx_rounding *r,
                                      struct rfx_error *err) {
    if (r->scale == 0.0f || rfx_type_takes_steps(r->to, r->scale, r->zero_point)) return RFX_OK;
    return rfx_infer_refuse(node, err, "rounding by scale %g and zero point %d of %s",
                            (double)r->scale, (int)r->zero_point, rfx_type_name(r->to));
}

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    const struct rfx_window_attention_attr *a = &node->attr.window_attention;
    status = check_sizes(node, in, err);
    if (status != RFX_OK) return status;
    int64_t wanted =
        a->by_table ? (2 * a->h - 1) * table_row(a) : a->heads * pixels_of(a) * pixels_of(a);
    if (a->bias >= 0 && graph->weights[a->bias].elems != wanted)
        return rfx_infer_refuse(node, err, "a bias of %lld elements, not %lld",
                                (long long)graph->weights[a->bias].elems, (long long)wanted);
    if (a->by_table && table_row(a) > RFX_PACK_MIN_TEMP_ELEMS)
        return rfx_infer_refuse(node, err, "a table of biases of %lld elements a row, more than %d",
                                (long long)table_row(a), RFX_PACK_MIN_TEMP_ELEMS);
    status = check_rounding(node, &a->round_scores, err);
    if (status == RFX_OK) status = check_rounding(node, &a->round_weights, err);
    if (status != RFX_OK) return status;
    return rfx_infer_set_map(node, a->heads * value_size_of(a, in->c), in->h, in->w, err);
}

static struct rfx_axis_map axis_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                    int k, int axis) {
    const struct rfx_window_attention_attr *a = &node->attr.window_attention;
    (void)graph;
    (void)k;
    return axis == 0 ? rfx_axis_map_blocks(a->h, -a->shift_h)
                     : rfx_axis_map_blocks(a->w, -a->shift_w);
}

/* Returns the channels of all keys, which are as many as those of all queries. */
static int64_t keys_of(const struct rfx_graph *graph, const struct rfx_node *node) {
    return (rfx_infer_in(graph, node, 0)->c - node->out.c) / 2;
}

/* Counts the MACs of whole windows, as the cyclic form needs them. Windows at the borders take
 * fewer. */
static uint64_t macs(const struct rfx_graph *graph, const struct rfx_node *node, uint64_t area) {
    return area * (uint64_t)pixels_of(&node->attr.window_attention) *
           (uint64_t)(keys_of(graph, node) + node->out.c);
}

static size_t packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_window_attention_attr *a = &node->attr.window_attention;
    (void)graph;
    return a->bias < 0 ? 0 : rfx_floats_bytes(a->heads * pixels_of(a) * pixels_of(a));
}

/* Copies row `below` of the bias table to all pairs whose query lies `below` - (h - 1) rows below
 * its key. */
static void spread_row(const struct rfx_window_attention_attr *a, int64_t below, const float *row,
                       float *packed) {
    int64_t n = pixels_of(a);
    for (int64_t qy = 0; qy < a->h; qy++) {
        int64_t ky = qy - (below - (a->h - 1));
        if (ky < 0 || ky >= a->h) continue;
        for (int64_t head = 0; head < a->heads; head++)
            for (int64_t qx = 0; qx < a->w; qx++) {
                float *to = packed + (head * n + qy * a->w + qx) * n + ky * a->w;
                for (int64_t kx = 0; kx < a->w; kx++)
                    to[kx] = row[(qx - kx + a->w - 1) * a->heads + head];
            }
    }
}

static enum rfx_status pack(const struct rfx_graph *graph, const struct rfx_node *node,
                            void *packed, const struct rfx_pack_part *part, struct rfx_error *err) {
    const struct rfx_window_attention_attr *a = &node->attr.window_attention;
    if (a->bias < 0) return RFX_OK;
    const struct rfx_weight *weight = &graph->weights[a->bias];
    if (!a->by_table) {
        struct rfx_range own = rfx_pack_units(part, a->heads * pixels_of(a));
        int64_t first = own.lo * pixels_of(a), count = (own.hi - own.lo) * pixels_of(a);
        return rfx_weight_read(weight, first, count, (float *)packed + first, err);
    }
    struct rfx_range own = rfx_pack_units(part, 2 * a->h - 1);
    enum rfx_status status = RFX_OK;
    for (int64_t below = own.lo; status == RFX_OK && below < own.hi; below++) {
        status = rfx_weight_read(weight, below * table_row(a), table_row(a), part->temp, err);
        if (status == RFX_OK) spread_row(a, below, part->temp, packed);
    }
    return status;
}

#define PIXELS_TO_SHARE 256 /* of smaller windows, waiting for each other takes longer */

/* What all windows of a run have in common. */
struct windows {
    const struct rfx_run_args *args;
    const struct rfx_window_attention_attr *attr;
    int64_t keys;                  /* channels of all keys */
    int64_t key_size, value_size;  /* channels of a head's keys, and of its values */
    int64_t wide;                  /* the latter rounded up to whole vectors */
    struct rfx_range down, across; /* window indices on the grid; cut-off ones included */
    bool together;                 /* all threads compute one window after the other */
};

/* The areas of the scratch: keys [key_size][pixels] of a head, which threads share if the windows
 * are large; a thread's values [of a part][wide], and its queries, scores and sums [queries][...].
 */
struct room {
    float *keys, *values, *queries, *scores, *sums;
};

/* Returns the number of queries whose scores a thread holds at a time. */
static int64_t queries_of(const struct rfx_window_attention_attr *a) {
    return rfx_softmax_rows_at_a_time(pixels_of(a), pixels_of(a));
}

/* Sets the areas of a thread, if there is scratch, and returns the floats for `threads` threads. */
static int64_t room_floats(const struct rfx_graph *graph, const struct rfx_node *node, float *start,
                           int thread, int threads, struct room *room) {
    const struct rfx_window_attention_attr *a = &node->attr.window_attention;
    int64_t n = pixels_of(a), size = keys_of(graph, node) / a->heads;
    int64_t wide = rfx_conv_filled(node->out.c / a->heads), queries = queries_of(a), at = 0;
    const int64_t parts[5] = {size * n, rfx_min_i64(n, RFX_CONV_PART) * wide, queries * size,
                              queries * n, queries * wide};
    float **const places[5] = {&room->keys, &room->values, &room->queries, &room->scores,
                               &room->sums};
    for (int i = 0; i < 5; i++) {
        bool shared = i == 0 && rfx_node_has_large_windows(node);
        int64_t floats = rfx_conv_filled(parts[i]);
        if (start != NULL) *places[i] = start + at + (shared ? 0 : thread * floats);
        at += shared ? floats : threads * floats;
    }
    return at;
}

static size_t scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads) {
    struct room none = {0};
    return rfx_floats_bytes(room_floats(graph, node, NULL, 0, threads, &none));
}

/* Returns the indices of the windows that contain part of `r`. Window 0 is the first whole one. */
static struct rfx_range windows_of(struct rfx_range r, int64_t size, int64_t shift) {
    return (struct rfx_range){rfx_floor_div(r.lo - shift, size), rfx_ceil_div(r.hi - shift, size)};
}

/* A window's pixels inside the map, and those of them that are requested. */
struct window {
    struct rfx_rect pixels, wanted;
    int64_t y0, x0; /* of the whole window, even if it is cut off */
};

static struct window window_at(const struct windows *w, int64_t index) {
    const struct rfx_window_attention_attr *a = w->attr;
    int64_t across = rfx_range_size(w->across);
    struct window win = {.y0 = (w->down.lo + index / across) * a->h + a->shift_h,
                         .x0 = (w->across.lo + index % across) * a->w + a->shift_w};
    struct rfx_rect whole = {win.y0, win.y0 + a->h, win.x0, win.x0 + a->w};
    win.pixels = rfx_rect_intersect(whole, rfx_node_full_rect(w->args->node));
    win.wanted = rfx_rect_intersect(whole, w->args->rect);
    return win;
}

/* Copies the keys of a head in some rows of a window to the scratch, channel by channel. */
static void gather_keys(const struct windows *w, const struct window *win, struct rfx_range rows,
                        int64_t head, const struct room *room) {
    const struct rfx_view *in = &w->args->in[0];
    int64_t n = rfx_rect_area(win->pixels), first = w->keys + head * w->key_size;
    int64_t p = (rows.lo - win->pixels.y0) * rfx_rect_cols(win->pixels);
    for (int64_t y = rows.lo; y < rows.hi; y++)
        for (int64_t x = win->pixels.x0; x < win->pixels.x1; x++, p++) {
            const float *key = rfx_view_f32_at(in, y, x) + first;
            for (int64_t e = 0; e < w->key_size; e++) room->keys[e * n + p] = key[e];
        }
}

/* Copies the values of a head for `count` pixels of a window, from pixel number `first` on, to the
 * scratch, pixel by pixel. */
static void gather_values(const struct windows *w, const struct window *win, int64_t first,
                          int64_t count, int64_t head, const struct room *room) {
    int64_t cols = rfx_rect_cols(win->pixels), channel = 2 * w->keys + head * w->value_size;
    int64_t y = win->pixels.y0 + first / cols, x = win->pixels.x0 + first % cols;
    for (int64_t p = 0; p < count; p++) {
        float *to = room->values + p * w->wide;
        memcpy(to, rfx_view_f32_at(&w->args->in[0], y, x) + channel,
               rfx_floats_bytes(w->value_size));
        for (int64_t e = w->value_size; e < w->wide; e++) to[e] = 0.0f;
        if (++x == win->pixels.x1) {
            x = win->pixels.x0;
            y++;
        }
    }
}

/* Computes the sums of `count` queries' weights times values, a part of the values at a time as
 * rfx_dense_product does, so that their copy is small. */
static void sum_values(const struct windows *w, const struct window *win, int64_t head,
                       int64_t count, const struct room *room) {
    int64_t n = rfx_rect_area(win->pixels);
    memset(room->sums, 0, rfx_floats_bytes(count * w->wide));
    struct rfx_dense_args part = {.w = room->values,
                                  .y = room->sums,
                                  .x_stride = n,
                                  .w_stride = w->wide,
                                  .y_stride = w->wide,
                                  .rows = count,
                                  .m = w->wide};
    for (int64_t first = 0; first < n; first += part.k) {
        part.x = room->scores + first;
        part.k = rfx_min_i64(RFX_CONV_PART, n - first);
        gather_values(w, win, first, part.k, head, room);
        rfx_kernels()->dense(&part);
    }
}

/* Adds the bias to the scores of the query at (y, x): one row of keys at a time, or all rows at
 * once if the window is not cut off at its sides. */
static void add_bias(const struct windows *w, const struct window *win, int64_t head, int64_t y,
                     int64_t x, float *scores) {
    const struct rfx_window_attention_attr *a = w->attr;
    if (a->bias < 0) return;
    int64_t n = pixels_of(a), cols = rfx_rect_cols(win->pixels);
    int64_t at_once = cols == a->w ? rfx_rect_rows(win->pixels) : 1; /* rows per call */
    const float *bias = w->args->packed;
    bias += (head * n + (y - win->y0) * a->w + x - win->x0) * n;
    for (int64_t row = win->pixels.y0; row < win->pixels.y1; row += at_once) {
        const float *from = bias + (row - win->y0) * a->w + win->pixels.x0 - win->x0;
        float *to = scores + (row - win->pixels.y0) * cols;
        rfx_kernels()->binary(RFX_BINARY_ADD, to, 1, from, 1, to, at_once * cols);
    }
}

/* Rounds n values in place, a piece at a time. */
static void round_values(const struct rfx_rounding *r, float *values, int64_t n) {
    enum { PIECE = 512 };
    unsigned char bytes[PIECE];
    if (r->scale == 0.0f) return;
    const struct rfx_byte_kernels *kernels = rfx_kernels_of_bytes(r->to);
    for (int64_t first = 0; first < n; first += PIECE) {
        int64_t count = rfx_min_i64(PIECE, n - first);
        kernels->quantise(values + first, r->scale, r->zero_point, bytes, count);
        kernels->dequantise(bytes, r->scale, r->zero_point, values + first, count);
    }
}

/* Computes the softmax of each of `rows` rows of n scores in place. */
static void softmax_of(const struct rfx_window_attention_attr *a, float *scores, int64_t rows,
                       int64_t n) {
    struct rfx_softmax_table room;
    const struct rfx_softmax_table *table = rfx_softmax_table_of(&room, a->steps, n);
    if (table == NULL) rfx_softmax_rows(scores, rows, n);
    for (int64_t i = 0; table != NULL && i < rows; i++)
        rfx_softmax_by_table(table, scores + i * n, scores + i * n, 1);
}

/* Computes one head's results for `count` requested pixels, in row-major order from pixel number
 * `first` on. */
static void attend(const struct windows *w, const struct window *win, int64_t head, int64_t first,
                   int64_t count, const struct room *room) {
    int64_t n = rfx_rect_area(win->pixels), cols = rfx_rect_cols(win->wanted);
    const struct rfx_run_args *args = w->args;
    for (int64_t i = 0; i < count; i++) {
        int64_t y = win->wanted.y0 + (first + i) / cols, x = win->wanted.x0 + (first + i) % cols;
        const float *q = rfx_view_f32_at(&args->in[0], y, x) + head * w->key_size;
        for (int64_t e = 0; e < w->key_size; e++)
            room->queries[i * w->key_size + e] = q[e] * w->attr->scale;
    }
    rfx_dense_product(room->queries, room->keys, room->scores, count, w->key_size, n);
    for (int64_t i = 0; i < count; i++) {
        int64_t y = win->wanted.y0 + (first + i) / cols, x = win->wanted.x0 + (first + i) % cols;
        add_bias(w, win, head, y, x, room->scores + i * n);
    }
    round_values(&w->attr->round_scores, room->scores, count * n);
    softmax_of(w->attr, room->scores, count, n);
    round_values(&w->attr->round_weights, room->scores, count * n);
    sum_values(w, win, head, count, room);
    for (int64_t i = 0; i < count; i++) {
        int64_t y = win->wanted.y0 + (first + i) / cols, x = win->wanted.x0 + (first + i) % cols;
        memcpy(rfx_view_f32_at(&args->out, y, x) + head * w->value_size, room->sums + i * w->wide,
               rfx_floats_bytes(w->value_size));
    }
}

static struct room room_of(const struct windows *w, int thread) {
    struct room room = {0};
    (void)room_floats(w->args->graph, w->args->node, w->args->scratch, thread,
                      rfx_team_threads(w->args->team), &room);
    if (w->together) room.keys = w->args->scratch; /* the first area */
    return room;
}

static void make_window(void *user, int64_t index, int thread) {
    const struct windows *w = user;
    struct window win = window_at(w, index);
    struct room room = room_of(w, thread);
    int64_t wanted = rfx_rect_area(win.wanted), queries = queries_of(w->attr);
    for (int64_t head = 0; head < w->attr->heads; head++) {
        gather_keys(w, &win, rfx_rect_row_range(win.pixels), head, &room);
        for (int64_t q = 0; q < wanted; q += queries)
            attend(w, &win, head, q, rfx_min_i64(queries, wanted - q), &room);
    }
}

/* A head of a window, of which threads compute some queries each. */
struct shared {
    const struct windows *windows;
    struct window window;
    int64_t head;
};

static void gather_row(void *user, int64_t index, int thread) {
    const struct shared *s = user;
    struct room room = room_of(s->windows, thread);
    int64_t y = s->window.pixels.y0 + index;
    gather_keys(s->windows, &s->window, (struct rfx_range){y, y + 1}, s->head, &room);
}

static void make_queries(void *user, int64_t index, int thread) {
    const struct shared *s = user;
    struct room room = room_of(s->windows, thread);
    int64_t queries = queries_of(s->windows->attr), first = index * queries;
    attend(s->windows, &s->window, s->head, first,
           rfx_min_i64(queries, rfx_rect_area(s->window.wanted) - first), &room);
}

static void make_together(struct rfx_team *team, const struct windows *w, int64_t index) {
    struct shared s = {.windows = w, .window = window_at(w, index)};
    int64_t units = rfx_ceil_div(rfx_rect_area(s.window.wanted), queries_of(w->attr));
    for (; s.head < w->attr->heads; s.head++) {
        rfx_team_for(team, rfx_rect_rows(s.window.pixels), gather_row, &s);
        rfx_team_for(team, units, make_queries, &s);
    }
}

static void run(const struct rfx_run_args *args) {
    const struct rfx_window_attention_attr *a = &args->node->attr.window_attention;
    struct windows w = {.args = args, .attr = a, .keys = keys_of(args->graph, args->node)};
    w.key_size = w.keys / a->heads;
    w.value_size = args->node->out.c / a->heads;
    w.wide = rfx_conv_filled(w.value_size);
    w.down = windows_of(rfx_rect_row_range(args->rect), a->h, a->shift_h);
    w.across = windows_of(rfx_rect_col_range(args->rect), a->w, a->shift_w);
    int64_t windows = rfx_range_size(w.down) * rfx_range_size(w.across);
    /* Of small windows, such as those of Swin transformers, each thread computes some. Large ones,
     * and those that are fewer than threads, are computed one after the other by all threads. */
    bool few = windows < rfx_team_threads(args->team) && pixels_of(a) >= PIXELS_TO_SHARE;
    w.together = few || rfx_node_has_large_windows(args->node);
    if (!w.together) rfx_team_for(args->team, windows, make_window, &w);
    for (int64_t i = 0; w.together && i < windows; i++) make_together(args->team, &w, i);
}

static const struct rfx_weight_slot weights[] = {
    {"bias", RFX_WEIGHT_FACTOR, offsetof(struct rfx_node, attr.window_attention.bias)},
    {NULL, RFX_WEIGHT_FACTOR, 0},
};

const struct rfx_op_def rfx_op_window_attention = {
    .name = "WindowAttention",
    .spatial = true,
    .weights = weights,
    .infer = infer,
    .axis_map = axis_map,
    .macs = macs,
    .scratch_bytes = scratch_bytes,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .run = run,
};
