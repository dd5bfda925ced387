/* How work on a rectangle is cut for threads: every pixel once, and the same columns for the same
 * thread, whatever the rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/rect.h"
#include "layers/core/team.h"
#include "layers/graph/units.h"

#define MOST_ROWS 40
#define MOST_COLS 700

/* How often each pixel of a rectangle that begins at (3, 5) was made. */
struct seen {
    struct rfx_rect rect;
    unsigned char times[MOST_ROWS][MOST_COLS]; /* pixels are written by one thread at a time */
};

static void see(struct seen *s, struct rfx_rect part) {
    for (int64_t y = part.y0; y < part.y1; y++)
        for (int64_t x = part.x0; x < part.x1; x++) s->times[y - s->rect.y0][x - s->rect.x0]++;
}

static void assert_once(const struct seen *s) {
    for (int64_t y = 0; y < rfx_rect_rows(s->rect); y++)
        for (int64_t x = 0; x < rfx_rect_cols(s->rect); x++) assert_int_equal(s->times[y][x], 1);
}

static void see_unit(const void *user, struct rfx_rect unit, void *scratch) {
    (void)scratch;
    see(*(struct seen *const *)user, unit);
}

static void see_row(const struct rfx_run_args *args, int64_t y) {
    struct rfx_rect row = args->rect;
    row.y0 = y;
    row.y1 = y + 1;
    see(args->scratch, row);
}

struct job {
    struct seen *seen;
    int threads;
    bool rows, share;
};

static void run_job(struct rfx_team *team, void *user) {
    const struct job *job = user;
    struct rfx_run_args args = {
        .rect = job->seen->rect, .threads = job->threads, .team = team, .scratch = job->seen};
    if (job->rows)
        rfx_op_share_rows(&args, job->share, see_row);
    else
        rfx_units_share(&args, rfx_units_of_rows(&args), 0, see_unit, &job->seen);
}

static void every_pixel_is_made_once(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 2, 7, MOST_ROWS}, cols[] = {1, 31, 111, 112, 169, MOST_COLS};
    struct seen *seen = malloc(sizeof *seen);
    assert_non_null(seen);
    for (int threads = 1; threads <= 5; threads++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (size_t c = 0; c < sizeof cols / sizeof *cols; c++)
                for (int kind = 0; kind < 3; kind++) {
                    memset(seen, 0, sizeof *seen);
                    seen->rect = rfx_rect_make(3, 3 + rows[r], 5, 5 + cols[c]);
                    struct job job = {seen, threads, kind > 0, kind > 1};
                    rfx_team_run(threads, run_job, &job);
                    assert_once(seen);
                }
    free(seen);
}

/* Side by side where that is not narrow, else rows; always so many, and every pixel once. */
static void parts_are_as_many_as_asked_for(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 2, MOST_ROWS}, cols[] = {1, 111, 112, MOST_COLS};
    struct seen *seen = malloc(sizeof *seen);
    assert_non_null(seen);
    for (int parts = 1; parts <= 7; parts++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (size_t c = 0; c < sizeof cols / sizeof *cols; c++) {
                memset(seen, 0, sizeof *seen);
                seen->rect = rfx_rect_make(3, 3 + rows[r], 5, 5 + cols[c]);
                struct rfx_units grid = rfx_units_into(seen->rect, parts);
                assert_int_equal(grid.down * grid.across, parts);
                assert_int_equal(grid.across, rfx_units_beside(cols[c], parts));
                for (int i = 0; i < parts; i++) see(seen, rfx_units_part(seen->rect, grid, i));
                assert_once(seen);
            }
    free(seen);
}

/* Units of a grid go down the columns from left to right. */
static void units_are_counted_down_the_columns(void **state) {
    (void)state;
    const struct rfx_rect rect = rfx_rect_make(10, 13, 20, 24);
    const struct rfx_units grid = {.down = 3, .across = 2};
    for (int64_t i = 0; i < 6; i++) {
        struct rfx_rect unit = rfx_units_part(rect, grid, i);
        assert_int_equal(unit.y0, 10 + i % 3);
        assert_int_equal(unit.x0, 20 + i / 3 * 2);
        assert_int_equal(rfx_rect_area(unit), 2);
    }
}

/* Of two threads, the one that begins with the first half of the units has the left half of the
 * columns. */
static void assert_halves(int64_t rows, int64_t cols) {
    const struct rfx_run_args args = {.rect = rfx_rect_full(rows, cols), .threads = 2};
    struct rfx_units grid = rfx_units_of_rows(&args);
    int64_t units = grid.down * grid.across;
    assert_int_equal(units % 2, 0);
    for (int64_t i = 0; i < units; i++) {
        struct rfx_rect unit = rfx_units_part(args.rect, grid, i);
        if (i < units / 2)
            assert_true(unit.x1 <= cols / 2);
        else
            assert_true(unit.x0 >= cols / 2);
    }
}

static void threads_have_the_same_columns(void **state) {
    (void)state;
    for (int64_t rows = 1; rows <= 64; rows++)
        for (int64_t cols = 112; cols <= 1024; cols *= 2) assert_halves(rows, cols);
    assert_int_equal(rfx_units_beside(112, 2), 2);
    assert_int_equal(rfx_units_beside(111, 2), 1); /* too narrow */
    assert_int_equal(rfx_units_beside(1, 1), 1);
    assert_int_equal(rfx_units_beside(1000, 8), 8);
    assert_int_equal(rfx_units_beside(400, 8), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pixel_is_made_once),
        cmocka_unit_test(parts_are_as_many_as_asked_for),
        cmocka_unit_test(units_are_counted_down_the_columns),
        cmocka_unit_test(threads_have_the_same_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
