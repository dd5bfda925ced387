/* Compact storage of large tensors with repeating elements: maps an element's index to its place in
 * a short list of stored elements, by digits of a mixed-radix number.
 *
 * An index of a tensor, or of one of its axes, is written as several digits, the outermost first.
 * Each digit adds to the place in the list. A digit without cuts adds `stride` for each of its
 * positions. A digit with cuts adds `stride` at each cut and nowhere else. A digit of stride 0 adds
 * nothing: the elements repeat along it. Example: a mask in which only the last row of windows
 * differs needs one digit with one cut, however many rows there are.
 *
 * Invariants: size >= 1; cuts ascend in [1, size); a digit of stride 0 has no cuts. */
#ifndef RFX_LAYERS_GRAPH_DIGIT_H
#define RFX_LAYERS_GRAPH_DIGIT_H

#include <stdbool.h>
#include <stdint.h>

#define RFX_DIGITS 16
#define RFX_DIGIT_CUTS 4

struct rfx_digit {
    int64_t size, stride;
    int64_t n_cuts; /* 0: each position adds `stride` */
    int64_t cuts[RFX_DIGIT_CUTS];
};

/* Returns the distance from position 0 of a digit to position `at`, in stored elements. */
static inline int64_t rfx_digit_moves(const struct rfx_digit *digit, int64_t at) {
    int64_t steps = 0;
    if (digit->n_cuts == 0) return at * digit->stride;
    while (steps < digit->n_cuts && digit->cuts[steps] <= at) steps++;
    return steps * digit->stride;
}

/* Returns the distance from index 0 to index `at` of a number of n digits, in stored elements: the
 * sum of the digits' distances. */
int64_t rfx_digits_move(const struct rfx_digit *digits, int n, int64_t at);

/* A class is a range of positions of a digit that have the same place in the list.
 * rfx_digit_classes returns the number of classes; rfx_digit_class_begins returns the first
 * position of class k. */
int64_t rfx_digit_classes(const struct rfx_digit *digit);
int64_t rfx_digit_class_begins(const struct rfx_digit *digit, int64_t k);

/* Sets *out to a digit whose positions are the `size` positions start, start + step, ... of
 * `digit`; its position 0 is at distance 0. Returns false if one step passes several cuts. */
bool rfx_digit_slice(const struct rfx_digit *digit, int64_t start, int64_t step, int64_t size,
                     struct rfx_digit *out);

/* Returns a digit of stride 1 that is cut wherever `a` or `b` is cut. Both have the same size. The
 * result has no cuts if one of them moves (stride not 0) without cuts, or if it would have more
 * than RFX_DIGIT_CUTS cuts. If both have stride 0, so has the result. */
struct rfx_digit rfx_digit_join(const struct rfx_digit *a, const struct rfx_digit *b);

/* Splits a digit into two of outer->size x inner->size positions. Every class of `digit` is a union
 * of classes of the two. Only their sizes, cuts and strides are set; a stride is 1 if the digit
 * moves, else 0. Returns false if there would be too many cuts. */
bool rfx_digit_split(const struct rfx_digit *digit, int64_t inner_size, struct rfx_digit *outer,
                     struct rfx_digit *inner);

/* Adds a cut at position `at`; a position outside [1, size) is ignored. Returns false if the digit
 * already has RFX_DIGIT_CUTS cuts. */
bool rfx_digit_add_cut(struct rfx_digit *digit, int64_t at);

#endif
