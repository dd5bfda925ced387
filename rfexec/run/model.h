/* Loads a model by file name or built-in name. */
#ifndef RFX_RFEXEC_RUN_MODEL_H
#define RFX_RFEXEC_RUN_MODEL_H

#include "layers/graph/graph.h"
#include "rfexec/output/detector.h"
#include "rfexec/run/fit_size.h"

struct rfx_load_options {
    int64_t h, w;              /* image size; 0: the size in the model (built-ins: 224) */
    struct rfx_fit_size fit;   /* padding of images whose size the network does not take */
    uint64_t seed;             /* seed for the weights of built-ins */
    enum rfx_conv_choice conv; /* the code that computes convolutions */
    enum rfx_int8_choice int8; /* the arithmetic of 8-bit networks */
    bool dequantize; /* outputs of bytes with a known scale become float32; model files only */
    const struct rfx_fuse_options *fuse; /* NULL: fuse everything */
    const char *const *keep; /* names of tensors that become outputs: see keep_tensors.h */
    int n_keep;
    unsigned keep_how; /* RFX_KEEP_COPIES, RFX_KEEP_KNOWN (keep_tensors.h) */
    bool class_map;    /* the map of a class-activation map becomes an output: see class_map.h */
    bool join_heads;   /* outputs of a detector's head are joined to one more (join_heads.h) */
    /* Description of the head whose outputs are joined in place of those that join_heads.h knows;
     * NULL: none. */
    const struct rfx_detector *detector;
    bool head_only; /* joined outputs are no outputs any more ("only" of both headers) */
    /* Nodes whose sizes depend on data, and all behind them, become graph->late; false: a model
     * with such nodes is refused. */
    bool late;
    bool join_cuts;      /* with late: the cut tensors are joined to one output, without late nodes
                            (join_cuts.h); nothing of other models */
    size_t memory_bytes; /* budget of the process that loads a model file; 0: none */
};

/* Loading may always use the memory of a process with this budget, even if the given budget is
 * smaller. So the planner can still name the smallest possible budget to a user who gave too
 * little. */
#define RFX_LOAD_LEAST_BYTES ((size_t)24 << 20)

/* Sets *builtin to whether `model` is a built-in name rather than a readable file.
 * INVALID_ARGUMENT, IO: it is neither; the text lists near names. */
RFX_NODISCARD enum rfx_status rfx_model_find(const char *model, bool *builtin,
                                             struct rfx_error *err);

/* Loads `model` for one image size. `model` is a built-in name, or else the path of an .onnx file.
 * The graph is finished and const. UNSUPPORTED and MALFORMED: the text names node, op, opset and
 * reason. */
RFX_NODISCARD enum rfx_status rfx_model_load(struct rfx_memory *mem, const char *model,
                                             const struct rfx_load_options *options,
                                             struct rfx_graph **out, struct rfx_error *err);

/* Finishes a graph that holds all layers of a built-in or a file: cuts the padding of options->fit
 * off the outputs, joins the outputs of a detector's head, adds the tensors options->keep and the
 * class map as outputs, sets where Winograd's tiles begin, and fuses nodes. */
RFX_NODISCARD enum rfx_status rfx_model_finish(struct rfx_graph *graph,
                                               const struct rfx_load_options *options,
                                               struct rfx_error *err);

/* Loads an ONNX file. Folds the shape arithmetic for this size. The weights stay in the file, which
 * stays open until the graph is freed. BUDGET_IMPOSSIBLE: loading needs more than memory_bytes (a
 * budget below RFX_LOAD_LEAST_BYTES counts as that much). */
RFX_NODISCARD enum rfx_status rfx_onnx_load(struct rfx_memory *mem, const char *path,
                                            const struct rfx_load_options *options,
                                            struct rfx_graph **out, struct rfx_error *err);

/* Like rfx_onnx_load, from the bytes of a file in memory. The bytes must stay unchanged until the
 * graph is freed. Nothing is copied, but every budget counts the bytes. External data are
 * UNSUPPORTED. */
RFX_NODISCARD enum rfx_status rfx_onnx_load_bytes(struct rfx_memory *mem, const void *bytes,
                                                  size_t size,
                                                  const struct rfx_load_options *options,
                                                  struct rfx_graph **out, struct rfx_error *err);

struct rfx_onnx_files;

/* Like rfx_onnx_load, from open files (onnx_file.h), which the graph keeps open. So one model can
 * be loaded for any number of sizes. Loading may add external data files to `files`: only one
 * thread at a time may load from them. */
RFX_NODISCARD enum rfx_status rfx_onnx_load_files(struct rfx_memory *mem,
                                                  struct rfx_onnx_files *files,
                                                  const struct rfx_load_options *options,
                                                  struct rfx_graph **out, struct rfx_error *err);

/* Returns the number of channels of an ONNX file's image if the image is declared as (1, rows,
 * columns, channels). Returns 0 if it is not, or if the file cannot be read. */
int64_t rfx_onnx_channels_last_of(struct rfx_memory *mem, const char *path);

/* Writes a fused or unfused graph as an ONNX file (opset 17). Height and width are symbolic unless
 * a node fixes them. The file is written under a temporary name and renamed when it is complete. */
RFX_NODISCARD enum rfx_status rfx_onnx_export(const struct rfx_graph *graph, const char *path,
                                              struct rfx_error *err);

/* A built-in network: its name and one line about it. */
struct rfx_builtin {
    const char *name;
    const char *summary;
};

/* Returns the table of built-ins; *count receives its length. A suffix such as in
 * "mobilenet_v2:0.5" sets the width multiplier; ":int8" is the network on bytes, for those that the
 * table has with this suffix. */
const struct rfx_builtin *rfx_builtin_list(int *count);

/* Returns whether `name` (with or without suffix) is a built-in. */
bool rfx_builtin_exists(const char *name);

/* Builds a built-in network with weights generated from the seed (He initialisation). */
RFX_NODISCARD enum rfx_status rfx_builtin_build(struct rfx_memory *mem, const char *name,
                                                const struct rfx_load_options *options,
                                                struct rfx_graph **out, struct rfx_error *err);

/* Writes a built-in network as an ONNX file, as rfx_onnx_export. Only in builds with built-in
 * networks. */
RFX_NODISCARD enum rfx_status rfx_builtin_export(struct rfx_memory *mem, const char *name,
                                                 const struct rfx_load_options *options,
                                                 const char *path, struct rfx_error *err);
#endif
