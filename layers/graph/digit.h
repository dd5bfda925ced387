/* Digits of numbers of mixed radix: where an element of a large tensor lies among a few stored
 * ones.
 *
 * An index of a tensor, or of one of its axes, is a number of several digits, the outermost first.
 * Each digit moves the place in the list of stored elements on: by `stride` for each position; or,
 * where it has cuts, by `stride` at each cut and nowhere else. A digit of stride 0 moves nothing:
 * the elements repeat along it. So a mask whose last row of windows is other than the rest has one
 * digit with one cut, however many rows there are.
 *
 * Invariants: size >= 1; cuts ascend in [1, size); stride 0 goes with no cuts. */
#ifndef RFX_LAYERS_GRAPH_DIGIT_H
#define RFX_LAYERS_GRAPH_DIGIT_H

#include <stdbool.h>
#include <stdint.h>

#define RFX_DIGITS 16
#define RFX_DIGIT_CUTS 4

struct rfx_digit {
    int64_t size, stride;
    int64_t n_cuts; /* 0: each position moves the place on */
    int64_t cuts[RFX_DIGIT_CUTS];
};

/* How far position `at` of a digit lies from its position 0, in stored elements. */
static inline int64_t rfx_digit_moves(const struct rfx_digit *digit, int64_t at) {
    int64_t steps = 0;
    if (digit->n_cuts == 0) return at * digit->stride;
    while (steps < digit->n_cuts && digit->cuts[steps] <= at) steps++;
    return steps * digit->stride;
}

/* The same of a number, given by its value: the sum over its digits. */
int64_t rfx_digits_move(const struct rfx_digit *digits, int n, int64_t at);

/* How many classes of positions there are, those of a class all at one place; and the first
 * position of class k. */
int64_t rfx_digit_classes(const struct rfx_digit *digit);
int64_t rfx_digit_class_begins(const struct rfx_digit *digit, int64_t k);

/* The `size` positions start, start + step, ... of a digit: position 0 of *out is position `start`,
 * from which it counts. False: a step passes several cuts. */
bool rfx_digit_slice(const struct rfx_digit *digit, int64_t start, int64_t step, int64_t size,
                     struct rfx_digit *out);

/* A digit of that size and stride 1 that is cut wherever one of the two is; where a digit without
 * cuts moves, or where there are more than RFX_DIGIT_CUTS, one without cuts. Of two of stride 0 one
 * of stride 0. Both have the size. */
struct rfx_digit rfx_digit_join(const struct rfx_digit *a, const struct rfx_digit *b);

/* One digit as two of outer->size x inner->size positions, where every class of the one is made of
 * classes of the two: only their sizes, cuts and whether they move (stride 1 or 0) are set. False:
 * there would be too many cuts. */
bool rfx_digit_split(const struct rfx_digit *digit, int64_t inner_size, struct rfx_digit *outer,
                     struct rfx_digit *inner);

/* Adds a cut; false: there are RFX_DIGIT_CUTS. A position outside [1, size) is none. */
bool rfx_digit_add_cut(struct rfx_digit *digit, int64_t at);

#endif
