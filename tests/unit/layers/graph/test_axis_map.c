/* Axis maps against the definitions of windows, scattering and blocks, position by position. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "layers/graph/axis_map.h"

enum { REACH = 60 };

struct hull {
    int64_t lo, hi;
};

static void widen(struct hull *hull, int64_t i) {
    if (hull->lo >= hull->hi) {
        *hull = (struct hull){i, i + 1};
        return;
    }
    hull->lo = i < hull->lo ? i : hull->lo;
    hull->hi = i + 1 > hull->hi ? i + 1 : hull->hi;
}

static void check(const char *what, const struct rfx_axis_map *map, struct rfx_range out,
                  struct hull want) {
    struct rfx_range got = rfx_axis_map_range(map, out), wide = rfx_axis_map_hull(map, out);
    bool empty = want.lo >= want.hi;
    bool equal = empty ? got.lo >= got.hi : got.lo == want.lo && got.hi == want.hi;
    bool covered = empty || (wide.lo <= want.lo && wide.hi >= want.hi);
    if (!equal || !covered)
        fail_msg(
            "%s, %lld taps, dilation %lld, down %lld, up %lld, pad %lld: [%lld, %lld) reads "
            "[%lld, %lld), not [%lld, %lld); hull [%lld, %lld)",
            what, (long long)map->taps, (long long)map->dilation, (long long)map->down,
            (long long)map->up, (long long)map->pad, (long long)out.lo, (long long)out.hi,
            (long long)want.lo, (long long)want.hi, (long long)got.lo, (long long)got.hi,
            (long long)wide.lo, (long long)wide.hi);
}

static void check_window(int64_t k, int64_t d, int64_t s, int64_t pad, struct rfx_range out) {
    struct rfx_axis_map map = rfx_axis_map_window(k, d, s, pad);
    struct hull want = {0, 0};
    for (int64_t o = out.lo; o < out.hi; o++)
        for (int64_t t = 0; t < k; t++) widen(&want, o * s + t * d - pad);
    check("window", &map, out, want);
}

static void check_transposed(int64_t k, int64_t d, int64_t s, int64_t cut, struct rfx_range out) {
    struct rfx_axis_map map = rfx_axis_map_transposed(k, d, s, cut);
    struct hull want = {0, 0};
    for (int64_t i = -REACH; i < REACH; i++)
        for (int64_t t = 0; t < k; t++) {
            int64_t o = i * s + t * d - cut;
            if (o >= out.lo && o < out.hi) widen(&want, i);
        }
    check("transposed", &map, out, want);
}

static void windows_and_scattering(void **state) {
    (void)state;
    for (int64_t lo = -4; lo < 5; lo++)
        for (int64_t hi = lo + 1; hi < lo + 8; hi += 2)
            for (int64_t k = 1; k <= 5; k++)
                for (int64_t d = 1; d <= 3; d++)
                    for (int64_t s = 1; s <= 4; s++)
                        for (int64_t pad = 0; pad <= 3; pad++) {
                            const struct rfx_range out = {lo, hi};
                            check_window(k, d, s, pad, out);
                            check_window(1, 1, -s, -pad, out); /* a mirrored crop */
                            check_transposed(k, d, s, pad, out);
                        }
}

/* Blocks of b positions made of one, and one made of b. */
static void blocks(void **state) {
    (void)state;
    for (int64_t b = 1; b <= 4; b++) {
        struct rfx_axis_map up = rfx_axis_map_transposed(b, 1, b, 0);
        struct rfx_axis_map down = rfx_axis_map_window(b, 1, b, 0);
        for (int64_t lo = 0; lo < 9; lo++)
            for (int64_t hi = lo + 1; hi < 12; hi++) {
                const struct rfx_range out = {lo, hi};
                struct hull wide = {0, 0}, deep = {0, 0};
                for (int64_t o = lo; o < hi; o++) {
                    widen(&wide, o / b);
                    for (int64_t i = 0; i < b; i++) widen(&deep, o * b + i);
                }
                check("depth to space", &up, out, wide);
                check("space to depth", &down, out, deep);
            }
    }
}

/* Windows of `size`, of which one begins at `shift`, looked for from far away. */
static void whole_blocks(void **state) {
    (void)state;
    for (int64_t size = 1; size <= 5; size++)
        for (int64_t shift = 0; shift < size; shift++) {
            struct rfx_axis_map map = rfx_axis_map_blocks(size, -shift);
            for (int64_t lo = -6; lo < 9; lo++)
                for (int64_t hi = lo + 1; hi < 12; hi++) {
                    const struct rfx_range out = {lo, hi};
                    struct hull want = {0, 0};
                    for (int64_t o = lo; o < hi; o++) {
                        int64_t start = shift - 20 * size;
                        while (start + size <= o) start += size;
                        for (int64_t i = 0; i < size; i++) widen(&want, start + i);
                    }
                    check("blocks", &map, out, want);
                }
        }
    const struct rfx_axis_map map = rfx_axis_map_blocks(8, -4);
    const struct rfx_range none = {3, 3}, got = rfx_axis_map_range(&map, none);
    assert_true(got.lo == got.hi);
}

static void by_hand(void **state) {
    (void)state;
    const struct rfx_range out = {2, 5}, none = {3, 3};
    struct rfx_axis_map conv = rfx_axis_map_window(3, 2, 2, 1);
    struct rfx_range in = rfx_axis_map_range(&conv, out);
    assert_true(in.lo == 3 && in.hi == 12); /* 2 * 2 - 1; 4 * 2 - 1 + 2 * 2 + 1 */
    in = rfx_axis_map_range(&conv, none);
    assert_true(in.lo == in.hi);
    struct rfx_axis_map same = rfx_axis_map_identity();
    in = rfx_axis_map_range(&same, out);
    assert_true(in.lo == 2 && in.hi == 5);
    same.broadcast = true;
    in = rfx_axis_map_range(&same, out);
    assert_true(in.lo == 0 && in.hi == 1);
    /* stride 3, kernel 1: outputs 4 and 5 come from nowhere */
    struct rfx_axis_map holes = rfx_axis_map_transposed(1, 1, 3, 0);
    const struct rfx_range gap = {4, 6}, more = {4, 7};
    in = rfx_axis_map_range(&holes, gap);
    assert_true(in.lo >= in.hi);
    in = rfx_axis_map_range(&holes, more);
    assert_true(in.lo == 2 && in.hi == 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_and_scattering),
        cmocka_unit_test(blocks),
        cmocka_unit_test(whole_blocks),
        cmocka_unit_test(by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
