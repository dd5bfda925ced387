/* The open files of a model: the .onnx file and its external data files. */
#ifndef RFX_RFEXEC_ONNX_FILE_ONNX_FILE_H
#define RFX_RFEXEC_ONNX_FILE_ONNX_FILE_H

#include "rfexec/onnx/file/onnx_model.h"

struct rfx_onnx_files;

/* Opens `path`. IO: cannot be opened; MALFORMED: empty. The result frees with rfx_onnx_files_free,
 * whose signature is that of rfx_graph.files_free. */
RFX_NODISCARD enum rfx_status rfx_onnx_files_open(struct rfx_memory *mem, const char *path,
                                                  struct rfx_onnx_files **out,
                                                  struct rfx_error *err);

/* The same of a file's bytes in memory, which must stay as they are until the free. External data
 * are refused: there is no folder that they could lie in. */
RFX_NODISCARD enum rfx_status rfx_onnx_files_open_bytes(struct rfx_memory *mem, const void *bytes,
                                                        size_t size, struct rfx_onnx_files **out,
                                                        struct rfx_error *err);

/* Adds one owner: the files close when every owner has called rfx_onnx_files_free. From any thread.
 */
void rfx_onnx_files_keep(struct rfx_onnx_files *files);

/* Closes the files when this was the last owner; NULL is fine. From any thread. */
void rfx_onnx_files_free(void *files);

/* Whether the .onnx file is bytes in the caller's memory. */
bool rfx_onnx_files_are_bytes(const struct rfx_onnx_files *files);

/* The bytes of the .onnx file. */
struct rfx_onnx_bytes rfx_onnx_files_model(const struct rfx_onnx_files *files);

/* Points tensor->raw into its external file, which must lie in the model's folder, its symbolic
 * links resolved: the folder that the model is named in, or where it is a link itself the one that
 * it lies in. MALFORMED: a location outside of it, or a range outside of the file; UNSUPPORTED: the
 * model is in memory. */
RFX_NODISCARD enum rfx_status rfx_onnx_files_attach(struct rfx_onnx_files *files,
                                                    struct rfx_onnx_tensor *tensor,
                                                    struct rfx_error *err);
#endif
