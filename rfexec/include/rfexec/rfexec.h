/* rfexec: runs convolutional networks on images of any size inside a fixed number of bytes and
 * returns exactly the bits of the whole-image run.
 *
 *     struct rfx_memory *mem = rfx_memory_create(0);
 *     rfx_image_open(mem, "image.png", &image_options, &image, &err);
 *     struct rfx_source_traits traits = rfx_image_traits(image);
 *     rfx_model_load(mem, "net.onnx", &(struct rfx_load_options){traits.h, traits.w}, &graph,
 * &err); rfx_plan_create(graph, &(struct rfx_plan_request){.source = traits, .threads = 2,
 *                     .memory_bytes = 64 << 20}, &plan, &err);
 *     rfx_session_create(graph, plan, &session, &err);
 *     rfx_session_run(session, image, NULL, NULL, &report, &err);
 *     rfx_session_output_read(session, 0, 0, n, values);
 *
 * Each step takes const values and returns a new one; all are freed with their rfx_*_free.
 *
 * Threads: rfx_memory is safe from any thread; a finished graph and a plan are const and may be
 * shared by any number of sessions and plans in the making; an image and a session are used by one
 * thread at a time. There is no global state to initialise; docs/host_process.md says what else
 * the library does to the process that it runs in. */
#ifndef RFX_RFEXEC_H
#define RFX_RFEXEC_H

#include "layers/graph.h"
#include "layers/memory.h"
#include "layers/status.h"
#include "rf_analysis/analysis.h"
#include "rfexec/fingerprint.h"
#include "rfexec/image_source.h"
#include "rfexec/model.h"
#include "rfexec/output_stream.h"
#include "rfexec/session.h"
#include "tiler/plan.h"
#include "tiler/splits.h"

#define RFX_VERSION "0.1.0"
#endif
