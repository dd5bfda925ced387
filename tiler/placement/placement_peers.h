/* Which records are alive at the same time. */
#ifndef RFX_TILER_PLACEMENT_PLACEMENT_PEERS_H
#define RFX_TILER_PLACEMENT_PLACEMENT_PEERS_H

#include "tiler/placement/placement.h"
#include "tiler/strategies/arena_problem.h"

/* Lists of the records alive with each of n. Tables of the caller's. */
struct rfx_peers {
    const int *count; /* [n], as rfx_peers_count fills it */
    int *first;       /* [n + 1]: record i's are peers[first[i] .. first[i + 1]) */
    int *peers;       /* as many as the counts add up to */
};

/* Fills count[n]: how many others are alive with each record. scratch: 2 n. O(n log n). */
void rfx_peers_count(const struct rfx_record *records, int n, int *scratch, int *count);

/* Fills first and peers. by_time: the records by rising first step. scratch: 2 n. O(n + peers +
 * what is alive at a time). */
void rfx_peers_list(const struct rfx_record *records, int n, const struct rfx_place_ranked *by_time,
                    const struct rfx_peers *lists, int *scratch);
#endif
