/* Head files for one network: what is read joins its outputs or is refused, and the head decodes
 * any values of a cell to boxes of its own candidates and classes. */
#include <math.h>
#include <string.h>

#include "rfexec/answers/detector_boxes.h"
#include "rfexec/output/head_file.h"
#include "rfexec/run/join_detector.h"
#include "tests/fuzz/fuzz.h"

#define MEMORY_BYTES ((size_t)16 << 20)
enum { LEVELS = 2, MOST_VALUES = 4096 };

/* What every box of a head is checked against. */
struct limits {
    const struct rfx_detector *detector;
    float threshold;
    int64_t candidates;
};

static enum rfx_status check_box(void *context, const struct rfx_box *box, const float *points,
                                 struct rfx_error *err) {
    const struct limits *limits = context;
    const struct rfx_detector *d = limits->detector;
    int64_t classes = d->places[RFX_DETECTOR_SCORES].n;
    (void)err;
    if (!(box->score > limits->threshold)) fuzz_fail("a score below the threshold");
    if (box->label < 0 || box->label >= classes || box->label == d->background)
        fuzz_fail("label %d", box->label);
    if (box->index < 0 || box->index >= limits->candidates)
        fuzz_fail("candidate %lld", (long long)box->index);
    if ((points != NULL) != (d->places[RFX_DETECTOR_POINTS].output >= 0))
        fuzz_fail("landmarks of a head without, or none");
    for (int i = 0; d->clip && i < 4; i++)
        if (box->corner[i] < 0 || box->corner[i] > (float)(i % 2 ? d->image_h : d->image_w))
            fuzz_fail("a corner outside of the image");
    return RFX_OK;
}

/* Decodes drawn values, with NaN and infinity among them, as the first and last cell. */
static void decode(const struct rfx_detector *d) {
    static float values[MOST_VALUES];
    struct rfx_box_head head;
    struct rfx_error err = {""};
    rfx_box_head_describe(d, &head);
    if (head.channels > MOST_VALUES) return;
    fuzz_values(values, head.channels);
    values[head.channels / 2] = NAN;
    values[head.channels / 3] = INFINITY;
    for (int i = 0; i < 4; i++) {
        struct limits limits = {d, i % 2 ? -1.0F : 0.25F, 0};
        for (int l = 0; l < d->n_levels; l++)
            limits.candidates += d->levels[l].h * d->levels[l].w * d->levels[l].anchors;
        enum rfx_status status =
            rfx_detector_cell(d, i < 2 ? 0 : head.candidates - 1, values, limits.threshold,
                              rfx_detector_least(d, limits.threshold), check_box, &limits, &err);
        if (status != RFX_OK) fuzz_fail("decoding failed");
    }
}

static int add(struct rfx_graph *graph, struct rfx_node node, int in, const char *name) {
    struct rfx_error err = {""};
    int out = 0;
    node.name = name;
    node.n_in = in < 0 ? 0 : 1;
    node.in = &in;
    if (rfx_graph_add(graph, &node, &out, &err) != RFX_OK) fuzz_fail("%s", err.text);
    return out;
}

/* A graph of an 8 x 12 image: maps of 12 channels ("map4", "map2" of half its rows and columns),
 * the first 6 channels of the latter ("half"), and both as lists of cells with two anchors of 6
 * values one after the other ("list"). */
static struct rfx_graph *make_graph(struct rfx_memory *mem) {
    static const char *const names[LEVELS][5] = {{"map4", "plain4", "split4", "turned4", "cells4"},
                                                 {"map2", "plain2", "split2", "turned2", "cells2"}};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    int cells[LEVELS], list = 0, map = 0;
    enum rfx_status status = rfx_graph_create(mem, "fuzz", &graph, &err);
    struct rfx_node input = {.op = RFX_OP_INPUT};
    input.attr.input.c = 12;
    input.attr.input.h = 8;
    input.attr.input.w = 12;
    if (status != RFX_OK) fuzz_fail("%s", err.text);
    int image = add(graph, input, -1, "image");
    for (int l = 0; l < LEVELS; l++) {
        const int64_t h = 8 >> l, w = 12 >> l;
        struct rfx_node pool = {.op = RFX_OP_POOL_MAX}, plain = {.op = RFX_OP_TO_PLAIN},
                        split = {.op = RFX_OP_RESHAPE}, turn = {.op = RFX_OP_TRANSPOSE},
                        flat = {.op = RFX_OP_RESHAPE};
        pool.attr.pool = (struct rfx_pool_attr){1 + l, 1 + l, 1 + l, 1 + l, 1, 1, .p = 1};
        split.attr.reshape.shape = (struct rfx_shape){5, {1, 2, 6, h, w}};
        memcpy(turn.attr.transpose.perm, (const int[5]){0, 3, 4, 1, 2}, 5 * sizeof(int));
        flat.attr.reshape.shape = (struct rfx_shape){3, {1, h * w * 2, 6}};
        map = add(graph, pool, image, names[l][0]);
        status = rfx_graph_add_output(graph, map, names[l][0], &err);
        if (status != RFX_OK) fuzz_fail("%s", err.text);
        cells[l] = add(graph, plain, map, names[l][1]);
        cells[l] = add(graph, split, cells[l], names[l][2]);
        cells[l] = add(graph, turn, cells[l], names[l][3]);
        cells[l] = add(graph, flat, cells[l], names[l][4]);
    }
    struct rfx_node select = {.op = RFX_OP_CHANNEL_SELECT};
    int64_t first[6] = {0, 1, 2, 3, 4, 5};
    select.attr.select.count = 6;
    select.attr.select.map = first;
    status = rfx_graph_add_output(graph, add(graph, select, map, "half"), "half", &err);
    if (status != RFX_OK) fuzz_fail("%s", err.text);
    struct rfx_node concat = {
        .op = RFX_OP_PLAIN_CONCAT, .name = "list", .n_in = LEVELS, .in = cells};
    concat.attr.concat.axis = 1;
    status = rfx_graph_add(graph, &concat, &list, &err);
    if (status == RFX_OK) status = rfx_graph_add_output(graph, list, "list", &err);
    if (status != RFX_OK) fuzz_fail("%s", err.text);
    return graph;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct rfx_memory *mem = fuzz_memory(MEMORY_BYTES);
    static struct rfx_detector detector;
    struct rfx_error err = {""};
    enum rfx_status status =
        rfx_head_file_parse(mem, (const char *)data, size, "head.json", &detector, &err);
    fuzz_check_status(status, &err);
    for (int only = 0; only < 2 && status == RFX_OK; only++) {
        struct rfx_graph *graph = make_graph(mem);
        status = rfx_graph_join_detector(graph, &detector, only != 0, &err);
        fuzz_check_status(status, &err);
        if (status == RFX_OK) status = rfx_graph_finish(graph, NULL, &err);
        fuzz_check_status(status, &err);
        if (status == RFX_OK) decode(graph->detector);
        rfx_graph_free(graph);
    }
    rfx_memory_free(mem);
    return 0;
}
