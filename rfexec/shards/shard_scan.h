/* The parts and states that lie in a folder, each looked at by itself: what rfexec merge --status
 * says follows from this list (parts_status.c). */
#ifndef RFX_RFEXEC_SHARDS_SHARD_SCAN_H
#define RFX_RFEXEC_SHARDS_SHARD_SCAN_H

#include <jansson.h>

#include "rfexec/shards/shard_file.h"

enum rfx_shard_condition {
    RFX_SHARD_MISSING, /* of an expected part: there is no file */
    RFX_SHARD_SOUND,
    RFX_SHARD_DAMAGED,
    RFX_SHARD_OTHER /* sound, but of another run than most */
};

struct rfx_shard_item {
    char *path; /* owned */
    enum rfx_shard_condition state;
    char why[512];              /* not SOUND */
    bool known;                 /* its JSON says what it is: the following counts */
    int round;                  /* of states; 0: a part of the output */
    int64_t index, count;       /* 0, 0: merged states, or a part of --part-rect */
    json_t *run;                /* with "output" in it; owned */
    json_t *about;              /* owned; may be NULL */
    struct rfx_shard_file part; /* of the output: its shape and place alone */
};

struct rfx_shard_scan {
    struct rfx_memory *mem;
    const char *folder;
    int n;
    struct rfx_shard_item *items; /* by name */
    json_t *plan; /* what 'rfexec plan --parts --json' said, from plan.json; owned; NULL: none */
};

/* Reads all files of a folder that have a JSON of parts or states beside them, to the last byte. A
 * JSON without its file is no item: that part was not completed. To be released whatever the
 * status. IO: the folder cannot be read. */
RFX_NODISCARD enum rfx_status rfx_shard_scan_read(struct rfx_memory *mem, const char *folder,
                                                  struct rfx_shard_scan *out,
                                                  struct rfx_error *err);
void rfx_shard_scan_release(struct rfx_shard_scan *scan);

/* Calls sound items of a kind that are not of the run (or count) of most of them OTHER. round 0:
 * parts of the output; merged: states that are. Returns one of the run; NULL: there is none. */
const struct rfx_shard_item *rfx_shard_scan_settle(struct rfx_shard_scan *scan, int round,
                                                   bool merged);
#endif
