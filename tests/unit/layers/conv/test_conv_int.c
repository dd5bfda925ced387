/* INT_CONV against the naive reference, byte for byte: whole maps, and random rectangles with 1 to
 * 3 threads in linear views and ring buffers. Every kind of layer that the operator treats by
 * itself, zero points and sums at the ends of their ranges, exact halves, refusals. RFX_CASES (500)
 * and RFX_SEED (1) choose the random layers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/run/op_cases.h"
#include "tests/support/test_net.h"

enum { RECTS = 4 };

/* One in five is one of the ends. */
static int64_t draw_number(struct test_rng *r, int64_t lo, int64_t hi) {
    if (test_rng_chance(r, 20)) return test_rng_chance(r, 50) ? lo : hi;
    return test_rng_int(r, lo, hi);
}

static int64_t least(enum rfx_type type) {
    return type == RFX_TYPE_UINT8 ? 0 : -128;
}

static enum rfx_type draw_type(struct test_rng *r) {
    return test_rng_chance(r, 50) ? RFX_TYPE_UINT8 : RFX_TYPE_INT8;
}

enum kind {
    DENSE,
    POINTWISE,
    GROUPED, /* some with odd channels per group */
    DEPTHWISE,
    DILATED,
    STRIDED,
    SMALL, /* the map is smaller than the kernel */
    PIXEL, /* a map of one pixel */
    KINDS
};

struct layer {
    struct rfx_int_conv_attr q;
    int64_t h, w;
    enum rfx_type from, weights;
    bool halves; /* a factor by which many sums become exact halves */
    bool same_zero;
    bool computed; /* the zero point of the input is a second input */
    bool narrow;   /* weights minus their zero point are int8 */
    bool large;    /* some factors are so large that sums become larger than an int32 */
};

/* Enlarges the pads below and to the right until the kernel fits the padded map. */
static void make_fit(struct layer *l) {
    struct rfx_conv_attr *a = &l->q.conv;
    int64_t rows = (a->kh - 1) * a->dh + 1 - l->h - a->pads.top - a->pads.bottom,
            cols = (a->kw - 1) * a->dw + 1 - l->w - a->pads.left - a->pads.right;
    if (rows > 0) a->pads.bottom += rows;
    if (cols > 0) a->pads.right += cols;
}

static void draw_window(struct test_rng *r, enum kind kind, struct layer *l) {
    struct rfx_conv_attr *a = &l->q.conv;
    bool dilated = kind == DILATED || test_rng_chance(r, 10), strided = kind == STRIDED;
    a->kh = kind == POINTWISE ? 1 : test_rng_int(r, 1, 5);
    a->kw = kind == POINTWISE ? 1 : test_rng_int(r, 1, 5);
    a->dh = dilated ? test_rng_int(r, 1, 4) : 1;
    a->dw = dilated ? test_rng_int(r, 1, 4) : 1;
    a->sh = strided || dilated || test_rng_chance(r, 20) ? test_rng_int(r, 1, 4) : 1;
    a->sw = strided || dilated || test_rng_chance(r, 20) ? test_rng_int(r, 1, 4) : 1;
    if (strided && test_rng_chance(r, 30)) a->sh = a->kh + 2; /* rows that no output row reads */
    if (test_rng_chance(r, 70))
        a->pads = (struct rfx_pads){test_rng_int(r, 0, a->kh), test_rng_int(r, 0, a->kw),
                                    test_rng_int(r, 0, a->kh), test_rng_int(r, 0, a->kw)};
    l->h = kind == PIXEL ? 1 : test_rng_int(r, 1, 13);
    l->w = kind == PIXEL ? 1 : test_rng_int(r, 1, 19);
    if (kind < SMALL && test_rng_chance(r, 50)) { /* work items of several rows, which share rows */
        l->h = test_rng_int(r, 30, 90);
        l->w = test_rng_int(r, 1, 7);
    }
    if (kind == SMALL) {
        a->kh = l->h + test_rng_int(r, 1, 3);
        a->kw = l->w + test_rng_int(r, 1, 3);
    }
    make_fit(l);
}

static struct layer draw_layer(struct test_rng *r, enum kind kind, int64_t *ic) {
    struct layer l = {.q.conv = rfx_conv_pointwise(test_rng_int(r, 1, 40)),
                      .q.to = draw_type(r),
                      .from = draw_type(r),
                      .weights = draw_type(r),
                      .halves = test_rng_chance(r, 30),
                      .same_zero = test_rng_chance(r, 40),
                      .narrow = test_rng_chance(r, 50),
                      .large = test_rng_chance(r, 10)};
    *ic = test_rng_int(r, 1, test_rng_chance(r, 30) ? 40 : 9);
    draw_window(r, kind, &l);
    if (kind == GROUPED) {
        l.q.conv.groups = test_rng_int(r, 2, 4);
        *ic = l.q.conv.groups * test_rng_int(r, 1, 7);
        l.q.conv.oc = l.q.conv.groups * test_rng_int(r, 1, 19);
    } else if (kind == DEPTHWISE || (kind >= DILATED && test_rng_chance(r, 30))) {
        *ic = test_rng_int(r, 1, 50);
        l.q.conv.groups = l.q.conv.oc = *ic;
    }
    l.q.in_zero = (int32_t)draw_number(r, least(l.from), least(l.from) + 255);
    l.q.out_zero = (int32_t)draw_number(r, least(l.q.to), least(l.q.to) + 255);
    l.computed = test_rng_chance(r, 30);
    if (test_rng_chance(r, 30)) {
        l.q.to = RFX_TYPE_INT32;
        l.q.out_zero = 0;
    }
    return l;
}

/* Draws weights, and zero point, bias and factor of every channel, so that outputs span about the
 * range of a byte. `channels`: 3 * oc numbers. */
static void draw_numbers(struct op_case *c, struct layer *l, int64_t ic, int64_t *channels) {
    struct rfx_conv_attr *a = &l->q.conv;
    const int64_t dims[4] = {a->oc, ic / a->groups, a->kh, a->kw};
    int64_t n = dims[1] * dims[2] * dims[3], lo = least(l->weights), spread = 1;
    int64_t zero = draw_number(&c->rng, lo, lo + 255);
    a->weight = op_case_weight(c, 4, dims, 0.0f, 1.0f);
    float *w = rfx_graph_owned_weight(c->graph, a->weight);
    while (spread * spread < n) spread++;
    for (int64_t o = 0; o < a->oc; o++) {
        float factor = test_rng_float(&c->rng, 0.5f, 4.0f) / (60.0f * (float)spread);
        uint32_t bits;
        if (!l->same_zero) zero = draw_number(&c->rng, lo, lo + 255);
        if (l->narrow) zero = lo + 128;
        for (int64_t i = 0; i < n; i++) {
            w[o * n + i] = (float)draw_number(&c->rng, lo, lo + 255);
            if (l->halves && test_rng_chance(&c->rng, 90)) /* small sums */
                w[o * n + i] = (float)(zero + (zero < lo + 255) - (zero == lo + 255));
        }
        if (l->halves) factor = test_rng_chance(&c->rng, 50) ? 0.5f : 0.03125f;
        if (l->large && test_rng_chance(&c->rng, 30)) factor = 1e30f;
        memcpy(&bits, &factor, sizeof bits);
        channels[3 * o] = test_rng_int(&c->rng, -3000, 3000);
        channels[3 * o + 1] = zero;
        channels[3 * o + 2] = bits;
    }
    l->q.channels = channels;
}

static void check_layer(struct layer l, int64_t ic, uint64_t seed, const char *what) {
    struct op_case c;
    struct rfx_tensor inputs[2] = {rfx_tensor_nhwc(ic, l.h, l.w), rfx_tensor_nhwc(1, 1, 1)};
    struct rfx_node node = {.op = RFX_OP_INT_CONV};
    int64_t *channels = calloc((size_t)l.q.conv.oc, 3 * sizeof *channels);
    assert_non_null(channels);
    inputs[0].type = inputs[1].type = l.from;
    op_case_begin(&c, l.computed ? 2 : 1, inputs, seed);
    draw_numbers(&c, &l, ic, channels);
    node.attr.int_conv = l.q;
    if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s: %s", what, c.err.text);
    assert_int_equal(c.graph->nodes[c.index].out.type, l.q.to);
    op_case_check(&c, 0.0, RECTS, what);
    op_case_end(&c);
    free(channels);
}

static void random_layers(void **state) {
    int64_t cases = test_env_int("RFX_CASES", 500), first = test_env_int("RFX_SEED", 1);
    (void)state;
    for (int64_t i = 0; i < cases; i++) {
        char what[64];
        int64_t ic;
        struct test_rng r = test_rng_make((uint64_t)(first + i));
        struct layer l = draw_layer(&r, (enum kind)((first + i) % KINDS), &ic);
        (void)snprintf(what, sizeof what, "RFX_SEED=%lld RFX_CASES=1", (long long)(first + i));
        check_layer(l, ic, (uint64_t)(first + i), what);
    }
}

/* Packs a layer as `count` shards over bytes that are all `before`, from the last shard on if count
 * is odd. */
static void pack_shards(const struct rfx_graph *graph, const struct rfx_node *node, int64_t count,
                        int before, void *packed) {
    struct rfx_error err = {{0}};
    float *temp = test_floats(RFX_PACK_MIN_TEMP_ELEMS);
    memset(packed, before, rfx_op_packed_bytes(graph, node));
    for (int64_t i = 0; i < count; i++) {
        const int64_t index = count % 2 == 0 ? i : count - 1 - i;
        const struct rfx_pack_part part = {index, count, temp, RFX_PACK_MIN_TEMP_ELEMS};
        assert_int_equal(rfx_op_pack_part(graph, node, packed, &part, &err), RFX_OK);
    }
    free(temp);
}

/* The packed bytes do not depend on the number of shards, nor on what was there before. */
static void shards(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        int64_t ic;
        struct test_rng r = test_rng_make(seed);
        struct layer l = draw_layer(&r, (enum kind)(seed % KINDS), &ic);
        struct op_case c;
        struct rfx_tensor input = rfx_tensor_nhwc(ic, l.h, l.w);
        struct rfx_node node = {.op = RFX_OP_INT_CONV};
        int64_t *channels = calloc((size_t)l.q.conv.oc, 3 * sizeof *channels);
        assert_non_null(channels);
        input.type = l.from;
        op_case_begin(&c, 1, &input, seed);
        draw_numbers(&c, &l, ic, channels);
        node.attr.int_conv = l.q;
        if (op_case_add(&c, &node) != RFX_OK) fail_msg("seed %d: %s", (int)seed, c.err.text);
        const struct rfx_node *made = &c.graph->nodes[c.index];
        const size_t bytes = rfx_op_packed_bytes(c.graph, made);
        void *one = aligned_alloc(RFX_ALIGNMENT_BYTES, bytes),
             *more = aligned_alloc(RFX_ALIGNMENT_BYTES, bytes);
        assert_true(one != NULL && more != NULL);
        pack_shards(c.graph, made, 1, 0xaa, one);
        for (int64_t count = 2; count <= 5; count++) {
            pack_shards(c.graph, made, count, 0x55, more);
            assert_memory_equal(one, more, bytes);
        }
        free(one);
        free(more);
        op_case_end(&c);
        free(channels);
    }
}

/* Rows too wide to be widened at once, and pixels so wide that one column is widened at a time. */
static void wide_rows(void **state) {
    static const struct {
        int64_t c, h, w, k, oc;
    } sizes[] = {
        {200, 5, 150, 3, 200}, {256, 3, 300, 1, 5}, {70, 4, 330, 3, 3}, {22016, 3, 3, 3, 22016}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct layer l = {.q.conv = rfx_conv_pointwise(sizes[i].oc),
                          .q.to = RFX_TYPE_INT8,
                          .q.in_zero = 200,
                          .h = sizes[i].h,
                          .w = sizes[i].w};
        int64_t pad = sizes[i].k / 2;
        l.from = l.weights = RFX_TYPE_UINT8;
        l.q.conv.kh = l.q.conv.kw = sizes[i].k;
        l.q.conv.pads = (struct rfx_pads){pad, pad, pad, pad};
        if (sizes[i].c == sizes[i].oc) l.q.conv.groups = sizes[i].oc;
        check_layer(l, sizes[i].c, i, "wide rows");
    }
}

/* A layer with one output channel that sums `ic` products on one pixel, with this bias. */
static struct rfx_node add_of(const struct test_net *net, int64_t ic, float weight,
                              int64_t channels[3]) {
    const struct rfx_weight weights = {
        .source = RFX_WEIGHT_FILLED, .lo = weight, .shape = {4, {1, ic, 1, 1}}, .elems = ic};
    const float one = 1.0f;
    uint32_t bits;
    struct rfx_node node = {.op = RFX_OP_INT_CONV};
    memcpy(&bits, &one, sizeof bits);
    channels[2] = bits;
    node.attr.int_conv = (struct rfx_int_conv_attr){
        .conv = rfx_conv_pointwise(1), .to = RFX_TYPE_INT8, .channels = channels};
    assert_int_equal(
        rfx_graph_add_weight(net->graph, &weights, &node.attr.int_conv.conv.weight, NULL), RFX_OK);
    return node;
}

static int add_bytes(const struct test_net *net, enum rfx_type type) {
    return test_net_put(net, (struct rfx_node){.op = RFX_OP_CONVERT, .attr.convert.to = type}, 0,
                        -1);
}

static void expect(const struct test_net *net, const struct rfx_node *node, int in,
                   enum rfx_status status, const char *words) {
    struct rfx_error err = {{0}};
    int index;
    assert_int_equal(test_net_try(net, *node, in, -1, &index, &err), status);
    if (status != RFX_OK && strstr(err.text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, err.text);
}

/* Accepted up to |bias| + products = 2^31 - 1. */
static void sums_of_32_bits(void **state) {
    (void)state;
    static const char *const words = "may leave the range of 32 bits";
    for (int sign = -1; sign < 2; sign += 2) {
        struct test_net net = test_net_begin(9, 1, 1);
        int64_t channels[3] = {0, 0, 0}, most = INT64_C(0x7fffffff) - 9 * 255 * 255;
        int bytes = add_bytes(&net, RFX_TYPE_UINT8);
        struct rfx_node node = add_of(&net, 9, 255.0f, channels);
        channels[0] = sign * most;
        expect(&net, &node, bytes, RFX_OK, NULL);
        channels[0] = sign * (most + 1);
        expect(&net, &node, bytes, RFX_STATUS_UNSUPPORTED, words);
        test_net_end(&net);
    }
    for (int64_t ic = 33025; ic < 33027; ic++) { /* 33025 * 255 * 255 < 2^31 */
        struct test_net net = test_net_begin(ic, 1, 1);
        int64_t channels[3] = {0, 0, 0};
        struct rfx_node node = add_of(&net, ic, 255.0f, channels);
        expect(&net, &node, add_bytes(&net, RFX_TYPE_UINT8),
               ic == 33025 ? RFX_OK : RFX_STATUS_UNSUPPORTED, words);
        test_net_end(&net);
    }
}

/* The largest sums there are: 33025 products of 255 * 255, or of -255 * 255. */
static void largest_sums(void **state) {
    (void)state;
    enum { IC = 33025 };
    for (int sign = -1; sign < 2; sign += 2) {
        struct test_net net = test_net_begin(IC, 1, 1);
        int64_t channels[3] = {0, 0, 0};
        int bytes = add_bytes(&net, RFX_TYPE_UINT8);
        struct rfx_node node = add_of(&net, IC, 255.0f, channels);
        const float factor = 1.0f / 33554432.0f; /* 2^-25: a sum of nearly 2^31 becomes 64 */
        uint32_t bits;
        struct rfx_error err = {{0}};
        memcpy(&bits, &factor, sizeof bits);
        channels[2] = bits;
        node.attr.int_conv.in_zero = sign < 0 ? 255 : 0;
        int index = test_net_put(&net, node, bytes, -1);
        const struct rfx_node *made = &net.graph->nodes[index];
        unsigned char *pixel = malloc(IC);
        int8_t out = 0;
        void *packed = aligned_alloc(RFX_ALIGNMENT_BYTES, rfx_op_packed_bytes(net.graph, made)),
             *scratch =
                 aligned_alloc(RFX_ALIGNMENT_BYTES, rfx_op_scratch_bytes(net.graph, made, 1));
        assert_true(pixel != NULL && packed != NULL && scratch != NULL);
        memset(pixel, sign < 0 ? 0 : 255, IC);
        assert_int_equal(rfx_op_pack(net.graph, made, packed, &err), RFX_OK);
        const struct rfx_rect one = rfx_rect_full(1, 1);
        const struct rfx_view in = rfx_view_of(&net.graph->nodes[bytes].out, pixel, one);
        const struct rfx_run_args args = {.graph = net.graph,
                                          .node = made,
                                          .in = &in,
                                          .out = rfx_view_of(&made->out, &out, one),
                                          .rect = one,
                                          .packed = packed,
                                          .scratch = scratch,
                                          .threads = 1};
        rfx_op_run(&args);
        assert_int_equal(out, sign * 64);
        free(pixel);
        free(packed);
        free(scratch);
        test_net_end(&net);
    }
}

static void refusals(void **state) {
    (void)state;
    struct test_net net = test_net_begin(3, 4, 4);
    int64_t channels[3] = {0, 0, 0};
    int bytes[2] = {add_bytes(&net, RFX_TYPE_UINT8), add_bytes(&net, RFX_TYPE_INT8)};
    const struct rfx_node good = add_of(&net, 3, 1.0f, channels);
    struct rfx_node node = good;
    expect(&net, &node, bytes[0], RFX_OK, NULL);
    node.attr.int_conv.to = RFX_TYPE_FLOAT32;
    expect(&net, &node, bytes[0], RFX_STATUS_UNSUPPORTED, "to float32");
    node.attr.int_conv.to = RFX_TYPE_INT32;
    expect(&net, &node, bytes[0], RFX_OK, NULL);
    node.attr.int_conv.out_zero = 1;
    expect(&net, &node, bytes[0], RFX_STATUS_UNSUPPORTED, "zero point 1 of sums");
    int index;
    struct rfx_error err = {{0}};
    assert_int_equal(test_net_try(&net, good, bytes[0], bytes[0], &index, &err),
                     RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "a zero point of 48 elements, not 1"));
    static const struct {
        enum rfx_type to;
        int32_t zero;
        const char *words;
    } zeros[] = {{RFX_TYPE_UINT8, 256, "zero point 256 of uint8"},
                 {RFX_TYPE_UINT8, -1, "zero point -1 of uint8"},
                 {RFX_TYPE_INT8, 128, "zero point 128 of int8"},
                 {RFX_TYPE_INT8, -129, "zero point -129 of int8"}};
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        node = good;
        node.attr.int_conv.to = zeros[i].to;
        node.attr.int_conv.out_zero = zeros[i].zero;
        expect(&net, &node, bytes[0], RFX_STATUS_UNSUPPORTED, zeros[i].words);
        node = good;
        node.attr.int_conv.in_zero = zeros[i].zero;
        expect(&net, &node, bytes[i / 2], RFX_STATUS_UNSUPPORTED, zeros[i].words);
    }
    static const struct {
        int64_t bias, zero;
        float factor;
        const char *words;
    } wrong[] = {{INT64_C(1) << 31, 0, 1.0f, "bias 2147483648"},
                 {-(INT64_C(1) << 31) - 1, 0, 1.0f, "bias -2147483649"},
                 {0, 256, 1.0f, "zero point 256 of channel 0"},
                 {0, -129, 1.0f, "zero point -129 of channel 0"},
                 {0, 0, 0.0f, "factor 0 of channel 0"},
                 {0, 0, -1.0f, "factor -1 of channel 0"},
                 {0, 0, HUGE_VALF, "factor inf of channel 0"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint32_t bits;
        memcpy(&bits, &wrong[i].factor, sizeof bits);
        channels[0] = wrong[i].bias;
        channels[1] = wrong[i].zero;
        channels[2] = bits;
        expect(&net, &good, bytes[0], RFX_STATUS_UNSUPPORTED, wrong[i].words);
    }
    const struct rfx_weight taps = {
        .source = RFX_WEIGHT_FILLED, .shape = {4, {1, 3, 2, 2}}, .elems = 12};
    const int64_t far = 1 << 21; /* taps of which the rows between have 2^42 pixels */
    node = good;
    node.attr.conv.kh = node.attr.conv.kw = 2;
    node.attr.conv.dh = node.attr.conv.dw = far;
    node.attr.conv.pads = (struct rfx_pads){far, far, far, far};
    assert_int_equal(rfx_graph_add_weight(net.graph, &taps, &node.attr.conv.weight, NULL), RFX_OK);
    expect(&net, &node, bytes[0], RFX_STATUS_UNSUPPORTED,
           "a window of 2097153x2097153 with 3 channels");
    test_net_end(&net);
}

/* Inputs of other types become uint8, the first type that the operator takes. */
static void float_inputs_are_converted(void **state) {
    (void)state;
    struct test_net net = test_net_begin(3, 4, 4);
    int64_t channels[3] = {0, 0, 0};
    const struct rfx_node node = add_of(&net, 3, 1.0f, channels);
    int index = test_net_put(&net, node, 0, -1);
    const struct rfx_node *before = &net.graph->nodes[net.graph->nodes[index].in[0]];
    assert_int_equal(before->op, RFX_OP_CONVERT);
    assert_int_equal(before->out.type, RFX_TYPE_UINT8);
    test_net_end(&net);
}

/* A filter longer than the temporary buffer is packed from memory of its own, or refused. */
static void long_filters(void **state) {
    (void)state;
    enum { IC = RFX_PACK_MIN_TEMP_ELEMS + 7 };
    struct test_net net = test_net_begin(IC, 1, 1);
    int64_t channels[3] = {5, 7, 0};
    int bytes = add_bytes(&net, RFX_TYPE_UINT8);
    const struct rfx_node layer = add_of(&net, IC, 100.0f, channels);
    const struct rfx_node *node = &net.graph->nodes[test_net_put(&net, layer, bytes, -1)];
    size_t size = rfx_op_packed_bytes(net.graph, node);
    void *packed = aligned_alloc(RFX_ALIGNMENT_BYTES, size),
         *again = aligned_alloc(RFX_ALIGNMENT_BYTES, size);
    float *temp = aligned_alloc(RFX_ALIGNMENT_BYTES, RFX_PACK_MIN_TEMP_ELEMS * sizeof *temp);
    const struct rfx_pack_part part = {0, 1, temp, RFX_PACK_MIN_TEMP_ELEMS};
    struct rfx_error err = {{0}};
    assert_true(packed != NULL && again != NULL && temp != NULL);
    assert_int_equal(rfx_op_pack(net.graph, node, packed, &err), RFX_OK);
    rfx_memory_fail_after(net.mem, 0);
    assert_int_equal(rfx_op_pack_part(net.graph, node, again, &part, &err),
                     RFX_STATUS_OUT_OF_MEMORY);
    assert_non_null(strstr(err.text, "packing a filter"));
    rfx_memory_fail_after(net.mem, -1);
    assert_int_equal(rfx_op_pack_part(net.graph, node, again, &part, &err), RFX_OK);
    assert_memory_equal(packed, again, size);
    free(packed);
    free(again);
    free(temp);
    test_net_end(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_layers),
                                       cmocka_unit_test(shards),
                                       cmocka_unit_test(wide_rows),
                                       cmocka_unit_test(sums_of_32_bits),
                                       cmocka_unit_test(largest_sums),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(float_inputs_are_converted),
                                       cmocka_unit_test(long_filters)};
    if (test_skip()) return TEST_SKIPPED;
    return cmocka_run_group_tests_name("conv_int", tests, NULL, NULL);
}
