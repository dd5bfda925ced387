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

/* Bytes read at once from a file whose type has to be converted. */
#define PIECE_BYTES ((size_t)8192)

static uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
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

/* Fails if the file was written since it was opened. Called after reading, so that it detects
 * changes before and during the read. */
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
    if (file->bytes != NULL || file->make != NULL) {
        if (offset > file->size || bytes > file->size - (size_t)offset)
            return rfx_fail(err, RFX_STATUS_INTERNAL, "%s: %zu bytes at %llu of %zu", file->path,
                            bytes, (unsigned long long)offset, file->size);
        if (file->make != NULL) return file->make(file->maker, offset, out, bytes, err);
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
    size_t size = rfx_type_bytes(weight->type);
    uint64_t offset = weight->offset + (uint64_t)first * size;
    if (weight->type == RFX_TYPE_FLOAT32)
        return rfx_weight_file_read(weight->file, offset, out, (size_t)count * size, err);
    while (count > 0) {
        int64_t n = rfx_min_i64(count, (int64_t)(PIECE_BYTES / size));
        enum rfx_status status =
            rfx_weight_file_read(weight->file, offset, piece, (size_t)n * size, err);
        if (status != RFX_OK) return status;
        rfx_type_load(weight->type, piece, n, out);
        offset += (uint64_t)n * size;
        out += n;
        count -= n;
    }
    return RFX_OK;
}

/* Reads elements of a box. The index is kept as digits; after each element it is incremented digit
 * by digit, with carry. */
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

/* Whether index `at` is in a box. If so, *number is the index's element number in the box, and *run
 * is the number of elements in a row from there on. */
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

/* Reads elements run by run; each run is a contiguous part of one box. */
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

/* Reads elements in the order in which they are stored. */
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

/* Reads rows [row, row_end) of n columns from `column` on into out, column after column. Of each
 * stored row, the n columns are read at once. */
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

/* Reads elements of a transposed weight: the rest of the first column, whole columns, the beginning
 * of the last. */
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
