/* Sums of live bytes step by step, less what slides save; see placement_bound.h. */
#include "tiler/placement/placement_bound.h"

#include <string.h>

/* Bytes that slides save at most while what they share lives; from slide *k on, which is moved on
 * to the next node's. What slides down shares with the map that is made, at most, what of that lies
 * from `down` on; what slides up likewise; all go in one direction. */
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

/* A bound that is being found, step by step. */
struct finder {
    size_t *live; /* per step: what begins less what has ended; modular, each prefix is a size */
    size_t current, bound, rest;
    int rest_first;
};

static void clear(const struct finder *f, struct rfx_place_span span) {
    memset(f->live + span.begin, 0, (size_t)(span.end - span.begin) * sizeof *f->live);
}

static void pass(struct finder *f, struct rfx_place_span span) {
    for (int t = span.begin; t < span.end; t++) {
        f->current += f->live[t];
        if (f->current > f->bound) f->bound = f->current;
        if (f->current > f->rest && t >= f->rest_first) f->rest = f->current;
    }
}

size_t rfx_place_slides_bound(const struct rfx_place_job *job, int rest_first, size_t *live,
                              size_t *rest) {
    struct finder f = {.live = live, .rest_first = rest_first};
    const struct rfx_place_span all = {0, job->n_steps};
    int n = job->spans == NULL ? 1 : job->n_spans;
    const struct rfx_place_span *spans = job->spans == NULL ? &all : job->spans;
    for (int s = 0; s < n; s++) clear(&f, spans[s]);
    for (int i = 0; i < job->n; i++) {
        const struct rfx_record *r = &job->records[i];
        live[r->first] += r->bytes;
        if (r->last + 1 < job->n_steps) live[r->last + 1] -= r->bytes;
    }
    for (int k = 0; k < job->n_slides;) { /* shared from when one begins to when the others end */
        const struct rfx_slide *slide = &job->slides[k];
        int end = job->records[slide->before].last + 1;
        size_t saved = saved_by_slides(job, &k);
        live[job->records[slide->after].first] -= saved;
        if (end < job->n_steps) live[end] += saved;
    }
    for (int s = 0; s < n; s++) pass(&f, spans[s]);
    *rest = f.rest;
    return f.bound;
}
