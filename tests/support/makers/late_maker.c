/* See late_maker.h. */
#include "tests/support/makers/late_maker.h"

#include <stdio.h>

enum { CHANNELS = 4 + LATE_MAKER_CLASSES, WEIGHTS = CHANNELS * 3 * 4 * 4, MOST_CELLS = 256 };

enum {
    ATTR_NAME = 1,
    ATTR_GRAPH = 6,
    ATTR_TYPE = 20,
    TYPE_GRAPH = 5,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7
};

static struct maker node, branch, attribute, model;

static void number(struct maker *graph, const char *name, int64_t value) {
    maker_ints(graph, name, &value, 1);
}

static void scalar(struct maker *graph, const char *name, int64_t value) {
    maker_int_tensor(graph, name, NULL, 0, &value);
}

static void real(struct maker *graph, const char *name, float value) {
    static const int64_t one = 1;
    maker_floats(graph, name, &one, 1, &value);
}

/* Weights that are neither equal nor in any order, from -range to range. */
static void draw(float *values, int count, float range) {
    unsigned seed = 7;
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525U + 1013904223U;
        values[i] = range * ((float)(seed >> 16) / 32768.0F - 1.0F);
    }
}

static void add_constants(struct maker *graph, int64_t h, int64_t w, float threshold) {
    static float weights[WEIGHTS], cells[4 * MOST_CELLS];
    static const int64_t kernel[] = {CHANNELS, 3, LATE_MAKER_STRIDE, LATE_MAKER_STRIDE},
                         nothing = 0, rows[] = {CHANNELS, -1};
    int64_t wide = w / LATE_MAKER_STRIDE, shape[] = {h / LATE_MAKER_STRIDE * wide, 4};
    draw(weights, WEIGHTS, 0.5F);
    for (int64_t i = 0; i < shape[0]; i++) {
        float x = (float)(i % wide * LATE_MAKER_STRIDE), y = (float)(i / wide * LATE_MAKER_STRIDE);
        const float corners[4] = {x - 4, y - 4, x + 8, y + 8};
        for (int k = 0; k < 4; k++) cells[4 * i + k] = corners[k];
    }
    maker_floats(graph, "weights", kernel, 4, weights);
    maker_floats(graph, "cells", shape, 2, cells);
    maker_int_tensor(graph, "none", &nothing, 1, &nothing);
    maker_ints(graph, "rows", rows, 2);
    for (int64_t i = 0; i < 3; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "n%d", (int)i);
        number(graph, name, i);
        (void)snprintf(name, sizeof name, "s%d", (int)i);
        scalar(graph, name, i);
    }
    number(graph, "n4", 4);
    number(graph, "n6", CHANNELS);
    number(graph, "many", INT64_MAX);
    real(graph, "threshold", threshold);
    real(graph, "apart", LATE_MAKER_APART);
    real(graph, "overlap", 0.5F);
}

/* From the image to the boxes and scores of all cells. */
static void add_front(struct maker *graph) {
    static const int64_t strides[] = {LATE_MAKER_STRIDE, LATE_MAKER_STRIDE}, turned[] = {1, 0};
    maker_add(graph, "Unsqueeze", "image n0", "images");
    maker_add_ints(graph, "Conv", "images weights", "maps", "strides", strides, 2);
    maker_add(graph, "Reshape", "maps rows", "by_channel");
    maker_add_ints(graph, "Transpose", "by_channel", "by_cell", "perm", turned, 2);
    maker_add(graph, "Slice", "by_cell n0 n4 n1", "moves");
    maker_add(graph, "Add", "moves cells", "all_boxes");
    maker_add(graph, "Slice", "by_cell n4 n6 n1", "logits");
    maker_add(graph, "Sigmoid", "logits", "all_scores");
}

/* Candidates of a class: scores, boxes and labels. */
static void add_class(struct maker *graph, int k) {
    static const int64_t turned[] = {1, 0};
    char in[128], out[32], name[32];
#define IN(...) (snprintf(in, sizeof in, __VA_ARGS__), in)
#define OUT(text) (snprintf(out, sizeof out, text "%d", k), out)
#define NAME(text) (snprintf(name, sizeof name, text "%d", k), name)
    maker_add_int(graph, "Gather", IN("all_scores s%d", k), OUT("of_class"), "axis", 1);
    maker_add(graph, "Greater", IN("of_class%d threshold", k), OUT("above"));
    maker_add(graph, "NonZero", NAME("above"), OUT("places"));
    maker_add_ints(graph, "Transpose", NAME("places"), OUT("chosen"), "perm", turned, 2);
    maker_add(graph, "GatherND", IN("of_class%d chosen%d", k, k), OUT("scores_of"));
    maker_add(graph, "GatherND", IN("all_boxes chosen%d", k), OUT("boxes_of"));
    maker_add(graph, "Shape", NAME("scores_of"), OUT("size_of"));
    maker_add(graph, "Expand", IN("n%d size_of%d", k, k), OUT("labels_of"));
}

static void add_branch(const char *name, const struct maker *nodes, const char *out) {
    branch = *nodes;
    maker_value(&branch, MAKER_OUTPUT, out, NULL, 0);
    attribute.size = 0;
    maker_text(&attribute, ATTR_NAME, name);
    maker_message(&attribute, ATTR_GRAPH, &branch);
    maker_int(&attribute, ATTR_TYPE, TYPE_GRAPH);
    maker_message(&node, NODE_ATTRIBUTE, &attribute);
}

/* The candidates that are kept, as torchvision's batched_nms finds them. */
static void add_suppression(struct maker *graph) {
    static struct maker no_boxes, boxes;
    no_boxes.size = boxes.size = 0;
    maker_add(&no_boxes, "Identity", "none", "no_keep");
    maker_add_int(&boxes, "Cast", "labels_in", "group", "to", 1);
    maker_add(&boxes, "Mul", "group apart", "shift");
    maker_add(&boxes, "Unsqueeze", "shift n1", "shift_column");
    maker_add(&boxes, "Add", "boxes_in shift_column", "moved");
    maker_add(&boxes, "Unsqueeze", "moved n0", "moved_batch");
    maker_add(&boxes, "Unsqueeze", "scores_in n0", "scores_class");
    maker_add(&boxes, "Unsqueeze", "scores_class n0", "scores_batch");
    maker_add(&boxes, "NonMaxSuppression", "moved_batch scores_batch many overlap", "triples");
    maker_add_int(&boxes, "Gather", "triples n2", "column", "axis", 1);
    maker_add(&boxes, "Squeeze", "column n1", "keep_in");
    maker_add(graph, "Shape", "boxes_in", "size_in");
    maker_add_int(graph, "ReduceProd", "size_in", "count_in", "keepdims", 0);
    maker_add(graph, "Equal", "count_in s0", "is_empty");
    maker_node(&node, "If", "is_empty", "keep");
    add_branch("then_branch", &no_boxes, "no_keep");
    add_branch("else_branch", &boxes, "keep_in");
    maker_message(graph, MAKER_NODE, &node);
}

void late_maker_graph(struct maker *graph, int64_t h, int64_t w, float threshold) {
    static const int64_t open[] = {0, 4};
    const int64_t image[] = {3, h, w};
    graph->size = 0;
    maker_value(graph, MAKER_INPUT, "image", image, 3);
    add_constants(graph, h, w, threshold);
    add_front(graph);
    for (int k = 0; k < LATE_MAKER_CLASSES; k++) add_class(graph, k);
    maker_add_int(graph, "Concat", "boxes_of0 boxes_of1", "boxes_in", "axis", 0);
    maker_add_int(graph, "Concat", "scores_of0 scores_of1", "scores_in", "axis", 0);
    maker_add_int(graph, "Concat", "labels_of0 labels_of1", "labels_in", "axis", 0);
    add_suppression(graph);
    maker_add(graph, "Gather", "boxes_in keep", "boxes");
    maker_add(graph, "Gather", "scores_in keep", "scores");
    maker_add(graph, "Gather", "labels_in keep", "labels");
    maker_value(graph, MAKER_OUTPUT, "boxes", open, 2);
    maker_value(graph, MAKER_OUTPUT, "scores", open, 1);
    maker_typed_value(graph, MAKER_OUTPUT, "labels", 7, open, 1);
}

void late_maker_plugin_graph(struct maker *graph, int64_t h, int64_t w, float threshold,
                             const char *domain) {
    static const int64_t one[] = {1, 1}, most[] = {1, LATE_MAKER_MOST, 4};
    const int64_t image[] = {3, h, w};
    graph->size = 0;
    maker_value(graph, MAKER_INPUT, "image", image, 3);
    add_constants(graph, h, w, threshold);
    add_front(graph);
    maker_add(graph, "Unsqueeze", "all_boxes n0", "boxes");
    maker_add(graph, "Unsqueeze", "all_scores n0", "scores");
    maker_node(&node, "EfficientNMS_TRT", "boxes scores",
               "num_dets det_boxes det_scores det_classes");
    maker_text(&node, NODE_DOMAIN, domain);
    maker_attr_float(&node, "score_threshold", threshold);
    maker_attr_float(&node, "iou_threshold", 0.5F);
    maker_attr_int(&node, "max_output_boxes", LATE_MAKER_MOST);
    maker_attr_int(&node, "background_class", -1);
    maker_attr_text(&node, "plugin_version", "1");
    maker_message(graph, MAKER_NODE, &node);
    maker_typed_value(graph, MAKER_OUTPUT, "num_dets", 6, one, 2);
    maker_value(graph, MAKER_OUTPUT, "det_boxes", most, 3);
    maker_value(graph, MAKER_OUTPUT, "det_scores", most, 2);
    maker_typed_value(graph, MAKER_OUTPUT, "det_classes", 6, most, 2);
}

void late_maker_save(const char *path, int64_t h, int64_t w, float threshold) {
    static struct maker graph;
    late_maker_graph(&graph, h, w, threshold);
    maker_model(&graph, 17, &model);
    maker_save(&model, path);
}
