/* Documentation of the ONNX operators that model files may contain. */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_OPS_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_OPS_H

#include <stdio.h>

/* Writes the table of docs/operators.md: one row for each ONNX operator, sorted by name. */
void rfx_onnx_write_operators(FILE *out);
#endif
