/* Tells which operators of a graph can be written as ONNX nodes. The function that writes a graph,
 * rfx_onnx_export, is declared in session/model.h. */
#ifndef RFX_RFEXEC_ONNX_EXPORT_ONNX_EXPORT_H
#define RFX_RFEXEC_ONNX_EXPORT_ONNX_EXPORT_H

#include "layers/graph/graph.h"

bool rfx_onnx_export_has(enum rfx_op op);
#endif
