/* Layers and stages of the public header against the analysis and the plan that they come from, and
 * against what must hold of them whatever the plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/memory.h"
#include "layers/graph/op.h"
#include "rfexec/api/job.h"
#include "rfexec/api/network.h"
#include "rfexec/api/reports.h"
#include "tests/support/run/network_run.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/schedule.h"

enum { MOST_STAGES = 40 };

static struct rfx_layer_report *layers_of(struct rfx_network *net) {
    struct rfx_why why;
    size_t n = (size_t)rfx_network_layer_count(net);
    struct rfx_layer_report *layers = calloc(n, sizeof *layers);
    assert_non_null(layers);
    network_check(rfx_network_layers(net, layers, sizeof *layers, &why), &why);
    return layers;
}

/* Worked out by hand: a 3x3 convolution of stride 2, then squeezenet's first pooling. */
static void test_layers(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("squeezenet1_1", 65, 97);
    struct rfx_layer_report *layers = layers_of(net);
    const struct rfx_layer_report *conv = &layers[1], *pool = &layers[2];
    assert_string_equal(layers[0].name, rfx_network_input_name(net));
    assert_true(layers[0].field[0] == 1 && layers[0].jump[1] == 1.0 && layers[0].macs == 0);
    assert_string_equal(conv->op, "Conv");
    assert_int_equal(conv->n_dims, 4);
    assert_true(conv->dims[1] == 64 && conv->dims[2] == 32 && conv->dims[3] == 48);
    assert_true(conv->field[0] == 3 && conv->field[1] == 3 && conv->jump[0] == 2.0);
    assert_int_equal(conv->field_padding[0], 0);
    assert_int_equal(conv->macs, 32 * 48 * 64 * 27);
    assert_int_equal(conv->parameters, 64 * 27 + 64);
    assert_int_equal(conv->output_bytes, 64 * 32 * 48 * 4);
    assert_int_equal(conv->live_bytes, 64 * 32 * 48 * 4 + 3 * 65 * 97 * 4);
    assert_string_equal(pool->op, "MaxPool");
    assert_true(pool->field[0] == 7 && pool->jump[1] == 4.0 && pool->global == 0);
    const struct rfx_layer_report *last = &layers[rfx_network_layer_count(net) - 1];
    assert_true(last->global != 0 && last->field[0] == 0);
    free(layers);
    rfx_network_free(net);
}

/* Of a 7x7 convolution of stride 2 and padding 3, and of the 3x3 pooling of stride 2 behind it. */
static void test_padded_layers(void **state) {
    (void)state;
    struct rfx_network *net = network_open_sized("resnet18", 65, 97);
    struct rfx_layer_report *layers = layers_of(net);
    const struct rfx_layer_report *pool = &layers[2];
    for (int axis = 0; axis < 2; axis++) {
        assert_true(layers[1].field[axis] == 7 && layers[1].field_padding[axis] == 3);
        assert_true(pool->field[axis] == 11 && pool->field_padding[axis] == 5);
    }
    assert_string_equal(pool->op, "MaxPool");
    free(layers);
    rfx_network_free(net);
}

/* Elements lie as far apart as the caller says; what this library does not know is zero, and what
 * the caller does not know is not written. */
static void test_other_sizes(void **state) {
    enum { MORE = 24, LAYERS = 100 };
    (void)state;
    struct rfx_network *net = network_open_sized("squeezenet1_1", 65, 97);
    struct rfx_layer_report *want = layers_of(net);
    int n = rfx_network_layer_count(net);
    size_t bytes = sizeof *want + MORE;
    struct rfx_why why;
    static _Alignas(struct rfx_layer_report) char room[LAYERS * (sizeof *want + MORE)];
    assert_in_range(n, 2, LAYERS);
    memset(room, 0x55, sizeof room);
    network_check(rfx_network_layers(net, (void *)room, bytes, &why), &why);
    for (int i = 0; i < n; i++) {
        const char *element = room + (size_t)i * bytes;
        assert_memory_equal(element, &want[i], sizeof *want);
        for (size_t k = sizeof *want; k < bytes; k++) assert_int_equal(element[k], 0);
    }
    assert_int_equal(room[(size_t)n * bytes], 0x55);
    assert_int_equal(rfx_network_layers(net, want, sizeof *want - 8, &why), RFX_CODE_USAGE);
    assert_int_equal(rfx_network_layers(net, want, 0, &why), RFX_CODE_USAGE);
    assert_int_equal(rfx_network_layers(net, NULL, sizeof *want, &why), RFX_CODE_USAGE);
    free(want);
    rfx_network_free(net);
}

/* What must hold of the stages of any plan. */
static int check_stages(struct rfx_network *net, const struct rfx_run_options *options) {
    struct rfx_stage_report stages[MOST_STAGES];
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct rfx_why why;
    uint64_t macs = 0, most = 0, spilled = 0;
    int n = 0, again = 0;
    network_check(rfx_network_predict(net, NULL, options, &forecast, &why), &why);
    network_check(
        rfx_network_stages(net, NULL, options, stages, sizeof *stages, MOST_STAGES, &n, &why),
        &why);
    network_check(rfx_network_stages(net, NULL, options, NULL, 0, 0, &again, &why), &why);
    assert_int_equal(n, again);
    assert_in_range(n, 1, MOST_STAGES);
    for (int s = 0; s < n; s++) {
        macs += stages[s].macs;
        spilled += stages[s].spilled_bytes;
        if (stages[s].arena_bytes > most) most = stages[s].arena_bytes;
        assert_true(stages[s].tiles[0] >= 1 && stages[s].tiles[1] >= 1);
        assert_true(stages[s].first[0] != '\0' && stages[s].last[0] != '\0');
        bool streamed = strcmp(stages[s].mode, "streamed") == 0;
        assert_int_equal(streamed, stages[s].band_rows > 0);
        assert_true(streamed || strcmp(stages[s].mode, "tiled") == 0 ||
                    strcmp(stages[s].mode, "whole") == 0);
    }
    assert_int_equal(macs, forecast.macs);
    assert_true(most > 0 && most <= forecast.activation_bytes);
    assert_true(spilled >= forecast.spilled_bytes && (spilled > 0) == (forecast.spilled_bytes > 0));
    assert_int_equal(
        rfx_network_stages(net, NULL, options, stages, sizeof *stages, n - 1, &n, &why),
        RFX_CODE_USAGE);
    assert_int_equal(rfx_network_stages(net, NULL, options, stages, 8, MOST_STAGES, &n, &why),
                     RFX_CODE_USAGE);
    return n;
}

static void test_stages(void **state) {
    /* the last one has a stage behind each of its global pools, on every machine */
    static const char *const models[] = {"squeezenet1_1", "fsrcnn:2", "posenet", "resnet18",
                                         "efficientnet_b0"};
    int several = 0;
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        struct rfx_network *net = network_open_sized(models[i], 129, 97);
        size_t least = network_least_bytes(net, NULL, 1);
        for (int part = 0; part < 4; part++) {
            struct rfx_run_options options =
                network_run_options(part == 3 ? 0 : least + least / 10 * (size_t)part, 1);
            several += check_stages(net, &options) > 1;
        }
        rfx_network_free(net);
    }
    assert_true(several > 0);
}

/* Marks the bytes of a buffer; returns how many were not. */
static uint64_t mark(unsigned char *bytes, size_t n, struct rfx_buffer buffer) {
    uint64_t fresh = 0;
    assert_true(buffer.offset + buffer.bytes <= n);
    for (size_t k = buffer.offset; k < buffer.offset + buffer.bytes; k++) {
        fresh += bytes[k] == 0;
        bytes[k] = 1;
    }
    return fresh;
}

/* Makes the full map, or reads it; one that was forgotten is made again without. */
static bool has_map(enum rfx_node_place place) {
    return place == RFX_PLACE_READ || place == RFX_PLACE_STORED || place == RFX_PLACE_REDUCED;
}

/* Bytes of the arena that hold something in stage s: buffers of what it computes, and maps that it
 * or an earlier stage stored and that it or a later one has, or that are outputs. */
static uint64_t marked_bytes(const struct rfx_plan *plan, int s, unsigned char *bytes) {
    const struct rfx_graph *graph = plan->graph;
    uint64_t sum = 0;
    memset(bytes, 0, plan->bytes.arena);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_stage_node *node = &plan->stages[s].nodes[i];
        bool made = false, wanted = false;
        for (int e = 0; e <= s; e++) made |= has_map(plan->stages[e].places[i]);
        for (int l = s; l < plan->n_stages; l++) wanted |= has_map(plan->stages[l].places[i]);
        for (int k = 0; k < graph->n_outputs; k++) wanted |= graph->outputs[k].node == i;
        if (made && wanted) sum += mark(bytes, plan->bytes.arena, plan->stored[i]);
        if (!rfx_place_is_computed(plan->stages[s].places[i])) continue;
        sum += mark(bytes, plan->bytes.arena, node->buffer);
        sum += mark(bytes, plan->bytes.arena, node->staging);
        sum += mark(bytes, plan->bytes.arena, node->packed);
    }
    return sum;
}

/* MACs of each stage, step by step. */
static void count_macs(const struct rfx_plan *plan, uint64_t macs[MOST_STAGES]) {
    struct rfx_schedule *schedule = NULL;
    struct rfx_error err = {{0}};
    struct rfx_step step;
    memset(macs, 0, MOST_STAGES * sizeof *macs);
    assert_int_equal(rfx_schedule_create(plan, &schedule, &err), RFX_OK);
    while (rfx_schedule_next(schedule, &step))
        if (step.kind == RFX_STEP_RUN)
            macs[step.stage] += rfx_op_macs(plan->graph, &plan->graph->nodes[step.node], step.rect);
    rfx_schedule_free(schedule);
}

/* What of a plan was seen, so that the loop below has looked at something. */
struct seen {
    int uneven, spilled, fresh, packed, several;
};

static void check_against_plan(struct rfx_network *net, const struct rfx_run_options *options,
                               const struct rfx_layer_report *layers, struct seen *seen) {
    static const float nothing;
    struct rfx_stage_report stages[MOST_STAGES];
    struct rfx_job job = {0};
    struct rfx_error err = {{0}};
    int n = 0;
    struct rfx_graph *graph = rfx_network_graph(net);
    assert_int_equal(rfx_job_open(&job, graph, graph->mem, options, &err), RFX_OK);
    assert_int_equal(rfx_job_use_values(&job, &nothing, &err), RFX_OK);
    assert_int_equal(rfx_job_plan(&job, &err), RFX_OK);
    const struct rfx_plan *plan = job.plan;
    assert_int_equal(
        rfx_report_stages(plan, job.graph, stages, sizeof *stages, MOST_STAGES, &n, &err), RFX_OK);
    assert_int_equal(n, plan->n_stages);
    unsigned char *bytes = malloc(plan->bytes.arena);
    uint64_t macs[MOST_STAGES];
    count_macs(plan, macs);
    assert_non_null(bytes);
    for (int s = 0; s < n; s++) {
        const struct rfx_stage *stage = &plan->stages[s];
        const struct rfx_stage_spec *spec = &stage->spec;
        uint64_t spilled = 0;
        assert_string_equal(stages[s].mode, spec->mode->name);
        assert_string_equal(stages[s].first, layers[stage->first].name);
        assert_string_equal(stages[s].last, layers[stage->last].name);
        assert_int_equal(stages[s].tiles[0], spec->tiles_y);
        assert_int_equal(stages[s].tiles[1], spec->tiles_x);
        assert_int_equal(stages[s].band_rows, spec->band_rows);
        assert_int_equal(stages[s].arena_bytes, marked_bytes(plan, s, bytes));
        assert_int_equal(stages[s].macs, macs[s]);
        for (int t = 0; t < stage->spec.n_targets; t++)
            if (stage->spilled[t]) spilled += layers[stage->targets[t]].output_bytes;
        assert_int_equal(stages[s].spilled_bytes, spilled);
        seen->uneven += spec->tiles_y != spec->tiles_x;
        seen->spilled += spilled > 0;
        seen->several += n > 1;
        for (int i = 0; i < plan->graph->n_nodes; i++) {
            seen->fresh += stage->nodes[i].staging.bytes > 0;
            seen->packed += stage->nodes[i].packed.bytes > 0;
        }
    }
    free(bytes);
    rfx_job_close(&job);
}

/* Stages are those of the plan, in the least memory and without a budget, with files too. */
static void test_stages_of_plans(void **state) {
    static const char *const models[] = {"squeezenet1_1", "fsrcnn:2", "unet_instance", "resnet18",
                                         "posenet"};
    struct seen seen = {0};
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        struct rfx_network *net = network_open_sized(models[i], 160, 128);
        struct rfx_layer_report *layers = layers_of(net);
        for (int part = 0; part < 4; part++) {
            struct rfx_run_options options = network_run_options(1, 1);
            struct rfx_forecast forecast = {.size = sizeof forecast};
            if (part == 3) options.spill_folder = ".";
            assert_int_equal(rfx_network_predict(net, NULL, &options, &forecast, NULL),
                             RFX_CODE_BUDGET);
            options.memory_bytes = part == 0 ? 0 : forecast.peak_bytes;
            if (part == 2) options.memory_bytes += forecast.peak_bytes / 5;
            check_against_plan(net, &options, layers, &seen);
        }
        free(layers);
        rfx_network_free(net);
    }
    assert_true(seen.uneven > 0 && seen.spilled > 0 && seen.several > 0);
    assert_true(seen.fresh > 0 && seen.packed > 0);
}

/* A whole run is one stage that uses all of the arena. */
static void test_whole(void **state) {
    struct rfx_network *net = network_open_sized("squeezenet1_1", 65, 97);
    const struct rfx_run_options options = network_run_options(0, 1);
    struct rfx_stage_report stages[MOST_STAGES];
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct rfx_runner *runner = NULL;
    struct rfx_why why;
    int n = 0;
    (void)state;
    network_check(rfx_runner_create(net, &options, &runner, &why), &why);
    network_check(rfx_runner_forecast(runner, &forecast, &why), &why);
    network_check(rfx_runner_stages(runner, stages, sizeof *stages, MOST_STAGES, &n, &why), &why);
    assert_int_equal(n, 1);
    assert_string_equal(stages[0].mode, "whole");
    assert_string_equal(stages[0].first, rfx_network_input_name(net));
    assert_true(stages[0].tiles[0] == 1 && stages[0].tiles[1] == 1);
    /* red zones beside what lives at the peak: of a map, or of one and what is made of it */
    assert_in_range(forecast.activation_bytes - stages[0].arena_bytes, RFX_RED_ZONE_BYTES,
                    2 * RFX_RED_ZONE_BYTES);
    rfx_runner_free(runner);
    rfx_network_free(net);
}

static void test_no_budget(void **state) {
    struct rfx_network *net = network_open_sized("squeezenet1_1", 65, 97);
    const struct rfx_run_options options = network_run_options(1 << 20, 1);
    struct rfx_why why;
    int n = -7;
    (void)state;
    assert_int_equal(rfx_network_stages(net, NULL, &options, NULL, 0, 0, &n, &why),
                     RFX_CODE_BUDGET);
    assert_int_equal(n, -7);
    rfx_network_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),          cmocka_unit_test(test_padded_layers),
        cmocka_unit_test(test_stages_of_plans), cmocka_unit_test(test_other_sizes),
        cmocka_unit_test(test_stages),          cmocka_unit_test(test_whole),
        cmocka_unit_test(test_no_budget),
    };
    return cmocka_run_group_tests_name("reports", tests, NULL, NULL);
}
