#include "tests/support/makers/head_maker.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 32, MOST = 32, COLOURS = 3 };

/* Adds a 1x1 convolution of "stem" with a stride, whose weights lie in -0.5..0.5, as `map`, of at
 * most MOST channels; `out` names the weights. */
static void add_map(struct maker *graph, int stride, int maps, const char *out, const char *map) {
    unsigned drawn = (unsigned)strlen(out) * 7919U + (unsigned)stride * 104729U + (unsigned)out[0];
    char kernel[NAME], words[4 * NAME];
    float weights[MOST * COLOURS];
    const int64_t dims[4] = {maps, COLOURS, 1, 1}, strides[2] = {stride, stride};
    assert(maps <= MOST);
    for (int i = 0; i < maps * COLOURS; i++) {
        drawn = drawn * 1664525U + 1013904223U;
        weights[i] = (float)(drawn >> 8) * 0x1p-24F - 0.5F;
    }
    (void)snprintf(kernel, NAME, "kernel_%.20s", out);
    maker_floats(graph, kernel, dims, 4, weights);
    (void)snprintf(words, sizeof words, "stem %s", kernel);
    maker_add_ints(graph, "Conv", words, map, "strides", strides, 2);
}

/* The same as 1 x candidates x channels. */
static void add_values(struct maker *graph, int stride, int maps, int channels, const char *out) {
    char map[NAME], last[NAME], shape[NAME], words[4 * NAME];
    const int64_t perm[4] = {0, 2, 3, 1}, sizes[3] = {1, -1, channels};
    (void)snprintf(map, NAME, "map_%.20s", out);
    (void)snprintf(last, NAME, "last_%.20s", out);
    (void)snprintf(shape, NAME, "shape_%.20s", out);
    maker_ints(graph, shape, sizes, 3);
    add_map(graph, stride, maps, out, map);
    maker_add_ints(graph, "Transpose", map, last, "perm", perm, 4);
    (void)snprintf(words, sizeof words, "%s %s", last, shape);
    maker_add(graph, "Reshape", words, out);
}

/* Every pixel of `out` is the largest of 3 x 3 of `in`. */
static void add_largest(struct maker *graph, const char *in, const char *out) {
    static struct maker node;
    const int64_t kernel[2] = {3, 3}, pads[4] = {1, 1, 1, 1};
    maker_node(&node, "MaxPool", in, out);
    maker_attr_ints(&node, "kernel_shape", kernel, 2);
    maker_attr_ints(&node, "pads", pads, 4);
    maker_message(graph, MAKER_NODE, &node);
}

/* Begins a graph: every pixel of "stem" is the largest of 3 x 3 of the image. */
static void begin(struct maker *graph) {
    const int64_t dims[4] = {1, COLOURS, 0, 0};
    *graph = (struct maker){.size = 0};
    maker_value(graph, MAKER_INPUT, "image", dims, 4);
    add_largest(graph, "image", "stem");
}

void maker_yunet(struct maker *graph, const char *without, const char *wide) {
    static const struct {
        const char *name;
        int channels;
    } parts[] = {{"cls", 1}, {"obj", 1}, {"bbox", 4}, {"kps", 10}};
    begin(graph);
    for (int part = 0; part < 4; part++)
        for (int stride = 8; stride <= 32; stride *= 2) {
            char name[NAME], raw[NAME];
            int channels = parts[part].channels;
            (void)snprintf(name, NAME, "%s_%d", parts[part].name, stride);
            (void)snprintf(raw, NAME, "raw_%s_%d", parts[part].name, stride);
            channels += wide != NULL && strcmp(wide, name) == 0;
            add_values(graph, stride, channels, channels, part < 2 ? raw : name);
            if (part < 2) maker_add(graph, "Sigmoid", raw, name);
            if (without == NULL || strcmp(without, name) != 0)
                maker_value(graph, MAKER_OUTPUT, name, NULL, 0);
        }
}

void maker_rfb(struct maker *graph) {
    begin(graph);
    add_values(graph, 8, 6, 2, "scores_8");
    add_values(graph, 16, 4, 2, "scores_16");
    maker_add_int(graph, "Concat", "scores_8 scores_16", "raw_scores", "axis", 1);
    maker_add_int(graph, "Softmax", "raw_scores", "scores", "axis", 2);
    add_values(graph, 8, 12, 4, "boxes_8");
    add_values(graph, 16, 8, 4, "boxes_16");
    maker_add_int(graph, "Concat", "boxes_8 boxes_16", "boxes", "axis", 1);
    maker_value(graph, MAKER_OUTPUT, "scores", NULL, 0);
    maker_value(graph, MAKER_OUTPUT, "boxes", NULL, 0);
}

void maker_centernet(struct maker *graph, const char *hm, bool active) {
    begin(graph);
    add_map(graph, 4, 3, "heat", "heat");
    add_largest(graph, "heat", active ? "raw" : hm);
    if (active) maker_add(graph, "Sigmoid", "raw", hm);
    add_map(graph, 4, 2, "wh", "wh");
    add_map(graph, 4, 2, "reg", "reg");
    maker_value(graph, MAKER_OUTPUT, hm, NULL, 0);
    maker_value(graph, MAKER_OUTPUT, "wh", NULL, 0);
    maker_value(graph, MAKER_OUTPUT, "reg", NULL, 0);
}

void maker_begin_cells(struct maker *graph) {
    begin(graph);
}

/* The sizes of a 64 x 96 image stand in the file: tests load it for no other. */
void maker_cells(struct maker *graph, const char *name, int stride, int anchors, int values,
                 enum maker_order order) {
    const int64_t rows = 64 / stride, columns = 96 / stride,
                  split[5] = {1, anchors, values, rows, columns}, joined[3] = {1, -1, values},
                  to_list[5] = {0, 3, 4, 1, 2}, to_five[5] = {0, 1, 3, 4, 2};
    bool listed = order == MAKER_LISTED;
    char map[NAME], five[NAME], turned[NAME], words[4 * NAME];
    (void)snprintf(map, NAME, "map_%.20s", name);
    (void)snprintf(five, NAME, "five_%.20s", name);
    (void)snprintf(turned, NAME, "turned_%.20s", name);
    add_map(graph, stride, anchors * values, name, order == MAKER_MAP ? name : map);
    if (order == MAKER_MAP) return;
    (void)snprintf(words, sizeof words, "split_%.20s", name);
    maker_ints(graph, words, split, 5);
    (void)snprintf(words, sizeof words, "%s split_%.20s", map, name);
    maker_add(graph, "Reshape", words, five);
    maker_add_ints(graph, "Transpose", five, listed ? turned : name, "perm",
                   listed ? to_list : to_five, 5);
    if (!listed) return;
    (void)snprintf(words, sizeof words, "joined_%.20s", name);
    maker_ints(graph, words, joined, 3);
    (void)snprintf(words, sizeof words, "%s joined_%.20s", turned, name);
    maker_add(graph, "Reshape", words, name);
}

void maker_save_heads(const struct maker *graph, const char *path) {
    static struct maker model;
    maker_model(graph, 13, &model);
    maker_save(&model, path);
}
