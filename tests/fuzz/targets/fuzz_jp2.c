/* JPEG 2000 pictures, in boxes and as codestreams; corpus: make_pictures.py. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_picture(data, size);
    return 0;
}
