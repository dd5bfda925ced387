/* Lists the operators of a file; see onnx_survey.h. */
#include "rfexec/onnx/import/onnx_survey.h"

#include <stdlib.h>
#include <string.h>

#include "rfexec/late/late_ops.h"
#include "rfexec/onnx/import/onnx_import.h"

enum { MOST_OPS = 512 }; /* rows of the list: a hostile file may have as many names as nodes */

static const char *why_refused(const struct rfx_onnx_node *node) {
    if (rfx_onnx_is_branching(node)) return NULL;
    bool known = rfx_onnx_op_is_of(node->op, node->domain);
    if (!rfx_onnx_is_own_domain(node->domain) && !known) return "an operator of another domain";
    for (size_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].kind == RFX_ONNX_ATTR_GRAPH) return "it has a sub-graph";
    if (rfx_onnx_op_find(node->op) != NULL && known) return NULL;
    if (rfx_late_op_find(node->op) != NULL) return NULL; /* NonMaxSuppression: always late */
    return rfx_onnx_op_is_sized_by_values(node->op) ? "the size of its result depends on the data"
                                                    : "not supported";
}

/* Adds a node to its operator's row. Nodes of one operator that are refused for different reasons
 * have rows of their own. */
static void count_node(struct rfx_onnx_survey *survey, const struct rfx_onnx_node *node) {
    const char *why = why_refused(node);
    size_t i = 0;
    for (; i < survey->n_ops; i++) {
        const struct rfx_onnx_op_count *op = &survey->ops[i];
        if (op->why == why && strcmp(op->name, node->op) == 0 &&
            strcmp(op->domain, node->domain) == 0)
            break;
    }
    if (i == MOST_OPS) {
        survey->other_nodes++;
        return;
    }
    if (i == survey->n_ops) {
        survey->ops[survey->n_ops++] =
            (struct rfx_onnx_op_count){.name = node->op, .domain = node->domain, .why = why};
        survey->n_refused += why != NULL;
    }
    survey->ops[i].nodes++;
}

/* Counts nodes. Instead of a call, counts the nodes of the function that it calls. */
static enum rfx_status count_nodes(struct rfx_onnx_survey *survey,
                                   const struct rfx_onnx_node *nodes, size_t count, int depth,
                                   struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (size_t i = 0; status == RFX_OK && i < count; i++) {
        struct rfx_onnx_function *f = rfx_onnx_function_of(&survey->model, &nodes[i]);
        if (f == NULL) {
            count_node(survey, &nodes[i]);
        } else if (depth < RFX_ONNX_INLINED_DEPTH && survey->in_functions < RFX_ONNX_MOST_INLINED) {
            status = rfx_onnx_read_function(&survey->model, f, err);
            if (status != RFX_OK) return status;
            survey->in_functions += f->body->n_nodes + 1;
            status = count_nodes(survey, f->body->nodes, f->body->n_nodes, depth + 1, err);
        }
    }
    return status;
}

static int compare(const void *left, const void *right) {
    const struct rfx_onnx_op_count *a = left, *b = right;
    if ((a->why == NULL) != (b->why == NULL)) return a->why == NULL ? 1 : -1;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : strcmp(a->domain, b->domain);
}

static enum rfx_status count_all(struct rfx_onnx_survey *survey, struct rfx_error *err) {
    const struct rfx_onnx_model *model = &survey->model;
    for (size_t i = 0; i < model->n_tensors; i++)
        survey->weight_elems += (uint64_t)model->tensors[i].elems;
    survey->ops = rfx_arena_alloc(model->arena, MOST_OPS, sizeof *survey->ops);
    if (survey->ops == NULL)
        return rfx_memory_fail(survey->mem, "operators", MOST_OPS * sizeof *survey->ops, err);
    enum rfx_status status = count_nodes(survey, model->nodes, model->n_nodes, 0, err);
    if (status != RFX_OK) return status;
    qsort(survey->ops, survey->n_ops, sizeof *survey->ops, compare);
    if (!rfx_onnx_first_image(model, &survey->image))
        return rfx_memory_fail(survey->mem, "names", model->n_tensors, err);
    return RFX_OK;
}

enum rfx_status rfx_onnx_survey_create(struct rfx_memory *mem, const char *path,
                                       struct rfx_onnx_survey **out, struct rfx_error *err) {
    struct rfx_onnx_survey *survey = rfx_memory_calloc(mem, 1, sizeof *survey);
    if (survey == NULL) return rfx_memory_fail(mem, "survey", sizeof *survey, err);
    survey->mem = mem;
    enum rfx_status status = rfx_onnx_files_open(mem, path, &survey->files, err);
    if (status == RFX_OK) {
        struct rfx_onnx_bytes file = rfx_onnx_files_model(survey->files);
        status = rfx_onnx_model_read(mem, file.file, file.size, false, &survey->model, err);
    }
    if (status == RFX_OK) status = count_all(survey, err);
    if (status == RFX_OK)
        *out = survey;
    else
        rfx_onnx_survey_free(survey);
    return status;
}

void rfx_onnx_survey_free(struct rfx_onnx_survey *survey) {
    if (survey == NULL) return;
    rfx_onnx_model_free(&survey->model);
    rfx_onnx_files_free(survey->files);
    rfx_memory_release(survey->mem, survey);
}
