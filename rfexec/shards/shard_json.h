/* The JSON beside the files of shards and states, and members that both have. Anybody may have
 * written these files: everything that is read is checked.
 *
 * "picture": which rows of the image were read: {"rows": [y0, y1], "columns": [x0, x1], "version",
 * "sums": "...", "file": [size, seconds, nanoseconds, inode]}. "sums" has 8 hexadecimal digits for
 * each row, or 8 minus signs where the row has no checksum; "version" is that of row_sums.h. Shards
 * of one run share rows at their borders: where two shards have different checksums of one version
 * for a row, they have not read one image. "file" describes the image file (of several, the one
 * written last); it is left out where the image is not a file.
 *
 * "georeference" and "image_geo": where an output or image lies in the world: {"scale": [3],
 * "points": [6 n], "matrix": [16], "keys": [4 n], "params": [...], "texts": "", "no_data": "",
 * "metadata": "", "pixel_um": [2]}, members that are not known left out. A text that is not UTF-8
 * is a list of its bytes. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_JSON_H
#define RFX_RFEXEC_SHARDS_SHARD_JSON_H

#include <stdbool.h>

#include <jansson.h>

#include "layers/core/status.h"
#include "rfexec/image/geo/georeference.h"
#include "rfexec/image/row_sums.h"

/* Writes "PATH.json" into name[size]. INVALID_ARGUMENT: too long. */
RFX_NODISCARD enum rfx_status rfx_shard_json_name(const char *path, char *name, size_t size,
                                                  struct rfx_error *err);

/* Reads "PATH.json"; *out is a new reference. `what` begins the messages ("part"). MALFORMED: there
 * is no such file, it is not a regular file, it is not JSON, or it is longer than any that rfexec
 * writes (which limits the memory that reading takes). */
RFX_NODISCARD enum rfx_status rfx_shard_json_load(const char *what, const char *path, json_t **out,
                                                  struct rfx_error *err);

/* Seals the document and writes it, indented, as "PATH.json", followed by `end`. document NULL: an
 * earlier allocation failed, OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_shard_json_write(struct rfx_memory *mem, const char *path,
                                                   json_t *document, const char *end,
                                                   struct rfx_error *err);

/* Sets "sum" to a checksum over all other members of a document. false: no memory. */
bool rfx_shard_json_seal(json_t *document);

/* Whether the document has a "sum" that is the checksum of its other members, so that nobody has
 * changed them. */
bool rfx_shard_json_is_sealed(const json_t *document);

/* The "picture" of an image named `input`, of which `rect` was read. A new reference; NULL: no
 * memory. */
json_t *rfx_shard_image_json(const char *input, struct rfx_rect rect,
                             const struct rfx_row_sums *sums);

/* Whether the file of `input` still has the size, time and inode that "picture" says. */
bool rfx_shard_image_same_file(const json_t *picture, const char *input);

/* Whether the checksums agree in all rows that both have read in the same columns. Otherwise *row
 * is the first row that differs. NULL is fine: no rows. */
bool rfx_shard_image_agrees(const json_t *a, const json_t *b, int64_t *row);

/* A new reference; NULL: the georeference is empty, or there is no memory. */
json_t *rfx_shard_geo_json(const struct rfx_georeference *geo);

/* Reads a georeference, to be released (NULL: an empty one). MALFORMED: a member is not as
 * described above. */
RFX_NODISCARD enum rfx_status rfx_shard_geo_parse(struct rfx_memory *mem, const json_t *json,
                                                  struct rfx_georeference *out,
                                                  struct rfx_error *err);
#endif
