/* Tiny hand-made networks whose geometry can be worked out on paper. */
#ifndef RFX_TESTS_SUPPORT_RANDOM_SMALL_NETS_H
#define RFX_TESTS_SUPPORT_RANDOM_SMALL_NETS_H

#include "layers/graph/graph.h"
#include "rfexec/run/model.h"
#include "tiler/plan/plan.h"

/* input(2 x h x w) -> conv "a" 3x3 s2 p1 (4) -> conv "b" 3x3 s1 p1 (3); output "b". */
struct rfx_graph *small_net_two_convs(struct rfx_memory *mem, int64_t h, int64_t w);

/* input(2 x h x w) -> conv "a" 3x3 s1 p1 (4) -> conv "b" 3x3 s1, dilated, as much padding (3). */
struct rfx_graph *small_net_dilated(struct rfx_memory *mem, int64_t h, int64_t w, int64_t dilation);

/* input(2) -> "a" conv 3x3 p1 (4) -> "b" conv 3x3 p1 (4) -> "sum" = a + b -> "c" conv 3x3 s2 p1 (3)
 * -> "pool" global mean; output "pool". Not fused, so "sum" is a node. */
struct rfx_graph *small_net_residual(struct rfx_memory *mem, int64_t h, int64_t w);

/* The same but for "sum", which is a conv 3x3 p1 (4) of b to which a is added. */
struct rfx_graph *small_net_bottleneck(struct rfx_memory *mem, int64_t h, int64_t w);

/* input(8) -> "a" conv 3x3 p1 (16) -> "b" conv 3x3 p1 (16) -> "less" max pool 8x8 s8 -> "c" conv
 * 3x3 p1 (64) -> "d" conv 3x3 p1 (64) -> "mean" global mean; output "mean". */
struct rfx_graph *small_net_two_scales(struct rfx_memory *mem, int64_t h, int64_t w);

/* "k", a constant 2 x 4 x 4 -> "mean" of it; input(2) -> "sum" = input + mean. */
struct rfx_graph *small_net_constant_mean(struct rfx_memory *mem, int64_t h, int64_t w);

/* small_net_residual with a request for plans: one thread, random access, nothing asked for. */
struct small_plan_case {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct rfx_plan_request request;
};
struct small_plan_case small_plan_case_begin(int64_t h, int64_t w);

/* A built-in network of so many pixels with such a request. */
struct small_plan_case small_plan_case_load(const char *model, const struct rfx_load_options *load);

/* The plan of the request; fails where there is none or the checker finds it unsound. */
struct rfx_plan *small_plan_case_make(const struct small_plan_case *c);

/* Whether a plan's bands have different numbers of rows, which are chosen for the one plan that was
 * found, after others were compared with the same number for all stages. */
bool small_plan_has_chosen_rows(const struct rfx_plan *plan);

/* Reads the text of a plan file, makes the plan and checks it. */
enum rfx_status small_plan_case_plan(const struct small_plan_case *c, const char *text,
                                     size_t length, struct rfx_plan **plan, struct rfx_error *err);

/* Frees, and fails when memory is left. */
void small_plan_case_end(struct small_plan_case *c);
#endif
