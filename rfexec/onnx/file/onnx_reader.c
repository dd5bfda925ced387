/* Protocol buffer to plain structs: values, attributes, nodes, the graph, the model.
 *
 * Every string, sub-message and packed array is taken as a span of the file; sub-messages are
 * decoded from their span afterwards, so the depth of decoding is that of the reader's functions
 * (model, graph, node, attribute, tensor), never that of the input: sub-graphs of attributes and
 * bodies of functions are read by calls of their own. The file is read through one
 * window; what is only noted is skipped without reading it. Of nodes and initialisers that no
 * output needs nothing is held but their spans, and these only until all outputs are known. */
#include <string.h>

#include "onnx.pb.h"
#include "rfexec/onnx/file/onnx_wire.h"

/* The kind of an attribute, for files without the type field too. */
static enum rfx_onnx_attr_kind attr_kind(const onnx_AttributeProto *m, size_t n_s, size_t n_t,
                                         size_t n_g, size_t n_floats, size_t n_ints) {
    if (n_g != 0) return RFX_ONNX_ATTR_GRAPH;
    if (m->has_type) {
        int kind = (int)m->type;
        bool empty = (kind == RFX_ONNX_ATTR_TENSOR && n_t == 0) || kind == RFX_ONNX_ATTR_GRAPH;
        if (empty) return RFX_ONNX_ATTR_OTHER;
        if (kind >= RFX_ONNX_ATTR_FLOAT && kind <= RFX_ONNX_ATTR_STRINGS)
            return (enum rfx_onnx_attr_kind)kind;
        return RFX_ONNX_ATTR_OTHER;
    }
    if (m->has_f) return RFX_ONNX_ATTR_FLOAT;
    if (m->has_i) return RFX_ONNX_ATTR_INT;
    if (n_s != 0) return RFX_ONNX_ATTR_STRING;
    if (n_t != 0) return RFX_ONNX_ATTR_TENSOR;
    if (n_floats != 0) return RFX_ONNX_ATTR_FLOATS;
    return n_ints != 0 ? RFX_ONNX_ATTR_INTS : RFX_ONNX_ATTR_OTHER;
}

static enum rfx_status set_floats(struct rfx_onnx_reader *r, const struct rfx_onnx_byte_list *bytes,
                                  struct rfx_onnx_attr *a) {
    const struct rfx_onnx_bytes *from = &bytes->bytes;
    a->count = from->size / sizeof *a->floats;
    float *copy = rfx_arena_alloc(r->arena, a->count + 1, sizeof *copy);
    if (copy == NULL) return rfx_onnx_no_memory(r);
    if (from->data != NULL)
        memcpy(copy, from->data, a->count * sizeof *copy);
    else if (!rfx_onnx_read_bytes(r, from->offset, copy, a->count * sizeof *copy))
        return r->io;
    a->floats = copy;
    return RFX_OK;
}

static enum rfx_status read_attr(struct rfx_onnx_reader *r, struct rfx_onnx_span span,
                                 struct rfx_onnx_attr *a) {
    struct rfx_onnx_span_list name = {.r = r}, ref = {.r = r}, s = {.r = r}, t = {.r = r},
                              g = {.r = r};
    struct rfx_onnx_int_list ints = {.r = r};
    struct rfx_onnx_byte_list floats = {.r = r};
    onnx_AttributeProto m = onnx_AttributeProto_init_zero;
    rfx_onnx_bind(&m.name, rfx_onnx_take_span, &name);
    rfx_onnx_bind(&m.ref_attr_name, rfx_onnx_take_span, &ref);
    rfx_onnx_bind(&m.s, rfx_onnx_take_span, &s);
    rfx_onnx_bind(&m.t, rfx_onnx_take_span, &t);
    rfx_onnx_bind(&m.g, rfx_onnx_take_span, &g);
    rfx_onnx_bind(&m.graphs, rfx_onnx_take_span, &g);
    rfx_onnx_bind(&m.ints, rfx_onnx_take_ints, &ints);
    rfx_onnx_bind(&m.floats, rfx_onnx_take_bytes, &floats);
    enum rfx_status status = rfx_onnx_decode(r, span, onnx_AttributeProto_fields, &m, "attribute");
    if (status == RFX_OK) status = rfx_onnx_last_string(r, &name, &a->name);
    if (status == RFX_OK && ref.count != 0) status = rfx_onnx_last_string(r, &ref, &a->ref);
    if (status != RFX_OK) return status;
    a->kind = attr_kind(&m, s.count, t.count, g.count, floats.bytes.size, ints.count);
    a->f = m.f;
    a->i = m.i;
    a->s = "";
    a->ints = ints.items;
    a->count = ints.count;
    if (a->kind == RFX_ONNX_ATTR_GRAPH) a->graph = g.items[g.count - 1];
    if (a->kind == RFX_ONNX_ATTR_STRING) status = rfx_onnx_last_string(r, &s, &a->s);
    if (a->kind == RFX_ONNX_ATTR_FLOATS) status = set_floats(r, &floats, a);
    if (a->kind != RFX_ONNX_ATTR_TENSOR) return status;
    a->t = rfx_arena_alloc(r->arena, 1, sizeof *a->t);
    return a->t == NULL ? rfx_onnx_no_memory(r)
                        : rfx_onnx_read_tensor(r, t.items[t.count - 1], a->t);
}

static enum rfx_status read_attrs(struct rfx_onnx_reader *r, const struct rfx_onnx_span_list *spans,
                                  struct rfx_onnx_attr **out, size_t *count) {
    *out = rfx_arena_alloc(r->arena, spans->count + 1, sizeof **out);
    if (*out == NULL) return rfx_onnx_no_memory(r);
    *count = spans->count;
    enum rfx_status status = RFX_OK;
    for (size_t i = 0; status == RFX_OK && i < spans->count; i++)
        status = read_attr(r, spans->items[i], &(*out)[i]);
    return status;
}

static enum rfx_status read_node(struct rfx_onnx_reader *r, struct rfx_onnx_span span,
                                 struct rfx_onnx_node *node) {
    struct rfx_onnx_span_list name = {.r = r}, op = {.r = r}, domain = {.r = r}, in = {.r = r},
                              out = {.r = r}, attrs = {.r = r};
    onnx_NodeProto m = onnx_NodeProto_init_zero;
    rfx_onnx_bind(&m.name, rfx_onnx_take_span, &name);
    rfx_onnx_bind(&m.op_type, rfx_onnx_take_span, &op);
    rfx_onnx_bind(&m.domain, rfx_onnx_take_span, &domain);
    rfx_onnx_bind(&m.input, rfx_onnx_take_span, &in);
    rfx_onnx_bind(&m.output, rfx_onnx_take_span, &out);
    rfx_onnx_bind(&m.attribute, rfx_onnx_take_span, &attrs);
    enum rfx_status status = rfx_onnx_decode(r, span, onnx_NodeProto_fields, &m, "node");
    if (status == RFX_OK) status = rfx_onnx_last_string(r, &name, &node->name);
    if (status == RFX_OK) status = rfx_onnx_last_string(r, &op, &node->op);
    if (status == RFX_OK) status = rfx_onnx_last_string(r, &domain, &node->domain);
    if (status == RFX_OK) status = rfx_onnx_all_strings(r, &in, &node->in);
    if (status == RFX_OK) status = rfx_onnx_all_strings(r, &out, &node->out);
    if (status != RFX_OK) return status;
    node->n_in = in.count;
    node->n_out = out.count;
    status = read_attrs(r, &attrs, &node->attrs, &node->n_attrs);
    if (status == RFX_OK) return RFX_OK;
    return rfx_fail_within(r->err, status, "node '%s' (%s)", node->name, node->op);
}

static enum rfx_status read_dims(struct rfx_onnx_reader *r, struct rfx_onnx_span span,
                                 struct rfx_onnx_value *value) {
    struct rfx_onnx_span_list dims = {.r = r};
    onnx_TensorShapeProto shape = onnx_TensorShapeProto_init_zero;
    rfx_onnx_bind(&shape.dim, rfx_onnx_take_span, &dims);
    enum rfx_status status =
        rfx_onnx_decode(r, span, onnx_TensorShapeProto_fields, &shape, "shape");
    if (status != RFX_OK || dims.count > RFX_MAX_RANK) return status;
    value->rank = (int)dims.count;
    for (size_t i = 0; i < dims.count; i++) {
        onnx_TensorShapeProto_Dimension d = onnx_TensorShapeProto_Dimension_init_zero;
        status = rfx_onnx_decode(r, dims.items[i], onnx_TensorShapeProto_Dimension_fields, &d,
                                 "dimension");
        if (status != RFX_OK) return status;
        value->dims[i] = d.has_dim_value && d.dim_value > 0 ? d.dim_value : -1;
    }
    return RFX_OK;
}

static enum rfx_status read_value(struct rfx_onnx_reader *r, struct rfx_onnx_span span,
                                  struct rfx_onnx_value *value) {
    struct rfx_onnx_span_list name = {.r = r}, type = {.r = r}, tensor = {.r = r}, shape = {.r = r};
    onnx_ValueInfoProto m = onnx_ValueInfoProto_init_zero;
    rfx_onnx_bind(&m.name, rfx_onnx_take_span, &name);
    rfx_onnx_bind(&m.type, rfx_onnx_take_span, &type);
    value->rank = -1;
    enum rfx_status status = rfx_onnx_decode(r, span, onnx_ValueInfoProto_fields, &m, "value");
    if (status == RFX_OK) status = rfx_onnx_last_string(r, &name, &value->name);
    if (status != RFX_OK || type.count == 0) return status;
    onnx_TypeProto t = onnx_TypeProto_init_zero;
    rfx_onnx_bind(&t.tensor_type, rfx_onnx_take_span, &tensor);
    status = rfx_onnx_decode(r, type.items[type.count - 1], onnx_TypeProto_fields, &t, "type");
    if (status != RFX_OK || tensor.count == 0) return status;
    onnx_TypeProto_Tensor tt = onnx_TypeProto_Tensor_init_zero;
    rfx_onnx_bind(&tt.shape, rfx_onnx_take_span, &shape);
    status = rfx_onnx_decode(r, tensor.items[tensor.count - 1], onnx_TypeProto_Tensor_fields, &tt,
                             "type");
    if (status != RFX_OK) return status;
    value->type = tt.elem_type;
    return shape.count == 0 ? RFX_OK : read_dims(r, shape.items[shape.count - 1], value);
}

static enum rfx_status read_values(struct rfx_onnx_reader *r,
                                   const struct rfx_onnx_span_list *spans,
                                   struct rfx_onnx_value **out, size_t *count) {
    *out = rfx_arena_alloc(r->arena, spans->count + 1, sizeof **out);
    if (*out == NULL) return rfx_onnx_no_memory(r);
    *count = spans->count;
    enum rfx_status status = RFX_OK;
    for (size_t i = 0; status == RFX_OK && i < spans->count; i++)
        status = read_value(r, spans->items[i], &(*out)[i]);
    return status;
}

static enum rfx_status read_nodes(struct rfx_onnx_reader *r, const struct rfx_onnx_span_list *spans,
                                  struct rfx_onnx_node **out, size_t *count) {
    *out = rfx_arena_alloc(r->arena, spans->count + 1, sizeof **out);
    if (*out == NULL) return rfx_onnx_no_memory(r);
    *count = spans->count;
    enum rfx_status status = RFX_OK;
    for (size_t i = 0; status == RFX_OK && i < spans->count; i++)
        status = read_node(r, spans->items[i], &(*out)[i]);
    return status;
}

static enum rfx_status read_tensors(struct rfx_onnx_reader *r,
                                    const struct rfx_onnx_span_list *spans,
                                    struct rfx_onnx_tensor **out, size_t *count) {
    *out = rfx_arena_alloc(r->arena, spans->count + 1, sizeof **out);
    if (*out == NULL) return rfx_onnx_no_memory(r);
    *count = spans->count;
    enum rfx_status status = RFX_OK;
    for (size_t i = 0; status == RFX_OK && i < spans->count; i++)
        status = rfx_onnx_read_tensor(r, spans->items[i], &(*out)[i]);
    return status;
}

/* Where the parts of a graph lie. */
struct graph_spans {
    struct rfx_onnx_span_list name, nodes, tensors, in, out;
};

static enum rfx_status find_graph(struct rfx_onnx_reader *r, struct rfx_onnx_span span,
                                  struct graph_spans *g) {
    struct rfx_onnx_span_list none = {.r = r}, sparse = none;
    onnx_GraphProto m = onnx_GraphProto_init_zero;
    *g = (struct graph_spans){none, none, none, none, none};
    rfx_onnx_bind(&m.name, rfx_onnx_take_span, &g->name);
    rfx_onnx_bind(&m.node, rfx_onnx_take_span, &g->nodes);
    rfx_onnx_bind(&m.initializer, rfx_onnx_take_span, &g->tensors);
    rfx_onnx_bind(&m.sparse_initializer, rfx_onnx_take_span, &sparse);
    rfx_onnx_bind(&m.input, rfx_onnx_take_span, &g->in);
    rfx_onnx_bind(&m.output, rfx_onnx_take_span, &g->out);
    enum rfx_status status = rfx_onnx_decode(r, span, onnx_GraphProto_fields, &m, "graph");
    if (status != RFX_OK) return status;
    if (sparse.count != 0)
        return rfx_fail(r->err, RFX_STATUS_UNSUPPORTED,
                        "onnx: %zu sparse initialisers, which are not supported", sparse.count);
    if (r->keep_all) return RFX_OK;
    return rfx_onnx_drop_unneeded(r, &g->nodes, &g->tensors, &g->in, &g->out);
}

static enum rfx_status read_graph(struct rfx_onnx_reader *r, struct rfx_onnx_span span,
                                  struct rfx_onnx_model *model) {
    struct graph_spans g;
    enum rfx_status status = find_graph(r, span, &g);
    if (status == RFX_OK) status = rfx_onnx_last_string(r, &g.name, &model->graph_name);
    if (status == RFX_OK) status = read_tensors(r, &g.tensors, &model->tensors, &model->n_tensors);
    if (status == RFX_OK) status = read_nodes(r, &g.nodes, &model->nodes, &model->n_nodes);
    if (status == RFX_OK) status = read_values(r, &g.in, &model->inputs, &model->n_inputs);
    if (status == RFX_OK) status = read_values(r, &g.out, &model->outputs, &model->n_outputs);
    return status;
}

/* The names of a graph's outputs. */
static enum rfx_status read_names(struct rfx_onnx_reader *r, const struct rfx_onnx_span_list *spans,
                                  struct rfx_onnx_body *body) {
    struct rfx_onnx_value *values;
    enum rfx_status status = read_values(r, spans, &values, &body->n_out);
    if (status != RFX_OK) return status;
    body->out = rfx_arena_alloc(r->arena, body->n_out + 1, sizeof *body->out);
    if (body->out == NULL) return rfx_onnx_no_memory(r);
    for (size_t i = 0; i < body->n_out; i++) body->out[i] = values[i].name;
    return RFX_OK;
}

static struct rfx_onnx_reader reader_of(const struct rfx_onnx_model *model, struct rfx_error *err) {
    return (struct rfx_onnx_reader){
        .arena = model->arena, .file = model->file, .size = model->file_bytes, .err = err};
}

enum rfx_status rfx_onnx_read_branch(const struct rfx_onnx_model *model, struct rfx_onnx_attr *attr,
                                     struct rfx_error *err) {
    if (attr->body != NULL) return RFX_OK;
    struct rfx_onnx_reader reader = reader_of(model, err), *r = &reader;
    struct rfx_onnx_body *body = rfx_arena_alloc(r->arena, 1, sizeof *body);
    struct graph_spans g;
    if (body == NULL) return rfx_onnx_no_memory(r);
    enum rfx_status status = find_graph(r, attr->graph, &g);
    if (status == RFX_OK) status = read_tensors(r, &g.tensors, &body->tensors, &body->n_tensors);
    if (status == RFX_OK) status = read_nodes(r, &g.nodes, &body->nodes, &body->n_nodes);
    if (status == RFX_OK) status = read_names(r, &g.out, body);
    if (status == RFX_OK) attr->body = body;
    return status;
}

/* The version of the default domain, where it is among them. */
static enum rfx_status read_opsets(struct rfx_onnx_reader *r,
                                   const struct rfx_onnx_span_list *spans, int64_t *opset) {
    for (size_t i = 0; i < spans->count; i++) {
        struct rfx_onnx_span_list domains = {.r = r};
        const char *domain;
        onnx_OperatorSetIdProto m = onnx_OperatorSetIdProto_init_zero;
        rfx_onnx_bind(&m.domain, rfx_onnx_take_span, &domains);
        enum rfx_status status =
            rfx_onnx_decode(r, spans->items[i], onnx_OperatorSetIdProto_fields, &m, "opset");
        if (status == RFX_OK) status = rfx_onnx_last_string(r, &domains, &domain);
        if (status != RFX_OK) return status;
        if (domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0) *opset = m.version;
    }
    return RFX_OK;
}

enum { ATTRIBUTE_PROTO = 11 }; /* of FunctionProto, since version 9 of the format */

enum rfx_status rfx_onnx_read_function(const struct rfx_onnx_model *model,
                                       struct rfx_onnx_function *function, struct rfx_error *err) {
    if (function->body != NULL) return RFX_OK;
    struct rfx_onnx_reader reader = reader_of(model, err), *r = &reader;
    struct rfx_onnx_span_list in = {.r = r}, out = in, nodes = in, opsets = in, defaults = in;
    struct rfx_onnx_body *body = rfx_arena_alloc(r->arena, 1, sizeof *body);
    if (body == NULL) return rfx_onnx_no_memory(r);
    onnx_FunctionProto m = onnx_FunctionProto_init_zero;
    rfx_onnx_bind(&m.input, rfx_onnx_take_span, &in);
    rfx_onnx_bind(&m.output, rfx_onnx_take_span, &out);
    rfx_onnx_bind(&m.node, rfx_onnx_take_span, &nodes);
    rfx_onnx_bind(&m.opset_import, rfx_onnx_take_span, &opsets);
    enum rfx_status status =
        rfx_onnx_decode(r, function->span, onnx_FunctionProto_fields, &m, "function");
    if (status == RFX_OK)
        status = rfx_onnx_find_fields(r, function->span, ATTRIBUTE_PROTO, &defaults, "function");
    if (status == RFX_OK) status = rfx_onnx_all_strings(r, &in, &body->in);
    if (status == RFX_OK) status = rfx_onnx_all_strings(r, &out, &body->out);
    if (status == RFX_OK) status = read_nodes(r, &nodes, &body->nodes, &body->n_nodes);
    if (status == RFX_OK) status = read_attrs(r, &defaults, &body->defaults, &body->n_defaults);
    if (status == RFX_OK) status = read_opsets(r, &opsets, &body->opset);
    body->n_in = in.count;
    body->n_out = out.count;
    if (status == RFX_OK) function->body = body;
    return status;
}

/* What functions are called; their bodies are read when somebody calls them. */
static enum rfx_status list_functions(struct rfx_onnx_reader *r,
                                      const struct rfx_onnx_span_list *spans,
                                      struct rfx_onnx_model *model) {
    model->functions = rfx_arena_alloc(r->arena, spans->count + 1, sizeof *model->functions);
    if (model->functions == NULL) return rfx_onnx_no_memory(r);
    model->n_functions = spans->count;
    for (size_t i = 0; i < spans->count; i++) {
        struct rfx_onnx_function *f = &model->functions[i];
        struct rfx_onnx_span_list name = {.r = r}, domain = {.r = r};
        onnx_FunctionProto m = onnx_FunctionProto_init_zero;
        rfx_onnx_bind(&m.name, rfx_onnx_take_span, &name);
        rfx_onnx_bind(&m.domain, rfx_onnx_take_span, &domain);
        rfx_onnx_bind(&m.node, rfx_onnx_skip_span, NULL);
        f->span = spans->items[i];
        enum rfx_status status =
            rfx_onnx_decode(r, f->span, onnx_FunctionProto_fields, &m, "function");
        if (status == RFX_OK) status = rfx_onnx_last_string(r, &name, &f->name);
        if (status == RFX_OK) status = rfx_onnx_last_string(r, &domain, &f->domain);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

enum rfx_status rfx_onnx_model_read(struct rfx_memory *mem, const struct rfx_weight_file *file,
                                    size_t size, bool keep_all, struct rfx_onnx_model *out,
                                    struct rfx_error *err) {
    struct rfx_onnx_model model = {
        .arena = rfx_arena_create(mem), .file = file, .file_bytes = size};
    struct rfx_onnx_reader reader = {
        .arena = model.arena, .file = file, .size = size, .keep_all = keep_all, .err = err};
    struct rfx_onnx_reader *r = &reader;
    if (model.arena == NULL) return rfx_onnx_no_memory(r);
    struct rfx_onnx_span_list graph = {.r = r}, opsets = {.r = r}, functions = {.r = r};
    onnx_ModelProto m = onnx_ModelProto_init_zero;
    rfx_onnx_bind(&m.graph, rfx_onnx_take_span, &graph);
    rfx_onnx_bind(&m.opset_import, rfx_onnx_take_span, &opsets);
    rfx_onnx_bind(&m.functions, rfx_onnx_take_span, &functions);
    struct rfx_onnx_span whole = {0, size};
    enum rfx_status status = rfx_onnx_decode(r, whole, onnx_ModelProto_fields, &m, "model");
    if (status == RFX_OK && graph.count == 0)
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "onnx: the file holds no graph");
    if (status == RFX_OK) status = read_opsets(r, &opsets, &model.opset);
    if (status == RFX_OK) status = list_functions(r, &functions, &model);
    if (status == RFX_OK) status = read_graph(r, graph.items[graph.count - 1], &model);
    if (status != RFX_OK) {
        rfx_arena_free(model.arena);
        return status;
    }
    model.ir_version = m.ir_version;
    *out = model;
    return RFX_OK;
}

void rfx_onnx_model_free(struct rfx_onnx_model *model) {
    rfx_arena_free(model->arena);
    model->arena = NULL;
}
