/* Recognises boxes by names, types and shapes, and joins three outputs; see late_boxes.h. */
#include "rfexec/late/late_boxes.h"

#include <strings.h>

#include "rfexec/late/late_ops.h"

enum { BOXES, SCORES, LABELS, PARTS };

static bool is_number(enum rfx_type type, int part) {
    return part == LABELS ? rfx_type_is_integer(type) : type == RFX_TYPE_FLOAT32;
}

/* Whether the declared shape of an output can be that of the part. */
static bool fits(const struct rfx_late_output *output, int part) {
    if (!is_number(output->type, part)) return false;
    if (output->rank < 0) return true;
    return part == BOXES ? output->rank == 2 && (output->dims[1] == 4 || output->dims[1] < 0)
                         : output->rank == 1;
}

/* Returns the output with the part's name or, without one, the only output whose declared shape is
 * that of the part; -1: there is none. */
static int find_part(const struct rfx_late *late, int part) {
    static const char *const names[PARTS] = {"boxes", "scores", "labels"};
    int alike = -1, n = 0;
    for (size_t i = 0; i < late->n_outputs; i++) {
        if (!fits(&late->outputs[i], part)) continue;
        if (strcasecmp(late->outputs[i].name, names[part]) == 0) return (int)i;
        if (late->outputs[i].rank < 0) continue;
        alike = (int)i;
        n++;
    }
    return n == 1 ? alike : -1;
}

static bool is_list(const struct rfx_late_output *output) {
    return output->type == RFX_TYPE_FLOAT32 && output->rank == 3 && output->dims[0] == 1 &&
           output->dims[2] == 6;
}

/* Adds a node with n operands to the main block. Returns its result; -1: no memory. */
static int add(struct rfx_late *late, const char *op, const int *in, int n) {
    const struct rfx_late_op *row = rfx_late_op_find(op);
    struct rfx_late_node *node = rfx_late_add_node(late, &late->block, row, "detections", n, 1);
    int result = node != NULL ? rfx_late_add_value(late, -1) : -1;
    if (result < 0) return -1;
    for (int k = 0; k < n; k++) node->in[k] = in[k];
    node->out[0] = result;
    return result;
}

static struct rfx_late_node *last_node(struct rfx_late *late) {
    return &late->block.nodes[late->block.n - 1];
}

/* Adds a constant of one integer. */
static int add_number(struct rfx_late *late, int64_t number) {
    const struct rfx_shape one = {1, {1}};
    void *data;
    int value = rfx_late_add_constant(late, RFX_TYPE_INT64, &one, &data);
    if (value >= 0) *(int64_t *)data = number;
    return value;
}

/* Returns the values of boxes, scores and labels, joined along a last axis `axis`; -1: no memory.
 */
static int join_columns(struct rfx_late *late, const int *part, int axis) {
    int columns[PARTS], last = add_number(late, axis);
    if (last < 0) return -1;
    for (int i = 0; i < PARTS; i++) {
        columns[i] = part[i];
        if (i == LABELS) {
            columns[i] = add(late, "Cast", &columns[i], 1);
            if (columns[i] < 0) return -1;
            last_node(late)->ints[0] = rfx_type_onnx(RFX_TYPE_FLOAT32);
        }
        const int along[2] = {columns[i], last};
        if (i != BOXES) columns[i] = add(late, "Unsqueeze", along, 2);
        if (columns[i] < 0) return -1;
    }
    int rows = add(late, "Concat", columns, PARTS);
    if (rows >= 0) last_node(late)->ints[0] = axis;
    return rows;
}

/* Returns the value of outputs that are boxes, scores and labels as 1 x N x 6; -1: no memory. */
static int join(struct rfx_late *late, const int *part) {
    const int values[PARTS] = {late->outputs[part[BOXES]].value, late->outputs[part[SCORES]].value,
                               late->outputs[part[LABELS]].value};
    const int first[2] = {join_columns(late, values, 1), add_number(late, 0)};
    return first[0] < 0 || first[1] < 0 ? -1 : add(late, "Unsqueeze", first, 2);
}

/* Returns the node with a number of boxes, boxes, scores and labels, all of them outputs of the
 * model; NULL: there is none. */
static const struct rfx_late_node *find_plugin(const struct rfx_late *late) {
    for (size_t i = 0; i < late->block.n; i++) {
        const struct rfx_late_node *node = &late->block.nodes[i];
        int read = 0;
        if (node->op->run != rfx_late_efficient_nms || node->n_out != 1 + PARTS) continue;
        for (int k = 0; k < node->n_out; k++)
            for (size_t o = 0; o < late->n_outputs && read == k; o++)
                read += node->out[k] >= 0 && late->outputs[o].value == node->out[k];
        if (read == node->n_out) return node;
    }
    return NULL;
}

/* Returns the boxes of such a node, without the zeros behind them, as 1 x N x 6; -1: no memory. */
static int join_plugin(struct rfx_late *late, const struct rfx_late_node *node) {
    const int part[PARTS] = {node->out[1], node->out[2], node->out[3]}, n = node->out[0];
    const int one = add_number(late, 1), zero = add_number(late, 0);
    if (one < 0 || zero < 0) return -1;
    const int column[2] = {n, one};
    const int rows = join_columns(late, part, 2), end = add(late, "Squeeze", column, 2);
    const int cut[4] = {rows, zero, end, one};
    return rows < 0 || end < 0 ? -1 : add(late, "Slice", cut, 4);
}

enum rfx_status rfx_late_join_boxes(struct rfx_late *late, struct rfx_error *err) {
    int part[PARTS];
    for (size_t i = 0; i < late->n_outputs; i++)
        late->outputs[i].boxes = is_list(&late->outputs[i]);
    if (rfx_late_has_boxes(late)) return RFX_OK;
    const struct rfx_late_node *plugin = find_plugin(late);
    for (int i = 0; i < PARTS && plugin == NULL; i++) {
        part[i] = find_part(late, i);
        if (part[i] < 0) return RFX_OK;
    }
    int value = plugin != NULL ? join_plugin(late, plugin) : join(late, part);
    struct rfx_late_output *output =
        value >= 0 ? rfx_late_add_output(late, "detections", value) : NULL;
    if (output == NULL) return rfx_memory_fail(late->mem, "late nodes", sizeof *late, err);
    output->type = RFX_TYPE_FLOAT32;
    output->rank = 3;
    output->dims[0] = 1;
    output->dims[1] = -1;
    output->dims[2] = 6;
    output->boxes = true;
    return RFX_OK;
}

bool rfx_late_has_boxes(const struct rfx_late *late) {
    for (size_t i = 0; i < late->n_outputs; i++)
        if (late->outputs[i].boxes) return true;
    return false;
}
