/* Candidate templates: a mode's table of the candidates that the planner tries for it. The table is
 * part of the mode's file. */
#ifndef RFX_TILER_MODES_CANDIDATE_TEMPLATE_H
#define RFX_TILER_MODES_CANDIDATE_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds of plan that reports compare. */
enum rfx_plan_kind {
    RFX_PLAN_UNTILED,
    RFX_PLAN_STREAMED,    /* the network, or the part up to a cut, row by row */
    RFX_PLAN_TWO_STREAMS, /* two streams, one after the other */
    RFX_PLAN_STRIPS,      /* streams in column strips */
    RFX_PLAN_PASSES,      /* the image is read again after global operations */
    RFX_PLAN_SPILLED,     /* maps between streams lie in files */
    RFX_PLAN_TILES,       /* one cut, tiles before it (paper 003) */
    RFX_PLAN_KIND_COUNT
};

/* Phases of the search, in order. Once a plan fits, later phases list only candidates that are not
 * slower. */
enum rfx_search_phase {
    RFX_PHASE_EXACT,     /* nothing is computed twice */
    RFX_PHASE_TWO_PARTS, /* nothing is computed twice, but a map between streams is stored */
    RFX_PHASE_RECOMPUTE,
    RFX_PHASE_TILES,
    RFX_PHASES
};

/* Where the network is cut. */
enum rfx_template_cuts {
    RFX_CUTS_NONE,    /* one stage for all outputs */
    RFX_CUTS_CHAIN,   /* one stage per level of global operations */
    RFX_CUTS_PASSES,  /* one stage per level; the stages after the first global operations start
                         again from the image */
    RFX_CUTS_WAIST,   /* stages before, in and after a waist; large maps that are read after it are
                         computed again */
    RFX_CUTS_FEW,     /* one cut: one of the last legal cuts, or of some spread over the others */
    RFX_CUTS_SPILLED, /* one stage per level, with the largest, more or all maps between them in
                         files; only where files are allowed */
    RFX_CUTS_PAIRS,   /* two of the cuts of RFX_CUTS_FEW */
    RFX_CUTS_EVERY,   /* one cut at any legal place; its map is stored, whichever nodes read it */
};

enum rfx_template_tiles {
    RFX_TILES_ONE,
    RFX_TILES_ACROSS, /* the mode's list of tile counts across */
    RFX_TILES_GRID,   /* all pairs of tile counts of the two axes */
};

struct rfx_candidate_template {
    enum rfx_search_phase phase;
    enum rfx_plan_kind kind, kind_in_tiles; /* kind of plan with one tile, and with several */
    enum rfx_template_cuts cuts;
    enum rfx_template_tiles tiles;
    bool when_asked; /* also if the request names the mode; its numbers then apply */
    bool always;     /* also without a budget */
    int n_bands, n_across;
    const int64_t *bands;  /* image rows per step; n_bands 0: the mode has no bands */
    const int64_t *across; /* tile counts for RFX_TILES_ACROSS */
};
#endif
