/* Finds and checks the files of shards and states in a folder, for rfexec merge --status. Each file
 * is checked independently of the others. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_SCAN_H
#define RFX_RFEXEC_SHARDS_SHARD_SCAN_H

#include <jansson.h>

#include "rfexec/shards/shard_file.h"

enum rfx_shard_condition {
    RFX_SHARD_MISSING, /* an expected shard without a file */
    RFX_SHARD_SOUND,
    RFX_SHARD_DAMAGED,
    RFX_SHARD_OTHER /* undamaged, but of another run than most files */
};

struct rfx_shard_item {
    char *path; /* owned */
    enum rfx_shard_condition state;
    char why[512];               /* reason when the state is not SOUND */
    bool known;                  /* the JSON file could be read, so the members below are set */
    int round;                   /* of states; 0: a shard of the output */
    int64_t index, count;        /* 0, 0: merged states, or a shard made with --part-rect */
    json_t *run;                 /* "run" with the member "output" added; owned */
    json_t *about;               /* owned; may be NULL */
    struct rfx_shard_file shard; /* for shards of the output; only shape and place are set */
};

struct rfx_shard_scan {
    struct rfx_memory *mem;
    const char *folder;
    int n;
    struct rfx_shard_item *items; /* sorted by name */
    json_t *plan; /* content of plan.json, printed by 'rfexec plan --parts --json'; owned; NULL: no
                     such file */
};

/* Reads and checks every file that has the JSON file of a shard or of states. A JSON file alone is
 * not listed, because its shard was not completed. The caller releases *out, whatever the status.
 * IO: the folder cannot be read. */
RFX_NODISCARD enum rfx_status rfx_shard_scan_read(struct rfx_memory *mem, const char *folder,
                                                  struct rfx_shard_scan *out,
                                                  struct rfx_error *err);
void rfx_shard_scan_release(struct rfx_shard_scan *scan);

/* Finds the run and the number of shards that most undamaged files of one kind have. Marks the
 * other files of this kind as OTHER. Returns a file of that run, or NULL. round: kind of files, 0
 * for shards of the output; merged: only merged states. */
const struct rfx_shard_item *rfx_shard_scan_settle(struct rfx_shard_scan *scan, int round,
                                                   bool merged);
#endif
