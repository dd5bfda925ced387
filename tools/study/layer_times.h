/* The time that each node of a plan takes in a run, counted by an observer of the session's steps,
 * and the chart of `bench --layers --plot`.
 *
 * Invariants: 1. every step is counted once, in the row of a node or in a row of other work (enum
 * rfx_layer_rest); 2. the times of a row are medians over the runs, each row by itself, so the sum
 * of the rows is only about the time of the median run; 3. the processor time of a step, which
 * other programs hardly disturb, includes the work since the step before; 4. a node's MACs and
 * bytes are those of the operator table. */
#ifndef RFX_TOOLS_STUDY_LAYER_TIMES_H
#define RFX_TOOLS_STUDY_LAYER_TIMES_H

#include "rfexec/run/session.h"
#include "tools/study/machine_speed.h"

/* The work of a run besides computing nodes. */
enum rfx_layer_rest {
    RFX_REST_READ,    /* reading the image */
    RFX_REST_LOAD,    /* loading weights by stage */
    RFX_REST_KEEP,    /* copying rows that outlive their step */
    RFX_REST_EMIT,    /* handing out outputs */
    RFX_REST_SPILL,   /* writing maps to files and reading them */
    RFX_REST_BETWEEN, /* time outside of steps: schedule and counting */
    RFX_REST_COUNT
};

/* Returns a name such as "reading the image". */
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
    int64_t steps;      /* in one run, as are all members below */
    double seconds;     /* median */
    double cpu_seconds; /* median of the processor time up to the end of each step */
    uint64_t macs,
        bytes; /* halos count as often as they are computed; bytes: the least that is moved */
    uint64_t int_macs; /* those of macs that integer convolutions make */
};

struct rfx_layer_times {
    struct rfx_memory *mem;
    const struct rfx_plan *plan; /* borrowed */
    int n_rows; /* set by rfx_layer_times_finish, as are rows, rest and run_seconds */
    struct rfx_layer_row *rows; /* in plan order, by the first stage that computes the node */
    double rest[RFX_REST_COUNT], rest_cpu[RFX_REST_COUNT];
    double run_seconds; /* median */

    /* While runs are observed: */
    struct rfx_step_observer observer;
    struct rfx_layer_row *nodes; /* per node */
    int *first_stage;            /* per node */
    double *seconds;     /* [n_nodes + RFX_REST_COUNT + 1][runs]; the last row: of whole runs */
    double *cpu_seconds; /* likewise */
    double cpu_last;     /* processor time at the end of the last step; < 0: no step yet */
    int64_t runs, run;
};

/* Sorts n times, the shortest first, and returns their median; 0 when n is 0. */
double rfx_median_of_times(double *seconds, size_t n);

/* Creates the counts for `runs` runs of the plan. The caller passes `observer` to the session, and
 * frees the counts with rfx_layer_times_free, which accepts NULL. Status: OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_layer_times_create(struct rfx_memory *mem,
                                                     const struct rfx_plan *plan, int64_t runs,
                                                     struct rfx_layer_times **out,
                                                     struct rfx_error *err);

/* Called after each observed run. seconds: the time of the run as the session reports it. */
void rfx_layer_times_end_run(struct rfx_layer_times *times, double seconds);

/* Called after the last run. Computes the rows. */
void rfx_layer_times_finish(struct rfx_layer_times *times);

void rfx_layer_times_free(struct rfx_layer_times *times);

/* Returns the sums of all rows. */
struct rfx_layer_row rfx_layer_times_total(const struct rfx_layer_times *times);

enum rfx_layer_class rfx_layer_class_of(const struct rfx_node *node);

/* Returns a name such as "1x1 convolution". */
const char *rfx_layer_class_name(enum rfx_layer_class class);

/* Returns whether the graph has integer convolutions. */
bool rfx_layers_have_int(const struct rfx_graph *graph);

/* Returns the share of the processor's peak that the row reaches: the seconds in which its
 * multiply-accumulates would be made at the peak, that of integer convolutions for theirs, divided
 * by its seconds. 0 if it took no time or a peak that it needs was not measured. */
double rfx_layer_peak_share(const struct rfx_layer_row *row, const struct rfx_machine_peak *peak);

/* Draws two charts into `path`, .svg or .png. The upper one is a roofline: operations per second
 * over operations per byte (the least number of bytes moved), with a roof for integer convolutions
 * if their peak was measured. Layers without multiply-accumulates are not in the roofline. The
 * lower one shows the time of every layer. model: as the user named it. Statuses: those of
 * rfx_chart_write. */
RFX_NODISCARD enum rfx_status rfx_layer_chart(const struct rfx_layer_times *times,
                                              const struct rfx_machine_peak *peak,
                                              const char *model, const char *path,
                                              struct rfx_error *err);
#endif
