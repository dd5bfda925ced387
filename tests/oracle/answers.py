"""Regions, points, summaries and boxes that the program writes, beside SciPy, GDAL and torchvision.

    answers.py BUILD/rfexec [--cases N] [--seed S] [--large]

Runs in the working directory, on networks that pass their input through: as labels, or as floats.
- Regions of random label maps of 1 x 1 to 3,000 x 3,000 pixels (--large; else to 300 x 300), connectivity
  4 and 8, under random plans: region_cases.py compares each with scipy.ndimage.label and
  rasterio.features.shapes.
- The same regions simplified: simplified_cases.py holds them against the exact ones by shapely.
- Points of random maps of floats with ties and NaN: scipy.ndimage.maximum_filter over the window, and over
  the pixels of the window before the middle.
- Summaries: numpy.unique, numpy.nanmin, numpy.nanmax, math.fsum, numpy.histogram, numpy.quantile.
- Counts in areas: polygons with holes and MultiPolygons of random corners, whose pixels are those of
  rasterio.features.geometry_mask (GDAL) and of shapely.contains_xy for the pixels' middles, in coordinates of
  pixels and of GeoTIFFs; regions of a file that are read again.
- Boxes of YOLOv8n: box_cases.py, where torch and torchvision are installed; as boxes with an angle: oriented_cases.py.
- Boxes of text: text_cases.py, with SciPy, OpenCV and pyclipper.
- Masks of boxes of random networks of the form of YOLOv8's: mask_cases.py, in all three forms of files;
  COCO's strings are read by pycocotools.
- GeoJSON: RFC 7946's rules of rings and members by this script and by geojson-validator; no NaN.
- GeoTIFFs of several kinds: corners of polygons are rasterio's transform of their pixels to 1e-9, or to two
  units of the last place where a double has no more; geopandas reads them with the coordinate system.
The last line is "N passed, N failed".
"""

import argparse
import json
import math
import sys

import geojson_validator
import geopandas
import mask_cases
import numpy as np
import onnx
import oriented_cases
import rasterio
import rasterio.features
import region_cases
import scipy.ndimage
import shapely
import simplified_cases
import text_cases
from loguru import logger
from onnx import TensorProto, helper
from picture_checks import COUNTS, check, rfexec
from rasterio.crs import CRS
from rasterio.transform import Affine

PLANS = [["--untiled"], ["--bands", "1"], ["--bands", "7", "--threads", "3"], ["--bands", "5", "--strips", "2"],
         ["--tiles", "3x2"], ["--bands", "2", "--tight"]]


def make_network(path, channels, to):
    """Makes a network whose output is its input, converted to an ONNX type."""
    shape = [1, channels, "h", "w"]
    ones = helper.make_tensor("k", TensorProto.FLOAT, [channels, 1, 1, 1], [1.0] * channels)
    nodes = [helper.make_node("Conv", ["x", "k"], ["c"], group=channels)]
    nodes.append(helper.make_node("Cast", ["c"], ["y"], to=to) if to != TensorProto.FLOAT
                 else helper.make_node("Identity", ["c"], ["y"]))
    graph = helper.make_graph(nodes, "through", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", to, shape)], [ones])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def plan(rng, least):
    """Options of a plan that maps of at least so many rows and columns have."""
    return PLANS[rng.integers(len(PLANS))] if least >= 8 else PLANS[0]


def read_geojson(path):
    """The features of a file whose text is strict JSON."""
    def refuse(word):
        raise ValueError(f"{path}: {word} is no JSON")

    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_constant=refuse)


# ---- GeoJSON ----

DEPTHS = {"Point": 0, "Polygon": 2, "MultiPolygon": 3}


def positions(coordinates, depth):
    return [coordinates] if depth == 0 else [p for part in coordinates for p in positions(part, depth - 1)]


def rings_of(geometry):
    if geometry["type"] == "Point":
        return []
    polygons = geometry["coordinates"] if geometry["type"] == "MultiPolygon" else [geometry["coordinates"]]
    return [(k, ring) for rings in polygons for k, ring in enumerate(rings)]


def rfc_faults(document):
    """Yields what RFC 7946 does not allow: sections 3.1 to 3.3."""
    if document.get("type") != "FeatureCollection" or not isinstance(document.get("features"), list):
        yield "it is no FeatureCollection"
        return
    for k, feature in enumerate(document["features"]):
        if feature.get("type") != "Feature" or not isinstance(feature.get("properties"), dict):
            yield f"{k} is no Feature with properties"
            continue
        geometry = feature["geometry"]
        depth = DEPTHS[geometry["type"]]
        for position in positions(geometry["coordinates"], depth):
            if len(position) != 2 or not all(isinstance(v, (int, float)) and math.isfinite(v) for v in position):
                yield f"{k}: {position} is no position"
        for i, ring in rings_of(geometry):
            if len(ring) < 4 or ring[0] != ring[-1]:
                yield f"{k}: ring {i} of {len(ring)} positions is not closed"
            elif (region_cases.signed_area(np.array(ring) - ring[0]) > 0) != (i == 0):
                yield f"{k}: ring {i} turns the wrong way"


def check_geojson(path, what, validate=True):
    document = read_geojson(path)
    faults = list(rfc_faults(document))
    check(not faults, f"{what}: RFC 7946: {faults[:3]}")
    if validate and document["features"]:
        structure = geojson_validator.validate_structure(document)
        check(not structure, f"{what}: geojson-validator: {structure}")
        geometry = geojson_validator.validate_geometries(document, criteria_problematic=())
        check(not geometry["invalid"], f"{what}: geojson-validator: {geometry['invalid']}")
    return document["features"]


# ---- Regions ----


def label_map(rng, h, w):
    """A random map of labels: noise, blocks, smooth shapes, stripes."""
    kind = rng.integers(4)
    most = int(rng.integers(1, 6))
    if kind == 0:
        labels = rng.integers(0, most + 1, (h, w))
        if h * w > 40000:  # noise has too many regions
            kind = 1
    if kind == 1:
        side = int(rng.integers(2, 9)) * (1 + h * w // 250000)
        few = rng.integers(0, most + 1, (h // side + 1, w // side + 1))
        labels = np.kron(few, np.ones((side, side), int))[:h, :w]
    if kind == 2:
        noise = scipy.ndimage.gaussian_filter(rng.standard_normal((h, w)), rng.uniform(1, 4) * (1 + h * w / 1e6))
        labels = np.digitize(noise, np.quantile(noise, np.linspace(0, 1, most + 2)[1:-1]))
    if kind == 3:
        y, x = np.mgrid[:h, :w]
        broad = int(rng.integers(1, 6)) * (1 + h * w // 40000)  # each long stripe is filled again, with its box
        labels = (y * int(rng.integers(1, 4)) + x * int(rng.integers(-3, 4))) // broad % (most + 1)
    if rng.integers(3) == 0:  # labels of more bits, with negative ones
        labels = np.array([0, -7, 70000, 3, 255, -300000])[labels % 6]
    return labels.astype(np.int64)


def save(path, array):
    np.save(path, np.ascontiguousarray(array, dtype=np.float32).reshape((1,) * (4 - array.ndim) + array.shape))


def region_case(program, rng, h, w, what):
    labels = label_map(rng, h, w)
    save("labels.npy", labels)
    background = None if rng.integers(2) else 0
    least = int(rng.integers(1, 4))
    everything = ["--all-labels"] if background is None else []
    for connectivity in (4, 8):
        rfexec(program, "run", "through_int.onnx", "labels.npy", "--regions", "regions.geojson", "--connect",
               str(connectivity), "--min-area", str(least), *everything, *plan(rng, min(h, w)))
        features = check_geojson("regions.geojson", f"{what}, {connectivity}", validate=h * w <= 10000)
        words = region_cases.compare(labels, features, connectivity, background, least)
        check(not words, f"{what}, connectivity {connectivity}: {words[:3]}")
        tolerance = float(rng.choice([0.05, 0.36, 0.5, 0.6, 0.7]))
        rfexec(program, "run", "through_int.onnx", "labels.npy", "--regions", "simple.geojson", "--connect",
               str(connectivity), "--min-area", str(least), *everything, "--simplify", str(tolerance),
               *plan(rng, min(h, w)))
        simple = check_geojson("simple.geojson", f"{what}, {connectivity}, simplified", validate=h * w <= 10000)
        covered = h * w if background is None and least == 1 else None
        words = simplified_cases.compare(features, simple, tolerance, covered)
        check(not words, f"{what}, connectivity {connectivity}, simplified by {tolerance}: {words[:3]}")
    rfexec(program, "run", "through_int.onnx", "labels.npy", "--summary", "summary.json", *plan(rng, min(h, w)))
    found = [(c["label"], c["pixels"], c["area"], c["share"]) for c in read_geojson("summary.json")["classes"]]
    values, counts = np.unique(labels, return_counts=True)
    check(found == [(int(v), int(n), int(n), n / (h * w)) for v, n in zip(values, counts)], f"{what}: summary {found}")


def regions(program, rng, cases, large):
    sizes = [(1, 1), (1, 300), (300, 1), (2, 2)]
    sizes += [tuple(np.exp(rng.uniform(0, np.log(300), 2)).astype(int)) for _ in range(cases)]
    if large:
        sizes += [(3000, 3000), (1500, 3000), (3000, 700)]
    for k, (h, w) in enumerate(sizes):
        region_case(program, rng, int(h), int(w), f"regions {k}, {h} x {w}")


# ---- Points and values ----


def float_map(rng, c, h, w):
    values = rng.standard_normal((c, h, w))
    if rng.integers(2):
        values = scipy.ndimage.gaussian_filter(values, (0, 1.5, 1.5)) * 4
    if rng.integers(2):
        values = np.round(values * int(rng.integers(1, 4)))  # ties
    values = values.astype(np.float32)
    if rng.integers(2):
        values[rng.random(values.shape) < 0.05] = np.nan
    return values


def peaks(values, thresholds, distance):
    """Points [row, column, channel] by rows, columns and channels."""
    side = 2 * distance + 1
    around = np.ones((side, side), bool)
    before = around.copy()
    before.reshape(-1)[side * side // 2:] = False
    found = []
    for k, one in enumerate(values):
        real = np.where(np.isnan(one), -np.inf, one)
        largest = scipy.ndimage.maximum_filter(real, footprint=around, mode="constant", cval=-np.inf)
        earlier = scipy.ndimage.maximum_filter(real, footprint=before, mode="constant", cval=-np.inf)
        peak = (one > np.float32(thresholds[k])) & (one >= largest) & (one > earlier)
        found += [(int(y), int(x), k) for y, x in np.argwhere(peak)]
    return sorted(found)


def point_case(program, rng, what):
    c, h, w = int(rng.integers(1, 4)), int(rng.integers(1, 90)), int(rng.integers(1, 90))
    values, distance = float_map(rng, c, h, w), int(rng.integers(1, 8))
    thresholds = [float(np.float32(t)) for t in rng.uniform(-1, 1, c if rng.integers(2) else 1).round(2)]
    save("values.npy", values)
    network = f"through_{c}.onnx"
    options = ["--threshold=" + ",".join(map(str, thresholds)), "--distance", str(distance)]
    rfexec(program, "run", network, "values.npy", "--points", "points.geojson", *options, *plan(rng, min(h, w)))
    features = check_geojson("points.geojson", what)
    expected = peaks(values, thresholds if len(thresholds) == c else thresholds * c, distance)
    found = [(f["geometry"]["coordinates"], f["properties"]["label"], np.float32(f["properties"]["score"]))
             for f in features]
    check(found == [([x + 0.5, y + 0.5], k, values[k, y, x]) for y, x, k in expected],
          f"{what}: {len(found)} points, SciPy says {len(expected)}")
    ends = sorted(float(v) for v in rng.choice([-3, -1.7, -0.1, 0, 0.3, 1, 1e-3, 2.5], 2, replace=False))
    bins = ["--bins", f"{rng.integers(1, 40)},{ends[0]},{ends[1]}"]
    asked = sorted({float(q) for q in rng.random(int(rng.integers(1, 5))).round(3)})
    rfexec(program, "run", network, "values.npy", "--summary", "values.json", *options[:1], *bins, "--quantiles",
           ",".join(map(str, asked)), *plan(rng, min(h, w)))
    limits = thresholds if len(thresholds) == c else thresholds * c
    document = read_geojson("values.json")
    check_values(values, limits, document["classes"], what)
    check_bins(values, document["bins"], document["classes"], what)
    check_quantiles(values, asked, document["quantiles"], document["classes"], what)


def check_quantiles(values, asked, listed, classes, what):
    check(listed == asked, f"{what}: {listed}, not {asked}")
    for entry, one in zip(classes, values):
        real = one[~np.isnan(one)].astype(float)
        theirs = [number if np.isfinite(number) else None for number in np.quantile(real, asked)] if real.size else [None]
        check(entry["quantiles"] == theirs * (len(asked) // len(theirs)),
              f"{what}: quantiles {entry['quantiles']}, NumPy says {theirs}")


def check_bins(values, edges, classes, what):
    for entry, one in zip(classes, values):
        real = one[~np.isnan(one)].astype(float)
        mine = [entry["below"], *entry["bins"], entry["above"]]
        theirs = [(real < edges[0]).sum(), *np.histogram(real, edges)[0], (real > edges[-1]).sum()]
        check(mine == theirs, f"{what}: bins {mine}, NumPy says {theirs}")


def check_values(values, limits, classes, what):
    for k, (entry, one) in enumerate(zip(classes, values)):
        real = one[~np.isnan(one)].astype(float)
        mine = [entry["label"], entry["pixels"], entry["nan"]]
        check(mine == [k, int((one > np.float32(limits[k])).sum()), one.size - real.size], f"{what}: summary {entry}")
        if real.size == 0:
            check(entry["smallest"] is None and entry["mean"] is None, f"{what}: no values, {entry}")
            continue
        ends = np.float32(entry["smallest"]), np.float32(entry["largest"])
        check(ends == (real.min(), real.max()), f"{what}: {entry}, NumPy says {real.min()} to {real.max()}")
        check(entry["mean"] == math.fsum(real) / real.size, f"{what}: mean {entry['mean']}")
    check(len(classes) == len(values), f"{what}: {len(classes)} classes")


# ---- Areas ----

FINE = 2.0**20  # of a pixel: to such parts the program rounds corners


def star(rng, middle, reach):
    """A ring around a point that does not cross itself."""
    angles = np.sort(rng.uniform(0, 2 * np.pi, int(rng.integers(3, 40))))
    radii = reach * rng.uniform(0.3, 1, len(angles))
    ring = middle + np.stack([np.cos(angles), np.sin(angles)], 1) * radii[:, None]
    return np.round(ring * FINE) / FINE


def random_area(rng, h, w):
    """A valid Polygon with a hole or without, or a MultiPolygon, in pixels. It may reach beyond the map."""
    while True:
        size = np.array([w, h])
        stars = [shapely.Polygon(star(rng, rng.uniform(-0.1, 1.1, 2) * size, rng.uniform(0.05, 0.7) * max(h, w)))
                 for _ in range(3)]
        if not shapely.is_valid(stars).all():
            continue
        area = stars[0].difference(stars[1]) if rng.integers(2) else stars[0].union(stars[2])
        # Corners of a difference are computed, so they are rounded once more.
        area = shapely.transform(area, lambda at: np.round(at * FINE) / FINE)
        if area.is_valid and area.geom_type in ("Polygon", "MultiPolygon") and not area.is_empty:
            return area


def save_areas(path, areas, names):
    features = [{"type": "Feature", "geometry": shapely.geometry.mapping(area), "properties": {"name": name}}
                for area, name in zip(areas, names)]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"type": "FeatureCollection", "features": features}, file, indent=1)


def area_case(program, rng, what):
    h, w = (int(v) for v in np.exp(rng.uniform(0, np.log(200), 2)))
    labels = label_map(rng, h, w)
    areas = [random_area(rng, h, w) for _ in range(int(rng.integers(1, 30)))]
    save("labels.npy", labels)
    save_areas("areas.geojson", areas, [f"no. {k}" for k in range(len(areas))])
    rfexec(program, "run", "through_int.onnx", "labels.npy", "--summary", "areas.json", "--within", "areas.geojson",
           *plan(rng, min(h, w)))
    found = read_geojson("areas.json")["within"]
    check([a["name"] for a in found] == [f"no. {k}" for k in range(len(areas))], f"{what}: names")
    x, y = np.meshgrid(np.arange(w) + 0.5, np.arange(h) + 0.5)
    for k, (area, one) in enumerate(zip(areas, found)):
        inside = shapely.contains_xy(area, x, y)
        gdal = rasterio.features.geometry_mask([area], (h, w), Affine.identity(), invert=True)
        values, counts = np.unique(labels[inside], return_counts=True)
        mine = [(c["label"], c["pixels"]) for c in one["classes"]]
        check(one["pixels"] == gdal.sum(), f"{what}, area {k}: {one['pixels']} pixels, GDAL says {gdal.sum()}")
        check(mine == [(int(v), int(n)) for v, n in zip(values, counts)], f"{what}, area {k}: {mine}")


def value_area_case(program, rng, what):
    c, h, w = int(rng.integers(1, 4)), *(int(n) for n in rng.integers(4, 60, 2))
    values = float_map(rng, c, h, w)
    areas = [random_area(rng, h, w) for _ in range(8)]
    asked = sorted({float(q) for q in rng.random(int(rng.integers(1, 5))).round(3)})
    save("values.npy", values)
    save_areas("areas.geojson", areas, range(8))
    rfexec(program, "run", f"through_{c}.onnx", "values.npy", "--summary", "areas.json", "--within", "areas.geojson",
           "--threshold", "0.5", "--bins", "9,-2,2.3", "--quantiles", ",".join(map(str, asked)), *plan(rng, min(h, w)))
    document = read_geojson("areas.json")
    check_quantiles(values, asked, document["quantiles"], document["classes"], what)
    x, y = np.meshgrid(np.arange(w) + 0.5, np.arange(h) + 0.5)
    for k, (area, one) in enumerate(zip(areas, document["within"])):
        inside = shapely.contains_xy(area, x, y)
        check_quantiles(values[:, inside], asked, document["quantiles"], one["classes"], f"{what}, area {k}")
        check_values(values[:, inside], [0.5] * c, one["classes"], f"{what}, area {k}")
        check_bins(values[:, inside], document["bins"], one["classes"], f"{what}, area {k}")


# ---- Places ----


def near(ours, theirs):
    theirs = np.asarray(theirs)
    return (np.abs(np.asarray(ours) - theirs) <= np.maximum(1e-9, 2 * np.spacing(np.abs(theirs)))).all()


def tiff_case(program, rng, name, crs, transform):
    h, w = 50, 70
    labels = label_map(rng, h, w) % 4
    with rasterio.open("place.tif", "w", driver="GTiff", height=h, width=w, count=1, dtype="uint8", crs=crs,
                       transform=transform) as file:
        file.write(labels.astype("uint8"), 1)
    command = ["run", "through_byte.onnx", "place.tif", "--scale", "raw", "--threads", "2", "--regions"]
    rfexec(program, *command, "place.geojson")
    rfexec(program, *command, "pixels.geojson", "--coordinates", "pixels")
    # A transform that mirrors the picture turns rings round: the file has them in the other order.
    placed, plain = check_geojson("place.geojson", name), check_geojson("pixels.geojson", name)
    check(not region_cases.compare(labels, plain, 4, 0, 1), f"{name}: regions in pixels")
    check(len(placed) == len(plain) > 0, f"{name}: {len(placed)} regions in the map, {len(plain)} in pixels")
    for a, b in zip(placed, plain):
        for (_, ours), (_, corners) in zip(rings_of(a["geometry"]), rings_of(b["geometry"])):
            theirs = [transform * tuple(corner) for corner in corners]
            ours = ours if transform.determinant > 0 else ours[::-1]
            check(near(ours, theirs), f"{name}: a ring is not where rasterio's transform puts its pixels")
        area = b["properties"]["area"] * abs(transform.determinant)
        check(abs(a["properties"]["area"] - area) <= 1e-9 * area, f"{name}: area {a['properties']['area']}")
    table = geopandas.read_file("place.geojson")
    check(table.crs == crs, f"{name}: geopandas reads {table.crs}")
    check(len(table) == len(placed) and table.is_valid.all(), f"{name}: geopandas reads {len(table)} regions")
    local = shapely.area(table.geometry.affine_transform([1, 0, 0, 1, -transform.c, -transform.f]).values)
    check(np.allclose(local, table["area"], rtol=1e-6), f"{name}: areas of the polygons that geopandas reads")
    rfexec(program, *command[:-1], "--points", "points.csv", "--threshold", "0", "--distance", "3")
    points = [line.split(",") for line in open("points.csv", encoding="utf-8").read().splitlines()[1:]]
    expected = peaks(labels[None].astype(np.float32), [0], 3)
    check(len(points) == len(expected) and all(
        near([float(p[3]), float(p[4])], transform * (x + 0.5, y + 0.5)) for p, (y, x, _) in zip(points, expected)),
          f"{name}: points are not the middles of pixels")


    areas_of_tiff(program, rng, name, labels, transform, placed)


def areas_of_tiff(program, rng, name, labels, transform, regions):
    """Regions read again, and other areas in the coordinates of the GeoTIFF."""
    h, w = labels.shape
    command = ["run", "through_byte.onnx", "place.tif", "--scale", "raw", "--summary", "areas.json", "--within"]
    rfexec(program, *command, "place.geojson")
    mine = [[(c["label"], c["pixels"]) for c in one["classes"]] for one in read_geojson("areas.json")["within"]]
    theirs = [[(r["properties"]["label"], r["properties"]["pixels"])] for r in regions]
    check(mine == theirs, f"{name}: regions that are read again")
    areas = [shapely.transform(random_area(rng, h, w), lambda at: np.stack(transform * (at[:, 0], at[:, 1]), 1))
             for _ in range(10)]
    save_areas("other.geojson", areas, range(10))
    rfexec(program, *command, "other.geojson")
    for k, (area, one) in enumerate(zip(areas, read_geojson("areas.json")["within"])):
        gdal = rasterio.features.geometry_mask([area], (h, w), transform, invert=True)
        check(one["pixels"] == gdal.sum(), f"{name}, area {k}: {one['pixels']} pixels, GDAL says {gdal.sum()}")


def places(program, rng):
    utm = CRS.from_epsg(32633)
    tiff_case(program, rng, "north up", utm, Affine(0.3, 0, 500000.125, 0, -0.3, 5400000.5))
    tiff_case(program, rng, "turned", utm, Affine(0.3, 0.1, 500000.125, 0.1, -0.3, 5400000.5))
    tiff_case(program, rng, "south up", utm, Affine(0.5, 0, 500000, 0, 0.5, 5400000))
    tiff_case(program, rng, "degrees", CRS.from_epsg(4326), Affine(1e-5, 0, 14.2, 0, -7e-6, 50.1))


# ---- Boxes ----


def boxes(program):
    try:
        import box_cases
    except ImportError as error:
        print(f"boxes are NOT compared with torchvision: {error}")
        return
    rfexec(program, "run", "yolov8n", "synthetic:320x352", "--boxes", "boxes.json", "-o", "boxes.npy")
    rows = box_cases.rows_of(np.load("boxes.npy"), "yolov8", 0, False)
    wrong = box_cases.differences(box_cases.read("boxes.json"), box_cases.reference(rows, "yolov8", 0.25, 0.45, False))
    check(not wrong, f"boxes: {wrong[:3]}")


def oriented(program):
    rfexec(program, "run", "yolov8n", "synthetic:320x352", "--boxes", "boxes.json", "-o", "boxes.npy", "--head",
           "yolov8-obb")
    theirs = oriented_cases.reference(np.load("boxes.npy"))
    wrong = oriented_cases.differences(oriented_cases.read("boxes.json"), theirs)
    check(len(theirs) > 100 and not wrong, f"boxes with an angle: {len(theirs)}, {wrong[:3]}")


def text(program, seed, cases):
    text_cases.make_network("through_text.onnx")
    for k in range(cases):
        wrong, *_ = text_cases.case(program, np.random.default_rng([seed, k]), text_cases.has_opencv())
        check(not wrong, f"text {k}: {wrong[:3]}")


def make_masks(path, rng, h, w, classes, coefficients):
    """A network with a candidate for each 16 x 16 pixels and a prototype for each 4 x 4: one pixel decides each."""
    channels = 4 + classes + coefficients
    kernel, bias = rng.normal(0, 1, (channels, 3, 1, 1)).astype(np.float32), np.zeros(channels, np.float32)
    kernel[:4] = 0
    kernel[[0, 1, 2, 3], [0, 1, 2, 2]] = np.array([w, h, w / 2, h / 3], np.float32)[:, None, None]
    kernel[4 : 4 + classes] = np.abs(kernel[4 : 4 + classes])
    bias[4 : 4 + classes] = 0.3  # above the usual --score
    fine = rng.normal(0, 1, (coefficients, 3, 1, 1)).astype(np.float32)
    weights = [onnx.numpy_helper.from_array(array, name) for array, name in (
        (kernel, "k"), (bias, "b"), (fine, "f"), (-fine.sum((1, 2, 3)) / 2, "o"), (np.array([1, channels, -1]), "s"))]
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Conv", ["r", "k", "b"], ["c"], strides=[16, 16]),
             helper.make_node("Reshape", ["c", "s"], ["boxes"]),
             helper.make_node("Conv", ["r", "f", "o"], ["prototypes"], strides=[4, 4])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
              for name, shape in (("x", [1, 3, "h", "w"]), ("boxes", None), ("prototypes", None))]
    graph = helper.make_graph(nodes, "masks", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def mask_case(program, rng, what):
    h, w = (16 * int(side) for side in rng.integers(4, 20, 2))
    classes, coefficients = map(int, rng.integers(1, 4, 2))
    make_masks("masks.onnx", rng, h, w, classes, coefficients)
    np.save("masks.npy", rng.random((3, h, w), np.float32))
    asked = ["run", "masks.onnx", "masks.npy", "--head", "yolov8-seg", "--class-count", str(classes), "--iou",
             "0.8"]
    rfexec(program, *asked, "--boxes", "masks.json", "-o", "tensor.npy", *plan(rng, h // 16))
    for path in ("masks.coco.json", "masks.geojson"):
        rfexec(program, *asked, "--boxes", path, *plan(rng, h // 16))
    document, coco = read_geojson("masks.geojson"), mask_cases.load("masks.coco.json")
    listed = mask_cases.load("masks.json")["boxes"]
    wrong, _ = mask_cases.differences(np.load("tensor.boxes.npy"), np.load("tensor.prototypes.npy"), listed, classes, h, w,
                                      coco, document["features"])
    faults = list(rfc_faults(document))
    check(len(listed) > 0 and not wrong and not faults, f"{what}: {len(listed)} masks, {wrong[:3]} {faults[:3]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--seed", type=int, default=50)
    parser.add_argument("--large", action="store_true", help="maps of up to 3,000 x 3,000 pixels too")
    args = parser.parse_args()
    logger.remove()  # geojson-validator's lines about each file
    rng = np.random.default_rng(args.seed)
    make_network("through_int.onnx", 1, TensorProto.INT32)
    make_network("through_byte.onnx", 1, TensorProto.UINT8)
    for c in (1, 2, 3):
        make_network(f"through_{c}.onnx", c, TensorProto.FLOAT)
    regions(args.program, rng, args.cases, args.large)
    for k in range(2 * args.cases):
        point_case(args.program, rng, f"points {k}")
    for k in range(args.cases):
        area_case(args.program, rng, f"areas {k}")
        value_area_case(args.program, rng, f"values in areas {k}")
    places(args.program, rng)
    boxes(args.program)
    oriented(args.program)
    text(args.program, args.seed, 10 * args.cases)
    for k in range(args.cases):
        mask_case(args.program, rng, f"masks {k}")
    print(f"{COUNTS[True]} passed, {COUNTS[False]} failed")
    return 1 if COUNTS[False] else 0


if __name__ == "__main__":
    sys.exit(main())
