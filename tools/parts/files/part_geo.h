/* A georeference as JSON: what parts hand on to the output that they are merged to. */
#ifndef RFX_TOOLS_PARTS_PART_GEO_H
#define RFX_TOOLS_PARTS_PART_GEO_H

#include <jansson.h>

#include "rfexec/image/geo/georeference.h"

/* A new reference; NULL: it is empty, or there is no memory. Texts that are no UTF-8 are lists of
 * their bytes. */
json_t *rfx_part_geo_json(const struct rfx_georeference *geo);

/* The georeference that the JSON has (NULL: an empty one), to be released. MALFORMED: it has none.
 */
RFX_NODISCARD enum rfx_status rfx_part_geo_parse(struct rfx_memory *mem, const json_t *json,
                                                 struct rfx_georeference *out,
                                                 struct rfx_error *err);
#endif
