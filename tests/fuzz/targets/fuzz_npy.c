/* .npy: the header by itself, which is written and read again, then as a picture. */
#include <string.h>

#include "rfexec/image/decode/npy_format.h"
#include "tests/fuzz/fuzz.h"

static void check_header(const uint8_t *data, size_t size) {
    struct rfx_npy_header header, again;
    struct rfx_error err = {""};
    unsigned char bytes[512];
    size_t count = 0;
    enum rfx_status status = rfx_npy_parse(data, size, &header, &err);
    fuzz_check_status(status, &err);
    if (status != RFX_OK) return;
    if (header.data_offset > size) fuzz_fail("data after the end");
    if (rfx_npy_format(&header.shape, RFX_TYPE_FLOAT32, bytes, sizeof bytes, &count, &err) !=
            RFX_OK ||
        rfx_npy_parse(bytes, count, &again, &err) != RFX_OK)
        fuzz_fail("a header that was read cannot be written: %s", err.text);
    if (again.shape.rank != header.shape.rank || again.data_offset != count ||
        memcmp(again.shape.dims, header.shape.dims,
               (size_t)header.shape.rank * sizeof header.shape.dims[0]) != 0)
        fuzz_fail("another shape when read again");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_header(data, size < RFX_NPY_MAX_HEADER_BYTES ? size : RFX_NPY_MAX_HEADER_BYTES);
    fuzz_picture(data, size);
    return 0;
}
