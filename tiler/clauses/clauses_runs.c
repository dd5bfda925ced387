/* Runs; see clauses_runs.h. */
#include "tiler/clauses/clauses_runs.h"

#include "layers/core/checked.h"
#include "tiler/clauses/clauses_packing.h"

enum { ORIGINS = 64 };

enum rfx_status rfx_runs_make(const struct rfx_place_problem *problem, size_t capacity,
                              bool backwards, struct rfx_runs *runs, struct rfx_error *err) {
    int sections = problem->n_sections;
    size_t room = (size_t)sections + 1;
    *runs = (struct rfx_runs){.mem = problem->mem, .unit = (int64_t)capacity};
    runs->of_section = rfx_memory_calloc(runs->mem, room, sizeof *runs->of_section);
    runs->free_bytes = rfx_memory_calloc(runs->mem, room, sizeof *runs->free_bytes);
    runs->is_open = rfx_memory_calloc(runs->mem, room, sizeof *runs->is_open);
    if (runs->of_section == NULL || runs->free_bytes == NULL || runs->is_open == NULL)
        return rfx_memory_fail(runs->mem, "packer", room * sizeof *runs->free_bytes, err);
    for (int i = 0; i < problem->n; i++)
        runs->unit = rfx_gcd_i64(runs->unit, (int64_t)problem->items[i].size);
    for (int s = 0; s < sections; s++) {
        size_t now = capacity - problem->breadth[backwards ? sections - 1 - s : s];
        if (s == 0 || now != runs->free_bytes[runs->n - 1]) runs->free_bytes[runs->n++] = now;
        runs->of_section[s] = runs->n - 1;
    }
    return RFX_OK;
}

void rfx_runs_release(struct rfx_runs *runs) {
    rfx_memory_release(runs->mem, runs->of_section);
    rfx_memory_release(runs->mem, runs->free_bytes);
    rfx_memory_release(runs->mem, runs->is_open);
}

int rfx_runs_units(const struct rfx_runs *runs, int section) {
    int run = runs->of_section[section];
    return runs->is_open[run] ? (int)(runs->free_bytes[run] / (size_t)runs->unit) : 0;
}

static uint64_t origin_of(const struct rfx_runs *runs, int run) {
    int64_t bit = runs->n <= ORIGINS ? run : (int64_t)run * ORIGINS / runs->n;
    return (uint64_t)1 << bit;
}

uint64_t rfx_runs_origin(const struct rfx_runs *runs, int section) {
    return origin_of(runs, runs->of_section[section]);
}

bool rfx_runs_open(struct rfx_runs *runs, uint64_t proof) {
    int most = -1;
    for (int run = 0; run < runs->n; run++) {
        size_t now = runs->free_bytes[run];
        if ((origin_of(runs, run) & proof) == 0 || runs->is_open[run]) continue;
        if (now == 0 || now / (size_t)runs->unit > RFX_CLAUSES_MAX_UNITS) continue;
        if (most < 0 || now > runs->free_bytes[most]) most = run;
    }
    if (most < 0) return false;
    runs->is_open[most] = true;
    return true;
}
