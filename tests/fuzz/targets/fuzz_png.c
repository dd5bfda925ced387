/* PNG pictures. A changed chunk is refused for its check sum before anything looks into it: inputs
 * are read as they are and, where sums are wrong, once more with right ones. */
#include <stdbool.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { MOST_BYTES = 1 << 14, SIGNATURE = 8, FRAME = 12 }; /* of a chunk: length, type, sum */

/* The sum of ISO 3309, bit by bit. */
static uint32_t crc(const uint8_t *bytes, size_t count) {
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
    }
    return ~sum;
}

/* Whether a sum was wrong; all that there are of whole chunks are right then. */
static bool mend_sums(uint8_t *bytes, size_t size) {
    bool mended = false;
    for (size_t at = SIGNATURE; at + FRAME <= size;) {
        const uint8_t *b = bytes + at;
        size_t length = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
        if (length > size - at - FRAME) break;
        uint32_t sum = crc(b + 4, length + 4);
        const uint8_t right[4] = {(uint8_t)(sum >> 24), (uint8_t)(sum >> 16), (uint8_t)(sum >> 8),
                                  (uint8_t)sum};
        mended = mended || memcmp(b + 8 + length, right, sizeof right) != 0;
        memcpy(bytes + at + 8 + length, right, sizeof right);
        at += FRAME + length;
    }
    return mended;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t copy[MOST_BYTES];
    fuzz_picture(data, size);
    if (size > MOST_BYTES) return 0;
    if (size > 0) memcpy(copy, data, size);
    if (mend_sums(copy, size)) fuzz_picture(copy, size);
    return 0;
}
