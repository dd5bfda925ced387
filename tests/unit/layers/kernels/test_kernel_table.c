/* The same bits from every instruction set that has fused multiply-add: each kernel of the table on
 * random and special values, the sets of this processor against each other, and against the
 * fingerprints in data/kernel_fingerprints.csv, which were made on another one. NaN count as one.
 *
 * RFX_WRITE_FINGERPRINTS=FILE writes what this processor computes, in the form of that file. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

#include "layers/kernels/kernels.h"
#include "rfexec/output/fingerprint.h"
#include "tests/support/test_util.h"

static const char *const sets[] = {"avx2", "avx512", "neon"};
enum { N_SETS = sizeof sets / sizeof sets[0], N = 4099, MOST = 1 << 16, TABLE_BYTES = 1 << 14 };

struct fixture {
    float x[MOST], y[MOST], w[MOST], out[N_SETS][MOST];
    char table[TABLE_BYTES];
    FILE *write;
    int n_sets, compared;
};

/* Values of activations and weights, with special ones among them; few, so that most sums stay
 * numbers. */
static void fill(float *values, int64_t n, uint64_t seed, bool specials) {
    struct test_rng rng = test_rng_make(seed);
    test_rng_fill(&rng, values, n, -2.0f, 2.0f);
    for (int64_t i = 0; specials && i < n; i += 1 + test_rng_int(&rng, 0, 199))
        test_rng_specials(&rng, values + i, 1 + (n - i) % 7);
}

/* Every kind of bit pattern in the first half, usual sizes in the second. */
static void fill_patterns(float *values, int64_t n, uint64_t seed) {
    struct test_rng rng = test_rng_make(seed);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)test_rng_next(&rng);
        memcpy(&values[i], &bits, sizeof bits);
        if (i >= n / 2) values[i] = test_rng_float(&rng, -8.0f, 8.0f);
    }
    test_rng_specials(&rng, values, n);
}

typedef void run_case(struct fixture *f, const struct rfx_kernels *k, int variant, float *out);

/* Runs one case on every set there is, compares, and looks the fingerprint up in the table. */
static void check(struct fixture *f, const char *name, run_case *run, int variant, int64_t n) {
    const struct rfx_kernels *first = NULL;
    float *want = f->out[0];
    struct test_diff diff;
    for (int s = 0, at = 0; s < N_SETS; s++) {
        const struct rfx_kernels *k = rfx_kernels_find(sets[s]);
        if (k == NULL) continue;
        float *out = f->out[at++];
        for (int64_t i = 0; i < n; i++) out[i] = -77.0f;
        run(f, k, variant, out);
        test_quiet_nans(out, n);
        if (first == NULL) {
            first = k;
        } else if (!test_same_bits(out, want, n, &diff)) {
            test_print_diff(name, out, want, n, &diff);
            fail_msg("%s: %s and %s differ", name, first->name, k->name);
        }
    }
    if (first == NULL) return;
    struct rfx_fingerprint print = {0};
    char hex[RFX_FINGERPRINT_CHARS], line[128];
    rfx_fingerprint_add(&print, RFX_TYPE_FLOAT32, 0, want, n);
    rfx_fingerprint_hex(&print, hex);
    (void)snprintf(line, sizeof line, "\n%s,%s\n", name, hex);
    f->compared++;
    if (f->write != NULL)
        fputs(line + 1, f->write);
    else if (strstr(f->table, line) == NULL)
        fail_msg("%s: %s gives %s, which is not in data/kernel_fingerprints.csv", name, first->name,
                 hex);
}

/* The same for the case "KERNEL NUMBER". */
static void check_number(struct fixture *f, const char *kernel, run_case *run, int number,
                         int64_t n) {
    char name[64];
    (void)snprintf(name, sizeof name, "%s %d", kernel, number);
    check(f, name, run, number, n);
}

static void run_act(struct fixture *f, const struct rfx_kernels *k, int variant, float *out) {
    const struct rfx_act act = {(enum rfx_act_kind)variant, variant == RFX_ACT_CLIP ? -0.7f : 0.3f,
                                0.7f, variant == RFX_ACT_PRELU ? 0 : -1};
    k->act(&act, f->w, f->x, out, 1, N);
}

static void test_activations(void **state) {
    struct fixture *f = *state;
    fill_patterns(f->x, N, 1);
    fill(f->w, N, 2, true);
    for (int kind = 0; kind < RFX_ACT_COUNT; kind++) {
        char name[64];
        (void)snprintf(name, sizeof name, "act %s", rfx_act_def((enum rfx_act_kind)kind)->onnx);
        check(f, name, run_act, kind, N);
    }
}

/* In a third each both operands move, the first stays, the second stays. */
static void run_binary(struct fixture *f, const struct rfx_kernels *k, int variant, float *out) {
    enum rfx_binary_kind kind = (enum rfx_binary_kind)variant;
    k->binary(kind, f->x, 1, f->y, 1, out, N);
    for (int i = 0; i < 7; i++) {
        k->binary(kind, f->x + i, 0, f->y, 1, out + (2 * i + 1) * N, N);
        k->binary(kind, f->x, 1, f->y + i, 0, out + (2 * i + 2) * N, N);
    }
}

static void test_binary(void **state) {
    static const char *const names[] = {
        [RFX_BINARY_ADD] = "add",         [RFX_BINARY_SUB] = "sub",
        [RFX_BINARY_MUL] = "mul",         [RFX_BINARY_DIV] = "div",
        [RFX_BINARY_MAX] = "max",         [RFX_BINARY_MIN] = "min",
        [RFX_BINARY_POW] = "pow",         [RFX_BINARY_MOD] = "mod",
        [RFX_BINARY_GREATER] = "greater", [RFX_BINARY_GREATER_OR_EQUAL] = "greater or equal",
        [RFX_BINARY_LESS] = "less",       [RFX_BINARY_LESS_OR_EQUAL] = "less or equal",
        [RFX_BINARY_EQUAL] = "equal",     [RFX_BINARY_AND] = "and",
        [RFX_BINARY_OR] = "or",           [RFX_BINARY_XOR] = "xor",
        [RFX_BINARY_IF] = "if",           [RFX_BINARY_UNLESS] = "unless",
    };
    static const float firsts[7] = {0.0f, -0.0f, NAN, INFINITY, 1.5f, -3.0f, 1e-40f};
    struct fixture *f = *state;
    fill_patterns(f->x, N, 3);
    fill_patterns(f->y, N, 4);
    for (int i = 0; i < 49; i++) { /* all pairs of zeros and NaN and others, in vectors */
        f->x[i] = firsts[i % 7];
        f->y[i] = firsts[i / 7];
    }
    memcpy(f->x, firsts, sizeof firsts);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "binary %s", names[i]);
        check(f, name, run_binary, (int)i, 15 * N);
    }
}

static void run_epilogue(struct fixture *f, const struct rfx_kernels *k, int variant, float *out) {
    const enum rfx_act_kind kinds[] = {RFX_ACT_NONE, RFX_ACT_RELU, RFX_ACT_CLIP, RFX_ACT_SILU};
    const struct rfx_act act = {kinds[variant % 4], -0.5f, 0.9f, -1};
    const struct rfx_epilogue e = {f->w, NULL, &act, 37};
    memcpy(out, f->x, N * sizeof *out);
    k->epilogue(&e, out, 41, variant >= 4 ? f->y : NULL, 39, 99);
}

static void run_affine(struct fixture *f, const struct rfx_kernels *k, int variant, float *out) {
    k->affine(f->x, f->w, f->y, out, N / variant, variant);
}

static void run_normalise(struct fixture *f, const struct rfx_kernels *k, int variant, float *out) {
    const struct rfx_normalise_args run = {f->x, out,       f->w,        f->w + 64,
                                           f->y, f->y + 64, N / variant, variant};
    k->normalise(&run);
}

/* Each kind of norm: a whole block of pixels and some more, of `variant` channels; then in place.
 */
static void run_channel_norm(struct fixture *f, const struct rfx_kernels *k, int variant,
                             float *out) {
    for (int kind = RFX_NORM_LAYER; kind <= RFX_NORM_L2; kind++) {
        struct rfx_channel_norm_args run = {.x = f->x,
                                            .y = out + kind * 23 * (variant + 1),
                                            .scale = f->w,
                                            .shift = f->y,
                                            .pixels = 23,
                                            .c = variant,
                                            .x_stride = variant + 2,
                                            .y_stride = variant + 1,
                                            .kind = (enum rfx_channel_norm)kind,
                                            .eps = 1e-5};
        k->channel_norm(&run);
        run.x = run.y;
        run.x_stride = run.y_stride;
        run.pixels = 3;
        k->channel_norm(&run);
    }
}

static void run_exp(struct fixture *f, const struct rfx_kernels *k, int variant, float *out) {
    (void)variant;
    k->exp(f->x, 0.25f, out, N);
}

static void test_elementwise(void **state) {
    struct fixture *f = *state;
    fill(f->x, N, 5, true);
    fill(f->y, N, 6, true);
    fill(f->w, N, 7, true);
    for (int variant = 0; variant < 8; variant++)
        check_number(f, "epilogue", run_epilogue, variant, N);
    check_number(f, "affine", run_affine, 3, N - N % 3);
    check_number(f, "affine", run_affine, 53, N - N % 53);
    check_number(f, "normalise", run_normalise, 3, N - N % 3);
    check_number(f, "normalise", run_normalise, 53, N - N % 53);
    check(f, "exp", run_exp, 0, N);
    static const int channels[] = {1, 3, 8, 37, 128, 131, 260};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
        check_number(f, "channel_norm", run_channel_norm, channels[i], 92 * (channels[i] + 1));
}

/* Two rows of 3x3 with a column outside the map, and a 5x4 with rows and columns outside. */
static void run_depthwise(struct fixture *f, const struct rfx_kernels *k, int variant, float *out) {
    int64_t c = variant, in_c = c + 3, out_c = c + 2;
    const float *rows[5] = {f->x, f->x + 60 * in_c, f->x + 120 * in_c, f->x + 180 * in_c, NULL};
    struct rfx_depthwise_args run = {.rows = rows,
                                     .weights = f->w,
                                     .bias = f->y,
                                     .out = out,
                                     .pixels = 23,
                                     .c = c,
                                     .in_c = in_c,
                                     .out_c = out_c,
                                     .n_rows = 2,
                                     .row_step = 1,
                                     .out_row = 23 * out_c,
                                     .kh = 3,
                                     .kw = 3,
                                     .sw = 2,
                                     .dw = 1,
                                     .col0 = 1,
                                     .col1 = 60,
                                     .lo = -INFINITY,
                                     .hi = INFINITY};
    k->depthwise(&run);
    run.out += 46 * out_c;
    run.n_rows = 1;
    run.lo = 0.0f;
    run.hi = 6.0f;
    rows[1] = NULL;
    run.kh = 5;
    run.kw = 4;
    run.dw = 2;
    run.col1 = 47;
    k->depthwise(&run);
}

static void test_depthwise(void **state) {
    static const int channels[] = {1, 3, 8, 19, 32, 37, 67};
    struct fixture *f = *state;
    fill(f->x, MOST, 8, true);
    fill(f->w, MOST, 9, true);
    fill(f->y, MOST, 10, true);
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
        check_number(f, "depthwise", run_depthwise, channels[i], 69 * (channels[i] + 2));
}

static void run_dense(struct fixture *f, const struct rfx_kernels *k, int variant, float *out) {
    const struct rfx_dense_args run = {f->x, f->w, out, 11, variant, variant + 1, 15, 21, variant};
    memcpy(out, f->y, (size_t)(15 * (variant + 1)) * sizeof *out);
    k->dense(&run);
}

#define LONG_CHANNELS 31 /* of 3x3 taps: more than one part of a sum */

/* Three kernel rows of which one is outside, taps [1, 4) of four, with and without a residual, and
 * a sum of several parts. */
static void run_conv(struct fixture *f, const struct rfx_kernels *k, int variant, float *out) {
    if (k->conv == NULL) return;
    const float *rows[3] = {f->x, NULL, f->x + 3001};
    struct rfx_conv_args run = {.rows = rows,
                                .weights = f->w,
                                .bias = f->y,
                                .out = out,
                                .pixels = 31,
                                .m = variant,
                                .ic = 13,
                                .kh = 3,
                                .kw = 4,
                                .kx0 = 1,
                                .kx1 = 4,
                                .x_stride = 26,
                                .tap_stride = 15,
                                .out_stride = variant + 1,
                                .residual_stride = variant,
                                .lo = -INFINITY,
                                .hi = INFINITY};
    k->conv(&run);
    run.out += 31 * (variant + 1);
    run.residual = f->y + 200;
    run.lo = 0.0f;
    run.hi = 6.0f;
    k->conv(&run);
    run.out += 31 * (variant + 1);
    run.ic = LONG_CHANNELS;
    k->conv(&run);
}

/* Three kernel rows of which one is outside, three taps of which two miss some pixels; one
 * part, then several. */
static void run_pixels(struct fixture *f, const struct rfx_kernels *k, int variant, float *out) {
    const float *rows[3] = {f->x + 8, NULL, f->x + 3001};
    const int64_t shift[3] = {-1, 0, 1};
    const struct rfx_range inside[3] = {{1, 41}, {0, 41}, {-3, 40}};
    struct rfx_pixels_args run = {.rows = rows,
                                  .shift = shift,
                                  .inside = inside,
                                  .weights = f->w,
                                  .bias = f->y,
                                  .out = out,
                                  .pixels = 41,
                                  .m = variant,
                                  .ic = 13,
                                  .kh = 3,
                                  .kw = 3,
                                  .plane = 64,
                                  .out_stride = variant + 1,
                                  .residual_stride = variant,
                                  .lo = -INFINITY,
                                  .hi = INFINITY};
    k->pixels(&run);
    run.out += 41 * (variant + 1);
    run.residual = f->y + 200;
    run.lo = 0.0f;
    run.hi = 6.0f;
    k->pixels(&run);
    run.out += 41 * (variant + 1);
    run.ic = LONG_CHANNELS;
    k->pixels(&run);
}

static void run_planes(struct fixture *f, const struct rfx_kernels *k, int variant, float *out) {
    k->planes(f->x, variant + 3, 61, variant, out, 64);
}

/* Every set: planes become pixels, and nothing behind them is written. */
static void test_interleave(void **state) {
    static const char *const all[] = {"base", "avx2", "avx512", "neon"};
    struct fixture *f = *state;
    fill(f->x, MOST, 17, true);
    for (size_t s = 0; s < sizeof all / sizeof all[0]; s++) {
        const struct rfx_kernels *k = rfx_kernels_find(all[s]);
        for (int c = 1; k != NULL && c <= 5; c++)
            for (int pixels = 0; pixels <= 61; pixels++) {
                const int plane = 70, end = pixels * c;
                f->y[end] = 7.0f;
                k->interleave(f->x, plane, c, pixels, f->y);
                for (int at = 0; at < end; at++)
                    assert_memory_equal(&f->y[at], &f->x[at % c * plane + at / c], sizeof(float));
                assert_float_equal(f->y[end], 7.0f, 0.0f);
            }
    }
}

/* As `dense` and `conv`, for the widths of last layers. */
static void test_pixels(void **state) {
    struct fixture *f = *state;
    if (rfx_kernels()->pixels == NULL) skip();
    fill(f->x, MOST, 14, true);
    fill(f->w, MOST, 15, true);
    fill(f->y, MOST, 16, true);
    for (int m = 1; m <= 9; m++) {
        check_number(f, "pixels", run_pixels, m, 123 * (m + 1));
        check_number(f, "planes", run_planes, m, 64 * m);
    }
}

static void test_products(void **state) {
    static const int widths[] = {1, 7, 16, 24, 33, 67, 151};
    struct fixture *f = *state;
    fill(f->x, MOST, 11, true);
    fill(f->w, MOST, 12, true);
    fill(f->y, MOST, 13, true);
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        check_number(f, "dense", run_dense, widths[i], 15 * (widths[i] + 1));
        if (rfx_kernels()->conv == NULL) continue;
        check_number(f, "conv", run_conv, widths[i], 93 * (widths[i] + 1));
    }
}

/* On a processor with such kernels something was compared. */
static void test_something_compared(void **state) {
    const struct fixture *f = *state;
    bool any = false;
    for (int s = 0; s < N_SETS; s++) any |= rfx_kernels_find(sets[s]) != NULL;
    assert_int_equal(f->compared > RFX_ACT_COUNT + 7, any);
}

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    const char *path = getenv("RFX_WRITE_FINGERPRINTS");
    if (f == NULL) return -1;
    *state = f;
    f->table[0] = '\n';
    if (path != NULL) {
        f->write = fopen(path, "w");
        if (f->write == NULL) return -1;
        fputs("kernel,fingerprint\n", f->write);
        return 0;
    }
    FILE *file = fopen(RFX_SOURCE_DIR "/data/kernel_fingerprints.csv", "r");
    if (file == NULL) return -1;
    size_t got = fread(f->table + 1, 1, sizeof f->table - 2, file);
    return fclose(file) == 0 && got < sizeof f->table - 2 ? 0 : -1;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    int bad = f->write != NULL && fclose(f->write) != 0;
    free(f);
    return bad;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations), cmocka_unit_test(test_binary),
        cmocka_unit_test(test_elementwise), cmocka_unit_test(test_depthwise),
        cmocka_unit_test(test_products),    cmocka_unit_test(test_pixels),
        cmocka_unit_test(test_interleave),  cmocka_unit_test(test_something_compared),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
