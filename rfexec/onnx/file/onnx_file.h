/* The open files of a model: the .onnx file and its external data files. */
#ifndef RFX_RFEXEC_ONNX_FILE_ONNX_FILE_H
#define RFX_RFEXEC_ONNX_FILE_ONNX_FILE_H

#include "rfexec/onnx/file/onnx_model.h"

struct rfx_onnx_files;

/* Opens the model file `path`. The caller frees the result with rfx_onnx_files_free, which has the
 * signature of rfx_graph.files_free. Statuses: IO when the file cannot be opened; MALFORMED when it
 * is empty. */
RFX_NODISCARD enum rfx_status rfx_onnx_files_open(struct rfx_memory *mem, const char *path,
                                                  struct rfx_onnx_files **out,
                                                  struct rfx_error *err);

/* Opens a model whose bytes are in the caller's memory. The bytes must stay unchanged until
 * rfx_onnx_files_free. External data files are refused, as a model in memory has no folder. */
RFX_NODISCARD enum rfx_status rfx_onnx_files_open_bytes(struct rfx_memory *mem, const void *bytes,
                                                        size_t size, struct rfx_onnx_files **out,
                                                        struct rfx_error *err);

/* Opens a model whose bytes are computed when they are read: file->make and file->maker. `name` is
 * the network's name. owner_free(owner) is called when the files are freed. If opening fails, the
 * caller still has the owner. External data files are refused. */
RFX_NODISCARD enum rfx_status rfx_onnx_files_open_made(struct rfx_memory *mem, const char *name,
                                                       const struct rfx_weight_file *file,
                                                       void *owner, void (*owner_free)(void *),
                                                       struct rfx_onnx_files **out,
                                                       struct rfx_error *err);

/* Adds one owner. The files are closed when every owner has called rfx_onnx_files_free. May be
 * called from any thread. */
void rfx_onnx_files_keep(struct rfx_onnx_files *files);

/* Removes one owner. Closes the files when this was the last owner. NULL is allowed. May be called
 * from any thread. */
void rfx_onnx_files_free(void *files);

/* Returns whether the model is in the caller's memory (rfx_onnx_files_open_bytes). */
bool rfx_onnx_files_are_bytes(const struct rfx_onnx_files *files);

/* Returns the bytes of the .onnx file. */
struct rfx_onnx_bytes rfx_onnx_files_model(const struct rfx_onnx_files *files);

/* Opens the external data file of a tensor and sets tensor->raw to the tensor's bytes in that file.
 * After resolving symbolic links the file must be in the model's folder. The model's folder is that
 * of the path by which the model was opened. If that path is a symbolic link, the folder of its
 * target is allowed too. Statuses: MALFORMED when the file is outside of the folder or the range is
 * outside of the file; UNSUPPORTED when the model is in memory. */
RFX_NODISCARD enum rfx_status rfx_onnx_files_attach(struct rfx_onnx_files *files,
                                                    struct rfx_onnx_tensor *tensor,
                                                    struct rfx_error *err);
#endif
