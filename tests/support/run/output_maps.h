/* Maps for tests of output files, and the rectangles in which they are written. */
#ifndef RFX_TESTS_SUPPORT_RUN_OUTPUT_MAPS_H
#define RFX_TESTS_SUPPORT_RUN_OUTPUT_MAPS_H

#include "rfexec/output/output_stream.h"

/* A map whose pixels are `wide` floats apart, more than its channels. */
struct output_map {
    struct rfx_tensor tensor;
    float *values; /* [h, w, wide] */
    struct rfx_view view;
};

/* Returns a map of random values in [-1, 1); row 0 begins with infinity and -NaN. The caller frees
 * `values` with free(). */
struct output_map output_map_make(int64_t c, int64_t h, int64_t w, int64_t wide);

/* Elements [first, first + n) of a PLAIN tensor, in the form in which a run writes them: one pixel
 * whose channels are the elements. */
struct output_run {
    struct rfx_end end;
    struct rfx_rect rect;
    struct rfx_view view;
};
struct output_run output_run_make(float *values, int64_t first, int64_t n);

/* The pieces of a map: their rows and columns, and whether the last piece is written first. */
struct output_cut {
    int64_t rows, cols;
    bool backwards;
};

/* Writes the pieces to an open stream, column by column of pieces, in the order of strips. */
enum rfx_status output_map_pieces(struct rfx_output_stream *stream, const struct output_map *map,
                                  struct output_cut cut, struct rfx_error *err);

/* Writes a whole file. Returns RFX_STATUS_COUNT if the file exists under its name before it is
 * committed. */
enum rfx_status output_map_write(struct rfx_memory *mem, const char *path,
                                 const struct rfx_output_format *format,
                                 const struct output_map *map, struct output_cut cut,
                                 struct rfx_error *err);

/* Arguments of output_map_write. */
struct output_attempt {
    const char *path;
    struct rfx_output_format format;
    struct output_map map;
    struct output_cut cut;
};

/* Calls output_map_write; for test_fail_each_allocation. */
enum rfx_status output_attempt_write(struct rfx_memory *mem, void *attempt, struct rfx_error *err);

/* As output_attempt_write, with a limit on the size of files, which simulates a full disk. Returns
 * true if the file fits. Otherwise asserts that the status is IO, that the text names the file and
 * that `folder` is empty, and returns false. */
bool output_attempt_fits(struct output_attempt *attempt, const char *folder, size_t most_bytes);
#endif
