/* The JSON beside the file of a part or of states, which may be anybody's. */
/* What a part has read of the image, in its JSON: {"rows": [y0, y1], "columns": [x0, x1],
 * "version", "sums": "..."; "file": [size, seconds, nanoseconds, inode]}.
 *
 * "sums" has 8 hexadecimal digits for each row, or 8 minus signs where the row has no sum;
 * "version" is that of row_sums.h. Parts of one run share rows at their borders: where two parts
 * have different sums of one version for a row, they are not of one image. "file" is the image's
 * file as it was; of several files, the last one that was written; there is none where the image is
 * no file. */
/* A georeference as JSON: what parts hand on to the output that they are merged to. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_JSON_H
#define RFX_RFEXEC_SHARDS_SHARD_JSON_H

#include <stdbool.h>

#include <jansson.h>

#include "layers/core/status.h"
#include "rfexec/image/geo/georeference.h"
#include "rfexec/image/row_sums.h"

/* "PATH.json" into name[size]. INVALID_ARGUMENT: too long. */
RFX_NODISCARD enum rfx_status rfx_shard_json_name(const char *path, char *name, size_t size,
                                                  struct rfx_error *err);

/* Reads "PATH.json"; *out: a new reference. `what` begins the messages ("part"). MALFORMED: there
 * is none, it is no regular file, longer than any that rfexec writes (what it takes in memory
 * follows from that), or no JSON. */
RFX_NODISCARD enum rfx_status rfx_shard_json_load(const char *what, const char *path, json_t **out,
                                                  struct rfx_error *err);

/* Sets "sum" to a checksum over all other members of a document. false: no memory. */
bool rfx_shard_json_seal(json_t *document);

/* Whether the document has a "sum", and it is that of its other members: nobody has changed what
 * decides the bytes of an output. */
bool rfx_shard_json_is_sealed(const json_t *document);

/* A new reference; NULL: no memory. input: the name of the image; sums: of the rectangle. */
json_t *rfx_shard_image_json(const char *input, struct rfx_rect rect,
                             const struct rfx_row_sums *sums);

/* Whether the file of `input` is the one of `picture`: of the same size, time and inode. */
bool rfx_shard_image_same_file(const json_t *picture, const char *input);

/* Whether the two have the same sums in all rows that both have read in the same columns; else the
 * first other row, in *row. What is no picture has no rows. */
bool rfx_shard_image_agrees(const json_t *a, const json_t *b, int64_t *row);

/* A new reference; NULL: it is empty, or there is no memory. Texts that are no UTF-8 are lists of
 * their bytes. */
json_t *rfx_shard_geo_json(const struct rfx_georeference *geo);

/* The georeference that the JSON has (NULL: an empty one), to be released. MALFORMED: it has none.
 */
RFX_NODISCARD enum rfx_status rfx_shard_geo_parse(struct rfx_memory *mem, const json_t *json,
                                                  struct rfx_georeference *out,
                                                  struct rfx_error *err);
#endif
