#!/usr/bin/env python3
"""Boxes with an angle that `rfexec run --boxes out.json --head yolov8-obb` writes, beside a reference in NumPy.

    oriented_cases.py output.npy boxes.json [--score 0.25] [--iou 0.45] [--agnostic] [--ultralytics]

output.npy is the output of the same run, 1 x (4 + classes + 1) x candidates. All pairs of a class are compared, in
float32 in the order of operations of Ultralytics' batch_probiou; sin, cos, log and exp are those of float64, rounded.
Centre, sides, angle, score, label, index and order must be the same, corners but for two units of their last place.
--ultralytics: suppression by TorchNMS.fast_nms of the installed ultralytics, called for each class. (Its
non_max_suppression adds 7680 pixels for each class to the centres, which rounds them.) PyTorch's sin, cos, log and exp
may differ in the last bit, so a pair within that of the threshold may be decided otherwise.
Exit code 1: a box differs.
"""

import argparse
import json
import sys

import numpy as np

EPSILON = np.float32(1e-7)
MOST_WORDS = 10


def rounded(function, values):
    return function(values.astype(np.float64)).astype(np.float32)


def shapes_of(boxes):
    """The covariances [[a, c], [c, b]] of boxes [n, 5]."""
    a, b = (boxes[:, k] * boxes[:, k] / np.float32(12) for k in (2, 3))
    cos, sin = rounded(np.cos, boxes[:, 4]), rounded(np.sin, boxes[:, 4])
    cos2, sin2 = cos * cos, sin * sin
    return a * cos2 + b * sin2, a * sin2 + b * cos2, (a - b) * cos * sin


def similarities(one, shape, boxes, shapes):
    """Similarities of one box with others."""
    a, b, c = (mine + others for mine, others in zip(shape, shapes))
    dx, dy = one[0] - boxes[:, 0], one[1] - boxes[:, 1]
    both = a * b - c * c
    t1 = (a * (dy * dy) + b * (dx * dx)) / (both + EPSILON) * np.float32(0.25)
    t2 = c * -dx * dy / (both + EPSILON) * np.float32(0.5)
    mine, others = (np.maximum(s[0] * s[1] - s[2] * s[2], np.float32(0)) for s in (shape, shapes))
    ratio = both / (np.float32(4) * np.sqrt(mine * others) + EPSILON) + EPSILON
    distance = t1 + t2 + rounded(np.log, ratio) * np.float32(0.5)
    distance = np.clip(distance, EPSILON, np.float32(100))
    return np.float32(1) - np.sqrt(np.float32(1) - rounded(np.exp, -distance) + EPSILON)


def suppress(boxes, iou):
    """Which boxes [n, 5], by falling score, are left: those that none before them is similar to."""
    shapes = shapes_of(boxes)
    left = np.ones(len(boxes), bool)
    with np.errstate(all="ignore"):
        for j in range(1, len(boxes)):
            shape = [values[j] for values in shapes]
            values = similarities(boxes[j], shape, boxes[:j], [values[:j] for values in shapes])
            left[j] = not (values > np.float32(iou)).any()
    return left


def suppress_by_ultralytics(boxes, iou):
    import torch
    from ultralytics.utils.metrics import batch_probiou
    from ultralytics.utils.nms import TorchNMS

    scores = torch.arange(len(boxes), 0, -1)  # the order is given
    kept = TorchNMS.fast_nms(torch.from_numpy(boxes), scores, iou, iou_func=batch_probiou)
    left = np.zeros(len(boxes), bool)
    left[kept.numpy()] = True
    return left


def reference(output, score=0.25, iou=0.45, agnostic=False, chosen=suppress):
    """[(boxes of x, y, w, h, angle), score, label, index], by falling score."""
    channels = np.ascontiguousarray(output[0].T)
    scores, labels = channels[:, 4:-1].max(1), channels[:, 4:-1].argmax(1)
    with np.errstate(invalid="ignore"):
        indices = np.flatnonzero(scores > np.float32(score))
    indices = indices[np.argsort(-scores[indices], kind="stable")]
    boxes = channels[indices][:, [0, 1, 2, 3, -1]]
    left = np.zeros(len(indices), bool)
    for label in [None] if agnostic else np.unique(labels[indices]):
        members = np.flatnonzero(labels[indices] == label) if label is not None else np.arange(len(indices))
        left[members] = chosen(np.ascontiguousarray(boxes[members]), iou)
    return [(boxes[k], scores[indices[k]], int(labels[indices[k]]), int(indices[k])) for k in np.flatnonzero(left)]


def chosen_by_network(output, score=0.25):
    """The same of an output 1 x boxes x 7: x, y, w, h, score, label, angle."""
    indices = np.flatnonzero(output[0, :, 4] > np.float32(score))
    order = indices[np.argsort(-output[0, indices, 4], kind="stable")]
    return [(output[0, k, [0, 1, 2, 3, 6]], output[0, k, 4], int(output[0, k, 5]), int(k)) for k in order]


def corners_of(x, y, w, h, angle):
    ux, uy = np.cos(np.float64(angle)), np.sin(np.float64(angle))
    return [(x + sx * w / 2 * ux - sy * h / 2 * uy, y + sx * w / 2 * uy + sy * h / 2 * ux)
            for sx, sy in ((-1, -1), (1, -1), (1, 1), (-1, 1))]


def number(value):
    return np.float32(np.nan if value is None else value)


def differences(ours, theirs):
    """Texts of the boxes that differ."""
    texts = [f"{len(ours)} boxes, {len(theirs)} of the reference"] if len(ours) != len(theirs) else []
    for at, (box, (values, score, label, index)) in enumerate(zip(ours, theirs)):
        numbers = [*map(number, (*box["centre"], *box["size"], box["angle"], box["score"]))]
        wanted = [*values, score]
        if not all(a == b or not np.isfinite(b) for a, b in zip(numbers, wanted)):
            texts.append(f"box {at}: {numbers}, expected {wanted}")
        if (box["label"], box["index"]) != (label, index):
            texts.append(f"box {at}: label {box['label']}, index {box['index']}, expected {label}, {index}")
        if np.isfinite(values).all():
            off = np.abs(np.array(box["corners"]) - corners_of(*values.astype(np.float64)))
            if (off > 2 * np.spacing(np.float32(np.abs(values[:4]).sum()))).any():
                texts.append(f"box {at}: corners {box['corners']}, {off.max()} away")
    return texts


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["boxes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("boxes")
    parser.add_argument("--score", type=float, default=0.25)
    parser.add_argument("--iou", type=float, default=0.45)
    parser.add_argument("--agnostic", action="store_true")
    parser.add_argument("--ultralytics", action="store_true")
    args = parser.parse_args()
    chosen = suppress_by_ultralytics if args.ultralytics else suppress
    theirs = reference(np.load(args.output), args.score, args.iou, args.agnostic, chosen)
    ours = read(args.boxes)
    texts = differences(ours, theirs)
    for text in texts[:MOST_WORDS]:
        print(f"FAILED: {text}")
    print(f"{args.boxes}: {len(ours)} boxes, {len(theirs)} of the reference, {len(texts)} differ")
    return 1 if texts else 0


if __name__ == "__main__":
    sys.exit(main())
