/* The files of shards and states in a folder, each checked by itself: what rfexec merge --status
 * reports. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_SCAN_H
#define RFX_RFEXEC_SHARDS_SHARD_SCAN_H

#include <jansson.h>

#include "rfexec/shards/shard_file.h"

enum rfx_shard_condition {
    RFX_SHARD_MISSING, /* an expected shard without a file */
    RFX_SHARD_SOUND,
    RFX_SHARD_DAMAGED,
    RFX_SHARD_OTHER /* sound, but not of the run that most files are of */
};

struct rfx_shard_item {
    char *path; /* owned */
    enum rfx_shard_condition state;
    char why[512];               /* the reason where the state is not SOUND */
    bool known;                  /* the JSON could be read: the following members are set */
    int round;                   /* of states; 0: a shard of the output */
    int64_t index, count;        /* 0, 0: merged states, or a shard made with --part-rect */
    json_t *run;                 /* "run" with the member "output" added; owned */
    json_t *about;               /* owned; may be NULL */
    struct rfx_shard_file shard; /* of the output: shape and place only */
};

struct rfx_shard_scan {
    struct rfx_memory *mem;
    const char *folder;
    int n;
    struct rfx_shard_item *items; /* sorted by name */
    json_t *plan; /* from plan.json, what 'rfexec plan --parts --json' printed; owned; NULL: there
                     is none */
};

/* Reads and checks every file that has a shard's or states' JSON beside it. A JSON without its file
 * is not listed: that shard was not completed. To be released whatever the status. IO: the folder
 * cannot be read. */
RFX_NODISCARD enum rfx_status rfx_shard_scan_read(struct rfx_memory *mem, const char *folder,
                                                  struct rfx_shard_scan *out,
                                                  struct rfx_error *err);
void rfx_shard_scan_release(struct rfx_shard_scan *scan);

/* Of the sound files of one kind, finds the run and number of shards that most of them have, and
 * marks the others as OTHER. round 0: shards of the output; merged: only states that are merged.
 * Returns a file of that run, or NULL. */
const struct rfx_shard_item *rfx_shard_scan_settle(struct rfx_shard_scan *scan, int round,
                                                   bool merged);
#endif
