/* Protocol buffer to plain structs, with nanopb's callbacks.
 *
 * Every string, sub-message and packed array is taken as a span of the file; sub-messages are
 * decoded from their span afterwards, so the depth of decoding is that of this file's functions
 * (model, graph, node, attribute, tensor), never that of the input. The file is read through one
 * window; what is only noted is skipped without reading it. Of nodes and initialisers that no
 * output needs nothing is held but their spans, and these only until all outputs are known. */
#include <pb_decode.h>
#include <string.h>

#include "layers/core/checked.h"
#include "onnx.pb.h"
#include "rfexec/onnx/file/onnx_model.h"

#define WINDOW_BYTES ((size_t)16384)

struct reader {
    struct rfx_arena *arena;
    const struct rfx_weight_file *file;
    size_t size; /* of the file */
    bool keep_all;
    struct rfx_error *err;
    bool out_of_memory;
    enum rfx_status io; /* of the last read of the file */
    uint64_t window_at; /* bytes [window_at, window_at + window_bytes) of the file are in window */
    size_t window_bytes;
    uint8_t window[WINDOW_BYTES];
};

struct span { /* of the file */
    uint64_t at;
    size_t size;
};

/* The state of a stream: where it is in the file. Sub-streams of nanopb share it. */
struct cursor {
    struct reader *r;
    uint64_t at;
};

/* Spans of a field, in file order. */
struct span_list {
    struct reader *r;
    struct span *items;
    size_t count, capacity;
};

struct int_list {
    struct reader *r;
    int64_t *items;
    size_t count, capacity;
};

/* Fixed-width values: one packed run stays where it is; anything else is gathered. */
struct byte_list {
    struct reader *r;
    struct rfx_onnx_bytes bytes;
    size_t capacity; /* 0: the bytes are in the file */
};

static enum rfx_status out_of_memory(struct reader *r) {
    return rfx_fail(r->err, RFX_STATUS_OUT_OF_MEMORY, "onnx: no memory for the model's structure");
}

/* Makes room for `more` elements behind `count`. */
static bool reserve(struct reader *r, void *items, size_t count, size_t *capacity, size_t more,
                    size_t size) {
    if (count + more <= *capacity) return true;
    size_t next = *capacity == 0 ? 4 : *capacity * 2;
    if (next < count + more) next = count + more;
    void *block = rfx_arena_alloc(r->arena, next, size);
    if (block == NULL) {
        r->out_of_memory = true;
        return false;
    }
    void *old;
    memcpy(&old, items, sizeof old);
    if (count != 0) memcpy(block, old, count * size);
    memcpy(items, &block, sizeof block);
    *capacity = next;
    return true;
}

/* Where a window begins that serves who reads backwards: most of it lies before `at`. */
static uint64_t before_window(uint64_t at) {
    uint64_t most = WINDOW_BYTES / 4 * 3;
    return at > most ? at - most : 0;
}

/* Copies bytes of the file, by way of the window when they are few. */
static bool read_file(struct reader *r, uint64_t at, void *out, size_t bytes) {
    uint8_t *to = out;
    while (bytes > 0) {
        size_t before = at < r->window_at ? r->window_bytes : (size_t)(at - r->window_at);
        if (before < r->window_bytes) {
            size_t n = r->window_bytes - before < bytes ? r->window_bytes - before : bytes;
            memcpy(to, r->window + before, n);
            at += n;
            to += n;
            bytes -= n;
            continue;
        }
        bool few = bytes < WINDOW_BYTES;
        size_t left = r->size - (size_t)at, n = !few                  ? bytes
                                                : left < WINDOW_BYTES ? left
                                                                      : WINDOW_BYTES;
        uint64_t from = few && at < r->window_at ? before_window(at) : at;
        n += (size_t)(at - from);
        if (few && n > WINDOW_BYTES) n = WINDOW_BYTES;
        r->io = rfx_weight_file_read(r->file, from, few ? r->window : to, n, r->err);
        if (few) {
            r->window_at = from;
            r->window_bytes = r->io == RFX_OK ? n : 0;
        }
        if (r->io != RFX_OK) return false;
        if (!few) return true;
    }
    return true;
}

static bool read_stream(pb_istream_t *stream, pb_byte_t *out, size_t bytes) {
    struct cursor *cursor = stream->state;
    uint64_t at = cursor->at;
    cursor->at += bytes;
    return out == NULL || read_file(cursor->r, at, out, bytes);
}

static bool is_in_file(const pb_istream_t *stream) {
    return stream->callback == read_stream;
}

/* Where the rest of a stream lies in the file; the stream is then at its end. */
static struct span skip_rest(pb_istream_t *stream) {
    struct cursor *cursor = stream->state;
    struct span span = {cursor->at, stream->bytes_left};
    cursor->at += span.size;
    stream->bytes_left = 0;
    return span;
}

/* A field of another wire type than bytes comes in a buffer of nanopb's that is soon gone. */
static bool take_span(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    struct span_list *list = *arg;
    if (!is_in_file(stream)) PB_RETURN_ERROR(stream, "wrong wire type");
    if (!reserve(list->r, &list->items, list->count, &list->capacity, 1, sizeof *list->items))
        return false;
    list->items[list->count++] = skip_rest(stream);
    return true;
}

/* Passes by what may be long without reading it. */
static bool skip_span(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    (void)arg;
    if (!is_in_file(stream)) return pb_read(stream, NULL, stream->bytes_left);
    (void)skip_rest(stream);
    return true;
}

static bool take_ints(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    struct int_list *list = *arg;
    while (stream->bytes_left > 0) {
        uint64_t value;
        if (!pb_decode_varint(stream, &value)) return false;
        if (!reserve(list->r, &list->items, list->count, &list->capacity, 1, sizeof *list->items))
            return false;
        list->items[list->count++] = (int64_t)value;
    }
    return true;
}

/* Makes a copy in memory of what has been found in the file so far, with room for `more`. */
static bool gather(struct byte_list *list, size_t more, uint8_t **out) {
    struct reader *r = list->r;
    struct rfx_onnx_bytes *bytes = &list->bytes;
    size_t kept = bytes->data != NULL ? bytes->size : 0;
    uint8_t *copy = NULL;
    if (kept != 0) memcpy(&copy, &bytes->data, sizeof copy);
    if (!reserve(r, &copy, kept, &list->capacity, bytes->size - kept + more, 1)) return false;
    if (bytes->data == NULL && !read_file(r, bytes->offset, copy, bytes->size)) return false;
    bytes->data = copy;
    bytes->file = NULL;
    *out = copy;
    return true;
}

static bool take_bytes(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    struct byte_list *list = *arg;
    struct rfx_onnx_bytes *bytes = &list->bytes;
    size_t n = stream->bytes_left;
    if (is_in_file(stream) && bytes->size == 0) {
        struct span span = skip_rest(stream);
        *bytes = (struct rfx_onnx_bytes){NULL, list->r->file, span.at, span.size};
        return true;
    }
    uint8_t *copy;
    if (!gather(list, n, &copy) || !pb_read(stream, copy + bytes->size, n)) return false;
    bytes->size += n;
    return true;
}

static void bind(pb_callback_t *field, bool (*fn)(pb_istream_t *, const pb_field_t *, void **),
                 void *list) {
    field->funcs.decode = fn;
    field->arg = list;
}

static enum rfx_status decode(struct reader *r, struct span span, const pb_msgdesc_t *fields,
                              void *message, const char *what) {
    struct cursor cursor = {r, span.at};
    pb_istream_t stream = {.callback = read_stream, .state = &cursor, .bytes_left = span.size};
    if (pb_decode(&stream, fields, message)) return RFX_OK;
    if (r->out_of_memory) return out_of_memory(r);
    if (r->io != RFX_OK) return r->io;
    return rfx_fail(r->err, RFX_STATUS_MALFORMED,
                    "onnx: broken %s at byte %zu (%zu bytes long): %s", what, (size_t)span.at,
                    span.size, PB_GET_ERROR(&stream));
}

/* The last span of an optional string as a C string ("" when absent). */
static enum rfx_status to_string(struct reader *r, const struct span *span, const char **out) {
    *out = "";
    if (span->size == 0) return RFX_OK;
    char *copy = rfx_arena_alloc(r->arena, span->size + 1, 1);
    if (copy == NULL) return out_of_memory(r);
    if (!read_file(r, span->at, copy, span->size)) return r->io;
    if (memchr(copy, 0, span->size) != NULL)
        return rfx_fail(r->err, RFX_STATUS_MALFORMED, "onnx: a name at byte %zu holds a zero byte",
                        (size_t)span->at);
    *out = copy;
    return RFX_OK;
}

static enum rfx_status last_string(struct reader *r, const struct span_list *list,
                                   const char **out) {
    static const struct span none = {0};
    return to_string(r, list->count == 0 ? &none : &list->items[list->count - 1], out);
}

static enum rfx_status all_strings(struct reader *r, const struct span_list *list,
                                   const char ***out) {
    const char **names = rfx_arena_alloc(r->arena, list->count + 1, sizeof *names);
    if (names == NULL) return out_of_memory(r);
    for (size_t i = 0; i < list->count; i++) {
        enum rfx_status status = to_string(r, &list->items[i], &names[i]);
        if (status != RFX_OK) return status;
    }
    *out = names;
    return RFX_OK;
}

size_t rfx_onnx_type_bytes(int32_t type) {
    static const uint8_t bytes[] = {
        [RFX_ONNX_FLOAT] = 4,   [RFX_ONNX_UINT8] = 1,  [RFX_ONNX_INT8] = 1,   [RFX_ONNX_UINT16] = 2,
        [RFX_ONNX_INT16] = 2,   [RFX_ONNX_INT32] = 4,  [RFX_ONNX_INT64] = 8,  [RFX_ONNX_BOOL] = 1,
        [RFX_ONNX_FLOAT16] = 2, [RFX_ONNX_DOUBLE] = 8, [RFX_ONNX_UINT32] = 4, [RFX_ONNX_UINT64] = 8,
        [RFX_ONNX_BFLOAT16] = 2};
    if (type < 0 || (size_t)type >= sizeof bytes) return 0;
    return bytes[type];
}

/* 16-bit floats that the file holds as varints become raw bytes. */
static enum rfx_status narrow_halves(struct reader *r, struct rfx_onnx_tensor *t) {
    uint8_t *raw = rfx_arena_alloc(r->arena, (size_t)t->elems + 1, 2);
    if (raw == NULL) return out_of_memory(r);
    for (int64_t i = 0; i < t->elems; i++) {
        raw[2 * i] = (uint8_t)(t->ints[i] & 0xff);
        raw[2 * i + 1] = (uint8_t)((t->ints[i] >> 8) & 0xff);
    }
    t->raw = (struct rfx_onnx_bytes){.data = raw, .size = (size_t)t->elems * 2};
    t->ints = NULL;
    return RFX_OK;
}

/* Checks the count of values against the shape, whichever field holds them. */
static enum rfx_status check_values(struct reader *r, struct rfx_onnx_tensor *t, size_t n_ints) {
    size_t width = rfx_onnx_type_bytes(t->type);
    if (width == 0)
        return rfx_fail(r->err, RFX_STATUS_UNSUPPORTED,
                        "onnx: tensor '%s' has element type %d, which is not supported", t->name,
                        (int)t->type);
    if (t->external) return RFX_OK;
    if (t->raw.size != 0 || t->elems == 0) {
        size_t want = 0;
        if (rfx_checked_mul_size((size_t)t->elems, width, &want) && want == t->raw.size)
            return RFX_OK;
        return rfx_fail(r->err, RFX_STATUS_MALFORMED,
                        "onnx: tensor '%s' has %lld elements of %zu bytes but %zu bytes of data",
                        t->name, (long long)t->elems, width, t->raw.size);
    }
    if (n_ints != (size_t)t->elems || t->type == RFX_ONNX_FLOAT || t->type == RFX_ONNX_DOUBLE)
        return rfx_fail(r->err, RFX_STATUS_MALFORMED,
                        "onnx: tensor '%s' of type %d has %lld elements but %zu values", t->name,
                        (int)t->type, (long long)t->elems, n_ints);
    if (t->type == RFX_ONNX_FLOAT16 || t->type == RFX_ONNX_BFLOAT16) return narrow_halves(r, t);
    return RFX_OK;
}

static enum rfx_status set_dims(struct reader *r, const struct int_list *dims,
                                struct rfx_onnx_tensor *t) {
    if (dims->count > RFX_MAX_RANK)
        return rfx_fail(r->err, RFX_STATUS_UNSUPPORTED, "onnx: tensor '%s' has rank %zu, above %d",
                        t->name, dims->count, RFX_MAX_RANK);
    t->shape.rank = (int)dims->count;
    t->elems = 1;
    for (size_t i = 0; i < dims->count; i++) {
        t->shape.dims[i] = dims->items[i];
        if (dims->items[i] < 0 || !rfx_checked_mul_i64(t->elems, dims->items[i], &t->elems) ||
            t->elems > INT64_MAX / 16)
            return rfx_fail(r->err, RFX_STATUS_MALFORMED,
                            "onnx: tensor '%s' has an impossible dimension %lld", t->name,
                            (long long)dims->items[i]);
    }
    return RFX_OK;
}

/* A decimal number of external_data, all digits. */
static bool parse_number(const char *text, int64_t *out) {
    int64_t value = 0;
    if (*text == '\0') return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return false;
        if (!rfx_checked_mul_i64(value, 10, &value) ||
            !rfx_checked_add_i64(value, *text - '0', &value))
            return false;
    }
    *out = value;
    return true;
}

static enum rfx_status read_external(struct reader *r, const struct span_list *entries,
                                     struct rfx_onnx_tensor *t) {
    t->external = true;
    t->location = "";
    t->length = -1;
    for (size_t i = 0; i < entries->count; i++) {
        struct span_list keys = {.r = r}, values = {.r = r};
        onnx_StringStringEntryProto entry = onnx_StringStringEntryProto_init_zero;
        bind(&entry.key, take_span, &keys);
        bind(&entry.value, take_span, &values);
        const char *key, *value;
        enum rfx_status status = decode(r, entries->items[i], onnx_StringStringEntryProto_fields,
                                        &entry, "external data entry");
        if (status == RFX_OK) status = last_string(r, &keys, &key);
        if (status == RFX_OK) status = last_string(r, &values, &value);
        if (status != RFX_OK) return status;
        bool fine = true;
        if (strcmp(key, "location") == 0) t->location = value;
        if (strcmp(key, "offset") == 0) fine = parse_number(value, &t->offset);
        if (strcmp(key, "length") == 0) fine = parse_number(value, &t->length);
        if (!fine)
            return rfx_fail(r->err, RFX_STATUS_MALFORMED,
                            "onnx: tensor '%s': external data %s '%s' is not a number", t->name,
                            key, value);
    }
    if (t->location[0] == '\0')
        return rfx_fail(r->err, RFX_STATUS_MALFORMED,
                        "onnx: tensor '%s': external data without a location", t->name);
    return RFX_OK;
}

static enum rfx_status read_tensor(struct reader *r, struct span span, struct rfx_onnx_tensor *t) {
    struct span_list names = {.r = r}, raw = {.r = r}, entries = {.r = r}, strings = {.r = r};
    struct int_list dims = {.r = r}, ints = {.r = r};
    struct byte_list fixed = {.r = r};
    onnx_TensorProto m = onnx_TensorProto_init_zero;
    bind(&m.name, take_span, &names);
    bind(&m.raw_data, take_span, &raw);
    bind(&m.string_data, take_span, &strings);
    bind(&m.external_data, take_span, &entries);
    bind(&m.dims, take_ints, &dims);
    bind(&m.int32_data, take_ints, &ints);
    bind(&m.int64_data, take_ints, &ints);
    bind(&m.uint64_data, take_ints, &ints);
    bind(&m.float_data, take_bytes, &fixed);
    bind(&m.double_data, take_bytes, &fixed);
    enum rfx_status status = decode(r, span, onnx_TensorProto_fields, &m, "tensor");
    if (status == RFX_OK) status = last_string(r, &names, &t->name);
    if (status == RFX_OK) status = set_dims(r, &dims, t);
    if (status != RFX_OK) return status;
    t->type = m.data_type;
    t->raw = fixed.bytes;
    if (raw.count != 0) {
        const struct span *last = &raw.items[raw.count - 1];
        t->raw = (struct rfx_onnx_bytes){NULL, r->file, last->at, last->size};
    }
    t->ints = ints.items;
    if (m.has_data_location && m.data_location == onnx_TensorProto_DataLocation_EXTERNAL)
        status = read_external(r, &entries, t);
    return status == RFX_OK ? check_values(r, t, ints.count) : status;
}

/* The kind of an attribute, for files without the type field too. */
static enum rfx_onnx_attr_kind attr_kind(const onnx_AttributeProto *m, size_t n_s, size_t n_t,
                                         size_t n_g, size_t n_floats, size_t n_ints) {
    if (n_g != 0) return RFX_ONNX_ATTR_GRAPH;
    if (m->has_type) {
        int kind = (int)m->type;
        if (kind == RFX_ONNX_ATTR_TENSOR && n_t == 0) return RFX_ONNX_ATTR_OTHER;
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

static enum rfx_status set_floats(struct reader *r, const struct byte_list *bytes,
                                  struct rfx_onnx_attr *a) {
    const struct rfx_onnx_bytes *from = &bytes->bytes;
    a->count = from->size / sizeof *a->floats;
    float *copy = rfx_arena_alloc(r->arena, a->count + 1, sizeof *copy);
    if (copy == NULL) return out_of_memory(r);
    if (from->data != NULL)
        memcpy(copy, from->data, a->count * sizeof *copy);
    else if (!read_file(r, from->offset, copy, a->count * sizeof *copy))
        return r->io;
    a->floats = copy;
    return RFX_OK;
}

static enum rfx_status read_attr(struct reader *r, struct span span, struct rfx_onnx_attr *a) {
    struct span_list name = {.r = r}, s = {.r = r}, t = {.r = r}, g = {.r = r};
    struct int_list ints = {.r = r};
    struct byte_list floats = {.r = r};
    onnx_AttributeProto m = onnx_AttributeProto_init_zero;
    bind(&m.name, take_span, &name);
    bind(&m.s, take_span, &s);
    bind(&m.t, take_span, &t);
    bind(&m.g, take_span, &g);
    bind(&m.graphs, take_span, &g);
    bind(&m.ints, take_ints, &ints);
    bind(&m.floats, take_bytes, &floats);
    enum rfx_status status = decode(r, span, onnx_AttributeProto_fields, &m, "attribute");
    if (status == RFX_OK) status = last_string(r, &name, &a->name);
    if (status != RFX_OK) return status;
    a->kind = attr_kind(&m, s.count, t.count, g.count, floats.bytes.size, ints.count);
    a->f = m.f;
    a->i = m.i;
    a->s = "";
    a->ints = ints.items;
    a->count = ints.count;
    if (a->kind == RFX_ONNX_ATTR_STRING) status = last_string(r, &s, &a->s);
    if (a->kind == RFX_ONNX_ATTR_FLOATS) status = set_floats(r, &floats, a);
    if (a->kind != RFX_ONNX_ATTR_TENSOR) return status;
    a->t = rfx_arena_alloc(r->arena, 1, sizeof *a->t);
    return a->t == NULL ? out_of_memory(r) : read_tensor(r, t.items[t.count - 1], a->t);
}

static enum rfx_status read_node(struct reader *r, struct span span, struct rfx_onnx_node *node) {
    struct span_list name = {.r = r}, op = {.r = r}, domain = {.r = r}, in = {.r = r},
                     out = {.r = r}, attrs = {.r = r};
    onnx_NodeProto m = onnx_NodeProto_init_zero;
    bind(&m.name, take_span, &name);
    bind(&m.op_type, take_span, &op);
    bind(&m.domain, take_span, &domain);
    bind(&m.input, take_span, &in);
    bind(&m.output, take_span, &out);
    bind(&m.attribute, take_span, &attrs);
    enum rfx_status status = decode(r, span, onnx_NodeProto_fields, &m, "node");
    if (status == RFX_OK) status = last_string(r, &name, &node->name);
    if (status == RFX_OK) status = last_string(r, &op, &node->op);
    if (status == RFX_OK) status = last_string(r, &domain, &node->domain);
    if (status == RFX_OK) status = all_strings(r, &in, &node->in);
    if (status == RFX_OK) status = all_strings(r, &out, &node->out);
    if (status != RFX_OK) return status;
    node->n_in = in.count;
    node->n_out = out.count;
    node->n_attrs = attrs.count;
    node->attrs = rfx_arena_alloc(r->arena, attrs.count + 1, sizeof *node->attrs);
    if (node->attrs == NULL) return out_of_memory(r);
    for (size_t i = 0; status == RFX_OK && i < attrs.count; i++)
        status = read_attr(r, attrs.items[i], &node->attrs[i]);
    if (status == RFX_OK) return RFX_OK;
    return rfx_fail_within(r->err, status, "node '%s' (%s)", node->name, node->op);
}

static enum rfx_status read_dims(struct reader *r, struct span span, struct rfx_onnx_value *value) {
    struct span_list dims = {.r = r};
    onnx_TensorShapeProto shape = onnx_TensorShapeProto_init_zero;
    bind(&shape.dim, take_span, &dims);
    enum rfx_status status = decode(r, span, onnx_TensorShapeProto_fields, &shape, "shape");
    if (status != RFX_OK || dims.count > RFX_MAX_RANK) return status;
    value->rank = (int)dims.count;
    for (size_t i = 0; i < dims.count; i++) {
        onnx_TensorShapeProto_Dimension d = onnx_TensorShapeProto_Dimension_init_zero;
        status = decode(r, dims.items[i], onnx_TensorShapeProto_Dimension_fields, &d, "dimension");
        if (status != RFX_OK) return status;
        value->dims[i] = d.has_dim_value && d.dim_value > 0 ? d.dim_value : -1;
    }
    return RFX_OK;
}

static enum rfx_status read_value(struct reader *r, struct span span,
                                  struct rfx_onnx_value *value) {
    struct span_list name = {.r = r}, type = {.r = r}, tensor = {.r = r}, shape = {.r = r};
    onnx_ValueInfoProto m = onnx_ValueInfoProto_init_zero;
    bind(&m.name, take_span, &name);
    bind(&m.type, take_span, &type);
    value->rank = -1;
    enum rfx_status status = decode(r, span, onnx_ValueInfoProto_fields, &m, "value");
    if (status == RFX_OK) status = last_string(r, &name, &value->name);
    if (status != RFX_OK || type.count == 0) return status;
    onnx_TypeProto t = onnx_TypeProto_init_zero;
    bind(&t.tensor_type, take_span, &tensor);
    status = decode(r, type.items[type.count - 1], onnx_TypeProto_fields, &t, "type");
    if (status != RFX_OK || tensor.count == 0) return status;
    onnx_TypeProto_Tensor tt = onnx_TypeProto_Tensor_init_zero;
    bind(&tt.shape, take_span, &shape);
    status = decode(r, tensor.items[tensor.count - 1], onnx_TypeProto_Tensor_fields, &tt, "type");
    if (status != RFX_OK) return status;
    value->type = tt.elem_type;
    return shape.count == 0 ? RFX_OK : read_dims(r, shape.items[shape.count - 1], value);
}

static enum rfx_status read_values(struct reader *r, const struct span_list *spans,
                                   struct rfx_onnx_value **out, size_t *count) {
    *out = rfx_arena_alloc(r->arena, spans->count + 1, sizeof **out);
    if (*out == NULL) return out_of_memory(r);
    *count = spans->count;
    enum rfx_status status = RFX_OK;
    for (size_t i = 0; status == RFX_OK && i < spans->count; i++)
        status = read_value(r, spans->items[i], &(*out)[i]);
    return status;
}

/* Names that something needs, as hashes: two names that share one would keep what need not be kept,
 * no more. Open addressing; 0 is an empty row. */
struct needed {
    struct reader *r;
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
    struct int_list *list = *arg;
    uint64_t hash = 0xcbf29ce484222325u;
    while (stream->bytes_left > 0) {
        uint8_t piece[64];
        size_t n = stream->bytes_left < sizeof piece ? stream->bytes_left : sizeof piece;
        if (!pb_read(stream, piece, n)) return false;
        for (size_t i = 0; i < n; i++) hash = (hash ^ piece[i]) * 0x100000001b3u;
    }
    if (!reserve(list->r, &list->items, list->count, &list->capacity, 1, sizeof *list->items))
        return false;
    list->items[list->count++] = (int64_t)(hash | 1);
    return true;
}

/* Needs the names of inputs and outputs: the latter are what is asked for, and of the former those
 * that are no initialisers are images. */
static enum rfx_status need_values(struct reader *r, const struct span_list *values,
                                   struct needed *needed) {
    struct int_list names = {.r = r};
    for (size_t i = 0; i < values->count; i++) {
        onnx_ValueInfoProto m = onnx_ValueInfoProto_init_zero;
        bind(&m.name, take_hash, &names);
        names.count = 0;
        enum rfx_status status =
            decode(r, values->items[i], onnx_ValueInfoProto_fields, &m, "value");
        if (status != RFX_OK) return status;
        if (names.count != 0 && !need(needed, (uint64_t)names.items[names.count - 1]))
            return out_of_memory(r);
    }
    return RFX_OK;
}

/* Keeps the nodes that something needs, from the last one to the first: users come after makers. */
static enum rfx_status drop_nodes(struct reader *r, struct span_list *nodes,
                                  struct needed *needed) {
    struct int_list in = {.r = r}, out = {.r = r};
    size_t kept = nodes->count;
    for (size_t i = nodes->count; i-- > 0;) {
        onnx_NodeProto m = onnx_NodeProto_init_zero;
        bind(&m.input, take_hash, &in);
        bind(&m.output, take_hash, &out);
        bind(&m.attribute, skip_span, NULL);
        in.count = out.count = 0;
        enum rfx_status status = decode(r, nodes->items[i], onnx_NodeProto_fields, &m, "node");
        if (status != RFX_OK) return status;
        bool live = false;
        for (size_t k = 0; k < out.count; k++)
            live = live || is_needed(needed, (uint64_t)out.items[k]);
        if (!live) continue;
        nodes->items[--kept] = nodes->items[i];
        for (size_t k = 0; k < in.count; k++)
            if (!need(needed, (uint64_t)in.items[k])) return out_of_memory(r);
    }
    nodes->items += kept;
    nodes->count -= kept;
    return RFX_OK;
}

static enum rfx_status drop_tensors(struct reader *r, struct span_list *tensors,
                                    const struct needed *needed) {
    struct int_list name = {.r = r};
    size_t kept = 0;
    for (size_t i = 0; i < tensors->count; i++) {
        onnx_TensorProto m = onnx_TensorProto_init_zero;
        bind(&m.name, take_hash, &name);
        pb_callback_t *const bulky[] = {&m.raw_data,   &m.float_data, &m.double_data,
                                        &m.int32_data, &m.int64_data, &m.uint64_data,
                                        &m.string_data};
        for (size_t k = 0; k < sizeof bulky / sizeof bulky[0]; k++) bind(bulky[k], skip_span, NULL);
        name.count = 0;
        enum rfx_status status =
            decode(r, tensors->items[i], onnx_TensorProto_fields, &m, "tensor");
        if (status != RFX_OK) return status;
        if (name.count != 0 && is_needed(needed, (uint64_t)name.items[name.count - 1]))
            tensors->items[kept++] = tensors->items[i];
    }
    tensors->count = kept;
    return RFX_OK;
}

/* Forgets nodes and initialisers that no output needs, before anything of them is held. */
static enum rfx_status drop_unneeded(struct reader *r, struct span_list *nodes,
                                     struct span_list *tensors, const struct span_list *in,
                                     const struct span_list *out) {
    struct needed needed = {.r = r};
    if (!need(&needed, 1)) return out_of_memory(r); /* makes the table */
    enum rfx_status status = need_values(r, out, &needed);
    if (status == RFX_OK) status = need_values(r, in, &needed);
    if (status == RFX_OK) status = drop_nodes(r, nodes, &needed);
    return status == RFX_OK ? drop_tensors(r, tensors, &needed) : status;
}

static enum rfx_status read_graph(struct reader *r, struct span span,
                                  struct rfx_onnx_model *model) {
    struct span_list name = {.r = r}, nodes = {.r = r}, tensors = {.r = r}, in = {.r = r},
                     out = {.r = r}, sparse = {.r = r};
    onnx_GraphProto m = onnx_GraphProto_init_zero;
    bind(&m.name, take_span, &name);
    bind(&m.node, take_span, &nodes);
    bind(&m.initializer, take_span, &tensors);
    bind(&m.sparse_initializer, take_span, &sparse);
    bind(&m.input, take_span, &in);
    bind(&m.output, take_span, &out);
    enum rfx_status status = decode(r, span, onnx_GraphProto_fields, &m, "graph");
    if (status == RFX_OK) status = last_string(r, &name, &model->graph_name);
    if (status != RFX_OK) return status;
    if (sparse.count != 0)
        return rfx_fail(r->err, RFX_STATUS_UNSUPPORTED,
                        "onnx: %zu sparse initialisers, which are not supported", sparse.count);
    if (!r->keep_all) status = drop_unneeded(r, &nodes, &tensors, &in, &out);
    if (status != RFX_OK) return status;
    model->n_nodes = nodes.count;
    model->n_tensors = tensors.count;
    model->nodes = rfx_arena_alloc(r->arena, nodes.count + 1, sizeof *model->nodes);
    model->tensors = rfx_arena_alloc(r->arena, tensors.count + 1, sizeof *model->tensors);
    if (model->nodes == NULL || model->tensors == NULL) return out_of_memory(r);
    for (size_t i = 0; status == RFX_OK && i < tensors.count; i++)
        status = read_tensor(r, tensors.items[i], &model->tensors[i]);
    for (size_t i = 0; status == RFX_OK && i < nodes.count; i++)
        status = read_node(r, nodes.items[i], &model->nodes[i]);
    if (status == RFX_OK) status = read_values(r, &in, &model->inputs, &model->n_inputs);
    if (status == RFX_OK) status = read_values(r, &out, &model->outputs, &model->n_outputs);
    return status;
}

static enum rfx_status read_opsets(struct reader *r, const struct span_list *spans,
                                   struct rfx_onnx_model *model) {
    for (size_t i = 0; i < spans->count; i++) {
        struct span_list domains = {.r = r};
        const char *domain;
        onnx_OperatorSetIdProto m = onnx_OperatorSetIdProto_init_zero;
        bind(&m.domain, take_span, &domains);
        enum rfx_status status =
            decode(r, spans->items[i], onnx_OperatorSetIdProto_fields, &m, "opset");
        if (status == RFX_OK) status = last_string(r, &domains, &domain);
        if (status != RFX_OK) return status;
        if (domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0) model->opset = m.version;
    }
    return RFX_OK;
}

enum rfx_status rfx_onnx_model_read(struct rfx_memory *mem, const struct rfx_weight_file *file,
                                    size_t size, bool keep_all, struct rfx_onnx_model *out,
                                    struct rfx_error *err) {
    struct rfx_onnx_model model = {.arena = rfx_arena_create(mem)};
    struct reader reader = {
        .arena = model.arena, .file = file, .size = size, .keep_all = keep_all, .err = err};
    struct reader *r = &reader;
    if (model.arena == NULL) return out_of_memory(r);
    struct span_list graph = {.r = r}, opsets = {.r = r};
    onnx_ModelProto m = onnx_ModelProto_init_zero;
    bind(&m.graph, take_span, &graph);
    bind(&m.opset_import, take_span, &opsets);
    struct span whole = {0, size};
    enum rfx_status status = decode(r, whole, onnx_ModelProto_fields, &m, "model");
    if (status == RFX_OK && graph.count == 0)
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "onnx: the file holds no graph");
    if (status == RFX_OK) status = read_opsets(r, &opsets, &model);
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
