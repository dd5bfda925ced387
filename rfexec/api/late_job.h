/* Private: jobs on networks with late nodes (rfexec/late/late.h). The plan computes the cut
 * tensors. Behind it the late nodes run, and the model's outputs go to files and to options.write:
 * their sizes are not known before, so the caller has no arrays for them. */
#ifndef RFX_RFEXEC_API_LATE_JOB_H
#define RFX_RFEXEC_API_LATE_JOB_H

#include "rfexec/api/job.h"

/* Reads and checks the options' files against the outputs as they are declared. Statuses of
 * rfx_result_files_read. */
RFX_NODISCARD enum rfx_status rfx_late_job_read_files(struct rfx_job *job, struct rfx_error *err);

/* Returns the memory of a run beside its plan: cut tensors, late nodes and files. Outputs without a
 * file count as .npy files, so that runs of a plan may write these. SIZE_MAX: there is no memory to
 * find out. */
size_t rfx_late_job_bytes(const struct rfx_job *job);

/* The functions of a sink whose user is the job. begin: makes room for the cut tensors; IO: no file
 * can be made in the folder of one of the files. end: runs the late nodes and passes the outputs
 * on; the files are not complete yet. */
RFX_NODISCARD enum rfx_status rfx_late_job_begin(struct rfx_job *job, struct rfx_error *err);
RFX_NODISCARD enum rfx_status rfx_late_job_take(void *job, const struct rfx_end *end,
                                                struct rfx_rect rect, const struct rfx_view *view,
                                                struct rfx_error *err);
RFX_NODISCARD enum rfx_status rfx_late_job_end(struct rfx_job *job, struct rfx_error *err);

/* Frees what begin and end have made. */
void rfx_late_job_release(struct rfx_job *job);
#endif
