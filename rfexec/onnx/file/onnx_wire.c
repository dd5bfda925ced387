/* The window, the streams of nanopb that read through it, and the callbacks. */
#include "rfexec/onnx/file/onnx_wire.h"

#include <string.h>

/* The state of a stream: where it is in the file. Sub-streams of nanopb share it. */
struct cursor {
    struct rfx_onnx_reader *r;
    uint64_t at;
};

enum rfx_status rfx_onnx_no_memory(struct rfx_onnx_reader *r) {
    return rfx_fail(r->err, RFX_STATUS_OUT_OF_MEMORY, "onnx: no memory for the model's structure");
}

bool rfx_onnx_reserve(struct rfx_onnx_reader *r, void *items, size_t count, size_t *capacity,
                      size_t more, size_t size) {
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
    uint64_t most = RFX_ONNX_WINDOW_BYTES / 4 * 3;
    return at > most ? at - most : 0;
}

bool rfx_onnx_read_bytes(struct rfx_onnx_reader *r, uint64_t at, void *out, size_t bytes) {
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
        bool few = bytes < RFX_ONNX_WINDOW_BYTES;
        size_t left = r->size - (size_t)at, n = !few ? bytes
                                                : left < RFX_ONNX_WINDOW_BYTES
                                                    ? left
                                                    : RFX_ONNX_WINDOW_BYTES;
        uint64_t from = few && at < r->window_at ? before_window(at) : at;
        n += (size_t)(at - from);
        if (few && n > RFX_ONNX_WINDOW_BYTES) n = RFX_ONNX_WINDOW_BYTES;
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
    return out == NULL || rfx_onnx_read_bytes(cursor->r, at, out, bytes);
}

static bool is_in_file(const pb_istream_t *stream) {
    return stream->callback == read_stream;
}

/* Where the rest of a stream lies in the file; the stream is then at its end. */
static struct rfx_onnx_span skip_rest(pb_istream_t *stream) {
    struct cursor *cursor = stream->state;
    struct rfx_onnx_span span = {cursor->at, stream->bytes_left};
    cursor->at += span.size;
    stream->bytes_left = 0;
    return span;
}

/* A field of another wire type than bytes comes in a buffer of nanopb's that is soon gone. */
bool rfx_onnx_take_span(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    struct rfx_onnx_span_list *list = *arg;
    if (!is_in_file(stream)) PB_RETURN_ERROR(stream, "wrong wire type");
    if (!rfx_onnx_reserve(list->r, &list->items, list->count, &list->capacity, 1,
                          sizeof *list->items))
        return false;
    list->items[list->count++] = skip_rest(stream);
    return true;
}

bool rfx_onnx_skip_span(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    (void)arg;
    if (!is_in_file(stream)) return pb_read(stream, NULL, stream->bytes_left);
    (void)skip_rest(stream);
    return true;
}

bool rfx_onnx_take_ints(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    struct rfx_onnx_int_list *list = *arg;
    while (stream->bytes_left > 0) {
        uint64_t value;
        if (!pb_decode_varint(stream, &value)) return false;
        if (!rfx_onnx_reserve(list->r, &list->items, list->count, &list->capacity, 1,
                              sizeof *list->items))
            return false;
        list->items[list->count++] = (int64_t)value;
    }
    return true;
}

/* Makes a copy in memory of what has been found in the file so far, with room for `more`. */
static bool gather(struct rfx_onnx_byte_list *list, size_t more, uint8_t **out) {
    struct rfx_onnx_reader *r = list->r;
    struct rfx_onnx_bytes *bytes = &list->bytes;
    size_t kept = bytes->data != NULL ? bytes->size : 0;
    uint8_t *copy = NULL;
    if (kept != 0) memcpy(&copy, &bytes->data, sizeof copy);
    if (!rfx_onnx_reserve(r, &copy, kept, &list->capacity, bytes->size - kept + more, 1))
        return false;
    if (bytes->data == NULL && !rfx_onnx_read_bytes(r, bytes->offset, copy, bytes->size))
        return false;
    bytes->data = copy;
    bytes->file = NULL;
    *out = copy;
    return true;
}

bool rfx_onnx_take_bytes(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    struct rfx_onnx_byte_list *list = *arg;
    struct rfx_onnx_bytes *bytes = &list->bytes;
    size_t n = stream->bytes_left;
    if (is_in_file(stream) && bytes->size == 0) {
        struct rfx_onnx_span span = skip_rest(stream);
        *bytes = (struct rfx_onnx_bytes){NULL, list->r->file, span.at, span.size};
        return true;
    }
    uint8_t *copy;
    if (!gather(list, n, &copy) || !pb_read(stream, copy + bytes->size, n)) return false;
    bytes->size += n;
    return true;
}

void rfx_onnx_bind(pb_callback_t *field, bool (*fn)(pb_istream_t *, const pb_field_t *, void **),
                   void *list) {
    field->funcs.decode = fn;
    field->arg = list;
}

/* Why a message could not be decoded. */
static enum rfx_status fail_decoding(struct rfx_onnx_reader *r, struct rfx_onnx_span span,
                                     const pb_istream_t *stream, const char *what) {
    if (r->out_of_memory) return rfx_onnx_no_memory(r);
    if (r->io != RFX_OK) return r->io;
    return rfx_fail(r->err, RFX_STATUS_MALFORMED,
                    "onnx: broken %s at byte %zu (%zu bytes long): %s", what, (size_t)span.at,
                    span.size, PB_GET_ERROR(stream));
}

enum rfx_status rfx_onnx_decode(struct rfx_onnx_reader *r, struct rfx_onnx_span span,
                                const pb_msgdesc_t *fields, void *message, const char *what) {
    struct cursor cursor = {r, span.at};
    pb_istream_t stream = {.callback = read_stream, .state = &cursor, .bytes_left = span.size};
    return pb_decode(&stream, fields, message) ? RFX_OK : fail_decoding(r, span, &stream, what);
}

/* Takes one field: into the list where it is bytes and of the right number. */
static bool take_field(pb_istream_t *stream, uint32_t field, struct rfx_onnx_span_list *out) {
    pb_wire_type_t type;
    uint32_t number;
    bool end;
    void *list = out;
    if (!pb_decode_tag(stream, &type, &number, &end)) return end;
    if (type != PB_WT_STRING) return pb_skip_field(stream, type);
    pb_istream_t inner;
    if (!pb_make_string_substream(stream, &inner)) return false;
    bool fine = number == field ? rfx_onnx_take_span(&inner, NULL, &list)
                                : rfx_onnx_skip_span(&inner, NULL, NULL);
    return fine && pb_close_string_substream(stream, &inner);
}

enum rfx_status rfx_onnx_find_fields(struct rfx_onnx_reader *r, struct rfx_onnx_span span,
                                     uint32_t field, struct rfx_onnx_span_list *out,
                                     const char *what) {
    struct cursor cursor = {r, span.at};
    pb_istream_t stream = {.callback = read_stream, .state = &cursor, .bytes_left = span.size};
    while (stream.bytes_left > 0)
        if (!take_field(&stream, field, out)) return fail_decoding(r, span, &stream, what);
    return RFX_OK;
}

/* The last span of an optional string as a C string ("" when absent). */
static enum rfx_status to_string(struct rfx_onnx_reader *r, const struct rfx_onnx_span *span,
                                 const char **out) {
    *out = "";
    if (span->size == 0) return RFX_OK;
    char *copy = rfx_arena_alloc(r->arena, span->size + 1, 1);
    if (copy == NULL) return rfx_onnx_no_memory(r);
    if (!rfx_onnx_read_bytes(r, span->at, copy, span->size)) return r->io;
    if (memchr(copy, 0, span->size) != NULL)
        return rfx_fail(r->err, RFX_STATUS_MALFORMED, "onnx: a name at byte %zu holds a zero byte",
                        (size_t)span->at);
    *out = copy;
    return RFX_OK;
}

enum rfx_status rfx_onnx_last_string(struct rfx_onnx_reader *r,
                                     const struct rfx_onnx_span_list *list, const char **out) {
    static const struct rfx_onnx_span none = {0};
    return to_string(r, list->count == 0 ? &none : &list->items[list->count - 1], out);
}

enum rfx_status rfx_onnx_all_strings(struct rfx_onnx_reader *r,
                                     const struct rfx_onnx_span_list *list, const char ***out) {
    const char **names = rfx_arena_alloc(r->arena, list->count + 1, sizeof *names);
    if (names == NULL) return rfx_onnx_no_memory(r);
    for (size_t i = 0; i < list->count; i++) {
        enum rfx_status status = to_string(r, &list->items[i], &names[i]);
        if (status != RFX_OK) return status;
    }
    *out = names;
    return RFX_OK;
}
