"""Masks that rfexec wrote against the same formula in NumPy, on the tensors of the same run.

    mask_cases.py candidates.npy prototypes.npy boxes.json --image HxW [--classes N] [--coco FILE]
            [--geojson FILE]

candidates.npy: the output of a yolov8-seg head, 1 x (4 + classes + coefficients) x candidates;
prototypes.npy: 1 x coefficients x rows x columns; boxes.json: what rfexec wrote, with masks. Every mask
must have the same pixels as the formula of rfexec/answers/box_masks.h: prototypes times coefficients,
summed by channel in float32, bilinear between the four nearest, above 0 inside of the box. --coco,
--geojson: the same boxes in these forms must have the same masks. COCO's strings are decoded by
pycocotools if it is installed. Prints what differs; exit code 1 then. Needs NumPy.
"""

import argparse
import importlib.util
import json
import sys

import numpy as np


def sides(n, lo, hi):
    """Of pixels lo to hi: the prototype before each, the one behind, and the share of the latter."""
    at = np.maximum((np.arange(lo, hi, dtype=np.float64) + 0.5) / 4 - 0.5, 0)
    first = at.astype(np.int64)
    return first, np.minimum(first + 1, n - 1), (at - first).astype(np.float32)


def inside_of(box, h, w):
    """The pixels of a box: rows and columns, half open."""
    if not np.isfinite(np.array([number for number in box if number is not None])).all() or None in box:
        raise SystemExit("a box that is not finite")
    lo_x, lo_y, hi_x, hi_y = (int(np.ceil(np.float64(np.float32(number)))) for number in box)
    return max(lo_y, 0), min(hi_y, h), max(lo_x, 0), min(hi_x, w)


def values_of(prototypes, coefficients, rectangle):
    """What is compared with 0, float32, for the pixels of a rectangle."""
    y0, y1, x0, x1 = rectangle
    (above, below, u), (left, right, v) = sides(prototypes.shape[1], y0, y1), sides(prototypes.shape[2], x0, x1)
    part = prototypes[:, above[0] : below[-1] + 1, left[0] : right[-1] + 1]
    value = coefficients[0] * part[0]
    for k in range(1, len(part)):
        value = value + coefficients[k] * part[k]
    above, below, left, right = above - above[0], below - above[0], left - left[0], right - left[0]
    u, v, one = u[:, None], v[None], np.float32(1)
    top = (one - v) * value[above][:, left] + v * value[above][:, right]
    bottom = (one - v) * value[below][:, left] + v * value[below][:, right]
    return (one - u) * top + u * bottom


def mask_of(prototypes, coefficients, box, h, w):
    mask = np.zeros((h, w), bool)
    y0, y1, x0, x1 = rectangle = inside_of(box, h, w)
    if y0 < y1 and x0 < x1:
        mask[y0:y1, x0:x1] = values_of(prototypes, coefficients, rectangle) > 0
    return mask


def from_runs(counts, h, w):
    flat = np.repeat(np.arange(len(counts)) % 2 == 1, counts)
    if len(flat) != h * w:
        raise SystemExit(f"runs of {len(flat)} pixels, the image has {h * w}")
    return flat.reshape(w, h).T


def from_string(segmentation, h, w):
    if importlib.util.find_spec("pycocotools") is not None:
        from pycocotools import mask

        return mask.decode({"size": segmentation["size"], "counts": segmentation["counts"].encode()}).astype(bool)
    counts, x, shift = [], 0, 0
    for bits in (ord(character) - 48 for character in segmentation["counts"]):
        x |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            x -= 1 << shift
        counts.append(x + (counts[-2] if len(counts) > 2 else 0))
        x = shift = 0
    return from_runs(counts, h, w)


def from_polygons(polygons, h, w):
    """Pixels whose middles lie in the polygons: their vertical edges, counted from the left, are odd."""
    edges = np.zeros((h, w + 1), np.int64)
    for ring in (ring for polygon in polygons for ring in polygon):
        if ring[0] != ring[-1]:
            raise SystemExit("a ring that is not closed")
        for (x0, y0), (x1, y1) in zip(ring, ring[1:]):
            if x0 == x1:
                edges[min(y0, y1) : max(y0, y1), x0] += 1
            elif y0 != y1:
                raise SystemExit("an edge that is not along pixels")
    return np.cumsum(edges, 1)[:, :w] % 2 == 1


def differences(candidates, prototypes, boxes, classes, h, w, coco=None, features=None):
    """Texts of the masks that differ, and the pixels of all masks."""
    texts, pixels = [], 0
    for at, box in enumerate(boxes):
        wanted = mask_of(prototypes[0], candidates[0, 4 + classes :, box["index"]], box["box"], h, w)
        pixels += int(wanted.sum())
        found = {"runs": from_runs(box["mask"]["counts"], h, w)}
        if coco is not None:
            found["COCO"] = from_string(coco[at]["segmentation"], h, w)
        if features is not None:
            found["polygons"] = from_polygons(features[at]["geometry"]["coordinates"], h, w)
        for form, mask in found.items():
            if (mask != wanted).any():
                texts.append(f"box {at}, {form}: {int((mask != wanted).sum())} of {h * w} pixels differ")
    for form, others in (("COCO", coco), ("polygons", features)):
        if others is not None and len(others) != len(boxes):
            texts.append(f"{form}: {len(others)} boxes, not {len(boxes)}")
    return texts, pixels


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates")
    parser.add_argument("prototypes")
    parser.add_argument("boxes")
    parser.add_argument("--image", metavar="HxW", required=True, help="rows and columns of the image")
    parser.add_argument("--classes", type=int, default=0, help="0: as many coefficients as prototypes")
    parser.add_argument("--coco")
    parser.add_argument("--geojson")
    args = parser.parse_args()
    h, w = map(int, args.image.split("x"))
    candidates, prototypes = np.load(args.candidates), np.load(args.prototypes)
    classes = args.classes or candidates.shape[1] - 4 - prototypes.shape[1]
    boxes = load(args.boxes)["boxes"]
    coco = load(args.coco) if args.coco else None
    features = load(args.geojson)["features"] if args.geojson else None
    wrong, pixels = differences(candidates, prototypes, boxes, classes, h, w, coco, features)
    print(f"{args.boxes}: {len(boxes)} masks of {pixels} pixels, {len(wrong)} differ")
    for text in wrong[:10]:
        print(f"  {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
