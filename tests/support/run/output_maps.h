/* Maps to be written to files, and the ways they are cut into rectangles. */
#ifndef RFX_TESTS_SUPPORT_RUN_OUTPUT_MAPS_H
#define RFX_TESTS_SUPPORT_RUN_OUTPUT_MAPS_H

#include "rfexec/output/output_stream.h"

/* A map with its pixels wider than its channels. */
struct output_map {
    struct rfx_tensor tensor;
    float *values; /* [h, w, wide] */
    struct rfx_view view;
};

/* Random values in [-1, 1); row 0 begins with infinity and -NaN. free() the values. */
struct output_map output_map_make(int64_t c, int64_t h, int64_t w, int64_t wide);

/* `n` values from element `first` of a tensor on, as a run hands out a tensor that is no map: a
 * pixel whose channels are elements. To be written with its rectangle and view. */
struct output_run {
    struct rfx_end end;
    struct rfx_rect rect;
    struct rfx_view view;
};
struct output_run output_run_make(float *values, int64_t first, int64_t n);

/* How a map is cut; rows and columns of the pieces, and whether the last one comes first. */
struct output_cut {
    int64_t rows, cols;
    bool backwards;
};

/* Writes the pieces to an open stream, column by column of pieces, as strips come. */
enum rfx_status output_map_pieces(struct rfx_output_stream *stream, const struct output_map *map,
                                  struct output_cut cut, struct rfx_error *err);

/* The whole file; RFX_STATUS_COUNT when it has its name before it is committed. */
enum rfx_status output_map_write(struct rfx_memory *mem, const char *path,
                                 const struct rfx_output_format *format,
                                 const struct output_map *map, struct output_cut cut,
                                 struct rfx_error *err);

/* A file to be made. */
struct output_attempt {
    const char *path;
    struct rfx_output_format format;
    struct output_map map;
    struct output_cut cut;
};

/* output_map_write of an attempt, for test_fail_each_allocation. */
enum rfx_status output_attempt_write(struct rfx_memory *mem, void *attempt, struct rfx_error *err);

/* The same where files may have no more than so many bytes, which stands for a full disk. false:
 * it failed as it must, IO in words that name the file, and `folder` has nothing in it; other
 * failures are failed assertions. */
bool output_attempt_fits(struct output_attempt *attempt, const char *folder, size_t most_bytes);
#endif
