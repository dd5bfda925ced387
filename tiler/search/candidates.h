/* The planner's candidates: the plans that each phase of the search tries, with their MACs,
 * predicted cost and lower bound of memory.
 *
 * The candidate templates of all modes are expanded into candidates, phase by phase
 * (candidate_template.h). The first phases compute nothing twice. candidate_list.c expands the
 * templates, candidates.c measures candidates, planner.c chooses among them, plan_survey.c lists
 * them for reports. Private to tiler/. */
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

/* A possible plan: where the network is cut into stages, and how the stages run. */
struct rfx_candidate {
    struct rfx_partition partition;
    struct rfx_stage_spec spec; /* how the stages before the cut run, without targets; the flags
                                   apply to every stage whose mode supports them */
    enum rfx_plan_kind kind;
    uint64_t macs, cost; /* cost may be RFX_COST_UNKNOWN if the bound exceeds the budget */
    size_t bound;        /* lower bound of the peak of the process */
    size_t peak;         /* peak with the quick placement; 0: not computed yet */
    uint64_t number; /* position in the order of listing, so that no two candidates compare equal */
};

/* Column extents of the stage before a single cut, by number of tiles across. */
struct rfx_cached_cols {
    struct rfx_partition partition;
    const struct rfx_mode *mode;
    int n;
    int64_t counts[RFX_TILING_MAX_COUNTS];
    struct rfx_tile_extent *extents; /* [count][node] */
};

/* Number of different choices of stored maps that are tried for chains. */
enum { RFX_SEARCH_CHOICES = 40 };

enum { RFX_MEMORY_MODES = 8 }; /* combinations of the three memory-saving flags */

/* Memory of the final stage, which runs in the mode chosen for the tail. It does not depend on how
 * the stages before it are cut. */
struct rfx_search_behind {
    size_t arena;
    size_t fixed; /* all bytes but arena and image rows; 0: not computed */
};

/* How many different numbers of additional stages are tried for chains with spilled maps. */
enum { RFX_SEARCH_MORE = 6 };

/* The number of waists around which chains are cut, and the most nodes of a network for which they
 * are. */
enum { RFX_SEARCH_WAISTS = 4, RFX_SEARCH_WAIST_NODES = 2048 };

struct rfx_search_waist {
    struct rfx_waist waist;
    struct rfx_levels levels;
};

struct rfx_search {
    struct rfx_plan_context context;
    struct rfx_levels levels;
    struct rfx_levels more[RFX_SEARCH_MORE]; /* with additional stages, if maps may be spilled */
    struct rfx_search_waist waists[RFX_SEARCH_WAISTS];
    int n_waists;
    int max_stages;
    int *splits;
    int n_splits;
    const struct rfx_mode *const *modes;
    int n_modes;
    const struct rfx_mode *rest; /* mode of the tail; it computes nodes that no local mode can */
    /* tables of the current candidate: max_stages x n_nodes */
    struct rfx_stage_shape *shapes;
    struct rfx_stage_spec *specs;
    int *targets;
    enum rfx_node_place *places;
    struct rfx_node_rows *rows;
    struct rfx_tile_extent *cols;
    bool *stored, *in_file; /* nodes stored by an earlier stage; in_file: those stored in files */
    bool *spilled;          /* parallel to targets: which targets are spilled */
    int *chosen;            /* RFX_SEARCH_CHOICES tables of n_nodes: rfx_partition.until */
    int n_chosen;
    int64_t *done;
    struct rfx_axis_region *regions;
    const struct rfx_partition
        *partition; /* of the current candidate; NULL: the request gives the stages */
    struct rfx_measurement_cache *cache; /* the request's cache, or own_cache */
    struct rfx_measurement_cache own_cache;
    bool placing; /* the current candidate is being placed; candidates with few cuts are measured
                     again then, so their rows are cached */
    bool by_rows; /* rows are chosen per stage; the same stages are then measured again with other
                     row counts, so rows are cached */
    struct rfx_cached_cols cached_cols;
    struct rfx_candidate *candidates;
    size_t n_candidates, capacity;
    struct rfx_cost_model cost;
    uint64_t cost_untiled;
    size_t first;        /* first candidate of the current phase */
    uint64_t n_listed;   /* candidates listed so far, including those that were dropped */
    size_t bound_limit;  /* candidates above the budget with a larger bound are dropped, because a
                            smaller plan is known */
    int64_t most;        /* most candidates of one template, memory modes not counted */
    uint64_t tried;      /* candidates measured so far: a measure of work */
    int phases;          /* number of phases to search */
    bool some_fit;       /* some listed candidate has a bound within the budget */
    bool left_out;       /* the current listing left out slow candidates */
    bool patient;        /* nothing fitted: slow candidates are no longer left out */
    uint64_t cost_limit; /* slower candidates are dropped, because a plan that fits is known */
    struct rfx_search_behind
        behind[RFX_MEMORY_MODES];     /* of the current partition, per memory mode */
    struct rfx_search_rivals *rivals; /* NULL: every candidate is kept */
};

/* Most candidates of a kind that are placed when looking for the best one that fits. */
enum { RFX_SEARCH_RIVAL_TRIES = 24 };

/* Used if only one candidate of each kind is required: the cheapest one that fits the budget
 * (within a number of tries), otherwise the smallest one. All other candidates are dropped. */
struct rfx_search_rivals {
    size_t least_bound[RFX_PLAN_KIND_COUNT];  /* so far; SIZE_MAX: none of this kind */
    uint64_t least_cost[RFX_PLAN_KIND_COUNT]; /* least cost among those with this bound */
    int n[RFX_PLAN_KIND_COUNT];
    uint64_t costs[RFX_PLAN_KIND_COUNT]
                  [RFX_SEARCH_RIVAL_TRIES]; /* rising costs of the n candidates whose bound fits */
};

/* Prepares a search: allocates its tables from graph->mem. The request must outlive the search.
 * Call rfx_search_release whether or not this succeeds. */
RFX_NODISCARD enum rfx_status rfx_search_init(struct rfx_search *search,
                                              const struct rfx_graph *graph,
                                              const struct rfx_plan_request *request,
                                              struct rfx_error *err);
void rfx_search_release(struct rfx_search *search);

/* Appends the candidates of a phase that the request allows, starting at search->first. */
RFX_NODISCARD enum rfx_status rfx_search_list(struct rfx_search *search, int phase,
                                              struct rfx_error *err);

/* Computes candidate->peak unless it is known. */
RFX_NODISCARD enum rfx_status rfx_search_peak(struct rfx_search *search,
                                              struct rfx_candidate *candidate,
                                              struct rfx_error *err);

/* Computes the candidate's cost and MACs unless they are known. */
RFX_NODISCARD enum rfx_status rfx_search_complete(struct rfx_search *search,
                                                  struct rfx_candidate *candidate,
                                                  struct rfx_error *err);

/* Makes the plan of a candidate. context.quick selects the effort for placing its buffers. */
RFX_NODISCARD enum rfx_status rfx_search_build(struct rfx_search *search,
                                               const struct rfx_candidate *candidate,
                                               struct rfx_plan **out, struct rfx_error *err);

/* Returns the number of additional stages of entry k of `more`. */
int rfx_search_more(int k);

/* Computes the geometry of a candidate's stages: fills shapes[*n_stages]. */
RFX_NODISCARD enum rfx_status rfx_search_lay_out(struct rfx_search *search,
                                                 const struct rfx_candidate *candidate,
                                                 int *n_stages, struct rfx_error *err);

/* Recomputes the columns of the measured candidate's stages for `parts` tiles across. Row counts do
 * not depend on the tiles across. */
void rfx_search_lay_across(struct rfx_search *search, const struct rfx_mode *mode, int64_t parts,
                           int n_stages);

/* rfx_search_begin prepares for the first stage of a candidate (NULL: stages given by the request);
 * rfx_search_measure then computes the geometry of stage s from specs[s]. */
void rfx_search_begin(struct rfx_search *search, const struct rfx_candidate *candidate);
RFX_NODISCARD enum rfx_status rfx_search_measure(struct rfx_search *search, int s,
                                                 struct rfx_error *err);

/* Changes the rows per step of stage s of the measured candidate. */
RFX_NODISCARD enum rfx_status rfx_search_set_rows(struct rfx_search *search, int s, int64_t rows,
                                                  struct rfx_error *err);

/* Copies to a stage those memory-saving flags that its mode supports. */
void rfx_search_set_flags(struct rfx_stage_spec *spec, const struct rfx_stage_spec *flags);

/* Returns the predicted time of the measured stages, in picoseconds. */
uint64_t rfx_search_cost(const struct rfx_search *search, int n_stages);

/* Returns whether candidates of any size are of interest: no budget is given, or a survey wants the
 * whole front. */
bool rfx_search_wants_all(const struct rfx_search *search);

/* Returns whether the final stage alone needs too much memory in every memory mode. */
bool rfx_search_is_hopeless(const struct rfx_search *search, const struct rfx_candidate *candidate);

/* Adds the measured candidate in every memory mode that the request allows. */
RFX_NODISCARD enum rfx_status rfx_search_add(struct rfx_search *search,
                                             const struct rfx_candidate *candidate, int n_stages,
                                             struct rfx_error *err);

/* Predicted times of a known plan that fits, in picoseconds. */
struct rfx_known_time {
    uint64_t cost, cost_untiled;
};

/* Plans one variant of a graph (graph_variants.h). known: the times of a known plan, or NULL; if
 * given, only plans that are not slower are searched. Statuses and plans as
 * rfx_plan_create_or_smallest. */
RFX_NODISCARD enum rfx_status rfx_search_plan(const struct rfx_graph *graph,
                                              const struct rfx_plan_request *asked,
                                              const struct rfx_known_time *known,
                                              struct rfx_plan **out, struct rfx_plan **smallest,
                                              struct rfx_error *err);

/* Comparison functions for qsort. compare_cost: by cost, then MACs, bound, number. compare_bound:
 * by bound, then as compare_cost. */
int rfx_candidate_compare_cost(const void *a, const void *b);
int rfx_candidate_compare_bound(const void *a, const void *b);
#endif
