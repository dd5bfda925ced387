/* Joins the outputs of a detector's head into one, so that one output holds all values of every
 * candidate.
 *
 *   head    outputs of the network (their names, shapes)                  joined
 *   yunet   cls_S 1xNx1, obj_S 1xNx1, bbox_S 1xNx4, kps_S 1xNx10,         1 x all N x 16
 *           for S = 8, 16, 32
 *   rfb     scores 1xNx2, boxes 1xNx4                                     1 x N x 6
 *
 * A CenterNet's outputs (join_centernet.h) are joined as those of a described head
 * (join_detector.h).
 *
 * The values of a candidate follow each other in the order of the table, the candidates in the
 * order of the levels. rfexec/answers/box_head.h says what the values mean. rfx_split_heads makes
 * the joined output a join of maps, so it is computed row by row like other heads. */
#ifndef RFX_RFEXEC_RUN_JOIN_HEADS_H
#define RFX_RFEXEC_RUN_JOIN_HEADS_H

#include "layers/graph/graph.h"

/* Adds an output "detections" (or "detections#2", ...) if the outputs are those of one of these
 * heads; its stored.head is the name of the head. only: the outputs of the head are no outputs any
 * more; else all outputs stay. Does nothing for other networks. Call it before rfx_graph_finish.
 * UNSUPPORTED: at least half of a YuNet's outputs are there, but not all (the text names the
 * missing ones), or one has another shape. */
RFX_NODISCARD enum rfx_status rfx_graph_join_heads(struct rfx_graph *graph, bool only,
                                                   struct rfx_error *err);

/* ---- for join_detector.c ---- */

enum { RFX_JOIN_NAME = 32 };

/* Returns the number of the output with this name, or -1. */
int rfx_join_find_output(const struct rfx_graph *graph, const char *name);

/* Writes "base", or "base#2" and so on if a node or an output has this name. */
void rfx_join_free_name(const struct rfx_graph *graph, const char *base, char name[RFX_JOIN_NAME]);

/* Removes the output with this name, if there is one. */
void rfx_join_remove_output(struct rfx_graph *graph, const char *name);

/* Concatenates n tensors. Statuses: as rfx_graph_add. */
RFX_NODISCARD enum rfx_status rfx_join_concat(struct rfx_graph *graph, const char *base, int axis,
                                              const int *in, int n, int *out,
                                              struct rfx_error *err);

/* Sets *node to the values of an output. The output itself becomes a copy of them, if it is of
 * float32: a stream hands out a copy row by row, but stores a tensor that other nodes read too. */
RFX_NODISCARD enum rfx_status rfx_join_take_output(struct rfx_graph *graph, int k, int *node,
                                                   struct rfx_error *err);

/* Adds the output "detections" (or "detections#2", ...) of a head with this name. */
RFX_NODISCARD enum rfx_status rfx_join_add_output(struct rfx_graph *graph, int node,
                                                  const char *head, struct rfx_error *err);
#endif
