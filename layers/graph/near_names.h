/* Finds names that are close to a misspelt one, for messages. */
#ifndef RFX_LAYERS_GRAPH_NEAR_NAMES_H
#define RFX_LAYERS_GRAPH_NEAR_NAMES_H

#include "layers/graph/graph.h"

#define RFX_NEAR_NAMES_TEXT 160 /* characters for the text of rfx_graph_near_names */

/* Returns the number of single-character edits between two words, ignoring case. Both words are cut
 * to 48 characters. O(product of the lengths). */
int rfx_edit_distance(const char *a, const char *b);

/* Search for the name that is closest to a misspelt word. Start with {.word = word} and call
 * rfx_nearest_consider for each candidate; `name` is then the closest one. `name` stays NULL if
 * every candidate needs more than three edits, or more edits than half of the word's letters. A
 * candidate that begins with the word counts as one edit. */
struct rfx_nearest {
    const char *word, *name;
    int edits;
};
void rfx_nearest_consider(struct rfx_nearest *nearest, const char *candidate);

/* Writes "; near names: a, b, c" into text: at most three names or aliases of nodes that are close
 * to `name` or begin with it. Writes an empty text if there are none. */
void rfx_graph_near_names(const struct rfx_graph *graph, const char *name,
                          char text[RFX_NEAR_NAMES_TEXT]);
#endif
