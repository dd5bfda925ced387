/* One node against the reference and against its own rectangles. See op_cases.h. */
#include "tests/support/run/op_cases.h"

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

#include "layers/core/checked.h"
#include "tests/support/oracle/reference.h"
#include "tests/support/test_util.h"

struct rfx_tensor op_case_plain(struct rfx_shape shape) {
    int64_t elems = 1;
    for (int d = 0; d < shape.rank; d++) elems *= shape.dims[d];
    return rfx_tensor_plain(&shape, elems);
}

/* Replaces the values of a weight by integers of the type; one in five is the least or the largest.
 */
static void fill_with_integers(struct op_case *c, int weight, enum rfx_type type) {
    float *values = rfx_graph_owned_weight(c->graph, weight), lo, hi;
    rfx_type_limits(type, &lo, &hi);
    for (int64_t i = 0; i < c->graph->weights[weight].elems; i++) {
        values[i] = (float)test_rng_int(&c->rng, (int64_t)lo, (int64_t)hi);
        if (test_rng_chance(&c->rng, 20)) values[i] = test_rng_chance(&c->rng, 50) ? lo : hi;
    }
}

/* Adds input k: the constant `node`, converted to the type. */
static void add_input(struct op_case *c, int k, const struct rfx_node *node, enum rfx_type type) {
    struct rfx_node convert = {
        .op = RFX_OP_CONVERT, .name = node->name, .n_in = 1, .attr.convert.to = type};
    if (rfx_graph_add(c->graph, node, &c->in[k], &c->err) != RFX_OK) fail_msg("%s", c->err.text);
    if (type == RFX_TYPE_FLOAT32) return;
    int from = c->in[k];
    convert.in = &from;
    if (rfx_graph_add(c->graph, &convert, &c->in[k], &c->err) != RFX_OK)
        fail_msg("%s", c->err.text);
}

/* Copies the values of input k to `to`, as elements of its tensor's type. */
static void store_input(const struct op_case *c, int k, void *to) {
    const struct rfx_tensor *t = &c->graph->nodes[c->in[k]].out;
    rfx_type_round(t->type, c->values[k], t->elems, to);
}

void op_case_begin(struct op_case *c, int n_in, const struct rfx_tensor *inputs, uint64_t seed) {
    memset(c, 0, sizeof *c);
    c->mem = rfx_memory_create(0);
    c->rng = test_rng_make(seed);
    c->n_in = n_in;
    assert_int_equal(rfx_graph_create(c->mem, "case", &c->graph, &c->err), RFX_OK);
    c->graph->conv = test_conv_choice();
    static const char *const names[OP_CASE_MOST_INPUTS] = {"a", "b", "c"};
    for (int k = 0; k < n_in; k++) {
        const struct rfx_tensor *t = &inputs[k];
        bool map = t->layout == RFX_LAYOUT_NHWC;
        int weight = op_case_weight(c, t->shape.rank, t->shape.dims, -1.0f, 1.0f);
        if (t->type != RFX_TYPE_FLOAT32) fill_with_integers(c, weight, t->type);
        struct rfx_node node = {.op = map ? RFX_OP_CONST_MAP : RFX_OP_CONST_PLAIN,
                                .name = names[k],
                                .attr.constant = {weight, t->shape}};
        add_input(c, k, &node, t->type);
        c->values[k] = test_floats(t->elems);
        c->onnx_order[k] = test_floats(t->elems);
        test_read_weight(&c->graph->weights[weight], 0, t->elems, c->onnx_order[k]);
        if (map) {
            test_nchw_to_nhwc(c->onnx_order[k], c->values[k], t->c, t->h, t->w);
        } else {
            memcpy(c->values[k], c->onnx_order[k], (size_t)t->elems * sizeof(float));
        }
    }
}

void op_case_set(struct op_case *c, int k, const float *values) {
    const struct rfx_node *node = &c->graph->nodes[c->in[k]];
    size_t bytes = (size_t)node->out.elems * sizeof *values;
    assert_int_equal(node->op, RFX_OP_CONST_PLAIN);
    memcpy(rfx_graph_owned_weight(c->graph, node->attr.constant.weight), values, bytes);
    memcpy(c->values[k], values, bytes);
    memcpy(c->onnx_order[k], values, bytes);
}

int op_case_weight(struct op_case *c, int rank, const int64_t *dims, float lo, float hi) {
    struct rfx_weight w = {.source = RFX_WEIGHT_OWNED, .elems = 1};
    int index = -1;
    w.shape.rank = rank;
    for (int i = 0; i < rank; i++) {
        w.shape.dims[i] = dims[i];
        w.elems *= dims[i];
    }
    assert_int_equal(rfx_graph_add_weight(c->graph, &w, &index, &c->err), RFX_OK);
    test_rng_fill(&c->rng, rfx_graph_owned_weight(c->graph, index), w.elems, lo, hi);
    return index;
}

enum rfx_status op_case_add(struct op_case *c, const struct rfx_node *node) {
    struct rfx_node copy = *node;
    copy.n_in = c->n_in;
    copy.in = c->in;
    copy.name = "node";
    return rfx_graph_add(c->graph, &copy, &c->index, &c->err);
}

/* Returns a view of `rect` with margins inside the map of h x w, linear or in a ring of at least
 * its rows, the last rows perhaps as staging rows. Pixels of one-byte elements may be wider than
 * the channels. Only the elements of `values` (NULL: none) that are in `rect` are copied in;
 * elsewhere float32 is NaN, and other types are noise. *elems: of its buffer. */
static struct rfx_view make_view(struct op_case *c, const struct rfx_tensor *t,
                                 struct rfx_rect rect, const void *values, int64_t *elems) {
    struct rfx_rect full = rfx_rect_full(t->h, t->w), wide = rect;
    if (!rfx_rect_is_empty(rect)) {
        wide = rfx_rect_make(
            rect.y0 - test_rng_int(&c->rng, 0, 2), rect.y1 + test_rng_int(&c->rng, 0, 2),
            rect.x0 - test_rng_int(&c->rng, 0, 3), rect.x1 + test_rng_int(&c->rng, 0, 3));
        wide = rfx_rect_intersect(wide, full);
    }
    int64_t pixel = t->c;
    size_t bytes = rfx_type_bytes(t->type);
    if (bytes == 1 && test_rng_chance(&c->rng, 30)) pixel += test_rng_int(&c->rng, 1, 5);
    int64_t rows = rfx_rect_rows(wide), row = rfx_rect_cols(wide) * pixel;
    struct rfx_view v = {.rect = wide,
                         .c = pixel,
                         .row_stride = row + test_rng_int(&c->rng, 0, 1) * 5,
                         .type = t->type};
    if (test_rng_chance(&c->rng, 50)) v.ring_rows = rows = rows + test_rng_int(&c->rng, 0, 3);
    bool staged =
        test_rng_chance(&c->rng, 40) && !rfx_rect_is_empty(wide) && t->layout == RFX_LAYOUT_NHWC;
    if (staged) v.staging_y0 = test_rng_int(&c->rng, wide.y0, wide.y1);
    *elems = (rows + (staged ? wide.y1 - v.staging_y0 : 0)) * v.row_stride;
    v.data = test_floats(*elems);
    if (t->type != RFX_TYPE_FLOAT32)
        for (int64_t i = 0; i < *elems * (int64_t)bytes; i++)
            ((unsigned char *)v.data)[i] = (unsigned char)test_rng_next(&c->rng);
    if (staged) v.staging = (char *)v.data + (size_t)(rows * v.row_stride) * bytes;
    for (int64_t y = rect.y0; values != NULL && !rfx_rect_is_empty(rect) && y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++)
            memcpy(rfx_view_at(&v, y, x),
                   (const char *)values + (size_t)((y * t->w + x) * t->c) * bytes,
                   (size_t)t->c * bytes);
    return v;
}

static void *aligned_block(size_t bytes) {
    void *block =
        aligned_alloc(RFX_ALIGNMENT_BYTES, (bytes / RFX_ALIGNMENT_BYTES + 1) * RFX_ALIGNMENT_BYTES);
    assert_non_null(block);
    memset(block, 0xff, bytes); /* NaN */
    return block;
}

static void *packed_block(struct op_case *c) {
    const struct rfx_node *node = &c->graph->nodes[c->index];
    void *packed = aligned_block(rfx_op_packed_bytes(c->graph, node));
    if (rfx_op_pack(c->graph, node, packed, &c->err) != RFX_OK) fail_msg("%s", c->err.text);
    return packed;
}

static void run(struct op_case *c, const struct rfx_view *in, struct rfx_view out,
                struct rfx_rect rect, const void *packed, int threads) {
    const struct rfx_node *node = &c->graph->nodes[c->index];
    void *scratch = aligned_block(rfx_op_scratch_bytes(c->graph, node, threads));
    struct rfx_run_args args = {c->graph, node, in, out, rect, packed, scratch, threads, NULL};
    rfx_op_run(&args);
    free(scratch);
}

void op_case_refused(const struct rfx_node *node, int n_in, const struct rfx_tensor *inputs,
                     const char *words) {
    struct op_case c;
    op_case_begin(&c, n_in, inputs, 1);
    assert_int_equal(op_case_add(&c, node), RFX_STATUS_UNSUPPORTED);
    if (strstr(c.err.text, words) == NULL) fail_msg("'%s' is not in: %s", words, c.err.text);
    op_case_end(&c);
}

/* Makes dense views of the whole inputs; to be released by free_inputs. */
static void make_inputs(struct op_case *c, struct rfx_view *in) {
    for (int k = 0; k < c->n_in; k++) {
        const struct rfx_tensor *t = &c->graph->nodes[c->in[k]].out;
        in[k] = rfx_view_of(t, test_floats(t->elems), rfx_rect_full(t->h, t->w));
        store_input(c, k, in[k].data);
    }
}

static void free_inputs(const struct op_case *c, const struct rfx_view *in) {
    for (int k = 0; k < c->n_in; k++) free(in[k].data);
}

/* Returns the elements of the whole output, in its type; the caller frees them. */
static void *run_whole(struct op_case *c) {
    const struct rfx_node *node = &c->graph->nodes[c->index];
    struct rfx_view in[OP_CASE_MOST_INPUTS];
    make_inputs(c, in);
    void *out = test_floats(node->out.elems);
    struct rfx_rect full = rfx_node_full_rect(node);
    void *packed = packed_block(c);
    run(c, in, rfx_view_of(&node->out, out, full), full, packed, 1);
    free(packed);
    free_inputs(c, in);
    return out;
}

float *op_case_whole(struct op_case *c) {
    const struct rfx_tensor *t = &c->graph->nodes[c->index].out;
    void *whole = run_whole(c);
    float *values = test_floats(t->elems);
    rfx_type_load(t->type, whole, t->elems, values);
    free(whole);
    return values;
}

/* Checks that the output has the same bytes where it may lie over an input. */
static void check_in_place(struct op_case *c, const void *whole, void *packed, const char *what) {
    const struct rfx_node *node = &c->graph->nodes[c->index];
    const struct rfx_op_def *def = rfx_op_def(node->op);
    struct rfx_rect full = rfx_node_full_rect(node);
    for (int k = 0; k < c->n_in; k++) {
        struct rfx_view in[OP_CASE_MOST_INPUTS];
        if (def->in_place == NULL || !def->in_place(c->graph, node, k)) continue;
        make_inputs(c, in);
        run(c, in, rfx_view_of(&node->out, in[k].data, full), full, packed, 2);
        if (memcmp(in[k].data, whole, rfx_tensor_bytes(&node->out)) != 0)
            fail_msg("%s: differs when it is written over input %d", what, k);
        free_inputs(c, in);
    }
}

static struct rfx_rect random_rect(struct op_case *c, int64_t h, int64_t w) {
    int64_t y0 = test_rng_int(&c->rng, 0, h - 1), x0 = test_rng_int(&c->rng, 0, w - 1);
    return rfx_rect_make(y0, test_rng_int(&c->rng, y0 + 1, h), x0,
                         test_rng_int(&c->rng, x0 + 1, w));
}

/* Checks that the pixels of rect are the whole run's, and that all other bytes of the buffer, whose
 * `bytes` were `before`, have not changed. */
static void compare_rect(const struct rfx_view *out, const struct rfx_tensor *t, size_t bytes,
                         struct rfx_rect rect, const void *whole, unsigned char *before,
                         const char *what) {
    size_t pixel = rfx_tensor_pixel_bytes(t, 1);
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++) {
            const unsigned char *at = rfx_view_at(out, y, x);
            if (memcmp(at, (const char *)whole + (size_t)(y * t->w + x) * pixel, pixel) != 0)
                fail_msg("%s: rect {%lld, %lld, %lld, %lld} differs in row %lld, column %lld", what,
                         (long long)rect.y0, (long long)rect.y1, (long long)rect.x0,
                         (long long)rect.x1, (long long)y, (long long)x);
            memcpy(before + (at - (const unsigned char *)out->data), at, pixel);
        }
    if (memcmp(out->data, before, bytes) != 0) fail_msg("%s: wrote outside its rectangle", what);
}

static void check_rect(struct op_case *c, const void *whole, const void *packed, const char *what) {
    const struct rfx_node *node = &c->graph->nodes[c->index];
    bool maps = node->out.layout == RFX_LAYOUT_NHWC;
    struct rfx_rect rect =
        maps ? random_rect(c, node->out.h, node->out.w) : rfx_node_full_rect(node);
    struct rfx_view in[OP_CASE_MOST_INPUTS], out;
    int64_t elems;
    for (int k = 0; k < c->n_in; k++) {
        const struct rfx_tensor *t = &c->graph->nodes[c->in[k]].out;
        struct rfx_rect need =
            rfx_rect_intersect(rfx_op_in_rect(c->graph, node, k, rect), rfx_rect_full(t->h, t->w));
        void *values = test_floats(t->elems);
        store_input(c, k, values);
        in[k] = make_view(c, t, need, values, &elems);
        free(values);
    }
    out = make_view(c, &node->out, rect, NULL, &elems);
    size_t bytes = (size_t)elems * rfx_type_bytes(node->out.type);
    unsigned char *before = (unsigned char *)test_floats(elems);
    memcpy(before, out.data, bytes);
    run(c, in, out, rect, packed, (int)test_rng_int(&c->rng, 1, 3));
    compare_rect(&out, &node->out, bytes, rect, whole, before, what);
    free(before);
    free(out.data);
    free_inputs(c, in);
}

void op_case_check(struct op_case *c, double tolerance, int rects, const char *what) {
    const struct rfx_node *node = &c->graph->nodes[c->index];
    const struct rfx_tensor *t = &node->out;
    void *whole = run_whole(c);
    float *values = test_floats(t->elems), *order = test_floats(t->elems),
          *want = test_floats(t->elems);
    rfx_type_load(t->type, whole, t->elems, values);
    if (!rfx_ref_node(c->graph, node, c->onnx_order, want)) fail_msg("%s: no reference", what);
    if (t->layout == RFX_LAYOUT_NHWC) {
        test_nhwc_to_nchw(values, order, t->c, t->h, t->w);
    } else {
        memcpy(order, values, (size_t)t->elems * sizeof(float));
    }
    struct test_diff diff;
    if (!test_close(order, want, t->elems, tolerance, 1.0, &diff)) {
        test_print_diff(what, order, want, t->elems, &diff);
        fail_msg("%s: differs from the reference by %g", what, diff.worst_error);
    }
    void *packed = packed_block(c);
    for (int i = 0; i < rects; i++) check_rect(c, whole, packed, what);
    check_in_place(c, whole, packed, what);
    free(packed);
    free(whole);
    free(values);
    free(order);
    free(want);
}

void op_case_end(struct op_case *c) {
    for (int k = 0; k < c->n_in; k++) {
        free(c->values[k]);
        free(c->onnx_order[k]);
    }
    rfx_graph_free(c->graph);
    rfx_memory_free(c->mem);
}
