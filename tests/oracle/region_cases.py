"""Regions in a GeoJSON file against scipy.ndimage.label and rasterio.features.shapes of the label map.

    region_cases.py LABELS.npy REGIONS.geojson [--connectivity 4|8] [--background N] [--least-area N]

LABELS.npy is a map of integers [h, w]. The features of REGIONS.geojson have Polygon or MultiPolygon
geometries in pixel coordinates (x to the right, y downward, the corners of the pixel (0, 0) are (0, 0) and
(1, 1)) and the properties label, area, perimeter and centroid [x, y]. The first point of a geometry is the
leftmost of its topmost ones. Outer rings have positive areas, sum(x[i] y[i+1] - x[i+1] y[i]) / 2, and holes
negative ones.

scipy says which pixels are a region: its number of regions, their labels, areas and centroids must be those
of the file. Each geometry, rasterised by GDAL, must have exactly the pixels of one region. rasterio says
which polygons are the sets of pixels that are joined by sides: a region's polygons must be equal to them
(shapely), with connectivity 8 several to a region. Perimeters are lengths of the rings. Areas, bounds and
perimeters are whole numbers and must be equal; centroids to 1e-9.

Exit code 0: all equal; 1: something differs, with words. Needs numpy, rasterio, scipy and shapely.
"""

import argparse
import json
import sys

import numpy as np
import rasterio.features
import scipy.ndimage
import shapely
import shapely.geometry

MOST_WORDS = 20  # lines about differences


def whole_regions(labels, connectivity, background):
    """Returns ids [h, w] of regions from 1, 0 for background, and the label of each id from 1."""
    structure = np.ones((3, 3)) if connectivity == 8 else None
    ids = np.zeros(labels.shape, np.int32)
    found = []
    for label in np.unique(labels):
        if background is not None and label == background:
            continue
        part, n = scipy.ndimage.label(labels == label, structure)
        ids[part > 0] = part[part > 0] + len(found)
        found += [int(label)] * n
    return ids, found


def rasterio_polygons(ids):
    """Returns the polygons of pixels joined by sides, in lists by id."""
    polygons = {}
    for shape, value in rasterio.features.shapes(ids, mask=ids > 0, connectivity=4):
        polygons.setdefault(int(value), []).append(shapely.geometry.shape(shape))
    return polygons


def is_ring(points):
    """Whether a ring is closed, turns at each point by a right angle, and passes none twice."""
    points = np.asarray(points)
    steps = np.diff(points, axis=0)
    across = steps[:, 0] != 0
    closed = len(points) >= 5 and (points[0] == points[-1]).all()
    turns = (across != (steps[:, 1] != 0)).all() and (across != np.roll(across, 1)).all()
    return closed and turns and len(np.unique(points[:-1], axis=0)) == len(points) - 1


def signed_area(points):
    points = np.asarray(points)
    x, y = points[:, 0], points[:, 1]
    return np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]) / 2


def ring_faults(geometry):
    polygons = geometry["coordinates"] if geometry["type"] == "MultiPolygon" else [geometry["coordinates"]]
    for rings in polygons:
        for k, ring in enumerate(rings):
            if not is_ring(ring):
                yield f"ring {k} from {ring[0]} is not closed, or has points that are too many"
            elif (signed_area(ring) > 0) != (k == 0):
                yield f"ring {k} from {ring[0]} turns the wrong way"


class Truth:
    """What scipy and rasterio say of a map."""

    def __init__(self, labels, connectivity, background, least_area):
        self.ids, self.labels = whole_regions(labels, connectivity, background)
        n = len(self.labels)
        index = np.arange(1, n + 1)
        self.areas = np.bincount(self.ids.ravel(), minlength=n + 1)[1:]
        ones = np.ones(labels.shape)
        self.centroids = np.array(scipy.ndimage.center_of_mass(ones, self.ids, index)).reshape(n, 2) + 0.5
        self.boxes = scipy.ndimage.find_objects(self.ids)
        self.polygons = rasterio_polygons(self.ids)
        self.expected = {int(i) for i in index[self.areas >= least_area]}

    def faults(self, feature):
        """Yields differences of a feature, and takes its region from those that are expected."""
        geometry, properties = feature["geometry"], feature["properties"]
        yield from ring_faults(geometry)
        shape = shapely.geometry.shape(geometry)
        several = shape.geom_type == "MultiPolygon"
        parts = list(shape.geoms) if several else [shape]
        first = geometry["coordinates"][0] if several else geometry["coordinates"]
        x, y = first[0][0]
        # The pixel below and to the right of the first point, an upper left corner, is the region's.
        h, w = self.ids.shape
        i = int(self.ids[int(y), int(x)]) if 0 <= y < h and 0 <= x < w else 0
        if i not in self.expected:
            yield f"no region, or one that was there before, begins at ({x}, {y})"
            return
        self.expected.remove(i)
        rows, columns = self.boxes[i - 1]
        if shape.bounds != (columns.start, rows.start, columns.stop, rows.stop):
            yield f"bounds {shape.bounds}, scipy says rows {rows}, columns {columns}"
            return
        if properties["label"] != self.labels[i - 1]:
            yield f"label {properties['label']}, not {self.labels[i - 1]}"
        if properties["area"] != self.areas[i - 1] or shape.area != self.areas[i - 1]:
            yield f"area {properties['area']}, of the polygons {shape.area}, scipy says {self.areas[i - 1]}"
        if properties["perimeter"] != shape.length:
            yield f"perimeter {properties['perimeter']}, of the polygons {shape.length}"
        off = np.abs(np.array(properties["centroid"]) - self.centroids[i - 1][::-1]).max()
        if off > 1e-9:
            yield f"centroid {properties['centroid']}, scipy says {self.centroids[i - 1][::-1]}"
        yield from self.pixel_faults(shape, i, rows, columns)
        yield from self.polygon_faults(parts, i)

    def pixel_faults(self, shape, i, rows, columns):
        here = self.ids[rows, columns] == i
        moved = rasterio.transform.from_origin(columns.start, rows.start, 1, -1)
        drawn = rasterio.features.rasterize([shape], here.shape, transform=moved, dtype="uint8")
        if not (drawn == here).all():
            yield f"{np.count_nonzero(drawn != here)} pixels of the polygons are not those of the region"

    def polygon_faults(self, parts, i):
        def key(polygon):
            return shapely.get_coordinates(polygon).tolist()

        mine = sorted((p.normalize() for p in parts), key=key)
        other = sorted((p.normalize() for p in self.polygons[i]), key=key)
        if len(mine) != len(other):
            yield f"{len(mine)} polygons, rasterio says {len(other)}"
            return
        for p, q in zip(mine, other):
            if not p.is_valid:
                yield f"polygon not valid: {shapely.is_valid_reason(p)}"
            elif len(p.interiors) != len(q.interiors) or not p.equals(q):
                yield f"polygon of {len(p.interiors)} holes from {p.exterior.coords[0]} is not rasterio's, " \
                      f"which has {len(q.interiors)}"


def compare(labels, features, connectivity, background, least_area):
    """Returns differences, as words."""
    truth = Truth(labels, connectivity, background, least_area)
    words = []
    n = len(truth.expected)
    if len(features) != n:
        words.append(f"{len(features)} regions, scipy says {n}")
    for k, feature in enumerate(features):
        words += [f"feature {k}: {fault}" for fault in truth.faults(feature)]
    words += [f"no feature is the region of {truth.areas[i - 1]} pixels, label {truth.labels[i - 1]}"
              for i in sorted(truth.expected)]
    return words


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("labels")
    parser.add_argument("regions")
    parser.add_argument("--connectivity", type=int, choices=(4, 8), default=4)
    parser.add_argument("--background", type=int)
    parser.add_argument("--least-area", type=int, default=1)
    args = parser.parse_args()
    with open(args.regions, encoding="utf-8") as file:
        features = json.load(file)["features"]
    labels = np.load(args.labels)
    words = compare(labels, features, args.connectivity, args.background, args.least_area)
    for line in words[:MOST_WORDS]:
        print(f"FAILED: {line}")
    if len(words) > MOST_WORDS:
        print(f"and {len(words) - MOST_WORDS} more")
    h, w = labels.shape
    state = f"{len(words)} differences" if words else "all equal to scipy and rasterio"
    print(f"{h} x {w}, connectivity {args.connectivity}: {len(features)} regions, {state}")
    return 1 if words else 0


if __name__ == "__main__":
    sys.exit(main())
