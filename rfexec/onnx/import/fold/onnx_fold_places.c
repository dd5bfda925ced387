/* Evaluation on constants of operators that work by the places of elements: Trilu, CumSum, NonZero,
 * ScatterND. */
#include <string.h>

#include "rfexec/onnx/import/fold/onnx_fold.h"

enum rfx_status rfx_onnx_fold_trilu(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in;
    const double *reals = NULL;
    const int64_t *ints = NULL;
    int64_t k;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &in);
    if (status == RFX_OK) status = rfx_onnx_diagonal(ctx, &k);
    if (status == RFX_OK) status = rfx_onnx_numbers(ctx, in, &reals, &ints);
    if (status != RFX_OK) return status;
    int rank = in->shape.rank;
    if (rank < 2)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "rank %d: at least 2 is needed", rank);
    bool upper = rfx_onnx_attr_flag(ctx, "upper", true);
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, in->type, &in->shape);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    int64_t rows = in->shape.dims[rank - 2], cols = in->shape.dims[rank - 1];
    for (int64_t i = 0; i < out->elems; i++) {
        int64_t right = i % cols - i / cols % rows;
        if (upper ? right >= k : right <= k)
            rfx_onnx_copy_elem(out, i, reals, ints, i);
        else if (out->reals != NULL)
            rfx_onnx_const_reals_rw(out)[i] = 0.0;
        else
            rfx_onnx_const_ints_rw(out)[i] = 0;
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

enum rfx_status rfx_onnx_fold_cum_sum(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in;
    const double *reals = NULL;
    const int64_t *ints = NULL;
    int axis;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &in);
    if (status == RFX_OK) status = rfx_onnx_sum_axis(ctx, in->shape.rank, &axis);
    if (status == RFX_OK) status = rfx_onnx_numbers(ctx, in, &reals, &ints);
    if (status != RFX_OK) return status;
    bool exclusive = rfx_onnx_attr_flag(ctx, "exclusive", false);
    bool reverse = rfx_onnx_attr_flag(ctx, "reverse", false);
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, in->type, &in->shape);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    int64_t n = in->shape.dims[axis],
            inner = rfx_onnx_product(&in->shape, axis + 1, in->shape.rank);
    for (int64_t line = 0; n > 0 && line < out->elems / n; line++) {
        int64_t first = line / inner * n * inner + line % inner;
        double sum = 0.0;
        uint64_t count = 0; /* wraps */
        for (int64_t i = 0; i < n; i++) {
            int64_t at = first + (reverse ? n - 1 - i : i) * inner;
            double sum_before = sum;
            uint64_t count_before = count;
            sum += reals != NULL ? reals[at] : 0.0;
            count += ints != NULL ? (uint64_t)ints[at] : 0;
            if (out->reals != NULL)
                rfx_onnx_const_reals_rw(out)[at] =
                    rfx_onnx_round_to(out->type, exclusive ? sum_before : sum);
            else
                rfx_onnx_const_ints_rw(out)[at] = (int64_t)(exclusive ? count_before : count);
        }
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

/* The places of what is not 0, a column for each: exporters write ranges so. */
enum rfx_status rfx_onnx_fold_non_zero(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in;
    const double *reals;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &in);
    if (status == RFX_OK) status = rfx_onnx_const_reals(ctx, in, &reals);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = {2, {in->shape.rank, 0}};
    for (int64_t i = 0; i < in->elems; i++) shape.dims[1] += reals[i] != 0.0;
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, RFX_ONNX_INT64, &shape);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    int64_t *places = rfx_onnx_const_ints_rw(out), column = 0;
    for (int64_t i = 0; i < in->elems; i++) {
        if (reals[i] == 0.0) continue;
        int64_t rest = i;
        for (int d = in->shape.rank - 1; d >= 0; d--) {
            places[d * shape.dims[1] + column] = rest % in->shape.dims[d];
            rest /= in->shape.dims[d];
        }
        column++;
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

/* Where the tuple that begins at `index` lies in a tensor, in elements; -1: outside. */
static int64_t place_of(const struct rfx_shape *shape, const int64_t *index, int64_t width) {
    int64_t at = 0;
    for (int d = 0; d < shape->rank; d++) {
        int64_t n = shape->dims[d], i = d < width ? index[d] : 0;
        if (i < -n || i >= n) return -1;
        at = at * n + (i < 0 ? i + n : i);
    }
    return at;
}

/* Whether updates have the shape that the indices ask for: theirs but for its last axis, and that
 * of the data behind the first `width` axes. */
static bool updates_fit(const struct rfx_shape *data, const struct rfx_shape *indices,
                        const struct rfx_shape *updates) {
    int q = indices->rank - 1;
    int64_t width = q < 0 ? 0 : indices->dims[q];
    if (width < 1 || width > data->rank || updates->rank != q + data->rank - (int)width)
        return false;
    for (int d = 0; d < updates->rank; d++) {
        int64_t n = d < q ? indices->dims[d] : data->dims[d - q + (int)width];
        if (updates->dims[d] != n) return false;
    }
    return true;
}

/* Masks of shifted windows are made so. Sums and the like, and what is large, a run may make. */
enum rfx_status rfx_onnx_fold_scatter_nd(struct rfx_onnx_import *ctx) {
    enum { MOST = 1 << 20 };
    struct rfx_onnx_const *in[3];
    const double *reals[3] = {NULL, NULL, NULL};
    const int64_t *ints[3] = {NULL, NULL, NULL};
    enum rfx_status status = RFX_OK;
    for (size_t k = 0; status == RFX_OK && k < 3; k++) status = rfx_onnx_in_const(ctx, k, &in[k]);
    if (status != RFX_OK) return status;
    if (in[0]->elems > MOST || strcmp(rfx_onnx_attr_string(ctx, "reduction", "none"), "none") != 0)
        return rfx_onnx_scatter_nd(ctx);
    for (size_t k = 0; status == RFX_OK && k < 3; k++)
        status = rfx_onnx_numbers(ctx, in[k], &reals[k], &ints[k]);
    if (status != RFX_OK) return status;
    const struct rfx_shape *shape = &in[0]->shape, *indices = &in[1]->shape;
    if (ints[1] == NULL || (reals[0] == NULL) != (reals[2] == NULL) ||
        !updates_fit(shape, indices, &in[2]->shape))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "operands that do not fit");
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, in[0]->type, shape);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    int64_t width = indices->dims[indices->rank - 1];
    int64_t run = rfx_onnx_product(shape, (int)width, shape->rank);
    for (int64_t i = 0; i < out->elems; i++) rfx_onnx_copy_elem(out, i, reals[0], ints[0], i);
    for (int64_t i = 0; i * run < in[2]->elems; i++) {
        int64_t at = place_of(shape, ints[1] + i * width, width);
        if (at < 0)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "update %lld lies outside",
                                   (long long)i);
        for (int64_t e = 0; e < run; e++)
            rfx_onnx_copy_elem(out, at + e, reals[2], ints[2], i * run + e);
    }
    return rfx_onnx_set_const(ctx, 0, out);
}
