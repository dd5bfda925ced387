/* The JSON beside the file of a part or of states, which may be anybody's. */
#ifndef RFX_TOOLS_PARTS_PART_JSON_H
#define RFX_TOOLS_PARTS_PART_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "layers/core/status.h"

/* "PATH.json" into name[size]. INVALID_ARGUMENT: too long. */
RFX_NODISCARD enum rfx_status rfx_part_json_name(const char *path, char *name, size_t size,
                                                 struct rfx_error *err);

/* Reads "PATH.json"; *out: a new reference. `what` begins the messages ("part"). MALFORMED: there
 * is none, it is no regular file, longer than any that rfexec writes (what it takes in memory
 * follows from that), or no JSON. */
RFX_NODISCARD enum rfx_status rfx_part_json_load(const char *what, const char *path, json_t **out,
                                                 struct rfx_error *err);

/* Sets "sum" to a checksum over all other members of a document. false: no memory. */
bool rfx_part_json_seal(json_t *document);

/* Whether the document has a "sum", and it is that of its other members: nobody has changed what
 * decides the bytes of an output. */
bool rfx_part_json_is_sealed(const json_t *document);
#endif
