/* Levenshtein distance and the nearest names of a graph's nodes; see near_names.h. */
#include "layers/graph/near_names.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_LENGTH = 48, NEAR_EDITS = 3, SHOWN = 3 };

static int min3(int a, int b, int c) {
    int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

static int lower(char c) {
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

int rfx_edit_distance(const char *a, const char *b) {
    int row[NAME_LENGTH + 1];
    int n = (int)strnlen(b, NAME_LENGTH);
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; i <= NAME_LENGTH && a[i - 1] != '\0'; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int change = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
            diagonal = row[j];
            row[j] = min3(change, row[j] + 1, row[j - 1] + 1);
        }
    }
    return row[n];
}

/* Returns the distance of a candidate from the name: 1 if it begins with the name, else the number
 * of edits. More than NEAR_EDITS is not near. */
static int distance(const char *candidate, const char *name) {
    if (candidate == NULL || name[0] == '\0') return NEAR_EDITS + 1;
    if (strncasecmp(candidate, name, strlen(name)) == 0) return 1;
    return rfx_edit_distance(candidate, name);
}

void rfx_nearest_consider(struct rfx_nearest *nearest, const char *candidate) {
    int edits = distance(candidate, nearest->word);
    int most = (int)strnlen(nearest->word, NAME_LENGTH) / 2;
    if (edits > (most < NEAR_EDITS ? most : NEAR_EDITS)) return;
    if (nearest->name != NULL && edits >= nearest->edits) return;
    nearest->name = candidate;
    nearest->edits = edits;
}

void rfx_graph_near_names(const struct rfx_graph *graph, const char *name,
                          char text[RFX_NEAR_NAMES_TEXT]) {
    size_t used = 0;
    int shown = 0;
    text[0] = '\0';
    for (int edits = 0; edits <= NEAR_EDITS; edits++)
        for (int i = 0; i < graph->n_nodes && shown < SHOWN; i++) {
            const struct rfx_node *node = &graph->nodes[i];
            bool by_name = distance(node->name, name) == edits;
            if (!by_name && distance(node->alias, name) != edits) continue;
            const char *near = by_name ? node->name : node->alias;
            int n = snprintf(text + used, RFX_NEAR_NAMES_TEXT - used, "%s%.40s",
                             used == 0 ? "; near names: " : ", ", near);
            if (n < 0 || (size_t)n >= RFX_NEAR_NAMES_TEXT - used) return;
            used += (size_t)n;
            shown++;
        }
}
