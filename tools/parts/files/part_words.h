/* The command that made a part, as its JSON has it: for whoever makes the parts that are missing.
 */
#ifndef RFX_TOOLS_PARTS_PART_WORDS_H
#define RFX_TOOLS_PARTS_PART_WORDS_H

#include <jansson.h>

#include "tools/cli/options.h"

/* The words of the command but for those of one part (--part, --part-rect, --states, -o, --json;
 * --parts of plan): a new list. NULL: they are long, or a word is no UTF-8. */
json_t *rfx_part_words(const struct rfx_cli_run_options *options);

/* Adds to "about" of a part: "words", and "states", the file of --states. */
void rfx_part_words_add(json_t *about, const struct rfx_cli_run_options *options);
#endif
