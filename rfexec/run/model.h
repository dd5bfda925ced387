/* Loading a model by file name or built-in name. */
#ifndef RFX_RFEXEC_RUN_MODEL_H
#define RFX_RFEXEC_RUN_MODEL_H

#include "layers/graph/graph.h"
#include "rfexec/run/fit_size.h"

struct rfx_load_options {
    int64_t h, w;                        /* image size; 0: as the model says (built-ins: 224) */
    struct rfx_fit_size fit;             /* of images that the network does not take as they are */
    uint64_t seed;                       /* weights of built-ins */
    enum rfx_conv_choice conv;           /* what computes convolutions */
    const struct rfx_fuse_options *fuse; /* NULL: fuse everything */
    const char *const *keep;             /* tensors that become outputs: see keep_tensors.h */
    int n_keep;
    size_t memory_bytes; /* budget of the process that loads a model file; 0: none */
};

/* Loading may always take what a process with this budget may, so that the planner can name the
 * smallest possible budget to whoever asks for too little. */
#define RFX_LOAD_LEAST_BYTES ((size_t)24 << 20)

/* Whether `model` is a built-in name (*builtin) or a file that can be read. INVALID_ARGUMENT, IO:
 * it is neither; the text says what is near. */
RFX_NODISCARD enum rfx_status rfx_model_find(const char *model, bool *builtin,
                                             struct rfx_error *err);

/* Loads `model` for one image size: a built-in name, or else the path of an .onnx file. The graph
 * is finished (const). Statuses: UNSUPPORTED and MALFORMED name node, op, opset and reason. */
RFX_NODISCARD enum rfx_status rfx_model_load(struct rfx_memory *mem, const char *model,
                                             const struct rfx_load_options *options,
                                             struct rfx_graph **out, struct rfx_error *err);

/* What both of these end with: cuts outputs for `fit`, adds those that are kept, says where
 * Winograd's tiles begin, and fuses. The graph's layers are all there, as the model has them. */
RFX_NODISCARD enum rfx_status rfx_model_finish(struct rfx_graph *graph,
                                               const struct rfx_load_options *options,
                                               struct rfx_error *err);

/* Reads an ONNX file: folds shape arithmetic for this size, leaves weights in the file, which stays
 * open until the graph is freed. BUDGET_IMPOSSIBLE: loading takes more than memory_bytes (a budget
 * below RFX_LOAD_LEAST_BYTES counts as that much). */
RFX_NODISCARD enum rfx_status rfx_onnx_load(struct rfx_memory *mem, const char *path,
                                            const struct rfx_load_options *options,
                                            struct rfx_graph **out, struct rfx_error *err);

/* The same of a file's bytes in memory, which must stay as they are until the graph is freed; they
 * count in every budget, though nothing is copied. External data are UNSUPPORTED. */
RFX_NODISCARD enum rfx_status rfx_onnx_load_bytes(struct rfx_memory *mem, const void *bytes,
                                                  size_t size,
                                                  const struct rfx_load_options *options,
                                                  struct rfx_graph **out, struct rfx_error *err);

struct rfx_onnx_files;

/* The same of files that are open (onnx_file.h), which the graph keeps open: one model is loaded
 * for any number of sizes. External data files may be added to `files`, so only one thread at a
 * time may load from them. */
RFX_NODISCARD enum rfx_status rfx_onnx_load_files(struct rfx_memory *mem,
                                                  struct rfx_onnx_files *files,
                                                  const struct rfx_load_options *options,
                                                  struct rfx_graph **out, struct rfx_error *err);

/* The channels of an ONNX file's image where it is declared (1, rows, columns, channels); 0: it is
 * not, or the file cannot be read. */
int64_t rfx_onnx_channels_last_of(struct rfx_memory *mem, const char *path);

/* Writes an unfused or fused graph as ONNX (opset 17); symbolic height and width where no node
 * fixes them. Written to a temporary name and renamed when complete. */
RFX_NODISCARD enum rfx_status rfx_onnx_export(const struct rfx_graph *graph, const char *path,
                                              struct rfx_error *err);

/* A built-in network: name, one line about it, and its builder. */
struct rfx_builtin {
    const char *name;
    const char *summary;
};

/* The table of built-ins; *count receives its length. "mobilenet_v2:0.5" style suffixes set the
 * width multiplier. */
const struct rfx_builtin *rfx_builtin_list(int *count);

/* Whether `name` (with or without suffix) is a built-in. */
bool rfx_builtin_exists(const char *name);

/* Builds a built-in network with weights from the seed (He initialisation). */
RFX_NODISCARD enum rfx_status rfx_builtin_build(struct rfx_memory *mem, const char *name,
                                                const struct rfx_load_options *options,
                                                struct rfx_graph **out, struct rfx_error *err);
#endif
