/* Tile ranges: exact cover at any extent and count; hand-computed head regions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/random/small_nets.h"
#include "tiler/plan/tiling.h"

static void tiles_cover_exactly(void **state) {
    (void)state;
    for (int64_t extent = 1; extent <= 40; extent++)
        for (int64_t n = 1; n <= 50; n++) {
            int64_t at = 0;
            int64_t shortest = extent, longest = 0;
            for (int64_t t = 0; t < n; t++) {
                struct rfx_range r = rfx_tile_range(extent, n, t);
                assert_int_equal(r.lo, at);
                assert_true(r.hi >= r.lo);
                at = r.hi;
                if (r.hi - r.lo < shortest) shortest = r.hi - r.lo;
                if (r.hi - r.lo > longest) longest = r.hi - r.lo;
            }
            assert_int_equal(at, extent);
            assert_true(longest - shortest <= 1);
        }
}

static void thirteen_in_six(void **state) {
    (void)state;
    static const int64_t edges[] = {0, 3, 5, 7, 9, 11, 13};
    for (int t = 0; t < 6; t++) {
        struct rfx_range r = rfx_tile_range(13, 6, t);
        assert_int_equal(r.lo, edges[t]);
        assert_int_equal(r.hi, edges[t + 1]);
    }
}

/* Two 3x3 convolutions with stride 2 then 1, padding 1, on a 16 x 16 image: the second map is 8
 * rows; in two tiles of 4 rows the first map needs rows 0..4 and 3..7, the image 0..9 and 5..15. */
static void head_extents_by_hand(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 16, 16);
    struct rfx_axis_region regions[3];
    struct rfx_tile_extent extents[3];
    struct rfx_tile_overlap overlap = {0};
    rfx_tiling_axis(graph, 2, RFX_AXIS_ROWS, 2, regions, extents);
    assert_int_equal(extents[2].max, 4);
    assert_int_equal(extents[2].sum, 8);
    assert_int_equal(extents[1].max, 5);
    assert_int_equal(extents[1].sum, 10);
    assert_int_equal(extents[0].max, 11); /* rows 5 .. 15 */
    assert_int_equal(extents[0].sum, 10 + 11);
    assert_int_equal(regions[0].unclamped.lo, 5);
    assert_int_equal(regions[0].unclamped.hi, 16);
    for (int64_t t = 0; t < 2; t++) {
        rfx_regions_backprop(graph, 2, RFX_AXIS_ROWS, rfx_tile_range(8, 2, t), regions);
        rfx_tile_overlap_add(regions, graph->input, &overlap);
    }
    assert_int_equal(overlap.max_overlap, 5); /* rows 5 .. 9 */
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_cover_exactly),
        cmocka_unit_test(thirteen_in_six),
        cmocka_unit_test(head_extents_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
