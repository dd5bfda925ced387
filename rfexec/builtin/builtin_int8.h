/* Built-in networks on bytes (8 bits), such as "mobilenet_v2:int8": the network without ":int8",
 * quantised as by 'rfexec quantize'.
 *
 * The scales of weights are computed from the seeded weights; the ranges of tensors are a table
 * (builtin_ranges.h), so that they are the same on every machine. The network is the one that is
 * read from the file which 'rfexec export' writes for this name, but that file is only made as far
 * as it is read: weights are computed, as those of other built-in networks are. */
#ifndef RFX_RFEXEC_BUILTIN_BUILTIN_INT8_H
#define RFX_RFEXEC_BUILTIN_BUILTIN_INT8_H

#include "rfexec/run/model.h"

/* Returns whether a name ends with ":int8". */
bool rfx_builtin_is_int8(const char *name);

/* As rfx_builtin_build, for a name that ends with ":int8". options->h and w are not 0.
 * INVALID_ARGUMENT: the network has no ranges, or the seed is not that of the ranges. */
RFX_NODISCARD enum rfx_status rfx_builtin_int8_build(struct rfx_memory *mem, const char *name,
                                                     const struct rfx_load_options *options,
                                                     struct rfx_graph **out, struct rfx_error *err);

/* Writes such a network as an ONNX file, for images of options->h x w or, if it can be said, of any
 * size. */
RFX_NODISCARD enum rfx_status rfx_builtin_int8_export(struct rfx_memory *mem, const char *name,
                                                      const struct rfx_load_options *options,
                                                      const char *path, struct rfx_error *err);
#endif
