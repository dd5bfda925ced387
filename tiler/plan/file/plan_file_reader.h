/* Reading what plan files are made of: numbers, flags and names, with errors that name file and
 * place. For plan_file.c. Statuses: MALFORMED. */
#ifndef RFX_TILER_PLAN_FILE_PLAN_FILE_READER_H
#define RFX_TILER_PLAN_FILE_PLAN_FILE_READER_H

#include <jansson.h>

#include "tiler/plan/file/plan_file.h"

enum { RFX_PLAN_PLACE_CHARS = 96, RFX_PLAN_MAX_COUNT = 1 << 30 };

struct rfx_plan_reader {
    const struct rfx_graph *graph;
    const char *name; /* of the file */
    struct rfx_plan_file *file;
    int n_targets;
    struct rfx_error *err;
};

/* "file: place: what". */
RFX_NODISCARD RFX_PRINTF(3, 4) enum rfx_status
    rfx_plan_refuse(const struct rfx_plan_reader *r, const char *place, const char *format, ...);

/* A value as the file has it, shortened. */
const char *rfx_plan_shown(const json_t *value, char text[48]);

/* Refuses keys that are not in the list, which ends with NULL. */
RFX_NODISCARD enum rfx_status rfx_plan_check_keys(const struct rfx_plan_reader *r,
                                                  const char *place, json_t *object,
                                                  const char *const *keys);

/* An integer of [lo, hi]; the key missing: *out stays. */
RFX_NODISCARD enum rfx_status rfx_plan_read_count(const struct rfx_plan_reader *r,
                                                  const char *place, const json_t *value,
                                                  int64_t lo, int64_t hi, int64_t *out);

/* The same for a member "key" of the object at `place`. */
RFX_NODISCARD enum rfx_status rfx_plan_read_member(const struct rfx_plan_reader *r,
                                                   const char *place, const json_t *object,
                                                   const char *key, int64_t lo, int64_t hi,
                                                   int64_t *out);

RFX_NODISCARD enum rfx_status rfx_plan_read_flag(const struct rfx_plan_reader *r, const char *place,
                                                 const json_t *object, const char *key, bool *out);

/* Two counts [a, b]; the key missing: they stay. */
RFX_NODISCARD enum rfx_status rfx_plan_read_pair(const struct rfx_plan_reader *r, const char *place,
                                                 const json_t *object, const char *key, int64_t *a,
                                                 int64_t *b);

/* A tensor of the network by its name. */
RFX_NODISCARD enum rfx_status rfx_plan_read_tensor(const struct rfx_plan_reader *r,
                                                   const char *place, const json_t *value,
                                                   int *node);
#endif
