/* Makes a network of one convolution over a picture of 3 channels of any size, and an ArgMax. */
#ifndef RFX_TESTS_SUPPORT_MAKERS_CONV_MAKER_H
#define RFX_TESTS_SUPPORT_MAKERS_CONV_MAKER_H

#include <stdbool.h>
#include <stdint.h>

struct conv_maker {
    int64_t kernel, stride, pad; /* of rows and of columns; kernel: 1 to 9 */
    int64_t channels;            /* of the convolution's output, 1 to 4 */
    uint64_t seed;               /* of the weights, which are from -largest to largest */
    float largest;
    bool argmax;   /* the output is the number of the largest channel */
    bool integers; /* that output is declared as INT64, with a channel axis of 1 */
};

/* Writes the model. Its output is "y". */
void conv_maker_save(const char *path, const struct conv_maker *net);
#endif
