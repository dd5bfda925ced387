/* One round of parts before global operations: a part's share of their states is made here, whoever
 * carries it to where the shares are added up, a file (part_states.h) or a message (tools/mpi). */
#ifndef RFX_TOOLS_PARTS_PART_ROUND_H
#define RFX_TOOLS_PARTS_PART_ROUND_H

#include "rfexec/image/row_sums.h"
#include "rfexec/session/session.h"
#include "tools/cli/job.h"
#include "tools/parts/files/shard_states.h"

/* What is known of the rounds before. */
struct rfx_part_before {
    struct rfx_part_states states; /* merged, of all rounds so far; n 0: none */
    struct rfx_part_known *known;  /* states.n */
    struct rfx_part_rounds rounds; /* that output k still takes */
};

void rfx_part_before_release(struct rfx_part_before *before);

/* From before->states follow the others, for output k of the graph or RFX_PART_ALL. */
RFX_NODISCARD enum rfx_status rfx_part_before_settle(struct rfx_part_before *before,
                                                     const struct rfx_graph *graph, int k,
                                                     struct rfx_error *err);

/* Says so when output k has no parts. Returns an exit code. */
RFX_NODISCARD int rfx_part_round_check(const struct rfx_graph *graph, int k,
                                       const struct rfx_part_rounds *rounds);

/* What a share of a round took. */
struct rfx_part_round {
    struct rfx_graph *graph;   /* that adds to the states; owned */
    struct rfx_plan *plan;     /* owned */
    struct rfx_row_sums *sums; /* of the image rows that it reads; owned; NULL: it reads a map */
    const char *what;          /* progress calls it so; NULL: "part" */
    struct rfx_run_report report;
};

/* What a round reads instead of the image. */
struct rfx_part_source {
    int from; /* a cut (rf_analysis/part_cuts.h) */
    struct rfx_image *map;
    struct rfx_source_traits traits; /* of the map */
};

/* Plans share states->index of states->count (from 1) of the next round: `states`, which has no
 * items yet, gets those of the rounds before and room for its share of this one's. What the states
 * take is within the budget, twice. The job's graph is the whole one and it has no plan. Source
 * NULL: the image; its map is not looked at. `round` is to be released whatever the status. */
RFX_NODISCARD enum rfx_status rfx_part_round_plan(struct rfx_cli_job *job, int k,
                                                  const struct rfx_part_before *before,
                                                  const struct rfx_part_source *source,
                                                  struct rfx_part_states *states,
                                                  struct rfx_part_round *round,
                                                  struct rfx_error *err);

/* Makes the share that was planned. */
RFX_NODISCARD enum rfx_status rfx_part_round_run(struct rfx_cli_job *job,
                                                 const struct rfx_part_source *source,
                                                 struct rfx_part_states *states,
                                                 struct rfx_part_round *round,
                                                 struct rfx_error *err);
void rfx_part_round_release(struct rfx_part_round *round);
#endif
