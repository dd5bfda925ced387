/* Maps of one-byte elements, end to end: a network whose middle is uint8 (conversion, pool, crop,
 * joined channels) in every kind of plan, in memory and in files, against what is computed here by
 * hand from its float32 part, and beside the same network in float32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/core/memory.h"
#include "layers/graph/op.h"
#include "rfexec/image/image_source.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/output/output_sink.h"
#include "rfexec/output/output_stream.h"
#include "rfexec/run/session.h"
#include "tests/support/test_net.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_check.h"

enum { H = 61, W = 45, C = 6, JOINED = 2 * C, CUT_H = H - 3, CUT_W = W - 1 };

/* The nodes of the network, by index. JOIN is uint8 and output 0, SUM float32 and output 1. */
enum { IMAGE, CONV, BYTES, POOL, CUT, CUT_POOL, JOIN, BACK, SUM };

struct fixture {
    struct test_net net;
    float *pixels;   /* of the image, in ONNX order */
    uint8_t *joined; /* what output 0 must be, in ONNX order */
    float *sums;     /* what output 1 was in the first plan */
    char printed[2][RFX_FINGERPRINT_CHARS];
};

static int weight(const struct test_net *net, int64_t oc, int64_t ic) {
    const struct rfx_weight w = {.source = RFX_WEIGHT_GENERATED,
                                 .seed = 7,
                                 .lo = -1.0f,
                                 .hi = 1.3f,
                                 .shape = {4, {oc, ic, 3, 3}},
                                 .elems = oc * ic * 9};
    int index = -1;
    assert_int_equal(rfx_graph_add_weight(net->graph, &w, &index, NULL), RFX_OK);
    return index;
}

static struct rfx_node conv(const struct test_net *net, int64_t ic, int64_t oc) {
    struct rfx_node node = {.op = RFX_OP_CONV, .attr.conv = rfx_conv_pointwise(oc)};
    struct rfx_conv_attr *a = &node.attr.conv;
    a->kh = a->kw = 3;
    a->pads = (struct rfx_pads){1, 1, 1, 1};
    a->weight = weight(net, oc, ic);
    return node;
}

/* Of float32 alone (bytes false) BYTES is an activation, so that the nodes have the same numbers.
 */
static struct test_net build(bool bytes) {
    struct test_net net = test_net_begin(3, H, W);
    struct rfx_node convert = {.op = RFX_OP_CONVERT, .attr.convert = {.to = RFX_TYPE_UINT8}};
    struct rfx_node relu = {.op = RFX_OP_ACTIVATION, .act.kind = RFX_ACT_ELU, .act.alpha = 1.0f};
    const struct rfx_node pool = {
        .op = RFX_OP_POOL_MAX,
        .attr.pool = {.kh = 3, .kw = 2, .sh = 1, .sw = 1, .dh = 1, .dw = 1, .pads = {1, 1, 1, 0}}};
    const struct rfx_node crop = {.op = RFX_OP_CROP, .attr.crop = {2, 1, 1, 1, CUT_H, CUT_W}};
    struct rfx_error err = {{0}};
    assert_int_equal(test_net_put(&net, conv(&net, 3, C), IMAGE, -1), CONV);
    assert_int_equal(test_net_put(&net, bytes ? convert : relu, CONV, -1), BYTES);
    assert_int_equal(test_net_put(&net, pool, BYTES, -1), POOL);
    assert_int_equal(test_net_put(&net, crop, BYTES, -1), CUT);
    assert_int_equal(test_net_put(&net, crop, POOL, -1), CUT_POOL);
    assert_int_equal(test_net_put(&net, (struct rfx_node){.op = RFX_OP_CONCAT}, CUT, CUT_POOL),
                     JOIN);
    int sum = test_net_put(&net, conv(&net, JOINED, 2), JOIN, -1);
    assert_int_equal(sum, bytes ? SUM : BACK); /* a conversion was put before it */
    assert_int_equal(rfx_graph_add_output(net.graph, JOIN, "joined", &err), RFX_OK);
    assert_int_equal(rfx_graph_add_output(net.graph, sum, "sums", &err), RFX_OK);
    static const struct rfx_fuse_options nothing = {0};
    assert_int_equal(rfx_graph_finish(net.graph, &nothing, &err), RFX_OK);
    return net;
}

/* ---- by hand ---- */

/* The nearest whole number in [0, 255], halves to the even one, in double. */
static uint8_t byte_of(float value) {
    double v = value, low = (double)(int64_t)v;
    if (v <= 0.0) return 0;
    if (v >= 255.0) return 255;
    bool odd = (int64_t)low % 2 != 0, up = v - low > 0.5 || (v - low == 0.5 && odd);
    return (uint8_t)(low + (up ? 1.0 : 0.0));
}

static uint8_t largest(const uint8_t *map, int64_t y, int64_t x) {
    uint8_t most = 0;
    for (int64_t i = y - 1; i <= y + 1; i++)
        for (int64_t j = x - 1; j <= x; j++)
            if (i >= 0 && i < H && j >= 0 && map[i * W + j] > most) most = map[i * W + j];
    return most;
}

/* Output 0 from the convolution's map, channels first. */
static uint8_t *joined_by_hand(const float *values) {
    uint8_t *bytes = malloc(C * H * W), *out = malloc(JOINED * CUT_H * CUT_W);
    int seen[3] = {0}; /* 0, between, 255 */
    for (int64_t i = 0; i < C * H * W; i++) {
        bytes[i] = byte_of(values[i]);
        seen[bytes[i] == 0 ? 0 : bytes[i] == 255 ? 2 : 1]++;
    }
    assert_true(seen[0] > 1000 && seen[1] > 5000 && seen[2] > 300);
    for (int64_t c = 0; c < JOINED; c++)
        for (int64_t y = 0; y < CUT_H; y++)
            for (int64_t x = 0; x < CUT_W; x++) {
                const uint8_t *map = bytes + c % C * H * W;
                out[(c * CUT_H + y) * CUT_W + x] =
                    c < C ? map[(y + 2) * W + x + 1] : largest(map, y + 2, x + 1);
            }
    free(bytes);
    return out;
}

/* ---- running ---- */

struct caught {
    uint8_t joined[JOINED * CUT_H * CUT_W];
    float sums[2 * CUT_H * CUT_W];
    int64_t received[2];
    struct rfx_fingerprint prints[2];
    struct rfx_output_stream *file;
};

static enum rfx_status catch_part(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                  const struct rfx_view *view, struct rfx_error *err) {
    struct caught *caught = user;
    int k = end->output;
    assert_int_equal(view->type, k == 0 ? RFX_TYPE_UINT8 : RFX_TYPE_FLOAT32);
    rfx_end_scatter(end, view->type, k == 0 ? (void *)caught->joined : caught->sums, rect, view);
    rfx_fingerprint_add_end(&caught->prints[k], end, rect, view);
    caught->received[k] += rfx_rect_area(rect) * end->channels;
    if (k != 0) return RFX_OK;
    return rfx_output_stream_write_end(caught->file, end, rect, view, err);
}

#define FILE_NAME "element_types.npy"

/* The .npy file is of uint8, and ends with the output's bytes. */
static void check_file(const struct fixture *f) {
    static unsigned char bytes[JOINED * CUT_H * CUT_W + 512];
    const size_t n = JOINED * CUT_H * CUT_W;
    FILE *file = fopen(FILE_NAME, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(size, 128 + n);
    assert_non_null(strstr((const char *)bytes + 10, "'descr': '|u1'"));
    assert_memory_equal(bytes + 128, f->joined, n);
    assert_int_equal(unlink(FILE_NAME), 0);
}

/* Runs a plan; all its bytes are those of the first one. */
static void check_plan(struct fixture *f, const struct rfx_plan *plan, const char *what) {
    const struct rfx_graph *graph = f->net.graph;
    static struct caught caught;
    struct rfx_output_sink sink = {.write = catch_part, .user = &caught};
    struct rfx_session *session = NULL;
    struct rfx_image *image = NULL;
    struct rfx_run_report report;
    struct rfx_error err = {{0}};
    struct rfx_output_format format = {.kind = &rfx_output_npy, .stored = graph->outputs[0].stored};
    char why[300], printed[RFX_FINGERPRINT_CHARS];
    if (!rfx_plan_check(plan, why, sizeof why)) fail_msg("%s: %s", what, why);
    memset(&caught, 0, sizeof caught);
    if (rfx_output_stream_open(f->net.mem, FILE_NAME, &format, &graph->nodes[JOIN].out,
                               &caught.file, &err) != RFX_OK ||
        rfx_image_from_array(f->net.mem, f->pixels, 3, H, W, &image, &err) != RFX_OK ||
        rfx_session_create(plan, NULL, graph->mem, &session, &err) != RFX_OK)
        fail_msg("%s: %s", what, err.text);
    rfx_session_set_sink(session, &sink);
    rfx_session_set_spill_folder(session, ".");
    if (rfx_session_run(session, image, NULL, NULL, &report, &err) != RFX_OK ||
        rfx_output_stream_commit(caught.file, NULL, NULL, &err) != RFX_OK)
        fail_msg("%s: %s", what, err.text);
    assert_int_equal(report.arena_high_water_bytes, plan->bytes.arena);
    assert_int_equal(report.spill_written, plan->spill.written);
    assert_int_equal(caught.received[0], sizeof caught.joined);
    if (memcmp(caught.joined, f->joined, sizeof caught.joined) != 0) fail_msg("%s: bytes", what);
    if (f->sums == NULL) {
        f->sums = malloc(sizeof caught.sums);
        memcpy(f->sums, caught.sums, sizeof caught.sums);
        for (int k = 0; k < 2; k++) rfx_fingerprint_hex(&caught.prints[k], f->printed[k]);
    }
    if (memcmp(caught.sums, f->sums, sizeof caught.sums) != 0) fail_msg("%s: floats", what);
    for (int k = 0; k < 2; k++) {
        rfx_fingerprint_hex(&caught.prints[k], printed);
        assert_string_equal(printed, f->printed[k]);
    }
    rfx_output_stream_free(caught.file);
    rfx_session_free(session);
    rfx_image_free(image);
    check_file(f);
}

static struct rfx_plan *plan_of(const struct rfx_graph *graph, struct rfx_plan_request request) {
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    request.source = (struct rfx_source_traits){.h = H, .w = W, .c = 3, .random_access = true};
    request.threads = 2;
    if (rfx_plan_create(graph, &request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    return plan;
}

static float *conv_map(struct fixture *f) {
    struct rfx_node *out = &f->net.graph->nodes[CONV];
    float *nhwc = malloc(rfx_node_out_bytes(out)), *nchw = malloc(rfx_node_out_bytes(out));
    float *image = malloc(3 * H * W * sizeof *image);
    size_t packed_bytes = rfx_op_packed_bytes(f->net.graph, out);
    size_t scratch_bytes = rfx_op_scratch_bytes(f->net.graph, out, 1);
    void *packed = rfx_memory_alloc(f->net.mem, packed_bytes);
    void *scratch = rfx_memory_alloc(f->net.mem, scratch_bytes);
    test_nchw_to_nhwc(f->pixels, image, 3, H, W);
    const struct rfx_tensor *in = &f->net.graph->nodes[IMAGE].out;
    const struct rfx_view view = rfx_view_of(in, image, rfx_rect_full(H, W));
    struct rfx_run_args args = {.graph = f->net.graph,
                                .node = out,
                                .in = &view,
                                .out = rfx_view_of(&out->out, nhwc, rfx_rect_full(H, W)),
                                .rect = rfx_rect_full(H, W),
                                .packed = packed,
                                .scratch = scratch,
                                .threads = 1};
    assert_int_equal(rfx_op_pack(f->net.graph, out, packed, NULL), RFX_OK);
    rfx_op_run(&args);
    test_nhwc_to_nchw(nhwc, nchw, C, H, W);
    rfx_memory_release(f->net.mem, packed);
    rfx_memory_release(f->net.mem, scratch);
    free(image);
    free(nhwc);
    return nchw;
}

static void begin(struct fixture *f) {
    struct test_rng rng = test_rng_make(11);
    *f = (struct fixture){.net = build(true), .pixels = test_floats(3 * H * W)};
    test_rng_fill(&rng, f->pixels, 3 * H * W, -40.0f, 60.0f);
    float *conv = conv_map(f);
    f->joined = joined_by_hand(conv);
    free(conv);
}

static void end(struct fixture *f) {
    free(f->pixels);
    free(f->joined);
    free(f->sums);
    test_net_end(&f->net);
}

/* ---- tests ---- */

static void types_of_nodes(void **state) {
    (void)state;
    struct test_net net = build(true);
    static const enum rfx_type types[] = {
        [IMAGE] = RFX_TYPE_FLOAT32, [CONV] = RFX_TYPE_FLOAT32, [BYTES] = RFX_TYPE_UINT8,
        [POOL] = RFX_TYPE_UINT8,    [CUT] = RFX_TYPE_UINT8,    [CUT_POOL] = RFX_TYPE_UINT8,
        [JOIN] = RFX_TYPE_UINT8,    [BACK] = RFX_TYPE_FLOAT32, [SUM] = RFX_TYPE_FLOAT32};
    for (int i = IMAGE; i <= SUM; i++) assert_int_equal(net.graph->nodes[i].out.type, types[i]);
    assert_int_equal(net.graph->nodes[BACK].op, RFX_OP_CONVERT);
    assert_int_equal(net.graph->outputs[0].stored.type, RFX_TYPE_UINT8);
    assert_int_equal(net.graph->outputs[1].stored.type, RFX_TYPE_FLOAT32);
    test_net_end(&net);
}

static void whole_maps(void **state) {
    (void)state;
    struct fixture f;
    begin(&f);
    for (int way = 0; way < 4; way++) {
        struct rfx_plan_request request = {.asked = rfx_ask_whole(), .no_inplace = way == 3};
        request.asked.row_by_row = way == 1;
        request.emit_outputs = way == 2;
        struct rfx_plan *plan = plan_of(f.net.graph, request);
        check_plan(&f, plan, "whole");
        rfx_plan_free(plan);
    }
    end(&f);
}

/* Stages by hand: one that stores `first`, in memory or in a file, then one that reads it. */
static void check_stages(struct fixture *f, struct rfx_stage_spec spec, int first, bool spill,
                         const char *what) {
    static const int last[2] = {JOIN, SUM};
    const bool spilled[1] = {true};
    struct rfx_stage_spec stages[2] = {spec, spec};
    stages[0].n_targets = 1;
    stages[0].targets = &first;
    if (spill) stages[0].spilled = spilled;
    stages[1].n_targets = 2;
    stages[1].targets = last;
    struct rfx_plan *plan =
        plan_of(f->net.graph, (struct rfx_plan_request){.stages = stages, .n_stages = 2});
    const struct rfx_node *node = &f->net.graph->nodes[first];
    assert_int_equal(plan->spill.written, spill ? (uint64_t)node->out.elems : 0);
    if (!spill) assert_in_range(plan->stored[first].bytes, node->out.elems, node->out.elems + 63);
    check_plan(f, plan, what);
    rfx_plan_free(plan);
}

static void tiles_bands_and_strips(void **state) {
    (void)state;
    struct fixture f;
    char what[80];
    begin(&f);
    for (int64_t rows = 1; rows <= 7; rows += 2)
        for (int64_t parts = 1; parts <= 4; parts++)
            for (int way = 0; way < 8; way++) {
                bool tiled = way == 0, spill = (way & 1) != 0;
                int first = way < 4 ? BYTES : POOL;
                struct rfx_stage_spec spec = {.mode = tiled ? &rfx_mode_tiled : &rfx_mode_streamed,
                                              .tiles_y = tiled ? rows : 1,
                                              .tiles_x = parts,
                                              .band_rows = tiled ? 0 : rows,
                                              .staging = !tiled && (way & 2) != 0,
                                              .row_by_row = way == 5};
                (void)snprintf(what, sizeof what, "way %d, %d rows, %d parts", way, (int)rows,
                               (int)parts);
                check_stages(&f, spec, first, spill, what);
            }
    end(&f);
}

/* What the planner chooses under a budget, in files too, and grouped by hand. */
static void budgets(void **state) {
    (void)state;
    struct fixture f;
    begin(&f);
    for (int spill = 0; spill < 2; spill++) {
        struct rfx_plan_request request = {
            .memory_bytes = 1,
            .threads = 2,
            .may_spill = spill == 1,
            .emit_outputs = true,
            .source = {.h = H, .w = W, .c = 3, .random_access = true}};
        struct rfx_plan *plan = NULL, *smallest = NULL;
        assert_int_equal(rfx_plan_create_or_smallest(f.net.graph, &request, &plan, &smallest, NULL),
                         RFX_STATUS_BUDGET_IMPOSSIBLE);
        check_plan(&f, smallest, "the smallest");
        request.memory_bytes = smallest->peak_bytes;
        rfx_plan_free(smallest);
        plan = plan_of(f.net.graph, request);
        check_plan(&f, plan, "a budget");
        rfx_plan_free(plan);
    }
    end(&f);
}

/* Depth first: a group that makes bytes, and one that reads them. */
static void groups(void **state) {
    (void)state;
    static const struct rfx_group_attr pairs[2] = {
        {.first = CONV, .last = BYTES, .strip_cols = 11, .strips = 2, .step_rows = 3},
        {.first = BACK, .last = SUM, .strip_cols = 7, .strips = 2, .step_rows = 2}};
    struct fixture f;
    begin(&f);
    for (int way = 0; way < 2; way++) {
        struct rfx_plan_request request = {.groups = pairs, .n_groups = 2};
        request.asked = (struct rfx_stage_spec){
            .mode = &rfx_mode_streamed, .tiles_y = 1, .tiles_x = 2, .band_rows = 6};
        if (way == 0) request.asked = rfx_ask_whole();
        struct rfx_plan *plan = plan_of(f.net.graph, request);
        check_plan(&f, plan, "groups");
        rfx_plan_free(plan);
    }
    end(&f);
}

/* A uint8 map takes a quarter of the bytes, whole and as a ring. */
static void a_quarter_of_the_bytes(void **state) {
    (void)state;
    struct test_net nets[2] = {build(false), build(true)};
    size_t whole[2], ring[2];
    for (int i = 0; i < 2; i++) {
        static const int maps[1] = {POOL};
        struct rfx_stage_spec stages[2] = {{.mode = &rfx_mode_streamed,
                                            .tiles_y = 1,
                                            .tiles_x = 1,
                                            .band_rows = 8,
                                            .n_targets = 1,
                                            .targets = maps},
                                           rfx_ask_whole()};
        const int last[2] = {JOIN, i == 0 ? BACK : SUM};
        stages[1].n_targets = 2;
        stages[1].targets = last;
        struct rfx_plan *plan =
            plan_of(nets[i].graph, (struct rfx_plan_request){.stages = stages, .n_stages = 2});
        whole[i] = plan->stored[POOL].bytes;
        ring[i] = plan->stages[0].nodes[BYTES].buffer.bytes;
        rfx_plan_free(plan);
        test_net_end(&nets[i]);
    }
    assert_in_range(4 * whole[1], whole[0], whole[0] + 4 * 63);
    assert_true(ring[1] > 0);
    assert_in_range(4 * ring[1], ring[0], ring[0] + 4 * 63);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_of_nodes),
        cmocka_unit_test(whole_maps),
        cmocka_unit_test(tiles_bands_and_strips),
        cmocka_unit_test(budgets),
        cmocka_unit_test(groups),
        cmocka_unit_test(a_quarter_of_the_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
