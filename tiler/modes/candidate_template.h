/* What the planner tries of a mode: rows of a table that the mode's file holds. */
#ifndef RFX_TILER_MODES_CANDIDATE_TEMPLATE_H
#define RFX_TILER_MODES_CANDIDATE_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds of plan by which people compare them. */
enum rfx_plan_kind {
    RFX_PLAN_UNTILED,
    RFX_PLAN_STREAMED,    /* the network, or up to a cut, by rows */
    RFX_PLAN_TWO_STREAMS, /* two streams one after the other */
    RFX_PLAN_STRIPS,      /* streams in column strips */
    RFX_PLAN_PASSES,      /* the image again after global operations */
    RFX_PLAN_SPILLED,     /* maps between streams in files */
    RFX_PLAN_TILES,       /* one cut, tiles before it: the paper's */
    RFX_PLAN_KIND_COUNT
};

/* Phases of the search: a later one is looked at when none before gave a plan that fits. */
enum rfx_search_phase {
    RFX_PHASE_EXACT,     /* nothing is computed twice */
    RFX_PHASE_TWO_PARTS, /* still nothing, but a map is stored on the way */
    RFX_PHASE_RECOMPUTE,
    RFX_PHASE_TILES,
    RFX_PHASES
};

/* Where the network is cut. */
enum rfx_template_cuts {
    RFX_CUTS_NONE,    /* one stage that makes all outputs */
    RFX_CUTS_CHAIN,   /* a stage per level of global operations */
    RFX_CUTS_PASSES,  /* the same, from the image again after the first global operations */
    RFX_CUTS_WAIST,   /* stages before, in and behind where maps are small; large ones that are
                         read behind it are made again */
    RFX_CUTS_FEW,     /* one cut: the last ones and some spread over the others */
    RFX_CUTS_SPILLED, /* a stage per level, and maps between them in files: the largest, more, all;
                         only where files are allowed */
    RFX_CUTS_PAIRS,   /* two cuts of those */
    RFX_CUTS_EVERY,   /* one cut, wherever one is legal; its map is stored whoever reads it */
};

enum rfx_template_tiles {
    RFX_TILES_ONE,
    RFX_TILES_ACROSS, /* the mode's list of counts across */
    RFX_TILES_GRID,   /* all counts on both axes */
};

struct rfx_candidate_template {
    enum rfx_search_phase phase;
    enum rfx_plan_kind kind, kind_in_tiles; /* in one part, in several */
    enum rfx_template_cuts cuts;
    enum rfx_template_tiles tiles;
    bool when_asked; /* also when the mode was asked for: with the numbers that were given */
    bool always;     /* also without a budget */
    int n_bands, n_across;
    const int64_t *bands;  /* image rows a step; n_bands 0: the mode has none */
    const int64_t *across; /* numbers of parts, RFX_TILES_ACROSS */
};
#endif
