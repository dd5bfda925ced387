/* Constant tensors of a model and where their values come from.
 *
 * A weight is never copied before it is packed: its values lie in an open file, or belong to the
 * graph, or are a formula (seed and distribution; or which of a few values stands where) evaluated
 * on reading. All are read through
 * rfx_weight_read, in any order, any number of times, with the same values. Files are read, not
 * mapped: of a mapping the system may keep megabytes around every page that is touched, which
 * would count as this process's memory, and a file that shrinks under one ends the process. */
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
    RFX_WEIGHT_OWNED,     /* float32, the graph owns `data` */
    RFX_WEIGHT_FILE,      /* values of `type` at `offset` of `file`, which outlives the graph */
    RFX_WEIGHT_FILLED,    /* every element is `lo` */
    RFX_WEIGHT_GENERATED, /* element i is uniform in [lo, hi), a function of (seed, i) alone */
    RFX_WEIGHT_REPEATED,  /* element i is one of a few in `data`: the graph owns it and `places` */
};

/* A file that is open for reading at any place, or the `size` bytes of one in memory (bytes not
 * NULL); `path` is for messages. `size` and `modified` are those of the file when it was opened,
 * where `watched` is true: a file that is written over while it is open makes reads fail. */
struct rfx_weight_file {
    int fd;
    const char *path;
    const unsigned char *bytes;
    size_t size;
    bool watched;
    struct timespec modified;
};

/* Where the elements of a REPEATED weight, or of a box of it, lie among its stored values: element
 * i, as a number of n digits, at `first` and what its digits move. Of one box alone `lo` and
 * `dims`, of its axes, are not looked at: it is all of the weight. */
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
    uint64_t offset;                        /* FILE: of element 0 */
    uint64_t seed;                          /* GENERATED */
    float lo, hi;                           /* GENERATED; FILLED: lo alone */
    int64_t mirror; /* GENERATED: n > 0: of each 2 n elements the last n are the first n mirrored,
                       lo + hi - x, so that they cancel */
    int64_t transposed; /* n > 0: n rows of elems / n columns are stored, and read column by column:
                           element i is the one that is stored in row i % n of column i / n */
    struct rfx_shape shape;
    int64_t elems;
};

/* Reads bytes [offset, offset + bytes) of a file into out. IO: the system says no, the file ends
 * before, or it was written after it was opened. */
RFX_NODISCARD enum rfx_status rfx_weight_file_read(const struct rfx_weight_file *file,
                                                   uint64_t offset, void *out, size_t bytes,
                                                   struct rfx_error *err);

/* Reads elements [first, first + count) as float32 into out; the range must lie in the weight
 * (asserted). O(count), and at least one call of the system for a FILE. Status: as
 * rfx_weight_file_read; other sources never fail. */
RFX_NODISCARD enum rfx_status rfx_weight_read(const struct rfx_weight *weight, int64_t first,
                                              int64_t count, float *out, struct rfx_error *err);
/* Whether `count` elements from `a` on are the same as those from `b` on, seen by their places
 * alone. False does not mean that they differ. */
bool rfx_weight_repeats(const struct rfx_weight *weight, int64_t a, int64_t b, int64_t count);

#endif
