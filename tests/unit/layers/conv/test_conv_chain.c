/* The promise of every convolution with own kernels, bit by bit: acc = bias; for ky, kx, ic
 * ascending acc = fma(x, w, acc), taps outside the map skipped, long sums in parts; + residual;
 * activation. Held against scalar chains, for every backend; CMake runs it under each instruction
 * set. Rectangles must have the whole run's bits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/conv/conv_backend.h"
#include "tests/support/run/op_cases.h"

static int backends_seen[16];

/* Values of a weight, or NULL where there is none. */
static float *values_of(const struct op_case *c, int weight) {
    if (weight < 0) return NULL;
    int64_t n = c->graph->weights[weight].elems;
    float *v = test_floats(n);
    test_read_weight(&c->graph->weights[weight], 0, n, v);
    return v;
}

struct chain {
    const struct op_case *c;
    const struct rfx_node *node;
    const struct rfx_conv_attr *a;
    bool transposed;
    float *w, *bias, *scale;
};

/* The input position of tap k of output o of an axis; -1: outside the map. */
static int64_t tap_at(bool transposed, int64_t o, int64_t k, int64_t s, int64_t d, int64_t pad,
                      int64_t in) {
    int64_t at = o * s - pad + k * d;
    if (transposed) {
        at = o + pad - k * d;
        if (at < 0 || at % s != 0) return -1;
        at /= s;
    }
    return at >= 0 && at < in ? at : -1;
}

static float weight_of(const struct chain *h, int64_t o, int64_t i, int64_t tap) {
    const struct rfx_conv_attr *a = h->a;
    int64_t icg = a->ic / a->groups, ocg = a->oc / a->groups, taps = a->kh * a->kw;
    int64_t at = h->transposed ? ((o / ocg * icg + i) * ocg + o % ocg) * taps + tap
                               : (o * icg + i) * taps + tap;
    return h->scale == NULL ? h->w[at] : h->w[at] * h->scale[o];
}

/* The taps of an axis that can reach an output: all, or of a transposed layer every so many. */
struct taps {
    int64_t k[16];
    int n;
};

static struct taps taps_of(bool transposed, int64_t o, int64_t kernel, int64_t s, int64_t d,
                           int64_t pad) {
    struct taps taps = {.n = 0};
    assert_in_range(kernel, 1, 16);
    for (int64_t k = 0; k < kernel; k++)
        if (!transposed || (o + pad - k * d) % s == 0) taps.k[taps.n++] = k;
    return taps;
}

enum { LONG = 192, PART = 128 }; /* products: docs/exactness.md */

static bool is_computed_by(const struct chain *h, const char *backend) {
    return strcmp(rfx_conv_backend_of(h->c->graph, h->node)->name, backend) == 0;
}

static bool has_few_outputs(const struct chain *h) {
    if (!h->transposed) return is_computed_by(h, "few-outputs");
    return h->a->groups == 1 && h->a->oc <= 8;
}

/* Long sums, of the taps that can reach an output; a filter per channel and groups of few channels
 * have one chain whatever its length. */
static bool in_parts(const struct chain *h, int64_t taps) {
    const struct rfx_conv_attr *a = h->a;
    if (a->ic / a->groups * taps <= LONG) return false;
    if (h->transposed) return a->groups != a->ic || a->groups != a->oc;
    return is_computed_by(h, "direct") || has_few_outputs(h);
}

/* A part: up to PART / channels taps that follow each other, or PART channels of a tap; of layers
 * of few outputs all of its channels. */
static float parts_at(const struct chain *h, int64_t y, const struct taps *ty, int64_t x,
                      const struct taps *tx, int64_t o, float acc) {
    const struct rfx_conv_attr *a = h->a;
    const struct rfx_tensor *in = &h->c->graph->nodes[h->node->in[0]].out;
    int64_t icg = a->ic / a->groups, g = o / (a->oc / a->groups);
    int64_t together = icg >= PART ? 1 : PART / icg;
    int64_t channels = has_few_outputs(h) ? icg : PART;
    for (int64_t j = 0; j < ty->n; j++)
        for (int64_t k0 = 0; k0 < tx->n; k0 += together)
            for (int64_t i0 = 0; i0 < icg; i0 += channels) {
                float part = 0.0f;
                int products = 0;
                for (int64_t k = k0; k < tx->n && k < k0 + together; k++) {
                    int64_t ky = ty->k[j], kx = tx->k[k];
                    int64_t iy = tap_at(h->transposed, y, ky, a->sh, a->dh, a->pads.top, in->h);
                    int64_t ix = tap_at(h->transposed, x, kx, a->sw, a->dw, a->pads.left, in->w);
                    const float *at = h->c->values[0] + (iy * in->w + ix) * in->c + g * icg;
                    if (iy < 0 || ix < 0) continue;
                    for (int64_t i = i0; i < icg && i < i0 + channels; i++, products++)
                        part = fmaf(at[i], weight_of(h, o, i, ky * a->kw + kx), part);
                }
                if (products > 0) acc = acc + part;
            }
    return acc;
}

static float chain_at(const struct chain *h, int64_t y, int64_t x, int64_t o) {
    const struct rfx_conv_attr *a = h->a;
    const struct rfx_tensor *in = &h->c->graph->nodes[h->node->in[0]].out;
    int64_t icg = a->ic / a->groups, g = o / (a->oc / a->groups);
    float acc = h->bias == NULL ? 0.0f : h->bias[o];
    struct taps ty = taps_of(h->transposed, y, a->kh, a->sh, a->dh, a->pads.top);
    struct taps tx = taps_of(h->transposed, x, a->kw, a->sw, a->dw, a->pads.left);
    if (in_parts(h, (int64_t)ty.n * tx.n)) return parts_at(h, y, &ty, x, &tx, o, acc);
    for (int64_t ky = 0; ky < a->kh; ky++) {
        int64_t iy = tap_at(h->transposed, y, ky, a->sh, a->dh, a->pads.top, in->h);
        for (int64_t kx = 0; iy >= 0 && kx < a->kw; kx++) {
            int64_t ix = tap_at(h->transposed, x, kx, a->sw, a->dw, a->pads.left, in->w);
            const float *at = h->c->values[0] + (iy * in->w + ix) * in->c + g * icg;
            for (int64_t i = 0; ix >= 0 && i < icg; i++)
                acc = fmaf(at[i], weight_of(h, o, i, ky * a->kw + kx), acc);
        }
    }
    return acc;
}

static float *chain_map(const struct op_case *c) {
    const struct rfx_node *node = &c->graph->nodes[c->index];
    const struct rfx_tensor *out = &node->out;
    const struct rfx_conv_attr *a = &node->attr.conv;
    struct chain h = {c,
                      node,
                      a,
                      node->op == RFX_OP_CONV_TRANSPOSE,
                      values_of(c, a->weight),
                      values_of(c, a->bias),
                      values_of(c, a->scale)};
    float *map = test_floats(out->elems);
    for (int64_t e = 0; e < out->elems; e++) {
        map[e] = chain_at(&h, e / out->c / out->w, e / out->c % out->w, e % out->c);
        if (node->residual) map[e] += c->values[1][e];
    }
    rfx_act_apply(&node->act, NULL, map, map, out->h * out->w, out->c);
    free(h.w);
    free(h.bias);
    free(h.scale);
    return map;
}

struct layer {
    bool transposed;
    int64_t ic, oc, groups, h, w, kh, kw, sh, sw, dh, dw;
    struct rfx_pads pads;
    bool residual, bias, scale;
    enum rfx_act_kind act;
};

static void describe(const struct layer *l, uint64_t seed, char *what, size_t size) {
    (void)snprintf(what, size,
                   "seed %llu: {%d, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, "
                   "%lld, {%lld, %lld, %lld, %lld}, %d, %d, %d, %d}",
                   (unsigned long long)seed, l->transposed, (long long)l->ic, (long long)l->oc,
                   (long long)l->groups, (long long)l->h, (long long)l->w, (long long)l->kh,
                   (long long)l->kw, (long long)l->sh, (long long)l->sw, (long long)l->dh,
                   (long long)l->dw, (long long)l->pads.top, (long long)l->pads.left,
                   (long long)l->pads.bottom, (long long)l->pads.right, l->residual, l->bias,
                   l->scale, (int)l->act);
}

static void note_backend(const struct op_case *c) {
    const struct rfx_node *node = &c->graph->nodes[c->index];
    if (node->op != RFX_OP_CONV) return;
    int count;
    const struct rfx_conv_backend *const *backends = rfx_conv_backends(&count);
    for (int i = 0; i < count; i++)
        if (backends[i] == rfx_conv_backend_of(c->graph, node)) backends_seen[i]++;
}

static void check(const struct layer *l, uint64_t seed, int rects) {
    char what[300];
    describe(l, seed, what, sizeof what);
    int64_t oh = (l->h + l->pads.top + l->pads.bottom - l->dh * (l->kh - 1) - 1) / l->sh + 1;
    int64_t ow = (l->w + l->pads.left + l->pads.right - l->dw * (l->kw - 1) - 1) / l->sw + 1;
    const struct rfx_tensor inputs[2] = {rfx_tensor_nhwc(l->ic, l->h, l->w),
                                         rfx_tensor_nhwc(l->oc, oh, ow)};
    const int64_t dims[4] = {l->transposed ? l->ic : l->oc,
                             (l->transposed ? l->oc : l->ic) / l->groups, l->kh, l->kw};
    struct op_case c;
    op_case_begin(&c, l->residual ? 2 : 1, inputs, seed);
    struct rfx_node node = {
        .op = l->transposed ? RFX_OP_CONV_TRANSPOSE : RFX_OP_CONV,
        .act = {l->act, 0.1f, 0.9f, -1},
        .residual = l->residual,
        .attr.conv = {l->kh, l->kw, l->sh, l->sw, l->dh, l->dw, l->pads, 0, 0, l->groups, 0, l->oc,
                      -1, -1, -1},
    };
    node.attr.conv.weight = op_case_weight(&c, 4, dims, -0.5f, 0.5f);
    if (l->bias) node.attr.conv.bias = op_case_weight(&c, 1, &l->oc, -1.0f, 1.0f);
    if (l->scale) node.attr.conv.scale = op_case_weight(&c, 1, &l->oc, 0.5f, 2.0f);
    if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s: %s", what, c.err.text);
    note_backend(&c);
    float *want = chain_map(&c), *got = op_case_whole(&c);
    struct test_diff diff;
    int64_t elems = c.graph->nodes[c.index].out.elems;
    if (!test_same_bits(got, want, elems, &diff)) {
        test_print_diff(what, got, want, elems, &diff);
        fail_msg("%s: not the chain's bits", what);
    }
    free(want);
    free(got);
    op_case_check(&c, 1e-4, rects, what);
    op_case_end(&c);
}

static void skip_without_chains(void) {
    if (rfx_kernels()->conv == NULL) skip(); /* no fused multiply-add: no promise */
}

static const struct layer named[] = {
    /*      ic  oc  g  h   w  kh kw sh sw dh dw  pads          res    bias  scale  act */
    {false, 64, 1, 1, 9, 150, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, false, true, false, RFX_ACT_NONE},
    {false, 20, 3, 1, 12, 97, 9, 9, 1, 1, 1, 1, {4, 4, 4, 4}, true, true, true, RFX_ACT_RELU},
    {false, 33, 7, 1, 14, 70, 3, 5, 2, 3, 2, 1, {1, 2, 3, 4}, true, true, true, RFX_ACT_SIGMOID},
    {false, 5, 8, 1, 11, 40, 3, 3, 1, 2, 1, 2, {2, 2, 2, 2}, false, true, false, RFX_ACT_CLIP},
    {false, 1, 1, 1, 30, 33, 5, 5, 1, 1, 1, 1, {2, 2, 2, 2}, false, true, true, RFX_ACT_NONE},
    {false, 3, 2, 1, 40, 45, 3, 3, 1, 1, 12, 12, {12, 12, 12, 12}, false, true, true, RFX_ACT_RELU},
    {false, 6, 4, 1, 7, 300, 1, 1, 1, 3, 1, 1, {0, 0, 0, 0}, true, false, false, RFX_ACT_NONE},
    {false,
     24,
     24,
     1,
     40,
     45,
     3,
     3,
     1,
     1,
     18,
     18,
     {18, 18, 18, 18},
     true,
     true,
     true,
     RFX_ACT_RELU},
    {false, 16, 16, 1, 20, 75, 3, 3, 1, 1, 6, 6, {6, 6, 6, 6}, false, true, false, RFX_ACT_CLIP},
    {false, 40, 40, 1, 9, 61, 1, 7, 1, 1, 1, 1, {0, 3, 0, 3}, false, true, false, RFX_ACT_SILU},
    {false, 40, 40, 10, 9, 31, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, true, true, true, RFX_ACT_RELU},
    {false, 64, 64, 8, 9, 31, 3, 3, 2, 2, 1, 1, {1, 1, 1, 1}, false, true, true, RFX_ACT_RELU},
    {false, 48, 48, 16, 17, 21, 3, 3, 1, 1, 2, 3, {2, 3, 2, 3}, false, true, true, RFX_ACT_NONE},
    {false, 21, 42, 21, 12, 19, 3, 3, 1, 2, 1, 1, {1, 1, 1, 1}, true, true, true, RFX_ACT_CLIP},
    {false, 13, 65, 13, 12, 19, 5, 3, 1, 1, 1, 1, {1, 1, 1, 1}, false, true, false, RFX_ACT_NONE},
    {false, 50, 50, 50, 23, 29, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, false, true, true, RFX_ACT_RELU},
    {false, 37, 37, 37, 24, 41, 3, 3, 2, 2, 1, 1, {1, 1, 1, 1}, true, true, true, RFX_ACT_SILU},
    {false, 32, 32, 32, 21, 37, 5, 5, 1, 1, 1, 1, {2, 2, 2, 2}, true, true, true, RFX_ACT_CLIP},
    {false, 19, 19, 19, 26, 33, 5, 5, 2, 2, 1, 1, {2, 2, 2, 2}, false, true, true, RFX_ACT_NONE},
    {false, 35, 35, 35, 19, 14, 7, 7, 1, 1, 1, 1, {3, 3, 3, 3}, false, true, false, RFX_ACT_NONE},
    {false, 18, 18, 18, 29, 34, 7, 7, 2, 2, 1, 1, {3, 3, 3, 3}, false, true, false, RFX_ACT_RELU},
    {false, 8, 8, 8, 21, 37, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, false, true, true, RFX_ACT_NONE},
    {false, 3, 3, 3, 21, 37, 5, 5, 2, 2, 1, 1, {2, 2, 2, 2}, false, true, true, RFX_ACT_NONE},
    {false, 16, 16, 16, 3, 3, 7, 7, 1, 1, 1, 1, {3, 3, 3, 3}, false, true, true, RFX_ACT_NONE},
    {false, 150, 40, 1, 7, 33, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, true, true, true, RFX_ACT_RELU},
    {false, 1100, 20, 1, 5, 31, 1, 1, 1, 1, 1, 1, {0, 0, 0, 0}, false, true, true, RFX_ACT_NONE},
    {false, 600, 18, 1, 6, 20, 3, 2, 2, 1, 1, 2, {2, 1, 1, 3}, false, true, false, RFX_ACT_SILU},
    {false, 40, 33, 1, 12, 40, 7, 7, 1, 1, 1, 1, {3, 3, 3, 3}, false, false, true, RFX_ACT_NONE},
    {false, 200, 12, 1, 4, 50, 1, 7, 1, 1, 1, 1, {0, 3, 0, 3}, false, true, false, RFX_ACT_CLIP},
    /* panels that are more than a cache holds: some taps at a time */
    {false, 460, 64, 1, 6, 21, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, true, true, true, RFX_ACT_RELU},
    {false, 470, 32, 1, 5, 19, 3, 3, 1, 1, 2, 3, {2, 3, 2, 3}, false, true, false, RFX_ACT_SILU},
    {false, 1030, 96, 1, 5, 7, 2, 2, 2, 1, 1, 1, {0, 1, 1, 0}, false, true, false, RFX_ACT_CLIP},
    /* more pieces of a sum than the kernel lists at a time */
    {false, 130, 40, 1, 8, 38, 7, 15, 1, 1, 1, 1, {3, 7, 3, 7}, true, true, false, RFX_ACT_RELU},
    {false, 40, 33, 1, 17, 27, 16, 13, 1, 1, 1, 2, {7, 12, 8, 12}, false, true, true, RFX_ACT_NONE},
    {true, 56, 1, 1, 9, 40, 9, 9, 4, 4, 1, 1, {4, 4, 3, 3}, false, true, false, RFX_ACT_NONE},
    {true, 9, 3, 1, 10, 70, 4, 4, 2, 2, 1, 1, {1, 1, 1, 1}, false, true, true, RFX_ACT_SIGMOID},
    {true, 20, 40, 1, 7, 19, 2, 2, 2, 2, 1, 1, {0, 0, 0, 0}, false, true, true, RFX_ACT_RELU},
    {true, 32, 35, 1, 9, 18, 4, 4, 2, 2, 1, 1, {1, 1, 1, 1}, false, true, true, RFX_ACT_SILU},
    {true, 24, 24, 24, 9, 18, 4, 4, 2, 2, 1, 1, {1, 1, 1, 1}, false, true, true, RFX_ACT_RELU},
    {true, 24, 48, 4, 9, 18, 3, 5, 3, 2, 2, 2, {1, 2, 0, 1}, false, true, true, RFX_ACT_RELU},
    {true, 600, 20, 1, 5, 9, 4, 4, 2, 2, 1, 1, {1, 1, 1, 1}, false, true, true, RFX_ACT_RELU},
    {true, 300, 66, 2, 6, 7, 5, 7, 2, 1, 1, 2, {1, 6, 1, 6}, false, true, false, RFX_ACT_NONE},
    {true, 700, 3, 1, 5, 9, 4, 4, 2, 2, 1, 1, {1, 1, 1, 1}, false, true, true, RFX_ACT_SILU},
    {true, 5, 6, 1, 9, 18, 1, 2, 3, 4, 1, 1, {0, 0, 0, 0}, false, true, true, RFX_ACT_RELU},
};

static void test_named_layers(void **state) {
    (void)state;
    skip_without_chains();
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) check(&named[i], i, 12);
}

static struct layer random_layer(struct test_rng *r, uint64_t seed) {
    static const int64_t channels[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 24, 33, 40};
    struct layer l = {.transposed = seed % 4 == 3, .groups = 1};
    l.ic = channels[test_rng_int(r, 0, 13)];
    l.oc = channels[test_rng_int(r, 0, seed % 2 == 0 ? 7 : 13)];
    int64_t kind = test_rng_int(r, 0, 9);
    if (kind < 2) l.groups = l.oc = l.ic; /* depthwise */
    if (kind == 2) {                      /* with multiplier */
        l.groups = l.ic;
        l.oc = l.ic * test_rng_int(r, 2, 5);
    }
    if (kind == 3 || kind == 4) { /* groups of few channels */
        l.groups = test_rng_int(r, 2, 12);
        l.oc = l.groups * test_rng_int(r, 1, 9);
        l.ic = l.groups * test_rng_int(r, 1, 9);
    }
    l.kh = test_rng_int(r, 1, 7);
    l.kw = test_rng_chance(r, 60) ? l.kh : test_rng_int(r, 1, 7);
    l.sh = test_rng_int(r, 1, 3);
    l.sw = test_rng_chance(r, 60) ? l.sh : test_rng_int(r, 1, 3);
    l.dh = test_rng_chance(r, 60) ? 1 : test_rng_int(r, 1, 4);
    l.dw = test_rng_chance(r, 60) ? l.dh : test_rng_int(r, 1, 4);
    l.pads = (struct rfx_pads){test_rng_int(r, 0, 6), test_rng_int(r, 0, 6), test_rng_int(r, 0, 6),
                               test_rng_int(r, 0, 6)};
    l.h = test_rng_int(r, l.dh * (l.kh - 1) + 1, 30);
    l.w = test_rng_int(r, l.dw * (l.kw - 1) + 1, 80);
    if (l.transposed) { /* some of the map must be left */
        l.h = test_rng_int(r, 13, 15);
        l.w = test_rng_int(r, 13, 40);
    }
    l.residual = !l.transposed && test_rng_chance(r, 30);
    l.bias = test_rng_chance(r, 70);
    l.scale = test_rng_chance(r, 50);
    l.act = (enum rfx_act_kind)test_rng_int(r, 0, RFX_ACT_TANH);
    if (l.act == RFX_ACT_PRELU) l.act = RFX_ACT_NONE; /* has a weight of its own: test_op_conv.c */
    return l;
}

static void test_random_layers(void **state) {
    (void)state;
    skip_without_chains();
    for (uint64_t seed = 0; seed < 240; seed++) {
        struct test_rng r = test_rng_make(seed + 31000);
        struct layer l = random_layer(&r, seed);
        check(&l, seed, 6);
    }
}

/* The two tests above went through every backend that promises the chain. */
static void test_all_backends_were_seen(void **state) {
    (void)state;
    skip_without_chains();
    int count;
    const struct rfx_conv_backend *const *backends = rfx_conv_backends(&count);
    assert_in_range(count, 1, 16);
    for (int i = 0; i < count; i++) {
        if (backends[i] == &rfx_conv_openblas || backends[i] == &rfx_conv_few_channels) continue;
        if (backends[i] == &rfx_conv_winograd) continue; /* has roundings of its own */
        print_message("%s: %d layers\n", backends[i]->name, backends_seen[i]);
        assert_in_range(backends_seen[i], 10, 1000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_layers),
        cmocka_unit_test(test_random_layers),
        cmocka_unit_test(test_all_backends_were_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
