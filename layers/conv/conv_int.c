/* INT_CONV: convolution of one-byte integers (ONNX QLinearConv), with the bytes of ONNX Runtime.
 *
 * Input rows are prepared before the kernel reads them, so that one kernel serves all types and
 * zero points. The rows that consecutive output rows share are prepared once. Most kernels read
 * int16: elements minus their zero point, and 0 as padding. Kernels with dot products of bytes read
 * uint8: elements, plus 128 if they are int8, and the zero point as padding; the bias is corrected
 * by the zero point times the sum of the weights. They read the input itself where it already has
 * this form.
 *
 * Packed weights have one byte. If weights minus zero point need more, each weight is packed as the
 * sum of two or three, and input channels are prepared as often. Depthwise layers have weights of
 * int16 instead, except for kernels of bytes. The sizes of packed constants and of scratch memory
 * do not depend on the instruction set.
 *
 * To INT32, the result is the sums themselves (ConvInteger). A second input, a map of one element,
 * is the zero point of the first: that of DynamicQuantizeLinear is known in a run only. Then
 * kernels of bytes get the biases that correct it from the run. */
#include <float.h>
#include <string.h>

#include "layers/conv/conv.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "layers/graph/infer.h"
#include "layers/kernels/packing.h"

#define PREPARED_BYTES ((int64_t)128 << 10) /* of rows that a thread prepares, if they fit */
#define MOST_COPIES 3                       /* 255 = 127 + 127 + 1 */
#define MOST_ROWS 1024                      /* kernel rows */
#define MOST_PREPARED ((int64_t)1 << 40)    /* elements of a window */

static bool is_depthwise(const struct rfx_conv_attr *a) {
    return a->groups == a->ic && a->oc == a->ic;
}

/* Returns whether the zero point of the input is the second input. */
static bool is_dynamic(const struct rfx_node *node) {
    return node->n_in == 2;
}

/* Returns whether the kernel in use reads input values of uint8. Depthwise layers have no kernel
 * for weights that need more than a byte. */
static bool reads_bytes(const struct rfx_int_conv_attr *q) {
    return rfx_kernels()->int_bytes && (!is_depthwise(&q->conv) || q->copies == 1);
}

/* Returns how many weights one weight of the model is packed as. */
static int64_t copies(const struct rfx_int_conv_attr *q) {
    return is_depthwise(&q->conv) ? 1 : q->copies;
}

/* Returns how many neighbouring taps a dense convolution's kernel reads as one tap with as many
 * times the channels: a whole row, if the values of all its taps are contiguous. Then pixels of 3
 * channels need no filling. */
static int64_t joined_taps(const struct rfx_conv_attr *a) {
    return a->groups == 1 && (a->dw == 1 || a->kw == 1) ? a->kw : 1;
}

/* Returns the channels of joined taps of a group of a dense convolution. */
static int64_t joined_channels(const struct rfx_int_conv_attr *q) {
    return joined_taps(&q->conv) * copies(q) * (q->conv.ic / q->conv.groups);
}

/* Returns the channels of joined taps, counted by four. */
static int64_t group_quads(const struct rfx_int_conv_attr *q) {
    return rfx_ceil_div(joined_channels(q), 4);
}

/* Returns how many taps a kernel row has once neighbouring ones are joined. */
static int64_t kernel_cols(const struct rfx_conv_attr *a) {
    return is_depthwise(a) ? a->kw : a->kw / joined_taps(a);
}

/* Returns the elements of a prepared pixel. */
static int64_t prepared_channels(const struct rfx_int_conv_attr *q) {
    const struct rfx_conv_attr *a = &q->conv;
    if (is_depthwise(a)) return rfx_int_conv_filled(a->ic);
    return a->groups == 1 ? copies(q) * a->ic : rfx_ceil_div(copies(q) * a->ic, 4) * 4;
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
static int64_t run_cols(const struct rfx_int_conv_attr *q) {
    const struct rfx_conv_attr *a = &q->conv;
    int64_t column = window_rows(a) * prepared_channels(q) * (int64_t)sizeof(int16_t);
    int64_t cols = PREPARED_BYTES / column;
    int64_t n = (cols - (a->kw - 1) * a->dw - 1) / a->sw + 1;
    return rfx_max_i64(n, 1);
}

/* Checks that the prepared rows of one output column have at most MOST_PREPARED elements. */
static enum rfx_status check_prepared(const struct rfx_node *node, struct rfx_error *err) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    int64_t elems;
    if (rfx_checked_mul_i64(window_rows(a), window_cols(a, 1), &elems) &&
        rfx_checked_mul_i64(elems, prepared_channels(&node->attr.int_conv), &elems) &&
        elems <= MOST_PREPARED)
        return RFX_OK;
    return rfx_infer_refuse(node, err, "a window of %lldx%lld with %lld channels is too large",
                            (long long)window_rows(a), (long long)window_cols(a, 1),
                            (long long)a->ic);
}

/* Returns the bytes of the prepared rows; a kernel may read some elements beyond them. Rows of
 * bytes take half of them, and one row of padding as much as one of the others. */
static size_t prepared_bytes(const struct rfx_int_conv_attr *q) {
    const struct rfx_conv_attr *a = &q->conv;
    int64_t elems = window_rows(a) * window_cols(a, run_cols(q)) * prepared_channels(q);
    return rfx_align_up((size_t)(elems + 2 * RFX_INT_LANES) * sizeof(int16_t));
}

/* Layout of packed constants: bias and factor of each channel, filled up to one block more than
 * needed, then the weights. */
static int64_t packed_channels(const struct rfx_conv_attr *a) {
    return rfx_int_conv_filled(a->oc) + RFX_INT_LANES;
}

/* Returns the bytes of a group's packed weights. */
static int64_t group_bytes(const struct rfx_int_conv_attr *q) {
    const struct rfx_conv_attr *a = &q->conv;
    if (is_depthwise(a))
        return rfx_int_conv_filled(a->oc) * a->kh * a->kw * (int64_t)sizeof(int16_t);
    return rfx_int_conv_filled(a->oc / a->groups) * a->kh * kernel_cols(a) * group_quads(q) * 4;
}

static size_t weights_bytes_at(const struct rfx_conv_attr *a) {
    return 2 * rfx_align_up((size_t)packed_channels(a) * sizeof(int32_t));
}

static size_t packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    int64_t groups = is_depthwise(a) ? 1 : a->groups;
    (void)graph;
    return weights_bytes_at(a) + rfx_align_up((size_t)(groups * group_bytes(&node->attr.int_conv)));
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

/* Sets q->small_scales. Checks every channel: the ranges of its numbers, and that no sum leaves the
 * range of int32. The largest is |bias| plus the number of products times the largest product. */
static enum rfx_status check_channels(struct rfx_node *node, enum rfx_type type,
                                      struct rfx_error *err) {
    struct rfx_int_conv_attr *q = &node->attr.int_conv;
    const struct rfx_conv_attr *a = &q->conv;
    float lo, hi;
    rfx_type_limits(type, &lo, &hi);
    int64_t x = rfx_max_i64((int64_t)hi - q->in_zero, q->in_zero - (int64_t)lo),
            products = INT64_MAX, most = INT64_MAX;
    if (is_dynamic(node)) x = UINT8_MAX;
    if (!rfx_checked_mul_i64(a->ic / a->groups, a->kh, &products) ||
        !rfx_checked_mul_i64(products, a->kw, &products) ||
        !rfx_checked_mul_i64(products, x * 255, &most))
        most = INT64_MAX;
    q->small_scales = true;
    for (int64_t i = 0; i < a->oc; i++) {
        q->small_scales &= factor_of(q, i) <= RFX_INT_SMALL_SCALE;
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

/* Sets the range of a weight: that of its type, or of its values where they are in memory. */
static enum rfx_status range_of(const struct rfx_weight *weight, float *lo, float *hi,
                                struct rfx_error *err) {
    float some[256];
    *lo = weight->lo;
    *hi = weight->hi;
    if (weight->source == RFX_WEIGHT_GENERATED) return RFX_OK;
    if (weight->source == RFX_WEIGHT_FILE) {
        if (rfx_type_is_byte(weight->type))
            rfx_type_limits(weight->type, lo, hi);
        else
            *hi = -(*lo = -FLT_MAX);
        return RFX_OK;
    }
    *lo = FLT_MAX;
    *hi = -FLT_MAX;
    for (int64_t i = 0; i < weight->elems; i += 256) {
        int64_t n = rfx_min_i64(256, weight->elems - i);
        enum rfx_status status = rfx_weight_read(weight, i, n, some, err);
        if (status != RFX_OK) return status;
        for (int64_t k = 0; k < n; k++) {
            *lo = some[k] < *lo ? some[k] : *lo;
            *hi = some[k] > *hi ? some[k] : *hi;
        }
    }
    return RFX_OK;
}

/* Sets q->copies: as many numbers in [-128, 127] as have any weight minus its zero point as sum. */
static enum rfx_status find_copies(const struct rfx_graph *graph, struct rfx_int_conv_attr *q,
                                   struct rfx_error *err) {
    float lo, hi;
    enum rfx_status status = range_of(&graph->weights[q->conv.weight], &lo, &hi, err);
    q->copies = 1;
    for (int64_t i = 0; i < q->conv.oc; i++) {
        float zero = (float)q->channels[3 * i + 1];
        while (q->copies < MOST_COPIES && !(lo - zero >= (float)(q->copies * INT8_MIN) &&
                                            hi - zero <= (float)(q->copies * INT8_MAX)))
            q->copies++;
    }
    return status;
}

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    struct rfx_int_conv_attr *q = &node->attr.int_conv;
    enum rfx_status status = rfx_conv_infer(graph, node, is_dynamic(node) ? 2 : 1, err);
    if (status != RFX_OK) return status;
    if (is_dynamic(node) && rfx_infer_in(graph, node, 1)->elems != 1)
        return rfx_infer_refuse(node, err, "a zero point of %lld elements, not 1",
                                (long long)rfx_infer_in(graph, node, 1)->elems);
    if ((!rfx_type_is_byte(q->to) && q->to != RFX_TYPE_INT32) || q->conv.kh > MOST_ROWS ||
        q->channels == NULL)
        return rfx_infer_refuse(node, err, "to %s, with %lld kernel rows", rfx_type_name(q->to),
                                (long long)q->conv.kh);
    enum rfx_type from = rfx_infer_in(graph, node, 0)->type;
    status = find_copies(graph, q, err);
    if (status == RFX_OK) status = check_prepared(node, err);
    if (status == RFX_OK && q->to == RFX_TYPE_INT32 && q->out_zero != 0)
        return rfx_infer_refuse(node, err, "zero point %d of sums", (int)q->out_zero);
    if (status == RFX_OK) status = rfx_infer_zero_point(node, q->to, q->out_zero, err);
    if (status == RFX_OK) status = rfx_infer_zero_point(node, from, q->in_zero, err);
    node->out.type = q->to;
    return status == RFX_OK ? check_channels(node, from, err) : status;
}

/* Writes bias and factor of channels [first, end), 0 for those that are only filled up. */
static void pack_channels(const struct rfx_int_conv_attr *q, int64_t first, int64_t end,
                          void *packed) {
    int32_t *bias = packed;
    float *factors = (float *)(void *)((char *)packed + weights_bytes_at(&q->conv) / 2);
    for (int64_t i = first; i < end; i++) {
        bool there = i < q->conv.oc;
        bias[i] = there ? (int32_t)q->channels[3 * i] : 0;
        factors[i] = there ? factor_of(q, i) : 0.0f;
    }
}

/* Returns the channels of a shard: whole blocks of a layer of one group; otherwise the first shard
 * has all. */
static struct rfx_range shard_channels(const struct rfx_conv_attr *a,
                                       const struct rfx_pack_part *part) {
    if (a->groups > 1) return (struct rfx_range){0, part->index == 0 ? a->oc : 0};
    struct rfx_range blocks = rfx_pack_units(part, rfx_ceil_div(a->oc, RFX_INT_LANES));
    return (struct rfx_range){blocks.lo * RFX_INT_LANES,
                              rfx_min_i64(blocks.hi * RFX_INT_LANES, a->oc)};
}

/* Writes what a shard has of biases and factors, and zeros where its weights go. The last shard
 * also has what fills up. */
static void begin_shard(const struct rfx_graph *graph, const struct rfx_node *node,
                        struct rfx_range c, void *packed) {
    const struct rfx_int_conv_attr *q = &node->attr.int_conv;
    const struct rfx_conv_attr *a = &q->conv;
    const size_t at = weights_bytes_at(a), all = packed_bytes(graph, node);
    const bool last = c.hi == a->oc;
    pack_channels(q, c.lo, last ? (int64_t)(at / 2 / sizeof(int32_t)) : c.hi, packed);
    const size_t channel = (size_t)(group_bytes(q) / rfx_int_conv_filled(a->oc / a->groups));
    const size_t from = a->groups > 1 ? at : at + (size_t)c.lo * channel;
    const size_t end = last ? all : at + (size_t)c.hi * channel;
    memset((char *)packed + from, 0, end - from);
}

/* Returns the place of the weight of input channel i for output channel `lane` of a block, among
 * the weights of a tap. `fours`: four input channels are neighbours, not two. */
static size_t place_in_tap(size_t i, size_t lane, bool fours) {
    return fours ? (i / 4 * RFX_INT_LANES + lane) * 4 + i % 4
                 : (i / 2 * RFX_INT_LANES + lane) * 2 + i % 2;
}

/* Writes the filter of output channel o, whose values are `filter` in the order of the file.
 * Returns the sum of its weights minus their zero point. */
static int64_t pack_filter(const struct rfx_int_conv_attr *q, int64_t o, const float *filter,
                           void *weights) {
    const struct rfx_conv_attr *a = &q->conv;
    int64_t per_group = a->oc / a->groups, icg = a->ic / a->groups, taps = a->kh * a->kw;
    int64_t zero = q->channels[3 * o + 1], sum = 0;
    if (is_depthwise(a)) {
        for (int64_t t = 0; t < taps; t++) {
            int64_t w = (int64_t)filter[t] - zero, at = t * rfx_int_conv_filled(a->oc) + o;
            sum += w;
            if (reads_bytes(q))
                ((int8_t *)weights)[at] = (int8_t)w;
            else
                ((int16_t *)weights)[at] = (int16_t)w;
        }
        return sum;
    }
    int64_t c = o % per_group, joined = joined_taps(a), tap = group_quads(q) * 4 * RFX_INT_LANES;
    const bool fours = reads_bytes(q);
    const size_t lane = (size_t)(c % RFX_INT_LANES);
    int8_t *block = (int8_t *)weights + o / per_group * group_bytes(q) +
                    c / RFX_INT_LANES * (taps / joined) * tap;
    for (int64_t t = 0; t < taps; t++) {
        int8_t *to = block + t / joined * tap;
        const int64_t first = t % joined * copies(q) * icg;
        for (int64_t i = 0; i < icg; i++) {
            int64_t w = (int64_t)filter[i * taps + t] - zero;
            sum += w;
            for (int64_t k = 0; k < copies(q); k++) {
                int64_t piece = rfx_max_i64(INT8_MIN, rfx_min_i64(w, INT8_MAX));
                to[place_in_tap((size_t)(first + k * icg + i), lane, fours)] = (int8_t)piece;
                w -= piece;
            }
        }
    }
    return sum;
}

/* Subtracts from a bias what the sum gets from the zero point, which kernels of bytes do not
 * subtract from their input values. Wraps around, as their sums do. A zero point that is known in
 * the run only is subtracted there (correct_biases): here the bias becomes what 1 subtracts. */
static void correct_bias(const struct rfx_graph *graph, const struct rfx_node *node, int64_t sum,
                         int32_t *bias) {
    int64_t zero = node->attr.int_conv.in_zero;
    if (!reads_bytes(&node->attr.int_conv)) return;
    if (graph->nodes[node->in[0]].out.type == RFX_TYPE_INT8) zero += 128;
    if (is_dynamic(node))
        *bias = (int32_t)(0U - (uint32_t)sum);
    else
        *bias = (int32_t)((uint32_t)*bias - (uint32_t)(zero * sum));
}

static enum rfx_status pack(const struct rfx_graph *graph, const struct rfx_node *node,
                            void *packed, const struct rfx_pack_part *part, struct rfx_error *err) {
    const struct rfx_int_conv_attr *q = &node->attr.int_conv;
    const struct rfx_conv_attr *a = &q->conv;
    struct rfx_packing_reader reader = {.weight = &graph->weights[a->weight], .err = err};
    void *weights = (char *)packed + weights_bytes_at(a);
    int32_t *bias = packed;
    int64_t n = a->ic / a->groups * a->kh * a->kw;
    const struct rfx_range mine = shard_channels(a, part);
    if (mine.lo >= mine.hi) return RFX_OK;
    float *own = NULL, *filter = part->temp;
    if (n > part->temp_elems) {
        filter = own = rfx_memory_alloc(graph->mem, rfx_floats_bytes(n));
        if (own == NULL)
            return rfx_memory_fail(graph->mem, "packing a filter", rfx_floats_bytes(n), err);
    }
    begin_shard(graph, node, mine, packed);
    enum rfx_status status = RFX_OK;
    for (int64_t o = mine.lo; o < mine.hi && status == RFX_OK; o++) {
        status = rfx_packing_read(&reader, o * n, n, filter);
        if (status == RFX_OK)
            correct_bias(graph, node, pack_filter(q, o, filter, weights), &bias[o]);
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
    if (!is_dynamic(args->node)) return args->node->attr.int_conv.in_zero;
    const void *zero = rfx_view_at(&args->in[1], 0, 0);
    return args->in[1].type == RFX_TYPE_UINT8 ? *(const uint8_t *)zero : *(const int8_t *)zero;
}

/* Output columns [x0, x1) of one call, computed row by row. */
struct run {
    const struct rfx_run_args *args;
    const struct rfx_int_conv_attr *q;
    const struct rfx_conv_attr *a;
    const struct rfx_tensor *in;
    int64_t x0, x1;
    int32_t zero;                    /* zero point of the input */
    const int32_t *bias;             /* of all output channels */
    char *prepared;                  /* window_rows(a) rows, row iy in slot iy mod window_rows(a) */
    int64_t row_elems, lo;           /* lo: the first input column of a row; may be negative */
    int64_t next;                    /* rows before this one are prepared */
    bool bytes;                      /* elements are uint8, not int16 */
    bool as_they_are;                /* the kernel reads the input itself */
    struct rfx_int_conv_args kernel; /* kernel_args */
};

static size_t elem_bytes(const struct run *r) {
    return r->bytes ? 1 : sizeof(int16_t);
}

/* Returns the address of a slot. The slot after the last one holds a row of padding, if the kernel
 * reads bytes. */
static char *slot_at(const struct run *r, int64_t slot) {
    return r->prepared + (size_t)(slot * r->row_elems) * elem_bytes(r);
}

/* Returns 128 if the elements are int8, which kernels of bytes read as uint8. */
static int shift_of(const struct run *r) {
    return r->in->type == RFX_TYPE_INT8 ? 128 : 0;
}

/* Writes n elements of padding. */
static void pad(const struct run *r, char *to, int64_t n) {
    memset(to, r->bytes ? r->zero + shift_of(r) : 0, (size_t)n * elem_bytes(r));
}

/* Prepares n neighbouring elements. */
static void prepare(const struct run *r, const void *from, char *to, int64_t n) {
    if (!r->bytes) {
        rfx_kernels_of_bytes(r->in->type)->widen(from, r->zero, (int16_t *)(void *)to, n);
        return;
    }
    const uint8_t *restrict elements = from;
    uint8_t *restrict out = (uint8_t *)to;
    if (shift_of(r) == 0)
        memcpy(to, from, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++) out[i] = elements[i] ^ 128;
}

/* Prepares one pixel. Each group's channels are written copies() times. */
static void prepare_pixel(const struct run *r, const void *from, char *to) {
    const int64_t n = copies(r->q), icg = r->a->ic / (n == 1 ? 1 : r->a->groups);
    int64_t made = 0;
    for (int64_t c = 0; c < r->a->ic; c += icg)
        for (int64_t i = 0; i < n; i++, made += icg)
            prepare(r, (const char *)from + c, to + (size_t)made * elem_bytes(r), icg);
    pad(r, to + (size_t)made * elem_bytes(r), prepared_channels(r->q) - made);
}

/* Prepares input row iy. Columns outside of the map become padding. */
static void prepare_row(const struct run *r, int64_t iy, char *to) {
    const struct rfx_view *view = &r->args->in[0];
    int64_t c = r->in->c, width = prepared_channels(r->q), n = r->row_elems / width;
    int64_t first = rfx_min_i64(rfx_max_i64(r->lo, 0), r->lo + n);
    int64_t end = rfx_max_i64(rfx_min_i64(r->lo + n, r->in->w), first);
    const size_t pixel = (size_t)width * elem_bytes(r);
    pad(r, to, (first - r->lo) * width);
    pad(r, to + (size_t)(end - r->lo) * pixel, (r->lo + n - end) * width);
    if (end <= first) return;
    to += (size_t)(first - r->lo) * pixel;
    if (width == c && view->c == c)
        prepare(r, rfx_view_at(view, iy, first), to, (end - first) * c);
    else
        for (int64_t x = first; x < end; x++, to += pixel)
            prepare_pixel(r, rfx_view_at(view, iy, x), to);
}

/* Returns a kernel's address of input row iy, NULL for a row of padding if it skips those. */
static const void *row_at(const struct run *r, int64_t iy) {
    const int64_t slots = window_rows(r->a), first = r->x0 * r->a->sw - r->a->pads.left;
    const bool there = iy >= 0 && iy < r->in->h;
    if (there && r->as_they_are) return rfx_view_at(&r->args->in[0], iy, first);
    if (!there && !r->bytes) return NULL;
    return slot_at(r, there ? iy % slots : slots) +
           (size_t)((first - r->lo) * prepared_channels(r->q)) * elem_bytes(r);
}

/* Prepares the input rows of output row y, and sets rows[kh] to them. */
static void prepare_window(struct run *r, int64_t y, const void **rows) {
    const struct rfx_conv_attr *a = r->a;
    int64_t slots = window_rows(a), top = y * a->sh - a->pads.top;
    for (int64_t iy = rfx_max_i64(rfx_max_i64(top, 0), r->next);
         iy < rfx_min_i64(top + slots, r->in->h); iy++) {
        bool used = (iy - top) % a->dh == 0 || a->sh % a->dh != 0;
        if (used && !r->as_they_are) prepare_row(r, iy, slot_at(r, iy % slots));
        r->next = iy + 1;
    }
    for (int64_t ky = 0; ky < a->kh; ky++) rows[ky] = row_at(r, top + ky * a->dh);
}

/* Returns what the calls of a kernel have in common. */
static struct rfx_int_conv_args kernel_args(const struct run *r) {
    const struct rfx_int_conv_attr *q = r->q;
    const struct rfx_conv_attr *a = r->a;
    return (struct rfx_int_conv_args){.to = {.zero_point = q->out_zero,
                                             .is_signed = q->to == RFX_TYPE_INT8,
                                             .small_scales = q->small_scales},
                                      .pixels = r->x1 - r->x0,
                                      .m = is_depthwise(a) ? a->oc : a->oc / a->groups,
                                      .quads = is_depthwise(a) ? 0 : group_quads(q),
                                      .kh = a->kh,
                                      .kw = kernel_cols(a),
                                      .x_stride = a->sw * prepared_channels(q),
                                      .tap_stride = a->dw * prepared_channels(q),
                                      .out_stride = r->args->out.c};
}

static void compute_row(struct run *r, int64_t y) {
    const struct rfx_conv_attr *a = r->a;
    const struct rfx_int_conv_attr *q = r->q;
    const struct rfx_view *out = &r->args->out;
    const void *rows[MOST_ROWS], *shifted[MOST_ROWS];
    const char *packed = r->args->packed;
    const bool depthwise = is_depthwise(a);
    const int64_t groups = depthwise ? 1 : a->groups, m = r->kernel.m;
    const size_t group = (size_t)(copies(q) * (a->ic / groups)) * elem_bytes(r);
    struct rfx_int_conv_args args = r->kernel;
    args.rows = shifted;
    prepare_window(r, y, rows);
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t ky = 0; ky < a->kh; ky++)
            shifted[ky] = rows[ky] == NULL ? NULL : (const char *)rows[ky] + (size_t)g * group;
        args.weights = packed + weights_bytes_at(a) + g * group_bytes(q);
        args.to.bias = r->bias + g * m;
        args.to.scales = (const float *)(const void *)(packed + weights_bytes_at(a) / 2) + g * m;
        if (q->to == RFX_TYPE_INT32)
            args.sums = (int32_t *)rfx_view_at(out, y, r->x0) + g * m;
        else
            args.out = (uint8_t *)rfx_view_at(out, y, r->x0) + g * m;
        if (!depthwise)
            rfx_kernels()->int_conv(&args);
        else if (r->bytes)
            rfx_kernels()->int_depthwise_bytes(&args);
        else
            rfx_kernels()->int_depthwise(&args);
    }
}

/* Returns whether the kernel can read the input itself: elements of uint8 in pixels without
 * filling, all columns within the map. */
static bool is_prepared(const struct run *r) {
    const struct rfx_view *view = &r->args->in[0];
    const int64_t n = r->row_elems / prepared_channels(r->q);
    return r->bytes && shift_of(r) == 0 && copies(r->q) == 1 && view->c == r->in->c &&
           prepared_channels(r->q) == r->in->c &&
           (is_depthwise(r->a) || (r->a->groups == 1 && joined_channels(r->q) % 4 == 0)) &&
           r->lo >= 0 && r->lo + n <= r->in->w;
}

/* Writes the biases for the zero point of this run to `bias`. */
static const int32_t *correct_biases(const struct rfx_run_args *args, int32_t *bias) {
    const struct rfx_int_conv_attr *q = &args->node->attr.int_conv;
    const int32_t *packed = args->packed;
    const int64_t n = packed_channels(&q->conv);
    uint32_t zero = (uint32_t)in_zero(args);
    if (args->in[0].type == RFX_TYPE_INT8) zero += 128;
    for (int64_t i = 0; i < n; i++) {
        uint32_t own = i < q->conv.oc ? (uint32_t)q->channels[3 * i] : 0;
        bias[i] = (int32_t)(own + (uint32_t)packed[i] * zero);
    }
    return bias;
}

static void compute_unit(const void *user, struct rfx_rect unit, void *scratch) {
    const struct rfx_run_args *args = user;
    const struct rfx_int_conv_attr *q = &args->node->attr.int_conv;
    const struct rfx_conv_attr *a = &q->conv;
    int64_t step = run_cols(q);
    const int32_t *bias = args->packed;
    if (is_dynamic(args->node) && reads_bytes(q))
        bias = correct_biases(args, (int32_t *)(void *)((char *)scratch + prepared_bytes(q)));
    for (int64_t x = unit.x0; x < unit.x1; x += step) {
        struct run r = {.args = args,
                        .q = q,
                        .a = a,
                        .in = &args->graph->nodes[args->node->in[0]].out,
                        .x0 = x,
                        .x1 = rfx_min_i64(x + step, unit.x1),
                        .zero = in_zero(args),
                        .bias = bias,
                        .prepared = scratch,
                        .lo = x * a->sw - a->pads.left,
                        .bytes = reads_bytes(q)};
        r.row_elems = window_cols(a, r.x1 - r.x0) * prepared_channels(q);
        r.as_they_are = is_prepared(&r);
        r.kernel = kernel_args(&r);
        if (r.bytes && (a->pads.top > 0 || a->pads.bottom > 0))
            pad(&r, slot_at(&r, window_rows(a)), r.row_elems);
        for (int64_t y = unit.y0; y < unit.y1; y++) compute_row(&r, y);
    }
}

/* Returns the scratch bytes of a thread: prepared rows, and biases for a zero point of the run. */
static size_t unit_bytes(const struct rfx_node *node) {
    const struct rfx_int_conv_attr *q = &node->attr.int_conv;
    size_t biases = (size_t)packed_channels(&q->conv) * sizeof(int32_t);
    return prepared_bytes(q) + (is_dynamic(node) ? rfx_align_up(biases) : 0);
}

static size_t scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads) {
    (void)graph;
    return (size_t)threads * unit_bytes(node);
}

static void run(const struct rfx_run_args *args) {
    rfx_units_share(args, rfx_units_of_rows(args), unit_bytes(args->node), compute_unit, args);
}

static const struct rfx_weight_slot weight_slots[] = {
    {"weight", RFX_WEIGHT_FACTOR, offsetof(struct rfx_node, attr.conv.weight)},
    {NULL, RFX_WEIGHT_FACTOR, 0},
};

static uint64_t int_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                         struct rfx_rect out) {
    return rfx_conv_macs(graph, node, (uint64_t)rfx_rect_area(out));
}

const struct rfx_op_def rfx_op_int_conv = {
    .name = "QLinearConv",
    .spatial = true,
    .kind = RFX_CLASS_CONVOLUTION,
    .types = RFX_TYPES_OF_BYTES,
    .weights = weight_slots,
    .index_table = channels,
    .infer = infer,
    .window = rfx_conv_window,
    .axis_map = axis_map,
    .macs = rfx_conv_macs,
    .int_macs = int_macs,
    .scratch_bytes = scratch_bytes,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .run = run,
};
