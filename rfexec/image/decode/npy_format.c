/* Parses the Python literal of an npy header, such as {'descr': '<f4', 'fortran_order': False,
 * 'shape': (1, 3, 4, 5), }. Anything else is refused; the text has the position. */
#include "rfexec/image/decode/npy_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"

struct cursor {
    const unsigned char *bytes;
    size_t at, end;
};

static int peek(const struct cursor *c) {
    return c->at < c->end ? c->bytes[c->at] : -1;
}

static void skip_space(struct cursor *c) {
    while (peek(c) == ' ' || peek(c) == '\t' || peek(c) == '\n' || peek(c) == '\r') c->at++;
}

static bool take(struct cursor *c, char wanted) {
    skip_space(c);
    if (peek(c) != wanted) return false;
    c->at++;
    return true;
}

static bool take_word(struct cursor *c, const char *word) {
    skip_space(c);
    size_t length = strlen(word);
    if (c->end - c->at < length || memcmp(c->bytes + c->at, word, length) != 0) return false;
    c->at += length;
    return true;
}

static enum rfx_status bad(const struct cursor *c, const char *wanted, struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_MALFORMED, "npy header: %s expected at byte %zu of %zu", wanted,
                    c->at, c->end);
}

/* Parses 'text' or "text" without escapes. */
static enum rfx_status parse_string(struct cursor *c, char *out, size_t capacity,
                                    struct rfx_error *err) {
    skip_space(c);
    int quote = peek(c);
    if (quote != '\'' && quote != '"') return bad(c, "a string", err);
    size_t start = ++c->at;
    while (peek(c) >= ' ' && peek(c) <= '~' && peek(c) != quote) c->at++;
    if (peek(c) != quote) return bad(c, "the end of a string", err);
    size_t length = c->at - start;
    if (length >= capacity) return bad(c, "a shorter string", err);
    memcpy(out, c->bytes + start, length);
    out[length] = '\0';
    c->at++;
    return RFX_OK;
}

static enum rfx_status parse_int(struct cursor *c, int64_t *out, struct rfx_error *err) {
    skip_space(c);
    if (peek(c) < '0' || peek(c) > '9') return bad(c, "a number", err);
    int64_t value = 0;
    while (peek(c) >= '0' && peek(c) <= '9') {
        if (!rfx_checked_mul_i64(value, 10, &value) ||
            !rfx_checked_add_i64(value, peek(c) - '0', &value))
            return bad(c, "a smaller number", err);
        c->at++;
    }
    if (peek(c) == 'L') c->at++; /* Python 2 */
    *out = value;
    return RFX_OK;
}

static enum rfx_status parse_shape(struct cursor *c, struct rfx_shape *out, struct rfx_error *err) {
    if (!take(c, '(')) return bad(c, "'('", err);
    int rank = 0;
    while (!take(c, ')')) {
        if (rank == RFX_MAX_RANK)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "npy header: more than %d dimensions",
                            RFX_MAX_RANK);
        enum rfx_status status = parse_int(c, &out->dims[rank], err);
        if (status != RFX_OK) return status;
        rank++;
        if (take(c, ',')) continue;
        if (rank == 1 || !take(c, ')')) return bad(c, "',' or ')'", err);
        break;
    }
    out->rank = rank;
    return RFX_OK;
}

enum { HAS_DESCR = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

static enum rfx_status parse_entry(struct cursor *c, struct rfx_npy_header *h, int *seen,
                                   struct rfx_error *err) {
    char key[32];
    enum rfx_status status = parse_string(c, key, sizeof key, err);
    if (status != RFX_OK) return status;
    if (!take(c, ':')) return bad(c, "':'", err);
    int which = 0;
    if (strcmp(key, "descr") == 0) {
        which = HAS_DESCR;
        skip_space(c);
        if (peek(c) == '[')
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "npy header: a structured dtype");
        status = parse_string(c, h->descr, sizeof h->descr, err);
    } else if (strcmp(key, "fortran_order") == 0) {
        which = HAS_ORDER;
        h->fortran_order = take_word(c, "True");
        if (!h->fortran_order && !take_word(c, "False")) return bad(c, "True or False", err);
    } else if (strcmp(key, "shape") == 0) {
        which = HAS_SHAPE;
        status = parse_shape(c, &h->shape, err);
    } else {
        return rfx_fail(err, RFX_STATUS_MALFORMED, "npy header: unknown key '%s'", key);
    }
    if (status != RFX_OK) return status;
    if ((*seen & which) != 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "npy header: '%s' twice", key);
    *seen |= which;
    return RFX_OK;
}

static enum rfx_status parse_dictionary(struct cursor *c, struct rfx_npy_header *h,
                                        struct rfx_error *err) {
    int seen = 0;
    if (!take(c, '{')) return bad(c, "'{'", err);
    while (!take(c, '}')) {
        enum rfx_status status = parse_entry(c, h, &seen, err);
        if (status != RFX_OK) return status;
        if (take(c, ',')) continue;
        if (!take(c, '}')) return bad(c, "',' or '}'", err);
        break;
    }
    skip_space(c);
    if (c->at != c->end) return bad(c, "nothing more", err);
    if (seen != HAS_ALL)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "npy header: descr, fortran_order or shape is missing");
    return RFX_OK;
}

enum rfx_status rfx_npy_parse(const unsigned char *bytes, size_t count, struct rfx_npy_header *out,
                              struct rfx_error *err) {
    if (count < RFX_NPY_MAGIC_BYTES || memcmp(bytes, RFX_NPY_MAGIC, RFX_NPY_MAGIC_BYTES) != 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "not an npy file");
    if (count < 12)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "npy header cut off after %zu bytes", count);
    int major = bytes[6];
    if (major < 1 || major > 3 || bytes[7] != 0)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "npy version %d.%d (1.0, 2.0 and 3.0 are)",
                        major, bytes[7]);
    size_t start = major == 1 ? 10 : 12;
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (major != 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > RFX_NPY_MAX_HEADER_BYTES - start)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "npy header of %zu bytes; a float32 array needs far less than %d", length,
                        RFX_NPY_MAX_HEADER_BYTES);
    if (count - start < length)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "npy header of %zu bytes cut off after %zu",
                        length, count - start);
    struct rfx_npy_header header;
    memset(&header, 0, sizeof header);
    header.data_offset = start + length;
    struct cursor c = {bytes, start, start + length};
    enum rfx_status status = parse_dictionary(&c, &header, err);
    if (status == RFX_OK) *out = header;
    return status;
}

enum rfx_status rfx_npy_format(const struct rfx_shape *shape, enum rfx_type type,
                               unsigned char *bytes, size_t capacity, size_t *count,
                               struct rfx_error *err) {
    char text[512];
    size_t length =
        (size_t)snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                         rfx_type_descr(type));
    for (int i = 0; i < shape->rank; i++) {
        int added = snprintf(text + length, sizeof text - length, "%" PRId64 "%s", shape->dims[i],
                             i + 1 < shape->rank ? ", " : (shape->rank == 1 ? "," : ""));
        length += (size_t)added; /* at most 8 * 22 characters */
    }
    length += (size_t)snprintf(text + length, sizeof text - length, "), }");
    size_t total = rfx_align_up(10 + length + 1);
    if (total > capacity)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "npy header: %zu bytes, room for %zu",
                        total, capacity);
    memset(bytes, ' ', total);
    memcpy(bytes, RFX_NPY_MAGIC "\x01\x00", 8);
    bytes[8] = (unsigned char)((total - 10) & 0xff);
    bytes[9] = (unsigned char)((total - 10) >> 8);
    memcpy(bytes + 10, text, length);
    bytes[total - 1] = '\n';
    *count = total;
    return RFX_OK;
}
