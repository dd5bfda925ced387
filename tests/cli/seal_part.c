/* Sets the "sum" of a part's JSON anew, for tests that change what it says: seal_part PART.npy */
#include <stdio.h>
#include <string.h>

#include "rfexec/shards/shard_file.h"
#include "rfexec/shards/shard_json.h"

int main(int argc, char **argv) {
    char name[RFX_SHARD_PATH_CHARS];
    struct rfx_error err = {""};
    json_t *document = NULL;
    if (argc != 2 || rfx_shard_json_name(argv[1], name, sizeof name, &err) != RFX_OK) return 2;
    bool done = rfx_shard_json_load("part", argv[1], &document, &err) == RFX_OK &&
                rfx_shard_json_seal(document) &&
                json_dump_file(document, name, JSON_INDENT(2)) == 0;
    if (!done) (void)fprintf(stderr, "%s: %s\n", name, err.text);
    json_decref(document);
    return done ? 0 : 1;
}
