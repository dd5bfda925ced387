/* See test_util.h. */
#include "tests/support/test_util.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layers/conv/blas.h"
#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "rfexec/run/model.h"

struct test_rng test_rng_make(uint64_t seed) {
    struct test_rng rng = {seed * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u};
    return rng;
}

uint64_t test_rng_next(struct test_rng *rng) {
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t test_rng_int(struct test_rng *rng, int64_t lo, int64_t hi) {
    return lo + (int64_t)(test_rng_next(rng) % (uint64_t)(hi - lo + 1));
}

float test_rng_float(struct test_rng *rng, float lo, float hi) {
    return lo + (hi - lo) * ((float)(test_rng_next(rng) >> 40) * 0x1p-24f);
}

bool test_rng_chance(struct test_rng *rng, int percent) {
    return test_rng_int(rng, 0, 99) < percent;
}

void test_rng_fill(struct test_rng *rng, float *values, int64_t n, float lo, float hi) {
    for (int64_t i = 0; i < n; i++) values[i] = test_rng_float(rng, lo, hi);
}

void test_rng_specials(struct test_rng *rng, float *values, int64_t n) {
    static const uint32_t specials[] = {0x7fc00000u, 0xffc00000u, 0x7fc12345u, 0xffeabcdeu,
                                        0x7f800000u, 0xff800000u, 0x00000000u, 0x80000000u,
                                        0x00000001u, 0x807fffffu, 0x7f7fffffu, 0xff000000u};
    static const int64_t count = sizeof specials / sizeof *specials;
    for (int64_t i = 0; i < n; i++)
        if (test_rng_chance(rng, 2))
            memcpy(&values[i], &specials[test_rng_int(rng, 0, count - 1)], sizeof *values);
}

int64_t test_env_int(const char *name, int64_t missing) {
    const char *text = getenv(name);
    return text == NULL || *text == '\0' ? missing : strtoll(text, NULL, 0);
}

/* Tests run single nodes too, without the session that would have loaded it. */
__attribute__((constructor)) static void load_openblas(void) {
    struct rfx_error err = {{0}};
    if (rfx_blas_load(&err) != RFX_OK) fprintf(stderr, "%s\n", err.text);
}

enum rfx_conv_choice test_conv_choice(void) {
    enum rfx_conv_choice choice = RFX_CONV_DIRECT;
    const char *name = getenv("RFX_TEST_CONV");
    if (name == NULL || *name == '\0' || rfx_conv_choice_find(name, &choice)) return choice;
    fprintf(stderr, "RFX_TEST_CONV: '%s' is no choice\n", name);
    abort();
}

/* OpenBLAS takes the core type it is told for granted, and ends by an illegal instruction. */
static bool skips_core_type(void) {
    const char *core = getenv("OPENBLAS_CORETYPE");
    if (core == NULL || strcmp(core, "SkylakeX") != 0 || rfx_kernels_find("avx512") != NULL)
        return false;
    fprintf(stderr, "skipped: this processor cannot run OpenBLAS as %s\n", core);
    return true;
}

bool test_skip(void) {
    const char *asked = getenv("RFX_KERNELS");
    if (skips_core_type()) return true;
    if (asked == NULL || *asked == '\0' || rfx_kernels_find(asked) != NULL) return false;
    fprintf(stderr, "skipped: no %s kernels here\n", asked);
    return true;
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double error_of(float got, float want, double floor) {
    if (bits_of(got) == bits_of(want) || (isnan(got) && isnan(want))) return 0.0;
    if (!isfinite(got) || !isfinite(want)) return got == want ? 0.0 : HUGE_VAL;
    return fabs((double)got - (double)want) / fmax(fabs((double)want), floor);
}

static void note(struct test_diff *diff, int64_t i, double error) {
    if (diff->count++ == 0) diff->first = i;
    if (diff->worst >= 0 && error <= diff->worst_error) return;
    diff->worst = i;
    diff->worst_error = error;
}

void test_quiet_nans(float *values, int64_t n) {
    static const uint32_t quiet = 0x7fc00000u;
    for (int64_t i = 0; i < n; i++)
        if (isnan(values[i])) memcpy(&values[i], &quiet, sizeof quiet);
}

bool test_same_bits(const float *got, const float *want, int64_t n, struct test_diff *diff) {
    *diff = (struct test_diff){0, -1, -1, 0.0};
    for (int64_t i = 0; i < n; i++)
        if (bits_of(got[i]) != bits_of(want[i])) note(diff, i, error_of(got[i], want[i], 1e-30));
    return diff->count == 0;
}

bool test_close(const float *got, const float *want, int64_t n, double tolerance, double floor,
                struct test_diff *diff) {
    *diff = (struct test_diff){0, -1, -1, 0.0};
    for (int64_t i = 0; i < n; i++) {
        double error = error_of(got[i], want[i], floor);
        if (error > tolerance) note(diff, i, error);
    }
    return diff->count == 0;
}

void test_print_diff(const char *what, const float *got, const float *want, int64_t n,
                     const struct test_diff *diff) {
    if (diff->count == 0) return;
    int64_t at[2] = {diff->first, diff->worst};
    fprintf(stderr, "%s: %lld of %lld differ", what, (long long)diff->count, (long long)n);
    for (int k = 0; k < 2; k++)
        fprintf(stderr, ", %s [%lld] got %.9g (%08x) want %.9g (%08x)", k == 0 ? "first" : "worst",
                (long long)at[k], (double)got[at[k]], bits_of(got[at[k]]), (double)want[at[k]],
                bits_of(want[at[k]]));
    fprintf(stderr, ", worst relative error %.3g\n", diff->worst_error);
}

static int64_t ordered(float x) {
    int64_t bits = bits_of(x);
    return bits >= 0x80000000 ? 0x80000000 - bits : bits;
}

int64_t test_ulp_distance(float a, float b) {
    if (isnan(a) || isnan(b)) return INT64_MAX;
    int64_t d = ordered(a) - ordered(b);
    return d < 0 ? -d : d;
}

float *test_floats(int64_t n) {
    float *values = malloc((size_t)(n > 0 ? n : 1) * sizeof *values);
    if (values == NULL) {
        fprintf(stderr, "no memory for %lld floats\n", (long long)n);
        abort();
    }
    for (int64_t i = 0; i < n; i++) values[i] = NAN;
    return values;
}

void test_read_weight(const struct rfx_weight *weight, int64_t first, int64_t count, float *out) {
    struct rfx_error err = {""};
    if (rfx_weight_read(weight, first, count, out, &err) == RFX_OK) return;
    fprintf(stderr, "%s\n", err.text);
    abort();
}

void test_nchw_to_nhwc(const float *in, float *out, int64_t c, int64_t h, int64_t w) {
    for (int64_t i = 0; i < c; i++)
        for (int64_t p = 0; p < h * w; p++) out[p * c + i] = in[i * h * w + p];
}

void test_nhwc_to_nchw(const float *in, float *out, int64_t c, int64_t h, int64_t w) {
    for (int64_t i = 0; i < c; i++)
        for (int64_t p = 0; p < h * w; p++) out[i * h * w + p] = in[p * c + i];
}

bool test_same_tensors(const char *what, const struct rfx_tensor *t, void *got, void *want) {
    struct test_diff diff;
    float *left = test_floats(t->elems), *right = test_floats(t->elems);
    if (t->type == RFX_TYPE_FLOAT32) {
        test_quiet_nans(got, t->elems);
        test_quiet_nans(want, t->elems);
    }
    rfx_type_load(t->type, got, t->elems, left);
    rfx_type_load(t->type, want, t->elems, right);
    bool same = test_same_bits(left, right, t->elems, &diff);
    if (!same) test_print_diff(what, left, right, t->elems, &diff);
    free(left);
    free(right);
    return same && memcmp(got, want, rfx_tensor_bytes(t)) == 0;
}

bool test_same_pixels(const struct rfx_view *view, struct rfx_rect rect,
                      const struct rfx_tensor *map, void *want) {
    size_t bytes = rfx_tensor_pixel_bytes(map, 1);
    if (view->type != map->type) return false;
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++) {
            void *got = rfx_view_at(view, y, x),
                 *pixel = (char *)want + (size_t)(y * map->w + x) * bytes;
            if (map->type == RFX_TYPE_FLOAT32) {
                test_quiet_nans(pixel, map->c);
                test_quiet_nans(got, map->c);
            }
            if (memcmp(got, pixel, bytes) != 0) return false;
        }
    return true;
}

void test_copy_rect(const struct rfx_view *from, const struct rfx_view *to, struct rfx_rect rect) {
    if (rfx_rect_is_empty(rect)) return;
    size_t bytes = (size_t)(rfx_rect_cols(rect) * from->c) * rfx_type_bytes(from->type);
    if (from->type != to->type || from->c != to->c) abort();
    for (int64_t y = rect.y0; y < rect.y1; y++)
        memcpy(rfx_view_at(to, y, rect.x0), rfx_view_at(from, y, rect.x0), bytes);
}

static void *aligned_block(size_t bytes) {
    void *block = aligned_alloc(RFX_ALIGNMENT_BYTES, rfx_align_up(bytes > 0 ? bytes : 1));
    if (block == NULL) abort();
    memset(block, 0xff, rfx_align_up(bytes > 0 ? bytes : 1));
    return block;
}

#define GUARD_BYTES 64
#define GUARD 0xa9

/* Runs on a guarded output buffer; what is around the rectangle must keep its bytes. */
static bool run_guarded(const struct rfx_node *node, struct rfx_run_args *args, void *out,
                        struct rfx_rect rect) {
    size_t n = rfx_tensor_pixel_bytes(&node->out, rfx_rect_area(rect));
    unsigned char *buffer = malloc(n + 2 * GUARD_BYTES);
    if (buffer == NULL) abort();
    memset(buffer, GUARD, n + 2 * GUARD_BYTES);
    args->out = rfx_view_of(&node->out, buffer + GUARD_BYTES, rect);
    rfx_op_run(args);
    bool ok = true;
    for (int64_t i = 0; i < GUARD_BYTES; i++)
        ok &= buffer[i] == GUARD && buffer[n + GUARD_BYTES + (size_t)i] == GUARD;
    if (!ok) fprintf(stderr, "node '%s' wrote outside its rectangle\n", node->name);
    struct rfx_view whole = rfx_view_of(&node->out, out, rfx_node_full_rect(node));
    test_copy_rect(&args->out, &whole, rect);
    free(buffer);
    return ok;
}

/* Returns memory for exactly the pixels of `rect`, filled with NaN (other types: -1 or 255). */
static void *exact_pixels(const struct rfx_tensor *t, struct rfx_rect rect) {
    size_t bytes = rfx_tensor_pixel_bytes(t, rfx_rect_area(rect));
    void *pixels = malloc(bytes > 0 ? bytes : 1);
    if (pixels == NULL) abort();
    memset(pixels, 0xff, bytes);
    return pixels;
}

bool test_run_node(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                   float *out, struct rfx_rect rect, int threads) {
    struct rfx_view views[64];
    struct rfx_error err = {{0}};
    if (node->n_in > 64) return false;
    void *packed = aligned_block(rfx_op_packed_bytes(graph, node));
    void *scratch = aligned_block(rfx_op_scratch_bytes(graph, node, threads));
    for (int k = 0; k < node->n_in; k++) {
        const struct rfx_node *from = &graph->nodes[node->in[k]];
        struct rfx_rect full = rfx_node_full_rect(from);
        struct rfx_rect need = rfx_rect_intersect(rfx_op_in_rect(graph, node, k, rect), full);
        if (rfx_rect_is_empty(need)) need = rfx_rect_make(0, 0, 0, 0);
        struct rfx_view whole = rfx_view_of(&from->out, in[k], full);
        views[k] = rfx_view_of(&from->out, exact_pixels(&from->out, need), need);
        test_copy_rect(&whole, &views[k], need);
    }
    bool ok = rfx_op_pack(graph, node, packed, &err) == RFX_OK;
    if (!ok) fprintf(stderr, "pack of '%s': %s\n", node->name, err.text);
    struct rfx_run_args args = {.graph = graph,
                                .node = node,
                                .in = views,
                                .rect = rect,
                                .packed = packed,
                                .scratch = scratch,
                                .threads = threads};
    if (ok) ok = run_guarded(node, &args, out, rect);
    for (int k = 0; k < node->n_in; k++) free(views[k].data);
    free(scratch);
    free(packed);
    return ok;
}

int64_t test_fail_each_allocation(enum rfx_status (*build)(struct rfx_memory *mem, void *context,
                                                           struct rfx_error *err),
                                  void *context) {
    for (int64_t k = 0; k < 100000; k++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        if (mem == NULL) return -1;
        struct rfx_error err = {{0}};
        rfx_memory_fail_after(mem, k);
        enum rfx_status status = build(mem, context, &err);
        size_t left = rfx_memory_current_bytes(mem);
        if (left == 0) rfx_memory_free(mem);
        bool clean = left == 0 && (status == RFX_OK ||
                                   (status == RFX_STATUS_OUT_OF_MEMORY && err.text[0] != '\0'));
        if (!clean) {
            fprintf(stderr, "allocation %lld failing: status %s, text '%s', %zu bytes left\n",
                    (long long)k, rfx_status_name(status), err.text, left);
            return -1;
        }
        if (status == RFX_OK) return k;
    }
    return -1;
}

struct rfx_graph *test_builtin(struct rfx_memory *mem, const char *name, int64_t h, int64_t w,
                               uint64_t seed, const struct rfx_fuse_options *fuse) {
    struct rfx_load_options options = {
        .h = h, .w = w, .seed = seed, .fuse = fuse, .conv = test_conv_choice()};
    struct rfx_error err = {""};
    struct rfx_graph *graph = NULL;
    if (rfx_builtin_build(mem, name, &options, &graph, &err) == RFX_OK) return graph;
    fprintf(stderr, "built-in network: %s\n", err.text);
    abort();
}

uint64_t test_total_macs(const struct rfx_graph *graph) {
    uint64_t macs = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        macs += rfx_op_macs(graph, &graph->nodes[i], rfx_node_full_rect(&graph->nodes[i]));
    return macs;
}

static void must_file(bool done, const char *path) {
    if (done) return;
    perror(path);
    abort();
}

void test_bytes_load(struct test_bytes *bytes, const char *path) {
    FILE *file = fopen(path, "rb");
    must_file(file != NULL, path);
    bytes->count = fread(bytes->data, 1, sizeof bytes->data, file);
    must_file(fclose(file) == 0, path);
}

const char *test_take_text(const char *path) {
    static struct test_bytes bytes;
    test_bytes_load(&bytes, path);
    must_file(bytes.count < sizeof bytes.data && remove(path) == 0, path);
    bytes.data[bytes.count] = '\0';
    return (const char *)bytes.data;
}

void test_bytes_store(const char *path, const void *data, size_t count) {
    (void)unlink(path);
    FILE *file = fopen(path, "wb");
    must_file(file != NULL, path);
    must_file(fwrite(data, 1, count, file) == count, path);
    must_file(fclose(file) == 0, path);
}

int test_files_in(const char *directory) {
    DIR *dir = opendir(directory);
    int count = 0;
    must_file(dir != NULL, directory);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    must_file(closedir(dir) == 0, directory);
    return count;
}
