"""Pictures as Pillow and tifffile write them: what reaches the network must be their samples.

The network is a 1x1 convolution that gives each channel back, so outputs are inputs, to the bit.
"""

import struct
import subprocess

import numpy as np
import onnx
import tifffile
from onnx import TensorProto, helper, numpy_helper
from PIL import Image, ImageOps
from picture_checks import check

AS_STORED = ["--scale", "1", "--mean", "0", "--std", "1"]


def make_network(channels):
    """Gives its input back."""
    shape = [1, channels, "h", "w"]
    weights = np.eye(channels, dtype=np.float32).reshape(channels, channels, 1, 1)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "k"], ["y"])], "same",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(weights, "k")])
    path = f"same{channels}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8),
              path)
    return path


def read(program, picture, channels, *args):
    """What reaches a network of so many channels, or None, and what was said."""
    done = subprocess.run([program, "run", make_network(channels), picture, *AS_STORED, *args, "-o",
                           "reached.npy"], capture_output=True, text=True, check=False)
    return np.load("reached.npy")[0] if done.returncode == 0 else None, done.stderr


def scaled(pixels):
    """Samples on the scale that pictures have."""
    return pixels / np.float32(257) if pixels.dtype == "u2" else pixels.astype("f4")


def reaches(program, what, picture, wanted, *args, says=""):
    """The picture's samples are `wanted` (channels, rows, columns), and the messages say so."""
    got, words = read(program, picture, len(wanted), *args)
    check(got is not None and np.array_equal(got, wanted), f"{what}: {words.strip()}")
    check(says in words, f"{what}: '{says}' is not in '{words.strip()}'")


def refused(program, what, picture, channels, says, *args):
    got, words = read(program, picture, channels, *args)
    check(got is None and says in words, f"{what}: not refused with '{says}': {words.strip()}")


def check_pages(program):
    """Channels, slices and times of OME-TIFF, ImageJ and tifffile's own files."""
    numbers = np.random.default_rng(3)
    for kind in ("u1", "u2", "f4"):
        for options in ({}, {"tile": (16, 16)}, {"compression": "zlib", "rowsperstrip": 8},
                        {"bigtiff": True}):
            what = f"pages of {kind}, {options}"
            pixels = numbers.uniform(0, 250, (3, 37, 53)).astype(kind)
            for name, more in (("pages.ome.tif", {}), ("pages.tif", {"imagej": True}),
                               ("pages.tif", {})):
                if "imagej" in more and "bigtiff" in options:
                    continue
                for axes in ("CYX", "ZYX", "TYX"):
                    tifffile.imwrite(name, pixels, photometric="minisblack",
                                     metadata={"axes": axes}, **options, **more)
                    if axes == "CYX":
                        reaches(program, f"{what}, {axes}", name, scaled(pixels))
                    else:
                        refused(program, f"{what}, {axes}", name, 3, f"axes {axes}")
                    reaches(program, f"{what}, {axes}, chosen", name, scaled(pixels[[2, 0]]),
                            "--channels", "3,1")
                    reaches(program, f"{what}, {axes}, one", name, scaled(pixels[1:2]), "--page",
                            "1")
            tifffile.imwrite("pages.tif", pixels, photometric="minisblack", metadata=None, **options)
            reaches(program, what, "pages.tif", scaled(pixels), says="read as bands")


def divided(pixels):
    """Straight colours of premultiplied ones: to the nearest, 0 where alpha is 0."""
    if pixels.dtype.kind == "f":
        alpha = pixels[..., -1:]
        return np.where(alpha == 0, np.float32(0), pixels[..., :-1] / np.where(alpha == 0, 1, alpha))
    top = np.iinfo(pixels.dtype).max
    wide = pixels.astype(np.int64)
    alpha = np.maximum(wide[..., -1:], 1)
    straight = np.minimum((wide[..., :-1] * top + alpha // 2) // alpha, top)
    return np.where(pixels[..., -1:] == 0, 0, straight).astype(pixels.dtype)


def planes(pixels):
    return scaled(np.ascontiguousarray(np.moveaxis(pixels, -1, 0)))


def check_alpha(program):
    """PNG, palettes and TIFF with alpha, straight and premultiplied."""
    numbers = np.random.default_rng(4)
    told = "1 of 4 bands is alpha and dropped"
    for kind in ("u1", "u2", "f4"):
        pixels = numbers.uniform(0, 255 if kind == "u1" else 60000, (24, 31, 4)).astype(kind)
        pixels[3:9, :20, 3] = 0
        if kind == "f4":
            pixels /= np.float32(60000)
        for options in ({}, {"compression": "zlib"}, {"planarconfig": "separate"},
                        {"tile": (16, 16), "byteorder": ">"}):
            for name in ("unassalpha", "assocalpha"):
                what = f"{name} TIFF of {kind}, {options}"
                tifffile.imwrite("alpha.tif", np.moveaxis(pixels, -1, 0) if "planarconfig" in options
                                 else pixels, photometric="rgb", extrasamples=[name], **options)
                wanted = divided(pixels) if name == "assocalpha" else pixels[..., :3]
                reaches(program, what, "alpha.tif", planes(wanted), says=told)
                reaches(program, what, "alpha.tif", planes(pixels))
                reaches(program, what, "alpha.tif", planes(pixels[..., 3:]), "--channels", "4")
    pixels = numbers.integers(0, 256, (24, 31, 4)).astype("u1")
    Image.fromarray(pixels).save("alpha.png")
    reaches(program, "RGBA PNG", "alpha.png", planes(pixels[..., :3]), says=told)
    reaches(program, "RGBA PNG", "alpha.png", planes(pixels))
    reaches(program, "RGBA PNG", "alpha.png", planes(pixels[..., [3, 0]]), "--channels", "4,1")
    palette = Image.fromarray(pixels[..., :3]).quantize(16)
    palette.save("palette.png", transparency=3)
    wanted = np.asarray(Image.open("palette.png").convert("RGBA"))
    reaches(program, "palette PNG", "palette.png", planes(wanted[..., :3]), says=told)
    reaches(program, "palette PNG", "palette.png", planes(wanted))
    Image.fromarray(pixels[..., :2], "LA").save("grey.png")
    reaches(program, "LA PNG", "grey.png", planes(pixels[..., :2]))
    reaches(program, "LA PNG", "grey.png", planes(pixels[..., :1]), says="1 of 2 bands is alpha")


def check_orientation(program):
    numbers = np.random.default_rng(5)
    pixels = numbers.integers(0, 256, (24, 31, 3)).astype("u1")
    exif = Image.Exif()
    for orientation in range(1, 9):
        exif[274] = orientation
        Image.fromarray(pixels).save("turned.png", exif=exif)
        wanted = np.asarray(ImageOps.exif_transpose(Image.open("turned.png")))
        reaches(program, f"PNG, orientation {orientation}", "turned.png", planes(wanted))
        reaches(program, f"PNG, orientation {orientation}", "turned.png", planes(pixels),
                "--no-orient")


def check_files_of_bands(program):
    """A file for each band, of several kinds; other sizes and depths are refused."""
    numbers = np.random.default_rng(6)
    pixels = numbers.integers(0, 256, (5, 40, 52)).astype("u1")
    tifffile.imwrite("b1.tif", pixels[0])
    tifffile.imwrite("b2.tif", pixels[1], compression="zlib", tile=(16, 16))
    Image.fromarray(pixels[2]).save("b3.png")
    Image.fromarray(np.moveaxis(pixels[2:], 0, -1)).save("b345.png")
    reaches(program, "three files", "bands:b1.tif,b2.tif,b3.png", scaled(pixels[:3]))
    reaches(program, "five bands", "bands:b1.tif,b2.tif,b345.png", scaled(pixels))
    reaches(program, "chosen bands", "bands:b1.tif,b2.tif,b345.png", scaled(pixels[[4, 1]]),
            "--channels", "5,2")
    reaches(program, "a region", "bands:b1.tif,b2.tif,b3.png", scaled(pixels[:3, 3:30, 7:50]),
            "--region", "3,7,30,50")
    reaches(program, "a band twice", "bands:b1.tif,b1.tif", scaled(pixels[[0, 0]]))
    floats = numbers.normal(0, 1, (3, 40, 52)).astype("f4")
    for k in range(3):
        tifffile.imwrite(f"f{k}.tif", floats[k], compression="zlib" if k == 1 else None)
    np.save("f1.npy", floats[1:2])
    reaches(program, "floats", "bands:f0.tif,f1.tif,f2.tif", floats)
    reaches(program, "floats and .npy", "bands:f0.tif,f1.npy,f2.tif", floats)
    tifffile.imwrite("other.tif", pixels[0, :20, :26])
    tifffile.imwrite("deep.tif", pixels[0].astype("u2"))
    refused(program, "another size", "bands:b1.tif,other.tif", 2,
            "b1.tif is 40 x 52 pixels, other.tif is 20 x 26")
    refused(program, "another depth", "bands:b1.tif,deep.tif", 2,
            "b1.tif has samples of 8 bits, deep.tif of 16")
    refused(program, "a file that is not there", "bands:b1.tif,none.tif", 2, "none.tif")
    refused(program, "too few", "bands:b1.tif,b2.tif", 3, "2 of 2 bands are read")
    done = subprocess.run([program, "run", make_network(2), "--bands-from", "b1.tif,b2.tif",
                           *AS_STORED, "-o", "reached.npy"], capture_output=True, check=False)
    same = done.returncode == 0 and np.array_equal(np.load("reached.npy")[0], scaled(pixels[:2]))
    check(same, "--bands-from")


def check_kinds(program):
    """CMYK photographs, arrays of every type and order, half floats."""
    numbers = np.random.default_rng(7)
    smooth = np.kron(numbers.integers(0, 256, (5, 7, 4)), np.ones((8, 8, 1))).astype("u1")
    for options in ({"quality": 90}, {"quality": 60, "progressive": True, "subsampling": 2}):
        Image.fromarray(smooth, "CMYK").save("inks.jpg", **options)
        wanted = np.asarray(Image.open("inks.jpg").convert("RGB"))
        reaches(program, f"CMYK JPEG, {options}", "inks.jpg", planes(wanted),
                says="CMYK is converted")
    for kind in ("u1", "i1", "<u2", ">u2", "<i2", ">i2", "<i4", ">u4", "<f2", ">f2", ">f4", "<f8",
                 ">f8", "<f4"):
        values = (numbers.normal(0, 99, (3, 41, 67)) if kind[-2] == "f" else
                  numbers.integers(np.iinfo(kind).min, np.iinfo(kind).max, (3, 41, 67), kind[-2:],
                                   endpoint=True))
        array = values.astype(kind)
        samples = array.astype(kind[-2:]) if kind[-2] == "u" else array
        wanted = scaled(samples) if kind[-2:] in ("u1", "u2") else array.astype("f4")
        np.save("array.npy", array)
        reaches(program, f"npy of {kind}", "array.npy", wanted)
        reaches(program, f"npy of {kind}, a region", "array.npy", wanted[:, 3:30, 5:60], "--region",
                "3,5,30,60")
        reaches(program, f"npy of {kind}, chosen", "array.npy", wanted[[2, 0]], "--channels", "3,1")
        np.save("array.npy", np.asfortranarray(array))
        reaches(program, f"npy of {kind}, Fortran", "array.npy", wanted)
        reaches(program, f"npy of {kind}, Fortran, chosen", "array.npy", wanted[[2, 0]],
                "--channels", "3,1", "--no-orient")
    half = np.concatenate([np.arange(65536, dtype="u2").view("f2")] * 3).reshape(3, 256, 256)
    half[np.isnan(half)] = 1
    for options in ({}, {"compression": "zlib"}, {"planarconfig": "separate"}, {"byteorder": ">"}):
        pixels = half if "planarconfig" in options else np.moveaxis(half, 0, -1)
        tifffile.imwrite("half.tif", pixels, photometric="rgb", **options)
        got, words = read(program, "half.tif", 3)
        # infinities times the network's zeros are no numbers
        finite = np.isfinite(half).all(axis=0)
        check(got is not None and np.array_equal(got[:, finite], half.astype("f4")[:, finite]),
              f"half floats, {options}: {words}")


def write_bmp(name, rows, width, height, bits, kind, palette=b""):
    offset = 54 + len(palette)
    head = struct.pack("<2sIHHIIiiHHIIiiII", b"BM", offset + len(rows), 0, 0, offset, 40, width,
                       height, 1, bits, kind, len(rows), 0, 0, len(palette) // 4, 0)
    with open(name, "wb") as file:
        file.write(head + palette + rows)


def rle_row(row, bits):
    """Runs, and where neighbours differ the indices as they are."""
    out, at = b"", 0
    while at < len(row):
        n = 1
        while at + n < len(row) and n < 255 and row[at + n] == row[at]:
            n += 1
        if n == 1 and len(row) - at >= 4:
            literal = [int(v) for v in row[at:at + 5]]
            n = len(literal)
            if bits == 4:
                literal += [0] * (n % 2)
                literal = [literal[i] << 4 | literal[i + 1] for i in range(0, len(literal), 2)]
            out += bytes([0, n]) + bytes(literal) + bytes(len(literal) % 2)
        else:
            out += bytes([n, int(row[at]) * (17 if bits == 4 else 1)])
        at += n
    return out


def check_bmp(program):
    """From the top, and run-length encoded, with what the encoding passes over."""
    numbers = np.random.default_rng(8)
    pixels = numbers.integers(0, 256, (12, 16, 3)).astype("u1")
    write_bmp("top.bmp", pixels[:, :, ::-1].tobytes(), 16, -12, 24, 0)
    reaches(program, "BMP from the top", "top.bmp", planes(pixels))
    for bits in (4, 8):
        colours = numbers.integers(0, 256, (1 << bits, 4)).astype("u1")
        colours[:, 3] = 0
        indices = numbers.integers(0, 1 << bits, (23, 37))
        indices[:, 9:20] = indices[:, 9:10]
        rows = b"".join(rle_row(row, bits) + b"\0\0" for row in indices[::-1])
        write_bmp("rle.bmp", rows + b"\0\1", 37, 23, bits, 1 if bits == 8 else 2, colours.tobytes())
        wanted = colours[indices][:, :, 2::-1]
        check(np.array_equal(np.asarray(Image.open("rle.bmp").convert("RGB")), wanted), "Pillow's")
        reaches(program, f"BMP, RLE{bits}", "rle.bmp", planes(wanted))
        # row 0 from the last: a move over 5 columns, then a run, then up by 2 rows, then the end
        write_bmp("rle.bmp", bytes([0, 2, 5, 0, 4, 0x11, 0, 2, 0, 2, 3, 0x11, 0, 1]), 37, 23, bits,
                  1 if bits == 8 else 2, colours.tobytes())
        moved = np.zeros((23, 37), int)
        moved[22, 5:9] = moved[20, 9:12] = 17 if bits == 8 else 1
        reaches(program, f"BMP, RLE{bits}, moves", "rle.bmp", planes(colours[moved][:, :, 2::-1]))
        write_bmp("rle.bmp", bytes([38, 0, 0, 1]), 37, 23, bits, 1 if bits == 8 else 2,
                  colours.tobytes())
        refused(program, "a run too long", "rle.bmp", 3, "a run leaves the picture")


def check_webp(program):
    """Lossy, lossless, with alpha and turned, as Pillow decodes them."""
    numbers = np.random.default_rng(9)
    pixels = np.kron(numbers.integers(0, 256, (7, 9, 4)), np.ones((11, 7, 1))).astype("u1")
    for options in ({"lossless": True}, {"quality": 80}, {"quality": 20, "method": 6},
                    {"lossless": True, "exact": True, "method": 6}):
        Image.fromarray(pixels[..., :3]).save("picture.webp", **options)
        wanted = np.asarray(Image.open("picture.webp").convert("RGB"))
        reaches(program, f"WebP, {options}", "picture.webp", planes(wanted))
        Image.fromarray(pixels).save("picture.webp", **options)
        wanted = np.asarray(Image.open("picture.webp"))
        reaches(program, f"WebP, {options}, alpha", "picture.webp", planes(wanted))
        reaches(program, f"WebP, {options}, no alpha", "picture.webp", planes(wanted[..., :3]),
                says="1 of 4 bands is alpha and dropped")
        reaches(program, f"WebP, {options}, chosen", "picture.webp", planes(wanted[..., [3, 2]]),
                "--channels", "4,3")
    exif = Image.Exif()
    for orientation in range(1, 9):
        exif[274] = orientation
        Image.fromarray(pixels[..., :3]).save("turned.webp", lossless=True, exif=exif)
        wanted = np.asarray(ImageOps.exif_transpose(Image.open("turned.webp")))
        reaches(program, f"WebP, orientation {orientation}", "turned.webp", planes(wanted))
    frames = [Image.fromarray(pixels[..., :3]), Image.fromarray(pixels[..., 1:])]
    frames[0].save("frames.webp", save_all=True, append_images=frames[1:])
    refused(program, "an animation", "frames.webp", 3, "an animated WebP")


def check_jp2(program):
    """Tiles, strips of one tile, offsets on the grid, 8 and 16 bits, alpha, codestreams alone."""
    numbers = np.random.default_rng(10)
    pixels = np.kron(numbers.integers(0, 256, (29, 11, 4)), np.ones((23, 9, 1))).astype("u1")
    pixels[::7] = numbers.integers(0, 256, pixels[::7].shape)
    deep = pixels[..., 0].astype("u2") * 157 + 3
    for options in ({}, {"tile_size": (64, 100)}, {"num_resolutions": 3, "tile_size": (33, 700)},
                    {"offset": (5, 11), "tile_offset": (3, 7), "tile_size": (40, 60)}):
        for name in ("picture.jp2", "picture.j2k"):
            what = f"{name}, {options}"
            Image.fromarray(pixels[..., :3]).save(name, **options)
            reaches(program, what, name, planes(pixels[..., :3]))
            reaches(program, f"{what}, in tiles", name, planes(pixels[..., :3]), "--tiles", "3x2")
            reaches(program, f"{what}, chosen", name, planes(pixels[..., [2, 0]]), "--channels",
                    "3,1")
            Image.fromarray(deep).save(name, **options)
            stored = np.asarray(Image.open(name))  # Pillow mixes tiles of 16 bits up, here too
            reaches(program, f"{what}, 16 bits", name, scaled(stored.astype("u2")[None]))
        Image.fromarray(pixels).save("picture.jp2", **options)
        reaches(program, f"{options}, alpha", "picture.jp2", planes(pixels))
        reaches(program, f"{options}, no alpha", "picture.jp2", planes(pixels[..., :3]),
                says="1 of 4 bands is alpha and dropped")
        # of lossy ones strips may round otherwise than the whole
        Image.fromarray(pixels[..., :3]).save("picture.jp2", irreversible=True, quality_layers=[20],
                                              **options)
        wanted = planes(np.asarray(Image.open("picture.jp2")))
        got, words = read(program, "picture.jp2", 3)
        check(got is not None and np.abs(got - wanted).max() <= 1, f"{options}, lossy: {words}")
    with open("picture.jp2", "rb") as file:
        data = file.read()
    with open("cut.jp2", "wb") as file:
        file.write(data[:len(data) // 2])
    refused(program, "cut off", "cut.jp2", 3, "cut.jp2")


def check_all(program):
    check_jp2(program)
    check_webp(program)
    check_bmp(program)
    check_kinds(program)
    check_files_of_bands(program)
    check_pages(program)
    check_alpha(program)
    check_orientation(program)
