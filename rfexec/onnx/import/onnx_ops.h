/* What model files may have in them, in words. */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_OPS_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_OPS_H

#include <stdio.h>

/* Writes the table of docs/operators.md: a row per operator of ONNX, by name. */
void rfx_onnx_write_operators(FILE *out);
#endif
