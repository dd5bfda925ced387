/* Recognises kinds of pictures; see image_kind.h. */
#include "rfexec/image/image_kind.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "layers/core/descriptor.h"

bool rfx_image_is_tiff(const unsigned char head[4]) {
    static const char magic[][5] = {"II*\0", "MM\0*", "II+\0", "MM\0+"};
    for (size_t i = 0; i < sizeof magic / sizeof magic[0]; i++)
        if (memcmp(head, magic[i], 4) == 0) return true;
    return false;
}

static uint32_t number(const unsigned char from[4]) {
    return (uint32_t)from[3] << 24 | (uint32_t)from[2] << 16 | (uint32_t)from[1] << 8 | from[0];
}

/* Source: Microsoft's BITMAPINFOHEADER: the header's size at byte 14, the kind of compression at
 * byte 30. */
bool rfx_image_is_bmp_rle(const unsigned char head[34]) {
    enum { INFO_HEAD = 40, RLE8 = 1, RLE4 = 2 };
    uint32_t kind = number(head + 30);
    return memcmp(head, "BM", 2) == 0 && number(head + 14) >= INFO_HEAD &&
           (kind == RLE8 || kind == RLE4);
}

bool rfx_is_zarr(const char *name) {
    static const char *const files[] = {"zarr.json", ".zarray", ".zgroup", ".zattrs"};
    bool found = false;
    int folder = rfx_descriptor_keep(open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
    if (folder < 0) return false;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        found = found || faccessat(folder, files[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    (void)close(folder);
    return found;
}

bool rfx_image_is_slide(const char *name) {
    static const char *const endings[] = {".svs", ".ndpi", ".mrxs", ".scn",
                                          ".vms", ".vmu",  ".bif",  ".svslide"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t n = strlen(endings[i]);
        if (length > n && strcasecmp(name + length - n, endings[i]) == 0) return true;
    }
    return false;
}
