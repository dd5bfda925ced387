/* One op, whole against rectangles. See op_partition.h. */
#include "tests/support/run/op_partition.h"

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

static uint32_t next_random(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

void op_partition_fill(float *x, int64_t n, unsigned seed) {
    for (int64_t i = 0; i < n; i++) x[i] = (float)next_random(&seed) * 0x1p-23f - 1.0f;
}

static void run_op(const struct rfx_graph *graph, int index, const struct rfx_view *in,
                   struct rfx_view out, struct rfx_rect rect, int threads) {
    const struct rfx_node *node = &graph->nodes[index];
    size_t scratch_bytes = rfx_op_scratch_bytes(graph, node, threads);
    void *scratch = aligned_alloc(64, (scratch_bytes + 64) & ~(size_t)63);
    memset(scratch, 0xa5, scratch_bytes);
    void *packed = aligned_alloc(64, (rfx_op_packed_bytes(graph, node) + 64) & ~(size_t)63);
    assert_int_equal(rfx_op_pack(graph, node, packed, NULL), RFX_OK);
    struct rfx_run_args args = {graph, node, in, out, rect, packed, scratch, threads, NULL};
    rfx_op_run(&args);
    free(packed);
    free(scratch);
}

static struct rfx_rect random_rect(int64_t h, int64_t w, unsigned *state) {
    int64_t y0 = (int64_t)next_random(state) % h, x0 = (int64_t)next_random(state) % w;
    return rfx_rect_make(y0, y0 + 1 + (int64_t)next_random(state) % (h - y0), x0,
                         x0 + 1 + (int64_t)next_random(state) % (w - x0));
}

/* A view of exactly `rect` of the map x, a ring of exactly its rows when asked. */
static struct rfx_view exact_view(const float *x, int64_t c, int64_t w, struct rfx_rect rect,
                                  bool ring) {
    size_t n = (size_t)(rfx_rect_area(rect) * c);
    struct rfx_view v = rfx_view_dense(malloc(n == 0 ? 1 : n * sizeof(float)), rect, c);
    if (ring) v.ring_rows = rfx_rect_rows(rect);
    for (int64_t y = rect.y0; y < rect.y1 && n != 0; y++)
        memcpy(rfx_view_f32_at(&v, y, rect.x0), x + (y * w + rect.x0) * c,
               (size_t)(rfx_rect_cols(rect) * c) * sizeof(float));
    return v;
}

static void compare_case(const struct rfx_graph *graph, int index, const float *x,
                         const float *whole, unsigned *state) {
    const struct rfx_node *node = &graph->nodes[index];
    const struct rfx_tensor *in = &graph->nodes[0].out, *out = &node->out;
    struct rfx_rect rect = random_rect(out->h, out->w, state);
    struct rfx_rect full = rfx_rect_full(in->h, in->w);
    struct rfx_rect need = rfx_rect_intersect(rfx_op_in_rect(graph, node, 0, rect), full);
    struct rfx_view view = exact_view(x, in->c, in->w, need, next_random(state) % 2 == 0);
    size_t n = (size_t)(rfx_rect_area(rect) * out->c);
    float *part = malloc(n * sizeof *part);
    run_op(graph, index, &view, rfx_view_dense(part, rect, out->c), rect,
           1 + (int)(next_random(state) % 3));
    int64_t row = rfx_rect_cols(rect) * out->c;
    for (int64_t y = rect.y0; y < rect.y1; y++)
        if (memcmp(part + (y - rect.y0) * row, whole + (y * out->w + rect.x0) * out->c,
                   (size_t)row * sizeof *part) != 0)
            fail_msg("%s: rect {%lld, %lld, %lld, %lld} differs in row %lld",
                     rfx_op_def(node->op)->name, (long long)rect.y0, (long long)rect.y1,
                     (long long)rect.x0, (long long)rect.x1, (long long)y);
    free(part);
    free(view.data);
}

float *op_partition_run(const struct rfx_node *node, int64_t c, int64_t h, int64_t w,
                        const float *x, int cases, unsigned seed, struct rfx_tensor *shape) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph;
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_graph_create(mem, "test", &graph, &err), RFX_OK);
    struct rfx_node input = {.op = RFX_OP_INPUT, .name = "in", .attr.input = {c, h, w}};
    int in, index;
    assert_int_equal(rfx_graph_add(graph, &input, &in, &err), RFX_OK);
    struct rfx_node copy = *node;
    copy.n_in = 1;
    copy.in = &in;
    copy.name = "op";
    if (rfx_graph_add(graph, &copy, &index, &err) != RFX_OK) fail_msg("%s", err.text);
    *shape = graph->nodes[index].out;
    size_t bytes = (size_t)shape->elems * sizeof(float);
    float *whole = malloc(bytes);
    struct rfx_rect full = rfx_node_full_rect(&graph->nodes[index]);
    struct rfx_view view = exact_view(x, c, w, rfx_rect_full(h, w), false);
    run_op(graph, index, &view, rfx_view_dense(whole, full, shape->c), full, 1);
    for (int i = 0; i < cases; i++) compare_case(graph, index, x, whole, &seed);
    free(view.data);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    return whole;
}

void op_partition_expect(const struct rfx_node *node, int64_t c, int64_t h, int64_t w,
                         const float *x, const float *expected, int64_t count) {
    struct rfx_tensor shape;
    float *y = op_partition_run(node, c, h, w, x, 20, 7, &shape);
    assert_int_equal(shape.elems, count);
    for (int64_t i = 0; i < count; i++)
        if (!(y[i] == expected[i]))
            fail_msg("element %lld: %.9g, expected %.9g", (long long)i, (double)y[i],
                     (double)expected[i]);
    free(y);
}
