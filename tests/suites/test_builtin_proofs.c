/* Brute-force proofs on every built-in network.
 *
 * Receptive fields: the definitions of the ops, composed tap by tap along each axis on an image so
 * large that the middle sees no border, against rfx_analysis, layer by layer. Influence: rows and
 * columns of a small image are made NaN, and in every layer exactly the rows and columns become NaN
 * that the definitions name; networks on bytes have no NaN. Costs: MACs counted one by one, and the
 * arena's high water to the byte, untiled, tiled and in row bands, with the same output bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/memory.h"
#include "layers/graph/graph.h"
#include "rf_analysis/analysis.h"
#include "rfexec/image/image_source.h"
#include "rfexec/run/model.h"
#include "rfexec/run/session.h"
#include "tests/support/oracle/influence.h"
#include "tests/support/oracle/poison.h"
#include "tests/support/run/catch_outputs.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_check.h"
#include "tiler/plan/splits.h"

#define LARGE_H 6144 /* the middle sees no border: twice the largest field and more */
#define LARGE_W 6080

/* Rows and columns of a small image: few where each costs much. */
static int64_t small_h(const char *name) {
    if (strcmp(name, "vae_decoder") == 0) return 12;
    return strcmp(name, "real_esrgan") == 0 ? 24 : 96;
}
static int64_t small_w(const char *name) {
    if (strncmp(name, "yolov8n", 7) == 0 || strcmp(name, "ppocr_det") == 0)
        return 64; /* they would pad others with zeros */
    return small_h(name) * 5 / 6;
}

static struct rfx_graph *build(struct rfx_memory *mem, const char *name, int64_t h, int64_t w,
                               bool fused) {
    static const struct rfx_fuse_options nothing = {0};
    struct rfx_load_options options = {.h = h, .w = w, .fuse = fused ? NULL : &nothing};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {{0}};
    if (rfx_builtin_build(mem, name, &options, &graph, &err) != RFX_OK)
        fail_msg("%s at %lld x %lld: %s", name, (long long)h, (long long)w, err.text);
    return graph;
}

/* --- receptive fields --- */

static bool is_local(const struct rfx_node *node, const struct rfx_layer_info *info) {
    return !info->global && node->op != RFX_OP_CONST_MAP && node->op != RFX_OP_CONST_PLAIN;
}

/* Size, jump and padding of one node along one axis against what its middle positions see. */
static void check_field(const char *name, const struct rfx_graph *graph, int i, int axis,
                        const struct rfx_axis_field *field, const struct rfx_range *hulls) {
    const struct rfx_node *node = &graph->nodes[i], *image = &graph->nodes[graph->input];
    int64_t n = axis == 0 ? node->out.h : node->out.w;
    int64_t size = axis == 0 ? image->out.h : image->out.w;
    int64_t step = field->period * field->jump.num / field->jump.den, inside = 0, largest = 0;
    int64_t o = n / 2 / field->period * field->period, next = o + field->period;
    assert_int_equal(step * field->jump.den, field->period * field->jump.num);
    if (next >= n || hulls[o].lo <= 0 || hulls[next].hi >= size)
        fail_msg("%s: the image is too small for '%s'", name, node->name);
    for (int64_t p = 0; p < n; p++) {
        if (hulls[p].lo <= 0 || hulls[p].hi >= size) continue;
        largest = hulls[p].hi - hulls[p].lo > largest ? hulls[p].hi - hulls[p].lo : largest;
        inside++;
    }
    int64_t padding = o / field->period * step - hulls[o].lo;
    int64_t moved = hulls[next].lo - hulls[o].lo;
    if (inside > field->period && largest == field->size_px && padding == field->padding_px &&
        moved == step)
        return;
    fail_msg(
        "%s, '%s', axis %d: brute force says field %lld, padding %lld and %lld pixels per %lld "
        "outputs; the analysis %lld, %lld, %lld",
        name, node->name, axis, (long long)largest, (long long)padding, (long long)moved,
        (long long)field->period, (long long)field->size_px, (long long)field->padding_px,
        (long long)step);
}

/* Behind a global pool (squeeze and excite, the classifier) every position sees the whole image, up
 * to what strides leave out at the end. */
static void check_global(const char *name, const struct rfx_graph *graph, int i, int axis,
                         const struct rfx_range *hulls) {
    const struct rfx_node *node = &graph->nodes[i], *image = &graph->nodes[graph->input];
    int64_t n = axis == 0 ? node->out.h : node->out.w;
    int64_t size = axis == 0 ? image->out.h : image->out.w;
    for (int64_t o = 0; o < n; o++)
        if (hulls[o].hi - hulls[o].lo < size - 64)
            fail_msg("%s: '%s' is called global but position %lld sees %lld of %lld", name,
                     node->name, (long long)o, (long long)(hulls[o].hi - hulls[o].lo),
                     (long long)size);
}

static void check_fields(const char *name, bool fused, int64_t *field, int64_t *checked) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = build(mem, name, LARGE_H, LARGE_W, fused);
    struct rfx_analysis *analysis = NULL;
    struct rfx_range **hulls = calloc((size_t)graph->n_nodes, sizeof *hulls);
    assert_non_null(hulls);
    assert_int_equal(rfx_analysis_create(graph, &analysis, NULL), RFX_OK);
    for (int axis = 0; axis < 2; axis++) {
        bool adaptive = false;
        influence_hulls(graph, graph->input, axis, hulls);
        for (int i = 0; i < graph->n_nodes; i++) {
            const struct rfx_node *node = &graph->nodes[i];
            const struct rfx_layer_info *info = &analysis->layers[i];
            adaptive = adaptive || node->op == RFX_OP_POOL_ADAPTIVE_AVG; /* bins of the image */
            if (is_local(node, info)) {
                check_field(name, graph, i, axis, &info->field[axis], hulls[i]);
                *field = info->field[axis].size_px;
                (*checked)++;
            } else if (info->global && !adaptive) {
                check_global(name, graph, i, axis, hulls[i]);
            }
        }
        influence_hulls_free(graph, hulls);
    }
    free(hulls);
    rfx_analysis_free(analysis);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Fields of the last layer before anything global. From the literature those of the classifiers
 * (resnet_v2_101 and inception_v4 in TF-slim's form) and deeplab_v3's, which is mobilenet_v2's: its
 * dilations stand for strides. By hand, adding (taps - 1) * jump layer by layer:
 * posenet    3 | 2*2, 2*2 | 2*4, 2*4 | 2*8, 2*8 | 7 of 2*16
 * blazeface  5 | 3 of 2*2 | 3 of 2*4 | 6 of 2*8 | 4 of 2*16 (the strided block's taps before it)
 * yolov1     7 | 1*2 | 2*4, 1*4 | 2 of 2*8, 1*8 | 5 of 2*16, 1*16 | 4 of 2*32 | 2 of 2*64 */
static const struct {
    const char *name;
    int64_t field;
} known_fields[] = {{"vgg16", 212},
                    {"mobilenet_v1", 315},
                    {"mobilenet_v2", 491},
                    {"resnet18", 435},
                    {"resnet50", 427},
                    {"resnet101", 971},
                    {"inception_v3", 1311},
                    {"inception_v4", 2071},
                    {"resnet_v2_101", 1027},
                    {"deeplab_v3", 491},
                    {"posenet", 3 + 8 + 16 + 32 + 7 * 32},
                    {"blazeface", 5 + 3 * 4 + 3 * 8 + 6 * 16 + 4 * 32},
                    {"yolov1", 7 + 2 + 8 + 4 + 32 + 8 + 5 * 32 + 16 + 4 * 64 + 2 * 128}};

static void fields_are_what_the_taps_reach(void **state) {
    (void)state;
    int count;
    const struct rfx_builtin *list = rfx_builtin_list(&count);
    for (int b = 0; b < count; b++) {
        int64_t fused = 0, unfused = 0, checked = 0;
        check_fields(list[b].name, true, &fused, &checked);
        check_fields(list[b].name, false, &unfused, &checked);
        fprintf(stderr, "%s: %lld fields proven, the last local layer's is %lld\n", list[b].name,
                (long long)checked, (long long)fused);
        assert_int_equal(fused, unfused);
        for (size_t k = 0; k < sizeof known_fields / sizeof *known_fields; k++)
            if (strcmp(known_fields[k].name, list[b].name) == 0)
                assert_int_equal(fused, known_fields[k].field);
    }
}

/* --- rows and columns of the image against every layer --- */

static void check_line(const char *name, struct poison *poison, int axis, int64_t line) {
    const struct rfx_graph *graph = poison->prepared->graph;
    const struct rfx_tensor *image = &graph->nodes[graph->input].out;
    bool *pixels = calloc((size_t)(image->h * image->w), sizeof *pixels);
    bool **reached = calloc((size_t)graph->n_nodes, sizeof *reached);
    assert_true(pixels != NULL && reached != NULL);
    for (int64_t p = 0; p < image->h * image->w; p++)
        pixels[p] = (axis == 0 ? p / image->w : p % image->w) == line;
    poison_run(poison, graph->input, pixels);
    influence_spread(graph, graph->input, axis, line, reached);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_tensor *t = &graph->nodes[i].out;
        for (int64_t p = 0; p < t->h * t->w; p++) {
            bool wanted = reached[i][axis == 0 ? p / t->w : p % t->w];
            if (poison_reached(poison, i, p) == wanted) continue;
            fail_msg("%s: with %s %lld of the image, pixel (%lld, %lld) of '%s' must%s move", name,
                     axis == 0 ? "row" : "column", (long long)line, (long long)(p / t->w),
                     (long long)(p % t->w), graph->nodes[i].name, wanted ? "" : " not");
        }
    }
    influence_spread_free(graph, reached);
    free(reached);
    free(pixels);
}

static void check_influence(const char *name, struct rfx_graph *graph, struct test_rng *rng) {
    struct test_prepared prepared;
    struct poison poison;
    const struct rfx_tensor *image = &graph->nodes[graph->input].out;
    float *input = test_floats(image->elems);
    test_rng_fill(rng, input, image->elems, -1.0f, 1.0f);
    assert_true(test_prepare(graph, 1, &prepared));
    if (!poison_begin(&prepared, input, &poison)) fail_msg("%s makes NaN by itself", name);
    for (int axis = 0; axis < 2; axis++) {
        int64_t n = axis == 0 ? image->h : image->w;
        check_line(name, &poison, axis, 0);
        check_line(name, &poison, axis, n - 1);
        for (int k = 0; k < 4; k++) check_line(name, &poison, axis, test_rng_int(rng, 1, n - 2));
    }
    poison_end(&poison);
    test_prepared_free(&prepared);
    free(input);
}

/* --- costs --- */

struct run {
    uint64_t output_bits; /* sum over all output elements: equal for equal bits */
    struct rfx_run_report report;
};

static struct run run_plan(const char *name, const struct rfx_graph *graph,
                           const struct rfx_plan *plan) {
    struct rfx_session *session = NULL;
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    struct run run = {0};
    struct caught_outputs caught;
    char why[300];
    if (!rfx_plan_check(plan, why, sizeof why)) fail_msg("%s: %s", name, why);
    const struct rfx_tensor *input = &graph->nodes[graph->input].out;
    float *pixels = test_floats(input->elems);
    struct test_rng rng = test_rng_make(5);
    test_rng_fill(&rng, pixels, input->elems, -1.0f, 1.0f);
    if (rfx_image_from_array(graph->mem, pixels, input->c, input->h, input->w, &image, &err) !=
            RFX_OK ||
        rfx_session_create(plan, NULL, graph->mem, &session, &err) != RFX_OK)
        fail_msg("%s: %s", name, err.text);
    catch_outputs(&caught, graph);
    rfx_session_set_sink(session, &caught.sink);
    if (rfx_session_run(session, image, NULL, NULL, &run.report, &err) != RFX_OK)
        fail_msg("%s: %s", name, err.text);
    for (int k = 0; k < caught.n; k++) {
        assert_int_equal(caught.received[k], caught.elems[k]);
        for (int64_t e = 0; e < caught.elems[k]; e++) {
            uint32_t bits;
            memcpy(&bits, &caught.values[k][e], sizeof bits);
            run.output_bits = run.output_bits * 1099511628211u + bits;
        }
    }
    caught_outputs_free(&caught);
    rfx_session_free(session);
    rfx_image_free(image);
    free(pixels);
    return run;
}

static bool has_transposed(const struct rfx_graph *graph) {
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].op == RFX_OP_CONV_TRANSPOSE) return true;
    return false;
}

/* Runs one plan: the executor's counters are the plan's, and the plan's MACs the counted ones. */
static uint64_t check_costs(const char *name, const struct rfx_graph *graph,
                            struct rfx_plan_request request, int split) {
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    request.threads = 1;
    request.source =
        (struct rfx_source_traits){.h = small_h(name), .w = small_w(name), .random_access = true};
    request.source.c = graph->nodes[graph->input].out.c;
    if (rfx_plan_create(graph, &request, &plan, &err) != RFX_OK) fail_msg("%s: %s", name, err.text);
    struct run run = run_plan(name, graph, plan);
    if (request.asked.band_rows > 0) split = -1; /* row bands compute every row once */
    uint64_t counted =
        influence_count_tiled(graph, split, request.asked.tiles_y, request.asked.tiles_x);
    assert_int_equal(run.report.macs, plan->macs);
    assert_int_equal(run.report.arena_high_water_bytes, plan->bytes.arena);
    if (!has_transposed(graph)) assert_int_equal(plan->macs, counted);
    rfx_plan_free(plan);
    return run.output_bits;
}

static void small_images(void **state) {
    (void)state;
    int count;
    const struct rfx_builtin *list = rfx_builtin_list(&count);
    struct test_rng rng = test_rng_make((uint64_t)test_env_int("RFX_SEED", 1));
    for (int b = 0; b < count; b++) {
        const char *name = list[b].name;
        struct rfx_memory *mem = rfx_memory_create(0);
        int64_t h = small_h(name), w = small_w(name);
        struct rfx_graph *graph = build(mem, name, h, w, true);
        int *splits = calloc((size_t)graph->n_nodes, sizeof *splits);
        assert_non_null(splits);
        int n = rfx_splits_list(graph, splits);
        uint64_t whole =
            check_costs(name, graph, (struct rfx_plan_request){.asked = rfx_ask_whole()}, -1);
        if (n > 0) {
            struct rfx_plan_request request = {.asked = rfx_ask_tiles(3, 2)};
            request.split = graph->nodes[splits[n / 2]].name;
            assert_int_equal(check_costs(name, graph, request, splits[n / 2]), whole);
            request.asked = rfx_ask_bands(2, 1);
            assert_int_equal(check_costs(name, graph, request, splits[n / 2]), whole);
        }
        bool bytes = strstr(name, ":int8") != NULL;
        if (!bytes) check_influence(name, graph, &rng);
        fprintf(stderr, "%s: %sMACs and arena proven at %lld x %lld\n", name,
                bytes ? "" : "influence, ", (long long)h, (long long)w);
        free(splits);
        rfx_graph_free(graph);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(fields_are_what_the_taps_reach),
                                       cmocka_unit_test(small_images)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
