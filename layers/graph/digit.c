/* Digits of numbers of mixed radix; see the header. */
#include "layers/graph/digit.h"

#include "layers/core/checked.h"

int64_t rfx_digits_move(const struct rfx_digit *digits, int n, int64_t at) {
    int64_t sum = 0;
    for (int i = n - 1; i >= 0; i--) {
        sum += rfx_digit_moves(&digits[i], at % digits[i].size);
        at /= digits[i].size;
    }
    return sum;
}

int64_t rfx_digit_classes(const struct rfx_digit *digit) {
    if (digit->stride == 0) return 1;
    return digit->n_cuts > 0 ? digit->n_cuts + 1 : digit->size;
}

int64_t rfx_digit_class_begins(const struct rfx_digit *digit, int64_t k) {
    if (k == 0) return 0;
    return digit->n_cuts > 0 ? digit->cuts[k - 1] : k;
}

bool rfx_digit_add_cut(struct rfx_digit *digit, int64_t at) {
    int64_t i = digit->n_cuts;
    if (at < 1 || at >= digit->size) return true;
    for (int64_t k = 0; k < digit->n_cuts; k++)
        if (digit->cuts[k] == at) return true;
    if (i == RFX_DIGIT_CUTS) return false;
    for (; i > 0 && digit->cuts[i - 1] > at; i--) digit->cuts[i] = digit->cuts[i - 1];
    digit->cuts[i] = at;
    digit->n_cuts++;
    return true;
}

bool rfx_digit_slice(const struct rfx_digit *digit, int64_t start, int64_t step, int64_t size,
                     struct rfx_digit *out) {
    *out = (struct rfx_digit){.size = size};
    if (digit->n_cuts == 0) {
        out->stride = size > 1 ? digit->stride * step : 0;
        return true;
    }
    for (int64_t i = 0; i < digit->n_cuts; i++) {
        /* `at` below is the first position beyond the cut. */
        int64_t cut = digit->cuts[i], cuts = out->n_cuts;
        int64_t at =
            step > 0 ? rfx_ceil_div(cut - start, step) : rfx_floor_div(start - cut, -step) + 1;
        (void)rfx_digit_add_cut(out, at); /* there are no more cuts than in `digit` */
        if (at >= 1 && at < size && out->n_cuts == cuts) return false;
    }
    if (out->n_cuts > 0) out->stride = step > 0 ? digit->stride : -digit->stride;
    return true;
}

struct rfx_digit rfx_digit_join(const struct rfx_digit *a, const struct rfx_digit *b) {
    struct rfx_digit out = {.size = a->size}, every = {.size = a->size, .stride = 1};
    const struct rfx_digit *both[2] = {a, b};
    for (int k = 0; k < 2; k++) {
        if (both[k]->stride == 0) continue;
        out.stride = 1;
        if (both[k]->n_cuts == 0) return every;
        for (int64_t i = 0; i < both[k]->n_cuts; i++)
            if (!rfx_digit_add_cut(&out, both[k]->cuts[i])) return every;
    }
    return out;
}

bool rfx_digit_split(const struct rfx_digit *digit, int64_t inner_size, struct rfx_digit *outer,
                     struct rfx_digit *inner) {
    *outer = (struct rfx_digit){.size = digit->size / inner_size};
    *inner = (struct rfx_digit){.size = inner_size};
    if (digit->stride != 0 && digit->n_cuts == 0) {
        outer->stride = inner->stride = 1;
        return true;
    }
    for (int64_t i = 0; i < digit->n_cuts; i++) {
        int64_t row = digit->cuts[i] / inner_size, at = digit->cuts[i] % inner_size;
        bool fits = rfx_digit_add_cut(outer, row) && rfx_digit_add_cut(inner, at);
        if (!fits || (at > 0 && !rfx_digit_add_cut(outer, row + 1))) return false;
    }
    outer->stride = outer->n_cuts > 0 ? 1 : 0;
    inner->stride = inner->n_cuts > 0 ? 1 : 0;
    return true;
}
