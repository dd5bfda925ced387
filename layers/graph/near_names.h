/* Names close to a misspelt one, for messages. */
#ifndef RFX_LAYERS_GRAPH_NEAR_NAMES_H
#define RFX_LAYERS_GRAPH_NEAR_NAMES_H

#include "layers/graph/graph.h"

#define RFX_NEAR_NAMES_TEXT 160 /* characters that the text of rfx_graph_near_names needs */

/* Single-character edits between two words without regard to case; both are cut to 48 characters.
 * O(product of the lengths). */
int rfx_edit_distance(const char *a, const char *b);

/* The one of several names that a misspelt word is closest to: start with {.word = word} and show
 * it all of them. `name` stays NULL when more than half of the word's letters, or more than three,
 * would have to change; what begins with the word is close. */
struct rfx_nearest {
    const char *word, *name;
    int edits;
};
void rfx_nearest_consider(struct rfx_nearest *nearest, const char *candidate);

/* Writes "; near names: a, b, c" into text: at most three names or aliases of nodes that are close
 * to `name` or lie below it; an empty text when there are none. */
void rfx_graph_near_names(const struct rfx_graph *graph, const char *name,
                          char text[RFX_NEAR_NAMES_TEXT]);
#endif
