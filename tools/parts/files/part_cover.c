/* Overlaps pair by pair; if there is none, areas that add up to the map's make all of it. */
#include "tools/parts/files/part_cover.h"

#include <stdbool.h>

#include "layers/core/checked.h"

static enum rfx_status fail_overlap(const struct rfx_part_file *a, const struct rfx_part_file *b,
                                    const char *path_a, const char *path_b, struct rfx_error *err) {
    struct rfx_rect common = rfx_rect_intersect(a->rect, b->rect);
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "parts '%.120s' and '%.120s' overlap: both have rows %lld to %lld, columns "
                    "%lld to %lld",
                    path_a, path_b, (long long)common.y0, (long long)common.y1,
                    (long long)common.x0, (long long)common.x1);
}

static bool is_covered(const struct rfx_part_file *parts, int n, int64_t y, int64_t x) {
    for (int i = 0; i < n; i++)
        if (rfx_rect_contains(parts[i].rect, rfx_rect_make(y, y + 1, x, x + 1))) return true;
    return false;
}

/* The first element that belongs to none: a gap begins where the map does, or where a part ends.
 * false: there is none. */
static bool find_gap(const struct rfx_part_file *parts, int n, struct rfx_tensor map, int64_t *row,
                     int64_t *column) {
    bool found = false;
    for (int i = -1; i < n; i++) {
        int64_t y = i < 0 ? 0 : parts[i].rect.y1;
        if (y >= map.h || (found && y > *row)) continue;
        for (int j = -1; j < n; j++) {
            int64_t x = j < 0 ? 0 : parts[j].rect.x1;
            bool later = found && (y > *row || (y == *row && x >= *column));
            if (x >= map.w || later || is_covered(parts, n, y, x)) continue;
            *row = y;
            *column = x;
            found = true;
        }
    }
    return found;
}

/* Whether two parts have a cell in common; which ones. */
static bool find_common(const struct rfx_part_cells *a, const struct rfx_part_cells *b,
                        struct rfx_range *common) {
    for (int i = 0, j = 0; i < a->n && j < b->n;) {
        struct rfx_range of_a = a->ranges[i], of_b = b->ranges[j];
        *common = (struct rfx_range){rfx_max_i64(of_a.lo, of_b.lo), rfx_min_i64(of_a.hi, of_b.hi)};
        if (common->lo < common->hi) return true;
        if (of_a.hi < of_b.hi)
            i++;
        else
            j++;
    }
    return false;
}

/* The end of the range that has cell p; p itself: no part has it. */
static int64_t end_of_range(const struct rfx_part_file *parts, int n, int64_t p) {
    for (int i = 0; i < n; i++)
        for (int r = 0; r < parts[i].cells.n; r++)
            if (parts[i].cells.ranges[r].lo <= p && p < parts[i].cells.ranges[r].hi)
                return parts[i].cells.ranges[r].hi;
    return p;
}

static enum rfx_status check_cells(const struct rfx_part_file *parts, const char *const *paths,
                                   int n, struct rfx_error *err) {
    int64_t found = 0, of = parts[0].cells.of, p = 0;
    struct rfx_range common;
    for (int i = 0; i < n; i++) {
        found += rfx_part_cells_count(&parts[i].cells);
        for (int j = 0; j < i; j++)
            if (find_common(&parts[j].cells, &parts[i].cells, &common))
                return rfx_fail(err, RFX_STATUS_MALFORMED,
                                "parts '%.120s' and '%.120s' overlap: both have cells %lld to %lld",
                                paths[j], paths[i], (long long)common.lo, (long long)common.hi);
    }
    if (found == of) return RFX_OK;
    for (int64_t next; (next = end_of_range(parts, n, p)) != p;) p = next;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "beside part '%.200s' (%d in all) %lld of %lld cells of output '%.100s' belong "
                    "to no part, the first one is number %lld",
                    paths[0], n, (long long)(of - found), (long long)of, parts[0].output,
                    (long long)p);
}

enum rfx_status rfx_part_check_cover(const struct rfx_part_file *parts, const char *const *paths,
                                     int n, struct rfx_error *err) {
    if (parts[0].cells.of > 0) return check_cells(parts, paths, n, err);
    struct rfx_tensor map = rfx_part_file_map(&parts[0]);
    int64_t area = 0, row = 0, column = 0;
    for (int i = 0; i < n; i++) {
        area += rfx_rect_area(parts[i].rect);
        for (int j = 0; j < i; j++)
            if (!rfx_rect_is_empty(rfx_rect_intersect(parts[i].rect, parts[j].rect)))
                return fail_overlap(&parts[j], &parts[i], paths[j], paths[i], err);
    }
    if (area == map.h * map.w) return RFX_OK;
    (void)find_gap(parts, n, map, &row, &column);
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "beside part '%.200s' (%d in all) %lld of %lld positions of output '%.100s' "
                    "belong to no part, the first one in row %lld, column %lld of %lld x %lld",
                    paths[0], n, (long long)(map.h * map.w - area), (long long)(map.h * map.w),
                    parts[0].output, (long long)row, (long long)column, (long long)map.h,
                    (long long)map.w);
}
