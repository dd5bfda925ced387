/* Lists the operators that an ONNX file uses, without converting the file. Each operator is listed
 * once, with the information whether the table of onnx_ops.c has it. For a function of the model,
 * the operators of its nodes are listed. Attributes and shapes are not checked; rfx_onnx_load does
 * that. */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_SURVEY_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_SURVEY_H

#include "rfexec/onnx/file/onnx_file.h"
#include "rfexec/onnx/file/onnx_model.h"

struct rfx_onnx_op_count {
    const char *name, *domain; /* domain "": ONNX's own */
    const char *why;           /* reason why it is not supported; NULL: it is supported */
    size_t nodes;
};

struct rfx_onnx_survey {
    struct rfx_memory *mem;
    struct rfx_onnx_files *files;
    struct rfx_onnx_model model;        /* nodes and initialisers that outputs need */
    const struct rfx_onnx_value *image; /* the first input that is not an initialiser, or NULL */
    uint64_t weight_elems;
    size_t n_ops, n_refused;       /* listed operators; operators that are not supported */
    size_t other_nodes;            /* nodes of operators beyond the 512th, which are not listed */
    size_t in_functions;           /* nodes of functions of the model, counted for each call */
    struct rfx_onnx_op_count *ops; /* by name, the refused ones first; in the model's arena */
};

/* Reads the structure of the file and lists its operators, at most 512 different ones. The caller
 * frees *out with rfx_onnx_survey_free. Cost: O(nodes * operators). Statuses: IO and those of
 * rfx_onnx_model_read. Tested by tests/unit/rfexec/onnx/import/test_onnx_survey.c. */
RFX_NODISCARD enum rfx_status rfx_onnx_survey_create(struct rfx_memory *mem, const char *path,
                                                     struct rfx_onnx_survey **out,
                                                     struct rfx_error *err);

void rfx_onnx_survey_free(struct rfx_onnx_survey *survey);
#endif
