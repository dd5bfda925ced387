/* Images that are filled up against the same images filled up by hand: what the network itself
 * makes of those, cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/checked.h"
#include "rfexec/run/model.h"
#include "tests/support/run/run_whole.h"

static const struct rfx_tensor *output_of(const struct rfx_graph *graph) {
    return &graph->nodes[graph->outputs[0].node].out;
}

static struct rfx_graph *load(struct rfx_memory *mem, const char *model, int64_t h, int64_t w,
                              struct rfx_fit_size fit) {
    struct rfx_load_options options = {.h = h, .w = w, .fit = fit};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {{0}};
    if (rfx_model_load(mem, model, &options, &graph, &err) != RFX_OK) fail_msg("%s", err.text);
    return graph;
}

/* Every node's output. */
static float **run(const struct rfx_graph *graph, const float *image) {
    struct test_prepared prepared;
    float **outs = calloc((size_t)graph->n_nodes, sizeof *outs);
    assert_non_null(outs);
    assert_true(test_prepare(graph, 1, &prepared));
    test_run_whole(&prepared, image, outs);
    test_prepared_free(&prepared);
    return outs;
}

static void finish(struct rfx_graph *graph, float **outs) {
    test_run_whole_free(graph, outs);
    free(outs);
    rfx_graph_free(graph);
}

/* Where the value of a filled-up row or column comes from; -1: zero. */
static int64_t origin(enum rfx_pad_mode mode, int64_t i, int64_t n) {
    if (i < n) return i;
    if (mode == RFX_PAD_CONSTANT) return -1;
    return mode == RFX_PAD_EDGE ? n - 1 : 2 * (n - 1) - i;
}

static float *fill_up(const float *image, int64_t h, int64_t w, int64_t c, int64_t to_h,
                      int64_t to_w, enum rfx_pad_mode mode) {
    float *filled = calloc((size_t)(to_h * to_w * c), sizeof *filled);
    assert_non_null(filled);
    for (int64_t y = 0; y < to_h; y++)
        for (int64_t x = 0; x < to_w; x++) {
            int64_t from_y = origin(mode, y, h), from_x = origin(mode, x, w);
            for (int64_t k = 0; k < c && from_y >= 0 && from_x >= 0; k++)
                filled[(y * to_w + x) * c + k] = image[(from_y * w + from_x) * c + k];
        }
    return filled;
}

static void check(const char *model, int64_t h, int64_t w, struct rfx_fit_size fit,
                  int64_t want_rows, int64_t want_cols) {
    struct rfx_memory *mem = rfx_memory_create(0);
    int64_t to_h = rfx_ceil_div(h, fit.multiple) * fit.multiple;
    int64_t to_w = rfx_ceil_div(w, fit.multiple) * fit.multiple;
    struct rfx_graph *cut = load(mem, model, h, w, fit);
    struct rfx_graph *whole = load(mem, model, to_h, to_w, (struct rfx_fit_size){0});
    const struct rfx_tensor *input = &cut->nodes[cut->input].out;
    assert_int_equal(input->h, h);
    assert_int_equal(input->w, w);
    float *image = malloc((size_t)input->elems * sizeof *image);
    assert_non_null(image);
    for (int64_t i = 0; i < input->elems; i++) image[i] = (float)(i * 2654435761 % 1009) / 1009.0f;
    float *filled = fill_up(image, h, w, input->c, to_h, to_w, fit.mode);
    float **got = run(cut, image), **want = run(whole, filled);
    const struct rfx_tensor *out = output_of(cut), *all = output_of(whole);
    const float *a = got[cut->outputs[0].node], *b = want[whole->outputs[0].node];
    assert_int_equal(out->h, want_rows);
    assert_int_equal(out->w, want_cols);
    assert_int_equal(out->c, all->c);
    for (int64_t y = 0; y < out->h; y++)
        assert_memory_equal(a + y * out->w * out->c, b + y * all->w * out->c,
                            (size_t)(out->w * out->c) * sizeof *a);
    free(image);
    free(filled);
    finish(cut, got);
    finish(whole, want);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void same_as_by_hand(void **state) {
    (void)state;
    for (int mode = RFX_PAD_CONSTANT; mode <= RFX_PAD_EDGE; mode++) {
        struct rfx_fit_size fit = {16, (enum rfx_pad_mode)mode};
        check("fsrcnn", 13, 32, fit, 26, 64); /* enlarges twice; columns as they are */
        check("deeplab_v3", 17, 23, fit, 17, 23);
    }
    /* a sixteenth: what a part of the image goes into counts */
    check("posenet", 33, 47, (struct rfx_fit_size){32, RFX_PAD_EDGE}, 3, 3);
    /* no map */
    check("mobilenet_v3_small", 30, 31, (struct rfx_fit_size){32, RFX_PAD_EDGE}, 1, 1);
}

/* An image that is too small to be reflected, and one that is not changed at all. */
static void sizes(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options options = {.h = 7, .w = 40, .fit = {16, RFX_PAD_REFLECT}};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {{0}};
    struct rfx_node pad;
    (void)state;
    assert_int_equal(rfx_model_load(mem, "fsrcnn", &options, &graph, &err), RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "must be below the size 7x40"));
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    assert_false(rfx_fit_pad(&options.fit, 32, 16, &pad));
    assert_false(rfx_fit_pad(&(struct rfx_fit_size){0}, 33, 17, &pad));
    assert_true(rfx_fit_pad(&options.fit, 32, 17, &pad));
    assert_int_equal(pad.attr.pad.pads.right, 15);
    assert_int_equal(pad.attr.pad.pads.bottom, 0);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_by_hand), cmocka_unit_test(sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
