/* What each node of a plan takes of a run's time: counted by an observer of the session's steps.
 *
 * Invariants: 1. every step of a run is in one row of a node or in one of the rest, once; 2. times
 * of rows are medians over the runs, each row by itself, so their sum is only about the median run;
 * processor times, which other programs hardly disturb, take in what lies before a step; 3. what a
 * node's MACs and bytes are, the operator table says. */
#ifndef RFX_TOOLS_STUDY_LAYER_TIMES_H
#define RFX_TOOLS_STUDY_LAYER_TIMES_H

#include "rfexec/session/session.h"

/* What a run does beside computing nodes. */
enum rfx_layer_rest {
    RFX_REST_READ,    /* the image */
    RFX_REST_LOAD,    /* weights by stage */
    RFX_REST_KEEP,    /* copies of rows that outlive their step */
    RFX_REST_EMIT,    /* outputs handed out */
    RFX_REST_SPILL,   /* maps written to files and read from them */
    RFX_REST_BETWEEN, /* all that is no step: the schedule, the accounts */
    RFX_REST_COUNT
};

/* "reading the image" and the like. */
const char *rfx_layer_rest_name(enum rfx_layer_rest rest);

/* What a node is in pictures. */
enum rfx_layer_class {
    RFX_LAYER_POINTWISE, /* 1x1 convolution */
    RFX_LAYER_DENSE,     /* other convolutions, grouped ones too */
    RFX_LAYER_DEPTHWISE, /* one channel per group */
    RFX_LAYER_OTHER,
    RFX_LAYER_CLASS_COUNT
};

struct rfx_layer_row {
    int node;
    int64_t steps;        /* of one run, as all that follows */
    double seconds;       /* median */
    double cpu_seconds;   /* likewise: processor time up to the end of each of its steps */
    uint64_t macs, bytes; /* halos counted every time; bytes that are moved at least */
};

struct rfx_layer_times {
    struct rfx_memory *mem;
    const struct rfx_plan *plan; /* borrowed */
    int n_rows;                  /* the rest is there after rfx_layer_times_finish */
    struct rfx_layer_row *rows;  /* in plan order: by the first stage that computes it */
    double rest[RFX_REST_COUNT], rest_cpu[RFX_REST_COUNT];
    double run_seconds; /* median */

    /* While runs are observed: */
    struct rfx_step_observer observer;
    struct rfx_layer_row *nodes; /* per node */
    int *first_stage;            /* per node */
    double *seconds;             /* [n_nodes + RFX_REST_COUNT + 1][runs]; the last: the runs */
    double *cpu_seconds;         /* likewise */
    double cpu_last;             /* processor time at the end of the last step; < 0: none yet */
    int64_t runs, run;
};

/* For `runs` runs of the plan; give the session its `observer`. OUT_OF_MEMORY. Freed by
 * rfx_layer_times_free, of which NULL is none. */
RFX_NODISCARD enum rfx_status rfx_layer_times_create(struct rfx_memory *mem,
                                                     const struct rfx_plan *plan, int64_t runs,
                                                     struct rfx_layer_times **out,
                                                     struct rfx_error *err);

/* After each observed run, with the time that the session took. */
void rfx_layer_times_end_run(struct rfx_layer_times *times, double seconds);

/* After the last run: makes the rows. */
void rfx_layer_times_finish(struct rfx_layer_times *times);

void rfx_layer_times_free(struct rfx_layer_times *times);

/* Sums of all rows. */
struct rfx_layer_row rfx_layer_times_total(const struct rfx_layer_times *times);

enum rfx_layer_class rfx_layer_class_of(const struct rfx_node *node);

/* "1x1 convolution" and the like. */
const char *rfx_layer_class_name(enum rfx_layer_class class);
#endif
