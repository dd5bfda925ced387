/* The time that each node of a plan takes in a run, counted by an observer of the session's steps,
 * and the chart of `bench --layers --plot`.
 *
 * Invariants: 1. every step is counted once, in the row of a node or in one of the rest; 2. the
 * times of a row are medians over the runs, each row by itself, so their sum is only about the
 * median run; processor times, which other programs hardly disturb, include what happens before a
 * step; 3. a node's MACs and bytes are those of the operator table. */
#ifndef RFX_TOOLS_STUDY_LAYER_TIMES_H
#define RFX_TOOLS_STUDY_LAYER_TIMES_H

#include "rfexec/run/session.h"
#include "tools/study/machine_speed.h"

/* What a run does beside computing nodes. */
enum rfx_layer_rest {
    RFX_REST_READ,    /* reading the image */
    RFX_REST_LOAD,    /* loading weights by stage */
    RFX_REST_KEEP,    /* copying rows that outlive their step */
    RFX_REST_EMIT,    /* handing out outputs */
    RFX_REST_SPILL,   /* writing maps to files and reading them */
    RFX_REST_BETWEEN, /* everything outside of steps: schedule and counting */
    RFX_REST_COUNT
};

/* "reading the image" and the like. */
const char *rfx_layer_rest_name(enum rfx_layer_rest rest);

/* Classes of nodes in charts. */
enum rfx_layer_class {
    RFX_LAYER_POINTWISE, /* 1x1 convolution */
    RFX_LAYER_DENSE,     /* other convolutions, also grouped ones */
    RFX_LAYER_DEPTHWISE, /* one channel per group */
    RFX_LAYER_OTHER,
    RFX_LAYER_CLASS_COUNT
};

struct rfx_layer_row {
    int node;
    int64_t steps;        /* in one run, as all that follows */
    double seconds;       /* median */
    double cpu_seconds;   /* median of the processor time up to the end of each step */
    uint64_t macs, bytes; /* halos counted every time; bytes that are moved at least */
};

struct rfx_layer_times {
    struct rfx_memory *mem;
    const struct rfx_plan *plan; /* borrowed */
    int n_rows;                  /* set by rfx_layer_times_finish, as all up to run_seconds */
    struct rfx_layer_row *rows;  /* in plan order, by the first stage that computes the node */
    double rest[RFX_REST_COUNT], rest_cpu[RFX_REST_COUNT];
    double run_seconds; /* median */

    /* While runs are observed: */
    struct rfx_step_observer observer;
    struct rfx_layer_row *nodes; /* per node */
    int *first_stage;            /* per node */
    double *seconds;     /* [n_nodes + RFX_REST_COUNT + 1][runs]; the last one: of whole runs */
    double *cpu_seconds; /* likewise */
    double cpu_last;     /* processor time at the end of the last step; < 0: no step yet */
    int64_t runs, run;
};

/* Sorts n times, the shortest first, and returns their median; 0 when n is 0. */
double rfx_median_of_times(double *seconds, size_t n);

/* For `runs` runs of the plan; the session gets its `observer`. OUT_OF_MEMORY. Freed by
 * rfx_layer_times_free; NULL is fine. */
RFX_NODISCARD enum rfx_status rfx_layer_times_create(struct rfx_memory *mem,
                                                     const struct rfx_plan *plan, int64_t runs,
                                                     struct rfx_layer_times **out,
                                                     struct rfx_error *err);

/* After each observed run, with the time of the session. */
void rfx_layer_times_end_run(struct rfx_layer_times *times, double seconds);

/* After the last run: makes the rows. */
void rfx_layer_times_finish(struct rfx_layer_times *times);

void rfx_layer_times_free(struct rfx_layer_times *times);

/* Sums of all rows. */
struct rfx_layer_row rfx_layer_times_total(const struct rfx_layer_times *times);

enum rfx_layer_class rfx_layer_class_of(const struct rfx_node *node);

/* "1x1 convolution" and the like. */
const char *rfx_layer_class_name(enum rfx_layer_class class);

/* Writes `path`, .svg or .png. Above: a roofline, operations per second over operations per byte
 * moved at least; layers without multiply-accumulates are not in it. Below: the time of every
 * layer. `model`: as the user named it. Statuses of rfx_chart_write. */
RFX_NODISCARD enum rfx_status rfx_layer_chart(const struct rfx_layer_times *times,
                                              const struct rfx_machine_peak *peak,
                                              const char *model, const char *path,
                                              struct rfx_error *err);
#endif
