/* Words of commands; see part_words.h. */
#include "tools/parts/files/part_words.h"

#include <string.h>

enum { MOST_WORDS = 256, MOST_CHARS = 16384 };

json_t *rfx_part_words(const struct rfx_cli_run_options *options) {
    static const char *const of_one[] = {"part", "part-rect", "states", "output", "json", "parts"};
    const char *words[MOST_WORDS];
    int n =
        rfx_cli_options_words(&options->words, of_one, sizeof of_one / sizeof of_one[0], words, MOST_WORDS);
    size_t chars = 0;
    json_t *list = n <= MOST_WORDS ? json_array() : NULL;
    for (int i = 0; list != NULL && i < n; i++) {
        chars += strlen(words[i]);
        if (chars <= MOST_CHARS && json_array_append_new(list, json_string(words[i])) == 0)
            continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

void rfx_part_words_add(json_t *about, const struct rfx_cli_run_options *options) {
    json_t *words = rfx_part_words(options);
    if (about != NULL && words != NULL) (void)json_object_set_new(about, "words", words);
    json_t *states = options->part.states != NULL ? json_string(options->part.states) : NULL;
    if (about != NULL && states != NULL) (void)json_object_set_new(about, "states", states);
}
