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
 * Keys that the reader follows:
 * - "size", "threads", "weights_by_stage", "in_place";
 * - "groups": layers that are computed depth first, from "first" to "last" (layers/graph/group.h);
 *   no key: no groups;
 * - "keeps_factors": Winograd convolutions whose transformed weights are stored instead of computed
 *   during the run; no key: none;
 * - "stages": the stages in order. "tight": the new rows of a step lie in staging rows that all
 * nodes share. "spilled": those targets of the stage that are written to files; no key: none.
 * "forgets": maps that this or an earlier stage has stored and that later stages compute again; no
 * key: none.
 *
 * Keys that the reader does not follow: "model" and "conv" are notes, and everything in "predicted"
 * is computed again. "conv" names the convolution arithmetic for which the plan was made. A plan
 * must not choose the bits of a result, and it is valid for every arithmetic, since its packed
 * weights and workspace are sized again. So "conv" is neither followed nor refused.
 *
 * Invariants: 1. an unknown key, and a value of a wrong type or out of range, is an error that
 * names its place; nothing is ignored; 2. a file holds no offsets: buffers are placed again; 3. the
 * reader does not decide whether the stages make a plan of this network: rfx_plan_create decides
 * it, as for every plan, and rfx_plan_check then walks the plan. */
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
    int *keepers; /* convolutions whose transformed weights are stored */
};

/* Reads a plan for the graph. MALFORMED, naming place and value (path, line or key): cannot be
 * opened, no JSON, a wrong kind or size, a key or target that does not exist, a number out of
 * range. Free with rfx_plan_file_free; the graph must outlive it. */
RFX_NODISCARD enum rfx_status rfx_plan_file_read(const struct rfx_graph *graph, const char *path,
                                                 struct rfx_plan_file **out, struct rfx_error *err);

/* Reads a plan from a text of `length` bytes; `name` replaces the path in messages. */
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
