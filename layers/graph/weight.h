/* Constant tensors of a model, and the sources of their values.
 *
 * A weight is not copied before it is packed. Its values are in an open file, or belong to the
 * graph, or are computed when they are read: from a seed and a distribution, by repeating a few
 * stored values, or by the maker of a file. All weights are read through rfx_weight_read, in any
 * order, any number of times, with the same values. Files are read and not memory-mapped for two
 * reasons: the system may keep megabytes around every mapped page that is touched, which would
 * count as this process's memory; and a mapped file that shrinks ends the process. */
#ifndef RFX_LAYERS_GRAPH_WEIGHT_H
#define RFX_LAYERS_GRAPH_WEIGHT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "layers/core/status.h"
#include "layers/core/type.h"
#include "layers/graph/digit.h"
#include "layers/graph/tensor.h"

enum rfx_weight_source {
    RFX_WEIGHT_OWNED,     /* float32; the graph owns `data` */
    RFX_WEIGHT_FILE,      /* values of `type` at `offset` of `file`, which outlives the graph */
    RFX_WEIGHT_FILLED,    /* every element is `lo` */
    RFX_WEIGHT_GENERATED, /* element i is uniform in [lo, hi), a function of (seed, i) alone */
    RFX_WEIGHT_REPEATED,  /* element i is one of a few values in `data`; the graph owns `data` and
                             `places` */
};

/* Computes bytes [offset, offset + bytes) of a file that exists nowhere as a whole. May be called
 * from several threads at once. */
typedef enum rfx_status rfx_file_maker(const void *maker, uint64_t offset, void *out, size_t bytes,
                                       struct rfx_error *err);

/* A file that is open for reading; or a file in memory: its `size` bytes at `bytes` (not NULL); or
 * a file of `size` bytes that make(maker, ...) computes (make not NULL). `path` is for messages. If
 * `watched`, `size` and `modified` are those of the file when it was opened, and reads fail if the
 * file has been written since. */
struct rfx_weight_file {
    int fd;
    const char *path;
    const unsigned char *bytes;
    rfx_file_maker *make;
    const void *maker;
    size_t size;
    bool watched;
    struct timespec modified;
};

/* The places of the elements of a REPEATED weight, or of a box of it, in its stored values. Element
 * i is stored at `first` plus the distance that the n digits of i add (digit.h). `lo` and `dims`
 * are the box in the weight's axes; if there is only one box, it is the whole weight, and `lo` and
 * `dims` are not read. */
struct rfx_weight_places {
    int64_t lo[RFX_MAX_RANK], dims[RFX_MAX_RANK];
    int64_t first;
    int n;
    struct rfx_digit digits[RFX_DIGITS];
};

struct rfx_weight {
    enum rfx_weight_source source;
    enum rfx_type type;                     /* FILE: little endian */
    const float *data;                      /* OWNED, REPEATED */
    const struct rfx_weight_places *places; /* REPEATED: boxes that fill the shape */
    int n_places;                           /* REPEATED: >= 1 */
    int64_t stored;                         /* REPEATED: values in `data` */
    const struct rfx_weight_file *file;     /* FILE */
    uint64_t offset;                        /* FILE: file offset of element 0, in bytes */
    uint64_t seed;                          /* GENERATED */
    float lo, hi;                           /* GENERATED: the range; FILLED: `lo` is the value */
    int64_t mirror; /* GENERATED: n > 0: of each 2 n elements, the last n are the first n mirrored,
                       lo + hi - x, so that they cancel each other */
    int64_t transposed; /* n > 0: the values are stored as n rows of elems / n columns and are read
                           column by column: element i is stored in row i % n of column i / n */
    struct rfx_shape shape;
    int64_t elems;
};

/* Reads bytes [offset, offset + bytes) of a file into out. Returns IO if the system fails to read,
 * the file ends too early, or it was written after it was opened; INTERNAL if a file in memory or
 * of a maker has no such bytes. */
RFX_NODISCARD enum rfx_status rfx_weight_file_read(const struct rfx_weight_file *file,
                                                   uint64_t offset, void *out, size_t bytes,
                                                   struct rfx_error *err);

/* Reads elements [first, first + count) as float32 into out. The range must be in the weight
 * (asserted). O(count), and at least one system call for a FILE. Statuses as rfx_weight_file_read;
 * other sources never fail. */
RFX_NODISCARD enum rfx_status rfx_weight_read(const struct rfx_weight *weight, int64_t first,
                                              int64_t count, float *out, struct rfx_error *err);

/* Whether the `count` elements from `a` on are stored at the same places as those from `b` on, so
 * that they are equal. If false, they may still be equal. */
bool rfx_weight_repeats(const struct rfx_weight *weight, int64_t a, int64_t b, int64_t count);
#endif
