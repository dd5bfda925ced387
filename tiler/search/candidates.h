/* The planner's candidates: which plans are tried in which phase, with their MACs, cost and bound.
 *
 * Candidates are the trials of all modes, phase by phase (trial.h): first what computes nothing
 * twice. Private to tiler/: planner.c chooses among them, plan_survey.c shows them. */
#ifndef RFX_TILER_SEARCH_CANDIDATES_H
#define RFX_TILER_SEARCH_CANDIDATES_H

#include "tiler/cost/cost.h"
#include "tiler/modes/candidate_template.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_build.h"
#include "tiler/plan/tiling.h"
#include "tiler/search/measurement_cache.h"
#include "tiler/search/partition.h"

#define RFX_COST_UNKNOWN UINT64_MAX

/* A plan that could be made: where the network is cut, and how its stages run. */
struct rfx_candidate {
    struct rfx_partition partition;
    struct rfx_stage_spec spec; /* of the stages before the cut; its flags hold for all stages whose
                                  mode knows them. No targets */
    enum rfx_plan_kind kind;
    uint64_t macs, cost; /* cost: may be UNKNOWN, as macs then, where the bound does not fit */
    size_t bound;        /* lower bound of the process peak */
    size_t peak;         /* in the quick placement; 0: not known yet */
    uint64_t
        number; /* in the order of listing: none is equal to another, however they are sorted */
};

/* Columns of the stage before a single cut, by number of parts across. */
struct rfx_cached_cols {
    struct rfx_partition partition;
    const struct rfx_mode *mode;
    int n;
    int64_t counts[RFX_TILING_MAX_COUNTS];
    struct rfx_tile_extent *extents; /* [count][node] */
};

/* Choices of the maps that a chain stores that are tried. */
enum { RFX_SEARCH_CHOICES = 40 };

enum { RFX_MEMORY_MODES = 8 }; /* of squeezing a plan */

/* What a last stage that is left to the rest's mode asks for, however the stages before it are cut
 * up. */
struct rfx_search_behind {
    size_t arena;
    size_t fixed; /* everything but arena and image rows; 0: not known */
};

/* Numbers of stages more that chains with spilled maps are tried with. */
enum { RFX_SEARCH_MORE = 6 };

/* Waists of a network that chains are cut around: of so many, and of no larger a network. */
enum { RFX_SEARCH_WAISTS = 4, RFX_SEARCH_WAIST_NODES = 2048 };

struct rfx_search_waist {
    struct rfx_waist waist;
    struct rfx_levels levels;
};

struct rfx_search {
    struct rfx_plan_context context;
    struct rfx_levels levels;
    struct rfx_levels more[RFX_SEARCH_MORE]; /* with so many more; where maps may be spilled */
    struct rfx_search_waist waists[RFX_SEARCH_WAISTS];
    int n_waists;
    int max_stages;
    int *splits;
    int n_splits;
    const struct rfx_mode *const *modes;
    int n_modes;
    const struct rfx_mode *rest; /* that takes what the others leave */
    /* the candidate at hand: tables of max_stages x n_nodes */
    struct rfx_stage_shape *shapes;
    struct rfx_stage_spec *specs;
    int *targets;
    enum rfx_node_place *places;
    struct rfx_node_rows *rows;
    struct rfx_tile_extent *cols;
    bool *stored, *in_file; /* by an earlier stage; there: spilled */
    bool *spilled;          /* as targets: which of them are */
    int *chosen;            /* RFX_SEARCH_CHOICES of n_nodes: `until` of chains */
    int n_chosen;
    int64_t *done;
    struct rfx_axis_region *regions;
    const struct rfx_partition *partition; /* of the candidate at hand; NULL: stages by hand */
    struct rfx_measurement_cache *cache;   /* the request's notes, or `own` */
    struct rfx_measurement_cache own_cache;
    bool placing; /* candidates of a few cuts come again and again: their rows are kept */
    bool by_rows; /* the stages of one plan come in many numbers of rows: they are kept too */
    struct rfx_cached_cols cached_cols;
    struct rfx_candidate *candidates;
    size_t n_candidates, capacity;
    struct rfx_cost_model cost;
    uint64_t cost_untiled;
    size_t first;        /* candidate of the phase at hand */
    uint64_t n_listed;   /* so far, those that were not kept included */
    size_t bound_limit;  /* above the budget, what needs more is of no interest: a smaller one is
                            known */
    int64_t most;        /* candidates of one trial, ways apart */
    uint64_t tried;      /* candidates laid out so far: a measure of work */
    int phases;          /* that are looked at */
    bool some_fit;       /* a candidate is listed whose bound is within the budget */
    bool left_out;       /* of a listing, what took too long to be wanted beside that */
    bool patient;        /* nothing fitted after all: nothing is left out any more */
    uint64_t cost_limit; /* what takes longer is of no interest: a plan that fits is known */
    struct rfx_search_behind behind[RFX_MEMORY_MODES]; /* of the skeleton at hand, in every way */
    struct rfx_search_rivals *rivals;                  /* NULL: every candidate is of interest */
};

/* Most candidates of a kind whose bound fits that are placed when the best that fits is wanted. */
enum { RFX_SEARCH_RIVAL_TRIES = 24 };

/* When nothing is wanted but one candidate of each kind: the cheapest that fits the budget, of so
 * many tries, or else the smallest. What can be neither is not kept. */
struct rfx_search_rivals {
    size_t least_bound[RFX_PLAN_KIND_COUNT];  /* so far; SIZE_MAX: none of this kind */
    uint64_t least_cost[RFX_PLAN_KIND_COUNT]; /* of those with this bound */
    int n[RFX_PLAN_KIND_COUNT];
    uint64_t costs[RFX_PLAN_KIND_COUNT][RFX_SEARCH_RIVAL_TRIES]; /* [n] that rise: of those whose
                                                                    bound fits */
};

/* Most candidates of one trial: looking at one takes as long as the graph has nodes and edges, and
 * placing its buffers up to the square of that. */
int64_t rfx_search_most(const struct rfx_graph *graph);

/* Tables from graph->mem; the request must outlive the search. To be released in any case. */
RFX_NODISCARD enum rfx_status rfx_search_init(struct rfx_search *search,
                                              const struct rfx_graph *graph,
                                              const struct rfx_plan_request *request,
                                              struct rfx_error *err);
void rfx_search_release(struct rfx_search *search);

/* Appends the candidates that the request leaves open in a phase, from search->first on. */
RFX_NODISCARD enum rfx_status rfx_search_list(struct rfx_search *search, int phase,
                                              struct rfx_error *err);

/* Fills candidate->peak, unless it is known. */
RFX_NODISCARD enum rfx_status rfx_search_peak(struct rfx_search *search,
                                              struct rfx_candidate *candidate,
                                              struct rfx_error *err);

/* Fills the candidate's cost and MACs, unless they are known. */
RFX_NODISCARD enum rfx_status rfx_search_complete(struct rfx_search *search,
                                                  struct rfx_candidate *candidate,
                                                  struct rfx_error *err);

/* Makes the plan of a candidate, placed as context.quick has it. */
RFX_NODISCARD enum rfx_status rfx_search_build(struct rfx_search *search,
                                               const struct rfx_candidate *candidate,
                                               struct rfx_plan **out, struct rfx_error *err);

/* planner_chains.c: how many stages more the k-th of `more` has. */
int rfx_search_more(int k);

/* planner_layout.c: fills shapes[*n_stages] for a candidate. */
RFX_NODISCARD enum rfx_status rfx_search_lay_out(struct rfx_search *search,
                                                 const struct rfx_candidate *candidate,
                                                 int *n_stages, struct rfx_error *err);

/* The candidate laid out, again in another number of parts across: rows do not depend on it. */
void rfx_search_lay_across(struct rfx_search *search, const struct rfx_mode *mode, int64_t parts,
                           int n_stages);

/* Before the first stage of a candidate (NULL: of stages by hand); then the geometry of stage s
 * from specs[s]. */
void rfx_search_begin(struct rfx_search *search, const struct rfx_candidate *candidate);
RFX_NODISCARD enum rfx_status rfx_search_measure(struct rfx_search *search, int s,
                                                 struct rfx_error *err);

/* Another number of rows a step for stage s of those laid out. */
RFX_NODISCARD enum rfx_status rfx_search_set_rows(struct rfx_search *search, int s, int64_t rows,
                                                  struct rfx_error *err);

/* Gives a stage the flags of a way that its mode knows. */
void rfx_search_set_flags(struct rfx_stage_spec *spec, const struct rfx_stage_spec *flags);

/* Predicted time of the stages laid out, in picoseconds. */
uint64_t rfx_search_cost(const struct rfx_search *search, int n_stages);

/* planner_interest.c: whether no budget is given, or fronts want what is best in every one. */
bool rfx_search_wants_all(const struct rfx_search *search);

/* Whether the last stage alone asks for too much in every way that is open. */
bool rfx_search_is_hopeless(const struct rfx_search *search, const struct rfx_candidate *candidate);

/* Adds the candidate whose stages are laid out, in every way that is open. */
RFX_NODISCARD enum rfx_status rfx_search_add(struct rfx_search *search,
                                             const struct rfx_candidate *candidate, int n_stages,
                                             struct rfx_error *err);

/* planner.c: the plan of one form of a graph (planner_forms.c); where another one is known that
 * fits, of those that take no longer. Statuses and plans as of rfx_plan_create_or_smallest. */
RFX_NODISCARD enum rfx_status rfx_search_plan(const struct rfx_graph *graph,
                                              const struct rfx_plan_request *asked,
                                              const struct rfx_plan *known, struct rfx_plan **out,
                                              struct rfx_plan **smallest, struct rfx_error *err);

/* For qsort: by cost, MACs, bound, place in the list; and by bound first. */
int rfx_candidate_compare_cost(const void *a, const void *b);
int rfx_candidate_compare_bound(const void *a, const void *b);
#endif
