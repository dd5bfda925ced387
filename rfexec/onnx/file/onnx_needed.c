/* What the outputs of a graph need, found from the last node to the first. */
#include "onnx.pb.h"
#include "rfexec/onnx/file/onnx_wire.h"

/* Names that something needs, as hashes: two names that share one would keep what need not be kept,
 * no more. Open addressing; 0 is an empty row. */
struct needed {
    struct rfx_onnx_reader *r;
    uint64_t *rows;
    size_t count, capacity;
};

static bool is_needed(const struct needed *needed, uint64_t hash) {
    size_t mask = needed->capacity - 1;
    for (size_t i = (size_t)hash & mask; needed->rows[i] != 0; i = (i + 1) & mask)
        if (needed->rows[i] == hash) return true;
    return false;
}

static void put_row(uint64_t *rows, size_t mask, uint64_t hash) {
    size_t i = (size_t)hash & mask;
    while (rows[i] != 0) i = (i + 1) & mask;
    rows[i] = hash;
}

static bool need(struct needed *needed, uint64_t hash) {
    if ((needed->count + 1) * 2 > needed->capacity) {
        size_t next = needed->capacity == 0 ? 1024 : needed->capacity * 2;
        uint64_t *rows = rfx_arena_alloc(needed->r->arena, next, sizeof *rows);
        if (rows == NULL) return false;
        for (size_t i = 0; i < needed->capacity; i++)
            if (needed->rows[i] != 0) put_row(rows, next - 1, needed->rows[i]);
        needed->rows = rows;
        needed->capacity = next;
    }
    if (is_needed(needed, hash)) return true;
    put_row(needed->rows, needed->capacity - 1, hash);
    needed->count++;
    return true;
}

/* Appends the hash (FNV-1a, never 0) of a name to an int_list. */
static bool take_hash(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    struct rfx_onnx_int_list *list = *arg;
    uint64_t hash = 0xcbf29ce484222325u;
    while (stream->bytes_left > 0) {
        uint8_t piece[64];
        size_t n = stream->bytes_left < sizeof piece ? stream->bytes_left : sizeof piece;
        if (!pb_read(stream, piece, n)) return false;
        for (size_t i = 0; i < n; i++) hash = (hash ^ piece[i]) * 0x100000001b3u;
    }
    if (!rfx_onnx_reserve(list->r, &list->items, list->count, &list->capacity, 1,
                          sizeof *list->items))
        return false;
    list->items[list->count++] = (int64_t)(hash | 1);
    return true;
}

/* Needs the names of inputs and outputs: the latter are what is asked for, and of the former those
 * that are no initialisers are images. */
static enum rfx_status need_values(struct rfx_onnx_reader *r,
                                   const struct rfx_onnx_span_list *values, struct needed *needed) {
    struct rfx_onnx_int_list names = {.r = r};
    for (size_t i = 0; i < values->count; i++) {
        onnx_ValueInfoProto m = onnx_ValueInfoProto_init_zero;
        rfx_onnx_bind(&m.name, take_hash, &names);
        names.count = 0;
        enum rfx_status status =
            rfx_onnx_decode(r, values->items[i], onnx_ValueInfoProto_fields, &m, "value");
        if (status != RFX_OK) return status;
        if (names.count != 0 && !need(needed, (uint64_t)names.items[names.count - 1]))
            return rfx_onnx_no_memory(r);
    }
    return RFX_OK;
}

/* Appends the graphs that an attribute holds. */
static enum rfx_status find_graphs(struct rfx_onnx_reader *r, struct rfx_onnx_span attr,
                                   struct rfx_onnx_span_list *graphs) {
    onnx_AttributeProto m = onnx_AttributeProto_init_zero;
    pb_callback_t *const bulky[] = {&m.s, &m.t, &m.floats, &m.ints, &m.strings, &m.tensors};
    for (size_t k = 0; k < sizeof bulky / sizeof bulky[0]; k++)
        rfx_onnx_bind(bulky[k], rfx_onnx_skip_span, NULL);
    rfx_onnx_bind(&m.g, rfx_onnx_take_span, graphs);
    rfx_onnx_bind(&m.graphs, rfx_onnx_take_span, graphs);
    return rfx_onnx_decode(r, attr, onnx_AttributeProto_fields, &m, "attribute");
}

/* Needs what a node of a sub-graph reads, and appends the graphs that it holds itself. */
static enum rfx_status need_inner_node(struct needed *needed, struct rfx_onnx_span node,
                                       struct rfx_onnx_span_list *graphs) {
    struct rfx_onnx_reader *r = needed->r;
    struct rfx_onnx_int_list in = {.r = r};
    struct rfx_onnx_span_list attrs = {.r = r};
    onnx_NodeProto m = onnx_NodeProto_init_zero;
    rfx_onnx_bind(&m.input, take_hash, &in);
    rfx_onnx_bind(&m.attribute, rfx_onnx_take_span, &attrs);
    enum rfx_status status = rfx_onnx_decode(r, node, onnx_NodeProto_fields, &m, "node");
    for (size_t k = 0; status == RFX_OK && k < in.count; k++)
        if (!need(needed, (uint64_t)in.items[k])) status = rfx_onnx_no_memory(r);
    for (size_t k = 0; status == RFX_OK && k < attrs.count; k++)
        status = find_graphs(r, attrs.items[k], graphs);
    return status;
}

/* Needs all that sub-graphs may read of the graph that they are in: the inputs of their nodes,
 * however deep, and their outputs. */
static enum rfx_status need_outer(struct needed *needed, struct rfx_onnx_span_list *graphs) {
    struct rfx_onnx_reader *r = needed->r;
    enum rfx_status status = RFX_OK;
    while (status == RFX_OK && graphs->count > 0) {
        struct rfx_onnx_span_list nodes = {.r = r}, out = {.r = r};
        onnx_GraphProto m = onnx_GraphProto_init_zero;
        rfx_onnx_bind(&m.node, rfx_onnx_take_span, &nodes);
        rfx_onnx_bind(&m.output, rfx_onnx_take_span, &out);
        rfx_onnx_bind(&m.initializer, rfx_onnx_skip_span, NULL);
        struct rfx_onnx_span span = graphs->items[--graphs->count];
        status = rfx_onnx_decode(r, span, onnx_GraphProto_fields, &m, "graph");
        if (status == RFX_OK) status = need_values(r, &out, needed);
        for (size_t k = 0; status == RFX_OK && k < nodes.count; k++)
            status = need_inner_node(needed, nodes.items[k], graphs);
    }
    return status;
}

/* Keeps the nodes that something needs, from the last one to the first: users come after makers. */
static enum rfx_status drop_nodes(struct rfx_onnx_reader *r, struct rfx_onnx_span_list *nodes,
                                  struct needed *needed) {
    struct rfx_onnx_int_list in = {.r = r}, out = {.r = r};
    struct rfx_onnx_span_list attrs = {.r = r}, graphs = {.r = r};
    size_t kept = nodes->count;
    for (size_t i = nodes->count; i-- > 0;) {
        onnx_NodeProto m = onnx_NodeProto_init_zero;
        rfx_onnx_bind(&m.input, take_hash, &in);
        rfx_onnx_bind(&m.output, take_hash, &out);
        rfx_onnx_bind(&m.attribute, rfx_onnx_take_span, &attrs);
        in.count = out.count = attrs.count = 0;
        enum rfx_status status =
            rfx_onnx_decode(r, nodes->items[i], onnx_NodeProto_fields, &m, "node");
        if (status != RFX_OK) return status;
        bool live = false;
        for (size_t k = 0; k < out.count; k++)
            live = live || is_needed(needed, (uint64_t)out.items[k]);
        if (!live) continue;
        nodes->items[--kept] = nodes->items[i];
        for (size_t k = 0; k < in.count; k++)
            if (!need(needed, (uint64_t)in.items[k])) return rfx_onnx_no_memory(r);
        for (size_t k = 0; status == RFX_OK && k < attrs.count; k++)
            status = find_graphs(r, attrs.items[k], &graphs);
        if (status == RFX_OK) status = need_outer(needed, &graphs);
        if (status != RFX_OK) return status;
    }
    if (kept == 0) return RFX_OK; /* where there are no nodes, there is no list to move in */
    nodes->items += kept;
    nodes->count -= kept;
    return RFX_OK;
}

static enum rfx_status drop_tensors(struct rfx_onnx_reader *r, struct rfx_onnx_span_list *tensors,
                                    const struct needed *needed) {
    struct rfx_onnx_int_list name = {.r = r};
    size_t kept = 0;
    for (size_t i = 0; i < tensors->count; i++) {
        onnx_TensorProto m = onnx_TensorProto_init_zero;
        rfx_onnx_bind(&m.name, take_hash, &name);
        pb_callback_t *const bulky[] = {&m.raw_data,   &m.float_data, &m.double_data,
                                        &m.int32_data, &m.int64_data, &m.uint64_data,
                                        &m.string_data};
        for (size_t k = 0; k < sizeof bulky / sizeof bulky[0]; k++)
            rfx_onnx_bind(bulky[k], rfx_onnx_skip_span, NULL);
        name.count = 0;
        enum rfx_status status =
            rfx_onnx_decode(r, tensors->items[i], onnx_TensorProto_fields, &m, "tensor");
        if (status != RFX_OK) return status;
        if (name.count != 0 && is_needed(needed, (uint64_t)name.items[name.count - 1]))
            tensors->items[kept++] = tensors->items[i];
    }
    tensors->count = kept;
    return RFX_OK;
}

enum rfx_status rfx_onnx_drop_unneeded(struct rfx_onnx_reader *r, struct rfx_onnx_span_list *nodes,
                                       struct rfx_onnx_span_list *tensors,
                                       const struct rfx_onnx_span_list *in,
                                       const struct rfx_onnx_span_list *out) {
    struct needed needed = {.r = r};
    if (!need(&needed, 1)) return rfx_onnx_no_memory(r); /* makes the table */
    enum rfx_status status = need_values(r, out, &needed);
    if (status == RFX_OK) status = need_values(r, in, &needed);
    if (status == RFX_OK) status = drop_nodes(r, nodes, &needed);
    return status == RFX_OK ? drop_tensors(r, tensors, &needed) : status;
}
