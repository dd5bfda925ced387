/* The integer kernels of every instruction set this processor has, byte by byte against scalar
 * loops: convolutions of random shapes with the largest values, conversions between float32 and
 * elements of one byte, and the addition of two quantised maps. */
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
#include "layers/kernels/kernels.h"
#include "tests/support/test_util.h"

enum { MOST_ROWS = 9, GUARD = 64, UNTOUCHED = 77 };

static const char *const variants[] = {"base", "avx2", "avxvnni", "avx512", "avx512vnni", "neon"};

static void *allocate(int64_t bytes) {
    void *p = malloc((size_t)bytes + 1);
    assert_non_null(p);
    return p;
}

static void *allocate_aligned(int64_t bytes) {
    void *p = aligned_alloc(RFX_ALIGNMENT_BYTES, rfx_align_up((size_t)bytes));
    assert_non_null(p);
    return p;
}

/* Fills n values of [-255, 255]: any, or only the two ends. */
static void fill(struct test_rng *rng, int16_t *x, int64_t n, bool ends) {
    for (int64_t i = 0; i < n; i++)
        x[i] = (int16_t)(ends ? (test_rng_chance(rng, 50) ? 255 : -255)
                              : test_rng_int(rng, -255, 255));
}

/* Fills n bytes: any, or only the two ends of their type. */
static void fill_bytes(struct test_rng *rng, uint8_t *x, int64_t n, bool ends, bool is_signed) {
    const uint8_t first = is_signed ? 128 : 0, last = is_signed ? 127 : 255;
    for (int64_t i = 0; i < n; i++)
        x[i] =
            (uint8_t)(ends ? (test_rng_chance(rng, 50) ? first : last) : test_rng_int(rng, 0, 255));
}

/* One convolution with its own buffers, which end where the kernel may read no further. */
struct conv {
    struct rfx_int_conv_args args;
    bool depthwise, is_signed;
    bool bytes; /* for kernels of bytes */
    const void *rows[MOST_ROWS];
    void *inputs[MOST_ROWS], *weights;
    int32_t *bias;
    float *scales;
    int64_t out_bytes;
};

/* Picks a scale for sums of up to `largest`: results within the range of a byte, exact halves, or
 * far too small numbers; `wild`: too large ones as well. */
static float pick_scale(struct test_rng *rng, float largest, bool wild) {
    switch (test_rng_int(rng, 0, 5)) {
        case 0:
            return 0.5f;
        case 1:
            return 0.0625f;
        case 2:
            return wild && test_rng_chance(rng, 50) ? 3e38f : 1e-38f;
        default:
            return test_rng_float(rng, 10.0f, wild ? 3000.0f : 300.0f) / largest;
    }
}

static void pick_target(struct test_rng *rng, struct conv *c, int64_t taps) {
    struct rfx_requantise *to = &c->args.to;
    const int64_t filled = rfx_int_conv_filled(c->args.m);
    const int32_t least = c->is_signed ? INT8_MIN : 0, most = c->is_signed ? INT8_MAX : UINT8_MAX;
    to->zero_point = (int32_t)test_rng_int(rng, least, most);
    if (test_rng_chance(rng, 30)) to->zero_point = test_rng_chance(rng, 50) ? least : most;
    if (test_rng_chance(rng, 20)) to->zero_point = 0;
    to->is_signed = c->is_signed;
    to->small_scales = true;
    const bool wild = test_rng_chance(rng, 30);
    c->bias = allocate(filled * 4);
    c->scales = allocate(filled * 4);
    for (int64_t i = 0; i < filled; i++) {
        c->bias[i] = (int32_t)test_rng_int(rng, -300, 300);
        if (test_rng_chance(rng, 10))
            c->bias[i] = test_rng_chance(rng, 50) ? 1500000000 : -1500000000;
        c->scales[i] = pick_scale(rng, 255.0f * 128.0f * sqrtf((float)taps), wild);
        to->small_scales &= c->scales[i] <= RFX_INT_SMALL_SCALE;
    }
    to->bias = c->bias;
    to->scales = c->scales;
}

static void pick_shape(struct test_rng *rng, struct conv *c) {
    struct rfx_int_conv_args *a = &c->args;
    const int64_t filled = rfx_int_conv_filled(a->m = test_rng_int(rng, 1, 70));
    a->pixels = test_rng_int(rng, 1, 40);
    a->quads = test_rng_int(rng, 1, test_rng_chance(rng, 70) ? 5 : 30);
    a->kh = test_rng_int(rng, 1, test_rng_chance(rng, 10) ? MOST_ROWS : 5);
    a->kw = test_rng_int(rng, 1, test_rng_chance(rng, 10) ? MOST_ROWS : 5);
    if (test_rng_chance(rng, 30)) a->kh = a->kw = 3 + 2 * test_rng_int(rng, 0, 1);
    const int64_t least = c->depthwise ? filled : 4 * a->quads;
    a->tap_stride = test_rng_chance(rng, 60) ? least : test_rng_int(rng, least, least + 20);
    a->x_stride = a->tap_stride * test_rng_int(rng, 1, 3);
    if (test_rng_chance(rng, 20)) a->x_stride = test_rng_int(rng, least, 3 * least);
    if (!c->depthwise && test_rng_chance(rng, 20)) a->x_stride = test_rng_int(rng, 1, least);
    a->out_stride = a->m + (test_rng_chance(rng, 50) ? 0 : test_rng_int(rng, 1, 20));
}

static struct conv make_conv(struct test_rng *rng, bool depthwise, bool bytes) {
    struct conv c = {.depthwise = depthwise, .is_signed = test_rng_chance(rng, 50), .bytes = bytes};
    struct rfx_int_conv_args *a = &c.args;
    pick_shape(rng, &c);
    const int64_t filled = rfx_int_conv_filled(a->m), read = depthwise ? filled : 4 * a->quads;
    const int64_t taps = a->kh * a->kw * (depthwise ? 1 : 4 * a->quads), weights = filled * taps;
    const int64_t n = (a->pixels - 1) * a->x_stride + (a->kw - 1) * a->tap_stride + read;
    pick_target(rng, &c, taps);
    const bool ends = test_rng_chance(rng, 20);
    const bool wide = depthwise && !bytes;
    c.weights = allocate_aligned(weights * (wide ? 2 : 1));
    if (wide)
        fill(rng, c.weights, weights, ends);
    else
        fill_bytes(rng, c.weights, weights, ends, true);
    for (int64_t ky = 0; ky < a->kh; ky++) {
        if (test_rng_chance(rng, 15)) continue;
        c.inputs[ky] = allocate(n * (bytes ? 1 : 2));
        if (bytes)
            fill_bytes(rng, c.inputs[ky], n, ends, false);
        else
            fill(rng, c.inputs[ky], n, ends);
        c.rows[ky] = c.inputs[ky];
    }
    a->weights = c.weights;
    c.out_bytes = (a->pixels - 1) * a->out_stride + a->m;
    a->out = allocate(c.out_bytes + GUARD);
    return c;
}

static void free_conv(struct conv *c) {
    for (int i = 0; i < MOST_ROWS; i++) free(c->inputs[i]);
    free(c->weights);
    free(c->bias);
    free(c->scales);
    free(c->args.out);
}

/* Returns the weight of input channel k of a tap for output channel i. */
static int64_t weight_of(const struct conv *c, int64_t i, int64_t ky, int64_t kx, int64_t k) {
    const struct rfx_int_conv_args *a = &c->args;
    const int64_t tap = ky * a->kw + kx, block = i / RFX_INT_LANES, lane = i % RFX_INT_LANES;
    if (c->depthwise) {
        const int64_t at = tap * rfx_int_conv_filled(a->m) + i;
        return c->bytes ? ((const int8_t *)a->weights)[at] : ((const int16_t *)a->weights)[at];
    }
    const int64_t quad = (block * a->kh * a->kw + tap) * a->quads + k / 4, n = c->bytes ? 4 : 2;
    const int8_t *weights = (const int8_t *)a->weights + quad * 4 * RFX_INT_LANES;
    return weights[(k % 4 / n * RFX_INT_LANES + lane) * n + k % n];
}

static int64_t sum_of(const struct conv *c, int64_t p, int64_t i) {
    const struct rfx_int_conv_args *a = &c->args;
    int64_t sum = a->to.bias[i];
    for (int64_t ky = 0; ky < a->kh; ky++)
        for (int64_t kx = 0; kx < a->kw && c->rows[ky] != NULL; kx++) {
            const int64_t first = p * a->x_stride + kx * a->tap_stride;
            for (int64_t k = 0; k < (c->depthwise ? 1 : 4 * a->quads); k++) {
                int64_t at = first + (c->depthwise ? i : k);
                int x = c->bytes ? ((const uint8_t *)c->rows[ky])[at]
                                 : ((const int16_t *)c->rows[ky])[at];
                sum += x * weight_of(c, i, ky, kx, k);
            }
        }
    return sum;
}

/* Returns round(v) + zero_point within [lo, hi], halves rounded to even; NaN counts as 0. */
static int element_of(float v, int32_t zero_point, int32_t lo, int32_t hi) {
    if (isnan(v)) v = 0.0f;
    if (v < (float)(lo - zero_point)) return lo;
    if (v > (float)(hi - zero_point)) return hi;
    return (int)lrintf(v) + zero_point;
}

/* Returns the kernel for a convolution, NULL if this set has none. */
static void (*kernel_of(const struct rfx_kernels *k,
                        const struct conv *c))(const struct rfx_int_conv_args *) {
    if (c->depthwise) return c->bytes ? k->int_depthwise_bytes : k->int_depthwise;
    return k->int_bytes == c->bytes ? k->int_conv : NULL;
}

static void check_conv(const struct rfx_kernels *k, const struct conv *c, uint64_t seed) {
    const struct rfx_int_conv_args *a = &c->args;
    const struct rfx_requantise *to = &a->to;
    memset(a->out, UNTOUCHED, (size_t)(c->out_bytes + GUARD));
    kernel_of(k, c)(a);
    for (int64_t at = 0; at < c->out_bytes + GUARD; at++) {
        int64_t p = at / a->out_stride, i = at % a->out_stride;
        uint8_t want = UNTOUCHED;
        if (p < a->pixels && i < a->m)
            want = (uint8_t)element_of((float)(int32_t)sum_of(c, p, i) * to->scales[i],
                                       to->zero_point, to->is_signed ? INT8_MIN : 0,
                                       to->is_signed ? INT8_MAX : UINT8_MAX);
        if (a->out[at] != want)
            fail_msg("%s, seed %llu: channel %lld of %lld of pixel %lld is %d, not %d", k->name,
                     (unsigned long long)seed, (long long)i, (long long)a->m, (long long)p,
                     a->out[at], want);
    }
}

/* The sums themselves, with their biases. */
static void check_sums(const struct rfx_kernels *k, const struct conv *c, uint64_t seed) {
    struct rfx_int_conv_args a = c->args;
    a.sums = allocate((c->out_bytes + GUARD) * 4);
    a.out = NULL;
    for (int64_t at = 0; at < c->out_bytes + GUARD; at++) a.sums[at] = UNTOUCHED;
    kernel_of(k, c)(&a);
    for (int64_t at = 0; at < c->out_bytes + GUARD; at++) {
        int64_t p = at / a.out_stride, i = at % a.out_stride;
        int32_t want = UNTOUCHED;
        if (p < a.pixels && i < a.m) want = (int32_t)sum_of(c, p, i);
        if (a.sums[at] != want)
            fail_msg("%s, seed %llu: sum %lld of %lld of pixel %lld is %d, not %d", k->name,
                     (unsigned long long)seed, (long long)i, (long long)a.m, (long long)p,
                     a.sums[at], want);
    }
    free(a.sums);
}

/* `bytes`: of the kernels of bytes, or else of those of int16. RFX_CASES: fewer of them, for
 * emulators.
 */
static void check_convs(bool depthwise, bool bytes, int64_t cases) {
    const uint64_t seeds = (uint64_t)test_env_int("RFX_CASES", cases);
    for (uint64_t seed = 0; seed < seeds; seed++) {
        struct test_rng rng = test_rng_make(seed);
        struct conv c = make_conv(&rng, depthwise, bytes);
        c.args.rows = c.rows;
        for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
            const struct rfx_kernels *k = rfx_kernels_find(variants[v]);
            if (k == NULL || kernel_of(k, &c) == NULL) continue;
            check_conv(k, &c, seed);
            check_sums(k, &c, seed);
        }
        free_conv(&c);
    }
}

static void test_dense(void **state) {
    (void)state;
    check_convs(false, false, 300);
}

static void skip_without_dot_products_of_bytes(void) {
    bool any = false;
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        const struct rfx_kernels *k = rfx_kernels_find(variants[v]);
        any |= k != NULL && k->int_bytes;
    }
    if (!any) skip();
}

static void test_dense_of_bytes(void **state) {
    (void)state;
    skip_without_dot_products_of_bytes();
    check_convs(false, true, 300);
}

static void test_depthwise_of_bytes(void **state) {
    (void)state;
    skip_without_dot_products_of_bytes();
    check_convs(true, true, 2000);
}

static void test_depthwise(void **state) {
    (void)state;
    check_convs(true, false, 2000);
}

/* Values and results of the kernels of bytes. */
enum { MOST = 200 };
struct bytes {
    const struct rfx_byte_kernels *k;
    bool is_signed;
    int32_t zero_point, least, most;
    int64_t n;
    uint8_t a[MOST], b[MOST], out[MOST + GUARD];
    int16_t wide[MOST + GUARD];
    float x[MOST], y[MOST + GUARD];
};

static int value_of(const struct bytes *t, uint8_t byte) {
    return t->is_signed ? (int8_t)byte : byte;
}

static void expect_element(const struct bytes *t, int64_t i, int want) {
    if (t->out[i] != (uint8_t)want)
        fail_msg("element %lld of %lld is %d, not %d", (long long)i, (long long)t->n,
                 value_of(t, t->out[i]), want);
}

static void check_widen(struct bytes *t) {
    for (int64_t i = 0; i < MOST + GUARD; i++) t->wide[i] = 12345;
    t->k->widen(t->a, t->zero_point, t->wide, t->n);
    for (int64_t i = 0; i < t->n; i++)
        assert_int_equal(t->wide[i], value_of(t, t->a[i]) - t->zero_point);
    for (int64_t i = t->n; i < MOST + GUARD; i++) assert_int_equal(t->wide[i], 12345);
}

static void check_quantise(struct test_rng *rng, struct bytes *t) {
    const float scale = test_rng_chance(rng, 40) ? 0.5f : test_rng_float(rng, 1e-3f, 3.0f);
    static const float odd[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, -0.0f, 1e-40f};
    for (int64_t i = 0; i < t->n; i++) {
        t->x[i] = (float)test_rng_int(rng, -1200, 1200) * 0.25f * (scale == 0.5f ? 1.0f : scale);
        if (test_rng_chance(rng, 5)) t->x[i] = odd[test_rng_int(rng, 0, 6)];
    }
    memset(t->out, UNTOUCHED, sizeof t->out);
    t->k->quantise(t->x, scale, t->zero_point, t->out, t->n);
    for (int64_t i = 0; i < t->n; i++)
        expect_element(t, i, element_of(t->x[i] / scale, t->zero_point, t->least, t->most));
    for (int64_t i = t->n; i < MOST + GUARD; i++) assert_int_equal(t->out[i], UNTOUCHED);
}

static void check_dequantise(struct test_rng *rng, struct bytes *t) {
    const float scale = test_rng_float(rng, 1e-3f, 3.0f);
    for (int64_t i = 0; i < MOST + GUARD; i++) t->y[i] = 1234.0f;
    t->k->dequantise(t->a, scale, t->zero_point, t->y, t->n);
    for (int64_t i = 0; i < t->n; i++) {
        float want = (float)(value_of(t, t->a[i]) - t->zero_point) * scale;
        assert_memory_equal(&t->y[i], &want, sizeof want);
    }
    for (int64_t i = t->n; i < MOST + GUARD; i++) assert_true(t->y[i] == 1234.0f);
}

/* Adds to another map, and in place. */
static void check_add(struct test_rng *rng, struct bytes *t) {
    const bool halves = test_rng_chance(rng, 40), in_place = test_rng_chance(rng, 30);
    const float a_scale = halves ? 0.5f : test_rng_float(rng, 0.0f, 2.0f);
    const float b_scale = halves ? 0.25f : test_rng_float(rng, 0.0f, 2.0f);
    float shift = halves ? 3.0f : test_rng_float(rng, -300.0f, 300.0f);
    if (test_rng_chance(rng, 5)) shift = NAN;
    memset(t->out, UNTOUCHED, sizeof t->out);
    if (in_place) memcpy(t->out, t->a, (size_t)t->n);
    t->k->add(in_place ? t->out : t->a, a_scale, t->b, b_scale, shift, t->out, t->n);
    for (int64_t i = 0; i < t->n; i++) {
        float sum = fmaf((float)value_of(t, t->b[i]), b_scale, shift);
        sum = fmaf((float)value_of(t, t->a[i]), a_scale, sum);
        expect_element(t, i, element_of(sum, 0, t->least, t->most));
    }
    for (int64_t i = t->n; i < MOST + GUARD; i++) assert_int_equal(t->out[i], UNTOUCHED);
}

static void check_bytes(const struct rfx_kernels *k, uint64_t seed) {
    struct test_rng rng = test_rng_make(seed);
    struct bytes t = {.is_signed = seed % 2 != 0, .n = test_rng_int(&rng, 1, MOST)};
    t.k = t.is_signed ? &k->i8 : &k->u8;
    t.least = t.is_signed ? INT8_MIN : 0;
    t.most = t.is_signed ? INT8_MAX : UINT8_MAX;
    t.zero_point = (int32_t)test_rng_int(&rng, t.least, t.most);
    if (test_rng_chance(&rng, 30)) t.zero_point = test_rng_chance(&rng, 50) ? t.least : t.most;
    for (int64_t i = 0; i < t.n; i++) {
        t.a[i] = (uint8_t)test_rng_int(&rng, 0, 255);
        t.b[i] = (uint8_t)test_rng_int(&rng, 0, 255);
    }
    check_widen(&t);
    check_quantise(&rng, &t);
    check_dequantise(&rng, &t);
    check_add(&rng, &t);
}

static void test_bytes(void **state) {
    (void)state;
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        const struct rfx_kernels *k = rfx_kernels_find(variants[v]);
        for (uint64_t seed = 0; k != NULL && seed < 1000; seed++) check_bytes(k, seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense), cmocka_unit_test(test_dense_of_bytes),
        cmocka_unit_test(test_depthwise), cmocka_unit_test(test_depthwise_of_bytes),
        cmocka_unit_test(test_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
