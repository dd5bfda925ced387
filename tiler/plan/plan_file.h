/* Plans as text that can be edited: stages, bands, strips, tiles and flags in JSON.
 *
 *     {"schema": 1, "kind": "rfexec plan", "model": "mobilenet_v2", "conv": "direct",
 *      "size": [4096, 4096], "threads": 2, "weights_by_stage": false, "in_place": true,
 *      "groups": [{"first": "features.1.0", "last": "features.1.1", "strip_cols": 128,
 *                  "strips": 4, "step_rows": 2}],
 *      "keeps_factors": [],
 *      "stages": [{"mode": "streamed", "targets": ["features.18.0"], "tiles": [1, 2],
 *                  "band_rows": 16, "tight": false, "row_by_row": false, "spilled": [],
 *                  "forgets": []},
 *                 {"mode": "whole", "targets": ["classifier.1"], "tiles": [1, 1],
 *                  "band_rows": 0, "tight": false, "row_by_row": true}],
 *      "predicted": {...}}
 *
 * Invariants: 1. "size", "threads", the two flags, "groups" (layers computed depth
 * first, from the first to the last, see layers/graph/group.h; no key: none), "keeps_factors"
 * (convolutions whose Winograd factors are packed, where they would be made while they are used; no
 * key: none) and "stages" are input; "model" and "conv" are notes, and what is "predicted" is
 * calculated anew, offsets too, which no file holds. "conv" names whose arithmetic convolutions had
 * when the plan was made: a plan must not choose bits, and is as good for another arithmetic (its
 * packed weights and scratch are sized anew), also on a processor where own kernels are missing; so
 * it is neither followed nor refused; 2. a key that does not exist, a value of another kind or out
 * of range is an error that names its place, never ignored; a stage's "spilled" names those of its
 * targets that go to a file (no key: none), "forgets" what it or an earlier stage stored and later
 * ones make again (no key: nothing);
 * 3. whether the stages make a plan of this network is decided where any plan is made
 * (rfx_plan_create), and rfx_plan_check then walks it. */
#ifndef RFX_TILER_PLAN_PLAN_FILE_H
#define RFX_TILER_PLAN_PLAN_FILE_H

#include "tiler/plan/plan.h"

#define RFX_PLAN_FILE_SCHEMA 1
#define RFX_PLAN_FILE_KIND "rfexec plan"

struct rfx_plan_file {
    struct rfx_memory *mem;
    int threads; /* 0: the file does not say */
    bool weights_by_stage, in_place;
    int n_stages;
    struct rfx_stage_spec *stages;
    int *targets;  /* of all stages */
    bool *spilled; /* per target */
    int n_groups;
    struct rfx_group_attr *groups; /* NULL: none */
    int n_keepers;
    int *keepers; /* convolutions that keep factors */
};

/* Reads a plan for the graph. MALFORMED, naming place and value (path, line or key): cannot be
 * opened, no JSON, a wrong kind or size, a key or target that does not exist, a number out of
 * range. Free with rfx_plan_file_free; the graph must outlive it. */
RFX_NODISCARD enum rfx_status rfx_plan_file_read(const struct rfx_graph *graph, const char *path,
                                                 struct rfx_plan_file **out, struct rfx_error *err);

/* The same from a text of `length` bytes; `name` replaces the path in messages. */
RFX_NODISCARD enum rfx_status rfx_plan_file_parse(const struct rfx_graph *graph, const char *text,
                                                  size_t length, const char *name,
                                                  struct rfx_plan_file **out,
                                                  struct rfx_error *err);

void rfx_plan_file_free(struct rfx_plan_file *file);

/* Makes a request ask for the plan of the file, which must outlive the request. */
void rfx_plan_file_apply(const struct rfx_plan_file *file, struct rfx_plan_request *request);

/* Writes the plan as the text of a plan file; release it with rfx_memory_release(plan->mem). */
RFX_NODISCARD enum rfx_status rfx_plan_file_text(const struct rfx_plan *plan, const char *model,
                                                 char **text, struct rfx_error *err);
#endif
