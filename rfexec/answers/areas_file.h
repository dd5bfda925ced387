/* Reads areas (areas.h) from GeoJSON (RFC 7946): a FeatureCollection, a Feature, or a Polygon or
 * MultiPolygon alone, in the coordinates of the answers.
 *
 * The text is read strictly, and piece by piece: memory is that of the text, the areas and the
 * edges, and one token of the text. Altitudes and unknown members are ignored. A member "crs" must
 * name the coordinates' system. Geometries of other types are refused. */
#ifndef RFX_RFEXEC_ANSWERS_AREAS_FILE_H
#define RFX_RFEXEC_ANSWERS_AREAS_FILE_H

#include "layers/graph/graph.h"
#include "rfexec/answers/answer_text.h"
#include "rfexec/answers/areas.h"

/* Number and name of an area. */
struct rfx_area_title {
    int64_t number; /* of the feature in the file, from 1 */
    int64_t name;   /* where its name begins in `names`; -1: it has none */
};

struct rfx_area_list { /* zeros: nothing is read */
    struct rfx_memory *mem;
    struct rfx_areas *areas;
    struct rfx_area_title *titles; /* of each area */
    char *names;                   /* UTF-8; each name is followed by a 0 */
    size_t bytes;                  /* of memory, at most */
};

/* Returns an upper bound of the memory for reading and holding the areas of a file; 0: it cannot be
 * read. *areas: an upper bound of their number. */
size_t rfx_area_list_bytes(const char *path, size_t *areas);

/* Reads the areas of the file options->within for a map whose pixels lie where `text` says. An
 * area's name is its property "name", else "name" in "classification", else "id", if it is a text
 * or a whole number. MALFORMED: not such a file; the text names the line, the feature and the
 * member. INVALID_ARGUMENT: no regular file of less than 2 GiB, or another coordinate system.
 * BUDGET_IMPOSSIBLE: it needs more than options->most_bytes. IO, OUT_OF_MEMORY. Release the list,
 * after a failure too. */
RFX_NODISCARD enum rfx_status rfx_area_list_read(struct rfx_area_list *list, struct rfx_memory *mem,
                                                 const struct rfx_answer_options *options,
                                                 const struct rfx_answer_text *text,
                                                 const struct rfx_tensor *map,
                                                 struct rfx_error *err);

/* Returns the name of area k, or NULL. */
const char *rfx_area_name(const struct rfx_area_list *list, int64_t k);

void rfx_area_list_release(struct rfx_area_list *list);
#endif
