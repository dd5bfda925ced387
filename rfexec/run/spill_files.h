/* The files of a run's spilled maps: one per map, without a name, so that nothing of them stays
 * however the process ends.
 *
 * Invariants: 1. a file is there from the first rows that are written to it to the end of the last
 * stage that reads it; 2. it takes the disk for its whole map when it is made, so that a full disk
 * is an error then and not later; 3. elements lie in it as in memory, rows x columns x channels,
 * and come back bit by bit. Nothing is allocated after rfx_spill_create. */
#ifndef RFX_RFEXEC_RUN_SPILL_FILES_H
#define RFX_RFEXEC_RUN_SPILL_FILES_H

#include "layers/core/team.h"
#include "tiler/plan/plan.h"

struct rfx_spill_files;

/* No files yet. The plan must outlive them. */
RFX_NODISCARD enum rfx_status rfx_spill_create(const struct rfx_plan *plan,
                                               struct rfx_spill_files **out, struct rfx_error *err);

/* Closes all files; NULL is fine. */
void rfx_spill_free(struct rfx_spill_files *files);

/* The folder that files are made in. Borrowed; NULL: none. */
void rfx_spill_set_folder(struct rfx_spill_files *files, const char *folder);

/* Before a run: whether there is a folder when the plan needs one, with room for the most that it
 * holds at a time. INVALID_ARGUMENT: none was given; IO. */
RFX_NODISCARD enum rfx_status rfx_spill_begin(struct rfx_spill_files *files, struct rfx_error *err);

/* Closes the files that no stage from this one on reads; stages rise. */
void rfx_spill_enter_stage(struct rfx_spill_files *files, int stage);

/* Writes rect of the node's map, which lies in the view, to its file, which is made when there is
 * none; IO: it cannot be made or written, or the disk is full. */
RFX_NODISCARD enum rfx_status rfx_spill_write(struct rfx_spill_files *files, struct rfx_team *team,
                                              int node, struct rfx_rect rect,
                                              const struct rfx_view *view, struct rfx_error *err);

/* Reads rect of the node's map from its file into the view. IO. */
RFX_NODISCARD enum rfx_status rfx_spill_fetch(struct rfx_spill_files *files, struct rfx_team *team,
                                              int node, struct rfx_rect rect,
                                              const struct rfx_view *view, struct rfx_error *err);
#endif
