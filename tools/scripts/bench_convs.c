/* Speed of single convolutions, one thread: GFLOP/s and share of the FMA peak per shape.
 *
 *     ninja bench_convs && ./bench_convs [part of a name] [rounds]
 *
 * Every round measures the peak and then all shapes, so that a machine whose speed moves moves all
 * of them; printed are medians over rounds, and the share is that of the peak of the same round.
 * Only products with values inside the map count. RFX_KERNELS picks the instruction set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "layers/conv/blas.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "layers/graph/op.h"
#include "layers/kernels/kernels.h"

enum { MAX_ROUNDS = 64, SAMPLE_MS = 12 };

struct shape {
    const char *name;
    bool transposed;
    int64_t ic, oc, groups, h, w, kh, kw, s, d, pad_h, pad_w;
};

static const struct shape shapes[] = {
    /* name                          ic   oc  groups h    w   kh kw s  d  pads */
    {"transposed 9x9 s4 56->1", true, 56, 1, 1, 16, 256, 9, 9, 4, 1, 4, 4},
    {"transposed 9x9 s2 32->1", true, 32, 1, 1, 32, 256, 9, 9, 2, 1, 4, 4},
    {"transposed 2x2 s2 128->64", true, 128, 64, 1, 48, 48, 2, 2, 2, 1, 0, 0},
    {"transposed 4x4 s2 64->32", true, 64, 32, 1, 64, 64, 4, 4, 2, 1, 1, 1},
    {"transposed 3x3 s2 64->64", true, 64, 64, 1, 48, 48, 3, 3, 2, 1, 1, 1},
    {"transposed 4x4 s2 64->3", true, 64, 3, 1, 96, 96, 4, 4, 2, 1, 1, 1},
    {"transposed 4x4 s2 64 groups", true, 64, 64, 64, 64, 64, 4, 4, 2, 1, 1, 1},
    {"last 3x3 64->1", false, 64, 1, 1, 32, 256, 3, 3, 1, 1, 1, 1},
    {"last 3x3 64->3", false, 64, 3, 1, 96, 96, 3, 3, 1, 1, 1, 1},
    {"last 9x9 32->3", false, 32, 3, 1, 96, 96, 9, 9, 1, 1, 4, 4},
    {"last 3x3 32->8", false, 32, 8, 1, 96, 96, 3, 3, 1, 1, 1, 1},
    {"last 3x3 12->12", false, 12, 12, 1, 128, 128, 3, 3, 1, 1, 1, 1},
    {"last 1x1 64->2", false, 64, 2, 1, 96, 96, 1, 1, 1, 1, 0, 0},
    {"last 1x1 64->2, small", false, 64, 2, 1, 40, 40, 1, 1, 1, 1, 0, 0},
    {"last 1x1 16->1", false, 16, 1, 1, 128, 128, 1, 1, 1, 1, 0, 0},
    {"last 3x3 s2 32->4", false, 32, 4, 1, 128, 128, 3, 3, 2, 1, 1, 1},
    {"grouped 3x3 32 of 4", false, 128, 128, 32, 56, 56, 3, 3, 1, 1, 1, 1},
    {"grouped 3x3 32 of 8", false, 256, 256, 32, 40, 40, 3, 3, 1, 1, 1, 1},
    {"grouped 3x3 32 of 16", false, 512, 512, 32, 28, 28, 3, 3, 1, 1, 1, 1},
    {"grouped 3x3 s2 32 of 8", false, 256, 256, 32, 56, 56, 3, 3, 2, 1, 1, 1},
    {"grouped 3x3 64 of 2", false, 128, 128, 64, 56, 56, 3, 3, 1, 1, 1, 1},
    {"grouped 3x3 32 of 3", false, 96, 96, 32, 56, 56, 3, 3, 1, 1, 1, 1},
    {"grouped 1x1 8 of 30", false, 240, 240, 8, 28, 28, 1, 1, 1, 1, 0, 0},
    {"multiplier 3x3 32x2", false, 32, 64, 32, 64, 64, 3, 3, 1, 1, 1, 1},
    {"multiplier 3x3 32x4", false, 32, 128, 32, 56, 56, 3, 3, 1, 1, 1, 1},
    {"first 3x3 s2 3->32", false, 3, 32, 1, 256, 256, 3, 3, 2, 1, 1, 1},
    {"first 3x3 3->64", false, 3, 64, 1, 128, 128, 3, 3, 1, 1, 1, 1},
    {"first 7x7 s2 3->64", false, 3, 64, 1, 224, 224, 7, 7, 2, 1, 3, 3},
    {"first 3x3 s2 3->16", false, 3, 16, 1, 256, 256, 3, 3, 2, 1, 1, 1},
    {"first 5x5 1->56", false, 1, 56, 1, 128, 128, 5, 5, 1, 1, 2, 2},
    {"first 4x4 s4 3->96", false, 3, 96, 1, 256, 256, 4, 4, 4, 1, 0, 0},
    {"1x7 64->64", false, 64, 64, 1, 48, 48, 1, 7, 1, 1, 0, 3},
    {"7x1 64->64", false, 64, 64, 1, 48, 48, 7, 1, 1, 1, 3, 0},
    {"dilated 6 3x3 64->64", false, 64, 64, 1, 40, 40, 3, 3, 1, 6, 6, 6},
    {"dilated 12 3x3 64->64", false, 64, 64, 1, 40, 40, 3, 3, 1, 12, 12, 12},
    {"dilated 18 3x3 64->64", false, 64, 64, 1, 40, 40, 3, 3, 1, 18, 18, 18},
    {"depthwise 3x3 96", false, 96, 96, 96, 56, 56, 3, 3, 1, 1, 1, 1},
    {"depthwise 3x3 s2 96", false, 96, 96, 96, 56, 56, 3, 3, 2, 1, 1, 1},
    {"depthwise 3x3 576", false, 576, 576, 576, 14, 14, 3, 3, 1, 1, 1, 1},
    {"depthwise 3x3 dilated 2 96", false, 96, 96, 96, 56, 56, 3, 3, 1, 2, 2, 2},
    {"depthwise 5x5 72", false, 72, 72, 72, 56, 56, 5, 5, 1, 1, 2, 2},
    {"depthwise 5x5 s2 144", false, 144, 144, 144, 56, 56, 5, 5, 2, 1, 2, 2},
    {"depthwise 7x7 96", false, 96, 96, 96, 56, 56, 7, 7, 1, 1, 3, 3},
    {"depthwise 7x7 768", false, 768, 768, 768, 14, 14, 7, 7, 1, 1, 3, 3},
    {"depthwise 3x3 64, small", false, 64, 64, 64, 28, 28, 3, 3, 1, 1, 1, 1},
    {"depthwise 3x3 s2 64, small", false, 64, 64, 64, 40, 40, 3, 3, 2, 1, 1, 1},
    {"depthwise 5x5 s2 64, small", false, 64, 64, 64, 40, 40, 5, 5, 2, 1, 2, 2},
    {"depthwise 3x3 576, small", false, 576, 576, 576, 7, 7, 3, 3, 1, 1, 1, 1},
    {"depthwise 3x3 dilated 2 64", false, 64, 64, 64, 28, 28, 3, 3, 1, 2, 2, 2},
    {"depthwise 3x3 8", false, 8, 8, 8, 128, 128, 3, 3, 1, 1, 1, 1},
    {"depthwise 5x5 6", false, 6, 6, 6, 128, 128, 5, 5, 1, 1, 2, 2},
    {"narrow 3x3 64->8", false, 64, 8, 1, 64, 64, 3, 3, 1, 1, 1, 1},
    {"narrow 3x3 16->16", false, 16, 16, 1, 96, 96, 3, 3, 1, 1, 1, 1},
    {"narrow 3x3 24->24", false, 24, 24, 1, 96, 96, 3, 3, 1, 1, 1, 1},
    {"narrow 1x1 96->16", false, 96, 16, 1, 64, 64, 1, 1, 1, 1, 0, 0},
    {"narrow 1x1 144->24", false, 144, 24, 1, 56, 56, 1, 1, 1, 1, 0, 0},
    {"narrow 3x3 64->48", false, 64, 48, 1, 56, 56, 3, 3, 1, 1, 1, 1},
    {"plain 3x3 64->64", false, 64, 64, 1, 56, 56, 3, 3, 1, 1, 1, 1},
    {"plain 1x1 256->64", false, 256, 64, 1, 28, 28, 1, 1, 1, 1, 0, 0},
    {"dense 3x3 64->64", false, 64, 64, 1, 32, 256, 3, 3, 1, 1, 1, 1},
    {"dense 3x3 128->128", false, 128, 128, 1, 32, 128, 3, 3, 1, 1, 1, 1},
    {"dense 3x3 256->256", false, 256, 256, 1, 32, 64, 3, 3, 1, 1, 1, 1},
    {"dense 3x3 512->512", false, 512, 512, 1, 32, 32, 3, 3, 1, 1, 1, 1},
    {"dense 3x3 512->512, 4 rows", false, 512, 512, 1, 4, 64, 3, 3, 1, 1, 1, 1},
    {"dense 3x3 1024->1024, 4 rows", false, 1024, 1024, 1, 4, 64, 3, 3, 1, 1, 1, 1},
    {"dense 3x3 1024->512", false, 1024, 512, 1, 16, 128, 3, 3, 1, 1, 1, 1},
    {"dense 3x3 s2 128->128", false, 128, 128, 1, 64, 128, 3, 3, 2, 1, 1, 1},
    {"dense 1x1 64->256", false, 64, 256, 1, 32, 256, 1, 1, 1, 1, 0, 0},
    {"dense 1x1 64->256, residual", false, 64, 256, 1, 4, 128, 1, 1, 1, 1, 0, 0},
    {"dense 1x1 256->64", false, 256, 64, 1, 32, 256, 1, 1, 1, 1, 0, 0},
    {"dense 1x1 256->1024", false, 256, 1024, 1, 32, 64, 1, 1, 1, 1, 0, 0},
    {"dense 1x1 1024->256", false, 1024, 256, 1, 32, 64, 1, 1, 1, 1, 0, 0},
    {"dense 1x1 512->2048", false, 512, 2048, 1, 16, 64, 1, 1, 1, 1, 0, 0},
    {"dense 1x1 2048->512", false, 2048, 512, 1, 16, 64, 1, 1, 1, 1, 0, 0},
    {"far 3x3 64->64", false, 64, 64, 1, 256, 256, 3, 3, 1, 1, 1, 1},
    {"far 1x1 256->64", false, 256, 64, 1, 128, 256, 1, 1, 1, 1, 0, 0},
    {"far 1x1 64->256", false, 64, 256, 1, 128, 256, 1, 1, 1, 1, 0, 0},
    {"far 1x1 64->256, residual", false, 64, 256, 1, 128, 256, 1, 1, 1, 1, 0, 0},
    {"far 1x1 512->128", false, 512, 128, 1, 128, 128, 1, 1, 1, 1, 0, 0},
    {"far 1x1 144->32", false, 144, 32, 1, 256, 256, 1, 1, 1, 1, 0, 0},
    {"far depthwise 3x3 96", false, 96, 96, 96, 256, 512, 3, 3, 1, 1, 1, 1},
    {"far depthwise 5x5 240", false, 240, 240, 240, 128, 128, 5, 5, 1, 1, 2, 2},
    {"bands 1x1 16->96", false, 16, 96, 1, 4, 196, 1, 1, 1, 1, 0, 0},
    {"bands 1x1 24->144", false, 24, 144, 1, 4, 140, 1, 1, 1, 1, 0, 0},
    {"bands 1x1 32->192", false, 32, 192, 1, 4, 112, 1, 1, 1, 1, 0, 0},
    {"bands 1x1 96->24", false, 96, 24, 1, 4, 196, 1, 1, 1, 1, 0, 0},
    {"bands 1x1 144->24", false, 144, 24, 1, 4, 140, 1, 1, 1, 1, 0, 0},
    {"bands 1x1 192->32", false, 192, 32, 1, 4, 112, 1, 1, 1, 1, 0, 0},
    {"bands 1x1 32->16", false, 32, 16, 1, 4, 512, 1, 1, 1, 1, 0, 0},
    {"bands 3x3 s2 3->32", false, 3, 32, 1, 8, 512, 3, 3, 2, 1, 1, 1},
    {"bands depthwise 3x3 32", false, 32, 32, 32, 4, 512, 3, 3, 1, 1, 1, 1},
    {"bands depthwise 3x3 s2 96", false, 96, 96, 96, 8, 196, 3, 3, 2, 1, 1, 1},
    {"bands depthwise 3x3 144", false, 144, 144, 144, 4, 140, 3, 3, 1, 1, 1, 1},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

struct layer {
    struct rfx_graph *graph;
    struct rfx_view in[2]; /* and what is added */
    struct rfx_run_args args;
    double flops;
    double gflops[MAX_ROUNDS], share[MAX_ROUNDS];
};

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "bench_convs: %s\n", what);
    exit(1);
}

#define PEAK_CHAINS 12

#define PEAK_LOOP(name, attributes, vector, all_of, fma)                      \
    attributes static float peak_##name(int64_t n) {                          \
        vector sum[PEAK_CHAINS], a = all_of(0.999f), b = all_of(0.001f);      \
        for (int i = 0; i < PEAK_CHAINS; i++) sum[i] = all_of((float)i);      \
        for (int64_t r = 0; r < n; r++)                                       \
            for (int i = 0; i < PEAK_CHAINS; i++) sum[i] = fma(sum[i], a, b); \
        for (int i = 1; i < PEAK_CHAINS; i++) sum[0] += sum[i];               \
        return sum[0][0];                                                     \
    }

typedef float four __attribute__((vector_size(16)));
#define FOUR(x) ((x) - (four){0})
#define FOUR_FMA(x, y, z) ((x) * (y) + (z))
PEAK_LOOP(base, , four, FOUR, FOUR_FMA)
#if defined(__x86_64__)
PEAK_LOOP(avx2, __attribute__((target("avx2,fma"))), __m256, _mm256_set1_ps, _mm256_fmadd_ps)
PEAK_LOOP(avx512, __attribute__((target("avx512f"))), __m512, _mm512_set1_ps, _mm512_fmadd_ps)
#endif

/* GFLOP/s of multiply-adds that wait for nothing. */
static double measure_peak(void) {
    float (*loop)(int64_t) = peak_base;
    int floats = 4;
#if defined(__x86_64__)
    if (strcmp(rfx_kernels()->like, "avx512") == 0) loop = peak_avx512, floats = 16;
    if (strcmp(rfx_kernels()->like, "avx2") == 0) loop = peak_avx2, floats = 8;
#endif
    const int64_t n = 400000;
    double best = 0.0;
    volatile float sink = 0.0f;
    for (int i = 0; i < 5; i++) {
        double t = now();
        sink = sink + loop(n);
        double rate = 2e-9 * (double)n * PEAK_CHAINS * floats / (now() - t);
        if (rate > best) best = rate;
    }
    return best;
}

/* Taps of all output positions of an axis that lie inside the map. */
static int64_t inside(int64_t in, int64_t out, int64_t k, int64_t s, int64_t d, int64_t pad,
                      bool transposed) {
    int64_t count = 0, n = transposed ? in : out, limit = transposed ? out : in;
    for (int64_t i = 0; i < n; i++)
        for (int64_t t = 0; t < k; t++) {
            int64_t at = i * s - pad + t * d;
            count += at >= 0 && at < limit;
        }
    return count;
}

static void *block(size_t bytes) {
    void *p = aligned_alloc(RFX_ALIGNMENT_BYTES, rfx_align_up(bytes) + RFX_ALIGNMENT_BYTES);
    must(p != NULL, "out of memory");
    memset(p, 0, bytes);
    return p;
}

static float *noise(int64_t n) {
    float *x = block(rfx_floats_bytes(n));
    uint32_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-24f - 0.5f;
    }
    return x;
}

static int add_weight(struct rfx_graph *graph, const struct shape *s) {
    struct rfx_weight w = {.source = RFX_WEIGHT_OWNED};
    int64_t outer = s->transposed ? s->ic : s->oc;
    int64_t inner = (s->transposed ? s->oc : s->ic) / s->groups;
    w.shape = (struct rfx_shape){4, {outer, inner, s->kh, s->kw}};
    w.elems = outer * inner * s->kh * s->kw;
    int index = -1;
    must(rfx_graph_add_weight(graph, &w, &index, NULL) == RFX_OK, "a weight");
    float *values = noise(w.elems);
    memcpy(rfx_graph_owned_weight(graph, index), values, rfx_floats_bytes(w.elems));
    free(values);
    return index;
}

/* Whether a map is added to what it makes. */
static bool has_residual(const struct shape *s) {
    return strstr(s->name, "residual") != NULL;
}

static void make_layer(struct rfx_memory *mem, const struct shape *s, struct layer *layer) {
    struct rfx_error err = {{0}};
    must(rfx_graph_create(mem, s->name, &layer->graph, &err) == RFX_OK, err.text);
    struct rfx_node input = {.op = RFX_OP_INPUT, .name = "in", .attr.input = {s->ic, s->h, s->w}};
    int in = -1, index = -1;
    must(rfx_graph_add(layer->graph, &input, &in, &err) == RFX_OK, err.text);
    struct rfx_node node = {.op = s->transposed ? RFX_OP_CONV_TRANSPOSE : RFX_OP_CONV,
                            .name = s->name,
                            .n_in = 1,
                            .in = &in,
                            .act = {.kind = RFX_ACT_RELU, .slope = -1}};
    struct rfx_pads pads = {s->pad_h, s->pad_w, s->pad_h, s->pad_w};
    node.attr.conv = (struct rfx_conv_attr){.kh = s->kh,
                                            .kw = s->kw,
                                            .sh = s->s,
                                            .sw = s->s,
                                            .dh = s->d,
                                            .dw = s->d,
                                            .pads = pads,
                                            .groups = s->groups,
                                            .oc = s->oc,
                                            .bias = -1,
                                            .scale = -1};
    node.attr.conv.weight = add_weight(layer->graph, s);
    must(rfx_graph_add(layer->graph, &node, &index, &err) == RFX_OK, err.text);
    if (has_residual(s)) { /* the layer again, to which a map like its own is added */
        const int both[2] = {in, index};
        node.in = both;
        node.n_in = 2;
        node.residual = true;
        must(rfx_graph_add(layer->graph, &node, &index, &err) == RFX_OK, err.text);
    }
    const struct rfx_node *n = &layer->graph->nodes[index];
    struct rfx_rect full = rfx_node_full_rect(n);
    layer->in[0] = rfx_view_dense(noise(s->ic * s->h * s->w), rfx_rect_full(s->h, s->w), s->ic);
    if (has_residual(s)) layer->in[1] = rfx_view_dense(noise(n->out.elems), full, n->out.c);
    void *packed = block(rfx_op_packed_bytes(layer->graph, n));
    must(rfx_op_pack(layer->graph, n, packed, &err) == RFX_OK, err.text);
    layer->args =
        (struct rfx_run_args){.graph = layer->graph,
                              .node = n,
                              .in = layer->in,
                              .out = rfx_view_dense(block(rfx_node_out_bytes(n)), full, n->out.c),
                              .rect = full,
                              .packed = packed,
                              .scratch = block(rfx_op_scratch_bytes(layer->graph, n, 1)),
                              .threads = 1};
    layer->flops = 2.0 * (double)(s->oc * (s->ic / s->groups)) *
                   (double)inside(s->h, n->out.h, s->kh, s->s, s->d, s->pad_h, s->transposed) *
                   (double)inside(s->w, n->out.w, s->kw, s->s, s->d, s->pad_w, s->transposed);
}

static void sample(struct layer *layer, double peak, int round) {
    rfx_op_run(&layer->args);
    double best = 1e30, start = now();
    for (int runs = 0; runs < 2 || now() - start < 1e-3 * SAMPLE_MS; runs++) {
        double t = now();
        rfx_op_run(&layer->args);
        t = now() - t;
        if (t < best) best = t;
    }
    layer->gflops[round] = 1e-9 * layer->flops / best;
    layer->share[round] = layer->gflops[round] / peak;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, ascending);
    return values[n / 2];
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "";
    int rounds = argc > 2 ? atoi(argv[2]) : 7;
    must(rounds >= 1 && rounds <= MAX_ROUNDS, "1 to 64 rounds");
    must(rfx_kernels()->conv != NULL || rfx_blas_load(NULL) == RFX_OK, "OpenBLAS does not load");
    static struct layer layers[N_SHAPES];
    static double peaks[MAX_ROUNDS];
    struct rfx_memory *mem = rfx_memory_create(0);
    for (int i = 0; i < N_SHAPES; i++)
        if (strstr(shapes[i].name, part) != NULL) make_layer(mem, &shapes[i], &layers[i]);
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < N_SHAPES; i++) {
            if (layers[i].graph == NULL) continue;
            peaks[r] = measure_peak();
            sample(&layers[i], peaks[r], r);
        }
    }
    printf("%s, peak %.1f GFLOP/s\n", rfx_kernels()->name, median(peaks, rounds));
    for (int i = 0; i < N_SHAPES; i++)
        if (layers[i].graph != NULL)
            printf("%-28s %7.1f GFLOP/s %5.1f %%\n", shapes[i].name,
                   median(layers[i].gflops, rounds), 100.0 * median(layers[i].share, rounds));
    return 0;
}
