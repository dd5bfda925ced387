/* Reads an ONNX file, which is a protocol buffer, into plain structs.
 *
 * nanopb decodes one message at a time. For a string, a sub-message or a packed array in a message
 * only its span in the file is recorded; it is decoded afterwards. Therefore no input can cause
 * deep recursion. Sub-graphs of attributes and bodies of functions are read by separate calls. The
 * file is read through one small window, and recorded spans are skipped without reading them. Of
 * nodes and initialisers that no output needs, only the span is ever in memory.
 *
 * The first error stays in the reader. Later calls do nothing and return nothing. */
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
    enum rfx_status status; /* the first error */
    uint64_t window_at;     /* the window holds bytes [window_at, window_at + window_bytes) */
    size_t window_bytes;
    uint8_t window[WINDOW_BYTES];
};

/* Spans of a field, in the order of the file. Lists live and grow in the model's arena. */
struct spans {
    struct reader *r;
    struct rfx_onnx_span *items;
    size_t count, capacity;
};

struct numbers {
    struct reader *r;
    int64_t *items;
    size_t count, capacity;
};

/* Values of fixed width. A single packed run stays in the file; any other form is copied. */
struct fixed {
    struct reader *r;
    struct rfx_onnx_bytes bytes;
    size_t capacity; /* 0: the bytes are in the file */
};

/* --- the file and the arena --- */

static bool fine(const struct reader *r) {
    return r->status == RFX_OK;
}

/* Records an error unless there is one already. Returns false. */
static bool fail(struct reader *r, enum rfx_status status) {
    if (fine(r)) r->status = status;
    return false;
}

static void *alloc(struct reader *r, size_t count, size_t size) {
    void *block = fine(r) ? rfx_arena_alloc(r->arena, count, size) : NULL;
    if (block == NULL && fine(r))
        fail(r, rfx_fail(r->err, RFX_STATUS_OUT_OF_MEMORY,
                         "onnx: no memory for the model's structure"));
    return block;
}

/* Enlarges a list of `count` elements so that `more` elements of `size` bytes fit after them.
 * `items`: the address of the list's pointer. */
static bool reserve(struct reader *r, void *items, size_t count, size_t *capacity, size_t more,
                    size_t size) {
    if (count + more <= *capacity) return true;
    size_t next = *capacity == 0 ? 4 : *capacity * 2;
    if (next < count + more) next = count + more;
    void *old, *block = alloc(r, next, size);
    if (block == NULL) return false;
    memcpy(&old, items, sizeof old);
    if (count != 0) memcpy(block, old, count * size);
    memcpy(items, &block, sizeof block);
    *capacity = next;
    return true;
}

/* Returns the begin of a window for reading backwards: three quarters of the window are before
 * `at`.
 */
static uint64_t before_window(uint64_t at) {
    uint64_t most = WINDOW_BYTES / 4 * 3;
    return at > most ? at - most : 0;
}

/* Copies bytes of the file, through the window unless they are as many as the window. */
static bool read_bytes(struct reader *r, uint64_t at, void *out, size_t bytes) {
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
        size_t left = r->size - (size_t)at;
        size_t n = !few ? bytes : left < WINDOW_BYTES ? left : WINDOW_BYTES;
        uint64_t from = few && at < r->window_at ? before_window(at) : at;
        n += (size_t)(at - from);
        if (few && n > WINDOW_BYTES) n = WINDOW_BYTES;
        enum rfx_status status =
            rfx_weight_file_read(r->file, from, few ? r->window : to, n, r->err);
        if (few) {
            r->window_at = from;
            r->window_bytes = status == RFX_OK ? n : 0;
        }
        if (status != RFX_OK) return fail(r, status);
        if (!few) return true;
    }
    return true;
}

/* --- streams and callbacks of nanopb; when one returns false, r->status is the error, or, if that
 * is RFX_OK, the file is malformed --- */

/* Position of a stream in the file. A stream and its sub-streams share the position. */
struct cursor {
    struct reader *r;
    uint64_t at;
};

static bool read_stream(pb_istream_t *stream, pb_byte_t *out, size_t bytes) {
    struct cursor *cursor = stream->state;
    uint64_t at = cursor->at;
    cursor->at += bytes;
    return out == NULL || read_bytes(cursor->r, at, out, bytes);
}

/* Returns whether a stream reads the file. nanopb passes a field whose wire type is not bytes in a
 * temporary buffer instead. */
static bool is_in_file(const pb_istream_t *stream) {
    return stream->callback == read_stream;
}

/* Returns the span of the rest of a stream in the file, and moves the stream to its end. */
static struct rfx_onnx_span skip_rest(pb_istream_t *stream) {
    struct cursor *cursor = stream->state;
    struct rfx_onnx_span span = {cursor->at, stream->bytes_left};
    cursor->at += span.size;
    stream->bytes_left = 0;
    return span;
}

static bool put_number(struct numbers *list, uint64_t value) {
    if (!reserve(list->r, &list->items, list->count, &list->capacity, 1, sizeof *list->items))
        return false;
    list->items[list->count++] = (int64_t)value;
    return true;
}

/* Appends the field's span in the file to a list of spans. */
static bool take_span(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    struct spans *list = *arg;
    if (!is_in_file(stream)) PB_RETURN_ERROR(stream, "wrong wire type");
    if (!reserve(list->r, &list->items, list->count, &list->capacity, 1, sizeof *list->items))
        return false;
    list->items[list->count++] = skip_rest(stream);
    return true;
}

/* Passes by what may be long, without reading it. */
static bool skip_span(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    (void)arg;
    if (!is_in_file(stream)) return pb_read(stream, NULL, stream->bytes_left);
    (void)skip_rest(stream);
    return true;
}

/* Appends varints, packed or not, to numbers. */
static bool take_ints(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    while (stream->bytes_left > 0) {
        uint64_t value;
        if (!pb_decode_varint(stream, &value) || !put_number(*arg, value)) return false;
    }
    return true;
}

/* Appends the hash (FNV-1a, never 0) of a name to numbers. */
static bool take_hash(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    uint64_t hash = 0xcbf29ce484222325u;
    while (stream->bytes_left > 0) {
        uint8_t piece[64];
        size_t n = stream->bytes_left < sizeof piece ? stream->bytes_left : sizeof piece;
        if (!pb_read(stream, piece, n)) return false;
        for (size_t i = 0; i < n; i++) hash = (hash ^ piece[i]) * 0x100000001b3u;
    }
    return put_number(*arg, hash | 1);
}

/* Copies into memory what has been found in the file so far, with room for `more` bytes. */
static uint8_t *copy_fixed(struct fixed *list, size_t more) {
    struct rfx_onnx_bytes *bytes = &list->bytes;
    size_t kept = bytes->data != NULL ? bytes->size : 0;
    uint8_t *copy = NULL;
    if (kept != 0) memcpy(&copy, &bytes->data, sizeof copy);
    if (!reserve(list->r, &copy, kept, &list->capacity, bytes->size - kept + more, 1)) return NULL;
    if (bytes->data == NULL && !read_bytes(list->r, bytes->offset, copy, bytes->size)) return NULL;
    bytes->data = copy;
    bytes->file = NULL;
    return copy;
}

/* Appends values of fixed width to a struct fixed. */
static bool take_fixed(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    struct fixed *list = *arg;
    struct rfx_onnx_bytes *bytes = &list->bytes;
    size_t n = stream->bytes_left;
    if (is_in_file(stream) && bytes->size == 0) {
        struct rfx_onnx_span span = skip_rest(stream);
        *bytes = (struct rfx_onnx_bytes){NULL, list->r->file, span.at, span.size};
        return true;
    }
    uint8_t *copy = copy_fixed(list, n);
    if (copy == NULL || !pb_read(stream, copy + bytes->size, n)) return false;
    bytes->size += n;
    return true;
}

/* What to do with a field of a message. */
static void on(pb_callback_t *field, bool (*take)(pb_istream_t *, const pb_field_t *, void **),
               void *list) {
    field->funcs.decode = take;
    field->arg = list;
}

/* --- messages and strings --- */

static bool fail_decoding(struct reader *r, struct rfx_onnx_span span, const pb_istream_t *stream,
                          const char *what) {
    if (!fine(r)) return false;
    return fail(r, rfx_fail(r->err, RFX_STATUS_MALFORMED,
                            "onnx: broken %s at byte %zu (%zu bytes long): %s", what,
                            (size_t)span.at, span.size, PB_GET_ERROR(stream)));
}

/* Decodes the message in a span. `what` names the message in error texts. */
static bool decode(struct reader *r, struct rfx_onnx_span span, const pb_msgdesc_t *fields,
                   void *message, const char *what) {
    struct cursor cursor = {r, span.at};
    pb_istream_t stream = {.callback = read_stream, .state = &cursor, .bytes_left = span.size};
    if (!fine(r)) return false;
    return pb_decode(&stream, fields, message) || fail_decoding(r, span, &stream, what);
}

/* Reads one field. If it has the number `field`, appends its span. */
static bool take_field(pb_istream_t *stream, uint32_t field, struct spans *out) {
    pb_wire_type_t type;
    uint32_t number;
    bool end;
    void *list = out;
    if (!pb_decode_tag(stream, &type, &number, &end)) return end;
    if (type != PB_WT_STRING) return pb_skip_field(stream, type);
    pb_istream_t inner;
    if (!pb_make_string_substream(stream, &inner)) return false;
    bool taken = number == field ? take_span(&inner, NULL, &list) : skip_span(&inner, NULL, NULL);
    return taken && pb_close_string_substream(stream, &inner);
}

/* Appends the spans of all fields with this number. nanopb's description of the message need not
 * contain the field. */
static void find_fields(struct reader *r, struct rfx_onnx_span span, uint32_t field,
                        struct spans *out, const char *what) {
    struct cursor cursor = {r, span.at};
    pb_istream_t stream = {.callback = read_stream, .state = &cursor, .bytes_left = span.size};
    while (fine(r) && stream.bytes_left > 0)
        if (!take_field(&stream, field, out)) fail_decoding(r, span, &stream, what);
}

static const char *string_of(struct reader *r, struct rfx_onnx_span span) {
    if (span.size == 0) return "";
    char *copy = alloc(r, span.size + 1, 1);
    if (copy == NULL || !read_bytes(r, span.at, copy, span.size)) return "";
    if (memchr(copy, 0, span.size) == NULL) return copy;
    fail(r, rfx_fail(r->err, RFX_STATUS_MALFORMED, "onnx: a name at byte %zu holds a zero byte",
                     (size_t)span.at));
    return "";
}

/* Returns the last span as a string, or "" when there is no span. */
static const char *last_string(struct reader *r, const struct spans *list) {
    return list->count == 0 ? "" : string_of(r, list->items[list->count - 1]);
}

static const char **all_strings(struct reader *r, const struct spans *list, size_t *count) {
    const char **names = alloc(r, list->count + 1, sizeof *names);
    *count = names != NULL ? list->count : 0;
    for (size_t i = 0; i < *count; i++) names[i] = string_of(r, list->items[i]);
    return names;
}

/* Returns an array with one element of `size` bytes for each span. `read` fills the element from
 * the message in the span. */
static void *read_all(struct reader *r, const struct spans *spans, size_t size,
                      void (*read)(struct reader *, struct rfx_onnx_span, void *), size_t *count) {
    char *rows = alloc(r, spans->count + 1, size);
    *count = rows != NULL ? spans->count : 0;
    for (size_t i = 0; fine(r) && i < *count; i++) read(r, spans->items[i], rows + i * size);
    return rows;
}

/* --- tensors --- */

bool rfx_onnx_is_own_domain(const char *domain) {
    return domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0;
}

size_t rfx_onnx_type_bytes(int32_t type) {
    enum rfx_type known = rfx_type_of_onnx(type);
    return known == RFX_TYPE_COUNT ? 0 : rfx_type_bytes(known);
}

/* Converts 16-bit floats, which the file stores as varints, to raw bytes. */
static void narrow_halves(struct reader *r, struct rfx_onnx_tensor *t) {
    uint8_t *raw = alloc(r, (size_t)t->elems + 1, 2);
    if (raw == NULL) return;
    for (int64_t i = 0; i < t->elems; i++) {
        raw[2 * i] = (uint8_t)(t->ints[i] & 0xff);
        raw[2 * i + 1] = (uint8_t)((t->ints[i] >> 8) & 0xff);
    }
    t->raw = (struct rfx_onnx_bytes){.data = raw, .size = (size_t)t->elems * 2};
    t->ints = NULL;
}

/* Converts 4-bit integers to one byte each. The file stores two in a byte, the first one in the
 * lower half. */
static void widen_nibbles(struct reader *r, struct rfx_onnx_tensor *t, size_t n_ints) {
    size_t n = (size_t)t->elems, bytes = (n + 1) / 2;
    size_t given = t->raw.size != 0 ? t->raw.size : n_ints;
    bool is_signed = t->type == RFX_ONNX_INT4;
    if (t->external)
        fail(r, rfx_fail(r->err, RFX_STATUS_UNSUPPORTED,
                         "onnx: tensor '%s': 4-bit elements in an external file are not supported; "
                         "store the tensor inside the model file",
                         t->name));
    else if (given != bytes)
        fail(r, rfx_fail(r->err, RFX_STATUS_MALFORMED,
                         "onnx: tensor '%s' has %lld elements of 4 bits but %zu bytes of data",
                         t->name, (long long)t->elems, given));
    uint8_t *wide = alloc(r, 2 * bytes + 1, 1);
    if (wide == NULL) return;
    if (t->raw.size == 0)
        for (size_t i = 0; i < bytes; i++) wide[bytes + i] = (uint8_t)(t->ints[i] & 0xff);
    else if (t->raw.data != NULL)
        memcpy(wide + bytes, t->raw.data, bytes);
    else
        fail(r, rfx_weight_file_read(t->raw.file, t->raw.offset, wide + bytes, bytes, r->err));
    for (size_t i = 0; i < n; i++) { /* writes only where it has read before */
        unsigned nibble = (unsigned)wide[bytes + i / 2] >> (i % 2 == 0 ? 0 : 4) & 15u;
        wide[i] = (uint8_t)(is_signed && nibble > 7 ? nibble + 240u : nibble);
    }
    t->type = is_signed ? RFX_ONNX_INT8 : RFX_ONNX_UINT8;
    t->raw = (struct rfx_onnx_bytes){.data = wide, .size = n};
    t->ints = NULL;
}

/* Compares the number of values, in whichever field they are, with the shape. */
static void check_values(struct reader *r, struct rfx_onnx_tensor *t, size_t n_ints) {
    size_t width = rfx_onnx_type_bytes(t->type), want = 0;
    bool half = t->type == RFX_ONNX_FLOAT16 || t->type == RFX_ONNX_BFLOAT16;
    if (t->type == RFX_ONNX_INT4 || t->type == RFX_ONNX_UINT4) {
        widen_nibbles(r, t, n_ints);
    } else if (width == 0) {
        fail(r, rfx_fail(r->err, RFX_STATUS_UNSUPPORTED,
                         "onnx: tensor '%s' has element type %d, which is not supported", t->name,
                         (int)t->type));
    } else if (t->external) {
        return;
    } else if (t->raw.size != 0 || t->elems == 0) {
        if (!rfx_checked_mul_size((size_t)t->elems, width, &want) || want != t->raw.size)
            fail(r, rfx_fail(r->err, RFX_STATUS_MALFORMED,
                             "onnx: tensor '%s' has %lld elements of %zu bytes but %zu bytes of "
                             "data",
                             t->name, (long long)t->elems, width, t->raw.size));
    } else if (n_ints != (size_t)t->elems || t->type == RFX_ONNX_FLOAT ||
               t->type == RFX_ONNX_DOUBLE) {
        fail(r, rfx_fail(r->err, RFX_STATUS_MALFORMED,
                         "onnx: tensor '%s' of type %d has %lld elements but %zu values", t->name,
                         (int)t->type, (long long)t->elems, n_ints));
    } else if (half) {
        narrow_halves(r, t);
    }
}

static void set_dims(struct reader *r, const struct numbers *dims, struct rfx_onnx_tensor *t) {
    if (!fine(r)) return;
    if (dims->count > RFX_MAX_RANK) {
        fail(r, rfx_fail(r->err, RFX_STATUS_UNSUPPORTED, "onnx: tensor '%s' has rank %zu, above %d",
                         t->name, dims->count, RFX_MAX_RANK));
        return;
    }
    t->shape.rank = (int)dims->count;
    t->elems = 1;
    for (size_t i = 0; i < dims->count; i++) {
        int64_t dim = t->shape.dims[i] = dims->items[i];
        if (dim >= 0 && rfx_checked_mul_i64(t->elems, dim, &t->elems) && t->elems <= INT64_MAX / 16)
            continue;
        fail(r, rfx_fail(r->err, RFX_STATUS_MALFORMED,
                         "onnx: tensor '%s' has an impossible dimension %lld", t->name,
                         (long long)dim));
        return;
    }
}

/* Reads a decimal number without a sign. */
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

static void read_external(struct reader *r, const struct spans *entries,
                          struct rfx_onnx_tensor *t) {
    t->external = true;
    t->location = "";
    t->length = -1;
    for (size_t i = 0; i < entries->count; i++) {
        struct spans keys = {.r = r}, values = {.r = r};
        onnx_StringStringEntryProto entry = onnx_StringStringEntryProto_init_zero;
        on(&entry.key, take_span, &keys);
        on(&entry.value, take_span, &values);
        decode(r, entries->items[i], onnx_StringStringEntryProto_fields, &entry,
               "external data entry");
        const char *key = last_string(r, &keys), *value = last_string(r, &values);
        if (!fine(r)) return;
        if (strcmp(key, "location") == 0) t->location = value;
        int64_t *number = strcmp(key, "offset") == 0   ? &t->offset
                          : strcmp(key, "length") == 0 ? &t->length
                                                       : NULL;
        if (number != NULL && !parse_number(value, number))
            fail(r, rfx_fail(r->err, RFX_STATUS_MALFORMED,
                             "onnx: tensor '%s': external data %s '%s' is not a number", t->name,
                             key, value));
    }
    if (fine(r) && t->location[0] == '\0')
        fail(r, rfx_fail(r->err, RFX_STATUS_MALFORMED,
                         "onnx: tensor '%s': external data without a location", t->name));
}

/* Reads a tensor except for its values, which stay in the file when they have a fixed width. */
static void read_tensor(struct reader *r, struct rfx_onnx_span span, void *out) {
    struct rfx_onnx_tensor *t = out;
    struct spans names = {.r = r}, raw = names, entries = names, strings = names;
    struct numbers dims = {.r = r}, ints = dims;
    struct fixed fixed = {.r = r};
    onnx_TensorProto m = onnx_TensorProto_init_zero;
    on(&m.name, take_span, &names);
    on(&m.raw_data, take_span, &raw);
    on(&m.string_data, take_span, &strings);
    on(&m.external_data, take_span, &entries);
    on(&m.dims, take_ints, &dims);
    on(&m.int32_data, take_ints, &ints);
    on(&m.int64_data, take_ints, &ints);
    on(&m.uint64_data, take_ints, &ints);
    on(&m.float_data, take_fixed, &fixed);
    on(&m.double_data, take_fixed, &fixed);
    decode(r, span, onnx_TensorProto_fields, &m, "tensor");
    t->name = last_string(r, &names);
    set_dims(r, &dims, t);
    t->type = m.data_type;
    t->raw = fixed.bytes;
    if (raw.count != 0) {
        const struct rfx_onnx_span *last = &raw.items[raw.count - 1];
        t->raw = (struct rfx_onnx_bytes){NULL, r->file, last->at, last->size};
    }
    t->ints = ints.items;
    if (fine(r) && m.has_data_location && m.data_location == onnx_TensorProto_DataLocation_EXTERNAL)
        read_external(r, &entries, t);
    if (fine(r)) check_values(r, t, ints.count);
}

/* --- nodes and values --- */

/* Returns the kind of an attribute. Old files do not state it; then the field that is set decides.
 */
static enum rfx_onnx_attr_kind attr_kind(const onnx_AttributeProto *m, size_t n_s, size_t n_t,
                                         size_t n_g, size_t n_floats, size_t n_ints) {
    if (n_g != 0) return RFX_ONNX_ATTR_GRAPH;
    if (m->has_type) {
        int kind = (int)m->type;
        bool empty = (kind == RFX_ONNX_ATTR_TENSOR && n_t == 0) || kind == RFX_ONNX_ATTR_GRAPH;
        bool known = kind >= RFX_ONNX_ATTR_FLOAT && kind <= RFX_ONNX_ATTR_STRINGS;
        return known && !empty ? (enum rfx_onnx_attr_kind)kind : RFX_ONNX_ATTR_OTHER;
    }
    if (m->has_f) return RFX_ONNX_ATTR_FLOAT;
    if (m->has_i) return RFX_ONNX_ATTR_INT;
    if (n_s != 0) return RFX_ONNX_ATTR_STRING;
    if (n_t != 0) return RFX_ONNX_ATTR_TENSOR;
    if (n_floats != 0) return RFX_ONNX_ATTR_FLOATS;
    return n_ints != 0 ? RFX_ONNX_ATTR_INTS : RFX_ONNX_ATTR_OTHER;
}

static void set_floats(struct reader *r, const struct rfx_onnx_bytes *from,
                       struct rfx_onnx_attr *a) {
    a->count = from->size / sizeof *a->floats;
    float *copy = alloc(r, a->count + 1, sizeof *copy);
    if (copy == NULL) return;
    if (from->data != NULL)
        memcpy(copy, from->data, a->count * sizeof *copy);
    else
        read_bytes(r, from->offset, copy, a->count * sizeof *copy);
    a->floats = copy;
}

static void read_attr(struct reader *r, struct rfx_onnx_span span, void *out) {
    struct rfx_onnx_attr *a = out;
    struct spans name = {.r = r}, ref = name, s = name, t = name, g = name;
    struct numbers ints = {.r = r};
    struct fixed floats = {.r = r};
    onnx_AttributeProto m = onnx_AttributeProto_init_zero;
    on(&m.name, take_span, &name);
    on(&m.ref_attr_name, take_span, &ref);
    on(&m.s, take_span, &s);
    on(&m.t, take_span, &t);
    on(&m.g, take_span, &g);
    on(&m.graphs, take_span, &g);
    on(&m.ints, take_ints, &ints);
    on(&m.floats, take_fixed, &floats);
    if (!decode(r, span, onnx_AttributeProto_fields, &m, "attribute")) return;
    a->name = last_string(r, &name);
    if (ref.count != 0) a->ref = last_string(r, &ref);
    a->kind = attr_kind(&m, s.count, t.count, g.count, floats.bytes.size, ints.count);
    a->f = m.f;
    a->i = m.i;
    a->s = "";
    a->ints = ints.items;
    a->count = ints.count;
    if (a->kind == RFX_ONNX_ATTR_GRAPH) a->graph = g.items[g.count - 1];
    if (a->kind == RFX_ONNX_ATTR_STRING) a->s = last_string(r, &s);
    if (a->kind == RFX_ONNX_ATTR_FLOATS) set_floats(r, &floats.bytes, a);
    if (a->kind != RFX_ONNX_ATTR_TENSOR) return;
    a->t = alloc(r, 1, sizeof *a->t);
    if (a->t != NULL) read_tensor(r, t.items[t.count - 1], a->t);
}

static void read_node(struct reader *r, struct rfx_onnx_span span, void *row) {
    struct rfx_onnx_node *node = row;
    struct spans name = {.r = r}, op = name, domain = name, in = name, out = name, attrs = name;
    onnx_NodeProto m = onnx_NodeProto_init_zero;
    on(&m.name, take_span, &name);
    on(&m.op_type, take_span, &op);
    on(&m.domain, take_span, &domain);
    on(&m.input, take_span, &in);
    on(&m.output, take_span, &out);
    on(&m.attribute, take_span, &attrs);
    decode(r, span, onnx_NodeProto_fields, &m, "node");
    node->name = last_string(r, &name);
    node->op = last_string(r, &op);
    node->domain = last_string(r, &domain);
    node->in = all_strings(r, &in, &node->n_in);
    node->out = all_strings(r, &out, &node->n_out);
    if (!fine(r)) return;
    node->attrs = read_all(r, &attrs, sizeof *node->attrs, read_attr, &node->n_attrs);
    if (!fine(r))
        r->status = rfx_fail_within(r->err, r->status, "node '%s' (%s)", node->name, node->op);
}

static void read_dims(struct reader *r, struct rfx_onnx_span span, struct rfx_onnx_value *value) {
    struct spans dims = {.r = r};
    onnx_TensorShapeProto shape = onnx_TensorShapeProto_init_zero;
    on(&shape.dim, take_span, &dims);
    if (!decode(r, span, onnx_TensorShapeProto_fields, &shape, "shape")) return;
    if (dims.count > RFX_MAX_RANK) return;
    value->rank = (int)dims.count;
    for (size_t i = 0; i < dims.count; i++) {
        onnx_TensorShapeProto_Dimension d = onnx_TensorShapeProto_Dimension_init_zero;
        decode(r, dims.items[i], onnx_TensorShapeProto_Dimension_fields, &d, "dimension");
        value->dims[i] = d.has_dim_value && d.dim_value > 0 ? d.dim_value : -1;
    }
}

static void read_value(struct reader *r, struct rfx_onnx_span span, void *out) {
    struct rfx_onnx_value *value = out;
    struct spans name = {.r = r}, type = name, tensor = name, shape = name;
    onnx_ValueInfoProto m = onnx_ValueInfoProto_init_zero;
    on(&m.name, take_span, &name);
    on(&m.type, take_span, &type);
    value->rank = -1;
    decode(r, span, onnx_ValueInfoProto_fields, &m, "value");
    value->name = last_string(r, &name);
    if (!fine(r) || type.count == 0) return;
    onnx_TypeProto t = onnx_TypeProto_init_zero;
    on(&t.tensor_type, take_span, &tensor);
    if (!decode(r, type.items[type.count - 1], onnx_TypeProto_fields, &t, "type")) return;
    if (tensor.count == 0) return;
    onnx_TypeProto_Tensor tt = onnx_TypeProto_Tensor_init_zero;
    on(&tt.shape, take_span, &shape);
    decode(r, tensor.items[tensor.count - 1], onnx_TypeProto_Tensor_fields, &tt, "type");
    value->type = tt.elem_type;
    if (fine(r) && shape.count != 0) read_dims(r, shape.items[shape.count - 1], value);
}

/* --- the nodes and initialisers that the outputs of a graph need --- */

/* The set of needed names, as hashes. If two names have the same hash, a node that is not needed
 * may be kept, which does no harm. Open addressing; 0 is an empty row. */
struct needed {
    struct reader *r;
    uint64_t *rows;
    size_t count, capacity;
};

static bool is_needed(const struct needed *needed, int64_t name) {
    uint64_t hash = (uint64_t)name;
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

static void need(struct needed *needed, int64_t name) {
    if ((needed->count + 1) * 2 > needed->capacity) {
        size_t next = needed->capacity == 0 ? 1024 : needed->capacity * 2;
        uint64_t *rows = alloc(needed->r, next, sizeof *rows);
        if (rows == NULL) return;
        for (size_t i = 0; i < needed->capacity; i++)
            if (needed->rows[i] != 0) put_row(rows, next - 1, needed->rows[i]);
        needed->rows = rows;
        needed->capacity = next;
    }
    if (is_needed(needed, name)) return;
    put_row(needed->rows, needed->capacity - 1, (uint64_t)name);
    needed->count++;
}

/* Adds the names of a graph's inputs or outputs to the needed names. */
static void need_values(struct needed *needed, const struct spans *values) {
    struct reader *r = needed->r;
    struct numbers names = {.r = r};
    for (size_t i = 0; fine(r) && i < values->count; i++) {
        onnx_ValueInfoProto m = onnx_ValueInfoProto_init_zero;
        on(&m.name, take_hash, &names);
        names.count = 0;
        if (decode(r, values->items[i], onnx_ValueInfoProto_fields, &m, "value") &&
            names.count != 0)
            need(needed, names.items[names.count - 1]);
    }
}

/* Appends the spans of an attribute's sub-graphs. */
static void find_graphs(struct reader *r, struct rfx_onnx_span attr, struct spans *graphs) {
    onnx_AttributeProto m = onnx_AttributeProto_init_zero;
    pb_callback_t *const bulky[] = {&m.s, &m.t, &m.floats, &m.ints, &m.strings, &m.tensors};
    for (size_t k = 0; k < sizeof bulky / sizeof bulky[0]; k++) on(bulky[k], skip_span, NULL);
    on(&m.g, take_span, graphs);
    on(&m.graphs, take_span, graphs);
    decode(r, attr, onnx_AttributeProto_fields, &m, "attribute");
}

/* Returns whether a node is needed: `always`, or one of its outputs is needed. If so, adds its
 * inputs to the needed names and appends the spans of its sub-graphs. */
static bool need_node(struct needed *needed, struct rfx_onnx_span node, bool always,
                      struct numbers *in, struct numbers *out, struct spans *attrs,
                      struct spans *graphs) {
    struct reader *r = needed->r;
    onnx_NodeProto m = onnx_NodeProto_init_zero;
    on(&m.input, take_hash, in);
    on(&m.output, take_hash, out);
    on(&m.attribute, take_span, attrs);
    in->count = out->count = attrs->count = 0;
    if (!decode(r, node, onnx_NodeProto_fields, &m, "node")) return false;
    bool live = always;
    for (size_t k = 0; !live && k < out->count; k++) live = is_needed(needed, out->items[k]);
    for (size_t k = 0; live && k < in->count; k++) need(needed, in->items[k]);
    for (size_t k = 0; live && k < attrs->count; k++) find_graphs(r, attrs->items[k], graphs);
    return live;
}

/* Removes nodes that are not needed, from the last one to the first, because a node's readers come
 * after it. For a node with sub-graphs, all inputs of nodes in them, at any depth, and all their
 * outputs are needed: they may be tensors of the graph around them. */
static void drop_nodes(struct needed *needed, struct spans *nodes) {
    struct reader *r = needed->r;
    struct numbers in = {.r = r}, out = in;
    struct spans attrs = {.r = r}, graphs = attrs;
    size_t kept = nodes->count;
    for (size_t i = nodes->count; fine(r) && i-- > 0;) {
        if (!need_node(needed, nodes->items[i], false, &in, &out, &attrs, &graphs)) continue;
        nodes->items[--kept] = nodes->items[i];
        while (fine(r) && graphs.count > 0) {
            struct spans inner = {.r = r}, outputs = inner;
            onnx_GraphProto m = onnx_GraphProto_init_zero;
            on(&m.node, take_span, &inner);
            on(&m.output, take_span, &outputs);
            on(&m.initializer, skip_span, NULL);
            decode(r, graphs.items[--graphs.count], onnx_GraphProto_fields, &m, "graph");
            need_values(needed, &outputs);
            for (size_t k = 0; fine(r) && k < inner.count; k++)
                (void)need_node(needed, inner.items[k], true, &in, &out, &attrs, &graphs);
        }
    }
    if (kept == 0) return; /* `items` is NULL in a graph without nodes */
    nodes->items += kept;
    nodes->count -= kept;
}

static void drop_tensors(const struct needed *needed, struct spans *tensors) {
    struct reader *r = needed->r;
    struct numbers name = {.r = r};
    size_t kept = 0;
    for (size_t i = 0; fine(r) && i < tensors->count; i++) {
        onnx_TensorProto m = onnx_TensorProto_init_zero;
        pb_callback_t *const bulky[] = {&m.raw_data,   &m.float_data, &m.double_data,
                                        &m.int32_data, &m.int64_data, &m.uint64_data,
                                        &m.string_data};
        on(&m.name, take_hash, &name);
        for (size_t k = 0; k < sizeof bulky / sizeof bulky[0]; k++) on(bulky[k], skip_span, NULL);
        name.count = 0;
        if (!decode(r, tensors->items[i], onnx_TensorProto_fields, &m, "tensor")) return;
        if (name.count != 0 && is_needed(needed, name.items[name.count - 1]))
            tensors->items[kept++] = tensors->items[i];
    }
    tensors->count = kept;
}

/* --- graphs, functions, the model --- */

struct graph_spans { /* places of the parts of a graph in the file */
    struct spans name, nodes, tensors, in, out;
};

/* Finds the parts of a graph, without the nodes and initialisers that no output needs. */
static void find_graph(struct reader *r, struct rfx_onnx_span span, struct graph_spans *g) {
    struct spans none = {.r = r}, sparse = none;
    onnx_GraphProto m = onnx_GraphProto_init_zero;
    *g = (struct graph_spans){none, none, none, none, none};
    on(&m.name, take_span, &g->name);
    on(&m.node, take_span, &g->nodes);
    on(&m.initializer, take_span, &g->tensors);
    on(&m.sparse_initializer, take_span, &sparse);
    on(&m.input, take_span, &g->in);
    on(&m.output, take_span, &g->out);
    if (!decode(r, span, onnx_GraphProto_fields, &m, "graph")) return;
    if (sparse.count != 0)
        fail(r, rfx_fail(r->err, RFX_STATUS_UNSUPPORTED,
                         "onnx: %zu sparse initialisers, which are not supported", sparse.count));
    if (r->keep_all) return;
    struct needed needed = {.r = r};
    need(&needed, 1); /* allocates the table */
    need_values(&needed, &g->out);
    need_values(&needed, &g->in);
    if (fine(r)) drop_nodes(&needed, &g->nodes);
    if (fine(r)) drop_tensors(&needed, &g->tensors);
}

static struct rfx_onnx_tensor *read_tensors(struct reader *r, const struct spans *s, size_t *n) {
    return read_all(r, s, sizeof(struct rfx_onnx_tensor), read_tensor, n);
}

static struct rfx_onnx_node *read_nodes(struct reader *r, const struct spans *s, size_t *n) {
    return read_all(r, s, sizeof(struct rfx_onnx_node), read_node, n);
}

static struct rfx_onnx_value *read_values(struct reader *r, const struct spans *s, size_t *n) {
    return read_all(r, s, sizeof(struct rfx_onnx_value), read_value, n);
}

static struct reader reader_of(const struct rfx_onnx_model *model, struct rfx_error *err) {
    return (struct reader){
        .arena = model->arena, .file = model->file, .size = model->file_bytes, .err = err};
}

enum rfx_status rfx_onnx_read_branch(const struct rfx_onnx_model *model, struct rfx_onnx_attr *attr,
                                     struct rfx_error *err) {
    if (attr->body != NULL) return RFX_OK;
    struct reader reader = reader_of(model, err), *r = &reader;
    struct rfx_onnx_body *body = alloc(r, 1, sizeof *body);
    struct graph_spans g;
    if (body == NULL) return r->status;
    find_graph(r, attr->graph, &g);
    body->tensors = read_tensors(r, &g.tensors, &body->n_tensors);
    body->nodes = read_nodes(r, &g.nodes, &body->n_nodes);
    struct rfx_onnx_value *values = read_values(r, &g.out, &body->n_out);
    body->out = alloc(r, body->n_out + 1, sizeof *body->out);
    for (size_t i = 0; fine(r) && i < body->n_out; i++) body->out[i] = values[i].name;
    if (fine(r)) attr->body = body;
    return r->status;
}

/* Sets *opset to the version of ONNX's own domain, if it is listed. */
static void read_opsets(struct reader *r, const struct spans *spans, int64_t *opset) {
    for (size_t i = 0; fine(r) && i < spans->count; i++) {
        struct spans domains = {.r = r};
        onnx_OperatorSetIdProto m = onnx_OperatorSetIdProto_init_zero;
        on(&m.domain, take_span, &domains);
        if (!decode(r, spans->items[i], onnx_OperatorSetIdProto_fields, &m, "opset")) return;
        const char *domain = last_string(r, &domains);
        if (rfx_onnx_is_own_domain(domain)) *opset = m.version;
    }
}

enum { ATTRIBUTE_PROTO = 11 }; /* of FunctionProto, since version 9 of the format */

enum rfx_status rfx_onnx_read_function(const struct rfx_onnx_model *model,
                                       struct rfx_onnx_function *function, struct rfx_error *err) {
    if (function->body != NULL) return RFX_OK;
    struct reader reader = reader_of(model, err), *r = &reader;
    struct spans in = {.r = r}, out = in, nodes = in, opsets = in, defaults = in;
    struct rfx_onnx_body *body = alloc(r, 1, sizeof *body);
    if (body == NULL) return r->status;
    onnx_FunctionProto m = onnx_FunctionProto_init_zero;
    on(&m.input, take_span, &in);
    on(&m.output, take_span, &out);
    on(&m.node, take_span, &nodes);
    on(&m.opset_import, take_span, &opsets);
    decode(r, function->span, onnx_FunctionProto_fields, &m, "function");
    find_fields(r, function->span, ATTRIBUTE_PROTO, &defaults, "function");
    body->in = all_strings(r, &in, &body->n_in);
    body->out = all_strings(r, &out, &body->n_out);
    body->nodes = read_nodes(r, &nodes, &body->n_nodes);
    body->defaults = read_all(r, &defaults, sizeof *body->defaults, read_attr, &body->n_defaults);
    read_opsets(r, &opsets, &body->opset);
    if (fine(r)) function->body = body;
    return r->status;
}

/* Reads the name of a function. Its body is read when a node calls the function. */
static void list_function(struct reader *r, struct rfx_onnx_span span, void *out) {
    struct rfx_onnx_function *f = out;
    struct spans name = {.r = r}, domain = name;
    onnx_FunctionProto m = onnx_FunctionProto_init_zero;
    on(&m.name, take_span, &name);
    on(&m.domain, take_span, &domain);
    on(&m.node, skip_span, NULL);
    f->span = span;
    decode(r, span, onnx_FunctionProto_fields, &m, "function");
    f->name = last_string(r, &name);
    f->domain = last_string(r, &domain);
}

enum rfx_status rfx_onnx_model_read(struct rfx_memory *mem, const struct rfx_weight_file *file,
                                    size_t size, bool keep_all, struct rfx_onnx_model *out,
                                    struct rfx_error *err) {
    struct rfx_onnx_model model = {
        .arena = rfx_arena_create(mem), .file = file, .file_bytes = size};
    if (model.arena == NULL)
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "onnx: no memory for the model's structure");
    struct reader reader = reader_of(&model, err), *r = &reader;
    struct spans graph = {.r = r}, opsets = graph, functions = graph;
    struct graph_spans g;
    onnx_ModelProto m = onnx_ModelProto_init_zero;
    r->keep_all = keep_all;
    on(&m.graph, take_span, &graph);
    on(&m.opset_import, take_span, &opsets);
    on(&m.functions, take_span, &functions);
    decode(r, (struct rfx_onnx_span){0, size}, onnx_ModelProto_fields, &m, "model");
    if (fine(r) && graph.count == 0)
        fail(r, rfx_fail(err, RFX_STATUS_MALFORMED, "onnx: the file holds no graph"));
    read_opsets(r, &opsets, &model.opset);
    model.functions =
        read_all(r, &functions, sizeof *model.functions, list_function, &model.n_functions);
    if (fine(r)) {
        find_graph(r, graph.items[graph.count - 1], &g);
        model.graph_name = last_string(r, &g.name);
        model.tensors = read_tensors(r, &g.tensors, &model.n_tensors);
        model.nodes = read_nodes(r, &g.nodes, &model.n_nodes);
        model.inputs = read_values(r, &g.in, &model.n_inputs);
        model.outputs = read_values(r, &g.out, &model.n_outputs);
    }
    if (!fine(r)) {
        rfx_arena_free(model.arena);
        return r->status;
    }
    model.ir_version = m.ir_version;
    *out = model;
    return RFX_OK;
}

void rfx_onnx_model_free(struct rfx_onnx_model *model) {
    rfx_arena_free(model->arena);
    model->arena = NULL;
}
