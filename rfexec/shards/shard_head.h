/* The joined head of a detector in the identity of a run (shard_identity.h), so that merge can
 * decode the boxes of parts and load the network of states.
 *
 *     "head"  {"output": name of the joined output, "name": of the head,
 *              and if a file describes it: "file": the description as in a head file,
 *              "cells": [[rows, columns], ...] of its levels,
 *              "values": [of a candidate, ...] of its outputs}
 *
 * A network without a joined head has no such member. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_HEAD_H
#define RFX_RFEXEC_SHARDS_SHARD_HEAD_H

#include <jansson.h>

#include "rfexec/run/model.h"
#include "rfexec/shards/shard_file.h"

/* Returns a new JSON value, or NULL: no head is joined, or there is no memory. */
json_t *rfx_shard_head_json(const struct rfx_graph *graph);

/* Sets the members of *load that join the head of an identity; *detector must live as long as
 * *load. MALFORMED: the description is damaged. */
RFX_NODISCARD enum rfx_status rfx_shard_head_load(const json_t *run, struct rfx_detector *detector,
                                                  struct rfx_load_options *load,
                                                  struct rfx_error *err);

/* Sets stored->head and stored->detector for the output that the shards are of. asked: name or file
 * of a head, or NULL. A file replaces the description by which the outputs were joined; its
 * outputs, axes and numbers of anchors must be the same. *stored borrows *detector and the JSON of
 * the shard. INVALID_ARGUMENT: asked is a file and the shards have no such head, or it is another
 * one. MALFORMED: the shard's description is damaged. Statuses of rfx_head_file_read. */
RFX_NODISCARD enum rfx_status rfx_shard_head_declare(
    struct rfx_memory *mem, const struct rfx_shard_file *shard, const char *asked,
    struct rfx_detector *detector, struct rfx_stored *stored, struct rfx_error *err);
#endif
