"""TIFF outputs as GDAL and tifffile read them, Zarr outputs and inputs as zarr-python does.

    pictures.py build/rfexec data/defect_net.onnx        writes into the working directory

GeoTIFFs of every kind of georeference go in; where outputs lie must follow from the receptive field
that `rfexec analyze` names, to 1e-9 of a pixel. Tiles, packings and sample sizes must have the
samples of the .npy or of plain strips, and so must Zarr's chunks. Arrays that zarr-python writes must
give the bits of a .npy with their values. Pictures that Pillow and tifffile write must reach the
network as their samples (picture_inputs.py). The last line is "N passed, N failed".
"""

import json
import shutil
import sys

import numcodecs
import numpy as np
import picture_inputs
import rasterio
import rio_cogeo
import tifffile
import viewers
import zarr
from picture_checks import COUNTS, check, halved, make_parts, rfexec
from rasterio.control import GroundControlPoint
from rasterio.crs import CRS
from rasterio.transform import Affine

HEIGHT, WIDTH = 64, 96
ENLARGER = "real_esrgan_compact"  # 4 times, by pixels put side by side


def make(name, gcps=None, point=False, **profile):
    pixels = np.random.default_rng(1).integers(0, 255, (3, HEIGHT, WIDTH), dtype="uint8")
    with rasterio.open(name, "w", driver="GTiff", height=HEIGHT, width=WIDTH, count=3,
                       dtype="uint8", **profile) as file:
        file.write(pixels)
        if gcps:
            file.gcps = gcps, CRS.from_epsg(4326)
        file.update_tags(SCENE="north", **({"AREA_OR_POINT": "Point"} if point else {}))
        file.update_tags(1, STATISTICS_MAXIMUM="255")


def make_all():
    """Names of GeoTIFFs: north up, turned, between degrees, counted from middles, by points."""
    utm = CRS.from_epsg(32633)
    make("north.tif", crs=utm, transform=Affine(0.3, 0, 500000.125, 0, -0.3, 5400000.5), nodata=9)
    make("turned.tif", crs=utm, transform=Affine(0.3, 0.1, 500000.125, 0.1, -0.3, 5400000.5))
    make("degrees.tif", crs=CRS.from_epsg(4326), transform=Affine(1e-5, 0, 14.2, 0, -7e-6, 50.1))
    make("point.tif", crs=utm, transform=Affine(10, 0, 500000, 0, -10, 5400000), point=True)
    make("gcps.tif", gcps=[GroundControlPoint(0, 0, 10, 50, 0),
                           GroundControlPoint(HEIGHT, WIDTH, 11, 49, 0),
                           GroundControlPoint(0.5, WIDTH / 3, 11, 50, 0)])
    return ["north.tif", "turned.tif", "degrees.tif", "point.tif", "gcps.tif"]


def cells(program, model):
    """Columns and rows of the picture at those of the output, by the receptive field."""
    if model == ENLARGER:
        return Affine.scale(0.25)
    layers = json.loads(rfexec(program, "analyze", model, "--size", f"{HEIGHT}x{WIDTH}", "--json"))
    last = layers["layers"][-1]
    middle = [size / 2 - padding for size, padding in zip(last["rf"], last["rf_padding"])]
    jump = last["jump"]
    return (Affine.translation(middle[1] - jump[1] / 2, middle[0] - jump[0] / 2) *
            Affine.scale(jump[1], jump[0]))


def same_place(before, after, cell, what):
    check(after.crs == before.crs and after.gcps[1] == before.gcps[1], f"{what}: projection")
    check(after.nodata is None, f"{what}: no data: {after.nodata}")
    check(after.tags() == before.tags() and after.tags(1) == {}, f"{what}: metadata {after.tags()}")
    check(len(before.gcps[0]) == len(after.gcps[0]), f"{what}: control points")
    for old, new in zip(before.gcps[0], after.gcps[0]):
        col, row = cell * (new.col, new.row)
        near = abs(col - old.col) < 1e-9 and abs(row - old.row) < 1e-9
        check(near and (old.x, old.y) == (new.x, new.y), f"{what}: {new}")
    wanted, size = before.transform * cell, abs(before.transform.a)
    if before.gcps[0]:
        return
    for col, row in ((0, 0), (after.width, 0), (0, after.height), (after.width, after.height)):
        got, at = after.transform * (col, row), wanted * (col, row)
        # of a pixel, but for what doubles of this size cannot say
        room = max(1e-9 * size, 4 * np.spacing(max(abs(at[0]), abs(at[1]))))
        check(max(abs(got[0] - at[0]), abs(got[1] - at[1])) <= room, f"{what}: {got}, not {at}")


def check_georeferences(program, model):
    for name in make_all():
        cell = cells(program, model)
        rfexec(program, "run", model, name, "-o", "out.tif")
        make_parts(program, model, name)
        rfexec(program, "merge", "part1.npy", "part2.npy", "-o", "merged.tif", "--tiff-tile", "32")
        for out in ("out.tif", "merged.tif"):
            with rasterio.open(name) as before, rasterio.open(out) as after:
                same_place(before, after, cell, f"{model}, {name}, {out}")


def check_samples(program, model):
    rfexec(program, "run", model, "north.tif", "-o", "whole.npy")
    whole = np.load("whole.npy")[0]
    for bits in (32, 16, 8):
        rfexec(program, "run", model, "north.tif", "--bits", str(bits), "-o", "strips.tif")
        with rasterio.open("strips.tif") as file:
            plain = file.read()
        if bits == 32:
            check(plain.tobytes() == whole.tobytes(), f"{model}: floats in strips")
        for packing in ("none", "deflate", "zstd"):
            what = f"{model}: {bits} bits, {packing}"
            rfexec(program, "run", model, "north.tif", "--bits", str(bits), "--tiff-tile", "16",
                   "--tiff-compress", packing, "--memory", "100MiB", "-o", "tiled.tif")
            with rasterio.open("tiled.tif") as file:
                check(file.read().tobytes() == plain.tobytes(), f"{what}: rasterio's samples")
                check(file.profile["tiled"] and file.profile["blockxsize"] == 16, f"{what}: tiles")
            pixels = np.moveaxis(tifffile.imread("tiled.tif").reshape(plain.shape[1:] + (-1,)), -1, 0)
            check(np.ascontiguousarray(pixels).tobytes() == plain.tobytes(), f"{what}: tifffile's")


def check_overviews(program, model):
    """Smaller copies as GDAL finds them: sizes, means to the rounding, first samples exactly."""
    make_parts(program, model, "synthetic:61x83")
    run, merge = ["run", model, "synthetic:61x83"], ["merge", "part1.npy", "part2.npy"]
    for bits, kind, args, packing in ((32, "mean", run, "none"), (32, "nearest", merge, "zstd"),
                                      (16, "mean", merge, "deflate"), (8, "mean", run, "zstd"),
                                      (8, "nearest", run + ["--bands", "8"], "none")):
        what = f"overviews, {bits} bits, {kind}, {packing}"
        rfexec(program, *args, "--bits", str(bits), "--overviews", kind, "--tiff-tile", "32",
               "--tiff-compress", packing, "-o", "small.tif")
        with rasterio.open("small.tif") as file:
            check(len(file.overviews(1)) == 3, f"{what}: {file.overviews(1)}")
            above = file.read()
        for level in range(3):
            with rasterio.open("small.tif", overview_level=level) as file:
                got = file.read()
            wanted = above[:, ::2, ::2] if kind == "nearest" else halved(above)
            good = got.shape == wanted.shape and np.array_equal(got, wanted)
            if kind == "mean" and bits == 32:  # numpy adds in another order
                good = got.shape == wanted.shape and np.allclose(got, wanted, rtol=1e-6, atol=0)
            check(good, f"{what}: level {level}")
            above = got


def check_cogs(program, model):
    """Valid by rio-cogeo's rules, with the samples, overviews and tags of the file without --cog."""
    make("cog.tif", crs=CRS.from_epsg(32633), nodata=9,
         transform=Affine(0.3, 0, 500000.125, 0, -0.3, 5400000.5))
    make_parts(program, model, "cog.tif")
    for tile, bits, packing, kind, args in (
            (16, 32, "none", None, ["run", model, "cog.tif"]),
            (16, 8, "deflate", "nearest", ["run", model, "cog.tif", "--bands", "8"]),
            (32, 16, "zstd", "mean", ["merge", "part1.npy", "part2.npy"]),
            (256, 32, "deflate", None, ["merge", "part1.npy", "part2.npy"]),
            (512, 8, "none", None, ["run", "fsrcnn", "synthetic:601x700"])):
        what = f"COG of {' '.join(args)}, {tile}, {bits} bits, {packing}"
        args = [*args, "--bits", str(bits), "--tiff-tile", str(tile), "--tiff-compress", packing]
        rfexec(program, *args, "--overviews", kind or "mean", "-o", "plain.tif")
        rfexec(program, *args, *(["--overviews", kind] if kind else []), "--cog", "-o", "ours.tif")
        valid, errors, warnings = rio_cogeo.cog_validate("ours.tif", strict=True)
        check(valid, f"{what}: {errors} {warnings}")
        with rasterio.open("plain.tif") as before, rasterio.open("ours.tif") as after:
            check(before.profile == after.profile, f"{what}: {after.profile}")
            check(before.tags() == after.tags(), f"{what}: {after.tags()}")
            levels = before.overviews(1)
            check(levels == after.overviews(1), f"{what}: {levels}")
            check(before.read().tobytes() == after.read().tobytes(), f"{what}: samples")
        for level in range(len(levels)):
            with (rasterio.open("plain.tif", overview_level=level) as before,
                  rasterio.open("ours.tif", overview_level=level) as after):
                check(np.array_equal(before.read(), after.read()), f"{what}: level {level}")
        with tifffile.TiffFile("ours.tif") as file:
            end = max(offset + size for page in file.pages
                      for offset, size in zip(page.dataoffsets, page.databytecounts))
            check(end == file.filehandle.size, f"{what}: {end} of {file.filehandle.size} bytes")


def zarr_as(program, args, out, shape, dtype, version, chunks):
    """The samples of a Zarr output, checked for all that zarr-python says of it."""
    what = f"{out}, {' '.join(args)}"
    shutil.rmtree(out, ignore_errors=True)
    rfexec(program, *args, "--zarr-format", str(version), "-o", out)
    found = zarr.open(out, mode="r")
    if out.endswith(".ome.zarr"):
        shape = shape[1:]
        words = found.attrs.get("ome", found.attrs)["multiscales"][0]
        # of the only level; its axes are those of the array
        scale = [{"type": "scale", "scale": [1, 1, 1]}]
        check(words["datasets"] == [{"path": "0", "coordinateTransformations": scale}], what)
        check([axis["name"] for axis in words["axes"]] == ["c", "y", "x"], f"{what}: axes")
        found = found["0"]
    check(found.shape == shape and found.dtype == dtype, f"{what}: {found.shape} {found.dtype}")
    check(found.metadata.zarr_format == version, f"{what}: format")
    check(found.chunks[-2:] == chunks and set(found.chunks[:-2]) == {1}, f"{what}: {found.chunks}")
    check(found.fill_value == 0, f"{what}: {found.fill_value}")
    return found[...]


def check_zarr(program, model):
    """Odd sizes, so that last chunks have padding; runs, runs in pieces, and parts."""
    rfexec(program, "run", model, "synthetic:61x83", "-o", "whole.npy")
    whole = np.load("whole.npy")
    make_parts(program, model, "synthetic:61x83")
    run, merge = ["run", model, "synthetic:61x83"], ["merge", "part1.npy", "part2.npy"]
    for version in (2, 3):
        for k, (args, out) in enumerate(((run + ["--memory", "100MiB"], "map.zarr"),
                                         (run, "map.ome.zarr"), (merge, "map.zarr"),
                                         (run + ["--bands", "8", "--strips", "2"], "map.zarr"))):
            packing = ("none", "zstd")[(k + version) % 2]
            args = args + ["--zarr-compress", packing, "--zarr-chunk", "50"]
            got = zarr_as(program, args, out, whole.shape, np.float32, version, (50, 50))
            check(got.tobytes() == whole.tobytes(), f"Zarr {version}, {packing}: floats")
    shutil.rmtree("plain.zarr", ignore_errors=True)
    rfexec(program, *run, "-o", "plain.zarr")
    check(zarr.open("plain.zarr", mode="r")[...].tobytes() == whole.tobytes(), "Zarr: defaults")
    for version, kind in ((2, "nearest"), (3, "mean")):
        shutil.rmtree("small.ome.zarr", ignore_errors=True)
        rfexec(program, *run, "--zarr-format", str(version), "--zarr-chunk", "50", "--overviews",
               kind, "-o", "small.ome.zarr")
        group, above = zarr.open("small.ome.zarr", mode="r"), whole[0]
        levels = group.attrs.get("ome", group.attrs)["multiscales"][0]["datasets"]
        check([level["path"] for level in levels] == ["0", "1", "2"], f"OME-Zarr {version}: levels")
        for level in levels[1:]:
            got = group[level["path"]][...]
            wanted = above[:, ::2, ::2] if kind == "nearest" else halved(above)
            near = got.shape == wanted.shape and np.allclose(got, wanted, rtol=1e-6, atol=0)
            check(near, f"OME-Zarr {version}, {kind}: {level['path']}")
            above = got
    for bits in (8, 16):
        args = run + ["--bits", str(bits), "--range", "0,1"]
        rfexec(program, *args, "-o", "plain.tif")
        pixels = np.moveaxis(tifffile.imread("plain.tif"), -1, 0)[None]
        args += ["--zarr-compress", "zstd", "--zarr-chunk", "64"]
        for version in (2, 3):
            got = zarr_as(program, args, "map.zarr", whole.shape, f"uint{bits}", version, (64, 64))
            check(np.array_equal(got, pixels), f"Zarr {version}: {bits} bits")


def zarr_inputs():
    """Settings of arrays, as zarr-python takes them: all types, both formats, packings and orders."""
    v3 = {"none": None, "zstd": zarr.codecs.ZstdCodec(level=5, checksum=True),
          "gzip": zarr.codecs.GzipCodec(), "blosc": zarr.codecs.BloscCodec(cname="zstd")}
    v2 = {"none": None, "zstd": numcodecs.Zstd(), "gzip": numcodecs.GZip(), "zlib": numcodecs.Zlib(),
          "blosc": numcodecs.Blosc(cname="lz4", shuffle=numcodecs.Blosc.BITSHUFFLE)}
    chunks = ((1, 20, 30), (3, 61, 83), (2, 7, 83), (3, 16, 16))
    for k, kind in enumerate(("u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8")):
        for i, (name, packing) in enumerate(v3.items()):
            order = "<>"[(k + i) % 2]
            serializer = zarr.codecs.BytesCodec(endian="big" if order == ">" else "little")
            yield (f"format 3, {kind}, {name}, {order}", kind,
                   {"zarr_format": 3, "dtype": kind, "compressors": packing, "serializer": serializer,
                    "chunks": chunks[(k + i) % 4], "dimension_names": ("c", "y", "x")})
        for i, (name, packing) in enumerate(v2.items()):
            order = "<>"[(k + i) % 2]
            yield (f"format 2, {kind}, {name}, {order}", kind,
                   {"zarr_format": 2, "dtype": order + kind, "compressors": packing,
                    "chunks": chunks[(k + i) % 4], "order": "CF"[i % 2],
                    "chunk_key_encoding": {"name": "v2", "separator": "./"[k % 2]}})


def check_zarr_inputs(program, model):
    """The last rows of chunks are left out: they have the fill value."""
    numbers = np.random.default_rng(2)
    plain = ["--scale", "1", "--mean", "0", "--std", "1"]
    for what, kind, settings in zarr_inputs():
        shutil.rmtree("in.zarr", ignore_errors=True)
        array = zarr.create_array("in.zarr", shape=(3, 61, 83), fill_value=5, **settings)
        if kind[0] == "f":
            values = numbers.normal(0, 100, (3, 61, 83)).astype(kind)
        else:
            limits = np.iinfo(kind)
            values = numbers.integers(limits.min, limits.max, (3, 61, 83), kind, endpoint=True)
        rows = 61 - 61 % settings["chunks"][1]
        array[:, :rows] = values[:, :rows]
        got = np.ascontiguousarray(array[...].astype("f4"))
        np.save("in.npy", got / np.float32(257) if kind == "u2" else got)
        rfexec(program, "run", model, "in.npy", "-o", "wanted.npy")
        rfexec(program, "run", model, "in.zarr", "--memory", "100MiB", *plain, "-o", "got.npy")
        same = np.load("wanted.npy").tobytes() == np.load("got.npy").tobytes()
        check(same, f"Zarr in: {what}, chunks {settings['chunks']}")


def main():
    program, model = sys.argv[1:3]
    for each in (model, ENLARGER):
        check_georeferences(program, each)
    check_samples(program, ENLARGER)
    check_overviews(program, "fsrcnn")
    check_cogs(program, ENLARGER)
    check_zarr(program, "fsrcnn")
    check_zarr_inputs(program, ENLARGER)
    picture_inputs.check_all(program)
    viewers.check_all(program, model)
    print(f"{COUNTS[True]} passed, {COUNTS[False]} failed")
    return 1 if COUNTS[False] else 0


if __name__ == "__main__":
    sys.exit(main())
