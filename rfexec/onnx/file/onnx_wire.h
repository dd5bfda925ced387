/* The bytes of an ONNX file for nanopb: read through one window, noted as spans, decoded from them.
 *
 * Shared by the parts of the reader (onnx_reader.c, onnx_tensor.c, onnx_needed.c), by nobody else.
 * Lists live in the model's arena and grow there. Callbacks are bound to a list of their own kind;
 * false from one of them is told apart by the reader: no memory, a failed read, else a broken file.
 */
#ifndef RFX_RFEXEC_ONNX_FILE_ONNX_WIRE_H
#define RFX_RFEXEC_ONNX_FILE_ONNX_WIRE_H

#include <pb_decode.h>

#include "rfexec/onnx/file/onnx_model.h"

#define RFX_ONNX_WINDOW_BYTES ((size_t)16384)

struct rfx_onnx_reader {
    struct rfx_arena *arena;
    const struct rfx_weight_file *file;
    size_t size; /* of the file */
    bool keep_all;
    struct rfx_error *err;
    bool out_of_memory;
    enum rfx_status io; /* of the last read of the file */
    uint64_t window_at; /* bytes [window_at, window_at + window_bytes) of the file are in window */
    size_t window_bytes;
    uint8_t window[RFX_ONNX_WINDOW_BYTES];
};

/* Spans of a field, in file order. */
struct rfx_onnx_span_list {
    struct rfx_onnx_reader *r;
    struct rfx_onnx_span *items;
    size_t count, capacity;
};

struct rfx_onnx_int_list {
    struct rfx_onnx_reader *r;
    int64_t *items;
    size_t count, capacity;
};

/* Fixed-width values: one packed run stays where it is; anything else is gathered. */
struct rfx_onnx_byte_list {
    struct rfx_onnx_reader *r;
    struct rfx_onnx_bytes bytes;
    size_t capacity; /* 0: the bytes are in the file */
};

/* Fails with OUT_OF_MEMORY. */
enum rfx_status rfx_onnx_no_memory(struct rfx_onnx_reader *r);

/* Makes room for `more` elements of `size` bytes behind `count`; `items` is the address of their
 * pointer. False: no memory. */
bool rfx_onnx_reserve(struct rfx_onnx_reader *r, void *items, size_t count, size_t *capacity,
                      size_t more, size_t size);

/* Copies bytes of the file, by way of the window when they are few. False: r->io says why. */
bool rfx_onnx_read_bytes(struct rfx_onnx_reader *r, uint64_t at, void *out, size_t bytes);

/* --- callbacks of a field --- */

/* Appends where the field lies to an rfx_onnx_span_list. */
bool rfx_onnx_take_span(pb_istream_t *stream, const pb_field_t *field, void **arg);

/* Passes by what may be long without reading it; no list. */
bool rfx_onnx_skip_span(pb_istream_t *stream, const pb_field_t *field, void **arg);

/* Appends varints, packed or not, to an rfx_onnx_int_list. */
bool rfx_onnx_take_ints(pb_istream_t *stream, const pb_field_t *field, void **arg);

/* Appends fixed-width values to an rfx_onnx_byte_list. */
bool rfx_onnx_take_bytes(pb_istream_t *stream, const pb_field_t *field, void **arg);

void rfx_onnx_bind(pb_callback_t *field, bool (*fn)(pb_istream_t *, const pb_field_t *, void **),
                   void *list);

/* Decodes the message in a span. MALFORMED names it by `what`; or OUT_OF_MEMORY, or the read's. */
RFX_NODISCARD enum rfx_status rfx_onnx_decode(struct rfx_onnx_reader *r, struct rfx_onnx_span span,
                                              const pb_msgdesc_t *fields, void *message,
                                              const char *what);

/* Appends where the fields of that number lie, which the description of the message that is
 * compiled in may not know. Statuses as rfx_onnx_decode. */
RFX_NODISCARD enum rfx_status rfx_onnx_find_fields(struct rfx_onnx_reader *r,
                                                   struct rfx_onnx_span span, uint32_t field,
                                                   struct rfx_onnx_span_list *out,
                                                   const char *what);

/* The last span as a C string ("" when there is none), and all of them. MALFORMED: a zero byte. */
RFX_NODISCARD enum rfx_status rfx_onnx_last_string(struct rfx_onnx_reader *r,
                                                   const struct rfx_onnx_span_list *list,
                                                   const char **out);
RFX_NODISCARD enum rfx_status rfx_onnx_all_strings(struct rfx_onnx_reader *r,
                                                   const struct rfx_onnx_span_list *list,
                                                   const char ***out);

/* --- parts of the reader --- */

/* A TensorProto (onnx_tensor.c); its values stay where they are. */
RFX_NODISCARD enum rfx_status rfx_onnx_read_tensor(struct rfx_onnx_reader *r,
                                                   struct rfx_onnx_span span,
                                                   struct rfx_onnx_tensor *t);

/* Forgets nodes and initialisers that no output needs, before anything of them is held
 * (onnx_needed.c). `in` and `out`: the graph's values. */
RFX_NODISCARD enum rfx_status rfx_onnx_drop_unneeded(struct rfx_onnx_reader *r,
                                                     struct rfx_onnx_span_list *nodes,
                                                     struct rfx_onnx_span_list *tensors,
                                                     const struct rfx_onnx_span_list *in,
                                                     const struct rfx_onnx_span_list *out);
#endif
