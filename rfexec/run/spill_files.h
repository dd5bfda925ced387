/* The files of a run's spilled maps: one file per map, without a name, so that no file stays
 * however the process ends.
 *
 * Invariants: 1. a file exists from the first write to it until the end of the last stage that
 * reads it; 2. a new file reserves the disk space of its whole map, so that a full disk is found at
 * that time and not later; 3. elements lie in the file as in memory, rows x columns x channels, and
 * are read back bit by bit. Nothing is allocated after rfx_spill_create. */
#ifndef RFX_RFEXEC_RUN_SPILL_FILES_H
#define RFX_RFEXEC_RUN_SPILL_FILES_H

#include "layers/core/team.h"
#include "tiler/plan/plan.h"

struct rfx_spill_files;

/* Creates the object, without any file. The plan must outlive it. */
RFX_NODISCARD enum rfx_status rfx_spill_create(const struct rfx_plan *plan,
                                               struct rfx_spill_files **out, struct rfx_error *err);

/* Closes all files; NULL is fine. */
void rfx_spill_free(struct rfx_spill_files *files);

/* Sets the folder in which files are made. Borrowed; NULL: none. */
void rfx_spill_set_folder(struct rfx_spill_files *files, const char *folder);

/* Called before a run: checks that there is a folder if the plan spills maps, with enough free
 * space for the most bytes that it spills at a time. INVALID_ARGUMENT: no folder was set; IO: the
 * folder cannot be used, or has too little free space. */
RFX_NODISCARD enum rfx_status rfx_spill_begin(struct rfx_spill_files *files, struct rfx_error *err);

/* Closes the files that neither `stage` nor a later stage reads. `stage` must not decrease. */
void rfx_spill_enter_stage(struct rfx_spill_files *files, int stage);

/* Writes rectangle `rect` of the node's map from the view to the map's file. Makes the file if it
 * does not exist. IO: the file cannot be made or written, or the disk is full. */
RFX_NODISCARD enum rfx_status rfx_spill_write(struct rfx_spill_files *files, struct rfx_team *team,
                                              int node, struct rfx_rect rect,
                                              const struct rfx_view *view, struct rfx_error *err);

/* Reads rectangle `rect` of the node's map from its file into the view. IO: the file cannot be
 * read. */
RFX_NODISCARD enum rfx_status rfx_spill_fetch(struct rfx_spill_files *files, struct rfx_team *team,
                                              int node, struct rfx_rect rect,
                                              const struct rfx_view *view, struct rfx_error *err);
#endif
