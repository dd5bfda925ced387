#!/usr/bin/env python3
"""Boxes of text that the program finds in probability maps, beside NumPy, SciPy, OpenCV and pyclipper.

    text_cases.py BUILD/rfexec [--cases N] [--seed S]

Runs in the working directory, on a network that passes its input through, under random plans and with one to
three threads. Maps are random noise of several grains, and drawn lines of text: turned rectangles with soft
edges, some of which touch.
1. Number, order, centre, sides and score of the boxes are those of a reference that is written here:
   scipy.ndimage.label, a gift-wrapped hull in integers, every edge of the hull tried, areas compared as
   fractions. The angle may differ in its last bit, corners by two units of their last place.
2. Where OpenCV and pyclipper are installed: PaddleOCR's steps (findContours, minAreaRect, an offset of the
   corners, minAreaRect). Corners must be the same within about a pixel, as its offset works in whole pixels.
   Boxes that are nearly square are left out: the last minAreaRect may turn them.
The last line is "N passed, N failed".
"""

import argparse
import fractions
import importlib.util
import json
import math
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import scipy.ndimage
from onnx import TensorProto, helper

PLANS = [["--untiled"], ["--bands", "1"], ["--bands", "7"], ["--bands", "5", "--strips", "2"], ["--tiles", "3x2"]]
PIXEL = 2.0  # corners are truncated to whole pixels before they are moved, and rounded afterwards
SQUARE, SHORT = 1.5, 7.5  # boxes of OpenCV with sides of a smaller ratio, or shorter ones, are not looked for


def make_network(path):
    shape = [1, 1, "h", "w"]
    ones = helper.make_tensor("k", TensorProto.FLOAT, [1, 1, 1, 1], [1.0])
    nodes = [helper.make_node("Conv", ["x", "k"], ["y"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph(nodes, "through", values[:1], values[1:], [ones])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


# ---- maps ----

def noise(rng, h, w):
    grain = int(rng.integers(1, 9))
    coarse = rng.random((h // grain + 2, w // grain + 2)).astype(np.float32)
    map = np.kron(coarse, np.ones((grain, grain), np.float32))[:h, :w]
    if rng.random() < 0.5:
        map = scipy.ndimage.uniform_filter(map, int(rng.integers(1, 6)))
    return np.round(map, 2) if rng.random() < 0.3 else map  # many values are equal, also to thresholds


def lines(rng, h, w):
    y, x = np.mgrid[0:h, 0:w].astype(np.float64)
    map = np.zeros((h, w))
    for _ in range(int(rng.integers(1, 30))):
        angle = rng.choice([0, np.pi / 2, np.pi / 4, rng.uniform(-np.pi / 2, np.pi / 2)])
        long, high = rng.uniform(2, max(3, w / 3)), rng.uniform(1, 14)
        u, v = x - rng.uniform(0, w), y - rng.uniform(0, h)
        along = np.abs(u * np.cos(angle) + v * np.sin(angle)) - long
        across = np.abs(v * np.cos(angle) - u * np.sin(angle)) - high
        map = np.maximum(map, rng.uniform(0.5, 1) / (1 + np.exp(2 * np.maximum(along, across))))
    return (map + rng.uniform(0, 0.05) * rng.random((h, w))).astype(np.float32)


# ---- the reference ----

def hull_of(points):
    """Corners of the hull of integer points, clockwise as seen with y downward, by gift wrapping from the leftmost
    point of the first row."""
    start = min(points, key=lambda p: (p[1], p[0]))
    hull, at = [], start
    while True:
        hull.append(at)
        best = None
        for p in points:
            if p == at:
                continue
            if best is None:
                best = p
                continue
            turn = (best[0] - at[0]) * (p[1] - at[1]) - (best[1] - at[1]) * (p[0] - at[0])
            farther = math.dist(at, p) > math.dist(at, best)
            if turn < 0 or (turn == 0 and farther):
                best = p
        at = best
        if at is None or at == start:
            return hull


def rectangle_of(hull):
    """(edge, lengths along and across it, ends along it, first point) of the smallest rectangle."""
    best = None
    for at, (x0, y0) in enumerate(hull):
        ex, ey = hull[(at + 1) % len(hull)][0] - x0, hull[(at + 1) % len(hull)][1] - y0
        along = [ex * (x - x0) + ey * (y - y0) for x, y in hull]
        across = [ex * (y - y0) - ey * (x - x0) for x, y in hull]
        area = fractions.Fraction((max(along) - min(along)) * max(across), ex * ex + ey * ey)
        if best is None or area < best[0]:
            best = (area, (ex, ey), min(along), max(along), max(across), (x0, y0))
    return best


def box_of(hull, ratio):
    """(centre, sides, angle) in float64 after growing; None: too small."""
    if len(hull) < 3:
        return None
    _, (ex, ey), lo, hi, deep, (x0, y0) = rectangle_of(hull)
    n = float(ex * ex + ey * ey)
    side = [(hi - lo) / math.sqrt(n), deep / math.sqrt(n)]
    by = side[0] * side[1] * ratio / (2 * (side[0] + side[1]))
    if min(side) < 3 or min(side) + 2 * by < 5:
        return None
    centre = [x0 + 0.5 + ((lo + hi) * ex - deep * ey) / (2 * n), y0 + 0.5 + ((lo + hi) * ey + deep * ex) / (2 * n)]
    side = [side[0] + 2 * by, side[1] + 2 * by]
    if side[0] * abs(ex) >= side[1] * abs(ey):
        return centre, side, math.atan(ey / ex)
    return centre, side[::-1], math.atan(-ex / ey)


def extremes(mask):
    """The first and last pixel of each row, as (x, y)."""
    found = []
    for y in np.flatnonzero(mask.any(1)):
        xs = np.flatnonzero(mask[y])
        found += [(int(xs[0]), int(y)), (int(xs[-1]), int(y))]
    return sorted(set(found))


def regions_of(map, threshold):
    """(mask of the box, its corner, mean) of each region, by their last rows and first pixels there."""
    ids, n = scipy.ndimage.label(map > np.float32(threshold), np.ones((3, 3)))
    found = []
    for i, (rows, columns) in enumerate(scipy.ndimage.find_objects(ids, n)):
        mask = ids[rows, columns] == i + 1
        mean = math.fsum(map[rows, columns][mask].tolist()) / int(mask.sum())
        last = columns.start + int(np.flatnonzero(mask[-1])[0])
        found.append((rows.stop, last, mask, (columns.start, rows.start), mean))
    return [region[2:] for region in sorted(found, key=lambda region: region[:2])]


def reference(map, threshold, score, ratio):
    boxes = []
    for mask, (x, y), mean in regions_of(map, threshold):
        if not np.float32(mean) >= np.float32(score):
            continue
        box = box_of(hull_of([(px + x, py + y) for px, py in extremes(mask)]), ratio)
        if box is not None:
            boxes.append((*box, mean))
    return boxes


def corners_of(centre, side, angle):
    ux, uy = math.cos(angle), math.sin(angle)
    return [(centre[0] + sx * side[0] / 2 * ux - sy * side[1] / 2 * uy,
             centre[1] + sx * side[0] / 2 * uy + sy * side[1] / 2 * ux) for sx, sy in ((-1, -1), (1, -1), (1, 1), (-1, 1))]


def differences(ours, theirs):
    texts = [f"{len(ours)} boxes, {len(theirs)} of the reference"] if len(ours) != len(theirs) else []
    for at, (box, (centre, side, angle, mean)) in enumerate(zip(ours, theirs)):
        exact = [("centre", box["centre"], centre), ("size", box["size"], side), ("score", [box["score"]], [mean])]
        texts += [f"box {at}: {name} {a}, expected {b}" for name, a, b in exact
                  if (np.float32(a) != np.float32(b)).any()]
        if abs(np.float32(box["angle"]) - np.float32(angle)) > np.spacing(np.float32(abs(angle))):
            texts.append(f"box {at}: angle {box['angle']}, expected {angle}")
        corners = corners_of(np.float32(centre).tolist(), np.float32(side).tolist(), float(np.float32(angle)))
        off = np.abs(np.array(box["corners"]) - corners)
        if (off > 2 * np.spacing(np.float32(np.abs(centre).max() + max(side)))).any():
            texts.append(f"box {at}: corners {box['corners']}, expected {corners}")
        first, second = box["corners"][0], box["corners"][3]
        if sorted(box["corners"])[0] not in (first, second) or first[1] > second[1]:
            texts.append(f"box {at}: {first} is not the upper left corner")
    return texts


# ---- OpenCV and pyclipper ----

def has_opencv():
    return all(importlib.util.find_spec(name) for name in ("cv2", "pyclipper"))


def contour_box(points):
    import cv2

    rectangle = cv2.minAreaRect(points)
    return cv2.boxPoints(rectangle), min(rectangle[1])


def like_paddle(map, threshold, score, ratio):
    """Corners by PaddleOCR's steps, moved by half a pixel to the pixels' centres. Its contours are those of regions
    without holes, and its scores those of the reference."""
    import cv2
    import pyclipper

    found = []
    for mask, (x, y), mean in regions_of(map, threshold):
        filled = np.pad(mask.astype(np.uint8), 1)
        contours, _ = cv2.findContours(filled, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        assert len(contours) == 1
        corners, short = contour_box(contours[0])
        if short < 3 or not np.float32(mean) >= np.float32(score):
            continue
        area, around = cv2.contourArea(corners), cv2.arcLength(corners, True)
        offset = pyclipper.PyclipperOffset()
        offset.AddPath(corners.astype(int).tolist(), pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
        grown = offset.Execute(area * ratio / around)
        if len(grown) != 1:
            continue
        corners, short = contour_box(np.array(grown[0]).reshape(-1, 1, 2))
        if short >= 5:
            found.append(corners + np.array([x - 0.5, y - 0.5]))
    return found


def is_long(corners):
    side = sorted(np.linalg.norm(np.subtract(corners[i], corners[i + 1])) for i in (0, 1))
    return side[0] > SHORT and side[1] > SQUARE * side[0]


def from_paddle(ours, theirs):
    """For each long box of one side, how far its corners are from those of the nearest box of the other."""
    def distance(a, b):
        return np.abs(np.asarray(a)[:, None] - np.asarray(b)[None]).max(2).min(1).max()

    return [min((distance(a, b) for b in others), default=np.inf)
            for boxes, others in ((ours, theirs), (theirs, ours)) for a in boxes if is_long(a)]


# ---- cases ----

def run(program, *words):
    done = subprocess.run([program, "run", "through_text.onnx", "map.npy", *map(str, words)], capture_output=True,
                          text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip()


def case(program, rng, opencv):
    """Returns texts of what is wrong, the number of boxes, and distances from OpenCV's."""
    h, w = (int(rng.integers(1, 200)) for _ in range(2))
    drawn = rng.random() < 0.6
    values = lines(rng, h, w) if drawn else noise(rng, h, w)
    np.save("map.npy", values[None, None])
    usual = rng.random() < 0.5
    threshold, score, ratio = (0.3, 0.6, 1.5) if usual else (round(rng.uniform(0.1, 0.7), 2),
                                                             round(rng.uniform(0.2, 0.8), 2), rng.choice([0, 1, 2.2]))
    asked = [] if usual else ["--threshold", threshold, "--score", score, "--unclip", ratio]
    wrong = run(program, "--text", "first.json", *asked)
    if wrong:
        return [wrong], 0, []
    ours = json.loads(pathlib.Path("first.json").read_text())["boxes"]
    texts = differences(ours, reference(values, threshold, score, float(np.float32(ratio))))
    plan = PLANS[rng.integers(len(PLANS))] if min(h, w) >= 8 else PLANS[0]
    wrong = run(program, "--text", "other.json", *asked, *plan, "--threads", rng.integers(1, 4))
    if wrong or pathlib.Path("other.json").read_bytes() != pathlib.Path("first.json").read_bytes():
        texts.append(f"{' '.join(plan)}: {wrong or 'another file'}")
    if not (opencv and drawn and usual):
        return texts, len(ours), []
    apart = from_paddle([box["corners"] for box in ours], like_paddle(values, threshold, score, ratio))
    texts += [f"a box is {far:.2f} pixels from the nearest of OpenCV and pyclipper" for far in apart if far > PIXEL]
    return texts, len(ours), apart


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    opencv = has_opencv()
    print("beside OpenCV and pyclipper too" if opencv else "without OpenCV and pyclipper, which are not installed")
    make_network("through_text.onnx")
    failed, boxes, apart = 0, 0, []
    for k in range(args.cases):
        texts, n, far = case(args.program.resolve(), np.random.default_rng([args.seed, k]), opencv)
        apart += far
        boxes += n
        failed += bool(texts)
        for text in texts[:5]:
            print(f"FAILED: case {k}: {text}", flush=True)
    print(f"{boxes} boxes of text, {len(apart)} beside OpenCV's, at most {max(apart, default=0):.2f} pixels apart")
    print(f"{args.cases - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
