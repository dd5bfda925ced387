"""OME-TIFF and OME-Zarr as viewers of slides find them.

OME-TIFF: the OME-XML against the schema 2016-06 (the copy of ome-types), samples and levels as
tifffile reads them, the places and tags of directories as the OME-TIFF specification wants them of
Bio-Formats 6 and later; where there is Java, what Bio-Formats itself reads and writes again.
OME-Zarr: the metadata by ome-zarr-models, the samples by ome-zarr, which napari reads with.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import ome_types
import ome_zarr.format
import ome_zarr.io
import ome_zarr.reader
import ome_zarr_models
import tifffile
import xmlschema
from picture_checks import check, halved, make_parts, rfexec

SCHEMA = pathlib.Path(ome_types.__file__).parent / "ome-2016-06.xsd"
CHANNELS_MODEL = "fsrcnn"  # 3 channels, twice the size
LABELS_MODEL = "ppocr_det"  # 1 channel
SIZE = "synthetic:61x83"
TYPES = {32: ("float", "float32"), 16: ("uint16", "uint16"), 8: ("uint8", "uint8")}
REDUCED = tifffile.FILETYPE.REDUCEDIMAGE


def lesser(pixels, kind):
    return pixels[:, ::2, ::2] if kind == "nearest" else halved(pixels)


def same(got, wanted):
    """Floats' means are added in another order by numpy."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return False
    return np.array_equal(got, wanted) or (got.dtype == "f4" and
                                           np.allclose(got, wanted, rtol=1e-6, atol=0))


def check_directories(file, levels, tile, what):
    """Planes in the file's chain, each with its smaller copies below it, the largest first."""
    for page in file.pages:
        page = page.aspage()
        below = list(page.pages or [])
        check(page.subfiletype == 0 and page.is_tiled, f"{what}: full size: {page.tags}")
        check(len(page.subifds or ()) == levels - 1 == len(below), f"{what}: {page.subifds} below")
        shape = page.shape[:2]
        for small in below:
            small = small.aspage()
            shape = tuple((side + 1) // 2 for side in shape)
            check(small.shape[:2] == shape, f"{what}: {small.shape} for {shape}")
            check(small.subfiletype == REDUCED and small.is_tiled, f"{what}: {small.subfiletype}")
            check((small.tilelength, small.tilewidth) == (tile, tile), f"{what}: tiles below")
        check((page.tilelength, page.tilewidth) == (tile, tile), f"{what}: tiles")
        check("ImageDescription" in page.tags or page.index > 0, f"{what}: no words")


def pixels_of(series):
    """Channels, rows, columns."""
    pixels = series.asarray()
    if series.axes == "YXS":
        pixels = np.moveaxis(pixels, -1, 0)
    return pixels.reshape((-1,) + pixels.shape[-2:])


def check_ome(name, wanted, kind, tile, what, names=None, size=None):
    """Everything that is said of one file, whose channels, rows and columns are `wanted`."""
    colour = wanted.dtype == "u1" and len(wanted) == 3 and names is None
    bits = wanted.dtype.itemsize * 8
    with tifffile.TiffFile(name) as file:
        check(file.is_ome and len(file.series) == 1, f"{what}: {file.series}")
        check(len(file.pages) == (1 if colour else len(wanted)), f"{what}: {len(file.pages)} pages")
        xml = file.pages[0].tags["ImageDescription"].value
        series = file.series[0]
        check(series.axes == ("YXS" if colour else "CYX" if len(wanted) > 1 else "YX"),
              f"{what}: {series.axes}")
        levels = 1
        while kind and (max(wanted.shape[1:]) - 1 >> levels - 1) + 1 > tile:
            levels += 1
        check(len(series.levels) == levels, f"{what}: {len(series.levels)} levels, not {levels}")
        check_directories(file, levels, tile, what)
        got = pixels_of(series.levels[0])
        check(got.dtype == wanted.dtype and got.tobytes() == wanted.tobytes(), f"{what}: samples")
        for k in range(1, levels):
            wanted_below, got = lesser(got, kind), pixels_of(series.levels[k])
            check(same(got, wanted_below), f"{what}: level {k}")
    errors = [str(error) for error in xmlschema.XMLSchema(SCHEMA).iter_errors(xml)]
    check(not errors, f"{what}: {errors[:1]}")
    pixels = ome_types.from_xml(xml).images[0].pixels
    check((pixels.size_x, pixels.size_y, pixels.size_c) == wanted.shape[::-1], f"{what}: sizes")
    check(pixels.type.value == TYPES[bits][0], f"{what}: {pixels.type}")
    check([channel.samples_per_pixel for channel in pixels.channels] ==
          ([3] if colour else [1] * len(wanted)), f"{what}: channels")
    check([channel.name for channel in pixels.channels] ==
          (names or [None] * len(pixels.channels)), f"{what}: names")
    found = (pixels.physical_size_x, pixels.physical_size_y)
    check(found == (None, None) if size is None else np.allclose(found, size, rtol=1e-7),
          f"{what}: {found}")


def plain(program, args, bits):
    """The samples as strips of a plain TIFF have them."""
    rfexec(program, *args, "--bits", str(bits), "-o", "plain.tif")
    pixels = tifffile.imread("plain.tif")
    return np.ascontiguousarray(np.moveaxis(pixels, -1, 0) if pixels.ndim == 3 else pixels[None])


def check_samples(program):
    """Runs, runs in pieces and parts; sizes of samples; packings; one channel, several, colours."""
    names = ["a & b", "<c>", "d \"e\" \u00b5"]
    pathlib.Path("names.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    for model in (CHANNELS_MODEL, LABELS_MODEL):
        picture = SIZE if model == CHANNELS_MODEL else "synthetic:64x96"
        make_parts(program, model, picture)
        run, merge = ["run", model, picture], ["merge", "part1.npy", "part2.npy"]
        rfexec(program, *run, "-o", "whole.npy")
        for bits, kind, packing, args, named in (
                (32, None, "none", run, False), (32, "mean", "deflate", run, True),
                (32, "nearest", "none", merge, False), (16, "mean", "deflate", merge, False),
                (16, "nearest", "none", run + ["--bands", "8", "--strips", "2"], False),
                (8, "mean", "none", run, False), (8, "nearest", "deflate", merge, True),
                (8, "nearest", "none", run + ["--memory", "100MiB"], False)):
            named = named and model == CHANNELS_MODEL
            what = f"OME-TIFF of {model}, {bits} bits, {kind}, {packing}"
            more = ["--channel-names", "names.txt"] if named else []
            more += ["--overviews", kind] if kind else []
            out = "map.ome.tif" if kind else "map.OME.TIFF"
            rfexec(program, *args, "--bits", str(bits), "--tiff-tile", "32", "--tiff-compress",
                   packing, *more, "-o", out)
            wanted = np.load("whole.npy")[0] if bits == 32 else plain(program, args, bits)
            check_ome(out, wanted, kind, 32, what, names=names if named else None)
    rfexec(program, "run", CHANNELS_MODEL, SIZE, "-o", "usual.ome.tif")
    with tifffile.TiffFile("usual.ome.tif") as file:
        check((file.pages[0].tilewidth, file.pages[0].tilelength) == (256, 256), "usual tiles")


def check_sizes_of_pixels(program, model):
    """Of half a micrometre, through a network of stride 8; those of printers are not taken."""
    pixels = np.random.default_rng(1).integers(0, 255, (64, 96, 3), dtype="uint8")
    make = dict(photometric="rgb", tile=(32, 32))
    tifffile.imwrite("cm.tif", pixels, resolution=(20000, 40000), resolutionunit=3, **make)
    tifffile.imwrite("inch.tif", pixels, resolution=(50800, 50800), resolutionunit=2, **make)
    tifffile.imwrite("print.tif", pixels, resolution=(300, 300), resolutionunit=2, **make)
    for name, size in (("cm.tif", (4, 2)), ("inch.tif", (4, 4)), ("print.tif", None)):
        make_parts(program, model, name)
        for args in (["run", model, name], ["merge", "part1.npy", "part2.npy"]):
            rfexec(program, *args, "-o", "sized.ome.tif")
            rfexec(program, *args, "-o", "whole.npy")
            check_ome("sized.ome.tif", np.load("whole.npy")[0], None, 256, name, size=size)
    words = "Aperio Image Library v11\n96x64 (32x32)|AppMag = 20|MPP = 0.5"
    tifffile.imwrite("slide.svs", pixels, description=words, metadata=None, **make)
    try:
        rfexec(program, "run", model, "slide.svs", "-o", "sized.ome.tif")
    except RuntimeError as error:
        if "libopenslide" not in str(error):
            raise
        print("NOT compared: the size of a slide's pixels, as there is no OpenSlide")
    else:
        rfexec(program, "run", model, "slide.svs", "-o", "whole.npy")
        check_ome("sized.ome.tif", np.load("whole.npy")[0], None, 256, "slide", size=(4, 4))
    shutil.rmtree("list", ignore_errors=True)
    os.mkdir("list")
    pathlib.Path("list.txt").write_text("cm.tif\ninch.tif\n", encoding="utf-8")
    rfexec(program, "run", model, "--list", "list.txt", "--out-dir", "list", "--as", "ome.tif")
    for name, size in (("cm", (4, 2)), ("inch", (4, 4))):
        rfexec(program, "run", model, f"{name}.tif", "-o", "whole.npy")
        check_ome(f"list/{name}.tif.ome.tif", np.load("whole.npy")[0], None, 256, "list", size=size)


def check_bio_formats(program):
    """Bio-Formats reads the levels, by which it writes a file of its own."""
    jar = pathlib.Path(sys.prefix).glob("lib/python*/site-packages/bioformats/jars/*.jar")
    jar = next(jar, None)
    if jar is None or shutil.which("java") is None:
        print("NOT compared with Bio-Formats: there is no Java, or its archive is not there")
        return
    for bits, packing, more in ((32, "deflate", []), (32, "none", []), (16, "deflate", []),
                                (8, "none", []), (8, "deflate", []),
                                (8, "deflate", ["--channel-names", "names.txt"])):
        what = f"Bio-Formats, {bits} bits, {packing} {' '.join(more)}"
        rfexec(program, "run", CHANNELS_MODEL, SIZE, "--bits", str(bits), "--overviews", "mean",
               "--tiff-tile", "32", "--tiff-compress", packing, *more, "-o", "ours.ome.tif")
        pathlib.Path("theirs.ome.tif").unlink(missing_ok=True)
        java = ["java", "-cp", str(jar)]
        done = subprocess.run([*java, "loci.formats.tools.ImageConverter", "-noflat",
                               "ours.ome.tif", "theirs.ome.tif"],
                              capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"{what}: {done.stdout[-300:]} {done.stderr[-300:]}")
        if done.returncode != 0:
            continue
        done = subprocess.run([*java, "loci.formats.tools.ImageInfo", "-nopix", "-noflat",
                               "-omexml", "ours.ome.tif"],
                              capture_output=True, text=True, check=False)
        check("No validation errors found" in done.stdout, f"{what}: {done.stdout[:500]}")
        check("Checking file format [OME-TIFF]" in done.stdout, f"{what}: the kind")
        check(not more or "Name=\"a &amp; b\"" in done.stdout, f"{what}: names")
        with tifffile.TiffFile("ours.ome.tif") as ours, tifffile.TiffFile("theirs.ome.tif") as own:
            levels = ours.series[0].levels
            check(len(levels) == 4 == len(own.series[0].levels), f"{what}: levels")
            for k, (a, b) in enumerate(zip(levels, own.series[0].levels)):
                check(pixels_of(a).tobytes() == pixels_of(b).tobytes(), f"{what}: level {k}")


def check_ome_zarr(program):
    rfexec(program, "run", CHANNELS_MODEL, SIZE, "-o", "whole.npy")
    whole = np.load("whole.npy")[0]
    for version in (2, 3):
        for kind in (None, "mean", "nearest"):
            what = f"OME-Zarr, Zarr {version}, {kind}"
            shutil.rmtree("seen.ome.zarr", ignore_errors=True)
            more = ["--overviews", kind] if kind else []
            rfexec(program, "run", CHANNELS_MODEL, SIZE, "--zarr-format", str(version),
                   "--zarr-chunk", "50", *more, "-o", "seen.ome.zarr")
            found = ome_zarr_models.open_ome_zarr("seen.ome.zarr")
            check(type(found).__name__ == "Image", f"{what}: {type(found)}")
            check(found.ome_zarr_version == ("0.4" if version == 2 else "0.5"), f"{what}: version")
            reader = ome_zarr.reader.Reader(ome_zarr.io.parse_url(
                "seen.ome.zarr", fmt=ome_zarr.format.FormatV04() if version == 2 else
                ome_zarr.format.FormatV05()))
            nodes = list(reader())
            check(len(nodes) == 1, f"{what}: {nodes}")
            levels = [np.asarray(level) for level in nodes[0].data]
            check(len(levels) == (3 if kind else 1), f"{what}: {len(levels)} levels")
            check(levels[0].tobytes() == whole.tobytes(), f"{what}: samples")
            for above, below in zip(levels, levels[1:]):
                check(same(below, lesser(above, kind)), f"{what}: {below.shape}")


def check_all(program, model):
    check_samples(program)
    check_sizes_of_pixels(program, model)
    check_bio_formats(program)
    check_ome_zarr(program)
