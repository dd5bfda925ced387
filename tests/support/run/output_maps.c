/* See output_maps.h. */
#include "tests/support/run/output_maps.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/test_util.h"

struct output_map output_map_make(int64_t c, int64_t h, int64_t w, int64_t wide) {
    struct output_map map = {.tensor = rfx_tensor_nhwc(c, h, w),
                             .values = test_floats(h * w * wide)};
    struct test_rng rng = test_rng_make((uint64_t)(c * 1000 + h + w));
    test_rng_fill(&rng, map.values, h * w * wide, -1.0f, 1.0f);
    map.values[wide] = -NAN; /* row 0, column 1 */
    map.values[0] = INFINITY;
    map.view = rfx_view_dense(map.values, rfx_rect_full(h, w), wide);
    return map;
}

struct output_run output_run_make(float *values, int64_t first, int64_t n) {
    struct rfx_rect pixel = rfx_rect_full(1, 1);
    return (struct output_run){.end = {.channels = n, .at = {first, n, n, 1}},
                               .rect = pixel,
                               .view = rfx_view_dense(values + first, pixel, n)};
}

enum rfx_status output_map_pieces(struct rfx_output_stream *stream, const struct output_map *map,
                                  struct output_cut cut, struct rfx_error *err) {
    int64_t h = map->tensor.h, w = map->tensor.w;
    int64_t ny = (h + cut.rows - 1) / cut.rows, nx = (w + cut.cols - 1) / cut.cols;
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < ny * nx && status == RFX_OK; i++) {
        int64_t at = cut.backwards ? ny * nx - 1 - i : i;
        int64_t y = at % ny * cut.rows, x = at / ny * cut.cols;
        struct rfx_rect rect = rfx_rect_intersect(rfx_rect_make(y, y + cut.rows, x, x + cut.cols),
                                                  rfx_rect_full(h, w));
        status = rfx_output_stream_write(stream, rect, &map->view, err);
    }
    return status;
}

enum rfx_status output_map_write(struct rfx_memory *mem, const char *path,
                                 const struct rfx_output_format *format,
                                 const struct output_map *map, struct output_cut cut,
                                 struct rfx_error *err) {
    struct rfx_output_stream *stream = NULL;
    enum rfx_status status = rfx_output_stream_open(mem, path, format, &map->tensor, &stream, err);
    if (status == RFX_OK) status = output_map_pieces(stream, map, cut, err);
    if (status == RFX_OK && access(path, F_OK) == 0 && strncmp(path, "/dev/", 5) != 0)
        status = RFX_STATUS_COUNT; /* it has its name too early */
    if (status == RFX_OK) status = rfx_output_stream_commit(stream, NULL, NULL, err);
    rfx_output_stream_free(stream);
    return status;
}

enum rfx_status output_attempt_write(struct rfx_memory *mem, void *attempt, struct rfx_error *err) {
    const struct output_attempt *a = attempt;
    return output_map_write(mem, a->path, &a->format, &a->map, a->cut, err);
}

bool output_attempt_fits(struct output_attempt *attempt, const char *folder, size_t most_bytes) {
    struct rlimit before, small;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = most_bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum rfx_status status = output_attempt_write(mem, attempt, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    rfx_memory_free(mem);
    if (status == RFX_OK) return true;
    assert_int_equal(status, RFX_STATUS_IO);
    assert_non_null(strstr(err.text, attempt->path));
    assert_non_null(strstr(err.text, "File too large"));
    assert_int_equal(test_files_in(folder), 0);
    return false;
}
