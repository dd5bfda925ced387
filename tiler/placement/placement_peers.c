/* Peers by counting and by one pass through time. */
#include "tiler/placement/placement_peers.h"

#include <stdlib.h>

static int compare_ints(const void *pa, const void *pb) {
    int a = *(const int *)pa;
    int b = *(const int *)pb;
    return (a > b) - (a < b);
}

/* How many of the sorted values are below `limit`. */
static int count_below(const int *values, int n, int limit) {
    int lo = 0, hi = n;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (values[middle] < limit)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

void rfx_peers_count(const struct rfx_record *records, int n, int *scratch, int *count) {
    int *firsts = scratch, *lasts = scratch + n;
    for (int i = 0; i < n; i++) {
        firsts[i] = records[i].first;
        lasts[i] = records[i].last;
    }
    qsort(firsts, (size_t)n, sizeof *firsts, compare_ints);
    qsort(lasts, (size_t)n, sizeof *lasts, compare_ints);
    /* all that begin before it ends, but those that have ended before it begins, and itself */
    for (int i = 0; i < n; i++)
        count[i] = count_below(firsts, n, records[i].last + 1) -
                   count_below(lasts, n, records[i].first) - 1;
}

void rfx_peers_list(const struct rfx_record *records, int n, const struct rfx_place_ranked *by_time,
                    const struct rfx_peers *lists, int *scratch) {
    int *at = scratch, *alive = scratch + n;
    int n_alive = 0;
    lists->first[0] = 0;
    for (int i = 0; i < n; i++) {
        at[i] = lists->first[i];
        lists->first[i + 1] = lists->first[i] + lists->count[i];
    }
    for (int o = 0; o < n; o++) {
        int i = by_time[o].index, kept = 0;
        for (int a = 0; a < n_alive; a++) {
            int other = alive[a];
            if (records[other].last < records[i].first) continue;
            lists->peers[at[i]++] = other;
            lists->peers[at[other]++] = i;
            alive[kept++] = other;
        }
        alive[kept++] = i;
        n_alive = kept;
    }
}
