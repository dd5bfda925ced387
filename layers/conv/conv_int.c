/* INT_CONV: convolution of one-byte integers (ONNX QLinearConv), with the bytes of ONNX Runtime.
 *
 * Input rows are widened to int16, minus their zero point, before the kernel reads them. So padding
 * is 0, and one kernel serves all types and zero points. The rows that consecutive output rows
 * share are widened once.
 *
 * To INT32, the result is the sums themselves (ConvInteger). A second input, a map of one element,
 * is the zero point of the first: that of DynamicQuantizeLinear is known in a run only. */
#include <float.h>
#include <string.h>

#include "layers/conv/conv.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "layers/graph/infer.h"
#include "layers/kernels/packing.h"

#define WIDENED_BYTES ((int64_t)128 << 10) /* of rows that a thread widens, if they fit */
#define MOST_ROWS 1024                     /* kernel rows */
#define MOST_WIDENED ((int64_t)1 << 40)    /* elements of a window */

static bool is_depthwise(const struct rfx_conv_attr *a) {
    return a->groups == a->ic && a->oc == a->ic;
}

/* Returns the int16 elements of a widened pixel. */
static int64_t widened_channels(const struct rfx_conv_attr *a) {
    return is_depthwise(a) ? rfx_int_conv_filled(a->ic) : (a->ic + 1) / 2 * 2;
}

/* Returns the input rows of one output row, with the rows between dilated taps. */
static int64_t window_rows(const struct rfx_conv_attr *a) {
    return (a->kh - 1) * a->dh + 1;
}

/* Returns the input columns of `n` neighbouring output columns. */
static int64_t window_cols(const struct rfx_conv_attr *a, int64_t n) {
    return (n - 1) * a->sw + (a->kw - 1) * a->dw + 1;
}

/* Returns how many output columns are computed together. */
static int64_t run_cols(const struct rfx_conv_attr *a) {
    int64_t column = window_rows(a) * widened_channels(a) * (int64_t)sizeof(int16_t);
    int64_t cols = WIDENED_BYTES / column;
    int64_t n = (cols - (a->kw - 1) * a->dw - 1) / a->sw + 1;
    return rfx_max_i64(n, 1);
}

/* Checks that the widened rows of one output column have at most MOST_WIDENED elements. */
static enum rfx_status check_widened(const struct rfx_node *node, struct rfx_error *err) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    int64_t elems;
    if (rfx_checked_mul_i64(window_rows(a), window_cols(a, 1), &elems) &&
        rfx_checked_mul_i64(elems, widened_channels(a), &elems) && elems <= MOST_WIDENED)
        return RFX_OK;
    return rfx_infer_refuse(node, err, "a window of %lldx%lld with %lld channels is too large",
                            (long long)window_rows(a), (long long)window_cols(a, 1),
                            (long long)a->ic);
}

/* Returns the bytes of the widened rows; a kernel may read one pair beyond them. */
static size_t widened_bytes(const struct rfx_conv_attr *a) {
    int64_t elems = window_rows(a) * window_cols(a, run_cols(a)) * widened_channels(a);
    return rfx_align_up((size_t)(elems + 2 * RFX_INT_LANES) * sizeof(int16_t));
}

/* Layout of packed constants: bias and factor of each channel, filled up to one block more than
 * needed, then the weights. */
static int64_t packed_channels(const struct rfx_conv_attr *a) {
    return rfx_int_conv_filled(a->oc) + RFX_INT_LANES;
}

/* Returns the int16 elements of a group's packed weights. */
static int64_t group_elems(const struct rfx_conv_attr *a) {
    if (is_depthwise(a)) return rfx_int_conv_filled(a->oc) * a->kh * a->kw;
    int64_t pairs = (a->ic / a->groups + 1) / 2;
    return rfx_int_conv_filled(a->oc / a->groups) * a->kh * a->kw * pairs * 2;
}

static size_t weights_bytes_at(const struct rfx_conv_attr *a) {
    return 2 * rfx_align_up((size_t)packed_channels(a) * sizeof(int32_t));
}

static size_t packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    int64_t groups = is_depthwise(a) ? 1 : a->groups;
    (void)graph;
    return weights_bytes_at(a) + rfx_align_up((size_t)(groups * group_elems(a)) * sizeof(int16_t));
}

static int64_t **channels(struct rfx_node *node, int64_t *count) {
    *count = 3 * node->attr.conv.oc;
    return &node->attr.int_conv.channels;
}

static float factor_of(const struct rfx_int_conv_attr *q, int64_t channel) {
    uint32_t bits = (uint32_t)q->channels[3 * channel + 2];
    float factor;
    memcpy(&factor, &bits, sizeof factor);
    return factor;
}

/* Checks every channel: the ranges of its numbers, and that no sum leaves the range of int32. The
 * largest is |bias| plus the number of products times the largest product. */
static enum rfx_status check_channels(const struct rfx_node *node, enum rfx_type type,
                                      struct rfx_error *err) {
    const struct rfx_int_conv_attr *q = &node->attr.int_conv;
    const struct rfx_conv_attr *a = &q->conv;
    float lo, hi;
    rfx_type_limits(type, &lo, &hi);
    int64_t x = rfx_max_i64((int64_t)hi - q->in_zero, q->in_zero - (int64_t)lo),
            products = INT64_MAX, most = INT64_MAX;
    if (node->n_in == 2) x = UINT8_MAX;
    if (!rfx_checked_mul_i64(a->ic / a->groups, a->kh, &products) ||
        !rfx_checked_mul_i64(products, a->kw, &products) ||
        !rfx_checked_mul_i64(products, x * 255, &most))
        most = INT64_MAX;
    for (int64_t i = 0; i < a->oc; i++) {
        int64_t bias = q->channels[3 * i], zero = q->channels[3 * i + 1];
        if (bias < INT32_MIN || bias > INT32_MAX || zero < -128 || zero > 255)
            return rfx_infer_refuse(node, err, "bias %lld, zero point %lld of channel %lld",
                                    (long long)bias, (long long)zero, (long long)i);
        if (!(factor_of(q, i) > 0.0f && factor_of(q, i) <= FLT_MAX))
            return rfx_infer_refuse(node, err, "factor %g of channel %lld", (double)factor_of(q, i),
                                    (long long)i);
        if (most > INT32_MAX - (bias < 0 ? -bias : bias))
            return rfx_infer_refuse(node, err,
                                    "a sum of %lld products and a bias of %lld may leave the range "
                                    "of 32 bits",
                                    (long long)products, (long long)bias);
    }
    return RFX_OK;
}

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    const struct rfx_int_conv_attr *q = &node->attr.int_conv;
    enum rfx_status status = rfx_conv_infer(graph, node, node->n_in == 2 ? 2 : 1, err);
    if (status != RFX_OK) return status;
    if (node->n_in == 2 && rfx_infer_in(graph, node, 1)->elems != 1)
        return rfx_infer_refuse(node, err, "a zero point of %lld elements, not 1",
                                (long long)rfx_infer_in(graph, node, 1)->elems);
    if ((!rfx_type_is_byte(q->to) && q->to != RFX_TYPE_INT32) || q->conv.kh > MOST_ROWS ||
        q->channels == NULL)
        return rfx_infer_refuse(node, err, "to %s, with %lld kernel rows", rfx_type_name(q->to),
                                (long long)q->conv.kh);
    enum rfx_type from = rfx_infer_in(graph, node, 0)->type;
    status = check_widened(node, err);
    if (status == RFX_OK && q->to == RFX_TYPE_INT32 && q->out_zero != 0)
        return rfx_infer_refuse(node, err, "zero point %d of sums", (int)q->out_zero);
    if (status == RFX_OK) status = rfx_infer_zero_point(node, q->to, q->out_zero, err);
    if (status == RFX_OK) status = rfx_infer_zero_point(node, from, q->in_zero, err);
    node->out.type = q->to;
    return status == RFX_OK ? check_channels(node, from, err) : status;
}

static void pack_channels(const struct rfx_int_conv_attr *q, void *packed) {
    int64_t n = packed_channels(&q->conv);
    int32_t *bias = packed;
    float *factors = (float *)(void *)((char *)packed + weights_bytes_at(&q->conv) / 2);
    for (int64_t i = 0; i < n; i++) {
        bool there = i < q->conv.oc;
        bias[i] = there ? (int32_t)q->channels[3 * i] : 0;
        factors[i] = there ? factor_of(q, i) : 0.0f;
    }
}

/* Writes the filter of output channel o, whose values are `filter` in the order of the file. */
static void pack_filter(const struct rfx_conv_attr *a, int64_t o, const float *filter, int64_t zero,
                        int16_t *weights) {
    int64_t per_group = a->oc / a->groups, icg = a->ic / a->groups, taps = a->kh * a->kw;
    if (is_depthwise(a)) {
        for (int64_t t = 0; t < taps; t++)
            weights[t * rfx_int_conv_filled(a->oc) + o] = (int16_t)((int64_t)filter[t] - zero);
        return;
    }
    int64_t pairs = (icg + 1) / 2, c = o % per_group;
    int16_t *block = weights + o / per_group * group_elems(a) +
                     c / RFX_INT_LANES * taps * pairs * 2 * RFX_INT_LANES;
    for (int64_t t = 0; t < taps; t++)
        for (int64_t i = 0; i < icg; i++)
            block[((t * pairs + i / 2) * RFX_INT_LANES + c % RFX_INT_LANES) * 2 + i % 2] =
                (int16_t)((int64_t)filter[i * taps + t] - zero);
}

static enum rfx_status pack(const struct rfx_graph *graph, const struct rfx_node *node,
                            void *packed, const struct rfx_pack_part *part, struct rfx_error *err) {
    const struct rfx_int_conv_attr *q = &node->attr.int_conv;
    const struct rfx_conv_attr *a = &q->conv;
    struct rfx_packing_reader reader = {.weight = &graph->weights[a->weight], .err = err};
    int16_t *weights = (int16_t *)(void *)((char *)packed + weights_bytes_at(a));
    int64_t n = a->ic / a->groups * a->kh * a->kw;
    if (part->index > 0) return RFX_OK;
    float *own = NULL, *filter = part->temp;
    if (n > part->temp_elems) {
        filter = own = rfx_memory_alloc(graph->mem, rfx_floats_bytes(n));
        if (own == NULL)
            return rfx_memory_fail(graph->mem, "packing a filter", rfx_floats_bytes(n), err);
    }
    memset(packed, 0, packed_bytes(graph, node));
    pack_channels(q, packed);
    enum rfx_status status = RFX_OK;
    for (int64_t o = 0; o < a->oc && status == RFX_OK; o++) {
        status = rfx_packing_read(&reader, o * n, n, filter);
        if (status == RFX_OK) pack_filter(a, o, filter, q->channels[3 * o + 1], weights);
    }
    rfx_memory_release(graph->mem, own);
    return status;
}

static struct rfx_axis_map axis_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                    int k, int axis) {
    struct rfx_axis_map map = rfx_axis_map_identity();
    if (k == 0) return rfx_op_map_window(graph, node, k, axis);
    map.broadcast = (axis == 0 ? node->out.h : node->out.w) != 1;
    return map;
}

/* Returns the zero point of input 0. */
static int32_t in_zero(const struct rfx_run_args *args) {
    if (args->node->n_in == 1) return args->node->attr.int_conv.in_zero;
    const void *zero = rfx_view_at(&args->in[1], 0, 0);
    return args->in[1].type == RFX_TYPE_UINT8 ? *(const uint8_t *)zero : *(const int8_t *)zero;
}

/* Output columns [x0, x1) of one call, computed row by row. */
struct run {
    const struct rfx_run_args *args;
    const struct rfx_conv_attr *a;
    const struct rfx_tensor *in;
    int64_t x0, x1;
    int16_t *widened;      /* window_rows(a) rows, row iy in slot iy mod window_rows(a) */
    int64_t row_elems, lo; /* lo: the first input column of a row; may be negative */
    int64_t next;          /* rows before this one are widened */
};

/* Widens input row iy. Columns outside of the map become 0. */
static void widen_row(const struct run *r, int64_t iy, int16_t *to) {
    const struct rfx_view *view = &r->args->in[0];
    const struct rfx_byte_kernels *kernels = rfx_kernels_of_bytes(view->type);
    int64_t c = r->in->c, width = widened_channels(r->a), n = r->row_elems / width;
    int64_t first = rfx_max_i64(r->lo, 0), end = rfx_min_i64(r->lo + n, r->in->w);
    int32_t zero = in_zero(r->args);
    if (first > r->lo) memset(to, 0, (size_t)((first - r->lo) * width) * sizeof *to);
    if (end < r->lo + n)
        memset(to + (rfx_max_i64(end, r->lo) - r->lo) * width, 0,
               (size_t)((r->lo + n - rfx_max_i64(end, r->lo)) * width) * sizeof *to);
    if (end <= first) return;
    to += (first - r->lo) * width;
    if (width == c && view->c == c) {
        kernels->widen(rfx_view_at(view, iy, first), zero, to, (end - first) * c);
        return;
    }
    for (int64_t x = first; x < end; x++, to += width) {
        kernels->widen(rfx_view_at(view, iy, x), zero, to, c);
        for (int64_t i = c; i < width; i++) to[i] = 0;
    }
}

/* Sets rows[kh] to the widened input rows of output row y, NULL outside of the map. */
static void widen_window(struct run *r, int64_t y, const int16_t **rows) {
    const struct rfx_conv_attr *a = r->a;
    int64_t slots = window_rows(a), top = y * a->sh - a->pads.top;
    int64_t column = r->x0 * a->sw - a->pads.left - r->lo;
    for (int64_t iy = rfx_max_i64(rfx_max_i64(top, 0), r->next);
         iy < rfx_min_i64(top + slots, r->in->h); iy++) {
        if ((iy - top) % a->dh == 0 || a->sh % a->dh != 0)
            widen_row(r, iy, r->widened + iy % slots * r->row_elems);
        r->next = iy + 1;
    }
    for (int64_t ky = 0; ky < a->kh; ky++) {
        int64_t iy = top + ky * a->dh;
        bool there = iy >= 0 && iy < r->in->h;
        rows[ky] =
            there ? r->widened + iy % slots * r->row_elems + column * widened_channels(a) : NULL;
    }
}

static void compute_row(struct run *r, int64_t y) {
    const struct rfx_conv_attr *a = r->a;
    const struct rfx_int_conv_attr *q = &r->args->node->attr.int_conv;
    const struct rfx_view *out = &r->args->out;
    const int16_t *rows[MOST_ROWS], *shifted[MOST_ROWS];
    const char *packed = r->args->packed;
    bool depthwise = is_depthwise(a);
    int64_t groups = depthwise ? 1 : a->groups, m = a->oc / groups, icg = a->ic / groups;
    struct rfx_int_conv_args args = {
        .rows = rows,
        .to = {.zero_point = q->out_zero,
               .lo = q->to == RFX_TYPE_UINT8 ? 0 : INT8_MIN,
               .hi = q->to == RFX_TYPE_UINT8 ? UINT8_MAX : INT8_MAX},
        .pixels = r->x1 - r->x0,
        .m = m,
        .pairs = (icg + 1) / 2,
        .kh = a->kh,
        .kw = a->kw,
        .x_stride = a->sw * widened_channels(a),
        .tap_stride = a->dw * widened_channels(a),
        .out_stride = out->c,
    };
    widen_window(r, y, rows);
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t ky = 0; ky < a->kh; ky++)
            shifted[ky] = rows[ky] == NULL ? NULL : rows[ky] + g * icg;
        args.rows = shifted;
        args.weights =
            (const int16_t *)(const void *)(packed + weights_bytes_at(a)) + g * group_elems(a);
        args.to.bias = (const int32_t *)(const void *)packed + g * m;
        args.to.scales = (const float *)(const void *)(packed + weights_bytes_at(a) / 2) + g * m;
        if (q->to == RFX_TYPE_INT32)
            args.sums = (int32_t *)rfx_view_at(out, y, r->x0) + g * m;
        else
            args.out = (uint8_t *)rfx_view_at(out, y, r->x0) + g * m;
        (depthwise ? rfx_kernels()->int_depthwise : rfx_kernels()->int_conv)(&args);
    }
}

static void compute_unit(const void *user, struct rfx_rect unit, void *scratch) {
    const struct rfx_run_args *args = user;
    const struct rfx_conv_attr *a = &args->node->attr.conv;
    int64_t step = run_cols(a);
    for (int64_t x = unit.x0; x < unit.x1; x += step) {
        struct run r = {.args = args,
                        .a = a,
                        .in = &args->graph->nodes[args->node->in[0]].out,
                        .x0 = x,
                        .x1 = rfx_min_i64(x + step, unit.x1),
                        .widened = scratch,
                        .lo = x * a->sw - a->pads.left};
        r.row_elems = window_cols(a, r.x1 - r.x0) * widened_channels(a);
        for (int64_t y = unit.y0; y < unit.y1; y++) compute_row(&r, y);
    }
}

static size_t scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads) {
    (void)graph;
    return (size_t)threads * widened_bytes(&node->attr.conv);
}

static void run(const struct rfx_run_args *args) {
    rfx_units_share(args, rfx_units_of_rows(args), widened_bytes(&args->node->attr.conv),
                    compute_unit, args);
}

static const struct rfx_weight_slot weight_slots[] = {
    {"weight", RFX_WEIGHT_FACTOR, offsetof(struct rfx_node, attr.conv.weight)},
    {NULL, RFX_WEIGHT_FACTOR, 0},
};

const struct rfx_op_def rfx_op_int_conv = {
    .name = "QLinearConv",
    .spatial = true,
    .kind = RFX_CLASS_CONVOLUTION,
    .types = RFX_TYPE_BIT(RFX_TYPE_UINT8) | RFX_TYPE_BIT(RFX_TYPE_INT8),
    .weights = weight_slots,
    .index_table = channels,
    .infer = infer,
    .window = rfx_conv_window,
    .axis_map = axis_map,
    .macs = rfx_conv_macs,
    .scratch_bytes = scratch_bytes,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .run = run,
};
