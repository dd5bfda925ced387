/* Builds and frees graphs. Every string and table of a node is copied into the graph's allocator,
 * names in printable form, so callers may build nodes on their stack. */
#include "layers/graph/graph.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "layers/core/printable.h"
#include "layers/graph/infer.h"
#include "layers/graph/op.h"

enum rfx_status rfx_graph_create(struct rfx_memory *mem, const char *name, struct rfx_graph **out,
                                 struct rfx_error *err) {
    struct rfx_graph *graph = rfx_memory_calloc(mem, 1, sizeof *graph);
    if (graph == NULL) return rfx_memory_fail(mem, "graph", sizeof *graph, err);
    graph->mem = mem;
    graph->input = -1;
    graph->name = rfx_printable_copy(mem, name);
    if (graph->name == NULL) {
        rfx_memory_release(mem, graph);
        return rfx_memory_fail(mem, "graph name", strlen(name) + 1, err);
    }
    *out = graph;
    return RFX_OK;
}

/* Frees the block of a const pointer that the graph owns. */
static void release_owned(struct rfx_memory *mem, const void *block) {
    union {
        const void *in;
        void *out;
    } unconst = {block};
    rfx_memory_release(mem, unconst.out);
}

static void release_weight(struct rfx_memory *mem, struct rfx_weight *weight) {
    bool repeated = weight->source == RFX_WEIGHT_REPEATED;
    if (repeated || weight->source == RFX_WEIGHT_OWNED) release_owned(mem, weight->data);
    if (repeated) release_owned(mem, weight->places);
}

/* Returns the address of the table of indices that a node has, or NULL; sets *count. */
static int64_t **node_map(struct rfx_node *node, int64_t *count) {
    const struct rfx_op_def *def = rfx_op_def(node->op);
    return def->index_table == NULL ? NULL : def->index_table(node, count);
}

void rfx_node_release(struct rfx_memory *mem, struct rfx_node *node) {
    int64_t count;
    int64_t **map = node_map(node, &count);
    if (map != NULL) rfx_memory_release(mem, *map);
    release_owned(mem, node->name);
    release_owned(mem, node->alias);
    release_owned(mem, node->in);
}

/* Frees a graph that was made from a base graph. Its nodes are its own, and so are outputs, ends
 * and added weights if they differ from the base's. Everything else belongs to the base, including
 * tables of indices and names of outputs. */
static void free_grouped(struct rfx_graph *graph) {
    for (int i = 0; i < graph->n_nodes; i++) {
        release_owned(graph->mem, graph->nodes[i].name);
        release_owned(graph->mem, graph->nodes[i].alias);
        release_owned(graph->mem, graph->nodes[i].in);
    }
    if (graph->outputs != graph->base->outputs) rfx_memory_release(graph->mem, graph->outputs);
    if (graph->ends != graph->base->ends) rfx_memory_release(graph->mem, graph->ends);
    if (graph->weights != graph->base->weights) {
        for (int i = graph->base->n_weights; i < graph->n_weights; i++)
            release_weight(graph->mem, &graph->weights[i]);
        rfx_memory_release(graph->mem, graph->weights);
    }
    rfx_memory_release(graph->mem, graph->nodes);
    rfx_memory_release(graph->mem, graph->n_consumers);
    rfx_memory_release(graph->mem, graph);
}

void rfx_graph_free(struct rfx_graph *graph) {
    if (graph == NULL) return;
    struct rfx_memory *mem = graph->mem;
    if (graph->base != NULL) {
        free_grouped(graph);
        return;
    }
    for (int i = 0; i < graph->n_nodes; i++) rfx_node_release(mem, &graph->nodes[i]);
    for (int i = 0; i < graph->n_weights; i++) release_weight(mem, &graph->weights[i]);
    for (int i = 0; i < graph->n_outputs; i++) release_owned(mem, graph->outputs[i].name);
    rfx_memory_release(mem, graph->nodes);
    rfx_memory_release(mem, graph->weights);
    rfx_memory_release(mem, graph->outputs);
    rfx_memory_release(mem, graph->ends);
    rfx_memory_release(mem, graph->n_consumers);
    rfx_memory_release(mem, graph->detector);
    release_owned(mem, graph->name);
    if (graph->late_free != NULL) graph->late_free(graph->late);
    if (graph->files_free != NULL) graph->files_free(graph->files);
    rfx_memory_release(mem, graph);
}

/* Enlarges a growing table, if necessary, for one more element of `size` bytes. */
static enum rfx_status grow(struct rfx_graph *graph, void *table, int count, int *capacity,
                            size_t size, const char *what, struct rfx_error *err) {
    if (count < *capacity) return RFX_OK;
    int next = *capacity == 0 ? 16 : *capacity * 2;
    void *old;
    memcpy(&old, table, sizeof old);
    void *block = rfx_memory_realloc(graph->mem, old, (size_t)next * size);
    if (block == NULL) return rfx_memory_fail(graph->mem, what, (size_t)next * size, err);
    memcpy(table, &block, sizeof block);
    *capacity = next;
    return RFX_OK;
}

static enum rfx_status check_inputs(const struct rfx_graph *graph, const struct rfx_node *node,
                                    struct rfx_error *err) {
    const char *op = rfx_op_def(node->op)->name;
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k] < 0 || node->in[k] >= graph->n_nodes)
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "%s '%s': input %d is node %d, but only 0 to %d come before it", op,
                            node->name, k, node->in[k], graph->n_nodes - 1);
    return RFX_OK;
}

/* Checks that the inferred shape is positive and its byte size fits. */
static enum rfx_status check_shape(const struct rfx_node *node, struct rfx_error *err) {
    const char *op = rfx_op_def(node->op)->name;
    const struct rfx_tensor *t = &node->out;
    int64_t elems = 1;
    bool fits = t->shape.rank >= 0 && t->shape.rank <= RFX_MAX_RANK;
    for (int i = 0; fits && i < t->shape.rank; i++) {
        if (t->shape.dims[i] <= 0)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s '%s': output dimension %d is %lld", op,
                            node->name, i, (long long)t->shape.dims[i]);
        fits = rfx_checked_mul_i64(elems, t->shape.dims[i], &elems);
    }
    if (!fits || elems > INT64_MAX / 8)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s '%s': the output's size overflows", op,
                        node->name);
    assert(elems == t->elems);
    return RFX_OK;
}

static enum rfx_status copy_parts(struct rfx_graph *graph, const struct rfx_node *from,
                                  struct rfx_node *to, struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    int64_t count = 0;
    int64_t **map = node_map(to, &count);
    const int64_t *source = map == NULL ? NULL : *map;
    if (map != NULL) *map = NULL;
    to->name = NULL;
    to->alias = NULL;
    to->in = NULL;
    size_t in_bytes = (size_t)from->n_in * sizeof *from->in;
    int *in = rfx_memory_alloc(mem, in_bytes);
    if (in == NULL) return rfx_memory_fail(mem, "node inputs", in_bytes, err);
    if (in_bytes != 0) memcpy(in, from->in, in_bytes);
    to->in = in;
    to->name = rfx_printable_copy(mem, from->name);
    if (to->name == NULL) return rfx_memory_fail(mem, "node name", strlen(from->name) + 1, err);
    if (from->alias != NULL && (to->alias = rfx_printable_copy(mem, from->alias)) == NULL)
        return rfx_memory_fail(mem, "node alias", strlen(from->alias) + 1, err);
    if (map == NULL) return RFX_OK;
    size_t bytes;
    if (count < 0 || !rfx_checked_mul_size((size_t)count, sizeof **map, &bytes) ||
        (*map = rfx_memory_alloc(mem, bytes)) == NULL)
        return rfx_memory_fail(mem, "channel map", (size_t)count, err);
    if (bytes != 0) memcpy(*map, source, bytes);
    return RFX_OK;
}

/* Sets *out to a CONVERT node that converts node `from` to `type`: an existing one or a new one. */
static enum rfx_status convert_node(struct rfx_graph *graph, int from, enum rfx_type type, int *out,
                                    struct rfx_error *err) {
    char name[200];
    for (int i = from + 1; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        if (node->op != RFX_OP_CONVERT || node->in[0] != from || node->out.type != type) continue;
        if (node->attr.convert.scale != 0.0f) continue;
        *out = i;
        return RFX_OK;
    }
    (void)snprintf(name, sizeof name, "%.160s as %s", graph->nodes[from].name, rfx_type_name(type));
    const struct rfx_node node = {
        .op = RFX_OP_CONVERT, .name = name, .n_in = 1, .in = &from, .attr.convert = {.to = type}};
    return rfx_graph_add(graph, &node, out, err);
}

/* Adds the node after converting its inputs to `type`; at least one input has another type. */
static enum rfx_status add_converted(struct rfx_graph *graph, const struct rfx_node *node,
                                     enum rfx_type type, int *out_index, struct rfx_error *err) {
    size_t bytes = (size_t)node->n_in * sizeof *node->in;
    int *in = rfx_memory_alloc(graph->mem, bytes);
    if (in == NULL) return rfx_memory_fail(graph->mem, "node inputs", bytes, err);
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < node->n_in && status == RFX_OK; k++) {
        in[k] = node->in[k];
        if (graph->nodes[in[k]].out.type == type) continue;
        status = convert_node(graph, node->in[k], type, &in[k], err);
        if (status != RFX_OK)
            status = rfx_fail_within(err, status, "%s '%s': input %d", rfx_op_def(node->op)->name,
                                     node->name, k);
    }
    struct rfx_node copy = *node;
    copy.in = in;
    if (status == RFX_OK) status = rfx_graph_add(graph, &copy, out_index, err);
    rfx_memory_release(graph->mem, in);
    return status;
}

static const char *const int8_names[] = {[RFX_INT8_ORT] = "ort", [RFX_INT8_SPEC] = "spec"};
_Static_assert(sizeof int8_names / sizeof *int8_names == RFX_INT8_COUNT, "a name per choice");

const char *rfx_int8_choice_name(enum rfx_int8_choice choice) {
    return int8_names[choice];
}

bool rfx_int8_choice_find(const char *name, enum rfx_int8_choice *choice) {
    for (int c = 0; c < RFX_INT8_COUNT; c++) {
        if (strcmp(name, int8_names[c]) != 0) continue;
        *choice = (enum rfx_int8_choice)c;
        return true;
    }
    return false;
}

enum rfx_status rfx_graph_as_numbers(struct rfx_graph *graph, int node, int *out,
                                     struct rfx_error *err) {
    *out = node;
    if (graph->nodes[node].out.type == RFX_TYPE_FLOAT32) return RFX_OK;
    return convert_node(graph, node, RFX_TYPE_FLOAT32, out, err);
}

static bool has_other_input(const struct rfx_graph *graph, const struct rfx_node *node,
                            enum rfx_type type) {
    for (int k = 0; k < node->n_in; k++)
        if (graph->nodes[node->in[k]].out.type != type) return true;
    return false;
}

/* Sets the output's type and quant for ops that keep those of their inputs. */
static enum rfx_status keep_type(const struct rfx_graph *graph, struct rfx_node *node,
                                 struct rfx_error *err) {
    if (!rfx_op_def(node->op)->keeps_type) return RFX_OK;
    const struct rfx_tensor *first = rfx_infer_in(graph, node, 0);
    for (int k = 1; k < node->n_in; k++)
        if (rfx_infer_in(graph, node, k)->quant != first->quant)
            return rfx_infer_refuse(node, err, "input %d has not the scale of input 0", k);
    node->out.type = first->type;
    node->out.quant = first->quant;
    return RFX_OK;
}

enum rfx_status rfx_graph_add(struct rfx_graph *graph, const struct rfx_node *node, int *out_index,
                              struct rfx_error *err) {
    enum rfx_status status = check_inputs(graph, node, err);
    if (status != RFX_OK) return status;
    enum rfx_type type = rfx_infer_type(graph, node);
    if (has_other_input(graph, node, type)) return add_converted(graph, node, type, out_index, err);
    if (rfx_node_is_input(node) && graph->input >= 0)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "input '%s': the graph already has input '%s'",
                        node->name, graph->nodes[graph->input].name);
    status = grow(graph, &graph->nodes, graph->n_nodes, &graph->node_capacity, sizeof *node,
                  "graph nodes", err);
    if (status != RFX_OK) return status;
    struct rfx_node *copy = &graph->nodes[graph->n_nodes];
    *copy = *node;
    if (copy->act.kind != RFX_ACT_PRELU) copy->act.slope = -1;
    status = copy_parts(graph, node, copy, err);
    if (status == RFX_OK) status = rfx_op_def(copy->op)->infer(graph, copy, err);
    if (status == RFX_OK) status = keep_type(graph, copy, err);
    if (status == RFX_OK) status = check_shape(copy, err);
    if (status != RFX_OK) {
        rfx_node_release(graph->mem, copy);
        return status;
    }
    rfx_node_want_all(graph, copy);
    if (rfx_node_is_input(node)) graph->input = graph->n_nodes;
    *out_index = graph->n_nodes++;
    return RFX_OK;
}

/* Replaces *list by a copy of its `count` floats, or by zeros if it is NULL. */
static enum rfx_status copy_floats(struct rfx_memory *mem, int64_t count, const float **list,
                                   struct rfx_error *err) {
    size_t bytes = 0;
    float *data = NULL;
    if (count >= 0 && rfx_checked_mul_size((size_t)count, rfx_floats_bytes(1), &bytes))
        data = rfx_memory_calloc(mem, 1, bytes);
    if (data == NULL) return rfx_memory_fail(mem, "weight", bytes, err);
    if (*list != NULL && bytes != 0) memcpy(data, *list, bytes);
    *list = data;
    return RFX_OK;
}

/* Copies the values and the places of a REPEATED weight. */
static enum rfx_status copy_repeated(struct rfx_memory *mem, struct rfx_weight *weight,
                                     struct rfx_error *err) {
    size_t bytes = (size_t)weight->n_places * sizeof *weight->places;
    struct rfx_weight_places *places = rfx_memory_alloc(mem, bytes);
    if (places == NULL) return rfx_memory_fail(mem, "weight", bytes, err);
    memcpy(places, weight->places, bytes);
    weight->places = places;
    enum rfx_status status = copy_floats(mem, weight->stored, &weight->data, err);
    if (status != RFX_OK) rfx_memory_release(mem, places);
    return status;
}

enum rfx_status rfx_graph_add_weight(struct rfx_graph *graph, const struct rfx_weight *weight,
                                     int *out_index, struct rfx_error *err) {
    enum rfx_status status = grow(graph, &graph->weights, graph->n_weights, &graph->weight_capacity,
                                  sizeof *weight, "graph weights", err);
    if (status != RFX_OK) return status;
    struct rfx_weight *copy = &graph->weights[graph->n_weights];
    *copy = *weight;
    if (weight->source == RFX_WEIGHT_OWNED) {
        copy->type = RFX_TYPE_FLOAT32;
        status = copy_floats(graph->mem, weight->elems, &copy->data, err);
    } else if (weight->source == RFX_WEIGHT_REPEATED) {
        status = copy_repeated(graph->mem, copy, err);
    }
    if (status == RFX_OK) *out_index = graph->n_weights++;
    return status;
}

void rfx_node_want_all(const struct rfx_graph *graph, struct rfx_node *node) {
    bool reduces = rfx_op_def(node->op)->reduction != NULL;
    node->wanted = rfx_node_full_rect(node);
    node->taken = reduces ? rfx_node_full_rect(&graph->nodes[node->in[0]]) : rfx_rect_full(0, 0);
}

float *rfx_graph_owned_weight(struct rfx_graph *graph, int index) {
    assert(graph->weights[index].source == RFX_WEIGHT_OWNED ||
           graph->weights[index].source == RFX_WEIGHT_REPEATED);
    union {
        const void *in;
        float *out;
    } unconst = {graph->weights[index].data};
    return unconst.out;
}

enum rfx_status rfx_graph_set_alias(struct rfx_graph *graph, int node, const char *alias,
                                    struct rfx_error *err) {
    char *copy = rfx_printable_copy(graph->mem, alias);
    if (copy == NULL) return rfx_memory_fail(graph->mem, "node alias", strlen(alias) + 1, err);
    release_owned(graph->mem, graph->nodes[node].alias);
    graph->nodes[node].alias = copy;
    return RFX_OK;
}

enum rfx_status rfx_graph_add_output(struct rfx_graph *graph, int node, const char *name,
                                     struct rfx_error *err) {
    if (node < 0 || node >= graph->n_nodes)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "output '%s' is node %d of %d", name, node,
                        graph->n_nodes);
    enum rfx_status status = grow(graph, &graph->outputs, graph->n_outputs, &graph->output_capacity,
                                  sizeof *graph->outputs, "graph outputs", err);
    if (status != RFX_OK) return status;
    char *copy = rfx_printable_copy(graph->mem, name);
    if (copy == NULL) return rfx_memory_fail(graph->mem, "output name", strlen(name) + 1, err);
    const struct rfx_node *of = &graph->nodes[node];
    graph->outputs[graph->n_outputs++] = (struct rfx_output){.node = node,
                                                             .name = copy,
                                                             .part = rfx_node_full_rect(of),
                                                             .stored = {.type = of->out.type}};
    return RFX_OK;
}

void rfx_graph_remove_output(struct rfx_graph *graph, int k) {
    release_owned(graph->mem, graph->outputs[k].name);
    graph->n_outputs--;
    for (int i = k; i < graph->n_outputs; i++) graph->outputs[i] = graph->outputs[i + 1];
}

/* Whether the axes before `end` are one axis of c (if c > 1) and otherwise axes of 1. */
static bool is_prefix(const struct rfx_shape *shape, int end, int64_t c) {
    int64_t product = 1;
    for (int i = 0; i < end; i++) {
        if (shape->dims[i] != 1 && shape->dims[i] != c) return false;
        product *= shape->dims[i] == c ? c : 1;
        if (product > c) return false;
    }
    return product == c;
}

bool rfx_shape_is_of_map(const struct rfx_shape *shape, const struct rfx_tensor *map, bool last) {
    int row = shape->rank - (last ? 3 : 2);
    if (map->layout != RFX_LAYOUT_NHWC || row < 0) return false;
    if (shape->dims[row] != map->h || shape->dims[row + 1] != map->w) return false;
    if (last && shape->dims[row + 2] != map->c) return false;
    return is_prefix(shape, row, last ? 1 : map->c);
}

bool rfx_graph_reshape_output(struct rfx_graph *graph, int k, const struct rfx_shape *shape,
                              bool last) {
    struct rfx_output *output = &graph->outputs[k];
    const struct rfx_tensor *map = &graph->nodes[output->node].out;
    if (map->h * map->w == 1 || !rfx_shape_is_of_map(shape, map, last)) return false;
    output->stored.reshaped = true;
    output->stored.last = last;
    output->stored.shape = *shape;
    return true;
}

int64_t rfx_graph_image_extent(const struct rfx_graph *graph, int axis) {
    if (graph->padded[axis] > 0 || graph->input < 0) return graph->padded[axis];
    const struct rfx_tensor *image = &graph->nodes[graph->input].out;
    return axis == 0 ? image->h : image->w;
}

struct rfx_shape rfx_output_shape(const struct rfx_graph *graph, int k) {
    const struct rfx_output *output = &graph->outputs[k];
    const struct rfx_tensor *t = &graph->nodes[output->node].out;
    struct rfx_shape shape = output->stored.reshaped ? output->stored.shape : t->shape;
    if (t->layout != RFX_LAYOUT_NHWC) return shape;
    int row = shape.rank - (output->stored.last ? 3 : 2);
    shape.dims[row] = rfx_rect_rows(output->part);
    shape.dims[row + 1] = rfx_rect_cols(output->part);
    return shape;
}

struct rfx_spread rfx_stored_spread(const struct rfx_stored *stored, struct rfx_rect rect,
                                    int64_t c) {
    int64_t cols = rfx_rect_cols(rect), first = -(rect.y0 * cols + rect.x0);
    if (stored->last) return (struct rfx_spread){first * c, cols * c, c, 1};
    return (struct rfx_spread){first, cols, 1, rfx_rect_area(rect)};
}

int rfx_graph_find(const struct rfx_graph *graph, const char *name) {
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        if (strcmp(node->name, name) == 0) return i;
    }
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        const char *alias = graph->nodes[i].alias;
        if (alias != NULL && strcmp(alias, name) == 0) return i;
    }
    return -1;
}

int rfx_graph_count_outputs(const struct rfx_graph *graph, int node) {
    int n = 0;
    for (int e = 0; e < graph->n_ends; e++) n += graph->ends[e].node == node;
    return n;
}

struct rfx_spread rfx_join_spread(const struct rfx_graph *graph, const struct rfx_node *join,
                                  int k) {
    const struct rfx_tensor *map = &graph->nodes[join->in[k]].out;
    bool last = join->attr.concat.axis == 1;
    int64_t first = 0;
    for (int i = 0; i < k; i++) {
        const struct rfx_tensor *t = &graph->nodes[join->in[i]].out;
        first += t->h * t->w * (last ? t->c : 1);
    }
    if (last) return (struct rfx_spread){first, map->w * map->c, map->c, 1};
    return (struct rfx_spread){first, map->w, 1, join->out.shape.dims[2]};
}

static bool is_join(const struct rfx_graph *graph, int k) {
    return rfx_node_is_joined(&graph->nodes[graph->outputs[k].node]);
}

enum rfx_status rfx_graph_list_ends(struct rfx_graph *graph, struct rfx_error *err) {
    int n = 0;
    for (int k = 0; k < graph->n_outputs; k++)
        n += is_join(graph, k) ? graph->nodes[graph->outputs[k].node].n_in : 1;
    if (graph->base == NULL || graph->ends != graph->base->ends)
        rfx_memory_release(graph->mem, graph->ends);
    graph->n_ends = 0;
    graph->ends = rfx_memory_calloc(graph->mem, (size_t)n, sizeof *graph->ends);
    if (graph->ends == NULL)
        return rfx_memory_fail(graph->mem, "ends", (size_t)n * sizeof *graph->ends, err);
    for (int k = 0; k < graph->n_outputs; k++) {
        int index = graph->outputs[k].node;
        const struct rfx_node *node = &graph->nodes[index];
        const struct rfx_output *output = &graph->outputs[k];
        struct rfx_end whole = {index, k, node->out.c,
                                rfx_stored_spread(&output->stored, output->part, node->out.c)};
        if (!is_join(graph, k)) graph->ends[graph->n_ends++] = whole;
        for (int i = 0; is_join(graph, k) && i < node->n_in; i++)
            graph->ends[graph->n_ends++] = (struct rfx_end){
                node->in[i], k, graph->nodes[node->in[i]].out.c, rfx_join_spread(graph, node, i)};
    }
    return RFX_OK;
}

struct rfx_rect rfx_end_part(const struct rfx_graph *graph, const struct rfx_end *end) {
    const struct rfx_output *output = &graph->outputs[end->output];
    return output->node == end->node ? output->part : rfx_node_full_rect(&graph->nodes[end->node]);
}

size_t rfx_node_out_bytes(const struct rfx_node *node) {
    return rfx_tensor_bytes(&node->out);
}

static uint64_t weight_elems(const struct rfx_graph *graph, int index) {
    return index < 0 ? 0 : (uint64_t)graph->weights[index].elems;
}

uint64_t rfx_node_param_count(const struct rfx_graph *graph, const struct rfx_node *node) {
    uint64_t count = node->act.kind == RFX_ACT_PRELU ? weight_elems(graph, node->act.slope) : 0;
    const struct rfx_weight_slot *slot = rfx_op_def(node->op)->weights;
    for (; slot != NULL && slot->name != NULL; slot++)
        count += weight_elems(graph, *rfx_node_weight_at(node, slot));
    return count;
}

uint64_t rfx_graph_param_count(const struct rfx_graph *graph) {
    if (graph->param_count != 0) return graph->param_count;
    uint64_t total = 0;
    for (int i = 0; i < graph->n_nodes; i++) total += rfx_node_param_count(graph, &graph->nodes[i]);
    return total;
}
