/* Sums of live bytes step by step, less what slides save; see placement_bound.h. */
#include "tiler/placement/placement_bound.h"

/* Bytes that slides save at most while their node runs; from slide *k on, which is moved on to the
 * next node's. What slides down shares with the map that is made, at most, what of that lies from
 * `down` on; what slides up likewise; all go in one direction. */
static size_t saved_by_slides(const struct rfx_place_job *job, int *k) {
    int after = job->slides[*k].after;
    size_t made = job->records[after].bytes, dying = 0, down = 0, up = 0;
    for (; *k < job->n_slides && job->slides[*k].after == after; ++*k) {
        const struct rfx_slide *slide = &job->slides[*k];
        size_t bytes = job->records[slide->before].bytes;
        size_t below = made > slide->down ? made - slide->down : 0;
        dying += bytes;
        down += below < bytes ? below : bytes;
        up += bytes > slide->up ? bytes - slide->up : 0;
    }
    size_t most = dying < made ? dying : made;
    size_t saved = down > up ? down : up;
    return saved < most ? saved : most;
}

size_t rfx_place_slides_bound(const struct rfx_place_job *job, int rest_first, size_t *live,
                              size_t *rest) {
    size_t bound = *rest = 0, current = 0;
    (void)rfx_place_lower_bound(job->records, job->n, job->n_steps, live);
    int k = 0; /* slides are listed by rising steps */
    for (int t = 0; t < job->n_steps; t++) {
        current += live[t];
        bool slides = k < job->n_slides && job->records[job->slides[k].after].first == t;
        size_t needed = current - (slides ? saved_by_slides(job, &k) : 0);
        if (needed > bound) bound = needed;
        if (needed > *rest && t >= rest_first) *rest = needed;
    }
    return bound;
}
