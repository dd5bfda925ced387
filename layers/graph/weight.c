/* Reading constants: conversion from the file's types, and the generator of seeded weights.
 * The generator is counter-based (splitmix64 of seed and index), so any element can be read at any
 * time without state. */
#include "layers/graph/weight.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/core/checked.h"

#define PIECE_BYTES ((size_t)8192) /* of a file's other types while they are converted */

static const size_t dtype_bytes[] = {4, 8, 2, 2, 1, 1, 4, 8};
_Static_assert(sizeof dtype_bytes / sizeof dtype_bytes[0] == RFX_DTYPE_COUNT, "one size per type");

size_t rfx_dtype_bytes(enum rfx_dtype dtype) {
    return dtype_bytes[dtype];
}

static uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static float f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1fu;
    uint32_t mantissa = half & 0x3ffu;
    uint32_t bits;
    if (exponent == 0x1f) {
        bits = sign | 0x7f800000u | (mantissa << 13);
    } else if (exponent != 0) {
        bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
    } else {
        float tiny = (float)mantissa * 0x1p-24f;
        memcpy(&bits, &tiny, sizeof bits);
        bits |= sign;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float read_element(enum rfx_dtype dtype, const unsigned char *p) {
    union {
        float f32;
        double f64;
        uint32_t u32;
        int32_t i32;
        int64_t i64;
        uint16_t u16;
    } v;
    switch (dtype) {
        case RFX_DTYPE_F32:
            memcpy(&v.f32, p, sizeof v.f32);
            return v.f32;
        case RFX_DTYPE_F64:
            memcpy(&v.f64, p, sizeof v.f64);
            return (float)v.f64;
        case RFX_DTYPE_F16:
            memcpy(&v.u16, p, sizeof v.u16);
            return f16_to_f32(v.u16);
        case RFX_DTYPE_BF16:
            memcpy(&v.u16, p, sizeof v.u16);
            v.u32 = (uint32_t)v.u16 << 16;
            return v.f32;
        case RFX_DTYPE_I8:
            return (float)(int8_t)*p;
        case RFX_DTYPE_U8:
            return (float)*p;
        case RFX_DTYPE_I32:
            memcpy(&v.i32, p, sizeof v.i32);
            return (float)v.i32;
        case RFX_DTYPE_I64:
            memcpy(&v.i64, p, sizeof v.i64);
            return (float)v.i64;
        case RFX_DTYPE_COUNT:
            break;
    }
    return 0.0f;
}

void rfx_dtype_convert(enum rfx_dtype dtype, const void *data, int64_t count, float *out) {
    const unsigned char *p = data;
    size_t size = dtype_bytes[dtype];
    if (dtype == RFX_DTYPE_F32) {
        memcpy(out, data, (size_t)count * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < count; i++) out[i] = read_element(dtype, p + (size_t)i * size);
}

static void generate(const struct rfx_weight *weight, int64_t first, int64_t count, float *out) {
    float span = weight->hi - weight->lo;
    for (int64_t i = 0; i < count; i++) {
        int64_t element = first + i;
        bool mirrored = weight->mirror > 0 && element / weight->mirror % 2 != 0;
        if (mirrored) element -= weight->mirror;
        uint64_t bits = mix(weight->seed + (uint64_t)element * 0xd1342543de82ef95u);
        float step = span * ((float)(bits >> 40) * 0x1p-24f);
        out[i] = mirrored ? weight->hi - step : weight->lo + step;
    }
}

/* Compared after the bytes were read: a change before or while they were read is seen. */
static enum rfx_status check_unchanged(const struct rfx_weight_file *file, struct rfx_error *err) {
    struct stat now;
    if (!file->watched) return RFX_OK;
    if (fstat(file->fd, &now) != 0)
        return rfx_fail(err, RFX_STATUS_IO, "cannot stat '%s': %s", file->path, strerror(errno));
    if ((size_t)now.st_size == file->size && now.st_mtim.tv_sec == file->modified.tv_sec &&
        now.st_mtim.tv_nsec == file->modified.tv_nsec)
        return RFX_OK;
    return rfx_fail(err, RFX_STATUS_IO,
                    "'%s' was written after the model was opened (%zu bytes then, %lld now): open "
                    "it again",
                    file->path, file->size, (long long)now.st_size);
}

enum rfx_status rfx_weight_file_read(const struct rfx_weight_file *file, uint64_t offset, void *out,
                                     size_t bytes, struct rfx_error *err) {
    unsigned char *to = out;
    if (file->bytes != NULL) {
        if (offset > file->size || bytes > file->size - (size_t)offset)
            return rfx_fail(err, RFX_STATUS_INTERNAL, "%s: %zu bytes at %llu of %zu", file->path,
                            bytes, (unsigned long long)offset, file->size);
        memcpy(to, file->bytes + offset, bytes);
        return RFX_OK;
    }
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(file->fd, to + done, bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return rfx_fail(err, RFX_STATUS_IO, "cannot read '%s': %s", file->path,
                            strerror(errno));
        if (n == 0)
            return rfx_fail(err, RFX_STATUS_IO,
                            "'%s' has become shorter while it is read: %zu bytes at %llu are gone",
                            file->path, bytes - done, (unsigned long long)(offset + done));
        done += (size_t)n;
    }
    return check_unchanged(file, err);
}

static enum rfx_status read_file(const struct rfx_weight *weight, int64_t first, int64_t count,
                                 float *out, struct rfx_error *err) {
    unsigned char piece[PIECE_BYTES];
    size_t size = dtype_bytes[weight->dtype];
    uint64_t offset = weight->offset + (uint64_t)first * size;
    if (weight->dtype == RFX_DTYPE_F32)
        return rfx_weight_file_read(weight->file, offset, out, (size_t)count * size, err);
    while (count > 0) {
        int64_t n = rfx_min_i64(count, (int64_t)(PIECE_BYTES / size));
        enum rfx_status status =
            rfx_weight_file_read(weight->file, offset, piece, (size_t)n * size, err);
        if (status != RFX_OK) return status;
        rfx_dtype_convert(weight->dtype, piece, n, out);
        offset += (uint64_t)n * size;
        out += n;
        count -= n;
    }
    return RFX_OK;
}

/* Elements of a box: digit after digit counts on from the first one. */
static void read_box(const struct rfx_weight_places *p, const float *data, int64_t first,
                     int64_t count, float *out) {
    int64_t index[RFX_DIGITS], place = p->first, rest = first;
    for (int k = p->n - 1; k >= 0; k--) {
        index[k] = rest % p->digits[k].size;
        rest /= p->digits[k].size;
        place += rfx_digit_moves(&p->digits[k], index[k]);
    }
    for (int64_t i = 0; i < count; i++) {
        bool carry = true;
        out[i] = data[place];
        for (int k = p->n - 1; k >= 0 && carry; k--) {
            const struct rfx_digit *digit = &p->digits[k];
            place -= rfx_digit_moves(digit, index[k]++);
            carry = index[k] == digit->size;
            if (carry) index[k] = 0;
            place += rfx_digit_moves(digit, index[k]);
        }
    }
}

/* Whether an index lies in a box; *number: which of its elements it is, *run: how many of these
 * follow each other from there on. */
static bool is_in_box(const struct rfx_weight_places *p, int rank, const int64_t *at,
                      int64_t *number, int64_t *run) {
    *number = 0;
    *run = 1;
    for (int i = 0; i < rank; i++) {
        int64_t within = at[i] - p->lo[i];
        if (within < 0 || within >= p->dims[i]) return false;
        *number = *number * p->dims[i] + within;
        *run = p->dims[i] - within;
    }
    return true;
}

/* Box after box, of each what lies in a row. */
static void read_repeated(const struct rfx_weight *weight, int64_t first, int64_t count,
                          float *out) {
    int64_t at[RFX_MAX_RANK], number = first, run = count;
    for (int64_t done = 0; done < count; done += run) {
        int64_t rest = first + done;
        int box = 0, rank = weight->shape.rank;
        if (weight->n_places > 1) {
            for (int i = rank - 1; i >= 0; i--) {
                at[i] = rest % weight->shape.dims[i];
                rest /= weight->shape.dims[i];
            }
            while (!is_in_box(&weight->places[box], rank, at, &number, &run)) box++;
            assert(box < weight->n_places);
            run = rfx_min_i64(run, count - done);
        }
        read_box(&weight->places[box], weight->data, number, run, out + done);
    }
}

bool rfx_weight_repeats(const struct rfx_weight *weight, int64_t a, int64_t b, int64_t count) {
    const struct rfx_weight_places *p = weight->places;
    int64_t inner = 1;
    int n;
    if (weight->source == RFX_WEIGHT_FILLED || a == b) return true;
    if (weight->source != RFX_WEIGHT_REPEATED || weight->n_places > 1 || weight->transposed > 0)
        return false;
    for (n = p->n; n > 0 && inner < count; n--) inner *= p->digits[n - 1].size;
    if (a % inner != b % inner || a % inner + count > inner) return false;
    return rfx_digits_move(p->digits, n, a / inner) == rfx_digits_move(p->digits, n, b / inner);
}

/* As it is stored. */
static enum rfx_status read_stored(const struct rfx_weight *weight, int64_t first, int64_t count,
                                   float *out, struct rfx_error *err) {
    switch (weight->source) {
        case RFX_WEIGHT_OWNED:
            memcpy(out, weight->data + first, (size_t)count * sizeof *out);
            break;
        case RFX_WEIGHT_FILE:
            return read_file(weight, first, count, out, err);
        case RFX_WEIGHT_FILLED:
            for (int64_t i = 0; i < count; i++) out[i] = weight->lo;
            break;
        case RFX_WEIGHT_GENERATED:
            generate(weight, first, count, out);
            break;
        case RFX_WEIGHT_REPEATED:
            read_repeated(weight, first, count, out);
            break;
    }
    return RFX_OK;
}

enum { COLUMNS_TOGETHER = 256 };

/* Rows [row, row_end) of n columns from `column` on, column after column: of each row all columns
 * together, as they are stored. */
static enum rfx_status read_columns(const struct rfx_weight *weight, int64_t column, int64_t n,
                                    int64_t row, int64_t row_end, float *out,
                                    struct rfx_error *err) {
    int64_t columns = weight->elems / weight->transposed, rows = row_end - row;
    float piece[COLUMNS_TOGETHER];
    enum rfx_status status = RFX_OK;
    for (int64_t r = 0; status == RFX_OK && r < rows; r++) {
        status = read_stored(weight, (row + r) * columns + column, n, piece, err);
        for (int64_t c = 0; status == RFX_OK && c < n; c++) out[c * rows + r] = piece[c];
    }
    return status;
}

/* The rest of a column that is begun, whole ones, the beginning of the last. */
static enum rfx_status read_transposed(const struct rfx_weight *weight, int64_t first,
                                       int64_t count, float *out, struct rfx_error *err) {
    int64_t rows = weight->transposed, n;
    enum rfx_status status = RFX_OK;
    for (; status == RFX_OK && count > 0; first += n, out += n, count -= n) {
        int64_t row = first % rows;
        int64_t end = rfx_min_i64(rows, row + count), whole = count / rows;
        bool all = row == 0 && end == rows;
        int64_t columns = all ? rfx_min_i64(whole, COLUMNS_TOGETHER) : 1;
        n = columns * (end - row);
        status = read_columns(weight, first / rows, columns, row, end, out, err);
    }
    return status;
}

enum rfx_status rfx_weight_read(const struct rfx_weight *weight, int64_t first, int64_t count,
                                float *out, struct rfx_error *err) {
    assert(first >= 0 && count >= 0 && count <= weight->elems - first);
    return weight->transposed > 0 ? read_transposed(weight, first, count, out, err)
                                  : read_stored(weight, first, count, out, err);
}
