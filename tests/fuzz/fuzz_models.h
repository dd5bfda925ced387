/* Small ONNX models of our own: where the fuzzing of models starts, and the networks of the others.
 */
#ifndef RFX_TESTS_FUZZ_FUZZ_MODELS_H
#define RFX_TESTS_FUZZ_FUZZ_MODELS_H

#include "layers/graph/graph.h"
#include "tests/support/makers/onnx_maker.h"

/* Names of the models; the last is NULL. */
extern const char *const fuzz_model_names[];

/* The model of that name as the bytes of a file: valid until the next call. */
const struct maker *fuzz_model(const char *name);

/* Path of a file of its own that holds them and never changes: open networks read their weights. */
const char *fuzz_model_path(const char *name);

/* The same, loaded for its own size into memory that is never freed. */
struct rfx_graph *fuzz_model_graph(const char *name);
#endif
