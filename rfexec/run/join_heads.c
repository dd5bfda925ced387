/* A table of heads, and the concatenations that join their outputs; see join_heads.h. */
#include "rfexec/run/join_heads.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rfexec/run/join_centernet.h"
#include "rfexec/run/join_detector.h"
#include "rfexec/run/keep_tensors.h"

enum { PARTS = 4, LEVELS = 3, NAME = RFX_JOIN_NAME, LIST = 160 };

struct head {
    const char *name;
    int n_levels, strides[LEVELS]; /* one level of stride 0: names have no stride */
    int n_parts;
    struct {
        const char *name;
        int64_t channels;
    } parts[PARTS];
};

static const struct head heads[] = {
    {"yunet", 3, {8, 16, 32}, 4, {{"cls", 1}, {"obj", 1}, {"bbox", 4}, {"kps", 10}}},
    {"rfb", 1, {0}, 2, {{"scores", 2}, {"boxes", 4}}},
};

/* The outputs of a head: numbers in graph->outputs, -1: missing. */
struct members {
    int output[LEVELS][PARTS];
    int found;
};

static void write_name(const struct head *head, int level, int part, char name[NAME]) {
    const char *base = head->parts[part].name;
    if (head->strides[level] == 0)
        (void)snprintf(name, NAME, "%s", base);
    else
        (void)snprintf(name, NAME, "%s_%d", base, head->strides[level]);
}

int rfx_join_find_output(const struct rfx_graph *graph, const char *name) {
    for (int k = 0; k < graph->n_outputs; k++)
        if (strcmp(graph->outputs[k].name, name) == 0) return k;
    return -1;
}

void rfx_join_remove_output(struct rfx_graph *graph, const char *name) {
    int k = rfx_join_find_output(graph, name);
    if (k >= 0) rfx_graph_remove_output(graph, k);
}

static struct members find_members(const struct rfx_graph *graph, const struct head *head) {
    struct members members = {.found = 0};
    for (int l = 0; l < head->n_levels; l++)
        for (int p = 0; p < head->n_parts; p++) {
            char name[NAME];
            write_name(head, l, p, name);
            members.output[l][p] = rfx_join_find_output(graph, name);
            members.found += members.output[l][p] >= 0;
        }
    return members;
}

static const struct rfx_tensor *tensor_of(const struct rfx_graph *graph, int output) {
    return &graph->nodes[graph->outputs[output].node].out;
}

/* Whether an output has the shape 1 x candidates x channels of its part, with as many candidates as
 * the first part of its level. */
static bool fits(const struct rfx_graph *graph, const struct head *head,
                 const struct members *members, int level, int part) {
    const struct rfx_tensor *t = tensor_of(graph, members->output[level][part]);
    const struct rfx_tensor *first = tensor_of(graph, members->output[level][0]);
    return t->layout == RFX_LAYOUT_PLAIN && t->shape.rank == 3 && t->shape.dims[0] == 1 &&
           t->shape.dims[2] == head->parts[part].channels && first->shape.rank == 3 &&
           t->shape.dims[1] == first->shape.dims[1];
}

static enum rfx_status fail_missing(const struct head *head, const struct members *members,
                                    struct rfx_error *err) {
    char list[LIST] = "";
    size_t used = 0;
    for (int l = 0; l < head->n_levels; l++)
        for (int p = 0; p < head->n_parts; p++) {
            char name[NAME];
            if (members->output[l][p] >= 0) continue;
            write_name(head, l, p, name);
            used +=
                (size_t)snprintf(list + used, LIST - used, "%s'%s'", used > 0 ? ", " : "", name);
        }
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "boxes: a head '%s' has %d outputs; the network lacks %s", head->name,
                    head->n_levels * head->n_parts, list);
}

static enum rfx_status fail_shape(const struct rfx_graph *graph, const struct head *head,
                                  const struct members *members, int level, int part,
                                  struct rfx_error *err) {
    int k = members->output[level][part];
    const struct rfx_shape shape = rfx_output_shape(graph, k);
    char text[RFX_SHAPE_TEXT];
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "boxes: output '%s' of a head '%s' has the shape 1 x candidates x %" PRId64
                    " with as many candidates as '%s'; here it has %s",
                    graph->outputs[k].name, head->name, head->parts[part].channels,
                    graph->outputs[members->output[level][0]].name,
                    rfx_shape_text(&shape, "x", text));
}

void rfx_join_free_name(const struct rfx_graph *graph, const char *base, char name[NAME]) {
    (void)snprintf(name, NAME, "%s", base);
    for (int i = 2; rfx_graph_find(graph, name) >= 0 || rfx_join_find_output(graph, name) >= 0; i++)
        (void)snprintf(name, NAME, "%s#%d", base, i);
}

enum rfx_status rfx_join_concat(struct rfx_graph *graph, const char *base, int axis, const int *in,
                                int n, int *out, struct rfx_error *err) {
    char name[NAME];
    rfx_join_free_name(graph, base, name);
    struct rfx_node node = {.op = RFX_OP_PLAIN_CONCAT, .name = name, .n_in = n, .in = in};
    node.attr.concat.axis = axis;
    return rfx_graph_add(graph, &node, out, err);
}

enum rfx_status rfx_join_take_output(struct rfx_graph *graph, int k, int *node,
                                     struct rfx_error *err) {
    int own = graph->outputs[k].node, copy = own;
    enum rfx_status status = rfx_graph_as_numbers(graph, own, node, err);
    if (status != RFX_OK || *node != own) return status;
    status = rfx_graph_copy_tensor(graph, graph->outputs[k].name, &copy, err);
    if (status == RFX_OK) graph->outputs[k].node = copy;
    return status;
}

enum rfx_status rfx_join_add_output(struct rfx_graph *graph, int node, const char *head,
                                    struct rfx_error *err) {
    char name[NAME] = "detections";
    for (int i = 2; rfx_join_find_output(graph, name) >= 0; i++)
        (void)snprintf(name, NAME, "detections#%d", i);
    enum rfx_status status = rfx_graph_add_output(graph, node, name, err);
    if (status == RFX_OK) graph->outputs[graph->n_outputs - 1].stored.head = head;
    return status;
}

static enum rfx_status join_level(struct rfx_graph *graph, const struct head *head,
                                  const struct members *members, bool only, int level, int *out,
                                  struct rfx_error *err) {
    int in[PARTS];
    enum rfx_status status = RFX_OK;
    for (int p = 0; p < head->n_parts && status == RFX_OK; p++) {
        int k = members->output[level][p];
        status = only ? rfx_graph_as_numbers(graph, graph->outputs[k].node, &in[p], err)
                      : rfx_join_take_output(graph, k, &in[p], err);
    }
    return status == RFX_OK ? rfx_join_concat(graph, "candidates", 2, in, head->n_parts, out, err)
                            : status;
}

static void remove_members(struct rfx_graph *graph, const struct head *head) {
    for (int l = 0; l < head->n_levels; l++)
        for (int p = 0; p < head->n_parts; p++) {
            char name[NAME];
            write_name(head, l, p, name);
            rfx_join_remove_output(graph, name);
        }
}

static enum rfx_status join(struct rfx_graph *graph, const struct head *head,
                            const struct members *members, bool only, struct rfx_error *err) {
    int in[LEVELS] = {0}, node = -1;
    enum rfx_status status = RFX_OK;
    for (int l = 0; l < head->n_levels && status == RFX_OK; l++)
        status = join_level(graph, head, members, only, l, &in[l], err);
    if (status == RFX_OK) {
        node = in[0];
        if (head->n_levels > 1)
            status = rfx_join_concat(graph, "detections", 1, in, head->n_levels, &node, err);
    }
    if (status == RFX_OK && only) remove_members(graph, head);
    return status == RFX_OK ? rfx_join_add_output(graph, node, head->name, err) : status;
}

enum rfx_status rfx_graph_join_heads(struct rfx_graph *graph, bool only, struct rfx_error *err) {
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const struct head *head = &heads[i];
        const struct members members = find_members(graph, head);
        int all = head->n_levels * head->n_parts;
        bool sure = head->n_levels > 1; /* names of a single level are those of other heads, too */
        if (members.found < all && !(sure && 2 * members.found >= all)) continue;
        if (members.found < all) return fail_missing(head, &members, err);
        bool fit = true;
        for (int l = 0; l < head->n_levels && fit; l++)
            for (int p = 0; p < head->n_parts && fit; p++) {
                fit = fits(graph, head, &members, l, p);
                if (!fit && sure) return fail_shape(graph, head, &members, l, p, err);
            }
        if (fit) return join(graph, head, &members, only, err);
    }
    struct rfx_detector detector;
    return rfx_centernet_find(graph, &detector)
               ? rfx_graph_join_detector(graph, &detector, only, err)
               : RFX_OK;
}
