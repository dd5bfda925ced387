/* Maps in nameless files: every bit comes back, whoever asks for which part; what cannot be is said
 * with folder, map and figures; files end with their last reader. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/run/spill_files.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/tiling.h"

enum { H = 37, W = 29, SUM = 3, POOL = 5, MAP_C = 4 };

/* "sum" is spilled by a stream and read by the next one; the maps' values play no part. */
struct fixture {
    struct small_plan_case c;
    struct rfx_plan *plan;
    struct rfx_spill_files *files;
};

static struct fixture begin(void) {
    static const int sum[] = {SUM}, pool[] = {POOL};
    static const bool yes[] = {true};
    struct rfx_stage_spec specs[2] = {rfx_ask_bands(4, 1), rfx_ask_bands(4, 1)};
    struct fixture f = {.c = small_plan_case_begin(H, W)};
    struct rfx_error err;
    specs[0].n_targets = specs[1].n_targets = 1;
    specs[0].targets = sum;
    specs[0].spilled = yes;
    specs[1].targets = pool;
    f.c.request.stages = specs;
    f.c.request.n_stages = 2;
    if (rfx_plan_create(f.c.graph, &f.c.request, &f.plan, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_int_equal(f.plan->spill.most, H * W * MAP_C * 4);
    assert_int_equal(rfx_spill_create(f.plan, &f.files, &err), RFX_OK);
    return f;
}

static void end(struct fixture *f) {
    rfx_spill_free(f->files);
    rfx_plan_free(f->plan);
    small_plan_case_end(&f->c);
}

/* Open descriptors of this process. */
static int count_open(void) {
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    assert_non_null(dir);
    while (readdir(dir) != NULL) n++;
    (void)closedir(dir);
    return n;
}

/* Any bits: many of them NaNs with payloads, quiet and signalling. */
static uint32_t bits_of(int64_t i) {
    uint32_t bits = (uint32_t)(i + 1) * 2654435761U;
    return i % 3 == 0 ? bits | 0x7f800000U : bits;
}

struct moves {
    struct fixture *f;
    int64_t rows, strips; /* of a write */
    float *ring;
};

/* Columns [x0, x1) of the rows [y0, y1) by a view of a strip that is wider by one on each side. */
static struct rfx_view strip_view(float *data, int64_t x0, int64_t x1, int64_t rows, bool ring) {
    struct rfx_rect rect = {0, H, x0 > 0 ? x0 - 1 : 0, x1 < W ? x1 + 1 : W};
    struct rfx_view view = rfx_view_dense(data, rect, MAP_C);
    view.ring_rows = ring ? rows : 0;
    return view;
}

static void fill(const struct rfx_view *view, struct rfx_rect rect) {
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++)
            for (int64_t c = 0; c < MAP_C; c++) {
                uint32_t bits = bits_of((y * W + x) * MAP_C + c);
                memcpy(rfx_view_f32_at(view, y, x) + c, &bits, sizeof bits);
            }
}

static void expect(const struct rfx_view *view, struct rfx_rect rect) {
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++)
            for (int64_t c = 0; c < MAP_C; c++) {
                uint32_t bits;
                memcpy(&bits, rfx_view_f32_at(view, y, x) + c, sizeof bits);
                assert_int_equal(bits, bits_of((y * W + x) * MAP_C + c));
            }
}

/* Writes the map strip by strip from rings, then reads it in other parts. */
static void move_map(struct rfx_team *team, void *user) {
    const struct moves *m = user;
    struct rfx_error err;
    for (int64_t s = 0; s < m->strips; s++) {
        struct rfx_range cols = rfx_tile_range(W, m->strips, s);
        struct rfx_view view = strip_view(m->ring, cols.lo, cols.hi, m->rows + 2, true);
        for (int64_t y = 0; y < H; y += m->rows) {
            struct rfx_rect rect = {y, y + m->rows < H ? y + m->rows : H, cols.lo, cols.hi};
            fill(&view, rect);
            assert_int_equal(rfx_spill_write(m->f->files, team, SUM, rect, &view, &err), RFX_OK);
        }
    }
    rfx_spill_enter_stage(m->f->files, 1);
    for (int64_t rows = 1; rows <= H; rows += 5)
        for (int64_t x0 = 0; x0 < W; x0 += 11) {
            struct rfx_rect rect = {H - rows, H, x0, x0 + 13 < W ? x0 + 13 : W};
            if (rows % 2 == 0) rect = (struct rfx_rect){H - rows, H, 0, W}; /* rows go at once */
            struct rfx_view view = strip_view(m->ring, rect.x0, rect.x1, rows, rows % 2 == 0);
            memset(m->ring, 0, sizeof(float) * H * W * MAP_C);
            assert_int_equal(rfx_spill_fetch(m->f->files, team, SUM, rect, &view, &err), RFX_OK);
            expect(&view, rect);
        }
}

static void every_bit_comes_back(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads++)
        for (int64_t strips = 1; strips <= 3; strips++)
            for (int64_t rows = 1; rows <= H; rows = rows * 3 + 1) {
                struct fixture f = begin();
                struct moves m = {&f, rows, strips, test_floats((H + 2) * W * MAP_C)};
                struct rfx_error err;
                int before = count_open();
                rfx_spill_set_folder(f.files, ".");
                for (int run = 0; run < 2; run++) { /* the second in a new file */
                    assert_int_equal(rfx_spill_begin(f.files, &err), RFX_OK);
                    assert_int_equal(count_open(), before);
                    rfx_team_run(threads, move_map, &m);
                    assert_int_equal(count_open(), before + 1);
                }
                rfx_spill_enter_stage(f.files, 2);
                assert_int_equal(count_open(), before);
                free(m.ring);
                end(&f);
            }
}

struct attempt {
    struct fixture *f;
    enum rfx_status status;
    struct rfx_error err;
};

static void write_a_row(struct rfx_team *team, void *user) {
    struct attempt *a = user;
    float row[W * MAP_C] = {0};
    struct rfx_rect rect = {0, 1, 0, W};
    struct rfx_view view = rfx_view_dense(row, rect, MAP_C);
    a->status = rfx_spill_write(a->f->files, team, SUM, rect, &view, &a->err);
}

static void assert_says(const struct rfx_error *err, const char *words) {
    if (strstr(err->text, words) == NULL) fail_msg("no \"%s\" in: %s", words, err->text);
}

static void refusals(void **state) {
    (void)state;
    struct fixture f = begin();
    struct attempt a = {.f = &f};
    struct rfx_error err;
    struct rlimit limit, less;
    int before = count_open();
    assert_int_equal(rfx_spill_begin(f.files, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_says(&err, "no folder is given");
    rfx_spill_set_folder(f.files, "no/such/folder");
    assert_int_equal(rfx_spill_begin(f.files, &err), RFX_STATUS_IO);
    assert_says(&err, "folder 'no/such/folder' for spilled maps: No such file");
    f.plan->spill.most = (uint64_t)1 << 60; /* as a plan for a very large picture */
    rfx_spill_set_folder(f.files, ".");
    assert_int_equal(rfx_spill_begin(f.files, &err), RFX_STATUS_IO);
    assert_says(&err, "free, spilled maps need 1073741824.00 GiB at a time");
    f.plan->spill.most = H * W * MAP_C * 4;
    rfx_spill_set_folder(f.files, "/proc/self/status"); /* is none */
    rfx_team_run(1, write_a_row, &a);
    assert_int_equal(a.status, RFX_STATUS_IO);
    assert_says(&a.err, "folder '/proc/self/status': cannot make a file for the 0.0 MiB of 'sum'");
    rfx_spill_set_folder(f.files, ".");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    less = limit;
    less.rlim_cur = 1000; /* a map has more */
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
    rfx_team_run(1, write_a_row, &a);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(a.status, RFX_STATUS_IO);
    assert_says(&a.err, "folder '.': no room for the 0.0 MiB of 'sum': File too large");
    assert_int_equal(rfx_spill_begin(f.files, &err), RFX_OK); /* the file is closed */
    assert_int_equal(count_open(), before);
    rfx_team_run(1, write_a_row, &a);
    assert_int_equal(a.status, RFX_OK);
    end(&f);
    assert_int_equal(count_open(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_bit_comes_back),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
