#include "layers/fuse/fuse_attention.h"

/* Whether a node has this op and no activation, and exactly one node reads its tensor. */
static bool is_part(const struct rfx_graph *graph, const int *consumers, int i, enum rfx_op op) {
    const struct rfx_node *node = &graph->nodes[i];
    return node->op == op && node->act.kind == RFX_ACT_NONE && consumers[i] == 1;
}

static bool same_dims(const struct rfx_shape *a, const struct rfx_shape *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

/* Whether a product has more matrices than the softmax it reads (by broadcasting). If fused, each
 * softmax would be computed several times. */
static bool has_more_matrices(const struct rfx_shape *product, const struct rfx_shape *softmax) {
    int64_t a = 1, b = 1;
    for (int i = 0; i < product->rank - 2; i++) a *= product->dims[i];
    for (int i = 0; i < softmax->rank - 2; i++) b *= softmax->dims[i];
    return a != b;
}

/* Returns which operand of an element-wise operation is the scores: the one with its shape that
 * another part of the chain makes. -1: none. */
static int scores_of(const struct rfx_graph *graph, const int *consumers, int join) {
    const struct rfx_node *node = &graph->nodes[join];
    for (int k = 0; k < 2; k++) {
        int from = node->in[k];
        bool part = is_part(graph, consumers, from, RFX_OP_MATMUL) ||
                    is_part(graph, consumers, from, RFX_OP_PLAIN_BINARY);
        if (part && same_dims(&graph->nodes[from].out.shape, &node->out.shape)) return k;
    }
    return -1;
}

/* Follows the chain from the softmax's input back to the product that computes the scores and
 * returns this product; -1 if there is no such chain. Steps are stored last first. */
static int climb(const struct rfx_graph *graph, const int *consumers, int at,
                 struct rfx_found_attention *found) {
    while (is_part(graph, consumers, at, RFX_OP_PLAIN_BINARY)) {
        int k = scores_of(graph, consumers, at), s = found->attr.n_steps;
        if (k < 0 || s == RFX_ATTENTION_MAX_STEPS) return -1;
        const struct rfx_node *node = &graph->nodes[at];
        found->attr.steps[s].kind = node->attr.binary.kind;
        found->attr.steps[s].scores_right = k == 1;
        found->attr.n_steps++;
        found->in[3 + s] = node->in[1 - k];
        found->parts[found->n_parts++] = at;
        at = node->in[k];
    }
    return is_part(graph, consumers, at, RFX_OP_MATMUL) ? at : -1;
}

/* Reverses the steps into the order of computation. */
static void turn_round(struct rfx_found_attention *found) {
    for (int i = 0, j = found->attr.n_steps - 1; i < j; i++, j--) {
        struct rfx_attention_attr *attr = &found->attr;
        enum rfx_binary_kind kind = attr->steps[i].kind;
        bool right = attr->steps[i].scores_right;
        int in = found->in[3 + i];
        attr->steps[i] = attr->steps[j];
        attr->steps[j].kind = kind;
        attr->steps[j].scores_right = right;
        found->in[3 + i] = found->in[3 + j];
        found->in[3 + j] = in;
    }
}

bool rfx_find_attention(const struct rfx_graph *graph, const int *consumers, int product,
                        struct rfx_found_attention *found) {
    const struct rfx_node *last = &graph->nodes[product];
    *found = (struct rfx_found_attention){.n_parts = 0};
    if (last->op != RFX_OP_MATMUL || last->in[0] == last->in[1]) return false;
    int softmax = last->in[0];
    const struct rfx_node *node = &graph->nodes[softmax];
    if (!is_part(graph, consumers, softmax, RFX_OP_PLAIN_SOFTMAX) || node->attr.softmax.logarithm ||
        node->attr.softmax.axis != node->out.shape.rank - 1)
        return false;
    found->parts[found->n_parts++] = softmax;
    int scores = climb(graph, consumers, node->in[0], found);
    if (scores < 0) return false;
    found->parts[found->n_parts++] = scores;
    turn_round(found);
    if (has_more_matrices(&last->out.shape, &node->out.shape)) return false;
    found->in[0] = graph->nodes[scores].in[0];
    found->in[1] = graph->nodes[scores].in[1];
    found->in[2] = last->in[1];
    found->n_in = 3 + found->attr.n_steps;
    return true;
}
