/* The planner's options for reports: the best plan of each kind, and the front of all plans from
 * the least time to the least memory.
 *
 * Invariants: 1. The buffers of every plan listed here have been placed, with the planner's quick
 * placement, so its peak is reliable as a budget. 2. Rivals are in the order of the enumeration. 3.
 * Along the front, bytes fall and predicted time rises: for a given budget the planner takes the
 * first point that fits. */
#ifndef RFX_TILER_SEARCH_PLAN_SURVEY_H
#define RFX_TILER_SEARCH_PLAN_SURVEY_H

#include "tiler/modes/candidate_template.h"
#include "tiler/plan/plan.h"

/* Returns "untiled", "streamed", "two streams", "strips", "passes", "spilled" or "tiles". */
const char *rfx_plan_kind_name(enum rfx_plan_kind kind);

struct rfx_plan_summary {
    enum rfx_plan_kind kind;
    char text[RFX_PLAN_TEXT]; /* as rfx_plan_describe writes it */
    size_t peak_bytes;
    uint64_t macs, cost; /* cost: predicted time in picoseconds */
};

struct rfx_plan_survey {
    struct rfx_memory *mem;
    uint64_t macs_untiled, cost_untiled;
    int n_rivals;
    struct rfx_plan_summary rivals[RFX_PLAN_KIND_COUNT];
    int n_front;
    struct rfx_plan_summary *front;
};

struct rfx_survey_request {
    unsigned kinds; /* bits 1 << kind of the kinds on the front; 0: no front */
    bool rivals;    /* per kind: the best plan that fits plan.memory_bytes, else the smallest */
};

/* Evaluates all candidates that the request allows, as if it had a budget. The request's stages,
 * groups and caches are ignored. The graph is used as it is. It may be the graph of a plan with
 * groups: then MACs are counted step by step, and candidates are ordered by the planner's estimate.
 * O(candidates); about a second for large networks. Free the result with rfx_plan_survey_free. */
RFX_NODISCARD enum rfx_status rfx_plan_survey_create(const struct rfx_graph *graph,
                                                     const struct rfx_plan_request *plan,
                                                     const struct rfx_survey_request *request,
                                                     struct rfx_plan_survey **out,
                                                     struct rfx_error *err);

void rfx_plan_survey_free(struct rfx_plan_survey *survey);
#endif
