/* What a node computes, counted: multiply-adds, elements, calls; where its data comes from is
 * cost.c's business. Private to the cost model. */
#ifndef RFX_TILER_COST_COST_NODES_H
#define RFX_TILER_COST_COST_NODES_H

#include "tiler/cost/cost.h"

/* How the area of a node is made: rows x cols in all, by so many steps down and across. */
struct rfx_cost_area {
    double rows, cols, down, across;
};

/* Fills `fact` of a node that is no group; a reduction takes in `taken` of its input, in the graph
 * of a part less than the whole. */
void rfx_cost_describe(const struct rfx_graph *graph, const struct rfx_node *node,
                       struct rfx_rect taken, struct rfx_cost_node *fact);

/* Adds what a node, or a group's nodes, compute of an area; without bytes. */
void rfx_cost_add_node(const struct rfx_cost_model *model, int node,
                       const struct rfx_cost_area *area, struct rfx_cost_counts *counts);
void rfx_cost_add_group(const struct rfx_cost_model *model, const struct rfx_group_attr *group,
                        const struct rfx_cost_group *fact, const struct rfx_cost_area *area,
                        struct rfx_cost_counts *counts);

/* Picoseconds that its nodes take at least for an area. */
double rfx_cost_least_of_group(const struct rfx_cost_model *model,
                               const struct rfx_group_attr *group,
                               const struct rfx_cost_area *area);

/* Adds bytes of maps that a node reads or writes and that were last touched so many bytes ago: free
 * in a core's own caches. */
void rfx_cost_add_bytes(const struct rfx_cost_model *model, int node, double bytes, double distance,
                        struct rfx_cost_counts *counts);

/* The same of constants, which are read while multiply-adds go on. */
void rfx_cost_add_weights(const struct rfx_cost_model *model, double bytes, double distance,
                          struct rfx_cost_counts *counts);
#endif
