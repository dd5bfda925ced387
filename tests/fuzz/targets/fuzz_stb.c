/* Pictures that stb_image decodes: BMP, GIF, PGM, PPM, TGA, PSD, HDR, PIC. What begins as another
 * kind is read as that: the first bytes decide. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_picture(data, size);
    return 0;
}
