/* Tensors of an ONNX file: shapes, element types, and where the values lie. */
#include <string.h>

#include "layers/core/checked.h"
#include "onnx.pb.h"
#include "rfexec/onnx/file/onnx_wire.h"

size_t rfx_onnx_type_bytes(int32_t type) {
    enum rfx_type known = rfx_type_of_onnx(type);
    return known == RFX_TYPE_COUNT ? 0 : rfx_type_bytes(known);
}

/* 16-bit floats that the file holds as varints become raw bytes. */
static enum rfx_status narrow_halves(struct rfx_onnx_reader *r, struct rfx_onnx_tensor *t) {
    uint8_t *raw = rfx_arena_alloc(r->arena, (size_t)t->elems + 1, 2);
    if (raw == NULL) return rfx_onnx_no_memory(r);
    for (int64_t i = 0; i < t->elems; i++) {
        raw[2 * i] = (uint8_t)(t->ints[i] & 0xff);
        raw[2 * i + 1] = (uint8_t)((t->ints[i] >> 8) & 0xff);
    }
    t->raw = (struct rfx_onnx_bytes){.data = raw, .size = (size_t)t->elems * 2};
    t->ints = NULL;
    return RFX_OK;
}

/* Byte i of a tensor of 4-bit integers, from the file, from memory, or a varint. */
static enum rfx_status read_nibbles(struct rfx_onnx_reader *r, const struct rfx_onnx_tensor *t,
                                    size_t bytes, uint8_t *out) {
    if (t->raw.size == 0)
        for (size_t i = 0; i < bytes; i++) out[i] = (uint8_t)(t->ints[i] & 0xff);
    else if (t->raw.data != NULL)
        memcpy(out, t->raw.data, bytes);
    else
        return rfx_weight_file_read(t->raw.file, t->raw.offset, out, bytes, r->err);
    return RFX_OK;
}

/* Two 4-bit integers lie in a byte, the first one in its lower half: they become bytes. */
static enum rfx_status widen_nibbles(struct rfx_onnx_reader *r, struct rfx_onnx_tensor *t,
                                     size_t n_ints) {
    size_t n = (size_t)t->elems, bytes = (n + 1) / 2;
    bool is_signed = t->type == RFX_ONNX_INT4;
    if (t->external)
        return rfx_fail(r->err, RFX_STATUS_UNSUPPORTED,
                        "onnx: tensor '%s' has elements of 4 bits in an external file", t->name);
    if ((t->raw.size != 0 ? t->raw.size : n_ints) != bytes)
        return rfx_fail(r->err, RFX_STATUS_MALFORMED,
                        "onnx: tensor '%s' has %lld elements of 4 bits but %zu bytes of data",
                        t->name, (long long)t->elems, t->raw.size != 0 ? t->raw.size : n_ints);
    uint8_t *wide = rfx_arena_alloc(r->arena, 2 * bytes + 1, 1);
    if (wide == NULL) return rfx_onnx_no_memory(r);
    enum rfx_status status = read_nibbles(r, t, bytes, wide + bytes);
    if (status != RFX_OK) return status;
    for (size_t i = 0; i < n; i++) { /* what is written has been read */
        unsigned nibble = (unsigned)wide[bytes + i / 2] >> (i % 2 == 0 ? 0 : 4) & 15u;
        wide[i] = (uint8_t)(is_signed && nibble > 7 ? nibble + 240u : nibble);
    }
    t->type = is_signed ? RFX_ONNX_INT8 : RFX_ONNX_UINT8;
    t->raw = (struct rfx_onnx_bytes){.data = wide, .size = n};
    t->ints = NULL;
    return RFX_OK;
}

/* Checks the count of values against the shape, whichever field holds them. */
static enum rfx_status check_values(struct rfx_onnx_reader *r, struct rfx_onnx_tensor *t,
                                    size_t n_ints) {
    if (t->type == RFX_ONNX_INT4 || t->type == RFX_ONNX_UINT4) return widen_nibbles(r, t, n_ints);
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

static enum rfx_status set_dims(struct rfx_onnx_reader *r, const struct rfx_onnx_int_list *dims,
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

static enum rfx_status read_external(struct rfx_onnx_reader *r,
                                     const struct rfx_onnx_span_list *entries,
                                     struct rfx_onnx_tensor *t) {
    t->external = true;
    t->location = "";
    t->length = -1;
    for (size_t i = 0; i < entries->count; i++) {
        struct rfx_onnx_span_list keys = {.r = r}, values = {.r = r};
        onnx_StringStringEntryProto entry = onnx_StringStringEntryProto_init_zero;
        rfx_onnx_bind(&entry.key, rfx_onnx_take_span, &keys);
        rfx_onnx_bind(&entry.value, rfx_onnx_take_span, &values);
        const char *key, *value;
        enum rfx_status status =
            rfx_onnx_decode(r, entries->items[i], onnx_StringStringEntryProto_fields, &entry,
                            "external data entry");
        if (status == RFX_OK) status = rfx_onnx_last_string(r, &keys, &key);
        if (status == RFX_OK) status = rfx_onnx_last_string(r, &values, &value);
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

enum rfx_status rfx_onnx_read_tensor(struct rfx_onnx_reader *r, struct rfx_onnx_span span,
                                     struct rfx_onnx_tensor *t) {
    struct rfx_onnx_span_list names = {.r = r}, raw = {.r = r}, entries = {.r = r},
                              strings = {.r = r};
    struct rfx_onnx_int_list dims = {.r = r}, ints = {.r = r};
    struct rfx_onnx_byte_list fixed = {.r = r};
    onnx_TensorProto m = onnx_TensorProto_init_zero;
    rfx_onnx_bind(&m.name, rfx_onnx_take_span, &names);
    rfx_onnx_bind(&m.raw_data, rfx_onnx_take_span, &raw);
    rfx_onnx_bind(&m.string_data, rfx_onnx_take_span, &strings);
    rfx_onnx_bind(&m.external_data, rfx_onnx_take_span, &entries);
    rfx_onnx_bind(&m.dims, rfx_onnx_take_ints, &dims);
    rfx_onnx_bind(&m.int32_data, rfx_onnx_take_ints, &ints);
    rfx_onnx_bind(&m.int64_data, rfx_onnx_take_ints, &ints);
    rfx_onnx_bind(&m.uint64_data, rfx_onnx_take_ints, &ints);
    rfx_onnx_bind(&m.float_data, rfx_onnx_take_bytes, &fixed);
    rfx_onnx_bind(&m.double_data, rfx_onnx_take_bytes, &fixed);
    enum rfx_status status = rfx_onnx_decode(r, span, onnx_TensorProto_fields, &m, "tensor");
    if (status == RFX_OK) status = rfx_onnx_last_string(r, &names, &t->name);
    if (status == RFX_OK) status = set_dims(r, &dims, t);
    if (status != RFX_OK) return status;
    t->type = m.data_type;
    t->raw = fixed.bytes;
    if (raw.count != 0) {
        const struct rfx_onnx_span *last = &raw.items[raw.count - 1];
        t->raw = (struct rfx_onnx_bytes){NULL, r->file, last->at, last->size};
    }
    t->ints = ints.items;
    if (m.has_data_location && m.data_location == onnx_TensorProto_DataLocation_EXTERNAL)
        status = read_external(r, &entries, t);
    return status == RFX_OK ? check_values(r, t, ints.count) : status;
}
