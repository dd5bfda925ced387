"""Makes where fuzzing of the newer kinds of pictures starts from, with Pillow and tifffile:

    make_pictures.py tests/fuzz/corpus        writes jp2, webp, and files for npy, stb and tiff
"""

import struct
import sys

import numpy as np
import tifffile
from PIL import Image

top = sys.argv[1]
numbers = np.random.default_rng(1)
pixels = np.kron(numbers.integers(0, 256, (3, 4, 4)), np.ones((5, 5, 1))).astype("u1")
colour, grey = Image.fromarray(pixels[..., :3]), Image.fromarray(pixels[..., 0])
exif = Image.Exif()
exif[274] = 6

colour.save(f"{top}/jp2/colour.jp2")
Image.fromarray(pixels).save(f"{top}/jp2/alpha.jp2", tile_size=(8, 8))
grey.save(f"{top}/jp2/stream.j2k", num_resolutions=2)
Image.fromarray(pixels[..., 0].astype("u2") * 200).save(f"{top}/jp2/deep.jp2")
colour.save(f"{top}/jp2/lossy.j2k", irreversible=True, quality_layers=[20], offset=(3, 5),
            tile_size=(9, 9))

colour.save(f"{top}/webp/lossy.webp", quality=30)
colour.save(f"{top}/webp/lossless.webp", lossless=True, exif=exif)
Image.fromarray(pixels).save(f"{top}/webp/alpha.webp", quality=30)
Image.fromarray(pixels).save(f"{top}/webp/lossless_alpha.webp", lossless=True)

for name, kind, fortran in (("bytes", "u1", False), ("words", ">u2", False), ("doubles", "<f8", True),
                            ("halves", "<f2", False)):
    array = np.moveaxis(pixels[:5, :6, :3], -1, 0).astype(kind)
    np.save(f"{top}/npy/{name}.npy", np.asfortranarray(array) if fortran else array)

for kind, bits, rows in (("rle8", 8, bytes([4, 1, 0, 3, 2, 3, 1, 0, 0, 0, 0, 2, 1, 1, 2, 2, 0, 1])),
                         ("rle4", 4, bytes([4, 0x12, 0, 4, 0x21, 0x30, 0, 0, 2, 0x33, 0, 1]))):
    palette = bytes(range(64))
    with open(f"{top}/stb/{kind}.bmp", "wb") as file:
        file.write(struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 118 + len(rows), 0, 0, 118, 40, 8, 4, 1,
                               bits, 9 - bits if bits == 8 else 2, len(rows), 0, 0, 16, 0))
        file.write(palette + rows)

stack = np.moveaxis(pixels[:6, :7, :3], -1, 0)
tifffile.imwrite(f"{top}/tiff/channels.ome.tif", stack, photometric="minisblack",
                 metadata={"axes": "CYX", "Channel": {"Name": ["a", "b", "c"]}})
tifffile.imwrite(f"{top}/tiff/slices.tif", stack, imagej=True, metadata={"axes": "ZYX"})
tifffile.imwrite(f"{top}/tiff/associated.tif", pixels[:6, :7], photometric="rgb",
                 extrasamples=["assocalpha"])
