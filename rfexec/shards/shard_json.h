/* The JSON files of shards and states, and the members that both have. These files may come from
 * anybody, so everything that is read is checked.
 *
 * "picture": which rows of the image were read: {"rows": [y0, y1], "columns": [x0, x1], "version",
 * "sums": "...", "file": [size, seconds, nanoseconds, inode]}. "sums" has 8 hexadecimal digits for
 * each row, or 8 minus signs for a row without a checksum; "version" is the version in row_sums.h.
 * Shards of one run share rows at their borders. If two shards have different checksums of the same
 * version for a row, they did not read the same image. "file" describes the image file (of several
 * files, the one written last). It is absent when the image is not a file.
 *
 * "georeference" and "image_geo": the georeference of an output or image: {"scale": [3], "points":
 * [6 n], "matrix": [16], "keys": [4 n], "params": [...], "texts": "", "no_data": "", "metadata":
 * "", "pixel_um": [2]}. Unknown members are absent. A text that is not UTF-8 is a list of its
 * bytes. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_JSON_H
#define RFX_RFEXEC_SHARDS_SHARD_JSON_H

#include <stdbool.h>

#include <jansson.h>

#include "layers/core/status.h"
#include "rfexec/image/geo/geo_tiff.h"
#include "rfexec/image/geo/georeference.h"
#include "rfexec/image/row_sums.h"
#include "rfexec/output/answer_options.h"
#include "rfexec/output/fingerprint.h"

/* Writes the name "PATH.json" to name[size]. INVALID_ARGUMENT: the name is too long. */
RFX_NODISCARD enum rfx_status rfx_shard_json_name(const char *path, char *name, size_t size,
                                                  struct rfx_error *err);

/* Reads the file "PATH.json"; *out is a new reference. `what` is the first word of messages
 * ("part"). MALFORMED: there is no such file, it is not a regular file, it is not JSON, or it is
 * longer than any such file of rfexec. The limit of the length bounds the memory for reading. */
RFX_NODISCARD enum rfx_status rfx_shard_json_load(const char *what, const char *path, json_t **out,
                                                  struct rfx_error *err);

/* Seals the document and writes it, indented and followed by the text `end`, to "PATH.json".
 * Returns OUT_OF_MEMORY when `document` is NULL because an earlier allocation failed. */
RFX_NODISCARD enum rfx_status rfx_shard_json_write(struct rfx_memory *mem, const char *path,
                                                   json_t *document, const char *end,
                                                   struct rfx_error *err);

/* Writes a 128-bit hash as 32 hexadecimal digits. */
void rfx_shard_json_hash(uint64_t high, uint64_t low, char out[RFX_FINGERPRINT_CHARS]);

/* Sets the member "sum" to a checksum of all other members. Returns false when there is no memory.
 */
bool rfx_shard_json_seal(json_t *document);

/* Returns whether the member "sum" is the checksum of the other members. If not, somebody has
 * changed the document. */
bool rfx_shard_json_is_sealed(const json_t *document);

/* Returns a new JSON object "picture" for the image named `input`, of which `rect` was read. NULL:
 * no memory. */
json_t *rfx_shard_image_json(const char *input, struct rfx_rect rect,
                             const struct rfx_row_sums *sums);

/* Returns whether the file `input` still has the size, time and inode stored in `picture`. */
bool rfx_shard_image_same_file(const json_t *picture, const char *input);

/* Returns whether the checksums of two "picture" objects agree in all rows that both have read in
 * the same columns. If not, sets *row to the first row that differs. NULL means that no rows were
 * read.
 */
bool rfx_shard_image_agrees(const json_t *a, const json_t *b, int64_t *row);

/* Returns a georeference as a new JSON object. NULL: the georeference is empty, or there is no
 * memory.
 */
json_t *rfx_shard_geo_json(const struct rfx_georeference *geo);

/* Reads a georeference; json NULL gives an empty one. The caller releases *out. MALFORMED: a member
 * is not as described above. */
RFX_NODISCARD enum rfx_status rfx_shard_geo_parse(struct rfx_memory *mem, const json_t *json,
                                                  struct rfx_georeference *out,
                                                  struct rfx_error *err);

/* Returns a new JSON array of where the pixels of a network's image lie in its file: orientation (1
 * if as_stored), rows and columns of the file, first row and column that are read. */
json_t *rfx_shard_source_json(const struct rfx_geo_source *source, bool as_stored);

/* The reverse, with the georeference of the file. The caller releases out->geo. MALFORMED: a number
 * is missing or out of range. */
RFX_NODISCARD enum rfx_status rfx_shard_source_parse(struct rfx_memory *mem, const json_t *geo,
                                                     const json_t *place,
                                                     struct rfx_geo_source *out,
                                                     struct rfx_error *err);

/* Returns a new JSON array of where an output's pixels lie in the picture, or NULL where that is
 * not known. */
json_t *rfx_shard_grid_json(const struct rfx_answer_place *place);

/* The reverse; json NULL: not known. MALFORMED: it is no such array. */
RFX_NODISCARD enum rfx_status rfx_shard_grid_parse(const json_t *json, struct rfx_answer_place *out,
                                                   struct rfx_error *err);
#endif
